"""The handlers for each kind of statement of a handwritten function, which check the accesses below it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, StringImm, Var
from tedsl.ir.func import Accesses
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.ops import LIKELY
from tedsl.ir.source_line import SCRIPT_LINE
from tedsl.ir.stmt import (
    DATA_INDICES,
    THREADS,
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    While,
    seq,
)
from tedsl.ir.walk.substitute import substitute
from tedsl.lower.checks import marked
from tedsl.lower.written.accesses import AccessChecker
from tedsl.lower.written.demand import asserted, behind
from tedsl.lower.written.known_memory import ZERO, KnownMemory, size_of


class StatementChecker(AccessChecker):
    """Checks the accesses of statements, by a handler for each kind."""

    def stmt(self, stmt: Stmt) -> Stmt:
        handle = HANDLERS.get(type(stmt))
        outer, self.here = self.here, []
        checked = handle(self, stmt) if handle is not None else self.descend(stmt)
        checked = behind(checked, self.here)
        self.here = outer
        if self.may_return and not isinstance(stmt, SeqStmt):  # nothing may be asked before a `ret` that avoids it
            checked, self.demands = asserted(checked, self.demands), []
        return checked


# --- one handler per statement --------------------------------------------------------------------------------------

def _for(c: StatementChecker, s: For) -> Stmt:
    low, extent = c.expr(s.min), c.expr(s.extent)
    return s.replace(min=low, extent=extent, body=c.loop(s.loop_var, s.min, s.extent, s.body))


def _while(c: StatementChecker, s: While) -> Stmt:
    condition = c.expr(s.condition)
    fact = [] if c.depends_on_data(s.condition) else [s.condition]
    with c.inside(*fact, unsure=True) as inner:
        body = c.stmt(s.body)
    return s.replace(condition=condition, body=asserted(body, inner))


def _let(c: StatementChecker, s: LetStmt) -> Stmt:
    value = c.expr(s.value)
    c.analyzer.bind_let(s.var, s.value) if s.value.dtype.is_integer and s.value.dtype.lanes == 1 else None
    by_data = c.depends_on_data(s.value)
    if by_data:
        c.data.add(s.var)
    else:
        c.values[s.var] = substitute(s.value, c.values)
    with c.inside() as inner:
        body = c.stmt(s.body)
    if by_data:
        body = asserted(body, inner)
    else:
        c.demands += [d.with_value(s.var, s.value) for d in inner]
    return s.replace(value=value, body=body)


def _if(c: StatementChecker, s: IfThenElse) -> Stmt:
    condition = c.expr(s.condition)
    then = c.branch(_plain(s.condition), s.then_case)
    other = None if s.else_case is None else c.branch(build.logical_not(_plain(s.condition)), s.else_case)
    return s.replace(condition=condition, then_case=then, else_case=other)


def _plain(condition: Expr) -> Expr:
    """The condition without a `likely` around it."""
    return condition.args[0] if isinstance(condition, Call) and condition.op is LIKELY else condition


def _allocate(c: StatementChecker, s: Allocate) -> Stmt:
    extents = tuple(map(c.expr, s.extents))
    return _with_sizes(c, extents, lambda sizes: _allocated(c, s, sizes))


def _allocated(c: StatementChecker, s: Allocate, sizes: tuple[Expr, ...]) -> Stmt:
    c.table.known[s.buffer_var] = KnownMemory(s.buffer_var.name, s.dtype, size_of(sizes, s.dtype.lanes))
    allocation = s.replace(extents=sizes, condition=c.expr(s.condition))
    return allocation.replace(body=_below(c, s.condition, s.body))


def _below(c: StatementChecker, condition: Expr, body: Stmt) -> Stmt:
    return c.stmt(body) if build.is_true(condition) else c.branch(condition, body)


def _realize(c: StatementChecker, s: BufferRealize) -> Stmt:
    if s.buffer.data in c.table.known:  # that of a parameter: it exists already
        return _below(c, s.condition, s.body)
    ends = tuple(e for r in s.bounds for e in (r.min, r.extent) if e is not None)
    return _with_sizes(c, tuple(map(c.expr, ends)), lambda made: _realized(c, s, made))


def _realized(c: StatementChecker, s: BufferRealize, ends: tuple[Expr, ...]) -> Stmt:
    dims = tuple(zip(ends[::2], ends[1::2]))
    extents = tuple(extent for _, extent in dims)
    if s.buffer.strides:
        extents = (build.product_of_extents(extents[0], s.buffer.strides[0]),)
        room = [build.less_equal(build.mul(e, t), u) for (_, e), t, u in
                zip(dims[1:], s.buffer.strides[1:], s.buffer.strides)]
        room += [build.greater_equal(stride, 0) for stride in s.buffer.strides]
        if not all(map(c.analyzer.can_prove, room)):
            raise LoweringError(f"realize {s.buffer.name}: its strides do not leave room for each dimension",
                                hint="leave the strides out: the memory is compact")
    c.table.known[s.buffer.data] = KnownMemory(s.buffer.name, s.buffer.dtype, size_of(extents, s.buffer.dtype.lanes), ZERO,
                                          s.buffer, dims)
    bounds = tuple(Range.from_min_extent(low, extent) for low, extent in dims)
    return s.replace(bounds=bounds, body=_below(c, s.condition, s.body))


def _with_sizes(c: StatementChecker, sizes: tuple[Expr, ...], make: Callable[[tuple[Expr, ...]], Stmt]) -> Stmt:
    """The statement `make(sizes)`. A size that depends on memory is bound by a let first, so that it is read once."""
    named = {e: Var("size", e.dtype) for e in sizes if c.depends_on_data(e) and not isinstance(e, Var)}
    c.data.update(named.values())
    with c.inside() as inner:
        sized = make(tuple(named.get(e, e) for e in sizes))
    if not named:
        c.demands += inner
        return sized
    sized = asserted(sized, inner)
    for value, var in reversed(named.items()):
        sized = LetStmt(var, value, sized)
    return sized


def _attr(c: StatementChecker, s: AttrStmt) -> Stmt:
    if s.attr_key == SCRIPT_LINE and isinstance(s.value, StringImm):
        outer, c.line = c.line, s.value.value
        checked = c.stmt(s.body)
        c.line = outer
        return s.replace(body=checked) if c.accesses.name_stages else checked  # errors of checks name that line
    if s.attr_key == DATA_INDICES:
        return _trusting(c, s)
    value = c.expr(s.value)
    if s.attr_key in THREADS and isinstance(s.node, IterVar):
        return s.replace(value=value, body=c.loop(s.node.var, build.const(0, s.node.var.dtype), s.value, s.body))
    return s.replace(value=value, body=c.stmt(s.body))


def _trusting(c: StatementChecker, s: AttrStmt) -> Stmt:
    """Check statements whose author vouches for the data-dependent indices into one memory."""
    if not isinstance(s.node, Var) or not isinstance(s.value, StringImm) or s.value.value != "trust":
        raise LoweringError(f"the attribute {DATA_INDICES!r} of {s.node!r} is {s.value!r}", hint="it says of one memory that "
                            f"its indices are in range: ib.scope_attr(a, {DATA_INDICES!r}, 'trust')")
    outer, c.trusted = c.trusted, c.trusted | {s.node}
    checked = c.stmt(s.body)
    c.trusted = outer
    return checked


def _assert(c: StatementChecker, s: AssertStmt) -> Stmt:
    condition = c.expr(s.condition)
    with c.inside(*([] if c.depends_on_data(s.condition) else [s.condition])) as inner:
        body = c.stmt(s.body)
    return s.replace(condition=condition, body=asserted(body, inner))


def _seq(c: StatementChecker, s: SeqStmt) -> Stmt:
    checked = [c.stmt(part) for part in s.seq]
    return s if all(a is b for a, b in zip(checked, s.seq)) else seq(*checked)


def _store(c: StatementChecker, s: Store | BufferStore) -> Stmt:
    checked: Store | BufferStore = c.descend(s)
    predicate = s.predicate if isinstance(s, Store) else None
    named: dict[Var, Expr] = {}
    for place, new in zip(c.table.places(s), c.table.places(checked)):
        if c.is_trusted(s, place) or c.proved(place, None, predicate):
            continue
        if not c.depends_on_data(place.index):
            c.unproved(s, place, [], predicate)
            continue
        if c.accesses is Accesses.DATA_AT_RUN_TIME:
            checked = _stored_at(checked, new.dim, marked(new.index, new.extent))
            continue
        at = Var("at", new.index.dtype)  # computed once: what is tested is what is used
        named[at] = new.index
        c.here.append((c.kept(replace(new, index=at), predicate), c.message(s, place)))
        checked = _stored_at(checked, new.dim, at)
    if not named:
        return checked
    safe, c.here = behind(checked, c.here), []
    for at, value in reversed(named.items()):
        safe = LetStmt(at, value, safe)
    return safe


def _stored_at(store: Store | BufferStore, dim: int | None, at: Expr) -> Store | BufferStore:
    """`store` with index `dim` replaced by `at`; dim None: with the position in flat memory replaced."""
    if isinstance(store, Store):
        return store.replace(index=at)
    if dim is None:
        return Store(store.buffer.data, store.value, at)
    return store.replace(indices=(*store.indices[:dim], at, *store.indices[dim + 1:]))


HANDLERS: dict[type, Callable[[StatementChecker, Any], Stmt]] = {
    For: _for, While: _while, LetStmt: _let, IfThenElse: _if, Allocate: _allocate, BufferRealize: _realize, AttrStmt: _attr,
    AssertStmt: _assert, SeqStmt: _seq, Store: _store, BufferStore: _store,
}
