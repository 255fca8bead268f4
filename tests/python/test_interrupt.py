"""Ctrl-C: training ends with the best model so far, everything else with KeyboardInterrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dvbf
import pytest
from dvbf import _library

HERE = Path(__file__).parent

BEGIN = """
import sys, time, warnings
sys.path.insert(0, sys.argv[1])
import numpy as np
from conftest import SMALL, toy
import dvbf
warnings.simplefilter("always")
x, u = toy(8, 30)
"""

TRAIN = (
    BEGIN
    + """
def told(p):
    if p.update: print("working", flush=True)
m = dvbf.fit(x, u, callback=told, **SMALL | {"updates": 10**8, "starts": 1, "search": SEARCH})
print("ended", m.interrupted, m.updates, flush=True)
"""
)

OTHERS = (
    BEGIN
    + """
import threading
m = dvbf.fit(x, u, **SMALL)
x, u = toy(100, 200)
print("working", flush=True)
try:
    m.WORK
except KeyboardInterrupt:
    print("ended", flush=True)
while any(t.name == "dvbf" for t in threading.enumerate()): time.sleep(0.01)
print("quiet", flush=True)
"""
)

#: They take minutes where nobody interrupts them.
LONG = [
    "smooth(x, u, particles=2000, samples=100)",
    "filter(x, u, particles=5000)",
    "evaluate(x, u, samples=10000)",
    "evaluate(x, u, samples=1, particles=60000)",
    "report(sys.argv[2] + '/report.html', x, u, samples=10000)",
]


def interrupt(program, *arguments):
    """Seconds from Ctrl-C to the end, and what was said."""
    command = [sys.executable, "-c", program, str(HERE), *map(str, arguments)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while "working" not in (line := run.stdout.readline()):
        assert line, run.stderr.read()
    time.sleep(0.3)
    start = time.monotonic()
    run.send_signal(signal.SIGINT)
    for line in run.stdout:
        if line.startswith("ended"):
            break
    seconds = time.monotonic() - start
    out, err = run.communicate(timeout=60)
    print(f"{seconds:.2f} seconds, and {time.monotonic() - start:.2f} to the end of all")
    assert run.returncode == 0, err
    return seconds, line, err


@pytest.mark.parametrize("search", [False, True])
def test_training_keeps_its_model(search):
    seconds, line, err = interrupt(TRAIN.replace("SEARCH", str(search)))
    assert line.startswith("ended True") and "InterruptedTraining" in err
    assert seconds < 5  # below 0.5 where the machine is free


@pytest.mark.parametrize("work", LONG)
def test_other_work_ends(work, tmp_path):
    """Nor does anything go on in the background."""
    seconds, line, _ = interrupt(OTHERS.replace("WORK", work), tmp_path)
    assert line.startswith("ended")
    assert seconds < 5


def test_nothing_is_learned_yet(data):
    """Ctrl-C before there is a model; the first data that are looked at send it."""
    x, u = data

    class Late:
        def __array__(self, *_):
            os.kill(os.getpid(), signal.SIGINT)
            return x

    with pytest.raises(KeyboardInterrupt):
        dvbf.fit(Late(), u, search=True)


def test_work_on_other_threads(data, model):
    x, u = data
    found = []
    worker = threading.Thread(target=lambda: found.append(model.filter(x, u)))
    worker.start()
    worker.join()
    assert found[0].x.shape == x.shape


def test_failures_reach_the_caller():
    def fail():
        raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        _library.run(fail)

    def stopped():
        raise dvbf._errors.StoppedError("stopped on request")

    with pytest.raises(KeyboardInterrupt):
        _library.run(stopped)


def test_python_goes_on_meanwhile(data):
    """The lock of the interpreter is free while the library works."""
    x, u = data
    ticks = 0
    done = threading.Event()

    def count():
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    dvbf.fit(x, u, search=False, updates=200, threads=1, starts=1)
    done.set()
    other.join()
    assert ticks > 20
