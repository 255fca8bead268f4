#!/usr/bin/env python3
"""A PyTorch twin of DVBF-LL: the same model and the same work per update as dvbf, for timing.

    torch_twin.py --batch 50 --threads 1 --updates 50     one JSON line: seconds per update, memory, version
    torch_twin.py --serve                                 answers the benchmark's questions (serve in common.py)
    torch_twin.py --check                                 every variant against a plain float64 transcription
    torch_twin.py --exchange FOLDER                       terms and gradients against those of bench_exchange
    torch_twin.py --until-r2 DATA.h5 --seed 1             time until the paper's R^2 is passed
    torch_twin.py --filter 2000                           time of one step of the online filter

The model, per sequence (T = 15 frames, names of the paper):

    w_1 ~ q(w_1 | x_1..x_T) = N(mu_1, sigma_1^2)          BiRNN: last forward and last backward state -> affine
    z_1 = g(w_1)                                          128 ReLU, affine
    w_t ~ q(w_t | z_t, x_{t+1}, u_t) = N(mu, sigma^2)     128 ReLU, affine
    alpha = softmax(affine(z_t, u_t))
    z_{t+1} = z_t + sum_i alpha_i (A_i z_t + B_i u_t + C_i w_t),   v = (A, B, C) ~ q(v), one sample per update
    x_t ~ N(affine(relu(affine(z_t))), sigma_x^2)
    bound = sum_t ln p(x_t|z_t) - sum_t KL(q(w_t)||N(0,I)) - KL(q(v)||p(v)) / N

What makes it fast: everything that does not wait for z_t is one product over all time steps (input layers of the
BiRNN, of the recognition network and of alpha, the emission, the likelihood, all KL terms); a step is four small
products (the sum over triplets is one of them); unbind and stack instead of indexing, whose gradient would write a
whole tensor per step; parameters and gradients live in two flat vectors, so that Adam is a few operations; malloc
keeps large blocks instead of returning them to the system at every update. Tried without clear gain: one product for
the three input layers of x, a hand-written gradient of the BiRNN.
"""
import ctypes
import importlib.util
import json
import logging
import math
import os
import sys
import tempfile
import time
import warnings
from typing import Optional


def prepare_threads():
    """Repair defaults that make PyTorch slow. Must precede the import; the user's choice stands.

    OpenBLAS 0.3.21 (Debian 12) does not know newer processors and falls back to SSE3 kernels, 4 to 5 times slower: name
    the kernels by the instruction set. And PyTorch's OpenMP threads, spinning while they wait, keep OpenBLAS's own
    threads from their cores: let them sleep. PyPI's builds bring MKL on the same OpenMP, where sleeping costs; but
    where another process wants a core, waiting threads spin for milliseconds at each of hundreds of operations (two
    threads: 1 s per update instead of 20 ms): let them spin for microseconds, then sleep.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or not (spec.origin or "").startswith("/usr/lib/python3/dist-packages/"):
        if "OMP_WAIT_POLICY" not in os.environ:
            os.environ.setdefault("GOMP_SPINCOUNT", "2000")
        return
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with open("/proc/cpuinfo") as info:
        flags = next((line.split() for line in info if line.startswith("flags")), [])
    cores = [core for flag, core in (("avx512_bf16", "COOPERLAKE"), ("avx512vl", "SKYLAKEX"), ("avx2", "HASWELL"))
             if flag in flags]
    if cores:
        os.environ.setdefault("OPENBLAS_CORETYPE", cores[0])


prepare_threads()
warnings.simplefilter("ignore", FutureWarning)                 # scripts are on their way out, but faster
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)          # that there is no GPU is known
try:
    from common import *
    import torch
    from torch import Tensor
except ImportError as error:
    sys.exit(f"torch_twin: PyTorch is needed ({error}); on Debian: apt-get install python3-torch python3-numpy")

VARIANTS = ("eager", "eager-rnn", "script", "script-rnn", "compile")


def sample(out: Tensor, eps: Tensor):
    """w = mu + sigma eps [B,W] from a network's output [B,2W] = (mu, log sigma before the clamp)."""
    mu, log_sigma = out.chunk(2, 1)
    return torch.addcmul(mu, log_sigma.clamp(-8.0, 2.5).exp(), eps)


# ---- the two recurrences: plain functions, so that they can be run eagerly, scripted or compiled

