"""Sets of integers by TVM's names: infinite ends, unions, and what loops cover of regions and touch of buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.interval import relax
from tedsl.arith.iter_affine_map.detect import detect_iter_map
from tedsl.arith.sets import NEG_INF, POS_INF, IntervalSet
from tedsl.arith.sets import IntSet as IntSet
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.stmt import ProducerStore, Stmt
from tedsl.ir.walk.accesses import WRITES, Access, accesses, is_read


def pos_inf() -> Var:
    """Returns the end of sets without an upper bound."""
    return POS_INF


def neg_inf() -> Var:
    """Returns the end of sets without a lower bound."""
    return NEG_INF


def union_lower_bound(sets: Sequence[IntervalSet]) -> IntervalSet:
    """Returns an interval whose integers are all in one of `sets`.

    It begins as the first one; each that is proved to overlap it, or to begin or end beside it, extends it, and the others are
    left out. Without sets it is empty. Raises ArgumentTypeError for what are no IntervalSets.
    """
    if not isinstance(sets, Sequence) or not all(isinstance(one, IntervalSet) for one in sets):
        raise ArgumentTypeError(f"union_lower_bound takes a list of IntervalSets, got {sets!r}",
                                hint="write [IntervalSet(0, 3), IntervalSet(4, 7)]")
    if not sets:
        return IntervalSet(POS_INF, NEG_INF)
    analyzer = Analyzer()
    union = sets[0]
    for other in sets[1:]:
        if _reaches(analyzer, other, union) and _reaches(analyzer, union, other):
            (low, high), (least, most) = union.ends(), other.ends()
            union = IntervalSet(None if low is None or least is None else analyzer.simplify(build.minimum(low, least)),
                                None if high is None or most is None else analyzer.simplify(build.maximum(high, most)))
    return union


def _reaches(analyzer: Analyzer, a: IntervalSet, b: IntervalSet) -> bool:
    """Tells whether a begins at the latest beside the end of b."""
    low, high = a.ends()[0], b.ends()[1]
    return low is None or high is None or analyzer.can_prove(build.less_equal(low, build.add(high, 1)))


def estimate_region_lower_bound(region: Sequence[Range], var_dom: Mapping[Var | IterVar, Range],
                                predicate: Expr | bool) -> list[IntervalSet] | None:
    """Returns, of each dimension of a region, an interval whose integers the region covers while the variables of `var_dom`
    run; None where the indices are no map of parts of the loops, or the steps of one are longer than its range.

    Raises ArgumentTypeError for what are no Ranges.
    """
    if not isinstance(region, Sequence) or not all(isinstance(rng, Range) and rng.extent is not None for rng in region):
        raise ArgumentTypeError(f"estimate_region_lower_bound: {region!r} is not a list of Ranges",
                                hint="write [tedsl.ir.Range(x * 4, x * 4 + 4)]")
    maps = detect_iter_map([rng.min for rng in region], var_dom, predicate)
    if len(maps) != len(region):
        return None
    analyzer = Analyzer()
    found = []
    for one, rng in zip(maps, region):
        assert rng.extent is not None
        low, last = one.base, build.sub(rng.extent, 1)
        for split in one.args:
            if not analyzer.can_prove(build.logical_and(build.greater(split.scale, 0),
                                                        build.greater_equal(rng.extent, split.scale))):
                return None
            last = build.add(last, build.mul(build.sub(split.extent, 1), split.scale))
        found.append(IntervalSet(low, analyzer.simplify(build.add(low, last))))
    return found


def DomainTouched(stmt: Stmt, buffer: Any, consider_loads: bool = True, consider_stores: bool = True) -> list[Range]:
    """Returns the region of `buffer` that the loads and stores in `stmt` touch while its loops run, a Range for each dimension.
    Conditions around them do not count. Without an access there is no Range.

    buffer: also a tensor, in statements over tensors. Raises ArgumentTypeError for what are no statement and buffer,
    ArgumentError for an index that has no bounds.
    """
    tensor = None if isinstance(buffer, Buffer) or not hasattr(buffer, "value_index") else _element_of(buffer)
    if not isinstance(stmt, Stmt) or (tensor is None and not isinstance(buffer, Buffer)):
        raise ArgumentTypeError(f"DomainTouched takes a statement and a buffer, not {stmt!r} and {buffer!r}",
                                hint="a statement as of te.schedule.ScheduleOps is over tensors, a lowered one over buffers")
    analyzer = Analyzer()
    region: list[tuple[Expr, Expr]] = []
    for access in accesses(stmt, wanted=lambda node: is_read(node) or isinstance(node, (*WRITES, ProducerStore))):
        node, memory = access.node, access.memory
        mine = memory is buffer if tensor is None else hasattr(node, "producer") and _element_of(memory) == tensor
        if mine and (consider_stores if access.writes else consider_loads):
            ends = [_ends(index, access, analyzer) for index in access.indices]
            region = [(build.minimum(low, least), build.maximum(high, most))
                      for (low, high), (least, most) in zip(region or ends, ends)]
    return [Range.from_min_extent(analyzer.simplify(low), analyzer.simplify(build.add(build.sub(high, low), 1)))
            for low, high in region]


def _element_of(tensor: Any) -> tuple[int, int]:
    """What two objects for the same result of an operation have in common."""
    return id(tensor.op), int(tensor.value_index)


def _ends(index: Expr, access: Access, analyzer: Analyzer) -> tuple[Expr, Expr]:
    ranges = {loop.var: (loop.min, build.sub(build.add(loop.min, loop.extent), 1)) for loop in access.loops}
    low, high = relax(index, ranges, analyzer)
    if low is None or high is None:
        raise ArgumentError(f"DomainTouched: the index {index} has no bounds", hint="loops around it have ranges")
    return low, high
