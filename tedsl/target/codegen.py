"""Facts about the code generator by the module name that TVM's programs use."""

from __future__ import annotations

from tedsl.errors import entries


def llvm_version_major(allow_none: bool = False) -> int:
    """The first number of LLVM's version. allow_none: accepted; LLVM is always there."""
    from llvmlite.binding import llvm_version_info

    return int(llvm_version_info[0])


entries(globals())
