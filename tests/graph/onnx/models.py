"""Small models for tests, and what onnxruntime or the package onnx computes for them."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

NUMBERS = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16,
           "int64": TensorProto.INT64, "int32": TensorProto.INT32, "int8": TensorProto.INT8,
           "uint8": TensorProto.UINT8, "bool": TensorProto.BOOL}
NEWEST = 21


def node(operator, inputs, outputs="y", **attributes):
    """A node; names are given in one str, "-" stands for an input that is left out."""
    return helper.make_node(operator, [name.replace("-", "") for name in inputs.split()], outputs.split(), **attributes)


def model(nodes, inputs, outputs=("y",), constants=None, opset=NEWEST, functions=(), name="net", domains=()):
    """A model. inputs: (shape, dtype) or an array by name; constants: arrays by name; domains: those of nodes, beside the
    default one and those of functions.
    """
    given = [helper.make_tensor_value_info(label, NUMBERS[str(spec[1])], spec[0]) for label, spec in
             ((label, (one.shape, one.dtype) if isinstance(one, np.ndarray) else one) for label, one in inputs.items())]
    results = [helper.make_empty_tensor_value_info(label) for label in outputs]
    stored = [numpy_helper.from_array(array, label) for label, array in (constants or {}).items()]
    others = [*[one.domain for one in functions], *domains]
    opsets = [helper.make_opsetid("", opset), *[helper.make_opsetid(one, 1) for one in others]]
    graph = helper.make_graph([nodes] if isinstance(nodes, onnx.NodeProto) else nodes, name, given, results, stored)
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9)


def random(*shape, dtype="float32", seed=0):
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return generator.integers(1, 9, shape).astype(dtype)
    return (generator.random(shape) < 0.5) if dtype == "bool" else (generator.random(shape) * 2 - 1).astype(dtype)


def reference(proto, arrays):
    """What the reference implementation of the package onnx computes."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(proto).run(None, dict(zip([one.name for one in proto.graph.input], arrays)))