def birnn(a_f: Tensor, a_b: Tensor, R_f: Tensor, R_b: Tensor):
    """Last states [B,H] of h_t = relu(a_t + h_{t-1} R), forwards and backwards; a [T,B,H], R [H,H]; h_0 = 0."""
    f = a_f.unbind(0)
    b = a_b.unbind(0)
    n = len(f)
    h_f, h_b = torch.relu(f[0]), torch.relu(b[n - 1])
    for t in range(1, n):
        h_f = torch.relu_(torch.addmm(f[t], h_f, R_f))
        h_b = torch.relu_(torch.addmm(b[n - 1 - t], h_b, R_b))
    return h_f, h_b


def filter_states(z: Tensor, a: Tensor, l: Tensor, u: Tensor, eps: Tensor, W_z: Tensor, L_z: Tensor, W_o: Tensor,
                  b_o: Tensor, V: Tensor, use: Optional[Tensor] = None):
    """z_1 [B,Z] -> z_1..z_T [T,B,Z] and the recognition outputs [T-1,B,2W] (mean, log sigma before the clamp).

    a [T-1,B,H]: what x_{t+1} and u_t give to the hidden layer; l [T-1,B,M]: what u_t gives to alpha's logits;
    u [T-1,B,U]; eps [T-1,B,W]; W_z [Z,H]; L_z [Z,M]; W_o [H,2W]; V [M*S,Z]: row i*S+j is column j of (A_i|B_i|C_i).
    use [T-1,B,1]: where it is false, w is drawn from the prior.
    """
    zs, outs = [z], []
    a_s, l_s, u_s, e_s = a.unbind(0), l.unbind(0), u.unbind(0), eps.unbind(0)
    for t in range(len(a_s)):
        out = torch.addmm(b_o, torch.relu_(torch.addmm(a_s[t], z, W_z)), W_o)  # [B,2W]
        w = sample(out, e_s[t])
        if use is not None:
            w = torch.where(use[t], w, e_s[t])
        alpha = torch.softmax(torch.addmm(l_s[t], z, L_z), 1)                # [B,M]
        s = torch.cat([z, u_s[t], w], 1)                                     # [B,S]
        z = torch.addmm(z, (alpha.unsqueeze(2) * s.unsqueeze(1)).flatten(1), V)
        zs.append(z)
        outs.append(out)
    return torch.stack(zs), torch.stack(outs)


