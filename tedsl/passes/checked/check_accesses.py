"""Check every access of memory while the program runs: its place, that what is read was written, that parallel
iterations do not meet.

before:  realize B([0, n]) { B[i] = A[i]; C[i] = B[i + 1] }
after:   realize B([0, n]) { realize B.written([0, n]) { B.written[...] = false;
           if (n <= i) fault("stores B[{}] ...", i)
           B[i] = A[i]; B.written[i] = true
           if (n <= i + 1) fault("reads B[{}] ...", i + 1);  if (!B.written[i + 1]) fault(...)
           C[i] = B[i + 1] } }

Runs over loops with multi-dimensional buffers, before flatten_storage, where an access still has the indices that the
user knows; loops that are flat already are checked by their flat indices. Parallel loops become serial ones, which is the order
in which conflicts show the same each time. A check that can be proved disappears in `simplify`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import INT64
from tedsl.ir.expr import Broadcast, BufferLoad, Call, Expr, Load, Ramp, Shuffle, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.source_line import STAGE_SOURCE
from tedsl.ir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    Store,
    Tensorized,
    While,
    seq,
)
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import fresh_copy
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.checked.accesses import Read, reads_of
from tedsl.passes.checked.memory import Memory, over, with_shadow
from tedsl.passes.facts.threads import scope_of
from tedsl.runtime.faults import ANY, FAULT

SEVERAL = -1  # in a shadow of readers: more than one iteration read the element

Key = Buffer | Var
Place = tuple[Expr, ...]


def check_accesses(func: PrimFunc) -> PrimFunc:
    """`func` with checks of every access; wherever one fails, the function `tedsl.checked.fault` is called.

    Outputs of a schedule (attribute from_legacy_te_schedule) count as unwritten when the kernel starts and must be written
    when it ends.
    """
    checker = _Checker(func)
    body = checker(func.body)
    for memory in checker.outputs:
        assert memory.written is not None
        body = with_shadow(memory.written, build.const(False, "bool"), seq(body, checker.all_written(memory)))
    return func.with_body(body)


@dataclass(eq=False)
class _Parallel:
    """A parallel loop: for each buffer that is written in it and lives longer, who wrote and who read an element."""

    loop: For
    owners: dict[Memory, Buffer] = field(default_factory=dict)
    readers: dict[Memory, Buffer] = field(default_factory=dict)

    def me(self) -> Expr:
        """The number of this iteration, from 1."""
        return build.add(build.cast(INT64, build.sub(self.loop.loop_var, self.loop.min)), build.const(1, INT64))

    def value_of(self, iteration: Expr) -> Expr:
        """The loop variable in iteration number `iteration`; the least integer for several."""
        value = build.add(build.sub(iteration, build.const(1, INT64)), build.cast(INT64, self.loop.min))
        return build.select(build.less(iteration, build.const(0, INT64)), build.const(ANY, INT64), value)

    def meets(self, memory: Memory, verb: str, did: str) -> str:
        """The problem, with gaps for the element and the other iteration."""
        return f"{verb} {_named(memory)}, which another iteration of the parallel loop {self.loop.loop_var.name}, {{}}, {did}"


class _Checker(ScopedRewriter):
    def __init__(self, func: PrimFunc) -> None:
        self.escaped = frozenset(_escaped(func.body))
        self.memories: dict[Key, Memory] = {}
        self.outputs: list[Memory] = []
        self.stage = ""
        self.stands_for_code = False  # in the formula of an intrinsic, which is checked and not run
        self.loops: list[Var] = []
        self.parallel: list[_Parallel] = []
        stored = {_key(node) for node in post_order(func.body) if isinstance(node, (BufferStore, Store))}
        for buffer in func.buffer_map.values():
            span = _span(buffer)
            self.memories[buffer] = Memory(buffer.name, _zeros(buffer.shape), buffer.shape)
            self.memories[buffer.data] = Memory(buffer.name, _zeros((span,)), (span,))  # of loops that are flat already
            for key in (buffer, buffer.data):
                known = buffer.data not in self.escaped and (key is buffer or not buffer.strides)
                if key in stored and func.attrs.get("from_legacy_te_schedule") and known:
                    memory = self.memories[key]
                    memory.written = memory.shadow("written", "bool")
                    self.outputs.append(memory)

    # --- statements ---

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case BufferRealize(buffer=buffer, bounds=bounds):
                memory = Memory(buffer.name, tuple(b.min for b in bounds), tuple(map(_extent, bounds)),
                                scope_of(buffer.data.type_annotation))
                return self.allocated(buffer, buffer.data, memory, stmt)
            case Allocate(buffer_var=var, extents=extents):
                size = functools.reduce(build.mul, extents, build.const(1, "int32"))
                return self.allocated(var, var, Memory(var.name, _zeros((size,)), (size,), scope_of(var.type_annotation)), stmt)
            case AttrStmt(attr_key=key, value=StringImm(value=name), body=body) if key == STAGE_SOURCE:
                outer, self.stage = self.stage, name
                made = self.stmt(body)
                self.stage = outer
                return made
            case Tensorized(formula=formula):
                self.stands_for_code = True
                checks = self.stmt(fresh_copy(formula))
                self.stands_for_code = False
                return seq(checks, stmt)
            case For():
                return seq(*self.reads(stmt.min, stmt.extent), self.loop(stmt))
            case While(condition=condition):
                again = seq(self.descend(stmt.body), *self.reads(condition))
                return seq(*self.reads(condition), stmt.replace(body=again))
            case BufferStore(buffer=buffer, value=value, indices=indices):
                return self.store(stmt, buffer, [value, *indices], _lanes(indices), None)
            case Store(buffer_var=var, value=value, index=index, predicate=predicate):
                inputs = [value, index] if predicate is None else [value, index, predicate]
                return self.store(stmt, var, inputs, _lanes((index,)), predicate)
            case IfThenElse(condition=condition) | AssertStmt(condition=condition):
                return seq(*self.reads(condition), self.descend(stmt))
            case AttrStmt(attr_key="reduce_scope", body=Evaluate(value=combined)):  # nothing comes between these two
                return seq(*self.reads(combined), stmt)
            case LetStmt(value=value) | Evaluate(value=value) | AttrStmt(value=value):
                return seq(*self.reads(value), self.descend(stmt))
            case _:
                return self.descend(stmt)

    def allocated(self, key: Key, data: Var, memory: Memory, stmt: BufferRealize | Allocate) -> Stmt:
        self.memories[key] = self.memories[data] = memory  # statements of te.extern use realized buffers by flat indices
        if data not in self.escaped:
            memory.written = memory.shadow("written", "bool")
        made: Stmt = stmt.replace(body=self.stmt(stmt.body))
        return made if memory.written is None else with_shadow(memory.written, build.const(False, "bool"), made)

    def loop(self, loop: For) -> Stmt:
        """`loop`, serial if it was parallel, with the shadows in which its conflicts show."""
        self.loops.append(loop.loop_var)
        made: Stmt
        if loop.kind != ForKind.PARALLEL:
            made = self.descend(loop)
        else:
            shadows = self.shadows_of(loop)
            self.parallel.append(shadows)
            made = self.descend(loop).replace(kind=ForKind.SERIAL)
            self.parallel.pop()
            for shadow in (*shadows.owners.values(), *shadows.readers.values()):
                made = with_shadow(shadow, build.const(0, INT64), made)
        self.loops.pop()
        return made

    def shadows_of(self, loop: For) -> _Parallel:
        made = _Parallel(loop)
        read = {_key(node) for node in post_order(loop.body) if isinstance(node, (BufferLoad, Load))}
        for node in post_order(loop.body):
            memory = self.memories.get(_key(node)) if isinstance(node, (BufferStore, Store)) else None
            if memory is not None and memory not in made.owners:
                made.owners[memory] = memory.shadow("owner", "int64")
                if _key(node) in read:
                    made.readers[memory] = memory.shadow("reader", "int64")
        return made

    # --- checks ---

    def store(self, stmt: Stmt, key: Key, inputs: Sequence[Expr], places: Sequence[Place], mask: Expr | None) -> Stmt:
        before: list[Stmt] = list(self.reads(*inputs))
        after: list[Stmt] = []
        memory = self.memories.get(key)
        if memory is not None:
            for lane, given in enumerate(places):
                place = memory.unravelled(*given) if isinstance(key, Var) else given
                on = () if mask is None else (_lane(mask, lane),)
                before += [_under(on, check) for check in (*self.inside(memory, place, "stores"), *self.alone(memory, place))]
                after += [_under(on, mark) for mark in self.mark(memory, place)]
        return seq(*before, None if self.stands_for_code else stmt, *after)

    def reads(self, *exprs: Expr) -> Iterator[Stmt]:
        """The checks of what `exprs` read."""
        for read in reads_of(*exprs):
            memory = self.memories.get(_key(read.load))
            if memory is not None:
                for lane, given in enumerate(_places(read)):
                    place = memory.unravelled(*given) if isinstance(read.load, Load) else given
                    mask = read.load.predicate if isinstance(read.load, Load) else None
                    on = read.conditions if mask is None else (*read.conditions, _lane(mask, lane))
                    yield from (_under(on, check) for check in self.read(memory, place))

    def read(self, memory: Memory, place: Place) -> Iterator[Stmt]:
        yield from self.inside(memory, place, "reads")
        if memory.written is not None:
            yield self.fault_if(build.logical_not(memory.at(memory.written, place)),
                                f"reads {_named(memory)}, to which nothing was written before", place)
        for loop in self.parallel:
            if memory in loop.owners:
                owner = memory.at(loop.owners[memory], place)
                yield self.fault_if(_other(owner, loop), loop.meets(memory, "reads", "wrote"), place, loop.value_of(owner))
                if memory in loop.readers:
                    readers = loop.readers[memory]
                    several = build.select(_other(memory.at(readers, place), loop), build.const(SEVERAL, INT64), loop.me())
                    yield memory.set(readers, place, several)

    def inside(self, memory: Memory, place: Place, verb: str) -> Iterator[Stmt]:
        """That each index lies within its dimension."""
        for dim, (index, low, extent) in enumerate(zip(place, memory.mins, memory.extents)):
            high = build.add(low, extent)
            wrong = build.logical_or(build.less(index, low), build.greater_equal(index, high))
            yield self.fault_if(wrong, f"{verb} {_named(memory)}: index {{}} of dimension {dim} is not in [{{}}, {{}})", place,
                                index, low, high)

    def alone(self, memory: Memory, place: Place) -> Iterator[Stmt]:
        """That no other iteration of a parallel loop around wrote or read the element that is stored to."""
        for loop in self.parallel:
            for shadows, did in ((loop.owners, "wrote too"), (loop.readers, "read")):
                if memory in shadows:
                    other = memory.at(shadows[memory], place)
                    yield self.fault_if(_other(other, loop), loop.meets(memory, "stores", did), place, loop.value_of(other))

    def mark(self, memory: Memory, place: Place) -> Iterator[Stmt]:
        """Notes in the shadows that the element was stored to."""
        if memory.written is not None:
            yield memory.set(memory.written, place, build.true())
        for loop in self.parallel:
            if memory in loop.owners:
                yield memory.set(loop.owners[memory], place, loop.me())

    def all_written(self, memory: Memory) -> Stmt:
        """At the end: every element of an output got a value."""
        written = memory.written
        assert written is not None
        self.stage = ""
        return over(memory.extents, lambda place: self.fault_if(
            build.logical_not(BufferLoad(written, place)), f"never writes {_named(memory)}", place))

    def fault_if(self, condition: Expr, problem: str, place: Place, *more: Expr) -> Stmt:
        """Ends the kernel with `problem`, whose gaps are `place` and `more`, if `condition` holds."""
        where = f"\n  in stage {self.stage}" if self.stage else ""
        loops = "\n  loops: " + ", ".join(f"{var.name} = {{}}" for var in self.loops) if self.loops else ""
        values = [build.cast(INT64, value) for value in (*place, *more, *self.loops)]
        call = build.call("tir.call_packed", StringImm(FAULT), StringImm(problem + where + loops), *values, dtype_="int32")
        return IfThenElse(condition, Evaluate(call))


# --- pieces ---

def _key(access: object) -> Key:
    assert isinstance(access, (BufferLoad, BufferStore, Load, Store))
    return access.buffer if isinstance(access, (BufferLoad, BufferStore)) else access.buffer_var


def _named(memory: Memory) -> str:
    return f"{memory.name}[{', '.join('{}' for _ in memory.extents)}]"


def _other(iteration: Expr, loop: _Parallel) -> Expr:
    """Whether a shadow holds another iteration than this one (0: none)."""
    return build.logical_and(build.not_equal(iteration, build.const(0, INT64)), build.not_equal(iteration, loop.me()))


def _under(conditions: Sequence[Expr], stmt: Stmt) -> Stmt:
    for condition in reversed(conditions):
        stmt = IfThenElse(condition, stmt)
    return stmt


def _zeros(shape: Sequence[Expr]) -> Place:
    return tuple(build.const(0, dim.dtype) for dim in shape)


def _extent(bound: object) -> Expr:
    extent: Expr | None = getattr(bound, "extent")  # noqa: B009 - a Range of a realized buffer always has one
    assert extent is not None
    return extent


def _span(buffer: Buffer) -> Expr:
    """The number of elements from the first to the last of a buffer of the caller's."""
    if not buffer.strides:
        return functools.reduce(build.mul, buffer.shape, build.const(1, "int32"))
    steps = [build.mul(build.sub(dim, 1), stride) for dim, stride in zip(buffer.shape, buffer.strides)]
    return functools.reduce(build.add, [*steps, buffer.elem_offset], build.const(1, "int32"))


