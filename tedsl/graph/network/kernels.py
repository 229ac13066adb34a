"""The kernel of a step: one graph for all steps that compute the same, in names of its own, and the arrays that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import topi
from tedsl import te
from tedsl.graph.formula import formula_of
from tedsl.graph.graph import Graph
from tedsl.graph.text.printer import text
from tedsl.graph.value import Node, Value, values_of
from tedsl.record import record

_LONGEST = 48  # characters of a name


class KernelSource:
    """What a kernel computes: a graph whose inputs are all the arrays that it reads. Compared by its text.

    in_place: an output may stand where an input does. fixed: the numbers of the inputs that are constants: what the kernel
    computes of these alone is prepared before the first call.
    """

    def __init__(self, graph: Graph, in_place: bool = False, fixed: tuple[int, ...] = ()) -> None:
        self.in_place, self.fixed = in_place, fixed
        self._graph: Graph | None = graph
        self._text = ""

    @staticmethod
    def of_text(source: str, in_place: bool, fixed: tuple[int, ...]) -> KernelSource:
        """The kernel of a text, whose graph is only made when it is asked for."""
        made = KernelSource.__new__(KernelSource)
        made.in_place, made.fixed, made._graph, made._text = in_place, fixed, None, source
        return made

    @property
    def text(self) -> str:
        self._text = self._text or text(self.graph)
        return self._text

    @property
    def graph(self) -> Graph:
        self._graph = self._graph or Graph.parse(self._text)
        return self._graph

    @property
    def name(self) -> str:
        return self.graph.name

    @property
    def key(self) -> tuple[str, bool, tuple[int, ...]]:
        """What tells it from other kernels."""
        return self.text, self.in_place, self.fixed

    @property
    def is_symbolic(self) -> bool:
        """Whether an extent is a variable."""
        return not all(value.spec.is_static for value in self.graph.inputs)

    @cached_property
    def tensors(self) -> tuple[list[te.Tensor], list[te.Tensor]]:
        """The formula: what is read, and what is written, an array each."""
        made = formula_of(self.graph)
        outputs = list(made.outputs)
        for at, out in enumerate(outputs):
            if isinstance(out.op, te.PlaceholderOp) or out in outputs[:at]:
                outputs[at] = topi.identity(out)
        return list(made.inputs), outputs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelSource) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.text)


class ExternalSource(KernelSource):
    """A function that another compiler makes. Known by its compiler, its name, and the arrays that it takes."""

    def __init__(self, compiler: str, name: str, signature: str, graph: Graph | None) -> None:
        self.compiler, self._name, self.signature = compiler, name, signature
        self.in_place, self.fixed, self._graph = False, (), graph
        self._text = f'@compiler("{compiler}")\ndef {name}{signature}'

    @staticmethod
    def of_graph(graph: Graph) -> ExternalSource:
        """The source of a graph with a compiler."""
        takes, gives = [", ".join([str(value.spec) for value in values]) for values in (graph.inputs, graph.outputs)]
        return ExternalSource(str(graph.compiler), graph.name, f"({takes}) -> {gives}", graph)

    @property
    def name(self) -> str:
        return self._name


@record(eq=False)
class KernelUse:
    """A step: its kernel, and the values whose arrays the kernel reads and writes, in order."""

    node: Node
    source: KernelSource
    reads: tuple[Value, ...]
    writes: tuple[Value, ...]


def kernel_of(node: Node, in_place: bool = False, prepares: bool = True) -> KernelUse:
    """The kernel of a node. Values that it reads twice are one array; numbers are a part of the kernel.

    prepares: what it computes of constants alone is computed before the first call.
    """
    if node.function is not None and node.function.compiler is not None:
        return KernelUse(node, ExternalSource.of_graph(node.function), node.inputs, node.outputs)
    writer = _Writer()
    if node.function is not None:
        inner = dict(zip(node.function.inputs, [writer.read(value) for value in node.inputs]))
        results = writer.inside(node.function, inner)
        name = _name_of([one.operator for one in node.function.nodes])
    else:
        results, name = writer.copied(node, {}), _name_of([node.operator])
    graph = Graph(list(writer.inputs.values()), results, name)
    fixed = tuple([at for at, value in enumerate(writer.inputs) if value.is_constant]) if prepares else ()
    return KernelUse(node, KernelSource(graph, in_place, fixed), tuple(writer.inputs), tuple(node.outputs))


def _name_of(operators: list[str]) -> str:
    """The name of a kernel: its operators."""
    words = dict.fromkeys(operator.rpartition(".")[2] for operator in operators)
    name = "_".join(words) or "copy"
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST].rstrip('_')}_and_more"


class _Writer:
    """Copies nodes into a graph of their own. inputs: for each value that stands outside the input that stands for it."""

    def __init__(self) -> None:
        self.inputs: dict[Value, Value] = {}

    def read(self, value: Value) -> Value:
        """What stands for a value from outside."""
        if value.is_constant and value.shape == ():
            return Value("c", value.spec, data=value.data)
        if value not in self.inputs:
            self.inputs[value] = Value(f"p{len(self.inputs)}", value.spec)
        return self.inputs[value]

    def inside(self, graph: Graph, known: dict[Value, Value]) -> list[Value]:
        """The outputs of a graph, copied, with those that it calls. known: what stands for its values."""
        for node in graph.nodes:
            if node.function is None:
                made = self.copied(node, known)
            else:
                inner = [known[value] if value in known else self.read(value) for value in node.inputs]
                made = self.inside(node.function, dict(zip(node.function.inputs, inner)))
            known.update(zip(node.outputs, made))
        return [known[value] if value in known else self.read(value) for value in graph.outputs]

    def copied(self, node: Node, known: Mapping[Value, Value]) -> list[Value]:
        """The results of a copy of a node that calls an operator."""
        arguments: dict[str, Any] = {}
        for name, argument in node.arguments.items():
            values = [known[value] if value in known else self.read(value) for value in values_of(argument)]
            arguments[name] = values[0] if isinstance(argument, Value) else tuple(values) if values else argument
        return list(Node(node.operator, arguments, tuple([out.spec for out in node.outputs])).outputs)
