#!/usr/bin/env python3
"""A PyTorch twin of DVBF-LL with convolutions (network = conv): the same model and work per update as dvbf, for timing.

    torch_pictures.py --side 64 --batch 16 --threads 2     one JSON line: seconds per update, memory, version
    torch_pictures.py --serve                              answers the benchmark's questions (serve in pictures.py)
    torch_pictures.py --exchange FOLDER                    terms and gradients against those of bench_exchange

Beside what makes torch_twin.py fast: images and weights are channels-last, which oneDNN's convolutions like best and which needs no
copy between images and layers (--layout first keeps each channel by itself); data stay as they are in memory.
"""
from torch_twin import *                                       # sets threads up before it imports PyTorch
import torch.nn.functional as F

import pictures



class Pictures(torch.nn.Module):
    """Parameters have dvbf's names, with _ in the place of . and -. Weights of convolutions are [small, 4, 4, large
    channels] in memory; those of v are [M*S, Z]."""

    def __init__(self, shape, values, layout="last"):
        super().__init__()
        self.shape, self.layout = shape, layout
        self.names = {}
        for name, value in values.items():
            own = name.replace(".", "_").replace("-", "_")
            self.names[own] = name
            setattr(self, own, torch.nn.Parameter(torch.from_numpy(self.to_own(name, value))))

    def to_own(self, name, value):
        if ".convolution" in name:
            value = value.transpose(3, 0, 1, 2) if self.layout == "last" else value.transpose(3, 2, 0, 1)
        if name in ("universal.mean", "universal.log_sigma"):
            value = value.transpose(2, 0, 1).reshape(M * S, Z)
        return numpy.ascontiguousarray(value)

    def to_dvbf(self, name, value):
        if ".convolution" in name:
            value = value.transpose(1, 2, 3, 0) if self.layout == "last" else value.transpose(2, 3, 1, 0)
        if name in ("universal.mean", "universal.log_sigma"):
            value = value.reshape(M, S, Z).transpose(1, 2, 0)
        return value

    def kernel(self, network, i):
        w = getattr(self, f"{network}_convolution_{i}")
        return w.permute(0, 3, 1, 2) if self.layout == "last" else w

    def bias(self, network, i):
        return getattr(self, f"{network}_bias_{i}")

    def images(self, rows, side, channels):
        """[rows, side * side * channels] as dvbf has it -> [rows, channels, side, side]."""
        x = rows.view(-1, side, side, channels).permute(0, 3, 1, 2)
        return x if self.layout == "last" else x.contiguous()

    def rows(self, x):
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)

    def see(self, x):
        """[T,B,side,side,channels] -> [T*B, sight]."""
        now = self.images(x.flatten(0, 1), self.shape.side, self.shape.channels)
        for i in range(1, len(self.shape.stages)):
            now = torch.relu_(F.conv2d(now, self.kernel("sight", i), self.bias("sight", i).view(-1), 2, 1))
        return self.rows(now)

    def draw(self, hidden):
        """[T*B, H] -> mean of x [T*B, pixels]."""
        last = len(self.shape.stages) - 1
        now = torch.relu_(torch.addmm(self.emission_picture_bias, hidden, self.emission_picture_h))
        now = self.images(now, *self.shape.stages[last])
        for i in range(last, 1, -1):
            now = torch.relu_(F.conv_transpose2d(now, self.kernel("emission", i), self.bias("emission", i).view(-1), 2, 1))
        return self.rows(F.conv_transpose2d(now, self.kernel("emission", 1), None, 2, 1)) + self.emission_bias_1

    def states(self, x, u, eps, V):
        T, B = x.shape[:2]
        sight = self.see(x)
        frames = sight.view(T, B, -1)[:K].transpose(0, 1).reshape(B, -1)
        h = torch.relu_(torch.addmm(self.initial_hidden_bias, frames, self.initial_hidden_sight))
        out_1 = torch.addmm(self.initial_output_bias, h, self.initial_output_h)
        h = torch.relu_(torch.addmm(self.initial_transition_hidden_bias, sample(out_1, eps[0]),
                                    self.initial_transition_hidden_w))
        z_1 = torch.addmm(self.initial_transition_output_bias, h, self.initial_transition_output_h)
        u_flat = u.view(-1, U)
        given = torch.addmm(self.recognition_hidden_bias, u_flat, self.recognition_hidden_u)
        a = torch.addmm(given, sight[B:], self.recognition_hidden_sight).view(T - 1, B, H)
        l = torch.addmm(self.mixing_alpha_bias, u_flat, self.mixing_alpha_u).view(T - 1, B, M)
        z, out = filter_states(z_1, a, l, u, eps[1:], self.recognition_hidden_z, self.mixing_alpha_z,
                               self.recognition_output_h, self.recognition_output_bias, V)
        return z, torch.cat([out_1.unsqueeze(0), out])

    def terms(self, x, u, eps, eps_v):
        """Reconstruction, KL of w, KL of v, in nats per frame."""
        T, B = x.shape[:2]
        z, out = self.states(x, u, eps, torch.addcmul(self.universal_mean, self.universal_log_sigma.exp(), eps_v))
        hidden = torch.relu_(torch.addmm(self.emission_hidden_bias, z.view(T * B, Z), self.emission_hidden_z))
        mean = self.draw(hidden)
        sse = F.mse_loss(mean, x.view(T * B, -1), reduction="sum")
        log_sigma = self.emission_log_sigma[0, 0]
        log_p = -0.5 * (-2 * log_sigma).exp() * sse - x.numel() * (log_sigma + 0.5 * LN_2PI)
        mu, log_sigma = out.chunk(2, 2)
        log_sigma = log_sigma.clamp(-8.0, 2.5)
        kl_w = 0.5 * ((2 * log_sigma).exp() + mu * mu - 1) - log_sigma
        prior_mean, prior_log = self.universal_prior[0, 0], self.universal_prior[0, 1]
        kl_v = (prior_log - self.universal_log_sigma - 0.5 + 0.5 * (-2 * prior_log).exp()
                * ((2 * self.universal_log_sigma).exp() + (self.universal_mean - prior_mean) ** 2)).sum()
        scale = 1 / (B * T)
        return log_p * scale, kl_w.sum() * scale, kl_v * (B / pictures.SEQUENCES * scale)

    def forward(self, *inputs):
        log_p, kl_w, kl_v = self.terms(*inputs)
        return kl_w + kl_v - log_p


