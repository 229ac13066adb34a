"""Mathematical functions on scalars and vectors as LLVM text: formulas of `codegen/formulas`, listed in `table`."""

from tedsl.codegen.llvm.math.table import MathFunction, math_function

__all__ = ["MathFunction", "math_function"]
