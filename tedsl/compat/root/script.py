"""`tedsl.compat.tvmscript` by the name that TVM has for it at its root; what scripts of networks need is not part of tedsl: see
`tedsl/absent.py`.
"""

import sys
from typing import Any

from tedsl.absent import INSTEAD, answer_in, explain
from tedsl.compat.tvmscript import from_source, ir, ir_module, tir
from tedsl.errors import AbsentModuleError

__all__ = ["from_source", "ir", "ir_module", "tir"]
__path__: list[str] = []  # `import tedsl.script.relax` is refused
answer_in(__path__)
sys.modules.update({f"{__name__}.tir": tir, f"{__name__}.ir": ir})  # import tedsl.script.tir as T


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    path = f"script.{name}"
    raise AbsentModuleError(explain(path), hint=INSTEAD.get(path, INSTEAD["script"]))
