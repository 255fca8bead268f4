"""Sequences in the library, from arrays of the user, which are not copied, or from a file."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _api
from ._arrays import (
    Array,
    Data,
    column_names,
    describe_arrays,
    has_nan,
    is_path,
    named_arrays,
    shaped,
    to_numpy,
    view,
)
from ._library import call, create, free_with, lib, run
from ._results import Origin
from ._settings import Settings


class Sequences:
    """A dvbf_data and the arrays that it reads."""

    def __init__(self, handle: int, arrays: dict[str, Array]) -> None:
        self.handle = handle
        self.arrays = arrays  # they must outlive the handle
        self.content = ctypes.cast(handle, ctypes.POINTER(_api.dvbf_data)).contents
        free_with(self, _release, handle, arrays)

    @classmethod
    def read(cls, path: Any, how: Settings) -> Sequences:
        return cls(run(lambda: create(lib.dvbf_data_read, os.fsencode(path), how.handle)), {})

    @classmethod
    def of(cls, x: Data, u: Data, state: Data, how: Settings) -> Sequences:
        """From arrays or a file; sets `missing` to "nan" if x has NaN."""
        if is_path(x):
            if u is not None or state is not None:
                raise ValueError("x is the path of a file, which must also contain u and state")
            return cls.read(x, how)
        if x is None:
            raise TypeError("x is None; give observations")
        arrays, names = named_arrays(x, u, state)
        return cls.of_arrays(arrays, names, how)

    @classmethod
    def of_arrays(cls, arrays: dict[str, Array], names: dict[str, list[str]], how: Settings) -> Sequences:
        if any(has_nan(a) for name, a in arrays.items() if name.rpartition("/")[2].partition("_")[0] != "u"):
            how.set("missing", "nan")
        described = describe_arrays(arrays)
        out = cls(create(lib.dvbf_data_from, described, len(arrays), how.handle), arrays)
        widths = {"x": out.train.n_x, "u": out.train.n_u, "state": out.train.n_s}
        for role, columns in names.items():
            if len(columns) == widths[role]:
                for i, name in enumerate(columns):
                    call(lib.dvbf_data_name, out.handle, role.encode(), i, _short(name))
        return out

    @property
    def train(self) -> _api.dvbf_sequences:
        found: _api.dvbf_sequences = self.content.train
        return found

    def split(self, settings: Settings) -> _api.dvbf_sequences:
        """The split named by the setting `split`."""
        out = ctypes.c_void_p()
        call(lib.dvbf_data_split, ctypes.byref(out), self.handle, settings.handle)
        return ctypes.cast(out, ctypes.POINTER(_api.dvbf_sequences)).contents

    @property
    def sample_time(self) -> float | None:
        """Seconds from step to step; None if unknown."""
        return self.content.sample_time or None

    def units(self, role: str) -> list[str]:
        """Units of the columns of "x" or "u"; "" if unknown."""
        width, units = {
            "x": (self.train.n_x, self.content.x_units),
            "u": (self.train.n_u, self.content.u_units),
        }[role]
        return [units[i].value.decode() if units else "" for i in range(width)]

    def origins(self, sequences: _api.dvbf_sequences) -> list[tuple[int, int, float, str]]:
        """Number, first step, time and name of each sequence in its file."""
        found = sequences.origin
        if not found:
            return [(i, 0, 0.0, "") for i in range(sequences.count)]
        return [
            (found[i].sequence, found[i].step, found[i].time, found[i].name.decode()) for i in range(sequences.count)
        ]

    @property
    def image(self) -> tuple[int, ...]:
        """(height, width), (height, width, 3) in colour, or () if x is not an image."""
        height, width = self.content.image_height, self.content.image_width
        colour = (3,) if self.content.image_channels == 3 else ()
        return (height, width, *colour) if height else ()

    def names(self, role: str) -> list[str]:
        """Column names of x, u or state; none if they are unnamed."""
        found = getattr(self.content, f"{role}_names")
        count = {"x": self.train.n_x, "u": self.train.n_u, "state": self.train.n_s}[role]
        return [found[i].value.decode() for i in range(count)] if found else []

    def to_arrays(self) -> dict[str, Array]:
        """Copies of all splits, by the names of a data file: train/x, train/u, ..."""
        out: dict[str, Array] = {}
        for split in ("train", "valid", "test"):
            s = getattr(self.content, split)
            if not s.count:
                continue
            copy = _api.dvbf_sequences()
            call(lib.dvbf_sequences_copy, ctypes.byref(copy), ctypes.byref(s), 0, s.count)
            for role, address, width in (("x", copy.x, copy.n_x), ("u", copy.u, copy.n_u), ("state", copy.state, copy.n_s)):
                if width:
                    shape = self.image if role == "x" and self.image else (width,)
                    out[f"{split}/{role}"] = view(address, (copy.count, copy.steps, *shape), np.float32)
            lib.dvbf_sequences_free(ctypes.byref(copy))
        return out


def _release(handle: int, arrays: dict[str, Array]) -> None:
    """The arrays are an argument, so that they live until the handle is freed."""
    lib.dvbf_data_free(handle)
    arrays.clear()


def _short(name: str) -> bytes:
    """At most 31 bytes, cut between characters."""
    return (name.encode()[:31].decode(errors="ignore") or "-").encode()


def is_named(x: Data) -> bool:
    """Whether x is a file or named arrays, which may contain u and state too."""
    named = isinstance(x, Mapping) and not hasattr(x, "to_numpy")
    return is_path(x) or named or hasattr(x, "data_vars")


def for_model(x: Data, u: Data, state: Data, n_x: int, n_u: int, how: Settings) -> tuple[Sequences, tuple[int, ...]]:
    """Data for a model with n_x and n_u columns, and the shape of a frame of x."""
    if is_named(x):
        data = Sequences.of(x, u, state, how)
        return data, data.image or (n_x,)
    if n_u and u is None:
        raise ValueError(f"the model has {n_u} control{'s'[: n_u != 1]}, so u is needed; give zeros for no control")
    if not n_u and u is not None:
        raise ValueError("the model has no controls, so u cannot be given")
    flat, inner = shaped(x, n_x, "x")
    controls = shaped(u, n_u, "u")[0] if n_u else None
    if state is not None and not isinstance(flat, list):  # one row for each step
        state = to_numpy(state, "state").reshape(*flat.shape[:2], -1)
    names = {"x": column_names(x), "state": column_names(state)}
    arrays, _ = named_arrays(flat, controls, state)
    return Sequences.of_arrays(arrays, names, how), inner


def _texts(of: Any, count: int) -> list[str] | None:
    return [of[i].value.decode("utf-8", "replace") for i in range(count)] if of else None


def _truth(s: _api.dvbf_sequences, i: int, begin: int, out: Array) -> None:
    """Fills in x of the steps from `begin` on, as far as they exist."""
    length = ctypes.cast(s.length, ctypes.POINTER(ctypes.c_uint32))[i] if s.length else s.steps
    start = ctypes.cast(s.start, ctypes.POINTER(ctypes.c_uint64))[i] if s.start else i * s.steps
    known = min(max(length - begin, 0), len(out))
    if known:
        first = ctypes.cast(s.x, ctypes.c_void_p).value or 0
        row = (ctypes.c_float * (known * s.n_x)).from_address(first + (start + begin) * s.n_x * 4)
        out[:known] = np.frombuffer(row, np.float32).reshape(out[:known].shape)


def origin_of(data: Sequences, s: _api.dvbf_sequences, begin: Array, shape: tuple[int, ...]) -> Origin:
    """Origin of the estimates of x [shape]; estimate i belongs to sequence i modulo their number."""
    count, steps = shape[0], shape[1]
    d = data.content
    which = [i % s.count for i in range(count)]
    origins = ctypes.cast(s.origin, ctypes.POINTER(_api.dvbf_origin)) if s.origin else None
    first = [origins[i] if origins else _api.dvbf_origin(sequence=i) for i in which]
    step = begin.astype(np.int64)
    time = None
    if d.sample_time > 0:
        time = np.array([o.time for o in first])[:, None] + (step[:, None] + np.arange(steps)) * d.sample_time
    truth = np.full(shape, np.nan, np.float32) if s.x else None
    for k, i in enumerate(which):
        if truth is not None:
            _truth(s, i, int(step[k]), truth[k])
    address = ctypes.addressof(s)
    places = {ctypes.addressof(d.valid): "valid", ctypes.addressof(d.test): "test"}
    return Origin(
        sequence=np.array([o.sequence for o in first], np.int64),
        step=step + np.array([o.step for o in first], np.int64),
        name=[o.name.decode("utf-8", "replace") for o in first],
        split=places.get(address, "train" if d.valid.count or d.test.count else "all"),
        time=time,
        sample_time=d.sample_time or None,
        dates=bool(d.dates),
        x_true=truth,
        x_names=_texts(d.x_names, s.n_x),
        u_names=_texts(d.u_names, s.n_u) if s.n_u else None,
        x_units=_texts(d.x_units, s.n_x),
        u_units=_texts(d.u_units, s.n_u) if s.n_u else None,
    )
