"""The checked call of a kernel: verifies every argument before anything is written, and raises an error that says what is
wrong.

Compiled entry points do the same checks in some 20 ns and fall back on this code when one fails, or for objects that are not
plain numpy arrays: it raises the precise error, or converts the objects and calls the kernel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.expr import SizeVar, Var
from tedsl.record import record
from tedsl.runtime.arguments import remedies, words
from tedsl.runtime.arguments.overlap import MOST_CANDIDATES, overlaps, overlaps_itself
from tedsl.runtime.foreign import Array, as_array, as_number, has_dtype, slot_bits
from tedsl.runtime.shapes import exact
from tedsl.runtime.signature import Binding, Signature, TensorParam, signature_of

__all__ = ["Prepared", "Signature", "prepare", "signature_of"]


@record
class Prepared:
    """The checked arguments as 64-bit slots in the order of the kernel's; `arrays` keeps their memory alive.

    compact: all arrays are compact row-major and there is a kernel for that; the slots are those of this kernel. One more slot
    takes the number that the kernel returns, if it returns one.
    """

    slots: ctypes.Array[ctypes.c_int64]
    compact: bool
    arrays: tuple[Array, ...]


def prepare(sig: Signature, args: Sequence[Any], without_strides: tuple[Var, ...] | None = None) -> Prepared:
    """Checks `args` against `sig`; ArgumentError or ArgumentTypeError says what does not fit.

    without_strides: the scalars of the kernel for compact arrays, if there is one.
    """
    if len(args) != len(sig.params):
        raise ArgumentTypeError(words.wrong_count(sig, str(len(args))))
    try:
        return _prepared(sig, args, without_strides)
    except ArgumentError as error:
        hint = remedies.exchanged(sig, args, lambda given: _prepared(sig, given, without_strides))
        if not hint:
            raise
        raise type(error)(error.problem, hint=hint) from None


def _prepared(sig: Signature, args: Sequence[Any], without_strides: tuple[Var, ...] | None) -> Prepared:
    """Returns the checked arguments; the caller has verified that there are as many as `sig` has parameters."""
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
    slots += [0] if sig.result is not None else []
    return Prepared((ctypes.c_int64 * max(len(slots), 1))(*slots), compact, tuple(arrays.values()))


def _checked_array(sig: Signature, k: int, param: TensorParam, value: Any) -> Array:
    """Returns argument k as an array, verified in dtype, rank, alignment and writability."""
    array = as_array(value, words.argument(sig, k), remedies.of_values(sig, k))
    if not has_dtype(array, param.dtype):
        raise _wrong_dtype(sig, k, array, of_bytes=isinstance(value, (bytes, bytearray, memoryview)) and array.itemsize == 1)
    if array.ndim != len(param.shape):
        raise ArgumentError(words.wrong_rank(sig, k, param, str(array.ndim), str(array.shape)))
    if not array.flags.aligned:
        raise ArgumentError(words.misaligned(sig, k, array.dtype.alignment), hint=remedies.aligned(sig, k))
    if param.written and not array.flags.writeable:
        raise ArgumentError(f"{words.argument(sig, k)} is an output and the array is read-only", hint=remedies.writable(sig, k))
    return array


def _wrong_dtype(sig: Signature, k: int, array: Array, *, of_bytes: bool) -> ArgumentTypeError:
    """Returns the error of an array of another dtype, or of a byte order that is not the machine's. of_bytes: it is memory
    without a dtype."""
    swapped = not array.dtype.isnative and has_dtype(numpy.empty(0, array.dtype.newbyteorder("=")), sig.params[k].dtype)
    problem = f"{words.argument(sig, k)} is byte-swapped ({array.dtype.str})" if swapped else \
        words.wrong_dtype(sig, k, str(array.dtype))
    return ArgumentTypeError(problem, hint=remedies.viewed(sig, k) if of_bytes else remedies.converted(sig, k))


# --- variables of shapes ----------------------------------------------------------------------------------------------

def _bind(sig: Signature, args: Sequence[Any], arrays: dict[int, Array], *, strides: bool) -> dict[Var, Any]:
    """Returns the value of every variable (those of strides only if asked), each checked against its dtype."""
    values: dict[Var, Any] = {}
    for binding in sig.bindings:
        if binding.kind == "scalar":
            where = words.argument(sig, binding.param)
            values[binding.var] = number = as_number(args[binding.param], binding.var.dtype, where)
            if isinstance(binding.var, SizeVar) and number < 0:
                raise ArgumentError(words.negative_size(sig, binding.param, str(number)))
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
    if left:
        raise ArgumentError(words.insoluble(sig, binding, str(given)))
    if isinstance(binding.var, SizeVar) and value < 0:
        raise ArgumentError(words.below_zero(sig, binding, str(given), str(value)))
    low, high = dtype.min_value, dtype.max_value
    if low is not None and high is not None and not low <= value <= high:
        raise ArgumentError(words.wide(sig, binding, str(given), str(value)),
                            hint=f"declare it wider: te.var({name!r}, 'int64')")
    return value


def _check_shape(sig: Signature, k: int, param: TensorParam, array: Array, values: dict[Var, Any]) -> None:
    wanted = tuple(exact(e, values) for e in param.shape)
    if array.shape == wanted:
        return
    raise ArgumentError(words.wrong_shape(sig, k, param, str(array.shape), str(wanted), values.__getitem__),
                        hint=f"allocate the output: numpy.empty({wanted}, {str(param.dtype)!r})" if param.written else "")


# --- strides ----------------------------------------------------------------------------------------------------------

def strides_in_elements(sig: Signature, k: int, param: TensorParam, array: Array) -> tuple[int, ...]:
    """Returns the strides in elements; a dimension of extent 1 has the compact one (0 where the parameter broadcasts)."""
    strides = []
    for n, step, usual in zip(array.shape, array.strides, _compact(array.shape)):
        if n == 1 and param.buffer.buffer_type == "auto_broadcast":
            strides.append(0)
        elif n <= 1 or array.size == 0:
            strides.append(usual)
        elif step % array.itemsize:
            raise ArgumentError(f"{words.argument(sig, k)} has a stride of {step} bytes, not a multiple of its "
                                f"{array.itemsize}-byte elements", hint=remedies.contiguous(sig, k))
        else:
            strides.append(step // array.itemsize)
    return tuple(strides)


def _check_strides(sig: Signature, k: int, param: TensorParam, array: Array, values: dict[Var, Any]) -> None:
    if not param.strides:
        if not array.flags.c_contiguous:
            raise ArgumentError(words.not_contiguous(sig, k, f"{array.strides} bytes", str(array.shape)),
                                hint=remedies.contiguous(sig, k))
        return
    given = strides_in_elements(sig, k, param, array)
    wanted = tuple(exact(e, values) for e in param.strides)
    if any(g != w for g, w, n in zip(given, wanted, array.shape) if n > 1):
        raise ArgumentError(words.wrong_strides(sig, k, str(given), str(wanted)),
                            hint=remedies.contiguous(sig, k) if wanted == _compact(array.shape) else "")
    shared = overlaps_itself(array) if param.written else False
    if shared is not False:
        raise ArgumentError(words.shared_elements(sig, k, f"{array.strides} bytes", str(array.shape), surely=bool(shared)),
                            hint=remedies.separate(sig, k))


def _compact(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def _check_overlap(sig: Signature, arrays: dict[int, Array]) -> None:
    """Refuses an output that overlaps another argument in memory, or for which this cannot be decided."""
    if not sig.noalias:
        return
    for k, param in sig.tensors():
        for other in arrays:
            if not param.written or other == k or (other < k and remedies.is_output(sig, other)):
                continue
            shared = overlaps(arrays[k], arrays[other])
            if shared:
                raise ArgumentError(words.overlap(sig, k, words.position(sig, other)), hint=remedies.in_place(sig))
            if shared is None:
                why = f"strides {arrays[k].strides} and {arrays[other].strides} bytes are not decided within " \
                      f"{MOST_CANDIDATES:,} candidates"
                raise ArgumentError(words.possible_overlap(sig, k, words.position(sig, other), why),
                                    hint=remedies.separate(sig, k))
