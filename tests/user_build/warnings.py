#!/usr/bin/env python3
"""No warning in a user's build, with strict options, whether the library's headers are system headers or not; and the
options under which the library still compiles: -fno-rtti, and for plans -fno-exceptions.

Compiles all headers in one file, and programs that instantiate them.
"""

import concurrent.futures
import sys

import common

GXX = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wsign-conversion", "-Wold-style-cast",
       "-Wuseless-cast"]

# All warnings of clang but those that contradict another, or C++20, or headers:
CLANG = ["-Weverything",
         # what an older standard lacks
         "-Wno-c++98-compat", "-Wno-c++98-compat-pedantic", "-Wno-pre-c++14-compat", "-Wno-pre-c++17-compat",
         "-Wno-pre-c++20-compat", "-Wno-pre-c++20-compat-pedantic", "-Wno-c++20-compat",
         "-Wno-padded",                # padding is no fault
         "-Wno-unsafe-buffer-usage",   # pointers are what a layout library is about
         "-Wno-weak-vtables",          # exceptions without a source file
         "-Wno-switch-default",        # contradicts -Wcovered-switch-default
         "-Wno-switch-enum"]           # where a default label is meant

PROGRAMS = ["tests/toolchains/forward_arena.cpp", "examples/arena_checks.cpp", "examples/carve_regions.cpp",
            "examples/hand_written_arena.cpp", "examples/zeroing_experiment.cpp", "examples/own_reports.cpp"]

PLAN_ALONE = """
#include <stowage/buffer.hpp>
#include <stowage/explain.hpp>
#include <stowage/plan.hpp>
#include <stowage/report.hpp>
#include <stowage/traits/when.hpp>
#include <stowage/traits/zero.hpp>
struct params {
  stowage::tokens max_tokens;
  std::size_t hidden;
};
inline constexpr stowage::dim<&params::max_tokens> M{};
inline constexpr stowage::dim<&params::hidden> hidden{};
struct buffers {
  stowage::buffer<float, stowage::shape<stowage::pad<16>(M), hidden>, stowage::zero::rows> states;
};
constexpr auto plan = stowage::make_plan<buffers>(params{stowage::tokens{17}, 64});
static_assert(plan.slab_bytes() == 32 * 64 * 4);
int main() {
  std::string text = stowage::to_table(stowage::make_report(plan));
  return text.empty() ? 1 : 0;
}
"""


def main():
    arguments = common.arguments_of(__doc__.splitlines()[0])
    library, *others = arguments.include or [str(common.INCLUDE)]
    others = [option for folder in others for option in ("-isystem", folder)]
    strict = CLANG if common.is_clang(arguments.compiler) else GXX

    all_headers = common.include_lines(common.headers(arguments.without))
    texts = [("all headers", all_headers)]
    texts += [(name, f'#include "{common.ROOT / name}"\n') for name in PROGRAMS]

    cases = []  # name, options, text
    for name, text in texts:
        cases.append((name, ["-I", library, *strict, "-Werror"], text))
    # As system headers only templates can warn, from where they are used.
    for name, text in texts[:2]:
        cases.append((f"{name}, as system headers", ["-isystem", library, *strict, "-Werror"], text))
    for name, text in texts[:2]:
        cases.append((f"{name}, -fno-rtti", ["-I", library, "-fno-rtti"], text))
    cases.append(("a plan, -fno-exceptions", ["-I", library, "-fno-exceptions", "-Wall", "-Wextra", "-Werror"], PLAN_ALONE))

    def try_case(case):
        return common.compile_text(arguments.compiler, ["-fsyntax-only", *others, *case[1]], case[2])

    problems, passed = [], 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (name, _, _), (compiles, said, _) in zip(cases, pool.map(try_case, cases)):
            if compiles and not said:
                passed += 1
            else:
                problems.append(f"{name}:\n{said[-3000:]}")

    # What needs exceptions says so.
    compiles, said, _ = common.compile_text(arguments.compiler, ["-fsyntax-only", *others, "-I", library, "-fno-exceptions"],
                                            "#include <stowage/arena.hpp>\n")
    if not compiles and "stowage: arenas and backends tell errors by exceptions" in said:
        passed += 1
    else:
        problems.append(f"arena.hpp with -fno-exceptions says:\n{said[-3000:]}")
    return common.report(problems, passed)


if __name__ == "__main__":
    sys.exit(main())
