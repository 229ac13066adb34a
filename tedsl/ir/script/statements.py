"""Statements and functions in the readable notation: loops, memory, signatures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Add, BufferLoad, Call, CommReducer, Expr, IntImm, Let, Load, Ramp, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import Node
from tedsl.ir.ops import RET
from tedsl.ir.script.expressions import EXPRESSIONS, apart, buffer_access, end_of, ends_of, flat_access, index_parts, is_slice
from tedsl.ir.script.printer import LINE, Handler, ScriptPrinter, lines, together
from tedsl.ir.script.wrap import WIDTH
from tedsl.ir.stmt import (
    BIND_SCOPE,
    LAUNCH,
    VIRTUAL,
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
    Store,
    Tensorized,
    While,
)
from tedsl.ir.text import Part, listed, quoted, value_text
from tedsl.ir.types import PointerType, PrimType
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.visitor import post_order

KINDS = {ForKind.SERIAL: "range", ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorized", ForKind.UNROLLED: "unrolled",
         ForKind.THREAD_BINDING: "threads"}
LAUNCHES = {LAUNCH: "threads", VIRTUAL: "virtual_threads"}
USUAL = {"from_legacy_te_schedule": True, "tir.noalias": True}  # attributes of functions that are not worth a line
SHORT = 8  # columns of an index that need no name


# --- loops and branches ---

def _for(s: For, p: ScriptPrinter) -> list[Part]:
    named: list[Part] = [quoted(s.thread_binding.thread_tag), ", "] if s.thread_binding is not None else []
    ends = ends_of(Range.from_min_extent(s.min, s.extent))
    notes: list[Part] = ["  # ", *value_text(s.annotations)] if s.annotations else []
    return [f"for {p.var(s.loop_var)} in {KINDS[s.kind]}(", *named, *ends, "):", *notes, *p.block(s.body, ""),
            p.released(s.loop_var)]


def _while(s: While, p: ScriptPrinter) -> list[Part]:
    return ["while ", s.condition, *p.block(s.body)]


def _if(s: IfThenElse, p: ScriptPrinter) -> list[Part]:
    parts: list[Part] = ["if ", s.condition, *p.block(s.then_case)]
    if s.else_case is None:
        return parts
    if isinstance(s.else_case, IfThenElse):
        return [*parts, LINE, "el", s.else_case]
    return [*parts, LINE, "else", *p.block(s.else_case)]


def _sequence(s: SeqStmt, p: ScriptPrinter) -> list[Part]:
    return lines([stmt] for stmt in s.seq) if s.seq else ["pass"]


# --- memory ---

def shaped(of: DType, dims: Sequence[Part]) -> list[Part]:
    """The text of a dtype with a shape: `float32[8, 100]`."""
    return [str(of), *(listed(dims) if dims else ["[()]"])]


def _declare(memory: Var, rank: int, p: ScriptPrinter) -> str:
    p.ranks[memory] = rank
    return p.var(memory)


def _allocate(s: Allocate, p: ScriptPrinter) -> list[Part]:
    shape = p.shape(s, s.extents)
    scope = _scope(s.buffer_var)
    parts: list[Part] = [f"{_declare(s.buffer_var, len(shape), p)} = allocate(", *shaped(s.dtype, shape)]
    parts += [f', scope="{scope}")' if scope != "global" else ")"]
    if not build.is_true(s.condition):
        parts += [" if ", s.condition]
    return [*parts, LINE, s.body]


def _scope(memory: Var) -> str:
    annotation = memory.type_annotation
    return (isinstance(annotation, PointerType) and annotation.storage_scope) or "global"


def _realize(s: BufferRealize, p: ScriptPrinter) -> list[Part]:
    (name,) = p.buffer(s.buffer)
    scope = s.buffer.scope()
    parts: list[Part] = [name, " = allocate(", *shaped(s.buffer.dtype, list(map(_extent, s.bounds)))]
    parts += [f', scope="{scope}")' if scope != "global" else ")"]
    if not build.is_true(s.condition):
        parts += [" if ", s.condition]
    return [*parts, LINE, s.body]


def _extent(bound: Range) -> Part:
    """The extent of a dimension, or its ends where it does not begin at 0."""
    assert bound.extent is not None
    return bound.extent if build.as_int(bound.min) == 0 else partial(_interval, bound)


def _interval(bound: Range) -> list[Part]:
    return [bound.min, " : ", end_of(bound)]


def _prefetch(s: Prefetch, p: ScriptPrinter) -> list[Part]:
    return ["prefetch(", *p.buffer(s.buffer), *listed([partial(_interval, bound) for bound in s.bounds]),
            ", writes)" if s.writes else ")"]


# --- what is stored ---

def _store(s: Store, p: ScriptPrinter) -> list[Part]:
    mask = None if s.predicate is None or build.is_true(s.predicate) else s.predicate
    return _assignment(s, s.value, mask, p)


def _buffer_store(s: BufferStore, p: ScriptPrinter) -> list[Part]:
    return _assignment(s, s.value, None, p)


def _assignment(s: Store | BufferStore, value: Expr, mask: Expr | None, p: ScriptPrinter) -> list[Part]:
    """The text of a store, after assignments of the values and indices that get names."""
    parts: list[Part] = []
    while isinstance(value, Let) and mask is None:
        parts += [*_typed(value.var, p), " = ", value.value, LINE]
        value = value.body
    added = _added(s, value, mask)
    sign, right = (" = ", value) if added is None else (" += ", added)
    aliases = _aliases(s, right, mask, p)
    for text, name in aliases.items():
        parts += [f"{name} = {text}", LINE]
    parts += [p.setting(mask=mask, aliases=aliases), partial(_target, s, p), sign, right, p.setting(mask=None)]
    if mask is not None:
        parts += [" where ", mask]
    return [*parts, p.setting(aliases={})]


def _target(s: Store | BufferStore, p: ScriptPrinter) -> list[Part]:
    """The text of the element that a store writes."""
    if isinstance(s, BufferStore):
        return buffer_access(s.buffer, s.indices, p)
    return flat_access(s, s.buffer_var, s.index, p)


def _added(s: Store | BufferStore, value: Expr, mask: Expr | None) -> Expr | None:
    """The addend if the store only adds to the element that it writes (`+=`), else None."""
    if not isinstance(value, Add):
        return None
    old = value.a
    match s, old:
        case Store(buffer_var=a), Load(buffer_var=b) if a is b and structural_equal(s.index, old.index) \
                and (old.predicate is None or (mask is not None and structural_equal(old.predicate, mask))):
            return value.b
        case BufferStore(buffer=a), BufferLoad(buffer=b) if a is b and len(s.indices) == len(old.indices) \
                and all(map(structural_equal, s.indices, old.indices)):
            return value.b
    return None


def _aliases(s: Store | BufferStore, right: Expr, mask: Expr | None, p: ScriptPrinter) -> dict[str, str]:
    """Names for indices that a store repeats, by their text: first for long beginnings of slices, without constants; if the
    line is still too long, also for other indices and those of its mask.
    """
    seen: dict[Node, None] = {s: None}
    for root in (*s.child_nodes()[1:], right):
        seen.update(dict.fromkeys(post_order(root)))
    indices = [index for node in seen for index in _indices(node, p)]
    slices = [index.base for index in indices if isinstance(index, Ramp)]
    others = [index for index in indices if index.dtype.lanes == 1]
    if mask is not None:
        others += [node.base for node in post_order(mask) if isinstance(node, Ramp)]
    aliases, all_aliases = _repeated(slices, p), _repeated(slices + others, p)
    return all_aliases if all_aliases != aliases and _columns(s, right, mask, aliases, p) > WIDTH else aliases


def _repeated(indices: Sequence[Expr], p: ScriptPrinter) -> dict[str, str]:
    """Names for the long `indices` that occur more than once."""
    texts = [p.print(apart(index)[0]) for index in indices]
    used = [text for text in dict.fromkeys(texts) if len(text) > SHORT and texts.count(text) > 1]
    return {text: p.at_name(number) for number, text in enumerate(used)}


def _columns(s: Store | BufferStore, right: Expr, mask: Expr | None, aliases: dict[str, str], p: ScriptPrinter) -> int:
    """The length in columns of a store printed with `aliases`."""
    saved = p.mask, p.aliases
    p.mask, p.aliases = mask, aliases
    parts = [*_target(s, p), " += ", right, *([] if mask is None else [" where ", mask])]
    length = p.column + sum(len(p.print(part) if isinstance(part, Node) else str(part)) for part in parts)
    p.mask, p.aliases = saved
    return length


def _indices(node: Node, p: ScriptPrinter) -> tuple[Expr, ...]:
    """The indices of an access as they are printed, without vectors that are not slices."""
    match node:
        case Load() | Store():
            indices: tuple[Expr, ...] = p.places.get(node, (node.index,))
        case BufferLoad() | BufferStore():
            indices = node.indices
        case _:
            return ()
    return tuple([index for index in indices if index.dtype.lanes == 1 or is_slice(index)])


def _let(s: LetStmt, p: ScriptPrinter) -> list[Part]:
    return [*_typed(s.var, p), " = ", s.value, LINE, s.body, p.released(s.var)]


def _typed(var: Var, p: ScriptPrinter) -> list[Part]:
    return [f"{p.var(var)}: {var.dtype}"]


def _evaluate(s: Evaluate, p: ScriptPrinter) -> list[Part]:
    if isinstance(s.value, Call) and s.value.op is RET:
        return ["return ", *s.value.args]
    return ["pass"] if isinstance(s.value, IntImm) else [s.value]


def _assert(s: AssertStmt, p: ScriptPrinter) -> list[Part]:
    return ["assert ", s.condition, ", ", s.message, LINE, s.body]


# --- attributes ---

def _attr(s: AttrStmt, p: ScriptPrinter) -> list[Part]:
    if s.attr_key in LAUNCHES and isinstance(s.node, IterVar):
        return [f"for {p.var(s.node.var)} in {LAUNCHES[s.attr_key]}(", s.value, ")", *p.block(s.body),
                p.released(s.node.var)]
    if s.attr_key == BIND_SCOPE:
        return _window(s, p)
    return [f"# {s.attr_key}", *_about(s.node, p), ": ", *_attribute_value(s.value), LINE, s.body]


def _attribute_value(value: Expr) -> list[Part]:
    return [value.value.replace("\n", " ")] if isinstance(value, StringImm) else [value]


def _about(node: Any, p: ScriptPrinter) -> list[Part]:
    """The text of the node that an attribute is about, "" if it has none."""
    if isinstance(node, IterVar):
        return [f" of {p.var(node.var)}"]
    if isinstance(node, CommReducer):
        return [" of ", node]
    if isinstance(node, (Buffer, Var)):
        return [" of ", node]
    return [] if isinstance(node, Expr) else [" of ", *value_text(node)]


def _window(s: AttrStmt, p: ScriptPrinter) -> list[Part]:
    """A buffer bound to a region of another one (buffer_bind_scope)."""
    part, whole = s.node
    (name,), ends = p.buffer(part), s.value.child_nodes()
    region: list[Part] = [partial(_interval, Range.from_min_extent(*pair)) for pair in zip(ends[::2], ends[1::2])]
    return [name, ": ", *shaped(part.dtype, part.shape), " = ", *p.buffer(whole), *listed(region), LINE, s.body]


# --- functions ---

def _prim_func(func: PrimFunc, p: ScriptPrinter) -> list[Part]:
    buffers = list(dict.fromkeys(func.buffers))
    for buffer in buffers:
        p.buffer(buffer)
        p.ranks[buffer.data] = len(buffer.shape) if _is_plain(buffer) else -1
    taken: list[list[Part]] = [_parameter(param, func, p) for param in func.params]
    name = p.function_name or func.name
    result = f" -> {_ret_text(func.ret_type)}" if func.ret_type is not None else ""
    notes = [note for buffer in buffers for note in _layout_notes(buffer, p)] + _attribute_notes(func)
    signature: list[Part] = [f"def {name}(", *listed(map(together, taken), ""), f"){result}"]
    return [*signature, *p.block(lambda: lines([*notes, [func.body]]))]


def _parameter(param: Var, func: PrimFunc, p: ScriptPrinter) -> list[Part]:
    buffer = func.buffer_map.get(param)
    if buffer is None:
        return [f"{p.var(param)}: {param.type_annotation}"]
    return [f"{p.names[buffer]}: ", *shaped(buffer.dtype, buffer.shape)]


def _is_plain(buffer: Buffer) -> bool:
    """Whether a buffer is compact and row-major with offset 0."""
    return not buffer.strides and build.as_int(buffer.elem_offset) == 0


def _layout_notes(buffer: Buffer, p: ScriptPrinter) -> list[list[Part]]:
    """Notes on properties of a buffer's layout that dtype and shape do not show: strides, offset, alignment."""
    facts: list[list[Part]] = []
    if buffer.strides:
        facts.append(["strides ", *listed(buffer.strides)])
    if build.as_int(buffer.elem_offset) != 0:
        facts.append(["elem_offset ", buffer.elem_offset])
    if buffer.scope() != "global":
        facts.append([f"scope {buffer.scope()}"])
    if buffer.data_alignment:
        facts.append([f"aligned to {buffer.data_alignment} bytes"])
    if buffer.offset_factor > 1:
        facts.append([f"offset_factor {buffer.offset_factor}"])
    if not facts:
        return []
    return [[f"# {p.names[buffer]}: ", *listed(map(together, facts), "")]]


