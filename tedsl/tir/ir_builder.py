"""Builds statements in the order of their execution: `ib = tir.ir_builder.create()`, by the names of TVM's tir.ir_builder."""

from tedsl.errors import entries
from tedsl.ir.builder import BufferVar, IRBuilder, create

__all__ = ["BufferVar", "IRBuilder", "create"]

entries(globals())
