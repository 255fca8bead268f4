"""Failures of the library as exceptions. Each carries the library's sentence: what, where, and the remedy."""

from __future__ import annotations

from . import _api


class DvbfError(Exception):
    """Base of all failures that the library reports."""


class ArgumentError(DvbfError, ValueError):
    """A setting or an argument is wrong."""


class FormatError(DvbfError, ValueError):
    """Data or a model file are malformed, or do not fit."""


class FileError(DvbfError, OSError):
    """The system refused to read or to write."""


class OutOfMemoryError(DvbfError, MemoryError):
    """There is not enough memory."""


class DivergedError(DvbfError, ArithmeticError):
    """Training diverged and could not be saved."""


class StoppedError(DvbfError):
    """The work was ended by an interrupt."""


class InterruptedTraining(UserWarning):
    """Training was ended early; the model is the best one so far."""


_CLASSES: dict[int, type[DvbfError]] = {
    _api.DVBF_ARGUMENT: ArgumentError,
    _api.DVBF_FORMAT: FormatError,
    _api.DVBF_IO: FileError,
    _api.DVBF_MEMORY: OutOfMemoryError,
    _api.DVBF_NUMERIC: DivergedError,
    _api.DVBF_STOPPED: StoppedError,
}


def exception_of(status: int, message: str) -> DvbfError:
    return _CLASSES.get(status, DvbfError)(message)
