"""Small data and small models that the tests share. DVBF_COMMAND is the command, DVBF_LIBRARY the library."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path

import dvbf
import numpy as np
import pytest

#: Trained in a moment.
SMALL = {"search": False, "updates": 20, "gain_updates": 0, "starts": 1, "threads": 1, "hidden": 8, "systems": 2}


def toy(sequences: int = 30, steps: int = 40, seed: int = 0):
    """A damped oscillation that u drives, seen with a little noise: x [N, T, 2], u [N, T, 1]."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(sequences, steps, 1)).astype(np.float32)
    x = np.zeros((sequences, steps, 2), np.float32)
    x[:, 0] = rng.normal(size=(sequences, 2))
    turn = np.array([[0.97, 0.2], [-0.2, 0.97]], np.float32)
    for t in range(1, steps):
        x[:, t] = x[:, t - 1] @ turn + 0.2 * u[:, t - 1]
    return x + 0.01 * rng.normal(size=x.shape).astype(np.float32), u


def command(*arguments, status=(0,)) -> subprocess.CompletedProcess:
    """Runs the command."""
    run = subprocess.run([os.environ["DVBF_COMMAND"], *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode in status, run.stderr
    return run


def train(data: Path, run: Path, verdict: bool = False, **settings) -> bytes:
    """The bytes of the model that the command learns."""
    flags = [f"--{name.replace('_', '-')}={text(value)}" for name, value in settings.items()]
    command("train", data, "-o", run, "--quiet", *([] if verdict else ["--no-verdict"]), *flags, status=(0, 3))
    return (run / "model.safetensors").read_bytes()


def join(model: dvbf.Model, parts: dict[str, dvbf.Model]) -> bytes:
    """The file of a committee: that of its best member, and those of other parts with prefixes (docs/data-formats.md)."""
    header: dict = {"__metadata__": {"members": "2", "linear": "1"}}
    values = b""
    for prefix, part in {"": model, **parts}.items():
        raw = part.to_bytes()
        (size,) = struct.unpack("<Q", raw[:8])
        for name, entry in json.loads(raw[8 : 8 + size]).items():
            if name == "__metadata__":
                header[name].update({prefix + key: value for key, value in entry.items()})
            else:
                begin, end = (len(values) + offset for offset in entry["data_offsets"])
                header[prefix + name] = {**entry, "data_offsets": [begin, end]}
        values += raw[8 + size :]
    top = json.dumps(header).encode()
    top += b" " * (-len(top) % 8)
    return struct.pack("<Q", len(top)) + top + values


def text(value) -> str:
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)


@pytest.fixture(scope="session")
def data():
    return toy()


@pytest.fixture(scope="session")
def model(data):
    x, u = data
    return dvbf.fit(x, u, latent=3, **SMALL)


@pytest.fixture(scope="session")
def linear(data):
    x, u = data
    return dvbf.fit(x, u, model="linear", threads=1)


@pytest.fixture(scope="session")
def committee(data, model, linear):
    """Two members and the best linear model, as a search would make them in minutes."""
    x, u = data
    other = dvbf.fit(x, u, latent=2, seed=2, **SMALL)
    return dvbf.Model.from_bytes(join(model, {"member-2/": other, "linear/": linear}))


@pytest.fixture(scope="session")
def images():
    """Pictures of a pendulum without controls, of 4 x 4 bytes."""
    rng = np.random.default_rng(1)
    angle = np.cumsum(rng.normal(size=(12, 10)) * 0.3, axis=1)
    rows, columns = np.mgrid[0:4, 0:4] - 1.5
    apart = (rows - 1.2 * np.cos(angle)[..., None, None]) ** 2 + (columns - 1.2 * np.sin(angle)[..., None, None]) ** 2
    return (255 * np.exp(-apart)).astype(np.uint8)


@pytest.fixture(scope="session")
def picture_model(images):
    return dvbf.fit(images, latent=2, updates=5, threads=1, hidden=8)
