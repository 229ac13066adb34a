"""Calls of packed functions get arrays where they were given bare pointers: no function of Python takes an address.

before:  call_packed("f", A.data, 3)            after:  call_packed("f", tvm_stack_make_array(A.data, shape of A, ...), 3)

The buffer of a pointer is that of the parameter whose memory it is, or a row of the elements that an allocation has.
"""

from __future__ import annotations

from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import HANDLE, INT32, DType
from tedsl.ir.expr import Call, Expr, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import CALL_PACKED, MAKE_ARRAY, MAKE_SHAPE
from tedsl.ir.stmt import Allocate
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import post_order


def legalize_calls(func: PrimFunc) -> PrimFunc:
    """Returns `func` with arrays for the pointers that its calls of packed functions pass.

    Raises LoweringError for a pointer to memory of which no buffer is known.
    """
    if not contains(func.body, CALL_PACKED):
        return func
    arrays = {buffer.data: _array(buffer.data, buffer.dtype, buffer.shape, buffer.strides, buffer.elem_offset)
              for buffer in func.buffers}
    for node in post_order(func.body):
        if isinstance(node, Allocate):
            arrays[node.buffer_var] = _array(node.buffer_var, node.dtype, node.extents, (), build.const(0, INT32))
    return func.with_body(_Legalizing(func.name, arrays)(func.body))


def _array(data: Var, of: DType, shape: tuple[Expr, ...], strides: tuple[Expr, ...], offset: Expr) -> Expr:
    steps: Expr = Call(HANDLE, MAKE_SHAPE, strides) if strides else build.const(0, INT32)
    return Call(HANDLE, MAKE_ARRAY, (data, Call(HANDLE, MAKE_SHAPE, shape), steps, build.const(len(shape), INT32),
                                     build.const(0, of), offset))


class _Legalizing(Rewriter):
    kinds = (CALL_PACKED,)

    def __init__(self, name: str, arrays: dict[Var, Expr]) -> None:
        super().__init__()
        self.name, self.arrays = name, arrays

    def rewrite(self, node: Any) -> Any:
        match node:
            case Call(op=op, args=(name, *args)) if op is CALL_PACKED:
                made = [self.argument(arg, name) for arg in args]
                return node if all(new is old for new, old in zip(made, args)) else node.replace(args=(name, *made))
            case _:
                return node

    def argument(self, arg: Expr, called: Expr) -> Expr:
        if not isinstance(arg, Var) or not arg.dtype.is_handle:
            return arg
        if arg not in self.arrays:
            raise LoweringError(f"LegalizePackedCalls: {self.name} calls {called!r} with {arg.name}, a pointer of which no "
                                "buffer is known",
                                hint="pass a buffer, or give the function one: buffer_map={p: tir.decl_buffer(...)}")
        return self.arrays[arg]
