"""Write an attribute once, as far outside as it is the same for everything inside.

before:  for (i, 0, n) { for (j, 0, 4) { attr [cop] "scope" = 1 { A[j] = 0 } };  attr [cop] "scope" = 1 { A[i] = 1 } }
after:   attr [cop] "scope" = 1 { for (i, 0, n) { for (j, 0, 4) { A[j] = 0 };  A[i] = 1 } }

Neighbouring statements of a sequence under one attribute share it where the others have another one or none. An attribute stays
inside of the allocation, loop or let around it that binds a variable of its value, and inside of every allocation; branches
share one if both have it.
"""

from __future__ import annotations

import itertools
from typing import Any

from tedsl.ir.expr import Expr
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Allocate, AttrStmt, BufferRealize, For, IfThenElse, LetStmt, SeqStmt, Stmt, seq
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.visitor import uses
from tedsl.record import record


@record(eq=False)
class _Attribute:
    """What a scope says: the value of a key for `node`."""

    node: Any
    value: Expr

    def is_same(self, other: _Attribute | None) -> bool:
        return other is not None and self.node is other.node and structural_equal(self.value, other.value)


_Lifted = tuple[Stmt, _Attribute | None]  # a statement without the attribute that all of it is under, and that attribute


def lift_attributes(func: PrimFunc, key: str) -> PrimFunc:
    """Returns `func` with the attributes of `key` as far outside as they hold for all that is inside."""
    lifter = _Lifter(key)
    return func.with_body(lifter.around(*lifter(func.body)))


class _Lifter:
    def __init__(self, key: str) -> None:
        self.key = key

    def __call__(self, stmt: Stmt) -> _Lifted:
        match stmt:
            case AttrStmt(attr_key=key) if key == self.key:
                return stmt.body, _Attribute(stmt.node, stmt.value)
            case SeqStmt():
                return self.sequence(stmt)
            case IfThenElse(else_case=other) if other is not None:
                return self.branches(stmt)
            case IfThenElse():
                then, attribute = self(stmt.then_case)
                return self.kept(stmt, then_case=then), attribute
            case _ if isinstance(getattr(stmt, "body", None), Stmt):
                return self.inside(stmt)
            case _:
                return stmt, None

    def around(self, stmt: Stmt, attribute: _Attribute | None) -> Stmt:
        return stmt if attribute is None else AttrStmt(attribute.node, self.key, attribute.value, stmt)

    def kept(self, stmt: Stmt, **parts: Stmt) -> Stmt:
        """Returns `stmt` with new parts, itself where they are the same."""
        return stmt if all(getattr(stmt, name) is part for name, part in parts.items()) else stmt.replace(**parts)

    def inside(self, stmt: Any) -> _Lifted:
        body, attribute = self(stmt.body)
        if attribute is not None and self.stays(stmt, attribute):
            return stmt.replace(body=self.around(body, attribute)), None
        return self.kept(stmt, body=body), attribute

    def stays(self, stmt: Stmt, attribute: _Attribute) -> bool:
        """Tells whether the attribute of the body of `stmt` may not stand around it."""
        match stmt:
            case Allocate() | BufferRealize():
                return True
            case For(loop_var=var) | LetStmt(var=var):
                return attribute.node is var or uses(attribute.value, var)
            case AttrStmt(node=node):
                bound = getattr(node, "var", None)
                return bound is not None and uses(attribute.value, bound)
            case _:
                return False

    def branches(self, stmt: IfThenElse) -> _Lifted:
        assert stmt.else_case is not None
        (then, first), (other, second) = self(stmt.then_case), self(stmt.else_case)
        if first is not None and first.is_same(second):
            return self.kept(stmt, then_case=then, else_case=other), first
        if first is None and second is None:
            return self.kept(stmt, then_case=then, else_case=other), None
        return stmt.replace(then_case=self.around(then, first), else_case=self.around(other, second)), None

    def sequence(self, stmt: SeqStmt) -> _Lifted:
        lifted = [self(part) for part in stmt.seq]
        runs = [[*run] for _, run in itertools.groupby(zip(lifted, _run_numbers([a for _, a in lifted])), lambda e: e[1])]
        if len(runs) == 1:
            parts = [part for part, _ in lifted]
            same = all(part is old for part, old in zip(parts, stmt.seq))
            return (stmt if same else seq(*parts)), lifted[0][1]
        return seq(*[self.around(seq(*[part for (part, _), _ in run]), run[0][0][1]) for run in runs]), None


def _run_numbers(attributes: list[_Attribute | None]) -> list[int]:
    """Returns for each statement of a sequence the number of the run of neighbours with the same attribute that it is in."""
    numbers: list[int] = []
    for before, now in zip([None, *attributes], attributes):
        same = (now is None and before is None) if now is None else now.is_same(before)
        numbers.append(numbers[-1] + (not same) if numbers else 0)
    return numbers
