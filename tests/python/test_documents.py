"""Every snippet of docs/python.md runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(code: str, where: str, names: dict) -> object:
    """Runs a piece of code; the value of its last line, if that is an expression."""
    tree = ast.parse(code, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    return eval(compile(ast.Expression(last.value), where, "eval"), names) if last else None


def test_snippets(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/python.md").read_text()
    names: dict = {}
    pieces = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(pieces) > 10
    for number, piece in enumerate(pieces):
        run(piece, f"docs/python.md, piece {number + 1}", names)
    said = capsys.readouterr().out
    assert "<dvbf.Model dvbf: x 2, u 1, z 3>" in said and "latent = 0: must be a whole number in [1, 1024]" in said
    assert (tmp_path / "report.html").exists()
