"""The declaring functions by the module name that TVM's programs use: `te.operation.placeholder`."""

from typing import TYPE_CHECKING

from tedsl.errors import entries
from tedsl.lang.declare import compute, placeholder, reduce_axis, size_var, thread_axis, var
from tedsl.lang.extern import extern
from tedsl.lang.scan.operation import scan

if TYPE_CHECKING:
    from tedsl.lower.prim_func import create_prim_func

__all__ = ["compute", "create_prim_func", "extern", "placeholder", "reduce_axis", "scan", "size_var", "thread_axis", "var"]

entries(globals(), later={"create_prim_func": "tedsl.lower.prim_func:create_prim_func"})
