"""Usage: check.py DVBF FOLDER; the folder has NAME.safetensors and a file `list` of names, n_x and n_u."""
import ctypes
import importlib.util
import subprocess
import sys

import numpy as np

dvbf, folder = sys.argv[1:]
STEPS = 100
TOLERANCE = 1e-5
DOUBLE = ctypes.POINTER(ctypes.c_double)
failed = False


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(" ".join(words) + ": " + done.stderr)


def export(name, file, *more):
    run(dvbf, "export", f"{folder}/{name}.safetensors", "-o", f"{folder}/{file}", "--quiet", *more)


def pointer(array):
    return array.ctypes.data_as(DOUBLE) if array is not None else None


class Filter:
    """The exported C in double."""

    def __init__(self, name, n_x, n_u):
        export(name, f"{name}.c", "--real", "double", "--samples", "0")
        run("cc", "-std=c99", "-O1", "-fPIC", "-shared", f"{folder}/{name}.c", "-o", f"{folder}/{name}.so", "-lm")
        self.library, self.name = ctypes.CDLL(f"{folder}/{name}.so"), name
        self.n_x, self.n_u = n_x, n_u
        header = open(f"{folder}/{name}.h").read()
        self.n_z = int(header.split(f"{name}_N_Z = ")[1].split(",")[0])
        self.frames = int(header.split(f"{name}_FRAMES = ")[1].split()[0])
        self.waits = "gain-updates=1" in header
        self.moves = f"{name}_predict(" in header
        self.direct = f"{name}_observe(const {name}_real *z, const" in header
        self.same_row = "x and u of the same row" in header
        self.state = ctypes.create_string_buffer(1 << 20)
        self.call("reset", self.state)

    def call(self, what, *arguments):
        return getattr(self.library, f"{self.name}_{what}")(*arguments)

    def step(self, x, u):
        out = np.zeros(2 * self.n_z + 2 * self.n_x)
        ready = self.call("step", self.state, pointer(x), pointer(u), None, pointer(out))
        n = self.n_z
        return ready, out[:n], out[n : 2 * n], out[2 * n : 2 * n + self.n_x], out[2 * n + self.n_x :]

    def transition(self, z, u):
        out, a, b = np.zeros(self.n_z), np.zeros((self.n_z, self.n_z)), np.zeros((self.n_z, max(self.n_u, 1)))
        self.call("transition", pointer(z), pointer(u), pointer(out), pointer(a), pointer(b) if self.n_u else None)
        return out, a, b[:, : self.n_u]

    def observe(self, z, u):
        out, h = np.zeros(self.n_x), np.zeros((self.n_x, self.n_z))
        if self.direct:
            self.call("observe", pointer(z), pointer(u), pointer(out), pointer(h), None)
        else:
            self.call("observe", pointer(z), pointer(out), pointer(h))
        return out, h


def apart(a, b):
    a, b = np.asarray(a, float).ravel(), np.asarray(b, float).ravel()
    return float(np.max(np.abs(a - b) / (1 + np.abs(b)))) if a.size else 0.0


def inputs(n_x, n_u):
    random = np.random.default_rng(1)
    x = 0.5 + 0.3 * random.standard_normal((STEPS, n_x))
    x[random.random((STEPS, n_x)) < 0.1] = np.nan
    x[random.random(STEPS) < 0.1] = np.nan
    return x, 1 + random.standard_normal((STEPS, n_u))


