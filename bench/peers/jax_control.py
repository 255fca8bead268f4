#!/usr/bin/env python3
"""One step of the controller in JAX: the filter, and a plan of 10 steps with up to 4 iterations of iLQR, beside dvbf's.

    bench/peers/venv/bin/python bench/peers/jax_control.py MODEL.safetensors

MODEL is one of the pendulum with the default settings. First the controls of both are compared on the same pictures; then
`bench_control` and this twin are timed by turns, the same pictures and the same work: the filter step, the plan of the step
before moved on by its gains, and iterations of iLQR with limits and eight step lengths side by side until the cost changes
by less than a share of 1e-7. All of it is one jitted function whose state stays on the device; the parameters are compiled
in. Times are those of the processor, of all threads, so that other processes do not disturb them.
"""
import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"

import numpy

try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError as error:
    sys.exit(f"jax_control: JAX is needed ({error}); bench/peers/setup installs it")

STEPS, ITERATIONS, LENGTHS, LIMIT = 10, 4, 8, 2.0
GOAL_WEIGHT, CONTROL_WEIGHT, TOLERANCE = 1.0, 0.1 / LIMIT ** 2, 1e-7
UNROLL = STEPS                                                 # steps of a scan that are written out
FRAMES, SETTLING = 5, 30                                       # of the initial network; of a goal


