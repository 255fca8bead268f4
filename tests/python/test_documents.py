"""Every snippet of docs/python.md runs, and so do the examples."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
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


def example(name: str, folder: Path, *arguments: str) -> str:
    """What an example says."""
    path = ROOT / "examples/python" / name
    done = subprocess.run([sys.executable, path, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_forecast(tmp_path):
    said = example("forecast.py", tmp_path, "--quick")
    error, deviation = re.search(r"steps: ([\d.]+), where the deviation of the column is ([\d.]+)", said).groups()
    assert float(error) < 0.5 * float(deviation), said
    assert "<svg" in (tmp_path / "forecast.svg").read_text()


def test_online(tmp_path):
    """Each reading that is lost makes the belief less certain, each that is seen more, but for the start."""
    said = example("online.py", tmp_path)
    lines = re.findall(r"^ *\d+ +(lost|-?[\d.]+)  uncertainty ([\d.]+)", said, re.M)
    changes = {True: [], False: []}
    for (_, before), (seen, after) in zip(lines, lines[1:]):
        changes[seen == "lost"].append(float(after) - float(before))
    assert len(changes[True]) > 15 and len(changes[False]) > 30, said
    assert sum(changes[True]) > 0 > sum(changes[False]), said
    assert "microseconds" in said


def test_notebook(tmp_path, monkeypatch):
    """The cells of the notebook in their order, as Jupyter would run them."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "examples/python/pendulum.ipynb").read_text())
    assert notebook["nbformat"] == 4
    names: dict = {}
    values = {}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            values[number] = run("".join(cell["source"]), f"pendulum.ipynb, cell {number}", names)
            assert not cell["outputs"] and cell["execution_count"] is None  # kept without results
    assert "<svg" in names["m"]._repr_html_()
    assert min(regression.r2 for regression in names["found"].regressions.values()) > 0.5, values
    assert names["error"].shape == (10,) and names["error"][0] < 0.5, values
