"""Loads the library and calls it."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from pathlib import Path
from typing import Any, Callable

from . import _api
from ._errors import StoppedError, exception_of

SONAME = "libdvbf.so.0"


def candidates() -> list[str]:
    """Paths to try: that in DVBF_LIBRARY, or the one in the package and then the system's."""
    named = os.environ.get("DVBF_LIBRARY")
    if named:
        return [named]
    inside = sorted(str(path) for path in (Path(__file__).parent / "_lib").glob("libdvbf.so*"))
    return [*inside, SONAME]


def open_library(paths: list[str]) -> ctypes.CDLL:
    failures = []
    for path in paths:
        try:
            library = ctypes.CDLL(path)
            _api.declare(library)
        except (OSError, AttributeError) as failure:
            failures.append(f"{path}: {failure}")
            continue
        found = library.dvbf_version().decode()
        if found == _api.DVBF_VERSION:
            return library
        failures.append(f"{path}: is version {found} instead of {_api.DVBF_VERSION}")
    raise ImportError("libdvbf cannot be loaded; set DVBF_LIBRARY to its path: " + "; ".join(failures))


#: The library with all its functions declared.
lib = open_library(candidates())


def check(status: int, error: _api.dvbf_error) -> None:
    if status:
        raise exception_of(status, error.message.decode(errors="replace"))


def call(function: Callable[..., int], *arguments: Any) -> None:
    """Calls a function that may fail, whose last argument is the error."""
    error = _api.dvbf_error()
    check(function(*arguments, ctypes.byref(error)), error)


def create(function: Callable[..., int], *arguments: Any) -> int:
    """The address of an object created by a function, which its first argument receives."""
    out = ctypes.c_void_p()
    call(function, ctypes.byref(out), *arguments)
    return out.value or 0


def free_with(holder: object, free: Callable[..., None], *arguments: Any) -> None:
    """Frees an object of the library with `holder`, but not at exit: work left behind by Ctrl-C may still be ending."""
    weakref.finalize(holder, free, *arguments).atexit = False


class Interrupt:
    """A flag that interrupts the library (dvbf_settings_interrupt)."""

    def __init__(self) -> None:
        self._flag = ctypes.c_int(0)

    @property
    def address(self) -> int:
        return ctypes.addressof(self._flag)

    def set(self) -> None:
        self._flag.value = 1

    def __bool__(self) -> bool:
        return self._flag.value != 0


#: Seconds to wait after Ctrl-C before the work is left to end in the background.
PATIENCE = 0.4


def run(work: Callable[[], Any], interrupt: Interrupt | None = None, wait: bool = False) -> Any:
    """Runs long work so that Ctrl-C takes effect at once.

    Python handles signals on its main thread, and only between its own instructions. So another thread does the
    work while this one waits. Ctrl-C sets the flag; with `wait` the work then ends with a result. Otherwise
    KeyboardInterrupt is raised, though the work may still be ending.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    outcome: list[Any] = []
    failure: list[BaseException] = []
    ended = threading.Event()  # Thread.join regards a thread as dead if Ctrl-C interrupts it

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as reason:  # noqa: BLE001 - raised again by the thread that waits
            failure.append(reason)
        ended.set()

    try:
        threading.Thread(target=body, name="dvbf", daemon=True).start()
        ended.wait()
    except KeyboardInterrupt:
        if interrupt is not None:
            interrupt.set()
        ended.wait(None if wait else PATIENCE)  # a second Ctrl-C ends this too
        if not wait:
            raise
    if failure:
        if isinstance(failure[0], StoppedError):
            raise KeyboardInterrupt from None
        raise failure[0]
    return outcome[0]
