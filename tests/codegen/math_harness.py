"""Runs one function of codegen/llvm/math over arrays, compiled by llvmlite alone, and measures its error in ulp."""

import ctypes
import functools

import llvmlite.binding as llvm
import numpy as np
import scipy.special

from tedsl.codegen.formulas.table import BINARY
from tedsl.codegen.llvm.math import math_function
from tedsl.ir.dtype import dtype
from tedsl.target.host import host

HAS_AVX512 = "avx512f" in host().features
LOOP = """
define void @go(ptr %a, ptr %b, ptr %o, i64 %n) {{
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %j, %loop ]
  %p = getelementptr {t}, ptr %a, i64 %i
  %q = getelementptr {t}, ptr %b, i64 %i
  %w = getelementptr {t}, ptr %o, i64 %i
  %x = load {v}, ptr %p, align 4
  %y = load {v}, ptr %q, align 4
  %r = call {v} @{symbol}({arguments})
  store {v} %r, ptr %w, align 4
  %j = add i64 %i, {lanes}
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


@functools.cache
def compiled(name, bits, lanes, fma, avx512=None):
    """The function as a call on numpy arrays (x, and y for binary ones) of `bits`; without fma for plain x86-64.

    avx512: whether its instructions are used, by default where they are here.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    function = math_function(name, dtype(f"float{bits}").with_lanes(lanes), fma=fma,
                             avx512=fma and HAS_AVX512 if avx512 is None else avx512)
    t = "float" if bits == 32 else "double"
    v = t if lanes == 1 else f"<{lanes} x {t}>"
    arguments = f"{v} %x, {v} %y" if name in BINARY else f"{v} %x"
    text = function.text + "\n".join(piece for _, piece in function.needs) + LOOP.format(
        t=t, v=v, symbol=function.symbol, arguments=arguments, lanes=lanes)
    module = llvm.parse_assembly(text)
    module.verify()
    host = fma
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name() if host else "", features=llvm.get_host_cpu_features().flatten() if host else "", opt=2)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(2))
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    go = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(engine.get_function_address("go"))

    def run(x, y=None):
        size = -(-len(x) // lanes) * lanes
        x_padded = np.resize(np.asarray(x, f"float{bits}"), size)
        y_padded = x_padded if y is None else np.resize(np.asarray(y, f"float{bits}"), size)
        out = np.empty_like(x_padded)
        go(x_padded.ctypes.data, y_padded.ctypes.data, out.ctypes.data, size)
        return out[:len(x)]

    run.engine = engine
    return run


REFERENCE = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x), "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "pow": np.power, "atan2": np.arctan2,
    "exp10": lambda x: np.power(type(x.flat[0])(10), x), "erf": scipy.special.erf, "exp2": np.exp2,
}


def reference(name, *arguments):
    """The value in the precision of the arguments: float64 for float32, the long double of x86 for float64."""
    with np.errstate(all="ignore"):
        return REFERENCE.get(name, getattr(np, name, None))(*arguments)


def worst_ulp(got, exact):
    """(largest error in ulp of the dtype of `got`, where): 0 for equal specials, inf where only one is special."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        spacing = np.spacing(np.abs(rounded)).astype(exact.dtype)
        error = np.abs(got.astype(exact.dtype) - exact) / spacing
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    at_overflow = np.isinf(rounded) & (np.abs(got) == np.finfo(got.dtype).max)
    error = np.where(~np.isfinite(rounded), np.where(same | at_overflow, 0, np.inf), error)
    error = np.where(np.isnan(error), np.inf, error)
    worst = int(np.argmax(error))
    return float(error[worst]), worst


def floats32(count):
    """`count` float32 values spread evenly over all bit patterns: every exponent, both signs, inf and NaN."""
    step = 2**32 // count
    special = np.array([float(np.clip(v, -3e38, 3e38)) if np.isfinite(v) else v for v in SPECIAL], "float32")
    return np.concatenate([np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32).view(np.float32),
                           special])


def floats64(count, seed=0):
    """`count` float64 values stratified by exponent, both signs."""
    rng = np.random.default_rng(seed)
    exponents = np.arange(0, 2048, dtype=np.uint64)
    bits = (np.repeat(exponents, -(-count // 2048))[:count] << np.uint64(52)) | rng.integers(0, 2**52, count, dtype=np.uint64)
    bits |= rng.integers(0, 2, count, dtype=np.uint64) << np.uint64(63)
    return np.concatenate([bits.view(np.float64), SPECIAL, rng.uniform(-10, 10, count // 4), rng.uniform(-1, 1, count // 4)])


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.2e-308, 1e300, -1e300,
                    88.7, -87.3, -103.9, 709.7, -745.1, 3.14159265358979, 1.5707963267948966, 0.7853981633974483, 1e22, 22.0])
