"""Facts about the code generator by the module name that TVM's programs use."""

from __future__ import annotations

from tedsl.errors import ArgumentTypeError, entries
from tedsl.ir.calls.llvm_names import name_of, number_of


def llvm_version_major(allow_none: bool = False) -> int:
    """The first number of LLVM's version. allow_none: accepted; LLVM is always there."""
    from llvmlite.binding import llvm_version_info

    return int(llvm_version_info[0])


def llvm_lookup_intrinsic_id(name: str) -> int:
    """The number by which tir.call_llvm_intrin knows LLVM's intrinsic `name`; 0 for what cannot be the name of one.

    Whether LLVM has the intrinsic, and programs may call it, `build` says.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"llvm_lookup_intrinsic_id: the name of an intrinsic is a str, not {name!r}",
                                hint='for example "llvm.fshl.i32"')
    return number_of(name)


def llvm_get_intrinsic_name(intrin_id: int) -> str:
    """The name of the intrinsic with that number. Raises ArgumentError where llvm_lookup_intrinsic_id never gave it."""
    return name_of(int(intrin_id))


entries(globals())
