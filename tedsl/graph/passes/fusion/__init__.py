"""Fusion: which nodes are computed by one kernel.

dominators.py: the node that all paths from a node pass. groups.py: the phases, which unite nodes with these.
narrow.py: groups that end where results have few bits. attention.py: products, softmax, product as one kernel.
fuse.py: groups as graphs that nodes call.
"""

from tedsl.graph.passes.fusion.fuse import fuse
from tedsl.graph.passes.fusion.groups import MOST_NODES, groups_of

__all__ = ["MOST_NODES", "fuse", "groups_of"]
