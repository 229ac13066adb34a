"""storage_align: padding between the rows of a stage in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tedsl.ir.iters import IterVar
from tedsl.lang.extern import ExternOp
from tedsl.lang.scan.operation import ScanOp
from tedsl.schedule.given_numbers import whole_number
from tedsl.schedule.memory_options import Alignment
from tedsl.schedule.primitives.storage.owned import must_own_memory
from tedsl.schedule.state import StageState, describe, find, show


def storage_align(stage: StageState, axis: Any, factor: Any, offset: Any) -> None:
    """Lay the memory of `stage` out so that the stride of `axis`, in elements, is `offset` modulo `factor`.

        B of shape (4, 30), storage_align(i, 32, 0):   B[i*30 + j]   →   B[i*32 + j]

    So rows start at multiples of a cache line, or (offset 1) the elements of a column fall into different sets of the cache.
    """
    directive = f"storage_align({show(axis)}, {show(factor)}, {show(offset)})"
    _must_have_strides(stage, directive)
    must_own_memory(stage, directive, "aligned")
    axes = list(getattr(stage.op, "axis", ()))
    dim = find(axes, axis)
    if dim is not None and dim >= stage.op.output(0).ndim:
        raise stage.refuse(directive, f"{axes[dim].name} is loop number {dim + 1} of the script, and {stage.name} has "
                           f"{stage.op.output(0).ndim} dimensions",
                           hint="the first loops stand for the dimensions, in this order: give one of them")
    if dim is None:
        names = ", ".join(one.name for one in axes)
        what = f"expected an axis, got {describe(axis)}" if not isinstance(axis, IterVar) \
            else f"{axis.name} is not an axis of {stage.name}" if find(stage.all_iter_vars, axis) is None \
            else f"{axis.name} is a loop, and strides belong to the axes of {stage.name}"
        raise stage.refuse(directive, what, hint=f"use one of {stage.written}.op.axis: {names}")
    every, rest = whole_number(factor), whole_number(offset)
    if every is None or not 1 <= every < 2**31:
        largest = "" if every is None or every < 1 else " and below 2**31"
        raise stage.refuse(directive, f"the factor is an integer of at least 1{largest}, got {describe(factor)}",
                           hint="for example 16: rows start at multiples of 16 elements")
    if rest is None or not 0 <= rest < 2**31:
        largest = "" if rest is None or rest < 0 else " and below 2**31"
        raise stage.refuse(directive, f"the offset is an integer of at least 0{largest}, got {describe(offset)}",
                           hint="strides are `offset` more than a multiple of `factor`; 0 is the usual one")
    others = tuple([one for one in stage.storage.alignments if one.dim != dim])
    alignments = sorted((*others, Alignment(dim, every, rest % every)), key=lambda one: one.dim)
    stage.storage = replace(stage.storage, alignments=tuple(alignments))


def _must_have_strides(stage: StageState, directive: str) -> None:
    """Refuses a stage whose memory has fewer than two dimensions, so that there are no strides to choose."""
    op = stage.op
    if isinstance(op, ScanOp):
        raise stage.refuse(directive, f"{stage.name} is a scan: its rows follow one another without gaps",
                           hint=f's.cache_write({op.update[0].name}, "local") computes rows in memory of their own, which can '
                                "be aligned")
    if isinstance(op, ExternOp):
        raise stage.refuse(directive, f"{stage.name} is made by te.extern: its statements address it as compact memory",
                           hint="leave that out; a copy that others read can be aligned: "
                                f's.cache_read({stage.tensor_written}, "global", readers)')
