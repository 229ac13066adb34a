"""`tedsl.compat.tvmscript` by the name that TVM has for it at its root; what scripts of networks need is not part of tedsl: see
`tedsl/absent.py`.
"""

import sys

from tedsl.absent import stands_in_part
from tedsl.compat.tvmscript import from_source, ir, ir_module, tir

__all__ = ["from_source", "ir", "ir_module", "tir"]
sys.modules.update({f"{__name__}.tir": tir, f"{__name__}.ir": ir})  # import tedsl.script.tir as T
stands_in_part(globals())
