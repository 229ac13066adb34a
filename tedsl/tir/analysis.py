"""Analyses of functions and expressions, by the names of TVM's tir.analysis."""

from tedsl.aliases import import_as
from tedsl.errors import ArgumentTypeError, entries, type_in_words
from tedsl.ir.func import PrimFunc
from tedsl.ir.walk import single_assignment
from tedsl.ir.walk.equal import structural_equal as expr_deep_equal
from tedsl.ir.walk.undefined import undefined_vars
from tedsl.passes.device.verify_gpu_code import verify_gpu_code
from tedsl.passes.facts.workspace import calculate_workspace_bytes
from tedsl.passes.verify_memory import accessed_by_host

__all__ = ["calculate_workspace_bytes", "expr_deep_equal", "undefined_vars", "verify_gpu_code", "verify_memory", "verify_ssa"]


def verify_memory(func: PrimFunc) -> bool:
    """Tells whether a function whose attribute "target" is a GPU accesses its arguments only in threads; True for other
    targets.
    """
    _check_function("verify_memory", func)
    return not accessed_by_host(func)


def verify_ssa(func: PrimFunc) -> bool:
    """Tells whether no variable of a function is bound twice: as a parameter, by a loop, a let or an allocation."""
    _check_function("verify_ssa", func)
    return single_assignment.verify_ssa(func)


def _check_function(name: str, given: object) -> None:
    if not isinstance(given, PrimFunc):
        raise ArgumentTypeError(f"{name} takes a function, not {type_in_words(given)}", hint="mod['main']")


entries(globals())
import_as(globals(), "analysis")
