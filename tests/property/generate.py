#!/usr/bin/env python3
"""Writes random formulas, field lists and passes, with what they must give.

    generate.py FOLDER [--seed N]

What must come out is worked out here, in Python's integers of any size, from the descriptions in docs/ and include/, and
not by the library. The same seed gives the same files:

    programs.txt   formulas as data, for the evaluator at run time
    formulas.txt   what typed formulas must give; formulas.inc, the formulas
    lists.txt      where fields must lie and what passes must clear; lists.inc, the field lists
"""

import argparse
import pathlib
import random

LARGEST = 2**64 - 1

# Formulas. A node is a tuple: ("c", value), ("in", index), (operator, left, right), ("pad", multiple, operand),
# ("at_most", limit, index), ("choose", condition, yes, no), ("&&" or "||", left, right), ("!", condition).

# The inputs of formulas: name, how it is printed, and what it can hold.
INPUTS = [
    ("batch", "M", "tokens"),
    ("hidden", "hidden", "size"),
    ("vocab", "vocab", "small"),
    ("heads", "heads", "signed"),
    ("wide", "wide", "flag"),
]
TOKENS = 0
FLAG = 4
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Fault(Exception):
    def __init__(self, kind, operation, left, right, name="-"):
        super().__init__(kind)
        self.outcome = f"f {kind} {operation} {left} {right} {name}"


def evaluate(node, values, limit=None):
    """The exact value of a node. Raises the first fault, in the order of the text."""
    kind = node[0]
    if kind == "c":
        return node[1]
    if kind == "in":
        value = values[node[1]]
        if value < 0:
            raise Fault("negative_input", "-", -value, 0, INPUTS[node[1]][0])
        return min(value, limit) if node[1] == TOKENS and limit is not None else value
    if kind == "choose":
        return evaluate(node[2] if evaluate(node[1], values, limit) else node[3], values, limit)
    if kind == "&&":
        return 1 if evaluate(node[1], values, limit) and evaluate(node[2], values, limit) else 0
    if kind == "||":
        return 1 if evaluate(node[1], values, limit) or evaluate(node[2], values, limit) else 0
    if kind == "!":
        return 0 if evaluate(node[1], values, limit) else 1
    if kind == "pad":
        value = evaluate(node[2], values, limit)
        missing = -value % node[1]
        if value + missing > LARGEST:
            raise Fault("overflow", "+", value, missing)
        return value + missing
    if kind == "at_most":
        value = evaluate(("in", node[2]), values, limit)
        if value > node[1]:
            raise Fault("above_limit", ">", value, node[1], INPUTS[node[2]][0])
        return value
    left = evaluate(node[1], values, limit)
    right = evaluate(node[2], values, limit)
    if kind in ("/", "cdiv"):
        if right == 0:
            raise Fault("division_by_zero", "/", left, right)
        return left // right if kind == "/" else -(-left // right)
    if kind == "-" and right > left:
        raise Fault("below_zero", "-", left, right)
    result = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "min": lambda: min(left, right),
        "max": lambda: max(left, right),
        "==": lambda: int(left == right),
        "!=": lambda: int(left != right),
        "<": lambda: int(left < right),
        "<=": lambda: int(left <= right),
        ">": lambda: int(left > right),
        ">=": lambda: int(left >= right),
    }[kind]()
    if result > LARGEST:
        raise Fault("overflow", kind, left, right)
    return result


def outcome(node, values, limit=None):
    try:
        return f"v {evaluate(node, values, limit)}"
    except Fault as fault:
        return fault.outcome


def some_size(rng):
    return rng.choice(
        [
            lambda: rng.randrange(4),
            lambda: rng.randrange(100),
            lambda: rng.randrange(2**16),
            lambda: 2 ** rng.randrange(64) + rng.choice([-1, 0, 0, 1]),
            lambda: 2 ** rng.choice([31, 32, 33]) + rng.randrange(-2, 3),
            lambda: LARGEST - rng.randrange(20),
            lambda: rng.randrange(2**64),
        ]
    )()


