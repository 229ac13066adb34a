"""Makes one loop of loops of several stages, as `compute_with` asks.

before:  attr "pragma_joined" = "1.B/0" { for (i: 0, 8) { B[i] = f(i) } };  attr ... { for (j: 0, 8) { C[j] = g(B[j]) } }
after:   for (j: 0, 8) { B[j] = f(j);  C[j] = g(B[j]) }

Iteration j of the second then comes before later iterations of the first. That changes no result if no iteration of one touches
an element that another iteration of the other writes; where this is not proved, the loops are refused. What stands between the
loops comes before or after the one that they become, whichever changes nothing. A pointer passed to a call may be one to any
element, and two calls with side effects keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.ops import ADDRESS_OF, PREFETCH
from tedsl.ir.script import shown
from tedsl.ir.stmt import JOINED, Allocate, AttrStmt, For, ForKind, SeqStmt, Stmt, seq
from tedsl.ir.walk.accesses import Access, accesses, is_read
from tedsl.ir.walk.around import Loop, WithoutLets
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.races.may_meet import Axes, may_meet
from tedsl.runtime.faults import FAULT

_HINT = "leave one of the two stages where it was, without compute_with"


def join_loops(func: PrimFunc) -> PrimFunc:
    """Returns `func` with the marked loops joined. Raises LoweringError where that might change a result."""
    if not contains(func.body, JOINED):
        return func
    joiner = _Joiner()
    body = joiner(func.body)
    lonely = [loop for mark, loop in joiner.alone.items() if mark not in joiner.joined]
    if lonely:
        raise LoweringError("compute_with: beside a loop that is to be one with another there is none: the stages are computed "
                            "at different places", about=lonely[0], hint="leave both at the root, or attach both to one loop")
    return func.with_body(body)


class _Joiner(ScopedRewriter):
    """around: the joined loops around the place. alone: the marks of loops that were joined with none so far."""

    def __init__(self) -> None:
        super().__init__()
        self.around: list[Loop] = []
        self.alone: dict[str, Stmt] = {}
        self.joined: set[str] = set()

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, SeqStmt):
            return self._sequence(stmt)
        if _mark(stmt) is not None:
            assert isinstance(stmt, AttrStmt) and isinstance(stmt.value, StringImm)
            self.alone.setdefault(stmt.value.value, stmt.body)
            return self._inside(stmt.body)
        return self.descend(stmt)

    def _inside(self, loop: Stmt) -> Stmt:
        """What has become of a joined loop, whose body may hold others."""
        if not isinstance(loop, For):
            return self.stmt(loop)
        self.around.append(Loop(loop.loop_var, loop.min, loop.extent))
        body = self.stmt(loop.body)
        self.around.pop()
        return loop.replace(body=body)

    def _sequence(self, stmt: SeqStmt) -> Stmt:
        parts = [_pushed(part) for part in stmt.seq]
        at = 0
        while at < len(parts):
            mark = _mark(parts[at])
            second = next((k for k in range(at + 1, len(parts)) if mark is not None and _mark(parts[k]) == mark), None)
            if second is None:
                at += 1
                continue
            self.joined.add(str(mark))
            between, both = parts[at + 1:second], self._joined(parts[at], parts[second])
            if _shared(parts[at], between) is None:
                parts[at:second + 1] = [*between, both]
                continue
            shared = _shared(parts[second], between)
            if shared is not None:
                raise LoweringError(f"compute_with: what stands between the stages {shared}, as both of them do: they cannot "
                                    "be computed together, neither before it nor after it", hint=_HINT)
            parts[at:second + 1] = [both, *between]
        return seq(*[self.stmt(part) for part in parts])

    def _joined(self, first: Stmt, second: Stmt) -> Stmt:
        """Two marked loops as one, with the mark of both."""
        assert isinstance(first, AttrStmt) and isinstance(second, AttrStmt)
        a, b = first.body, second.body
        if not isinstance(a, For) or not isinstance(b, For):
            return second.replace(body=seq(a, b))
        if a.kind != b.kind or a.kind not in (ForKind.SERIAL, ForKind.PARALLEL):
            raise _refused(a, b, f"one is {a.kind.name.lower()}, the other {b.kind.name.lower()}; both are serial, or "
                                 "both parallel")
        if not _is_same(a.min, b.min) or not _is_same(a.extent, b.extent):
            raise _refused(a, b, f"one has {shown(a.extent)} iterations from {shown(a.min)} on, the other "
                                 f"{shown(b.extent)} from {shown(b.min)} on")
        body = substitute(a.body, {a.loop_var: b.loop_var})
        self._must_not_meet(body, b)
        allocations: list[Allocate] = []
        return second.replace(body=b.replace(body=_around(allocations, seq(_peeled(body, allocations),
                                                                          _peeled(b.body, allocations)))))

    def _must_not_meet(self, first: Stmt, loop: For) -> None:
        """Refuses loops of which one touches what another iteration of the other writes, and calls whose order would change."""
        calls = _acting(first), _acting(loop.body)
        if None not in calls:
            raise LoweringError(f"compute_with: the loop {loop.loop_var.name} of both stages cannot be one: the calls of "
                                f"{calls[0]} and of {calls[1]} may have side effects, and their order would change",
                                about=loop, hint=_HINT)
        own, others = _looked_at(first), _looked_at(loop.body)
        axes = Axes([Loop(loop.loop_var, loop.min, loop.extent)], self.around)
        for access in (*own, *others):
            for inner in access.loops:
                axes.loop(inner.var, inner.min, inner.extent)
        for one in own:
            for other in others:
                if may_meet(one, other, distinct=axes):
                    writer, reader = (one, other) if one.writes else (other, one)
                    raise LoweringError(
                        f"compute_with: the loop {loop.loop_var.name} of both stages cannot be one: what one iteration writes "
                        f"to {_name(writer)} another may {'write' if reader.writes else 'read'}", about=loop, hint=_HINT)


def _mark(stmt: Stmt) -> str | None:
    """The name of the loops that are joined with this one; None if it is not marked."""
    if isinstance(stmt, AttrStmt) and stmt.attr_key == JOINED and isinstance(stmt.value, StringImm):
        return stmt.value.value
    return None


def _pushed(stmt: Stmt) -> Stmt:
    """A statement with the attributes around a marked loop around its body instead."""
    if isinstance(stmt, AttrStmt) and stmt.attr_key != JOINED:
        inside = _pushed(stmt.body)
        if _mark(inside) is not None:
            assert isinstance(inside, AttrStmt)
            loop = inside.body
            body = loop.replace(body=stmt.replace(body=loop.body)) if isinstance(loop, For) else stmt.replace(body=loop)
            return inside.replace(body=body)
    return stmt


def _is_same(a: Expr, b: Expr) -> bool:
    return Analyzer().can_prove(build.equal(a, b))


def _refused(a: For, b: For, why: str) -> LoweringError:
    return LoweringError(f"compute_with: the loops {a.loop_var.name} and {b.loop_var.name} cannot be one: {why}", about=b,
                         hint="split the loops of both stages by the same factor, and mark both alike")


def _peeled(stmt: Stmt, found: list[Allocate]) -> Stmt:
    """A statement without the allocations around it, which are added to `found`."""
    while isinstance(stmt, Allocate):
        found.append(stmt)
        stmt = stmt.body
    return stmt


def _around(allocations: Sequence[Allocate], body: Stmt) -> Stmt:
    for one in reversed(allocations):
        body = one.replace(body=body)
    return body


def _looked_at(stmt: Stmt) -> list[Access]:
    """Accesses to memory that is not allocated inside, with lets substituted; a pointer counts as a store of any element."""
    without_lets = WithoutLets()
    at_addresses = {node.args[0] for node in post_order(stmt) if isinstance(node, Call) and node.op is ADDRESS_OF}
    found = (Access(one.memory, one.around, one.statement) if one.node in at_addresses else one
             for one in accesses(stmt, wanted=_is_used))
    return [one.without_lets(without_lets) for one in found if one.allocation() is None]


def _is_used(node: Node) -> bool:
    return is_read(node) or (isinstance(node, Var) and node.dtype.is_handle)


def _shared(loop: Stmt, others: Sequence[Stmt]) -> str | None:
    """What a loop and one of `others` do so that they cannot change places, a predicate of a sentence; None if nothing."""
    own = _looked_at(loop)
    for stmt in others:
        if _acting(loop) is not None and _acting(stmt) is not None:
            return f"calls {_acting(stmt)}, which may have side effects"
        for other in _looked_at(stmt):
            for one in own:
                if one.memory is other.memory and (one.writes or other.writes):
                    return f"uses {_name(one)}"
    return None


def _acting(stmt: Stmt) -> str | None:
    """The name of a function that `stmt` calls and that may have side effects; None if it calls none. In which order checked
    mode finds faults does not matter.
    """
    for node in post_order(stmt):
        if isinstance(node, Call) and node.op.effect == "opaque" and node.op is not PREFETCH:
            name = next((arg.value for arg in node.args[:1] if isinstance(arg, StringImm)), node.op.short)
            if name != FAULT:
                return name
    return None


def _name(access: Access) -> str:
    memory = access.memory
    return memory.name if isinstance(memory, Var) else shown(memory)
