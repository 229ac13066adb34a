"""The names of `T` in scripts: `from tedsl.script import tir as T`. Others are those of `tedsl.tir`: T.exp, T.Select."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tedsl import tir
from tedsl.absent import INSTEAD, explain
from tedsl.compat.tvmscript import axis as axis
from tedsl.compat.tvmscript.blocks import BLOCK, INIT, Allocated, realized
from tedsl.compat.tvmscript.declarations import BufferType, Declared, Enclosing, Loops, Memory, Scalar
from tedsl.compat.tvmscript.functions import function_of
from tedsl.errors import AbsentModuleError, ArgumentTypeError, type_in_words
from tedsl.ir import build
from tedsl.ir.dtype import HANDLE
from tedsl.ir.expr import Expr, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.stmt import AttrStmt, ForKind

Buffer = BufferType
_SCALARS = {f"{kind}{bits}": Scalar(f"{kind}{bits}") for kind in ("int", "uint", "float")
            for bits in (8, 16, 32, 64) if (kind, bits) != ("float", 8)} | {"bfloat16": Scalar("bfloat16")}


def prim_func(func: Callable[..., Any] | None = None, **_: Any) -> Any:
    """Decorator: the PrimFunc of a function of loops."""
    return function_of(func) if func is not None else prim_func


def handle(dtype: Any = None, storage_scope: str = "global", **_: Any) -> Any:
    """The type of parameters that `T.match_buffer` gives buffers; called, a pointer."""
    return Declared(lambda name: Var(name, HANDLE))


def bool(value: Any = None) -> Any:
    """A condition, or the dtype of one."""
    return build.const(value, "bool") if value is not None and not isinstance(value, Expr) else value


def var(dtype: Any, name: str = "") -> Declared:
    """A variable that a size or an argument gives."""
    return Declared(lambda named: Var(name or named, dtype))


def match_buffer(param: Any, shape: Any, dtype: Any = "float32", **options: Any) -> Any:
    """The buffer of a parameter: `A = T.match_buffer(a, (8,), "float32")`; the parser reads it."""
    return BufferType(shape, dtype, **options)


def decl_buffer(shape: Any, dtype: Any = "float32", data: Any = None, **options: Any) -> Any:
    """A buffer, over a pointer if one is given."""
    made = BufferType(shape, dtype, data, **options)
    return made if data is not None else Allocated(made)


def alloc_buffer(shape: Any, dtype: Any = "float32", **options: Any) -> Allocated:
    """A buffer that exists in the block, or function, around it."""
    return Allocated(BufferType(shape, dtype, **options))


def allocate(extents: Any, dtype: str = "float32", scope: str = "global", condition: Any = None, **_: Any) -> Memory:
    """Memory for some elements: a pointer."""
    return Memory(list(extents), dtype, scope)


def _loops(begin: Any, end: Any = None, *, kind: ForKind, thread: str = "", annotations: Any = None) -> Loops:
    span = (0, begin) if end is None else (begin, end - begin)
    return Loops((span,), kind, thread, annotations)


serial = partial(_loops, kind=ForKind.SERIAL)
parallel = partial(_loops, kind=ForKind.PARALLEL)
vectorized = partial(_loops, kind=ForKind.VECTORIZED)
unroll = partial(_loops, kind=ForKind.UNROLLED)
thread_binding = partial(_loops, kind=ForKind.THREAD_BINDING)


def grid(*extents: Any) -> Loops:
    """Loops inside each other."""
    return Loops(tuple([(0, extent) for extent in extents]))


def block(name: str = "", no_realize: Any = False) -> object:
    """A block: `with T.block("C"):`."""
    return BLOCK


sblock = block


def init() -> object:
    """What runs before the first step of the block's reductions: `with T.init():`."""
    return INIT


def attr(node: Any, attr_key: str, value: Any) -> Enclosing:
    """An attribute of the statements after it, or of those of its `with` block."""
    given = StringImm(value) if isinstance(value, str) else build.as_expr(value)
    return Enclosing(lambda rest: AttrStmt(node, attr_key, given, rest))


def realize(*_: Any) -> Any:
    """That a buffer exists in what follows; the parser reads it."""


def env_thread(thread_tag: str) -> Declared:
    """A number of a thread, for `T.launch_thread`."""
    return Declared(lambda name: IterVar(Range.from_min_extent(0, 1), Var(name), IterType.THREAD_INDEX, thread_tag))


def launch_thread(thread: Any, extent: Any) -> Enclosing:
    """The threads that run what follows."""
    tag = thread.thread_tag if isinstance(thread, IterVar) else thread
    number = thread.var if isinstance(thread, IterVar) else Var(tag.replace(".", "_"))
    axis_of = IterVar(Range.from_min_extent(0, extent), number, IterType.THREAD_INDEX, tag)
    key = "virtual_thread" if tag.startswith("vthread") else "thread_extent"
    return Enclosing(lambda rest: AttrStmt(axis_of, key, build.as_expr(extent), rest), number)


def evaluate(value: Any) -> Any:
    """A call for its effect."""
    return value


def buffer_realized(buffer: Any) -> Enclosing:
    """The buffer in what follows."""
    return Enclosing(lambda rest: realized(buffer, rest))


def ret(value: Any, dtype: Any = None) -> Any:
    """The end of the function, with its result. dtype: that of the value."""
    return tir.ret(value)


def func_attr(attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes of the function; the parser notes them. Raises ArgumentTypeError unless they have names."""
    if not isinstance(attrs, dict) or not all(isinstance(key, str) for key in attrs):
        raise ArgumentTypeError(f"T.func_attr takes a dict of values by their names, not {type_in_words(attrs)}",
                                hint='T.func_attr({"global_symbol": "main", "tir.noalias": True})')
    return attrs


def where(condition: Any) -> Expr:
    """The condition of the block; the parser notes it."""
    return build.as_expr(condition)


def _of_tir(name: str) -> Any:
    found = getattr(tir, name, None) or getattr(tir, name.capitalize(), None)
    if found is None:
        raise AbsentModuleError(explain(f"script.tir.{name}"), hint=INSTEAD["script"])
    return found


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _SCALARS:
        return _SCALARS[name]
    return _of_tir(name)


__all__ = ["Buffer", "PrimFunc", "alloc_buffer", "allocate", "attr", "axis", "block", "decl_buffer", "env_thread", "evaluate",
           "grid", "handle", "init", "launch_thread", "match_buffer", "parallel", "prim_func", "serial", "thread_binding",
           "unroll", "var", "vectorized"]
