#!/usr/bin/env python3
"""Checks that the snippets of the documentation are parts of the examples, which are compiled and run.

In an example, `// [name]` stands on a line of its own before and after a part. In a page, the line

    <!-- snippet: hello_arena.cpp name -->

stands before a ```cpp block that must be that part, without its indentation. --write puts the parts in.
"""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^<!-- snippet: (\S+) (\S+) -->\n```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"^<!-- snippet:", re.MULTILINE)


def part(file, name):
    text = (ROOT / "examples" / file).read_text(encoding="utf-8")
    parts = re.split(rf"^[ \t]*// \[{re.escape(name)}\]\n", text, flags=re.MULTILINE)
    if len(parts) != 3:
        raise ValueError(f"examples/{file} has {len(parts) - 1} lines '// [{name}]', not 2")
    return textwrap.dedent(parts[1])


def main():
    write = "--write" in sys.argv[1:]
    wrong = count = 0
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        text = page.read_text(encoding="utf-8")
        count += len(MARK.findall(text))
        if len(MARK.findall(text)) != len(BLOCK.findall(text)):
            print(f"{page.relative_to(ROOT)}: a snippet line without its ```cpp block")
            wrong += 1
        for file, name, block in BLOCK.findall(text):
            try:
                wanted = part(file, name)
            except (OSError, ValueError) as error:
                print(f"{page.relative_to(ROOT)}: {error}")
                wrong += 1
                continue
            if block != wanted:
                if write:
                    head = f"<!-- snippet: {file} {name} -->\n```cpp\n"
                    text = text.replace(f"{head}{block}```", f"{head}{wanted}```")
                else:
                    print(f"{page.relative_to(ROOT)}: the snippet {name} is not that of examples/{file}")
                    wrong += 1
        if write:
            page.write_text(text, encoding="utf-8")
    print(f"{count} snippets, {wrong} wrong")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
