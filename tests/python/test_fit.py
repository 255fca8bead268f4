"""Training: the same bytes as the command, whatever the data come as."""

from __future__ import annotations

import logging

import dvbf
import numpy as np
import pytest
from conftest import SMALL, toy, train


def gaps(x):
    x = x.copy()
    x[3, 5] = np.nan
    x[7, 2:9, 1] = np.nan
    return x


def same(tmp_path, arrays, settings, flags=None, **given):
    """Writes the arrays into a file, and compares the model of the command with that of `fit`."""
    np.savez(tmp_path / "data.npz", **arrays)
    model = dvbf.fit(given.pop("x", arrays["x"]), given.pop("u", arrays.get("u")), **settings, **given)
    assert model.to_bytes() == train(tmp_path / "data.npz", tmp_path / "run", **settings, **(flags or {}))
    return model


def test_same_bytes(tmp_path, data):
    x, u = data
    model = same(tmp_path, {"x": x, "u": u}, {"latent": 3, **SMALL})
    assert model.latent == 3 and model.updates == 20


def test_same_bytes_with_search(tmp_path):
    x, u = toy(8, 30)
    settings = SMALL | {"search": True, "candidates": 2, "members": 2, "updates": 5}
    same(tmp_path, {"x": x, "u": u}, settings)


def test_same_bytes_of_a_linear_model(tmp_path, data):
    x, u = data
    assert same(tmp_path, {"x": x, "u": u}, {"model": "linear"}).settings["model"] == "linear"


def test_same_bytes_with_gaps_and_state(tmp_path, data):
    x, u = data
    state = x[..., :1].astype(np.float64)
    same(tmp_path, {"x": gaps(x), "u": u, "state": state}, SMALL, {"missing": "nan"}, state=state)


def test_same_bytes_of_doubles_and_of_bytes(tmp_path, data, images):
    x, u = data
    same(tmp_path, {"x": x.astype(np.float64), "u": u[:, :-1]}, SMALL)
    (tmp_path / "images").mkdir()
    same(tmp_path / "images", {"x": images}, {"updates": 5, "latent": 2, "threads": 1})


def test_same_bytes_of_a_list(tmp_path, data):
    x, u = data
    xs, us = [x[i, : 40 - i % 3] for i in range(20)], [u[i, : 40 - i % 3] for i in range(20)]
    arrays = {f"{i}/x": one for i, one in enumerate(xs)} | {f"{i}/u": one for i, one in enumerate(us)}
    np.savez(tmp_path / "data.npz", **arrays)
    bytes_ = train(tmp_path / "data.npz", tmp_path / "run", **SMALL)
    assert dvbf.fit(xs, us, **SMALL).to_bytes() == bytes_
    assert dvbf.fit(arrays, **SMALL).to_bytes() == bytes_
    assert dvbf.fit(tmp_path / "data.npz", **SMALL).to_bytes() == bytes_
    assert dvbf.fit(xs, us, memory=0, **SMALL).to_bytes() == bytes_  # read where they lie


def test_a_recording(tmp_path):
    x, u = toy(1, 400)
    model = same(tmp_path, {"x": x[0], "u": u[0]}, SMALL)
    assert model.settings["window"] == 100
    y = dvbf.fit(x[0, :, 0], u[0, :, 0], **SMALL)
    assert (y.columns, y.controls) == (1, 1)


def test_presets_configs_and_seeds(tmp_path, data):
    x, _ = data
    x = np.repeat(np.clip(x, 0, 1), 8, axis=2)
    np.savez(tmp_path / "data.npz", x=x)
    (tmp_path / "own.txt").write_text("hidden = 8\nupdates = 10\n")
    model = dvbf.fit(x, preset="pendulum", config=tmp_path / "own.txt", random_state=5, threads=1)
    assert model.settings["seed"] == 5 and model.settings["hidden"] == 8 and not model.choices
    flags = {"preset": "pendulum", "config": tmp_path / "own.txt", "seed": 5, "threads": 1}
    assert model.to_bytes() == train(tmp_path / "data.npz", tmp_path / "run", **flags)


