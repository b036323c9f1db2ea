#!/usr/bin/env python3
"""Doxygen's input filter: writes a header to standard output as Doxygen 1.9 can read it, line by line.

The inline namespace of the version is left out. Members that mean the same wherever they occur, because a concept or a
convention says what they are, get that sentence here instead of in every header; a comment in the header wins.
"""

import re
import sys

INLINE = re.compile(r"^namespace stowage::inline v\w+")

RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"')  # whose quotes Doxygen counts
HEAD = re.compile(r"(template <|requires\b|\S.*\|\|$)[^;{]*$")

BACKEND = "Member of the concept stowage::backend, which says what it does."
ELASTIC = ("Member of the concept stowage::elastic_backend, or stowage::page_source for pages, which says what it "
           "does.")
TRAIT = "What the library reads of a trait: \"Write a trait\" in the documentation says what it means."
FORMULA = "What the library reads of a formula or condition; not for callers."
CONTENT = "What the library reads of a field's content; not for callers."

CONVENTIONS = [(re.compile(pattern), sentence) for pattern, sentence in (
    (r"^using stream_type = ", "Orders the work of a backend, as the concept stowage::backend says."),
    (r"\ballocate\(std::size_t bytes, std::size_t alignment\)", BACKEND),
    (r"^status deallocate\(void\* ", BACKEND),
    (r"^void (zero|copy_to_host|copy_from_host|synchronize)\(stream_type\b", BACKEND),
    (r"\bbool is_capturing\(stream_type\b", "Whether the stream is being captured: member of stowage::capturing_backend."),
    (r"\b(granularity|largest_piece)\(\) const \{", ELASTIC),
    (r"^(\[\[nodiscard\]\] )?(void|bool|std::size_t|status|void\*|std::byte\*) (reserve|unreserve|map|unmap|keep|maps|"
     r"mapped_bytes|save|restore|saved_bytes|forget|allocate_host|deallocate_host)\((stream_type|Stream|host_stream|"
     r"(const )?void\*|std::byte\*|std::size_t)", ELASTIC),
    (r"^using stowage_trait = void;", "Marks a trait."),
    (r"^static constexpr (std::size_t|bool|auto|row_pass|std::int\w+) (start_alignment|minimum_bytes|minimum_formula|"
     r"absent_bytes|tail_bytes|copy_count|cleared_at_construction|fill_numerator|fill_denominator|element_offset|"
     r"presence_condition|slab_group|cleared_by_zero_all|in_row_pass)\b", TRAIT),
    (r"^using tag_type = ", TRAIT),
    (r"^using stowage_\w+ = void;", "Marks the type for the library."),
    (r"^static constexpr std::string_view element_name = ", "The name that reports print for the element."),
    (r"^static constexpr std::size_t elements_per_block = ", "Elements in one block."),
    (r"^static constexpr std::string_view name = ", "The name that reports and messages print."),
    (r"^static constexpr (auto|bool|std::size_t|std::uint32_t) (length|uses_tokens|grows_with_tokens)\b", FORMULA),
    (r"\bemit\(detail::instruction<", FORMULA),
    (r"\bemit\(detail::content_node<", CONTENT),
    (r"^static constexpr (std::size_t|std::uint32_t|bool) (nodes|alignment|token_major)\b", CONTENT),
    (r"^using (handle|definition|content_type|element_type|part_types|traits) = ", CONTENT),
    (r"^static constexpr std::size_t part_count\b", CONTENT),
    (r"\boperator(==|<=>)\(const (\w+)&, const \2&\) = default;", "Compares member by member."),
    (r"^inline constexpr dim<&(?P<member>\w+::\w+)> \w+\{", "The symbol of {member} in formulas."),
    (r"^template <auto Member, auto\.\.\. Path> ", "The same by member pointer, with the path through groups."),
    (r"\b\w+\(std::string_view name\)( const)? \{", "The same by name. Throws bounds_error for a name that no field has."),
    (r"^explicit \w+_backend\(Inner inner\)", "Passes its calls on to that backend."),
    (r"^struct (?P<formula>\w+)_definition \{", "The formula {formula} and its name, for derived."),
    (r"^static constexpr auto formula =", "The formula."),
)]


def filtered(lines):
    commented = False
    for line in lines:
        code = line.strip()
        if code == "#pragma once":
            line = f"/** @file */ {line}" # so that the header is a page, and its macros are looked at
        line = RAW_STRING.sub('""', INLINE.sub("namespace stowage", line))
        if code and not commented and "///<" not in code:
            bare = re.sub(r"^(\[\[nodiscard\]\]|friend|template <[^<>]*>) ", "", re.sub(r"^template <[^<>]*> ", "", code))
            for pattern, sentence in CONVENTIONS:
                if match := pattern.search(bare) or pattern.search(code):
                    indent = len(line) - len(line.lstrip())
                    sentence = sentence.format(**match.groupdict()) if match.groupdict() else sentence
                    line = f"{line[:indent]}/** {sentence} */ {line[indent:]}"
                    break
        # A comment belongs to the declaration that follows, behind any template head.
        commented = code.startswith("///") or (commented and HEAD.match(code) is not None)
        yield line


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        sys.stdout.writelines(filtered(header))
