"""What a kernel cannot do is refused by name, before LLVM sees it: it would end the process."""

from __future__ import annotations

import re

from tedsl.errors import InternalError, LoweringError
from tedsl.ir.expr import Call, StringImm
from tedsl.ir.func import PrimFunc
from tedsl.ir.functions import C_MATH
from tedsl.ir.ops import ALLREDUCE, CALL_EXTERN, CALL_PACKED, CALL_PURE_EXTERN, RET
from tedsl.ir.stmt import Allocate, AttrStmt, For, ForKind
from tedsl.ir.types import PointerType
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.threads import launched

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_INTRINSIC = re.compile(r"@(llvm\.[A-Za-z0-9_.]+)\(")
# LLVM's intrinsics that NVPTX has instructions for, or code of its own. Others end the process.
_KNOWN = ("abs", "ceil", "copysign", "ctlz", "ctpop", "fabs", "floor", "fma", "fptosi.sat", "fptoui.sat", "fshl", "fshr",
          "nearbyint", "nvvm", "smax", "smin", "sqrt", "trap", "trunc", "umax", "umin", "vector.reduce.or")


def check_kernel(kernel: PrimFunc) -> None:
    """Refuses what the threads of a device cannot do."""
    where = f"the kernel {kernel.name}"
    if not _IDENTIFIER.fullmatch(kernel.name):
        raise LoweringError(f"a kernel cannot be called {kernel.name!r}: names in PTX have letters, digits, _ and $",
                            hint='name the function with build(..., name="add")')
    if not (isinstance(kernel.body, AttrStmt) and launched(kernel.body) is not None):
        raise LoweringError(f"{where} launches no threads", hint='bind a loop: s[B].bind(i, te.thread_axis("blockIdx.x"))')
    for node in post_order(kernel.body):
        match node:
            case For(kind=ForKind.PARALLEL, loop_var=var):
                raise LoweringError(f"{where} has the parallel loop {var.name}: its threads are those of the device",
                                    hint="bind the loop to a thread axis instead of parallel")
            case Call():
                _check_call(node, where)
            case Allocate(buffer_var=var) if isinstance(var.type_annotation, PointerType):
                scope = var.type_annotation.storage_scope
                if scope == "warp":
                    raise LoweringError(f"{where} allocates {var.name} in scope {scope!r}, for which there is no PTX",
                                        hint="use scope shared or local")


def _check_call(call: Call, where: str) -> None:
    name = call.args[0].value if call.args and isinstance(call.args[0], StringImm) else ""
    if call.op is CALL_PACKED:
        raise LoweringError(f"{where} calls the Python function {name!r}, which runs on the processor alone",
                            hint="compute the stage outside of the launch, or as a formula")
    if call.op in (CALL_EXTERN, CALL_PURE_EXTERN) and name not in C_MATH:
        raise LoweringError(f"{where} calls the C function {name!r}, which no device has",
                            hint="write it as a formula of te")
    if call.op is RET:
        raise LoweringError(f"{where} returns a number (tir.ret): kernels store their results")
    if call.op is ALLREDUCE:
        raise InternalError(f"{where} still has tvm_thread_allreduce: lower_allreduce must run before")


def check_intrinsics(text: str) -> None:
    """Refuses a module that uses intrinsics of LLVM that NVPTX does not have."""
    for name in sorted(set(_INTRINSIC.findall(text))):
        if not any(name[5:] == known or name[5:].startswith(known + ".") for known in _KNOWN):
            raise LoweringError(f"the intrinsic {name} is not one that devices have")
