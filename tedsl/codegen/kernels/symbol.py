"""What a compiled kernel is called."""

from __future__ import annotations

from tedsl.ir.dtype import DType
from tedsl.ir.expr import Var
from tedsl.record import record


@record
class KernelSymbol:
    """The symbol of a compiled kernel, and the variables that it takes after the data pointers, in order.

    messages_before: messages of the function's other versions, which stand before its own in the list for the caller.
    result: the dtype of the number that it returns, in a slot whose address is its last argument.
    """

    symbol: str
    scalars: tuple[Var, ...]
    messages_before: int = 0
    result: DType | None = None
