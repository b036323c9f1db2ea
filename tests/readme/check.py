#!/usr/bin/env python3
"""Compiles and runs the first program of the README: the first ```cpp block that contains `int main`."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77  # for CTest


def first_program(text):
    """The block and its line number, or None."""
    for block in re.finditer(r"^```cpp[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if "int main" in block[1]:
            return block[1], text.count("\n", 0, block.start(1)) + 1
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--include", action="append", default=[], metavar="DIR")
    arguments = parser.parse_args()

    root = pathlib.Path(__file__).resolve().parents[2]
    readme = root / "README.md"
    if not readme.exists():
        print("SKIPPED: no README.md")
        return SKIPPED
    program = first_program(readme.read_text(encoding="utf-8"))
    if program is None:
        print("README.md has no ```cpp block with `int main`")
        return 1

    code, line = program
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "readme.cpp")
        source.write_text(f'#line {line} "README.md"\n{code}', encoding="utf-8")
        executable = pathlib.Path(folder, "readme")
        command = [arguments.compiler, "-std=c++20", "-Wall", "-Wextra"]
        for include in arguments.include or [str(root / "include")]:
            command += ["-I", os.path.abspath(include)]
        if status := subprocess.run([*command, str(source), "-o", str(executable)]).returncode:
            return status
        status = subprocess.run([str(executable)], cwd=folder).returncode
        print(f"README.md:{line}: the program's exit status is {status}")
        return status


if __name__ == "__main__":
    sys.exit(main())
