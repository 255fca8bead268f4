"""Training."""

from __future__ import annotations

import ctypes
import logging
import os
import warnings
from os import PathLike
from typing import Any, Callable

from . import _api
from ._arrays import Data
from ._data import Sequences
from ._errors import InterruptedTraining
from ._library import call, create, lib, run
from ._model import Model, progress_of
from ._progress import Bar, Line, Log, new_line
from ._results import Choice, Progress
from ._settings import Settings

log = logging.getLogger("dvbf")


def seed_of(random_state: Any) -> int | None:
    """A seed from a number, or from a NumPy generator."""
    if random_state is None or isinstance(random_state, int):
        return random_state
    draw = getattr(random_state, "integers", None) or getattr(random_state, "randint", None)
    return int(random_state) if draw is None else int(draw(0, 2**31 - 1))


def _settings(
    given: dict[str, Any], preset: str | None, config: str | PathLike[str] | None, folder: str | None, resume: bool
) -> Settings:
    """Values of the preset, then of the file, then arguments; a resumed run starts from its own settings."""
    settings = Settings("train")
    if preset is not None:
        settings.preset(preset)
    if config is not None:
        settings.read(config)
    former = os.path.join(folder or "", _api.DVBF_RUN_SETTINGS)
    if resume and folder is not None and os.path.exists(former):
        settings.read(former)
    settings.update(given)
    call(lib.dvbf_settings_check, settings.handle)
    return settings


def _warnings(data: Sequences) -> list[str]:
    """Warnings about the data."""
    found: list[str] = []
    call(lib.dvbf_data_warnings, data.handle, _api.dvbf_message_fn(lambda text, _: found.append(text.decode())), None)
    for sentence in found:
        log.warning("%s", sentence)
    return found


def _choose(settings: Settings, data: Sequences) -> list[Choice]:
    """Chooses, from the data, the settings that were not given."""
    choices: list[Choice] = []

    def each(name: bytes, value: bytes, was: bytes, why: bytes, _: Any) -> None:
        choices.append(Choice(name.decode(), value.decode(), was.decode(), why.decode()))

    call(lib.dvbf_settings_choose, settings.handle, data.handle, _api.dvbf_choice_fn(each), None)
    for choice in choices:
        log.info("%s = %s (%s)", choice.name, choice.value, choice.why)
    return choices


class _Watch:
    """Receives the progress of training."""

    def __init__(self, wanted: bool | None, callback: Callable[[Progress], Any] | None) -> None:
        self.wanted = wanted
        self.line: Line | Bar | Log | None = None  # made when there is something to show
        self.shown = False
        self.callback = callback
        self.history: list[Progress] = []
        self.failure: BaseException | None = None
        self.stopped = False

    def receive(self, progress: Any, _: Any) -> bool:
        try:
            p = progress_of(progress.contents)
            if p.validated:
                self.history.append(p)
            if p.event:
                log.info("%s", p.event)
            if self.line is None and not self.shown:
                self.line, self.shown = new_line(self.wanted), True
            if self.line is not None:
                self.line.show(p)
            if self.callback is not None and self.callback(p) is False:
                self.stopped = True
        except BaseException as reason:  # noqa: BLE001 - raised again when training has ended
            self.failure = reason
        return not self.stopped and self.failure is None


def fit(
    x: Data,
    u: Data = None,
    *,
    state: Data = None,
    latent: int | None = None,
    preset: str | None = None,
    config: str | PathLike[str] | None = None,
    run_folder: str | PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    random_state: Any = None,
    verbose: bool | None = None,
    callback: Callable[[Progress], Any] | None = None,
    **settings: Any,
) -> Model:
    """Trains a model.

    x is an array [N, T, columns] or [N, T, height, width], one recording [T, columns], a list of recordings of different
    lengths, an object of pandas or xarray, a mapping of named arrays ("x", "u", "train/x", ...) or the path of a data file.
    NaN is a missing value. u[t] acts between x[t] and x[t+1]; `state` is ground truth for evaluation. Arrays of float32
    are not copied; bytes are pixels from 0 to 255.

    Every setting of `dvbf train` is an argument, with underscores: learning_rate=0.001. Settings that are not given are
    chosen from the data (`choices`); `warnings` lists unusual properties of the data. The same seed gives the same model as
    the command with --no-verdict. With `run_folder` the run is kept on disk and can be resumed.

    `verbose` shows progress: a bar in a terminal or a notebook, a line every ten seconds elsewhere; by default only the
    bar. `callback` is called with the progress and ends training by returning False. Ctrl-C ends it too: the result is the
    best model so far, with a warning, or KeyboardInterrupt if there is none yet.
    """
    folder = os.fspath(run_folder) if run_folder is not None else None
    given = {"latent": latent, "seed": seed_of(random_state), **settings}
    how = _settings(given, preset, config, folder, resume)
    watch, interrupt = _Watch(verbose, callback), how.stoppable()
    options = _api.dvbf_train_options(resume=resume, force=force)
    options.folder = os.fsencode(folder) if folder is not None else None
    options.progress = _api.dvbf_progress_fn(watch.receive)

    def train() -> Model:
        data = Sequences.of(x, u, state, how)
        found, choices = _warnings(data), _choose(how, data)
        model = Model(create(lib.dvbf_train, how.handle, data.handle, ctypes.byref(options)))
        model._data, model.warnings, model.choices, model.history = data, found, choices, watch.history
        return model

    try:
        model: Model = run(train, interrupt, wait=True)
    finally:
        if watch.line is not None:
            watch.line.close()
    if watch.failure is not None:
        raise watch.failure
    model.interrupted = bool(interrupt) or watch.stopped
    if interrupt:
        warnings.warn(
            f"training was interrupted; this is the best model so far, of update {model.updates}",
            InterruptedTraining,
            stacklevel=2,
        )
    return model


def simulate(system: str, **settings: Any) -> dict[str, Any]:
    """Simulates a system such as "pendulum", "ball" or "cart-pole" (`dvbf simulate`): named arrays for `fit`."""
    how = Settings(system)
    how.update(settings)
    return Sequences(run(lambda: create(lib.dvbf_simulate, how.handle)), {}).to_arrays()
