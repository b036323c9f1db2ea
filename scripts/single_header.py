#!/usr/bin/env python3
"""Writes the library as one header a target: python3 scripts/single_header.py FOLDER

  stowage.hpp       all headers of the core but stowage/dlpack.hpp, which needs DLPack's header
  stowage-llm.hpp   the forward arena, stowage/llm; includes stowage.hpp
  stowage-cuda.hpp  the CUDA part, stowage/cuda; includes stowage.hpp

Each header of the library stands in them once, after those that it includes; headers of others are gathered at the
top. The same sources give the same bytes.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"

OWN_INCLUDE = re.compile(r"\s*#\s*include\s*<(stowage/[^>]+)>")
OTHER_INCLUDE = re.compile(r"\s*#\s*include\s*[<\"]([^>\"]+)[>\"]")
CONDITION_BEGIN = re.compile(r"\s*#\s*if")
CONDITION_END = re.compile(r"\s*#\s*endif")
PRAGMA_ONCE = re.compile(r"\s*#\s*pragma\s+once\s*$")


def part_of(header):
    """The single header that a header of the library goes into."""
    if header.startswith("stowage/llm/"):
        return "stowage-llm.hpp"
    if header.startswith("stowage/cuda/"):
        return "stowage-cuda.hpp"
    return "stowage.hpp"


class Part:
    """One single header as it grows."""

    def __init__(self, name):
        self.name = name
        self.others = set()  # includes of others, gathered
        self.lines = []
        self.placed = {}  # header of the library: whether it stands inside a condition

    def place(self, header, conditional, path=()):
        """Puts a header here, after those that it includes."""
        if header in path:
            sys.exit(f"{header} includes itself: {' > '.join(path)}")
        if header in self.placed:
            if self.placed[header] and not conditional:
                sys.exit(f"{path[-1]} includes {header}, which already stands inside a condition of another header")
            return
        self.placed[header] = conditional
        # Leading includes first, so that the text of one header is not broken up by another's.
        lines = (INCLUDE / header).read_text(encoding="utf-8").splitlines()
        depth = 0
        body = []
        for line in lines:
            if CONDITION_END.match(line):
                depth -= 1
            own = OWN_INCLUDE.match(line)
            other = OTHER_INCLUDE.match(line)
            if own and part_of(own[1]) != self.name:
                if depth > 0 or conditional or self.name == "stowage.hpp":
                    sys.exit(f"{header} includes {own[1]}, of another part, where it must not")
            elif own and depth == 0:
                self.place(own[1], conditional, (*path, header))
            elif own:
                # Inside a condition, the header's text takes the place of the line.
                outer, self.lines = self.lines, []
                self.place(own[1], True, (*path, header))
                body += self.lines
                self.lines = outer
            elif other and depth == 0 and not conditional:
                self.others.add(other[1])
            elif not PRAGMA_ONCE.match(line):
                body.append(line)
            if CONDITION_BEGIN.match(line):
                depth += 1
        if depth != 0:
            sys.exit(f"{header}: #if and #endif do not match")
        self.lines += ["", f"// {header}", "", *strip_blank(body)]

    def text(self, version, license_text):
        top = [
            f"// Stowage {version} in one header: {self.name}. Made by scripts/single_header.py from the headers of the",
            "// library; change those.",
            "//",
            *(f"// {line}".rstrip() for line in license_text.splitlines()),
            "",
            "#pragma once",
            "",
        ]
        if self.name != "stowage.hpp":
            top += ['#include "stowage.hpp"', ""]
        top += [f"#include <{name}>" for name in sorted(self.others)]
        return "\n".join([*top, *self.lines]) + "\n"


def strip_blank(lines):
    """Without empty lines at both ends, and no two of them in a row."""
    result = []
    raw = False  # inside a raw string nothing may change
    for line in lines:
        if raw or line or (result and result[-1]):
            result.append(line)
        if re.search(r'R"\w+\(', line):
            raw = True
        if raw and re.search(r'\)\w+"', line):
            raw = False
    while result and not result[-1]:
        result.pop()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="where the headers go")
    folder = parser.parse_args().folder

    version_header = (INCLUDE / "stowage/version.hpp").read_text(encoding="utf-8")
    version = ".".join(re.search(rf"STOWAGE_VERSION_{name} (\d+)", version_header)[1]
                       for name in ("MAJOR", "MINOR", "PATCH"))
    license_text = (ROOT / "LICENSE").read_text(encoding="utf-8")

    parts = {name: Part(name) for name in ("stowage.hpp", "stowage-llm.hpp", "stowage-cuda.hpp")}
    headers = sorted(path.relative_to(INCLUDE).as_posix() for path in (INCLUDE / "stowage").rglob("*.hpp"))
    conditional = conditional_headers(headers)
    for header in headers:
        if header != "stowage/dlpack.hpp" and header not in conditional:
            parts[part_of(header)].place(header, False)
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts.values():
        (folder / part.name).write_text(part.text(version, license_text), encoding="utf-8")


def conditional_headers(headers):
    """Headers that others include inside a condition only: they stand there and nowhere else."""
    inside = set()
    for header in headers:
        depth = 0
        for line in (INCLUDE / header).read_text(encoding="utf-8").splitlines():
            depth += bool(CONDITION_BEGIN.match(line)) - bool(CONDITION_END.match(line))
            own = OWN_INCLUDE.match(line)
            if own and depth > 0:
                inside.add(own[1])
    return inside


if __name__ == "__main__":
    main()
