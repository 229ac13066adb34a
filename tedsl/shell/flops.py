"""python -m tedsl flops MODEL.onnx: what a network has to do, by operators or by parts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tedsl import graph as graphs
from tedsl.errors import ArgumentError
from tedsl.graph.placement.costs import Costs, costs_of
from tedsl.graph.placement.split import split
from tedsl.graph.value import Node


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("model", help="a file of ONNX")
    parser.add_argument("--batch", type=int, default=1, help="the extent of dimensions without one (1)")
    parser.add_argument("--parts", action="store_true", help="by parts between pools and around branches, not by operators")


def run(options: argparse.Namespace) -> int:
    """Print a row for each operator, or each part, and the sum."""
    if not Path(options.model).is_file():
        raise ArgumentError(f"flops: there is no file {options.model}")
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise ArgumentError("flops: reading models needs the package onnx", hint="pip install tedsl[onnx]") from None
    try:
        model = onnx.load(options.model)
    except DecodeError as error:
        raise ArgumentError(f"flops: {options.model} is no model of ONNX: {error}") from None
    shapes = {value.name: [dim.dim_value or options.batch for dim in value.type.tensor_type.shape.dim]
              for value in model.graph.input}
    stored = {tensor.name for tensor in model.graph.initializer}
    graph = graphs.from_onnx(model, {name: shape for name, shape in shapes.items() if name not in stored})
    groups: dict[str, Sequence[Node]] = {}
    if options.parts:
        groups = {part.name: part.nodes for part in split(graph)}
    else:
        for node in graph.nodes:
            groups[node.operator] = (*groups.get(node.operator, ()), node)
    print(table({name: (len(nodes), costs_of(nodes)) for name, nodes in groups.items()}, costs_of(graph)))
    return 0


def table(rows: dict[str, tuple[int, Costs]], total: Costs) -> str:
    """The rows, and below them the sum, as text."""
    count = sum(number for number, _ in rows.values())
    lines = [("", "nodes", "flops", "multiply-adds", "", "parameters", "", "bytes")]
    for name, (number, costs) in [*rows.items(), ("all", (count, total))]:
        lines.append((name, str(number), f"{costs.flops:,}", f"{costs.multiply_adds:,}",
                      _share(costs.multiply_adds, total.multiply_adds), f"{costs.parameters:,}",
                      _share(costs.parameters, total.parameters), f"{costs.bytes:,}"))
    widths = [max(len(line[at]) for line in lines) for at in range(8)]
    return "\n".join("  ".join([line[0].ljust(widths[0]), *[cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]])
                     for line in lines)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else ""
