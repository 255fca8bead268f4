"""What the twins share: sizes, first values, the training recipe, data, comparison with dvbf, and the command line.

Parameters carry dvbf's names and shapes: layers y = x W + b with W [in, out]; v as [S, Z, M], inputs (z, u, w) first.
"""
import argparse
import ctypes
import json
import math
import os
import sys
import time

import numpy

T, X, U, Z, W, M, H = 15, 256, 1, 3, 3, 16, 128  # frames, pixels, controls, latent, noise, triplets, hidden
S = Z + U + W                                     # what a triplet (A_i, B_i, C_i) multiplies: s_t = [z_t, u_t, w_t]
N = 500                                           # training sequences
K = 5                                             # frames an initial MLP sees
LOG_SIGMA = (-8.0, 2.5)                           # bounds of ln sigma of q(w)
LN_2PI = math.log(2 * math.pi)


# ---- first values, as dvbf has them

def first_values(seed, initial, spread):
    """Name -> float32 array. initial: "birnn" or "mlp"; spread: total variance of a centred frame."""
    random = numpy.random.default_rng(seed)
    def normal(scale, *shape):
        return scale * random.standard_normal(shape)
    from_x, from_h = spread ** -0.5, H ** -0.5
    p = {}
    if initial == "birnn":
        for side in ("forward", "backward"):
            p[f"initial.{side}.x"], p[f"initial.{side}.h"] = normal(from_x, X, H), normal(0.7 * from_h, H, H)
            p[f"initial.{side}.bias"] = normal(0, 1, H)
            p[f"initial.output.{side}"] = normal(from_h, H, 2 * W)
    else:
        p["initial.hidden.x"], p["initial.hidden.bias"] = normal(from_x * K ** -0.5, K * X, H), normal(0, 1, H)
        p["initial.output.h"] = normal(from_h, H, 2 * W)
    p["initial.output.bias"] = normal(0, 1, 2 * W)
    p["initial-transition.hidden.w"], p["initial-transition.hidden.bias"] = normal(1, W, H), normal(0.5, 1, H)
    p["initial-transition.output.h"], p["initial-transition.output.bias"] = normal(from_h, H, Z), normal(0, 1, Z)
    p["universal.mean"] = normal(0.1, S, Z, M)
    p["universal.mean"][Z + U:] = 0.3 * numpy.eye(W, Z)[:, :, None]
    p["universal.log_sigma"] = numpy.full((S, Z, M), math.log(0.0183))
    p["universal.prior"] = numpy.array([[0, math.log(0.3)]])
    p["recognition.hidden.x"], p["recognition.hidden.bias"] = normal(from_x, X, H), normal(0, 1, H)
    p["recognition.hidden.z"], p["recognition.hidden.u"] = normal(0.5, Z, H), normal(0.5, U, H)
    p["recognition.output.h"], p["recognition.output.bias"] = normal(0.1 * from_h, H, 2 * W), normal(0, 1, 2 * W)
    p["mixing.alpha.z"], p["mixing.alpha.u"] = normal(0.5, Z, M), normal(0.5, U, M)
    p["mixing.alpha.bias"] = normal(0, 1, M)
    p["emission.hidden.z"], p["emission.hidden.bias"] = normal(1, Z, H), normal(0.5, 1, H)
    p["emission.mean.h"], p["emission.mean.bias"] = normal(0.02 * from_h, H, X), normal(0, 1, X)
    p["emission.log_sigma"] = numpy.zeros((1, 1))
    return {name: value.astype(numpy.float32) for name, value in p.items()}


def noise_data():
    """x [T,N,X], u [T-1,N,U]: noise of the pendulum's size, for timing."""
    random = numpy.random.default_rng(1)
    x, u = 0.15 * random.standard_normal((T, N, X)), random.standard_normal((T - 1, N, U))
    return x.astype(numpy.float32), u.astype(numpy.float32)


class Batches:
    """Minibatches from an endless stream of shuffled epochs."""

    def __init__(self, seed, batch, count=N):
        self.random, self.batch, self.count = numpy.random.default_rng([seed, 1]), batch, count
        self.left = numpy.empty(0, numpy.int32)

    def next(self):
        while len(self.left) < self.batch:
            self.left = numpy.concatenate([self.left, self.random.permutation(self.count).astype(numpy.int32)])
        rows, self.left = self.left[:self.batch], self.left[self.batch:]
        return rows


# ---- the recipe of dvbf's preset "pendulum", in a short form: see the options

def schedule(options, i):
    """(learning rate, floor of ln sigma_x, filter dropout) of update i, counted from 0."""
    def ramp(updates):
        return min(1.0, i / updates) if updates else 1.0
    warm_up, end = 100, 0.05
    done = min(1.0, max(0, i - warm_up) / max(1, options.updates - warm_up))
    rate = 0.004 * min(1.0, (i + 1) / warm_up) * (end + (1 - end) * 0.5 * (1 + math.cos(math.pi * done)))
    dropout = options.dropout + ramp(options.dropout_updates) * (options.dropout_end - options.dropout)
    return rate, ramp(options.floor_updates) * math.log(options.floor), dropout


