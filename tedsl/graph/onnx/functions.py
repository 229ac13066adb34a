"""Operators that the package onnx, or the model, defines by other operators: their bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import AttributeProto, FunctionProto, NodeProto, TensorProto, TypeProto, defs, helper

from tedsl.graph.value import Value


def body_of(node: NodeProto, opset: int, inputs: Sequence[Value | None]) -> FunctionProto | None:
    """The body that the package onnx gives for an operator of the default domain in version `opset`; None if it has none."""
    try:
        schema = defs.get_schema(node.op_type, opset, "")
    except defs.SchemaError:
        return None
    if schema.has_function:
        versions = [version for version in schema.function_opset_versions if version <= opset]
        source = schema.get_function_with_opset_version(versions[-1] if versions else schema.since_version)
    elif schema.has_context_dependent_function:
        versions = [version for version in schema.context_dependent_function_opset_versions if version <= opset]
        types = [_type_of(value).SerializeToString() for value in inputs]
        source = schema.get_context_dependent_function_with_opset_version(versions[-1] if versions else schema.since_version,
                                                                          node.SerializeToString(), types)
    else:
        return None
    body = FunctionProto()
    body.ParseFromString(source)
    return body if body.node else None


def _type_of(value: Value | None) -> TypeProto:
    if value is None:
        return TypeProto()
    shape = [extent if isinstance(extent, int) else None for extent in value.shape]
    return helper.make_tensor_type_proto(element_type(str(value.dtype)), shape)


def element_type(dtype: str) -> int:
    """The number that ONNX has for a dtype."""
    return int(TensorProto.DataType.Value(_TYPES.get(dtype, dtype.upper())))


_TYPES = {"float32": "FLOAT", "float64": "DOUBLE"}


def given_attributes(node: NodeProto, opset: int, body: FunctionProto) -> dict[str, AttributeProto]:
    """The attributes of a node that calls a function, with the defaults of those that it leaves out."""
    found: dict[str, AttributeProto] = {one.name: one for one in body.attribute_proto}
    if defs.has(node.op_type, opset, node.domain):
        found |= {name: one.default_value for name, one in defs.get_schema(node.op_type, opset, node.domain).attributes.items()
                  if one.default_value.type != AttributeProto.UNDEFINED}
    return found | {one.name: one for one in node.attribute}


def with_attributes(node: NodeProto, given: Mapping[str, AttributeProto]) -> NodeProto:
    """A node of a body with the attributes of its call in place of references to them; those not given are left out."""
    if not any(one.ref_attr_name for one in node.attribute):
        return node
    made = NodeProto()
    made.CopyFrom(node)
    del made.attribute[:]
    for one in node.attribute:
        if not one.ref_attr_name:
            made.attribute.append(one)
        elif one.ref_attr_name in given:
            bound: Any = AttributeProto()
            bound.CopyFrom(given[one.ref_attr_name])
            bound.name = one.name
            made.attribute.append(bound)
    return made
