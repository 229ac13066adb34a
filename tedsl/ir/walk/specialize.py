"""Functions for known numbers and shapes: `func.specialize({n: 16})`, `func.specialize({a: tir.decl_buffer((16, 16))})`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, ShapeError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.script import shown
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.substitute import Substitution


def specialized(func: PrimFunc, param_map: Mapping[Var, Any]) -> PrimFunc:
    """Returns `func` with values for parameters: a scalar parameter gets a number or an expression, and is none any more; that
    of a buffer gets a buffer whose extents and strides are the values of the variables in its own.

    Raises ShapeError for a buffer that does not fit, ArgumentError for two values of one variable and for what is no parameter.
    """
    if not isinstance(param_map, Mapping):
        raise ArgumentTypeError(f"specialize takes a dict of parameters and their values, not {param_map!r}", hint="{n: 16}")
    values: dict[Var, Expr] = {}
    for param, value in param_map.items():
        if not any(param is own for own in func.params):
            raise ArgumentError(f"specialize: {shown(param)} is no parameter of {func.name}",
                                hint=f"its parameters are {', '.join(own.name for own in func.params)}, in func.params")
        for var, known in _values_of(func, param, value):
            if var in values and not structural_equal(values[var], known):
                raise ArgumentError(f"specialize: {var.name} is {shown(values[var])} and {shown(known)}")
            values[var] = known
    change = Substitution(values)
    buffers = {param: change.buffer(buffer) for param, buffer in func.buffer_map.items()}
    return func.replace(params=tuple([param for param in func.params if param not in values]), body=change(func.body),
                        buffer_map=buffers)


def _values_of(func: PrimFunc, param: Var, value: Any) -> Iterator[tuple[Var, Expr]]:
    """The variables that the value of one parameter decides, with what they are."""
    buffer = func.buffer_map.get(param)
    if buffer is None:
        known = build.as_expr(value, param.dtype) if not isinstance(value, Buffer) else None
        if known is None or known.dtype is not param.dtype:
            raise ArgumentTypeError(f"specialize: {param.name} is a number of dtype {param.dtype}, not {value!r}")
        yield param, known
        return
    if not isinstance(value, Buffer):
        raise ArgumentTypeError(f"specialize: {param.name} is a buffer, not {value!r}", hint="tir.decl_buffer(shape, dtype)")
    if value.dtype is not buffer.dtype or len(value.shape) != len(buffer.shape):
        raise ShapeError(f"specialize: {param.name} is of {buffer.dtype} and shape {shown(buffer.shape)}, the buffer of "
                         f"{value.dtype} and shape {shown(value.shape)}")
    strides = zip(buffer.strides, value.strides) if value.strides else ()
    for own, known in (*zip(buffer.shape, value.shape), *strides):
        if isinstance(own, Var):
            yield own, build.cast(own.dtype, known)
        elif not structural_equal(own, known):
            raise ShapeError(f"specialize: an extent or stride of {param.name} is {shown(own)}, of the buffer {shown(known)}")
