"""Peak memory of `fit` on a large array of float32, over the size of the array: nothing may copy it.

    PYTHONPATH=python DVBF_LIBRARY=build/libdvbf.so.0 python3 bench/python/memory.py [MEGABYTES]

2000 megabytes by default. A few updates are enough: all that is as large as x would be made before the first.
"""

from __future__ import annotations

import resource
import sys

import dvbf
import numpy as np


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    steps, pixels = 64, 256
    count = int(sys.argv[1] if len(sys.argv) > 1 else 2000) * 1000000 // (4 * pixels * steps)
    before = peak()
    x = np.empty((count, steps, pixels), np.float32)
    part = np.random.default_rng(1).random((steps, pixels), np.float32)
    for i, one in enumerate(x):
        np.multiply(part, 0.5 + 0.5 * np.float32(i % 7) / 7, out=one)
    model = dvbf.fit(x, updates=3, validate_every=3, latent=2, hidden=16, starts=1)
    whole = peak()
    print(
        f"x has {x.nbytes / 1e6:.0f} MB, the process at most {whole / 1e6:.0f} MB ({before / 1e6:.0f} MB before x was made): "
        f"{whole / x.nbytes:.3f} times x after {model.updates} updates"
    )


if __name__ == "__main__":
    main()
