"""Fill the memory of the next iteration while that of this one is used, as `double_buffer` asks.

before:  for (i: 0, n) { allocate B[s] { attr [B] "double_buffer_scope" { B[..] = A[i, ..] }  C[i] = f(B[..]) } }
after:   allocate B[2, s] { B[..] = A[0, ..]
           for (i: 0, n - 1) { B[((i + 1) % 2)*s + ..] = A[i + 1, ..];  C[i] = f(B[(i % 2)*s + ..]) }
           C[n - 1] = f(B[((n - 1) % 2)*s + ..]) }

The last iteration is peeled off, for no iteration follows whose memory could be filled. split_loop: the number of iterations in
one step of the loop, which makes the indices of the halves constant; 0 keeps one loop with `if (i + 1 < n)` around the filling.
A loop that may have no iteration is guarded by `if (0 < n)`, together with its first filling.

Where the filling cannot come early (it reads what the loop itself writes, or stands under a condition; the loop runs in
parallel, or has vanished because it had one iteration) the memory stays single: the result is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, IntImm, Load, Ramp, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Allocate, AttrStmt, For, ForKind, IfThenElse, SeqStmt, Stmt, Store, is_no_op, no_op, seq
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.config import DoubleBufferConfig
from tedsl.passes.facts.memory_uses import Uses, uses_of
from tedsl.passes.facts.threads import as_loop
from tedsl.passes.folding import fold_node, folded_copy

SCOPE, WRITE = "double_buffer_scope", "double_buffer_write"


def inject_double_buffer(func: PrimFunc, *, options: DoubleBufferConfig = DoubleBufferConfig(),
                         apart: bool = False) -> PrimFunc:
    """Returns `func` with two copies of the memory that is marked, filled in turn.

    apart: whether no two arrays of the caller overlap, which the attribute "tir.noalias" says too.
    """
    if not contains(func.body, SCOPE):
        return func
    noalias = apart or bool(func.attrs.get("tir.noalias", False))
    given = {buffer.data for buffer in func.buffers}
    body = _Injector(max(options.split_loop, 0), set() if noalias else given)(func.body)
    return func.with_body(_Unmarked()(body))


@dataclass(eq=False)
class _Found:
    """The allocations directly in the body of a loop, and the statements that fill the marked ones."""

    allocations: dict[Var, Allocate] = field(default_factory=dict)
    fillings: dict[AttrStmt, tuple[Var, ...]] = field(default_factory=dict)

    def search(self, stmt: Stmt) -> None:
        match stmt:
            case SeqStmt():
                for part in stmt.seq:
                    self.search(part)
            case Allocate():
                self.allocations[stmt.buffer_var] = stmt
                self.search(stmt.body)
            case AttrStmt(attr_key=key, node=Var()) if key == SCOPE:
                self.fillings[stmt] = _marked(stmt)
            case AttrStmt() if as_loop(stmt, blocks=True) is None:
                self.search(stmt.body)


def _marked(stmt: AttrStmt) -> tuple[Var, ...]:
    """Returns the marked memory that `stmt` fills: a stage of several outputs has a mark for each."""
    memory: list[Var] = []
    at: Stmt = stmt
    while isinstance(at, AttrStmt) and at.attr_key == SCOPE and isinstance(at.node, Var):
        memory.append(at.node)
        at = at.body
    return tuple(memory)


class _Injector(ScopedRewriter):
    def __init__(self, split: int, may_overlap: set[Var]) -> None:
        self.split, self.may_overlap = split, may_overlap

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        done = self.descend(stmt)
        if not isinstance(done, For) or done.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            return done
        contents = _Found()
        contents.search(done.body)
        fillings = self.possible(done, contents)
        return _Doubled(done, contents, fillings, self.split).build() if fillings else done

    def possible(self, loop: For, found: _Found) -> dict[AttrStmt, tuple[Var, ...]]:
        """Returns those fillings that can be done one iteration ahead, each with the memory that it fills."""
        chosen = {stmt: marked for stmt, marked in found.fillings.items()
                  if all(v in found.allocations and _is_fixed(found.allocations[v], loop) for v in marked)}
        while chosen:
            doubled = {v for marked in chosen.values() for v in marked}
            others = uses_of(_without(loop.body, chosen))
            late = [stmt for stmt in chosen if self.depends(uses_of(stmt), others, doubled)]
            if not late:
                break
            for stmt in late:
                del chosen[stmt]
        return chosen

    def depends(self, filling: Uses, others: Uses, doubled: set[Var]) -> bool:
        """Tells whether a filling reads memory that the rest of the loop writes, or writes memory other than `doubled`."""
        if filling.calls or filling.written - doubled - filling.allocated:
            return True
        overlap = self.may_overlap if others.written & self.may_overlap else set()
        return bool(filling.read & (others.written | overlap) - doubled)


def _is_fixed(node: Allocate, loop: For) -> bool:
    """Tells whether the memory has the same size in every iteration, so that it can be allocated around the loop."""
    inside = {n.loop_var for n in post_order(loop) if isinstance(n, For)}
    sizes = [n for extent in (*node.extents, node.condition) for n in post_order(extent)]
    return not any(n in inside or isinstance(n, (Load, Call)) for n in sizes)


def _without(body: Stmt, fillings: dict[AttrStmt, tuple[Var, ...]]) -> Stmt:
    return _Replacing(dict.fromkeys(fillings, no_op()), set())(body)


class _Replacing(ScopedRewriter):
    """Replaces statements and removes allocations."""

    def __init__(self, instead: dict[Any, Stmt], allocated: set[Var]) -> None:
        self.instead, self.allocated = instead, allocated

    def stmt(self, stmt: Stmt) -> Stmt:
        if stmt in self.instead:
            return self.instead[stmt]
        match stmt:
            case Allocate(buffer_var=v, body=body) if v in self.allocated:
                return self.stmt(body)
            case SeqStmt():
                return seq(*[self.stmt(part) for part in stmt.seq])
            case Allocate() | AttrStmt():
                return self.descend(stmt)
            case _:
                return stmt


class _Doubled:
    """Rebuilds one loop with its fillings done one iteration ahead."""

    def __init__(self, loop: For, found: _Found, fillings: dict[AttrStmt, tuple[Var, ...]], split: int) -> None:
        self.loop, self.fillings, self.split = loop, fillings, split
        self.memory = {v: found.allocations[v] for marked in fillings.values() for v in marked}
        self.places = {f"{SCOPE}.{k}": stmt for k, stmt in enumerate(fillings)}
        markers: dict[Any, Stmt] = {stmt: AttrStmt(loop.loop_var, key, build.const(0, "int32"), no_op())
                                    for key, stmt in self.places.items()}
        self.frame = self.halved(_Replacing(markers, set(self.memory))(loop.body), loop.loop_var)

    def build(self) -> Stmt:
        loop, one = self.loop, build.const(1, self.loop.loop_var.dtype)
        count = build.as_int(loop.extent)
        if count is not None and count <= 0:
            return no_op()
        first = seq(*[self.filled(stmt, loop.min) for stmt in self.fillings])
        last = build.sub(build.add(loop.min, loop.extent), one)
        stmt = seq(first, *(self.guarded() if self.split == 0 else (*self.steps(), self.at(last, fill=False))))
        if count is None:
            stmt = IfThenElse(build.less(build.const(0, loop.extent.dtype), loop.extent), stmt)
        for node in reversed(self.memory.values()):
            two = IntImm(node.extents[0].dtype if node.extents else one.dtype, 2)
            stmt = node.replace(extents=(two, *node.extents), body=stmt)
        return stmt

    def guarded(self) -> tuple[Stmt]:
        """Returns one loop with the filling for the next iteration under a condition."""
        loop = self.loop
        following = build.add(loop.loop_var, 1)
        some = build.less(following, build.add(loop.min, loop.extent))
        return (loop.replace(body=self.filling(following, some)),)

    def steps(self) -> list[Stmt | None]:
        """Returns the iterations except the last: a loop of `split` iterations per step, then the remaining ones."""
        loop, of = self.loop, self.loop.loop_var.dtype
        rest, factor = build.sub(loop.extent, 1), build.const(self.split, of)
        whole = build.floordiv(rest, factor)
        outer = Var(f"{loop.loop_var.name}.outer", of)
        copies = [self.at(build.add(loop.min, build.add(build.mul(outer, factor), k))) for k in range(self.split)]
        parts: list[Stmt | None] = [loop.replace(loop_var=outer, min=build.const(0, of), extent=whole, body=seq(*copies))]
        if build.as_int(whole) == 0:
            parts = []
        done = build.mul(whole, factor)
        for k in range(self.split - 1):
            at = build.add(done, k)
            some = build.less(at, rest)
            if build.as_int(some) != 0:
                step = self.at(build.add(loop.min, at))
                parts.append(step if build.is_true(some) else IfThenElse(some, step))
        return parts

    def at(self, value: Expr, *, fill: bool = True) -> Stmt:
        """Returns the body for one value of the loop variable; fill: with the filling for the next value."""
        following = build.add(value, 1)
        return folded_copy(self.filling(following, build.const(fill, "bool")), {self.loop.loop_var: value})

    def filling(self, following: Expr, some: Expr) -> Stmt:
        """Returns the body in which, if the condition `some` holds, the memory is filled for iteration `following`."""
        fillings = {}
        for key, stmt in self.places.items():
            filled = fold_node(IfThenElse(some, self.filled(stmt, following)))
            fillings[key] = filled if is_no_op(filled) else self.written(stmt, filled)
        return _Filling(fillings)(self.frame)

    def filled(self, stmt: AttrStmt, value: Expr) -> Stmt:
        """Returns `stmt`, a filling, for the loop variable `value`, storing into the half of that iteration."""
        body: Stmt = stmt
        while isinstance(body, AttrStmt) and body.attr_key == SCOPE:
            body = body.body
        return folded_copy(self.halved(body, self.loop.loop_var), {self.loop.loop_var: value})

    def written(self, stmt: AttrStmt, body: Stmt) -> Stmt:
        for v in reversed(self.fillings[stmt]):
            body = AttrStmt(v, WRITE, build.const(1, "int32"), body)
        return body

    def halved(self, stmt: Stmt, value: Expr) -> Stmt:
        """Returns `stmt` with every access to the doubled memory moved to the half of iteration `value`."""
        count = build.sub(value, self.loop.min)
        half = build.floormod(count, build.const(2, count.dtype))
        return _Halves({v: _scaled(half, node) for v, node in self.memory.items()})(stmt)  # type: ignore[no-any-return]


def _scaled(half: Expr, node: Allocate) -> Expr:
    size: Expr = build.const(node.dtype.lanes, half.dtype)
    for extent in node.extents:
        size = build.product_of_extents(size, extent)
    return build.mul(half, size) if size.dtype is half.dtype else build.mul(build.cast(size.dtype, half), size)


class _Halves(Rewriter):
    def __init__(self, offsets: dict[Var, Expr]) -> None:
        super().__init__()
        self.offsets = offsets

    def rewrite(self, node: Any) -> Any:
        match node:
            case Load(buffer_var=v) | Store(buffer_var=v) if v in self.offsets:
                return node.replace(index=_shifted(node.index, self.offsets[v]))
            case Call(args=(kind, Var() as v, offset, extent, mask)) if v in self.offsets:
                return node.replace(args=(kind, v, build.add(offset, build.cast(offset.dtype, self.offsets[v])), extent, mask))
            case _:
                return node


def _shifted(index: Expr, offset: Expr) -> Expr:
    if isinstance(index, Ramp):
        return Ramp(_shifted(index.base, offset), index.stride, index.lanes)
    return build.add(build.cast(index.dtype.element, offset), index)


class _Filling(ScopedRewriter):
    """Replaces the markers by the fillings."""

    def __init__(self, instead: dict[str, Stmt]) -> None:
        self.instead = instead

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case AttrStmt(attr_key=key) if key in self.instead:
                return self.instead[key]
            case SeqStmt():
                return seq(*[self.stmt(part) for part in stmt.seq])
            case Allocate() | AttrStmt():
                return self.descend(stmt)
            case _:
                return stmt


class _Unmarked(Rewriter):
    """Removes the marks that are left over."""

    def rewrite(self, node: Any) -> Any:
        return node.body if isinstance(node, AttrStmt) and node.attr_key == SCOPE else node
