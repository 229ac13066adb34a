"""Writes the C header of a library: its functions with what they take, statuses, and DLPack's DLTensor."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tedsl.codegen.c.text.names import is_of_headers
from tedsl.codegen.kernels.abi import FIRST_ASSERTION, NO_MEMORY, OK
from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.codegen.llvm.export.c_entry import BAD_TYPE, BAD_VALUE, stored_result
from tedsl.codegen.llvm.export.library import Function, Library
from tedsl.codegen.llvm.types import argument_type
from tedsl.ir.dtype import DType
from tedsl.runtime.signature import ScalarParam, TensorParam
from tedsl.version import VERSION

_C_TYPES = {"bool": "uint8_t", "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float", "float64": "double",
            "handle": "void *"}
_ARGUMENT_TYPES = {"i64": "int64_t", "ptr": "void *", "float": "float", "double": "double"}
# Words that are no names of parameters, in C or in C++.
_KEYWORDS = frozenset(re.findall(r"\w+", """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const consteval constexpr
constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum explicit
export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or
or_eq private protected public register reinterpret_cast requires restrict return short signed sizeof static static_assert
static_cast struct switch template this thread_local throw true try typedef typeid typename typeof union unsigned using
virtual void volatile wchar_t while xor xor_eq"""))


def header(library: Library) -> str:
    """Returns the text of the header."""
    prefix = library.prefix
    guard = f"{prefix}_TEDSL_H"  # prefixes may differ in case alone
    names = ", ".join(function.signature.name for function in library.functions)
    about = [f"/* {_comment(names)}: compiled by tedsl {VERSION} for {_comment(str(library.target))}.", *_about(library), " */"]
    lines = [*about, f"#ifndef {guard}", f"#define {guard}", "", "#include <stddef.h>", "#include <stdint.h>", "",
             *DLPACK.splitlines(), "", *_statuses(prefix.upper()), "", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    for function in library.functions:
        lines += [*_declarations(function), ""]
    lines += [_named(line, prefix) for line in _POOL.splitlines()] if library.pool else []
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "#endif", ""])


def _named(line: str, prefix: str) -> str:
    return re.sub(r"PREFIX_([A-Z_]+)", lambda status: f"{prefix.upper()}_{status[1]}", line).replace("PREFIX", prefix)


# DLPack 1.0, under the guard of its own header, so that either may be included first.
DLPACK = """\
/* The tensors of DLPack. A dlpack.h that is included before, or that the compiler finds, is taken; else these are what it
 * declares in its version 1.0, and one that is included later adds nothing. */
