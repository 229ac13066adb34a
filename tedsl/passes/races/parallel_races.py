"""Refuses parallel loops and launches written by hand of which two iterations or blocks are shown to race.

    for (i: 0, 200) "parallel" { b[(i*7) % 10] = i }        iterations 0 and 10 both write b[0], whichever comes last
    for (i: 0, 199) "parallel" { b[i] = b[i + 1] }          iteration 0 reads b[1], which iteration 1 writes
    attr [blockIdx.x] "thread_extent" = 8 { b[blockIdx.x // 2] = b[blockIdx.x // 2] + a[blockIdx.x] }       the same of blocks

The race is searched among some of the iterations. Statements generated from formulas are not searched: their elements are known
to be disjoint. Values that a call decides, data or sizes, are not guessed. Memory that is allocated inside belongs to the
iteration or the block.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, IntImm, Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.script import shown
from tedsl.ir.stmt import EXTERN_SCOPE, LAUNCH, Allocate, AttrStmt, For, ForKind, IfThenElse, Stmt, Tensorized, While
from tedsl.ir.walk.accesses import Access, accesses
from tedsl.ir.walk.around import Loop, WithoutLets
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.threads import launched, noted_memory, takes_notes
from tedsl.passes.races.known_values import Values, elements, value
from tedsl.passes.races.may_meet import Axes, may_meet
from tedsl.passes.threads.gather_threads import kernel_of
from tedsl.record import record

ITERATIONS = (64, 8, 4)  # looked at, from the first on, and the last; of each axis, where a launch has several of blocks
INNER = 4  # of each loop inside, and its last
POINTS = 4096  # evaluations for one loop
PAIRS = 4096  # of accesses for which it is asked whether they may meet


@record(eq=False)
class _Turns:
    """The iterations of a parallel loop, or the blocks of a launch, which run in any order.

    axes: (variable, name, first value, count) of each variable that distinguishes them. about: the node that an error refers
    to. around: the values of the variables of enclosing loops.
    """

    about: Any
    axes: tuple[tuple[Var, str, int, int], ...]
    body: Stmt
    around: Values = field(default_factory=dict)

    def numbers(self) -> Iterator[Values]:
        most = ITERATIONS[len(self.axes) - 1]
        picked = [dict.fromkeys([*range(first, first + min(count, most)), first + count - 1]) for *_, first, count in self.axes]
        for at in itertools.product(*picked):
            yield {**self.around, **{var: k for (var, *_), k in zip(self.axes, at)}}

    def named(self, at: Values) -> str:
        return ", ".join(f"{name} = {at[var]}" for var, name, *_ in self.axes)


_Place = tuple[Var, int]  # memory and an element of it


class _Met(NamedTuple):
    """An access to an element: the number `at` of the iteration, the access, and the values of all variables there."""

    at: Values
    touch: Access
    here: Values


def check_iterations(func: PrimFunc) -> None:
    """Raises LoweringError if, in handwritten statements, iterations of a parallel loop or blocks of a launch race.

    The launches of each kernel must have been gathered.
    """
    pending: list[tuple[Stmt, bool, bool, Values]] = [(func.body, not func.attrs.get("from_legacy_te_schedule"), False, {})]
    while pending:
        stmt, by_hand, in_kernel, around = pending.pop()
        by_hand = by_hand or isinstance(stmt, Tensorized) or (isinstance(stmt, AttrStmt) and stmt.attr_key == EXTERN_SCOPE)
        begins = not in_kernel and launched(stmt) is not None
        if by_hand:
            turns = _iterations(stmt) if isinstance(stmt, For) else _blocks(stmt) if begins else None
            if turns is not None:
                _check(replace(turns, around=around))
        inside = _first_time(stmt, around)
        pending += [(child, by_hand, in_kernel or begins, inside) for child in stmt.child_nodes() if isinstance(child, Stmt)]


def _first_time(stmt: Stmt, around: Values) -> Values:
    """Returns the values of the loop variables in the first iterations of `stmt` and of the loops around it. Variables in the
    condition of a branch are left out, since the branch may exclude these values.
    """
    if isinstance(stmt, For) and (first := build.as_int(stmt.min)) is not None and (build.as_int(stmt.extent) or 0) > 0:
        return {**around, stmt.loop_var: first}
    if isinstance(stmt, IfThenElse) and around:
        asked = set(variables(stmt.condition))
        return {var: at for var, at in around.items() if var not in asked}
    return around


def _iterations(loop: For) -> _Turns | None:
    first, count = build.as_int(loop.min), build.as_int(loop.extent)
    if loop.kind != ForKind.PARALLEL or first is None or count is None:
        return None
    return _Turns(loop, ((loop.loop_var, loop.loop_var.name, first, count),), loop.body)


def _blocks(launch: Stmt) -> _Turns | None:
    """Returns the blocks of the launch that begins at `launch`; None if there is only one."""
    kernel = kernel_of(launch)
    counts = [(axis, build.as_int(axis.count)) for axis in kernel.blocks]
    several = tuple((axis.var, axis.axis.thread_tag, 0, count) for axis, count in counts if count is not None and count > 1)
    inside = [axis for axis in kernel.axes if not any(axis.var is var for var, *_ in several)]
    body = kernel.body
    for axis in inside:
        body = AttrStmt(axis.axis, LAUNCH, axis.count, body)
    return _Turns(several[0][1], several, body) if several else None


def _check(turns: _Turns) -> None:
    inside = {node.buffer_var for node in post_order(turns.body) if isinstance(node, Allocate)}
    touches = _looked_at(turns, inside)
    written = {touch.memory for touch in touches if touch.writes}
    candidates = [touch for touch in touches if touch.memory in written and not _is_shadow(touch.memory)]
    doubtful = _where_they_may_meet(turns, candidates)
    looked_at = [touch for touch in candidates if touch.memory in doubtful]
    conditions = {touch: _conditions(touch) for touch in looked_at}
    alike = {touch: _alike(turns, touch, written | inside) for touch in looked_at}
    left = POINTS
    writers: dict[_Place, _Met] = {}
    readers: dict[_Place, _Met] = {}
    for at in turns.numbers() if looked_at else ():
        own: dict[_Place, _Met] = {}  # what this iteration wrote last
        mine: set[tuple[Access, int]] = set()
        touched = ((touch, it) for touch in looked_at for it in _elements(touch, conditions[touch], at))
        for touch, (element, here) in itertools.islice(touched, left):
            left -= 1
            place, now = (touch.memory, element), _Met(at, touch, here)
            if touch.writes:
                _compare(turns, now, readers.get(place), element)
                if alike[touch] is None:
                    _compare(turns, now, writers.get(place), element)
                own[place] = now
                mine.add((touch, element))
                continue
            met = writers.get(place)
            if met is None or alike[met.touch] is None or (met.touch, element) not in mine:  # else it reads what itself wrote
                _compare(turns, now, met, element)
            if place not in own:
                readers.setdefault(place, now)
        for place, now in own.items():
            met = writers.setdefault(place, now)
            by = alike[met.touch]
            if by is None or now.touch is not met.touch or any(now.here[v] != met.here[v] for v in by):
                _compare(turns, now, met, place[1])
        if left <= 0:
            return


def _where_they_may_meet(turns: _Turns, touches: Sequence[Access]) -> set[Var]:
    """Returns the memory of `touches` in which different iterations are not proved to touch different elements."""
    axes = Axes([Loop(var, IntImm(var.dtype, first), IntImm(var.dtype, count)) for var, _, first, count in turns.axes])
    by_memory: dict[Var, dict[Expr, Access]] = {}  # one access for each index is enough
    for touch in sorted(touches, key=lambda touch: not touch.writes):
        by_memory.setdefault(touch.memory, {}).setdefault(touch.node.index, touch)
        for loop in touch.loops:
            axes.loop(loop.var, loop.min, loop.extent)
    return {memory for memory, accesses in by_memory.items() if len(accesses) ** 2 > PAIRS or any(
        may_meet(a, b, distinct=axes) for a, b in itertools.product(accesses.values(), repeat=2))}


def _compare(turns: _Turns, now: _Met, met: _Met | None, element: int) -> None:
    if met is not None and met.at is not now.at:
        raise _race(turns, now.touch, now.at, met, element)


def _is_shadow(memory: Var) -> bool:
    """Tells whether `memory` is a shadow buffer of checked mode; races in the memory that it belongs to are checked there."""
    return noted_memory(memory.name) != memory.name or takes_notes(memory)


def _alike(turns: _Turns, touch: Access, changing: set[Var]) -> frozenset[Var] | None:
    """Returns the variables that determine the value that `touch` writes, if that value does not depend on the iteration: two
    iterations that write the same value do not race. None if it may depend on the iteration.
    """
    if not touch.writes or any(
            (isinstance(node, Load) and node.buffer_var in changing) or (isinstance(node, Call) and not node.op.is_pure)
            for node in post_order(touch.node.value)):
        return None
    number = {var for var, *_ in turns.axes}
    used = set(variables(touch.node.value))
    if used & number:
        return None
    moves = bool(number & set(variables(touch.node.index)))  # else each of them does the same to the same elements
    return frozenset(used & {loop.var for loop in touch.loops}) if moves else frozenset()


def _looked_at(turns: _Turns, inside: set[Var]) -> list[Access]:
    """Returns the accesses that are executed whenever the loops and branches around them are, with lets substituted.

    Accesses to memory that is allocated `inside` are left out, for it belongs to the iteration, and those in while loops, whose
    number of iterations is unknown.
    """
    without_lets = WithoutLets()
    return [access.without_lets(without_lets) for access in accesses(turns.body)
            if access.memory not in inside and not access.is_chosen()
            and not any(isinstance(by, While) for by in (access.statement, *(c.by for c in access.conditions)))
            and (access.writes or access.predicate is None)]


def _conditions(access: Access) -> list[Expr]:
    """Returns the conditions that must be known to hold for the access to count."""
    held = [condition.value for condition in access.conditions if isinstance(condition.by, IfThenElse)]
    return held if access.predicate is None else [*held, access.predicate]


def _elements(access: Access, conditions: Sequence[Expr], values: Values, at: int = 0) -> Iterator[tuple[int, Values]]:
    """Yields the elements touched in one iteration, as far as loops and conditions are known, with the values of the
    variables.
    """
    if at < len(access.loops):
        loop = access.loops[at]
        first, count = value(loop.min, values), value(loop.extent, values)
        if first is None or count is None or count <= 0:
            return
        for here in dict.fromkeys([*range(first, first + min(count, INNER)), first + count - 1]):
            yield from _elements(access, conditions, {**values, loop.var: here}, at + 1)
    elif all(value(condition, values) for condition in conditions):
        yield from ((element, values) for element in elements(access.node.index, values) or ())


def _race(turns: _Turns, touch: Access, at: Values, met: _Met, element: int) -> LoweringError:
    name, other = touch.memory.name, met.touch
    writer, wrote, reader, does = (other, met.at, at, "writes it too" if touch.writes else "reads it") \
        if other.writes else (touch, at, met.at, "reads it")
    which = "" if build.as_int(writer.node.index) == element else f", which is {name}[{element}]"
    said = f"{turns.named(wrote)} writes {name}[{shown(writer.node.index)}]{which}, and {turns.named(reader)} {does}"
    if isinstance(turns.about, For):
        var = turns.about.loop_var.name
        return LoweringError(f"iterations of the parallel loop {var} race: {said}", about=turns.about, hint=(
            f"make the loop {var} serial, or let each iteration write elements that no other one touches"))
    return LoweringError(
        f"blocks of one launch race: {said}. The blocks of a launch run in any order and cannot wait for each other",
        hint="let each block write elements that no other one touches, or make it two launches, one after the other",
        about=turns.about)
