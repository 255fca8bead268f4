"""From a CSV file to a forecast with a picture.

    python3 forecast.py recording.csv --outputs y --inputs u --steps 100 -o forecast.svg

The model learns from the first part of the recording; the last STEPS rows are predicted from the rows before them and the
inputs alone, and plotted with the measurements. Without a file it simulates a recording of a tank.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import dvbf
import numpy as np


def make_recording(path: Path) -> None:
    """Two tanks, one above the other, and a pump: its voltage, and the level of the lower tank."""
    rng = np.random.default_rng(2)
    upper = lower = 1.0
    voltage = np.repeat(rng.uniform(0, 2, 100), 10)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["u", "y"])
        for v in voltage:
            rows.writerow([f"{v:.4f}", f"{lower + 0.01 * rng.normal():.4f}"])
            upper, lower = upper + 0.1 * (v - np.sqrt(upper)), lower + 0.1 * (np.sqrt(upper) - np.sqrt(lower))


def read(path: Path, columns: list[str]) -> np.ndarray:
    with path.open() as file:
        return np.array([[float(row[name] or "nan") for name in columns] for row in csv.DictReader(file)], np.float32)


def draw(path: Path, truth: np.ndarray, low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> None:
    """A picture of one column: the band of the forecast, its median, and the truth; by matplotlib where that is there."""
    try:
        from matplotlib import pyplot
    except ImportError:
        draw_plainly(path, truth, low, middle, high)
        return
    figure, axes = pyplot.subplots(figsize=(8, 3))
    axes.fill_between(np.arange(len(truth)), low, high, color="#bcd4ee", label="90 %")
    axes.plot(middle, color="#2a6fb5", label="forecast")
    axes.plot(truth, color="#222", linewidth=1, label="measured")
    axes.legend()
    figure.savefig(path)


def draw_plainly(path: Path, truth: np.ndarray, low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> None:
    bottom, top = min(low.min(), np.nanmin(truth)), max(high.max(), np.nanmax(truth))
    x = np.linspace(10, 590, len(truth))

    def points(values: np.ndarray, at: np.ndarray) -> str:
        y = 210 - 200 * (values - bottom) / (top - bottom + 1e-9)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(at, y))

    band = points(np.concatenate([low, high[::-1]]), np.concatenate([x, x[::-1]]))
    path.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 220" fill="none">'
        f'<polygon points="{band}" fill="#bcd4ee"/>'
        f'<polyline points="{points(middle, x)}" stroke="#2a6fb5" stroke-width="2"/>'
        f'<polyline points="{points(truth, x)}" stroke="#222" stroke-width="1"/></svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--outputs", default="y", help="columns to predict")
    parser.add_argument("--inputs", default="u", help="columns that drive the system; empty: none")
    parser.add_argument("--steps", type=int, default=100, help="rows to predict")
    parser.add_argument("--quick", action="store_true", help="one short training in the place of a search, in seconds")
    parser.add_argument("-o", "--output", type=Path, default=Path("forecast.svg"))
    given = parser.parse_args()
    file = given.file or Path("recording.csv")
    if given.file is None:
        make_recording(file)
    x = read(file, given.outputs.split(","))
    u = read(file, given.inputs.split(",")) if given.inputs else None
    known = len(x) - given.steps
    short = {"search": False, "updates": 300, "gain_updates": 100} if given.quick else {}
    model = dvbf.fit(x[:known], None if u is None else u[:known], **short)
    print(model.verdict().sentence)
    ahead = model.predict(x[:known], u, steps=given.steps)
    low, middle, high = ahead.x_quantiles[:, 0, :, 0]
    truth = x[known:, 0]
    draw(given.output, truth, low, middle, high)
    error = np.sqrt(np.nanmean((middle - truth) ** 2))
    print(f"error over {given.steps} steps: {error:.3f}, where the deviation of the column is {np.nanstd(x[:, 0]):.3f}")
    print(f"{np.mean((truth > low) & (truth < high)):.0%} of the truth is inside the 90 % band; {given.output} shows it")


if __name__ == "__main__":
    main()
