"""`te.hybrid.script`: one function that runs as Python on arrays, and becomes a tensor on tensors."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from tedsl.errors import ArgumentTypeError, TedslError, entry
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.expr import BufferLoad, Expr, Var
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.ir.source_line import SourceLine
from tedsl.ir.stmt import AttrStmt, For, ForKind, LetStmt, Stmt
from tedsl.ir.walk.substitute import bind_once
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.hybrid.names import RUNTIME
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.lang.hybrid.parser import Parser
from tedsl.lang.hybrid.scope import Array, written_elements
from tedsl.lang.hybrid.source import Source, source_of
from tedsl.lang.scope import current_tag
from tedsl.lang.tensor import Tensor
from tedsl.runtime.array import NDArray

_TYPES = {ForKind.SERIAL: IterType.DATA_PAR, ForKind.PARALLEL: IterType.PARALLELIZED, ForKind.VECTORIZED: IterType.VECTORIZED,
          ForKind.UNROLLED: IterType.UNROLLED}


@entry
def script(pyfunc: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that makes the function a program of loops.

    Called with tensors (and variables and constants) it returns the tensors that it computes; called with numpy arrays it
    runs as Python.
    """
    if not callable(pyfunc):
        raise ArgumentTypeError(f"hybrid.script decorates a function, not {pyfunc!r}", hint="write @te.hybrid.script above def")

    @functools.wraps(pyfunc)
    def hybrid(*args: Any, **options: Any) -> Any:
        bound = _bound(pyfunc, args, options)
        if any(_is_symbolic(value) for value in bound.values()):
            return _tensors(pyfunc, bound)
        return _run(pyfunc, bound)

    hybrid.__dict__["statements_inside"] = functools.partial(_inside, pyfunc)  # for scripts that call this one
    return hybrid


def _inside(function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Parser:
    """Returns the parser that has read the function, called with arrays of another script: its statements and outputs."""
    known = {name: Array(value.buffer, "input", name) if isinstance(value, Array) else value
             for name, value in _bound(function, args, options).items()}
    return Parser(source_of(function), known, _captured(function))


def _bound(function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name."""
    try:
        bound = inspect.signature(function).bind(*args, **options)
    except TypeError as error:
        raise ArgumentTypeError(f"hybrid script {getattr(function, '__name__', '?')}: {error}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_symbolic, value))
    return isinstance(value, (Tensor, Expr))


def _run(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """The function as Python, with the names of hybrid script."""
    assert isinstance(function, types.FunctionType)
    plain = types.FunctionType(function.__code__, {**RUNTIME, **function.__globals__}, function.__name__, function.__defaults__,
                               function.__closure__)
    given = {name: value.numpy() if isinstance(value, NDArray) else value for name, value in arguments.items()}
    changed = written_elements(source_of(function).tree)  # the function changes and returns copies of these
    return plain(**{name: value.copy() if name in changed and isinstance(value, numpy.ndarray) else value
                    for name, value in given.items()})


# --- on tensors -----------------------------------------------------------------------------------------------------

def _tensors(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    source = source_of(function)
    inputs: dict[Tensor, Buffer] = {}
    known = {name: _argument(source, name, value, inputs) for name, value in arguments.items()}
    parser = Parser(source, known, _captured(function))
    body = bind_once(parser.read())
    assert parser.outputs is not None
    op = HybridOp(source.name, current_tag("", f"hybrid script {source.name}"), FrozenDict(), tuple(inputs),
                  tuple(inputs.values()), tuple(parser.outputs), body, loops_of(body),
                  SourceLine(source.file, source.first), FrozenDict(parser.lines))
    outputs = [op.output(index) for index in range(op.num_outputs)]
    return outputs[0] if len(outputs) == 1 else outputs


def _argument(source: Source, name: str, value: Any, inputs: dict[Tensor, Buffer]) -> Any:
    """The value of a parameter in the function; a tensor becomes an input."""
    if isinstance(value, Tensor):
        if value not in inputs:
            inputs[value] = decl_buffer(value.shape, value.dtype, value.op.name)
        return Array(inputs[value], "input", name)
    if isinstance(value, (list, tuple)):
        return tuple([_argument(source, f"{name}[{at}]", element, inputs) for at, element in enumerate(value)])
    if isinstance(value, (Expr, bool, int, float, str)) or value is None:
        return value
    if isinstance(value, numpy.generic):
        return value.item()
    raise ArgumentTypeError(f"hybrid script {source.name}: the argument {name} is {type(value).__name__} among tensors",
                            hint="pass tensors, variables, numbers and tuples of them; or arrays of numpy only")


def _captured(function: Callable[..., Any]) -> dict[str, Any]:
    """The global variables and closure variables that the function can see."""
    try:
        closure = inspect.getclosurevars(function)
    except (TypeError, ValueError) as error:
        raise TedslError(f"the names that {function!r} uses cannot be read: {error}") from None
    return {**closure.globals, **closure.nonlocals}


def loops_of(body: Stmt) -> tuple[IterVar, ...]:
    """The loops of `body` that directives can change, in the order in which they are written.

    Their bounds are known before the statements begin: they use neither other loops nor elements.
    """
    loops: list[For] = []
    inside = {v for node in post_order(body) for v in _binds(node)}
    stack: list[Any] = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, For) and not any(part in inside or isinstance(part, BufferLoad)
                                             for end in (node.min, node.extent) for part in post_order(end)):
            loops.append(node)
        stack.extend(child for child in reversed(node.child_nodes()) if isinstance(child, Stmt))
    return tuple([IterVar(Range.from_min_extent(loop.min, loop.extent), loop.loop_var, _TYPES[loop.kind]) for loop in loops])


def _binds(node: Any) -> tuple[Var, ...]:
    match node:
        case For(loop_var=v) | LetStmt(var=v):
            return (v,)
        case AttrStmt(node=IterVar(var=v)):
            return (v,)
        case _:
            return ()
