"""Field lists of any length, and the same buffers as an arena written by hand.

Both are written from one table, so that they declare the same sizes; `comparison` is a program that checks it. Names,
formulas, policies and conditions vary as they do in the forward arena: most buffers have a shape of their own, about a
third a row policy, every fourth a condition. The mix repeats every 12 buffers, so that a longer list is more of the
same.
"""

import dataclasses

# What each stage contains, and all before it.
STAGES = ("include", "declare", "plan", "arena", "reports")

_PARAMS = ("hidden", "qkv_width", "intermediate", "vocab", "heads", "head_dim", "experts", "top_k", "groups", "state")
_FLAGS = ("gated", "has_mamba", "has_experts", "hyper")
_ELEMENTS = {  # Stowage's, what code by hand uses for it, bytes
    "bf16": ("stowage::bf16", "std::uint16_t", 2),
    "float": ("float", "float", 4),
    "int": ("std::int32_t", "std::int32_t", 4),
    "fp8": ("stowage::fp8_e4m3", "std::uint8_t", 1),
}
# The leading extent: the formula, the same by hand, and the rows that T tokens own.
_ROWS = {
    "M": ("M", "M", "T"),
    "padded": ("stowage::pad<16>(M)", "ceil16(M)", "T"),
    "blocks": ("stowage::cdiv(M, 64)", "(M + 63) / 64", "(T + 63) / 64"),
    "few": ("stowage::min(M, 160)", "std::min<std::size_t>(M, 160)", "std::min<std::size_t>(T, 160)"),
    "routed": ("top_k * M", "p.top_k * M", "p.top_k * T"),
    "fixed": ("16", "16", None),
}
# The other extents: the formulas, and their product by hand. {k} differs from buffer to buffer.
_WIDTHS = (
    ("hidden", "p.hidden"),
    ("2 * hidden + qkv_width + {k}", "(2 * p.hidden + p.qkv_width + {k})"),
    ("heads * head_dim", "p.heads * p.head_dim"),
    ("stowage::max(hidden, intermediate + {k})", "std::max(p.hidden, p.intermediate + {k})"),
    ("experts + {k}", "(p.experts + {k})"),
    ("2, heads + {k}", "2 * (p.heads + {k})"),
    ("stowage::cdiv(hidden, 128)", "((p.hidden + 127) / 128)"),
    ("stowage::choose(gated, 2, 1) * heads * head_dim", "(p.gated ? 2 : 1) * p.heads * p.head_dim"),
    ("groups * state + {k}", "(p.groups * p.state + {k})"),
    ("2 * intermediate", "2 * p.intermediate"),
    ("vocab", "p.vocab"),
    ("groups, state, {k}", "p.groups * p.state * {k}"),
)
# name, element, rows, number of the width, policy, condition, further traits
_KINDS = (
    ("states", "bf16", "M", 0, "rows", None, ("tag",)),
    ("qkv", "bf16", "padded", 1, "rows", None, ("tag",)),
    ("attention", "bf16", "M", 7, "rows", None, ()),
    ("router", "float", "M", 4, "never", "has_experts", ("placeholder",)),
    ("logits", "bf16", "few", 10, "full", None, ()),
    ("gates", "float", "M", 5, "rows", None, ("at_least",)),
    ("scan", "float", "blocks", 8, "never", "has_mamba", ()),
    ("activations", "fp8", "padded", 3, "never", None, ()),
    ("scales", "float", "padded", 6, "never", None, ("at_least",)),
    ("expert", "bf16", "routed", 9, "rows", "has_experts", ("tag",)),
    ("heads", "bf16", "M", 2, "never", None, ()),
    ("streams", "int", "fixed", 11, "never", "hyper", ()),
)


