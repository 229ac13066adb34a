"""The classes of tensors and their operations, as programs look for them: `te.tensor.ComputeOp`."""

from tedsl.lang.extern import ExternOp
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.lang.operation import ComputeOp, Operation, PlaceholderOp
from tedsl.lang.scan import ScanOp
from tedsl.lang.tensor import Tensor, TensorSlice
from tedsl.lang.tensor_compute import TensorComputeOp
from tedsl.lang.tensor_intrin import TensorIntrin

__all__ = ["ComputeOp", "ExternOp", "HybridOp", "Operation", "PlaceholderOp", "ScanOp", "Tensor", "TensorComputeOp",
           "TensorIntrin", "TensorSlice"]
