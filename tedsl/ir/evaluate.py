"""The reference interpreter: it defines what programs mean and is the oracle of every pass, schedule and backend.

`evaluate(expr, env)` computes an expression, `run(func, args)` a function, in either form (buffers, or flat memory).
Semantics are those of the head of `expr.py`. An access out of range raises InternalError with buffer, index, size and
loops; uninitialised memory holds NaN and extreme integers. Programs are translated to Python once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tedsl.errors import ArgumentError, InternalError, type_in_words
from tedsl.ir.buffer import Buffer
from tedsl.ir.calls.raw import raw_arguments
from tedsl.ir.calls.returns import result_of
from tedsl.ir.dtype import DType, wrap_integer
from tedsl.ir.expr import Expr, Var
from tedsl.ir.func import IRModule, PrimFunc, refuse_marked
from tedsl.ir.interpreter import arithmetic
from tedsl.ir.interpreter.expr import ExprCompiler
from tedsl.ir.interpreter.external import External, caller
from tedsl.ir.interpreter.stmt import compile_function
from tedsl.ir.node import Node
from tedsl.ir.walk.visitor import variables
from tedsl.record import record


class Returned(Exception):
    """Raised where the program executes `tir.ret`, with the value that it returns."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


@record
class Compiled:
    """A translated program: `function` takes the values of `needs` (variables, buffers, tensors) in that order."""

    needs: tuple[Any, ...]
    function: Callable[..., Any]
    source: str


_EXPRESSIONS: WeakKeyDictionary[Node, Compiled] = WeakKeyDictionary()
_FUNCTIONS: dict[bool, WeakKeyDictionary[Node, Compiled]] = {False: WeakKeyDictionary(), True: WeakKeyDictionary()}


def evaluate(expr: Expr, env: Mapping[Any, Any] | None = None) -> Any:
    """The value of `expr`: a Python number or bool, or an array for vectors.

    env: values of variables; numpy arrays for data pointers, buffers, and tensors that are read.
    """
    if isinstance(expr, Var):  # not kept: the entry would keep itself alive
        return _plain(_value_of(expr, env or {}))
    if expr not in _EXPRESSIONS:
        compiler = ExprCompiler()
        result = compiler.value(expr)
        _EXPRESSIONS[expr] = _finish(compiler, result)
    compiled = _EXPRESSIONS[expr]
    values = [_value_of(need, env or {}) for need in compiled.needs]
    with np.errstate(all="ignore"):
        return _plain(compiled.function(*values))


def run(func: PrimFunc, args: Sequence[Any], *, reverse_parallel: bool = False,
        external: Mapping[str, External] | None = None, module: Mapping[str, PrimFunc] | IRModule | None = None) -> Any:
    """Runs `func` on numpy arrays and Python scalars in the order of its parameters; outputs are written in place.

    Returns the number that `func` returns, as a Python number; None if it returns nothing.
    reverse_parallel: iterations of parallel loops run backwards. external: functions by name, found by call_extern
    and call_packed before registered functions and C symbols. module: the functions that `func` is built with, found first.
    LoweringError for loops that `lower` made to be read only.
    """
    refuse_marked(func)
    own: dict[str, External] = {}

    def calls_of(name: str) -> External:
        """The function by which the function `name` calls others; its own name means one from outside."""
        return caller(external or {}, {other: called for other, called in own.items() if other != name})

    for name, function in (module or {}).items():
        own[name] = partial(_called, function, partial(calls_of, name), reverse_parallel)
    env = {**bind_arguments(func, args), "external": calls_of(func.name)}
    return _executed(func, env, reverse_parallel)


def _called(func: PrimFunc, calls: Callable[[], External], reverse_parallel: bool, kind: str, *args: Any) -> Any:
    """Runs `func` for a call in another function: of its raw form, or, if `kind` is "call_packed", with arrays."""
    if kind == "call_packed":
        try:
            env = bind_arguments(func, args)
        except InternalError as misfit:
            raise ArgumentError(f"{func.name}: {misfit}") from misfit
    else:
        env = dict(zip(raw_arguments(func), args, strict=True))
    return _executed(func, {**env, "external": calls()}, reverse_parallel)


def _executed(func: PrimFunc, env: Mapping[Any, Any], reverse_parallel: bool) -> Any:
    """Runs `func` with the values `env` of its variables and buffers, and returns the number that it returns."""
    compiled = _compiled(func, reverse_parallel)
    values = [_value_of(need, env) for need in compiled.needs]
    with np.errstate(all="ignore"):
        try:
            compiled.function(*values)
        except Returned as returned:
            return _plain(returned.value)
    result = result_of(func)
    return None if result is None else _plain(_scalar(0, result))


def source_of(func: PrimFunc) -> str:
    """The Python source that `run` executes for `func`, for debugging."""
    return _compiled(func, False).source


def _compiled(func: PrimFunc, reverse_parallel: bool) -> Compiled:
    known = _FUNCTIONS[reverse_parallel]
    if func not in known:
        known[func] = _finish(compile_function(func, reverse_parallel=reverse_parallel), "None")
    return known[func]


