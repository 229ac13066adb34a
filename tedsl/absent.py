"""Modules of TVM that tedsl does not have, and names of modules: an import gives a stand-in, whose first use is refused.

    from tedsl import relax         <stand-in for tedsl.relax, which is not part of tedsl>
    relax.build(mod)                AbsentModuleError, which says what to use instead
    hasattr(tedsl, "relax")         False where nothing imports it

Many programs import what they never use, and run so. Python looks for a module in the places that its package has: `NOWHERE` is
the last one of each package in which programs look for what is not there, and `_Finder` what Python asks there. It is asked for
nothing else, and the lists of the import system stay as they are.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from tedsl.errors import NOWHERE, AbsentModuleError, asked_by_import, entry, missing_name

_NETWORKS = "a network is a graph of topi's operators: tutorials/10_resnet18.py builds one as a single kernel"
_PRODUCTS = "topi.matmul, topi.nn.dense and topi.nn.batch_matmul have schedules of their own; no BLAS is called"
_OPERATORS = "topi.nn has the operators, with schedules of their own; no library of operators is called"
_RUNS = "tedsl.graph has networks, traced or read from ONNX: net = graph.trace(f, Spec(shape)).compile(), net(x)"
_BLOCKS = "of TensorIR's blocks, which came beside te: schedules are te.create_schedule(C.op); tedsl.tune searches them"
_DEVICES = "docs/devices.md lists the devices for which there is code; the target \"c\" makes C for any processor"
_GPUS = "the schedules of topi.cuda read the target: with tedsl.target.Target(\"opencl\"): topi.cuda.schedule_injective(C)"

# What to use instead, by the path below `tedsl`; it holds for all modules inside.
INSTEAD = {
    "meta_schedule": "topi.schedules.schedule(outs) chooses schedules for the machine; others are written with te",
    "micro": "kernels run in this process; get_source(\"ll\") of a module gives its LLVM IR",
    "relax": _NETWORKS,
    "relay": _NETWORKS,
    "rpc": "kernels run on this machine, which is rpc.LocalSession() too: mod.time_evaluator(mod.entry_name, tedsl.cpu())",
    "script": "scripts are functions of loops, with T.prim_func; they are scheduled as te: te.create_schedule(C.op)",
    "script.relax": _NETWORKS, "script.parser": "tedsl.script.from_source reads texts",
    "dlight": "topi.cuda has schedules for graphics processors; tedsl.tune and tedsl.auto_scheduler search others",
    "exec": "python -m tedsl --help lists what runs from a shell; kernels run on this machine",
    "support": "tedsl.__version__ is the version; python -m tedsl --help lists what says more",
    "generic": "tir.add, subtract, multiply, ... and the operators of Python; x.astype(dtype) casts",
    "parser": _NETWORKS, "driver.tvmc": _RUNS, "testing.aot": "the target \"c\" makes C without a runtime: docs/c.md",
    "tir.schedule": _BLOCKS,
    "tir.sparse": "tedsl.contrib.sparse has arrays of compressed rows; topi.nn.sparse_dense and its kin multiply by them",
    "tir.tensor_intrin": "tedsl.contrib.intrinsics has the intrinsics of processors, for s[C].tensorize(loop, intrin)",
    "tir.usmp": "workspaces are planned by StorageRewrite; tir.analysis.calculate_workspace_bytes says how large they are",
    "tir.block_scope": _BLOCKS, "tir.block_dependence_info": _BLOCKS,
    "runtime.vm": _RUNS, "runtime.executor": _RUNS, "runtime.relax_vm": _RUNS, "runtime.disco": _RUNS,
    "runtime.params": "numpy.savez writes arrays by name, and numpy.load reads them",
    "runtime.profiling": "python -m tedsl --help and docs/runtime.md say how kernels are profiled; tedsl.why_slow(f) says why",
    "ir.diagnostics": "errors are subclasses of tedsl.TedslError, which say what to do next",
    "ir.affine_type": _NETWORKS, "ir.adt": _NETWORKS, "ir.type_relation": _NETWORKS, "ir.global_info": _NETWORKS,
    "ir.supply": "names are made unique where they are printed",
    "ir.memory_pools": "see tir.analysis.calculate_workspace_bytes",
    "contrib.mkl": _PRODUCTS, "contrib.cublas": _PRODUCTS, "contrib.cublaslt": _PRODUCTS,
    "contrib.rocblas": _PRODUCTS, "contrib.hipblas": _PRODUCTS, "contrib.mps": _PRODUCTS, "contrib.cutlass": _PRODUCTS,
    "contrib.dnnl": _OPERATORS, "contrib.mkldnn": _OPERATORS, "contrib.cudnn": _OPERATORS, "contrib.miopen": _OPERATORS,
    "contrib.nnpack": _OPERATORS,
    "contrib.thrust": "topi.cuda.sort, argsort and topk have schedules of their own; Thrust is not called",
    "contrib.graph_executor": _RUNS, "contrib.graph_runtime": _RUNS, "contrib.debugger": _RUNS, "contrib.cuda_graph": _RUNS,
    "contrib.pipeline_executor": "tedsl.actors runs kernels as a pipeline, each stage on its own batch", "contrib.mxnet": _RUNS,
    "contrib.tflite_runtime": _RUNS, "contrib.coreml_runtime": _RUNS,
    "contrib.target": "tedsl.graph.onnx reads and writes ONNX",
    "contrib.relay_viz": "a tedsl.graph.Graph is a picture in notebooks, and print(graph) writes it as text",
    "contrib.xcode": "tedsl.contrib.cc.cross_compiler(compiler) links for other machines: docs/shipping.md",
    "contrib.emcc": "the target \"c\" makes C, which emcc compiles",
    "contrib.binutil": "mod.export_library writes what is linked: docs/shipping.md", "contrib.rpc": _DEVICES,
    "contrib.stackvm": "kernels are machine code; tedsl.ir.evaluate interprets loops",
    "contrib.popen_pool": "concurrent.futures.ProcessPoolExecutor; tedsl.tune and tedsl.autotvm run their trials apart already",
    "contrib.peak": "python -m benchmarks measures the machine: docs/speed.md",
    "contrib.rocm": _DEVICES, "contrib.spirv": _DEVICES, "contrib.sdaccel": _DEVICES, "contrib.verilog": _DEVICES,
    "contrib.hexagon": _DEVICES, "contrib.ethosu": _DEVICES, "contrib.micro": _DEVICES, "contrib.hipcc": _DEVICES,
    "contrib.mrvl": _DEVICES, "contrib.ethosn": _DEVICES, "contrib.tvmjs": _DEVICES, "contrib.tf_op": _RUNS,
    "contrib.torch": _RUNS,
    "topi.rocm": _GPUS, "topi.mali": _GPUS, "topi.bifrost": _GPUS, "topi.intel_graphics": _GPUS, "topi.adreno": _GPUS,
    "topi.gpu": _GPUS, "topi.hexagon": _DEVICES, "topi.hls": _DEVICES, "topi.signal": "scipy.signal, outside of kernels",
}


def explain(name: str) -> str:
    """The message of the error for `tedsl.<name>`."""
    return f"tedsl.{name} is not part of tedsl, which has TVM's te, tir and topi"


def instead_in(package: str) -> dict[str, str]:
    """What to use instead of modules of `tedsl.<package>`, by their names there."""
    return {name.removeprefix(f"{package}."): f"{explain(name)}; {words}" for name, words in INSTEAD.items()
            if name.startswith(f"{package}.")}


def instead_of(path: str) -> str:
    """What to use instead of a module or a name of TVM at a path below `tedsl`, as its own entry says, or the nearest one of a
    module around it; "" for what TVM lacks too.
    """
    while path and not _own_entry(path):
        path = path.rpartition(".")[0]
    return _own_entry(path)


def _own_entry(path: str) -> str:
    """What is said of a path itself: in INSTEAD, or by `entries(..., absent=)` of the module around it."""
    home, _, name = path.rpartition(".")
    return INSTEAD.get(path) or str(getattr(_loaded(home), "__absent__", {}).get(name, ""))


def _loaded(path: str) -> ModuleType | None:
    """The module at a path below `tedsl`, if it is imported: topi stands beside it too."""
    return sys.modules.get(f"tedsl.{path}" if path else "tedsl") or sys.modules.get(path)


def answer_in(names: dict[str, Any]) -> None:
    """Lets imports from a module find stand-ins where there is nothing. names: the variables of the module."""
    names.setdefault("__path__", []).append(NOWHERE)


def stands_in_part(names: dict[str, Any]) -> None:
    """Lets a module that TVM has and tedsl has in part refuse the rest. names: the variables of the module."""
    module = str(names["__name__"])
    answer_in(names)

    def missing(name: str) -> NoReturn:
        path = f"{module}.{name}".removeprefix("tedsl.")
        if name.startswith("_") or asked_by_import() or _is_misspelt(path):
            raise missing_name(module, name, names["__all__"])
        raise AbsentModuleError(explain(path), hint=instead_of(path))

    names["__getattr__"] = missing


def _is_misspelt(path: str) -> bool:
    """Whether a path that has no entry of its own is so near to a name of a module that it is a mistake in writing that one."""
    from difflib import get_close_matches  # few programs ask

    home, _, name = path.rpartition(".")
    return not _own_entry(path) and bool(get_close_matches(name, getattr(_loaded(home), "__all__", ()), 1, 0.8))


class StandIn(ModuleType):
    """What a program gets that imports something of TVM that tedsl does not have: to use it in any way is refused.

    As a module it has `__name__` and the like. Other names that begin with an underscore, for which tools look, it lacks.
    """

    @entry
    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise refusal(self.__name__)

    def __getattr__(self, name: str) -> NoReturn:
        star = name == "__all__" and asked_by_import()  # from tedsl.relax import *: the program uses names of it
        if not star and (name.startswith("_") or asked_by_import()):  # an import looks here for a module that it then makes
            raise AttributeError(f"{self!r} has no {name}")
        raise refusal(self.__name__ if star else f"{self.__name__}.{name}")

    def __repr__(self) -> str:
        return f"<stand-in for {self.__name__}, which is not part of tedsl>"

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self.__name__,)

    __call__ = __enter__ = __exit__ = __iter__ = __next__ = __getitem__ = __setitem__ = __delitem__ = _refuse
    __instancecheck__ = __subclasscheck__ = __mro_entries__ = __or__ = __ror__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __matmul__ = __rmatmul__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __int__ = __float__ = _refuse


def refusal(name: str) -> AbsentModuleError:
    """The error for the use of what a stand-in of this name, `tedsl.relax`, stands for."""
    path = name.removeprefix("tedsl.")
    return AbsentModuleError(explain(path), hint=instead_of(path))


class _Finder:
    """The finder of modules in `NOWHERE`, and their loader."""

    def find_spec(self, path: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """What Python makes of the module at a path where it found no file; None for one that TVM does not have either."""
        below = path.removeprefix("tedsl.")
        if not instead_of(below) or _is_misspelt(below):
            return None
        loader: Any = self
        spec = ModuleSpec(path, loader)
        spec.submodule_search_locations = None if path.endswith(".__main__") else [NOWHERE]
        return spec

    def get_code(self, name: str) -> NoReturn:
        """Refuses to run a module: python -m tedsl.exec.rpc_server."""
        raise refusal(name.removesuffix(".__main__"))

    def create_module(self, spec: ModuleSpec) -> StandIn:
        return StandIn(spec.name, str(refusal(spec.name)))

    def exec_module(self, module: ModuleType) -> None:
        """Has nothing to do: a stand-in is made as it stays."""


sys.path_importer_cache[NOWHERE] = _Finder()
