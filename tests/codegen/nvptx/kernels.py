"""Schedules as kernels of a device, and their PTX."""

from tedsl.codegen.nvptx.backend import PTXBackend
from tedsl.ir.expr import CommReducer, Let, Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Allocate, AttrStmt, For, LetStmt, Stmt, Store
from tedsl.ir.types import PointerType
from tedsl.ir.walk.visitor import post_order
from tedsl.lower.lower import lower_schedule
from tedsl.passes.config import PassConfig
from tedsl.passes.default import lowering_pipeline
from tedsl.passes.facts.threads import launched
from tedsl.passes.machine.choose_fma import choose_fma
from tedsl.passes.machine.lower_intrinsics import lower_intrinsics
from tedsl.passes.machine.split_vectors import split_vectors
from tedsl.passes.machine.straighten_indices import straighten_indices
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.insert_barriers import insert_barriers
from tedsl.target import Target


def kernels_of(func):
    """The launches of a flat function whose barriers are inserted, each as a function of its own."""
    found = []

    def visit(stmt):
        if launched(stmt) is not None:
            found.append(stmt)
            return
        for child in stmt.child_nodes():
            if isinstance(child, Stmt):
                visit(child)

    visit(func.body)
    return [PrimFunc(_parameters(body, func), body, None, {}, {"global_symbol": f"{func.name}_kernel{k}", "tir.noalias": True})
            for k, body in enumerate(found)]


def _parameters(body, func):
    bound, used = set(), {}
    for node in post_order(body):
        match node:
            case For(loop_var=var) | LetStmt(var=var) | Let(var=var) | Allocate(buffer_var=var):
                bound.add(var)
            case CommReducer():
                bound |= {*node.lhs, *node.rhs}
            case AttrStmt() if (axis := launched(node)) is not None:
                bound.add(axis.var)
            case Load(buffer_var=var) | Store(buffer_var=var):
                used[var] = None
            case Var():
                used[node] = None
    used = [var for var in used if var not in bound]
    arrays = [buffer.data for buffer in func.buffers]
    used.sort(key=lambda var: arrays.index(var) if var in arrays else len(arrays))
    return tuple(sorted(used, key=lambda var: not isinstance(var.type_annotation, PointerType)))


def flat(s, args):
    """The function of a schedule, with its launches gathered and its barriers inserted."""
    return insert_barriers(gather_threads(lowering_pipeline(PassConfig())(lower_schedule(s, args))))


def device_code(s, args, arch="sm_80", config=None):
    """The PTX of a schedule."""
    target = Target(f"cuda -arch={arch}")
    made = []
    for kernel in kernels_of(flat(s, args)):
        for step in (straighten_indices, lambda f: split_vectors(f, target), lower_intrinsics, choose_fma):
            kernel = step(kernel)
        made.append(kernel)
    return PTXBackend().compile_kernels(made, target, config or PassConfig())
