#!/usr/bin/env python3
"""A JAX twin of DVBF-LL: the same model and the same work per update as dvbf, for timing.

    jax_twin.py --batch 50 --threads 1 --updates 50     one JSON line: seconds per update, memory, version
    jax_twin.py --serve                                 answers the benchmark's questions (serve in common.py)
    jax_twin.py --exchange FOLDER                       terms and gradients against those of bench_exchange
    jax_twin.py --until-r2 DATA.h5 --seed 1             time until the paper's R^2 is passed
    jax_twin.py --filter 2000                           time of one step of the online filter

The equations are those in torch_twin.py. One jitted function makes a whole update: minibatch, noise, gradient, Adam;
its state is donated. Scans run over time for the BiRNN and for recognition and transition; all else is one product over
all steps, written so that XLA need not transpose. Tried without gain: unrolled scans, one product for the three layers
that read x, both directions of the BiRNN in one batched product, x laid out by sequence, wider vectors, oneDNN and
XNNPACK flags, another scheduler. XLA fixes its threads when it starts, so a process serves one number of threads: this
script starts itself again for each.
"""
import json
import math
import os
import subprocess
import sys
import tempfile
import time

THREADS_SET = "JAX_TWIN_THREADS"                  # in the environment of a process that runs JAX


def environment(threads):
    """For a child whose XLA has so many threads. What it compiles is kept, as PyTorch does unasked."""
    flags = os.environ.get("XLA_FLAGS", "")
    if threads == 1:
        flags += " --xla_cpu_multi_thread_eigen=false"
    cache = {"JAX_COMPILATION_CACHE_DIR": os.path.join(tempfile.gettempdir(), f"dvbf-bench-jax-{os.getuid()}"),
             "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0"}
    return {**cache, **os.environ, THREADS_SET: str(threads), "NPROC": str(threads), "PJRT_NPROC": str(threads),
            "XLA_FLAGS": flags.strip(), "JAX_PLATFORMS": "cpu"}


def start_xla(threads):
    """Start XLA where it sees only so many cores, then give all its threads all cores back."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:threads])
    jax.devices()
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), cores)


if __name__ == "__main__" and THREADS_SET not in os.environ:
    from common import parse, serve
else:
    from common import *
    try:
        import jax
        import jax.numpy as jnp
        from jax import lax
    except ImportError as error:
        sys.exit(f"jax_twin: JAX is needed ({error}); bench/peers/setup installs it")


# ---- the model

def product(x, weights):
    """x W over leading dimensions. XLA transposes and copies where they are left apart, and its product a^T b is faster
    with the shorter result first: 0.8 of the time of an update at batch 500, 0.95 at 50 against x @ W."""
    def forward(x, weights):
        flat = x.reshape(-1, x.shape[-1])
        return (flat @ weights).reshape(*x.shape[:-1], weights.shape[1]), (flat, weights)

    def backward(kept, d):
        flat, weights = kept
        d_flat = d.reshape(-1, d.shape[-1])
        return (d_flat @ weights.T).reshape(x.shape), (d_flat.T @ flat).T

    run = jax.custom_vjp(lambda x, weights: forward(x, weights)[0])
    run.defvjp(forward, backward)
    return run(x, weights)


def affine(p, layer, **inputs):
    """b + sum of x W over the layer's inputs; broadcasts over leading dimensions."""
    return sum((product(x, p[f"{layer}.{name}"]) for name, x in inputs.items()), p[f"{layer}.bias"][0])


def mean_and_log_sigma(head):
    mu, log_sigma = jnp.split(head, 2, -1)
    return mu, jnp.clip(log_sigma, *LOG_SIGMA)


def sample(head, eps):
    mu, log_sigma = mean_and_log_sigma(head)
    return mu + jnp.exp(log_sigma) * eps


def rnn(a, R, reverse, unroll):
    """Last state of h_t = relu(a_t + h_{t-1} R) from h_0 = 0. Its gradient is written out so that the gradient of R is
    one product over all steps instead of a sum in the loop."""
    def forward(a, R):
        def step(h, a):
            h_next = jax.nn.relu(a + h @ R)
            return h_next, (h, h_next)
        last, (before, after) = lax.scan(step, jnp.zeros_like(a[0]), a, reverse=reverse, unroll=unroll)
        return last, (before, after, R)

    def backward(kept, d_last):
        before, after, R = kept
        def step(d_h, h):
            d_a = jnp.where(h > 0, d_h, 0)
            return d_a @ R.T, d_a
        d_a = lax.scan(step, d_last, after, reverse=not reverse, unroll=unroll)[1]
        return d_a, before.reshape(-1, H).T @ d_a.reshape(-1, H)

    run = jax.custom_vjp(lambda a, R: forward(a, R)[0])
    run.defvjp(forward, backward)
    return run(a, R)


