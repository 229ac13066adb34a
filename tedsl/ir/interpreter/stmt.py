"""From statements to Python source: the second half of the interpreter's compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl.errors import ArgumentError, InternalError
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import VOID
from tedsl.ir.expr import Call, Expr
from tedsl.ir.func import PrimFunc
from tedsl.ir.interpreter.expr import ExprCompiler
from tedsl.ir.interpreter.source import DEEPEST, Layout, Memory
from tedsl.ir.interpreter.threads import RUNTIME, KernelScope, block_array, is_launch, launch, meeting, shuffled
from tedsl.ir.iters import IterVar
from tedsl.ir.ops import CALL_PACKED, STACK_ALLOCA
from tedsl.ir.stmt import (
    VIRTUAL,
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
    Prefetch,
    SeqStmt,
    Stmt,
    Store,
    Tensorized,
    While,
)
from tedsl.ir.walk.fresh_stack import Descent

MOST_LOOPS = 12  # in one function: Python allows 20 nested blocks
MOST_STATEMENTS = 400  # of a sequence in one function


class StmtCompiler(ExprCompiler):
    """Translates statements to lines of Python. `reverse_parallel`: parallel loops run backwards."""

    def __init__(self, *, reverse_parallel: bool = False) -> None:
        super().__init__()
        self.reverse_parallel = reverse_parallel
        self.nested = 0  # loops around, in the function that is being written
        self.kernel: KernelScope | None = None
        self.scope |= RUNTIME
        self.descent = Descent()

    def stmt(self, s: Stmt) -> None:
        """Emits `s`."""
        emit = STATEMENTS.get(type(s))
        if emit is None:
            raise InternalError(f"the interpreter does not know the statement {type(s).__name__}")
        if self.nested < MOST_LOOPS and self.depth < DEEPEST:
            self.forget()
            if self.kernel is not None:
                self.kernel.before(self, s)
            self.descent(emit, self, s)
        else:
            self.apart([s])

    def apart(self, stmts: Sequence[Stmt]) -> None:
        """Emits statements as a nested function."""
        saved, nested = self.begin_function(), self.nested
        self.nested = 0
        if self.kernel is not None:
            self.line("if False: yield")  # a generator, like the function around it
        for s in stmts:
            self.stmt(s)
        self.nested = nested
        call = self.end_function(saved)
        self.line(call if self.kernel is None else f"yield from {call}")

    def parameter(self, buffer: Buffer) -> None:
        """Declares the buffer of a parameter: the caller passes its memory and the variables of its shape."""
        name = self.free.setdefault(buffer.data, self.local(buffer.name))
        self.memories[buffer.data] = Memory(name, self.named("length", f"len({name})"), buffer.dtype)
        self.place(buffer, ["0"] * len(buffer.shape), [self.value(d, True) for d in buffer.shape])

    def shuffled(self, e: Call, args: list[str]) -> str:
        return shuffled(self, e, args)

    def named(self, wanted: str, source: str) -> str:
        """The name of a local variable that outlives the statement, with the value of `source`."""
        name = self.local(wanted)
        self.line(f"{name} = {source}")
        return name

    def place(self, buffer: Buffer, low: list[str], sizes: list[str]) -> None:
        """Records the layout of `buffer`: by its strides, or compact over the given region."""
        sizes = [self.named("size", size) for size in sizes]
        low = [at if at == "0" else self.named("low", at) for at in low]
        strides: list[str] = []
        if buffer.strides and all(at == "0" for at in low):
            strides = [self.named("stride", self.value(s, True)) for s in buffer.strides]
        else:
            for position in range(len(sizes)):
                strides.append(self.named("stride", " * ".join(["1", *sizes[position + 1:]])))
        self.layouts[buffer.data] = Layout(low, sizes, strides, self.named("offset", self.value(buffer.elem_offset, True)))

    def loop(self, name: str, header: str, body: Stmt) -> None:
        """Emits a `for` (its header names the loop variable) around `body`."""
        self.enter(header)
        self.nested += 1
        self.loops.append((name, header.split()[1]))
        if self.kernel is None:
            self.stmt(body)
        else:
            self.kernel.prefix += [str(self.kernel.number), header.split()[1]]
            self.stmt(body)
            del self.kernel.prefix[-2:]
        self.loops.pop()
        self.nested -= 1
        self.leave()


def _for(c: StmtCompiler, s: For) -> None:
    low, extent = c.value(s.min, True), c.value(s.extent, True)
    name = c.local(s.loop_var.name)
    c.vars[s.loop_var] = name, False
    span = f"range({low}, {low} + {extent})"
    backwards = c.reverse_parallel and s.kind == ForKind.PARALLEL
    c.loop(s.loop_var.name, f"for {name} in {f'reversed({span})' if backwards else span}:", s.body)


def _while(c: StmtCompiler, s: While) -> None:
    turn = c.named("turn", "0")
    c.enter("while True:")
    c.nested += 1
    if c.kernel is not None:
        c.kernel.prefix += [str(c.kernel.number), turn]
        c.line(f"{turn} = {turn} + 1")
        c.line(f"yield {c.kernel.position()}" if c.kernel.in_step else "pass")
    c.line(f"if not {c.value(s.condition)}: break")
    c.stmt(s.body)
    if c.kernel is not None:
        del c.kernel.prefix[-2:]
    c.nested -= 1
    c.leave()


def _let(c: StmtCompiler, s: LetStmt) -> None:
    if isinstance(s.value, Call) and s.value.op is STACK_ALLOCA:
        raise ArgumentError(f"run: LowerTVMBuiltin has lowered the function, calls of packed functions are as machine code "
                            f"makes them ({s.var.name})", hint="run it as it is before that pass, or build it")
    if s.value.dtype.is_handle:
        raise InternalError(f"the interpreter binds no pointers: let {s.var.name}")
    exact = c.is_exact(s.var, s.value)
    c.vars[s.var] = c.named(s.var.name, c.value(s.value, exact)), exact
    c.stmt(s.body)


def _attr(c: StmtCompiler, s: AttrStmt) -> None:
    if is_launch(s):
        if c.kernel is None:
            launch(c, s)
        else:
            c.stmt(s.body)
    elif s.attr_key == "reduce_scope" and c.kernel is not None:
        c.kernel.reducer = s.node
        c.stmt(s.body)
    elif s.attr_key == VIRTUAL and isinstance(s.node, IterVar):
        extent = c.value(s.value, True)
        name = c.local(s.node.name)
        c.vars[s.node.var] = name, False
        c.loop(s.node.name, f"for {name} in range({extent}):", s.body)
    elif s.attr_key == "pragma_debug_skip_region":
        c.line("pass")
    else:
        c.stmt(s.body)


def _if(c: StmtCompiler, s: IfThenElse) -> None:
    c.enter(f"if {c.value(s.condition)}:")
    c.stmt(s.then_case)
    c.leave()
    if s.else_case is not None:
        c.enter("else:")
        c.stmt(s.else_case)
        c.leave()


def _guarded(c: StmtCompiler, condition: Expr, body: Stmt) -> None:
    c.enter(f"if {c.value(condition)}:")
    c.stmt(body)
    c.leave()


def _allocate(c: StmtCompiler, s: Allocate) -> None:
    size = " * ".join([str(s.dtype.lanes), *[c.value(extent, True) for extent in s.extents]])
    _memory(c, s.buffer_var, s.buffer_var.name, s.dtype, size)
    _guarded(c, s.condition, s.body)


def _memory(c: StmtCompiler, data: Any, name: str, of: Any, size: str) -> None:
    array = c.named(name, block_array(c, data, of, size) or f"uninitialised(max({size}, 0), {c.constant(of)})")
    c.memories[data] = Memory(array, c.named("length", f"len({array})"), of.element)


def _realize(c: StmtCompiler, s: BufferRealize) -> None:
    if s.buffer.data not in c.memories:  # the buffer of a parameter exists already
        low = [c.value(r.min, True) for r in s.bounds]
        sizes = [c.value(r.extent, True) for r in s.bounds if r.extent is not None]
        low = ["0" if at == "(0)" else at for at in low]
        _memory(c, s.buffer.data, s.buffer.name, s.buffer.dtype, " * ".join([str(s.buffer.dtype.lanes), *sizes]))
        c.place(s.buffer.replace(strides=()), low, sizes)
    _guarded(c, s.condition, s.body)


def _seq(c: StmtCompiler, s: SeqStmt) -> None:
    if len(s.seq) <= MOST_STATEMENTS:
        for stmt in s.seq:
            c.stmt(stmt)
    else:
        for start in range(0, len(s.seq), MOST_STATEMENTS):
            c.apart(s.seq[start:start + MOST_STATEMENTS])


def _evaluate(c: StmtCompiler, s: Evaluate) -> None:
    if not meeting(c, s):
        is_python = isinstance(s.value, Call) and s.value.op is CALL_PACKED  # may return anything: nothing uses it
        c.value(s.value.replace(dtype=VOID) if is_python else s.value)


def _assert(c: StmtCompiler, s: AssertStmt) -> None:
    message = c.value(s.message)
    c.line(f"if not {c.value(s.condition)}: raise ArgumentError(str({message}))")
    c.stmt(s.body)


def _tensorized(c: StmtCompiler, s: Tensorized) -> None:
    c.stmt(s.formula)


def _prefetch(c: StmtCompiler, s: Prefetch) -> None:
    c.line("pass")


def _store(c: StmtCompiler, s: Store) -> None:
    predicate = "" if s.predicate is None else c.value(s.predicate)
    lanes = s.value.dtype.lanes
    name = s.buffer_var.name
    if predicate and (lanes == 1 or (s.predicate is not None and s.predicate.dtype.lanes == 1)):
        c.enter(f"if {predicate}:")
        _store_flat(c, s, name, "")
        c.leave()
    else:
        _store_flat(c, s, name, predicate)


def _store_flat(c: StmtCompiler, s: Store, name: str, mask: str) -> None:
    of = s.value.dtype
    value, index = c.value(s.value), c.value(s.index, True)
    array, length = c.typed(c.memory(s.buffer_var), of)
    c.check(name, index, length, of.lanes, mask)
    stored = c.stored(value, of)
    c.line(f"{array}[{index}[{mask}]] = {stored}[{mask}]" if mask else f"{array}[{index}] = {stored}")


def _buffer_store(c: StmtCompiler, s: BufferStore) -> None:
    value = c.value(s.value)
    names = [c.value(index, True) for index in s.indices]
    flat = c.address(s.buffer, names)
    c.check_indices(s.buffer, s.indices, names)
    array, _ = c.typed(c.memory(s.buffer.data), s.value.dtype)
    c.line(f"{array}[{flat}] = {c.stored(value, s.value.dtype)}")


STATEMENTS: dict[type, Callable[[StmtCompiler, Any], None]] = {
    For: _for, While: _while, LetStmt: _let, AttrStmt: _attr, IfThenElse: _if, Allocate: _allocate, BufferRealize: _realize,
    SeqStmt: _seq, Evaluate: _evaluate, AssertStmt: _assert, Prefetch: _prefetch, Store: _store, BufferStore: _buffer_store,
    Tensorized: _tensorized,
}


def compile_function(func: PrimFunc, *, reverse_parallel: bool) -> StmtCompiler:
    """A compiler that has translated `func`; `.free` lists the values that the caller must give."""
    c = StmtCompiler(reverse_parallel=reverse_parallel)
    c.program = func.body
    for buffer in func.buffers:
        c.parameter(buffer)
    c.stmt(func.body)
    return c
