"""Passes: functions from graphs to graphs that compute the same. Nothing to do: the same object.

    graph = fuse(graph)
    for step in pipeline(2):        # those of an optimisation level
        graph = step(graph)

fusion/: groups of nodes that one kernel computes. kinds.py: the kinds of operators.
weights.py: constant weights of convolutions in other forms: pack.py (panels), winograd.py.
"""

from tedsl.graph.passes.fusion import fuse, groups_of
from tedsl.graph.passes.kinds import Kind, kind_of
from tedsl.graph.passes.pack import pack_weights
from tedsl.graph.passes.pipeline import pipeline
from tedsl.graph.passes.winograd import use_winograd

__all__ = ["Kind", "fuse", "groups_of", "kind_of", "pack_weights", "pipeline", "use_winograd"]
