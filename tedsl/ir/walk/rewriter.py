"""Rewriters of IR: `Rewriter` if the replacement depends on the node alone, `ScopedRewriter` if it depends on the place."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from tedsl.ir.expr import Expr
from tedsl.ir.node import Node
from tedsl.ir.stmt import Stmt
from tedsl.ir.walk.contents import contents_of, mask_of
from tedsl.ir.walk.fresh_stack import LEVELS, is_deep, on_fresh_stack
from tedsl.ir.walk.visitor import ENDS, LEAVES

N = TypeVar("N", bound=Node)


class _Results(dict[Any, Any]):
    """Maps nodes to what they become: those that are not there to themselves."""

    def __missing__(self, node: Any) -> Any:
        return node


class Rewriter:
    """Rebuilds a DAG bottom-up with an explicit stack, each shared node once. Subclasses override `rewrite`.

    kinds: of the nodes that `rewrite` may replace, as `contains` takes them; what has none of them is left alone. Empty: any.
    """

    kinds: ClassVar[tuple[object, ...]] = ()

    def __init__(self) -> None:
        self._done: dict[Node, Node] = _Results()  # valid because a rewrite depends on the node alone, not on its place

    def __call__(self, root: Any) -> Any:
        done, wanted = self._done, mask_of(self.kinds)
        own_way = None if type(self).rebuilt is Rewriter.rebuilt else self.rebuilt  # a call less for most rewriters
        stack = [root] if not wanted or contents_of(root) & wanted else []
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            pending: list[Any] = []
            for child in node.child_nodes():
                if child in done or (wanted and not child._contents & wanted):
                    continue
                if not pending and type(child) in LEAVES:  # at once: nothing is below them
                    done[child] = self.rewrite(child if own_way is None else own_way(child))
                else:
                    pending.append(child)
            if pending:
                pending.reverse()
                stack.extend(pending)
            else:
                stack.pop()
                done[node] = self.rewrite(node.map_children(done.__getitem__) if own_way is None else own_way(node))
        return done[root]

    def rebuilt(self, node: Any) -> Any:
        """`node` with its rewritten children."""
        return node.map_children(self._done.__getitem__)

    def rewrite(self, node: Any) -> Any:
        """The replacement of `node`, whose children are already rewritten; by default itself."""
        return node


class ScopedRewriter:
    """Rewrites statements from the outside in, so that a subclass knows the loops and conditions around each place.

    Subclasses override `stmt` for the kinds that they care about and call `descend` for the others and for the parts;
    `expr` gets every expression of a statement (also the bounds of loops), by default unchanged.
    """

    _depth = 0  # of the statement that is being rewritten

    def __call__(self, root: Stmt) -> Stmt:
        return self.stmt(root)

    def stmt(self, stmt: Stmt) -> Stmt:
        return self.descend(stmt)

    def expr(self, expr: Expr) -> Expr:
        return expr

    def descend(self, node: N) -> N:
        """`node` with its children rewritten by `stmt` and `expr`."""
        return node.map_children(self._child)

    def _child(self, child: Node) -> Node:
        if isinstance(child, Stmt):
            self._depth += 1
            here = self._depth % LEVELS or type(child) in ENDS or not is_deep()  # a thread takes more than most stores
            made = self.stmt(child) if here else on_fresh_stack(self.stmt, child)
            self._depth -= 1
            return made
        if isinstance(child, Expr):
            return self.expr(child)
        return self.descend(child)  # ranges
