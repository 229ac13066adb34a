"""The verifier: the invariants of every function between two passes. A violation is an InternalError, a bug of the compiler.

Dtypes and lanes of operands; conditions are bool; every variable that is used is bound around its use, and bound once in
the function (a shared `Let` node counts once); operators exist and get arguments that they take; loops, memory and the form:
`flat` allows no BufferLoad, BufferStore, BufferRealize, Prefetch. No form has ProducerLoad or Reduce. Before
`flatten_storage`, flat accesses are legal too: bodies of `te.extern` are made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tedsl.errors import InternalError, TedslError, type_in_words
from tedsl.ir.buffer import Buffer
from tedsl.ir.calls.returns import check_returns
from tedsl.ir.calls.signatures import misfit
from tedsl.ir.dtype import BOOL, INT32, VOID, DType
from tedsl.ir.expr import (
    BinaryOp,
    BufferLoad,
    Call,
    CompareOp,
    Expr,
    FloorDiv,
    FloorMod,
    Let,
    Load,
    LogicalOp,
    Mod,
    Not,
    ProducerLoad,
    Reduce,
    Select,
    StringImm,
    Var,
)
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import Node
from tedsl.ir.ops import OPS, RET
from tedsl.ir.stmt import (
    BIND_SCOPE,
    THREADS,
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    Store,
    Tensorized,
    While,
)
from tedsl.ir.types import PointerType
from tedsl.ir.walk.visitor import variables


def verify(func: PrimFunc, *, flat: bool, error: type[Exception] = InternalError) -> None:
    """Raises `error`, which names the place, unless `func` is well-formed in the given form."""
    _Verifier(func, flat, error).function()


class _Verifier:
    def __init__(self, func: PrimFunc, flat: bool, error: type[Exception]) -> None:
        self.func = func
        self.flat = flat
        self.error = error
        self.bound: set[Var] = set()
        self.binder: dict[Var, object] = {}  # every binder met so far
        self.path: list[str] = []
        self.returns = False  # whether a `tir.ret` was met

    def fail(self, problem: str) -> NoReturn:
        raise self.error(f"{self.func.name} is not well-formed: {problem}\n  at: {' > '.join(self.path) or 'its head'}")

    def expect(self, holds: bool, problem: Callable[[], str]) -> None:
        if not holds:
            self.fail(problem())

    # --- binding ---

    def bind(self, var: Var, by: object, what: str) -> None:
        known = self.binder.get(var)
        self.expect(known is None or (known is by and isinstance(by, Let)),
                    lambda: f"{what} binds the variable {var.name}, which is bound elsewhere")
        self.binder[var] = by
        self.bound.add(var)

    def use(self, var: Var, what: str) -> None:
        self.expect(var in self.bound, lambda: f"{what} uses the variable {var.name}, which nothing binds here")

    def function(self) -> None:
        func = self.func
        for param in func.params:
            self.bind(param, func, "the parameter list")
        for param, buffer in func.buffer_map.items():
            if param not in func.params:
                self.fail(f"the buffer map has {param.name}, which is not a parameter")
            if not param.dtype.is_handle:
                self.fail(f"parameter {param.name} has a buffer and dtype {param.dtype}")
            self.bind(buffer.data, buffer, f"buffer {buffer.name}")
        for buffer in func.buffers:
            for part in (*buffer.shape, *buffer.strides, buffer.elem_offset):
                for var in variables(part):
                    if var not in self.bound:
                        self.bind(var, buffer, f"the shape of buffer {buffer.name}")
        self.stmt(func.body)
        if self.returns:
            self.check_returns()

    def check_returns(self) -> None:
        try:
            check_returns(self.func)
        except TedslError as refusal:
            self.fail(refusal.problem)

    # --- statements ---

    def stmt(self, s: Stmt) -> None:
        check = STATEMENTS.get(type(s))
        if isinstance(s, (ProducerStore, ProducerRealize)):
            self.fail(f"{type(s).__name__} of {s.producer.name} stands for a tensor, which has no memory in loops; "
                      "te.schedule.SchedulePostProcToPrimFunc gives tensors buffers")
        if check is None:
            self.fail(f"{type(s).__name__} is not a statement of the loop IR")
        check(self, s)

    def inside(self, place: str, body: Stmt) -> None:
        self.path.append(place)
        self.stmt(body)
        self.path.pop()

    def condition(self, e: Expr, what: str) -> None:
        self.expect(e.dtype == "bool", lambda: f"the condition of {what} is {e.dtype}, not a scalar bool")
        self.expr(e, f"the condition of {what}")

    def integer(self, e: Expr, what: str) -> None:
        self.expect(e.dtype.is_integer and e.dtype.lanes == 1, lambda: f"{what} is {e.dtype}, not a scalar integer")
        self.expr(e, what)

    def pointer(self, var: Var, access: DType, what: str) -> None:
        self.use(var, what)
        self.expect(var.dtype.is_handle, lambda: f"{what}: {var.name} is {var.dtype}, not a pointer")
        annotation = var.type_annotation
        if isinstance(annotation, PointerType):
            element = annotation.element_type.dtype.element
            self.expect(element is access.element, lambda: f"{what}: {access} through a pointer to {element}")

    def buffer(self, buffer: Buffer, what: str) -> None:
        self.expect(not self.flat, lambda: f"{what} in a function of flat memory")
        self.expect(buffer.data in self.bound, lambda: f"{what}: buffer {buffer.name} is neither a parameter nor realized here")

    def indices(self, buffer: Buffer, indices: tuple[Expr, ...], what: str) -> None:
        self.expect(len(indices) == len(buffer.shape), lambda: f"{what} has {len(indices)} indices")
        for position, index in enumerate(indices):
            last = position == len(indices) - 1
            if not index.dtype.is_integer or (index.dtype.lanes > 1 and not last):
                self.fail(f"{what}: index {position} is {index.dtype}")

    def region(self, bounds: tuple[Range, ...], what: str) -> None:
        for r in bounds:
            self.integer(r.min, f"a bound of {what}")
            if r.extent is not None:
                self.integer(r.extent, f"a bound of {what}")

    # --- expressions ---

    def expr(self, root: Expr, what: str) -> None:
        """Checks `root` with an explicit stack. The body of a Let is walked separately: its variable is bound only there."""
        seen: set[int] = set()
        stack: list[Callable[[], None] | Node] = [root]
        while stack:
            node = stack.pop()
            if not isinstance(node, Node):
                node()
            elif id(node) not in seen:
                self.node(node, what)
                if isinstance(node, Let):
                    stack += [self.leaving(node, seen, set(seen)), node.body, self.entering(node), node.value]
                else:
                    seen.add(id(node))
                    stack.extend(node.child_nodes())

    def entering(self, let: Let) -> Callable[[], None]:
        return lambda: self.bind(let.var, let, "a let")

    def leaving(self, let: Let, seen: set[int], before: set[int]) -> Callable[[], None]:
        def leave() -> None:
            self.bound.discard(let.var)
            seen.intersection_update(before)

        return leave

    def node(self, e: Node, what: str) -> None:
        match e:
            case Var():
                self.use(e, what)
            case BinaryOp():
                self.binary(e, what)
            case Not():
                self.expect(e.a.dtype.is_bool, lambda: f"{what}: Not of {e.a.dtype}")
            case Select():
                self.choice(e.condition, e.true_value, e.false_value, e.dtype, f"{what}: Select")
            case Call():
                self.call(e, what)
            case Load():
                self.pointer(e.buffer_var, e.dtype, f"{what}: a load of {e.buffer_var.name}")
                self.access(e, e.dtype, f"{what}: a load of {e.buffer_var.name}")
            case BufferLoad():
                self.buffer(e.buffer, f"{what}: a load of {e.buffer.name}")
                self.indices(e.buffer, e.indices, f"{what}: a load of {e.buffer.name}")
            case Let():
                self.expect(e.var.dtype is e.value.dtype, lambda: f"{what}: let {e.var.name} of {e.value.dtype}")
            case ProducerLoad() | Reduce():
                self.fail(f"{what} holds {type_in_words(e)}: formulas have it, loops do not")

    def binary(self, e: BinaryOp, what: str) -> None:
        kind, a, b = type(e).__name__, e.a.dtype, e.b.dtype
        self.expect(a is b, lambda: f"{what}: {kind} of {a} and {b}")
        self.expect(not a.is_handle, lambda: f"{what}: {kind} of pointers")
        if isinstance(e, (FloorDiv, FloorMod, Mod)):
            self.expect(a.is_integer, lambda: f"{what}: {kind} of {a}")
        if isinstance(e, LogicalOp):
            self.expect(a.is_bool, lambda: f"{what}: {kind} of {a}")
        result = BOOL.with_lanes(a.lanes) if isinstance(e, CompareOp) else a
        self.expect(e.dtype is result, lambda: f"{what}: {kind} of {a} has dtype {e.dtype}")

    def choice(self, condition: Expr, a: Expr, b: Expr, of: DType, what: str) -> None:
        self.expect(condition.dtype.is_bool and condition.dtype.lanes in (1, of.lanes),
                    lambda: f"{what} of {of} by a condition of {condition.dtype}")
        self.expect(a.dtype is of and b.dtype is of, lambda: f"{what} of {of} between {a.dtype} and {b.dtype}")

    def access(self, e: Load | Store, of: DType, what: str) -> None:
        index, predicate = e.index.dtype, e.predicate
        self.expect(index.is_integer and index.lanes == of.lanes, lambda: f"{what}: {of} at an index of {index}")
        if predicate is not None:
            self.expect(predicate.dtype.is_bool and predicate.dtype.lanes in (1, of.lanes),
                        lambda: f"{what}: {of} under a predicate of {predicate.dtype}")

    def call(self, e: Call, what: str) -> None:
        name = e.op.name
        self.returns |= e.op is RET
        self.expect(e.dtype is not VOID, lambda: f"{what} uses a call of {name}, which gives no value")
        self.expect(OPS.get(name) is e.op, lambda: f"{what}: there is no operator {name}")
        problem = misfit(e)
        if problem:
            self.fail(f"{what}: {problem}")


# --- one check per statement ----------------------------------------------------------------------------------------

def _for(v: _Verifier, s: For) -> None:
    what = f"for {s.loop_var.name}"
    of = s.loop_var.dtype
    v.expect(of.is_integer and of.lanes == 1, lambda: f"{what}: its variable is {of}")
    v.expect(s.min.dtype is of and s.extent.dtype is of, lambda: f"{what}: {of} from {s.min.dtype}, extent {s.extent.dtype}")
    v.expr(s.min, what)
    v.expr(s.extent, what)
    v.bind(s.loop_var, s, what)
    v.inside(what, s.body)
    v.bound.discard(s.loop_var)


def _while(v: _Verifier, s: While) -> None:
    v.condition(s.condition, "while")
    v.inside("while", s.body)


def _let(v: _Verifier, s: LetStmt) -> None:
    what = f"let {s.var.name}"
    v.expect(s.var.dtype is s.value.dtype, lambda: f"{what}: {s.var.dtype} of {s.value.dtype}")
    v.expr(s.value, what)
    v.bind(s.var, s, what)
    v.inside(what, s.body)
    v.bound.discard(s.var)


def _attr(v: _Verifier, s: AttrStmt) -> None:
    v.expr(s.value, f"attr {s.attr_key}")
    if s.attr_key == BIND_SCOPE:
        _bind_scope(v, s)
        return
    thread = s.node.var if s.attr_key in THREADS and isinstance(s.node, IterVar) else None
    if thread is not None and thread not in v.bound:
        v.bound.add(thread)  # threads may be named again, by the kernels that follow
        v.inside(f"attr {s.attr_key}", s.body)
        v.bound.discard(thread)
    else:
        v.inside(f"attr {s.attr_key}", s.body)


def _bind_scope(v: _Verifier, s: AttrStmt) -> None:
    """Checks a buffer bound to a region of another one: its pointer and layout variables are bound in the body."""
    window, whole = s.node
    v.buffer(whole, f"attr {s.attr_key}")
    layout_vars = [var for part in (*window.shape, *window.strides, window.elem_offset) for var in variables(part)
            if var not in v.bound]
    for var in dict.fromkeys((window.data, *layout_vars)):
        v.bind(var, s, f"buffer {window.name}")
    v.inside(f"attr {s.attr_key}", s.body)
    v.bound.difference_update((window.data, *layout_vars))


def _if(v: _Verifier, s: IfThenElse) -> None:
    v.condition(s.condition, "if")
    v.inside("if", s.then_case)
    if s.else_case is not None:
        v.inside("else", s.else_case)


def _allocate(v: _Verifier, s: Allocate) -> None:
    what = f"allocate {s.buffer_var.name}"
    for extent in s.extents:
        v.integer(extent, what)
    v.condition(s.condition, what)
    v.bind(s.buffer_var, s, what)
    v.pointer(s.buffer_var, s.dtype, what)
    v.inside(what, s.body)
    v.bound.discard(s.buffer_var)


def _store(v: _Verifier, s: Store) -> None:
    what = f"store to {s.buffer_var.name}"
    v.pointer(s.buffer_var, s.value.dtype, what)
    v.access(s, s.value.dtype, what)
    for part in (s.value, s.index, s.predicate):
        if part is not None:
            v.expr(part, what)


def _buffer_store(v: _Verifier, s: BufferStore) -> None:
    what = f"store to {s.buffer.name}"
    v.buffer(s.buffer, what)
    v.indices(s.buffer, s.indices, what)
    lanes = (s.indices[-1].dtype.lanes if s.indices else 1) * s.buffer.dtype.lanes
    v.expect(s.value.dtype is s.buffer.dtype.with_lanes(lanes),
             lambda: f"{what} of {s.buffer.dtype}: a value of {s.value.dtype}")
    for part in (s.value, *s.indices):
        v.expr(part, what)


def _realize(v: _Verifier, s: BufferRealize) -> None:
    what = f"realize {s.buffer.name}"
    v.expect(not v.flat, lambda: f"{what} in a function of flat memory")
    v.region(s.bounds, what)
    v.condition(s.condition, what)
    parameter = any(s.buffer.data is b.data for b in v.func.buffers)
    if not parameter:
        v.bind(s.buffer.data, s, what)
    v.inside(what, s.body)
    if not parameter:
        v.bound.discard(s.buffer.data)


def _seq(v: _Verifier, s: SeqStmt) -> None:
    for position, part in enumerate(s.seq):
        v.inside(f"statement {position}", part)


def _assert(v: _Verifier, s: AssertStmt) -> None:
    v.condition(s.condition, "assert")
    v.expect(isinstance(s.message, StringImm), lambda: "the message of an assert is not a string")
    v.inside("assert", s.body)


def _evaluate(v: _Verifier, s: Evaluate) -> None:
    without_value = isinstance(s.value, Call) and s.value.dtype is VOID
    v.expr(s.value.replace(dtype=INT32) if without_value else s.value, "evaluate")


def _tensorized(v: _Verifier, s: Tensorized) -> None:
    v.inside(f"intrinsic {s.name}", s.body)
    v.inside(f"formula of {s.name}", s.formula)


def _prefetch(v: _Verifier, s: Prefetch) -> None:
    v.buffer(s.buffer, f"prefetch {s.buffer.name}")
    v.region(s.bounds, f"prefetch {s.buffer.name}")


STATEMENTS: dict[type, Callable[[_Verifier, Any], None]] = {
    For: _for, While: _while, LetStmt: _let, AttrStmt: _attr, IfThenElse: _if, Allocate: _allocate, Store: _store,
    BufferStore: _buffer_store, BufferRealize: _realize, SeqStmt: _seq, AssertStmt: _assert, Prefetch: _prefetch,
    Tensorized: _tensorized,
    Evaluate: _evaluate,
}
