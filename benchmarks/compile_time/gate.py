#!/usr/bin/env python3
"""Fails where clang instantiates over 3 percent more templates than baseline.json says.

    python3 benchmarks/compile_time/gate.py            # the test `compile_time`
    python3 benchmarks/compile_time/gate.py --renew    # writes the baseline; review what changed, and commit it

Counts do not depend on the machine, its load or the optimiser, but on the versions of clang, the standard library and
Boost, and on the target: the baseline names those it was made with, and with others the test says SKIPPED. Classes and
functions are counted apart, for each stage of lists of 8, 46 and 100 buffers, for stowage.hpp and for the forward
arena. Growth must be linear as well: between 46 and 100 a buffer may cost 1.1 times what it costs between 8 and 46.

It also compiles and runs the list of 46 beside the same buffers by hand: that both clear the same bytes is what makes
the comparison of their compile times one.
"""

import argparse
import concurrent.futures
import json
import pathlib
import sys
import tempfile

import compilers
import fields
from measure import GROWTH, LIMIT, growth

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77  # for CTest
ALLOWED = 3  # percent
KINDS = ("classes", "functions")
RENEW = "python3 benchmarks/compile_time/gate.py --renew"


def cases():
    """{name: source}"""
    found = {"stowage.hpp": fields.stowage_source(1, "include"), "forward arena": fields.FORWARD_ARENA}
    for stage in fields.STAGES[1:]:
        for count in GROWTH:
            found[f"{stage}, {count} buffers"] = fields.stowage_source(count, stage)
    return found


def count(compiler, folder, jobs):
    """{name: {kind: instantiations}}"""

    def one(item):
        number, text = item
        source = pathlib.Path(folder, f"{number}.cpp")
        source.write_text(text, encoding="utf-8")
        return dict(zip(KINDS, compiler.instantiations(source)))

    sources = cases()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return dict(zip(sources, pool.map(one, enumerate(sources.values()))))


def compare(baseline, counts):
    """(lines, failures, hints)"""
    lines, failures, hints = [], [], []
    lines.append(f"{'stage':<24} " + " ".join(f"{kind:>10} {'baseline':>9} {'change':>8}" for kind in KINDS))
    for name in sorted(baseline.keys() | counts.keys()):
        if name not in baseline or name not in counts:
            failures.append(f"stage '{name}' is in the {'counts' if name in counts else 'baseline'} only")
            continue
        line = f"{name:<24}"
        for kind in KINDS:
            now, then = counts[name][kind], baseline[name][kind]
            change = f"{now / then - 1:+.1%}"
            line += f" {now:>10} {then:>9} {change:>8}"
            text = f"stage '{name}': {now} {kind} are instantiated, {then} in the baseline, {change}"
            if 100 * now > (100 + ALLOWED) * then:
                failures.append(f"{text}; at most +{ALLOWED}% is allowed")
            elif 100 * now < (100 - ALLOWED) * then:
                hints.append(text)
        lines.append(line)
    return lines, failures, hints


def nonlinear(counts):
    failures = []
    for stage in fields.STAGES[1:]:
        for kind in KINDS:
            points = [counts[f"{stage}, {size} buffers"][kind] for size in GROWTH]
            ratio = growth(*points)
            if ratio > LIMIT:
                failures.append(f"stage '{stage}': {kind} instantiated for {GROWTH} buffers: {points}; a buffer costs "
                                f"{ratio:.2f} times as much at the end as at the beginning, {LIMIT} is allowed")
    return failures


def same_arenas(compiler, folder):
    """Nothing, or where the arena by hand differs."""
    source, program = pathlib.Path(folder, "comparison.cpp"), pathlib.Path(folder, "comparison")
    source.write_text(fields.comparison(46), encoding="utf-8")
    compilers.run([compiler.name, compilers.STANDARD, *compiler.includes, source, "-o", program])
    try:
        compilers.run([program])
    except compilers.Refused as refused:
        return [f"the arena by hand is another than the one declared: {refused}"]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="clang++-19")
    parser.add_argument("--include", action="append", default=[], metavar="DIR", help="default: this tree's headers")
    parser.add_argument("--baseline", type=pathlib.Path, default=HERE / "baseline.json", help="default: %(default)s")
    parser.add_argument("--renew", action="store_true", help="write the baseline instead of comparing with it")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()

    compiler = compilers.Compiler(options.compiler, options.include)
    environment = compiler.environment()
    if not compiler.is_clang:
        print(f"SKIPPED: {environment['compiler']} writes no time trace; clang counts instantiations")
        return SKIPPED
    baseline = None
    if not options.renew:
        baseline = json.loads(options.baseline.read_text(encoding="utf-8"))
        if environment != baseline["environment"]:
            print("SKIPPED: counts depend on these versions, and the baseline was made with others")
            for key, here in environment.items():
                there = baseline["environment"].get(key)
                print(f"  {key}: {here}" + ("" if here == there else f"; the baseline's: {there}"))
            return SKIPPED

    with tempfile.TemporaryDirectory() as folder:
        counts = count(compiler, folder, options.jobs)
        failures = nonlinear(counts) + same_arenas(compiler, folder)
    if options.renew:
        text = json.dumps({"environment": environment, "counts": counts}, indent=2) + "\n"
        options.baseline.write_text(text, encoding="utf-8")
        print(f"wrote {options.baseline}; review what changed")
    else:
        lines, over, hints = compare(baseline["counts"], counts)
        failures += over
        print("\n".join(lines))
        for hint in hints:
            print(f"HINT: {hint}; keep what was gained: {RENEW}")
        if over:
            print(f"\nWhat is instantiated more often takes longer to compile, for every user. If it is worth that: {RENEW}")
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except compilers.Refused as refused:
        sys.exit(f"gate.py: {refused}")
