"""Converts arrays, lists and frames of users to arrays that the library reads in place."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _api

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
#: An array, a list of arrays, a frame of pandas or xarray, a mapping of arrays, or the path of a file.
Data = Any

#: Types that the library reads without a copy.
_TYPES: dict[str, int] = {
    "f4": _api.DVBF_FLOAT32,
    "f8": _api.DVBF_FLOAT64,
    "u4": _api.DVBF_UINT32,
    "i8": _api.DVBF_INT64,
    "u1": _api.DVBF_UINT8,
}


def is_path(value: Any) -> bool:
    return isinstance(value, (str, bytes, PathLike))


def is_list(value: Any) -> bool:
    """Whether it is a list of arrays, one for each sequence."""
    return (
        isinstance(value, (list, tuple))
        and len(value) > 0
        and all(hasattr(each, "__array__") or hasattr(each, "to_numpy") for each in value)
        and len(getattr(value[0], "shape", ())) > 0
    )


def to_numpy(value: Any, name: str) -> Array:
    """A NumPy array of numbers; not a copy if it is one already."""
    if isinstance(value, np.ma.MaskedArray):  # masked values are missing
        masked: Any = value  # without types in some versions of NumPy
        real = np.float32 if masked.dtype.itemsize <= 4 else np.float64
        array: Array = masked.astype(real).filled(np.nan)
    elif hasattr(value, "to_numpy"):  # pandas, polars, xarray
        array = np.asarray(value.to_numpy())
    else:
        try:
            array = np.asarray(value)
        except ValueError as failure:
            raise ValueError(
                f"{name} is not an array of numbers ({failure}); give sequences of different lengths as a list of arrays"
            ) from None
    if array.dtype.kind == "O":
        array = _numbers(array, name)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} is an array of type {array.dtype} instead of numbers; convert it, for example by .astype(float)"
        )
    return array


def _numbers(array: Array, name: str) -> Array:
    """Objects that are numbers or None, as in frames with gaps."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} is an array of objects that are not numbers; give sequences of different lengths as a list of arrays, "
            "and convert text"
        ) from None


def as_input(value: Any, name: str) -> Array:
    """An array as the library reads it: C-contiguous, in native byte order, of a known type. An array in this form
    is not copied, even if it is read-only."""
    array = to_numpy(value, name)
    if array.dtype.str[1:] not in _TYPES:
        array = array.astype(np.float32)  # bool, half and small integers exactly; each is rounded once
    return np.require(array, dtype=array.dtype.newbyteorder("="), requirements=["C", "A"])


def column_names(value: Any) -> list[str]:
    """The column names of a frame or a labelled array; none for plain arrays."""
    columns = getattr(value, "columns", None)
    if columns is None and hasattr(value, "dims") and hasattr(value, "coords"):
        last = value.dims[-1] if len(value.dims) > 1 else None
        columns = value.coords[last].values if last in value.coords else None
    if columns is None and isinstance(getattr(value, "name", None), str) and getattr(value, "ndim", 0) == 1:
        columns = [value.name]  # a series
    names = [] if columns is None else [str(each) for each in columns]
    return [] if all(name.isdigit() for name in names) else names


def has_nan(array: Array) -> bool:
    """Whether any value is NaN, without a copy of the array."""
    return array.dtype.kind == "f" and array.size > 0 and bool(np.isnan(np.min(array)))


def named_arrays(x: Data, u: Data, state: Data) -> tuple[dict[str, Array], dict[str, list[str]]]:
    """The arrays, named as in a data file, and the column names of x, u and state."""
    if isinstance(x, Mapping) or hasattr(x, "data_vars"):  # named arrays, or a Dataset of xarray
        named: Any = getattr(x, "data_vars", x)
        given: dict[str, Any] = dict(named)
        if u is not None or state is not None:
            raise ValueError("x is a mapping of arrays; put u and state into it")
        labels = {role: column_names(given[role]) for role in given if role in ("x", "u", "state")}
        return {name: as_input(value, name) for name, value in given.items()}, labels
    roles: dict[str, Any] = {"x": x, "u": u, "state": state}
    lists = {role: list(value) for role, value in roles.items() if is_list(value)}
    names: dict[str, list[str]] = {}
    out: dict[str, Array] = {}
    for role, value in roles.items():
        if value is None:
            continue
        if "x" in lists and role not in lists:
            raise ValueError(f"x is a list of {len(lists['x'])} sequences, so {role} must be a list of {len(lists['x'])} arrays")
        if role in lists and len(lists[role]) != len(lists.get("x", [])):
            raise ValueError(f"{role} has {len(lists[role])} sequences, but x has {len(lists.get('x', []))}")
        names[role] = column_names(value[0] if role in lists else value)
        if role in lists:
            out.update({f"{i}/{role}": as_input(each, f"{role}[{i}]") for i, each in enumerate(lists[role])})
        else:
            out[role] = as_input(value, role)
    return out, names


def describe_arrays(arrays: Mapping[str, Array]) -> ctypes.Array[_api.dvbf_array]:
    """The arrays as dvbf_array; they must outlive the result."""
    out = (_api.dvbf_array * len(arrays))()
    for to, (name, array) in zip(out, arrays.items()):
        if array.ndim > _api.DVBF_MAX_RANK:
            raise ValueError(f"{name} has {array.ndim} dimensions; at most {_api.DVBF_MAX_RANK} are allowed")
        to.name = name.encode()
        to.type = _TYPES[array.dtype.str[1:]]
        to.rank = array.ndim
        to.dims[: array.ndim] = array.shape
        to.values = array.ctypes.data
    return out


def shaped(value: Any, width: int, name: str) -> tuple[Array | list[Array], tuple[int, ...]]:
    """[N, steps, width] from an array of N sequences or one recording [steps, ...], or a list of [steps, width] from a list
    of sequences. Unambiguous, since the model knows the width. Also the shape of a frame: (width,) or (height, width)."""
    if is_list(value):
        parts = [shaped(each, width, name) for each in value]
        return [one for part, _ in parts for one in part], parts[0][1]
    array = to_numpy(value, name)
    # [N, T, ...] first, then a recording [T, ...], then [N, T] of a single column.
    for lead in ((2, 1) if array.ndim > 2 else (1, 2))[: array.ndim]:
        if math.prod(array.shape[lead:]) == width:
            lone = (1,) if lead == 1 else ()
            return array.reshape(*lone, *array.shape[:lead], width), array.shape[lead:] or (width,)
    raise ValueError(
        f"{name} has the shape {list(array.shape)}, but the model has {width} column{'s'[: width != 1]} of it; "
        f"give [sequences, steps, {width}] or, for one recording, [steps, {width}]"
    )


def at(address: int, shape: Sequence[int], dtype: type[np.generic]) -> Array:
    """An array in memory of the library, not a copy."""
    raw = (ctypes.c_char * (math.prod(shape) * np.dtype(dtype).itemsize)).from_address(address)
    found: Array = np.frombuffer(memoryview(raw), dtype).reshape(tuple(shape))
    return found


def view(address: int | None, shape: Sequence[int], dtype: type[np.generic]) -> Array:
    """A copy of such an array."""
    if not address or math.prod(shape) == 0:
        return np.zeros(shape, dtype)
    return at(address, shape, dtype).copy()
