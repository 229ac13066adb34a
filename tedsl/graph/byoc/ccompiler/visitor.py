"""A graph as a function in C: `CVisitor` has a method for each kind of node. Subclasses write kernels of their own:

    class Mine(CVisitor):
        def visit_operator(self, node, name):
            if node.operator == "exp":
                return f"static void {name}(const float *a, float *out) ..."
            return super().visit_operator(node, name)

    (functions of the graph gcc_0, ((a + b) - c) * d over (10, 10))
    CSOURCE_BINARY_OP_2D(gcc_0_0, *, float, float, 10, 10)
    CSOURCE_BINARY_OP_2D(gcc_0_1, -, float, float, 10, 10)
    CSOURCE_BINARY_OP_2D(gcc_0_2, +, float, float, 10, 10)
    int32_t gcc_0_(const float *gcc_0_input0, ..., float *gcc_0_out0)       # two buffers, three calls, a status
"""

from __future__ import annotations

from tedsl.errors import GraphError
from tedsl.graph.byoc.ccompiler import kernels
from tedsl.graph.byoc.ccompiler.kernels import c_type
from tedsl.graph.graph import Graph
from tedsl.graph.value import Node, Spec, Value
from tedsl.record import record

NO_MEMORY = 1  # the status of a function that could not allocate a buffer


@record(eq=False)
class CFunction:
    """A function in C. text: its kernels, constants and itself; macros: what they are written by.

    raw: the name of the function of pointers, which returns 0 or NO_MEMORY.
    """

    name: str
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    text: str
    macros: tuple[str, ...]

    @property
    def raw(self) -> str:
        return f"{self.name}_"


