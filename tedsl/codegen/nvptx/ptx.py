"""Makes PTX of the LLVM IR of kernels."""

from __future__ import annotations

import re

from tedsl.codegen.llvm.machine import assembly, optimize
from tedsl.errors import ArgumentError
from tedsl.target.features import NVPTX_CPUS
from tedsl.target.target import Target

_UNUSED = re.compile(r"^(?:\$L__(?:tmp|func_begin|func_end)\d+:|\s*\.section\s+\.debug_macinfo\s*{\s*})\n", re.MULTILINE)


def check_processor(target: Target) -> None:
    """Refuses a name that is not one of NVIDIA's devices, which LLVM would ignore."""
    if target.cpu not in NVPTX_CPUS:
        raise ArgumentError(f"there is no device {target.cpu!r} of NVIDIA's that PTX can be made for",
                            hint=f"-arch is one of {', '.join(NVPTX_CPUS)}")


def ptx_of(text: str, target: Target) -> str:
    """Returns the PTX of the module `text`, without the labels and sections that tables of lines would use."""
    return _UNUSED.sub("", assembly(optimize(text, target, vectorize=True), target))
