"""The element that the address in a call is of."""

from __future__ import annotations

from tedsl.errors import LoweringError
from tedsl.ir.expr import Call, Expr, Load, Var
from tedsl.ir.ops import ACCESS_PTR, ADDRESS_OF
from tedsl.ir.script import shown


def addressed(call: Call) -> tuple[Var, Expr]:
    """Returns the memory and the index of the element whose address is the first argument of `call`."""
    match call.args[0]:
        case Call(op=op, args=(Load(buffer_var=memory, index=index),)) if op is ADDRESS_OF:
            return memory, index
        case Call(op=op, args=(_, Var() as memory, offset, *_)) if op is ACCESS_PTR:
            return memory, offset
    raise LoweringError(f"{shown(call)}: {shown(call.args[0])} is not the address of an element",
                        hint='write tir.call_intrin("handle", "tir.address_of", A[i]), or A.access_ptr("rw", offset=i)')
