"""Progress of training: a tqdm bar if tqdm is installed, otherwise a plain line; in a log, a line every ten seconds."""

from __future__ import annotations

import math
import sys
from typing import Any, TextIO

from ._results import Progress


def _clock(seconds: float) -> str:
    if not math.isfinite(seconds) or seconds < 0:
        return "?"
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02d}"


def _numbers(p: Progress) -> str:
    """Numbers that are known; NaN is left out, and an infinite number is called diverged."""
    shown = (("bound", p.bound, 1), ("valid", p.valid_bound, 1), ("prediction error", p.valid_prediction, 3))
    return "  ".join(
        f"{name} {value:.{digits}f}" if math.isfinite(value) else f"{name} diverged"
        for name, value, digits in shown
        if not math.isnan(value)
    )


class Line:
    """A line that is redrawn."""

    def __init__(self, to: TextIO) -> None:
        self._to = to

    def show(self, p: Progress) -> None:
        full = 20 * p.update // p.updates if p.updates else 20
        bar = "#" * min(full, 20) + "." * (20 - min(full, 20))
        text = f"[{bar}] {p.update}/{p.updates}  left {_clock(p.seconds_left)}  {_numbers(p)}"
        self._to.write("\r" + text[:100].ljust(100))
        self._to.flush()

    def close(self) -> None:
        self._to.write("\n")
        self._to.flush()


class Log:
    """Without a terminal: events, a line every ten seconds, and one at the end."""

    EVERY = 10.0

    def __init__(self, to: TextIO) -> None:
        self._to = to
        self._shown_at: float | None = None
        self._text = ""

    def show(self, p: Progress) -> None:
        if p.event:
            self._to.write(p.event + "\n")
        self._text = f"{p.update}/{p.updates} updates  left {_clock(p.seconds_left)}  {_numbers(p)}".rstrip() + "\n"
        if self._shown_at is None:
            self._shown_at = p.seconds
        if p.seconds >= self._shown_at + self.EVERY:
            self._shown_at = p.seconds
            self._write()

    def _write(self) -> None:
        self._to.write(self._text)
        self._to.flush()
        self._text = ""

    def close(self) -> None:
        if self._text:
            self._write()


class Bar:
    """A tqdm bar."""

    def __init__(self, tqdm: Any) -> None:
        self._bar = tqdm(total=0, unit="update", leave=True)

    def show(self, p: Progress) -> None:
        if self._bar.total != p.updates:
            self._bar.total = p.updates
        self._bar.set_postfix_str(_numbers(p), refresh=False)
        self._bar.update(p.update - self._bar.n)  # may be negative, after a restart

    def close(self) -> None:
        self._bar.close()


def in_notebook() -> bool:
    kernel = sys.modules.get("IPython")
    shell = kernel.get_ipython() if kernel is not None else None
    return shell is not None and "zmq" in type(shell).__module__


def new_line(wanted: bool | None) -> Line | Bar | Log | None:
    """None: progress in a terminal or a notebook only. True: elsewhere too, as lines of a log. False: never."""
    interactive = sys.stderr.isatty() or in_notebook()
    if wanted is False or (wanted is None and not interactive):
        return None
    if not interactive:
        return Log(sys.stderr)
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        return Line(sys.stderr)
    return Bar(tqdm)
