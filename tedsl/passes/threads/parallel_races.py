"""Iterations of a parallel loop that race: one is shown to touch an element that another one writes.

    for (i: 0, 200) "parallel" { b[(i*7) % 10] = i }        iterations 0 and 10 both write b[0], whichever comes last
    for (i: 0, 199) "parallel" { b[i] = b[i + 1] }          iteration 0 reads b[1], which iteration 1 writes

A search among some iterations, for statements that a person wrote: of formulas it is known that elements are their own. What a
call decides, data or sizes, is not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import And, Call, Expr, Load, Or, Select, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import (
    EXTERN_SCOPE,
    Allocate,
    AttrStmt,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    Store,
    Tensorized,
    While,
)
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.threads.known_values import Values, on_data, value

ITERATIONS = 64  # looked at, from the first on, and the last
INNER = 4  # of each loop inside, and its last
POINTS = 4096  # evaluations for one loop


@dataclass(frozen=True)
class _Touch:
    """An access, the loops inside of the parallel one that stand around it, and what must hold for it."""

    memory: Var
    index: Expr
    writes: Expr | None  # the value
    loops: tuple[For, ...] = ()
    conditions: tuple[Expr, ...] = ()


def check_iterations(func: PrimFunc) -> None:
    """Raises LoweringError if iterations of a parallel loop in statements written by hand race."""
    pending: list[tuple[Stmt, bool]] = [(func.body, not func.attrs.get("from_legacy_te_schedule"))]
    while pending:
        stmt, by_hand = pending.pop()
        by_hand = by_hand or isinstance(stmt, Tensorized) or (isinstance(stmt, AttrStmt) and stmt.attr_key == EXTERN_SCOPE)
        if by_hand and isinstance(stmt, For) and stmt.kind == ForKind.PARALLEL:
            _check(stmt)
        pending += [(child, by_hand) for child in stmt.child_nodes() if isinstance(child, Stmt)]


def _check(loop: For) -> None:
    touches = list(_touches(loop.body, (), (), {}))
    written = {touch.memory for touch in touches if touch.writes is not None}
    inside = {node.buffer_var for node in post_order(loop.body) if isinstance(node, Allocate)}
    looked_at = [touch for touch in touches if touch.memory in written - inside]
    first, count = build.as_int(loop.min), build.as_int(loop.extent)
    if first is None or count is None or not looked_at:
        return
    left = POINTS
    writers: dict[tuple[Var, int], tuple[int, _Touch]] = {}
    readers: dict[tuple[Var, int], tuple[int, _Touch]] = {}
    for at in dict.fromkeys([*range(first, first + min(count, ITERATIONS)), first + count - 1]):
        for touch in looked_at:
            for element in _elements(touch, {loop.loop_var: at}):
                left -= 1
                place = touch.memory, element
                for other, met in filter(None, (writers.get(place), readers.get(place) if touch.writes is not None else None)):
                    if other != at and _matters(loop, touch, met):
                        raise _race(loop, touch, at, met, other, element)
                (readers if touch.writes is None else writers).setdefault(place, (at, touch))
                if left <= 0:
                    return


def _matters(loop: For, one: _Touch, other: _Touch) -> bool:
    """Two writes of what is the same in all iterations leave the same, in any order."""
    if one.writes is None or other.writes is None:
        return True
    return one is not other or on_data(one.writes) or loop.loop_var in variables(one.writes)


def _touches(node: Any, loops: tuple[For, ...], conditions: tuple[Expr, ...], lets: dict[Var, Expr]) -> Iterator[_Touch]:
    """The accesses in statements; of expressions, what is read in any case."""
    match node:
        case Store():
            yield from _reads((node.value, node.index), loops, conditions, lets)
            held = conditions if node.predicate is None else (*conditions, node.predicate)
            yield _Touch(node.buffer_var, substitute(node.index, lets), node.value, loops, held)
        case IfThenElse(condition=condition):
            yield from _reads((condition,), loops, conditions, lets)
            known = substitute(condition, lets)
            yield from _touches(node.then_case, loops, (*conditions, known), lets)
            if node.else_case is not None:
                yield from _touches(node.else_case, loops, (*conditions, build.logical_not(known)), lets)
        case For():
            inner = node.replace(min=substitute(node.min, lets), extent=substitute(node.extent, lets))
            yield from _touches(node.body, (*loops, inner), conditions, lets)
        case LetStmt():
            yield from _reads((node.value,), loops, conditions, lets)
            more = {} if on_data(node.value) else {node.var: substitute(node.value, lets)}
            yield from _touches(node.body, loops, conditions, {**lets, **more})
        case While():
            return  # how often it runs is not known
        case Stmt():
            for child in node.child_nodes():
                if isinstance(child, Stmt):
                    yield from _touches(child, loops, conditions, lets)
                elif isinstance(child, Expr):
                    yield from _reads((child,), loops, conditions, lets)


def _reads(exprs: tuple[Expr, ...], loops: tuple[For, ...], conditions: tuple[Expr, ...],
           lets: dict[Var, Expr]) -> Iterator[_Touch]:
    pending: list[Any] = list(exprs)
    while pending:
        node = pending.pop()
        match node:
            case Load(buffer_var=memory, index=index, predicate=None):
                yield _Touch(memory, substitute(index, lets), None, loops, conditions)
                pending.append(index)
            case And(a=a) | Or(a=a):
                pending.append(a)
            case Select(condition=condition):
                pending.append(condition)
            case Call(op=op, args=(condition, *_)) if op.name == "tir.if_then_else":
                pending.append(condition)
            case _:
                pending += node.child_nodes()


def _elements(touch: _Touch, values: Values, at: int = 0) -> Iterator[int]:
    """The elements touched in one iteration, as far as loops and conditions are known."""
    if at < len(touch.loops):
        loop = touch.loops[at]
        first, count = value(loop.min, values), value(loop.extent, values)
        if first is None or count is None or count <= 0:
            return
        for here in dict.fromkeys([*range(first, first + min(count, INNER)), first + count - 1]):
            yield from _elements(touch, {**values, loop.loop_var: here}, at + 1)
        return
    if all(value(condition, values) for condition in touch.conditions):
        element = value(touch.index, values)
        if element is not None:
            yield element


def _race(loop: For, one: _Touch, at: int, other: _Touch, there: int, element: int) -> LoweringError:
    name, var = one.memory.name, loop.loop_var.name
    writer, wrote, reader, does = (other, there, at, "reads it" if one.writes is None else "writes it too") \
        if other.writes is not None else (one, at, there, "reads it")
    which = "" if build.as_int(writer.index) == element else f", which is {name}[{element}]"
    return LoweringError(
        f"iterations of the parallel loop {var} race: {var} = {wrote} writes {name}[{writer.index!r}]{which}, and "
        f"{var} = {reader} {does}",
        hint=f"make the loop {var} serial, or let each iteration write elements that no other one touches", about=loop)
