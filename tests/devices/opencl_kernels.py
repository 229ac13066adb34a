"""Functions of flat loops as kernels of OpenCL that one thread runs, compiled together and called with numpy arrays."""

import numpy as np

from tedsl.codegen.c.opencl import OpenCLBackend
from tedsl.codegen.kernels.abi import kernel_arguments
from tedsl.ir import build
from tedsl.ir.expr import Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.stmt import LAUNCH, AttrStmt
from tedsl.passes.config import PassConfig
from tedsl.target import Target
from tests.devices.opencl_device import DRIVER


def launched(func, name, **axes):
    """`func` as a kernel on the given numbers of threads, by default one; its buffers are its pointers."""
    body = func.body
    for tag, count in (axes or {"threadIdx.x": 1}).items():
        axis = IterVar(None, Var(tag, "int32"), IterVar.ThreadIndex, tag)
        body = AttrStmt(axis, LAUNCH, build.const(count, "int32"), body)
    return PrimFunc(tuple(kernel_arguments(func)), body, attrs={"global_symbol": name, "tir.noalias": True})


class Compiled:
    """Kernels of one program, to be called by their number with arrays, which are written back, and numbers."""

    def __init__(self, funcs, target="opencl"):
        kernels = [launched(func, f"f{k}") for k, func in enumerate(funcs)]
        self.code = OpenCLBackend().compile_kernels(kernels, Target(target), PassConfig())
        self.loaded = DRIVER.load(0, self.code)

    def __call__(self, number, *arguments):
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        memory = [DRIVER.allocate(0, a.nbytes) for a in arrays]
        for address, a in zip(memory, arrays):
            DRIVER.copy_in(0, address, a.ctypes.data, a.nbytes)
        numbers = [a for a in arguments if not isinstance(a, np.ndarray)]
        self.loaded.launch(f"f{number}", (1, 1, 1), (1, 1, 1), [*memory, *numbers])
        for address, a in zip(memory, arrays):
            DRIVER.copy_out(0, a.ctypes.data, address, a.nbytes)
            DRIVER.free(0, address)