class CVisitor:
    """Writes the function of a graph. A node that is visited has a number, by which its kernel is called."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.macros: dict[str, None] = {}
        self.definitions: list[str] = []
        self._expressions: dict[Value, str] = {}

    # --- what subclasses replace --------------------------------------------------------------------------------------

    def visit_operator(self, node: Node, name: str) -> str:
        """The definition of the kernel of a node: a function `name` of pointers to inputs, then outputs. Else GraphError."""
        if not kernels.writes(node):
            raise GraphError(f"{self.graph.name}: there is no C for {node!r}",
                             hint='annotate(g, "ccompiler") takes what there is C for; CVisitor.visit_operator adds to it')
        rank = len(node.outputs[0].shape)
        if node.operator == kernels.MATMUL:
            return kernels.matmul(name, node)
        if node.operator in kernels.UNARY:
            self.macros[kernels.unary_macro(rank)] = None
            return kernels.unary(name, node)
        if not kernels.is_plain(node):
            return kernels.broadcast(name, node)
        self.macros[kernels.binary_macro(rank)] = None
        return kernels.binary(name, node)

    def visit_call(self, node: Node, name: str) -> str:
        """The definition of the kernel of a composite: here the function of its graph, made by the same visitor."""
        assert node.function is not None
        inner = type(self)(_renamed(node.function, name)).function()
        self.macros |= dict.fromkeys(inner.macros)
        return inner.text.replace(f"int32_t {inner.raw}(", f"static int32_t {inner.raw}(")

    def visit_constant(self, value: Value, name: str) -> str:
        """The definition of the array `name`."""
        numbers = [kernels.number_text(number, c_type(value.spec)) for number in value.data.ravel().tolist()]
        lines = [", ".join(numbers[at:at + 8]) for at in range(0, len(numbers), 8)]
        head = f"static const {c_type(value.spec)} {name}[{max(len(numbers), 1)}]"
        return f"{head} = {{\n    " + ",\n    ".join(lines or ["0"]) + "\n};"

    def visit_input(self, value: Value, name: str) -> str:
        """The declaration of a parameter."""
        return f"const {c_type(value.spec)} *{name}"

    # --- the function ---------------------------------------------------------------------------------------------------

    def function(self) -> CFunction:
        """The function of the whole graph."""
        name, graph = self.graph.name, self.graph
        for value in (*graph.inputs, *graph.constants, *[out for node in graph.nodes for out in node.outputs]):
            self._check(value)
        numbers = {node: at for at, node in enumerate(_from_outputs(graph))}
        parameters = [self._parameter(value, f"{name}_input{at}") for at, value in enumerate(graph.inputs)]
        outputs = [f"{name}_out{at}" for at in range(len(graph.outputs))]
        parameters += [f"{c_type(value.spec)} *{out}" for value, out in zip(graph.outputs, outputs)]
        for at, value in enumerate(graph.constants):
            self._expressions[value] = f"{name}_const{at}"
            self.definitions.append(self.visit_constant(value, f"{name}_const{at}"))
        for node, number in numbers.items():
            kernel = f"{name}_{number}"
            visit = self.visit_operator if node.function is None else self.visit_call
            self.definitions.append(visit(node, kernel))
        body = self._body(outputs, {node: f"{name}_{number}" for node, number in numbers.items()})
        head = f"int32_t {name}_({', '.join(parameters)})"
        text = "\n\n".join([*self.definitions, "\n".join([head, "{", *[f"    {line}" for line in body], "}"])])
        return CFunction(name, tuple([value.spec for value in graph.inputs]), tuple([value.spec for value in graph.outputs]),
                         text, tuple(self.macros))

    def _parameter(self, value: Value, name: str) -> str:
        self._expressions[value] = name
        return self.visit_input(value, name)

    def _check(self, value: Value) -> None:
        if not value.spec.is_static or str(value.dtype) not in kernels.TYPES:
            raise GraphError(f"{self.graph.name}: {value.name} is {value.spec}; C is written for arrays of known shapes of "
                             f"{', '.join(kernels.TYPES)}", hint="graph.with_inputs gives extents")

    def _body(self, outputs: list[str], names: dict[Node, str]) -> list[str]:
        """The statements: buffers, all checked before the first call, the calls, copies into outputs."""
        results = dict[Value, str]()
        for value, out in zip(self.graph.outputs, outputs):
            if value.node is not None:
                results.setdefault(value, out)
        buffers = [out for node in self.graph.nodes for out in node.outputs if out not in results]
        results |= {value: f"buf_{at}" for at, value in enumerate(buffers)}
        self._expressions |= results
        lines = ["int32_t status = 0;"]
        lines += [f"(void){self._expressions[value]};" for value in self.graph.inputs if not self.graph.users(value)]
        lines += [f"{c_type(value.spec)} *{results[value]} = malloc({_bytes(value.spec)});" for value in buffers]
        calls = []
        for node in self.graph.nodes:
            arguments = ", ".join(self._expressions[value] for value in (*node.inputs, *node.outputs))
            calls.append(f"{names[node]}({arguments});" if node.function is None else
                         f"status = status ? status : {names[node]}_({arguments});")
        for value, out in zip(self.graph.outputs, outputs):
            if self._expressions[value] != out:
                calls.append(f"memcpy({out}, {self._expressions[value]}, {_bytes(value.spec)});")
        if buffers:
            missing = " || ".join(f"{results[value]} == NULL" for value in buffers)
            calls = [f"if ({missing}) {{", f"    status = {NO_MEMORY};", "} else {", *[f"    {call}" for call in calls], "}"]
        return [*lines, *calls, *[f"free({results[value]});" for value in buffers], "return status;"]


def _renamed(graph: Graph, name: str) -> Graph:
    return Graph(graph.inputs, graph.outputs, name)


def _from_outputs(graph: Graph) -> list[Node]:
    """The nodes as a walk from the outputs meets them: a node before those that it reads."""
    found: dict[Node, None] = {}
    waiting = [value.node for value in reversed(graph.outputs)]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found[node] = None
            waiting += [value.node for value in reversed(node.inputs)]
    return list(found)


def _bytes(spec: Spec) -> str:
    """The size of a buffer, in C; at least one element, since malloc(0) may be NULL."""
    return f"sizeof({c_type(spec)}) * (size_t){max(spec.size, 1)}"
