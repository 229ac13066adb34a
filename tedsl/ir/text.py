"""The printer: `text(node)`, the notation of TVM 0.8's `primfn(...)`, and `repr_text(node)`, the short one of `repr`.

Names are made unique in the order of appearance: buffers of the parameters, parameters, data pointers (A, A_1, A_2), so
that the text depends on the program alone. A variable is printed with its type at its first occurrence.

Extensions, where v0.8 has no form or an unbalanced one: an access under a mask ends in ` if <mask>`; `select(...)` is closed;
`realize(B: Buffer(...), [0:n], True) {`; a module of one function prints without `@main = `; an annotation of a loop
stands as `annotations = {...}` behind its kind; an expression, and each line of a program, is cut short with `...` behind
50 000 parts (a DAG may be exponentially longer as text), an expression of `repr` behind 2 000.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import INT32
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CommReducer,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    ProducerLoad,
    Ramp,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Sub,
    Var,
)
from tedsl.ir.func import GlobalVar, IRModule, PrimFunc
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import Node
from tedsl.ir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferRegion,
    BufferStore,
    Evaluate,
    For,
    ForKind,
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
from tedsl.ir.types import PointerType, PrimType

# What a handler returns: text, a node to print there, a change of indentation followed by a new line, or more parts,
# made when their turn comes.
Part: TypeAlias = "str | Node | int | Callable[[], list[Part]]"
Handler: TypeAlias = Callable[[Any, "Printer"], "list[Part]"]
LONGEST_LINE = 50_000  # parts
LONGEST_REPR = 2_000  # parts of an expression
LONGEST_KEY = 200_000  # parts of an expression


def text(node: Any) -> str:
    """The program, statement or expression as text."""
    if isinstance(node, IRModule):
        functions = [(name, Printer(TEXT).print(func)) for name, func in node.items()]
        if len(functions) == 1:
            return functions[0][1]
        return "\n\n".join(f"@{name} = {printed}" for name, printed in functions)
    return Printer(TEXT).print(node).lstrip(" ")  # a block begins with a blank


def repr_text(node: Any) -> str:
    """The short notation: variables without types, `(int64)1`, `1.5f`, `float32(x)`. Statements print as by `text`."""
    if isinstance(node, (Stmt, PrimFunc, Buffer)):
        return Printer(TEXT).print(node)
    return Printer(REPR, longest=LONGEST_REPR).print(node)


def key_text(expr: Expr) -> str:
    """The short notation of `expr`, cut far later than that of `repr`: equal expressions are found by it."""
    return Printer(REPR, longest=LONGEST_KEY).print(expr)


class Printer:
    """Prints with an explicit stack; holds the names given so far and the indentation.

    longest: the most parts of a line; the expressions behind them are printed as `...`.
    """

    def __init__(self, table: Mapping[type, Handler], longest: int = LONGEST_LINE) -> None:
        self.table, self.longest = table, longest
        self.names: dict[Node, str] = {}
        self.taken: dict[str, int] = {}
        self.reducers: dict[CommReducer, int] = {}  # what TVM prints as entries of a section that it leaves out

    def print(self, root: Node) -> str:
        """The text of `root`."""
        out: list[str] = []
        stack: list[Part] = [root]
        indent = count = 0
        while stack:
            part = stack.pop()
            if isinstance(part, str):
                out.append(part)
            elif isinstance(part, Node):
                count += 1
                if count > self.longest and isinstance(part, Expr):
                    if isinstance(root, Expr):  # nothing but the rest of it follows
                        return "".join([*out, "..."])
                    out.append("...")
                else:
                    stack.extend(reversed(self.handler(part)(part, self)))
            elif isinstance(part, int):
                count = 0
                indent += part
                out.append("\n" + " " * indent)
            else:
                stack.extend(reversed(part()))
        return "".join(out)

    def handler(self, node: Node) -> Handler:
        """The function that prints `node`: that of its class, or of a class above it."""
        for cls in type(node).__mro__:
            if cls in self.table:
                return self.table[cls]
        return _unknown

    def name(self, node: Node, wanted: str, prefix: str) -> str:
        """A name unique in this text: `wanted`, or with a number appended."""
        if not wanted or not wanted[0].isalpha():
            wanted = prefix + wanted
        unique = wanted
        if wanted in self.taken:
            number = self.taken[wanted] + 1
            while f"{wanted}_{number}" in self.taken:
                number += 1
            self.taken[wanted] = number
            unique = f"{wanted}_{number}"
        self.taken[unique] = 0
        self.names[node] = unique
        return unique

    def var(self, var: Var, scope: str | None = None) -> str:
        """The name of `var`, with its type at the first occurrence. scope: the text for the scope of a pointer."""
        if var in self.names:
            return self.names[var]
        return f"{self.name(var, var.name, 'v')}: {_type_text(var, scope)}"

    def buffer(self, buffer: Buffer) -> list[Part]:
        """The name of `buffer`, with its declaration at the first occurrence."""
        if buffer in self.names:
            return [self.names[buffer]]
        return [self.name(buffer, buffer.name, "buf_"), *self.declaration(buffer)]

    def declaration(self, buffer: Buffer) -> list[Part]:
        """`: Buffer(data, dtype, shape, strides, ...)`."""
        scope = buffer.scope()
        parts: list[Part] = [f": Buffer({self.var(buffer.data, '' if scope == 'global' else scope)}, {buffer.dtype}, ",
                             *listed(buffer.shape), ", ", *listed(buffer.strides)]
        if build.as_int(buffer.elem_offset) != 0:
            parts += [", elem_offset=", buffer.elem_offset]
        if scope != "global":
            parts.append(f', scope="{scope}"')
        if buffer.data_alignment:
            parts.append(f", align={buffer.data_alignment}")
        if buffer.offset_factor > 1:
            parts.append(f", offset_factor={buffer.offset_factor}")
        if buffer.buffer_type:
            parts.append(', type="auto"')
        return [*parts, ")"]


def _type_text(var: Var, scope: str | None) -> str:
    annotation = var.type_annotation
    if isinstance(annotation, PointerType):
        where = annotation.storage_scope if scope is None else scope
        return f"Pointer({where + ' ' if where else ''}{annotation.element_type})"
    return str(annotation)


def listed(nodes: Iterable[Part], brackets: str = "[]") -> list[Part]:
    """The nodes, separated by commas, between brackets."""
    parts: list[Part] = [brackets[0]] if brackets else []
    for position, node in enumerate(nodes):
        if position:
            parts.append(", ")
        parts.append(node)
    return [*parts, brackets[1]] if brackets else parts


def quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def number_text(value: float) -> str:
    """A float with six significant digits, as C++ streams print it."""
    return f"{value:g}"


def value_text(value: Any) -> list[Part]:
    """The value of an attribute or annotation."""
    if isinstance(value, (str, bool, int, float)):
        return [quoted(str(value)) if isinstance(value, str) else str(value)]
    if isinstance(value, (tuple, list)):
        return listed([partial(value_text, item) for item in value])
    if isinstance(value, Mapping):
        entries = sorted(value.items(), key=lambda entry: str(entry[0]))
        return listed([partial(_entry, quoted(str(key)), item) for key, item in entries], "{}")
    return [value if isinstance(value, Node) else str(getattr(value, "name", value))]


def _entry(key: str, value: Any) -> list[Part]:
    return [f"{key}: ", *value_text(value)]


def _unknown(node: Node, p: Printer) -> list[Part]:
    return [f"<{type(node).__name__}>"]


# --- expressions ----------------------------------------------------------------------------------------------------

def infix(sign: str) -> Handler:
    return lambda e, p: ["(", e.a, sign, e.b, ")"]


def function(name: str) -> Handler:
    return lambda e, p: [f"{name}(", e.a, ", ", e.b, ")"]


def _int_imm(e: IntImm, p: Printer) -> list[Part]:
    if e.dtype.is_bool:
        return [str(bool(e.value))]
    return [str(e.value) if e.dtype is INT32 else f"{e.value}{e.dtype.code[0]}{e.dtype.bits}"]


def _float_imm(e: FloatImm, p: Printer) -> list[Part]:
    if e.dtype.is_custom:
        return [f"{e.dtype}({number_text(e.value)})"]
    return [f"{number_text(e.value)}{'bf' if e.dtype.code == 'bfloat' else 'f'}{e.dtype.bits}"]


def _load(e: Load, p: Printer) -> list[Part]:
    return [f"({e.dtype}*){p.var(e.buffer_var)}[", e.index, "]", *mask_parts(e.predicate)]


def mask_parts(predicate: Expr | None) -> list[Part]:
    return [] if predicate is None or build.is_true(predicate) else [" if ", predicate]


def call_parts(e: Call, p: Printer) -> list[Part]:
    return [f"@{e.op.name}(", *listed(e.args, ""), f", dtype={e.dtype})"]  # "(, dtype=...)" without arguments, as v0.8 has it


def reduce_parts(e: Reduce, p: Printer) -> list[Part]:
    return ["reduce(combiner=", e.combiner, ", source=", *listed(e.source), ", init=", *listed(e.init), ", axis=",
            *listed(e.axis), ", where=", e.condition, f", value_index={e.value_index})"]


def _reducer(e: CommReducer, p: Printer) -> list[Part]:
    return ["comm_reducer(result=", *listed(e.result), ", lhs=", *listed(e.lhs), ", rhs=", *listed(e.rhs),
            ", identity_element=", *listed(e.identity_element), ")"]


def range_parts(r: Range, p: Printer) -> list[Part]:
    assert r.extent is not None
    return ["range(min=", r.min, ", ext=", r.extent, ")"]


def iter_var_parts(axis: IterVar, p: Printer) -> list[Part]:
    parts: list[Part] = [f"iter_var({axis.var.name}"]  # without its type, also in text
    if axis.dom is not None:
        parts += [", ", axis.dom]
    return [*parts, f", {axis.thread_tag})" if axis.thread_tag else ")"]


EXPRESSIONS: dict[type, Handler] = {
    Var: lambda e, p: [p.var(e)], SizeVar: lambda e, p: [p.var(e)],
    IntImm: _int_imm, FloatImm: _float_imm, StringImm: lambda e, p: [quoted(e.value)],
    Add: infix(" + "), Sub: infix(" - "), Mul: infix("*"), Div: infix(" / "), Mod: infix(" % "),
    FloorDiv: function("floordiv"), FloorMod: function("floormod"), Min: function("min"), Max: function("max"),
    EQ: infix(" == "), NE: infix(" != "), LT: infix(" < "), LE: infix(" <= "), GT: infix(" > "), GE: infix(" >= "),
    And: infix(" && "), Or: infix(" || "), Not: lambda e, p: ["!", e.a],
    Select: lambda e, p: ["select(", e.condition, ", ", e.true_value, ", ", e.false_value, ")"],
    Cast: lambda e, p: [f"cast({e.dtype}, ", e.value, ")"],
    Let: lambda e, p: [f"let {p.var(e.var)} = ", e.value, " in ", e.body],
    Call: call_parts,
    Ramp: lambda e, p: ["ramp(", e.base, ", ", e.stride, f", {e.lanes})"],
    Broadcast: lambda e, p: ["broadcast(", e.value, f", {e.lanes})"],
    Shuffle: lambda e, p: ["shuffle(", *listed(e.vectors), ", ", *listed(e.indices), ")"],
    Load: _load,
    BufferLoad: lambda e, p: [*p.buffer(e.buffer), *listed(e.indices)],
    ProducerLoad: lambda e, p: [str(e.producer.name), *listed(e.indices)],
    Reduce: reduce_parts, CommReducer: _reducer, Range: range_parts, IterVar: iter_var_parts,
    GlobalVar: lambda e, p: [f"GlobalVar({e.name_hint})"],
    Buffer: lambda e, p: p.buffer(e),
    BinaryOp: lambda e, p: [f"{type(e).__name__}(", e.a, ", ", e.b, ")"],  # an operator added later
}


# --- statements -----------------------------------------------------------------------------------------------------

KIND_NAMES = {ForKind.SERIAL: "", ForKind.PARALLEL: ' "parallel"', ForKind.VECTORIZED: ' "vectorized"',
              ForKind.UNROLLED: ' "unroll"', ForKind.THREAD_BINDING: ' "thread_binding"'}
ITER_NAMES = ("DataPar", "ThreadIndex", "CommReduce", "Ordered", "Opaque", "Unrolled", "Vectorized", "Parallelized",
              "Tensorized")


def _shown(stmt: Stmt) -> Stmt:
    """`stmt`; for a Tensorized region its body."""
    return stmt.body if isinstance(stmt, Tensorized) else stmt


def _block(body: Stmt) -> list[Part]:
    return [body] if isinstance(_shown(body), SeqStmt) else [" {", 2, body, -2, "}"]


def _then(body: Stmt) -> list[Part]:
    """The parts that print the body of a statement whose scope extends to the end of the block."""
    return [body] if isinstance(_shown(body), SeqStmt) else [";", 0, body]


def _sequence(s: SeqStmt, p: Printer) -> list[Part]:
    parts: list[Part] = [" {", 2]
    for position, stmt in enumerate(_flat(s)):
        if position:
            parts.append(0)
        parts.append(stmt)
    return [*parts, -2, "}"]


def _flat(s: SeqStmt) -> list[Stmt]:
    """The statements of `s`, with Tensorized regions replaced by their bodies."""
    shown = [_shown(stmt) for stmt in s.seq]
    return [stmt for part in shown for stmt in (part.seq if isinstance(part, SeqStmt) else (part,))]


def _for(s: For, p: Printer) -> list[Part]:
    parts: list[Part] = [f"for ({p.var(s.loop_var)}, ", s.min, ", ", build.add(s.min, s.extent), ")", KIND_NAMES[s.kind]]
    if s.thread_binding is not None:
        parts += [" ", *_full_iter_var(s.thread_binding, p)]
    if s.annotations:
        parts += [" annotations = ", *value_text(s.annotations)]
    return [*parts, *_block(s.body)]


def _full_iter_var(axis: IterVar, p: Printer) -> list[Part]:
    dom: list[Part] = ["(nullptr)"] if axis.dom is None else ["[", *_interval(axis.dom), "]"]
    return [f"IterVar({p.var(axis.var)}, ", *dom, f", {quoted(ITER_NAMES[axis.iter_type])}, {quoted(axis.thread_tag)})"]


def _interval(r: Range) -> list[Part]:
    return [r.min, ":", build.add(r.min, r.extent)]


def _intervals(bounds: Iterable[Range]) -> list[Part]:
    return listed([partial(_interval, r) for r in bounds])


def _attr(s: AttrStmt, p: Printer) -> list[Part]:
    if isinstance(s.node, CommReducer):
        about: list[Part] = [f"meta[tir.CommReducer][{p.reducers.setdefault(s.node, len(p.reducers))}]"]
    else:
        about = _full_iter_var(s.node, p) if isinstance(s.node, IterVar) else value_text(s.node)
    return ["attr [", *about, f"] {quoted(s.attr_key)} = ", s.value, *_then(s.body)]


def _if(s: IfThenElse, p: Printer) -> list[Part]:
    parts: list[Part] = ["if ", s.condition, *_block(s.then_case)]
    return parts if s.else_case is None else [*parts, " else", *_block(s.else_case)]


def _allocate(s: Allocate, p: Printer) -> list[Part]:
    annotation = s.buffer_var.type_annotation
    scope = (isinstance(annotation, PointerType) and annotation.storage_scope) or "global"
    parts: list[Part] = [f"allocate({p.var(s.buffer_var, scope)}, {s.dtype}, ", *listed(s.extents), ")"]
    if not build.is_true(s.condition):
        parts += [" if ", s.condition]
    return [*parts, f", storage_scope = {scope}", *_then(s.body)]


def _store(s: Store, p: Printer) -> list[Part]:
    return [f"{p.var(s.buffer_var)}[", s.index, "] = ", s.value, *mask_parts(s.predicate)]


def _realize(s: BufferRealize, p: Printer) -> list[Part]:
    return ["realize(", *p.buffer(s.buffer), ", ", *_intervals(s.bounds), ", ", s.condition, ")", *_block(s.body)]


def _produced(s: ProducerRealize, p: Printer) -> list[Part]:
    scope = f', "{s.storage_scope}"' if s.storage_scope else ""
    return ["producer_realize(", str(s.producer.name), ", ", *_intervals(s.bounds), ", ", s.condition, f"{scope})",
            *_block(s.body)]


def _region(e: BufferRegion, p: Printer) -> list[Part]:
    return [e.buffer.name, *_intervals(e.region)]


STATEMENTS: dict[type, Handler] = {
    For: _for, AttrStmt: _attr, IfThenElse: _if, Allocate: _allocate, Store: _store, BufferRealize: _realize,
    SeqStmt: _sequence,
    While: lambda s, p: ["while (", s.condition, ")", *_block(s.body)],
    LetStmt: lambda s, p: [f"let {p.var(s.var)} = ", s.value, 0, s.body],
    BufferStore: lambda s, p: [*p.buffer(s.buffer), *listed(s.indices), " = ", s.value],
    ProducerStore: lambda s, p: [str(s.producer.name), *listed(s.indices), " = ", s.value],
    ProducerRealize: _produced, BufferRegion: _region,
    Evaluate: lambda s, p: [s.value],
    AssertStmt: lambda s, p: ["assert(", s.condition, ", ", s.message, ")", 0, s.body],
    Tensorized: lambda s, p: [s.body],
    Prefetch: lambda s, p: ["prefetch(", *p.buffer(s.buffer), ", ", *_intervals(s.bounds), ", writes)" if s.writes else ")"],
}


# --- functions ------------------------------------------------------------------------------------------------------

def _prim_func(func: PrimFunc, p: Printer) -> list[Part]:
    buffers = list(dict.fromkeys(func.buffers))
    for buffer in buffers:
        p.name(buffer, buffer.name, "buf_")
    head: list[list[Part]] = []  # lines between the signature and the body
    if func.attrs:
        head.append(["attr = ", *value_text(func.attrs)])
    if buffers:
        declared: list[Part] = [partial(_declaration, position, buffer, p) for position, buffer in enumerate(buffers)]
        mapped: list[Part] = [partial(_mapped, param, func, p) for param in func.params if param in func.buffer_map]
        head += [["buffers = {", *declared, "}"], ["buffer_map = ", *listed(mapped, "{}")]]
    parts: list[Part] = [f"primfn({', '.join([p.var(param) for param in func.params])}) -> {_ret_text(func.ret_type)}"]
    for position, line in enumerate(head):
        parts += [0 if position else 2, *line]
    parts += [" {", 0 if head else 2]
    body = _shown(func.body)
    for position, stmt in enumerate(_flat(body) if isinstance(body, SeqStmt) else (body,)):
        parts += [0, stmt] if position else [stmt]
    return [*parts, -2, "}"]


def _declaration(position: int, buffer: Buffer, p: Printer) -> list[Part]:
    """The declaration of one buffer of a function; declarations are aligned below each other."""
    below: list[Part] = [",", 0, " " * len("buffers = {")] if position else []
    return [*below, p.names[buffer], *p.declaration(buffer)]


def _mapped(param: Var, func: PrimFunc, p: Printer) -> list[Part]:
    return [f"{p.names[param]}: {p.names[func.buffer_map[param]]}"]


def _ret_text(ret_type: Any) -> str:
    return "()" if ret_type is None else str(ret_type.dtype if isinstance(ret_type, PrimType) else ret_type)


TEXT: dict[type, Handler] = {**EXPRESSIONS, **STATEMENTS, PrimFunc: _prim_func}


# --- the short notation of `repr`: what users see of an expression in a console -----------------------------------------

def _repr_int(e: IntImm, p: Printer) -> list[Part]:
    return [str(e.value) if e.dtype is INT32 else f"({e.dtype}){e.value}"]


def _repr_float(e: FloatImm, p: Printer) -> list[Part]:
    number = number_text(e.value)
    if e.dtype.is_custom:
        return [f"{e.dtype}({number})"]
    if e.dtype.bits == 64:
        return [number]
    return [f"{number}f" if e.dtype.bits == 32 else f"{'half' if e.dtype.code == 'float' else 'bfloat16'}({number})"]


def _repr_load(e: Load, p: Printer) -> list[Part]:
    return [f"{e.buffer_var.name}[", e.index, "]", *mask_parts(e.predicate)]


REPR: dict[type, Handler] = {
    **TEXT, **EXPRESSIONS,
    Var: lambda e, p: [e.name], SizeVar: lambda e, p: [e.name],
    IntImm: _repr_int, FloatImm: _repr_float, Div: infix("/"), Load: _repr_load,
    Cast: lambda e, p: [f"{e.dtype}(", e.value, ")"],
    Let: lambda e, p: [f"(let {e.var.name} = ", e.value, " in ", e.body, ")"],
    Broadcast: lambda e, p: [f"x{e.lanes}(", e.value, ")"],
    Call: lambda e, p: [f"{e.op.name}(", *listed(e.args, ""), ")"],
    BufferLoad: lambda e, p: [e.buffer.name, *listed(e.indices)],
}

Node.full_text, Node.short_text = text, repr_text  # `str` and `repr` of nodes, which stand below this file
