#!/usr/bin/env python3
"""Checks the links of the documentation, offline: files and anchors that Markdown and HTML pages link to exist.

    check_links.py [FOLDER...]

Looks at the Markdown files that git knows or could add (all where this is no clone), and at the HTML files in the
folders. Links to other hosts are counted, not followed. Pages of docs/ and the files of examples/ that no other page
links to are errors as well.
"""

import html.parser
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)
EXTERNAL = re.compile(r"^(https?|mailto):")


def blanked(match):
    """As many lines, so that line numbers stay."""
    return "\n" * match[0].count("\n")


def slugs(text):
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for heading in HEADING.findall(FENCE.sub(blanked, text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found


class HtmlPage(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(attributes[name] for name in ("id", "name") if attributes.get(name))
        for name in ("href", "src"):
            if attributes.get(name):
                self.links.append((self.getpos()[0], attributes[name]))


class Page:
    def __init__(self, path):
        self.path = path
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            prose = CODE.sub("``", FENCE.sub(blanked, text))
            # Code as the text of a link: its brackets and the target behind it stay.
            self.links = [(prose.count("\n", 0, match.start()) + 1, match[1])
                          for pattern in (LINK, REFERENCE) for match in pattern.finditer(prose)]
            self.anchors = slugs(text) | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
        else:
            page = HtmlPage(text)
            self.links, self.anchors = page.links, page.anchors


def markdown_files():
    done = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT,
                          capture_output=True, text=True)
    if done.returncode == 0:
        return [ROOT / name for name in sorted(set(done.stdout.split("\0"))) if name and (ROOT / name).exists()]
    return sorted(path for path in ROOT.rglob("*.md") if "build" not in path.relative_to(ROOT).parts)


def main():
    folders = [pathlib.Path(folder).resolve() for folder in sys.argv[1:]]
    paths = markdown_files()
    for folder in folders:
        found = sorted(folder.rglob("*.html"))
        if not found:
            print(f"{folder}: no HTML files")
            return 1
        paths += found
    pages = {path: Page(path) for path in paths}
    linked, external, internal, wrong = set(), 0, 0, 0
    for path, page in pages.items():
        for line, link in page.links:
            if EXTERNAL.match(link):
                external += 1
                continue
            # Doxygen 1.9 writes the second where all nested classes are private.
            if link.startswith("javascript:") or link == "#nested-classes":
                continue
            internal += 1
            file, _, anchor = link.partition("#")
            target = path if not file else pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(file)))
            if target != path:
                linked.add(target)
            problem = None
            if not target.exists():
                problem = "there is no such file"
            elif anchor and target in pages and urllib.parse.unquote(anchor) not in pages[target].anchors:
                problem = "there is no such anchor"
            elif ROOT not in target.parents and target != ROOT and not any(one in target.parents for one in folders):
                problem = "leads out of the project"
            if problem:
                wrong += 1
                print(f"{path.relative_to(ROOT) if ROOT in path.parents else path}:{line}: {link}: {problem}")

    # What nobody finds.
    examples = [*(ROOT / "examples").glob("*.cpp"), *(ROOT / "examples" / "cuda").glob("*.c*")]
    for path in sorted([*(ROOT / "docs").rglob("*.md"), *examples]):
        if path not in linked:
            wrong += 1
            print(f"{path.relative_to(ROOT)}: no page links to it")
    print(f"{len(pages)} pages, {internal} links checked, {external} to other hosts, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
