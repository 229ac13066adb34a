"""Passes: functions from graphs to graphs that compute the same. Nothing to do: the same object.

    graph = fuse(graph)
    for step in pipeline(2):        # those of an optimisation level
        graph = step(graph)

fusion/: groups of nodes that one kernel computes. images/: layers for groups of images. quantized/:
products of dequantized values as those of integers. kinds.py: the kinds of operators.
A file for each pass: infer.py, fold_constants.py, simplify.py, merge_equal.py, drop_dead.py, fold_batch_norm.py,
layouts.py.
weights.py: constant weights of convolutions in other forms: pack.py (panels), winograd.py.
"""

from tedsl.graph.passes.drop_dead import drop_dead
from tedsl.graph.passes.fold_batch_norm import fold_batch_norm
from tedsl.graph.passes.fold_constants import fold_constants
from tedsl.graph.passes.fusion import fuse, groups_of
from tedsl.graph.passes.images import by_groups
from tedsl.graph.passes.infer import infer
from tedsl.graph.passes.kinds import Kind, kind_of
from tedsl.graph.passes.layouts import layouts
from tedsl.graph.passes.merge_equal import merge_equal
from tedsl.graph.passes.pack import pack_weights
from tedsl.graph.passes.pipeline import pipeline
from tedsl.graph.passes.quantized import quantized
from tedsl.graph.passes.simplify import simplify
from tedsl.graph.passes.winograd import use_winograd

__all__ = ["Kind", "by_groups", "drop_dead", "fold_batch_norm", "fold_constants", "fuse", "groups_of", "infer", "kind_of",
           "layouts", "merge_equal", "pack_weights", "pipeline", "quantized", "simplify", "use_winograd"]
