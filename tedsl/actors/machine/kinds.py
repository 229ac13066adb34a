"""Kinds of actors: at which of its acts an actor takes an input, and at which it gives an output.

kind       per input   per output
normal     1 act       1 act       also source (no input), sink (no output), copy (to another device)
repeat     steps       1 act       the same batch `steps` times
unpack     steps       1 act       a batch in `steps` pieces along the first dimension
pack       1 act       steps       `steps` batches as one, along the first dimension
acc        1 act       steps       the sum of `steps` batches
inputwise  one input at a time, in the order in which they come; an output when all have been there
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.record import record
from tedsl.runtime.array import NDArray
from tedsl.runtime.devices.memory import DeviceArray


@record(eq=False)
class Kind:
    """A kind of actor. run(function, step, steps, inputs, outputs) does act number `step` of `steps`, on lists of arrays.

    spreads: an input stays for `steps` acts. gathers: an output takes `steps` acts. borrows: outputs are made of the arrays of
    the input, by `view(step, steps, arrays)`, which returns them. one_by_one: acts on each input when it comes.
    """

    name: str
    run: Callable[[Any, int, int, list[Any], list[Any]], Any]
    spreads: bool = False
    gathers: bool = False
    view: Callable[[int, int, Sequence[Any]], list[Any]] | None = None
    one_by_one: bool = False

    @property
    def borrows(self) -> bool:
        return self.view is not None


def _call(function: Any, step: int, steps: int, inputs: list[Any], outputs: list[Any]) -> Any:
    return function(*inputs, *outputs) if function is not None else None


def _copy(function: Any, step: int, steps: int, inputs: list[Any], outputs: list[Any]) -> None:
    for source, target in zip(inputs, outputs):
        assign(target, source)


def _nothing(function: Any, step: int, steps: int, inputs: list[Any], outputs: list[Any]) -> None:
    """The outputs are views of the inputs."""


def _same(step: int, steps: int, arrays: Sequence[Any]) -> list[Any]:
    return list(arrays)


def _piece(step: int, steps: int, arrays: Sequence[Any]) -> list[Any]:
    return [rows(array, array.shape[0] // steps * step, array.shape[0] // steps) for array in arrays]


def _pack(function: Any, step: int, steps: int, inputs: list[Any], outputs: list[Any]) -> None:
    for source, target in zip(inputs, outputs):
        assign(rows(target, step * source.shape[0], source.shape[0]), source)


def _add(function: Any, step: int, steps: int, inputs: list[Any], outputs: list[Any]) -> None:
    for source, target in zip(inputs, outputs):
        if step:
            numpy.add(target, source, out=target)
        else:
            target[...] = source


def _each(function: Any, step: int, steps: int, inputs: list[Any], outputs: list[Any]) -> Any:
    if function is not None:
        return function(step, *inputs, *outputs)
    return _add(None, step, steps, inputs, outputs)


KINDS = {kind.name: kind for kind in (
    Kind("normal", _call), Kind("source", _call), Kind("sink", _call), Kind("copy", _copy),
    Kind("repeat", _nothing, spreads=True, view=_same), Kind("unpack", _nothing, spreads=True, view=_piece),
    Kind("pack", _pack, gathers=True), Kind("acc", _add, gathers=True), Kind("inputwise", _each, one_by_one=True))}


COMPUTES_ON_HOST = ("acc", "inputwise")  # kinds that, without a function, add arrays of numpy


def assign(target: Any, source: Any) -> None:
    """Copies between arrays of one shape and dtype, wherever they lie: in numpy's memory or, as NDArrays, on devices."""
    if isinstance(target, NDArray):
        target.copyfrom(source)
    elif isinstance(source, NDArray):
        on_device = source.device_array()
        if on_device is not None:
            on_device.copy_out(target)
    else:
        target[...] = source


def rows(array: Any, begin: int, count: int) -> Any:
    """Some elements along the first dimension, in the same memory."""
    on_device = array.device_array() if isinstance(array, NDArray) else None
    if on_device is None:
        return array[begin:begin + count]
    step = on_device.bytes // max(on_device.shape[0], 1)
    return NDArray(DeviceArray(on_device.device, on_device.owner, on_device.address + begin * step,
                               (count, *on_device.shape[1:]), on_device.dtype))


def kind_named(name: str) -> Kind:
    """The kind called `name`. Raises ArgumentError if there is none."""
    if name not in KINDS:
        raise ArgumentError(f"there is no kind of actor {name!r}: {', '.join(KINDS)}",
                            hint="actors.register_kind(Kind(...)) adds one")
    return KINDS[name]


def register_kind(kind: Kind) -> Kind:
    """Adds a kind of actor. Raises ArgumentError if there is one of its name."""
    if not isinstance(kind, Kind):
        raise ArgumentTypeError(f"register_kind: a kind is a Kind, not {type_in_words(kind)}", hint="actors.Kind(name, run)")
    if kind.name in KINDS:
        raise ArgumentError(f"register_kind: there is a kind {kind.name!r}", hint="choose another name")
    KINDS[kind.name] = kind
    return kind


def register_if_new(kind: Kind) -> None:
    """Adds a kind of actor unless there is one of its name: processes of a run have the kinds of its plan."""
    KINDS.setdefault(kind.name, kind)