class Twin(torch.nn.Module):
    def __init__(self, variant, initial="birnn"):
        super().__init__()
        def weight(rows, columns, scale=None):
            return torch.nn.Parameter(torch.randn(rows, columns) * (scale or rows ** -0.5))
        def zeros(*shape):
            return torch.nn.Parameter(torch.zeros(*shape))
        how, _, recurrence = variant.partition("-")
        scripted = torch.jit.script if how == "script" else lambda function: function
        self.birnn, self.filter_states = scripted(birnn), scripted(filter_states)
        # Initial network; nn.RNN owns its weights (and a second bias, which changes nothing).
        self.mlp = initial == "mlp"
        self.rnn = torch.nn.RNN(X, H, nonlinearity="relu", bidirectional=True) if recurrence == "rnn" else None
        if self.mlp:
            self.init_W1, self.init_b1 = weight(K * X, H), zeros(H)
        elif self.rnn is None:
            self.init_Wf, self.init_Wb, self.init_bf, self.init_bb = weight(X, H), weight(X, H), zeros(H), zeros(H)
            self.init_Rf, self.init_Rb = weight(H, H, scale=0.5 * H ** -0.5), weight(H, H, scale=0.5 * H ** -0.5)
        self.init_Wo, self.init_bo = weight(H if self.mlp else 2 * H, 2 * W), zeros(2 * W)
        # Initial transition z_1 = g(w_1).
        self.g_W1, self.g_b1, self.g_W2, self.g_b2 = weight(W, H), zeros(H), weight(H, Z), zeros(Z)
        # Recognition, and alpha's affine map.
        self.rec_Wx, self.rec_Wu, self.rec_Wz, self.rec_b = weight(X, H), weight(U, H), weight(Z, H), zeros(H)
        self.alpha_Wz, self.alpha_Wu, self.alpha_b = weight(Z, M), weight(U, M), zeros(M)
        self.rec_Wo, self.rec_bo = weight(H, 2 * W, scale=0.1 * H ** -0.5), zeros(2 * W)
        # q(v) and p(v).
        self.v_mean = weight(M * S, Z, scale=0.05)
        self.v_log_std = torch.nn.Parameter(torch.full((M * S, Z), -4.0))
        self.prior_mean, self.prior_log_std = zeros(()), zeros(())
        # Emission.
        self.em_W1, self.em_b1, self.em_W2, self.em_b2 = weight(Z, H), zeros(H), weight(H, X), zeros(X)
        self.em_log_sigma = zeros(())

    def initial_head(self, x):
        """(mu, log sigma before the clamp) of w_1, [B,2W]."""
        B = x.shape[1]
        if self.mlp:
            frames = x[:K].transpose(0, 1).reshape(B, K * X)
            h = torch.relu_(torch.addmm(self.init_b1, frames, self.init_W1))
        elif self.rnn is not None:
            h = torch.cat(self.rnn(x)[1].unbind(0), 1)                       # last states, [B,H] each
        else:
            x_flat = x.view(T * B, X)
            a_f = torch.addmm(self.init_bf, x_flat, self.init_Wf).view(T, B, H)
            a_b = torch.addmm(self.init_bb, x_flat, self.init_Wb).view(T, B, H)
            h = torch.cat(self.birnn(a_f, a_b, self.init_Rf, self.init_Rb), 1)
        return torch.addmm(self.init_bo, h, self.init_Wo)

    def states(self, x, u, eps, V, use=None):
        """z [T,B,Z] and the heads of q(w) [T,B,2W]; V [M*S,Z]; use [T-1,B,1] or None."""
        B = x.shape[1]
        out_1 = self.initial_head(x)
        w_1 = sample(out_1, eps[0])
        z_1 = torch.addmm(self.g_b2, torch.relu_(torch.addmm(self.g_b1, w_1, self.g_W1)), self.g_W2)
        u_flat = u.view(-1, U)
        x_next = x.view(T * B, X)[B:]
        a = torch.addmm(torch.addmm(self.rec_b, u_flat, self.rec_Wu), x_next, self.rec_Wx).view(T - 1, B, H)
        l = torch.addmm(self.alpha_b, u_flat, self.alpha_Wu).view(T - 1, B, M)
        z, out = self.filter_states(z_1, a, l, u, eps[1:], self.rec_Wz, self.alpha_Wz, self.rec_Wo, self.rec_bo, V, use)
        return z, torch.cat([out_1.unsqueeze(0), out])

    def sample_v(self, eps_v):
        return torch.addcmul(self.v_mean, self.v_log_std.exp(), eps_v)

    def terms(self, x, u, eps, eps_v, floor=None, use=None):
        """Reconstruction, KL of w, KL of v, in nats per frame.

        x [T,B,X]; u [T-1,B,U]; eps [T,B,W] makes w_1, w_2..w_T; eps_v [M*S,Z] makes v. For training in earnest: floor,
        a scalar, bounds log sigma_x from below; where use [T-1,B,1] is false, w is drawn from the prior.
        """
        B = x.shape[1]
        z, out = self.states(x, u, eps, self.sample_v(eps_v), use)
        hidden = torch.relu_(torch.addmm(self.em_b1, z.view(T * B, Z), self.em_W1))
        mean = torch.addmm(self.em_b2, hidden, self.em_W2)                   # [TB,X]
        sse = torch.nn.functional.mse_loss(mean, x.view(T * B, X), reduction="sum")
        em_log_sigma = self.em_log_sigma
        if floor is not None:
            em_log_sigma = torch.where(em_log_sigma > floor, em_log_sigma, floor)
        log_p = -0.5 * (-2 * em_log_sigma).exp() * sse - x.numel() * (em_log_sigma + 0.5 * LN_2PI)

        mu, log_sigma = out.chunk(2, 2)                                      # [T,B,W]
        log_sigma = log_sigma.clamp(-8.0, 2.5)
        kl_w = 0.5 * ((2 * log_sigma).exp() + mu * mu - 1) - log_sigma
        if use is not None:
            kl_w = torch.cat([kl_w[:1], kl_w[1:] * use])
        kl_v = (self.prior_log_std - self.v_log_std - 0.5 + 0.5 * (-2 * self.prior_log_std).exp()
                * ((2 * self.v_log_std).exp() + (self.v_mean - self.prior_mean) ** 2)).sum()
        scale = 1 / (B * T)
        return log_p * scale, kl_w.sum() * scale, kl_v * (B / N * scale)

    def forward(self, *inputs):
        """Loss = -bound / (B T)."""
        log_p, kl_w, kl_v = self.terms(*inputs)
        return kl_w + kl_v - log_p