def birnn(p, x, unroll):
    """Last states of h_t = relu(x_t W + h_{t-1} R + b), forwards and backwards."""
    return (rnn(affine(p, "initial.forward", x=x), p["initial.forward.h"], False, unroll),
            rnn(affine(p, "initial.backward", x=x), p["initial.backward.h"], True, unroll))


def initial_head(p, x, unroll):
    """(mu, ln sigma) of w_1, [B,2W]."""
    if "initial.hidden.x" in p:
        frames = x[:K].swapaxes(0, 1).reshape(-1, K * X)
        return affine(p, "initial.output", h=jax.nn.relu(affine(p, "initial.hidden", x=frames)))
    h_f, h_b = birnn(p, x, unroll)
    return affine(p, "initial.output", forward=h_f, backward=h_b)


def move(z, u, w, alpha, v):
    """z + sum_i alpha_i (A_i z + B_i u + C_i w); v [S,Z,M]."""
    parts = jnp.concatenate([z, u, w], -1) @ v.reshape(S, Z * M)
    return z + jnp.einsum("bjm,bm->bj", parts.reshape(-1, Z, M), alpha)


def filter_states(p, x, u, eps, v, use, unroll):
    """z [T,B,Z] and the heads of q(w) [T,B,2W]. use [T-1,B,1]: where it is false, w is drawn from the prior."""
    head_1 = initial_head(p, x, unroll)
    hidden = jax.nn.relu(affine(p, "initial-transition.hidden", w=sample(head_1, eps[0])))
    z_1 = affine(p, "initial-transition.output", h=hidden)
    # What does not wait for z, side by side: the recognition's hidden layer and alpha's logits.
    given = jnp.concatenate([affine(p, "recognition.hidden", x=x[1:], u=u), affine(p, "mixing.alpha", u=u)], -1)
    from_z = jnp.concatenate([p["recognition.hidden.z"], p["mixing.alpha.z"]], 1)
    def step(z, now):
        given, u, eps, use = now
        sums = given + z @ from_z
        head = affine(p, "recognition.output", h=jax.nn.relu(sums[:, :H]))
        w = sample(head, eps)
        if use is not None:
            w = jnp.where(use, w, eps)
        z_next = move(z, u, w, jax.nn.softmax(sums[:, H:]), v)
        return z_next, (z_next, head)
    z, head = lax.scan(step, z_1, (given, u, eps[1:], use), unroll=unroll)[1]
    return jnp.concatenate([z_1[None], z]), jnp.concatenate([head_1[None], head])


def terms(p, x, u, eps, eps_v, floor, use, unroll):
    """Reconstruction, KL of w, KL of v, in nats per frame. x [T,B,X]; u [T-1,B,U]; eps [T,B,W]; eps_v [S,Z,M]."""
    B = x.shape[1]
    v_mean, v_log_sigma, prior = p["universal.mean"], p["universal.log_sigma"], p["universal.prior"][0]
    z, head = filter_states(p, x, u, eps, v_mean + jnp.exp(v_log_sigma) * eps_v, use, unroll)
    mean = affine(p, "emission.mean", h=jax.nn.relu(affine(p, "emission.hidden", z=z)))
    log_sigma = p["emission.log_sigma"][0, 0]
    log_sigma = jnp.where(log_sigma > floor, log_sigma, floor)
    log_p = -0.5 * jnp.exp(-2 * log_sigma) * jnp.sum((mean - x) ** 2) - x.size * (log_sigma + 0.5 * LN_2PI)
    mu, log_sigma = mean_and_log_sigma(head)
    kl_w = 0.5 * (jnp.exp(2 * log_sigma) + mu * mu - 1) - log_sigma
    if use is not None:
        kl_w = jnp.concatenate([kl_w[:1], jnp.where(use, kl_w[1:], 0)])
    kl_v = jnp.sum(prior[1] - v_log_sigma - 0.5
                   + 0.5 * (jnp.exp(2 * v_log_sigma) + (v_mean - prior[0]) ** 2) * jnp.exp(-2 * prior[1]))
    return jnp.stack([log_p, jnp.sum(kl_w), kl_v * (B / N)]) / (B * T)


def loss(p, *inputs):
    all_terms = terms(p, *inputs)
    return all_terms[1] + all_terms[2] - all_terms[0], all_terms


# ---- training

def new_state(parameters, seed):
    parameters = jax.tree.map(jnp.asarray, parameters)
    zeros = lambda: jax.tree.map(jnp.zeros_like, parameters)
    return {"p": parameters, "m": zeros(), "v": zeros(), "i": jnp.zeros((), jnp.int32), "key": jax.random.key(seed)}


