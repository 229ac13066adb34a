"""What graphs with the compiler "ccompiler" become."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.graph.byoc.ccompiler import kernels
from tedsl.graph.byoc.ccompiler.module import CSourceModule
from tedsl.graph.byoc.ccompiler.visitor import CVisitor
from tedsl.graph.graph import Graph
from tedsl.graph.value import Node


def codegen(functions: Sequence[Graph], visitor: type[CVisitor] = CVisitor) -> CSourceModule:
    """The module of graphs. visitor: the class that writes them."""
    return CSourceModule.of([visitor(graph).function() for graph in functions])


def supports(node: Node) -> bool:
    """Whether there is C for a node."""
    return node.function is None and kernels.writes(node)


vars(codegen)["supports"] = supports  # what graph.annotate takes for it