# ---- dvbf's parameters: most have a counterpart of the same layout

NAMES = {
    "init_Wf": "initial.forward.x", "init_Rf": "initial.forward.h", "init_bf": "initial.forward.bias",
    "init_Wb": "initial.backward.x", "init_Rb": "initial.backward.h", "init_bb": "initial.backward.bias",
    "init_W1": "initial.hidden.x", "init_b1": "initial.hidden.bias", "init_bo": "initial.output.bias",
    "g_W1": "initial-transition.hidden.w", "g_b1": "initial-transition.hidden.bias",
    "g_W2": "initial-transition.output.h", "g_b2": "initial-transition.output.bias",
    "rec_Wx": "recognition.hidden.x", "rec_Wz": "recognition.hidden.z", "rec_Wu": "recognition.hidden.u",
    "rec_b": "recognition.hidden.bias", "rec_Wo": "recognition.output.h", "rec_bo": "recognition.output.bias",
    "alpha_Wz": "mixing.alpha.z", "alpha_Wu": "mixing.alpha.u", "alpha_b": "mixing.alpha.bias",
    "em_W1": "emission.hidden.z", "em_b1": "emission.hidden.bias", "em_W2": "emission.mean.h",
    "em_b2": "emission.mean.bias", "em_log_sigma": "emission.log_sigma"}


def from_dvbf(values):
    """dvbf's arrays by name -> the twin's."""
    own = {name: values[theirs] for name, theirs in NAMES.items() if theirs in values}
    both = [values[f"initial.output.{side}"] for side in ("forward", "backward", "h")
            if f"initial.output.{side}" in values]
    own["init_Wo"] = numpy.concatenate(both)
    own["v_mean"], own["v_log_std"] = (values[f"universal.{name}"].transpose(2, 0, 1) for name in ("mean", "log_sigma"))
    own["prior_mean"], own["prior_log_std"] = values["universal.prior"][0]
    return own


def to_dvbf(own):
    """The twin's arrays by name -> dvbf's."""
    values = {theirs: own[name] for name, theirs in NAMES.items() if name in own}
    sides = ("h",) if "init_W1" in own else ("forward", "backward")
    values.update(zip((f"initial.output.{side}" for side in sides), numpy.split(own["init_Wo"], len(sides))))
    for name, theirs in (("v_mean", "mean"), ("v_log_std", "log_sigma")):
        values[f"universal.{theirs}"] = own[name].reshape(M, S, Z).transpose(1, 2, 0)
    values["universal.prior"] = numpy.array([[own["prior_mean"], own["prior_log_std"]]])
    return {name: value if value.ndim > 1 else value.reshape(1, -1) for name, value in values.items()}


def load(model, values):
    """Set the parameters to dvbf's values."""
    own = from_dvbf(values)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = torch.from_numpy(numpy.ascontiguousarray(own[name], numpy.float32))
            parameter.copy_(value.reshape(parameter.shape))


def flatten(module):
    """Move all parameters and gradients of module into two vectors; the returned parameter is all Adam needs."""
    parameters = list(module.parameters())
    flat = torch.nn.Parameter(torch.cat([p.data.flatten() for p in parameters]))
    flat.grad = torch.zeros_like(flat)
    first = 0
    for p in parameters:
        last = first + p.numel()
        p.data, p.grad = flat.data[first:last].view(p.shape), flat.grad[first:last].view(p.shape)
        first = last
    return flat


def adam(flat):
    try:
        return torch.optim.Adam([flat], lr=1e-3, fused=True)   # on the CPU since 2.4
    except (RuntimeError, TypeError):
        return torch.optim.Adam([flat], lr=1e-3)


def step(trainer, rows):
    """One update of a trainer on these of its sequences."""
    x, u = trainer.x.index_select(1, rows), trainer.u.index_select(1, rows)
    trainer.flat.grad.zero_()
    loss = trainer.loss(x, u, torch.randn(len(x), len(rows), W), torch.randn(M * S, Z))
    loss.backward()
    trainer.optimiser.step()
    return loss.detach()