def update(state, x, u, rows, rate, floor, dropout, unroll):
    """One update of Adam on the sequences `rows`; dropout None: no filter dropout."""
    key, for_eps, for_v, for_use = jax.random.split(state["key"], 4)
    B = len(rows)
    use = None if dropout is None else jax.random.uniform(for_use, (T - 1, B, 1)) >= dropout
    inputs = x[:, rows], u[:, rows], jax.random.normal(for_eps, (T, B, W)), jax.random.normal(for_v, (S, Z, M))
    (value, _), gradient = jax.value_and_grad(loss, has_aux=True)(state["p"], *inputs, floor, use, unroll)
    return adam_step(state, gradient, key, rate), value


def adam_step(state, gradient, key, rate):
    i = state["i"] + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], gradient)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["v"], gradient)
    correction = jnp.sqrt(1 - 0.999 ** i)
    step = rate * correction / (1 - 0.9 ** i)
    p = jax.tree.map(lambda p, m, v: p - step * m / (jnp.sqrt(v) + 1e-8 * correction), state["p"], m, v)
    return {"p": p, "m": m, "v": v, "i": i, "key": key}


def jitted_update(unroll):
    return jax.jit(lambda *inputs: update(*inputs, unroll), donate_argnums=0)


class Trainer:
    """Timed models, on noise for data."""

    def __init__(self, unroll):
        self.x, self.u = (jnp.asarray(a) for a in noise_data())
        self.spread = 0.15 ** 2 * X
        self.update, self.of = jitted_update(unroll), {}

    def time(self, initial, batch, updates):
        """Seconds for so many updates; the first call for a network and a batch compiles and warms up."""
        if (initial, batch) not in self.of:
            self.of[initial, batch] = new_state(first_values(1, initial, self.spread), 1), Batches(1, batch)
            self.run(initial, batch, 5)
        start = time.perf_counter()
        value = self.run(initial, batch, updates)
        seconds = time.perf_counter() - start
        if not math.isfinite(value):
            sys.exit("jax_twin: the loss is no longer finite")
        return seconds

    def run(self, initial, batch, updates):
        state, batches = self.of[initial, batch]
        for _ in range(updates):
            state, value = self.update(state, self.x, self.u, batches.next(), 1e-3, -4.0, None)
        self.of[initial, batch] = state, batches
        jax.block_until_ready(state)
        return float(value)


def exchange(folder, unroll):
    e = Exchange(folder)
    both = jax.jit(lambda *inputs: jax.grad(loss, has_aux=True)(*inputs, -4.0, None, unroll))
    gradients, all_terms = both(e.parameters, e.x, e.u, e.eps, e.eps_v)
    return e.compare(f"JAX {jax.__version__}", all_terms, gradients)


def until_r2(options):
    data = Pendulum(options.until_r2, options.split)
    state = new_state(first_values(options.seed, "mlp", data.spread), options.seed)
    batches = Batches(options.seed, options.batch, data.x.shape[1])
    x, u, held_x, held_u = (jnp.asarray(a) for a in (data.x, data.u, data.held_x, data.held_u))
    step = jitted_update(options.unroll)
    rows = numpy.zeros(options.batch, numpy.int32)             # the shape alone: the order of minibatches is the seed's
    step = step.lower(state, x, u, rows, *(numpy.float32(a) for a in schedule(options, 0))).compile()

    @jax.jit
    def latent(p, key):
        for_eps, for_v = jax.random.split(key)
        v = p["universal.mean"] + jnp.exp(p["universal.log_sigma"]) * jax.random.normal(for_v, (S, Z, M))
        eps = jax.random.normal(for_eps, (*held_x.shape[:2], W))
        return filter_states(p, held_x, held_u, eps, v, None, options.unroll)[0]

    def train(first, last):
        nonlocal state
        for i in range(first, last):
            now = (numpy.float32(a) for a in schedule(options, i))
            state, _ = step(state, x, u, batches.next(), *now)
        jax.block_until_ready(state)

    return train_until(options, data, train, lambda: latent(state["p"], jax.random.key(options.seed + 10**6)),
                       jax=jax.__version__)