def _places(read: Read) -> list[Place]:
    load = read.load
    return _lanes(load.indices if isinstance(load, BufferLoad) else (load.index,))


def _lanes(indices: Sequence[Expr]) -> list[Place]:
    """The elements that an access touches, one for each lane."""
    lanes = max((index.dtype.lanes for index in indices), default=1)
    if lanes == 1:
        return [tuple(indices)]
    return [tuple(index if index.dtype.lanes == 1 else _lane(index, lane) for index in indices) for lane in range(lanes)]


def _lane(vector: Expr, lane: int) -> Expr:
    match vector:
        case Ramp(base=base, stride=stride):
            return build.add(base, build.mul(stride, build.const(lane, stride.dtype)))
        case Broadcast(value=value):
            return value
        case _ if vector.dtype.lanes == 1:
            return vector
        case _:
            return Shuffle((vector,), (build.const(lane, "int32"),))


def _escaped(body: Stmt) -> Iterator[Var]:
    """The data of buffers that are handed to code which checks cannot look into."""
    for node in post_order(body):
        if isinstance(node, Call):
            for arg in node.args:
                if isinstance(arg, Var) and arg.dtype.is_handle:
                    yield arg
                elif isinstance(arg, Load) and node.op.name == "tir.address_of":
                    yield arg.buffer_var
                elif isinstance(arg, BufferLoad) and node.op.name == "tir.address_of":
                    yield arg.buffer.data

