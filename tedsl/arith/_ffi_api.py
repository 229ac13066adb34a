"""What programs call as `arith._ffi_api.NAME`, where TVM has its functions without a wrapper."""

from __future__ import annotations

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.interval import relax
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr
from tedsl.ir.iters import Range
from tedsl.ir.stmt import Stmt
from tedsl.ir.walk.accesses import WRITES, Access, accesses, is_read

__all__ = ["DomainTouched"]


def DomainTouched(stmt: Stmt, buffer: Buffer, consider_loads: bool = True, consider_stores: bool = True) -> list[Range]:
    """Returns the region of `buffer` that the loads and stores in `stmt` touch while its loops run, a Range for each dimension.
    Conditions around them do not count. Without an access there is no Range.

    Raises ArgumentTypeError for what are no statement and buffer, ArgumentError for an index that has no bounds.
    """
    if not isinstance(stmt, Stmt) or not isinstance(buffer, Buffer):
        raise ArgumentTypeError(f"DomainTouched takes a statement and a buffer, not {stmt!r} and {buffer!r}")
    analyzer = Analyzer()
    region: list[tuple[Expr, Expr]] = []
    for access in accesses(stmt, wanted=lambda node: is_read(node) or isinstance(node, WRITES)):
        if access.memory is buffer and (consider_stores if access.writes else consider_loads):
            ends = [_ends(index, access, analyzer) for index in access.indices]
            region = [(build.minimum(low, least), build.maximum(high, most))
                      for (low, high), (least, most) in zip(region or ends, ends)]
    return [Range.from_min_extent(analyzer.simplify(low), analyzer.simplify(build.add(build.sub(high, low), 1)))
            for low, high in region]


def _ends(index: Expr, access: Access, analyzer: Analyzer) -> tuple[Expr, Expr]:
    ranges = {loop.var: (loop.min, build.sub(build.add(loop.min, loop.extent), 1)) for loop in access.loops}
    low, high = relax(index, ranges, analyzer)
    if low is None or high is None:
        raise ArgumentError(f"DomainTouched: the index {index} has no bounds", hint="loops around it have ranges")
    return low, high
