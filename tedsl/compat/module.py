"""`tvm.module` of TVM 0.6: modules of compiled functions, and `load`, which reads one from a file."""

from tedsl.errors import entries
from tedsl.runtime import Module, enabled, load_module, system_lib
from tedsl.runtime import load_module as load

__all__ = ["Module", "enabled", "load", "load_module", "system_lib"]

entries(globals())