@dataclasses.dataclass
class Buffer:
    name: str
    element: str
    rows: str
    width: tuple
    policy: str
    condition: str | None
    traits: tuple

    def declaration(self):
        arguments = [_ELEMENTS[self.element][0], f"stowage::shape<{_ROWS[self.rows][0]}, {self.width[0]}>",
                     f"stowage::zero::{self.policy}"]
        if self.condition:
            arguments.append(f"stowage::when<&params::{self.condition}>")
        spelled = {"tag": "stowage::tag<listed>", "at_least": "stowage::at_least<256>",
                   "placeholder": "stowage::placeholder<256>"}
        arguments += [spelled[trait] for trait in self.traits]
        return f"  stowage::buffer<{', '.join(arguments)}> {self.name};"

    def pointer_by_hand(self):
        return f"  {_ELEMENTS[self.element][1]}* {self.name} = nullptr;"

    def size_by_hand(self, rows):
        """Bytes where the buffer is present, for an expression of its rows."""
        size = f"{rows} * {self.width[1]} * {_ELEMENTS[self.element][2]}"
        return f"std::max<std::size_t>({size}, 256)" if "at_least" in self.traits else size

    def bytes_by_hand(self):
        size = self.size_by_hand(_ROWS[self.rows][1])
        if not self.condition:
            return size
        return f"p.{self.condition} ? {size} : {256 if 'placeholder' in self.traits else 0}"


def buffers(count):
    result = []
    for index in range(count):
        name, element, rows, width, policy, condition, traits = _KINDS[index % len(_KINDS)]
        round_ = index // len(_KINDS)
        # From the second round on the plain widths get a term, or every round would repeat the shapes of the first.
        formula, by_hand = (text.format(k=index + 3) for text in _WIDTHS[width])
        if round_ > 0 and "{k}" not in _WIDTHS[width][0] and index % 2 == 0:
            formula, by_hand = f"{formula} + {index}", f"({by_hand} + {index})"
        result.append(Buffer(f"{name}_{round_}", element, rows, (formula, by_hand), policy, condition, traits))
    return result


def _params(tokens):
    sizes = ", ".join(_PARAMS)
    return f"struct params {{\n  {tokens} max_tokens;\n  std::size_t {sizes};\n  bool {', '.join(_FLAGS)};\n}};\n"


def stowage_source(count, stage):
    """A file that gets as far as `stage`."""
    reached = STAGES.index(stage)
    text = "#include <stowage/stowage.hpp>\n"
    if reached >= STAGES.index("arena"):
        text += "#include <stowage/checksum.hpp>\n"
    if reached >= STAGES.index("reports"):
        text += "#include <stowage/report.hpp>\n"
    if reached < STAGES.index("declare"):
        return text
    text += "#include <cstddef>\n#include <cstdint>\n\nnamespace declared {\n\n" + _params("stowage::tokens")
    text += 'inline constexpr stowage::dim<&params::max_tokens> M{"M"};\n'
    text += "".join(f"inline constexpr stowage::dim<&params::{name}> {name}{{}};\n" for name in _PARAMS + ("gated",))
    text += "struct listed;\nstruct buffers {\n"
    text += "\n".join(buffer.declaration() for buffer in buffers(count)) + "\n};\n\n} // namespace declared\n"
    if stage == "declare":
        return text
    first = buffers(count)[0].name
    text += f"""
std::size_t planned(const declared::params& p) {{
  const auto plan = stowage::make_plan<declared::buffers>(p);
  return plan.slab_bytes() + plan.bytes<&declared::buffers::{first}>();
}}
"""
    if stage == "plan":
        return text
    text += """
std::size_t step(const declared::params& p, std::size_t tokens) {
  stowage::arena arena(stowage::make_plan<declared::buffers>(p), stowage::host_backend{});
  arena.zero_all();
  arena.zero_rows({}, stowage::tokens{tokens});
  arena.zero_rows({}, stowage::tokens{tokens / 2}, stowage::tokens{tokens});
  arena.zero_tagged<declared::listed>();
  double sums = 0;
  stowage::checksum<declared::listed>(arena, {}, [&](const stowage::field_checksum& sum) { sums += sum.sum; });
  std::size_t used = sums == 0 ? 0 : 1;
"""
    text += "".join(f"  if (arena->{b.name}.data() != nullptr) used += arena->{b.name}.bytes();\n"
                    for b in buffers(count))
    text += "  return arena.release().ok() ? used : 0;\n}\n"
    if stage == "arena":
        return text
    return text + """
std::string reports(const declared::params& p) {
  const stowage::plan_report report = stowage::make_report(stowage::make_plan<declared::buffers>(p));
  return stowage::to_table(report) + stowage::to_json(report) + stowage::to_csv(report) + stowage::to_svg(report);
}
"""


