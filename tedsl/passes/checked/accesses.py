"""The reads of an expression, each with the conditions under which it is evaluated, in the order of evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tedsl.ir import build
from tedsl.ir.expr import And, BufferLoad, Call, Expr, IntImm, Let, Load, Or, Select
from tedsl.ir.node import Node
from tedsl.ir.walk.substitute import substitute


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
                if c.dtype.is_bool and c.dtype.lanes == 1 and (isinstance(node, Select) or node.op.name == "tir.if_then_else"):
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
        case Call(args=(IntImm(value=count), *rest)) if node.op.name == "tir.tvm_thread_allreduce":
            yield rest[count], conditions  # a thread takes part with its values where this holds
            for value in rest[:count]:
                yield value, (*conditions, rest[count])
        case _:
            for child in node.child_nodes():
                if isinstance(child, Expr):
                    yield child, conditions
