"""Settings by name, as in the command; underscores may replace hyphens."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from . import _api
from ._library import Interrupt, call, create, free_with, lib


@dataclass(frozen=True)
class Setting:
    """One line of a table of settings."""

    name: str
    group: str
    kind: str  #: "int", "real", "choice", "switch" or "text"
    range: str
    default: Any
    help: str
    users: tuple[str, ...]  #: models or density that use it; empty: all


def _text(value: bytes | None) -> str:
    return (value or b"").decode()


def value_of(kind: str, text: str) -> Any:
    """Text as a Python value."""
    if kind == "int":
        return int(float(text))
    if kind == "real":
        return float(text)
    if kind == "switch":
        return text == "on"
    return text


def text_of(value: Any) -> str:
    """A value as text for the library: True is "on", sequences are joined by commas."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return text_of(value.item())  # of NumPy
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        return ",".join(text_of(each) for each in value)
    return str(value)


def table(name: str) -> list[Setting]:
    """The settings of a table: "train", "data", "evaluate", "filter", "smooth", "predict", "sample", or a system."""
    out: list[Setting] = []
    info = _api.dvbf_setting_info()
    while lib.dvbf_settings_table(name.encode(), len(out), ctypes.byref(info)):
        kind = _text(info.kind)
        out.append(
            Setting(
                _text(info.name),
                _text(info.group),
                kind,
                _text(info.range),
                value_of(kind, _text(info.initial)),
                _text(info.help),
                tuple(_text(info.users).split(", ")) if info.users else (),
            )
        )
    return out


def presets() -> dict[str, str]:
    """The presets, each with a one-line description."""
    out: dict[str, str] = {}
    about = ctypes.c_char_p()
    while (name := lib.dvbf_preset_name(len(out), ctypes.byref(about))) is not None:
        out[name.decode()] = _text(about.value)
    return out


class Settings:
    """The values of one table, in the library."""

    def __init__(self, name: str, handle: int | None = None, owner: object = None) -> None:
        self.table = name
        self._owner = owner  # frees the handle, if it is not ours
        self.handle = create(lib.dvbf_settings_new, name.encode()) if handle is None else handle
        if handle is None:
            free_with(self, lib.dvbf_settings_free, self.handle)
        self._interrupt: Interrupt | None = None

    def set(self, name: str, value: Any) -> None:
        call(lib.dvbf_settings_set, self.handle, name.replace("_", "-").encode(), text_of(value).encode())

    def update(self, values: Mapping[str, Any]) -> None:
        """Sets all values that are not None."""
        for name, value in values.items():
            if value is not None:
                self.set(name, value)

    def take(self, other: Settings) -> None:
        call(lib.dvbf_settings_inherit, self.handle, other.handle)

    def read(self, path: str | PathLike[str]) -> None:
        call(lib.dvbf_settings_read, self.handle, str(path).encode())

    def preset(self, name: str) -> None:
        call(lib.dvbf_settings_preset, self.handle, name.encode())

    def text(self, name: str) -> str:
        out = ctypes.create_string_buffer(512)
        call(lib.dvbf_settings_get, self.handle, name.replace("_", "-").encode(), out, len(out))
        return out.value.decode()

    def stoppable(self) -> Interrupt:
        """A flag that interrupts work with these settings."""
        self._interrupt = Interrupt()  # it must outlive the work
        lib.dvbf_settings_interrupt(self.handle, self._interrupt.address)
        return self._interrupt

    def values(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        kinds = {setting.name: setting.kind for setting in table(self.table)}
        return {name: value_of(kinds[name], self.text(name)) for name in (names or kinds)}
