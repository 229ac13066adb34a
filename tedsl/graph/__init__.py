"""Networks: graphs of operators.

    from tedsl import graph
    from tedsl.graph import Spec, ops

    g = graph.trace(lambda x, w: ops.nn.relu(ops.nn.conv2d(x, w, 1, 1, 1)), Spec((1, 3, 8, 8)), Spec((4, 3, 3, 3)))
    print(g)                                # text that Graph.parse reads back
    (y,) = graph.evaluate(g, x, w)          # node by node, for arrays
    network = graph.compile(g)              # kernels and a memory plan
    y = network(x, w)

value.py: what a graph is made of. graph.py, apply.py, rewrite.py: graphs, calls, graphs made of others.
operators.py, formula.py: functions of topi and what they compute. evaluate.py: the reference. text/: graphs as text.
match.py: patterns over nodes. picture.py: graphs as pictures.
passes/: graphs improved. byoc/: parts that other compilers make. plan/: memory.
network/: graphs compiled. onnx/, onnx_backend.py: models of ONNX. placement/: parts of graphs on unequal devices.
"""

from typing import TYPE_CHECKING

from tedsl.errors import entries
from tedsl.graph.apply import apply, call
from tedsl.graph.byoc import LibraryModule, annotate, codegen_names, merge_regions, partition, register_codegen
from tedsl.graph.evaluate import evaluate
from tedsl.graph.formula import GraphFormula, formula_of
from tedsl.graph.graph import Graph
from tedsl.graph.match import match, replace
from tedsl.graph.network import Network, compile
from tedsl.graph.operators import operator_names, register_operator
from tedsl.graph.rewrite import rewrite, with_inputs, with_outputs
from tedsl.graph.trace import ops, trace
from tedsl.graph.value import Node, Spec, Value, constant

if TYPE_CHECKING:
    from tedsl.graph.onnx import from_onnx

__all__ = ["Graph", "GraphFormula", "LibraryModule", "Network", "Node", "Spec", "Value", "annotate", "apply", "call",
           "codegen_names", "compile", "constant", "evaluate", "formula_of", "from_onnx", "match", "merge_regions",
           "operator_names", "ops", "partition", "register_codegen", "register_operator", "replace", "rewrite", "trace",
           "with_inputs", "with_outputs"]

entries(globals(), later={"from_onnx": "tedsl.graph.onnx:from_onnx"})
