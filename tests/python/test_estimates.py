"""What a model finds: as the command does, in whatever shape the data come."""

from __future__ import annotations

import dvbf
import numpy as np
import pytest
from conftest import command


@pytest.fixture(scope="module")
def files(tmp_path_factory, data, model, committee):
    folder = tmp_path_factory.mktemp("files")
    x, u = data
    np.savez(folder / "data.npz", x=x, u=u)
    model.save(folder / "model.safetensors")
    committee.save(folder / "committee.safetensors")
    return folder


def asked(files, name, which, *flags):
    out = files / f"{name}.npz"
    command(name, files / f"{which}.safetensors", files / "data.npz", "-o", out, "--force", "--quiet", *flags)
    with np.load(out) as found:
        return dict(found)


ORIGIN = {"x_true", "sequence", "step", "split", "time", "time_unit", "sample_time", "name", "x_names", "u_names"}


def expect(found, wanted):
    arrays = {"z", "z_mean", "z_std", "x", "x_std", "x_quantiles", "quantiles", "x_samples", "u", "length"}
    assert set(wanted) <= arrays | ORIGIN
    for name, values in wanted.items():
        if name not in ORIGIN:
            np.testing.assert_array_equal(getattr(found, name), values, name)


def test_origin_as_the_command(files, model):
    wanted = asked(files, "predict", "model", "--observe=6", "--steps=3")
    found = model.predict(files / "data.npz", observe=6, steps=3)
    expect(found, wanted)
    np.testing.assert_array_equal(found.origin.sequence, wanted["sequence"])
    np.testing.assert_array_equal(found.origin.step, wanted["step"])
    np.testing.assert_array_equal(found.origin.x_true, wanted["x_true"])
    assert found.origin.split == str(wanted["split"]) == "test"


def test_forecast_follows_the_file(files, data, model):
    x, u = data
    found = model.predict(files / "data.npz", from_end=True, steps=4, controls="hold")
    assert found.origin.split == "all" and (found.origin.step == x.shape[1]).all()
    np.testing.assert_array_equal(found.x, model.predict(x, u, steps=4, controls="hold").x)
    assert np.isnan(found.origin.x_true).all()
    with pytest.raises(ValueError, match="from_end is for files"):
        model.predict(x, u, from_end=True, steps=4)


@pytest.mark.parametrize("which", ["model", "committee"])
def test_as_the_command(files, data, model, committee, which):
    x, u = data
    m = {"model": model, "committee": committee}[which]
    expect(m.filter(x, u, samples=5, seed=2), asked(files, "filter", which, "--split=all", "--samples=5", "--seed=2"))
    expect(
        m.filter(x, u, samples=5, forecast=True, x_samples=True),
        asked(files, "filter", which, "--split=all", "--samples=5", "--forecast=on", "--x-samples=on"),
    )
    expect(
        m.smooth(x[:4], u[:4], samples=3, particles=10) if which == "none" else m.smooth(x, u, samples=3, particles=10),
        asked(files, "smooth", which, "--split=all", "--samples=3", "--particles=10"),
    )
    expect(
        m.predict(x, u, observe=25, steps=10, samples=20, quantiles=(0.1, 0.9)),
        asked(files, "predict", which, "--split=all", "--observe=25", "--steps=10", "--samples=20", "--quantiles=0.1,0.9"),
    )
    expect(m.predict(files / "data.npz", observe=25), asked(files, "predict", which, "--observe=25"))
    expect(m.filter(x, u, split="test"), asked(files, "filter", which))


def test_samples(files, model):
    out = files / "sample.npz"
    command("sample", files / "model.safetensors", "-o", out, "--count=4", "--steps=9", "--force", "--quiet")
    with np.load(out) as wanted:
        np.testing.assert_array_equal(model.sample(4, steps=9).x, wanted["x"])
    assert model.sample(2, steps=3, noise=True, controls="zero").x_samples.shape == (2, 1, 3, 2)


def test_samples_go_on(data, model):
    x, u = data
    found = model.sample(3, steps=4, x=x, u=u, observe=30)
    assert found.first == 30 and found.x.shape == (3, 4, 2)


