#!/usr/bin/env python3
"""A PyTorch twin of DVBF-LL with a bidirectional initial network: the same work per update, for timing.

    torch_twin.py --batch 50 --threads 1 --updates 50     one JSON line: seconds per update, memory, version
    torch_twin.py --serve                                 reads "BATCH THREADS UPDATES", answers with seconds
    torch_twin.py --check                                 every variant against a plain float64 transcription

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
import argparse
import ctypes
import importlib.util
import json
import math
import os
import sys
import time


def prepare_openblas():
    """Repair two defaults of a distribution's PyTorch over OpenBLAS. Must precede the import; the user's choice stands.

    OpenBLAS 0.3.21 (Debian 12) does not know newer processors and falls back to SSE3 kernels, 4 to 5 times slower: name
    the kernels by the instruction set. And PyTorch's OpenMP threads, spinning while they wait, keep OpenBLAS's own
    threads from their cores: let them sleep. PyPI's builds bring MKL on the same OpenMP, where sleeping only costs.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or not (spec.origin or "").startswith("/usr/lib/python3/dist-packages/"):
        return
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with open("/proc/cpuinfo") as info:
        flags = next((line.split() for line in info if line.startswith("flags")), [])
    cores = [core for flag, core in (("avx512_bf16", "COOPERLAKE"), ("avx512vl", "SKYLAKEX"), ("avx2", "HASWELL"))
             if flag in flags]
    if cores:
        os.environ.setdefault("OPENBLAS_CORETYPE", cores[0])


prepare_openblas()
try:
    import torch
    from torch import Tensor
except ImportError as error:
    sys.exit(f"torch_twin: PyTorch is needed ({error}); on Debian: apt-get install python3-torch python3-numpy")

T, X, U, Z, W, M, H = 15, 256, 1, 3, 3, 16, 128  # frames, pixels, controls, latent, noise, triplets, hidden
S = Z + U + W                                     # what a triplet (A_i, B_i, C_i) multiplies: s_t = [z_t, u_t, w_t]
N = 500                                           # training sequences
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
                  b_o: Tensor, V: Tensor):
    """z_1 [B,Z] -> z_1..z_T [T,B,Z] and the recognition outputs [T-1,B,2W] (mean, log sigma before the clamp).

    a [T-1,B,H]: what x_{t+1} and u_t give to the hidden layer; l [T-1,B,M]: what u_t gives to alpha's logits;
    u [T-1,B,U]; eps [T-1,B,W]; W_z [Z,H]; L_z [Z,M]; W_o [H,2W]; V [M*S,Z]: row i*S+j is column j of (A_i|B_i|C_i).
    """
    zs, outs = [z], []
    a_s, l_s, u_s, e_s = a.unbind(0), l.unbind(0), u.unbind(0), eps.unbind(0)
    for t in range(len(a_s)):
        out = torch.addmm(b_o, torch.relu_(torch.addmm(a_s[t], z, W_z)), W_o)  # [B,2W]
        w = sample(out, e_s[t])
        alpha = torch.softmax(torch.addmm(l_s[t], z, L_z), 1)                # [B,M]
        s = torch.cat([z, u_s[t], w], 1)                                     # [B,S]
        z = torch.addmm(z, (alpha.unsqueeze(2) * s.unsqueeze(1)).flatten(1), V)
        zs.append(z)
        outs.append(out)
    return torch.stack(zs), torch.stack(outs)


class Twin(torch.nn.Module):
    def __init__(self, variant):
        super().__init__()
        def weight(rows, columns, scale=None):
            return torch.nn.Parameter(torch.randn(rows, columns) * (scale or rows ** -0.5))
        def zeros(*shape):
            return torch.nn.Parameter(torch.zeros(*shape))
        how, _, recurrence = variant.partition("-")
        scripted = torch.jit.script if how == "script" else lambda function: function
        self.birnn, self.filter_states = scripted(birnn), scripted(filter_states)
        # Initial network; nn.RNN owns its weights (and a second bias, which changes nothing).
        self.rnn = torch.nn.RNN(X, H, nonlinearity="relu", bidirectional=True) if recurrence == "rnn" else None
        if self.rnn is None:
            self.init_Wf, self.init_Wb, self.init_bf, self.init_bb = weight(X, H), weight(X, H), zeros(H), zeros(H)
            self.init_Rf, self.init_Rb = weight(H, H, scale=0.5 * H ** -0.5), weight(H, H, scale=0.5 * H ** -0.5)
        self.init_Wo, self.init_bo = weight(2 * H, 2 * W), zeros(2 * W)
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

    def forward(self, x, u, eps, eps_v):
        """Loss = -bound / (B T). x [T,B,X]; u [T-1,B,U]; eps [T,B,W] makes w_1, w_2..w_T; eps_v [M*S,Z] makes v."""
        B = x.shape[1]
        x_flat = x.view(T * B, X)

        if self.rnn is not None:
            h_f, h_b = self.rnn(x)[1].unbind(0)                              # last states, [B,H] each
        else:
            a_f = torch.addmm(self.init_bf, x_flat, self.init_Wf).view(T, B, H)
            a_b = torch.addmm(self.init_bb, x_flat, self.init_Wb).view(T, B, H)
            h_f, h_b = self.birnn(a_f, a_b, self.init_Rf, self.init_Rb)
        out_1 = torch.addmm(self.init_bo, torch.cat([h_f, h_b], 1), self.init_Wo)   # [B,2W]
        w_1 = sample(out_1, eps[0])
        z_1 = torch.addmm(self.g_b2, torch.relu_(torch.addmm(self.g_b1, w_1, self.g_W1)), self.g_W2)

        v_std = self.v_log_std.exp()
        V = torch.addcmul(self.v_mean, v_std, eps_v)
        u_flat = u.view(-1, U)
        a = torch.addmm(torch.addmm(self.rec_b, u_flat, self.rec_Wu), x_flat[B:], self.rec_Wx).view(T - 1, B, H)
        l = torch.addmm(self.alpha_b, u_flat, self.alpha_Wu).view(T - 1, B, M)
        z, out = self.filter_states(z_1, a, l, u, eps[1:], self.rec_Wz, self.alpha_Wz, self.rec_Wo, self.rec_bo, V)

        hidden = torch.relu_(torch.addmm(self.em_b1, z.view(T * B, Z), self.em_W1))
        mean = torch.addmm(self.em_b2, hidden, self.em_W2)                   # [TB,X]
        sse = torch.nn.functional.mse_loss(mean, x_flat, reduction="sum")
        log_p = -0.5 * (-2 * self.em_log_sigma).exp() * sse \
            - x.numel() * (self.em_log_sigma + 0.5 * math.log(2 * math.pi))

        mu, log_sigma = torch.cat([out_1.unsqueeze(0), out]).chunk(2, 2)     # [T,B,W]
        log_sigma = log_sigma.clamp(-8.0, 2.5)
        kl_w = (0.5 * ((2 * log_sigma).exp() + mu * mu - 1) - log_sigma).sum()
        kl_v = (self.prior_log_std - self.v_log_std - 0.5
                + 0.5 * (v_std ** 2 + (self.v_mean - self.prior_mean) ** 2) * (-2 * self.prior_log_std).exp()).sum()
        return (kl_w - log_p + kl_v * (B / N)) / (B * T)


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


