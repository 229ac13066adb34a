"""Hints for the arguments that a call refuses, for inputs and for outputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from tedsl.errors import ArgumentError
from tedsl.runtime.foreign import as_array
from tedsl.runtime.signature import Signature, TensorParam

MOST_SEARCHED = 8  # with more arguments, exchanged ones are not searched for
_CONTIGUOUS = "pass numpy.ascontiguousarray(x)"
_COPY = "pass a copy: x.copy()"


def is_output(sig: Signature, k: int) -> bool:
    """Tells whether the kernel writes argument `k`."""
    param = sig.params[k]
    return isinstance(param, TensorParam) and param.written


def contiguous(sig: Signature, k: int) -> str:
    """Returns the hint for an array whose strides do not fit."""
    return _copied_back(sig, k) if is_output(sig, k) else _CONTIGUOUS


def aligned(sig: Signature, k: int) -> str:
    """Returns the hint for an array whose elements are misaligned."""
    return _copied_back(sig, k) if is_output(sig, k) else _COPY


def converted(sig: Signature, k: int) -> str:
    """Returns the hint for an array of another dtype or byte order."""
    return _copied_back(sig, k) if is_output(sig, k) else f"convert it: x.astype({str(sig.params[k].dtype)!r})"


def viewed(sig: Signature, k: int) -> str:
    """Returns the hint for memory without a dtype, such as a bytearray, which an array of numpy shares."""
    param = sig.params[k]
    shape = "" if isinstance(param, TensorParam) and len(param.shape) == 1 else ".reshape(shape)"
    return f"view its bytes as an array: numpy.frombuffer({_name(sig, k)}, {str(param.dtype)!r}){shape}"


def of_values(sig: Signature, k: int) -> str:
    """Returns the hint for values that are not an array."""
    dtype = str(sig.params[k].dtype)
    return f"allocate the output: out = numpy.empty(shape, {dtype!r}); {_call(sig, k)}" if is_output(sig, k) else \
        "make one: numpy.array(x, dtype)"


def separate(sig: Signature, k: int) -> str:
    """Returns the hint for an output whose elements overlap others in memory, or may."""
    return f"pass an array of its own: out = numpy.empty({_name(sig, k)}.shape, {str(sig.params[k].dtype)!r}); {_call(sig, k)}"


def writable(sig: Signature, k: int) -> str:
    """Returns the hint for a read-only output."""
    return f"{_name(sig, k)} cannot be written, so take the result from an array of its own: " \
           f"{_allocated(sig, k)}; {_call(sig, k)}"


def in_place(sig: Signature) -> str:
    """Returns the hint for an output that overlaps another argument."""
    return f'{order(sig)}; to compute in place, build it with PassContext(config={{"tir.noalias": False}})'


def order(sig: Signature) -> str:
    """Returns, as text, the order of the arguments and which of them are outputs."""
    outputs = [param.name for _, param in sig.tensors() if param.written]
    said = f"the order is {sig.name}({sig.names})"
    if not outputs:
        return said
    return f"{said}, where {', '.join(outputs)} {'is the output' if len(outputs) == 1 else 'are the outputs'}"


def _copied_back(sig: Signature, k: int) -> str:
    """Returns the steps by which a result gets into an output that the kernel cannot write; a converted copy of it would be
    lost.

    The new array begins with the elements of the output, for a kernel that updates it or writes a part of it. Arguments are
    called by the names of the kernel's parameters.
    """
    return f"a copy would not change {_name(sig, k)}: allocate the output, call, and copy back: {_allocated(sig, k)}; " \
           f"{_call(sig, k)}; {_name(sig, k)}[...] = out"


def _allocated(sig: Signature, k: int) -> str:
    return f"out = numpy.array({_name(sig, k)}, {str(sig.params[k].dtype)!r}, order='C')"


def _name(sig: Signature, k: int) -> str:
    """Returns the name of parameter `k` if it is a Python identifier, else "x"."""
    name = sig.params[k].name
    return name if name.isidentifier() else "x"


def _call(sig: Signature, k: int) -> str:
    return f"{sig.name}({', '.join('out' if j == k else param.name for j, param in enumerate(sig.params))})"


def exchanged(sig: Signature, args: Sequence[Any], check: Callable[[Sequence[Any]], object]) -> str:
    """Returns the hint that two arguments are exchanged, if `check` accepts the call with them swapped; else ""."""
    pairs = itertools.combinations(range(len(args)), 2) if len(args) <= MOST_SEARCHED else ()
    for i, j in pairs:
        if _kind(args[i]) == _kind(args[j]):
            continue
        others = list(args)
        others[i], others[j] = args[j], args[i]
        try:
            check(others)
        except ArgumentError:
            continue
        return f"arguments {i + 1} and {j + 1} seem to be exchanged: {order(sig)}"
    return ""


def _kind(value: Any) -> object:
    """Returns the properties by which arguments are told apart: dtype and shape of an array, the type of anything else."""
    try:
        array = as_array(value, "", "")
    except ArgumentError:
        return type(value)
    return array.dtype.str, array.shape
