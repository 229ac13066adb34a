"""Tensors put together element by element: the phases of a convolution with strides.

    result[i * steps + start of a part] = part[i]            0 where there is no part

A row of the result is made from vectors of the parts, whose lanes are shuffled; a formula would choose the part of each lane.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from tedsl import te, tir
from topi.adjoints.parts import Parts
from topi.extents import as_int
from topi.injective import injective
from topi.kinds import InterleaveOp
from topi.statements import loops, rows_kind

_LANES = 8  # of a vector of a part

Starts = tuple[int, ...]


def interleaved(parts: Mapping[Starts, te.Tensor], steps: Sequence[int], shape: Sequence[Any], dtype: Any) -> te.Tensor:
    """The tensor of `shape` with the element i of a part at i * steps + its start, from 0 to steps - 1."""
    given = list(parts.items())

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        sources = {start: ib.buffer_ptr(buffer) for (start, _), buffer in zip(given, ins)}
        target = ib.buffer_ptr(outs[0])
        rows = [extent if step == 1 else -(-(as_int(extent) or 0) // step) for extent, step in zip(shape[:-1], steps)]
        with loops(ib, rows, rows_kind(shape)) as j:
            for phase in itertools.product(*map(range, steps[:-1])):
                i = [at * step + k if step > 1 else at for at, step, k in zip(j, steps, phase)]
                fits = [at < n for at, step, n in zip(i, steps, shape) if step > 1 and (as_int(n) or 0) % step]
                with ib.if_scope(tir.all(*fits)) if fits else nullcontext():
                    _row(ib, [sources.get((*phase, k)) for k in range(steps[-1])], target, j, i, shape[-1], dtype)
        return ib.get()

    output: te.Tensor = te.extern([tuple(shape)], [part for _, part in given], body, name="interleaved", dtype=dtype,
                                  tag="interleaved", info=InterleaveOp("interleave", tuple(parts.values()), tuple(parts),
                                                                       tuple(steps)))
    return output


def _row(ib: Any, sources: Sequence[Any], target: Any, j: Sequence[Any], i: Sequence[Any], extent: Any, dtype: Any) -> None:
    """One row of the result, from a row of each source; None gives zeros."""
    step, zero = len(sources), te.const(0, dtype)
    count = as_int(extent)
    vectors = 0 if step == 1 or count is None else count // step // _LANES
    one = te.const(1, "int32")
    if vectors:
        order = tuple([te.const(lane // step + lane % step * _LANES, "int32") for lane in range(step * _LANES)])
        with ib.for_range(0, vectors, name="x") as x:
            taken = [tir.Broadcast(zero, _LANES) if source is None else source[(*j, tir.Ramp(x * _LANES, one, _LANES))]
                     for source in sources]
            target[(*i, tir.Ramp(x * (_LANES * step), one, _LANES * step))] = tir.Shuffle(tuple(taken), order)
    first = vectors * _LANES * step
    with ib.for_range(0, extent - first, name="rest") as rest:
        at = rest + first
        if step == 1:
            target[(*i, at)] = zero if sources[0] is None else sources[0][(*j, at)]
            return
        for k, source in enumerate(sources):
            with ib.if_scope((at % step).equal(k)):
                target[(*i, at)] = zero if source is None else source[(*j, at // step)]


def of_interleaving(record: InterleaveOp, op: te.Operation, head: te.Tensor) -> Parts:
    """For each part the head at its places."""
    return [(part, partial(_taken, head, part, start, record.steps)) for part, start in zip(record.parts, record.starts)]


def _taken(head: te.Tensor, part: te.Tensor, start: Starts, steps: Sequence[int]) -> te.Tensor:
    return injective("strided_slice", part.shape, lambda *i: head(*[at * step + k for at, step, k in zip(i, steps, start)]))
