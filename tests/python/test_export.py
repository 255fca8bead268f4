"""Filters as code."""

from __future__ import annotations

import dvbf
import numpy as np
import pytest


def test_c_is_checked(data, model, tmp_path):
    x, u = data
    found = model.export(tmp_path / "a.c", check=True, samples=4)
    assert found.prefix == "a" and found.vectors > 0 and found.constant_bytes > 0 and found.tolerance < 1e-3
    assert np.isnan(found.rmse_rounded)
    with pytest.raises(dvbf.FileError):
        model.export(tmp_path / "a.c")
    rounded = model.export(tmp_path / "a.c", x, u, force=True, weights="int8", check=True)
    assert rounded.constant_bytes < found.constant_bytes and np.isfinite([rounded.rmse, rounded.rmse_rounded]).all()


def test_other_files(model, tmp_path):
    assert model.export(tmp_path / "a.fmu", sample_time=0.5).sample_time == 0.5
    for name in ("a.py", "a.onnx"):
        model.export(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    with pytest.raises(ValueError, match="must end in"):
        model.export(tmp_path / "a.txt")
    with pytest.raises(dvbf.ArgumentError):
        model.export(tmp_path / "b.c", samples=-1)
