"""Tensors computed by the statements of a function that is there: te.extern_primfunc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import BufferStore, Store
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.extern import extern
from tedsl.lang.tensor import Tensor


def extern_primfunc(input_tensors: Sequence[Tensor], primfunc: PrimFunc, **kwargs: Any) -> Any:
    """The outputs of a function of buffers for the tensors: a tensor, or a list of several.

    Its outputs are the parameters that it stores to, its inputs the others, which the tensors stand for in order. kwargs: those
    of te.extern, as name and tag. A function of scalars besides, or that changes an input, is refused.
    """
    if not isinstance(primfunc, PrimFunc):
        raise ArgumentTypeError(f"extern_primfunc takes a function, not {type_in_words(primfunc)}",
                                hint="te.create_prim_func([A, B]), or tir.PrimFunc([A, B], stmt)")
    scalars = [param.name for param in primfunc.params if param not in primfunc.buffer_map]
    if scalars:
        raise ArgumentError(f"extern_primfunc: {primfunc.name} has parameters that are no buffers: {', '.join(scalars)}",
                            hint="func.specialize({param: value}) replaces them")
    stored = _stored(primfunc)
    outputs = [buffer for buffer in primfunc.buffers if buffer in stored or buffer.data in stored]
    inputs = [buffer for buffer in primfunc.buffers if buffer not in outputs]
    if not outputs:
        raise ArgumentError(f"extern_primfunc: {primfunc.name} stores to none of its parameters",
                            hint="outputs are parameters too")
    given = [input_tensors] if isinstance(input_tensors, Tensor) else list(input_tensors)
    if len(given) != len(inputs):
        raise ArgumentError(f"extern_primfunc: {primfunc.name} has {len(inputs)} inputs, {_names(inputs)}, and there are "
                            f"{len(given)} tensors", hint=f"it stores to {_names(outputs)}, which it returns")
    return extern([buffer.shape for buffer in outputs], given, lambda ins, outs: primfunc.body,
                  dtype=[buffer.dtype for buffer in outputs], in_buffers=inputs, out_buffers=outputs,
                  **{"name": primfunc.name, **kwargs})


def _stored(func: PrimFunc) -> set[Buffer | Var]:
    """The buffers, and in flat memory the pointers, that a function stores to."""
    found: set[Buffer | Var] = set()
    for node in post_order(func.body):
        if isinstance(node, BufferStore):
            found.add(node.buffer)
        elif isinstance(node, Store):
            found.add(node.buffer_var)
    return found


def _names(buffers: Sequence[Buffer]) -> str:
    return ", ".join(buffer.name for buffer in buffers) or "none"
