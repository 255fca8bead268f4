"""The online filter."""

from __future__ import annotations

import time

import dvbf
import numpy as np
import pytest


def follow(f, x, u, steps=None):
    for t in range(steps or len(x)):
        belief = f.step(x[t], u[t - 1] if t else None)
    return belief


def test_beliefs(data, model):
    x, u = data
    f = model.online(samples=8, seed=3)
    first = f.step(x[0, 0])
    assert not first.ready and first.z.shape == (8, 3)
    f.reset()
    last = follow(f, x[0], u[0])
    assert last.ready and last.mean.shape == (3,) and last.std.shape == (3,)
    np.testing.assert_allclose(last.z.mean(axis=0), last.mean, rtol=1e-5)
    again = model.online(samples=8, seed=3)
    np.testing.assert_array_equal(follow(again, x[0].astype(np.float64), u[0].tolist()).z, last.z)
    follow(f, x[1], u[1], 3)
    assert not (f.step(x[1, 3]).mean == last.mean).all()  # a belief stays as it was


def test_missing_frames(data, model):
    x, u = data
    one, other = model.online(), model.online()
    follow(one, x[0], u[0], 20)
    follow(other, x[0], u[0], 20)
    a = one.step(None, u[0, 19])
    b = other.step(np.full(2, np.nan), u[0, 19])
    np.testing.assert_array_equal(a.z, b.z)


def test_predictions(data, model):
    x, u = data
    f = model.online(samples=400)
    follow(f, x[0], u[0], 30)
    found = f.predict(u[0, 29:39], quantiles=(0.1, 0.5, 0.9))
    wanted = model.predict(x[:1], u[:1], observe=30, steps=10, samples=400)
    assert found.x.shape == (10, 2) and found.x_quantiles.shape == (3, 10, 2) and found.z_mean.shape == (10, 3)
    assert np.abs(found.x - wanted.x[0]).max() < 5 * wanted.x_std.max() / 10
    assert (found.x_quantiles[0] <= found.x_quantiles[1]).all()
    np.testing.assert_array_equal(found.x, f.predict(u[0, 29:39]).x)
    assert (f.predict(u[0, 29:39], noise=False).x_std <= found.x_std).all()
    assert f.predict(u[0, 29:39], steps=2).x.shape == (2, 2)


def test_a_committee(data, committee):
    x, u = data
    f = committee.online(samples=8)
    belief = follow(f, x[0], u[0], 30)
    assert belief.ready
    assert f.predict(u[0, 29:32]).x.shape == (3, 2)


def test_a_linear_model(data, linear):
    x, u = data
    f = linear.online()
    follow(f, x[0], u[0], 30)
    wanted = linear.predict(x[:1], u[:1], observe=30, steps=5)
    found = f.predict(u[0, 29:35])
    np.testing.assert_allclose(found.x[:4], wanted.x[0, :4], atol=1e-4)
    np.testing.assert_allclose(found.x_quantiles[:, :4], wanted.x_quantiles[:, 0, :4], atol=1e-4)


def test_images(images, picture_model):
    f = picture_model.online()
    for t in range(8):
        f.step(images[0, t] / 255)
    assert f.predict(steps=3).x.shape == (3, 4, 4)


def test_what_is_refused(data, model, picture_model):
    x, u = data
    f = model.online()
    with pytest.raises(dvbf.ArgumentError, match="no belief yet"):
        f.predict(u[0, :3])
    with pytest.raises(ValueError, match="x has the shape \\[3\\], but the model takes 2 values"):
        f.step(np.zeros(3))
    with pytest.raises(TypeError, match="instead of numbers"):
        f.step(np.array(["a", "b"]))
    follow(f, x[0], u[0])
    with pytest.raises(ValueError, match="so u \\[steps, 1\\] is needed"):
        f.predict(steps=3)
    with pytest.raises(ValueError, match="u has controls for 2"):
        f.predict(u[0, :2], steps=3)
    with pytest.raises(ValueError, match="steps is needed"):
        picture_model.online().predict()
    with pytest.raises(dvbf.ArgumentError, match="quantile 2"):
        f.predict(u[0, :2], quantiles=[2])
    with pytest.raises(dvbf.ArgumentError, match="samples = 0"):
        model.online(samples=0)


def test_a_step_is_cheap(data, model):
    """What Python adds to a step: at most 10 microseconds where the machine is free."""
    x, u = data
    f = model.online()
    follow(f, x[0], u[0])
    frame, control = x[0, 3].copy(), u[0, 3].copy()

    def best(step):
        times = []
        for _ in range(30):
            start = time.perf_counter()
            for _ in range(200):
                step()
            times.append((time.perf_counter() - start) / 200)
        return min(times)

    bare = best(lambda: f._step(f._filter, f._x_place, f._u_place, f._out))
    added = best(lambda: f.step(frame, control)) - bare
    print(f"a step takes {1e6 * bare:.1f} microseconds, and {1e6 * added:.1f} more in Python")
    assert added < 30e-6
