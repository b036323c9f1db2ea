"""What a compiler does with a file: instantiations (clang), instructions (valgrind), seconds."""

import pathlib
import re
import shutil
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
STANDARD = "-std=c++20"


class Refused(Exception):
    """A file that did not compile, or a tool that failed: with what it said."""


def run(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Refused(f"{' '.join(str(part) for part in command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done


class Compiler:
    def __init__(self, name, includes=(), optimise="-O2"):
        self.name = name
        self.optimise = optimise
        self.includes = [part for folder in (includes or [ROOT / "include"]) for part in ("-I", str(folder))]
        version = run([name, "--version"]).stdout
        self.is_nvcc = "nvcc" in pathlib.Path(name).name
        self.is_clang = "clang" in version
        release = re.search(r"release (\d+\.\d+)" if self.is_nvcc else r"(\d+\.\d+\.\d+)", version)
        family = "nvcc" if self.is_nvcc else "clang" if self.is_clang else "g++"
        self.title = f"{family} {release[1] if release else '?'}"
        self.suffix = ".cu" if self.is_nvcc else ".cpp"

    def macros(self, include, *names):
        """Values of macros after an include, "" for those that are not defined."""
        source = f"#include <{include}>\n" + "".join(f'"{name}" {name}\n' for name in names)
        text = run([self.name, STANDARD, *self.includes, "-E", "-P", "-x", "c++", "-"], input=source).stdout
        found = dict(re.findall(r'^"(\w+)" (.+)$', text, re.MULTILINE))
        return tuple("" if found.get(name, name) == name else found[name] for name in names)

    def environment(self):
        """What instantiation counts depend on besides the sources."""
        standard_library, release = self.macros("cstddef", "__GLIBCXX__", "_GLIBCXX_RELEASE")
        (boost,) = self.macros("boost/version.hpp", "BOOST_LIB_VERSION")
        return {
            "compiler": self.title,
            "standard library": f"libstdc++ {release} of {standard_library}" if release else "not libstdc++",
            "boost": boost.strip('"'),
            "target": run([self.name, "-dumpmachine"]).stdout.strip(),
        }

    def instantiations(self, source):
        """Classes and functions that clang instantiates for a file; the optimiser adds none, so it does not run."""
        trace = source.with_suffix(".json")
        run([self.name, STANDARD, *self.includes, "-c", source, "-o", "/dev/null", "-Xclang", "-fsyntax-only",
             f"-ftime-trace={trace}", "-ftime-trace-granularity=0"])
        text = trace.read_text(encoding="utf-8", errors="replace")
        trace.unlink()
        # Each instantiation is an event; the "Total" events count outermost ones only. Counting the text is a tenth of
        # the time of parsing it.
        return text.count('"name":"InstantiateClass"'), text.count('"name":"InstantiateFunction"')

    def instructions(self, source):
        """Instructions that compiling the preprocessed file takes. Repeats to about 0.1 percent."""
        if self.is_nvcc or shutil.which("valgrind") is None:
            return None
        preprocessed = source.with_suffix(".ii")
        run([self.name, STANDARD, self.optimise, *self.includes, "-E", source, "-o", preprocessed])
        if self.is_clang:
            command = [self.name, STANDARD, self.optimise, "-c", preprocessed, "-o", "/dev/null"]
        else:
            inner = run([self.name, "-print-prog-name=cc1plus"]).stdout.strip()
            command = [inner, "-fpreprocessed", "-quiet", STANDARD, self.optimise, preprocessed, "-o", "/dev/null"]
        said = run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
                    *command]).stderr
        preprocessed.unlink()
        counted = re.search(r"I +refs: +([\d,]+)", said)
        if counted is None:
            raise Refused(f"valgrind counted nothing:\n{said}")
        return int(counted[1].replace(",", ""))

    def seconds(self, source, repeats):
        """The best of some runs; what else runs on the machine shows."""
        best = None
        for _ in range(repeats):
            begin = time.perf_counter()
            run([self.name, STANDARD, self.optimise, *self.includes, "-c", source, "-o", source.with_suffix(".o")])
            taken = time.perf_counter() - begin
            best = taken if best is None else min(best, taken)
        return best
