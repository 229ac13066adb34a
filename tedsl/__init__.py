"""tedsl: tensor expressions, schedules and a compiler to machine code, in Python.

    A = te.placeholder((1024,), name="A")                # what to compute: a formula over indices
    B = te.compute((1024,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)                         # how: loops, split, reordered, vectorized, parallel
    print(lower(s, [A, B], simple_mode=True))            # the loops, to read
    f = build(s, [A, B])                                 # machine code
    f(a, b)                                              # numpy arrays in and out

te: the language and schedules. tir: the loops. topi: operators. nd: arrays. target, transform, testing: the rest.
`docs/architecture.md` is the map of the code.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tedsl.absent import INSTEAD, answer_in, explain
from tedsl.errors import InternalError, OptionError, TedslError, missing_name, public
from tedsl.version import VERSION

if TYPE_CHECKING:
    import topi as topi
    from tedsl import arith as arith
    from tedsl import auto_scheduler as auto_scheduler
    from tedsl import autograd as autograd
    from tedsl import contrib, driver, error, nd, te, testing, tir, transform
    from tedsl import ir as ir
    from tedsl import nn as nn
    from tedsl import optim as optim
    from tedsl import runtime as runtime
    from tedsl import target as target
    from tedsl import tir as expr
    from tedsl import tir as stmt
    from tedsl import tune as tune
    from tedsl.bottlenecks import why_slow
    from tedsl.driver import build, lower
    from tedsl.ir import container as container
    from tedsl.ir import instrument as instrument
    from tedsl.ir.dtype import DataTypeCode
    from tedsl.ir.dtype import DType as DataType
    from tedsl.ir.func import IRModule
    from tedsl.lang.arithmetic import const
    from tedsl.nd import cl, context, cpu, cuda, device, gpu, metal, mtl, opencl, rocm, sim, vulkan
    from tedsl.runtime.functions import get_global_func, register_func
    from tedsl.runtime.module import Module
    from tedsl.runtime.parallel import get_num_threads, set_num_threads
    from tedsl.schedule.journal import Journal
    from tedsl.target import datatype as datatype
    from tedsl.target.target import Target
    from tedsl.tracing import trace
    from tedsl.transform import PassContext, build_config

__version__ = VERSION
TVMError = TedslError  # the name in programs written for TVM

# Loaded when first asked for: importing tedsl costs nothing that the program does not use.
_MODULES = ("arith", "auto_scheduler", "autograd", "autotvm", "compat", "contrib", "driver", "error", "ir", "nd", "nn", "optim",
            "runtime", "target", "te", "testing", "tir", "transform", "tune")
_NAMES = {
    "build": "tedsl.driver", "lower": "tedsl.driver",
    "cpu": "tedsl.nd", "cuda": "tedsl.nd", "gpu": "tedsl.nd", "device": "tedsl.nd", "context": "tedsl.nd",
    "metal": "tedsl.nd", "opencl": "tedsl.nd", "rocm": "tedsl.nd", "sim": "tedsl.nd", "vulkan": "tedsl.nd",
    "cl": "tedsl.nd", "mtl": "tedsl.nd", "vpi": "tedsl.nd", "ext_dev": "tedsl.nd", "hexagon": "tedsl.nd",
    "IRModule": "tedsl.ir.func", "Journal": "tedsl.schedule.journal", "Module": "tedsl.runtime.module",
    "Target": "tedsl.target.target", "PassContext": "tedsl.transform", "build_config": "tedsl.transform",
    "trace": "tedsl.tracing", "why_slow": "tedsl.bottlenecks",
    "const": "tedsl.te", "convert": "tedsl.runtime", "DataType": "tedsl.runtime", "DataTypeCode": "tedsl.runtime",
    "register_func": "tedsl.runtime.functions", "get_global_func": "tedsl.runtime.functions",
    "get_num_threads": "tedsl.runtime.parallel", "set_num_threads": "tedsl.runtime.parallel",
    "register_error": "tedsl.error", "register_extension": "tedsl._ffi", "register_object": "tedsl._ffi",
}

_ELSEWHERE = {"container": "tedsl.ir.container", "instrument": "tedsl.ir.instrument", "expr": "tedsl.tir", "stmt": "tedsl.tir",
              "datatype": "tedsl.target.datatype", "ndarray": "tedsl.nd", "_ffi": "tedsl._ffi",
              "relay": "tedsl.relay", "rpc": "tedsl.rpc", "script": "tedsl.script"}

__all__ = ["DataType", "DataTypeCode", "IRModule", "InternalError", "Journal", "Module", "PassContext", "Target", "TVMError",
           "TedslError", "auto_scheduler", "autograd", "autotvm", "build", "build_config", "cl", "compat", "const", "context",
           "contrib", "cpu", "cuda", "device", "driver", "error", "expr", "get_global_func", "get_num_threads", "gpu", "lower",
           "metal", "mtl", "nd", "nn", "opencl", "optim", "register_func", "rocm", "set_num_threads", "sim", "stmt", "te",
           "testing", "tir", "topi", "trace", "transform", "tune", "vulkan", "why_slow"]


if not TYPE_CHECKING:  # for type checkers a misspelled name is an error
    def __getattr__(name: str) -> Any:
        if name in _NAMES:
            value = getattr(import_module(_NAMES[name]), name)
        elif name in _MODULES:
            return import_module(f"tedsl.{name}")
        elif name in _ELSEWHERE:
            return import_module(_ELSEWHERE[name])
        elif name == "topi":
            return import_module("topi")  # a package of its own, also found here as programs expect
        else:
            if name in INSTEAD:
                raise OptionError(f"module 'tedsl' has no attribute {name!r}: {explain(name)}", hint=INSTEAD[name])
            raise missing_name(__name__, name, __all__, absent=_in_modules(name))
        globals()[name] = public(value, __name__, name)
        return globals()[name]


def _in_modules(name: str) -> dict[str, str]:
    """The hint for a name that the root does not have and a module below it has, as it was at the root of TVM 0.6."""
    if name.startswith("_"):
        return {}
    homes = [home for home in ("te", "tir", "nd", "topi") if hasattr(import_module(f"tedsl.{home}"), name)]
    if not homes:
        return {}
    old = hasattr(import_module("tedsl.compat.v06"), name)
    return {name: f"did you mean tedsl.{homes[0]}.{name}?" + " A program of TVM 0.6: import tedsl.compat.v06 as tvm" * old}


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES, *_ELSEWHERE, "topi"})


class _Package(ModuleType):
    """The module class of `tedsl`: importing the package `tedsl.lower` does not hide the function `tedsl.lower`."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name == "lower" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
__path__.append(f"{__path__[0]}/compat/root")  # `from tedsl.datatype import register` finds the file that says where it is
answer_in(globals())
