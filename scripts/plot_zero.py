#!/usr/bin/env python3
"""Draws the time of a zero pass against the tokens of the batch, from the CSV of bench_cuda_zero_passes.

    python3 scripts/plot_zero.py gpu-logs/zero_passes.csv [docs/zero-passes.png] [--capacity 4096] [--set all]
"""

import argparse
import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONTENDERS = (
    ("hand_us", "a memset for each buffer", "#c44e52"),
    ("ours_us", "zero_rows", "#4c72b0"),
    ("memset_us", "one memset of the same bytes", "#8c8c8c"),
)
STYLES = {"stream": "-", "graph": "--"}
MODES = {"stream": "in a stream", "graph": "in a graph, chain of passes"}


def read(path, capacity, buffers):
    """The rows of one capacity and set of buffers: {model: {mode: [row, ...]}}, in the order of the file."""
    models = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if int(row["capacity"]) == capacity and row["set"] == buffers:
                models.setdefault(row["model"], {}).setdefault(row["mode"], []).append(row)
    for modes in models.values():
        for rows in modes.values():
            rows.sort(key=lambda row: int(row["tokens"]))
    return models


def draw(models, capacity, plt):
    figure, axes = plt.subplots(1, len(models), figsize=(5 * len(models), 4.5), sharey=True, squeeze=False)
    for axis, (model, modes) in zip(axes[0], models.items()):
        for mode, rows in modes.items():
            tokens = [int(row["tokens"]) for row in rows]
            for column, label, colour in CONTENDERS:
                axis.plot(tokens, [float(row[column]) for row in rows], STYLES.get(mode, ":"), color=colour,
                          marker="o", markersize=3, label=f"{label}, {MODES.get(mode, mode)}")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_title(f"{model}, M = {capacity}")
        axis.set_xlabel("tokens of the batch")
        axis.grid(True, which="major", alpha=0.3)
    axes[0][0].set_ylabel("time of one pass, µs (median)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=2, frameon=False)
    figure.tight_layout(rect=(0, 0.17, 1, 1))
    return figure


def main():
    parser = argparse.ArgumentParser(description="Draws time against tokens from the CSV of bench_cuda_zero_passes.")
    parser.add_argument("csv", type=pathlib.Path)
    parser.add_argument("png", type=pathlib.Path, nargs="?", default=ROOT / "docs" / "zero-passes.png")
    parser.add_argument("--capacity", type=int, default=4096, help="M (default: %(default)s)")
    parser.add_argument("--set", dest="buffers", choices=("rows", "all"), default="all",
                        help="the row buffers, or the fully zeroed ones too (default: %(default)s)")
    options = parser.parse_args()
    models = read(options.csv, options.capacity, options.buffers)
    if not models:
        sys.exit(f"plot_zero.py: {options.csv} has no rows for M = {options.capacity}, set {options.buffers}")
    try:
        import matplotlib
    except ImportError:
        sys.exit("plot_zero.py: matplotlib is missing; install it (apt-get install python3-matplotlib, or "
                 "python3 -m pip install matplotlib) and run this again")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = draw(models, options.capacity, pyplot)
    options.png.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.png, dpi=130)
    print(f"wrote {options.png}")


if __name__ == "__main__":
    main()
