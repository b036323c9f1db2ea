#!/usr/bin/env python3
"""Checks code that must not compile.

Every *.cpp file of this folder is a test. Compiled with -DSTOWAGE_MUST_NOT_COMPILE it must fail, and the first
error must match the regular expression of its line

    // expect: REGEX

A compiler's own line, `// expect-gcc:`, `// expect-clang:` or `// expect-nvcc:`, takes the place of it. Without
the definition the same file, the case's twin, must compile without a warning: a case that fails for another
reason than the one it is about has a twin that fails too.

A file can hold several cases, each in a block `#if STOWAGE_MUST_NOT_COMPILE == N` and each with a heading that
its expectations follow:

    // case 1: what is wrong
    // expect: REGEX
    // case 2: what else is wrong
    // expect-gcc: REGEX
    // expect-clang: REGEX
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

NAME = "STOWAGE_MUST_NOT_COMPILE"
KINDS = ("gcc", "clang", "nvcc")
CASE = re.compile(r"^\s*//\s*case\s+(\d+)\s*:\s*(.*?)\s*$")
EXPECT = re.compile(r"^\s*//\s*expect(?:-(\w+))?:[ \t]*(.*?)\s*$")
BLOCK = re.compile(rf"^\s*#\s*(?:el)?if\b.*\b{NAME}\s*==\s*(\d+)", re.MULTILINE)
# "error:" as g++ and clang write it, "error #20011-D:" as nvcc can; not a path such as error.hpp.
ERROR = re.compile(r"(?:^|[\s:])(?:fatal )?error(?: #\S+)?:")
CRASH = re.compile(r"internal compiler error|internal error|PLEASE submit a bug report|compiler crash")


class Case:
    def __init__(self, number, description):
        self.number = number
        self.description = description
        self.expectations = {}  # by kind of compiler, "" for all
        self.mistakes = []

    def regex(self, kind):
        """The expectation for a kind of compiler, or None."""
        return self.expectations.get(kind, self.expectations.get(""))


def check_regex(regex):
    """What is wrong with an expectation, or None."""
    if not regex:
        return "an expectation is empty"
    try:
        if re.compile(regex).search(""):
            return f"the expectation '{regex}' matches anything"
    except re.error as error:
        return f"the expectation '{regex}' is no regular expression: {error}"
    return None


def read_cases(text):
    """The cases of a file. One without headings is one case, its number 1."""
    cases = []
    before = Case(1, "")
    for line in text.splitlines():
        if heading := CASE.match(line):
            case = Case(int(heading[1]), heading[2])
            if any(case.number == other.number for other in cases):
                case.mistakes.append("its number is taken")
            cases.append(case)
        elif expectation := EXPECT.match(line):
            case = cases[-1] if cases else before
            kind, regex = expectation[1] or "", expectation[2]
            if kind and kind not in KINDS:
                case.mistakes.append(f"expect-{kind}: the compilers are {', '.join(KINDS)}")
            if kind in case.expectations:
                case.mistakes.append("it has two expectations of one sort")
            if mistake := check_regex(regex):
                case.mistakes.append(mistake)
            case.expectations[kind] = regex

    blocks = {int(number) for number in BLOCK.findall(text)}
    if not cases and not blocks:
        return [before]
    if before.expectations:
        cases.insert(0, before)
        before.mistakes = ["an expectation stands before the first '// case N:'"]
    for case in cases:
        if case is not before and case.number not in blocks:
            case.mistakes.append(f"there is no '#if {NAME} == {case.number}'")
    for number in sorted(blocks - {case.number for case in cases}):
        cases.append(Case(number, ""))
        cases[-1].mistakes.append(f"there is no '// case {number}:'")
    return cases


class Compiler:
    def __init__(self, path, kind, includes, flags, folder):
        self.path = path
        self.environment = {**os.environ, "LC_ALL": "C"}
        self.kind = kind or self.detect()
        self.folder = folder
        self.options = ["-std=c++20", *flags]
        for include in includes:
            self.options += ["-I", include]

    def detect(self):
        done = subprocess.run([self.path, "--version"], capture_output=True, text=True, env=self.environment)
        version = done.stdout.lower()
        if "nvidia" in version:
            return "nvcc"
        if "clang" in version:
            return "clang"
        if "free software foundation" in version:
            return "gcc"
        sys.exit(f"run.py: {self.path} is neither of {', '.join(KINDS)}; say which with --kind")

    def compile(self, source, options, warnings):
        """The exit status and output of checking one file."""
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            command = [self.path, *self.options, *options]
            if self.kind == "nvcc":
                # It has no -fsyntax-only.
                command += ["-x", "cu", "-c", "-o", f"{scratch}/object"]
                if warnings:
                    command += ["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"]
            else:
                caret = "-fno-caret-diagnostics" if self.kind == "clang" else "-fno-diagnostics-show-caret"
                command += ["-fsyntax-only", "-fdiagnostics-color=never", caret]
                if warnings:
                    command += ["-Wall", "-Wextra", "-Werror"]
            done = subprocess.run([*command, str(source)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace", env=self.environment, cwd=scratch)
        return done.returncode, done.stdout


def first_error(output):
    return next((line for line in output.splitlines() if ERROR.search(line)), None)


def indented(output, lines=12):
    return "".join(f"      {line}\n" for line in output.splitlines()[:lines])


def check_twin(compiler, source):
    """What is wrong with a file's twin, or None."""
    status, output = compiler.compile(source, [], warnings=True)
    return None if status == 0 else f"its twin does not compile\n{indented(output)}".rstrip()


def check_case(compiler, source, case):
    """What is wrong with a case itself, or None."""
    if case.mistakes:
        return "; ".join(case.mistakes)
    regex = case.regex(compiler.kind)
    if regex is None:
        return f"there is no expectation for {compiler.kind}"
    status, output = compiler.compile(source, [f"-D{NAME}={case.number}"], warnings=False)
    if status == 0:
        return "it compiles"
    if status < 0 or CRASH.search(output):
        return f"the compiler crashed\n{indented(output)}".rstrip()
    error = first_error(output)
    if error is None:
        return f"there is no error in the output\n{indented(output)}".rstrip()
    if not re.search(regex, error):
        return f"the first error is\n      {error.strip()}\n    and not\n      {regex}"
    return None


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Checks code that must not compile.")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="the files; all of this folder by default")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--kind", choices=KINDS, help="found out from the compiler by default")
    parser.add_argument("--include", action="append", default=[], metavar="DIR")
    parser.add_argument("--flag", action="append", default=[], help="one more option, as in --flag=-ccbin=clang++")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()

    sources = [file.resolve() for file in arguments.files] or sorted(here.glob("*.cpp"))
    includes = [os.path.abspath(include) for include in arguments.include] or [str(here.parents[1] / "include")]

    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        compiler = Compiler(arguments.compiler, arguments.kind, includes, arguments.flag, folder)
        files = []
        for source in sources:
            twin = pool.submit(check_twin, compiler, source)
            cases = read_cases(source.read_text(encoding="utf-8"))
            files.append((source, twin, [(case, pool.submit(check_case, compiler, source, case)) for case in cases]))
        for source, twin, cases in files:
            for case, result in cases:
                name = source.name if len(cases) == 1 else f"{source.name} case {case.number}"
                if case.description:
                    name += f": {case.description}"
                problem = result.result() or twin.result()
                if problem is None:
                    passed += 1
                    print(f"pass  {name}", flush=True)
                else:
                    failed += 1
                    print(f"FAIL  {name}: {problem}", flush=True)

    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
