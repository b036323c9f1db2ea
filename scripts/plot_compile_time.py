#!/usr/bin/env python3
"""Draws what compiling a field list takes against its buffers, from the CSV of benchmarks/compile_time/measure.py.

    python3 scripts/plot_compile_time.py [benchmarks/compile_time/results.csv] [docs/images/compile-time.png]

On the left the compilers' time, or their instructions as long as the CSV has no times; on the right clang's
instantiations.
"""

import argparse
import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STAGES = (("declare", "#8c8c8c"), ("plan", "#dd8452"), ("arena", "#4c72b0"), ("reports", "#55a868"))
BY_HAND = "#c44e52"
STYLES = ("-", "--", ":")
MEASURES = {
    "seconds": (1, "time to compile at -O2, s"),
    "instructions": (1e-3, "instructions of the compiler at -O2, 10⁹"),
    "instantiations": (1, "classes and functions instantiated"),
}


def read(path):
    """{(measure, compiler, subject, stage): [(buffers, value), ...]}; instantiations are classes and functions."""
    values = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            kind = "instantiations" if row["measure"] in ("classes", "functions") else row["measure"]
            line = values.setdefault((kind, row["compiler"], row["subject"], row["stage"]), {})
            line[int(row["buffers"])] = line.get(int(row["buffers"]), 0) + float(row["value"])
    return {key: sorted(line.items()) for key, line in values.items()}


def draw_measure(axis, lines, measure, stages):
    factor, label = MEASURES[measure]
    compilers = sorted({key[1] for key in lines if key[0] == measure})

    def plot(compiler, subject, stage, colour, text):
        points = lines.get((measure, compiler, subject, stage), [])
        if len(points) < 2:
            return
        axis.plot([buffers for buffers, _ in points], [value * factor for _, value in points],
                  STYLES[compilers.index(compiler) % len(STYLES)], color=colour, marker="o", markersize=3,
                  label=f"{text}, {compiler}")
        forward = lines.get((measure, compiler, "forward", stage), [])
        if subject == "list" and forward:
            axis.plot([forward[0][0]], [forward[0][1] * factor], "D" if compilers.index(compiler) == 0 else "s",
                      color="black", markersize=5, fillstyle="none", linestyle="none",
                      label=f"forward arena, {compiler}")

    for compiler in compilers:
        for stage, colour in stages:
            plot(compiler, "list", stage, colour, stage)
        plot(compiler, "by_hand", "arena", BY_HAND, "the arena by hand")
    axis.set_xlabel("buffers")
    axis.set_ylabel(label)
    axis.set_xlim(0)
    axis.set_ylim(0)
    axis.grid(True, alpha=0.3)
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def draw(lines, plt):
    time = "seconds" if any(key[0] == "seconds" for key in lines) else "instructions"
    figure, axes = plt.subplots(1, 2, figsize=(14, 4.5))
    # The reports bring the standard library's strings and streams of text with them; to see the others, they are left
    # out of the time.
    draw_measure(axes[0], lines, time, [stage for stage in STAGES if stage[0] != "reports"])
    draw_measure(axes[1], lines, "instantiations", STAGES)
    figure.tight_layout()
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=pathlib.Path, nargs="?",
                        default=ROOT / "benchmarks" / "compile_time" / "results.csv")
    parser.add_argument("png", type=pathlib.Path, nargs="?", default=ROOT / "docs" / "images" / "compile-time.png")
    options = parser.parse_args()
    lines = read(options.csv)
    if not lines:
        sys.exit(f"plot_compile_time.py: {options.csv} has no rows")
    try:
        import matplotlib
    except ImportError:
        sys.exit("plot_compile_time.py: matplotlib is missing; install it (apt-get install python3-matplotlib, or "
                 "python3 -m pip install matplotlib) and run this again")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = draw(lines, pyplot)
    options.png.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.png, dpi=110)
    print(f"wrote {options.png}")


if __name__ == "__main__":
    main()
