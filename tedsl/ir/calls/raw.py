"""The raw form of a function: data pointers and numbers, as machine code takes them and `tir.call_extern` passes them."""

from __future__ import annotations

from tedsl.ir.calls.returns import result_of
from tedsl.ir.expr import IntImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import FrozenDict
from tedsl.ir.walk.visitor import variables


def scalar_variables(func: PrimFunc) -> tuple[Var, ...]:
    """The scalar parameters and the variables in shapes, strides and offsets of arguments, in order of first appearance."""
    scalars: dict[Var, None] = {}
    for var in func.params:
        buffer = func.buffer_map.get(var)
        if buffer is None:
            scalars.setdefault(var)
            continue
        for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            for used in () if isinstance(expr, IntImm) else variables(expr):
                scalars.setdefault(used)
    return tuple(scalars)


def raw_arguments(func: PrimFunc) -> list[Var]:
    """The data pointers of the buffer parameters, then `scalar_variables`."""
    return [*(buffer.data for buffer in func.buffers), *scalar_variables(func)]


def with_raw_arguments(func: PrimFunc) -> PrimFunc:
    """`func`, whose memory is flat, with its `raw_arguments` as parameters; itself if it has no buffers."""
    return func.replace(params=tuple(raw_arguments(func)), buffer_map=FrozenDict()) if func.buffer_map else func


def raw_signature(func: PrimFunc) -> str:
    """The raw form as text: `g(A: float32*, n: int32) -> float32`."""
    pointers = [f"{buffer.name}: {buffer.dtype}*" for buffer in func.buffers]
    numbers = [f"{var.name}: {var.dtype}" for var in scalar_variables(func)]
    result = result_of(func)
    return f"{func.name}({', '.join([*pointers, *numbers])})" + (f" -> {result}" if result is not None else "")