def some_values(rng):
    tame = rng.random() < 0.5
    size = (lambda: rng.randrange(1, 3000)) if tame else (lambda: some_size(rng))
    heads = rng.randrange(1, 64) if tame or rng.random() < 0.5 else rng.choice([-1, -(2**63), 2**63 - 1, rng.randrange(-9, 2**63)])
    return [size(), size(), size() % 2**32, heads, rng.randrange(2)]


def some_formula(rng, depth, tame=False):
    """A formula; never a constant alone, so that it is one in C++ too."""
    if depth == 0:
        return ("in", rng.randrange(5))
    kind = rng.choice(["+", "+", "-", "*", "*", "/", "cdiv", "min", "max", "pad", "at_most", "choose", "in"])
    if kind == "in":
        return ("in", rng.randrange(5))
    if kind == "pad":
        multiple = rng.choice([1, 2, 3, 16, 64, 100, 256, 4096, 2**31, 2**63])
        return ("pad", multiple, some_formula(rng, depth - 1))
    if kind == "at_most":
        return ("at_most", rng.choice([0, 7, 128, 4096, LARGEST]), rng.randrange(4))
    if kind == "choose":
        return ("choose", some_condition(rng, depth - 1), some_operand(rng, depth - 1), some_operand(rng, depth - 1))
    left = some_formula(rng, depth - 1)
    right = some_operand(rng, depth - 1)
    return (kind, left, right) if rng.random() < 0.7 else (kind, right, left)


def some_operand(rng, depth):
    if rng.random() < 0.3:
        return ("c", rng.choice([0, 1, 2, 3, 7, 16, 64, 255, 2**16, 2**32 - 1, 2**32, 2**63, LARGEST]))
    return some_formula(rng, depth)


def some_condition(rng, depth):
    if depth <= 0 or rng.random() < 0.4:
        return ("in", FLAG)
    kind = rng.choice(COMPARISONS + ("&&", "||", "!"))
    if kind == "!":
        return ("!", some_condition(rng, depth - 1))
    if kind in ("&&", "||"):
        return (kind, some_condition(rng, depth - 1), some_condition(rng, depth - 1))
    return (kind, some_formula(rng, depth - 1), some_operand(rng, depth - 1))


def prefix(node):
    kind = node[0]
    if kind in ("c", "in"):
        return f"{kind} {node[1]}"
    if kind == "pad":
        return f"pad {node[1]} {prefix(node[2])}"
    if kind == "at_most":
        return f"at_most {node[1]} in {node[2]}"
    return " ".join([kind] + [prefix(operand) for operand in node[1:]])


PRECEDENCE = {"||": 1, "&&": 2, **{each: 3 for each in COMPARISONS}, "+": 4, "-": 4, "*": 5, "/": 5}


def text(node, outer=0):
    """As a formula is printed: parentheses where the meaning needs them."""
    kind = node[0]
    if kind == "c":
        return str(node[1])
    if kind == "in":
        return INPUTS[node[1]][1]
    if kind == "at_most":
        return INPUTS[node[2]][1]
    if kind == "pad":
        return f"ceil{node[1]}({text(node[2])})"
    if kind in ("cdiv", "min", "max"):
        return f"{kind}({text(node[1])}, {text(node[2])})"
    if kind == "choose":
        return f"({text(node[1])} ? {text(node[2])} : {text(node[3])})"
    if kind == "!":
        return f"!{text(node[1])}" if node[1][0] == "in" else f"!({text(node[1])})"
    precedence = PRECEDENCE[kind]
    between = kind if kind in ("*", "/") else f" {kind} "
    result = text(node[1], precedence) + between + text(node[2], precedence + 1)
    return f"({result})" if outer > precedence else result


def code(node):
    """As C++."""
    kind = node[0]
    if kind == "c":
        return f"stowage::c<{node[1]}u>"
    if kind == "in":
        return INPUTS[node[1]][1]
    if kind == "at_most":
        return f"stowage::at_most<{node[1]}u>({INPUTS[node[2]][1]})"
    if kind == "pad":
        return f"stowage::pad<{node[1]}u>({code(node[2])})"
    if kind in ("cdiv", "min", "max"):
        return f"stowage::{kind}({code(node[1])}, {code(node[2])})"
    if kind == "choose":
        return f"stowage::choose({code(node[1])}, {code(node[2])}, {code(node[3])})"
    if kind == "!":
        return f"(!{code(node[1])})"
    return f"({code(node[1])} {kind} {code(node[2])})"


