#!/usr/bin/env python3
"""Draws house.svg and slab.svg beside itself. --check: the files are what it draws, and the house is what the headers
include.

The house: every header belongs to one room; what it includes is in its own room, or in one that arrows lead to; for
every arrow there is such an include; no way of arrows leads back. The slab: its numbers are those that
tests/static/slab_diagram_test.cpp asserts.
"""

import fnmatch
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INCLUDE = ROOT / "include" / "stowage"

# Room: its headers, what it is, and where its box stands (left, top, width; in the order of the drawing).
ROOMS = {
    "llm": (("llm/*",), "the forward arena", (20, 20, 250)),
    "cuda": (("cuda/*",), "device memory, graphs, views", (300, 20, 300)),
    "stowage.hpp": (("stowage.hpp",), "the whole core", (20, 130, 130)),
    "passes": (("checksum.hpp", "guards.hpp", "poison.hpp", "zeroing_*.hpp", "detail/zeroing_*.hpp", "exhaustive.hpp",
                "carve.hpp", "cursor.hpp", "teardown.hpp", "dlpack.hpp", "elastic.hpp", "pool.hpp", "reservation.hpp",
                "detail/kept_rows.hpp", "detail/mapped_ranges.hpp"), "loops over fields, and helpers of arenas",
               (180, 130, 420)),
    "reports": (("report.hpp", "report/*", "explain.hpp"), "plans as text, JSON, pictures", (630, 240, 250)),
    "arena": (("arena.hpp",), "plan + slab + bound fields", (180, 240, 420)),
    "backend": (("backend/*", "segments.hpp"), "where memory is", (20, 350, 130)),
    "plan": (("plan.hpp", "table.hpp", "detail/leaves.hpp"), "bytes, offsets, conditions", (180, 350, 420)),
    "buffer": (("buffer.hpp", "regions.hpp", "field.hpp", "handle.hpp", "layout.hpp"), "one field, and what is in it",
               (180, 460, 420)),
    "element, shape": (("element.hpp", "shape.hpp", "detail/encode.hpp"), "what is held, how much",
                       (180, 570, 200)),
    "traits": (("traits/*",), "what else a field carries", (400, 570, 200)),
    "reflect": (("detail/reflect.hpp",), "members and their names", (630, 570, 250)),
    "formula": (("formula.hpp", "condition.hpp", "ladder.hpp", "count.hpp", "program.hpp", "detail/symbols.hpp"),
                "sizes as expressions", (180, 680, 420)),
    "errors, text": (("error.hpp", "fault.hpp", "text.hpp", "version.hpp", "detail/cold.hpp", "detail/checked.hpp",
               "detail/host_device.hpp", "detail/raise.hpp", "detail/byte_ranges.hpp", "detail/address_sanitizer.hpp"),
              "and checked arithmetic", (20, 790, 860)),
}
# A room and what it includes directly; what that includes is included as well.
ARROWS = (
    ("llm", "stowage.hpp"), ("llm", "passes"), ("cuda", "passes"), ("stowage.hpp", "arena"), ("passes", "arena"),
    ("reports", "plan"), ("arena", "plan"), ("arena", "backend"), ("plan", "buffer"), ("buffer", "element, shape"),
    ("buffer", "traits"), ("buffer", "reflect"), ("element, shape", "formula"), ("traits", "formula"),
    ("reflect", "errors, text"), ("formula", "errors, text"), ("backend", "errors, text"),
)
BOX_HEIGHT = 74

BLUE, GREEN, YELLOW, GREY, INK = "#cfe3f7", "#d3edd4", "#f8e8b8", "#e8e8e8", "#20242a"
FONT = 'font-family="DejaVu Sans, Verdana, sans-serif"'


def text(x, y, content, size=13, anchor="start", weight="normal", colour=INK):
    content = content.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="{colour}">{content}</text>')


def rectangle(x, y, width, height, fill, stroke=INK, extra=""):
    return (f'<rect x="{x:.6g}" y="{y:.6g}" width="{width:.6g}" height="{height:.6g}" fill="{fill}" '
            f'stroke="{stroke}"{extra}/>')


