"""Numbers for the names of LLVM's intrinsics, as programs of TVM carry them: `call_llvm_intrin(dtype, number, ...)`.

They are those of this process, as in TVM, where each version of LLVM has others.
"""

from __future__ import annotations

from tedsl.errors import ArgumentError

_NAMES: list[str] = []


def number_of(name: str) -> int:
    """The number of the intrinsic `name`, from 1 on, the same for the same name; 0 for what cannot be the name of one."""
    parts = name.split(".")
    if len(parts) < 2 or parts[0] != "llvm" or not all(part.replace("_", "").isalnum() for part in parts):
        return 0
    if name not in _NAMES:
        _NAMES.append(name)
    return _NAMES.index(name) + 1


def name_of(number: int) -> str:
    """The name of the intrinsic with that number; ArgumentError for one that `number_of` never gave."""
    if not 0 < number <= len(_NAMES):
        raise ArgumentError(f"no intrinsic of LLVM has the number {number}",
                            hint='codegen.llvm_lookup_intrinsic_id("llvm.fshl.i32") gives numbers; names are taken as they are')
    return _NAMES[number - 1]
