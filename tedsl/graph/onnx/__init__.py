"""ONNX models as graphs.

    from tedsl import graph

    g = graph.from_onnx("resnet18.onnx", shapes={"batch": 1})
    (y,) = graph.evaluate(g, x)

model.py: inputs, shapes, versions. importer.py: the walk over the nodes. operators/: a function for each operator of ONNX, by
family. functions.py: operators with bodies. fold.py: constants. extents.py: symbolic shapes. refusal.py: what is missing.
"""

from tedsl.errors import GraphError, entries

try:
    from tedsl.graph.onnx.model import from_onnx
    from tedsl.graph.onnx.refusal import ModelRefused
except ModuleNotFoundError as missing:
    if missing.name != "onnx":
        raise
    raise GraphError("models of ONNX need the package onnx", hint="pip install 'tedsl[onnx]'") from missing

__all__ = ["ModelRefused", "from_onnx"]

entries(globals())