def values_text(values):
    return " ".join(str(value) for value in values)


def write_programs(rng, path, count):
    lines = [str(count)]
    for _ in range(count):
        node = some_formula(rng, rng.randrange(1, 7))
        cases = []
        for _ in range(4):
            values = some_values(rng)
            limit = None if rng.random() < 0.6 else some_size(rng)
            cases.append(f"{LARGEST if limit is None else limit} {values_text(values)} {outcome(node, values, limit)}")
        lines.append(f"{prefix(node)} end {len(cases)}")
        lines += cases
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def write_formulas(rng, data, source, count):
    lines, includes = [str(count)], []
    for index in range(count):
        node = some_formula(rng, rng.randrange(2, 5))
        while len(text(node)) > 200:
            node = some_formula(rng, rng.randrange(2, 5))
        lines.append(f"{text(node)}\n8")
        for _ in range(8):
            values = some_values(rng)
            lines.append(f"{LARGEST} {values_text(values)} {outcome(node, values)}")
        includes.append(f"check_formula(cases, {code(node)}); // {index}")
    data.write_text("\n".join(lines) + "\n", encoding="ascii")
    source.write_text("\n".join(includes) + "\n", encoding="ascii")


# Field lists. Their params: M tokens, K, L, a flag.

ELEMENTS = {  # C++ type: bytes of a block, alignment, elements of a block
    "std::uint8_t": (1, 1, 1),
    "stowage::bf16": (2, 2, 1),
    "float": (4, 4, 1),
    "double": (8, 8, 1),
    "stowage::i4": (1, 1, 2),
    "stowage::q8_1": (36, 4, 32),
}


