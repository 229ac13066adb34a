"""The calling convention of kernels: the order and types of arguments, the status returned, the messages of assertions.

A function `f` of the loop IR becomes `i32 @f.kernel(pointers..., scalars...)`: one pointer per buffer parameter, then one
value per scalar variable. Integers travel as i64, sign- or zero-extended from their dtype; floats as float or double
(float16 and bfloat16 as float); handles as pointers. A function that returns a number (`tir.ret`) takes one pointer more, the
last argument: there it stores the number, in the type in which a scalar of its dtype travels.
"""

from __future__ import annotations

from collections.abc import Callable

from tedsl.errors import InternalError
from tedsl.ir.calls.raw import raw_arguments
from tedsl.ir.expr import StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import AssertStmt
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.visitor import statements

# What a kernel and the body of a parallel loop return. Anything else but OK ends the kernel at once.
OK = 0
NO_MEMORY = 1  # a workspace could not be allocated: MemoryError
CALLBACK_RAISED = 3  # a Python function raised: runtime/callbacks.py has the exception
FIRST_ASSERTION = 16  # 16 + k: the message number k of `assertion_messages`

COMPACT = ".compact"  # after the name of a function: its version for compact arrays
WORKSPACE_ALIGNMENT = 64  # of workspaces and of arrays on the stack, in bytes
STACK_LIMIT = 64 * 1024  # bytes of all fixed-size arrays of one function


def kernel_name(func: PrimFunc) -> str:
    """Returns the symbol of the machine code of `func`."""
    return f"{func.name}.kernel"


def kernel_arguments(func: PrimFunc) -> list[Var]:
    """Lists the kernel's arguments: the data pointers of the buffer parameters, then every scalar variable in order of first
    appearance.

    Scalars are the scalar parameters and the variables in shapes, strides and offsets of the buffers.
    """
    return raw_arguments(func)


def assertion_messages(func: PrimFunc) -> list[str]:
    """Lists the distinct messages of the assertions in `func`; a kernel that fails message k returns status 16 + k."""
    messages: dict[str, None] = {}
    for s in statements(func.body) if contains(func.body, AssertStmt) else ():
        if isinstance(s, AssertStmt):
            messages.setdefault(s.message.value if isinstance(s.message, StringImm) else str(s.message))
    return list(messages)


def own_status(func: PrimFunc) -> Callable[[str], int]:
    """Returns the function that gives the status of each of the `assertion_messages` of `func`."""
    messages = assertion_messages(func)
    return lambda message: FIRST_ASSERTION + messages.index(message)


def assertion_message(status: int, messages: list[str]) -> str:
    """Returns the message for the non-zero `status` with which a kernel failed."""
    if not 0 <= status - FIRST_ASSERTION < len(messages):
        raise InternalError(f"a kernel returned the unknown status {status}")
    return messages[status - FIRST_ASSERTION]
