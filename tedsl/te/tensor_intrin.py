"""Tensor intrinsics by the module name that TVM's programs use: `te.tensor_intrin.decl_tensor_intrin`."""

from tedsl.errors import entries
from tedsl.lang.intrinsics.tensor_intrin import TensorIntrin, decl_tensor_intrin

__all__ = ["TensorIntrin", "decl_tensor_intrin"]

entries(globals())
