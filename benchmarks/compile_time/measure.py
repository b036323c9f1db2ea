#!/usr/bin/env python3
"""Measures what it takes to compile field lists, and the same buffers as an arena written by hand.

    python3 benchmarks/compile_time/measure.py                  # instantiations, by clang
    python3 benchmarks/compile_time/measure.py --instructions   # and the compilers' instructions; valgrind, an hour
    python3 benchmarks/compile_time/measure.py --wall 5         # and seconds, the best of 5; on a quiet machine
    python3 benchmarks/compile_time/measure.py --wall 5 --wall-only --compiler nvcc --subject forward --subject list

Subjects: `list` (1 to 100 buffers, up to each stage: include the headers, declare, plan, an arena with all passes,
reports), `by_hand` (the same buffers without Stowage, as far as the arena), `forward` (the forward arena with all
passes), `header` (a file that includes one header) and `empty`. Values of earlier runs in the CSV stay until they are
measured again, and the tables are of all that it has: delete it to begin anew.

Exit status 1 where growth is not linear: a buffer between 46 and 100 may cost 1.1 times what one between 8 and 46 does.
"""

import argparse
import concurrent.futures
import csv
import pathlib
import shutil
import sys
import tempfile

import compilers
import fields

HERE = pathlib.Path(__file__).resolve().parent
SIZES = (1, 8, 16, 32, 46, 64, 92, 100)
GROWTH = (8, 46, 100)
LIMIT = 1.1
KEYS = ("compiler", "subject", "buffers", "stage", "measure")
MEASURES = {
    "classes": "classes instantiated",
    "functions": "functions instantiated",
    "instructions": "instructions of the compiler at -O2, 10^6",
    "seconds": "wall time at -O2, s",
}


def growth(small, middle, large):
    """A buffer's cost between 46 and 100 over that between 8 and 46; 0 where neither costs anything."""
    early = (middle - small) / (GROWTH[1] - GROWTH[0])
    late = (large - middle) / (GROWTH[2] - GROWTH[1])
    return late / early if early > 0 else 0.0 if late <= 0 else float("inf")


def headers():
    """Public headers of the core; those of the CUDA part need the toolkit's, dlpack.hpp DLPack's."""
    folder = compilers.ROOT / "include"
    names = [str(path.relative_to(folder)) for path in sorted((folder / "stowage").rglob("*.hpp"))]
    return [name for name in names if not name.startswith(("stowage/detail/", "stowage/cuda/"))]


def cases(subjects, sizes, stages):
    """(subject, buffers, stage, source); `stage` of a header is its name."""
    yield "empty", 0, "", ""
    if "list" in subjects:
        yield "list", 0, "include", fields.stowage_source(1, "include")
        for count in sizes:
            for stage in stages:
                yield "list", count, stage, fields.stowage_source(count, stage)
    if "by_hand" in subjects:
        for count in sizes:
            yield "by_hand", count, "arena", fields.hand_written_source(count)
    if "forward" in subjects:
        yield "forward", 46, "arena", fields.FORWARD_ARENA
    if "header" in subjects:
        for name in headers():
            yield "header", 0, name, f"#include <{name}>\n"


def measure(compiler, source, options):
    values = {}
    if compiler.is_clang and not options.wall_only:
        values["classes"], values["functions"] = compiler.instantiations(source)
    if options.instructions and (counted := compiler.instructions(source)) is not None:
        values["instructions"] = round(counted / 1e6, 1)
    if options.wall:
        values["seconds"] = round(compiler.seconds(source, options.wall), 3)
    return values


def read(path):
    if not path.exists():
        return {}
    with open(path, newline="", encoding="utf-8") as file:
        return {(row["compiler"], row["subject"], int(row["buffers"]), row["stage"], row["measure"]): float(row["value"])
                for row in csv.DictReader(file)}


def write(path, results):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*KEYS, "value"))
        for key, value in sorted(results.items()):
            writer.writerow((*key, f"{value:g}" if value < 1e4 else f"{value:.0f}"))


def tables(results):
    """Prints what there is; True where growth is linear."""
    linear = True
    for compiler in sorted({key[0] for key in results}):
        for measure_name, title in MEASURES.items():
            values = {key[1:4]: value for key, value in results.items() if (key[0], key[4]) == (compiler, measure_name)}
            if not values:
                continue
            digits = 2 if measure_name == "seconds" else 0

            def cell(subject, buffers, stage):
                value = values.get((subject, buffers, stage))
                return "" if value is None else f"{value:.{digits}f}"

            print(f"\n{compiler}: {title}\n")
            print(f"  an empty file {cell('empty', 0, '')}, stowage.hpp {cell('list', 0, 'include')}, "
                  f"the forward arena {cell('forward', 46, 'arena')}\n")
            stages = fields.STAGES[1:]
            print(f"  {'buffers':>7} " + " ".join(f"{stage:>9}" for stage in stages) + f" {'by hand':>9}")
            for count in sorted({buffers for subject, buffers, _ in values if subject == "list" and buffers}):
                print(f"  {count:>7} " + " ".join(f"{cell('list', count, stage):>9}" for stage in stages)
                      + f" {cell('by_hand', count, 'arena'):>9}")
            for stage in stages:
                points = [values.get(("list", count, stage)) for count in GROWTH]
                if None in points:
                    continue
                ratio = growth(*points)
                # Seconds are noise: they are shown and decide nothing.
                judged = "" if measure_name == "seconds" else " linear" if ratio <= LIMIT else f" NOT LINEAR, above {LIMIT}"
                linear = linear and "NOT" not in judged
                print(f"  {stage}: a buffer between 46 and 100 costs {ratio:.2f} times one between 8 and 46{judged}")
            names = sorted(stage for subject, _, stage in values if subject == "header")
            if names:
                print("\n  header, beyond an empty file")
            for name in names:
                beyond = values[("header", 0, name)] - values.get(("empty", 0, ""), 0)
                print(f"  {beyond:>9.{digits}f}  {name}")
    return linear


