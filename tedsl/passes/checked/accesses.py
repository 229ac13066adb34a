"""The reads of an expression, each with the conditions under which it is evaluated, in the order of evaluation; the elements
that an access touches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import (
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Expr,
    IntImm,
    Let,
    Load,
    Or,
    Ramp,
    Select,
    Shuffle,
    Var,
)
from tedsl.ir.node import Node
from tedsl.ir.ops import ADDRESS_OF, ALLREDUCE, IF_THEN_ELSE
from tedsl.ir.stmt import BufferStore, Stmt, Store
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order

Key = Buffer | Var
Place = tuple[Expr, ...]


@dataclass(frozen=True)
class Read:
    """A load and the conditions that choose it, outermost first."""

    load: BufferLoad | Load
    conditions: tuple[Expr, ...]


def reads_of(*roots: Expr) -> list[Read]:
    """Every read below `roots`, each once per set of conditions; those inside an index come before the read itself.

    A variable of a `let` is written out: what is returned stands outside of the expression.
    """
    found: list[Read] = []
    seen: set[tuple[Node, tuple[Expr, ...]]] = set()
    stack: list[tuple[Expr, tuple[Expr, ...], bool]] = [(root, (), False) for root in reversed(roots)]
    while stack:
        node, conditions, ready = stack.pop()
        if ready:
            assert isinstance(node, (BufferLoad, Load))
            found.append(Read(node, conditions))
            continue
        if (node, conditions) in seen:
            continue
        seen.add((node, conditions))
        if isinstance(node, (BufferLoad, Load)):
            stack.append((node, conditions, True))
        stack.extend((part, where, False) for part, where in reversed(list(_parts(node, conditions))))
    return found


def _parts(node: Expr, conditions: tuple[Expr, ...]) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """The parts of `node` with the conditions under which each is needed."""
    match node:
        case Select(condition=c, true_value=t, false_value=f) | Call(args=(c, t, f)) \
                if c.dtype.is_bool and c.dtype.lanes == 1 and (isinstance(node, Select) or node.op is IF_THEN_ELSE):
            yield c, conditions
            yield t, (*conditions, c)
            yield f, (*conditions, build.logical_not(c))
        case And(a=a, b=b) if a.dtype.lanes == 1:
            yield a, conditions
            yield b, (*conditions, a)
        case Or(a=a, b=b) if a.dtype.lanes == 1:
            yield a, conditions
            yield b, (*conditions, build.logical_not(a))
        case Let(var=var, value=value, body=body):
            yield value, conditions
            yield substitute(body, {var: value}), conditions
        case Call(args=(IntImm(value=count), *rest)) if node.op is ALLREDUCE:
            yield rest[count], conditions  # a thread takes part with its values where this holds
            for value in rest[:count]:
                yield value, (*conditions, rest[count])
        case _:
            for child in node.child_nodes():
                if isinstance(child, Expr):
                    yield child, conditions


# --- where an access goes ---------------------------------------------------------------------------------------------

def key_of(access: object) -> Key:
    """What an access reads or writes: a buffer, or the pointer of one."""
    assert isinstance(access, (BufferLoad, BufferStore, Load, Store))
    return access.buffer if isinstance(access, (BufferLoad, BufferStore)) else access.buffer_var


def places_of(read: Read) -> list[Place]:
    """The elements that a read touches."""
    load = read.load
    return lanes_of(load.indices if isinstance(load, BufferLoad) else (load.index,))


def lanes_of(indices: Sequence[Expr]) -> list[Place]:
    """The elements that an access touches, one for each lane."""
    lanes = max((index.dtype.lanes for index in indices), default=1)
    if lanes == 1:
        return [tuple(indices)]
    return [tuple(index if index.dtype.lanes == 1 else lane_of(index, lane) for index in indices) for lane in range(lanes)]


def lane_of(vector: Expr, lane: int) -> Expr:
    """One lane of an index or a mask."""
    match vector:
        case Ramp(base=base, stride=stride):
            return build.add(base, build.mul(stride, build.const(lane, stride.dtype)))
        case Broadcast(value=value):
            return value
        case Add(a=a, b=b) if vector.dtype.lanes > 1:
            return build.add(lane_of(a, lane), lane_of(b, lane))
        case _ if vector.dtype.lanes == 1:
            return vector
        case _:
            return Shuffle((vector,), (build.const(lane, "int32"),))


def handed_out(body: Stmt) -> Iterator[Var]:
    """The data of buffers that are handed to code which checks cannot look into."""
    for node in post_order(body):
        if isinstance(node, Call):
            for arg in node.args:
                if isinstance(arg, Var) and arg.dtype.is_handle:
                    yield arg
                elif isinstance(arg, Load) and node.op is ADDRESS_OF:
                    yield arg.buffer_var
                elif isinstance(arg, BufferLoad) and node.op is ADDRESS_OF:
                    yield arg.buffer.data
