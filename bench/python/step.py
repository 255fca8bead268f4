"""What Python adds to a step of the online filter.

    PYTHONPATH=python DVBF_LIBRARY=build/libdvbf.so.0 python3 bench/python/step.py

The step in C is timed through its bare ctypes function with arguments that are ready, which includes what ctypes takes.
"""

from __future__ import annotations

import time
from typing import Any, Callable

import dvbf
import numpy as np

CALLS, REPEATS = 2000, 30


def best(work: Callable[[], Any]) -> float:
    """Seconds of a call, the least of many rounds."""
    rounds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(CALLS):
            work()
        rounds.append((time.perf_counter() - start) / CALLS)
    return min(rounds)


def main() -> None:
    rng = np.random.default_rng(0)
    for columns, samples in ((2, 1), (2, 16), (256, 1), (256, 16)):
        x = rng.random((20, 30, columns)).astype(np.float32)
        u = rng.random((20, 30, 1)).astype(np.float32)
        settings = {"search": False, "updates": 2, "gain_updates": 0, "starts": 1, "threads": 1, "start": "random"}
        f = dvbf.fit(x, u, latent=3, **settings).online(samples=samples)
        for t in range(30):
            f.step(x[0, t], u[0, t])
        frame, control = x[0, 3].copy(), u[0, 3].copy()
        bare = best(lambda f=f: f._step(f._filter, f._x_place, f._u_place, f._out))
        whole = best(lambda f=f, frame=frame, control=control: f.step(frame, control))
        print(
            f"{columns:4d} columns, {samples:2d} samples: {1e6 * whole:6.1f} us in all, "
            f"{1e6 * (whole - bare):4.1f} more than the bare call of {1e6 * bare:6.1f} us"
        )


if __name__ == "__main__":
    main()