def filter_step(p):
    """(z_t, noise, x_{t+1}, u_t) -> z_{t+1}, mean and standard deviation of q(w_t); v is the mean of q(v)."""
    # Recognition and alpha read (z, u, x) in one product.
    recognition = numpy.concatenate([p[f"recognition.hidden.{name}"] for name in "zux"])
    alpha = numpy.concatenate([p["mixing.alpha.z"], p["mixing.alpha.u"], numpy.zeros((X, M), numpy.float32)])
    W_in = numpy.concatenate([recognition, alpha], 1)
    b_in = numpy.concatenate([p["recognition.hidden.bias"][0], p["mixing.alpha.bias"][0]])

    def step(z, eps, x, u):
        sums = jnp.concatenate([z, u, x]) @ W_in + b_in
        mu, log_sigma = mean_and_log_sigma(affine(p, "recognition.output", h=jax.nn.relu(sums[:H])))
        sigma = jnp.exp(log_sigma)
        parts = jnp.concatenate([z, u, mu + sigma * eps]) @ p["universal.mean"].reshape(S, Z * M)
        return z + parts.reshape(Z, M) @ jax.nn.softmax(sums[H:]), mu, sigma
    return step


def filter_clock():
    """One frame at a time, the parameters compiled in. A raw key, because typed ones cost more per call."""
    step = filter_step(first_values(1, "mlp", 0.15 ** 2 * X))

    @jax.jit
    def with_noise(z, key, x, u):
        key, now = jax.random.split(key)
        return (key, *step(z, jax.random.normal(now, (W,)), x, u))

    z, key = jnp.zeros(Z), jax.random.PRNGKey(1)

    def run(x, u):
        nonlocal z, key
        key, z, mu, sigma = jax.block_until_ready(with_noise(z, key, x, u))

    return FilterClock(run)


# ---- processes

class Children:
    """A child of this script for each number of threads, which is asked in its stead."""

    def __init__(self, options):
        self.options, self.of_threads = options, {}
        self.who = self.child(1)[1]

    def command(self):
        return [sys.executable, os.path.abspath(__file__), "--serve", "--unroll", str(self.options.unroll)]

    def child(self, threads):
        """A child and what it said first."""
        if threads not in self.of_threads:
            child = subprocess.Popen(self.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     env=environment(threads))
            self.of_threads[threads] = child, self.answer(child, threads)
        return self.of_threads[threads]

    def answer(self, child, threads):
        answer = child.stdout.readline().strip()
        if not answer:
            sys.exit(f"jax_twin: the process with {threads} threads ended")
        return answer

    def ask(self, threads, *question):
        child = self.child(threads)[0]
        print(*question, file=child.stdin, flush=True)
        return self.answer(child, threads)

    def serve(self):
        serve(self.who, lambda initial, batch, threads, updates:
              float(self.ask(threads, "update", initial, batch, threads, updates)),
              lambda steps: (float(value) for value in self.ask(1, "filter", steps).split()),
              lambda: max(float(self.ask(threads, "memory")) for threads in self.of_threads))

    def end(self):
        for child, _ in self.of_threads.values():
            child.stdin.close()
            child.wait()


def answers(unroll):
    """Serves, with the number of threads that XLA has; models are made when they are first asked for."""
    trainers, clocks = [], []

    def update(initial, batch, threads, updates):
        if not trainers:
            trainers.append(Trainer(unroll))
        return trainers[0].time(initial, batch, updates)

    def filter_times(steps):
        if not clocks:
            clocks.append(filter_clock())
        return clocks[0].times(steps)

    serve(f"JAX {jax.__version__}", update, filter_times, lambda: resident_mib()[1])


def begins(options, children_class):
    """Whether this process has the threads that were asked for; if not, another has done the work."""
    if THREADS_SET not in os.environ:
        if not options.serve:
            os.execve(sys.executable, [sys.executable, *sys.argv], environment(options.threads))
        children = children_class(options)
        children.serve()
        children.end()
        return False
    keep_memory()
    start_xla(int(os.environ[THREADS_SET]))
    return True


def main():
    options = parse("JAX twin of DVBF-LL, for timing.", lambda parser: parser.add_argument(
        "--unroll", type=int, default=1, help="time steps in one turn of a scan's loop (default %(default)s)"))
    if not begins(options, Children):
        return
    if options.exchange:
        sys.exit(not exchange(options.exchange, options.unroll))
    if options.until_r2:
        sys.exit(not until_r2(options))
    if options.filter:
        return print_filter(filter_clock().times(options.filter), jax=jax.__version__)
    if options.serve:
        return answers(options.unroll)
    seconds = Trainer(options.unroll).time(options.initial, options.batch, options.updates)
    rss, peak = resident_mib()
    print(json.dumps({"initial": options.initial, "batch": options.batch, "threads": options.threads,
                      "seconds_per_update": seconds / options.updates, "jax": jax.__version__, "unroll": options.unroll,
                      "rss_mib": rss, "peak_rss_mib": peak}))


if __name__ == "__main__":
    main()