def test_shapes(data, model):
    x, u = data
    one = model.filter(x[0], u[0])
    assert one.z_mean.shape == (1, 40, 3) and one.z.shape == (1, 100, 40, 3)
    np.testing.assert_array_equal(one.x, model.filter(x[:1], u[:1]).x)
    np.testing.assert_array_equal(one.x, model.filter([x[0]], [u[0]]).x)
    many = model.filter([x[0], x[1, :30]], [u[0], u[1, :30]])
    assert many.x.shape == (2, 40, 2) and list(many.length) == [40, 30]
    assert (many.x[1, 30:] == 0).all()
    assert (one.x_quantiles, one.quantiles, one.x_samples) == (None, None, None)


def test_images(images, picture_model):
    found = picture_model.filter(images)
    assert found.x.shape == (12, 10, 4, 4)
    np.testing.assert_array_equal(picture_model.filter(images[0]).x[0].shape, (10, 4, 4))
    assert picture_model.predict(images, steps=3).x_quantiles.shape == (3, 12, 3, 4, 4)


def test_what_follows(data, model):
    x, u = data
    seen, steps = x[:, :30], 8
    found = model.predict(seen, u, steps=steps, samples=40)
    wanted = model.predict(x, u, observe=30, steps=steps, samples=40)
    np.testing.assert_array_equal(found.x_quantiles, wanted.x_quantiles)
    np.testing.assert_array_equal(found.u, wanted.u)
    assert found.first == 30 and found.x.shape == (30, 8, 2)
    assert list(found.quantiles) == [0.05, 0.5, 0.95]
    short = model.predict(seen, u[:, : 30 + steps - 1], steps=steps, samples=40)  # the last control does not matter
    np.testing.assert_array_equal(short.x, wanted.x)
    held = model.predict(seen, u[:, :29], steps=steps, controls="hold")
    assert held.x.shape == (30, 8, 2)
    assert model.predict(x[0, :30], u[0], steps=2, quantiles=None).x_quantiles is None


def test_what_follows_sequences_of_different_lengths(data, model):
    x, u = data
    lengths = [30, 25, 30]
    found = model.predict([x[i, :n] for i, n in enumerate(lengths)], [u[i, : n + 6] for i, n in enumerate(lengths)], steps=6)
    assert found.x.shape == (3, 6, 2) and found.x_quantiles.shape == (3, 3, 6, 2)
    alone = model.predict(x[1, :25], u[1, :31], steps=6)
    np.testing.assert_array_equal(found.x[1], alone.x[0])


def test_what_is_needed(data, model):
    x, u = data
    with pytest.raises(ValueError, match="give steps"):
        model.predict(x, u)
    with pytest.raises(dvbf.ArgumentError, match="controls are needed for 44 steps"):
        model.predict(x, u, steps=5)
    with pytest.raises(ValueError, match="so u is needed"):
        model.filter(x)
    with pytest.raises(ValueError, match="u has 2 sequences, but x has 1"):
        model.predict(x[0], [u[0], u[1]], steps=5)
    with pytest.raises(ValueError, match="x has the shape \\[30, 40, 3\\], but the model has 2 columns"):
        model.filter(np.zeros((30, 40, 3)), u)
    with pytest.raises(ValueError, match="must be a list of"):
        model.filter([x[0], x[1]], u)


def test_controls_are_not_for_all(images, picture_model):
    with pytest.raises(ValueError, match="no controls"):
        picture_model.filter(images, np.zeros((12, 10, 1)))


def test_missing_values(data, model):
    x, u = data
    x = x.copy()
    x[:, 12] = np.nan
    x[:, 20:25, 1] = np.nan
    found = model.filter(x, u)
    assert np.isfinite(found.x).all()
    masked = np.ma.masked_invalid(x)
    np.testing.assert_array_equal(model.filter(masked, u).x, found.x)
    with pytest.raises(dvbf.FormatError, match="u is nan"):
        model.filter(x, np.full_like(u, np.nan))