#ifndef DLPACK_DLPACK_H_
#ifdef __has_include
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#elif __has_include("dlpack.h")
#include "dlpack.h"
#endif
#endif
#endif
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
#ifdef __cplusplus
extern "C" {
typedef enum : int32_t {
#else
typedef enum {
#endif
    kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLOpenCL = 4, kDLVulkan = 7, kDLMetal = 8, kDLVPI = 9, kDLROCM = 10,
    kDLROCMHost = 11, kDLExtDev = 12, kDLCUDAManaged = 13, kDLOneAPI = 14, kDLWebGPU = 15, kDLHexagon = 16, kDLMAIA = 17
} DLDeviceType;
typedef enum {
    kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6
} DLDataTypeCode;
typedef struct { uint32_t major; uint32_t minor; } DLPackVersion;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType; /* a bool has 8 bits */
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: compact row-major */
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;
#ifdef __cplusplus
}
#endif
#endif"""

_POOL = """\
/* Threads of parallel loops: 1 to 255, the caller included. Without a call, as many as TEDSL_NUM_THREADS in the environment
 * says, else one for each processor that the process may use. Returns PREFIX_OK or PREFIX_BAD_VALUE. */
int32_t PREFIX_set_num_threads(int32_t count);
int32_t PREFIX_get_num_threads(void);

/* Runs parallel loops on threads of the program. The launcher calls body(env, begin, end) for ranges that together are 0 to
 * count, on any threads at once, and returns when all have returned: the largest of their values. NULL: the threads of the
 * library again. Set it while no function of the library runs. */
typedef int32_t (*PREFIX_body)(void *env, int64_t begin, int64_t end);
typedef int32_t (*PREFIX_launcher)(void *context, PREFIX_body body, void *env, int64_t count);
void PREFIX_set_launcher(PREFIX_launcher launcher, void *context);
"""


_ABOUT = """\
 *
 * A function takes tensors in the order of its description; numbers as tensors of rank 0, of any integer (or float) dtype. It
 * checks them and returns a status. A message for people goes to `message`, up to `size` bytes with the NUL at the end; NULL
 * and 0: none. The function called _raw takes what the kernel takes, and checks nothing. Several threads may call both."""


def _about(library: Library) -> Iterator[str]:
    yield from _ABOUT.splitlines()
    if library.needed:
        yield " *"
        yield f" * The program provides: {_comment(', '.join(library.needed))}."


def _statuses(prefix: str) -> list[str]:
    return [f"#define {prefix}_OK {OK}", f"#define {prefix}_NO_MEMORY {NO_MEMORY} /* for a temporary buffer */",
            f"#define {prefix}_BAD_TYPE {BAD_TYPE} /* number, kind, device or dtype of arguments */",
            f"#define {prefix}_BAD_VALUE {BAD_VALUE} /* shape, strides, alignment, overlap or value of an argument */",
            f"#define {prefix}_ASSERTION {FIRST_ASSERTION} /* and above: an assertion of the kernel failed */"]


def _declarations(function: Function) -> Iterator[str]:
    """Lists the description of a function and its declarations."""
    sig = function.signature
    yield f"/* {_comment(sig.name)}({_comment(sig.names)})"
    for param in sig.params:
        yield f" *   {_comment(described(param))}"
    if sig.result is not None:
        yield f" *   result: {stored_result(sig.result)}, a tensor of rank 0 that takes the number that is returned"
    if sig.noalias and any(p.written for _, p in sig.tensors()) and len(list(sig.tensors())) > 1:
        yield " * An output may not overlap another argument."
    for k, message in enumerate(function.messages):
        yield f" * Status {FIRST_ASSERTION + k}: {_comment(message)}"
    yield " */"
    yield f"int32_t {function.symbol}(const DLTensor *const *args, int32_t count, char *message, size_t size);"
    for name, kernel in function.entries().items():
        if kernel is function.compact:
            yield "/* For compact arrays alone. */"
        yield f"int32_t {name}({', '.join(_raw_parameters(function, kernel)) or 'void'});"


def described(param: TensorParam | ScalarParam) -> str:
    """Returns what a parameter takes, in a line."""
    if isinstance(param, ScalarParam):
        return f"{param.name}: a number of dtype {param.dtype}"
    strides = ""
    if param.strides:
        strides = f", strides ({', '.join(str(s) for s in param.strides)}) in elements" if all(
            not hasattr(s, "name") for s in param.strides) else ", any strides"
    return f"{param.name}: {param.dtype} {param.shape_text}, {'output' if param.written else 'input'}{strides}"


def _raw_parameters(function: Function, kernel: KernelSymbol) -> list[str]:
    """Lists the parameters of a raw entry point."""
    names = _Names()
    parameters = []
    for _, param in function.signature.tensors():
        element = c_type(param.dtype.element)
        const = "" if param.written else "const "
        parameters.append(f"{const}{element}{'' if element.endswith('*') else ' '}*{names.fresh(param.name)}")
    for var in kernel.scalars:
        type_ = _ARGUMENT_TYPES[argument_type(var.dtype)]
        parameters.append(f"{type_}{'' if type_.endswith('*') else ' '}{names.fresh(var.name)}")
    if kernel.result is not None:
        parameters.append(f"{_ARGUMENT_TYPES[argument_type(kernel.result)]} *{names.fresh('result')}")
    return parameters


def c_type(dtype: DType) -> str:
    """Returns the C type of an element in memory; 16-bit floats are their bits."""
    return _C_TYPES.get(str(dtype), f"{dtype}_t")


class _Names:
    """Names of parameters: each a name in C and in C++, and used once."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def fresh(self, name: str) -> str:
        wanted = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not wanted or wanted[0].isdecimal():
            wanted = f"_{wanted}"
        elif wanted in _KEYWORDS or is_of_headers(wanted):
            wanted = f"{wanted}_"
        unique, k = wanted, 0
        while unique in self.used:
            k += 1
            unique = f"{wanted}_{k}"
        self.used.add(unique)
        return unique


def _comment(text: str) -> str:
    """Returns `text` as it can stand in a comment."""
    return " ".join(text.replace("*/", "* /").replace("/*", "/ *").split()).encode("ascii", "backslashreplace").decode()
