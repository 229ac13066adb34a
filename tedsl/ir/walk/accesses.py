"""The walk over accesses to memory: each load and store of a program, with the loops, conditions and lets around it.

    for (i: 0, 8) { if (i > 2) { B[i] = select(p, A[i], 0) } }      reads A[i]   in loop i, where i > 2 and p
                                                                    writes B[i]  in loop i, where i > 2

Which nodes are evaluated under which conditions is defined at the head of `ir/expr.py`. A side of a Select, te.all or te.any
counts as under the condition that chooses it, although both sides are evaluated; `Condition.chosen_by` tells these apart.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from tedsl.ir import build
from tedsl.ir.expr import And, BufferLoad, Call, Expr, IntImm, Let, Load, Or, ProducerLoad, Reduce, Select
from tedsl.ir.iters import IterVar
from tedsl.ir.node import Node
from tedsl.ir.ops import ALLREDUCE, IF_THEN_ELSE
from tedsl.ir.stmt import (
    THREADS,
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    ProducerStore,
    SeqStmt,
    Stmt,
    Store,
    While,
)
from tedsl.ir.walk.around import OUTSIDE, Around, Binding, Condition, Either, Facts, Loop, WithoutLets
from tedsl.ir.walk.contents import contains, contents_of, mask_of
from tedsl.ir.walk.visitor import post_order
from tedsl.record import record

READS = (Load, BufferLoad, ProducerLoad)
WRITES = (Store, BufferStore)
_PARTED = (And, Or, Select, IF_THEN_ELSE, Reduce, Let, ALLREDUCE)  # whose parts are evaluated at several places: see `_parts`


def is_read(node: Node) -> bool:
    """Whether `node` loads an element."""
    return isinstance(node, READS)


def never(stmt: Stmt) -> bool:
    """False: the default of `until`, which follows sequences to their ends."""
    return False


@record(eq=False)
class Access:
    """A load, store or other wanted node, with the loops, conditions and lets around it.

    statement: the one that contains it; None if the walk began at an expression. only_read: of a pointer passed to a call,
    which reads there. at_once: it is an atomic change, which others of the kind need not wait for.
    """

    node: Any
    around: Around
    statement: Stmt | None = None
    only_read: bool = False
    at_once: bool = False

    @property
    def memory(self) -> Any:
        """The data pointer, buffer or tensor that is accessed; the node itself if it is not a load or store."""
        return memory_of(self.node)

    @property
    def writes(self) -> bool:
        """Whether it may write memory: a store, or a pointer passed to a call."""
        return not isinstance(self.node, READS) and not self.only_read

    @property
    def index(self) -> Expr | None:
        """The index into flat memory; None for a pointer passed to a call, which may access any element."""
        return self.node.index if isinstance(self.node, (Load, Store)) else None

    @property
    def indices(self) -> tuple[Expr, ...]:
        """The indices of the element, a single one for flat memory; () for nodes that are not loads or stores."""
        if isinstance(self.node, (Load, Store)):
            return (self.node.index,)
        several = isinstance(self.node, (BufferLoad, BufferStore, ProducerLoad, ProducerStore))
        return tuple(self.node.indices) if several else ()

    @property
    def predicate(self) -> Expr | None:
        """The mask of the lanes that are accessed; None: all lanes."""
        return self.node.predicate if isinstance(self.node, (Load, Store)) else None

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The loops around it, outermost first."""
        return tuple(self.around.loops())

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions around it, outermost first."""
        return tuple(self.around.conditions())

    def allocation(self) -> Around | None:
        """The place of the statement that allocates the memory; None if it is allocated outside the walked program."""
        at: Around | None = self.around
        while at is not None:
            match at.step:
                case Allocate(buffer_var=memory) | BufferRealize(buffer=memory) if memory is self.memory:
                    return at
            at = at.outer
        return None

    def is_chosen(self) -> bool:
        """Whether the access is conditional within its expression (a side of a choice)."""
        return any(isinstance(step, Condition) for step in self.around.of_expression())

    @property
    def facts(self) -> Facts | None:
        """The facts that hold where the access is evaluated within its expression; None if it is evaluated whenever the
        expression is.
        """
        facts = Facts(self.around)
        return None if next(iter(facts), None) is None else facts

    def without_lets(self, written_out: WithoutLets) -> Access:
        """The access with the values of lets substituted for their variables."""
        return Access(written_out.expr(self.node, self.around), written_out(self.around), self.statement)


def memory_of(node: Node) -> Any:
    """The data pointer, buffer or tensor that a load or store accesses; `node` itself if it is neither."""
    match node:
        case Load(buffer_var=memory) | Store(buffer_var=memory) | BufferLoad(buffer=memory) | BufferStore(buffer=memory) \
                | ProducerLoad(producer=memory) | ProducerStore(producer=memory):
            return memory
        case _:
            return node


# --- expressions ----------------------------------------------------------------------------------------------------------

MOST_PLACES = 16  # sets of conditions that are told apart at one node


def reads(roots: Sequence[Node], around: Around = OUTSIDE, *, wanted: Callable[[Node], bool] = is_read,
          statement: Stmt | None = None, outside_in: bool = False, most_places: int | None = None) -> Iterator[Access]:
    """The `wanted` nodes in expressions, in the order of evaluation: nodes in an index come before the load itself.

    outside_in: nodes in an index come after the load. A shared node is returned once for each set of conditions it is evaluated
    under, without sets that imply another one, and once if it is on both sides of a choice. most_places: a node with more sets
    is returned once, at the first place, under the disjunction of the sets, so that the work is linear in the nodes.
    """
    if wanted is is_read and not any(contains(root, *READS) for root in roots):
        return
    if not any(contains(root, *_PARTED) for root in roots):
        yield from _reads_at(roots, around, wanted, statement, outside_in)
        return
    walk = _Reads(roots, around, wanted, most_places)
    done: set[tuple[Node, Around]] = set()
    stack: list[tuple[Node, Around, bool]] = [(root, around, False) for root in reversed(roots) if root in walk.places]
    while stack:
        node, here, ready = stack.pop()
        if ready:
            yield Access(node, here, statement)
            continue
        place = walk.place_of(node, here)
        if (node, place) in done:
            continue
        done.add((node, place))
        if wanted(node):
            if outside_in:
                yield Access(node, place, statement)
            else:
                stack.append((node, place, True))
        stack.extend((part, inside, False) for part, inside in reversed(walk.parts[node, place]))


def _reads_at(roots: Sequence[Node], place: Around, wanted: Callable[[Node], bool], statement: Stmt | None,
              outside_in: bool) -> Iterator[Access]:
    """What `reads` does for expressions without conditions and bindings, of which every node is evaluated at one `place`."""
    done: set[Node] = set()
    within = mask_of(READS) if wanted is is_read else -1  # what has none of these kinds is not walked through
    stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield Access(node, place, statement)
            continue
        if node in done:
            continue
        done.add(node)
        if wanted(node):
            if outside_in:
                yield Access(node, place, statement)
            else:
                stack.append((node, True))
        stack.extend([(child, False) for child in reversed(node.child_nodes()) if contents_of(child) & within])


class _Reads:
    """The places at which the wanted nodes, and the nodes that contain them, are evaluated."""

    def __init__(self, roots: Sequence[Node], around: Around, wanted: Callable[[Node], bool], most_places: int | None) -> None:
        order = list(dict.fromkeys(node for root in roots for node in post_order(root)))
        reading: set[Node] = set()
        for node in order:
            if wanted(node) or any(child in reading for child in node.child_nodes()):
                reading.add(node)
        self.places: dict[Node, list[Around]] = {root: [around] for root in roots if root in reading}
        self.parts: dict[tuple[Node, Around], list[tuple[Node, Around]]] = {}
        for node in reversed(order):  # parents before children
            if node not in self.places:
                continue
            self.places[node] = _told_apart(node, self.places[node], most_places)
            parts = [part for part in _parts(node, reading) if part[0] in reading]
            for place in self.places[node]:
                inside = [(child, place if step is None else place.within(step)) for child, step in parts]
                self.parts[node, place] = inside
                for child, at in inside:
                    self.places.setdefault(child, []).append(at)

    def place_of(self, node: Node, here: Around) -> Around:
        """The recorded place of `node` that represents `here`: the same place or one around it."""
        places = self.places[node]
        return next((place for place in places if here.includes(place)), places[0])


def _told_apart(node: Node, places: list[Around], most: int | None) -> list[Around]:
    """The places of `node` without those inside another; both sides of a choice merge into its place, too many into one."""
    if len(places) == 1:
        return places
    given: dict[Around, None] = {}
    sides: dict[tuple[Any, ...], Around] = {}
    for place in places:
        while isinstance(place.step, Condition) and place.outer is not None:
            step = place.step
            other = sides.get((place.outer, step.by, step.expr, not step.holds))
            if other is None:
                sides[place.outer, step.by, step.expr, step.holds] = place
                break
            given.pop(other, None)
            place = place.outer
        given.pop(place, None)
        given[place] = None
    left = _outermost(given)
    return left if most is None or len(left) <= most else [_either(node, left)]


def _outermost(places: dict[Around, None]) -> list[Around]:
    """The places that are not inside another one."""
    is_inside: dict[Around, bool] = {}
    for place in places:
        path = [place]
        at = place.outer
        while at is not None and at not in is_inside and at not in places:
            path.append(at)
            at = at.outer
        is_inside.update(dict.fromkeys(path, at is not None and (at in places or is_inside[at])))
    return [place for place in places if not is_inside[place]]


def _either(node: Node, places: Sequence[Around]) -> Around:
    """The place around all of `places`, with the condition that the remaining steps of one of them hold."""
    common = functools.reduce(_common, places)
    beyond: dict[Around, None] = {}
    for place in places:
        at: Around | None = place
        while at is not None and at is not common and at not in beyond:
            beyond[at] = None
            at = at.outer
    holds: dict[Around, Expr] = {}  # from there on one of these: a tree, however many paths it has
    choices: dict[Any, None] = {}
    for place in sorted(beyond, key=lambda place: -place.depth):
        assert isinstance(place.step, (Condition, Binding)) and place.outer is not None
        if isinstance(place.step, Condition):
            choices.update(dict.fromkeys(place.step.chosen_by))
        facts = [*place.step.facts, holds[place]] if place in holds else place.step.facts
        here = functools.reduce(build.logical_and, facts, build.true())
        holds[place.outer] = build.logical_or(holds[place.outer], here) if place.outer in holds else here
    return common.within(Either(holds[common], True, node, tuple(choices)))


def _common(a: Around, b: Around) -> Around:
    """The innermost place around both."""
    while a is not b:
        if a.depth <= b.depth:
            assert b.outer is not None
            b = b.outer
        else:
            assert a.outer is not None
            a = a.outer
    return a


def _parts(node: Node, reading: set[Node]) -> list[tuple[Node, Condition | Binding | None]]:
    """The children of an expression, each with the steps (conditions, bindings) from its place to theirs."""
    match node:
        case And(a=a, b=b) | Or(a=a, b=b) if b in reading:
            return [(a, None), (b, Condition(a, isinstance(node, And), node))]
        case Select(condition=c, true_value=yes, false_value=no):
            return _sides(node, c, yes, no)
        case Call(op=op, args=(c, yes, no)) if op is IF_THEN_ELSE:
            return _sides(node, c, yes, no)
        case Reduce(source=source, condition=c, init=init):
            inside = Condition(c, True, node)
            return [(c, None), *((value, inside) for value in source), *((value, None) for value in init)]
        case Let(var=var, value=value, body=body):
            return [(value, None), (body, Binding(var, value, node))]
        case Call(op=op, args=(IntImm(value=count), *rest)) if op is ALLREDUCE:  # a thread takes part where its condition holds
            inside = Condition(rest[count], True, node)
            return [(rest[count], None), *((value, inside) for value in rest[:count]),
                    *((value, None) for value in rest[count + 1:])]
        case _:
            return [(child, None) for child in node.child_nodes()]


def _sides(node: Node, condition: Expr, yes: Expr, no: Expr) -> list[tuple[Node, Condition | Binding | None]]:
    return [(condition, None), (yes, Condition(condition, True, node)), (no, Condition(condition, False, node))]


# --- statements -----------------------------------------------------------------------------------------------------------

_Item: TypeAlias = "tuple[Stmt, Around] | tuple[tuple[Node, ...], Around, Stmt] | Access"


def stores(root: Stmt) -> Iterator[Access]:
    """The stores below a statement, in program order."""
    return accesses(root, wanted=None)


def accesses(root: Stmt, around: Around = OUTSIDE, *, wanted: Callable[[Node], bool] | None = is_read,
             until: Callable[[Stmt], bool] = never) -> Iterator[Access]:
    """The accesses in a statement, in program order: a store comes after the loads that it needs.

    wanted: selects nodes of expressions; None: stores only. until: a sequence is followed up to the first statement
    for which this holds.
    """
    stack: list[_Item] = [(root, around)]
    while stack:
        item = stack.pop()
        if isinstance(item, Access):
            yield item
        elif len(item) == 3:
            if wanted is not None:
                yield from reads(item[0], item[1], wanted=wanted, statement=item[2])
        else:
            stack.extend(reversed(_items(*item, until)))


def _items(stmt: Stmt, around: Around, until: Callable[[Stmt], bool]) -> list[_Item]:
    """The parts of a statement in program order: statements to enter, expressions to read, and its own access."""
    match stmt:
        case Store(value=value, index=index, predicate=predicate):
            used = (value, index) if predicate is None else (value, index, predicate)
            return [(used, around, stmt), Access(stmt, around, stmt)]
        case BufferStore(value=value, indices=indices) | ProducerStore(value=value, indices=indices):
            return [((value, *indices), around, stmt), Access(stmt, around, stmt)]
        case SeqStmt(seq=parts):
            return [(part, around) for part in itertools.takewhile(lambda part: not until(part), parts)]
        case IfThenElse(condition=condition, then_case=then, else_case=other):
            sides = [(then, True)] if other is None else [(then, True), (other, False)]
            return [((condition,), around, stmt),
                    *((side, around.within(Condition(condition, holds, stmt))) for side, holds in sides)]
        case _:
            inside = inside_of(stmt, around)
            children = stmt.child_nodes()
            exprs = tuple(child for child in children if not isinstance(child, Stmt))
            bodies: list[_Item] = [(child, inside) for child in children if isinstance(child, Stmt)]
            return [(exprs, around, stmt), *bodies] if exprs else bodies


def inside_of(stmt: Stmt, around: Around) -> Around:
    """The place of the body of `stmt`, which is at `around` and is not a branch."""
    match stmt:
        case For(loop_var=var, min=low, extent=extent):
            return around.within(Loop(var, low, extent, stmt))
        case AttrStmt(attr_key=key, node=IterVar(var=var), value=count) if key in THREADS:
            return around.within(Loop(var, build.const(0, var.dtype), count, stmt))
        case While(condition=condition) | AssertStmt(condition=condition):
            return around.within(Condition(condition, True, stmt))
        case LetStmt(var=var, value=value):
            return around.within(Binding(var, value, stmt))
        case Allocate(condition=condition) | BufferRealize(condition=condition):
            return around.within(stmt) if build.is_true(condition) else around.within(Condition(condition, True, stmt), stmt)
        case _:
            return around
