"""The loops of a hybrid script: which are directly inside one another, and whether they may run in another order.

Iterations of a loop are independent if the index of one dimension depends on the variable of the loop alone and is the same in
every access to a tensor that is written inside: then no two iterations touch one element. Loops may be interchanged if every
tensor is written and read at one place only, and the loops that are not among its indices keep the order of the script.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Add, BufferLoad, Call, Expr, IntImm, Max, Min, Mul, Sub, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.stmt import AssertStmt, BufferRealize, BufferStore, For, Stmt, While
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.record import record


@record(eq=False)
class LoopNest:
    """Loops that are directly inside one another, outermost first, and the statements inside the innermost."""

    axes: tuple[IterVar, ...]
    body: Stmt


def nests_of(op: HybridOp) -> list[LoopNest]:
    """The nests of `op`; each loop is in one of them."""
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
    """The nest that contains the loop over `axis`."""
    holder = next((nest for nest in nests_of(op) if axis in nest.axes), None)
    assert holder is not None, f"{axis.name} is a loop of {op.name}: directives add none"
    return holder


def why_dependent(nest: LoopNest, axis: Var) -> str:
    """The reason why the iterations of the loop over `axis` cannot run at the same time; "" if they can."""
    if why := _effects(nest):
        return why
    for access in _shared_accesses(nest):
        if axis not in access.indexed():
            if not access.at_one_place():
                return f"{access.buffer.name} is written and read at different elements in one iteration"
            return f"several iterations of {axis.name} may write the same element of {access.buffer.name}"
    return ""


def why_ordered(nest: LoopNest, order: Sequence[Collection[Var]], after: Sequence[Collection[Var]]) -> str:
    """The reason why loops in the order `order` cannot be put into the order `after`; "" if they can. Each loop is given as the
    axes that it is derived from.

    Iterations that touch one element of a tensor differ only in axes that are not among its indices. Loops derived from those
    axes keep their order among themselves, so that the accesses to each element keep the order of the script.
    """
    if why := _effects(nest):
        return why
    for access in _shared_accesses(nest):
        if not access.at_one_place():
            return f"{access.buffer.name} is written and read at different elements in one iteration"
        if _is_accumulated(nest.body, access.buffer):
            continue
        carried = {axis.var for axis in nest.axes} - access.indexed()
        before_, after_ = ([loop for loop in loops if not carried.isdisjoint(loop)] for loops in (order, after))
        if any(a is not b for a, b in zip(before_, after_)):
            names = ", ".join(axis.name for axis in nest.axes if axis.var in carried)
            return f"several iterations of {names} may write the same element of {access.buffer.name}"
    return ""


def _effects(nest: LoopNest) -> str:
    for node in post_order(nest.body):
        if isinstance(node, While) or (isinstance(node, Call) and node.op.effect == "opaque") \
                or (isinstance(node, AssertStmt) and not _always_holds(node.condition, nest)):
            return "the loop calls functions, or may end early"
    return ""


def _always_holds(condition: Expr, nest: LoopNest) -> bool:
    """Whether a condition follows from the ranges of the loops, in the nest and inside of it."""
    known = Analyzer()
    for axis in nest.axes:
        assert axis.dom is not None, "a loop of a script has a range"
        known.bind(axis.var, axis.dom)
    for loop in post_order(nest.body):
        if isinstance(loop, For):
            known.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    return known.can_prove(condition)


@record(eq=False)
class _Accesses:
    """The indices of the accesses to a tensor that is live across iterations of the nest."""

    buffer: Buffer
    places: list[tuple[Expr, ...]]

    def indexed(self) -> set[Var]:
        """The variables for which some dimension has, in every access, the same index that depends on no other variable: i, i +
        1, 7 - i.
        """
        return {var for indices in zip(*self.places) if (var := _only_variable(indices[0])) is not None
                and all(structural_equal(index, indices[0]) for index in indices[1:])}

    def at_one_place(self) -> bool:
        return all(structural_equal(a, b) for other in self.places[1:] for a, b in zip(self.places[0], other))


def _only_variable(index: Expr) -> Var | None:
    while isinstance(index, (Add, Sub)):
        if isinstance(index.b, IntImm):
            index = index.a
        elif isinstance(index.a, IntImm):
            index = index.b
        else:
            return None
    return index if isinstance(index, Var) else None


def _shared_accesses(nest: LoopNest) -> list[_Accesses]:
    private = {node.buffer for node in post_order(nest.body) if isinstance(node, BufferRealize)}
    places: dict[Buffer, list[tuple[Expr, ...]]] = {}
    for node in post_order(nest.body):
        if isinstance(node, BufferStore) and node.buffer not in private:
            places.setdefault(node.buffer, [])
    for node in post_order(nest.body):
        if isinstance(node, (BufferStore, BufferLoad)) and node.buffer in places:
            places[node.buffer].append(node.indices)
    return [_Accesses(buffer, accesses) for buffer, accesses in places.items()]


def _is_accumulated(body: Stmt, buffer: Buffer) -> bool:
    """Whether every access of `buffer` is in an update x[i] = x[i] + f, or with *, max, min: a reduction, whose order is
    free.
    """
    stores = [node for node in post_order(body) if isinstance(node, BufferStore) and node.buffer is buffer]
    loads = [node for node in post_order(body) if isinstance(node, BufferLoad) and node.buffer is buffer]
    if len(stores) != 1 or len(loads) != 1 or not isinstance(stores[0].value, (Add, Mul, Max, Min)):
        return False
    return loads[0] is stores[0].value.a or loads[0] is stores[0].value.b