def _finish(compiler: ExprCompiler, result: str) -> Compiled:
    main = "\n".join([f"def main({', '.join(compiler.free.values())}):", *compiler.lines, f" return {result}"])
    source = "\n".join([*compiler.functions, main])
    scope = {**compiler.scope, "Returned": Returned, "evaluate": evaluate}
    exec(compile(source, "<interpreted program>", "exec"), scope)  # the source is ours: names are made, texts are constants
    return Compiled(tuple(compiler.free), scope["main"], source)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _value_of(need: Any, env: Mapping[Any, Any]) -> Any:
    """The value of the variable, buffer or tensor `need`, in the representation that compiled programs use."""
    if need not in env:
        name = getattr(need, "name", need)
        raise InternalError(f"{name} is used but nothing binds it; bound are: "
                            f"{', '.join(sorted({str(getattr(k, 'name', k)) for k in env})) or '(none)'}")
    value = env[need]
    if not isinstance(need, Var) or need.dtype.is_handle:
        return _memory_view(value) if isinstance(value, np.ndarray) and isinstance(need, Var) else value
    return _scalar(value, need.dtype)


def _scalar(value: Any, of: DType) -> Any:
    if of.lanes > 1:
        return np.asarray(value, arithmetic.vector_type(of))
    if of.is_bool:
        return bool(value)
    return arithmetic.FROM_DOUBLE[str(of)](value) if of.is_float else wrap_integer(int(value), of)


def _memory_view(array: Any) -> Any:
    """A flat view of the memory of an array: all elements by address, from the first to the last."""
    if array.dtype.name in ("bool", "bfloat16"):
        array = array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16)
    if array.ndim == 1 and array.flags.c_contiguous:
        return array
    if any(step % array.itemsize or step < 0 for step in array.strides):
        raise InternalError(f"the interpreter takes no array with strides {array.strides} in bytes")
    steps = [step // array.itemsize for step in array.strides]
    span = 1 + sum((size - 1) * step for size, step in zip(array.shape, steps)) if array.size else 0
    return np.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,), writeable=array.flags.writeable)


# --- arguments ------------------------------------------------------------------------------------------------------

def bind_arguments(func: PrimFunc, args: Sequence[Any]) -> dict[Any, Any]:
    """The values of all variables that the arguments determine, and the memory of each buffer."""
    if len(args) != len(func.params):
        raise InternalError(f"{func.name} takes {len(func.params)} arguments, not {len(args)}")
    env: dict[Any, Any] = {}
    for param, arg in zip(func.params, args):
        if param not in func.buffer_map:
            env[param] = arg
    given = [(func.buffer_map[p], arg) for p, arg in zip(func.params, args) if p in func.buffer_map]
    for buffer, array in given:
        _check_array(buffer, array)
        env[buffer.data] = array
    facts = [fact for buffer, array in given for fact in _facts(buffer, array)]
    _solve(facts, env)
    return env


def _check_array(buffer: Buffer, array: Any) -> None:
    if not isinstance(array, np.ndarray):
        raise InternalError(f"the argument for buffer {buffer.name} is {type_in_words(array)}, not a numpy array")
    names = {"bool": ("bool", "uint8"), "bfloat16": ("bfloat16", "uint16")}.get(buffer.dtype, (buffer.dtype,))
    if array.dtype.name not in names:
        raise InternalError(f"the argument for buffer {buffer.name} of {buffer.dtype} is an array of {array.dtype.name}")
    if array.ndim != len(buffer.shape):
        raise InternalError(f"buffer {buffer.name} has {len(buffer.shape)} dimensions, its argument {array.ndim}")


def _facts(buffer: Buffer, array: Any) -> Iterable[tuple[str, Expr, int]]:
    """The equations that an array gives: a description, an expression of the buffer, and the integer that it must equal."""
    for position, (dim, size) in enumerate(zip(buffer.shape, array.shape)):
        yield f"dimension {position} of {buffer.name}", dim, size
    if buffer.strides:
        for position, (stride, step) in enumerate(zip(buffer.strides, array.strides)):
            if array.shape[position] != 1 or isinstance(stride, Var):
                yield f"stride {position} of {buffer.name}", stride, step // array.itemsize
    elif array.size and not array.flags.c_contiguous:
        raise InternalError(f"buffer {buffer.name} is compact, its argument has strides {array.strides}")
    yield f"the offset of {buffer.name}", buffer.elem_offset, 0


def _solve(facts: list[tuple[str, Expr, int]], env: dict[Any, Any]) -> None:
    """Solves the equations `facts`: variables that stand alone first, then those in linear expressions; checks the rest."""
    waiting = facts
    while waiting:
        later = []
        for what, expr, value in sorted(waiting, key=lambda fact: not isinstance(fact[1], Var)):
            unknown = [v for v in variables(expr) if v not in env]
            if len(unknown) > 1:
                later.append((what, expr, value))
                continue
            if unknown:
                at_zero, at_one = (evaluate(expr, {**env, unknown[0]: x}) for x in (0, 1))
                env[unknown[0]] = value if at_one == at_zero else (value - at_zero) // (at_one - at_zero)
            if evaluate(expr, env) != value:
                raise InternalError(f"{what} is {value}, but {expr} is {evaluate(expr, env)}")
        if len(later) == len(waiting):
            raise InternalError(f"{later[0][0]}: {later[0][1]} does not determine its variables")
        waiting = later
