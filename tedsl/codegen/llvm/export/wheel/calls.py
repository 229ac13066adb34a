"""Calls of kernels that their entry points do not take: other objects than plain numpy arrays and numbers, and wrong arguments.

This file is copied into wheels: it imports numpy and the standard library alone. Arguments become DLPack's tensors, the entry
point for C checks them, and its message becomes a TypeError or ValueError.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import operator
import platform
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from tedsl.runtime.arguments.numpy_fields import verified_layout

_NO_MEMORY, _BAD_TYPE, _ASSERTION = 1, 2, 16
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6, "c": 5}
_BFLOAT = 4
_INTEGER, _NATURAL, _REAL, _HANDLE = (code | 64 << 8 | 1 << 16 for code in range(4))  # of numbers
# A DLTensor has six words: data; device type and id; rank, code, bits and lanes; shape; strides; byte offset.
_TENSOR_WORDS, _CPU = 6, 1
_MESSAGE_BYTES = 1000
_Message = ctypes.c_char * _MESSAGE_BYTES
LINUX_NAMES = {"sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2", "bmi": "bmi1", "lzcnt": "abm", "sahf": "lahf_lm",
                "pclmul": "pclmulqdq", "rdrnd": "rdrand", "prfchw": "3dnowprefetch", "sha": "sha_ni", "crc32": "sse4_2",
                "avx512vbmi2": "avx512_vbmi2", "avx512vnni": "avx512_vnni", "avx512bitalg": "avx512_bitalg",
                "avx512vpopcntdq": "avx512_vpopcntdq", "avx512bf16": "avx512_bf16", "avx512fp16": "avx512_fp16"}
# Features of x86-64 that machine code may use without being asked; Linux tells of all of them.
TOLD = frozenset(("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "f16c", "fma", "bmi", "bmi2", "lzcnt", "movbe",
                   "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vbmi", "avx512vbmi2", "avx512vnni",
                   "avx512bitalg", "avx512vpopcntdq", "avx512bf16", "avx512fp16", "avx512ifma", "gfni", "vaes", "vpclmulqdq",
                   "pclmul", "aes", "sha", "adx"))


@dataclass(frozen=True)
class Parameter:
    """dtype: of a number or of the elements; written: an output; rank: None for a number."""

    name: str
    dtype: str
    rank: int | None
    written: bool = False


@dataclass(frozen=True)
class Kernel:
    """symbol: of the entry point for C. result: the dtype of the number that the kernel returns. messages: of assertions."""

    name: str
    symbol: str
    parameters: tuple[Parameter, ...]
    result: str | None
    messages: tuple[str, ...]


@dataclass
class _Tensor:
    """An argument as DLPack's DLTensor of rank `len(shape)`. kind: its code, bits and lanes as one number; strides in elements.
    address: of the elements; None: of `content`, a number of 64 bits. owner: what has to live as long as the memory.
    """

    kind: int
    address: int | None
    content: int = 0
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    owner: Any = None


class Call:
    """A kernel for all objects that hold memory of the CPU: by the buffer protocol or DLPack."""

    def __init__(self, kernel: Kernel, function: Callable[..., int]) -> None:
        self.kernel, self._function = kernel, function

    def __call__(self, *args: Any) -> Any:
        kernel = self.kernel
        if len(args) != len(kernel.parameters):
            names = ", ".join(p.name for p in kernel.parameters)
            count = f"{len(kernel.parameters)} argument{'' if len(kernel.parameters) == 1 else 's'}"
            raise TypeError(f"{kernel.name} takes {count} ({names}), {len(args)} given")
        given = [_number(kernel, k, p, value) if p.rank is None else _array(kernel, k, p, value)
                 for k, (p, value) in enumerate(zip(kernel.parameters, args))]
        result = None if kernel.result is None else numpy.zeros((), kernel.result)
        if result is not None:
            given.append(_tensor(result, _encoded(result.dtype)))
        memory, message = _laid_out(given), _Message()
        status = self._function(memory, len(given), message, _MESSAGE_BYTES)
        if status:
            self._raise(status, message.value.decode(errors="replace"))
        return None if result is None else result.item()

    def fail(self, status: int) -> None:
        """Raises the error that a status stands for, for an entry point."""
        kernel = self.kernel
        text = "a temporary buffer could not be allocated" if status == _NO_MEMORY else \
            kernel.messages[status - _ASSERTION] if 0 <= status - _ASSERTION < len(kernel.messages) else f"status {status}"
        self._raise(status, f"{kernel.name}: {text}")

    def refuse_names(self, *names: str) -> None:
        """Raises TypeError: arguments cannot be given by name."""
        raise TypeError(f"{self.kernel.name} takes its arguments in their order, not by name: {', '.join(names)}")

    def _raise(self, status: int, message: str) -> None:
        if status == _NO_MEMORY:
            raise MemoryError(message)
        raise (TypeError if status == _BAD_TYPE else ValueError)(message)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"{self.kernel.name} is machine code and cannot be pickled; import its module in the other process")


def _where(kernel: Kernel, k: int) -> str:
    return f"{kernel.name}: argument {k + 1} ({kernel.parameters[k].name})"


def _array(kernel: Kernel, k: int, param: Parameter, value: Any) -> _Tensor:
    """Returns an argument as a tensor on the same memory."""
    where = _where(kernel, k)
    if isinstance(value, numpy.ndarray):
        if isinstance(value, numpy.ma.MaskedArray):
            raise TypeError(f"{where} is a masked array")
        array = value.view(numpy.ndarray)
    elif isinstance(value, (bool, int, float, complex, str, list, tuple)) or value is None:
        raise TypeError(f"{where} is an array, {type(value).__name__} was given")
    else:
        array = _memory(where, value)
    kind = _encoded(array.dtype)
    if not kind:
        raise TypeError(f"{where} has dtype {array.dtype}, it needs {param.dtype}")
    if not array.dtype.isnative:
        raise TypeError(f"{where} is byte-swapped ({array.dtype.str})")
    flags = array.flags
    if param.written and not flags.writeable:
        raise ValueError(f"{where} is an output and the array is read-only")
    if not flags.c_contiguous:
        odd = next((step for n, step in zip(array.shape, array.strides) if n > 1 and step % array.itemsize), None)
        if odd is not None:
            raise ValueError(f"{where} has a stride of {odd} bytes, not a multiple of its {array.itemsize}-byte elements")
    return _tensor(array, kind)


@functools.lru_cache(maxsize=64)
def _encoded(dtype: Any) -> int:
    """Returns the code, bits and lanes that DLPack has for a dtype, as one number; 0 if it has none."""
    code = _CODES.get(dtype.kind, _BFLOAT if dtype.name == "bfloat16" else None)
    return 0 if code is None else _kind(code, 8 * dtype.itemsize)


def _kind(code: int, bits: int) -> int:
    return code | bits << 8 | 1 << 16


def _tensor(array: Any, kind: int) -> _Tensor:
    size = array.itemsize
    return _Tensor(kind, array.__array_interface__["data"][0], 0, array.shape, tuple([step // size for step in array.strides]),
                   array)


def _memory(where: str, value: Any) -> Any:
    try:
        return numpy.asarray(memoryview(value))
    except (TypeError, ValueError, NotImplementedError) as error:
        if hasattr(value, "__dlpack__") and not isinstance(value, type):
            try:
                return numpy.from_dlpack(value)
            except Exception as refusal:  # whatever its library raises
                raise TypeError(f"{where}: {type(value).__name__} does not give its memory: {refusal}") from refusal
        raise TypeError(f"{where} is an array, {type(value).__name__} was given") from error


def _number(kernel: Kernel, k: int, param: Parameter, value: Any) -> _Tensor:
    """Returns an argument as a tensor of rank 0."""
    where = _where(kernel, k)
    if param.dtype.startswith(("float", "bfloat")):
        try:
            if getattr(value, "ndim", 0) == 0 and not isinstance(value, str):
                return _Tensor(_REAL, None, struct.unpack("q", struct.pack("d", float(value)))[0])
        except OverflowError:
            raise ValueError(f"{where} is {value}, which does not fit {param.dtype}") from None
        except (TypeError, ValueError):
            pass
        raise TypeError(f"{where} is a number of dtype {param.dtype}, {type(value).__name__} was given")
    try:
        number = int(value) if isinstance(value, numpy.bool_) else operator.index(value)
    except TypeError:
        raise TypeError(f"{where} is a number of dtype {param.dtype}, {type(value).__name__} was given") from None
    if not -2**63 <= number < 2**64:
        raise ValueError(f"{where} is {number}, which does not fit {param.dtype}")
    kind = _HANDLE if param.dtype == "handle" else _INTEGER if number < 2**63 else _NATURAL
    return _Tensor(kind, None, number if number < 2**63 else number - 2**64)


def _laid_out(tensors: Sequence[_Tensor]) -> Any:
    """Returns memory that begins with the addresses of the tensors; these follow, then their shapes and strides."""
    count = len(tensors)
    at = _TENSOR_WORDS * count + count
    memory: Any = (ctypes.c_int64 * (at + sum([2 * len(tensor.shape) for tensor in tensors])))()
    base = ctypes.addressof(memory)
    first = base + 8 * count
    words = [first + 8 * _TENSOR_WORDS * k for k in range(count)]
    behind: list[int] = []
    for k, tensor in enumerate(tensors):
        rank, shape = len(tensor.shape), base + 8 * (at + len(behind))
        if tensor.address is None:  # a number stands in the place of its strides, of which it has none
            words += (words[k] + 32, _CPU, tensor.kind << 32, 0, tensor.content, 0)
            continue
        words += (tensor.address, _CPU, rank | tensor.kind << 32, shape, shape + 8 * rank, 0)
        behind += tensor.shape
        behind += tensor.strides
    memory[:] = words + behind
    return memory


# --- loading --------------------------------------------------------------------------------------------------------------

def load(package: str, levels: Sequence[tuple[str, Sequence[str]]],
         kernels: Sequence[Kernel]) -> Mapping[str, Callable[..., Any]]:
    """Returns the functions of a package. levels: its extension modules, the best first, with the features that each needs."""
    here = _features()
    lacking: list[str] = []
    for module, features in levels:
        lacking = [name for name in features if here is not None and LINUX_NAMES.get(name, name) not in here]
        if not lacking:
            return _functions(importlib.import_module(f"{package}.{module}"), kernels)
    raise ImportError(f"{package} was compiled for a processor with {', '.join(lacking)}, which this one lacks")


def _functions(module: Any, kernels: Sequence[Kernel]) -> Mapping[str, Callable[..., Any]]:
    if verified_layout() is not None:
        module.accept(numpy.ndarray, _bfloat16_number())
    library = ctypes.CDLL(module.__file__)
    functions = {}
    for k, kernel in enumerate(kernels):
        entry = library[kernel.symbol]
        entry.restype, entry.argtypes = ctypes.c_int32, (ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t)
        functions[kernel.name] = module.make(k, Call(kernel, entry))
    return functions


def _bfloat16_number() -> int:
    try:
        return int(numpy.dtype("bfloat16").num)  # known once ml_dtypes is imported
    except TypeError:
        return -1


def _features() -> frozenset[str] | None:
    """Returns what Linux says that the processor can do; None where it does not say."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            line = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return None
    return frozenset(line.partition(":")[2].split()) or None
