"""The statements in which all threads of a block must take part: barriers, and reductions across threads."""

from __future__ import annotations

from typing import NoReturn

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, StringImm, Var
from tedsl.ir.ops import ALLREDUCE, SYNC
from tedsl.ir.script import shown
from tedsl.ir.stmt import Evaluate, Stmt
from tedsl.ir.walk.visitor import post_order, variables


def barrier() -> Stmt:
    """A barrier: all threads of the block wait here for each other."""
    return Evaluate(Call(build.const(0, "int32").dtype, SYNC, (StringImm("shared"),)))


def is_barrier(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op is SYNC


def is_allreduce(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op is ALLREDUCE


def reduction_parts(stmt: Evaluate) -> tuple[tuple[Expr, ...], list[Var], set[Var]]:
    """The values and the condition of a reduction across threads, where its results go, and the threads that it is across."""
    assert isinstance(stmt.value, Call)
    args = stmt.value.args
    count = build.as_int(args[0])
    if count is None or len(args) < 2 + 2 * count:
        raise LoweringError(f"{shown(stmt.value)} does not have the arguments count, values, condition, results, threads")
    places, threads = args[2 + count:2 + 2 * count], args[2 + 2 * count:]
    if not all(isinstance(arg, Var) for arg in places):
        raise LoweringError(f"the results of {shown(stmt.value)} are data pointers")
    return args[1:2 + count], [v for v in places if isinstance(v, Var)], {v for v in threads if isinstance(v, Var)}


def meeting(stmt: Stmt) -> Stmt | None:
    """A barrier or reduction in `stmt`, in which all threads of the block must take part; None if there is none."""
    return next((node for node in post_order(stmt) if isinstance(node, Evaluate) and (is_barrier(node) or is_allreduce(node))),
                None)


def divergent(stmt: Stmt, expr: Expr, where: str, *, written: bool = True) -> NoReturn:
    """Raises LoweringError for a barrier or reduction that only some threads reach.

    where: the statement around it. written: the user wrote the barrier; otherwise it had to be inserted.
    """
    what = "the barrier tvm_storage_sync" if is_barrier(stmt) else "the reduction across threads (tvm_thread_allreduce)"
    if not written:
        what = "threads must wait for each other here, since one uses what another stores: the place"
    raise LoweringError(f"{what} stands under {where} {shown(expr)}, which differs among the threads of a block: some would "
                        "wait for others that never come",
                        hint="make the condition the same for all threads, or close it before the barrier and repeat it after",
                        about=thread_in(expr))


def thread_in(expr: Expr) -> str:
    """The tag of the thread axis on which `expr` depends, for the cause of an error."""
    return next((v.name for v in variables(expr) if "threadIdx" in v.name), "threadIdx.x")
