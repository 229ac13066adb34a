"""Loops as the text of a hybrid script: `te.hybrid.build`. The text runs as Python, and can be read as a script again."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError, type_in_words
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BufferLoad,
    Call,
    Cast,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    StringImm,
    Sub,
    Var,
)
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.node import Node
from tedsl.ir.ops import FABS, IF_THEN_ELSE, LIKELY, OPS
from tedsl.ir.stmt import (
    THREADS,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    is_no_op,
)
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.hybrid.names import CASTS, MATH, RUNTIME

LOOPS = {ForKind.SERIAL: "range", ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorize", ForKind.UNROLLED: "unroll"}
SIGNS: dict[type[Expr], str] = {
    Add: "+", Sub: "-", Mul: "*", Div: "/", FloorDiv: "//", FloorMod: "%", EQ: "==", NE: "!=", LT: "<", LE: "<=", GT: ">",
    GE: ">=", And: "and", Or: "or"}
CALLS = {FABS: "abs", OPS["tir.pow"]: "power", LIKELY: "likely", **{op: op.short for op in OPS.values() if op.short in MATH}}


def hybrid_source(func: PrimFunc, inputs: int, name: str) -> str:
    """Returns the text of a Python function `name` with the loops of `func`, which is over multi-dimensional buffers. It takes
    the first `inputs` buffers and returns the others.
    """
    return _Writer(func, inputs, name).text()


class _Writer:
    def __init__(self, func: PrimFunc, inputs: int, name: str) -> None:
        self.func, self.title = func, name
        self.inputs, self.outputs = func.buffers[:inputs], func.buffers[inputs:]
        self.analyzer = Analyzer()
        self.lines: list[str] = []
        self.depth = 1
        self.taken = {"tedsl", name, *RUNTIME, *keyword.kwlist, "range", "min", "max", "abs", "round", "len"}
        self.names: dict[Any, str] = {}
        self.mins: dict[Buffer, tuple[Expr, ...]] = {}

    def fresh(self, key: Any, wish: str) -> str:
        """An unused name for `key`: `wish` if it is free, else a variation of it."""
        base = name = re.sub(r"\W", "_", wish) or "x"
        base = name = "_" + base if base[0].isdigit() else base
        count = 0
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        self.names[key] = name
        return name

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def text(self) -> str:
        given: list[Any] = [self.func.buffer_map.get(param, param) for param in self.func.params]
        arguments = [self.fresh(one, one.name) for one in given if one not in self.outputs]
        for buffer in self.inputs:
            for k, dim in enumerate(buffer.shape):
                if isinstance(dim, Var) and dim not in self.names:
                    self.names[dim] = f"{self.names[buffer]}.shape[{k}]"
        for buffer in self.outputs:
            self.line(f"{self.fresh(buffer, buffer.name)} = output_tensor({self.shape(buffer.shape)}, {str(buffer.dtype)!r})")
        self.stmt(self.func.body)
        self.line(f"return {', '.join(self.names[b] for b in self.outputs)}")
        head = ["import tedsl", "", "", "@tedsl.te.hybrid.script", f"def {self.title}({', '.join(arguments)}):"]
        return "\n".join([*head, *self.lines]) + "\n"

    def shape(self, dims: Sequence[Expr]) -> str:
        return "(" + "".join(f"{self.expr(dim)}, " for dim in dims).rstrip(" ") + ")"

    # --- statements ---

    def stmt(self, s: Stmt) -> None:
        write = _STATEMENTS.get(type(s))
        if write is None:
            raise LoweringError(f"hybrid.build: {type_in_words(s)} has no form in hybrid script")
        write(self, s)

    def block(self, header: str, body: Stmt) -> None:
        self.line(header)
        self.depth += 1
        before = len(self.lines)
        self.stmt(body)
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def loop(self, s: For) -> None:
        if s.kind not in LOOPS:
            raise LoweringError(f"hybrid.build: the loop {s.loop_var.name} has no form in hybrid script")
        low, high = self.expr(s.min), self.expr(build.add(s.min, s.extent))
        bounds = high if build.as_int(s.min) == 0 else f"{low}, {high}"
        self.block(f"for {self.fresh(s.loop_var, s.loop_var.name)} in {LOOPS[s.kind]}({bounds}):", s.body)

    def attribute(self, s: AttrStmt) -> None:
        if s.attr_key not in THREADS or not isinstance(s.node, IterVar):
            self.stmt(s.body)
            return
        name = self.fresh(s.node.var, s.node.name)
        self.block(f"for {name} in bind({s.node.thread_tag!r}, {self.expr(s.value)}):", s.body)

    def branch(self, s: IfThenElse) -> None:
        self.block(f"if {self.expr(s.condition)}:", s.then_case)
        if s.else_case is not None:
            self.block("else:", s.else_case)

    def realize(self, s: BufferRealize) -> None:
        extents = [r.extent for r in s.bounds if r.extent is not None]
        self.mins[s.buffer] = tuple([r.min for r in s.bounds])
        scope = s.buffer.scope() if s.buffer.scope() in ("local", "shared") else "global"
        allocation = f"allocate({self.shape(extents)}, {str(s.buffer.dtype)!r}, {scope!r})"
        self.line(f"{self.fresh(s.buffer, s.buffer.name)} = {allocation}")
        self.stmt(s.body)

    def let(self, s: LetStmt) -> None:
        value = self.expr(s.value)
        self.line(f"{self.fresh(s.var, s.var.name)} = {value}")
        self.stmt(s.body)

    def store(self, s: BufferStore) -> None:
        self.line(f"{self.element(s.buffer, [self.expr(i) for i in self.indices(s.buffer, s.indices)])} = {self.expr(s.value)}")

    def check(self, s: AssertStmt) -> None:
        text = s.message.value if isinstance(s.message, StringImm) else str(s.message)
        self.line(f"assert {self.expr(s.condition)}, {text!r}")
        self.stmt(s.body)

    def evaluate(self, s: Evaluate) -> None:
        if not is_no_op(s):
            raise LoweringError(f"hybrid.build: {s.value!r} has no form in hybrid script")

    # --- expressions ---

    def indices(self, buffer: Buffer, indices: Sequence[Expr]) -> list[Expr]:
        """The indices relative to the allocated region."""
        mins = self.mins.get(buffer)
        return list(indices) if mins is None else [self.analyzer.simplify(build.sub(i, low)) for i, low in
                                                         zip(indices, mins)]

    def element(self, buffer: Buffer, indices: Sequence[str]) -> str:
        if buffer not in self.names:
            raise LoweringError(f"hybrid.build: the memory of {buffer.name} is not known")
        return f"{self.names[buffer]}[{', '.join(indices)}]"

    def expr(self, root: Expr) -> str:
        done: dict[Node, str] = {}
        for node in post_order(root):
            if isinstance(node, Expr):
                done[node] = self.node(node, done)
        return done[root]

    def node(self, e: Expr, done: dict[Node, str]) -> str:
        match e:
            case Var():
                if e not in self.names:
                    raise LoweringError(f"hybrid.build: {e.name} has no value in the script", hint="pass it among the inputs")
                return self.names[e]
            case IntImm(value=value):
                return str(bool(value)) if e.dtype.is_bool else str(value) if e.dtype == "int32" else f"{e.dtype}({value})"
            case FloatImm(value=value):
                return f"{e.dtype}({value!r})" if value - value == 0 else f"{e.dtype}(float({str(value)!r}))"
            case BufferLoad(buffer=buffer, indices=indices):
                return self.element(buffer, [self.expr(i) for i in self.indices(buffer, indices)] if buffer in self.mins
                                    else [done[i] for i in indices])
            case Cast(value=value) if str(e.dtype) in CASTS:
                return f"{e.dtype}({done[value]})"
            case Select(condition=c, true_value=a, false_value=b):
                return f"({done[a]} if {done[c]} else {done[b]})"
            case Call(op=op, args=(c, a, b)) if op is IF_THEN_ELSE:
                return f"({done[a]} if {done[c]} else {done[b]})"
            case Call(op=op, args=args) if op in CALLS:
                return f"{CALLS[op]}({', '.join(done[a] for a in args)})"
            case Min(a=a, b=b) | Max(a=a, b=b):
                return f"{'min' if isinstance(e, Min) else 'max'}({done[a]}, {done[b]})"
            case Not(a=a):
                return f"(not {done[a]})"
            case _ if type(e) in SIGNS:
                left, right = e.child_nodes()
                return f"({done[left]} {SIGNS[type(e)]} {done[right]})"
            case _:
                raise LoweringError(f"hybrid.build: {e!r} has no form in hybrid script")


def _seq(w: _Writer, s: SeqStmt) -> None:
    for part in s.seq:
        w.stmt(part)


_STATEMENTS: dict[type, Callable[[_Writer, Any], None]] = {
    For: _Writer.loop, AttrStmt: _Writer.attribute, IfThenElse: _Writer.branch, BufferRealize: _Writer.realize,
    LetStmt: _Writer.let, BufferStore: _Writer.store, SeqStmt: _seq, AssertStmt: _Writer.check, Evaluate: _Writer.evaluate,
}
