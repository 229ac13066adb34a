"""Modules of TVM that tedsl does not have: importing one raises an error that says what to use instead.

The end of `tedsl/__init__.py` adds this folder to the `__path__` of `tedsl`, so that `from tedsl import relay` and
`import tedsl.relay` find the file that refuses, while `hasattr(tedsl, "relax")` stays False.
"""

from __future__ import annotations

from typing import NoReturn

from tedsl.errors import AbsentModuleError

INSTEAD = {
    "meta_schedule": "topi.schedules.schedule(outs) chooses schedules for the machine; others are written with te",
    "micro": "kernels run in this process; get_source(\"ll\") of a module gives its LLVM IR",
    "relax": "a network is a graph of topi's operators: tutorials/10_resnet18.py builds one as a single kernel",
    "relay": "a network is a graph of topi's operators: tutorials/10_resnet18.py builds one as a single kernel",
    "rpc": "kernels run on this machine: time them with mod.time_evaluator(mod.entry_name, tedsl.cpu())",
    "script": "loops are written with tir.ir_builder, te.hybrid.script, or as a schedule; mod.script() prints them",
}


def explain(name: str) -> str:
    """The message of the error for `tedsl.<name>`."""
    return f"tedsl.{name} is not part of tedsl, which has TVM's te, tir and topi"


def refuse(module: str) -> NoReturn:
    """Raise the error for the module `tedsl.relay`, or another absent one, while it is being imported."""
    name = module.rpartition(".")[2]
    raise AbsentModuleError(explain(name), hint=INSTEAD[name])
