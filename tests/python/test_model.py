"""What a model is: its parts, its copies, its derivatives, its report."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import struct
import subprocess
import sys

import dvbf
import numpy as np
import pytest
from conftest import SMALL, train


def test_copies(model, committee, data):
    x, u = data
    for m in (model, committee):
        for other in (pickle.loads(pickle.dumps(m)), copy.copy(m), copy.deepcopy(m), dvbf.Model.from_bytes(m.to_bytes())):
            assert other == m and other.handle != m.handle
            np.testing.assert_array_equal(other.filter(x[:2], u[:2]).x, m.filter(x[:2], u[:2]).x)
    assert model != committee and model != 3 and len({model, model}) == 1


def test_files(tmp_path, model):
    model.save(tmp_path)
    assert dvbf.load(tmp_path) == model
    model.save(str(tmp_path / "own.safetensors"))
    assert (tmp_path / "own.safetensors").read_bytes() == model.to_bytes()
    with pytest.raises(dvbf.FileError, match="cannot be read"):
        dvbf.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError if False else OSError, match="cannot be"):
        model.save(tmp_path / "no" / "folder.safetensors")
    with pytest.raises(dvbf.FormatError, match="truncated"):
        dvbf.Model.from_bytes(b"nothing")


def test_parameters(model):
    raw = model.to_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    for name, values in model.parameters.items():
        begin, end = header[name]["data_offsets"]
        stored = np.frombuffer(raw[8 + size + begin : 8 + size + end], "<f4")
        np.testing.assert_array_equal(values.ravel(), stored)
        assert list(values.shape) == header[name]["shape"]
    assert "emission.mean.h" in model.parameters and "nothing" not in model.parameters
    assert "emission.mean.h" in repr(model.parameters)
    with pytest.raises(KeyError):
        model.parameters["nothing"]


def test_parts(committee, model, linear):
    assert [m.latent for m in committee.members] == [3, 2] and committee.members[0] is committee
    assert repr(committee) == "<dvbf.Model dvbf: x 2, u 1, z 3, 2 members>"
    assert committee.linear is not None and committee.linear.settings["model"] == "linear"
    assert model.linear is None
    assert repr(model) == "<dvbf.Model dvbf: x 2, u 1, z 3>"
    part = committee.linear
    assert set(part.parameters) == set(linear.parameters)
    assert (model.frames, model.columns, model.controls) == (model.settings["initial-frames"], 2, 1)


def test_derivatives(model, linear):
    rng = np.random.default_rng(0)
    for m in (model, linear):
        z, u = rng.normal(size=m.latent).astype(np.float32), rng.normal(size=1).astype(np.float32)
        found = m.linearise(z, u)
        A, B, H = found  # noqa: N806
        assert A.shape == (m.latent, m.latent) and B.shape == (m.latent, 1) and H.shape == (2, m.latent)
        for i in range(m.latent):
            step = np.zeros(m.latent, np.float32)
            step[i] = 1e-2
            up, down = m.linearise(z + step, u), m.linearise(z - step, u)
            np.testing.assert_allclose((up.next - down.next) / 2e-2, A[:, i], atol=2e-2)
            np.testing.assert_allclose((up.x - down.x) / 2e-2, H[:, i], atol=2e-2)
        up, down = m.linearise(z, u + 1e-2), m.linearise(z, u - 1e-2)
        np.testing.assert_allclose((up.next - down.next) / 2e-2, B[:, 0], atol=2e-2)
        many = m.linearise(np.stack([z, z + 1]), np.stack([u, u]))
        np.testing.assert_array_equal(many.A[0], A)
        assert many.H.shape == (2, 2, m.latent)
        assert (m.linearise(z).next != found.next).any()  # u is 0 there
    with pytest.raises(ValueError, match="z has the shape \\[2\\]"):
        model.linearise(np.zeros(2))


def test_evaluation(model, data):
    x, u = data
    found = model.evaluate(x, u, state=x, samples=2, particles=20)
    assert set(found.regressions) == {"state0", "state1"}
    assert found.mse.shape == found.mse_repeat.shape == found.origins.shape == (40 - found.observed,)
    assert (found.origins >= len(x)).all() and found.mse_mean[0] > 0
    assert found.elbo < found.particle_bound and np.isfinite(found.importance_bound)
    assert found.verdict is not None and found.verdict.one_step.learned is not None
    assert found.verdict.free_run.mean.rmse_by_column.shape == (2,)
    assert model.evaluate(x, u, verdict=False).verdict is None
    own = model.evaluate(samples=1)
    assert own.verdict is not None and own.verdict.split == "test"
    assert model.evaluate(samples=1, split="valid").verdict.split == "valid"
    assert dvbf.Model.from_bytes(model.to_bytes()).evaluate(x, u).regressions == {}


def test_verdicts(tmp_path, model, data):
    x, u = data
    assert model.verdict(x, u).columns == ["x0", "x1"]
    own = dvbf.fit(x, u, **SMALL)
    found = own.verdict()
    assert found.split == "test" and isinstance(found.useful, bool) and found.sentence
    assert found.one_step.linear.rmse < found.one_step.mean.rmse  # x is linear
    np.savez(tmp_path / "data.npz", x=x, u=u)
    assert own.to_bytes() == train(tmp_path / "data.npz", tmp_path / "run", verdict=True, **SMALL)
    with pytest.raises(ValueError, match="was loaded from a file"):
        pickle.loads(pickle.dumps(model)).verdict()


def test_reports(tmp_path, model, data):
    x, u = data
    model.report(tmp_path / "own.html", samples=1)
    assert "<html" in (tmp_path / "own.html").read_text()
    with pytest.raises(dvbf.FileError, match="already exists"):
        model.report(tmp_path / "own.html", samples=1)
    model.report(tmp_path / "own.html", x, u, state=x, title="Tanks", force=True, samples=1)
    assert "Tanks" in (tmp_path / "own.html").read_text()


def test_notebooks(model, picture_model):
    for m in (model, picture_model):
        page = m._repr_html_()
        assert "<svg" in page and "latent state" in page and m._repr_html_() == page
    assert "<svg" not in pickle.loads(pickle.dumps(model))._repr_html_()


def test_what_the_library_tells():
    assert dvbf.describe is dvbf.capabilities and dvbf.Abilities is dvbf.Capabilities  # former names
    assert dvbf.Model.judge is dvbf.Model.verdict
    found = dvbf.capabilities()
    assert found.version == dvbf.__version__ and found.cores >= 1 and found.instructions in ("base", "v3", "v4")
    table = {s.name: s for s in dvbf.settings("train")}
    assert table["latent"].default == 3 and table["latent"].kind == "int" and table["search"].default is False
    assert table["learning-rate"].default == 0.004 and "relu" in table["activation"].range
    assert table["latent"].users == () and "dvbf" in table["systems"].users
    assert dvbf.settings("nothing") == []
    assert "pendulum" in dvbf.presets()


def test_nothing_leaks(model, data):
    """Memory does not grow from cycle to cycle."""
    x, u = data
    raw = model.to_bytes()

    def cycles(n):
        for _ in range(n):
            m = dvbf.Model.from_bytes(raw)
            m.filter(x[:1], u[:1], samples=2, threads=1)
            m.online(2).step(x[0, 0])
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = cycles(100)
    assert cycles(300) - before < 3e6


LARGE = """
import resource, sys
import numpy as np
import dvbf
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
megabytes = int(sys.argv[1])
steps = 64
count = megabytes * 1000000 // (4 * 256 * steps)
dvbf.fit(np.random.default_rng(0).random((20, steps, 256), np.float32), updates=1, latent=2, hidden=16, threads=1)
x = np.empty((count, steps, 256), np.float32)
for one in x: one[:] = np.random.default_rng(1).random((steps, 256), np.float32)
before = peak()
dvbf.fit(x, updates=2, validate_every=2, latent=2, hidden=16, threads=1, starts=1)
print((peak() - before) / x.nbytes)
"""


def test_large_arrays_are_not_copied():
    """Peak memory while training on an array, beyond the array itself."""
    run = subprocess.run([sys.executable, "-c", LARGE, "200"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 0.2
