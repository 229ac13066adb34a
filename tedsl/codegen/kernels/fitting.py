"""Verifies, as the last step before code is emitted, the dtypes of calls against their operators, and of loads and stores
against their memory.

A value in a register of another width than the surrounding code expects would be stored out of bounds. `lang` and the verifier
refuse that where the program is written; this refuses what a pass of the user adds later.
"""

from __future__ import annotations

from tedsl.errors import LoweringError
from tedsl.ir.calls.returns import check_returns
from tedsl.ir.calls.signatures import misfit
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Call, Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import RET
from tedsl.ir.stmt import Store
from tedsl.ir.types import PointerType
from tedsl.ir.walk.contents import of_kinds


def check_fitting(func: PrimFunc) -> None:
    """Raises LoweringError for the first call, load or store of `func` whose dtypes do not fit, and for a return in a loop
    whose iterations run together.
    """
    returns = False
    for node in of_kinds(func.body, Call, Load, Store):
        if type(node) is Call:
            problem = misfit(node)
            returns |= node.op is RET
        elif type(node) is Load:
            problem = _through(node.buffer_var, node.dtype)
        elif type(node) is Store:
            problem = _through(node.buffer_var, node.value.dtype)
        else:
            continue
        if problem:
            raise LoweringError(f"{func.name} cannot become machine code: {problem}",
                                hint="convert with .astype where the program, or a pass of its own, makes this")
    if returns:
        check_returns(func)


def _through(var: Var, access: DType) -> str:
    annotation = var.type_annotation
    if not isinstance(annotation, PointerType) or annotation.element_type.dtype.element is access.element:
        return ""
    return f"an access of {access} to {var.name}, which holds {annotation.element_type.dtype.element}"
