"""Replace virtual threads by copies of the statements that depend on them, interleaved within the loops around.

before:  attr [vthread] "virtual_thread" = 2 {
           allocate(L, [4]) { for (k: 0, 8) { S[k] = A[k]; L[0] = S[k*2 + vthread]; B[vthread*8 + k] = L[0] } } }
after:   allocate(L, [8]) { for (k: 0, 8) { S[k] = A[k]; L[0] = S[k*2]; L[4] = S[k*2 + 1]; B[k] = L[0]; B[8 + k] = L[4] } }

Memory whose content differs from copy to copy gets a part for each. A statement without loops is copied if there are fewer than
16 threads; otherwise a loop `vthread.s` is put around it. Threads called "cthread" share no memory that is allocated inside of
them. A statement that is the same for all threads and writes memory that they share runs once: n copies of B[0] += A[k] would
add n times. A reduction across threads is copied with the memory of its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Broadcast, Call, Expr, IntImm, Load, Ramp, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.node import Node
from tedsl.ir.ops import ACCESS_PTR, ALLREDUCE
from tedsl.ir.script import shown
from tedsl.ir.stmt import (
    VIRTUAL,
    Allocate,
    AssertStmt,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    Store,
    Tensorized,
    While,
    is_no_op,
    no_op,
    seq,
)
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.substitute import fresh_copy
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.dependence import Dependence

FEW = 16  # from so many threads on, copies are a loop


def inject_virtual_threads(func: PrimFunc) -> PrimFunc:
    """Replace the virtual threads of `func` by copies of statements or loops; a function without any is returned as it is."""
    if not contains(func.body, VIRTUAL):
        return func
    return func.with_body(_Virtual()(func.body))


class _Virtual(ScopedRewriter):
    """Replaces virtual threads, inner ones first: the copies for an inner thread are statements of the outer one."""

    def stmt(self, stmt: Stmt) -> Stmt:
        stmt = self.descend(stmt) if not isinstance(stmt, (Store, Evaluate)) else stmt
        if not isinstance(stmt, AttrStmt) or stmt.attr_key != VIRTUAL:
            return stmt
        count = build.as_int(stmt.value)
        assert isinstance(stmt.node, IterVar)
        if count is None:
            raise LoweringError(f"the number of virtual threads {stmt.node.name} is {shown(stmt.value)}, which is not a "
                                "constant",
                                hint="split the loop by a constant and bind the outer part", about=stmt.node.name)
        if count <= 0:
            return no_op()
        shared = not stmt.node.thread_tag.startswith("cthread")
        return _Injector(stmt.node.var, count, shared, stmt.body)(stmt.body)


class _Injector:
    """Copies the statements of `body` that depend on the virtual thread `var`, or that write memory of which each thread has a
    part.

    share: memory whose content does not differ among the threads is shared by them.
    """

    def __init__(self, var: Var, count: int, share: bool, body: Stmt) -> None:
        self.var, self.count, self.share = var, count, share
        self.depends = Dependence()
        self.touched = _touched(var, body, self.depends)
        self.strides: dict[Var, Expr] = {}  # of enlarged memory: the elements of one copy

    def differs(self, *exprs: Expr | None) -> bool:
        return any(e is not None and self.depends.on_any(e, self.touched) for e in exprs)

    def __call__(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Store() | Evaluate():
                return self.copies(stmt) if self.is_each(stmt) else stmt
            case Allocate():
                return self.allocation(stmt)
            case Tensorized():
                each = any(self.is_each(part) for part in post_order(stmt) if isinstance(part, Stmt))
                return self.copies(stmt) if each else stmt  # the call and its formula stay together
            case _ if self.differs(*(e for e in stmt.child_nodes() if isinstance(e, Expr))):
                return self.copies(stmt)  # a condition, a bound, a let that differs
            case For() | While() | IfThenElse() | LetStmt() | AttrStmt() | AssertStmt():
                return stmt.map_children(lambda child: self(child) if isinstance(child, Stmt) else child)
            case _:
                return seq(*[self(part) for part in stmt.child_nodes() if isinstance(part, Stmt)])

    def is_each(self, stmt: Stmt) -> bool:
        """Tells whether each thread runs a copy of `stmt` (a store or call): because it depends on the thread, or writes memory
        of which each thread has a part.
        """
        memory: Sequence[Var] = (stmt.buffer_var,) if isinstance(stmt, Store) else ()
        if isinstance(stmt, Evaluate):
            memory = _data_of_calls(stmt.value)
            if not memory and not self.share:
                return not is_no_op(stmt)
        return any(data in self.touched or data in self.strides for data in memory) \
            or self.differs(*(e for e in stmt.child_nodes() if isinstance(e, Expr)))

    def allocation(self, stmt: Allocate) -> Stmt:
        if self.differs(*stmt.extents, stmt.condition):
            return self.copies(stmt)
        if self.share and stmt.buffer_var not in self.touched:
            return stmt.replace(body=self(stmt.body))
        if _is_of_reduction(stmt):
            return self.copies(stmt)
        size: Expr = build.const(stmt.dtype.lanes, "int32")
        for extent in stmt.extents:
            size = build.product_of_extents(size, extent)
        self.strides[stmt.buffer_var] = size
        count = IntImm(stmt.extents[0].dtype if stmt.extents else size.dtype, self.count)
        return stmt.replace(extents=(count, *stmt.extents), body=self(stmt.body))

    def copies(self, stmt: Stmt) -> Stmt:
        """Copies of `stmt`, one for each thread."""
        stmt = _Shifted(self.var, self.strides)(stmt)
        if self.count < FEW and not any(isinstance(node, (For, While)) for node in post_order(stmt)):
            return seq(*[fresh_copy(stmt, {self.var: IntImm(self.var.dtype, k)}) for k in range(self.count)])
        loop = Var(f"{self.var.name}.s", self.var.dtype)
        body = fresh_copy(stmt, {self.var: loop})
        return For(loop, IntImm(loop.dtype, 0), IntImm(loop.dtype, self.count), ForKind.SERIAL, body)


class _Shifted(Rewriter):
    """Moves each access to memory with a part per thread to the part of the thread."""

    def __init__(self, var: Var, strides: dict[Var, Expr]) -> None:
        super().__init__()
        self.var, self.strides = var, strides

    def rewrite(self, node: Any) -> Any:
        match node:
            case Load(buffer_var=v) | Store(buffer_var=v) if v in self.strides:
                return node.replace(index=shifted(node.index, build.mul(self.var, self.strides[v])))
            case Call(op=op, args=(kind, Var() as v, offset, *rest)) if op is ACCESS_PTR and v in self.strides:
                return node.replace(args=(kind, v, shifted(offset, build.mul(self.var, self.strides[v])), *rest))
            case Call(op=op, args=args) if any(isinstance(arg, Var) and arg in self.strides for arg in args):
                name = next(arg.name for arg in args if isinstance(arg, Var) and arg in self.strides)
                raise LoweringError(f"{op.name} takes the whole of {name}, and each virtual thread {self.var.name} has a part "
                                    "of it", hint="leave the loop unbound instead of binding it to virtual threads",
                                    about=self.var.name)
            case _:
                return node


def shifted(index: Expr, offset: Expr) -> Expr:
    """The sum index + offset, where `index` may be a vector; a ramp stays a ramp."""
    offset = build.cast(index.dtype.element, offset)
    if isinstance(index, Ramp):
        return Ramp(build.add(index.base, offset), index.stride, index.lanes)
    return build.add(index, Broadcast(offset, index.dtype.lanes) if index.dtype.lanes > 1 else offset)


def _is_of_reduction(stmt: Allocate) -> bool:
    """Whether memory holds the results of reductions across threads, and what is around them has no loops or memory of its own:
    each virtual thread reduces by itself, one after the other.
    """
    parts = list(post_order(stmt.body))
    return any(isinstance(node, Call) and node.op is ALLREDUCE and stmt.buffer_var in node.args for node in parts) \
        and not any(isinstance(node, (For, While, Allocate)) for node in parts)


def _touched(var: Var, body: Stmt, depends: Dependence) -> set[Var]:
    """Returns the variables and the memory whose values differ from thread to thread."""
    affects: dict[Var, set[Var]] = {}
    _collect(body, frozenset(), depends, affects)
    touched, pending = {var}, [var]
    while pending:
        for other in affects.get(pending.pop(), ()):
            if other not in touched:
                touched.add(other)
                pending.append(other)
    return touched


def _collect(stmt: Stmt, around: frozenset[Var], depends: Dependence, affects: dict[Var, set[Var]]) -> None:
    """Records in `affects` the variables and memory that depend on each variable. around: the variables that decide whether
    `stmt` runs, and the values of lets around it: where they differ, each thread runs all of it, with memory of its own.
    """
    def into(target: Var, *exprs: Expr | None) -> None:
        for source in around.union(*(depends(e) for e in exprs if e is not None)):
            affects.setdefault(source, set()).add(target)

    match stmt:
        case Store(buffer_var=v):
            into(v, stmt.value, stmt.index, stmt.predicate)
        case LetStmt(var=v):
            into(v, stmt.value)
            around |= depends(stmt.value)
        case For(loop_var=v):
            into(v, stmt.min, stmt.extent)
            around |= depends(stmt.min) | depends(stmt.extent)
        case Allocate(buffer_var=v):
            into(v, *stmt.extents, stmt.condition)
        case IfThenElse() | While():
            around |= depends(stmt.condition)
        case Evaluate():
            for data in _written_by_calls(stmt.value):
                into(data, stmt.value)
    for child in stmt.child_nodes():
        if isinstance(child, Stmt):
            _collect(child, around, depends, affects)


def _data_of_calls(root: Node) -> list[Var]:
    """The data pointers that calls with side effects get."""
    calls = [node for node in post_order(root) if isinstance(node, Call) and node.op.effect == "opaque"]
    return [arg for call in calls for arg in post_order(call) if isinstance(arg, Var) and arg.dtype.is_handle]


def _written_by_calls(root: Node) -> list[Var]:
    """The data pointers that calls with side effects may write through: all but those of accesses that only read."""
    found: list[Var] = []
    todo: list[Node] = [node for node in post_order(root) if isinstance(node, Call) and node.op.effect == "opaque"]
    while todo:
        node = todo.pop()
        if isinstance(node, Call) and node.op is ACCESS_PTR and build.as_int(node.args[4]) == Buffer.READ:
            continue
        if isinstance(node, Var) and node.dtype.is_handle:
            found.append(node)
        todo.extend(node.child_nodes())
    return found
