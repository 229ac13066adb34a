"""The tensor-expression language: a namespace. Declare with placeholder and compute, schedule, build.

A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
"""

from typing import TYPE_CHECKING

from tedsl.errors import entries
from tedsl.ir.iters import IterVar, Range
from tedsl.lang.arithmetic import (
    abs,
    ceildiv,
    clz,
    compress_lanes,
    const,
    div,
    floordiv,
    floormod,
    if_then_else,
    indexdiv,
    indexmod,
    lane_mask,
    ldexp,
    popcount,
    power,
    reinterpret,
    select,
    truncdiv,
    truncmod,
)
from tedsl.lang.constants import infinity, max_value, min_value
from tedsl.lang.declare import compute, placeholder, reduce_axis, size_var, thread_axis, var
from tedsl.lang.elementwise import (
    ElementwiseOp,
    broadcast_element,
    broadcast_shape,
    combine_elements,
    map_elements,
    same_extent,
)
from tedsl.lang.extern import ExternOp, extern
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.lang.intrinsics.tensor_compute import TensorComputeOp
from tedsl.lang.intrinsics.tensor_intrin import TensorIntrin, decl_tensor_intrin
from tedsl.lang.math import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    copysign,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    exp10,
    floor,
    fmod,
    hypot,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    nearbyint,
    nextafter,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from tedsl.lang.operation import ComputeOp, Operation, PlaceholderOp
from tedsl.lang.reducer import comm_reducer
from tedsl.lang.reductions import all, any, max, min, prod, sum
from tedsl.lang.scan.operation import ScanOp, scan
from tedsl.lang.scope import tag_scope
from tedsl.lang.tensor import Tensor, TensorSlice
from tedsl.schedule.handles import Schedule, create_schedule
from tedsl.schedule.journal import Journal
from tedsl.schedule.memory_options import AXIS_SEPARATOR
from tedsl.schedule.record.advice import advised_schedule
from tedsl.schedule.stage import Stage
from tedsl.te import hybrid, operation, schedule, tag, tensor, tensor_intrin

if TYPE_CHECKING:
    from tedsl.autodiff.gradient import gradient
    from tedsl.autodiff.jvp import jvp
    from tedsl.autodiff.registry import register_gradient
    from tedsl.lang.extern_primfunc import extern_primfunc
    from tedsl.lower.prim_func import create_prim_func
    from tedsl.te import autodiff as autodiff
    from tedsl.tir.instructions import trace

__all__ = [
    "var", "size_var", "placeholder", "compute", "reduce_axis", "thread_axis", "tag_scope", "decl_tensor_intrin", "extern",
    "scan",
    "sum", "prod", "max", "min", "all", "any", "comm_reducer",
    "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "sqrt", "rsqrt", "power",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "atan2", "hypot",
    "floor", "ceil", "trunc", "round", "nearbyint", "abs", "fmod", "copysign", "nextafter", "ldexp",
    "isnan", "isinf", "isfinite", "popcount", "clz", "lane_mask", "compress_lanes",
    "div", "truncdiv", "truncmod", "floordiv", "floormod", "ceildiv", "indexdiv", "indexmod", "if_then_else", "select",
    "const", "min_value", "max_value", "infinity", "reinterpret",
    "create_schedule", "create_prim_func", "Schedule", "Stage", "Journal", "schedule", "hybrid", "operation", "gradient",
    "jvp", "register_gradient", "advised_schedule",
    "AXIS_SEPARATOR", "extern_primfunc", "logaddexp", "autodiff", "tag", "tensor_intrin", "trace",
    "tensor", "Tensor", "TensorSlice", "Operation", "PlaceholderOp", "ComputeOp", "ExternOp", "HybridOp", "ScanOp",
    "ElementwiseOp", "TensorComputeOp", "TensorIntrin",
    "combine_elements", "map_elements", "broadcast_shape", "broadcast_element", "same_extent", "IterVar", "Range",
]

entries(globals(), later={"extern_primfunc": "tedsl.lang.extern_primfunc:extern_primfunc",
                          "create_prim_func": "tedsl.lower.prim_func:create_prim_func",
                          "expr_equal": "tedsl.ir.walk.equal:structural_equal",
                          "gradient": "tedsl.autodiff.gradient:gradient",
                          "autodiff": "tedsl.te.autodiff",
                          "jvp": "tedsl.autodiff.jvp:jvp",
                          "trace": "tedsl.tir.instructions:trace",
                          "register_gradient": "tedsl.autodiff.registry:register_gradient"},
        absent={"SpecializedCondition": "s[C].specialize(n % 8 == 0) gives a stage a version of its loops for calls in which a "
                                        "condition holds; the context has no effect on schedules in TVM"})
