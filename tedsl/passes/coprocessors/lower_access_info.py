"""Write pointers to elements as addresses, and memory of scopes with a tag as what the program says that it is.

before:  allocate(S, [8]), storage_scope = local.inp { f(tvm_access_ptr(int8, S, 4, 4, 1), tvm_access_ptr(int8, A, 0, 4, 2)) }
after:   let S = head() { f(address_of(S[4]), address_of(A[0])) }

What the registered function "tvm.info.mem.local.inp" returns has the attribute `head_address`, an expression; where it is None,
the machine knows the memory by its name, and the allocation is dropped. How many elements a call accesses, and whether it
writes them, is lost: analyses of memory come before this pass.
"""

from __future__ import annotations

from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import HANDLE
from tedsl.ir.expr import Call, Expr, Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.functions import FUNCTIONS
from tedsl.ir.ops import ACCESS_PTR, ADDRESS_OF
from tedsl.ir.stmt import Allocate, LetStmt
from tedsl.ir.types import PointerType, memory_kind
from tedsl.ir.walk.rewriter import Rewriter


def lower_access_info(func: PrimFunc) -> PrimFunc:
    """Returns `func` without `tir.tvm_access_ptr` and without allocations of tagged memory that the program has registered."""
    return func.with_body(_Addresses()(func.body))


class _Addresses(Rewriter):
    kinds = (Allocate, ACCESS_PTR)

    def rewrite(self, node: Any) -> Any:
        match node:
            case Call(op=op, args=(marker, Var() as memory, offset, *_)) if op is ACCESS_PTR:
                of = marker.dtype
                return Call(HANDLE, ADDRESS_OF, (Load(of.element, memory, build.mul(offset, of.lanes)),))
            case Allocate(buffer_var=memory, body=body) if (registered := _registered(memory)) is not None:
                head = getattr(registered, "head_address", None)
                if head is None:
                    return body
                if not isinstance(head, Expr) or not head.dtype.is_handle:
                    raise LoweringError(f"the head_address of the memory of {memory.name} is {head!r}, not an address",
                                        hint='for example tir.call_extern("handle", "memory_of_inputs")')
                return LetStmt(memory, head, body)
            case _:
                return node


def _registered(memory: Var) -> object | None:
    """Returns what the program says of the tagged memory that a pointer is of; None if it has no tag, or nothing is said."""
    annotation = memory.type_annotation
    scope = annotation.storage_scope if isinstance(annotation, PointerType) else ""
    if memory_kind(scope) in (scope, "wmma") or scope == "shared.dyn":
        return None
    function = FUNCTIONS.get(f"tvm.info.mem.{scope}")
    return None if function is None else function.function()
