"""The tensor-expression language: names only. Declare with placeholder and compute, schedule, build.

    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
"""

from tedsl.ir.iters import IterVar, Range
from tedsl.lang.constants import infinity, max_value, min_value
from tedsl.lang.declare import compute, placeholder, reduce_axis, size_var, var
from tedsl.lang.operation import ComputeOp, Operation, PlaceholderOp
from tedsl.lang.reducer import comm_reducer
from tedsl.lang.reductions import all, any, max, min, prod, sum
from tedsl.lang.scope import tag_scope
from tedsl.lang.tensor import Tensor, TensorSlice

__all__ = [
    "var", "size_var", "placeholder", "compute", "reduce_axis", "tag_scope",
    "sum", "prod", "max", "min", "all", "any", "comm_reducer",
    "min_value", "max_value", "infinity",
    "Tensor", "TensorSlice", "Operation", "PlaceholderOp", "ComputeOp", "IterVar", "Range",
]