def markdown(results):
    """Prints what docs/measurements.md shows of the CSV: the stages, and the headers."""
    columns = [(compiler, kind) for kind in MEASURES for compiler in sorted({key[0] for key in results})
               if any((key[0], key[4]) == (compiler, kind) for key in results)]

    def cells(subject, buffers, stage, minus=False):
        for compiler, kind in columns:
            value = results.get((compiler, subject, buffers, stage, kind))
            if value is None:
                yield ""
                continue
            if minus:
                value -= results.get((compiler, "empty", 0, "", kind), 0)
            yield f"{value:.2f}" if kind == "seconds" else f"{value / 1e3:.2f}" if kind == "instructions" else f"{value:.0f}"

    def table(first, rows):
        units = {"instructions": "10^9 instructions", "seconds": "s"}
        print(f"| {first} | " + " | ".join(f"{units.get(kind, kind)}, {compiler}" for compiler, kind in columns) + " |")
        print("|---" * (len(columns) + 1) + "|")
        for name, row in rows:
            if any(row):
                print(f"| {name} | " + " | ".join(row) + " |")
        print()

    rows = [("an empty file", list(cells("empty", 0, ""))), ("`stowage.hpp`", list(cells("list", 0, "include")))]
    for stage in fields.STAGES[1:]:
        rows += [(f"{stage}, {count}", list(cells("list", count, stage))) for count in SIZES]
    rows += [(f"arena by hand, {count}", list(cells("by_hand", count, "arena"))) for count in SIZES]
    table("file", [*rows, ("forward arena", list(cells("forward", 46, "arena")))])
    names = sorted({key[3] for key in results if key[1] == "header"})
    table("header, beyond an empty file", [(f"`{name}`", list(cells("header", 0, name, True))) for name in names])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", action="append", help="default: g++ and clang++-19, where they are")
    parser.add_argument("--include", action="append", default=[], metavar="DIR", help="default: this tree's headers")
    parser.add_argument("--subject", action="append", choices=("list", "by_hand", "forward", "header"),
                        help="default: all")
    parser.add_argument("--buffers", type=int, action="append", metavar="N", help="default: %s" % (SIZES,))
    parser.add_argument("--stage", action="append", choices=fields.STAGES[1:], help="of the lists; default: all")
    parser.add_argument("--instructions", action="store_true", help="count the compilers' instructions with valgrind")
    parser.add_argument("--wall", type=int, default=0, metavar="N", help="measure seconds, the best of N runs")
    parser.add_argument("--wall-only", action="store_true", help="with --wall: count nothing")
    parser.add_argument("--csv", type=pathlib.Path, default=HERE / "results.csv", help="default: %(default)s")
    parser.add_argument("--markdown", action="store_true", help="measure nothing; write the CSV's tables as Markdown")
    parser.add_argument("--jobs", type=int, default=1, help="files at once; 1 whenever --wall is given")
    options = parser.parse_args()

    subjects = options.subject or ("list", "by_hand", "forward", "header")
    names = options.compiler or [name for name in ("g++", "clang++-19") if shutil.which(name)]
    results = read(options.csv)
    if options.markdown:
        markdown(results)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            compiler = compilers.Compiler(name, options.include, "-O2")
            if not (options.instructions or options.wall or compiler.is_clang):
                continue
            work = []
            wanted = cases(subjects, options.buffers or SIZES, options.stage or fields.STAGES[1:])
            for number, (subject, buffers, stage, text) in enumerate(wanted):
                source = pathlib.Path(folder, f"{number}{compiler.suffix}")
                source.write_text(text, encoding="utf-8")
                work.append(((compiler.title, subject, buffers, stage), source))
            with concurrent.futures.ThreadPoolExecutor(1 if options.wall else options.jobs) as pool:
                for case, values in zip((case for case, _ in work),
                                        pool.map(lambda item: measure(compiler, item[1], options), work)):
                    results.update({(*case, kind): value for kind, value in values.items()})
                    print(*case, values, file=sys.stderr, flush=True)
                    write(options.csv, results)
    return 0 if tables(results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except compilers.Refused as refused:
        sys.exit(f"measure.py: {refused}")
