#!/usr/bin/env python3
"""Compiles and runs tests/toolchains/forward_arena.cpp with what this machine has, and prints a table in Markdown.

    python3 scripts/toolchains.py [--quick] [--unit-tests] [--boost FOLDER...] [--report FILE]

Compilers: g++ 12, clang 16 and 19, nvcc with g++ and with clang 16 as host compilers. Boost: the machine's, a newer one
that pip can get, and those of --boost. -std=c++20 and c++23 (nvcc 13.0 has no c++23), -O0 to -O3. Warnings are errors.

--quick: a few cells, such that each compiler, Boost, standard and level is in one: what CI runs.
--unit-tests: builds and runs all unit tests too, once for each C++ compiler, Boost and standard, at -O0. Takes long.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "toolchains"
PROGRAM = ROOT / "tests" / "toolchains" / "forward_arena.cpp"
# A package of headers alone; the tests need those of Boost.PFR.
BOOST_PACKAGE = "libboost-headers"
BOOST_PACKAGE_VERSION = "1.88.0"

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow"]
STANDARDS = ["c++20", "c++23"]
LEVELS = ["-O0", "-O1", "-O2", "-O3"]


@dataclasses.dataclass(frozen=True)
class Compiler:
    name: str
    command: tuple
    is_nvcc: bool = False


@dataclasses.dataclass(frozen=True)
class Boost:
    name: str
    include: str = ""  # empty: where the compiler looks by itself


@dataclasses.dataclass(frozen=True)
class Cell:
    compiler: Compiler
    boost: Boost
    standard: str
    level: str


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def find_compilers():
    """(found, names of those that are missing)"""
    found, missing = [], []
    for command, name in (("g++", "g++"), ("clang++-16", "clang"), ("clang++-19", "clang")):
        if path := shutil.which(command):
            option = "-dumpfullversion" if name == "g++" else "-dumpversion"
            found.append(Compiler(f"{name} {output_of(path, option).strip()}", (path,)))
        else:
            missing.append(command)
    nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    for host in ("g++", "clang++-16"):
        if nvcc and shutil.which(host):
            release = re.search(r"release ([\d.]+)", output_of(nvcc, "--version"))[1]
            name = "g++" if host == "g++" else "clang 16"
            found.append(Compiler(f"nvcc {release} with {name}", (nvcc, f"-ccbin={host}"), is_nvcc=True))
        else:
            missing.append(f"nvcc with {host}")
    return found, missing


def version_of_boost(include, compiler="g++"):
    """The version as text, or None where there is no Boost."""
    options = ["-I", include] if include else []
    result = subprocess.run([compiler, *options, "-x", "c++", "-E", "-dM", "-include", "boost/version.hpp", os.devnull],
                            capture_output=True, text=True, check=False)
    match = re.search(r'BOOST_LIB_VERSION "(\d+)_(\d+)', result.stdout)
    return f"{match[1]}.{match[2]}" if match else None


def python_with_pip():
    """This Python, or one of a virtual environment where it has no pip, as Debian's."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
        return sys.executable
    environment = BUILD / "pip"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], capture_output=True, check=False)
    return str(environment / "bin" / "python")


def newer_boost():
    """The folder of a newer Boost's headers, got by pip where it is not there yet; None where it cannot be had."""
    folder = BUILD / f"boost-{BOOST_PACKAGE_VERSION}"
    if (folder / "boost" / "version.hpp").exists():
        return str(folder)
    with tempfile.TemporaryDirectory() as scratch:
        result = subprocess.run(
            [python_with_pip(), "-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
             "--dest", scratch, f"{BOOST_PACKAGE}=={BOOST_PACKAGE_VERSION}"],
            capture_output=True, text=True, check=False)
        wheels = list(pathlib.Path(scratch).glob("*.whl"))
        if result.returncode != 0 or not wheels:
            print(result.stdout + result.stderr, file=sys.stderr)
            return None
        with zipfile.ZipFile(wheels[0]) as wheel:
            for name in sorted(wheel.namelist()):  # version.hpp last: the folder is whole once that is there
                header = name.partition("/include/")[2]
                if header.startswith("boost/pfr") or header == "boost/version.hpp":
                    target = folder / header
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(wheel.read(name))
    return str(folder)


def find_boosts(folders):
    """(found, what is missing)"""
    found, missing = [], []
    if version := version_of_boost(""):
        found.append(Boost(version))
    else:
        missing.append("Boost where compilers look for headers")
    newer = newer_boost()
    if not newer:
        missing.append(f"a newer Boost: pip found no {BOOST_PACKAGE} {BOOST_PACKAGE_VERSION}")
    for folder in filter(None, [*folders, newer]):
        if version := version_of_boost(folder):
            found.append(Boost(version, folder))
        else:
            missing.append(f"Boost in {folder}")
    return found, missing


def options_of(cell):
    old_clang = cell.compiler.name.startswith("clang 16") and cell.standard == "c++23"
    options = ["-std=c++2b" if old_clang else f"-std={cell.standard}", cell.level, "-I", str(ROOT / "include")]
    if cell.boost.include:
        options += ["-isystem", cell.boost.include]
    if cell.compiler.is_nvcc:
        return [*options, "-x", "cu", "-arch=sm_75", "-Werror", "all-warnings",
                f"-Xcompiler={','.join([*WARNINGS, '-Werror'])}"]
    # g++ 12 takes some concatenations of strings for overlapping copies, in the standard library's own header.
    quiet = ["-Wno-restrict"] if cell.compiler.name.startswith("g++ 12") else []
    return [*options, *WARNINGS, "-Wpedantic", "-Werror", *quiet]


