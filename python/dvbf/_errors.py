"""Failures of the library as exceptions. Each carries the library's sentence: what, where, and the remedy."""

from __future__ import annotations

import re

from . import _api


class DvbfError(Exception):
    """Base of all failures that the library reports."""


class ArgumentError(DvbfError, ValueError):
    """A setting or an argument is wrong."""


class FormatError(DvbfError, ValueError):
    """A data or model file is malformed or does not fit."""


class FileError(DvbfError, OSError):
    """A file could not be read or written."""


class OutOfMemoryError(DvbfError, MemoryError):
    """Out of memory."""


class DivergedError(DvbfError, ArithmeticError):
    """Training diverged and could not be saved."""


class StoppedError(DvbfError):
    """The work was interrupted."""


class InterruptedTraining(UserWarning):
    """Training ended early; the model is the best one so far."""


_CLASSES: dict[int, type[DvbfError]] = {
    _api.DVBF_ARGUMENT: ArgumentError,
    _api.DVBF_FORMAT: FormatError,
    _api.DVBF_IO: FileError,
    _api.DVBF_MEMORY: OutOfMemoryError,
    _api.DVBF_NUMERIC: DivergedError,
    _api.DVBF_STOPPED: StoppedError,
}


def _as_arguments(message: str) -> str:
    """Settings are arguments here: learning_rate = 5, not learning-rate = 5 or --learning-rate."""
    return re.sub(r"(?<![\w-])(--)?([a-z0-9]+(?:-[a-z0-9]+)*)(?= = )|(?<![\w-])--([a-z][a-z0-9-]*)", _argument, message)


def _argument(found: re.Match[str]) -> str:
    return (found[2] or found[3]).replace("-", "_")


def exception_of(status: int, message: str) -> DvbfError:
    message = _as_arguments(message)
    return _CLASSES.get(status, DvbfError)(message)
