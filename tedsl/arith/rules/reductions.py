"""Rules for reductions: of a tuple, the values that the wanted one does not depend on are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tedsl.arith.bounds import Bounds
from tedsl.ir.expr import CommReducer, Expr, IntImm, Reduce
from tedsl.ir.walk.visitor import variables

T = TypeVar("T")


def fold_reduce(e: Reduce, known: Bounds) -> Expr | None:
    """Returns a simpler form of a reduction: its start value where the condition never holds, else without unused values."""
    if isinstance(e.condition, IntImm) and not e.condition.value:
        return (e.init or e.combiner.identity_element)[e.value_index]
    used = _used(e.combiner, e.value_index)
    if len(used) == len(e.source):
        return None
    of = e.combiner
    combiner = CommReducer(_kept(of.lhs, used), _kept(of.rhs, used), _kept(of.result, used), _kept(of.identity_element, used))
    return Reduce(combiner, _kept(e.source, used), e.axis, e.condition, used.index(e.value_index), _kept(e.init, used))


def _kept(values: Sequence[T], used: Sequence[int]) -> tuple[T, ...]:
    return tuple([values[i] for i in used]) if values else ()


def _used(combiner: CommReducer, wanted: int) -> list[int]:
    """Returns the numbers of the values that number `wanted` depends on, itself included, in order."""
    used, pending = {wanted}, [wanted]
    while pending:
        read = set(variables(combiner.result[pending.pop()]))
        for number, pair in enumerate(zip(combiner.lhs, combiner.rhs)):
            if number not in used and not read.isdisjoint(pair):
                used.add(number)
                pending.append(number)
    return sorted(used)