class Pendulum:
    """Data of a dvbf file: x centred by the training set, time first; the state of the evaluated split as rows."""

    def __init__(self, path, split):
        import h5py
        with h5py.File(path, "r") as file:
            def read(name):
                return file[name][()].astype(numpy.float32)
            x = read("train/x").reshape(-1, T, X)
            mean = x.mean((0, 1), dtype=numpy.float64)
            self.spread = float(x.var((0, 1), dtype=numpy.float64).sum())
            def frames(x):
                return numpy.ascontiguousarray((x - mean).astype(numpy.float32).swapaxes(0, 1))
            def controls(u):
                return numpy.ascontiguousarray(u.swapaxes(0, 1)[:T - 1])
            self.x, self.u = frames(x), controls(read("train/u"))
            self.held_x, self.held_u = frames(read(f"{split}/x").reshape(-1, T, X)), controls(read(f"{split}/u"))
            self.state = read(f"{split}/state").swapaxes(0, 1).reshape(-1, 3)

    def r2(self, z):
        """R^2 of sin, cos and velocity: least squares with intercept on latent samples z [T,B,Z]."""
        a = numpy.asarray(z, numpy.float64).reshape(-1, Z)
        a = numpy.concatenate([a, numpy.ones((len(a), 1))], 1)
        if not numpy.isfinite(a).all():
            return [-math.inf] * 3
        y = self.state.astype(numpy.float64)
        rest = y - a @ numpy.linalg.lstsq(a, y, rcond=None)[0]
        return [round(float(r), 4) for r in 1 - (rest ** 2).sum(0) / ((y - y.mean(0)) ** 2).sum(0)]


PAPER = (0.961, 0.982, 0.916)                     # R^2 of sin, cos, velocity in the paper's Table 1


def train_until(options, data, train, latent, **more):
    """Train until R^2 on held-out sequences passes the paper's; prints and returns whether it did.

    train(first, last) runs these updates and returns when they are done; latent() gives z [T,B,Z] as an array.
    "seconds" is the time inside train, "seconds_total" that since the process began.
    """
    seconds, done, passed, r2 = 0.0, 0, False, None
    while done < options.updates and not passed:
        last = min(options.updates, max(300, done + 50))
        start = time.perf_counter()
        train(done, last)
        seconds += time.perf_counter() - start
        done, r2 = last, data.r2(latent())
        passed = all(a > b for a, b in zip(r2, PAPER))
        if options.verbose:
            print(done, *r2, file=sys.stderr)
    print(json.dumps({"passed": passed, "updates": done, "seconds": round(seconds, 3),
                      "seconds_total": round(seconds_since_start(), 3), "r2": r2, "seed": options.seed,
                      "threads": options.threads, **more}))
    return passed


# ---- equality with dvbf

class Exchange:
    """What bench_exchange wrote: x [T,B,X], u [T-1,B,U], noise, parameters; the terms and gradients it computed.

    initial: the initial network, "birnn" or "mlp".
    """

    def __init__(self, folder):
        def read(name):
            return numpy.load(os.path.join(folder, name + ".npy"))
        self.x, self.u = read("x"), read("u")[:T - 1]
        self.eps = numpy.concatenate([read("noise.first"), read("noise.w")])            # [T,B,W]
        self.eps_v = read("noise.v").reshape(S, Z, M)
        self.terms = read("terms").ravel()
        self.initial = "mlp" if os.path.exists(os.path.join(folder, "parameter.initial.hidden.x.npy")) else "birnn"
        self.parameters, self.gradients = ({name: value.reshape(first.shape) for name, first, value in (
            (name, first, read(f"{kind}.{name}")) for name, first in first_values(0, self.initial, 1).items())}
            for kind in ("parameter", "gradient"))
        listed = sum(file.startswith("parameter.") for file in os.listdir(folder))
        if listed != len(self.parameters):
            sys.exit(f"{folder}: {listed} parameters, the twins know {len(self.parameters)}")

    def compare(self, who, terms, gradients, limit=1e-4):
        """Print |ours - theirs| / |ours| of each term and gradient; True when none is above the limit."""
        ours = {f"term {name}": value for name, value in zip(("reconstruction", "KL of w", "KL of v"), self.terms)}
        theirs = dict(zip(ours, terms))
        ours.update(self.gradients)
        theirs.update(gradients)
        worst = 0.0
        for name, expected in ours.items():
            expected, value = (numpy.asarray(a, numpy.float64) for a in (expected, theirs[name]))
            if expected.shape != value.shape:
                sys.exit(f"{who}: {name}: shape {value.shape} instead of {expected.shape}")
            error = numpy.linalg.norm(value - expected) / max(numpy.linalg.norm(expected), 1e-30)
            error = error if math.isfinite(error) else math.inf
            worst = max(worst, error)
            print(f"{name:34s} {error:.1e}{'  FAR' if error > limit else ''}")
        print(f"{who}, {self.initial}: largest relative error {worst:.1e} over {len(ours)} tensors, limit {limit:g}")
        return worst <= limit


