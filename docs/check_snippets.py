#!/usr/bin/env python3
"""Checks that all C++ in the documentation is compiled.

In an example or test, `// [name]` stands on a line of its own before and after a part. In a page, the line

    <!-- snippet: hello_arena.cpp name -->

stands before a ```cpp or ```cuda block that must be that part, without its indentation; several names give those parts
in that order. Files are those of examples/, or of tests/ where the name begins so. A block without such a line is an
error, except for a whole program in README.md, which tests/readme compiles and runs. --write puts the parts in.
"""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(?:^<!-- snippet: (?P<file>\S+) (?P<names>[^\n]+?) -->\n)?"
                   r"^```(?:cpp|cuda)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"^<!-- snippet:", re.MULTILINE)


def part(file, name):
    folder = ROOT if file.startswith("tests/") else ROOT / "examples"
    text = (folder / file).read_text(encoding="utf-8")
    parts = re.split(rf"^[ \t]*// \[{re.escape(name)}\]\n", text, flags=re.MULTILINE)
    if len(parts) != 3:
        raise ValueError(f"{file} has {len(parts) - 1} lines '// [{name}]', not 2")
    return textwrap.dedent(parts[1])


def pages():
    yield from (page for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md") if page.exists())
    yield from sorted((ROOT / "docs").rglob("*.md"))


def main():
    write = "--write" in sys.argv[1:]
    wrong = count = 0

    def complain(page, text, position, what):
        nonlocal wrong
        wrong += 1
        print(f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, position) + 1}: {what}")

    for page in pages():
        text = page.read_text(encoding="utf-8")
        blocks = list(BLOCK.finditer(text))
        if len(MARK.findall(text)) != sum(block["file"] is not None for block in blocks):
            complain(page, text, 0, "a snippet line without its ```cpp or ```cuda block")
        # From the end, so that the places of those before stay right.
        for block in reversed(blocks):
            if block["file"] is None:
                if page.name != "README.md" or "int main" not in block["code"]:
                    complain(page, text, block.start(), "a block that nothing compiles: it needs a snippet line")
                continue
            count += 1
            try:
                wanted = "".join(part(block["file"], name) for name in block["names"].split())
            except (OSError, ValueError) as error:
                complain(page, text, block.start(), error)
                continue
            if block["code"] != wanted:
                if write:
                    text = text[:block.start("code")] + wanted + text[block.end("code"):]
                else:
                    complain(page, text, block.start(), f"not the part {block['names']} of {block['file']}")
        if write:
            page.write_text(text, encoding="utf-8")
    print(f"{count} snippets, {wrong} wrong")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
