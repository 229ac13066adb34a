"""The interface `onnx.backend`: models run by tedsl.

    import tedsl.graph.onnx_backend as backend

    backend.run_model(model, [x])           prepared = backend.prepare(model); prepared.run([x])

Values that shapes depend on may be inputs of a model, as the axes of a reduction. A model is imported for the arrays that it is
run on: their shapes, and the elements of those inputs that have to be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
from onnx import ModelProto, NodeProto, defs, helper
from onnx.backend.base import Backend, BackendRep

from tedsl.errors import ArgumentError
from tedsl.graph.evaluate import evaluate
from tedsl.graph.graph import Graph
from tedsl.graph.onnx.functions import element_type
from tedsl.graph.onnx.model import from_onnx
from tedsl.graph.onnx.refusal import ModelRefused


class TedslRep(BackendRep):
    """A model ready to run. graphs: by the shapes, and elements where they matter, of the inputs."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        initialized = {one.name for one in model.graph.initializer}
        self._names = [one.name for one in model.graph.input if one.name not in initialized]
        self._needed: frozenset[str] = frozenset()
        self._graphs: dict[Any, Graph] = {}

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The arrays of the outputs. inputs: arrays in the order of the model's inputs, or by their names."""
        listed = [inputs[name] for name in self._names] if isinstance(inputs, dict) else list(inputs)
        if len(listed) != len(self._names):
            raise ArgumentError(f"the model takes {len(self._names)} inputs ({', '.join(self._names)}), not {len(listed)}")
        arrays = dict(zip(self._names, map(numpy.asarray, listed)))
        graph = self.graph(arrays)
        return evaluate(graph, *[arrays[name] for name in self._names if name not in self._needed])

    def graph(self, arrays: dict[str, Any]) -> Graph:
        """The graph for arrays of these shapes."""
        while True:
            key = (self._needed, *[array.tobytes() if name in self._needed else array.shape for name, array in arrays.items()])
            if key in self._graphs:
                return self._graphs[key]
            shapes = {name: array.shape for name, array in arrays.items() if name not in self._needed}
            try:
                self._graphs[key] = from_onnx(self._model, shapes, {name: arrays[name] for name in self._needed})
            except ModelRefused as refusal:
                if not refusal.needed - self._needed:
                    raise
                self._needed |= refusal.needed


class TedslBackend(Backend):
    """The backend: class methods, as `onnx.backend.base` has them; the functions of this module are the same."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> TedslRep:
        """The model, ready to run. Raises ArgumentError for another device than the processor."""
        if not cls.supports_device(device):
            raise ArgumentError(f"onnx_backend: there is no device {device!r}", hint='"CPU" runs models')
        return TedslRep(model)

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Sequence[Any] | None = None,
                 **kwargs: Any) -> tuple[Any, ...]:
        """A node alone, on arrays of its inputs."""
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        names = [name for name in node.input if name]
        arrays = [numpy.asarray(array) for array in inputs]
        given = [helper.make_tensor_value_info(name, element_type(str(array.dtype)), array.shape)
                 for name, array in zip(names, arrays)]
        results = [helper.make_value_info(name, helper.make_tensor_type_proto(1, None)) for name in node.output if name]
        opsets = [helper.make_opsetid("", kwargs.get("opset_version", defs.onnx_opset_version()))]
        model = helper.make_model(helper.make_graph([node], "node", given, results), opset_imports=opsets)
        return cls.run_model(model, arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.upper().partition(":")[0] == "CPU"


is_compatible = TedslBackend.is_compatible
prepare = TedslBackend.prepare
run_model = TedslBackend.run_model
run_node = TedslBackend.run_node
supports_device = TedslBackend.supports_device