def document(width, height, title, parts):
    arrow = ('<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
             f'orient="auto"><path d="M0 0 10 5 0 10z" fill="{INK}"/></marker>'
             '<pattern id="gap" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
             '<rect width="6" height="6" fill="#fff"/><rect width="2" height="6" fill="#b0b0b0"/></pattern></defs>')
    return "\n".join((f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                      f'height="{height}" {FONT} role="img" aria-label="{title}">',
                      f"<title>{title}</title>", arrow,
                      f'<rect width="{width}" height="{height}" fill="#ffffff"/>', *parts, "</svg>", ""))


# The house


def headers():
    return sorted(path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*") if path.suffix in (".hpp", ".cuh"))


def rooms_of(header):
    return [room for room, (patterns, _, _) in ROOMS.items()
            if any(fnmatch.fnmatchcase(header, pattern) for pattern in patterns)]


def reachable():
    """Room: all rooms that arrows lead to."""
    found = {room: {to for start, to in ARROWS if start == room} for room in ROOMS}
    for _ in ROOMS:
        for room, rooms in found.items():
            for other in list(rooms):
                rooms |= found[other]
    return found


def check_house():
    problems = []
    lead_to = reachable()
    problems += [f"arrows lead from {room} back to it" for room, rooms in lead_to.items() if room in rooms]
    unseen = set(ARROWS)
    for header in headers():
        rooms = rooms_of(header)
        if len(rooms) != 1:
            problems.append(f"{header} is in {len(rooms)} rooms: see ROOMS in {pathlib.Path(__file__).name}")
            continue
        for included in re.findall(r"^\s*#\s*include <stowage/([^>]+)>", (INCLUDE / header).read_text(encoding="utf-8"),
                                   re.MULTILINE):
            for room in rooms_of(included):
                unseen.discard((rooms[0], room))
                if room != rooms[0] and room not in lead_to[rooms[0]]:
                    problems.append(f"{header} ({rooms[0]}) includes {included} ({room}), where no arrow leads")
    problems += [f"nothing in {start} includes anything of {to}" for start, to in sorted(unseen)]
    return problems


def house():
    parts = []
    for start, to in ARROWS:
        (x, y, width), (to_x, to_y, to_width) = ROOMS[start][2], ROOMS[to][2]
        # Straight down where the boxes stand over each other, else from the middle of one to that of the other.
        left, right = max(x, to_x), min(x + width, to_x + to_width)
        begin = end = (left + right) / 2
        if right - left < 20:
            begin, end = x + width / 2, to_x + to_width / 2
            if to_x >= x + width:
                begin, end = x + width - 25, to_x + 40
            elif x >= to_x + to_width:
                begin, end = x + 25, to_x + to_width - 25
        parts.append(f'<path d="M{begin:g} {y + BOX_HEIGHT} L{end:g} {to_y - 1}" fill="none" stroke="{INK}" '
                     'stroke-width="1.3" marker-end="url(#arrow)"/>')
    for room, (patterns, about, (x, y, width)) in ROOMS.items():
        fill = GREEN if room in ("llm", "cuda") else YELLOW if room in ("passes", "reports", "stowage.hpp") else BLUE
        parts.append(rectangle(x, y, width, BOX_HEIGHT, fill, extra=' rx="6"'))
        parts.append(text(x + 10, y + 20, room, 15, weight="bold"))
        parts.append(text(x + 10, y + 37, about, 11.5))
        names = " ".join(dict.fromkeys(pattern.removesuffix(".hpp").removeprefix("detail/") for pattern in patterns))
        lines = [""]
        for name in names.split():
            if lines[-1] and len(lines[-1]) + len(name) + 1 > (width - 20) / 6.2:
                lines.append("")
            lines[-1] = f"{lines[-1]} {name}".strip()
        if names != room.removesuffix(".hpp"):
            parts += [text(x + 10, y + 53 + 13 * line, content, 10, colour="#555") for line, content in
                      enumerate(lines[:2])]
    parts.append(text(20, 888, "An arrow leads from a room to one that it includes. Nothing of the core (blue, yellow) "
                               "includes CUDA or the forward arena (green).", 11.5))
    return document(900, 902, "The rooms of the library and what they include", parts)


# The slab

POLICIES = {"hidden_states": ("rows", BLUE), "qkv": ("rows", BLUE), "counters": ("full", GREEN),
            "scratch": ("never", YELLOW)}
SHAPES = {"hidden_states": "bf16 [M, 300]", "qkv": "bf16 [ceil16(M), 64]", "counters": "f32 [4, 100]",
          "scratch": "f32 [300]"}


def asserted(expression):
    source = (ROOT / "tests" / "static" / "slab_diagram_test.cpp").read_text(encoding="utf-8")
    found = re.search(rf"static_assert\(plan\.{re.escape(expression)} == ([\d +]+)\);", source)
    if not found:
        raise SystemExit(f"slab_diagram_test.cpp asserts nothing about {expression}")
    return sum(int(number) for number in found[1].split("+"))


def slab():
    fields = [(name, asserted(f"offset<&buffers::{name}>()"), asserted(f"bytes<&buffers::{name}>()"),
               asserted(f"zero_bytes<&buffers::{name}>(stowage::tokens{{2}})")) for name in POLICIES]
    total, zeroed = asserted("slab_bytes()"), asserted("zeroed_slab_bytes()")
    left, scale = 30, 840 / total
    place = lambda byte: left + byte * scale
    parts = [text(left, 26, "A slab: M = 5 tokens, four fields, one allocation of "
                            f"{total} bytes", 15, weight="bold")]
    top, height = 74, 84
    for multiple in range(0, total + 1, 256):
        parts.append(f'<path d="M{place(multiple):.6g} {top + height} v7" stroke="#888"/>')
    for (name, offset, size, _), following in zip(fields, [*(field[1] for field in fields[1:]), None]):
        policy, colour = POLICIES[name]
        middle = place(offset + size / 2)
        parts.append(rectangle(place(offset), top, size * scale, height, colour))
        parts += [text(middle, top + 22, name, 13, "middle", "bold"), text(middle, top + 40, SHAPES[name], 11, "middle"),
                  text(middle, top + 56, f"{size} bytes", 11, "middle"), text(middle, top + 72, f"zero::{policy}", 11, "middle"),
                  text(place(offset), top - 7, f"{offset}", 11, "start" if offset == 0 else "middle")]
        if following is not None and following > offset + size:
            parts.append(rectangle(place(offset + size), top, (following - offset - size) * scale, height, "url(#gap)"))
    parts.append(text(place(total), top - 7, f"{total}", 11, "end"))
    parts += [rectangle(left, top + height + 22, 16, 12, "url(#gap)"),
              text(left + 24, top + height + 32, "gap: padding up to the field's alignment, 256 bytes here (the marks below "
                                                "the slab); part of the slab, of no field", 11.5)]

    def row(y, title, ranges, note):
        parts.append(text(left, y, title, 13, weight="bold"))
        parts.append(rectangle(left, y + 8, total * scale, 22, "#ffffff", "#999"))
        for begin, end in ranges:
            parts.append(rectangle(place(begin), y + 8, (end - begin) * scale, 22, "#d9603b"))
        parts.append(text(left, y + 46, note, 11.5))

    # Neighbours become one range where one ends with its field and the next begins with its own.
    ranges, whole_before = [], False
    for name, offset, size, cleared in fields:
        if cleared and whole_before:
            ranges[-1][1] = offset + cleared
        elif cleared:
            ranges.append([offset, offset + cleared])
        whole_before = cleared == size
    row(232, "zero_rows(stream, tokens{2})", ranges,
        f"{len(ranges)} segments in one call: 2 rows of hidden_states; ceil16(2) = 16 rows of qkv and, merged with them, "
        "all of counters")
    row(308, "zero_all(stream)", [[0, zeroed]],
        f"1 segment: the first {zeroed} bytes, gaps included, because the fields that are cleared come first")
    parts.append(text(left, 382, "Declared in another order: scratch, hidden_states, counters, qkv. The slab orders them by "
                                 "zero policy: rows, full, never.", 11.5))
    return document(900, 398, "Fields, padding and what passes clear in a slab", parts)


def main():
    drawings = {"house.svg": house(), "slab.svg": slab()}
    problems = check_house()
    for name, drawing in drawings.items():
        if "--check" not in sys.argv[1:]:
            (HERE / name).write_text(drawing, encoding="utf-8")
        elif not (HERE / name).exists() or (HERE / name).read_text(encoding="utf-8") != drawing:
            problems.append(f"docs/images/{name} is not what {pathlib.Path(__file__).name} draws")
    for problem in problems:
        print(problem)
    print(f"{len(headers())} headers in {len(ROOMS)} rooms, {len(ARROWS)} arrows, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