def hand_written_source(count):
    """The arena by hand, as far as the stage `arena`: sizes, one allocation, accessors, passes, checksums, release.

    It does the least that works: no check of the arithmetic, no names, no merging of neighbours, no failure half-way.
    """
    listed = buffers(count)
    in_slab = [b for policy in ("rows", "full", "never") for b in listed if b.policy == policy]
    zeroed = [b for b in in_slab if b.policy != "never"]
    text = """#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace by_hand {

""" + _params("std::size_t")
    text += """
inline std::size_t ceil16(std::size_t value) { return (value + 15) / 16 * 16; }
inline std::size_t slab_offset(std::size_t end) { return (end + 255) / 256 * 256; }
inline void clear(void* address, std::size_t bytes) {
  if (address != nullptr) std::memset(address, 0, bytes);
}
inline void clear_from(void* address, std::size_t first, std::size_t last) {
  if (address != nullptr && first < last) std::memset(static_cast<std::byte*>(address) + first, 0, last - first);
}
inline void add_lanes(double& sum, const void* address, std::size_t bytes) {
  for (std::size_t offset = 0; offset + 4 <= bytes; offset += 4) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(address) + offset, 4);
    if ((bits & 0x7f800000U) != 0x7f800000U) sum += std::bit_cast<float>(bits);
  }
}

struct arena {
"""
    text += "\n".join(b.pointer_by_hand() for b in listed) + "\n"
    text += "".join(f"  std::size_t {b.name}_bytes = 0;\n" for b in listed)
    text += """  params p{};
  std::byte* slab = nullptr;
  std::size_t slab_bytes = 0, zeroed_bytes = 0;

  void measure(const params& given) {
    p = given;
    const std::size_t M = p.max_tokens;
"""
    text += "".join(f"    {b.name}_bytes = {b.bytes_by_hand()};\n" for b in listed)
    text += "  }\n  void allocate() {\n    std::size_t end = 0;\n"
    for buffer in in_slab:
        text += f"    const std::size_t {buffer.name}_at = slab_offset(end);\n"
        text += f"    if ({buffer.name}_bytes != 0) end = {buffer.name}_at + {buffer.name}_bytes;\n"
        if zeroed and buffer is zeroed[-1]:
            text += "    zeroed_bytes = end;\n"
    text += """    slab_bytes = slab_offset(end);
    slab = static_cast<std::byte*>(std::aligned_alloc(256, slab_bytes));
    if (slab == nullptr) throw std::bad_alloc();
"""
    for buffer in in_slab:
        kind = _ELEMENTS[buffer.element][1]
        text += (f"    if ({buffer.name}_bytes != 0) "
                 f"{buffer.name} = reinterpret_cast<{kind}*>(slab + {buffer.name}_at);\n")
    text += "  }\n  void zero_all() const { clear(slab, zeroed_bytes); }\n"

    text += "  void zero_rows(std::size_t tokens) const {\n    const std::size_t M = std::min(tokens, p.max_tokens);\n"
    text += "    if (M != 0) {\n"
    for buffer in zeroed:
        if buffer.policy == "rows":
            text += f"      clear({buffer.name}, {buffer.size_by_hand(_ROWS[buffer.rows][1])});\n"
    text += "    }\n"
    for buffer in zeroed:
        if buffer.policy == "full":
            text += f"    clear({buffer.name}, {buffer.name}_bytes);\n"
    text += "  }\n  void zero_rows(std::size_t first, std::size_t last) const {\n"
    text += "    const std::size_t T = std::min(first, p.max_tokens), M = std::min(last, p.max_tokens);\n"
    text += "    if (first >= last) return;\n"
    for buffer in zeroed:
        if buffer.policy == "rows":
            owned = f"{_ROWS[buffer.rows][2]} * {buffer.width[1]} * {_ELEMENTS[buffer.element][2]}"
            text += f"    clear_from({buffer.name}, {owned}, {buffer.size_by_hand(_ROWS[buffer.rows][1])});\n"
    text += "  }\n  void zero_listed() const {\n"
    tagged = [b for b in listed if "tag" in b.traits]
    text += "".join(f"    clear({b.name}, {b.name}_bytes);\n" for b in tagged)
    text += "  }\n  double checksum() const {\n    double sum = 0;\n"
    text += "".join(f"    if ({b.name} != nullptr) add_lanes(sum, {b.name}, {b.name}_bytes);\n" for b in tagged)
    text += "    return sum;\n  }\n  void release() {\n    std::free(slab);\n    slab = nullptr;\n"
    text += "".join(f"    {b.name} = nullptr;\n" for b in listed)
    text += """  }
};

} // namespace by_hand

std::size_t step_by_hand(const by_hand::params& p, std::size_t tokens) {
  by_hand::arena arena;
  arena.measure(p);
  arena.allocate();
  arena.zero_all();
  arena.zero_rows(tokens);
  arena.zero_rows(tokens / 2, tokens);
  arena.zero_listed();
  std::size_t used = arena.checksum() == 0 ? 0 : 1;
"""
    text += "".join(f"  if (arena.{b.name} != nullptr) used += arena.{b.name}_bytes;\n" for b in listed)
    return text + "  arena.release();\n  return used;\n}\n"


