"""The habits of scikit-learn."""

from __future__ import annotations

import math

import dvbf
import numpy as np
import pytest
from conftest import SMALL


def clone(estimator):
    """As scikit-learn does it."""
    given = estimator.get_params(deep=False)
    other = type(estimator)(**given)
    assert all(other.get_params()[name] is value for name, value in given.items())
    return other


def test_parameters():
    e = dvbf.Dvbf(latent=4, hidden=16, random_state=2)
    assert e.get_params() == {"latent": 4, "preset": None, "random_state": 2, "verbose": None, "hidden": 16}
    assert e.set_params(hidden=8, learning_rate=0.01) is e and e.hidden == 8
    assert clone(e).get_params() == e.get_params()
    assert repr(e) == "Dvbf(latent=4, random_state=2, hidden=8, learning_rate=0.01)"
    with pytest.raises(ValueError, match="no parameter 'hiden'"):
        dvbf.Dvbf(hiden=3)


def test_an_estimator(data):
    x, u = data
    e = dvbf.Dvbf(latent=3, random_state=1, **SMALL)
    with pytest.raises(AttributeError, match="not fitted"):
        e.transform(x, u)
    assert e.fit(x, u=u, state=x) is e and e.n_features_in_ == 2
    assert e.model_ == dvbf.fit(x, u, latent=3, seed=1, **SMALL)
    z = e.transform(x, u)
    assert z.shape == (30, 40, 3)
    np.testing.assert_array_equal(z, e.fit_transform(x, u=u))
    assert e.predict(x[:, :30], u, steps=5).x.shape == (30, 5, 2)
    assert -10 < e.score(x, u=u) <= 1


def test_smoothers_transform_too(data):
    x, u = data
    e = dvbf.Dvbf(model="dkf", latent=2, search=False, updates=2, threads=1, hidden=8).fit(x, u=u)
    assert e.transform(x[:3], u[:3]).shape == (3, 40, 2)


def test_scores_that_are_unknown():
    x = np.random.default_rng(0).random((20, 1, 3), np.float32)
    e = dvbf.Dvbf(model="vae", latent=2, updates=2, threads=1).fit(x)
    assert math.isnan(e.score(x))
