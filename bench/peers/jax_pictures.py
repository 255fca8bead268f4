#!/usr/bin/env python3
"""A JAX twin of DVBF-LL with convolutions (network = conv): the same model and work per update as dvbf, for timing.

    jax_pictures.py --side 64 --batch 16 --threads 2     one JSON line: seconds per update, memory, version
    jax_pictures.py --serve                              answers the benchmark's questions (serve in pictures.py)
    jax_pictures.py --exchange FOLDER                    terms and gradients against those of bench_exchange

As in jax_twin.py, one jitted function makes a whole update, and a process serves one number of threads.
"""
import math
import os
import sys
import time

from jax_twin import *
import pictures

DIMENSIONS = ("NHWC", "HWIO", "NHWC")


def convolve(x, w):
    return lax.conv_general_dilated(x, w, (2, 2), ((1, 1), (1, 1)), dimension_numbers=DIMENSIONS)


def convolve_transposed(x, w):
    """Fractionally strided: the kernel [4,4,large,small] turned round, with channels of the small image as input."""
    turned = w[::-1, ::-1].swapaxes(2, 3)
    return lax.conv_general_dilated(x, turned, (1, 1), ((2, 2), (2, 2)), lhs_dilation=(2, 2), dimension_numbers=DIMENSIONS)


def see(p, shape, x):
    """x [T,B,side,side,channels] -> [T,B,sight]."""
    now = x.reshape(-1, shape.side, shape.side, shape.channels)
    for i in range(1, len(shape.stages)):
        now = jax.nn.relu(convolve(now, p[f"sight.convolution-{i}"]) + p[f"sight.bias-{i}"][0])
    return now.reshape(*x.shape[:2], -1)


def draw(p, shape, hidden):
    """hidden [T,B,H] -> mean of x [T*B, pixels]."""
    last = len(shape.stages) - 1
    side, channels = shape.stages[last]
    now = jax.nn.relu(affine(p, "emission.picture", h=hidden)).reshape(-1, side, side, channels)
    for i in range(last, 1, -1):
        now = jax.nn.relu(convolve_transposed(now, p[f"emission.convolution-{i}"]) + p[f"emission.bias-{i}"][0])
    return convolve_transposed(now, p["emission.convolution-1"]).reshape(-1, shape.pixels) + p["emission.bias-1"][0]


def states(p, shape, x, u, eps, v):
    sight = see(p, shape, x)
    frames = sight[:K].swapaxes(0, 1).reshape(x.shape[1], -1)
    head_1 = affine(p, "initial.output", h=jax.nn.relu(affine(p, "initial.hidden", sight=frames)))
    hidden = jax.nn.relu(affine(p, "initial-transition.hidden", w=sample(head_1, eps[0])))
    z_1 = affine(p, "initial-transition.output", h=hidden)
    given = jnp.concatenate([affine(p, "recognition.hidden", sight=sight[1:], u=u), affine(p, "mixing.alpha", u=u)], -1)
    from_z = jnp.concatenate([p["recognition.hidden.z"], p["mixing.alpha.z"]], 1)

    def step(z, now):
        given, u, eps = now
        sums = given + z @ from_z
        head = affine(p, "recognition.output", h=jax.nn.relu(sums[:, :H]))
        z_next = move(z, u, sample(head, eps), jax.nn.softmax(sums[:, H:]), v)
        return z_next, (z_next, head)
    z, head = lax.scan(step, z_1, (given, u, eps[1:]))[1]
    return jnp.concatenate([z_1[None], z]), jnp.concatenate([head_1[None], head])


