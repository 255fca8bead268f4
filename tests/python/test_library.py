"""How the library is found, and that ctypes and C agree about it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import dvbf
import pytest
from dvbf import _api, _errors, _library, _progress, _settings

ROOT = Path(__file__).resolve().parents[2]


def test_structs_are_those_of_the_headers(tmp_path):
    """Sizes and offsets by the compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    structs = {n: c for n, c in vars(_api).items() if isinstance(c, type) and issubclass(c, ctypes.Structure)}
    del structs["Structure"]
    lines = []
    for name, struct in structs.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{f[0]} %zu\\n", offsetof({name}, {f[0]}));' for f in struct._fields_]
    program = tmp_path / "sizes.c"
    names = ("dvbf/export.h", "dvbf/report.h", "stdio.h")
    headers = "".join(f"#include <{name}>\n" for name in names)
    program.write_text(headers + "int main(void) {\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    out = tmp_path / "sizes"
    subprocess.run([compiler, "-I", ROOT / "include", program, "-o", out], check=True)
    found = dict(line.split() for line in subprocess.run([out], capture_output=True, text=True).stdout.splitlines())
    assert len(found) > 300
    for name, struct in structs.items():
        assert int(found[name]) == ctypes.sizeof(struct), name
        for field, *_ in struct._fields_:
            assert int(found[f"{name}.{field}"]) == getattr(struct, field).offset, f"{name}.{field}"


def test_where_the_library_is(monkeypatch):
    monkeypatch.delenv("DVBF_LIBRARY", raising=False)
    assert _library.candidates()[-1] == "libdvbf.so.0"
    monkeypatch.setenv("DVBF_LIBRARY", "/own/libdvbf.so")
    assert _library.candidates() == ["/own/libdvbf.so"]
    with pytest.raises(ImportError, match="set DVBF_LIBRARY to its path: /nowhere.so"):
        _library.open_library(["/nowhere.so"])
    with pytest.raises(ImportError, match="libc.so.6"):
        _library.open_library(["libc.so.6"])


def test_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(_api, "DVBF_VERSION", "9.9")
    with pytest.raises(ImportError, match="instead of 9.9"):
        _library.open_library([_library.lib._name])


def test_failures_have_classes():
    kinds = {_api.DVBF_MEMORY: MemoryError, _api.DVBF_NUMERIC: ArithmeticError, _api.DVBF_IO: OSError, 99: Exception}
    for status, kind in kinds.items():
        found = _errors.exception_of(status, "sentence")
        assert isinstance(found, kind) and isinstance(found, dvbf.DvbfError) and str(found) == "sentence"


def test_texts_of_values():
    import numpy as np

    assert [_settings.text_of(v) for v in (True, 0.1, 3, "a", (1, 2.5), np.float32(0.5), np.array([1, 2]), np.bool_(True))] == [
        "on",
        "0.1",
        "3",
        "a",
        "1,2.5",
        "0.5",
        "1,2",
        "on",
    ]


def progress(**given):
    known = {"update": 5, "updates": 10, "start": 1, "starts": 1, "seconds": 1.0, "seconds_left": 4000.0, "bound": 0.0}
    later = {"validated": True, "valid_bound": 1.5, "valid_prediction": 0.25, "event": None}
    return dvbf.Progress(**{**known, **later, **given})


def test_lines_of_progress(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    line = _progress.Line(sys.stderr)
    line.show(progress())
    line.show(progress(updates=0, seconds_left=float("nan"), valid_bound=float("nan")))
    line.show(progress(seconds_left=61.0))
    line.close()
    text = capsys.readouterr().err
    assert "5/10  left 1:06:40  bound 0.0  valid 1.5  prediction error 0.250" in text and "left ?" in text and "left 1:01" in text
    line.show(progress(bound=float("-inf"), valid_prediction=float("inf")))
    text = capsys.readouterr().err
    assert "bound diverged  valid 1.5  prediction error diverged" in text and "inf" not in text
    assert _progress.new_line(False) is None
    assert _progress.new_line(None) is None or sys.stderr.isatty()


def test_logs_have_a_line_every_ten_seconds(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "in_notebook", lambda: False)
    line = _progress.new_line(True)
    assert isinstance(line, _progress.Log)
    for quarter in range(101):
        event = "candidate 1/8 wild: diverged" if quarter == 60 else None
        line.show(progress(update=quarter, updates=200, seconds=quarter / 4, bound=float("nan"), event=event))
    line.close()
    assert capsys.readouterr().err.splitlines() == [
        "40/200 updates  left 1:06:40  valid 1.5  prediction error 0.250",
        "candidate 1/8 wild: diverged",
        "80/200 updates  left 1:06:40  valid 1.5  prediction error 0.250",
        "100/200 updates  left 1:06:40  valid 1.5  prediction error 0.250",
    ]


def test_bars_of_tqdm(monkeypatch):
    class Fake:
        def __init__(self, **_):
            self.total, self.n, self.said, self.closed = 0, 0, "", False

        def set_postfix_str(self, text, refresh):
            self.said = text

        def update(self, n):
            self.n += n

        def close(self):
            self.closed = True

    module = types.ModuleType("tqdm.auto")
    module.tqdm = Fake
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    monkeypatch.setattr(_progress, "in_notebook", lambda: True)
    bar = _progress.new_line(True)
    bar.show(progress())
    bar.show(progress(update=2))
    assert (bar._bar.total, bar._bar.n, bar._bar.said) == (10, 2, "bound 0.0  valid 1.5  prediction error 0.250")
    bar.close()
    assert bar._bar.closed


def test_notebooks_are_known(monkeypatch):
    assert not _progress.in_notebook()
    shell = type("Shell", (), {"__module__": "ipykernel.zmqshell"})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert _progress.in_notebook()


def test_the_package_is_typed():
    assert (Path(dvbf.__file__).parent / "py.typed").exists()
    assert os.path.exists(_library.lib._name) or _library.lib._name == "libdvbf.so.0"