def run(command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    return result.returncode == 0, result.stdout


def try_cell(cell):
    """(text of the cell, output of a failure)"""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program")
        built, output = run([*cell.compiler.command, *options_of(cell), str(PROGRAM), "-o", program])
        if not built:
            return "does not compile", output
        worked, output = run([program])
        return ("works", "") if worked and output.strip() == "works" else ("does not work", output)


def try_unit_tests(compiler, boost, standard, jobs):
    folder = BUILD / re.sub(r"[^\w.+]+", "-", f"{compiler.name} boost {boost.name} {standard}")
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                 f"-DCMAKE_CXX_COMPILER={compiler.command[0]}", f"-DCMAKE_CXX_STANDARD={standard.removeprefix('c++')}",
                 "-DSTOWAGE_CUDA=OFF", "-DSTOWAGE_BUILD_EXAMPLES=OFF", "-DSTOWAGE_BUILD_BENCHMARKS=OFF"]
    if boost.include:
        configure += ["-DBoost_NO_BOOST_CMAKE=ON", f"-DBoost_INCLUDE_DIR={boost.include}"]
    for command in (configure, ["cmake", "--build", str(folder), "-j", str(jobs), "--target", "stowage_unit_tests"],
                    [str(folder / "tests" / "stowage_unit_tests")]):
        worked, output = run(command)
        if not worked:
            return "fails", output
    return re.search(r"assertions:\s*(\d+)", output)[1] + " assertions", ""


def has_standard(compiler, standard):
    return not (compiler.is_nvcc and standard == "c++23")


def quick_cells(compilers, boosts):
    """A few cells that have every compiler, every Boost, every standard and every level."""
    cells = []
    for number, compiler in enumerate(compilers):
        # nvcc takes long: one cell a host compiler.
        for turn in range(1 if compiler.is_nvcc else 2):
            standard = STANDARDS[turn] if has_standard(compiler, STANDARDS[turn]) else STANDARDS[0]
            boost = boosts[-1 - (number + turn) % len(boosts)]
            cells.append(Cell(compiler, boost, standard, LEVELS[(number + 2 * turn) % len(LEVELS)]))
    return cells


def all_cells(compilers, boosts):
    return [Cell(compiler, boost, standard, level) for compiler in compilers for boost in boosts
            for standard in STANDARDS if has_standard(compiler, standard) for level in LEVELS]


def table_of(results, columns, compilers, boosts):
    lines = ["| compiler | Boost | " + " | ".join(columns) + " |", "|" + "---|" * (2 + len(columns))]
    for compiler in compilers:
        for boost in boosts:
            row = [results.get((compiler, boost, column), "") for column in columns]
            if any(row):
                lines.append(f"| {compiler.name} | {boost.name} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few cells")
    parser.add_argument("--unit-tests", action="store_true", help="the unit tests too")
    parser.add_argument("--boost", action="append", default=[], metavar="FOLDER", help="one more Boost")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--report", type=pathlib.Path, help="the tables go into this file too")
    arguments = parser.parse_args()

    compilers, missing = find_compilers()
    boosts, missing_boosts = find_boosts(arguments.boost)
    if not compilers or not boosts:
        print("There is no compiler or no Boost:", ", ".join([*missing, *missing_boosts]))
        return 2

    failures = 0
    results = {}
    cells = (quick_cells if arguments.quick else all_cells)(compilers, boosts)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for cell, (text, output) in zip(cells, pool.map(try_cell, cells)):
            results[cell.compiler, cell.boost, f"{cell.standard} {cell.level}"] = text
            if text != "works":
                failures += 1
                print(f"FAILED: {cell.compiler.name}, Boost {cell.boost.name}, {cell.standard} {cell.level}: {text}\n"
                      f"{output[-4000:]}", file=sys.stderr)
    columns = [f"{standard} {level}" for standard in STANDARDS for level in LEVELS]
    report = ["The forward arena, from plan to reports, by compiler, Boost, standard and level:", "",
              table_of(results, columns, compilers, boosts)]

    if arguments.unit_tests:
        unit = {}
        for compiler in compilers:
            for boost in () if compiler.is_nvcc else boosts:
                for standard in STANDARDS:
                    text, output = try_unit_tests(compiler, boost, standard, arguments.jobs)
                    unit[compiler, boost, standard] = text
                    if text == "fails":
                        failures += 1
                        print(f"FAILED: unit tests, {compiler.name}, Boost {boost.name}, {standard}\n{output[-4000:]}",
                              file=sys.stderr)
        report += ["", "The unit tests at -O0:", "", table_of(unit, STANDARDS, compilers, boosts)]

    report += [f"\nNot here: {name}" for name in [*missing, *missing_boosts]]
    text = "\n".join(report) + "\n"
    print(text, end="")
    if arguments.report:
        arguments.report.write_text(text, encoding="utf-8")
    print(f"\n{len(cells)} programs, {failures} failures", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
