"""The strides for which `storage_align` asks: attr [B] "buffer_dim_align" = tvm_tuple(dimension, factor, offset)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Call, Expr
from tedsl.ir.stmt import AttrStmt, Stmt
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.visitor import post_order

DIM_ALIGN = "buffer_dim_align"


def dim_alignments(body: Stmt) -> dict[Buffer, dict[int, tuple[int, int]]]:
    """Maps each buffer with such attributes to {dimension: (factor, offset)}, in elements."""
    alignments: dict[Buffer, dict[int, tuple[int, int]]] = {}
    for node in post_order(body) if contains(body, DIM_ALIGN) else ():
        if isinstance(node, AttrStmt) and node.attr_key == DIM_ALIGN:
            assert isinstance(node.value, Call)
            dim, factor, offset = (build.as_int(arg) or 0 for arg in node.value.args)
            alignments.setdefault(node.node, {})[dim] = factor, offset
    return alignments


def aligned_strides(extents: Sequence[Expr], asked: Mapping[int, tuple[int, int]]) -> tuple[Expr, ...]:
    """Returns row-major strides in elements, each raised to the next number that is `offset` modulo `factor` where that is
    asked for.
    """
    stride: Expr = build.const(1, extents[-1].dtype)
    strides: list[Expr] = []
    for dim in reversed(range(len(extents))):
        if dim in asked:
            factor, offset = asked[dim]
            short = build.floormod(build.sub(factor + offset, build.floormod(stride, factor)), factor)
            stride = Analyzer().simplify(build.add(stride, short))
        strides.append(stride)
        stride = build.product_of_extents(stride, extents[dim])
    return tuple(reversed(strides))
