"""The loops of a hybrid script: which stand directly inside one another, and whether they may run in another order.

Iterations of a loop are independent of each other if the variable of the loop is the index of one dimension in every access
to a tensor that is written inside of it: then no two iterations touch one element. Loops change places if, besides, every
tensor is written and read at one place only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import BufferLoad, Call, Expr, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.stmt import AssertStmt, BufferRealize, BufferStore, For, Stmt, While
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.hybrid.operation import HybridOp


@dataclass(frozen=True, eq=False)
class LoopNest:
    """Loops that stand directly inside one another, outermost first, and what is inside the innermost."""

    axes: tuple[IterVar, ...]
    body: Stmt


def nests_of(op: HybridOp) -> list[LoopNest]:
    """The nests of `op`, each loop in one of them."""
    return list(_nests(op.body, {axis.var: axis for axis in op.axis}))


def _nests(root: Stmt, axes: dict[Var, IterVar]) -> Iterator[LoopNest]:
    stack = [root]
    while stack:
        node = stack.pop()
        chain = chain_at(node, axes)
        if chain:
            nest = LoopNest(tuple([axes[loop.loop_var] for loop in chain]), chain[-1].body)
            yield nest
            stack.append(nest.body)
        else:
            stack.extend([child for child in reversed(node.child_nodes()) if isinstance(child, Stmt)])


def chain_at(node: Stmt, axes: dict[Var, IterVar]) -> list[For]:
    """The loops over `axes` that begin at `node`, each directly inside the one before."""
    chain: list[For] = []
    while isinstance(node, For) and node.loop_var in axes:
        chain.append(node)
        node = node.body
    return chain


def nest_of(op: HybridOp, axis: IterVar) -> LoopNest:
    """The nest that the loop `axis` stands in."""
    return next(nest for nest in nests_of(op) if axis in nest.axes)


def why_ordered(nest: LoopNest, axes: set[Var], *, together: bool) -> str:
    """Why the iterations of the loops over `axes` must run as they are written; "" if they need not.

    together: the order among them as a whole may change, as reorder does: one of them may run over parts of a sum, if it is
    the only one. Else each of them must be independent.
    """
    if any(isinstance(node, (While, AssertStmt)) or (isinstance(node, Call) and node.op.effect == "opaque")
           for node in post_order(nest.body)):
        return "the loop calls functions, or may end early"
    private = {node.buffer for node in post_order(nest.body) if isinstance(node, BufferRealize)}
    places: dict[Buffer, list[tuple[Expr, ...]]] = {}
    for node in post_order(nest.body):
        if isinstance(node, BufferStore):
            places.setdefault(node.buffer, [])
    for node in post_order(nest.body):
        if isinstance(node, (BufferStore, BufferLoad)) and node.buffer in places:
            places[node.buffer].append(node.indices)
    for buffer, found in places.items():
        if buffer in private:
            continue
        missing = [v.name for v in axes if not any(all(v is index for index in same) for same in zip(*found))]
        one_place = all(structural_equal(a, b) for other in found[1:] for a, b in zip(found[0], other))
        if not one_place and (together or missing):
            return f"{buffer.name} is written and read at different elements in one iteration"
        if len(missing) > (1 if together else 0):
            return f"several iterations of {', '.join(missing)} write the same element of {buffer.name}"
    return ""
