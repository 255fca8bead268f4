"""An estimator in the style of scikit-learn, without depending on it."""

from __future__ import annotations

from typing import Any

from ._arrays import Data, Floats
from ._fit import fit
from ._model import Model
from ._results import Estimates
from ._settings import table


class Dvbf:
    """An estimator: parameters in the constructor, `fit`, then `transform`, `predict` and `score`.

    Parameters are the settings of `dvbf train`, with underscores, and `preset`, `random_state` and `verbose`. `model_` is
    the trained `Model`.
    """

    _own = ("preset", "random_state", "verbose")

    def __init__(
        self,
        latent: int | None = None,
        *,
        preset: str | None = None,
        random_state: Any = None,
        verbose: bool | None = None,
        **settings: Any,
    ) -> None:
        self._names = ["latent", *self._own]
        self.latent = latent
        self.preset = preset
        self.random_state = random_state
        self.verbose = verbose
        self.set_params(**settings)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The main parameters and those that were given."""
        return {name: getattr(self, name) for name in self._names}

    def set_params(self, **params: Any) -> Dvbf:
        known = {setting.name.replace("-", "_") for setting in table("train")}
        for name, value in params.items():
            if name not in known and name not in self._own:
                raise ValueError(
                    f"Dvbf has no parameter {name!r}; choose one of dvbf.settings('train') or {', '.join(self._own)}"
                )
            if name not in self._names:
                self._names.append(name)
            setattr(self, name, value)
        return self

    def fit(self, X: Data, y: Any = None, *, u: Data = None, state: Data = None) -> Dvbf:  # noqa: N803
        """X as `dvbf.fit` takes it; y is ignored."""
        self.model_: Model = fit(X, u, state=state, **self.get_params())
        self.n_features_in_ = self.model_.columns
        return self

    def _model(self) -> Model:
        if not hasattr(self, "model_"):
            raise AttributeError("this Dvbf is not fitted yet; call fit")
        return self.model_

    def transform(self, X: Data, u: Data = None) -> Floats:  # noqa: N803
        """Means of the latent states [N, T, latent] given the frames up to each step, or given all frames if the model
        cannot filter."""
        model = self._model()
        settings = model.settings
        found = model.smooth(X, u) if settings["model"] == "dkf" else model.filter(X, u)
        return found.z_mean

    def fit_transform(self, X: Data, y: Any = None, *, u: Data = None, state: Data = None) -> Floats:  # noqa: N803
        return self.fit(X, y, u=u, state=state).transform(X, u)

    def predict(self, X: Data, u: Data = None, **options: Any) -> Estimates:  # noqa: N803
        """As `Model.predict`."""
        return self._model().predict(X, u, **options)

    def score(self, X: Data, y: Any = None, *, u: Data = None) -> float:  # noqa: N803
        """R² of one-step forecasts: 1 is perfect, 0 is as good as the mean."""
        found = self._model().verdict(X, u).one_step
        if found.learned is None or found.mean is None:
            return float("nan")
        return 1 - (found.learned.rmse / found.mean.rmse) ** 2

    def __repr__(self) -> str:
        given = {name: value for name, value in self.get_params().items() if value is not None}
        return "Dvbf(" + ", ".join(f"{name}={value!r}" for name, value in given.items()) + ")"
