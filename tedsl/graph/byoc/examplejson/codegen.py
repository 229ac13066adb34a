"""What graphs with the compiler "examplejson" become."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.errors import GraphError
from tedsl.graph.byoc.examplejson.module import ConstantsModule, ExampleJsonModule
from tedsl.graph.byoc.examplejson.program import INPUT, OPERATORS, Program, Statement, SubGraph
from tedsl.graph.graph import Graph
from tedsl.graph.value import Node, Value

_WORDS = {operator: word for word, operator in OPERATORS.items()}


def codegen(functions: Sequence[Graph]) -> ExampleJsonModule | ConstantsModule:
    """The module of graphs; constants are inputs of their sub-graphs, behind the others, that a module beside it adds."""
    module = ExampleJsonModule(Program(tuple([sub_graph(function) for function in functions])))
    having = [function for function in functions if function.constants]
    if not having:
        return module
    return ConstantsModule(module, {one.name: [value.data for value in one.constants] for one in having},
                           {one.name: len(one.inputs) for one in having})


def supports(node: Node) -> bool:
    """Whether there is a statement for a node."""
    specs = {str(value.spec) for value in (*node.inputs, *node.outputs)}
    return node.operator in _WORDS and len(specs) == 1 and not node.attributes and _is_simple(node.outputs[0])


def _is_simple(value: Value) -> bool:
    return str(value.dtype) == "float32" and value.spec.is_static


def sub_graph(graph: Graph) -> SubGraph:
    """The sub-graph of a graph. GraphError names a node that there is no statement for."""
    numbers: dict[Value, int] = {}
    statements = []
    for value in (*graph.inputs, *graph.constants):
        if not _is_simple(value):
            raise GraphError(f"{graph.name}: {value.name} is {value.spec}, and sub-graphs are of float32 and known shapes")
        statements.append(Statement(INPUT, numbers.setdefault(value, len(numbers)), (), tuple(map(int, value.shape))))
    for node in graph.nodes:
        if not supports(node):
            raise GraphError(f"{graph.name}: there is no statement for {node!r}", hint='annotate(g, "examplejson") takes those '
                             "that there are statements for")
        numbers[node.outputs[0]] = len(numbers)
        statements.append(Statement(_WORDS[node.operator], numbers[node.outputs[0]],
                                    tuple([numbers[value] for value in node.inputs]), tuple(map(int, node.outputs[0].shape))))
    return SubGraph(graph.name, tuple(statements), tuple([numbers[value] for value in graph.outputs]))


vars(codegen)["supports"] = supports  # what graph.annotate takes for it
