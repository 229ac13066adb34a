"""The memory whose address is passed to calls, so that checked mode cannot see all of its accesses."""

from __future__ import annotations

from collections.abc import Iterator

from tedsl.ir.expr import BufferLoad, Call, Load, Var
from tedsl.ir.ops import ADDRESS_OF, ELEMENTS_PAST_LINE
from tedsl.ir.stmt import Stmt
from tedsl.ir.walk.visitor import post_order


def handed_out(body: Stmt) -> Iterator[Var]:
    """Yields the data pointers that calls in `body` receive, to access memory, and those into whose memory they receive
    addresses.
    """
    for node in post_order(body):
        if isinstance(node, Call) and node.op is not ELEMENTS_PAST_LINE:
            for arg in node.args:
                if isinstance(arg, Var) and arg.dtype.is_handle:
                    yield arg
                elif isinstance(arg, Load) and node.op is ADDRESS_OF:
                    yield arg.buffer_var
                elif isinstance(arg, BufferLoad) and node.op is ADDRESS_OF:
                    yield arg.buffer.data