class Trainer:
    """A timed model, on noise for data."""

    def __init__(self, variant, initial):
        torch.manual_seed(1)
        self.model = Twin(variant, initial)
        self.flat = flatten(self.model)
        self.optimiser = adam(self.flat)
        self.loss = compiled(self.model) if variant == "compile" else self.model
        self.x, self.u = (torch.from_numpy(a) for a in noise_data())
        self.warm = set()

    def update(self, batch):
        """One update on a minibatch drawn without replacement (with, when it exceeds N)."""
        return step(self, torch.randperm(N)[:batch] if batch <= N else torch.randint(N, (batch,)))

    def time(self, batch, threads, updates):
        """Seconds for so many updates; the first call for a batch and number of threads warms up."""
        set_threads(threads)
        if (batch, threads) not in self.warm:
            self.warm.add((batch, threads))
            for _ in range(5):                                 # the script's profiling, the compiler, malloc's heap
                self.update(batch)
        start = time.perf_counter()
        for _ in range(updates):
            loss = self.update(batch)
        seconds = time.perf_counter() - start
        if not math.isfinite(loss.item()):
            sys.exit("torch_twin: the loss is no longer finite")
        return seconds


def compiled(model):
    """Compiled for each shape and number of threads; there are more of these than it would keep by itself.

    Calling the kernels from C++ instead of Python takes 0.91 of the time of an update at batch 50 and at 500; max-autotune
    gains nothing on top of it.
    """
    import torch._dynamo
    torch._dynamo.config.cache_size_limit = torch._dynamo.config.accumulated_cache_size_limit = 1000
    return torch.compile(model, dynamic=False, options={"cpp_wrapper": True})


# ---- the process

def set_threads(threads):
    """PyTorch's own threads, and those of an OpenBLAS beneath it (Debian), which PyTorch does not control."""
    torch.set_num_threads(threads)
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "openblas" in line or "libblas" in line}
    for path in paths:
        setter = getattr(ctypes.CDLL(path), "openblas_set_num_threads", None)
        if setter:
            setter(threads)


def check(variant):
    """Loss and gradients of a variant, in float64, against the equations written out one sequence at a time."""
    torch.manual_seed(2)
    m, B = Twin(variant).double(), 3
    normal = lambda *shape: torch.randn(*shape, dtype=torch.float64)
    x, u, eps, eps_v = normal(T, B, X), normal(T - 1, B, U), normal(T, B, W), normal(M * S, Z)
    if m.rnn is None:
        Wf, Rf, bf, Wb, Rb, bb = m.init_Wf, m.init_Rf, m.init_bf, m.init_Wb, m.init_Rb, m.init_bb
    else:
        Wf, Rf, c, d, Wb, Rb, e, f = m.rnn.parameters()
        Wf, Rf, bf, Wb, Rb, bb = Wf.t(), Rf.t(), c + d, Wb.t(), Rb.t(), e + f
    V = (m.v_mean + m.v_log_std.exp() * eps_v).view(M, S, Z)
    q_v, p_v = (torch.distributions.Normal(mean, log_std.exp()) for mean, log_std in
                ((m.v_mean, m.v_log_std), (m.prior_mean, m.prior_log_std)))
    prior = torch.distributions.Normal(torch.zeros(W).double(), torch.ones(W).double())
    kl = torch.distributions.kl_divergence
    bound = 0.0
    for b in range(B):
        h_f = h_b = torch.zeros(H).double()
        for t in range(T):
            h_f = torch.relu(x[t, b] @ Wf + h_f @ Rf + bf)
            h_b = torch.relu(x[T - 1 - t, b] @ Wb + h_b @ Rb + bb)
        out = torch.cat([h_f, h_b]) @ m.init_Wo + m.init_bo
        for t in range(T):
            q_w = torch.distributions.Normal(out[:W], out[W:].clamp(-8.0, 2.5).exp())
            w = q_w.mean + q_w.stddev * eps[t, b]
            if t == 0:
                z = torch.relu(w @ m.g_W1 + m.g_b1) @ m.g_W2 + m.g_b2
            else:
                alpha = torch.softmax(z @ m.alpha_Wz + u[t - 1, b] @ m.alpha_Wu + m.alpha_b, 0)
                z = z + sum(alpha[i] * (z @ V[i, :Z] + u[t - 1, b] @ V[i, Z:Z + U] + w @ V[i, Z + U:])
                            for i in range(M))
            mean = torch.relu(z @ m.em_W1 + m.em_b1) @ m.em_W2 + m.em_b2
            p_x = torch.distributions.Normal(mean, m.em_log_sigma.exp())
            bound = bound + p_x.log_prob(x[t, b]).sum() - kl(q_w, prior).sum()
            if t < T - 1:
                hidden = torch.relu(x[t + 1, b] @ m.rec_Wx + z @ m.rec_Wz + u[t, b] @ m.rec_Wu + m.rec_b)
                out = hidden @ m.rec_Wo + m.rec_bo
        bound = bound - kl(q_v, p_v).sum() / N
    parameters = list(m.parameters())
    expected = -bound / (B * T)
    expected_grad = torch.autograd.grad(expected, parameters)
    run = compiled(m) if variant == "compile" else m
    for _ in range(3):                                         # a script changes its plan after the first runs
        loss = run(x, u, eps, eps_v)
        grad = torch.autograd.grad(loss, parameters)
    error = max(((a - b).abs().max() / (1e-3 + b.abs().max())).item()
                for a, b in zip((loss,) + grad, (expected,) + expected_grad))
    print(f"{variant}: largest relative error {error:.1e}")
    return error < 1e-9