def check_casadi(f, name):
    import casadi as ca

    export(name, f"{name}_model.py")
    spec = importlib.util.spec_from_file_location(name, f"{folder}/{name}_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    random = np.random.default_rng(2)
    worst = 0.0
    slope = module.transition.factory("slope", module.transition.name_in(), ["jac:z_next:z"])
    for _ in range(20):
        z, u = random.standard_normal(f.n_z), 1 + random.standard_normal(f.n_u)
        given = [z, u] if f.n_u else [z]
        seen = given if module.observe.n_in() > 1 else [z]
        out, a, _ = f.transition(z, u)
        x, _ = f.observe(z, u)
        worst = max(worst, apart(module.transition(*given), out), apart(module.observe(*seen), x))
        worst = max(worst, apart(slope(*given), a))
    return worst


def check_onnx(f, name, x, u):
    import onnx
    import onnxruntime

    export(name, f"{name}.onnx")
    onnx.checker.check_model(onnx.load(f"{folder}/{name}.onnx"), full_check=True)
    step = onnxruntime.InferenceSession(f"{folder}/{name}.onnx", providers=["CPUExecutionProvider"])
    names = [i.name for i in step.get_inputs()]
    seen = (~np.isnan(x)).astype(np.float32)
    f.call("reset", f.state)
    worst, state = 0.0, None
    if "state" in names:
        state = np.zeros(step.get_inputs()[0].shape, np.float32)
    begin = 0 if state is not None else f.frames
    controls = u.astype(np.float32)
    for t in range(STEPS):
        ready, z, z_std, mean, _ = f.step(x[t], u[t])
        if t + 1 < begin or (t + 1 == begin and state is None and f.frames == 0):
            continue
        if state is None:
            first = onnxruntime.InferenceSession(f"{folder}/{name}_start.onnx", providers=["CPUExecutionProvider"])
            feed = {"x": x[:begin].astype(np.float32), "seen": seen[:begin]}
            rows = np.zeros((begin, f.n_u), np.float32)  # u[t] acts after frame t; the last one is not known yet
            rows[: begin if f.same_row else begin - 1] = controls[0 if f.same_row else 1 : begin]
            if f.n_u:
                feed["u"] = rows
            feed = {i.name: feed[i.name] for i in first.get_inputs()}
            state = first.run(None, feed)[0]
            for k in range(1, begin):
                state = step.run(["z_next"], one_step(names, state, x, seen * (not f.waits), controls, k))[0]
            worst = max(worst, apart(state, z))
            continue
        if "state" in names:
            feed = {"state": state, "x": x[t].astype(np.float32), "seen": seen[t], "u": controls[t]}
            feed = {k: v for k, v in feed.items() if k in names}
            state, got, std, x_mean, x_std = step.run(["state_next", "z", "z_std", "x_forecast", "x_forecast_std"], feed)
            worst = max(worst, apart(got, z), apart(std, z_std), apart(x_mean, mean))
        else:
            got = step.run(None, one_step(names, state, x, seen, controls, t))
            state = got[0]
            worst = max(worst, apart(state, z))
            if f.moves:
                worst = max(worst, apart(got[1], mean))
    return worst


def one_step(names, state, x, seen, u, t):
    feed = {"z": state, "x": x[t].astype(np.float32), "seen": seen[t], "u": u[t], "u_before": u[t - 1]}
    return {k: v for k, v in feed.items() if k in names}


def check_fmu(f, name, x, u):
    from fmpy import simulate_fmu
    from fmpy.validation import validate_fmu

    export(name, f"{name}.fmu", "--sample-time", "0.1")
    path = f"{folder}/{name}.fmu"
    problems = validate_fmu(path)
    if problems:
        raise RuntimeError(f"{name}.fmu: {problems}")
    columns = [("time", float)] + [(f"x{i + 1}", float) for i in range(f.n_x)] + [(f"u{i + 1}", float) for i in range(f.n_u)]
    signals = np.zeros(STEPS, dtype=columns)
    signals["time"] = 0.1 * np.arange(STEPS)
    for i in range(f.n_x):
        signals[f"x{i + 1}"] = np.where(np.isnan(x[:, i]), np.nan, x[:, i])
    for i in range(f.n_u):
        signals[f"u{i + 1}"] = u[:, i]
    outputs = [f"z{i + 1}" for i in range(f.n_z)]
    result = simulate_fmu(path, stop_time=0.1 * STEPS, step_size=0.1, output_interval=0.1, input=signals, output=outputs)
    f.call("reset", f.state)
    worst = 0.0
    before = np.zeros(f.n_u)
    for t in range(STEPS - 1):
        ready, z, *_ = f.step(x[t], u[t] if f.same_row else before)
        before = u[t]
        if ready:
            worst = max(worst, apart([result[o][t + 1] for o in outputs], z))
    export(name, f"{name}_plant.fmu", "--as", "plant") if f.moves else None
    if f.moves:
        problems = validate_fmu(f"{folder}/{name}_plant.fmu")
        if problems:
            raise RuntimeError(f"{name}_plant.fmu: {problems}")
        simulate_fmu(f"{folder}/{name}_plant.fmu", stop_time=20)
    return worst


for line in open(f"{folder}/list"):
    name, n_x, n_u = line.split()
    n_x, n_u = int(n_x), int(n_u)
    f = Filter(name, n_x, n_u)
    x, u = inputs(n_x, n_u)
    results = {}
    if f.moves:
        results["casadi"] = check_casadi(f, name)
    results["onnx"] = check_onnx(f, name, x, u)
    results["fmu"] = check_fmu(f, name, x, u)
    print(f"{name:20s}", "  ".join(f"{k} {v:.1e}" for k, v in results.items()), flush=True)
    failed |= any(not v < TOLERANCE for v in results.values())

sys.exit(1 if failed else 0)
