"""Sequences and mappings of objects by the names of TVM's containers, for `isinstance`."""

from tedsl.errors import entries
from tedsl.ir.node import FrozenDict

Array: type = tuple  # shapes, axes, arguments: what `runtime.convert` makes of a list
String: type = str  # texts of programs are Python's
Map = FrozenDict  # buffer_map, attrs: what `runtime.convert` makes of a dict

__all__ = ["Array", "Map", "String"]

entries(globals())
