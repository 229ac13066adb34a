"""What an operation computes: graphs of te from placeholders to results, and the graphs of its derivatives.

A derivative is a formula like any other, so that it has derivatives itself. It reads placeholders only: heads (the gradients
of the results), inputs, and results that are there already. These are what a recorded operation has to keep.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy

import topi
from tedsl.autodiff.gradient import gradient
from tedsl.autograd.kinds import Kind, kind_named
from tedsl.cache.store import current_store
from tedsl.cache.workers import can_share, share
from tedsl.driver import build
from tedsl.errors import TedslError
from tedsl.ir.dtype import DType
from tedsl.ir.expr import IntImm, ProducerLoad
from tedsl.lang.declare import placeholder
from tedsl.lang.graph import producers_first, replace_inputs
from tedsl.lang.operation import ComputeOp, Operation, PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.record import record
from tedsl.target.target import Target
from topi.schedules import schedule

_MANY = 4  # kernels that are worth more than one process
_BUILDING = threading.RLock()

@functools.cache
def _host() -> Target:
    """The target of all kernels: the arrays are those of numpy, also where programs build for a device."""
    return Target("llvm")


@record(eq=False)
class Source:
    """Where a placeholder of a derivative gets its values: `kind` is "head", "input" or "result", `number` which of them."""

    kind: str
    number: int


@record(eq=False)
class Derivative:
    """The derivatives of a formula by some of its inputs.

    formula: computes them from `sources`, one for each of its inputs. results: for each input of the formula differentiated
    which output of `formula` it is, or the Source that it is equal to; None where it is not wanted, or zero.
    """

    formula: Formula
    sources: tuple[Source, ...]
    results: tuple[int | Source | None, ...]


class Formula:
    """Results computed from inputs, which are placeholders of constant shapes. Compiled when first run."""

    def __init__(self, name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.outputs = tuple(topi.identity(out) if isinstance(out.op, PlaceholderOp) or out in outputs[:at] else out
                             for at, out in enumerate(outputs))
        self.kinds: tuple[Kind, ...] = tuple(map(_kind_of, self.outputs))
        self._kernel: Callable[..., Any] | None = None
        self.plans: dict[tuple[bool, ...], Any] = {}  # how it runs on tensors, by which of its inputs need a gradient
        self._derivatives: dict[Any, Derivative] = {}

    @property
    def kernel(self) -> Callable[..., Any]:
        """The compiled function of the arrays of the inputs and of the results."""
        if self._kernel is None:
            with _BUILDING:
                if self._kernel is None:
                    made = schedule(list(self.outputs), _host())
                    self._kernel = build(made, [*self.inputs, *self.outputs], _host(), name=self.name).entry_func
        return self._kernel

    @property
    def is_compiled(self) -> bool:
        """Whether there is nothing left to compile."""
        return self._kernel is not None or not self.outputs

    def derivative(self, wanted: tuple[bool, ...], heads: tuple[bool, ...]) -> Derivative:
        """The derivatives by the `wanted` inputs, where those of `heads` among the results have gradients."""
        key = wanted, heads
        if key not in self._derivatives:
            with _BUILDING:
                if key not in self._derivatives:
                    self._derivatives[key] = _derive(self, wanted, heads)
        return self._derivatives[key]


def compile_together(formulas: Iterable[Formula]) -> None:
    """Compiles the kernels of formulas by all cores, through the cache on disk. Where that is off, or the program has other
    threads, and for those that fail, nothing is done: they are compiled when they are first run, with the errors of that.
    """
    missing = [formula for formula in dict.fromkeys(formulas) if not formula.is_compiled]
    if len(missing) >= _MANY and can_share() and current_store() is not None:
        with suppress(TedslError):
            share(len(missing), lambda number: missing[number].kernel)


def _kind_of(tensor: Tensor) -> Kind:
    shape = tuple(int(extent.value) if isinstance(extent, IntImm) else -1 for extent in tensor.shape)
    return kind_named(shape, numpy_dtype(tensor.dtype))


def numpy_dtype(dtype: DType) -> Any:
    """The dtype of arrays that hold elements of `dtype`."""
    if str(dtype) == "bfloat16":
        import ml_dtypes

        return numpy.dtype(ml_dtypes.bfloat16)
    return numpy.dtype(str(dtype))


# --- derivatives ------------------------------------------------------------------------------------------------------

def _derive(formula: Formula, wanted: tuple[bool, ...], heads: tuple[bool, ...]) -> Derivative:
    given = {number: placeholder(out.shape, out.dtype, name=f"{out.op.name}_grad")
             for number, out in enumerate(formula.outputs) if heads[number] and out.dtype.is_float}
    totals: dict[int, Tensor] = {}
    for number, head in given.items():
        for at, part in _parts(formula, number, head, wanted).items():
            totals[at] = topi.add(totals[at], part) if at in totals else part
    if any(0 in formula.kinds[number].shape for number in given):  # formulas of no elements do not read all their inputs
        totals = {at: totals.get(at, topi.full(tensor.shape, tensor.dtype, 0)) for at, tensor in enumerate(formula.inputs)
                  if wanted[at]}
    kept = {out: placeholder(out.shape, out.dtype, name=out.op.name) for out in dict.fromkeys(formula.outputs)}
    totals = dict(zip(totals, reading(list(totals.values()), kept)))
    of = {tensor: Source("input", at) for at, tensor in reversed(list(enumerate(formula.inputs)))}
    of |= {head: Source("head", number) for number, head in given.items()}
    of |= {kept[out]: Source("result", number) for number, out in reversed(list(enumerate(formula.outputs)))}
    return _arranged(formula, totals, of)


def _parts(formula: Formula, number: int, head: Tensor, wanted: tuple[bool, ...]) -> dict[int, Tensor]:
    """What one result adds to the derivative by each wanted input that it depends on."""
    out = formula.outputs[number]
    below = {op.output(0) for op in producers_first([out.op]) if isinstance(op, PlaceholderOp)}
    places = [at for at, tensor in enumerate(formula.inputs) if wanted[at] and tensor in below]
    return dict(zip(places, gradient(out, [formula.inputs[at] for at in places], head))) if places else {}


def _arranged(formula: Formula, totals: Mapping[int, Tensor], of: Mapping[Tensor, Source]) -> Derivative:
    """Which derivatives have to be computed, and from what."""
    computed: dict[Tensor, int] = {}
    results: list[int | Source | None] = []
    for at in range(len(formula.inputs)):
        total = totals.get(at)
        same = None if total is None else of.get(_copied(total))
        results.append(None if total is None else same or computed.setdefault(total, len(computed)))
    read = [op.output(0) for op in producers_first([tensor.op for tensor in computed])  # states of scans are placeholders too
            if isinstance(op, PlaceholderOp) and op.output(0) in of]
    made = Formula(f"{formula.name}_backward", read, list(computed))
    return Derivative(made, tuple(of[tensor] for tensor in read), tuple(results))


def _copied(tensor: Tensor) -> Tensor:
    """The tensor that `tensor` is an unchanged copy of; itself if it is none."""
    op = tensor.op
    while isinstance(op, ComputeOp) and isinstance(load := op.body[0], ProducerLoad) and len(op.body) == 1 and \
            len(load.indices) == len(op.axis) and all(i is axis.var for i, axis in zip(load.indices, op.axis)) and \
            _kind_of(load.producer) is _kind_of(tensor):
        tensor, op = load.producer, load.producer.op
    return tensor


def reading(tensors: Sequence[Tensor], mapping: Mapping[Tensor, Tensor]) -> list[Tensor]:
    """Copies of the graphs of `tensors` that read `mapping[t]` wherever they read t, also in the records of operators."""
    known = dict(mapping)
    for op in producers_first([tensor.op for tensor in tensors]):
        made = _with_record(replace_inputs(op, known), known)
        if made is not op:
            known.update({op.output(number): made.output(number) for number in range(op.num_outputs)
                          if op.output(number) not in known})
    return [known.get(tensor, tensor) for tensor in tensors]


def _with_record(op: Operation, known: Mapping[Tensor, Tensor]) -> Operation:
    info = getattr(op, "info", None)
    if not is_dataclass(info) or isinstance(info, type):
        return op
    changed: dict[str, Any] = {}
    for field in fields(info):
        value = getattr(info, field.name)
        if isinstance(value, Tensor) and value in known:
            changed[field.name] = known[value]
        elif isinstance(value, tuple) and any(isinstance(part, Tensor) and part in known for part in value):
            changed[field.name] = tuple(known.get(part, part) if isinstance(part, Tensor) else part for part in value)
    return op.replace(info=replace(info, **changed)) if changed else op