def round_up(value, multiple):
    return -(-value // multiple) * multiple


def ceil_divide(value, divisor):
    return -(-value // divisor)


class Leading:
    """A leading extent that counts tokens: its rows for T tokens, and how many of them T tokens own themselves. Padding
    and floors are nobody's; a row that tokens share belongs to the first of them."""

    def __init__(self, rng):
        number = rng.choice([2, 3, 8, 16])
        other = rng.choice([1, 2, 5, 24])
        choices = [
            ("M", lambda t, p: t, lambda t, p: t),
            (f"stowage::pad<{number}>(M)", lambda t, p: round_up(t, number), lambda t, p: t),
            (f"stowage::cdiv(M, {number})", lambda t, p: ceil_divide(t, number), lambda t, p: ceil_divide(t, number)),
            (f"stowage::min(M, {other})", lambda t, p: min(t, other), lambda t, p: min(t, other)),
            (f"stowage::max(M, {other})", lambda t, p: max(t, other), lambda t, p: t),
            (f"stowage::pad<{number}>(stowage::max(M, {other}))", lambda t, p: round_up(max(t, other), number), lambda t, p: t),
            (f"M * {other}", lambda t, p: t * other, lambda t, p: t * other),
            (
                f"stowage::pad<{number}>(M * {other})",
                lambda t, p: round_up(t * other, number),
                lambda t, p: t * other,
            ),
            (
                f"stowage::pad<4>(stowage::cdiv(M, {number}))",
                lambda t, p: round_up(ceil_divide(t, number), 4),
                lambda t, p: ceil_divide(t, number),
            ),
            (
                "stowage::choose(flag, 2 * M, M)",
                lambda t, p: 2 * t if p["flag"] else t,
                lambda t, p: 2 * t if p["flag"] else t,
            ),
        ]
        self.code, self.rows, self.owned = rng.choice(choices + choices[:2])


class Tensor:
    def __init__(self, rng, rows):
        self.element = rng.choice(list(ELEMENTS))
        self.size, self.alignment, self.block = ELEMENTS[self.element]
        self.token_major = rows
        self.leading = Leading(rng) if rows else None
        if not rows:
            self.leading_code, self.leading_value = rng.choice(
                [("M", lambda p: p["M"]), ("K", lambda p: p["K"]), ("L * 2 + 1", lambda p: p["L"] * 2 + 1), ("7", lambda p: 7)]
            )
        # The elements of a row; whole blocks where rows are cleared one by one.
        self.inner_code, self.inner = rng.choice(
            [("1", lambda p: 1), ("K", lambda p: p["K"]), ("L + 3", lambda p: p["L"] + 3), ("5", lambda p: 5)]
        )
        if rows and self.block > 1:
            self.inner_code = f"({self.inner_code}) * {self.block}" if self.inner_code in ("K", "L + 3") else str(int(self.inner({})) * self.block)
            inner, block = self.inner, self.block
            self.inner = lambda p: inner(p) * block

    def code(self, name):
        leading = self.leading.code if self.token_major else self.leading_code
        return f"{self.element}, shape<{leading}, {self.inner_code}>"

    def declarations(self, name):
        return ""

    def place(self, params, offset):
        rows = self.leading.rows(params["M"], params) if self.token_major else self.leading_value(params)
        inner = self.inner(params)
        size = ceil_divide(rows * inner, self.block) * self.size
        if not self.token_major or size == 0:
            return size, []
        return size, [(offset, inner // self.block * self.size, self.leading, rows, 0)]


class Regions:
    def __init__(self, rng, rows, depth=0):
        self.parts = []
        for index in range(rng.randrange(1, 4)):
            part = Item(rng, rows, depth + 1, is_part=True)
            self.parts.append(part)
        self.token_major = rows
        self.alignment = max(part.part_alignment() for part in self.parts)

    def code(self, name):
        return f"stowage::regions<{name}_parts>"

    def declarations(self, name):
        inner = "".join(part.content.declarations(f"{name}_p{index}") for index, part in enumerate(self.parts))
        members = "".join(
            f"  part<{part.content.code(f'{name}_p{index}')}{part.traits}> p{index};\n" for index, part in enumerate(self.parts)
        )
        return f"{inner}struct {name}_parts {{\n{members}}};\n"

    def place(self, params, offset):
        cursor = size = 0
        ranges = []
        for part in self.parts:
            start = round_up(cursor, part.part_alignment())
            part_bytes, part_ranges = part.place(params, offset + start)
            ranges += part_ranges
            if part_bytes:
                cursor = start + part_bytes
            size = max(size, cursor)
        return size, ranges


class Alternatives:
    def __init__(self, rng, rows, depth=0):
        self.items = [Item(rng, rows, depth + 1, is_part=True) for _ in range(rng.randrange(2, 4))]
        self.token_major = rows
        self.alignment = max(item.part_alignment() for item in self.items)

    def code(self, name):
        alternatives = ", ".join(f"part<{item.content.code(f'{name}_a{index}')}{item.traits}>" for index, item in enumerate(self.items))
        return f"stowage::alternatives<{alternatives}>"

    def declarations(self, name):
        return "".join(item.content.declarations(f"{name}_a{index}") for index, item in enumerate(self.items))

    def place(self, params, offset):
        size, ranges = 0, []
        for item in self.items:
            item_bytes, item_ranges = item.place(params, offset)
            size = max(size, item_bytes)
            ranges += item_ranges
        return size, ranges


class Item:
    """A content with traits: a field or a part."""

    def __init__(self, rng, rows, depth, is_part):
        kind = rng.random()
        if depth < 2 and kind < 0.18:
            self.content = Regions(rng, rows, depth)
        elif depth < 2 and kind < 0.32:
            self.content = Alternatives(rng, rows, depth)
        else:
            self.content = Tensor(rng, rows)
        self.traits = ""
        self.condition = lambda p: True
        self.floor = lambda p: 0
        self.absent_bytes = 0
        self.explicit_alignment = 0
        if rng.random() < 0.3:
            code, self.condition = rng.choice(
                [
                    ("flag", lambda p: p["flag"] != 0),
                    ("(K > 3)", lambda p: p["K"] > 3),
                    ("(L == 0 || flag)", lambda p: p["L"] == 0 or p["flag"] != 0),
                ]
            )
            self.traits += f", stowage::when<{code}>"
            if rng.random() < 0.4:
                self.absent_bytes = rng.choice([1, 17, 256])
                self.traits += f", stowage::placeholder<{self.absent_bytes}>"
        if rng.random() < 0.15:
            least = rng.choice([1, 100, 999])
            self.floor = lambda p: least
            self.traits += f", stowage::at_least<{least}>"
        elif rng.random() < 0.15:
            self.floor = lambda p: p["L"] * 10 + 1
            self.traits += ", stowage::min_bytes<L * 10 + 1>"
        if rng.random() < 0.3:
            self.explicit_alignment = max(self.content.alignment, rng.choice([1, 2, 16, 64, 512, 4096] if not is_part else [1, 8, 32]))
            self.traits += f", stowage::align<{self.explicit_alignment}>"

    def part_alignment(self):
        return self.explicit_alignment or self.content.alignment

    def field_alignment(self):
        return self.explicit_alignment or max(256, self.content.alignment)

    def place(self, params, offset):
        """Bytes, and the ranges of rows: (start, bytes of a row, leading extent, rows, bytes at least)."""
        if not self.condition(params):
            return self.absent_bytes, [(offset, 0, None, 0, self.absent_bytes)] if self.absent_bytes else []
        size, ranges = self.content.place(params, offset)
        floor = self.floor(params)
        if size < floor:
            if isinstance(self.content, Tensor) and self.content.token_major and not ranges:
                rows = self.content.leading.rows(params["M"], params)
                inner = self.content.inner(params) // self.content.block * self.content.size
                ranges = [(offset, inner, self.content.leading, rows, floor)]
            size = floor
        if isinstance(self.content, Tensor):
            ranges = [(start, row, leading, rows, floor) for start, row, leading, rows, _ in ranges]
        return size, ranges


class Field(Item):
    def __init__(self, rng, name):
        self.name = name
        self.policy = rng.choice(["rows", "rows", "full", "never"])
        super().__init__(rng, self.policy == "rows", 0, is_part=False)
        self.copies = self.tail = 1
        self.tail = 0
        if rng.random() < 0.2:
            self.copies = rng.choice([2, 3])
            self.traits += f", stowage::copies<{self.copies}>"
        if rng.random() < 0.15:
            self.tail = rng.choice([1, 100, 5000])
            self.traits += f", stowage::tail<{self.tail}>"

    def member(self, name):
        return f"  buffer<{self.content.code(name)}, zero::{self.policy}{self.traits}> {self.name.rsplit('.', 1)[-1]};\n"

    def cleared(self, params, first, last, with_full):
        """Ranges of bytes of one instance that a row pass over the tokens [first, last) clears."""
        size, ranges = self.place(params, 0)
        if self.policy == "never" or size == 0:
            return []
        if self.policy == "full":
            return [(0, size)] if with_full else []
        if first >= last:
            return []
        if not self.condition(params):
            return [(0, size)] if first == 0 else []  # a placeholder has no rows
        if not ranges:
            return [(0, size)] if first == 0 else []
        tokens = min(last, params["M"])
        kept = min(first, params["M"])
        cleared = [False] * size
        every_row = True
        for start, row, leading, rows, floor in ranges:
            reached = leading.rows(tokens, params) if leading else 0
            every_row = every_row and reached == rows
            for byte in range(start, min(start + max(reached * row, floor), size)):
                cleared[byte] = True
        for byte in range(min(self.floor(params), size)):
            cleared[byte] = True
        if every_row:
            cleared = [True] * size
        if first:
            for start, row, leading, _, _ in ranges:
                owned = leading.owned(kept, params) if leading else 0
                for byte in range(start, min(start + owned * row, size)):
                    cleared[byte] = False
        result = []
        for byte, is_cleared in enumerate(cleared):
            if not is_cleared:
                continue
            if result and result[-1][1] == byte:
                result[-1] = (result[-1][0], byte + 1)
            else:
                result.append((byte, byte + 1))
        return result


class FieldList:
    def __init__(self, rng, index):
        self.name = f"list_{index}"
        self.fields = []
        members = ""
        self.declarations = ""
        count = rng.randrange(4, 10)
        grouped = rng.randrange(0, 4)  # how many of them are in a group, and one of those in a group of its own
        group_members = inner_members = ""
        for number in range(count):
            in_group = number >= 1 and number <= grouped
            in_inner = in_group and number == grouped and grouped > 2
            path = "g.h." if in_inner else "g." if in_group else ""
            field = Field(rng, f"{path}f{number}")
            self.fields.append(field)
            content_name = f"{self.name}_f{number}"
            self.declarations += field.content.declarations(content_name)
            if in_inner:
                inner_members += field.member(content_name)
            elif in_group:
                group_members += field.member(content_name)
            else:
                if number == grouped + 1 and grouped:
                    members += f"  {self.name}_group g;\n"
                members += field.member(content_name)
        if grouped and grouped + 1 >= count:
            members += f"  {self.name}_group g;\n"
        if inner_members:
            self.declarations += f"struct {self.name}_inner {{\n{inner_members}}};\n"
            group_members += f"  {self.name}_inner h;\n"
        if grouped:
            self.declarations += f"struct {self.name}_group {{\n{group_members}}};\n"
        self.source = f"{self.declarations}struct {self.name} {{\n{members}}};\n"

    def case(self, rng, params, guard, passes):
        """One plan as text: totals, fields in the order of declaration, passes."""
        placed = {}
        cursor, total, zeroed, alignment = guard, 0, 0, 1
        order = [field for policy in ("rows", "full", "never") for field in self.fields if field.policy == policy]
        for field in order:
            size, _ = field.place(params, 0)
            if size == 0:
                placed[field.name] = (0, 0, field.field_alignment(), 0)
                continue
            start = round_up(cursor, field.field_alignment())
            stride = round_up(size + field.tail + guard, field.field_alignment())
            end = start + (field.copies - 1) * stride + size
            cursor = end + field.tail + guard
            total += field.copies * size
            alignment = max(alignment, field.field_alignment())
            if field.policy != "never":
                zeroed = end
            placed[field.name] = (size, start, field.field_alignment(), stride)
        lines = [f"{params['M']} {params['K']} {params['L']} {params['flag']} {guard}", f"{total} {cursor} {alignment} {zeroed}"]
        for field in self.fields:
            size, start, each_alignment, stride = placed[field.name]
            lines.append(f"{field.name} {size} {start} {each_alignment} {stride} {field.copies} {field.tail}")
        lines.append(str(passes))
        for number in range(passes):
            top = params["M"] + 10
            first = 0 if number % 3 == 0 else rng.randrange(top)
            last = rng.randrange(top) if number % 7 else params["M"]
            with_full = int(first == 0 and rng.random() < 0.8)
            line = f"{first} {last} {with_full}"
            for field in self.fields:
                ranges = field.cleared(params, first, last, with_full)
                line += f" {len(ranges)}" + "".join(f" {begin} {end}" for begin, end in ranges)
            lines.append(line)
        return lines


def write_lists(rng, data, source, count):
    lines, sources, calls = [str(count)], [], []
    for index in range(count):
        fields = FieldList(rng, index)
        sources.append(fields.source)
        calls.append(f"check_list<list_{index}>(cases);")
        cases = []
        for number in range(5):
            params = {
                "M": rng.choice([0, 1, 7, 16, 33, rng.randrange(70)]),
                "K": rng.choice([0, 1, 3, 4, 9]),
                "L": rng.choice([0, 1, 6]),
                "flag": rng.randrange(2),
            }
            guard = rng.choice([64, 1, 256]) if number == 4 else 0
            cases += fields.case(rng, params, guard, 0 if guard else 45)
        lines.append(f"{len(fields.fields)} 5")
        lines += cases
    data.write_text("\n".join(lines) + "\n", encoding="ascii")
    source.write_text("".join(sources) + "\ninline void check_lists(std::istream& cases) {\n  " + "\n  ".join(calls) + "\n}\n", encoding="ascii")


def main():
    parser = argparse.ArgumentParser(description="Random formulas, field lists and passes, with what they must give.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    # One generator a file: more of one kind leaves the others as they are.
    write_programs(random.Random(f"{arguments.seed} programs"), folder / "programs.txt", 8000)
    write_formulas(random.Random(f"{arguments.seed} formulas"), folder / "formulas.txt", folder / "formulas.inc", 48)
    write_lists(random.Random(f"{arguments.seed} lists"), folder / "lists.txt", folder / "lists.inc", 12)


if __name__ == "__main__":
    main()
