"""The C compilers of the machine, for tests that run what is written; without one they are left out with a line.

TEDSL_TEST_CC names the compiler to use instead of the first one that is found. As a program, with the name of a compiler:
whether it makes shared objects here.
"""

import os
import shutil
import subprocess
import sys

import pytest

from tedsl.codegen.c.running.compiler import find_compiler
from tedsl.errors import TedslError

STRICT = "-Wall -Wextra -Werror -pedantic"
HERE = find_compiler(os.environ.get("TEDSL_TEST_CC", ""))
CPLUSPLUS = shutil.which("g++") or shutil.which("clang++")

needs_compiler = pytest.mark.skipif(HERE is None, reason="no C compiler on the PATH: cc, gcc, clang, zig")
needs_cplusplus = pytest.mark.skipif(CPLUSPLUS is None, reason="no C++ compiler on the PATH: g++, clang++")


def strict_target(more=""):
    """The target c with a compiler that takes every warning as an error; `more`: other options."""
    return f"c -cc='{HERE.name} {STRICT}' {more}".strip()


def read_as_cplusplus(text):
    """What a C++ compiler that takes every warning as an error says of `text`; "" if it takes it."""
    command = [CPLUSPLUS, "-x", "c++", "-O1", *STRICT.split(), "-c", "-o", os.devnull, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False).stderr


if __name__ == "__main__":
    found = find_compiler(sys.argv[1])
    try:
        sys.exit(0 if found is not None and found.shared_object("int answer(void) { return 42; }") else 1)
    except TedslError as error:
        sys.exit(str(error))
