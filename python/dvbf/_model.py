"""Trained models: files, estimates, evaluation, export."""

from __future__ import annotations

import ctypes
import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from . import _api
from ._arrays import Array, Data, Floats, shaped, to_numpy, view
from ._control import Controller
from ._data import Sequences, for_model, is_named, origin_of
from ._judge import evaluation_of, exported_of, verdict_of
from ._library import call, create, free_with, lib, run
from ._online import Online
from ._picture import picture
from ._results import Choice, Estimates, Evaluation, Exported, Linearisation, Progress, Verdict
from ._settings import Settings

log = logging.getLogger("dvbf")


class Parameters(Mapping[str, Floats]):
    """Weights of a model by name, as copies [rows, columns]."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._shapes: dict[str, tuple[int, int]] = {}
        info = _api.dvbf_parameter_info()
        while lib.dvbf_model_parameter(model.handle, len(self._shapes), ctypes.byref(info)):
            self._shapes[info.name.decode()] = (info.rows, info.columns)

    def __getitem__(self, name: str) -> Floats:
        out = np.empty(self._shapes[name], np.float32)
        call(lib.dvbf_model_weights, self._model.handle, name.encode(), out.ctypes.data, out.size)
        return out

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: {list(shape)}" for name, shape in self._shapes.items()) + "}"


class Model:
    """A trained model, made by `fit` or `load`.

    Methods take x as an array [N, T, columns] or [N, T, height, width], one recording [T, ...], or a list of such
    recordings of different lengths; NaN is a missing value. u[t] acts between x[t] and x[t+1] and may be one step
    shorter than x. They also take the path of a data file, or a mapping of named arrays. The first axis of results is
    always the sequence: [N, T, ...], even for a single recording.
    """

    def __init__(self, handle: int, owner: object = None) -> None:
        self.handle = handle
        self._owner = owner  # the model that frees this one, if it is a part of it
        if owner is None:
            free_with(self, lib.dvbf_model_free, handle)
        self._info: _api.dvbf_model_info = lib.dvbf_model_describe(handle)
        self._data: Sequences | None = None
        self._image: str | None = None
        self.warnings: list[str] = []  #: warnings about the data, after `fit`
        self.choices: list[Choice] = []  #: settings chosen from the data, after `fit`
        self.history: list[Progress] = []  #: one entry for each validation, after `fit`
        self.interrupted = False  #: training ended early

    # ---- Description ----

    @property
    def remarks(self) -> list[str]:
        """Former name of `warnings`, removed in the next release."""
        return self.warnings

    @property
    def columns(self) -> int:
        """Columns of x; pixels of an image."""
        return self._info.n_x

    @property
    def controls(self) -> int:
        """Columns of u."""
        return self._info.n_u

    @property
    def latent(self) -> int:
        """Dimension of the latent state."""
        return self._info.n_z

    @property
    def frames(self) -> int:
        """Steps to observe before the model can predict."""
        return self._info.frames

    @property
    def updates(self) -> int:
        return self._info.updates

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by name."""
        return self._settings().values()

    def _settings(self) -> Settings:
        return Settings("train", lib.dvbf_model_settings(self.handle), self)

    @property
    def parameters(self) -> Parameters:
        """Weights by name."""
        return Parameters(self)

    @property
    def members(self) -> list[Model]:
        """Members of a committee, the best one first; for a single model, the model itself."""
        others = range(1, self._info.members)
        return [self, *(Model(lib.dvbf_model_member(self.handle, i), self) for i in others)]

    @property
    def linear(self) -> Model | None:
        """The best linear model of the same data; None if unknown."""
        found = lib.dvbf_model_linear(self.handle)
        return Model(found, self) if found else None

    def __repr__(self) -> str:
        kind = self._settings().text("model")
        members = f", {self._info.members} members" if self._info.members > 1 else ""
        return f"<dvbf.Model {kind}: x {self.columns}, u {self.controls}, z {self.latent}{members}>"

    def _repr_html_(self) -> str:
        if self._image is None:
            self._image = picture(self, self._data)
        rows = {
            "model": self._settings().text("model"),
            "columns of x": self.columns,
            "controls": self.controls,
            "latent state": self.latent,
            "members": self._info.members,
            "parameters": self._info.parameters,
            "updates": self.updates,
        }
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        return f"<div><table>{cells}</table>{self._image}</div>"

    # ---- Files, bytes, copies ----

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a safetensors file, called model.safetensors if the path is a folder."""
        target = os.fspath(path)
        if os.path.isdir(target):
            target = os.path.join(target, _api.DVBF_RUN_MODEL)
        call(lib.dvbf_model_save, self.handle, os.fsencode(target))

    def to_bytes(self) -> bytes:
        """The content of such a file."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        call(lib.dvbf_model_to_bytes, ctypes.byref(data), ctypes.byref(size), self.handle)
        out = ctypes.string_at(data.value or 0, size.value)
        lib.dvbf_bytes_free(data)
        return out

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        return cls(create(lib.dvbf_model_from_bytes, data, len(data)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Model.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and (self is other or self.to_bytes() == other.to_bytes())

    def __hash__(self) -> int:
        return hash(self.handle)

    # ---- Data ----

    def _how(self, split: str | None, from_file: bool) -> Settings:
        """Settings for reading data as in training; arrays need no column names."""
        how = Settings("data")
        how.take(self._settings())
        if split == "all":
            how.set("split-by", "none")
        for name in ("outputs", "inputs", "states", "mask-key", "length-key"):
            if not from_file:
                how.set(name, "")
        return how

    def _sequences(
        self, x: Data, u: Data, state: Data, settings: Settings, split: str | None
    ) -> tuple[Sequences, _api.dvbf_sequences, tuple[int, ...]]:
        named = is_named(x)
        from_end = settings.table == "predict" and settings.text("from") == "end"
        split = split or ("test" if named and not from_end else "all")
        settings.set("split", split)
        how = self._how(split, named)
        if from_end:
            how.set("missing", "nan")
        data, inner = for_model(x, u, state, self.columns, self.controls, how)
        return data, data.split(settings), inner

    def _estimate(self, settings: Settings, data: Sequences | None, sequences: Any, inner: tuple[int, ...]) -> Estimates:
        """Runs dvbf_estimate into NumPy arrays."""
        source = ctypes.byref(sequences) if sequences is not None else None

        def work() -> Estimates:
            assert data is None or data.handle  # must live as long as the work, which Ctrl-C may leave behind
            e = _api.dvbf_estimates()
            call(lib.dvbf_estimates_sizes, ctypes.byref(e), self.handle, source, settings.handle)
            arrays = _allocate(e, settings, inner)
            for name, array in arrays.items():
                setattr(e, name, array.ctypes.data)
            begin = np.zeros(e.count, np.uint32)
            e.begin = begin.ctypes.data
            call(lib.dvbf_estimate_into, ctypes.byref(e), self.handle, source, settings.handle)
            found: dict[str, Any] = {name: arrays.get(name) for name in _OPTIONAL}
            found.update({name: array for name, array in arrays.items() if name not in _OPTIONAL})
            origin = origin_of(data, sequences, begin, found["x"].shape) if data and not data.arrays else None
            return Estimates(**found, first=e.first, origin=origin)

        result: Estimates = run(work, settings.stoppable())
        return result

    # ---- Estimates ----

    def filter(
        self,
        x: Data,
        u: Data = None,
        *,
        samples: int | None = None,
        particles: int | None = None,
        forecast: bool | None = None,
        x_samples: bool | None = None,
        seed: int | None = None,
        threads: int | None = None,
        split: str | None = None,
    ) -> Estimates:
        """States at each step given the frames up to it. With `forecast`, the one-step forecast of x from the previous
        steps. With `particles`, by a particle filter."""
        settings = Settings("filter")
        settings.update(
            {
                "samples": samples,
                "particles": particles,
                "forecast": forecast,
                "x-samples": x_samples,
                "seed": seed,
                "threads": threads,
            }
        )
        data, sequences, inner = self._sequences(x, u, None, settings, split)
        return self._estimate(settings, data, sequences, inner)

    def smooth(
        self,
        x: Data,
        u: Data = None,
        *,
        samples: int | None = None,
        particles: int | None = None,
        seed: int | None = None,
        threads: int | None = None,
        split: str | None = None,
    ) -> Estimates:
        """States at each step given all frames, by a particle smoother; samples of z are joint paths."""
        settings = Settings("smooth")
        settings.update({"samples": samples, "particles": particles, "seed": seed, "threads": threads})
        data, sequences, inner = self._sequences(x, u, None, settings, split)
        return self._estimate(settings, data, sequences, inner)

    def predict(
        self,
        x: Data,
        u: Data = None,
        *,
        steps: int | None = None,
        observe: int | None = None,
        quantiles: Sequence[float] | None = (0.05, 0.5, 0.95),
        samples: int | None = None,
        noise: bool | None = None,
        x_samples: bool | None = None,
        controls: str | None = None,
        seed: int | None = None,
        threads: int | None = None,
        split: str | None = None,
        from_end: bool = False,
    ) -> Estimates:
        """Forecasts with quantiles.

        Without `observe`, all of x is observed and the next `steps` steps are predicted, under the part of u after x or
        under `controls` ("zero", "hold" or "random"). With `observe`, the first steps of x are observed and the next
        `steps` predicted, by default all others. Files are treated in the second way, or with `from_end` in the first:
        predictions start after the last known x of each sequence, under the u that the file contains beyond it.
        """
        settings = Settings("predict")
        settings.update(
            {
                "observe": observe,
                "steps": steps,
                "samples": samples,
                "noise": noise,
                "x-samples": x_samples,
                "controls": controls,
                "seed": seed,
                "threads": threads,
            }
        )
        settings.set("quantiles", ",".join(repr(float(q)) for q in quantiles) if quantiles else "none")
        if from_end:
            if not is_named(x):
                raise ValueError("from_end is for files; for arrays leave out both from_end and observe")
            settings.set("from", "end")
        if observe is not None or is_named(x):
            data, sequences, inner = self._sequences(x, u, None, settings, split)
            return self._estimate(settings, data, sequences, inner)
        if steps is None:
            raise ValueError("give steps, the number of steps to predict after x, or observe, to predict x itself")
        return self._predict_on(x, u, settings)

    def _predict_on(self, x: Data, u: Data, settings: Settings) -> Estimates:
        """Forecasts after the end of x. Sequences of the same length are predicted together."""
        flat, inner = shaped(x, self.columns, "x")
        seen = list(flat)
        controls = list(shaped(u, self.controls, "u")[0]) if u is not None and self.controls else None
        if controls is not None and len(controls) != len(seen):
            raise ValueError(f"u has {len(controls)} sequences, but x has {len(seen)}")
        groups: dict[tuple[int, int], list[int]] = {}
        for i, one in enumerate(seen):
            groups.setdefault((len(one), len(controls[i]) if controls else 0), []).append(i)
        parts: list[tuple[list[int], Estimates]] = []
        for (length, known), group in groups.items():
            room = max(length, known)
            padded = np.zeros((len(group), room, self.columns), np.result_type(*[seen[i] for i in group]))
            for to, i in enumerate(group):
                padded[to, :length] = seen[i]
            future = None if u is None else np.stack([controls[i] for i in group]) if controls else u
            settings.set("observe", length)
            data, sequences, _ = self._sequences(padded, future, None, settings, "all")
            parts.append((group, self._estimate(settings, data, sequences, inner)))
        return parts[0][1] if len(parts) == 1 else _merge(parts, len(seen))

    def sample(
        self,
        count: int | None = None,
        *,
        steps: int | None = None,
        x: Data = None,
        u: Data = None,
        observe: int | None = None,
        noise: bool | None = None,
        controls: str | None = None,
        seed: int | None = None,
        threads: int | None = None,
        split: str | None = None,
    ) -> Estimates:
        """Samples sequences from the prior or, with x, continuations of its first steps."""
        settings = Settings("sample")
        settings.update(
            {
                "count": count,
                "steps": steps,
                "observe": observe,
                "noise": noise,
                "controls": controls,
                "seed": seed,
                "threads": threads,
            }
        )
        if x is None:
            return self._estimate(settings, None, None, (self.columns,))
        data, sequences, inner = self._sequences(x, u, None, settings, split)
        return self._estimate(settings, data, sequences, inner)

    # ---- Evaluation ----

    def _known(
        self, x: Data, u: Data, state: Data, settings: Settings, split: str | None
    ) -> tuple[Sequences, _api.dvbf_sequences | None]:
        """The given data, or those of `fit`."""
        if x is not None:
            data, sequences, _ = self._sequences(x, u, state, settings, split)
            return data, sequences
        if self._data is None:
            raise ValueError("this model was loaded from a file; give x, and u if it has controls")
        if split is not None:
            settings.set("split", split)
            return self._data, self._data.split(settings)
        return self._data, None

    def evaluate(
        self,
        x: Data = None,
        u: Data = None,
        *,
        state: Data = None,
        observe: int | None = None,
        samples: int | None = None,
        particles: int | None = None,
        verdict: bool | None = None,
        seed: int | None = None,
        threads: int | None = None,
        split: str | None = None,
    ) -> Evaluation:
        """Bounds on the likelihood, errors by horizon, regression of the true state on the latent one, and a verdict.
        Without x: on the test data of `fit`."""
        settings = Settings("evaluate")
        settings.update(
            {
                "observe": observe,
                "samples": samples,
                "particles": particles,
                "verdict": verdict,
                "seed": seed,
                "threads": threads,
            }
        )
        data, sequences = self._known(x, u, state, settings, split or ("test" if x is None else None))
        held = ctypes.byref(sequences) if sequences is not None else None
        work = lambda: create(lib.dvbf_evaluate, self.handle, data.handle, held, settings.handle)  # noqa: E731
        handle: int = run(work, settings.stoppable())
        try:
            return evaluation_of(ctypes.cast(handle, ctypes.POINTER(_api.dvbf_evaluation)).contents)
        finally:
            lib.dvbf_evaluation_free(handle)

    def verdict(
        self,
        x: Data = None,
        u: Data = None,
        *,
        samples: int | None = None,
        seed: int | None = None,
        threads: int | None = None,
        split: str | None = None,
    ) -> Verdict:
        """Compares the model with the mean, the last value and the best linear model. Without x: on held-out data of
        `fit`; the best linear model of the training data is then fitted and stored in the model, as by the command."""
        settings = Settings("evaluate")
        settings.update({"samples": samples, "seed": seed, "threads": threads})
        data, sequences = self._known(x, u, None, settings, split)
        held = ctypes.byref(sequences) if sequences is not None else None

        def work() -> int:
            if x is None:
                added = ctypes.byref(ctypes.c_bool())
                call(lib.dvbf_model_add_linear, added, self.handle, data.handle, settings.handle)
            return create(lib.dvbf_verdict_new, self.handle, data.handle, held, settings.handle)

        handle: int = run(work, settings.stoppable())
        try:
            return verdict_of(ctypes.cast(handle, ctypes.POINTER(_api.dvbf_verdict)).contents)
        finally:
            lib.dvbf_verdict_free(handle)

    judge = verdict  # former name, removed in the next release

    def report(
        self,
        path: str | PathLike[str],
        x: Data = None,
        u: Data = None,
        *,
        state: Data = None,
        title: str | None = None,
        run_folder: str | PathLike[str] | None = None,
        force: bool = False,
        split: str | None = None,
        **evaluate: Any,
    ) -> None:
        """Writes a report as one HTML file that needs no network, and its figures next to it. Without x: on the data of
        `fit`."""
        settings = Settings("evaluate")
        settings.update(evaluate)
        data, _ = self._known(x, u, state, settings, split)
        options = _api.dvbf_report_options()
        options.title = title.encode() if title else None
        options.run = os.fsencode(run_folder) if run_folder is not None else None
        options.force = force

        def write() -> None:
            target = os.fsencode(path)
            call(lib.dvbf_report_write, target, self.handle, data.handle, settings.handle, ctypes.byref(options))

        run(write, settings.stoppable())

    def export(
        self,
        path: str | PathLike[str],
        x: Data = None,
        u: Data = None,
        *,
        check: bool = False,
        run_folder: str | PathLike[str] | None = None,
        force: bool = False,
        split: str | None = None,
        **settings: Any,
    ) -> Exported:
        """Writes the filter as code: .c, .fmu, .py (CasADi) or .onnx, by the ending of the path. With x, the test of .c
        takes its inputs from it, and the loss from rounded weights is measured; column names are those of x or of the
        data of `fit`. `check` compiles the test of .c and runs it."""
        how = Settings("export")
        how.update(settings)
        options = _api.dvbf_export_options()
        options.run = os.fsencode(run_folder) if run_folder is not None else None
        options.force = force
        data = self._data
        if x is not None:
            data, sequences, _ = self._sequences(x, u, None, how, split)
            options.sequences = ctypes.pointer(sequences)
        if data is not None:
            options.data = ctypes.pointer(data.content)
        target, found = os.fsencode(path), _api.dvbf_export_result()

        def work() -> None:
            assert data is None or data.handle  # must live as long as the work
            call(lib.dvbf_export, target, self.handle, how.handle, ctypes.byref(options), ctypes.byref(found))
            if check:
                call(lib.dvbf_export_check, target)

        run(work)
        return exported_of(found)

    # ---- Online, derivatives ----

    def online(self, samples: int = 16, *, seed: int = 1) -> Online:
        """A filter that follows one system in real time."""
        return Online(self, samples, seed)

    def controller(
        self,
        goal: Any = None,
        *,
        low: Any,
        high: Any,
        goal_z: Any = None,
        state: Any = None,
        weights: Any = None,
        **settings: Any,
    ) -> Controller:
        """A controller that brings the system to a goal and holds it there, with controls between low and high. A goal is
        an observation, a latent state goal_z, or a known state: a pair of goals [goals, columns] and the linear map from
        z [columns, latent + 1], intercept last. Of several goals the nearest one counts. For further settings see
        dvbf.settings("control")."""
        return Controller(self, goal, low, high, goal_z, state, weights, **settings)

    def linearise(self, z: Any, u: Any = None) -> Linearisation:
        """A, B, H of the model at z [latent] and u [controls], or a stack of them at z [n, latent] and u [n, controls]."""
        points = to_numpy(z, "z").astype(np.float32)
        acting = np.zeros((*points.shape[:-1], self.controls), np.float32)
        if u is not None:
            acting[...] = to_numpy(u, "u")
        if points.ndim not in (1, 2) or points.shape[-1] != self.latent:
            raise ValueError(f"z has the shape {list(points.shape)}; it must be [{self.latent}] or [n, {self.latent}]")
        handle = create(lib.dvbf_jacobian_new, self.handle)
        try:
            found = [self._linearise(handle, a, b) for a, b in zip(np.atleast_2d(points), np.atleast_2d(acting))]
        finally:
            lib.dvbf_jacobian_free(handle)
        stacked = [np.stack([getattr(one, name) for one in found]) for name in ("A", "B", "H", "D", "next", "x")]
        return Linearisation(*(stacked if points.ndim == 2 else [each[0] for each in stacked]))

    def _linearise(self, handle: int, z: Array, u: Array) -> Linearisation:
        z, u, out = np.ascontiguousarray(z), np.ascontiguousarray(u), _api.dvbf_jacobians()
        lib.dvbf_jacobian_at(handle, z.ctypes.data, u.ctypes.data, ctypes.byref(out))
        n_z, n_u, n_x = self.latent, self.controls, self.columns
        shapes = {"a": (n_z, n_z), "b": (n_z, n_u), "h": (n_x, n_z), "d": (n_x, n_u), "next": (n_z,), "x": (n_x,)}
        return Linearisation(*(view(getattr(out, name), shape, np.float32) for name, shape in shapes.items()))


#: Optional arrays of estimates.
_OPTIONAL = ("x_quantiles", "quantiles", "x_samples", "u")


def _allocate(e: _api.dvbf_estimates, settings: Settings, inner: tuple[int, ...]) -> dict[str, Array]:
    n, s, t = e.count, e.samples, e.steps
    out: dict[str, Array] = {
        "z": np.empty((n, s, t, e.n_z), np.float32),
        "z_mean": np.empty((n, t, e.n_z), np.float32),
        "z_std": np.empty((n, t, e.n_z), np.float32),
        "x": np.empty((n, t, *inner), np.float32),
        "x_std": np.empty((n, t, *inner), np.float32),
        "length": np.empty(n, np.uint32),
    }
    if e.n_quantiles:
        out["x_quantiles"] = np.empty((e.n_quantiles, n, t, *inner), np.float32)
        out["quantiles"] = np.empty(e.n_quantiles, np.float64)
    if settings.table in ("filter", "predict") and settings.text("x-samples") == "on" or settings.table == "sample":
        out["x_samples"] = np.empty((n, s, t, *inner), np.float32)
    if e.n_u:
        out["u"] = np.empty((n, t, e.n_u), np.float32)
    return out


def _merge(parts: list[tuple[list[int], Estimates]], count: int) -> Estimates:
    """Joins the estimates of groups of sequences, in the order of the sequences."""
    found: dict[str, Any] = {"quantiles": parts[0][1].quantiles, "first": max(e.first for _, e in parts)}
    for name in ("z_mean", "z_std", "x", "x_std", "z", "x_samples", "u", "length", "x_quantiles"):
        first = getattr(parts[0][1], name)
        if first is None:
            found[name] = None
            continue
        axis = 1 if name == "x_quantiles" else 0
        out = np.empty((*first.shape[:axis], count, *first.shape[axis + 1 :]), first.dtype)
        for group, e in parts:
            out[(slice(None),) * axis + (group,)] = getattr(e, name)
        found[name] = out
    return Estimates(**found)


def load(path: str | PathLike[str]) -> Model:
    """Loads a model from a file or a run folder."""
    target = os.fspath(path)
    if os.path.isdir(target):
        target = os.path.join(target, _api.DVBF_RUN_MODEL)
    return Model(create(lib.dvbf_model_load, os.fsencode(target)))


def progress_of(p: _api.dvbf_progress) -> Progress:
    known = {name: getattr(p, name) for name in Progress.__dataclass_fields__ if name != "event"}
    known["valid_bound"] = p.valid_bound if p.update or p.validated else math.nan
    return Progress(**known, event=p.event.decode() if p.event else None)
