"""The controller: the online filter and a planner in the state space of a model."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _api
from ._arrays import Array, Floats, at, to_numpy
from ._library import call, lib
from ._results import Belief, Control
from ._settings import Settings

if TYPE_CHECKING:
    from ._model import Model


class Controller:
    """Controls a system: each step takes an observation and gives the control to apply until the next one. The same
    observations give the same controls, unless there is a deadline."""

    def __init__(
        self, model: Model, goal: Any, low: Any, high: Any, goal_z: Any, state: Any, weights: Any, **settings: Any
    ) -> None:
        self._model = model  # it must outlive the controller
        self._settings = Settings("control")
        self._settings.update({"low": _list(low), "high": _list(high), "goal_space": None if state is None else "state", **settings})
        self._kept: list[Array] = []
        wanted = self._goal(goal, goal_z, state, weights)
        size, handle = ctypes.c_size_t(), ctypes.c_void_p()
        arguments = model.handle, ctypes.byref(wanted), self._settings.handle
        call(lib.dvbf_controller_memsize, ctypes.byref(size), *arguments)
        self._memory = np.zeros(size.value + 64, np.uint8)
        place = self._memory[-self._memory.ctypes.data % 64 :].ctypes.data
        call(lib.dvbf_controller_init, ctypes.byref(handle), place, size.value, *arguments)
        self._handle = handle.value
        self._count = wanted.count
        self._out = _api.dvbf_control()

    def step(self, x: Any, u: Any = None) -> Control:
        """Takes x [columns] or [height, width], None if it is missing, with NaN for missing values; and u [controls],
        the control that acted since the previous step, if it was not the one that was given."""
        seen = None if x is None else self._numbers(x, "x", self._model.columns)
        acted = None if u is None else self._numbers(u, "u", self._model.controls)
        lib.dvbf_controller_step(self._handle, _place(seen), _place(acted), ctypes.byref(self._out))
        c, real = self._out, np.float32
        b = c.belief
        belief = Belief(
            b.ready,
            at(b.mean, (c.n_z,), real).copy(),
            at(b.deviation, (c.n_z,), real).copy(),
            at(b.z, (b.samples, c.n_z), real).copy(),
        )
        return Control(
            at(c.u, (c.n_u,), real).copy(),
            c.ready,
            c.reason.decode() if c.reason else None,
            c.cost,
            c.iterations,
            at(c.plan_u, (c.steps, c.n_u), real).copy(),
            at(c.plan_z, (c.steps + 1, c.n_z), real).copy(),
            belief,
        )

    def aim(self, goal: Any = None, *, goal_z: Any = None, state: Any = None, weights: Any = None) -> None:
        """Sets another goal, with as many goals as the first."""
        call(lib.dvbf_controller_aim, self._handle, ctypes.byref(self._goal(goal, goal_z, state, weights)))

    def reset(self) -> None:
        """Forgets all observations and the plan: the next step is treated as the first."""
        lib.dvbf_controller_reset(self._handle)

    @property
    def goal(self) -> Floats:
        """[goals, latent] the goals as latent states."""
        place = lib.dvbf_controller_goal(self._handle)
        return at(place, (self._count, self._model.latent), np.float32).copy()

    def _goal(self, x: Any, z: Any, state: Any, weights: Any) -> Any:
        """state is a pair: goals [goals, columns] and their regression on z, [columns, latent + 1]."""
        out, m = _api.dvbf_goal(), self._model
        self._kept = []
        rows: list[int] = []
        targets, regression = (None, None) if state is None else (state[0], self._keep(state[1], "map"))
        for name, value in (("x", x), ("z", z), ("state", targets)):
            width = {"x": m.columns, "z": m.latent, "state": 0 if regression is None else len(regression)}[name]
            if value is None:
                continue
            numbers = self._keep(value, name)
            if numbers.size == 0 or numbers.size % width:
                raise ValueError(f"the goal {name} has the shape {list(numbers.shape)}, but a goal has {width} values of it")
            rows.append(numbers.size // width)
            setattr(out, name, numbers.ctypes.data)
        if len(set(rows)) > 1:
            raise ValueError(f"there are {rows} goals; give the same number of each kind")
        out.count = rows[0] if rows else 0
        if regression is not None:
            if regression.ndim != 2 or regression.shape[1] != m.latent + 1:
                raise ValueError(f"the regression has the shape {list(regression.shape)}; it must be [columns, {m.latent + 1}]")
            out.map, out.n_s = regression.ctypes.data, len(regression)
        if weights is not None:
            columns = {"x": m.columns, "z": m.latent, "state": out.n_s}[self._settings.text("goal-space")]
            out.weights = self._numbers(weights, "weights", columns, keep=True).ctypes.data
        return out

    def _keep(self, value: Any, name: str) -> Array:
        self._kept.append(np.ascontiguousarray(to_numpy(value, name), np.float32))
        return self._kept[-1]

    def _numbers(self, value: Any, name: str, size: int, keep: bool = False) -> Array:
        numbers = np.ascontiguousarray(to_numpy(value, name), np.float32)
        if numbers.size != size:
            raise ValueError(f"{name} has the shape {list(numbers.shape)}, but the model takes {size} values of it")
        if keep:
            self._kept.append(numbers)
        return numbers


def _list(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) else np.asarray(value, np.float64).reshape(-1).tolist()


def _place(numbers: Array | None) -> int | None:
    return None if numbers is None else numbers.ctypes.data
