"""Simulated systems with known noise, and how well their true models predict.

A system is z[t+1] = step(z[t], u[t]) + process noise, x[t] = output(z[t]) + measurement noise. Components stand
first: z is [n_z, ...], so that one function serves single floats, all sequences at once and all points of a filter.
The same seed gives the same data.
"""
import numpy as np

# ---- what systems are made of


class Data:
    """Sequences of one part: x [N, T, n_x], u [N, T, n_u] or None, z [N, T, n_z], length [N]."""

    def __init__(self, x, u=None, z=None, length=None):
        self.x, self.u, self.z = x, u, z
        self.length = np.full(len(x), x.shape[1]) if length is None else length


class System:
    """A system that has made its own data."""

    def __init__(self, step, output, process, noise, train, test):
        self.step, self.output = step, output
        self.process, self.noise = np.asarray(process), np.asarray(noise)  # standard deviations
        self.train, self.test = train, test

    def free_run(self, observe):
        """x of the test part, [N, T - observe, n_x], by the true model from the true state, without noise."""
        test = self.test
        z, out = np.moveaxis(test.z[:, observe - 1], -1, 0), []
        for t in range(observe - 1, test.x.shape[1] - 1):
            z = np.asarray(self.step(z, control(test.u, t)))
            out.append(np.asarray(self.output(z)))
        return np.transpose(out, (2, 0, 1))

    def one_step(self):
        """x of the test part, [N, T, n_x], each as the true model expects it from all before it."""
        return cubature_filter(self)


def control(u, t):
    return None if u is None else np.moveaxis(u[:, t], -1, 0)


def cubature_filter(system):
    """Forecasts of all test outputs by a cubature Kalman filter (Arasaratnam and Haykin, 2009)."""
    x, u = system.test.x, system.test.u
    count, steps, n_x = x.shape
    n = len(system.process)
    q, r = np.diag(system.process ** 2), np.diag(system.noise ** 2)
    directions = np.sqrt(n) * np.concatenate([np.eye(n), -np.eye(n)])           # [2n, n]
    mean, cov = system.test.z[:, 0].copy(), np.tile(q + 1e-6 * np.eye(n), (count, 1, 1))
    forecasts = np.empty((count, steps, n_x))

    def points():
        root = np.linalg.cholesky(cov + 1e-12 * np.eye(n))
        return mean[:, None] + directions @ np.swapaxes(root, 1, 2)             # [N, 2n, n]

    for t in range(steps):
        z = points()
        y = np.moveaxis(np.asarray(system.output(np.moveaxis(z, -1, 0))), 0, -1)
        forecasts[:, t] = y.mean(1)
        dz, dy = z - mean[:, None], y - y.mean(1, keepdims=True)
        cov_y = np.swapaxes(dy, 1, 2) @ dy / (2 * n) + r
        gain = np.swapaxes(np.linalg.solve(cov_y, np.swapaxes(dy, 1, 2) @ dz / (2 * n)), 1, 2)
        mean = mean + (gain @ (x[:, t] - forecasts[:, t])[..., None])[..., 0]
        cov = cov - gain @ cov_y @ np.swapaxes(gain, 1, 2)
        v = None if u is None else np.moveaxis(np.repeat(u[:, t, None], 2 * n, 1), -1, 0)
        z = np.moveaxis(np.asarray(system.step(np.moveaxis(points(), -1, 0), v)), 0, -1)
        mean = z.mean(1)
        dz = z - mean[:, None]
        cov = np.swapaxes(dz, 1, 2) @ dz / (2 * n) + q
    return forecasts


def runge_kutta(derivative, z, u, h):
    """One step of fourth order; the components of z are floats or arrays."""
    def moved(k, share):
        return [a + share * h * b for a, b in zip(z, k)]
    a = derivative(z, u)
    b = derivative(moved(a, 0.5), u)
    c = derivative(moved(b, 0.5), u)
    d = derivative(moved(c, 1), u)
    return [y + h / 6 * (k + 2 * l + 2 * m + n) for y, k, l, m, n in zip(z, a, b, c, d)]


