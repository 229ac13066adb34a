"""The classes of tensors and operations by the module name that TVM's programs use: `te.tensor.ComputeOp`."""

from tedsl.errors import entries
from tedsl.lang.extern import ExternOp
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.lang.intrinsics.tensor_compute import TensorComputeOp
from tedsl.lang.intrinsics.tensor_intrin import TensorIntrin
from tedsl.lang.operation import ComputeOp, Operation, PlaceholderOp
from tedsl.lang.scan.operation import ScanOp
from tedsl.lang.tensor import Tensor, TensorSlice

__all__ = ["ComputeOp", "ExternOp", "HybridOp", "Operation", "PlaceholderOp", "ScanOp", "Tensor", "TensorComputeOp",
           "TensorIntrin", "TensorSlice"]


# In TVM 0.6 layouts were here.
entries(globals(), later={name: f"tedsl.tir:{name}" for name in ("BijectiveLayout", "Layout", "bijective_layout", "layout")})
