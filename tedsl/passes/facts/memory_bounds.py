"""The sizes of the memory behind the pointers of a flat function, and the accesses proved within bounds."""

from __future__ import annotations

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr, Load, Ramp, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Allocate
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.visitor import statements


def memory_sizes(func: PrimFunc) -> dict[Var, int]:
    """Maps each parameter buffer of constant compact shape and each allocation of constant size to its number of elements."""
    sizes: dict[Var, int] = {}
    for buffer in func.buffers:
        size = _size(buffer.shape) if not buffer.strides and _starts_at_zero(buffer) else None
        if size is not None:
            sizes[buffer.data] = size
    for stmt in statements(func.body) if contains(func.body, Allocate) else ():
        if isinstance(stmt, Allocate):
            size = _size(stmt.extents)
            if size is not None:
                sizes[stmt.buffer_var] = size
    return sizes


def is_within(load: Load, sizes: dict[Var, int], analyzer: Analyzer) -> bool:
    """Tells whether `load` is proved to be in bounds whatever the conditions around it are."""
    size = sizes.get(load.buffer_var)
    if size is None:
        return False
    index, last = load.index, 0
    if isinstance(index, Ramp):
        step = build.as_int(index.stride)
        if step is None or step < 0:
            return False
        last = step * (index.lanes - 1)
        index = index.base
    if index.dtype.lanes > 1:
        return False
    low, high = analyzer.bounds(index)
    return low is not None and high is not None and low >= 0 and high + last < size


def _starts_at_zero(buffer: Buffer) -> bool:
    return build.as_int(buffer.elem_offset) == 0


def _size(shape: tuple[Expr, ...]) -> int | None:
    total = 1
    for extent in shape:
        known = build.as_int(extent)
        if known is None:
            return None
        total *= known
    return total
