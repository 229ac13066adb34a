"""Operators of topi at odd shapes, scheduled for processors: C gives the bits of LLVM. `.ci/c` tries every one."""

from tests.codegen.c.compilers import needs_compiler, strict_target
from tests.codegen.c.topi_operators import differing, operators


@needs_compiler
def test_operators_have_the_bits_of_llvm():
    assert differing(operators()[::30], strict_target("-math=own")) == []
