"""The C compilers of the machine, for tests that run what is written; without one they are left out with a line."""

import pytest

from tedsl.codegen.c.running.compiler import find_compiler

STRICT = "-Wall -Wextra -Werror -pedantic"

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on the PATH: cc, gcc, clang, zig")


def strict_target(more=""):
    """The target c with a compiler that takes every warning as an error; `more`: other options."""
    return f"c -cc='{find_compiler().name} {STRICT}' {more}".strip()
