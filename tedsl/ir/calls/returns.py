"""`tir.ret`: the number that a function returns, and where a function may return it."""

from __future__ import annotations

from collections.abc import Iterator

from tedsl.errors import DTypeError, LoweringError
from tedsl.ir.dtype import VOID, DType
from tedsl.ir.expr import Call
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.ops import RET
from tedsl.ir.stmt import THREADS, AttrStmt, Evaluate, For, ForKind, Stmt
from tedsl.ir.types import PrimType
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.visitor import post_order

_TOGETHER = {ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorized", ForKind.THREAD_BINDING: "bound to threads"}


def result_of(func: PrimFunc) -> DType | None:
    """The dtype of the number that `func` returns; None if it returns nothing.

    It is the declared return type of the function, or else that of its first `tir.ret`. If a function returns a number on one
    path, it returns 0 where control reaches its end.
    """
    if func.ret_type is not None:
        stated = func.ret_type.dtype if isinstance(func.ret_type, PrimType) else None
        return None if stated is VOID else stated
    if not contains(func.body, RET):
        return None
    first = next(n for n in post_order(func.body) if isinstance(n, Call) and n.op is RET)
    return first.args[0].dtype


def with_result(func: PrimFunc) -> PrimFunc:
    """`func` with the dtype of its returns as `ret_type`, so that it stays known when a pass removes an unreachable return.

    Raises LoweringError for a return that is not a statement, or is inside iterations or threads that run at the same time;
    DTypeError for one of a value that is not a number, or of another dtype than the other returns.

    Raises LoweringError for a return that is not a statement, or stands where iterations or threads run together; DTypeError
    for one of something else than a number, or of another dtype than the others.
    """
    if not contains(func.body, RET):
        return func
    returns = [n for n in post_order(func.body) if isinstance(n, Call) and n.op is RET]
    check_returns(func)
    return func if func.ret_type is not None else func.replace(ret_type=PrimType(returns[0].args[0].dtype))


def check_returns(func: PrimFunc) -> None:
    """Raises the errors of `with_result`."""
    statements: set[int] = set()
    result = result_of(func)
    for call, together in _returns(func.body):
        statements.add(id(call))
        of = call.args[0].dtype
        if together:
            raise LoweringError(f"{func.name}: tir.ret inside of {together}: one iteration cannot end the others",
                                hint="store what is to be returned, and return it after the loop; or make the loop serial")
        if of.lanes > 1 or not (of.is_float or of.is_integer or of.is_bool):
            raise DTypeError(f"{func.name}: tir.ret of {of}; a function returns one number", hint="return a scalar; arrays are "
                             "outputs: store into a buffer of the caller")
        if of is not result:
            raise DTypeError(f"{func.name} returns {result or 'nothing'}, and tir.ret of {of}",
                             hint=f"cast the value: tir.ret(x.astype({str(result)!r}))" if result else "leave ret_type out")
    for node in post_order(func.body):
        if isinstance(node, Call) and node.op is RET and id(node) not in statements:
            raise LoweringError(f"{func.name}: tir.ret is used as a value; it ends the function, and has none",
                                hint="write it as a statement: ib.emit(tir.ret(x))")


def _returns(body: Stmt) -> Iterator[tuple[Call, str]]:
    """Yields the returns that are statements, each with a description of the loop around it whose iterations run at the same
    time.
    """
    stack = [(body, "")]
    while stack:
        s, together = stack.pop()
        match s:
            case Evaluate(value=Call(op=op) as call) if op is RET:
                yield call, together
            case For(kind=kind) if kind in _TOGETHER and not together:
                together = f"the loop {s.loop_var.name}, which is {_TOGETHER[kind]}"
            case AttrStmt(node=IterVar() as thread, attr_key=key) if key in THREADS and not together:
                together = f"the threads {thread.name}"
        stack.extend([(child, together) for child in reversed(s.child_nodes()) if isinstance(child, Stmt)])
