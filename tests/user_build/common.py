"""What the checks of this folder share."""

import argparse
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"


def arguments_of(description):
    """Options: the compiler, --include folders (the library's first), and --toolkit for headers of stowage/cuda."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--include", action="append", default=[], metavar="DIR")
    parser.add_argument("--without", action="append", default=[], metavar="HEADER", help="leave a header out")
    return parser.parse_args()


def is_clang(compiler):
    text = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    return "clang" in text


def headers(without=()):
    """The public headers and the private ones, without the CUDA part."""
    names = sorted(path.relative_to(INCLUDE).as_posix() for path in (INCLUDE / "stowage").rglob("*.hpp"))
    return [name for name in names if not name.startswith("stowage/cuda/") and name not in without]


def include_lines(names):
    return "".join(f"#include <{name}>\n" for name in names)


def compile_text(compiler, options, text):
    """(whether it compiles, what the compiler says, its standard output)"""
    result = subprocess.run([compiler, "-std=c++20", *options, "-x", "c++", "-"], input=text, capture_output=True,
                            text=True, check=False)
    return result.returncode == 0, result.stderr, result.stdout


def report(problems, passed):
    """Prints what was found and gives the exit status."""
    for problem in problems:
        print(problem)
    print(f"{passed} passed, {len(problems)} failed")
    return 1 if problems or passed == 0 else 0