def simulate(random, step, output, first, u, process, noise, steps):
    """A Data of sequences from the states first [N, n_z]. u is [N, steps, n_u] or None."""
    count, n_z = first.shape
    z = np.empty((count, steps, n_z))
    disturbance = random.standard_normal((count, steps, n_z)) * process
    now = list(first.T)
    if count == 1:                                              # floats are faster than arrays of one
        now, inputs, moves = first[0].tolist(), None if u is None else u[0].tolist(), disturbance[0].tolist()
    else:
        inputs, moves = None if u is None else np.transpose(u, (1, 2, 0)), np.transpose(disturbance, (1, 2, 0))
    for t in range(steps):
        z[:, t] = np.transpose(now)
        now = [a + b for a, b in zip(step(now, None if u is None else inputs[t]), moves[t])]
    x = np.moveaxis(np.asarray(output(np.moveaxis(z, -1, 0))), 0, -1)
    return Data(x + noise * random.standard_normal(x.shape), u, z)


def make(random, sizes, step, output, first, inputs, process, noise):
    """The system with its two parts. sizes: (sequences, steps) of each; first(N), inputs(N, T)."""
    parts = [simulate(random, step, output, first(n), inputs(n, t) if inputs else None, process, noise, t)
             for n, t in sizes]
    return System(step, output, process, noise, *parts)


def smooth_noise(random, count, steps, columns, memory, deviation):
    """Noise with a memory of so many samples: white noise through a filter of first order."""
    keep = np.exp(-1 / memory)
    out = random.standard_normal((count, steps, columns))
    for t in range(1, steps):
        out[:, t] = keep * out[:, t - 1] + np.sqrt(1 - keep ** 2) * out[:, t]
    return deviation * out


