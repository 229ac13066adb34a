"""Put kernels back in the place of their calls: what `split_kernels` does, undone, so that `build` may take either form.

before:  f(A, B, n):  tir.call_packed("f_kernel0", A, B, n, (n + 31) // 32, 32)
         f_kernel0(A: Pointer, B: Pointer, n):  attr [blockIdx.x] "thread_extent" = (n + 31) // 32; ...
after:   f(A, B, n):  attr [blockIdx.x] "thread_extent" = (n + 31) // 32; ...

A workspace that the host takes from the device is memory again that the function allocates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Call, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import FrozenDict
from tedsl.ir.ops import CALL_PACKED
from tedsl.ir.stmt import Allocate, Evaluate, LetStmt, Stmt, no_op
from tedsl.ir.types import PointerType
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import fresh_copy, substitute
from tedsl.runtime.devices.launch import ALLOCATE, FREE
from tedsl.runtime.signature import WRITTEN

CALLING_CONVENTION = "calling_conv"  # attribute of a function, with TVM's numbers:
PACKED, DEVICE = 1, 2  # called with arrays and numbers; a kernel of a device


def is_kernel(func: PrimFunc) -> bool:
    """Tells whether a function is a kernel that `tir.transform.SplitHostDevice` has made."""
    return build.as_int(func.attrs.get(CALLING_CONVENTION)) == DEVICE


def join_kernels(functions: Mapping[str, PrimFunc]) -> dict[str, PrimFunc]:
    """Returns the functions that are no kernels, with the kernels that they call in the place of the calls.

    Raises LoweringError for a kernel that no function calls, or that is called with too few arguments.
    """
    kernels = {name: func for name, func in functions.items() if is_kernel(func)}
    if not kernels:
        return dict(functions)
    joining = _Joining(kernels)
    made = {name: _joined(func, joining) for name, func in functions.items() if name not in kernels}
    alone = [name for name in kernels if name not in joining.placed]
    if alone:
        raise LoweringError(f"the kernel {alone[0]} is called by no function of the module",
                            hint="build the whole module that SplitHostDevice made: its host function launches it")
    return made


def _joined(func: PrimFunc, joining: _Joining) -> PrimFunc:
    body = joining(func.body)
    if body is func.body:
        return func
    return func.replace(body=body, attrs=FrozenDict({key: value for key, value in func.attrs.items() if key != WRITTEN}))


class _Joining(Rewriter):
    """Replaces calls of kernels by their bodies. placed: the kernels whose body stands somewhere."""

    kinds = (CALL_PACKED,)

    def __init__(self, kernels: Mapping[str, PrimFunc]) -> None:
        super().__init__()
        self.kernels = kernels
        self.placed: set[str] = set()

    def rewrite(self, node: Any) -> Any:
        match node:
            case Evaluate(value=Call(op=op, args=(StringImm(value=name), *args))) if op is CALL_PACKED:
                return self.launch(name, args) if name in self.kernels else no_op() if name == FREE else node
            case LetStmt(var=var, value=Call(op=op, args=(StringImm(value=name), size)), body=body) if (
                    op is CALL_PACKED and name == ALLOCATE):
                return _memory(var, size, body)
            case _:
                return node

    def launch(self, name: str, args: list[Any]) -> Stmt:
        kernel = self.kernels[name]
        if len(args) < len(kernel.params):
            raise LoweringError(f"the kernel {name} takes {len(kernel.params)} arguments, and is called with {len(args)}")
        body = kernel.body if name not in self.placed else fresh_copy(kernel.body)
        self.placed.add(name)
        return substitute(body, {param: arg for param, arg in zip(kernel.params, args) if param is not arg})


def _memory(var: Var, size: Any, body: Stmt) -> Stmt:
    annotation = var.type_annotation
    assert isinstance(annotation, PointerType)
    of = annotation.element_type.dtype
    return Allocate(var, of, (build.floordiv(size, of.bytes * of.lanes),), build.true(), body)
