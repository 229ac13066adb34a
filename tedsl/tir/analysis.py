"""Analyses of functions and expressions, by the names of TVM's tir.analysis."""

from tedsl.errors import entries
from tedsl.ir.func import PrimFunc
from tedsl.ir.walk.equal import structural_equal as expr_deep_equal
from tedsl.ir.walk.single_assignment import verify_ssa
from tedsl.ir.walk.undefined import undefined_vars
from tedsl.passes.device.verify_gpu_code import verify_gpu_code
from tedsl.passes.facts.workspace import calculate_workspace_bytes
from tedsl.passes.verify_memory import accessed_by_host

__all__ = ["calculate_workspace_bytes", "expr_deep_equal", "undefined_vars", "verify_gpu_code", "verify_memory", "verify_ssa"]


def verify_memory(func: PrimFunc) -> bool:
    """Tells whether a function whose attribute "target" is a GPU accesses its arguments only in threads; True for other
    targets.
    """
    return not accessed_by_host(func)


entries(globals())
