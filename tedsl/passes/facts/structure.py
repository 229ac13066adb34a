"""Numbers expressions by structure, so that comparing many of them costs one walk over each."""

from __future__ import annotations

from typing import Any

from tedsl.ir.expr import Add, Call, Expr, FloatImm, IntImm, Load, Mul, StringImm, Sub, Var
from tedsl.ir.walk.visitor import post_order


class Numbering:
    """Assigns numbers to expressions: `number(e)` is equal for expressions of the same structure over the same variables and
    constants.
    """

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._known: dict[Expr, int] = {}

    def __call__(self, expr: Expr | None) -> int:
        if expr is None:
            return -1
        if expr not in self._known:
            for node in post_order(expr):
                if node not in self._known:
                    key = self._key(node)
                    self._known[node] = self._numbers.setdefault(key, len(self._numbers))  # type: ignore[index]
        return self._known[expr]

    def _key(self, node: Any) -> Any:
        match node:
            case Var():
                return node
            case IntImm() | FloatImm():
                return type(node), node.dtype, repr(node.value)  # repr: 0.0 and -0.0 differ
            case StringImm():
                return StringImm, node.value
        own: Any = None
        if isinstance(node, Call):
            own = node.op
        elif isinstance(node, Load):
            own = node.buffer_var, node.predicate is None
        return type(node), node.dtype, own, tuple(self._known[child] for child in node.child_nodes())

    def distance(self, a: Expr, b: Expr) -> int | None:
        """Returns a - b if the two integer expressions are sums of the same terms and differ by a constant; None if that is not
        evident.
        """
        rest, constant = self.terms(a)
        other, constant_b = self.terms(b)
        return constant - constant_b if rest == other else None

    def factors(self, e: Expr) -> dict[int, int]:
        """Maps the number of each term of a sum to its constant factor."""
        return self.terms(e)[0]

    def terms(self, e: Expr) -> tuple[dict[int, int], int]:
        """Returns `e` as a sum: the number of each term with its constant factor, and a constant."""
        factors: dict[int, int] = {}
        constant = 0
        stack: list[tuple[int, Expr]] = [(1, e)]
        while stack:
            factor, term = stack.pop()
            if isinstance(term, (Add, Sub)):
                stack += [(factor, term.a), (factor if isinstance(term, Add) else -factor, term.b)]
            elif isinstance(term, Mul) and isinstance(term.b, IntImm):
                stack.append((factor * term.b.value, term.a))
            elif isinstance(term, IntImm):
                constant += factor * term.value
            else:
                key = self(term)
                factors[key] = factors.get(key, 0) + factor
                if factors[key] == 0:
                    del factors[key]
        return factors, constant
