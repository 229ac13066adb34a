"""Looking into functions and expressions, by the names of TVM's tir.analysis."""

from tedsl.ir.walk.equal import structural_equal as expr_deep_equal
from tedsl.ir.walk.single_assignment import verify_ssa

__all__ = ["expr_deep_equal", "verify_ssa"]
