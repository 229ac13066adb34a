"""Modules of TVM that tedsl does not have: importing one raises an error that says what to use instead.

    import tedsl.contrib.cudnn      AbsentModuleError, an ImportError
    hasattr(tedsl, "relax")         False

The packages in which programs look for such modules call `answer_in(__path__)`: where Python finds no file there,
it asks `_Finder`. That one is asked for nothing else, and the lists of the import system stay as they are.
"""

from __future__ import annotations

import sys
from collections.abc import MutableSequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from tedsl.errors import AbsentModuleError

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
    "rpc": "kernels run on this machine: time them with mod.time_evaluator(mod.entry_name, tedsl.cpu())",
    "script": "scripts are functions of loops, with T.prim_func; they are scheduled as te: te.create_schedule(C.op)",
    "script.relax": _NETWORKS, "script.parser": "tedsl.script.from_source reads texts",
    "dlight": "topi.cuda has schedules for graphics processors; tedsl.tune and tedsl.auto_scheduler search others",
    "exec": "python -m tedsl --help lists what runs from a shell; kernels run on this machine",
    "support": "tedsl.__version__ is the version; python -m tedsl --help lists what says more",
    "generic": "tir.add, subtract, multiply, ... and the operators of Python; x.astype(dtype) casts",
    "parser": _NETWORKS,
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
    "contrib.random": "topi.random has threefry_generate and uniform, whose bits are the same everywhere",
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
    "contrib.mrvl": _DEVICES,
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


def answer_in(places: MutableSequence[str]) -> None:
    """Refuses the modules of INSTEAD where a package with this `__path__` does not have them."""
    sys.path_importer_cache[_PLACE] = _Finder()
    if _PLACE not in places:
        places.append(_PLACE)


_PLACE = f"{__file__}/nowhere"  # no folder: Python has a finder for it already, the one of the line above


class _Finder:
    """The finder of modules in `_PLACE`, and the loader that refuses them."""

    def find_spec(self, path: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """What Python makes of the module at a path where it found no file; None for one that TVM does not have either."""
        loader: Any = self
        return ModuleSpec(path, loader) if _listed(path.removeprefix("tedsl.")) else None

    def create_module(self, spec: ModuleSpec) -> NoReturn:
        name = spec.name.removeprefix("tedsl.")
        raise AbsentModuleError(explain(name), hint=INSTEAD[_listed(name)])

    def exec_module(self, module: ModuleType) -> None:
        """Is never called: no module is made."""


def _listed(name: str) -> str:
    """The entry of INSTEAD for a module, its own or that of a package around it; "" for none."""
    while name and name not in INSTEAD:
        name = name.rpartition(".")[0]
    return name
