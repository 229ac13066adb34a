"""Refuses calls on fragments (tensor cores) that the threads of a warp do not make together.

    attr [threadIdx.x] "thread_extent" = 32 { if (threadIdx.x < 16) { tvm_mma_sync(...) } }      16 threads of 32

A warp is a row of 32 threads along threadIdx.x. All of its threads reach such a call, with the same arguments: what decides
whether it runs, which fragments it is of and which elements it moves does not depend on threadIdx.x.
"""

from __future__ import annotations

from typing import NoReturn

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.calls.fragments import fragments_of, is_fragment, scope_of
from tedsl.ir.expr import Call, Expr, Load
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.ops import FRAGMENT_OPS
from tedsl.ir.script import shown
from tedsl.ir.stmt import Evaluate, For, IfThenElse, Stmt, Store, While
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.threads import launched
from tedsl.passes.threads.gather_threads import Kernel, kernel_of
from tedsl.passes.threads.uniform import Uniformity

WARP = 32
ROW = "threadIdx.x"


def check_fragments(func: PrimFunc) -> PrimFunc:
    """Returns `func`, whose launches are gathered, unchanged; LoweringError if a call on fragments is not of a whole warp."""
    if not contains(func.body, *FRAGMENT_OPS):
        return func
    pending: list[Stmt] = [func.body]
    while pending:
        stmt = pending.pop()
        if launched(stmt) is not None:
            kernel = kernel_of(stmt)
            if contains(kernel.body, *FRAGMENT_OPS):
                _check_kernel(kernel)
        elif isinstance(stmt, Evaluate) and has_fragments(stmt.value):
            raise LoweringError(f"{shown(stmt.value)} stands outside of a kernel: the threads of a warp call it together",
                                hint=f"bind the loops around it to blocks and threads, {WARP} of them to {ROW}")
        else:
            pending += [child for child in stmt.child_nodes() if isinstance(child, Stmt)]
    return func


def has_fragments(node: Node) -> bool:
    """Tells whether `node` is a call on fragments."""
    return isinstance(node, Call) and node.op in FRAGMENT_OPS


def _check_kernel(kernel: Kernel) -> None:
    fragments_of(kernel.body)
    row = next((thread for thread in kernel.axes if thread.axis.thread_tag == ROW), None)
    threads = 1 if row is None else build.as_int(row.count)
    if row is None or threads != WARP:
        many = "has no threads" if row is None else f"has {shown(row.count)} threads"
        raise LoweringError(f"tensor cores work for warps of {WARP} threads along {ROW}, and the kernel {many} there",
                            hint=f"split a loop of the stages that fill shared memory by {WARP} and bind it to {ROW}; bind "
                                 "tiles of the result to threadIdx.y and threadIdx.z", about=ROW)
    for node in post_order(kernel.body):
        if isinstance(node, (Load, Store)) and is_fragment(node.buffer_var):
            memory = node.buffer_var
            raise LoweringError(f"an element of {memory.name}, of scope {scope_of(memory)!r}, is used alone: no thread has it",
                                hint="replace the loops of each stage of scope wmma.* by calls, with tensorize")
    _Together(Uniformity(Kernel((row,), kernel.body))).stmt(kernel.body)


class _Together:
    """Walks to the calls on fragments, and looks at what decides whether and how they run. uniform: of the threads of a row."""

    def __init__(self, uniform: Uniformity) -> None:
        self.depends = uniform.depends
        self.varying = {var for var in uniform.varying if not is_fragment(var)}

    def stmt(self, stmt: Stmt) -> None:
        calls = [node for node in post_order(stmt) if has_fragments(node)]
        if not calls:
            return
        match stmt:
            case For(min=low, extent=extent):
                self.agree(low, calls[0], f"runs in the loop {stmt.loop_var.name} from")
                self.agree(extent, calls[0], f"runs in the loop {stmt.loop_var.name} of extent")
            case While(condition=condition) | IfThenElse(condition=condition):
                self.agree(condition, calls[0], "runs under the condition")
            case Evaluate(value=Call() as call) if has_fragments(call):
                for arg in call.args:
                    self.agree(arg, call, "has the argument")
        for child in stmt.child_nodes():
            if isinstance(child, Stmt):
                self.stmt(child)

    def agree(self, expr: Expr, call: Node, where: str) -> None:
        if self.depends.on_any(expr, self.varying):
            _apart(expr, call, where)


def _apart(expr: Expr, call: Node, where: str) -> NoReturn:
    assert isinstance(call, Call)
    raise LoweringError(f"{shown(call)} {where} {shown(expr)}, which differs among the threads of a warp: they make the call "
                        "together", hint=f"compute it without {ROW}: with threadIdx.y, which numbers the warps, for example",
                        about=ROW)
