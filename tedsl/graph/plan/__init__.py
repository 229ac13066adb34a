"""Memory plans: at which offset of one arena each value of a graph stands while it is needed.

    views     nodes that compute nothing: other shapes, parts, joins
    ranges    which values share memory (views, results in place of operands), and when that memory is in use
    in_place  whether a node may write its result over an operand
    offsets   places for ranges, by several orders; the least that any plan needs
    plan      the plan of a graph, as text
    picture   memory over time, drawn
"""

from tedsl.graph.plan.offsets import Placed, Range, least_bytes, place
from tedsl.graph.plan.plan import MemoryPlan, overwrites, plan

__all__ = ["MemoryPlan", "Placed", "Range", "least_bytes", "overwrites", "place", "plan"]