def picture_terms(p, shape, x, u, eps, eps_v):
    """Reconstruction, KL of w, KL of v, in nats per frame."""
    T, B = x.shape[:2]
    v_mean, v_log_sigma, prior = p["universal.mean"], p["universal.log_sigma"], p["universal.prior"][0]
    z, head = states(p, shape, x, u, eps, v_mean + jnp.exp(v_log_sigma) * eps_v)
    mean = draw(p, shape, jax.nn.relu(affine(p, "emission.hidden", z=z)))
    log_sigma = p["emission.log_sigma"][0, 0]
    error = jnp.sum((mean - x.reshape(mean.shape)) ** 2)
    log_p = -0.5 * jnp.exp(-2 * log_sigma) * error - x.size * (log_sigma + 0.5 * LN_2PI)
    mu, log_sigma = mean_and_log_sigma(head)
    kl_w = 0.5 * (jnp.exp(2 * log_sigma) + mu * mu - 1) - log_sigma
    kl_v = jnp.sum(prior[1] - v_log_sigma - 0.5
                   + 0.5 * (jnp.exp(2 * v_log_sigma) + (v_mean - prior[0]) ** 2) * jnp.exp(-2 * prior[1]))
    return jnp.stack([log_p, jnp.sum(kl_w), kl_v * (B / pictures.SEQUENCES)]) / (B * T)


def picture_loss(p, shape, *inputs):
    all_terms = picture_terms(p, shape, *inputs)
    return all_terms[1] + all_terms[2] - all_terms[0], all_terms


def picture_update(shape, state, x, u, rows):
    """One update of Adam on the sequences `rows`."""
    key, for_eps, for_v = jax.random.split(state["key"], 3)
    inputs = (x[:, rows], u[:, rows], jax.random.normal(for_eps, (shape.frames, len(rows), W)),
              jax.random.normal(for_v, (S, Z, M)))
    (value, _), gradient = jax.value_and_grad(picture_loss, has_aux=True)(state["p"], shape, *inputs)
    return adam_step(state, gradient, key, 1e-3), value


class PictureTrainer:
    """A timed model of one shape, on noise for data."""

    def __init__(self, shape):
        self.shape = shape
        self.x, self.u = (jnp.asarray(a) for a in pictures.noise_data(shape))
        self.update = jax.jit(lambda *inputs: picture_update(shape, *inputs), donate_argnums=0)
        self.of = {}

    def time(self, batch, updates):
        """Seconds for so many updates, by the clock and of the processor; the first call for a batch compiles and warms up."""
        if batch not in self.of:
            self.of[batch] = new_state(pictures.first_values(1, self.shape), 1), Batches(1, batch, pictures.SEQUENCES)
            self.run(batch, 2)
        start, processor = time.perf_counter(), time.process_time()
        value = self.run(batch, updates)
        seconds = time.perf_counter() - start, time.process_time() - processor
        if not math.isfinite(value):
            sys.exit("jax_pictures: the loss is no longer finite")
        return seconds

    def run(self, batch, updates):
        state, batches = self.of[batch]
        for _ in range(updates):
            state, value = self.update(state, self.x, self.u, batches.next())
        self.of[batch] = state, batches
        jax.block_until_ready(state)
        return float(value)


def exchange_pictures(folder):
    e = pictures.Exchange(folder)
    both = jax.jit(lambda p, *inputs: jax.grad(picture_loss, has_aux=True)(p, e.shape, *inputs))
    gradients, all_terms = both(e.parameters, e.x, e.u, e.eps, e.eps_v)
    return e.compare(f"JAX {jax.__version__}", all_terms, gradients)


class PictureChildren(Children):
    """A child of this script for each number of threads."""

    def command(self):
        return [sys.executable, os.path.abspath(__file__), "--serve"]

    def serve(self):
        pictures.serve(self.who, lambda *sizes: [float(s) for s in self.ask(sizes[4], "update", *sizes).split()],
                       lambda: max(float(self.ask(threads, "memory")) for threads in self.of_threads))


def answer_pictures():
    trainers = {}

    def update(side, channels, frames, batch, threads, updates):
        key = side, channels, frames
        if key not in trainers:
            trainers[key] = PictureTrainer(pictures.Shape(*key))
        return trainers[key].time(batch, updates)

    pictures.serve(f"JAX {jax.__version__}", update, lambda: resident_mib()[1])


def main_pictures():
    options = pictures.parse("JAX twin of DVBF-LL with convolutions, for timing.")
    if not begins(options, PictureChildren):
        return
    if options.exchange:
        sys.exit(not exchange_pictures(options.exchange))
    if options.serve:
        return answer_pictures()
    trainer = PictureTrainer(pictures.Shape(options.side, options.channels, options.frames))
    pictures.print_time(options, trainer.time(options.batch, options.updates), jax=jax.__version__)


if __name__ == "__main__":
    main_pictures()
