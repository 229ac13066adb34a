"""Models: from a path, bytes or a ModelProto to a graph."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import GraphProto, ModelProto, ValueInfoProto, defs, helper

from tedsl.errors import ArgumentError, ArgumentTypeError, GraphError, type_in_words
from tedsl.graph.graph import Graph
from tedsl.graph.onnx.importer import Importer, Scope
from tedsl.graph.onnx.refusal import ModelRefused, Problem
from tedsl.graph.onnx.tensors import DTYPES, TensorReader
from tedsl.graph.value import Spec, Value, constant
from tedsl.ir.expr import SizeVar

OLDEST = 7  # the oldest operator set that is read; of older ones the operators that are the same there


def from_onnx(model: Any, shapes: Mapping[str, Any] | None = None, constants: Mapping[str, Any] | None = None) -> Graph:
    """The graph of an ONNX model.

    model: a path, the bytes of a file, or an onnx.ModelProto. shapes: for inputs the shapes to use instead of those of the
    model; for its named dimensions their extents. Those that have none become variables (te.var). constants: arrays of inputs
    that are fixed, as shapes that are given as inputs must be.

    Raises ModelRefused, with every node that has no translation.
    """
    proto, folder = _loaded(model)
    opsets = {("" if one.domain == "ai.onnx" else one.domain): one.version for one in proto.opset_import}
    _check_version(proto, opsets)
    reader = TensorReader(folder)
    names: dict[str, Value | None] = {}
    label = _label(proto.graph.name)
    for one in proto.graph.initializer:
        names[one.name] = reader.value(one)
    if proto.graph.sparse_initializer:
        raise GraphError(f"the model {label} has sparse initializers", hint="write them as dense tensors")
    inputs = _inputs(proto.graph, names.keys(), dict(shapes or {}), dict(constants or {}))
    names |= inputs
    importer = Importer(proto.functions, reader)
    importer.run(proto.graph.node, Scope(names, opsets))
    outputs = _outputs(proto.graph, names, importer, label)
    return Graph([value for value in inputs.values() if value.is_input], outputs, label)


def _outputs(graph: GraphProto, names: Mapping[str, Value | None], importer: Importer, label: str) -> list[Value]:
    made = [names.get(one.name) for one in graph.output]
    needed = [value for value in made if value is not None]
    if importer.problems or len(needed) < len(made):
        missing = [Problem(one.name, "output", "no node computes it", frozenset()) for one in graph.output]
        raise ModelRefused(label, importer.problems or missing)
    return needed


def _loaded(model: Any) -> tuple[ModelProto, str]:
    """The model, and the folder of its external data."""
    if isinstance(model, ModelProto):
        return model, ""
    if isinstance(model, (bytes, bytearray)):
        proto, folder = ModelProto(), ""
        try:
            proto.ParseFromString(bytes(model))
        except Exception as wrong:
            raise ArgumentError(f"from_onnx: these bytes are not an ONNX model ({wrong})") from None
        return proto, folder
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        if not path.is_file():
            raise ArgumentError(f"from_onnx: there is no file {path}")
        return onnx.load(str(path), load_external_data=False), str(path.parent)
    raise ArgumentTypeError(f"from_onnx: a model is a path, bytes or an onnx.ModelProto, not {type_in_words(model)}")


def _check_version(proto: ModelProto, opsets: Mapping[str, int]) -> None:
    version, newest = opsets.get("", OLDEST), defs.onnx_opset_version()
    if not proto.graph.node and not proto.graph.output:
        raise ArgumentError("from_onnx: the model is empty", hint="onnx.checker.check_model says what is wrong with it")
    if version > newest or (version < OLDEST and not _unchanged(proto, version)):
        raise GraphError(f"the model {proto.graph.name} is of operator set {version}; those from {OLDEST} to {newest} are read",
                         hint="onnx.version_converter.convert_version(model, ...) converts it, a newer package onnx reads it")


def _unchanged(proto: ModelProto, version: int) -> bool:
    """Whether the operators of a model of an old set are those of the oldest set that is read."""
    def since(name: str, opset: int) -> int | None:
        return defs.get_schema(name, opset, "").since_version if defs.has(name, opset, "") else None

    return all(since(node.op_type, version) == since(node.op_type, OLDEST) for node in proto.graph.node)


def _label(name: str) -> str:
    label = re.sub(r"\W", "_", name)
    return label if label.isidentifier() else f"model_{label}" if label else "main"


def _inputs(graph: GraphProto, initialized: Any, shapes: dict[str, Any], constants: dict[str, Any]) -> dict[str, Value]:
    variables: dict[str, Any] = {}
    made: dict[str, Value] = {}
    wanted = [one for one in graph.input if one.name not in initialized]
    named = {dim.dim_param for one in wanted for dim in one.type.tensor_type.shape.dim if dim.dim_param}
    known = {one.name for one in wanted}
    unknown = [name for name in (*shapes, *constants) if name not in known and (name not in named or name in constants)]
    if unknown:
        raise ArgumentError(f"from_onnx: the model has no input and no dimension called {unknown[0]!r}; its inputs: "
                            f"{', '.join(sorted(known)) or 'none'}; its dimensions: {', '.join(sorted(named)) or 'none'}")
    for one in wanted:
        if one.name in constants:
            made[one.name] = constant(numpy.asarray(constants[one.name]), name=one.name)
        else:
            made[one.name] = Value(one.name, _spec(one, shapes, variables))
    return made


def _spec(one: ValueInfoProto, shapes: Mapping[str, Any], variables: dict[str, Any]) -> Spec:
    kind = one.type.tensor_type
    dtype = _dtype(one)
    if one.name in shapes:
        return Spec([variables.setdefault(extent, SizeVar(extent)) if isinstance(extent, str) else extent
                     for extent in _listed(shapes[one.name])], dtype)
    if not kind.HasField("shape"):
        raise GraphError(f"the input {one.name} of the model has no shape",
                         hint=f"from_onnx(model, shapes={{{one.name!r}: (...)}})")
    shape: list[Any] = []
    for at, dim in enumerate(kind.shape.dim):
        if dim.HasField("dim_value"):
            shape.append(dim.dim_value)
        elif dim.dim_param in shapes:
            shape.append(shapes[dim.dim_param])
        else:
            name = _label(dim.dim_param or f"{one.name}_{at}")
            shape.append(variables.setdefault(name, SizeVar(name)))
    return Spec(shape, dtype)


def _listed(shape: Any) -> Sequence[Any]:
    return shape if isinstance(shape, (list, tuple)) else (shape,)


def _dtype(one: ValueInfoProto) -> str:
    kind = one.type.WhichOneof("value")
    if kind != "tensor_type":
        raise GraphError(f"the input {one.name} of the model is a {kind}", hint="inputs are tensors")
    dtype = str(helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type))
    if dtype not in DTYPES:
        raise GraphError(f"the input {one.name} of the model has elements of {dtype}", hint=f"of {', '.join(DTYPES)}")
    return dtype