def exchange(folder):
    """Terms and gradients of the default variant, in float32, from dvbf's parameters, minibatch and noise."""
    e = Exchange(folder)
    model = Twin("eager", e.initial)
    load(model, e.parameters)
    x, u, eps, eps_v = (torch.from_numpy(numpy.ascontiguousarray(a)) for a in
                        (e.x, e.u, e.eps, e.eps_v.transpose(2, 0, 1).reshape(M * S, Z)))
    terms = model.terms(x, u, eps, eps_v)
    (terms[1] + terms[2] - terms[0]).backward()
    terms = [term.detach() for term in terms]
    gradients = {name: parameter.grad.numpy() for name, parameter in model.named_parameters()}
    return e.compare(f"PyTorch {torch.__version__}", [term.item() for term in terms], to_dvbf(gradients))


def until_r2(options, variant):
    set_threads(options.threads)
    torch.manual_seed(options.seed)
    data = Pendulum(options.until_r2, options.split)
    model = Twin(variant, "mlp")
    load(model, first_values(options.seed, "mlp", data.spread))
    flat = flatten(model)
    optimiser = adam(flat)
    loss = compiled(model) if variant == "compile" else model
    x, u, held_x, held_u = (torch.from_numpy(a) for a in (data.x, data.u, data.held_x, data.held_u))
    batches = Batches(options.seed, options.batch, x.shape[1])

    def gradient(rows, floor, dropout):
        use = torch.rand(T - 1, options.batch, 1) >= dropout
        flat.grad.zero_()
        loss(x.index_select(1, rows), u.index_select(1, rows), torch.randn(T, options.batch, W), torch.randn(M * S, Z),
             torch.tensor(floor), use).backward()

    def train(first, last):
        for i in range(first, last):
            optimiser.param_groups[0]["lr"], floor, dropout = schedule(options, i)
            gradient(torch.from_numpy(batches.next()).long(), floor, dropout)
            optimiser.step()

    def latent():
        with torch.no_grad():
            V = model.sample_v(torch.randn(M * S, Z))
            return model.states(held_x, held_u, torch.randn(T, held_x.shape[1], W), V)[0].numpy()

    for _ in range(3):                                         # compiles and warms up, without a step
        gradient(torch.arange(options.batch), 0.0, 0.5)
    return train_until(options, data, train, latent, torch=str(torch.__version__), variant=variant)


