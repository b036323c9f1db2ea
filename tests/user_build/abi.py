#!/usr/bin/env python3
"""Two translation units that include different minor versions of the library do not link.

A function that takes an arena is defined in one and called in the other. The other version is a copy of the headers
with another inline namespace; with the same headers the program links and runs.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import common

SHARED = """
#include <stowage/stowage.hpp>
struct params {
  stowage::tokens max_tokens;
};
inline constexpr stowage::dim<&params::max_tokens> M{};
struct buffers {
  stowage::buffer<float, stowage::shape<M>, stowage::zero::rows> states;
};
using arena_type = stowage::arena<buffers, params, stowage::host_backend>;
std::size_t bytes_of(const arena_type& arena);
"""
DEFINITION = SHARED + "std::size_t bytes_of(const arena_type& arena) { return arena->states.bytes(); }\n"
CALL = SHARED + """
int main() {
  const arena_type arena(stowage::make_plan<buffers>(params{stowage::tokens{4}}), stowage::host_backend{});
  return bytes_of(arena) == 16 ? 0 : 1;
}
"""


def main():
    arguments = common.arguments_of(__doc__.splitlines()[0])
    library, *others = arguments.include or [str(common.INCLUDE)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        shutil.copytree(pathlib.Path(library, "stowage"), folder / "other" / "stowage")
        for path in (folder / "other").rglob("*.*p*"):
            text = path.read_text(encoding="utf-8")
            path.write_text(re.sub(r"\bstowage::inline v\d+_\d+\b", "stowage::inline v98_76", text), encoding="utf-8")

        def compile_to(name, include, text):
            options = ["-c", "-o", str(folder / name), "-I", str(include)]
            options += [option for other in others for option in ("-isystem", other)]
            compiles, said, _ = common.compile_text(arguments.compiler, options, text)
            if not compiles:
                sys.exit(said)
            return str(folder / name)

        call = compile_to("call.o", library, CALL)
        same = compile_to("same.o", library, DEFINITION)
        other = compile_to("other.o", folder / "other", DEFINITION)

        def link(definition):
            return subprocess.run([arguments.compiler, call, definition, "-o", str(folder / "program")],
                                  capture_output=True, text=True, check=False)

        problems, passed = [], 0
        linked = link(same)
        if linked.returncode == 0 and subprocess.run([str(folder / "program")], check=False).returncode == 0:
            passed += 1
        else:
            problems.append(f"with the same version the program does not work: {linked.stderr}")
        linked = link(other)
        if linked.returncode != 0 and re.search(r"undefined reference to `bytes_of\(stowage::v\d+_\d+::arena", linked.stderr):
            passed += 1
        else:
            problems.append(f"with another version the program links: {linked.stderr}")
    return common.report(problems, passed)


if __name__ == "__main__":
    sys.exit(main())
