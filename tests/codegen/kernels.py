"""Compiling and calling kernels without the rest of the house: numpy arrays in and out."""

import ctypes
import functools

import numpy as np

from tedsl.codegen.kernels import abi
from tedsl.codegen.llvm.effort import needs_vectorizer
from tedsl.codegen.llvm.emit import emit_module
from tedsl.codegen.llvm.linking import jit
from tedsl.codegen.llvm.machine import assembly, object_code, optimize
from tedsl.codegen.llvm.types import argument_type
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.calls.returns import result_of
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import Broadcast, Load, Ramp, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import For, ForKind, Store
from tedsl.target import Target, host_target

HOST = host_target()
PLAIN, AVX2, AVX512 = (Target(f"llvm -mcpu={cpu}") for cpu in ("x86-64", "haswell", "skylake-avx512"))
ARM = Target("llvm -mtriple=aarch64-linux-gnu")
RUNNABLE = [t for t in (PLAIN, AVX2, AVX512, HOST) if t.runs_here]


def const(value, of="int32"):
    return build.const(value, of)


def array(name, shape, of, **more):
    """A buffer parameter: the handle and the buffer."""
    return Var(f"{name}_handle", "handle"), decl_buffer(shape, of, name, **more)


def function(body, *params, name="f", **attrs):
    """A PrimFunc from arrays (as `array` makes them) and scalar variables."""
    handles = [p[0] if isinstance(p, tuple) else p for p in params]
    buffers = {p[0]: p[1] for p in params if isinstance(p, tuple)}
    return PrimFunc(tuple(handles), body, None, buffers, {"global_symbol": name, "tir.noalias": True, **attrs})


def storage(a):
    """numpy's view of an array as the kernel sees it: bfloat16 as uint16."""
    return a


class Compiled:
    """Functions of different names, compiled together for a target."""

    def __init__(self, funcs, target, vectorize=None):
        self.funcs, self.target = funcs, target
        self.text = emit_module(funcs, target)
        vectorize = any(map(needs_vectorizer, funcs)) if vectorize is None else vectorize
        self.module = optimize(self.text, target, vectorize=vectorize)
        self.image = object_code(self.module, target)

    @functools.cached_property
    def library(self):
        return jit.link(self.image, [abi.kernel_name(func) for func in self.funcs])


def kernels(funcs, target=HOST, vectorize=None):
    """A Kernel for each function, all of them compiled together: sooner than one by one."""
    named = [func.with_attr("global_symbol", f"f{k}") for k, func in enumerate(funcs)]
    together = Compiled(named, target, vectorize)
    return [Kernel(func, compiled=together) for func in named]


class Kernel:
    """A compiled function: call it with arrays and scalars in the order of `kernel_arguments`; gives the status.

    `result` is the number that the last call returned, as a 64-bit slot.
    """

    def __init__(self, func, target=HOST, vectorize=None, compiled=None):
        self.func = func
        self.compiled = compiled or Compiled([func], target, vectorize)
        self.text, self.module, self.image = self.compiled.text, self.compiled.module, self.compiled.image

    @property
    def library(self):
        return self.compiled.library

    def assembly(self):
        return assembly(self.module, self.compiled.target)

    def __call__(self, *args):
        types, values = [], []
        for var, arg in zip(abi.kernel_arguments(self.func), args, strict=True):
            if isinstance(arg, np.ndarray):
                types.append(ctypes.c_void_p)
                values.append(arg.ctypes.data)
            else:
                kind = argument_type(var.dtype)
                types.append({"i64": ctypes.c_int64, "float": ctypes.c_float, "double": ctypes.c_double}[kind])
                values.append(arg)
        self.result = ctypes.c_int64(-1)
        if result_of(self.func) is not None:
            types.append(ctypes.c_void_p)
            values.append(ctypes.addressof(self.result))
        call = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(self.library.address(abi.kernel_name(self.func)))
        return call(*values)


def elementwise(formula, dtypes, out_dtype, lanes, count, extra=()):
    """for i: out[i] = formula(a[i], b[i], ...) in vectors of `lanes`; count is a multiple of lanes."""
    arrays = [array(f"in{k}", (count,), d) for k, d in enumerate(dtypes)]
    result = array("out", (count,), out_dtype)
    i = Var("i", "int32")
    at = i if lanes == 1 else Ramp(build.mul(i, lanes), const(1), lanes)
    loads = [Load(dtype(d).with_lanes(lanes), a[1].data, at) for d, a in zip(dtypes, arrays)]
    body = For(i, const(0), const(count // lanes), ForKind.SERIAL, Store(result[1].data, formula(*loads), at))
    return function(body, *arrays, result, *extra)


def splat(value, of, lanes):
    c = build.const(value, of)
    return c if lanes == 1 else Broadcast(c, lanes)