class Step(torch.nn.Module):
    """One step of the online filter: (z_t, x_{t+1}, u_t) -> z_{t+1}, mean and standard deviation of q(w_t)."""

    def __init__(self, m):
        super().__init__()
        # Recognition and alpha read (z, u, x) in one product.
        W_in = torch.cat([torch.cat([m.rec_Wz, m.rec_Wu, m.rec_Wx]),
                          torch.cat([m.alpha_Wz, m.alpha_Wu, torch.zeros(X, M)])], 1)
        V = m.v_mean.view(M, S, Z).permute(1, 2, 0).reshape(S, Z * M)
        for name, value in (("W_in", W_in), ("b_in", torch.cat([m.rec_b, m.alpha_b])), ("W_o", m.rec_Wo),
                            ("b_o", m.rec_bo), ("V", V)):
            self.register_buffer(name, value.detach().clone())

    def forward(self, z, x, u):
        sums = torch.addmm(self.b_in, torch.cat([z, u, x], 1), self.W_in)
        out = torch.addmm(self.b_o, torch.relu(sums[:, :128]), self.W_o)
        mu, sigma = out[:, :3], out[:, 3:].clamp(-8.0, 2.5).exp()
        w = torch.addcmul(mu, sigma, torch.randn_like(mu))
        parts = torch.mm(torch.cat([z, u, w], 1), self.V).view(3, 16)
        return z + torch.mv(parts, torch.softmax(sums[0, 128:], 0)), mu, sigma


def ahead_of_time(step):
    """Compiled ahead of time and called below its Python wrapper: a third of the time of torch.compile's function, half
    of a script's."""
    import torch._inductor
    arguments = torch.zeros(1, Z), torch.zeros(1, X), torch.zeros(1, U)
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        path = torch._inductor.aoti_compile_and_package(torch.export.export(step, arguments),
                                                        package_path=os.path.join(folder, "step.pt2"))
        loader = torch._inductor.aoti_load_package(path).loader
    return lambda *inputs: loader.run(list(inputs))


def filter_clock(variant):
    """One frame at a time on one thread, the parameters frozen; v is the mean of q(v). As a script, or compiled."""
    set_threads(1)
    model = Twin("eager", "mlp")
    load(model, first_values(1, "mlp", 0.15 ** 2 * X))

    step = Step(model).eval()
    if variant == "compile":
        step = ahead_of_time(step)
    else:
        step = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.script(step)))
    z = torch.zeros(1, Z)

    @torch.inference_mode()
    def run(x, u):
        nonlocal z
        z, mu, sigma = step(z, torch.from_numpy(x).view(1, X), torch.from_numpy(u).view(1, U))

    return FilterClock(run)


def answers(variant):
    """Serves; models are made when they are first asked for."""
    trainers, clocks = {}, []

    def update(initial, batch, threads, updates):
        if initial not in trainers:
            trainers[initial] = Trainer(variant, initial)
        return trainers[initial].time(batch, threads, updates)

    def filter_times(steps):
        if not clocks:
            clocks.append(filter_clock(variant))
        set_threads(1)
        return clocks[0].times(steps)

    serve(f"PyTorch {torch.__version__} {variant}", update, filter_times, lambda: resident_mib()[1])


def add_options(parser):
    parser.add_argument("--variant", choices=VARIANTS, help="how the recurrences run (default eager; for --filter "
                        "script); -rnn: nn.RNN as BiRNN; compile: PyTorch 2, faster, but the first time "
                        "minutes to compile for each batch and number of threads")
    parser.add_argument("--check", action="store_true", help="verify the variant (default: all but compile) and exit")


def main():
    options = parse("PyTorch twin of DVBF-LL, for timing.", add_options)
    variant = options.variant or ("script" if options.filter else "eager")
    if variant == "compile" and not hasattr(torch, "compile"):
        sys.exit(f"torch_twin: --variant compile needs PyTorch 2; this is {torch.__version__}")
    if options.check:
        sys.exit(0 if all([check(v) for v in ([variant] if options.variant else VARIANTS[:-1])]) else 1)
    if options.exchange:
        sys.exit(not exchange(options.exchange))

    keep_memory()
    torch.set_flush_denormal(True)
    if options.until_r2:
        sys.exit(not until_r2(options, variant.partition("-")[0]))
    if options.filter:
        return print_filter(filter_clock(variant).times(options.filter), torch=str(torch.__version__), variant=variant)
    if options.serve:
        return answers(variant)
    seconds = Trainer(variant, options.initial).time(options.batch, options.threads, options.updates)
    rss, peak = resident_mib()
    print(json.dumps({"initial": options.initial, "batch": options.batch, "threads": options.threads,
                      "seconds_per_update": seconds / options.updates, "torch": str(torch.__version__),
                      "variant": variant, "rss_mib": rss, "peak_rss_mib": peak}))


if __name__ == "__main__":
    main()
