"""What kernels are called with when they are measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from tedsl.errors import ArgumentError
from tedsl.ir.build import as_int
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Expr
from tedsl.runtime.array import NDArray, array, numpy_dtype
from tedsl.runtime.devices.device import Device, cpu, device
from tedsl.runtime.devices.table import kinds_for_code_of
from tedsl.runtime.signature import ScalarParam, Signature
from tedsl.target.target import Target

_WHOLE = 8  # the largest of the whole numbers: sums of many products stay in range, and all differ


def seeded_array(shape: Sequence[int], dtype: DType, seed: Sequence[int], positive: bool = False) -> Any:
    """An array of numbers that depend on `seed` alone: floats from -1 to 1, or from 0.5 to 1.5 if `positive`; whole numbers
    from -8 to 8, or from 0 where they have no sign.
    """
    numbers = numpy.random.default_rng([*seed])
    of = numpy_dtype(dtype)
    if dtype.is_float or dtype == "bfloat16":
        values = numbers.uniform(0.5 if positive else -1.0, 1.5 if positive else 1.0, tuple(shape))
        if of.kind != "u":
            return values.astype(of)
        return (values.astype("float32").view("uint32") >> 16).astype(of)  # bfloat16 without a dtype of its own
    if dtype.is_bool:
        return numbers.integers(0, 2, tuple(shape)).astype(of)
    return numbers.integers(0 if positive or of.kind == "u" else -_WHOLE, _WHOLE, tuple(shape), endpoint=True).astype(of)


def unwritten_array(shape: Sequence[int], dtype: DType) -> Any:
    """An array for results, full of what no result is expected to be: NaN, or the largest number."""
    of = numpy_dtype(dtype)
    if of.kind in "biu":
        return numpy.full(tuple(shape), True if of.kind == "b" else numpy.iinfo(of).max, of)
    return numpy.full(tuple(shape), float("nan"), of)


def is_unwritten(values: Any) -> Any:
    """Which elements of an array are what `unwritten_array` fills it with."""
    if values.dtype.kind in "biu":
        return values == (True if values.dtype.kind == "b" else numpy.iinfo(values.dtype).max)
    return numpy.isnan(values.astype("float64"))


def constant_shape(shape: Sequence[Expr], name: str) -> tuple[int, ...]:
    """The extents of an array; ArgumentError for those that calls decide."""
    extents = [as_int(extent) for extent in shape]
    known = tuple([extent for extent in extents if extent is not None])
    if len(known) < len(extents):
        raise ArgumentError(f"the shape of {name} depends on the call, so that nothing says with which arrays to measure",
                            hint="give arrays: measure(candidates, inputs=[...])")
    return known


def inputs_for(signature: Signature, seed: int) -> list[Any]:
    """Arrays for a call of a function: seeded ones, and empty ones for results. ArgumentError for shapes that calls decide."""
    made = []
    for k, param in enumerate(signature.params):
        if isinstance(param, ScalarParam):
            raise ArgumentError(f"{signature.name} takes the number {param.name}, and nothing says which one to measure with",
                                hint="give all arguments: measure(candidates, inputs=[...])")
        shape = constant_shape(param.shape, param.name)
        made.append(unwritten_array(shape, param.dtype) if param.written else seeded_array(shape, param.dtype, (seed, k)))
    return made


def placed(inputs: Sequence[Any], target: Target) -> list[Any]:
    """`inputs` where the code of `target` finds them: on its device, if it is for one that is here."""
    place = device_of(target)
    if place is None:
        return [x.numpy() if isinstance(x, NDArray) else x for x in inputs]
    return [array(x, place) if isinstance(x, (numpy.ndarray, NDArray)) else x for x in inputs]


def device_of(target: Target) -> Device | None:
    """The device that runs the code of `target`; None for processors. Raises ArgumentError if there is none here."""
    if not target.is_device or not target.kind.device_kind:
        return None
    here = devices_for(target)
    if not here:
        raise no_device(target)
    return here[0]


def no_device(target: Target) -> ArgumentError:
    """The error for a target whose code runs on no device here."""
    return ArgumentError(f"there is no device here that runs code for {target.kind.name}, so that nothing can be measured",
                         hint=f"build for this machine: {cpu()} runs target=\"llvm\"")


def devices_for(target: Target) -> list[Device]:
    """The devices here that run the code of `target`, the first of each kind; none for processors."""
    kind = target.kind.device_kind
    if not target.is_device or not kind:
        return []
    return [place for name in kinds_for_code_of(kind) if (place := device(name, 0)).exist]
