"""Check every access to memory while the program runs: that it is in bounds, that what it reads was written, and that
iterations of parallel loops and blocks of handwritten launches do not touch one element.

before:  realize B([0, n]) { B[i] = A[i]; C[i] = B[i + 1] }
after:   realize B([0, n]) { realize B.written([0, n]) { B.written[...] = false;
           if (n <= i) fault("stores B[{}] ...", i)
           B[i] = A[i]; B.written[i] = true
           if (n <= i + 1) fault("reads B[{}] ...", i + 1);  if (!B.written[i + 1]) fault(...)
           C[i] = B[i + 1] } }

Runs over loops with multi-dimensional buffers, before flatten_storage, where an access still has the indices that the
user knows; loops that are flat already are checked by their flat indices. Parallel loops become serial, so that a conflict is
found in the same order each time. A check that can be proved disappears in `simplify`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import INT64
from tedsl.ir.expr import BufferLoad, Expr, Load, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.source_line import READ_SOURCE, SCRIPT_LINE, STAGE_SOURCE
from tedsl.ir.stmt import (
    EXTERN_SCOPE,
    THREADS,
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
from tedsl.ir.walk import accesses as walk
from tedsl.ir.walk.accesses import memory_of
from tedsl.ir.walk.around import WithoutLets
from tedsl.ir.walk.lanes import lane_of, lanes_of
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import fresh_copy
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.checked.handed_out import handed_out
from tedsl.passes.checked.iterations import SEVERAL, Blocks, Iterations, Together, blocks_of
from tedsl.passes.checked.shadows import CheckedMemory, Indices, Key, over, with_shadow
from tedsl.passes.checked.windows import Window, binds_of, unbound, window_of
from tedsl.passes.facts.threads import WRITTEN, has_launch, launched, scope_of
from tedsl.runtime.faults import FAULT

NO = build.const(False, "bool")


def check_accesses(func: PrimFunc) -> PrimFunc:
    """Add a check of every access to `func`; where one fails, the function `tedsl.checked.fault` is called.

    Outputs of a schedule (attribute from_legacy_te_schedule) count as unwritten when the kernel starts and must be written
    when it ends.
    """
    checker = Checker(func)
    body = checker(func.body)
    for memory in checker.outputs:
        assert memory.written is not None
        body = with_shadow(memory.written, NO, seq(body, checker.all_written(memory)))
    return func.with_body(body)


class _Element(NamedTuple):
    """The element that an access touches: the condition under which it is known, its bounds checks, and the statement that
    records a store to it.
    """

    place: Indices
    on: tuple[Expr, ...]
    checks: Sequence[Stmt] = ()
    marks: Sequence[Stmt] = ()


class Checker(ScopedRewriter):
    def __init__(self, func: PrimFunc) -> None:
        self.escaped = frozenset(handed_out(func.body))
        self.memories: dict[Key, CheckedMemory] = {}
        self.outputs: list[CheckedMemory] = []
        self.stage = self.line = ""
        self.inlined: dict[CheckedMemory, str] = {}  # of memory that formulas inlined into this stage read: whose these are
        self.formula: dict[CheckedMemory, Expr] | None = None  # in one that is checked and not run: of which memories, and when
        self.whole: dict[Key, Key] = {}  # of a buffer that stands for a region of another one: that one
        for window, buffer in binds_of(func.body):
            self.whole[window] = self.whole[window.data] = buffer
        self.windows: dict[Key, Window] = {}
        self.loops: list[Var] = []
        self.parallel: list[Together] = []
        self.blocks: Blocks | None = None  # of the kernel around
        self.by_hand = not func.attrs.get("from_legacy_te_schedule")
        self.in_kernel = False
        stored = {memory_of(node) for node in post_order(func.body) if isinstance(node, (BufferStore, Store))}
        for buffer in func.buffer_map.values():
            span = _span(buffer)
            self.memories[buffer] = CheckedMemory(buffer.name, _zeros(buffer.shape), buffer.shape)
            self.memories[buffer.data] = CheckedMemory(buffer.name, _zeros((span,)), (span,))  # of loops that are flat already
            for key in (buffer, buffer.data):
                known = buffer.data not in self.escaped and (key is buffer or not buffer.strides)
                if key in stored and func.attrs.get("from_legacy_te_schedule") and known:
                    memory = self.memories[key]
                    memory.written = memory.shadow(WRITTEN, "bool")
                    self.outputs.append(memory)

    # --- statements ---

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case BufferRealize(buffer=buffer, bounds=bounds):
                memory = CheckedMemory(buffer.name, tuple(b.min for b in bounds), tuple(map(_extent, bounds)),
                                scope_of(buffer.data.type_annotation))
                return self.allocated(buffer, buffer.data, memory, stmt)
            case Allocate(buffer_var=var, extents=extents):
                size = functools.reduce(build.mul, extents, build.const(stmt.dtype.lanes, "int32"))
                memory = CheckedMemory(var.name, _zeros((size,)), (size,), scope_of(var.type_annotation))
                return self.allocated(var, var, memory, stmt)
            case AttrStmt(attr_key=key, value=StringImm(value=name), body=body) if key == STAGE_SOURCE:
                outer, self.stage, inlined, self.inlined = self.stage, name, self.inlined, {}
                checked = self.stmt(body)
                self.stage, self.inlined = outer, inlined
                return checked
            case AttrStmt(attr_key=key, node=Buffer() as buffer, value=StringImm(value=name), body=body) if key == READ_SOURCE:
                if buffer in self.memories:
                    self.inlined[self.memories[buffer]] = name
                return self.stmt(body)
            case AttrStmt(attr_key=key, value=StringImm(value=line), body=body) if key == SCRIPT_LINE:
                before, self.line = self.line, line
                checked = self.stmt(body)
                self.line = before
                return checked
            case AttrStmt(attr_key=key, body=body) if key == EXTERN_SCOPE:
                return stmt.replace(body=self.written_by_hand(body))
            case AttrStmt(attr_key=key, node=IterVar(var=var)) if key in THREADS and var not in self.loops:
                self.loops.append(var)
                checked = self.launch(stmt)
                self.loops.pop()
                return seq(*self.reads(stmt.value), checked)
            case Tensorized():
                return self.intrinsic(stmt)
            case For():
                return seq(*self.reads(stmt.min, stmt.extent), self.loop(stmt))
            case While(condition=condition):
                again = seq(self.descend(stmt.body), *self.reads(condition))
                return seq(*self.reads(condition), stmt.replace(body=again))
            case BufferStore(buffer=buffer, value=value, indices=indices):
                return self.store(stmt, buffer, [value, *indices], lanes_of(indices), None)
            case Store(buffer_var=var, value=value, index=index, predicate=predicate):
                inputs = [value, index] if predicate is None else [value, index, predicate]
                return self.store(stmt, var, inputs, lanes_of((index,)), predicate)
            case IfThenElse(condition=condition) | AssertStmt(condition=condition):
                return seq(*self.reads(condition), self.descend(stmt))
            case AttrStmt(attr_key="reduce_scope", body=Evaluate(value=combined)):  # nothing comes between these two
                return seq(*self.reads(combined), stmt)
            case LetStmt(value=value) | Evaluate(value=value) | AttrStmt(value=value):
                return seq(*self.reads(value), self.descend(stmt))
            case _:
                return self.descend(stmt)

    def allocated(self, key: Key, data: Var, memory: CheckedMemory, stmt: BufferRealize | Allocate) -> Stmt:
        self.memories[key] = self.memories[data] = memory  # statements of te.extern use realized buffers by flat indices
        if data not in self.escaped:
            memory.written = memory.shadow(WRITTEN, "bool")
        checked: Stmt = stmt.replace(body=self.stmt(stmt.body))
        return checked if memory.written is None else with_shadow(memory.written, NO, checked)

    def intrinsic(self, stmt: Tensorized) -> Stmt:
        """Checks an intrinsic: accesses in its body must stay in its regions, and must store to all of those that it computes.

        Where the body passes a buffer to code that cannot be checked, the formula of the intrinsic is checked in front of it.
        """
        opaque, hidden, stored = set(handed_out(stmt.body)), dict[CheckedMemory, Expr](), list[Window]()
        binds, body = unbound(stmt)
        for bind in binds:
            buffer = bind.node[0]
            memory = self.memory(buffer)
            if memory is not None:
                window = window_of(bind, memory, stmt, buffer.data in opaque)
                if self.in_kernel and has_launch(body):
                    window = replace(window, stored=None)  # threads of the kernel fill it together, each has notes of its own
                self.windows[buffer] = self.windows[buffer.data] = window
                if not build.is_true(window.seen):
                    hidden[memory] = build.logical_or(hidden.get(memory, NO), build.logical_not(window.seen))
                stored += [window] if window.stored is not None else []
        self.formula = hidden
        checks = self.stmt(fresh_copy(stmt.formula)) if hidden else None
        self.formula = None
        checked = seq(checks, self.written_by_hand(body), *map(self.all_stored, stored))
        for window in stored:
            assert window.stored is not None
            checked = with_shadow(window.stored, NO, checked)
        for bind in reversed(binds):
            checked = bind.replace(body=checked)
        return stmt.replace(body=checked, formula=self.stmt(stmt.formula))  # the interpreter runs the formula

    def loop(self, loop: For) -> Stmt:
        """Checks a loop. A parallel loop becomes serial, with shadow buffers that reveal conflicts between its iterations."""
        self.loops.append(loop.loop_var)
        checked: Stmt
        if loop.kind != ForKind.PARALLEL:
            checked = self.descend(loop)
        else:
            together = Iterations(loop)
            self.take_notes(together, loop.body)
            self.parallel.append(together)
            checked = self.descend(loop).replace(kind=ForKind.SERIAL)
            self.parallel.pop()
            checked = together.shadowed(checked)
        self.loops.pop()
        return checked

    def take_notes(self, together: Together, body: Stmt) -> None:
        """Adds shadow buffers to `together` that record who accesses the memory that `body` writes, as far as it is known
        here.
        """
        nodes = list(post_order(body))
        read = {self.memory(memory_of(node)) for node in nodes if isinstance(node, (BufferLoad, Load))}
        together.take_notes([self.memory(memory_of(node)) for node in nodes if isinstance(node, (BufferStore, Store))], read)

    def written_by_hand(self, stmt: Stmt) -> Stmt:
        before, self.by_hand = self.by_hand, True
        checked = self.stmt(stmt)
        self.by_hand = before
        return checked

    def launch(self, stmt: AttrStmt) -> Stmt:
        """Checks a launch of threads; a handwritten one gets shadow buffers that reveal conflicts between its blocks."""
        axis = launched(stmt)
        if axis is None:
            return self.descend(stmt)
        begins, self.in_kernel = not self.in_kernel, True
        if begins and self.by_hand and (counts := blocks_of(stmt)):
            self.blocks = Blocks(stmt, counts, self.memories.values())
            self.take_notes(self.blocks, stmt)
            self.parallel.append(self.blocks)
        blocks = self.blocks
        outer = {} if blocks is None else blocks.inside(axis)
        checked: Stmt = self.descend(stmt)
        if blocks is not None:
            blocks.at = outer
        if begins:
            self.in_kernel = False
            if blocks is not None:
                self.parallel.pop()
                self.blocks, checked = None, blocks.shadowed(checked)
        return checked

    # --- checks ---

    def store(self, stmt: Stmt, key: Key, inputs: Sequence[Expr], places: Sequence[Indices], mask: Expr | None) -> Stmt:
        before: list[Stmt] = list(self.reads(*inputs))
        after: list[Stmt] = []
        memory = self.memory(key)
        if memory is not None:
            memory.stage = self.stage or memory.stage
            for lane, given in enumerate(places):
                at = self.located(key, memory, given, len(places), "stores")
                on = (*at.on, *(() if mask is None else (lane_of(mask, lane),)))
                checks = (*at.checks, *self.inside(memory, at.place, "stores"), *self.alone(memory, at.place, inputs[0]))
                before += [_under(on, check) for check in checks]
                after += [_under(on, mark) for mark in (*self.mark(memory, at.place), *at.marks)]
        return seq(*before, None if self.formula is not None else stmt, *after)

    def reads(self, *exprs: Expr) -> Iterator[Stmt]:
        """Returns the checks of the reads in `exprs`."""
        written_out = WithoutLets()  # the checks stand outside of the expressions
        for read in walk.reads(exprs):
            key = read.memory
            memory = self.memory(key)
            if memory is not None:
                read = read.without_lets(written_out)
                places, outer = lanes_of(read.indices), self.stage
                self.stage = self.inlined.get(memory, outer)
                conditions = [c.value for c in read.around.conditions() if c.expr.dtype.lanes == 1]
                for lane, given in enumerate(places):
                    at = self.located(key, memory, given, len(places), "reads")
                    mask = read.predicate
                    on = (*conditions, *at.on, *(() if mask is None else (lane_of(mask, lane),)))
                    yield from (_under(on, check) for check in (*at.checks, *self.read(memory, at.place)))
                self.stage = outer

    def memory(self, key: Key) -> CheckedMemory | None:
        """Returns what is known about the memory of `key`; None if nothing is known, or if the formula at this place does not
        apply to it.
        """
        memory = self.memories.get(self.whole.get(key, key))
        return memory if self.formula is None or memory in self.formula else None

    def located(self, key: Key, memory: CheckedMemory, given: Indices, lanes: int, verb: str) -> _Element:
        """Returns the element of `key` that an access of `lanes` lanes touches.

        given: its indices, or its position in flat memory. verb: "reads" or "stores", for errors.
        """
        window = self.windows.get(key)
        if window is None:
            on = () if self.formula is None or build.is_true(self.formula[memory]) else (self.formula[memory],)
            return _Element(memory.unravelled(*given) if isinstance(key, Var) else given, on)
        by_position = isinstance(key, Var) or (lanes > 1 and len(given) > 1)
        inner, gap = window.indices(given if isinstance(key, Var) or not by_position else window.position(given), by_position)
        place, of, checks = window.place(inner), window.buffer.name, list[Stmt]()
        problem = f"{verb} {_named(memory)}, outside of the region that the intrinsic {window.intrinsic} gets as {of}: "
        for dim, (index, extent) in enumerate(zip(inner, window.buffer.shape)):
            wrong = build.logical_or(build.less(index, 0), build.greater_equal(index, extent))
            checks.append(self.fault_if(wrong, f"{problem}index {{}} of dimension {dim} of {of} is not in [0, {{}})", place,
                                        index, extent))
        if build.as_int(gap) != 0:
            checks.append(self.fault_if(build.not_equal(gap, 0), f"{problem}it is {{}} elements behind that", place, gap))
        on = (window.seen,) if by_position and not build.is_true(window.seen) else ()
        mark = () if window.stored is None else (BufferStore(window.stored, build.true(), inner),)
        return _Element(place, on, checks, mark)

    def read(self, memory: CheckedMemory, place: Indices) -> Iterator[Stmt]:
        yield from self.inside(memory, place, "reads")
        if memory.written is not None:
            yield self.fault_if(build.logical_not(memory.at(memory.written, place)),
                                f"reads {_named(memory)}, to which nothing was written before", place)
        for together in self.parallel:
            if memory in together.owners:
                owner = memory.at(together.owners[memory], place)
                yield self.fault_if(together.is_other(owner), together.meets(_named(memory), "reads", "wrote"), place,
                                    *together.values_of(owner))
                if memory in together.readers:
                    readers = together.readers[memory]
                    other = together.is_other(memory.at(readers, place))
                    noted = memory.set(readers, place, build.select(other, build.const(SEVERAL, INT64), together.me()))
                    yield IfThenElse(build.not_equal(owner, together.me()), noted)  # else it reads what itself wrote

    def inside(self, memory: CheckedMemory, place: Indices, verb: str) -> Iterator[Stmt]:
        """Returns checks that each index is within its dimension."""
        for dim in range(len(place)):
            yield self.index_inside(memory, place, dim, verb)

    def index_inside(self, memory: CheckedMemory, place: Indices, dim: int, verb: str) -> Stmt:
        """Returns the check that index number `dim` is within its dimension."""
        index, low, high = place[dim], memory.mins[dim], build.add(memory.mins[dim], memory.extents[dim])
        wrong = build.logical_or(build.less(index, low), build.greater_equal(index, high))
        return self.fault_if(wrong, f"{verb} {_named(memory)}: index {{}} of dimension {dim} is not in [{{}}, {{}})", place,
                             index, low, high)

    def alone(self, memory: CheckedMemory, place: Indices, value: Expr) -> Iterator[Stmt]:
        """Yields checks that no other iteration of an enclosing parallel loop, and no other block, has read the element to
        which `value` is stored, or has written a different value to it.
        """
        for together in self.parallel:
            loads = [self.memory(memory_of(node)) for node in post_order(value) if isinstance(node, (BufferLoad, Load))]
            alike = together.all_store(value, place, loads, self.loops)
            for shadows, did in ((together.owners, "wrote too"), (together.readers, "read")):
                if memory in shadows and not (alike and shadows is together.owners):
                    other = memory.at(shadows[memory], place)
                    yield self.fault_if(together.is_other(other), together.meets(_named(memory), "stores", did), place,
                                        *together.values_of(other))

    def mark(self, memory: CheckedMemory, place: Indices) -> Iterator[Stmt]:
        """Yields statements that record in the shadow buffers that the element was stored to."""
        if memory.written is not None:
            yield memory.set(memory.written, place, build.true())
        for together in self.parallel:
            if memory in together.owners:
                yield memory.set(together.owners[memory], place, together.me())

    def all_stored(self, window: Window) -> Stmt:
        """Returns checks, placed after an intrinsic, that it stored to every element of a region that it computes."""
        stored = window.stored
        assert stored is not None
        problem = f"never writes {_named(window.memory)}, which is in the region that the intrinsic {window.intrinsic} computes"
        missing = over(stored.shape, lambda place: self.fault_if(
            build.logical_not(BufferLoad(stored, place)), problem, window.place(place)))
        return missing if build.is_true(window.seen) else IfThenElse(window.seen, missing)

    def all_written(self, memory: CheckedMemory) -> Stmt:
        """Returns checks, placed at the end of the kernel, that every element of an output was written."""
        written = memory.written
        assert written is not None
        self.stage = memory.stage
        return over(memory.extents, lambda place: self.fault_if(
            build.logical_not(BufferLoad(written, place)), f"never writes {_named(memory)}", place))

    def fault_if(self, condition: Expr, problem: str, place: Indices, *more: Expr) -> Stmt:
        """Returns a statement that ends the kernel with `problem`, its gaps filled from `place` and `more`, if `condition`
        holds.
        """
        where = self.line or (f"stage {self.stage}" if self.stage else "")
        where = "\n  in " + where.replace("{", "{{").replace("}", "}}") if where else ""
        loops = "\n  loops: " + ", ".join(f"{var.name} = {{}}" for var in self.loops) if self.loops else ""
        given = (*place, *more, *self.loops)
        values = [build.cast(INT64, value) for value in given]
        problem = _with_unsigned_gaps(problem, given)
        call = build.call("tir.call_packed", StringImm(FAULT), StringImm(problem + where + loops), *values, dtype_="int32")
        return IfThenElse(condition, Evaluate(call))


# --- pieces ---

def _named(memory: CheckedMemory) -> str:
    return f"{memory.name}[{', '.join('{}' for _ in memory.extents)}]"


def _with_unsigned_gaps(problem: str, values: Sequence[Expr]) -> str:
    """Returns the template with the gaps of unsigned 64-bit values marked: they are passed as signed ones."""
    head, *tails = problem.split("{}")
    return head + "".join(("{:u}" if value.dtype == "uint64" else "{}") + tail for tail, value in zip(tails, values))


def _under(conditions: Sequence[Expr], stmt: Stmt) -> Stmt:
    for condition in reversed(conditions):
        stmt = IfThenElse(condition, stmt)
    return stmt


def _zeros(shape: Sequence[Expr]) -> Indices:
    return tuple(build.const(0, dim.dtype) for dim in shape)


def _extent(bound: object) -> Expr:
    extent: Expr | None = getattr(bound, "extent")  # noqa: B009 - a Range of a realized buffer always has one
    assert extent is not None
    return extent


def _span(buffer: Buffer) -> Expr:
    """Returns the number of elements from the data pointer of an argument's buffer to its last element, that one included."""
    if not buffer.strides:
        return functools.reduce(build.mul, buffer.shape, build.const(1, "int32"))
    steps = [build.mul(build.sub(dim, 1), stride) for dim, stride in zip(buffer.shape, buffer.strides)]
    return functools.reduce(build.add, [*steps, buffer.elem_offset], build.const(1, "int32"))