# ---- the online filter

class FilterClock:
    """Times step(x, u), which filters one frame and waits for the result, step by step."""

    def __init__(self, step):
        self.step = step
        self.x, self.u = (a[:, 0] for a in noise_data())
        self.times(200)

    def times(self, count):
        """Microseconds of each step; what reading the clock costs is taken off."""
        spent, nothing = numpy.empty(count), numpy.empty(200)
        for i in range(len(nothing)):
            start = time.perf_counter_ns()
            nothing[i] = time.perf_counter_ns() - start
        for i in range(count):
            x, u = self.x[1 + i % (T - 1)], self.u[i % (T - 1)]
            start = time.perf_counter_ns()
            self.step(x, u)
            spent[i] = time.perf_counter_ns() - start
        return (spent - numpy.median(nothing)) / 1e3


def print_filter(times, **more):
    median, p99, most = numpy.percentile(times, (50, 99, 100))
    print(json.dumps({"steps": len(times), "median_us": round(median, 1), "p99_us": round(p99, 1),
                      "max_us": round(most, 1), **more}))


# ---- the process

def parse(description, add=None, serving="answers questions on standard input, as the benchmark asks them"):
    parser = argparse.ArgumentParser(description=description)
    whole = lambda text: int(text) if int(text) > 0 else parser.error(f"{text}: must be at least 1")
    parser.add_argument("--initial", choices=("birnn", "mlp"), default="birnn", help="network for w_1, to time; an mlp "
                        "sees 5 frames (default %(default)s)")
    parser.add_argument("--batch", type=whole, default=50, help="sequences per update (default %(default)s)")
    parser.add_argument("--threads", type=whole, default=1, help="threads (default %(default)s)")
    parser.add_argument("--updates", type=whole, help="updates to time (default 50) or to train (default 1300)")
    parser.add_argument("--serve", action="store_true", help=serving)
    parser.add_argument("--exchange", metavar="FOLDER", help="compare terms and gradients with those of bench_exchange")
    parser.add_argument("--filter", type=whole, metavar="N", help="time N steps of the online filter")
    until = parser.add_argument_group("training until the paper's R^2")
    until.add_argument("--until-r2", metavar="DATA.h5", help="train on this file")
    until.add_argument("--seed", type=int, default=1)
    until.add_argument("--split", choices=("valid", "test"), default="valid", help="evaluated (default %(default)s)")
    until.add_argument("--floor", type=float, default=0.1, help="last floor of sigma_x (default %(default)s)")
    until.add_argument("--floor-updates", type=int, default=1000, help="until then (default %(default)s)")
    until.add_argument("--dropout", type=float, default=0.4, help="first filter dropout (default %(default)s)")
    until.add_argument("--dropout-end", type=float, default=0.0, help="the last (default %(default)s)")
    until.add_argument("--dropout-updates", type=int, default=700, help="until then (default %(default)s)")
    until.add_argument("--verbose", action="store_true", help="each evaluation on standard error")
    if add:
        add(parser)
    options = parser.parse_args()
    options.updates = options.updates or (1300 if options.until_r2 else 50)
    return options


def serve(who, update, filter_times, peak_mib):
    """Say who answers; then answer each line of standard input with a line.

    update INITIAL BATCH THREADS UPDATES     seconds for all of them; what the first ones compile is not counted
    filter STEPS                             microseconds of every step
    memory                                   MiB that were resident at most
    """
    print(who, flush=True)
    for line in sys.stdin:
        what, *fields = line.split() or [""]
        try:
            numbers = [int(field) for field in fields if field not in ("birnn", "mlp")]
            if any(number < 1 for number in numbers):
                raise ValueError
            if what == "update" and len(numbers) == 3 and len(fields) == 4:
                answer = f"{update(fields[0], *numbers):.6f}"
            elif what == "filter" and len(numbers) == len(fields) == 1:
                answer = " ".join(f"{value:.3f}" for value in filter_times(*numbers))
            elif what == "memory" and not fields:
                answer = f"{peak_mib():.1f}"
            else:
                raise ValueError
        except ValueError as error:
            sys.exit(f"{sys.argv[0]}: {line.strip()!r}: not a question that can be answered {error}")
        print(answer, flush=True)


def keep_memory():
    """Tell glibc never to give memory back: else each large tensor is mapped, zeroed and unmapped at every update."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(-4, 0)                                    # M_MMAP_MAX
        libc.mallopt(-1, 2**31 - 1)                            # M_TRIM_THRESHOLD
    except (OSError, AttributeError):
        pass


def resident_mib():
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return tuple(round(int(fields[name].split()[0]) / 1024, 1) for name in ("VmRSS", "VmHWM"))


def seconds_since_start():
    """Since this process began, imports included."""
    with open("/proc/self/stat") as stat, open("/proc/uptime") as uptime:
        began = int(stat.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
        return float(uptime.read().split()[0]) - began
