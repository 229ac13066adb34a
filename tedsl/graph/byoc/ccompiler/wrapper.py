"""The text of a module in C: macros, functions, and for each a function of DLPack's DLTensor that checks what it is given."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.codegen.llvm.export.header import DLPACK
from tedsl.graph.byoc.ccompiler.kernels import c_type
from tedsl.graph.byoc.ccompiler.visitor import NO_MEMORY, CFunction
from tedsl.graph.value import Spec

# The statuses of wrappers; those about an argument have its number in the bits from the eighth on.
REASONS = {NO_MEMORY: "there is not enough memory for its buffers", 2: "it was called with another number of arrays",
           3: "the array is missing", 4: "the array lies on another device", 5: "the array has another dtype",
           6: "the array has another shape", 7: "the array is not contiguous"}
_CODES = {"int": 0, "uint": 1, "float": 2}  # of DLPack

_PRELUDE = """#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

""" + DLPACK + """

static int32_t csource_check(const DLTensor *t, uint8_t code, uint8_t bits, int32_t ndim, const int64_t *shape)
{
    int64_t count = 1, stride = 1;
    if (t == NULL || t->shape == NULL) {
        if (t == NULL || t->ndim != 0) {
            return 3;
        }
    }
    if (t->device.device_type != 1) {
        return 4;
    }
    if (t->dtype.code != code || t->dtype.bits != bits || t->dtype.lanes != 1) {
        return 5;
    }
    if (t->ndim != ndim) {
        return 6;
    }
    for (int32_t k = 0; k < ndim; ++k) {
        if (t->shape[k] != shape[k]) {
            return 6;
        }
        count *= shape[k];
    }
    if (count > 0 && t->data == NULL) {
        return 3;
    }
    for (int32_t k = ndim; t->strides != NULL && count > 0 && k-- > 0;) {
        if (shape[k] != 1 && t->strides[k] != stride) {
            return 7;
        }
        stride *= shape[k];
    }
    return 0;
}
"""


def module_text(functions: Sequence[CFunction]) -> str:
    """The text of a module: what it needs, each macro once, the functions, and their wrappers."""
    macros = dict.fromkeys([macro for function in functions for macro in function.macros])
    parts = [_PRELUDE, *macros]
    for function in functions:
        parts += [f"{function.text}\n", wrapper(function)]
    return "\n".join(parts)


def wrapper(function: CFunction) -> str:
    """The function `NAME` of arrays: inputs, then outputs."""
    specs = [*function.inputs, *function.outputs]
    lines = [f"int32_t {function.name}(const DLTensor *const *args, int32_t count)", "{"]
    for at, spec in enumerate(specs):
        extents = ", ".join(map(str, spec.shape)) or "0"
        lines.append(f"    static const int64_t shape{at}[] = {{{extents}}};")
    lines += ["    int32_t status;", f"    if (count != {len(specs)} || args == NULL) {{", "        return 2;", "    }"]
    for at, spec in enumerate(specs):
        lines += [f"    status = csource_check(args[{at}], {_dlpack(spec)}, {len(spec.shape)}, shape{at});",
                  "    if (status != 0) {", f"        return status | {at << 8};", "    }"]
    arguments = [_data(at, spec, "const " * (at < len(function.inputs))) for at, spec in enumerate(specs)]
    lines += [f"    return {function.raw}(", ",\n".join(f"        {argument}" for argument in arguments) + ");", "}\n"]
    return "\n".join(lines)


def _dlpack(spec: Spec) -> str:
    word = str(spec.dtype).rstrip("0123456789")
    return f"{_CODES[word]}, {spec.dtype.bits}"


def _data(at: int, spec: Spec, qualifier: str) -> str:
    return f"({qualifier}{c_type(spec)} *)(void *)((char *)args[{at}]->data + args[{at}]->byte_offset)"
