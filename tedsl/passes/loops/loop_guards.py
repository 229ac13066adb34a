"""The conditions inside of a loop by which it may be split."""

from __future__ import annotations

from tedsl.ir import build
from tedsl.ir.expr import NE, Broadcast, Call, Expr, Let, Load, Select
from tedsl.ir.node import Node
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY
from tedsl.ir.stmt import For, IfThenElse, LetStmt, Stmt, Store
from tedsl.ir.walk.contents import MASKED, contains
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.conjunctions import conjuncts, is_likely, mask_parts, without_likely
from tedsl.passes.facts.dependence import Dependence
from tedsl.passes.facts.threads import as_loop
from tedsl.record import record


@record
class Guard:
    """A condition inside of a loop that depends on its variable.

    condition: without its mark. inner: the loops between the loop and the guard, outermost first. from_user: a condition that
    users write, which is no sign that it nearly always holds. fails: what is looked for are iterations in which it fails.
    """

    condition: Expr
    inner: tuple[For, ...]
    from_user: bool
    fails: bool = False

    def decided(self) -> Expr:
        """Returns the condition's value in the iterations that are looked for."""
        value = build.const(not self.fails)
        return value if self.condition.dtype.lanes == 1 else Broadcast(value, self.condition.dtype.lanes)


def guards_of(loop: For, masks: bool, selects: bool, depends: Dependence, hinted: bool) -> list[Guard]:
    """Returns the guards in `loop` that depend on its variable, each with the loops around it; guards of stores first.

    masks: also predicates of accesses and conditions of if_then_else. selects: also marked conditions of selects. hinted: also
    the conditions of branches, selects and if_then_else that are not marked.

    A guard that uses a variable bound by a let inside the loop is left out: its range is not known here.
    """
    guards: list[Guard] = []
    later: list[Guard] = []
    stack: list[tuple[Node, tuple[For, ...]]] = [(loop.body, ())]
    seen: set[int] = set()
    masks, selects, unmarked = masks or hinted, selects or hinted, (Select,) if hinted else ()
    while stack:
        node, inner = stack.pop()
        if id(node) in seen or not contains(node, IfThenElse, IF_THEN_ELSE, MASKED, LIKELY, *unmarked):
            continue
        seen.add(id(node))
        conditions: list[Expr] = []
        if isinstance(node, IfThenElse) or (selects and isinstance(node, Select)):
            conditions = [without_likely(part) for part in conjuncts(node.condition) if hinted or is_likely(part)]
        elif masks and isinstance(node, (Store, Load)) and node.predicate is not None:
            conditions = mask_parts(node.predicate)
        elif masks and isinstance(node, Call) and node.op is IF_THEN_ELSE:
            conditions = mask_parts(node.args[0])
        for condition in conditions:
            if loop.loop_var in depends(condition):
                from_user = isinstance(node, Expr) and not isinstance(node, Select)  # of those with a hint it does not matter
                (later if from_user else guards).append(Guard(condition, inner, from_user, isinstance(condition, NE)))
        inside = node if isinstance(node, For) else as_loop(node, blocks=True)
        if inside is not None:
            inner = (*inner, inside)
        if masks or selects or isinstance(node, Stmt):
            stack.extend((child, inner) for child in reversed(node.child_nodes()))
    if not (guards or later) or not contains(loop.body, LetStmt, Let):
        return guards + later
    bound = {n.var for n in post_order(loop.body) if isinstance(n, (LetStmt, Let))}
    return [guard for guard in guards + later if bound.isdisjoint(depends(guard.condition))]
