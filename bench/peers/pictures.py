"""What the twins of the convolutional model share: sizes of images and stages, first values, data, comparison, questions.

The model is that of common.py with `network = conv`: strided convolutions (4 x 4, stride 2, padding 1) see each frame,
transposed ones make it. Images are [height][width][channels]; weights of a convolution are [4][4][large][small channels] as
dvbf has them.
"""
import argparse
import json
import os
import sys

import numpy

from common import H, K, LN_2PI, LOG_SIGMA, M, S, U, W, Z, keep_memory, resident_mib

SIZE, STRIDE, PADDING = 4, 2, 1
SEQUENCES = 100                                   # of noise, to draw minibatches from
FIRST_CHANNELS = 16


class Shape:
    """Square images of `side` pixels and so many channels, in sequences of `frames`."""

    def __init__(self, side, channels, frames):
        self.side, self.channels, self.frames, self.pixels = side, channels, frames, side * side * channels
        self.stages = [(side, channels)]          # side and channels, from the largest image to the smallest
        next_channels = FIRST_CHANNELS
        while self.stages[-1][0] >= 8:
            self.stages.append((self.stages[-1][0] // 2, next_channels))
            next_channels = min(2 * next_channels, 4 * FIRST_CHANNELS)
        self.sight = self.stages[-1][0] ** 2 * self.stages[-1][1]       # numbers that networks see of a frame


def shapes_of(shape):
    """Name -> (shape, scale of normal first values), as dvbf names them."""
    from_sight, from_h = shape.sight ** -0.5, H ** -0.5
    p = {}
    for i, ((_, large), (_, small)) in enumerate(zip(shape.stages, shape.stages[1:]), 1):
        p[f"sight.convolution-{i}"] = (SIZE, SIZE, large, small), (2 / (SIZE * SIZE * large)) ** 0.5
        p[f"sight.bias-{i}"] = (1, small), 0
        p[f"emission.convolution-{i}"] = (SIZE, SIZE, large, small), (0.02 if i == 1 else 2 ** 0.5) / (4 * small) ** 0.5
        p[f"emission.bias-{i}"] = (1, shape.pixels if i == 1 else large), 0
    p["emission.picture.h"], p["emission.picture.bias"] = ((H, shape.sight), (2 / H) ** 0.5), ((1, shape.sight), 0)
    p["initial.hidden.sight"], p["initial.hidden.bias"] = ((K * shape.sight, H), from_sight * K ** -0.5), ((1, H), 0)
    p["initial.output.h"], p["initial.output.bias"] = ((H, 2 * W), from_h), ((1, 2 * W), 0)
    p["initial-transition.hidden.w"], p["initial-transition.hidden.bias"] = ((W, H), 1), ((1, H), 0.5)
    p["initial-transition.output.h"], p["initial-transition.output.bias"] = ((H, Z), from_h), ((1, Z), 0)
    p["universal.mean"], p["universal.log_sigma"] = ((S, Z, M), 0.1), ((S, Z, M), 0)
    p["universal.prior"] = (1, 2), 0
    p["recognition.hidden.sight"], p["recognition.hidden.bias"] = ((shape.sight, H), from_sight), ((1, H), 0)
    p["recognition.hidden.z"], p["recognition.hidden.u"] = ((Z, H), 0.5), ((U, H), 0.5)
    p["recognition.output.h"], p["recognition.output.bias"] = ((H, 2 * W), 0.1 * from_h), ((1, 2 * W), 0)
    p["mixing.alpha.z"], p["mixing.alpha.u"], p["mixing.alpha.bias"] = ((Z, M), 0.5), ((U, M), 0.5), ((1, M), 0)
    p["emission.hidden.z"], p["emission.hidden.bias"] = ((Z, H), 1), ((1, H), 0.5)
    p["emission.log_sigma"] = (1, 1), 0
    return p


def first_values(seed, shape):
    random = numpy.random.default_rng(seed)
    values = {name: scale * random.standard_normal(dims) for name, (dims, scale) in shapes_of(shape).items()}
    values["universal.mean"][Z + U:] = 0.3 * numpy.eye(W, Z)[:, :, None]
    values["universal.log_sigma"] -= 4
    values["universal.prior"][0, 1] = numpy.log(0.3)
    return {name: value.astype(numpy.float32) for name, value in values.items()}


def noise_data(shape):
    """x [frames,N,side,side,channels], u [frames-1,N,U]: noise, as speed does not depend on what the images show."""
    random = numpy.random.default_rng(1)
    x = random.standard_normal((shape.frames, SEQUENCES, shape.side, shape.side, shape.channels), numpy.float32)
    x *= numpy.float32(0.15)
    return x, random.standard_normal((shape.frames - 1, SEQUENCES, U), numpy.float32)


class Exchange:
    """What bench_exchange wrote of a convolutional model: inputs, noise and parameters; the terms and gradients that dvbf computed."""

    def __init__(self, folder):
        def read(name):
            return numpy.load(os.path.join(folder, name + ".npy"))
        side, channels = (int(a) for a in read("image").ravel()[1:])
        x = read("x")
        self.shape = Shape(side, channels, x.shape[0])
        self.x = x.reshape(*x.shape[:2], side, side, channels)
        self.u = read("u")[:-1]
        self.eps = numpy.concatenate([read("noise.first"), read("noise.w")])
        self.eps_v = read("noise.v").reshape(S, Z, M)
        self.terms = read("terms").ravel()
        known = {name: dims for name, (dims, _) in shapes_of(self.shape).items()}
        self.parameters, self.gradients = ({name: read(f"{kind}.{name}").reshape(dims) for name, dims in known.items()}
                                           for kind in ("parameter", "gradient"))
        listed = sum(file.startswith("parameter.") for file in os.listdir(folder))
        if listed != len(known):
            sys.exit(f"{folder}: {listed} parameters, the twins know {len(known)}")

    def compare(self, who, terms, gradients, limit=1e-4):
        """Print the relative error of each term and gradient; True when none is above the limit."""
        names = ("term reconstruction", "term KL of w", "term KL of v")
        ours = {**dict(zip(names, self.terms)), **self.gradients}
        theirs = {**dict(zip(names, terms)), **gradients}
        worst = 0.0
        for name, expected in ours.items():
            expected = numpy.asarray(expected, numpy.float64)
            value = numpy.asarray(theirs[name], numpy.float64).reshape(expected.shape)
            error = numpy.linalg.norm(value - expected) / max(numpy.linalg.norm(expected), 1e-30)
            worst = max(worst, error if numpy.isfinite(error) else numpy.inf)
            print(f"{name:34s} {error:.1e}{'  FAR' if not error <= limit else ''}")
        s = self.shape
        print(f"{who}, convolutions of {s.side} x {s.side} x {s.channels}: largest relative error {worst:.1e} over "
              f"{len(ours)} tensors, limit {limit:g}")
        return worst <= limit


# ---- the process

def parse(description, add=None):
    parser = argparse.ArgumentParser(description=description)
    for name, value, text in (("side", 64, "height and width of an image"), ("channels", 1, "1: grey, 3: colour"),
                              ("frames", 15, "of a sequence"), ("batch", 16, "sequences of an update"),
                              ("threads", 1, "threads"), ("updates", 5, "updates to time")):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{text} (default %(default)s)")
    parser.add_argument("--serve", action="store_true", help="answers questions on standard input, as the benchmark asks them")
    parser.add_argument("--exchange", metavar="FOLDER", help="compare terms and gradients with those of bench_exchange")
    if add:
        add(parser)
    return parser.parse_args()


def serve(who, update, peak_mib):
    """Say who answers; then answer each line of standard input with a line.

    update SIDE CHANNELS FRAMES BATCH THREADS UPDATES    seconds for all of them, by the clock and of the processor; what the
                                                         first ones compile is not counted
    memory                                               MiB that were resident at most
    """
    print(who, flush=True)
    for line in sys.stdin:
        what, *fields = line.split() or [""]
        if what == "update" and len(fields) == 6:
            print(*(f"{seconds:.6f}" for seconds in update(*(int(field) for field in fields))), flush=True)
        elif what == "memory" and not fields:
            print(f"{peak_mib():.1f}", flush=True)
        else:
            sys.exit(f"{sys.argv[0]}: {line.strip()!r}: not a question that can be answered")


def print_time(options, seconds, **more):
    rss, peak = resident_mib()
    print(json.dumps({"side": options.side, "channels": options.channels, "frames": options.frames, "batch": options.batch,
                      "threads": options.threads, "seconds_per_update": seconds[0] / options.updates,
                      "processor_seconds_per_update": seconds[1] / options.updates, "rss_mib": rss,
                      "peak_rss_mib": peak, **more}))
