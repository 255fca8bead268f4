"""What data may come as, and what is copied."""

from __future__ import annotations

import dvbf
import numpy as np
import pytest
from dvbf import _arrays
from dvbf._data import Sequences
from dvbf._settings import Settings


def read(x, u=None, state=None, **settings):
    how = Settings("data")
    how.update(settings)
    return Sequences.of(x, u, state, how)


def address(data):
    return data.train.x


def test_floats_are_not_copied(data):
    x, u = data
    found = read(x, u, split_by="none")
    assert address(found) == x.ctypes.data and found.train.u == u.ctypes.data
    fixed = x.copy()
    fixed.flags.writeable = False
    assert address(read(fixed)) == fixed.ctypes.data
    assert address(read(x[5:])) == x[5:].ctypes.data


@pytest.mark.parametrize("dtype", ["f2", "f8", ">f4", ">f8", "i1", "i2", "i4", "i8", "u2", "u4", "u8", "?"])
def test_numbers_of_all_kinds(dtype):
    values = (np.arange(240) % 2).reshape(10, 12, 2).astype(dtype)
    found = read(values, split_by="none").to_arrays()["train/x"]
    np.testing.assert_array_equal(found, values.astype(np.float32))


def test_bytes_are_pixels():
    values = (np.arange(480) % 256).astype(np.uint8).reshape(10, 12, 2, 2)
    found = read(values, split_by="none").to_arrays()["train/x"]
    np.testing.assert_array_equal(found, values.astype(np.float32).reshape(found.shape) / np.float32(255))
    columns = values.reshape(10, 12, 4)
    np.testing.assert_array_equal(read(columns, split_by="none").to_arrays()["train/x"], columns)


def test_other_orders_are_copied(data):
    x, _ = data
    for other in (np.asfortranarray(x), x[:, ::2], x[..., ::-1], np.swapaxes(x, 0, 1)):
        np.testing.assert_array_equal(read(other, split_by="none").to_arrays()["train/x"], other)


def test_what_is_no_array_of_numbers(data):
    x, _ = data
    for wrong, sentence in [
        (np.array([["a", "b"]]), "instead of numbers"),
        (x.astype(complex), "instead of numbers"),
        (np.zeros((3, 2), "M8[s]"), "instead of numbers"),
        (np.array([[{}, 1], [2, 3]], object), "objects that are not numbers"),
    ]:
        with pytest.raises(TypeError, match=sentence):
            read(wrong)
    with pytest.raises(ValueError, match="list of arrays"):
        read([[1, 2], [3]])
    with pytest.raises(TypeError, match="x is None"):
        read(None)
    with pytest.raises(dvbf.FormatError, match="is empty"):
        read(np.zeros((0, 3, 2)))
    with pytest.raises(ValueError, match="9 dimensions"):
        read(np.zeros((2,) * 9))
    with pytest.raises(dvbf.FormatError, match="its shape is"):
        read(np.zeros((3, 0, 2)))


def test_objects_that_are_numbers(data):
    x, _ = data
    values = x.astype(object)
    values[0, 0, 0] = None  # as frames with gaps have it
    found = read(values, split_by="none")
    assert found.train.gaps and np.isnan(found.to_arrays()["train/x"][0, 0, 0])


def test_nested_lists():
    found = read([[1.0, 2], [3, 4], [5, 6]], split_by="none")
    assert (found.train.count, found.train.steps, found.train.n_x) == (1, 3, 2)


def test_lists_must_match(data):
    x, u = data
    with pytest.raises(ValueError, match="u has 2 sequences, but x has 3"):
        read(list(x[:3]), list(u[:2]))
    with pytest.raises(ValueError, match="put u and state into it"):
        read({"x": x}, u)
    with pytest.raises(ValueError, match="path of a file"):
        read("data.npz", u)
    with pytest.raises(ValueError, match="u has 2 sequences"):
        read(x, list(u[:2]))


class Frame:
    """What of a frame of pandas matters here."""

    def __init__(self, values, columns):
        self.values, self.columns, self.shape = values, columns, values.shape

    def to_numpy(self):
        return self.values


class Series:
    def __init__(self, values, name):
        self.values, self.name, self.ndim = values, name, 1

    def to_numpy(self):
        return self.values


class Labelled:
    """What of an array of xarray matters here."""

    def __init__(self, values, dims, **coords):
        self.values, self.dims, self.ndim = values, dims, values.ndim
        self.coords = {name: Series(np.asarray(each), name) for name, each in coords.items()}

    def to_numpy(self):
        return self.values


class DataSet:
    def __init__(self, **arrays):
        self.data_vars = arrays


def test_frames_have_names(data):
    x, u = data
    found = read(Frame(x[0], ["level", "x" * 40]), Series(u[0, :, 0], "pump"), split_by="none")
    assert found.names("x") == ["level", "x" * 31] and found.names("u") == ["pump"] and found.names("state") == []
    several = read([Frame(x[i], ["a", "b"]) for i in range(4)], split_by="none")
    assert several.names("x") == ["a", "b"] and several.train.count == 4
    assert read(Frame(x[0], [0, 1]), split_by="none").names("x") == []  # numbers are no names


def test_labelled_arrays(data):
    x, u = data
    both = Labelled(x, ("sequence", "time", "column"), column=["a", "b"])
    assert read(both, split_by="none").names("x") == ["a", "b"]
    found = read(DataSet(x=both, u=Labelled(u, ("sequence", "time", "control"))), split_by="none")
    assert found.names("x") == ["a", "b"] and found.train.n_u == 1


def test_names_reach_the_verdict(data):
    x, u = data
    model = dvbf.fit(Frame(x[0], ["level", "flow"]), Frame(u[0], ["pump"]), model="linear", threads=1)
    assert model.verdict().columns == ["level", "flow"]


def test_shapes_for_a_model():
    def shape(value, width):
        flat, inner = _arrays.shaped(value, width, "x")
        return flat.shape, inner

    assert shape(np.zeros(5), 1) == ((1, 5, 1), (1,))
    assert shape(np.zeros((5, 1)), 1) == ((1, 5, 1), (1,))
    assert shape(np.zeros((3, 5)), 1) == ((3, 5, 1), (1,))
    assert shape(np.zeros((3, 1, 4)), 4) == ((3, 1, 4), (4,))
    assert shape(np.zeros((7, 2, 3)), 6) == ((1, 7, 6), (2, 3))
    assert shape(np.zeros((4, 7, 2, 3)), 6) == ((4, 7, 6), (2, 3))


def test_a_table_knows_time_units_and_names(tmp_path):
    table = tmp_path / "table.csv"
    rows = [f"e{i // 10},{0.5 * i},{i % 3},{i * i % 11}" for i in range(120)]
    table.write_text("\n".join(["episode,time,u [V],level [mm]", *rows]) + "\n")
    data = read(table, split_by="none")
    assert data.sample_time == 0.5
    assert (data.units("x"), data.units("u")) == (["mm"], ["V"])
    assert data.origins(data.train)[3] == (3, 0, 15.0, "e3")
