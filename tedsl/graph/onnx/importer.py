"""The walk over the nodes of a model: each is folded, translated by its function, or replaced by its body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, helper

from tedsl.errors import TedslError
from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.control import CONTROL, controlled
from tedsl.graph.onnx.extents import extents_of, shape_part
from tedsl.graph.onnx.fold import folded
from tedsl.graph.onnx.functions import body_of, given_attributes, with_attributes
from tedsl.graph.onnx.operators import operator_for
from tedsl.graph.onnx.refusal import Problem, Unsupported
from tedsl.graph.onnx.tensors import TensorReader
from tedsl.graph.value import Value, constant
from tedsl.record import record
from tedsl.runtime.array import numpy_dtype

Named = dict[str, Value | None]  # None: a value that could not be made


class BodyRefused(Unsupported):
    """A graph that a node holds has nodes without translation, which are among the problems."""


@record(eq=False)
class Scope:
    """The names that nodes can read, the versions of their operator sets, and where they stand (for messages)."""

    names: Named
    opsets: Mapping[str, int]
    place: str = ""


class Importer:
    """What is known while nodes are walked.

    extents: values computed from symbolic shapes. problems: nodes without translation.
    """

    def __init__(self, functions: Iterable[FunctionProto], tensors: TensorReader) -> None:
        self.extents: dict[Value, Any] = {}
        self.problems: list[Problem] = []
        self._functions = {(function.domain, function.name): function for function in functions}
        self._tensors = tensors

    def run(self, nodes: Iterable[NodeProto], scope: Scope) -> None:
        """Adds what the nodes compute to the names of `scope`."""
        for number, node in enumerate(nodes):
            label = scope.place + (node.name or f"{node.op_type}_{number}")
            try:
                made = self._node(node, scope, label)
            except BodyRefused:  # what is missing inside is known
                made = [None] * len(node.output)
            except Unsupported as refusal:
                made = self._problem(node, label, refusal.reason, refusal.needed)
            except TedslError as refusal:
                made = self._problem(node, label, str(refusal), frozenset())
            scope.names.update({name: value for name, value in zip(node.output, made) if name})

    def _problem(self, node: NodeProto, label: str, reason: str, needed: frozenset[str]) -> list[Value | None]:
        operator = f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
        self.problems.append(Problem(label, operator, reason, needed))
        return [None] * len(node.output)

    def _node(self, node: NodeProto, scope: Scope, label: str) -> Sequence[Value | None]:
        local = self._functions.get((node.domain, node.op_type))
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = scope.opsets.get(domain, 0)
        operator = None if local else operator_for(node.op_type, domain)
        inputs = [scope.names[name] if name else None for name in node.input]
        if any(value is None and name for value, name in zip(inputs, node.input)):
            translated = local is not None or operator is not None or node.op_type in CONTROL
            return self._behind_a_problem(node, opset, label, translated)
        if node.op_type in CONTROL and not domain:
            return controlled(node.op_type, self._attributes(node), inputs,
                              lambda graph, given, place: self._graph(graph, given, scope, f"{label}/{place}"))
        call = Call(node.op_type, opset, inputs, self._attributes(node), len(node.output), self.extents)
        if not local and not domain:
            known = self._known(node, scope, call)
            if known is not None:
                return known
        if operator is not None:
            made = operator(call)
            if made is not None:
                return self._with_extents(call, [made] if isinstance(made, Value) else list(made))
        body = local or (None if domain else body_of(node, opset, inputs))
        if body is None:
            raise Unsupported("there is no such operator here" if operator is None else "in this form it is not translated")
        return self._inlined(node, body, inputs, opset, label)

    def _known(self, node: NodeProto, scope: Scope, call: Call) -> list[Value] | None:
        """The results that do not depend on the inputs of the model, or on their shapes alone."""
        if node.op_type in ("Shape", "Size") and call[0].spec.is_static:
            extents = list(shape_part(call)) if node.op_type == "Shape" else call[0].spec.size
            return [constant(numpy.array(extents, dtype="int64"), name=node.output[0])]
        if node.op_type == "Constant":
            return [self.constant(call.attributes, node.output[0])]
        if node.op_type == "CastLike" and call[0].data is not None:
            return [constant(call[0].data.astype(numpy_dtype(call[1].dtype)), name=node.output[0])]
        if all(value is None or value.data is not None for value in call.inputs):
            made = folded(node, scope.opsets, [value.data for value in call.inputs if value is not None])
            if made is not None:
                return [constant(array, name=name) for array, name in zip(made, node.output)]
        return None

    def _with_extents(self, call: Call, made: list[Value]) -> list[Value]:
        try:
            known = extents_of(call, self.extents)
        except (TypeError, ValueError, IndexError):
            known = None
        if known is None:
            return made
        if all(isinstance(extent, int) for extent in known.reshape(-1)):
            return [constant(known.astype("int64"), name=made[0].name)]
        self.extents[made[0]] = known
        return made

    def _behind_a_problem(self, node: NodeProto, opset: int, label: str, translated: bool) -> list[Value | None]:
        """A node that reads what could not be made: whether its operator is missing too is all that can be said."""
        if not translated and (node.domain not in ("", "ai.onnx") or not _has_body(node, opset)):
            return self._problem(node, label, "there is no such operator here", frozenset())
        return [None] * len(node.output)

    def _inlined(self, node: NodeProto, body: FunctionProto, inputs: Sequence[Value | None], opset: int,
                 label: str) -> list[Value | None]:
        attributes = given_attributes(node, opset, body)
        opsets = {("" if one.domain == "ai.onnx" else one.domain): one.version for one in body.opset_import}
        names = dict(zip(body.input, [*inputs, *[None] * (len(body.input) - len(inputs))]))
        inner = Scope({name: value for name, value in names.items() if value is not None}, opsets, f"{label}/")
        left_out = names.keys() - inner.names.keys()
        before = len(self.problems)
        self.run([_without(with_attributes(one, attributes), left_out) for one in body.node], inner)
        if len(self.problems) > before:
            return [None] * len(node.output)
        return [inner.names[name] if wanted else None for name, wanted in zip(body.output, node.output)]

    def _graph(self, graph: GraphProto, inputs: Sequence[Value | None], scope: Scope, place: str) -> list[Value]:
        """The results of a graph that a node holds; it reads the names around it too."""
        inner = Scope(dict(scope.names), scope.opsets, place)
        inner.names.update({one.name: self._tensors.value(one) for one in graph.initializer})
        inner.names.update({one.name: value for one, value in zip(graph.input, inputs)})
        before = len(self.problems)
        self.run(graph.node, inner)
        results = [inner.names.get(one.name) for one in graph.output]
        made = [value for value in results if value is not None]
        if len(self.problems) > before or len(made) < len(results):
            raise BodyRefused("a node of its graph has no translation")
        return made

    def _attributes(self, node: NodeProto) -> dict[str, Any]:
        return {one.name: self._attribute(one) for one in node.attribute if not one.ref_attr_name}

    def _attribute(self, attribute: AttributeProto) -> Any:
        if attribute.type == AttributeProto.TENSOR:
            return self._tensors.value(attribute.t)
        given = helper.get_attribute_value(attribute)
        if isinstance(given, bytes):
            return given.decode(errors="replace")
        return tuple(given) if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) else given

    def constant(self, attributes: Mapping[str, Any], name: str) -> Value:
        """The value of a node Constant."""
        (kind, given), = attributes.items()
        if isinstance(given, Value):
            return given
        if kind not in ("value_int", "value_ints", "value_float", "value_floats"):
            raise Unsupported(f"a constant of the kind {kind}")
        return constant(numpy.array(given, dtype="int64" if "int" in kind else "float32"), name=name)


def _has_body(node: NodeProto, opset: int) -> bool:
    try:
        return body_of(node, opset, [None] * len(node.input)) is not None
    except Exception:  # a body that depends on types which are not known
        return True


def _without(node: NodeProto, left_out: set[str]) -> NodeProto:
    """A node of a body without inputs of the function that are left out."""
    if not left_out.intersection(node.input):
        return node
    made = NodeProto()
    made.CopyFrom(node)
    made.input[:] = ["" if name in left_out else name for name in node.input]
    return made
