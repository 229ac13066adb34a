"""Operators of topi at odd shapes, scheduled for processors: C gives the bits of LLVM. `.ci/c` tries every one."""

from tests.codegen.c.compilers import needs_compiler, strict_target
from tests.codegen.c.topi_operators import differing, operators


@needs_compiler
def test_operators_have_the_bits_of_llvm():
    every = operators()
    scans = [one for one in every if one[0] == "nn.lstm"]  # their states are no arguments
    assert differing([*every[::30], *scans], strict_target("-math=own")) == []
