"""Calls of kernels that their entry points do not take: other objects than plain numpy arrays and numbers, and wrong arguments.

This file is copied into wheels: it imports numpy and the standard library alone. Arguments become DLPack's tensors, the entry
point for C checks them, and its message becomes a TypeError or ValueError.
"""

from __future__ import annotations

import ctypes
import importlib
import operator
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from tedsl.runtime.arguments.numpy_fields import verified_layout

_NO_MEMORY, _BAD_TYPE, _ASSERTION = 1, 2, 16
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6, "c": 5}
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


class _Tensor(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = (("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64))


class _Address(ctypes.c_uint64):
    """The value of a pointer."""


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
        keep: list[Any] = []
        result = None if kernel.result is None else numpy.zeros((), kernel.result)
        tensors = [_tensor(array, keep) for array in (*given, *([] if result is None else [result]))]
        pointers = (ctypes.c_void_p * max(len(tensors), 1))(*map(ctypes.addressof, tensors))
        message = ctypes.create_string_buffer(1000)
        status = self._function(pointers, len(tensors), message, len(message))
        if status:
            self._raise(status, message.value.decode(errors="replace"))
        return None if result is None else result.item()

    def fail(self, status: int) -> None:
        """Raises the error that a status stands for, for an entry point."""
        kernel = self.kernel
        text = "a temporary buffer could not be allocated" if status == _NO_MEMORY else \
            kernel.messages[status - _ASSERTION] if 0 <= status - _ASSERTION < len(kernel.messages) else f"status {status}"
        self._raise(status, f"{kernel.name}: {text}")

    def refuse_names(self, names: Sequence[str]) -> None:
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


def _array(kernel: Kernel, k: int, param: Parameter, value: Any) -> Any:
    """Returns an argument as a numpy array on the same memory."""
    where = _where(kernel, k)
    if isinstance(value, numpy.ma.MaskedArray):
        raise TypeError(f"{where} is a masked array")
    if isinstance(value, numpy.ndarray):
        array = value.view(numpy.ndarray)
    elif isinstance(value, (bool, int, float, complex, str, list, tuple)) or value is None:
        raise TypeError(f"{where} is an array, {type(value).__name__} was given")
    else:
        array = _memory(where, value)
    kinds = array.dtype.kind in _CODES or array.dtype.name == "bfloat16"
    if not kinds:
        raise TypeError(f"{where} has dtype {array.dtype}, it needs {param.dtype}")
    if not array.dtype.isnative:
        raise TypeError(f"{where} is byte-swapped ({array.dtype.str})")
    if param.written and not array.flags.writeable:
        raise ValueError(f"{where} is an output and the array is read-only")
    odd = next((step for n, step in zip(array.shape, array.strides) if n > 1 and step % array.itemsize), None)
    if odd is not None:
        raise ValueError(f"{where} has a stride of {odd} bytes, not a multiple of its {array.itemsize}-byte elements")
    return array


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


def _number(kernel: Kernel, k: int, param: Parameter, value: Any) -> Any:
    """Returns an argument as a numpy array of rank 0."""
    where = _where(kernel, k)
    if param.dtype.startswith(("float", "bfloat")):
        try:
            if getattr(value, "ndim", 0) == 0 and not isinstance(value, str):
                return numpy.array(float(value))
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
    if param.dtype == "handle":
        return _Address(number)
    return numpy.array(number, numpy.int64 if number < 2**63 else numpy.uint64)


def _tensor(array: Any, keep: list[Any]) -> _Tensor:
    """Returns the tensor of an array. keep: takes what has to live as long as the tensor."""
    if isinstance(array, _Address):
        keep.append(array)
        return _Tensor(ctypes.addressof(array), 1, 0, 0, 3, 64, 1, None, None, 0)
    code = 4 if array.dtype.name == "bfloat16" else _CODES[array.dtype.kind]
    numbers = ctypes.c_int64 * max(array.ndim, 1)
    shape, strides = numbers(*array.shape), numbers(*(step // array.itemsize for step in array.strides))
    keep += [array, shape, strides]
    return _Tensor(array.ctypes.data, 1, 0, array.ndim, code, 8 * array.itemsize, 1, ctypes.addressof(shape),
                   ctypes.addressof(strides), 0)


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
