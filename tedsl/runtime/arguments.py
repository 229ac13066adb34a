"""The checked way into a kernel: every argument looked at, every refusal in one sentence, nothing written before all is right.

Compiled entry points do the same checks in some 20 ns and come here when one fails, or for objects that are not
plain numpy arrays: here the precise error is found, or the objects are converted and the kernel is called.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.dtype import DType
from tedsl.ir.expr import SizeVar, Var
from tedsl.ir.walk.visitor import uses
from tedsl.runtime.foreign import Array, as_array, as_number, has_dtype, slot_bits
from tedsl.runtime.shapes import exact
from tedsl.runtime.signature import Binding, Signature, TensorParam, signature_of

__all__ = ["Prepared", "Signature", "prepare", "signature_of"]

_CONTIGUOUS = "pass numpy.ascontiguousarray(x)"
_IN_PLACE = 'build it with PassContext(config={"tir.noalias": False}) to allow that'


@dataclass(frozen=True)
class Prepared:
    """Checked arguments as 64-bit slots in the order of the kernel's; `arrays` keeps the memory alive.

    compact: all arrays are compact row-major and there is a kernel for that: it runs, and the slots are its own.
    """

    slots: ctypes.Array[ctypes.c_int64]
    compact: bool
    arrays: tuple[Array, ...]


def prepare(sig: Signature, args: Sequence[Any], without_strides: tuple[Var, ...] | None = None) -> Prepared:
    """Checks `args` against `sig`; ArgumentError or ArgumentTypeError says what does not fit.

    without_strides: the scalars of the kernel for compact arrays, if there is one.
    """
    if len(args) != len(sig.params):
        raise ArgumentTypeError(f"{sig.name} takes {_count(len(sig.params))} ({sig.names}), {len(args)} given")
    arrays = {k: _checked_array(sig, k, param, args[k]) for k, param in sig.tensors()}
    compact = without_strides is not None and all(a.flags.c_contiguous for a in arrays.values())
    values = _bind(sig, args, arrays, strides=not compact)
    for k, param in sig.tensors():
        _check_shape(sig, k, param, arrays[k], values)
        if not compact:
            _check_strides(sig, k, param, arrays[k], values)
    _check_overlap(sig, arrays)
    scalars = sig.scalars if not compact or without_strides is None else without_strides
    slots = [a.ctypes.data for a in arrays.values()] + [slot_bits(values[v], v.dtype) for v in scalars]
    return Prepared((ctypes.c_int64 * max(len(slots), 1))(*slots), compact, tuple(arrays.values()))


def _count(n: int) -> str:
    return f"{n} argument" if n == 1 else f"{n} arguments"


def _where(sig: Signature, k: int) -> str:
    return f"{sig.name}: argument {k + 1} ({sig.params[k].name})"


def _checked_array(sig: Signature, k: int, param: TensorParam, value: Any) -> Array:
    """The array of one argument, right in dtype, rank, alignment and writability."""
    where = _where(sig, k)
    array = as_array(value, where)
    if not has_dtype(array, param.dtype):
        raise _wrong_dtype(where, array, param.dtype)
    if array.ndim != len(param.shape):
        raise ArgumentError(f"{where} has {array.ndim} dimensions, shape {array.shape}; "
                            f"it needs {len(param.shape)}, shape {param.shape_text}")
    if not array.flags.aligned:
        raise ArgumentError(f"{where} is misaligned: its elements do not start at multiples of {array.dtype.alignment} bytes",
                            hint="pass a copy: x.copy()")
    if param.written and not array.flags.writeable:
        raise ArgumentError(f"{where} is an output and the array is read-only", hint="pass a writable array: x.copy()")
    return array


def _wrong_dtype(where: str, array: Array, wanted: DType) -> ArgumentTypeError:
    if not array.dtype.isnative and has_dtype(numpy.empty(0, array.dtype.newbyteorder("=")), wanted):
        return ArgumentTypeError(f"{where} is byte-swapped ({array.dtype.str})", hint=f"convert it: x.astype({str(wanted)!r})")
    return ArgumentTypeError(f"{where} has dtype {array.dtype}, it needs {wanted}",
                             hint=f"convert it: x.astype({str(wanted)!r})")


# --- variables of shapes ----------------------------------------------------------------------------------------------

def _bind(sig: Signature, args: Sequence[Any], arrays: dict[int, Array], *, strides: bool) -> dict[Var, Any]:
    """The value of every variable (those of strides only if asked), each checked against its dtype."""
    values: dict[Var, Any] = {}
    for binding in sig.bindings:
        if binding.kind == "scalar":
            where = _where(sig, binding.param)
            values[binding.var] = number = as_number(args[binding.param], binding.var.dtype, where)
            if isinstance(binding.var, SizeVar) and number < 0:
                raise ArgumentError(f"{where} is {number}, and a size is at least 0")
        elif binding.kind != "stride" or strides:
            values[binding.var] = _solved(sig, binding, arrays, values)
    return values


def _solved(sig: Signature, binding: Binding, arrays: dict[int, Array], values: dict[Var, Any]) -> int:
    if binding.kind == "offset" or binding.expr is None:
        return 0
    param, array = sig.params[binding.param], arrays[binding.param]
    assert isinstance(param, TensorParam)
    steps = array.shape if binding.kind == "shape" else strides_in_elements(sig, binding.param, param, array)
    given = steps[binding.dim]
    rest = exact(binding.expr, {**values, binding.var: 0})
    value, left = divmod(given - rest, binding.scale)
    name, dtype = binding.var.name, binding.var.dtype
    part = "dimension" if binding.kind == "shape" else "the stride of dimension"
    what = f"{_where(sig, binding.param)}: {part} {binding.dim}"
    if left:
        raise ArgumentError(f"{what} is {given}, which no {name} makes equal to {binding.expr!r}")
    if isinstance(binding.var, SizeVar) and value < 0:
        raise ArgumentError(f"{what} is {given}, so {name} would be {value}, below 0")
    low, high = dtype.min_value, dtype.max_value
    if low is not None and high is not None and not low <= value <= high:
        raise ArgumentError(f"{what} is {given}, so {name} is {value}, which does not fit {dtype}",
                            hint=f"declare it wider: te.var({name!r}, 'int64')")
    return value


def _check_shape(sig: Signature, k: int, param: TensorParam, array: Array, values: dict[Var, Any]) -> None:
    wanted = tuple(exact(e, values) for e in param.shape)
    if array.shape == wanted:
        return
    bound = ", ".join(f"{b.var.name} = {values[b.var]} from {_origin(sig, b)}" for b in sig.bindings
                      if b.kind in ("shape", "scalar") and any(uses(e, b.var) for e in param.shape))
    symbolic = f" {param.shape_text} with {bound}, that is" if bound else ""
    raise ArgumentError(f"{_where(sig, k)} has shape {array.shape}, it needs{symbolic} {wanted}")


def _origin(sig: Signature, binding: Binding) -> str:
    name = sig.params[binding.param].name
    return f"argument {binding.param + 1}" if binding.kind == "scalar" else f"dimension {binding.dim} of {name}"


# --- strides ----------------------------------------------------------------------------------------------------------

def strides_in_elements(sig: Signature, k: int, param: TensorParam, array: Array) -> tuple[int, ...]:
    """Strides in elements; a dimension of extent 1 has the compact one (0 where the parameter broadcasts)."""
    strides = []
    for n, step, usual in zip(array.shape, array.strides, _compact(array.shape)):
        if n == 1 and param.buffer.buffer_type == "auto_broadcast":
            strides.append(0)
        elif n <= 1 or array.size == 0:
            strides.append(usual)
        elif step % array.itemsize:
            raise ArgumentError(f"{_where(sig, k)} has a stride of {step} bytes, not a multiple of its {array.itemsize}-byte "
                                "elements", hint=_CONTIGUOUS)
        else:
            strides.append(step // array.itemsize)
    return tuple(strides)


def _check_strides(sig: Signature, k: int, param: TensorParam, array: Array, values: dict[Var, Any]) -> None:
    if not param.strides:
        if not array.flags.c_contiguous:
            raise ArgumentError(f"{_where(sig, k)} is not contiguous in row-major order: strides {array.strides} bytes "
                                f"for shape {array.shape}", hint=_CONTIGUOUS)
        return
    given = strides_in_elements(sig, k, param, array)
    wanted = tuple(exact(e, values) for e in param.strides)
    if any(g != w for g, w, n in zip(given, wanted, array.shape) if n > 1):
        raise ArgumentError(f"{_where(sig, k)} has strides {given} in elements, it needs {wanted}",
                            hint=_CONTIGUOUS if wanted == _compact(array.shape) else "")
    if param.written and _overlaps_itself(array):
        raise ArgumentError(f"{_where(sig, k)} is an output whose elements share memory: strides {array.strides} bytes "
                            f"for shape {array.shape}", hint="pass an array of its own: numpy.empty(shape, dtype)")


def _compact(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def _overlaps_itself(array: Array) -> bool:
    """Whether two elements may share memory: each stride must reach beyond all that the smaller ones span."""
    span = array.itemsize
    if array.size == 0:
        return False
    for step, n in sorted((abs(s), n) for s, n in zip(array.strides, array.shape) if n > 1):
        if step < span:
            return True
        span += step * (n - 1)
    return False


def _check_overlap(sig: Signature, arrays: dict[int, Array]) -> None:
    if not sig.noalias:
        return
    for k, param in sig.tensors():
        for other in arrays:
            if param.written and other != k and (other > k or not _is_written(sig, other)) \
                    and numpy.may_share_memory(arrays[k], arrays[other]) and numpy.shares_memory(arrays[k], arrays[other]):
                raise ArgumentError(f"{_where(sig, k)} is an output and overlaps argument {other + 1} "
                                    f"({sig.params[other].name})", hint=_IN_PLACE)


def _is_written(sig: Signature, k: int) -> bool:
    param = sig.params[k]
    return isinstance(param, TensorParam) and param.written
