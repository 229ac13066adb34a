"""Choices that both sides of an if_then_else evaluate: they can be computed once, before it.

if_then_else(p, f(e), g(e))     e is an if_then_else itself: otherwise it is emitted within each side, and so on for the choices
                                in it, which doubles the code at each level
"""

from __future__ import annotations

from collections.abc import Callable

from tedsl.ir.expr import Call, Expr, Let
from tedsl.ir.ops import IF_THEN_ELSE


class Certain:
    """Computes the choices (if_then_else) that every evaluation of an expression evaluates. A set of choices is an int with a
    bit for each.

    is_branch: whether a choice is emitted as a branch with separate sides. Other choices count as ordinary nodes, since
    they are emitted once within a block anyway.
    """

    def __init__(self, is_branch: Callable[[Call], bool]) -> None:
        self.is_branch = is_branch
        self.branches: list[Call] = []  # by number; those inside come first
        self.sets: dict[Expr, int] = {}
        self.effects: set[Expr] = set()  # what calls something that may have effects: it stays in its place

    def in_both(self, a: Expr, b: Expr) -> list[Call]:
        """The choices that every evaluation of `a` and every evaluation of `b` evaluates, without those inside another one."""
        left = self.of(a) & self.of(b)
        choices: list[Call] = []
        while left:
            outermost = self.branches[left.bit_length() - 1]
            choices.append(outermost)
            left &= ~self.sets[outermost]
        return choices

    def of(self, root: Expr) -> int:
        """The set of choices that every evaluation of `root` evaluates."""
        stack: list[Expr] = [root]
        while stack:
            node = stack[-1]
            children: list[Expr] = [] if node in self.sets else node.child_nodes()  # type: ignore[assignment]
            pending = [child for child in children if child not in self.sets]
            if pending:
                stack.extend(pending)
                continue
            stack.pop()
            if node not in self.sets:
                self.sets[node] = self._find(node, children)
        return self.sets[root]

    def _find(self, node: Expr, children: list[Expr]) -> int:
        if any(child in self.effects for child in children) or (isinstance(node, Call) and node.op.effect != "pure"):
            self.effects.add(node)
            return 0
        if isinstance(node, Let):  # in its body the variable has a value, not before it
            return self.sets[node.value]
        if isinstance(node, Call) and node.op is IF_THEN_ELSE and self.is_branch(node):
            condition, yes, no = (self.sets[child] for child in children)
            self.branches.append(node)
            return condition | (yes & no) | 1 << (len(self.branches) - 1)
        reached = 0
        for child in children:
            reached |= self.sets[child]
        return reached