class PictureTrainer:
    """A timed model of one shape, on noise for data."""

    def __init__(self, shape, variant, layout):
        torch.manual_seed(1)
        self.shape = shape
        self.model = Pictures(shape, pictures.first_values(1, shape), layout)
        self.flat = flatten(self.model)
        self.optimiser = adam(self.flat)
        self.loss = compiled(self.model) if variant == "compile" else self.model
        self.x, self.u = (torch.from_numpy(a) for a in pictures.noise_data(shape))
        self.warm = set()

    def update(self, batch):
        return step(self, torch.randperm(pictures.SEQUENCES)[:batch])

    def time(self, batch, threads, updates):
        """Seconds for so many updates, by the clock and of the processor; the first call for a batch and number of threads compiles and warms up."""
        set_threads(threads)
        if (batch, threads) not in self.warm:
            self.warm.add((batch, threads))
            for _ in range(2):
                self.update(batch)
        start, processor = time.perf_counter(), time.process_time()
        for _ in range(updates):
            loss = self.update(batch)
        seconds = time.perf_counter() - start, time.process_time() - processor
        if not math.isfinite(loss.item()):
            sys.exit("torch_pictures: the loss is no longer finite")
        return seconds


def exchange_pictures(folder, variant, layout):
    e = pictures.Exchange(folder)
    model = Pictures(e.shape, e.parameters, layout)
    x, u, eps, eps_v = (torch.from_numpy(numpy.ascontiguousarray(a)) for a in
                        (e.x, e.u, e.eps, e.eps_v.transpose(2, 0, 1).reshape(M * S, Z)))
    run = torch.compile(model.terms) if variant == "compile" else model.terms
    terms = run(x, u, eps, eps_v)
    (terms[1] + terms[2] - terms[0]).backward()
    gradients = {name: model.to_dvbf(name, getattr(model, own).grad.numpy()) for own, name in model.names.items()}
    return e.compare(f"PyTorch {torch.__version__} {variant}", [term.item() for term in terms], gradients)


def answer_pictures(variant, layout):
    trainers = {}

    def update(side, channels, frames, batch, threads, updates):
        key = side, channels, frames
        if key not in trainers:
            trainers[key] = PictureTrainer(pictures.Shape(*key), variant, layout)
        return trainers[key].time(batch, threads, updates)

    pictures.serve(f"PyTorch {torch.__version__} {variant}", update, lambda: resident_mib()[1])


def add_picture_options(parser):
    parser.add_argument("--variant", choices=("eager", "compile"), default="eager", help="compile: torch.compile (default eager)")
    parser.add_argument("--layout", choices=("last", "first"), default="last", help="channels last or first (default %(default)s)")


def main_pictures():
    options = pictures.parse("PyTorch twin of DVBF-LL with convolutions, for timing.", add_picture_options)
    if options.exchange:
        sys.exit(not exchange_pictures(options.exchange, options.variant, options.layout))
    keep_memory()
    torch.set_flush_denormal(True)
    if options.serve:
        return answer_pictures(options.variant, options.layout)
    trainer = PictureTrainer(pictures.Shape(options.side, options.channels, options.frames), options.variant, options.layout)
    seconds = trainer.time(options.batch, options.threads, options.updates)
    pictures.print_time(options, seconds, torch=str(torch.__version__), variant=options.variant, layout=options.layout)


if __name__ == "__main__":
    main_pictures()
