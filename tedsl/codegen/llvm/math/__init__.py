"""Mathematical functions on scalars and vectors as LLVM text: formulas over `lanes.FunctionBody`, listed in `table`."""

from tedsl.codegen.llvm.math.table import MathFunction, has_function, math_function

__all__ = ["MathFunction", "has_function", "math_function"]
