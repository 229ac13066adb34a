"""Visitors and rewriters of loops and expressions, by the names of TVM's tir.stmt_functor."""

from tedsl.errors import entries
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.transformer import ir_transform
from tedsl.ir.walk.visitor import post_order_visit

__all__ = ["ir_transform", "post_order_visit", "substitute"]

entries(globals())
