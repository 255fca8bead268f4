"""How long Ctrl-C takes to be heard, and whether work goes on behind it.

    PYTHONPATH=python DVBF_LIBRARY=build/libdvbf.so.0 python3 bench/python/interrupt.py [WORK...]

Each kind of work is begun in a process of its own and interrupted at several times. Of all these, the longest time from the
signal to the end of the call is shown, and the longest from there until no thread of the library is at work. The model and
the data are of a size at which each work takes some seconds.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time

BEGIN = """
import os, sys, threading, time, warnings
import numpy as np
import dvbf

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
count, steps, columns = 60, 400, int(sys.argv[2])
u = rng.normal(size=(count, steps, 2)).astype(np.float32)
x = np.zeros((count, steps, columns), np.float32)
mix, push = np.linalg.qr(rng.normal(size=(columns, columns)))[0] * 0.98, rng.normal(size=(2, columns)) * 0.2
for t in range(1, steps):
    x[:, t] = np.tanh(x[:, t - 1] @ mix + u[:, t - 1] @ push)
x += 0.05 * rng.normal(size=x.shape).astype(np.float32)
small = dict(search=False, updates=20, gain_updates=0, starts=1, validate_every=20, threads=1)

def learn():
    return dvbf.fit(x, u, latent=6, **small)

def begin(work):
    print("working", flush=True)
    try:
        found = work()
        print("ended", type(found).__name__, flush=True)
    except KeyboardInterrupt:
        print("ended", "KeyboardInterrupt", flush=True)
    while any(thread.name == "dvbf" for thread in threading.enumerate()):
        time.sleep(0.005)
    print("quiet", flush=True)
"""

#: What is done first, the work itself, and the columns of x.
WORKS = {
    "fit": ("", "dvbf.fit(x, u, search=False, updates=10**7)", 6),
    "fit, search": ("", "dvbf.fit(x, u)", 6),
    "fit, linear": ("", "dvbf.fit(x, u, model='linear', linear_fit='em', em_iterations=10000)", 12),
    "filter": ("m = learn()", "m.filter(x, u, samples=20000)", 6),
    "smooth": ("m = learn()", "m.smooth(x, u, particles=2000)", 6),
    "predict": ("m = learn()", "m.predict(x, u, observe=10, samples=20000)", 6),
    "sample": ("m = learn()", "m.sample(100000, steps=400, controls='random')", 6),
    "evaluate": ("m = learn()", "m.evaluate(samples=1000, particles=2000)", 6),
    "judge": ("m = learn()", "m.judge()", 12),
    "report": ("m = learn()", "m.report(sys.argv[1] + '/report.html', samples=1000)", 6),
}


#: Seconds that anything may take to be heard.
MOST = 120


def line_of(run: subprocess.Popen[str]) -> str:
    assert run.stdout is not None
    signal.alarm(MOST)  # ends this program
    line = run.stdout.readline()
    signal.alarm(0)
    return line


def interrupt(first: str, work: str, columns: int, after: float) -> tuple[float, float, str]:
    """Seconds from Ctrl-C to the end of the call, from there until the library is quiet, and how the call ended."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{BEGIN}\n{first}\nbegin(lambda: {work})\n"
        run = subprocess.Popen([sys.executable, "-c", program, folder, str(columns)], stdout=subprocess.PIPE, text=True)
        while "working" not in (line := line_of(run)):
            assert line, "it could not begin"
        time.sleep(after)
        start = time.monotonic()
        run.send_signal(signal.SIGINT)
        how = line_of(run).removeprefix("ended ").strip()
        ended = time.monotonic()
        assert "quiet" in line_of(run), "it did not end well"
        quiet = time.monotonic()
        run.wait()
        return ended - start, quiet - ended, how


def main() -> None:
    for name in sys.argv[1:] or WORKS:
        found = [interrupt(*WORKS[name], after) for after in (0.02, 0.3, 1, 3)]
        ends, rest, how = (list(each) for each in zip(*found))
        print(f"{name:12} ends after {max(ends):.2f} s, quiet {max(rest):.2f} s later: {', '.join(sorted(set(how)))}", flush=True)


if __name__ == "__main__":
    main()
