"""The online filter."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _api
from ._arrays import Array, at, to_numpy
from ._library import call, lib
from ._results import Belief, Forecast

if TYPE_CHECKING:
    from ._model import Model


class Online:
    """Follows one system in real time: each step takes an observation and gives the belief about the state. The same
    inputs give the same beliefs. The members of a committee run in parallel."""

    def __init__(self, model: Model, samples: int, seed: int) -> None:
        self._model = model  # it must outlive the filter
        size, filter_ = ctypes.c_size_t(), ctypes.c_void_p()
        call(lib.dvbf_filter_memsize, ctypes.byref(size), model.handle, samples)
        self._memory = np.zeros(size.value + 64, np.uint8)
        start = -self._memory.ctypes.data % 64
        place = self._memory[start:].ctypes.data
        call(lib.dvbf_filter_init, ctypes.byref(filter_), place, size.value, model.handle, samples, seed)
        self.samples = samples
        self._handle = filter_.value
        self._frame: tuple[int, ...] = (model.columns,)
        self._x = np.zeros(model.columns, np.float32)
        self._u = np.zeros(model.controls, np.float32)
        self._belief = _api.dvbf_belief()
        self._views: tuple[Array, Array, Array] | None = None
        # Arguments made in advance: making them takes almost as long as a step.
        self._step = lib.dvbf_filter_step
        self._x_place = ctypes.c_void_p(self._x.ctypes.data)
        self._u_place = ctypes.c_void_p(self._u.ctypes.data if model.controls else None)
        self._filter = ctypes.c_void_p(self._handle)
        self._out = ctypes.byref(self._belief)

    def step(self, x: Any, u: Any = None) -> Belief:
        """Takes x [columns] or [height, width], None if it is missing, with NaN for missing values; and u [controls],
        the control since the previous step. A model with feedthrough takes u of the same step as x."""
        x_place = None
        if x is not None:
            self._put(self._x, x, "x")
            x_place = self._x_place
        u_place = None
        if u is not None:
            self._put(self._u, u, "u")
            u_place = self._u_place
        self._step(self._filter, x_place, u_place, self._out)
        mean, std, z = self._views or self._look()
        return Belief(self._belief.ready, mean.copy(), std.copy(), z.copy())

    def _put(self, to: Array, value: Any, name: str) -> None:
        """Copies an observation; float arrays directly."""
        if type(value) is not np.ndarray or value.dtype.kind != "f":
            value = to_numpy(value, name)
        if value.size != to.size:
            raise ValueError(f"{name} has the shape {list(value.shape)}, but the model takes {to.size} values of it")
        if value.ndim != 1:
            if name == "x" and value.ndim > 1:
                self._frame = value.shape
            value = value.reshape(-1)
        to[:] = value

    def _look(self) -> tuple[Array, Array, Array]:
        """Views of the filter's own arrays, whose addresses do not change."""
        b, real = self._belief, np.float32
        self._views = at(b.mean, (b.n_z,), real), at(b.deviation, (b.n_z,), real), at(b.z, (b.samples, b.n_z), real)
        return self._views

    def predict(
        self,
        u: Any = None,
        *,
        steps: int | None = None,
        quantiles: Sequence[float] = (0.05, 0.5, 0.95),
        noise: bool = True,
    ) -> Forecast:
        """Forecasts the steps after the last one, under controls u [steps, controls] as `step` would take them; a model
        without controls takes `steps` instead. Does not change the filter."""
        n_u, model = self._model.controls, self._model
        controls: Array | None = None
        if n_u:
            if u is None:
                raise ValueError(f"the model has {n_u} controls, so u [steps, {n_u}] is needed; give zeros for no control")
            controls = np.ascontiguousarray(to_numpy(u, "u"), np.float32).reshape(-1, n_u)
            steps = len(controls) if steps is None else steps
            if steps > len(controls):
                raise ValueError(f"steps = {steps}, but u has controls for {len(controls)} steps")
        if steps is None:
            raise ValueError("steps is needed: the number of steps to predict")
        shares = np.asarray(quantiles, np.float64).reshape(-1)
        x, x_std = np.empty((2, steps, model.columns), np.float32)
        z_mean, z_std = np.empty((2, steps, model.latent), np.float32)
        x_quantiles = np.empty((len(shares), steps, model.columns), np.float32)
        ask = _api.dvbf_forecast_request()
        ask.steps, ask.noise_free = steps, not noise
        ask.u = controls.ctypes.data if controls is not None else None
        ask.n_quantiles, ask.quantiles = len(shares), shares.ctypes.data
        ask.x, ask.x_std, ask.x_quantiles = x.ctypes.data, x_std.ctypes.data, x_quantiles.ctypes.data
        ask.z_mean, ask.z_std = z_mean.ctypes.data, z_std.ctypes.data
        call(lib.dvbf_filter_predict, self._handle, ctypes.byref(ask))
        shape = (steps, *self._frame)
        return Forecast(x.reshape(shape), x_std.reshape(shape), x_quantiles.reshape(len(shares), *shape), shares, z_mean, z_std)

    def reset(self) -> None:
        """Forgets all observations: the next step is treated as the first."""
        lib.dvbf_filter_reset(self._handle)
