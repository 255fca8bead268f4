"""An online filter with lost readings: its beliefs and forecasts.

    python3 online.py [model.safetensors]

A sensor measures a weight on a spring, pushed by a known force and an unknown wind; a third of its readings are lost. The
filter continues without them: its uncertainty grows with each lost reading and shrinks with the next one. At the start it
shrinks in either case, since little is known about the position yet. Without a model, one is trained first.
"""

from __future__ import annotations

import sys
import time

import dvbf
import numpy as np


def swing(rng: np.random.Generator, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Position and speed of the weight: x [steps, 2], and the force u [steps, 1]."""
    u = np.where(rng.random((steps, 1)) < 0.1, rng.normal(size=(steps, 1)), 0).astype(np.float32)
    wind = 0.1 * rng.normal(size=steps)
    x = np.zeros((steps, 2), np.float32)
    x[0] = rng.normal(size=2)
    for t in range(1, steps):
        x[t, 0] = x[t - 1, 0] + 0.2 * x[t - 1, 1]
        x[t, 1] = 0.98 * x[t - 1, 1] - 0.2 * x[t, 0] + u[t - 1, 0] + wind[t]
    return x + 0.02 * rng.normal(size=x.shape).astype(np.float32), u


def main() -> None:
    rng = np.random.default_rng(1)
    if len(sys.argv) > 1:
        model = dvbf.load(sys.argv[1])
    else:
        pairs = [swing(rng, 80) for _ in range(40)]
        model = dvbf.fit([x for x, _ in pairs], [u for _, u in pairs], updates=200, search=False)
    x, u = swing(rng, 100)
    filter_ = model.online(samples=32)
    seconds = []
    for t in range(len(x)):
        lost = rng.random() < 1 / 3
        start = time.perf_counter()
        belief = filter_.step(None if lost else x[t], u[t - 1] if t else None)
        seconds.append(time.perf_counter() - start)
        if not belief.ready:
            continue
        # The next five steps, if nobody pushes.
        ahead = filter_.predict(np.vstack([u[t], np.zeros((4, 1), np.float32)]))
        low, high = ahead.x_quantiles[0, -1, 0], ahead.x_quantiles[-1, -1, 0]
        print(
            f"{t:3d} {'   lost' if lost else f'{x[t, 0]:7.2f}'}  uncertainty {belief.std.mean():.3f}"
            f"  in five steps between {low:.2f} and {high:.2f}"
        )
    print(f"a step took {1e6 * np.median(seconds):.0f} microseconds")


if __name__ == "__main__":
    main()
