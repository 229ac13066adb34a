"""The header of a module in C: what a program that calls its kernels includes."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.codegen.c.kernel import CFunction, prototype
from tedsl.codegen.c.text.module_text import LAUNCHER


def header_text(functions: Sequence[CFunction], source: str) -> str:
    """Returns the header for the kernels `functions`, whose file is `source`."""
    guard = f"TEDSL_{functions[0].name}_H"  # names may differ in case alone
    parts = [f"#ifndef {guard}\n#define {guard}\n", "#include <stdint.h>\n", '#ifdef __cplusplus\nextern "C" {\n#endif\n']
    parts += [_described(function) for function in functions]
    if "tedsl_parallel_launch" in source:
        parts.append(LAUNCHER)
    if "tedsl_workspace_alloc" in source:
        parts.append("/* Yours where TEDSL_OWN_WORKSPACE is defined; else malloc and free. */\n"
                     "void *tedsl_workspace_alloc(int64_t bytes);\nvoid tedsl_workspace_free(void *memory);\n")
    return "\n".join([*parts, "#ifdef __cplusplus\n}\n#endif\n#endif\n"])


def _described(function: CFunction) -> str:
    """Returns the prototype of a kernel, with the shapes of its arrays and what it may return."""
    buffers = function.func.buffers
    arrays = [f"{p.name}: {b.dtype} {list(b.shape)}{' by strides' if b.strides else ''}"
              for p, b in zip(function.parameters, buffers)]
    statuses = [f"   {failure}" for failure in function.failures()]
    lines = "\n".join([f"/* {'; '.join(arrays)}. Returns 0, or a status{':' if statuses else '.'}", *statuses]) + " */"
    return f"{lines}\n{prototype(function)};\n"
