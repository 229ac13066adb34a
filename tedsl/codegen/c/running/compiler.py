"""The C compiler of this machine: finds it, and makes shared objects with it."""

from __future__ import annotations

import functools
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from tedsl.errors import TedslError
from tedsl.record import record
from tedsl.target.target import Target

COMPILERS = ("cc", "gcc", "clang", "zig cc")  # in the order in which they are looked for
SECONDS = 300  # after which a compiler is given up
# C as the program means it: products are not merged with sums, and its text is C99.
_OPTIONS = ("-std=c99", "-ffp-contract=off", "-fPIC")


@record
class Compiler:
    """A C compiler: its name, and the words of the command that runs it."""

    name: str
    command: tuple[str, ...]

    def shared_object(self, source: str, options: Sequence[str] = ()) -> bytes:
        """Compiles `source` and returns the shared object; TedslError with the first errors if the compiler refuses it."""
        return self._made(source, ["-shared", *options], ["-lm"])

    def assembly(self, source: str, options: Sequence[str] = ()) -> str:
        """Compiles `source` and returns the assembly of code that may stand anywhere; TedslError as for `shared_object`."""
        silent = "-Wno-unused-command-line-argument"  # zig cc passes -c beside -S
        return self._made(source, ["-S", "-g0", *options, silent], []).decode()

    def _made(self, source: str, options: Sequence[str], libraries: Sequence[str]) -> bytes:
        """What the compiler makes of `source`."""
        with tempfile.TemporaryDirectory(prefix="tedsl-") as folder:
            result = os.path.join(folder, "module")
            command = [*self.command, "-x", "c", *_OPTIONS, *options, "-o", result, "-", *libraries]
            try:
                done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=SECONDS, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise TedslError(f"the C compiler {self.name} did not run: {error}") from error
            if done.returncode:
                lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
                raise TedslError(f"the C compiler {self.name} does not compile the module:\n    " + "\n    ".join(lines[:6]),
                                 hint='get_source() shows the text; -cc=NAME in the target asks another compiler')
            with open(result, "rb") as file:
                return file.read()


def compiler_for(target: Target) -> Compiler:
    """Returns the compiler that the option -cc of `target` names, else the first that is here; TedslError if there is none."""
    asked = str(target.attrs.get("cc", ""))
    found = find_compiler(asked)
    if found is None and asked:
        raise TedslError(f"the C compiler {asked!r} of target {target} is not on the PATH",
                         hint=f"install it, or leave -cc out: one of {', '.join(COMPILERS)} is looked for")
    if found is None:
        raise TedslError(f"a module in C runs once a C compiler has compiled it, and none of {', '.join(COMPILERS)} is here",
                         hint="install gcc or clang, or pip install ziglang; get_source() gives the text, and "
                              'target="llvm" needs no compiler')
    return found


@functools.cache
def find_compiler(asked: str = "") -> Compiler | None:
    """Returns the compiler called `asked`, such as "gcc" or "zig cc"; the first of COMPILERS for ""; None if it is not here."""
    if not asked:
        return next((found for name in COMPILERS if (found := find_compiler(name)) is not None), None)
    words = shlex.split(asked)
    path = shutil.which(words[0])
    if path is not None:
        return Compiler(asked, (path, *(words[1:] or ("cc",) if words[0] == "zig" else words[1:])))
    if words[0] == "zig" and importlib.util.find_spec("ziglang") is not None:
        return Compiler("zig cc", (sys.executable, "-m", "ziglang", "cc"))
    return None


def machine_options(compiler: Compiler, target: Target) -> tuple[str, ...]:
    """Returns the options by which `compiler` makes code for the processor of `target`, for this one if it names none."""
    if "zig" in compiler.name:
        return (f"-mcpu={target.mcpu.replace('-', '_')}",) if target.mcpu else ()  # without: this processor
    if target.mcpu:
        return (f"-march={target.mcpu}",)
    if target.mattr:
        return tuple(f"-m{'no-' if word[0] == '-' else ''}{word[1:]}" for word in target.mattr)
    return ("-march=native",) if os.uname().machine == "x86_64" else ("-mcpu=native",)
