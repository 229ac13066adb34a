"""Adjoints of pooling. Each element gets the heads of the windows that it is in: all of them of sums, those that it won of
maxima.

Of maxima: which tap of a window is the first that equals its maximum is found in vectors; then the heads are added up where
those taps are, window after window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from topi.adjoints import pooled_maxima
from topi.adjoints.parts import Parts
from topi.extents import as_int, indices_at, row_major
from topi.injective import injective
from topi.kinds import PlacedSumOp, PoolOp
from topi.nn.convolution.formula import SPACE, Windows
from topi.nn.pool.grad import grad_of_sums
from topi.statements import loops, rows_kind

_NONE = 1 << 30  # above the number of every tap


def of_pooling(record: PoolOp, op: te.Operation, head: te.Tensor) -> Parts:
    """Of maxima and sums; None for sums in windows with gaps, and for maxima over dimensions that are not neighbours."""
    places = [record.layout.index(letter) for letter in SPACE if letter in record.layout]
    if record.operator == "sum" and max(record.dilation) == 1:
        w = Windows(record.kernel, record.strides, record.dilation, record.before, record.after)
        return [(record.data, lambda: grad_of_sums(record.data, head, places, w, record.layout))]
    neighbours = places == list(range(places[0], places[0] + len(places))) if places else False
    if record.operator != "max" or not neighbours or any(as_int(record.data.shape[d]) is None for d in places):
        return None

    def of_maxima() -> te.Tensor:
        formula = _summed(head, _winners(record, op.output(0), places), record.data.shape, places)
        return pooled_maxima.from_planes(record, head, formula) if pooled_maxima.fits(record, head, places) else formula

    return [(record.data, of_maxima)]


def _winners(record: PoolOp, maxima: te.Tensor, places: Sequence[int]) -> te.Tensor:
    """The position in the data of the first element that is the maximum of a window, NaN if there is one; -1 in the border."""
    taps = [te.reduce_axis((0, k), name=f"rv{d}") for d, k in enumerate(record.kernel)]

    def first(*i: Any) -> Any:
        at = list(i)
        for d, tap, step, hole in zip(places, taps, record.strides, record.dilation):
            at[d] = i[d] * step + tap * hole
        element = record.padded(*at)
        wins = element.equal(maxima(*i))
        wins = te.any(wins, te.isnan(element)) if element.dtype.is_float else wins
        return te.min(te.select(wins, row_major(taps, record.kernel).astype("int32"), te.const(_NONE, "int32")), axis=taps)

    tap = te.compute(maxima.shape, first, name="winning_tap", axes="ax")

    def place(*i: Any) -> Any:
        own = indices_at(tap(*i), record.kernel)
        at = [i[d] * step + k * hole - low for d, k, step, hole, low in
              zip(places, own, record.strides, record.dilation, record.before)]
        extents = [record.data.shape[d] for d in places]
        inside = [c for n, extent, low, high in zip(at, extents, record.before, record.after) if low or high
                  for c in (n >= 0, n < extent)]
        position = row_major(at, extents).astype("int32")
        return te.select(te.all(*inside), position, te.const(-1, "int32")) if inside else position

    return injective("winners", maxima.shape, place)


def _summed(grads: te.Tensor, places: te.Tensor, shape: Sequence[Any], dims: Sequence[int]) -> te.Tensor:
    """A tensor of `shape` with grads[i] added where places[i] says; parts before the dimensions `dims` are independent."""
    first, behind = dims[0], dims[-1] + 1

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, at, target = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with loops(ib, shape[:first], rows_kind(shape)) as outer:
            with loops(ib, shape[first:], name="z") as z:
                target[(*outer, *z)] = te.const(0, grads.dtype)
            with loops(ib, grads.shape[first:], name="w") as window:
                i = (*outer, *window)
                place = ib.let("place", at[i])
                with ib.if_scope(place >= 0):
                    own = (*outer, *indices_at(place, shape[first:behind]), *i[behind:])
                    target[own] = target[own] + source[i]
        return ib.get()

    output: te.Tensor = te.extern(list(shape), [grads, places], body, name="placed_sums", dtype=grads.dtype, tag="placed_sums",
                                  info=PlacedSumOp("placed_sums", grads, places, tuple(dims)))
    return output


def of_placed_sums(record: PlacedSumOp, op: te.Operation, head: te.Tensor) -> Parts:
    """The head at the place of each element."""
    first, behind = record.dims[0], record.dims[-1] + 1

    def formula(*i: Any) -> Any:
        place = record.places(*i)
        value = head(*i[:first], *indices_at(place, head.shape[first:behind]), *i[behind:])
        return tir.if_then_else(place >= 0, value, te.const(0, head.dtype))

    return [(record.grads, lambda: injective("placed", record.grads.shape, formula))]