FORWARD_ARENA = """#include <stowage/checksum.hpp>
#include <stowage/llm/forward_arena.hpp>

std::size_t step(const stowage::llm::forward_params& p, std::size_t tokens) {
  auto arena = stowage::llm::make_forward_arena(p, stowage::host_backend{});
  arena.zero_all();
  arena.zero_rows({}, stowage::tokens{tokens});
  arena.zero_rows({}, stowage::tokens{tokens / 2}, stowage::tokens{tokens});
  arena.zero_tagged<stowage::llm::prefill_essentials>();
  double sums = 0;
  stowage::checksum<stowage::llm::checksummed>(arena, {},
                                               [&](const stowage::field_checksum& sum) { sums += sum.sum; });
  const std::size_t used = arena->hidden_states.bytes() + (sums == 0 ? 0 : 1);
  return arena.release().ok() ? used : 0;
}
"""


def comparison(count):
    """A program: both arenas have the same bytes, and clear the same in each pass, or it says where they differ."""
    sizes = "192, 320, 128, 500, 4, 32, 8, 2, 4, 16"
    text = stowage_source(count, "arena") + hand_written_source(count) + """
#include <cstdio>
#include <initializer_list>

int main() {
  int differences = 0;
  const auto differ = [&](const char* name, const char* what, std::size_t tokens) {
    std::printf("%s: %s differs, %zu tokens\\n", name, what, tokens);
    ++differences;
  };
  for (const std::size_t M : {std::size_t{41}, std::size_t{170}}) {
    for (const bool on : {false, true}) {
"""
    text += f"      const declared::params params{{stowage::tokens{{M}}, {sizes}, on, on, !on, on}};\n"
    text += "      stowage::arena arena(stowage::make_plan<declared::buffers>(params), stowage::host_backend{});\n"
    text += "      by_hand::arena hand;\n"
    text += f"      hand.measure({{M, {sizes}, on, on, !on, on}});\n      hand.allocate();\n"
    text += """      const auto compare = [&](const char* what, std::size_t tokens) {
"""
    for index, buffer in enumerate(buffers(count)):
        text += (f"        if (arena->{buffer.name}.bytes() != hand.{buffer.name}_bytes ||\n"
                 f"            (arena.address({index}) == nullptr) != (hand.{buffer.name} == nullptr) ||\n"
                 f"            (hand.{buffer.name} != nullptr &&\n"
                 f"             std::memcmp(arena.address({index}), hand.{buffer.name}, hand.{buffer.name}_bytes) != 0))\n"
                 f"          differ(\"{buffer.name}\", what, tokens);\n")
    text += """      };
      const auto fill = [&] {
"""
    for index, buffer in enumerate(buffers(count)):
        text += (f"        if (hand.{buffer.name} != nullptr && arena.address({index}) != nullptr) {{\n"
                 f"          std::memset(hand.{buffer.name}, 0xab, hand.{buffer.name}_bytes);\n"
                 f"          std::memset(arena.address({index}), 0xab, hand.{buffer.name}_bytes);\n        }}\n")
    text += """      };
      fill();
      arena.zero_all();
      hand.zero_all();
      compare("zero_all", M);
      fill();
      arena.zero_tagged<declared::listed>();
      hand.zero_listed();
      compare("zero_tagged", M);
      for (const std::size_t tokens : {0U, 1U, 7U, 16U, 40U, 1000U}) {
        fill();
        arena.zero_rows({}, stowage::tokens{tokens});
        hand.zero_rows(tokens);
        compare("zero_rows", tokens);
        fill();
        arena.zero_rows({}, stowage::tokens{tokens / 2}, stowage::tokens{tokens});
        hand.zero_rows(tokens / 2, tokens);
        compare("zero_rows of a tail", tokens);
      }
      hand.release();
    }
  }
  return differences == 0 ? 0 : 1;
}
"""
    return text