def read_model(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return {name: numpy.frombuffer(data[slice(*one["data_offsets"])], numpy.float32).reshape(one["shape"])
            for name, one in header.items() if name != "__metadata__"}


class Model:
    """Filter and transition without noise."""

    def __init__(self, p):
        self.p, self.Z, self.U = p, p["recognition.hidden.z"].shape[0], p["recognition.hidden.u"].shape[0]
        systems = p["mixing.alpha.bias"].shape[1]
        self.v = p["universal.mean"].reshape(-1, self.Z * systems)
        self.shift, self.scale = p["scaling.x.shift"][0], p["scaling.x.scale"][0]

    def layer(self, name, **inputs):
        return sum(x @ self.p[f"{name}.{of}"] for of, x in inputs.items()) + self.p[f"{name}.bias"][0]

    def move(self, z, u, w=None):
        alpha = jax.nn.softmax(self.layer("mixing.alpha", z=z, u=u))
        inputs = [z, u] if w is None else [z, u, w]
        parts = jnp.concatenate(inputs) @ self.v[:sum(len(one) for one in inputs)]
        return z + parts.reshape(self.Z, -1) @ alpha

    def first(self, frames):
        """z after the first frames, without noise."""
        x = ((frames - self.shift) * self.scale).reshape(-1)
        w = self.layer("initial.output", h=jax.nn.relu(self.layer("initial.hidden", x=x)))[:self.v.shape[0] - self.Z - self.U]
        return self.layer("initial-transition.output", h=jax.nn.relu(self.layer("initial-transition.hidden", w=w)))

    def filter(self, z, x, u):
        x = (x - self.shift) * self.scale
        head = self.layer("recognition.output", h=jax.nn.relu(self.layer("recognition.hidden", x=x, z=z, u=u)))
        return self.move(z, u, head[:len(head) // 2])


def riccati(a, b, q, r):
    p = q.copy()
    for _ in range(100000):
        gain = numpy.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
        new = q + a.T @ p @ (a - b @ gain)
        new = 0.5 * (new + new.T)
        if numpy.abs(new - p).max() <= 1e-12 * numpy.abs(new).max():
            return new
        p = new
    sys.exit("jax_control: no solution of Riccati's equation; take another model")


def planner(model, goal, terminal):
    """(z, controls of the plan before, its path, its gains) -> controls, path, gains, iterations."""
    def step_cost(z, u):
        return 0.5 * GOAL_WEIGHT * jnp.sum((z - goal) ** 2) + 0.5 * CONTROL_WEIGHT * jnp.sum(u * u)

    def last_cost(z):
        return 0.5 * GOAL_WEIGHT * jnp.sum((z - goal) ** 2) + 0.5 * (z - goal) @ terminal @ (z - goal)

    def follow(z, path, u, k, gain, length):
        """Path, controls and cost of the controls u + length k + gain (z - path), in their limits."""
        def step(carry, now):
            z, cost = carry
            at, u, k, gain = now
            u = jnp.clip(u + length * k + gain @ (z - at), -LIMIT, LIMIT)
            return (model.move(z, u), cost + step_cost(z, u)), (z, u)
        (end, cost), (zs, us) = lax.scan(step, (z, 0.0), (path[:-1], u, k, gain), unroll=UNROLL)
        return jnp.concatenate([zs, end[None]]), us, cost + last_cost(end)

    derivatives = jax.vmap(jax.jacfwd(model.move, (0, 1)))
    q, r = GOAL_WEIGHT * jnp.eye(model.Z), CONTROL_WEIGHT * jnp.eye(model.U)

    def back(path, us, mu):
        a, b = derivatives(path[:-1], us)
        def step(carry, now):
            v_z, v_zz, slope, bend = carry
            a, b, z, u = now
            q_z, q_u = GOAL_WEIGHT * (z - goal) + a.T @ v_z, CONTROL_WEIGHT * u + b.T @ v_z
            q_zz, q_uz, q_uu = q + a.T @ v_zz @ a, b.T @ v_zz @ a, r + b.T @ v_zz @ b
            stiff = q_uu[0, 0] + mu                            # one control: the box is an interval
            k = -q_u / stiff
            inside = (k >= -LIMIT - u) & (k <= LIMIT - u)
            k = jnp.clip(k, -LIMIT - u, LIMIT - u)
            gain = jnp.where(inside[:, None], -q_uz / stiff, 0.0)
            v_z = q_z + gain.T @ (q_uu @ k + q_u) + q_uz.T @ k
            v_zz = q_zz + gain.T @ (q_uu @ gain + q_uz) + q_uz.T @ gain
            return (v_z, 0.5 * (v_zz + v_zz.T), slope + k @ q_u, bend + k @ q_uu @ k), (k, gain)
        end = path[-1] - goal
        first = (GOAL_WEIGHT * end + terminal @ end, q + terminal, 0.0, 0.0)
        (_, _, slope, bend), (k, gain) = lax.scan(step, first, (a, b, path[:-1], us), reverse=True, unroll=UNROLL)
        return k, gain, slope, bend

    lengths = 0.5 ** jnp.arange(LENGTHS)
    many = jax.vmap(follow, (None, None, None, None, None, 0))

    def improve(state):
        path, us, gain, cost, mu, growth, iterations, _ = state
        k, gain, slope, bend = back(path, us, mu)
        done = ((-(slope + 0.5 * bend) <= TOLERANCE * cost) & (mu < 1e-3)) | (jnp.abs(k).max() == 0)
        paths, controls, costs = many(path[0], path, us, k, gain, lengths)
        expected = lengths * (slope + 0.5 * lengths * bend)
        good = jnp.isfinite(costs) & (costs - cost <= 1e-4 * expected) & (costs < cost)
        best = jnp.argmin(jnp.where(good, costs, jnp.inf))
        better = good.any() & ~done
        growth = jnp.where(better, jnp.minimum(growth / 1.6, 1 / 1.6), jnp.maximum(growth * 1.6, 1.6))
        less = mu * growth
        mu = jnp.where(better, jnp.where(less < 1e-8, 0.0, less), jnp.maximum(mu * growth, 1e-8))
        return (jnp.where(better, paths[best], path), jnp.where(better, controls[best], us), gain,
                jnp.where(better, costs[best], cost), mu, growth, iterations + 1, done)

    def plan(z, us, path, gain):
        # The plan of the step before, one step on, adapted by its gains; its last step stays.
        on = lambda v: jnp.concatenate([v[1:], v[-1:]])
        us, path, gain = on(us), on(path), on(gain)
        none, no_gain = jnp.zeros_like(us), jnp.zeros_like(gain)
        path, us, cost = follow(z, path, us, none, gain, 0.0)
        state = (path, us, no_gain, cost, 0.0, 1.0, 0, False)
        path, us, gain, _, _, _, iterations, _ = lax.while_loop(lambda s: (s[6] < ITERATIONS) & ~s[7], improve, state)
        return us, path, gain, iterations
    return plan


class Controller:
    def __init__(self, parameters, goal_x):
        model = self.model = Model(parameters)
        z = numpy.asarray(model.first(numpy.tile(goal_x, (FRAMES, 1))))
        for _ in range(SETTLING):
            z = numpy.asarray(model.filter(z, goal_x, jnp.zeros(model.U)))
        a, b = (numpy.asarray(m, numpy.float64) for m in jax.jacfwd(model.move, (0, 1))(z, jnp.zeros(model.U)))
        terminal = riccati(a, b, GOAL_WEIGHT * numpy.eye(model.Z), CONTROL_WEIGHT * numpy.eye(model.U))
        plan = planner(model, jnp.asarray(z), jnp.asarray(terminal, jnp.float32))

        def step(z, us, path, gain, x, u):
            z = model.filter(z, x, u)
            return (z, *plan(z, us, path, gain))
        self.jitted, self.plan = jax.jit(step), jax.jit(plan)

    def run(self, x, u):
        """Controls of every step from the FRAMES-th on, microseconds and iterations; u [t] acts after x [t]."""
        model, spent, given, iterations = self.model, [], [], []
        z = jnp.asarray(model.first(x[:FRAMES]))
        empty = jnp.zeros((STEPS, model.U)), jnp.zeros((STEPS + 1, model.Z)), jnp.zeros((STEPS, model.U, model.Z))
        us, path, gain, count = self.plan(z, *empty)
        for t in range(FRAMES, len(x)):
            began = time.process_time_ns()
            z, us, path, gain, count = self.jitted(z, us, path, gain, x[t], u[t - 1])
            control = numpy.asarray(us[0])
            spent.append((time.process_time_ns() - began) / 1e3)
            given.append(control)
            iterations.append(int(count))
        return numpy.array(given), spent, iterations


def simulate(dvbf, folder):
    """The sequence that bench_control takes, and the file of its goal."""
    import h5py
    file = folder / "pendulum.h5"
    subprocess.run([dvbf, "simulate", "pendulum", "-o", file, "--quiet"] + "--train 1 --valid 1 --test 1 --steps 200".split(),
                   check=True)
    with h5py.File(file, "r") as data:
        x, u = data["test/x"][0].reshape(200, -1), data["test/u"][0]
    numpy.savez(folder / "goal.npz", x=x[0])
    return x.astype(numpy.float32), u.astype(numpy.float32)


def controls_of(dvbf, model, folder, x, u):
    lines = "".join(json.dumps({"x": [float(v) for v in x[t]], "u": [float(v) for v in u[t - 1]] if t else [0.0]}) + "\n"
                    for t in range(len(x)))
    flags = f"--goal {folder / 'goal.npz'} --low -{LIMIT} --high {LIMIT} --plan {STEPS} --random-plans 0 --follow --applied".split()
    done = subprocess.run([dvbf, "control", model] + flags, input=lines, capture_output=True, text=True, check=True)
    return numpy.array([json.loads(line)["u"] for line in done.stdout.splitlines()])


def time_of_dvbf(bench, model):
    """Median and 99 % of a step with a plan of 10 steps and no random plans, in microseconds."""
    done = subprocess.run([bench, model], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        fields = line.split()
        if fields[:2] == [str(STEPS), "0"]:
            return float(fields[2]), float(fields[3])
    sys.exit("jax_control: bench_control did not say what was expected")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("model")
    flags.add_argument("--dvbf", default=str(root / "build" / "dvbf"))
    flags.add_argument("--bench", default=str(root / "build" / "bench" / "bench_control"))
    flags.add_argument("--rounds", type=int, default=5)
    asked = flags.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        x, u = simulate(asked.dvbf, folder)
        twin = Controller(read_model(asked.model), x[0])
        given, _, _ = twin.run(x, u)
        ours = controls_of(asked.dvbf, asked.model, folder, x, u)[FRAMES:]
    far = numpy.abs(given - ours)[:, 0] / LIMIT
    print(f"controls differ by {numpy.median(far):.1e} of the limits (median), {far.max():.1e} at most, "
          f"{(far > 1e-2).sum()} of {len(far)} steps by more than 1 %")
    pairs = []
    for _ in range(asked.rounds):
        dvbf = time_of_dvbf(asked.bench, asked.model)
        _, spent, iterations = twin.run(x, u)
        pairs.append((*dvbf, numpy.median(spent), numpy.percentile(spent, 99)))
    dvbf, dvbf_late, peer, peer_late = numpy.median(numpy.array(pairs), 0)
    print(f"microseconds of a step, median (99 %), medians of {asked.rounds} rounds by turns:")
    print(f"  dvbf  {dvbf:8.0f} ({dvbf_late:.0f})")
    print(f"  JAX {jax.__version__}  {peer:8.0f} ({peer_late:.0f}), {numpy.mean(iterations):.1f} iterations")
    print(f"  ratio {peer / dvbf:.1f} ({peer_late / dvbf_late:.1f})")


if __name__ == "__main__":
    main()
