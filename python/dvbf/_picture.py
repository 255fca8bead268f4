"""The picture of a model in a notebook: measurements and predictions, as in its report."""

from __future__ import annotations

import ctypes
import os
import tempfile
from typing import TYPE_CHECKING

import numpy as np

from . import _api
from ._arrays import Array, view
from ._errors import DvbfError
from ._library import call, lib

if TYPE_CHECKING:
    from ._data import Sequences
    from ._model import Model

MOST_STEPS = 200


def picture(model: Model, data: Sequences | None) -> str:
    """An SVG; empty if the model has no data or cannot predict."""
    try:
        found = _one_sequence(data) if data is not None else None
        return _draw(model, *found) if found is not None and data is not None else ""
    except DvbfError:
        return ""


def _one_sequence(data: Sequences) -> tuple[Array, Array | None, Sequences]:
    """x and u of the first held-out sequence."""
    content = data.content
    split = next(s for s in (content.test, content.valid, content.train) if s.count)
    copy = _api.dvbf_sequences()
    call(lib.dvbf_sequences_copy, ctypes.byref(copy), ctypes.byref(split), 0, 1)
    length = view(copy.length, (1,), np.uint32)[0] if copy.length else copy.steps
    steps = min(int(length), MOST_STEPS)
    x = view(copy.x, (copy.steps, copy.n_x), np.float32)[:steps]
    u = view(copy.u, (copy.steps, copy.n_u), np.float32)[:steps] if copy.n_u else None
    lib.dvbf_sequences_free(ctypes.byref(copy))
    return x, u, data


def _draw(model: Model, x: Array, u: Array | None, data: Sequences) -> str:
    observed = min(max(model.frames, len(x) // 4), len(x) - 1)
    later = model.predict(x, u, observe=observed, quantiles=None)
    both = np.concatenate([x[:observed], later.x.reshape(-1, model.columns)])
    both = np.ascontiguousarray(both, np.float32)
    truth = np.ascontiguousarray(x, np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "picture")
        if data.image:
            _strips(path, truth, both, observed, data.image)
        else:
            _signals(path, truth, both, observed, data)
        with open(path + ".svg", encoding="utf-8") as file:
            text = file.read()
    return text[text.index("<svg") :]


def _signals(path: str, truth: Array, prediction: Array, observed: int, data: Sequences) -> None:
    figure = _api.dvbf_figure_signals()
    figure.steps, figure.columns = truth.shape
    figure.truth, figure.prediction = truth.ctypes.data, prediction.ctypes.data
    figure.names, figure.observed = data.content.x_names, observed
    call(lib.dvbf_draw_signals, ctypes.byref(figure), os.fsencode(path))


def _strips(path: str, truth: Array, prediction: Array, observed: int, image: tuple[int, ...]) -> None:
    rows = (_api.dvbf_strip_row * 2)()
    rows[0].label, rows[0].images = b"ground truth", truth.ctypes.data
    rows[1].label, rows[1].images, rows[1].observed = b"prediction", prediction.ctypes.data, observed
    figure = _api.dvbf_figure_strips()
    figure.frames, figure.rows = len(truth), 2
    figure.height, figure.width = image[:2]
    figure.channels = image[2] if len(image) > 2 else 1
    figure.row = ctypes.cast(rows, ctypes.POINTER(_api.dvbf_strip_row))
    call(lib.dvbf_draw_strips, ctypes.byref(figure), os.fsencode(path))
