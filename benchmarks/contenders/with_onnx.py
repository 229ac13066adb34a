"""onnxruntime as a contender: sessions of one operator or a whole network, with inputs and results in bound memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.case import Contender
from benchmarks.limits import vector_lanes
from benchmarks.networks import Conv

BLOCKED = "com.microsoft.nchwc"  # operators on blocks of channels, into which the optimizer turns convolutions
Node = tuple[str, Sequence[str], Sequence[str], Mapping[str, Any]]  # operator, inputs, outputs, attributes


@functools.cache
def onnx_or_none() -> Any:
    """(onnx, onnxruntime), or None where one of them is not installed."""
    try:
        import onnx
        import onnxruntime
    except ImportError:
        return None
    onnxruntime.set_default_logger_severity(3)
    return onnx, onnxruntime


def model(nodes: Sequence[Node], inputs: Mapping[str, Any], weights: Mapping[str, Any], outputs: Mapping[str, Any]) -> bytes:
    """A model of `nodes`; inputs and outputs: an array of the shape and dtype of each. Operators "domain:Name" are those of a
    domain.
    """
    onnx, _ = onnx_or_none()
    helper, numpy_helper = onnx.helper, onnx.numpy_helper

    def value(name: str, array: Any) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    made, domains = [], {""}
    for operator, sources, results, attributes in nodes:
        domain, _, name = operator.rpartition(":")
        domains.add(domain)
        made.append(helper.make_node(name, list(sources), list(results), domain=domain, **attributes))
    graph = helper.make_graph(made, "benchmark", [value(*item) for item in inputs.items()],
                              [value(*item) for item in outputs.items()],
                              [numpy_helper.from_array(np.ascontiguousarray(a), name) for name, a in weights.items()])
    versions = [helper.make_opsetid(domain, 17 if domain == "" else 1) for domain in sorted(domains)]
    serialized: bytes = helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()
    return serialized


def session(nodes: Sequence[Node], inputs: Mapping[str, Any], weights: Mapping[str, Any], outputs: Mapping[str, Any],
            threads: int, view: Callable[..., Any] | None = None) -> Contender:
    """The model, optimized for this machine, on the arrays `inputs`; its results go to memory like the arrays `outputs`."""
    _, ort = onnx_or_none()
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    running = ort.InferenceSession(model(nodes, inputs, weights, outputs), options, providers=["CPUExecutionProvider"])
    binding, values = running.io_binding(), []
    for name, array in inputs.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    for name, array in outputs.items():
        values.append(ort.OrtValue.ortvalue_from_numpy(np.zeros(array.shape, array.dtype)))
        binding.bind_ortvalue_output(name, values[-1])

    def result() -> Any:
        arrays = [value.numpy() for value in values]
        return view(*arrays) if view is not None else arrays[0]

    return Contender(lambda: running.run_with_iobinding(binding), result)


def one(operator: str, arrays: Sequence[Any], like: Any, threads: int, constants: Mapping[str, Any] | None = None,
        **attributes: Any) -> Contender:
    """The model of one operator on `arrays`, then `constants`, which it may prepare beforehand."""
    inputs = {f"x{at}": array for at, array in enumerate(arrays)}
    weights = dict(constants or {})
    return session([(operator, [*inputs, *weights], ["y"], attributes)], inputs, weights, {"y": like}, threads)


# --- convolutions ---------------------------------------------------------------------------------------------------------

def activation_nodes(activation: str, source: str, result: str) -> tuple[list[Node], dict[str, Any]]:
    """The nodes of an activation and their constants."""
    if activation == "relu6":
        limits = {"zero": np.array(0, "float32"), "six": np.array(6, "float32")}
        return [("Clip", [source, "zero", "six"], [result], {})], limits
    return [("Relu" if activation else "Identity", [source], [result], {})], {}


def convolution(spec: Conv, x: Any, w: Any, b: Any, like: Any, threads: int) -> Contender:
    """The convolution, NCHW in and out; inside in the layout that onnxruntime prefers."""
    finish, limits = activation_nodes(spec.activation, "c", "y")
    nodes: list[Node] = [("Conv", ["x", "w", "b"], ["c"], attributes_of(spec)), *finish]
    return session(nodes, {"x": x}, {"w": w, "b": b} | limits, {"y": like}, threads)


def blocked_convolution(spec: Conv, x: Any, w: Any, b: Any, like: Any, threads: int, block: int) -> Contender | None:
    """The same on blocks of channels, as it runs inside networks; None where it has no such form."""
    inner = block if spec.channels % block == 0 else spec.channels
    if spec.groups > 1 or spec.activation == "relu6" or spec.filters % block or inner not in (1, 3, block):
        return None
    data = np.ascontiguousarray(_blocks(x, block)).reshape(x.shape) if inner == block else x
    split = w.reshape(spec.filters // block, block, spec.channels // inner, inner, *w.shape[2:])
    order = (0, 2, 4, 5, 3, 1) if inner == block else (0, 3, 2, 4, 5, 1)
    attributes = attributes_of(spec) | ({"activation": "Relu"} if spec.activation else {})
    nodes: list[Node] = [(f"{BLOCKED}:Conv", ["x", "w", "b"], ["y"], attributes)]

    def view(y: Any) -> Any:
        n, c, height, width = y.shape
        return y.reshape(n, c // block, height, width, block).transpose(0, 1, 4, 2, 3).reshape(y.shape)

    return session(nodes, {"x": data}, {"w": split.transpose(order).reshape(w.shape), "b": b}, {"y": like}, threads, view)


def _blocks(x: Any, block: int) -> Any:
    n, c, *space = x.shape
    return np.moveaxis(x.reshape(n, c // block, block, *space), 2, -1)


def attributes_of(spec: Conv) -> dict[str, Any]:
    """The attributes of a node Conv."""
    return {"kernel_shape": [spec.kernel] * 2, "strides": [spec.stride] * 2, "pads": [spec.pad] * 4, "group": spec.groups}


def block_of_channels() -> int:
    """Channels in a block of its own layout on this machine: as many as fill a vector, at least 8."""
    return max(vector_lanes(), 8)