class Trainer:
    def __init__(self, variant):
        torch.manual_seed(1)
        self.model = Twin(variant)
        self.flat = flatten(self.model)
        self.optimiser = adam(self.flat)
        self.loss = torch.compile(self.model, dynamic=False) if variant == "compile" else self.model
        self.x, self.u = torch.randn(T, N, X), torch.randn(T - 1, N, U)
        self.warm = set()

    def update(self, batch):
        """One update on a minibatch drawn without replacement (with, when it exceeds N)."""
        rows = torch.randperm(N)[:batch] if batch <= N else torch.randint(N, (batch,))
        x, u = self.x.index_select(1, rows), self.u.index_select(1, rows)
        self.flat.grad.zero_()
        loss = self.loss(x, u, torch.randn(T, batch, W), torch.randn(M * S, Z))
        loss.backward()
        self.optimiser.step()
        return loss.detach()

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
    run = torch.compile(m, dynamic=False) if variant == "compile" else m
    for _ in range(3):                                         # a script changes its plan after the first runs
        loss = run(x, u, eps, eps_v)
        grad = torch.autograd.grad(loss, parameters)
    error = max(((a - b).abs().max() / (1e-3 + b.abs().max())).item()
                for a, b in zip((loss,) + grad, (expected,) + expected_grad))
    print(f"{variant}: largest relative error {error:.1e}")
    return error < 1e-9


def main():
    parser = argparse.ArgumentParser(description="PyTorch twin of DVBF-LL, for timing.")
    parser.add_argument("--batch", type=int, default=50, help="sequences per update (default %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads (default %(default)s)")
    parser.add_argument("--updates", type=int, default=50, help="updates to time (default %(default)s)")
    parser.add_argument("--variant", choices=VARIANTS, help="how the recurrences run (default eager); -rnn: nn.RNN as "
                        "BiRNN; compile: PyTorch 2, faster on one thread, but minutes of compilation for each "
                        "batch and number of threads")
    parser.add_argument("--serve", action="store_true", help='answer each line "BATCH THREADS UPDATES" with seconds')
    parser.add_argument("--check", action="store_true", help="verify the variant (default: all but compile) and exit")
    args = parser.parse_args()
    variant = args.variant or "eager"
    if variant == "compile" and not hasattr(torch, "compile"):
        sys.exit(f"torch_twin: --variant compile needs PyTorch 2; this is {torch.__version__}")
    if min(args.batch, args.threads, args.updates) < 1:
        sys.exit("torch_twin: --batch, --threads and --updates must be at least 1")
    if args.check:
        sys.exit(0 if all([check(v) for v in ([variant] if args.variant else VARIANTS[:-1])]) else 1)

    keep_memory()
    torch.set_flush_denormal(True)
    trainer = Trainer(variant)
    if args.serve:
        for line in sys.stdin:
            try:
                batch, threads, updates = (int(field) for field in line.split())
                if min(batch, threads, updates) < 1:
                    raise ValueError
            except ValueError:
                sys.exit(f'torch_twin: {line.strip()!r}: expected "BATCH THREADS UPDATES", each at least 1')
            print(f"{trainer.time(batch, threads, updates):.6f}", flush=True)
        return
    seconds = trainer.time(args.batch, args.threads, args.updates)
    rss, peak = resident_mib()
    print(json.dumps({"batch": args.batch, "threads": args.threads, "seconds_per_update": seconds / args.updates,
                      "torch": str(torch.__version__), "variant": variant, "rss_mib": rss, "peak_rss_mib": peak}))


if __name__ == "__main__":
    main()