def held_noise(random, count, steps, columns, hold, deviation):
    """Noise that changes every `hold` samples."""
    levels = random.standard_normal((count, -(-steps // hold), columns))
    return deviation * np.repeat(levels, hold, 1)[:, :steps]


# ---- the systems


def duffing(random, sizes):
    """A mass on a spring that hardens: q'' = u - 0.3 q' - q - q^3, five samples in a unit of time; q is seen."""
    def derivative(z, u):
        q, v = z
        return v, u[0] - 0.3 * v - q - q ** 3

    return make(random, sizes, lambda z, u: runge_kutta(derivative, z, u, 0.2), lambda z: [z[0]],
                first=lambda n: np.zeros((n, 2)),
                inputs=lambda n, t: smooth_noise(random, n, t, 1, 5, 0.7),
                process=[0.001, 0.01], noise=[0.02])


def wiener_hammerstein(random, sizes):
    """A linear system of second order, a diode that limits one side, and another linear system."""
    def step(z, u):
        a, b, c, d = z
        limited = np.where(np.asarray(a) > 0, a, np.tanh(1.5 * np.asarray(a)) / 1.5)
        return 1.5 * a - 0.7 * b + 0.2 * u[0], a, 1.1 * c - 0.4 * d + 0.3 * limited, c

    return make(random, sizes, step, lambda z: [z[2]],
                first=lambda n: np.zeros((n, 4)),
                inputs=lambda n, t: smooth_noise(random, n, t, 1, 2, 1),
                process=[0.01, 0, 0.005, 0], noise=[0.03])


def tanks(random, sizes):
    """Two tanks, the upper one emptying into the lower one. What overflows the upper tank goes partly to the lower."""
    def step(z, u):
        for _ in range(4):                                      # Euler steps of 1 s, samples of 4 s
            upper, lower = np.maximum(z[0], 0), np.maximum(z[1], 0)
            into = upper + 0.11 * np.maximum(u[0], 0) - 0.13 * np.sqrt(upper)
            over = np.maximum(into - 10, 0)
            below = lower + 0.13 * np.sqrt(upper) - 0.13 * np.sqrt(lower) + 0.5 * over
            z = into - over, np.minimum(below, 10)
        return z

    return make(random, sizes, step, lambda z: [z[1]],
                first=lambda n: np.full((n, 2), 5.),
                inputs=lambda n, t: np.clip(3 + smooth_noise(random, n, t, 1, 12, 1.5), 0.5, 7),
                process=[0.03, 0.03], noise=[0.1])


def planar_chain(masses, spring, damping, gravity, h, substeps):
    """Equations of a hanging chain of links of length 1 with a motor at each joint.

    In the absolute angles a: sum_j m_ij cos(a_i - a_j) a_j'' = torque_i - sum_j m_ij sin(a_i - a_j) a_j'^2 - g_i sin a_i,
    where m_ij is the mass that both links carry. Springs and friction act on the joints. Velocities move first, then
    angles, in `substeps` steps of h for each sample.
    """
    n = len(masses)
    carried = np.cumsum(masses[::-1])[::-1]
    m = carried[np.maximum.outer(np.arange(n), np.arange(n))]
    rotors = np.diag(0.2 * carried)
    difference = np.eye(n) - np.eye(n, k=-1)                    # joint angles are difference @ a

    def step(z, u):
        shape = np.shape(z)
        a, w = np.split(np.reshape(z, (2 * n, -1)).T, 2, 1)     # [rows, n]
        u = np.reshape(u, (n, -1)).T
        for _ in range(substeps):
            sin, cos = np.sin(a), np.cos(a)
            torque = u - spring * (a @ difference.T) - damping * (w @ difference.T)
            pull = cos * (w ** 2 * sin @ m) - sin * (w ** 2 * cos @ m)
            right = torque @ difference - gravity * carried * sin + pull
            inertia = m * (cos[:, :, None] * cos[:, None] + sin[:, :, None] * sin[:, None]) + rotors
            w = w + h * np.linalg.solve(inertia, right[..., None])[..., 0]
            a = a + h * w
        return np.concatenate([a, w], 1).T.reshape(shape)

    def angles(z):
        return np.tensordot(difference, np.asarray(z)[:n], 1)

    return step, angles


def two_link_arm(random, sizes):
    """Two links that hang and swing far, torques in, both joint angles out, in short episodes."""
    step, angles = planar_chain(np.ones(2), spring=0, damping=0.5, gravity=2, h=0.05, substeps=3)
    return make(random, sizes, step, angles,
                first=lambda n: random.uniform(-1, 1, (n, 4)) * [1, 1, 0.5, 0.5],
                inputs=lambda n, t: held_noise(random, n, t, 2, 4, [1, 0.7]),
                process=[0.001, 0.001, 0.005, 0.005], noise=[0.03, 0.03])


def six_joint_arm(random, sizes):
    """Six links held by springs against gravity, six torques in, six joint angles out, in one recording."""
    masses = np.array([1.5, 1.2, 1, 0.8, 0.6, 0.4])
    strength = np.array([8, 6, 4, 2.5, 1.5, 0.7])
    step, angles = planar_chain(masses, spring=strength, damping=0.4 * strength, gravity=2, h=0.05, substeps=2)
    return make(random, sizes, step, angles,
                first=lambda n: np.zeros((n, 12)),
                inputs=lambda n, t: smooth_noise(random, n, t, 6, 10, 0.7 * strength),
                process=np.repeat([0.0005, 0.003], 6), noise=np.full(6, 0.02))


def string(random, sizes):
    """A string with two modes, whose springs soften, seen at 48 places by sensors that are not linear. No inputs."""
    places = np.arange(1, 49) / 49
    modes = np.array([np.sin(np.pi * places), np.sin(2 * np.pi * places)])   # [2, 48]

    def derivative(z, u):
        a, b, v, w = z
        return v, w, -np.sin(a) - 0.3 * b - 0.02 * v, -2.5 * np.sin(b) - 0.3 * a - 0.02 * w

    def output(z):
        bent = np.tensordot(modes.T, np.asarray(z[:2]), 1)
        return 0.5 * bent + 0.1 * bent ** 2

    return make(random, sizes, lambda z, u: runge_kutta(derivative, z, u, 0.25), output,
                first=lambda n: random.uniform(-1.2, 1.2, (n, 4)), inputs=None,
                process=[0.001, 0.001, 0.003, 0.003], noise=np.full(48, 0.01))


def linear(random, sizes):
    """A linear system. The best possible errors are known: 1.3619 in a free run, 1.2697 one step ahead."""
    def step(z, u):
        return 0.7 * z[0] + 0.8 * z[1] - u[0], 0.1 * z[1] + 0.1 * u[0]

    return make(random, sizes, step, lambda z: [z[0]],
                first=lambda n: random.standard_normal((n, 2)),
                inputs=lambda n, t: random.uniform(-2.5, 2.5, (n, t, 1)),
                process=[0.5, 0.5], noise=[1.])


def switching(random, sizes):
    """A mass that hits a stop: beyond q = 0.5 a second, stiffer spring and a damper act."""
    def step(z, u):
        for _ in range(3):
            q, v = z
            beyond = np.asarray(q) > 0.5
            force = u[0] - 0.4 * v - q - beyond * (12 * (q - 0.5) + 1.5 * v)
            z = q + 0.1 * v, v + 0.1 * force
        return z

    return make(random, sizes, step, lambda z: [z[0]],
                first=lambda n: np.zeros((n, 2)),
                inputs=lambda n, t: smooth_noise(random, n, t, 1, 4, 1),
                process=[0.001, 0.003], noise=[0.02])


class Chords:
    """Chords that follow each other as a Markov chain, as 88 columns of 0 and 1, of which each flips now and then.

    The chain has 24 chords of four to seven notes, each followed by one of a few others or by itself.
    """

    binary, keys, chords = True, 88, 24

    def __init__(self, random, sizes, flips):
        self.flips = flips
        self.notes = np.zeros((self.chords, self.keys))
        for chord in self.notes:
            chord[random.choice(self.keys, random.integers(4, 8), replace=False)] = 1
        self.move = 0.6 * np.eye(self.chords)
        for i in range(self.chords):
            others = random.choice(np.delete(np.arange(self.chords), i), 4, replace=False)
            self.move[i, others] += 0.4 * random.dirichlet(np.ones(4))
        self.first = np.full(self.chords, 1 / self.chords)
        self.train, self.test = [self.play(random, *size) for size in sizes]

    def play(self, random, count, steps):
        length = random.integers(steps // 2, steps + 1, count)
        length[0] = steps
        x = np.zeros((count, steps, self.keys), np.uint8)
        chord = random.choice(self.chords, count, p=self.first)
        for t in range(steps):
            x[:, t] = random.random((count, self.keys)) < np.abs(self.notes[chord] - self.flips)
            chord = np.array([random.choice(self.chords, p=self.move[c]) for c in chord])
        x[np.arange(steps) >= length[:, None]] = 0
        return Data(x, length=length)

    def entropy(self):
        """-ln p of the test part under the true process, in nats per frame, by the forward algorithm."""
        flips = max(self.flips, 1e-300)
        x = self.test.x.astype(float)
        wrong = x @ (1 - self.notes.T) + (1 - x) @ self.notes.T              # [N, T, chords] flips that it takes
        ln = wrong * np.log(flips) + (self.keys - wrong) * np.log1p(-self.flips)
        total = 0
        for i, length in enumerate(self.test.length):
            belief = np.log(self.first)
            for t in range(length):
                belief = belief + ln[i, t]
                most = belief.max()
                share = np.exp(belief - most)
                total -= most + np.log(share.sum())
                with np.errstate(divide="ignore"):
                    belief = np.log(share / share.sum() @ self.move)
        return total / self.test.length.sum()


def chords(random, sizes):
    """Chords without any noise: the entropy is that of the chain."""
    return Chords(random, sizes, 0)


def noisy_chords(random, sizes):
    """The same with one in 200 values flipped."""
    return Chords(random, sizes, 0.005)


# Name: (how it is made, its sizes as (sequences, steps) of train and test, and tiny ones).
SYSTEMS = {
    "duffing": (duffing, ((1, 60000), (1, 5000)), ((1, 250), (1, 60))),
    "wiener-hammerstein": (wiener_hammerstein, ((1, 8000), (1, 4000)), ((1, 250), (1, 60))),
    "tanks": (tanks, ((1, 1024), (1, 1024)), ((1, 250), (1, 60))),
    "two-link-arm": (two_link_arm, ((200, 40), (50, 40)), ((6, 40), (2, 40))),
    "six-joint-arm": (six_joint_arm, ((1, 36000), (1, 4000)), ((1, 250), (1, 60))),
    "string": (string, ((80, 60), (40, 60)), ((5, 40), (2, 40))),
    "linear": (linear, ((1, 2000), (1, 2000)), ((1, 250), (1, 60))),
    "switching": (switching, ((1, 4000), (1, 2000)), ((1, 250), (1, 60))),
    "chords": (chords, ((200, 80), (50, 80)), ((6, 20), (2, 20))),
    "noisy-chords": (noisy_chords, ((200, 80), (50, 80)), ((6, 20), (2, 20))),
}


def make_system(name, seed, tiny):
    function, sizes, tiny_sizes = SYSTEMS[name]
    random = np.random.default_rng([seed, list(SYSTEMS).index(name)])
    return function(random, tiny_sizes if tiny else sizes)
