#!/usr/bin/env python3
"""The headers bring no names but `stowage` and STOWAGE_*, and all of the library is in its inline namespace.

Macros: those of a file with all headers, less those of a file that includes what they include of others. Global names
(clang): the same with the names that look-up finds in the global namespace, and qualified names elsewhere. Source:
every header opens the namespace `stowage::inline vMAJOR_MINOR`, with the numbers of stowage/version.hpp.
"""

import re
import sys

import common

INCLUDE_OF_OTHERS = re.compile(r"^\s*#\s*include\s*<(?!stowage/)([^>]+)>", re.MULTILINE)
# Headers that declare nothing: they include others, or define macros alone.
WITHOUT_NAMESPACE = {"stowage/stowage.hpp", "stowage/report.hpp", "stowage/detail/cold.hpp",
                     "stowage/detail/host_device.hpp"}


def check_namespaces():
    """(problems, headers that are right)"""
    version = (common.INCLUDE / "stowage/version.hpp").read_text(encoding="utf-8")
    major, minor = (re.search(rf"STOWAGE_VERSION_{part} (\d+)", version)[1] for part in ("MAJOR", "MINOR"))
    wanted = f"namespace stowage::inline v{major}_{minor}"
    problems, right = [], 0
    for path in sorted((common.INCLUDE / "stowage").rglob("*.[hc][pu][ph]")):
        name = path.relative_to(common.INCLUDE).as_posix()
        opened = re.findall(r"^(?:inline )?namespace stowage[^{\n]*", path.read_text(encoding="utf-8"), re.MULTILINE)
        wrong = [line for line in opened if not re.match(rf"{re.escape(wanted)}(::\w+)* $", line)]
        if wrong:
            problems.append(f"{name} opens '{wrong[0].strip()}', not '{wanted}'")
        elif not opened and name not in WITHOUT_NAMESPACE:
            problems.append(f"{name} opens no namespace '{wanted}'")
        else:
            right += 1
    return problems, right


def main():
    arguments = common.arguments_of(__doc__.splitlines()[0])
    folders = arguments.include or [str(common.INCLUDE)]
    options = [option for folder in folders for option in ("-I", folder)]

    names = common.headers(arguments.without)
    own = common.include_lines(names)
    of_others = set()
    for name in names:
        of_others.update(INCLUDE_OF_OTHERS.findall((common.INCLUDE / name).read_text(encoding="utf-8")))
    of_others.discard("sanitizer/asan_interface.h") # only with AddressSanitizer
    others = common.include_lines(sorted(of_others))

    problems, passed = check_namespaces()

    def new_lines(extra, pattern, allowed):
        nonlocal passed
        found = []
        for text in (own, others):
            compiles, said, output = common.compile_text(arguments.compiler, [*options, *extra], text)
            if not compiles:
                problems.append(said)
                return
            found.append({match[1] for match in re.finditer(pattern, output, re.MULTILINE)})
        new = found[0] - found[1]
        ours = {name for name in new if re.match(allowed, name)}
        if not ours:
            problems.append(f"{' '.join(extra)}: nothing of the library was found, so this checks nothing")
        problems.extend(f"a name outside stowage and STOWAGE_: {name}" for name in sorted(new - ours))
        passed += len(ours)

    new_lines(["-E", "-dM"], r"^#define (\w+)", r"STOWAGE_")
    if common.is_clang(arguments.compiler):
        new_lines(["-fsyntax-only", "-Xclang", "-ast-dump-lookups"], r"^[|`]-DeclarationName '(.*)'$", r"stowage$")
        # Without `::`: parameters and local variables; with `<`: instantiations; unnamed structs are DLPack's.
        new_lines(["-fsyntax-only", "-Xclang", "-ast-list"], r"^((?!\(anonymous)[^(\s<]+::[^<\n]*)$", r"stowage::")
    return common.report(problems, passed)


if __name__ == "__main__":
    sys.exit(main())
