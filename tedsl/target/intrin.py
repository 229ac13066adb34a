"""Rules of programs for operators by the module name that TVM's programs use."""

from tedsl.errors import entries
from tedsl.ir.calls.registered import register_intrin_lowering

__all__ = ["register_intrin_lowering"]

entries(globals())
