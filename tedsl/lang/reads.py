"""The loads of a formula, each with the conditions under which it happens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from tedsl.ir import build
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Cast,
    CompareOp,
    Expr,
    FloorDiv,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Or,
    ProducerLoad,
    Reduce,
    Select,
    Sub,
    Var,
)
from tedsl.ir.node import Node
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.operation import ComputeOp, extent_of

Eager = Select | And | Or


@dataclass(frozen=True, eq=False)
class Facts:
    """Conditions that hold at a place: the last one and those before it.

    chosen_by: what evaluates the place although the condition does not hold, unless it becomes an if_then_else.
    """

    condition: Expr
    before: Facts | None
    chosen_by: Eager | None = None

    def __iter__(self) -> Iterator[Expr]:
        return (at.condition for at in self.chain())

    def chain(self) -> Iterator[Facts]:
        """These and all before, the last first."""
        at: Facts | None = self
        while at is not None:
            yield at
            at = at.before


def loads_of(bodies: tuple[Expr, ...], *more: Node) -> tuple[ProducerLoad, ...]:
    """Every load below the bodies, each once, in order."""
    found: dict[ProducerLoad, None] = {}
    for root in (*bodies, *more):
        for node in post_order(root):
            if type(node) is ProducerLoad:
                found.setdefault(node)
    return tuple(found)


def has_load(expr: Expr) -> bool:
    """Whether the value depends on the elements of a tensor."""
    return any(type(node) is ProducerLoad for node in post_order(expr))


def is_ragged(op: ComputeOp) -> bool:
    """Whether the range of a reduction is read from a tensor or depends on another axis."""
    axes = {axis.var for axis in (*op.axis, *op.reduce_axis)}
    ends = [end for axis in op.reduce_axis if axis.dom is not None for end in (axis.dom.min, extent_of(axis))]
    return any(type(node) is ProducerLoad or node in axes for end in ends for node in post_order(end))


def takes_its_ends(index: Expr, axes: Collection[Var]) -> bool:
    """Whether `index` takes its least and its greatest value at corners of the domain, so that bounds of it are exact.

    It does if every axis occurs once, in operations that rise or fall with their operands.
    """
    seen: set[Node] = set()
    stack: list[Node] = [index]
    while stack:
        node = stack.pop()
        if isinstance(node, Var) and node in axes:
            if node in seen:
                return False
            seen.add(node)
        elif isinstance(node, (Add, Sub, Min, Max, Cast)):
            if node in seen:
                return False
            seen.add(node)  # a shared part: its axes occur twice
            stack.extend(node.child_nodes())
        elif isinstance(node, (Mul, FloorDiv)):
            parts = [part for part in (node.a, node.b) if any(v in axes for v in variables(part))]
            if len(parts) > 1 or (isinstance(node, FloorDiv) and node.b in parts):
                return False
            stack.extend(parts)
        elif any(v in axes for v in variables(node)):
            return False
    return True


def guarded_loads(body: Expr) -> list[tuple[ProducerLoad, Facts | None]]:
    """The loads of tensors below `body`, as by `guarded`."""
    return [(node, facts) for node, facts in guarded(body, _is_tensor_load) if type(node) is ProducerLoad]


def _is_tensor_load(node: Node) -> bool:
    return type(node) is ProducerLoad


def guarded(body: Expr, wanted: Callable[[Node], bool]) -> list[tuple[Node, Facts | None]]:
    """The nodes below `body` that are wanted (loads), with the conditions of the `if_then_else`, `Select`, `where`, `all`
    and `any` around each.

    A later condition of te.all is asked where those before it hold. A load that is shared by several places comes once for
    each set of conditions.
    """
    found: list[tuple[Node, Facts | None]] = []
    seen: dict[tuple[int, int], Facts | None] = {}  # holds the facts: the id of a dead object may come back
    stack: list[tuple[Node, Facts | None]] = [(body, None)]
    reading: set[Node] | None = None
    while stack:
        node, facts = stack.pop()
        if (id(node), id(facts)) in seen:
            continue
        seen[id(node), id(facts)] = facts
        if wanted(node):
            found.append((node, facts))
        if isinstance(node, (And, Or)):
            reading = _reading(body, wanted) if reading is None else reading
            if node.b in reading:
                stack += [(node.b, assume(node.a, isinstance(node, And), facts, node)), (node.a, facts)]
                continue
        stack.extend(reversed(_places(node, facts)))
    return found


def _reading(body: Expr, wanted: Callable[[Node], bool]) -> set[Node]:
    """The nodes below `body` that depend on loads."""
    found: set[Node] = set()
    for node in post_order(body):
        if wanted(node) or any(child in found for child in node.child_nodes()):
            found.add(node)
    return found


def _places(node: Node, facts: Facts | None) -> list[tuple[Node, Facts | None]]:
    """The children of `node` with the conditions under which each is evaluated."""
    match node:
        case Select(condition=c, true_value=t, false_value=f):
            return [(c, facts), (t, assume(c, True, facts, node)), (f, assume(c, False, facts, node))]
        case Call(op=op, args=(c, t, f)) if op is IF_THEN_ELSE:
            return [(c, facts), (t, assume(c, True, facts)), (f, assume(c, False, facts))]
        case Reduce(source=source, condition=c, init=init):
            inside = assume(c, True, facts)
            return [(c, facts), *((s, inside) for s in source), *((i, facts) for i in init)]
        case Let(var=v, value=value, body=inner):
            return [(value, facts), (inner, Facts(EQ(v, value), facts))]
        case _:
            return [(child, facts) for child in node.child_nodes()]


def assume(condition: Expr, truth: bool, facts: Facts | None, by: Eager | None = None) -> Facts | None:
    """`facts` and that `condition` is `truth`, taken apart into comparisons."""
    pending = [(condition, truth)]
    while pending:
        c, holds = pending.pop()
        match c:
            case And(a=a, b=b) if holds:
                pending += [(b, True), (a, True)]
            case Or(a=a, b=b) if not holds:
                pending += [(b, False), (a, False)]
            case Not(a=a):
                pending.append((a, not holds))
            case Call(op=op, args=(a,)) if op is LIKELY:
                pending.append((a, holds))
            case _ if build.is_true(c) and holds:
                pass
            case CompareOp() if not holds and not c.a.dtype.is_float:  # NaN: the opposite of < is not >=
                facts = Facts(build.binary(_OPPOSITE[type(c)], c.a, c.b), facts, by)
            case _:
                facts = Facts(c if holds else build.logical_not(c), facts, by)
    return facts


_OPPOSITE: dict[type[CompareOp], type[CompareOp]] = {LT: GE, GE: LT, LE: GT, GT: LE, EQ: NE, NE: EQ}