def test_random_states(data):
    x, u = data
    settings = SMALL | {"updates": 1}
    seeds = [np.random.RandomState(3), np.random.default_rng(3), np.int64(3)]
    found = [dvbf.fit(x, u, random_state=seed, **settings).settings["seed"] for seed in seeds]
    assert found[2] == 3 and found[0] != found[1]


def test_run_folders(tmp_path, data):
    x, u = data
    calls = []

    def stop(p):
        calls.append(p)
        return not p.validated

    settings = {"latent": 3, "validate_every": 5, **SMALL}
    whole = dvbf.fit(x, u, **settings)
    part = dvbf.fit(x, u, run_folder=tmp_path / "run", callback=stop, **settings)
    assert part.interrupted and part.updates == 5 and calls[-1].update == 5
    with pytest.raises(dvbf.FileError, match="already exists"):
        dvbf.fit(x, u, run_folder=tmp_path / "run", **settings)
    rest = dvbf.fit(x, u, run_folder=tmp_path / "run", resume=True)
    assert rest == whole and not rest.interrupted
    assert dvbf.load(tmp_path / "run") == whole
    again = dvbf.fit(x, u, run_folder=tmp_path / "run", force=True, **settings | {"updates": 1})
    assert again.updates == 1


def test_progress_is_told(data, caplog, capsys):
    x, u = data
    heard = []
    with caplog.at_level(logging.INFO, logger="dvbf"):
        model = dvbf.fit(x, u, callback=heard.append, verbose=True, validate_every=5, **SMALL)
    assert [p.update for p in model.history] == [5, 10, 15, 20] == [p.update for p in heard if p.validated]
    assert all(np.isfinite(p.valid_bound) for p in model.history)
    assert {c.name for c in model.choices} >= {"x-scaling", "u-scaling"}
    assert all(c.why for c in model.choices)
    assert any("x-scaling = standardise" in message for message in caplog.messages)
    assert "20/20" in capsys.readouterr().err


def test_odd_data_are_remarked(data, caplog):
    x, u = data
    x = np.concatenate([x, np.full_like(x[..., :1], 3)], axis=2)
    with caplog.at_level(logging.WARNING, logger="dvbf"):
        model = dvbf.fit(x, u, **SMALL | {"updates": 1})
    assert any("is constant" in sentence for sentence in model.warnings) and caplog.messages == model.warnings


def test_failures_of_callbacks_are_raised(data):
    x, u = data

    def fail(p):
        raise RuntimeError("of the user")

    with pytest.raises(RuntimeError, match="of the user"):
        dvbf.fit(x, u, callback=fail, **SMALL)


def test_wrong_settings(data):
    x, u = data
    with pytest.raises(dvbf.ArgumentError, match="latent = 0: must be a whole number in"):
        dvbf.fit(x, u, latent=0)
    with pytest.raises(ValueError, match="did you mean hidden"):
        dvbf.fit(x, u, hiden=3)
    with pytest.raises(dvbf.ArgumentError, match="no such preset"):
        dvbf.fit(x, u, preset="pendulums")
    with pytest.raises(dvbf.ArgumentError, match="does not use this setting"):
        dvbf.fit(x, u, model="dkf", systems=4)
    with pytest.raises(dvbf.FileError, match="cannot be read"):
        dvbf.fit(x, u, config="nowhere.txt")
    with pytest.raises(dvbf.FileError, match="cannot be read"):
        dvbf.fit("nowhere.npz")


def test_simulated_data():
    found = dvbf.simulate("pendulum", train=20, valid=5, test=5, steps=6, size=4)
    assert found["train/x"].shape == (20, 6, 4, 4) and found["test/state"].shape[:2] == (5, 6)
    model = dvbf.fit(found, updates=2, threads=1)
    assert model.evaluate(samples=1).regressions
    assert model.filter(found).x.shape == (5, 6, 4, 4)