def _attribute_notes(func: PrimFunc) -> list[list[Part]]:
    notes: list[list[Part]] = []
    if not func.attrs.get("tir.noalias", False) and len(func.buffers) > 1:
        notes.append(["# the buffers may overlap"])
    unusual = {key: value for key, value in func.attrs.items() if key not in (*USUAL, "global_symbol")}
    return notes + [["# ", f"{key}: ", *value_text(value)] for key, value in unusual.items()]


def _ret_text(ret_type: Any) -> str:
    return str(ret_type.dtype if isinstance(ret_type, PrimType) else ret_type)


def _produced(s: ProducerRealize, p: ScriptPrinter) -> list[Part]:
    parts: list[Part] = [str(s.producer.name), " = allocate(", *shaped(s.producer.dtype, list(map(_extent, s.bounds)))]
    parts += [f', scope="{s.storage_scope}")' if s.storage_scope else ")"]
    if not build.is_true(s.condition):
        parts += [" if ", s.condition]
    return [*parts, LINE, s.body]


STATEMENTS: dict[type, Handler] = {
    For: _for, While: _while, IfThenElse: _if, SeqStmt: _sequence, Allocate: _allocate, BufferRealize: _realize,
    Prefetch: _prefetch, Store: _store, BufferStore: _buffer_store, LetStmt: _let, Evaluate: _evaluate, AssertStmt: _assert,
    ProducerStore: lambda s, p: [str(s.producer.name), "[", *index_parts(s.indices, p), "] = ", s.value],
    ProducerRealize: _produced,
    BufferRegion: lambda e, p: [e.buffer.name, *listed([partial(_interval, bound) for bound in e.region])],
    AttrStmt: _attr, Tensorized: lambda s, p: [s.body],
}
SCRIPT: dict[type, Handler] = {**EXPRESSIONS, **STATEMENTS, PrimFunc: _prim_func}
