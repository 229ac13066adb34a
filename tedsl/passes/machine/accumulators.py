"""Finds the memory locations into which a loop accumulates, and assigns them places in a local array."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Broadcast, Call, Expr, Let, Load, Ramp, Var, pointer_var
from tedsl.ir.ops import ADDRESS_OF, PREFETCH
from tedsl.ir.stmt import Allocate, For, IfThenElse, LetStmt, Stmt, Store, While
from tedsl.ir.walk.accesses import Access, accesses
from tedsl.ir.walk.around import OUTSIDE, Around, Condition, Loop, Step
from tedsl.ir.walk.contents import of_kinds
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, statements
from tedsl.passes.facts.conjunctions import conjunction, conjuncts, without_likely
from tedsl.passes.facts.dependence import MEMORY, Dependence
from tedsl.passes.facts.structure import Numbering
from tedsl.record import record

BYTES = 4096  # of accumulators in one loop: twice the largest register file
SLOTS = 256


@record(eq=False)
class Candidate:
    """A load or store that may be kept in a register, and the guards (without `likely`) inside the loop around it.

    reader: for a load, the masked store whose value contains it; None if it is also read elsewhere.
    """

    node: Load | Store
    guards: tuple[Expr, ...]
    reader: Store | None

    @property
    def dtype(self) -> DType:
        return self.node.dtype if isinstance(self.node, Load) else self.node.value.dtype


@dataclass(eq=False)
class Slot:
    """One memory location: `count` elements from `index` on, kept at `offset` of the local array."""

    memory: Var
    index: Expr
    predicate: Expr | None
    dtype: DType
    guards: tuple[Expr, ...]
    local: Var
    offset: int

    @functools.cached_property
    def place(self) -> Expr:
        first = build.const(self.offset, "int32")
        return first if self.dtype.lanes == 1 else Ramp(first, build.const(1, "int32"), self.dtype.lanes)

    def load(self) -> Stmt:
        return self._guarded(self.assign(Load(self.dtype, self.memory, self.index, self.predicate)))

    def store(self) -> Stmt:
        return self._guarded(Store(self.memory, self.value(), self.index, self.predicate))

    def value(self) -> Load:
        return Load(self.dtype, self.local, self.place)

    def assign(self, value: Expr) -> Store:
        return Store(self.local, value, self.place)

    def _guarded(self, stmt: Stmt) -> Stmt:
        return IfThenElse(conjunction(self.guards), stmt) if self.guards else stmt


@dataclass(eq=False)
class Plan:
    """The accumulators of one loop. memory: local array → its element dtype and size."""

    slots: list[Slot]
    memory: dict[Var, tuple[DType, int]]
    by_index: dict[tuple[Var, Expr], Slot]

    def in_registers(self, body: Stmt) -> Stmt:
        return _ToRegisters(self.by_index)(body)  # type: ignore[no-any-return]

    def start_values(self, before: list[Store], number: Numbering) -> tuple[dict[Slot, Stmt], set[Stmt]]:
        """Returns the assignments of start values by slot, taken from stores among `before` (just before the loop) that fill a
        slot, and the set of these stores.
        """
        written = {store.buffer_var for store in before}
        if any(isinstance(n, Load) and n.buffer_var in written for s in before for n in post_order(s)):
            return {}, set()
        stores: dict[tuple[Var, int, int], list[Store]] = {}
        for store in before:
            stores.setdefault((store.buffer_var, number(store.index), number(store.predicate)), []).append(store)
        starts: dict[Slot, Stmt] = {}
        used: set[Stmt] = set()
        for slot in self.slots:
            same = stores.get((slot.memory, number(slot.index), number(slot.predicate)), [])
            if len(same) == 1 and not slot.guards and same[0].value.dtype is slot.dtype:
                starts[slot] = slot.assign(same[0].value)
                used.add(same[0])
        mine = {slot.memory for slot in self.slots}
        if any(store.buffer_var in mine and store not in used for store in before):
            return {}, set()  # it may write a location of ours after its start value
        return starts, used


class _ToRegisters(Rewriter):
    kinds = (Load, Store)

    def __init__(self, by_index: dict[tuple[Var, Expr], Slot]) -> None:
        super().__init__()
        self.by_index = by_index

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, (Load, Store)):
            slot = self.by_index.get((node.buffer_var, node.index))
            if slot is not None:
                return slot.value() if isinstance(node, Load) else slot.assign(node.value)
        return node


def find_accumulators(loop: For, analyzer: Analyzer, number: Numbering, depends: Dependence, noalias: bool,
                      allocated: set[Var], registers: set[Var]) -> Plan | None:
    """Returns the accumulators of `loop`; None if it has none that may be kept in registers."""
    own = {loop.loop_var}
    places: list[Store | Load] = []  # what is stored, and loaded to be bound, as the tile that is turned after its sums
    for s in statements(loop.body):
        if isinstance(s, Store):
            places.append(s)
        elif isinstance(s, (For, LetStmt, Allocate)):
            own.add(_bound_by(s))
            if isinstance(s, LetStmt) and isinstance(s.value, Load):
                places.append(s.value)
    hopeful = {place.buffer_var for place in places if isinstance(place, Store)} - registers
    for place in places:
        if place.buffer_var in hopeful and depends.on_any(place.index, own):
            hopeful.discard(place.buffer_var)
    if not hopeful:
        return None
    nodes = list(of_kinds(loop.body, Load, Store, For, LetStmt, Let, Allocate, While, Call))
    stored = dict.fromkeys(n.buffer_var for n in nodes if isinstance(n, Store))
    loaded = {n.buffer_var for n in nodes if isinstance(n, Load)}
    hints = [n for n in nodes if isinstance(n, Call) and n.op is PREFETCH]
    addresses = {arg for hint in hints for arg in hint.args if isinstance(arg, Call) and arg.op is ADDRESS_OF}
    pointed = {element.buffer_var for address in addresses for element in address.args if isinstance(element, Load)}
    wanted = [v for v in stored if v in loaded and v in hopeful and v not in pointed]
    if not wanted or any(_has_effects(n) for n in nodes if n not in addresses and n not in hints):
        return None
    bound = {loop.loop_var} | {_bound_by(n) for n in nodes if isinstance(n, (For, LetStmt, Let, Allocate))}
    foreign = {v for v in (*stored, *loaded) if v not in allocated}
    wanted = [v for v in wanted if v not in bound and (noalias or v in allocated or foreign == {v})]
    bound.add(MEMORY)
    fixed = set(wanted)
    fixed -= {n.buffer_var for n in nodes if isinstance(n, (Load, Store)) and n.buffer_var in fixed
              and depends.on_any(n.index, bound)}
    if not fixed:
        return None
    candidates = _candidates(loop.body)
    once = _Once([loop, *(n for n in nodes if isinstance(n, For))], analyzer)
    plan = Plan([], {}, {})
    for memory in wanted:
        if memory not in fixed:
            continue
        group = _Group(memory, candidates[memory], number, analyzer, lambda e: not depends.on_any(e, bound), once)
        slots = group.slots(sum(s.dtype.bytes * s.dtype.lanes for s in plan.slots), len(plan.slots))
        if slots:
            _add(plan, memory, slots, group)
    return plan if plan.slots else None


def _add(plan: Plan, memory: Var, slots: list[Slot], group: _Group) -> None:
    plan.slots += slots
    plan.memory[group.local] = (slots[0].dtype.element, group.size)
    for access in group.accesses:
        plan.by_index[(memory, access.node.index)] = group.slot_of[group.number(access.node.index)]


class _Group:
    """The accesses of a loop to one buffer, from which slots are formed."""

    def __init__(self, memory: Var, accesses: list[Candidate], number: Numbering, analyzer: Analyzer,
                 is_fixed: Callable[[Expr], bool], once: _Once) -> None:
        self.memory, self.accesses, self.number, self.analyzer, self.is_fixed = memory, accesses, number, analyzer, is_fixed
        self.once = once
        self.local = pointer_var(f"{memory.name}.acc", accesses[0].dtype.element, "local")
        self.slot_of: dict[int, Slot] = {}
        self.size = 0

    def slots(self, bytes_used: int, slots_used: int) -> list[Slot]:
        """Returns one slot for each location, which are loop-invariant; none unless they are disjoint, and few."""
        places: dict[int, list[Candidate]] = {}
        for access in self.accesses:
            places.setdefault(self.number(access.node.index), []).append(access)
        size = sum(same[0].dtype.bytes * same[0].dtype.lanes for same in places.values())
        if len(places) + slots_used > SLOTS or size + bytes_used > BYTES or not self.apart(places):
            return []
        slots = []
        for key, same in sorted(places.items(), key=lambda item: -item[1][0].dtype.lanes):  # wide first: aligned
            leader = self.leader(same)
            if leader is None:
                return []
            dtype = leader.dtype
            slot = Slot(self.memory, leader.node.index, leader.node.predicate, dtype, leader.guards, self.local, self.size)
            self.slot_of[key] = slot
            self.size += dtype.lanes
            slots.append(slot)
        return slots

    def leader(self, same: list[Candidate]) -> Candidate | None:
        """Returns a store to this location that is executed whenever the loop executes any of the accesses `same`, with the
        guards that do not change in the loop; None if there is none.
        """
        stores = [a for a in same if isinstance(a.node, Store)]
        for store in stores:
            fixed = tuple([g for g in store.guards if self.is_fixed(g)])
            mine = {self.number(g) for g in fixed}
            if len(fixed) < len(store.guards) and not self.once.holds([g for g in store.guards if self.number(g) not in mine]):
                continue
            predicate = store.node.predicate
            if predicate is not None and not self.is_fixed(predicate):
                continue
            if all(mine <= {self.number(g) for g in a.guards} and a.dtype is store.dtype
                   and self.same_lanes(a, store) for a in same):
                return store if len(fixed) == len(store.guards) else Candidate(store.node, fixed, store.reader)
        return None

    def same_lanes(self, access: Candidate, store: Candidate) -> bool:
        """Tells whether `access` has the predicate of `store`, so that both can use one register.

        A masked load must be read by a store with this predicate alone: in lanes that are off the register does not hold 0, as
        the load would.
        """
        if self.number(access.node.predicate) != self.number(store.node.predicate):
            return False
        if store.node.predicate is None or isinstance(access.node, Store):
            return True
        reader = access.reader
        return reader is not None and reader.buffer_var is self.memory \
            and self.number(reader.predicate) == self.number(store.node.predicate)

    def apart(self, places: dict[int, list[Candidate]]) -> bool:
        """Tells whether different locations are disjoint."""
        if len(places) == 1:
            return True
        spans = []
        first = _base(next(iter(places.values()))[0].node.index)
        for same in places.values():
            index = same[0].node.index
            if (isinstance(index, Ramp) and build.as_int(index.stride) != 1) or isinstance(index, Broadcast):
                return False
            if index.dtype.lanes > 1 and not isinstance(index, Ramp):
                return False
            offset = self.number.distance(_base(index), first)
            if offset is None:
                offset = build.as_int(self.analyzer.simplify(build.sub(_base(index), first)))
            if offset is None:
                return False
            spans.append((offset, offset + index.dtype.lanes))
        spans.sort()
        return all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


class _Once:
    """Tells whether conditions hold together in at least one iteration of nested loops: in the middle of each."""

    def __init__(self, loops: list[For], analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.middle = {loop.loop_var: build.add(loop.min, count // 2) for loop in loops
                       if (count := build.as_int(loop.extent)) is not None}
        self.known: dict[tuple[Expr, ...], bool] = {}

    def holds(self, conditions: list[Expr]) -> bool:
        key = tuple(conditions)
        if key not in self.known:
            self.known[key] = all(self.analyzer.can_prove(substitute(one, self.middle)) for one in conditions)
        return self.known[key]


def _base(index: Expr) -> Expr:
    return index.base if isinstance(index, Ramp) else index


def _has_effects(node: object) -> bool:
    return isinstance(node, While) or (isinstance(node, Call) and node.op.effect != "pure")


def _bound_by(node: For | LetStmt | Let | Allocate) -> Var:
    return node.loop_var if isinstance(node, For) else node.buffer_var if isinstance(node, Allocate) else node.var


def _candidates(body: Stmt) -> dict[Var, list[Candidate]]:
    """Returns every load and store below `body`, by memory, with the guards inside `body` around it."""
    candidates: dict[Var, list[Candidate]] = {}
    guards: dict[Around, tuple[Expr, ...]] = {OUTSIDE: ()}
    for access in accesses(body):
        candidate = Candidate(access.node, _guards_at(access.around, guards), _reader(access))
        candidates.setdefault(access.memory, []).append(candidate)
    return candidates


def _guards_at(place: Around, known: dict[Around, tuple[Expr, ...]]) -> tuple[Expr, ...]:
    """Returns the guards of all branches and loops around `place`."""
    pending = []
    while place not in known:
        assert place.outer is not None
        pending.append(place)
        place = place.outer
    guards = known[place]
    for inner in reversed(pending):
        guards = known[inner] = (*guards, *more) if inner.step is not None and (more := _guards(inner.step)) else guards
    return guards


def _guards(step: Step) -> list[Expr]:
    """Returns the conditions under which the body of one branch or loop runs."""
    match step:
        case Condition(expr=condition, holds=True, by=IfThenElse()):
            return list(map(without_likely, conjuncts(condition)))
        case Condition(by=IfThenElse()):
            return [step.value]
        case Loop(extent=extent, by=For()) if (build.as_int(extent) or 0) <= 0:
            return [build.greater(extent, 0)]
        case _:
            return []


def _reader(access: Access) -> Store | None:
    store = access.statement
    if access.writes or not isinstance(store, Store) or store.predicate is None:
        return None
    elsewhere = (node for place in (store.index, store.predicate) for node in post_order(place))
    return None if any(node is access.node for node in elsewhere) else store
