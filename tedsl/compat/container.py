"""tvm.container of TVM 0.6: sequences and mappings of objects, ranges, and the functions that `lower` gives."""

from tedsl.compat.lowered_func import LoweredFunc
from tedsl.errors import entries
from tedsl.ir.container import Array, Map, String
from tedsl.ir.iters import IterVar, Range

StrMap = Map

__all__ = ["Array", "IterVar", "LoweredFunc", "Map", "Range", "StrMap", "String"]

entries(globals())
