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

--page FILE holds a page of the documentation against the cases. In it, a block

    <!-- first line: field_list 1 -->
    ```text
    g++    error: ...
    clang  error: ...
    nvcc   error: ...
    ```

shows the first error of a case, from the word "error" on; the middle of a long one is left out. Each line must match the expectation of
its compiler, and be what the compiler says where it has the version that the page is about. A kind of error that no
case on the page has is a failure. --write-page writes this compiler's lines; --page-only leaves out the other cases,
and the twins.
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


# What a page calls the compilers, and the versions whose words it shows.
PAGE_NAMES = {"gcc": "g++", "clang": "clang", "nvcc": "nvcc"}
PAGE_VERSIONS = {"gcc": "12.", "clang": "19.", "nvcc": "13.0"}
PAGE_BLOCK = re.compile(r"^<!-- first line: (?P<stem>\w+) (?P<number>\d+) -->\n```text\n(?P<lines>.*?)^```$",
                        re.MULTILINE | re.DOTALL)
PAGE_WIDTH = 170, 100  # characters of the beginning and of the end of a longer line
# Where nvcc says a function is declared: another place on every machine and after every edit.
DECLARED_AT = re.compile(r" \(declared at line \d+ of [^)]*\)")


def shortened(error):
    first, last = PAGE_WIDTH
    error = DECLARED_AT.sub("", error)
    return error if len(error) <= first + last else f"{error[:first]} ... {error[-last:]}"


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
        self.version = self.find_version()
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

    def find_version(self):
        option = "--version" if self.kind == "nvcc" else "-dumpversion" if self.kind == "clang" else "-dumpfullversion"
        done = subprocess.run([self.path, option], capture_output=True, text=True, env=self.environment)
        release = re.search(r"release ([\d.]+)", done.stdout) if self.kind == "nvcc" else None
        return release[1] if release else done.stdout.strip()

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


class Page:
    """First lines of errors in a page of the documentation."""

    def __init__(self, path):
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.shown = {}  # (stem, number): {kind: line}
        for block in PAGE_BLOCK.finditer(self.text):
            lines = {}
            for line in block["lines"].splitlines():
                name, _, error = line.partition(" ")
                lines.update({kind: error.strip() for kind, wanted in PAGE_NAMES.items() if name == wanted})
            self.shown[block["stem"], int(block["number"])] = lines
        self.seen = {}  # the same, as the compiler has it

    def note(self, source, case, error):
        if (source.stem, case.number) in self.shown:
            error = error[re.search(r"error(?: #\S+)?:", error).start():].strip()
            self.seen[source.stem, case.number] = shortened(error)

    def problems(self, compiler, files):
        """What is wrong with the page, line by line; files: the sources with their cases."""
        cases = {(source.stem, case.number): case for source, _, checks in files for case, _ in checks}
        for key, lines in self.shown.items():
            name = f"{self.path.name}: {key[0]} {key[1]}"
            if key not in cases:
                yield f"{name}: there is no such case"
                continue
            for kind in KINDS:
                # Without the file that it expects the error in: the page shows none.
                regex = re.sub(r"^\w+(\\\.hpp|_generated)\.\*", "", cases[key].regex(kind) or "")
                if kind not in lines:
                    yield f"{name}: no line of {PAGE_NAMES[kind]}"
                elif not re.search(regex, lines[kind]):
                    yield f"{name}: the line of {PAGE_NAMES[kind]} does not match {regex}"
            seen = self.seen.get(key)
            if compiler.version.startswith(PAGE_VERSIONS[compiler.kind]) and seen != lines.get(compiler.kind):
                yield f"{name}: {PAGE_NAMES[compiler.kind]} {compiler.version} says\n      {seen}"
        # What the regular expression begins with, up to the first name in it, is the kind of error.
        kinds = {key: re.split(r"<|\.\*", case.regex("gcc") or "")[0] for key, case in cases.items()}
        on_page = {kinds[key] for key in self.shown if key in kinds}
        for key, kind in kinds.items():
            if kind and not any(kind.startswith(one) or one.startswith(kind) for one in on_page):
                yield f"{self.path.name}: no case shows '{kind}', which {key[0]} {key[1]} is about"
                on_page.add(kind)

    def write(self, kind):
        def block(match):
            key = match["stem"], int(match["number"])
            lines = {**self.shown[key], **({kind: self.seen[key]} if key in self.seen else {})}
            text = "".join(f"{PAGE_NAMES[one]:<6} {lines[one]}\n" for one in KINDS if one in lines)
            return match[0].replace(f"```text\n{match['lines']}```", f"```text\n{text}```")

        self.path.write_text(PAGE_BLOCK.sub(block, self.text), encoding="utf-8")


def check_case(compiler, source, case, page=None):
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
    if page:
        page.note(source, case, error)
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
    parser.add_argument("--page", type=pathlib.Path, help="a page of the documentation that shows the errors")
    parser.add_argument("--page-only", action="store_true", help="only the cases on the page, without the twins")
    parser.add_argument("--write-page", action="store_true", help="write this compiler's lines into the page")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()

    sources = [file.resolve() for file in arguments.files] or sorted(here.glob("*.cpp"))
    page = Page(arguments.page) if arguments.page else None
    includes = [os.path.abspath(include) for include in arguments.include] or [str(here.parents[1] / "include")]

    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        compiler = Compiler(arguments.compiler, arguments.kind, includes, arguments.flag, folder)
        files = []
        for source in sources:
            twin = None if arguments.page_only else pool.submit(check_twin, compiler, source)
            checks = []
            for case in read_cases(source.read_text(encoding="utf-8")):
                wanted = not arguments.page_only or (source.stem, case.number) in page.shown
                checks.append((case, pool.submit(check_case, compiler, source, case, page) if wanted else None))
            files.append((source, twin, checks))
        for source, twin, cases in files:
            for case, result in cases:
                if result is None:
                    continue
                name = source.name if len(cases) == 1 else f"{source.name} case {case.number}"
                if case.description:
                    name += f": {case.description}"
                problem = result.result() or (twin.result() if twin else None)
                if problem is None:
                    passed += 1
                    print(f"pass  {name}", flush=True)
                else:
                    failed += 1
                    print(f"FAIL  {name}: {problem}", flush=True)

    if page and arguments.write_page:
        page.write(compiler.kind)
    elif page:
        for problem in page.problems(compiler, files):
            failed += 1
            print(f"FAIL  {problem}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
