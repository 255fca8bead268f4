"""Memory over many cycles of loading a model, filtering and freeing it.

    PYTHONPATH=python DVBF_LIBRARY=build/libdvbf.so.0 python3 bench/python/leaks.py [CYCLES]

10,000 cycles by default. Each also steps an online filter. What the process holds is shown ten times; it must not grow.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile

import dvbf
import numpy as np


def resident() -> float:
    """Megabytes in memory."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    cycles = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=(4, 30, 2)).astype(np.float32), rng.normal(size=(4, 30, 1)).astype(np.float32)
    model = dvbf.fit(x, u, latent=3, search=False, updates=5, gain_updates=0, starts=1, threads=1, hidden=8, systems=2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        model.save(path)
        sizes = []
        for i in range(cycles):
            m = dvbf.load(path)
            m.filter(x, u, samples=2, threads=1)
            m.online(2).step(x[0, 0])
            del m
            if i % max(1, cycles // 10) == cycles // 20:
                sizes.append(resident())
                print(f"{i:6d} cycles: {sizes[-1]:.2f} MB", flush=True)
    grown = sizes[-1] - sizes[1] if len(sizes) > 2 else 0.0
    print(f"from the second to the last: {grown:+.2f} MB, {1e6 * grown / (0.8 * cycles):+.0f} bytes for each cycle")
    sys.exit(grown > 1)


if __name__ == "__main__":
    main()
