"""The sites of a program: each store with what it reads, the loops around it, and by how much each loop moves each access.

A site says how often it runs, what it computes each time, and how many distinct bytes its loops touch from some depth inwards,
from which follow the bytes that each level of caches has to bring.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy

from tedsl.ir.calls.lanes import OF_KIND
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Add, Broadcast, Call, Div, Expr, Load, Max, Min, Mul, Ramp, Sub, Var
from tedsl.ir.node import Node
from tedsl.ir.ops import COMBINE_LANES, FMA, IF_THEN_ELSE, LIKELY, REINTERPRET
from tedsl.ir.stmt import For, ForKind, Stmt, Store
from tedsl.ir.walk.accesses import Access, accesses
from tedsl.ir.walk.around import Loop, WithoutLets
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.races.known_values import Values, value
from tedsl.record import record

_ARITHMETIC = (Add, Sub, Mul, Div, Max, Min)
_FREE = (IF_THEN_ELSE, LIKELY, REINTERPRET)
_MOST_POINTS = 1 << 20  # of a space whose distinct elements are counted one by one
OFTEN = 1.3  # times that values are computed, below which they are at the edges of tiles
_SPARSE = 16  # integers per value, above which values are sorted to find the different ones
_FEW = 4  # operations on an element, of which fewer are seldom worth a stage
_MOST_VALUES = 4096  # of a loop variable for which conditions are tried
ACCUMULATORS = ".acc"  # how names of registers end that hold what a stage adds up


@record(eq=False)
class Turn:
    """A loop around a site: its variable, the times it runs, its kind, and the statement."""

    var: Var
    times: int
    kind: ForKind
    by: Stmt

    @property
    def is_parallel(self) -> bool:
        return self.kind is ForKind.PARALLEL


@record(eq=False)
class Touch:
    """An access of a site. stride: elements between the lanes of a vector, 0 for one element in all lanes, None if the index is
    neither. steps: bytes by which one iteration of each loop moves it, None where data or a division decides. inside: the
    number of loops around the allocation of the memory, 0 for arguments. near: no loop moves it in memory of the program's
    own, so that it is a register, or on the stack. given: it is an argument. base: bytes from the start of the memory at the
    first iteration. masked: some lanes may be left out.
    """

    name: str
    dtype: DType
    lanes: int
    stride: int | None
    steps: tuple[int | None, ...]
    writes: bool
    inside: int
    near: bool
    given: bool
    base: int | None
    masked: bool

    @property
    def span(self) -> int:
        """The bytes from the first lane to the end of the last."""
        item = max(1, self.dtype.bits // 8)
        return item * (1 + (self.lanes - 1) * abs(self.stride if self.stride is not None else 1))


@record(eq=False)
class Part:
    """A part of the value of a store: a call of a function such as exp, or arithmetic without such calls. reads: the accesses
    in it; free: the loops on whose variables it depends beside indices, and those in which what it reads is written;
    operations: of one evaluation, over all lanes.
    """

    expr: Expr
    reads: tuple[Touch, ...]
    free: frozenset[int]
    operations: int

    @property
    def is_scalar(self) -> bool:
        """Whether it computes single elements, which a vector may repeat."""
        return all(touch.lanes == 1 for touch in self.reads)

    @property
    def kind(self) -> tuple[object, ...]:
        """What parts have in common that compute values of one function at several places of the same memory."""
        what = self.expr.op if isinstance(self.expr, Call) else type(self.expr)
        return (what, self.operations, self.expr.dtype, self.free, *[(one.name, one.steps, one.stride) for one in self.reads])


@record(eq=False)
class Site:
    """A store. stage: the name of the stage; operations: of one execution, over all lanes; calls: functions such as exp among
    them; called: those with what they read; loads: of memory that the store does not write, each with the loops in which it is
    written; value: what it stores, without lets; guards: the conditions around it, and in its value, that depend on its
    innermost loop; free: the loops on whose variables the value depends beside the indices of accesses, and those in which what
    it reads is written.
    """

    stage: str
    store: Store
    turns: tuple[Turn, ...]
    touches: tuple[Touch, ...]
    operations: int
    calls: int
    called: tuple[Part, ...]
    loads: Mapping[Node, tuple[Touch, set[object]]]
    value: Expr
    guards: tuple[Expr, ...]
    free: frozenset[int]

    @cached_property
    def times(self) -> int:
        return math.prod(turn.times for turn in self.turns)

    @property
    def write(self) -> Touch:
        return self.touches[-1]

    @property
    def reads(self) -> tuple[Touch, ...]:
        return tuple(touch for touch in self.touches if not touch.writes)

    @property
    def work(self) -> int:
        """How much it is of a program: operations and accesses, of all executions."""
        return self.times * (self.operations + sum(touch.lanes for touch in self.touches))

    @property
    def reduces(self) -> bool:
        """Whether it adds to what it has written."""
        return any(touch.name == self.write.name for touch in self.reads)

    @cached_property
    def combined(self) -> int:
        """The lanes of the longest vector that it combines to one element; 1 if there is none."""
        calls = [node for node in post_order(self.value) if isinstance(node, Call) and node.op in COMBINE_LANES]
        return max([call.args[0].dtype.lanes for call in calls], default=1)

    @property
    def reduces_rows(self) -> bool:
        """Whether it adds up, multiplies or compares neighbouring elements: vectorize of its innermost loop combines lanes."""
        kind = type(self.value) in OF_KIND or (isinstance(self.value, Call) and self.value.op is FMA)
        return kind and self.reduces and self.write.steps[-1] == 0 and \
            all(touch.steps[-1] in (0, touch.dtype.bits // 8) for touch in self.reads)

    def is_still(self, at: int) -> bool:
        """Whether loop number `at` writes to the same place in every iteration, or to memory of its own."""
        return at < self.write.inside or self.write.steps[at] == 0

    @cached_property
    def repeated(self) -> float:
        """How many times each value is computed, as far as the loops and what they read tell."""
        points = [at for at, turn in enumerate(self.turns) if turn.times > 1 and not (self.reduces and self.is_still(at)
                                                                                      and at >= self.write.inside)]
        reads = [touch for touch in self.reads if touch.name != self.write.name]
        if not reads or any(touch.steps[at] is None for touch in reads for at in points):
            return 1.0
        return self._evaluations(points) / self._distinct_values(points, reads, self.free)

    @cached_property
    def called_again(self) -> list[tuple[tuple[Part, ...], float]]:
        """The calls of each kind, with how many times each of their values is computed."""
        return self._again(self.called)

    @cached_property
    def arithmetic_again(self) -> list[tuple[tuple[Part, ...], float]]:
        """The largest parts of the value that are arithmetic alone, each kind with how many times its values are computed,
        where that is more than once; those of few operations are left out.
        """
        told: list[tuple[tuple[Part, ...], float]] = []
        level, lengths = [self.value], _lengths(self.value, self.loads)
        seen = set[Expr]()
        while level:
            nodes = _largest(level, lengths, seen)
            parts = [_part(node, self.turns, self.loads, lengths[node].over_lanes) for node in nodes]
            again = [(group, times) for group, times in self._again(parts) if times > OFTEN]
            told += again
            known = {part.expr for group, _ in again for part in group}
            level = [child for node in nodes if node not in known for child in _operands(node)]
        return told

    def _again(self, parts: Sequence[Part]) -> list[tuple[tuple[Part, ...], float]]:
        """The parts of each kind, with how many times each of their values is computed. Innermost loops in which they are the
        same do not count: they are moved out of those.
        """
        groups: dict[tuple[object, ...], dict[object, Part]] = {}
        for one in parts:
            if one.reads and all(step is not None for touch in one.reads for step in touch.steps):
                groups.setdefault(one.kind, {})[tuple(touch.base for touch in one.reads)] = one
        found = []
        for group in groups.values():
            first, *others = group.values()
            points = self._loops_of(first)
            starts = [one.reads[0].base or 0 for one in (first, *others)]
            distinct = self._distinct_values(points, first.reads, first.free, [start - min(starts) for start in starts])
            found.append((tuple(group.values()), len(group) * self._evaluations(points) / distinct))
        return found

    def runs_of(self, one: Part) -> int:
        """How often a part is evaluated."""
        return math.prod(self.turns[at].times for at in self._loops_of(one))

    def _loops_of(self, one: Part) -> list[int]:
        """The loops that run more than once, without the innermost ones in which a part is the same: it moves out of them."""
        points = [at for at, turn in enumerate(self.turns) if turn.times > 1]
        while points and points[-1] not in one.free and not any(touch.steps[points[-1]] != 0 for touch in one.reads):
            points.pop()
        return points

    def _evaluations(self, points: Sequence[int]) -> int:
        return math.prod(self.turns[at].times for at in points) * self.write.lanes

    def _distinct_values(self, points: Sequence[int], reads: Sequence[Touch], free: frozenset[int],
                         shifts: Sequence[int] = (0,)) -> int:
        """The number of values of what reads these elements in the loops `points`. shifts: bytes by which it reads them in
        several places, where all reads are moved together.
        """
        moves = {at: tuple([touch.steps[at] or 0 for touch in reads]) for at in points if at not in free}
        lanes = tuple([(touch.stride or 0) * max(1, touch.dtype.bits // 8) if touch.lanes > 1 else 0 for touch in reads])
        counts = {at: self.turns[at].times for at in points}
        distinct = math.prod(counts[at] for at in points if at in free)
        if self.write.lanes > 1:
            if any(lanes):
                moves[len(self.turns)], counts[len(self.turns)] = lanes, self.write.lanes
            else:
                distinct *= self.write.lanes
        groups = [*_parallel_vectors(moves)]
        wide = shifts if len(groups) == 1 and len(reads) == 1 else (0,)
        for group in groups:
            distinct *= _distinct(group, counts, wide)
        return distinct * (1 if wide is shifts else len(shifts))


def _distinct(group: Mapping[int, int], counts: Mapping[int, int], shifts: Sequence[int] = (0,)) -> int:
    """The number of values of a sum of variables from 0 to their counts, each times a factor, and one of `shifts`; 1 if all
    factors are 0. In large spaces values that are a common factor apart are taken for a row without gaps.
    """
    moving = {at: factor for at, factor in group.items() if factor}
    if len(shifts) * math.prod(counts[at] for at in moving) <= _MOST_POINTS:
        sums = numpy.unique(numpy.array(shifts, "int64"))
        for at, factor in moving.items():
            sums = _unique(sums[:, None] + factor * numpy.arange(counts[at]))
        return int(sums.size)
    lengths: dict[int, int] = {}
    for at, factor in moving.items():
        lengths[abs(factor)] = lengths.get(abs(factor), 1) + counts[at] - 1
    for factor in sorted(lengths, reverse=True):
        lengths[factor] += max(shifts) // factor
        shifts = [shift % factor for shift in shifts]
    (unit, length), *wider = sorted(lengths.items())
    rows = 1
    for factor, count in wider:
        if factor % unit == 0 and factor <= length * unit:
            length += (count - 1) * (factor // unit)
        else:
            rows, unit, length = rows * length, factor, count
    return rows * length


def _unique(values: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """The different integers among `values`: marked in a row of flags where they are dense, for sorting takes far longer."""
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span > _SPARSE * values.size:
        return numpy.unique(values)
    seen = numpy.zeros(span, bool)
    seen[values - low] = True
    return numpy.flatnonzero(seen) + low


@record(eq=False)
class Nest:
    """The sites of one stage in the same loops. touches: what they access in memory, each place once, as a write if one is."""

    stage: str
    turns: tuple[Turn, ...]
    sites: tuple[Site, ...]
    touches: tuple[Touch, ...]

    @property
    def times(self) -> int:
        return math.prod(turn.times for turn in self.turns)

    @property
    def work(self) -> int:
        return sum(site.work for site in self.sites)

    @property
    def operations(self) -> int:
        """Of all executions."""
        return self.times * sum(site.operations for site in self.sites)

    def lines(self, touch: Touch, depth: int, line: int) -> int:
        """The lines of a cache that the loops from `depth` inwards touch through an access."""
        pieces, span = 1, touch.span
        if touch.stride is None or abs(touch.stride) * max(1, touch.dtype.bits // 8) > line:
            pieces, span = touch.lanes, line
        known = zip(touch.steps[depth:], self.turns[depth:])
        for step, times in sorted((abs(step) if step is not None else line, turn.times) for step, turn in known):
            if step <= max(span, line):
                span += step * (times - 1)
            else:
                pieces *= times
        return pieces * max(1, -(-span // line))

    def footprint(self, depth: int, line: int) -> int:
        """The bytes of a cache that the loops from `depth` inwards touch."""
        return line * sum(self.lines(touch, depth, line) for touch in self.touches)

    def brought(self, size: int, line: int) -> int:
        """The bytes that come from beyond a cache of `size` bytes: those of the outermost loops whose bytes fit, as often as
        the loops around them run. What a loop around does not move, and is small, stays.
        """
        return sum(self.brought_by_each(size, line))

    def brought_by_each(self, size: int, line: int) -> list[int]:
        """`brought` for each of `touches`."""
        depth = next((depth for depth in range(len(self.turns) + 1) if self.footprint(depth, line) <= size), len(self.turns))
        found = []
        for touch in self.touches:
            times = math.prod(turn.times for turn in self.turns[:depth])
            if self.lines(touch, depth, line) * line * 2 <= size:
                still = itertools.takewhile(lambda pair: pair[1] == 0, reversed([*zip(self.turns[:depth], touch.steps)]))
                times //= math.prod(turn.times for turn, _ in still)
            found.append(line * self.lines(touch, depth, line) * times)
        return found


def nests_of(sites: Sequence[Site], line: int) -> list[Nest]:
    """Returns the nests of sites, in program order. line: bytes of a line of the caches."""
    groups: dict[tuple[object, ...], list[Site]] = {}
    for site in sites:
        groups.setdefault((site.stage, *[turn.by for turn in site.turns]), []).append(site)
    return [Nest(group[0].stage, group[0].turns, tuple(group), tuple(_once(group, line))) for group in groups.values()]


def _once(group: Sequence[Site], line: int) -> list[Touch]:
    found: dict[tuple[object, ...], Touch] = {}
    for touch in itertools.chain.from_iterable(site.touches for site in group):
        if not touch.near:
            place = None if touch.base is None else touch.base // line
            key = (touch.name, touch.steps, touch.stride, touch.lanes, place)
            if touch.writes or key not in found:
                found[key] = touch
    return list(found.values())


def _parallel_vectors(moves: Mapping[int, tuple[int, ...]]) -> Iterator[dict[int, int]]:
    """Groups of the loops whose moves are multiples of one another, each loop with its factor; those without moves are one."""
    groups: dict[tuple[int, ...], dict[int, int]] = {}
    for at, move in moves.items():
        unit = math.gcd(*move)
        lead = next((part for part in move if part), 0)
        unit = -unit if lead < 0 else unit
        groups.setdefault(tuple(part // unit for part in move) if unit else (), {})[at] = unit
    yield from groups.values()


def sites_of(body: Stmt, known: Values) -> list[Site]:
    """Returns the sites of loops after all passes, in program order."""
    groups: dict[Stmt, list[Access]] = {}
    filled: dict[object, set[object]] = {}
    for access in accesses(body):
        if access.statement is None or not isinstance(access.node, (Load, Store)):
            continue
        groups.setdefault(access.statement, []).append(access)
        if isinstance(access.node, Store):
            filled.setdefault(access.memory, set()).update(loop.by for loop in access.loops)
    without_lets = WithoutLets()
    return [_site(group, without_lets, known, filled) for group in groups.values() if isinstance(group[-1].node, Store)]


def _site(group: Sequence[Access], without_lets: WithoutLets, known: Values, filled: Mapping[object, set[object]]) -> Site:
    """filled: the loops around the stores of each memory."""
    written = group[-1].without_lets(without_lets)
    turns: list[Turn] = []
    lows: Values = dict(known)
    for loop in written.loops:
        times, low = value(loop.extent, _middle(loop.extent, turns, lows)), value(loop.min, lows)
        kind = loop.by.kind if isinstance(loop.by, For) else ForKind.SERIAL
        assert loop.by is not None
        times = _times_that_hold(written, loop, times, lows)
        turns.append(Turn(loop.var, max(1, times if times is not None else 1), kind, loop.by))
        lows[loop.var] = low if low is not None else 0
    touches = [_touch(access.without_lets(without_lets), turns, lows) for access in group]
    inner = {turns[-1].var} if turns else set()
    conditions = {condition.expr: None for access in group for condition in access.without_lets(without_lets).conditions}
    guards = [condition for condition in conditions if inner & set(variables(condition))]
    store = written.node
    used = set(_free(store.value))
    changed = {loop for access in group if access.memory is not group[-1].memory for loop in filled.get(access.memory, ())}
    free = frozenset(at for at, turn in enumerate(turns) if turn.var in used or turn.by in changed)
    loads = {access.without_lets(without_lets).node: (touch, set(filled.get(access.memory, ())))
             for access, touch in zip(group, touches) if access.memory is not group[-1].memory}
    operations, calls = _operations(store.value)
    called = tuple([_part(call, turns, loads, call.dtype.lanes) for call in calls])
    return Site(group[-1].memory.name.removesuffix(ACCUMULATORS), group[-1].node, tuple(turns), tuple(touches),
                operations, sum(call.dtype.lanes for call in calls), called, loads, store.value, tuple(guards), free)


def _part(expr: Expr, turns: Sequence[Turn], loads: Mapping[Node, tuple[Touch, set[object]]], operations: int) -> Part:
    """loads: of memory that the store does not write, each with the loops in which it is written."""
    reads = [loads[node] for node in post_order(expr) if node in loads]
    used, changed = set(_free(expr)), set().union(*[loops for _, loops in reads])
    free = frozenset(at for at, turn in enumerate(turns) if turn.var in used or turn.by in changed)
    return Part(expr, tuple([touch for touch, _ in reads]), free, operations)


def _operands(node: Expr) -> list[Expr]:
    """What an expression computes with: without indices."""
    return [] if isinstance(node, Load) else [child for child in node.child_nodes() if isinstance(child, Expr)]


@record(eq=False)
class _Length:
    """Of arithmetic: its operations, the same over their lanes, and its loads."""

    operations: int
    over_lanes: int
    loads: frozenset[Node]


def _lengths(value: Expr, loads: Mapping[Node, tuple[Touch, set[object]]]) -> dict[Expr, _Length]:
    """Of each part of a value that is arithmetic on elements which it reads at one place of each memory, how long it is. An
    operation that is used in several places counts in each of them.
    """
    found: dict[Expr, _Length] = {}
    for node in post_order(value):
        if not isinstance(node, Expr):
            continue
        operands = _operands(node)
        read = frozenset({node} & loads.keys()).union(*[found[one].loads for one in operands if one in found])
        is_function = isinstance(node, Call) and node.op is not FMA and node.op not in _FREE
        places = {(loads[one][0].name, loads[one][0].base, loads[one][0].steps) for one in read}
        if not is_function and all(one in found for one in operands) and (not isinstance(node, Load) or node in loads) \
                and len({name for name, *_ in places}) == len(places):
            own = 2 if isinstance(node, Call) and node.op is FMA else int(isinstance(node, _ARITHMETIC))
            parts = [found[one] for one in operands]
            found[node] = _Length(own + sum(part.operations for part in parts),
                                  own * node.dtype.lanes + sum(part.over_lanes for part in parts), read)
    return found


def _largest(level: Sequence[Expr], lengths: Mapping[Expr, _Length], seen: set[Expr]) -> list[Expr]:
    """The largest parts of the expressions `level` among those of `lengths`, without short ones."""
    found, stack = [], [*level]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        length = lengths.get(node)
        if length is None:
            stack += _operands(node)
        elif length.operations >= _FEW and length.loads:
            found.append(node)
    return found


def _times_that_hold(written: Access, loop: Loop, times: int | None, known: Values) -> int | None:
    """The iterations of a loop in which the conditions hold that depend on it alone."""
    conditions = [condition.value for condition in written.conditions if loop.var in variables(condition.value)]
    low = value(loop.min, known)
    if not conditions or times is None or low is None or times > _MOST_VALUES:
        return times
    held = [[value(condition, {**known, loop.var: low + at}) for condition in conditions] for at in range(times)]
    return sum(all(one is None or one for one in row) for row in held) or 1


def _middle(expr: Expr, turns: Sequence[Turn], lows: Values) -> Values:
    """The values of loop variables half-way, for the average of an extent that depends on them."""
    used = set(variables(expr))
    return {**lows, **{turn.var: lows[turn.var] + turn.times // 2 for turn in turns if turn.var in used}}


def _touch(access: Access, turns: Sequence[Turn], lows: Values) -> Touch:
    node = access.node
    dtype = node.value.dtype if isinstance(node, Store) else node.dtype
    index, item = node.index, max(1, dtype.bits // 8)
    base, stride = index, 1 if dtype.lanes == 1 else None
    if isinstance(index, Ramp):
        base, stride = index.base, value(index.stride, lows)
    elif isinstance(index, Broadcast):
        base, stride = index.value, 0
    place = access.allocation()
    start = value(base, lows)
    steps = tuple(_steps(base, turns, lows, item))
    near = place is not None and start is not None and not any(step != 0 for step in steps)
    return Touch(access.memory.name, dtype.with_lanes(1), dtype.lanes, stride, steps,
                 isinstance(node, Store), 0 if place is None else len(place.loops()), near, place is None,
                 None if start is None else start * item, node.predicate is not None)


def _steps(base: Expr, turns: Sequence[Turn], lows: Values, item: int) -> Iterator[int | None]:
    start = value(base, lows)
    for turn in turns:
        after = value(base, {**lows, turn.var: lows[turn.var] + 1})
        later = value(base, {**lows, turn.var: lows[turn.var] + turn.times - 1})
        if start is None or after is None or later is None:
            yield None
        else:
            yield (after - start) * item if (after - start) * (turn.times - 1) == later - start else None


def _free(expr: Expr) -> Iterator[Var]:
    """The variables of an expression outside of the indices of its loads."""
    stack, seen = [expr], set()
    while stack:
        node = stack.pop()
        if isinstance(node, Load) or node in seen:
            continue
        seen.add(node)
        if isinstance(node, Var):
            yield node
        stack += [child for child in node.child_nodes() if isinstance(child, Expr)]


def _operations(expr: Expr) -> tuple[int, list[Call]]:
    """Operations on elements of an expression, over its lanes, and the calls among them; those of indices and conditions do not
    count.
    """
    count, stack, seen = 0, [expr], set()
    calls: list[Call] = []
    while stack:
        node = stack.pop()
        if node in seen or isinstance(node, (Load, Var)):
            continue
        seen.add(node)
        if isinstance(node, Call) and node.op in COMBINE_LANES:
            count += node.args[0].dtype.lanes - 1
        elif isinstance(node, Call) and node.op not in _FREE:
            count += (2 if node.op is FMA else 1) * node.dtype.lanes
            calls += [node] * (node.op is not FMA)
        elif isinstance(node, _ARITHMETIC):
            count += node.dtype.lanes
        stack += [child for child in node.child_nodes() if isinstance(child, Expr)]
    return count, calls
