"""Tensors of models as constants."""

from __future__ import annotations

from onnx import TensorProto, numpy_helper

from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.value import Value, constant

DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "bool")


class TensorReader:
    """Tensors of a model as constants. folder: where files of external data lie."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def value(self, tensor: TensorProto) -> Value:
        array = numpy_helper.to_array(tensor, self._folder)
        if array.dtype.kind in "OUS" or str(array.dtype) not in DTYPES:
            raise Unsupported(f"a tensor of {TensorProto.DataType.Name(tensor.data_type)}")
        return constant(array, name=tensor.name or "c")
