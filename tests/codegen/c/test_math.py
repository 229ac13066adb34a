"""Our own mathematical functions in C: the same bits as those of the LLVM backend, with and without fused multiply-add."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.codegen.formulas.table import BINARY, MAX_ULP
from tests.codegen.c.compilers import needs_compiler, strict_target

NAMES = sorted(MAX_ULP)
SPECIAL = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 0.5, 1e-40, -3]


def all_functions(dtype):
    """A program of every function on n floats, or pairs of floats."""
    n = te.var("n")
    x, y = te.placeholder((n,), dtype, name="X"), te.placeholder((n,), dtype, name="Y")

    def function(name):
        return te.compute((n,), lambda i: tir.call_intrin(dtype, f"tir.{name}", x[i], *((y[i],) if name in BINARY else ())),
                          name=f"{name}.of")

    outs = [function(name) for name in NAMES]
    return te.create_schedule([out.op for out in outs]), [x, y, *outs]


def arguments(dtype):
    """Floats of all sizes, and all pairs of special ones."""
    rng, bits = np.random.default_rng(7), np.dtype(dtype).itemsize * 8
    with np.errstate(all="ignore"):
        anything = rng.integers(0, 2**bits, 2000, np.uint64).astype(f"uint{bits}").view(dtype)
        large = (10.0 ** rng.uniform(3, 30 if bits == 32 else 300, 500) * rng.choice([-1, 1], 500)).astype(dtype)
    x = np.concatenate([anything, rng.normal(0, 8, 500).astype(dtype), rng.uniform(-1, 1, 500).astype(dtype), large])
    special = np.array(SPECIAL, dtype)
    y = np.concatenate([rng.permutation(x), np.tile(special, len(special))])
    return np.concatenate([x, np.repeat(special, len(special))]), y


@needs_compiler
@pytest.mark.parametrize("mcpu", ["x86-64", "haswell"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_own_functions_have_the_bits_of_llvm(dtype, mcpu):
    llvm = tedsl.target.Target(f"llvm -mcpu={mcpu}")
    if not llvm.runs_here:
        pytest.skip(f"this machine is no {mcpu}")
    x, y = arguments(dtype)
    results = []
    for target in (llvm, strict_target(f"-math=own -mcpu={mcpu}")):
        outs = [np.empty_like(x) for _ in NAMES]
        with tedsl.transform.PassContext(opt_level=0):
            tedsl.build(*all_functions(dtype), target)(x, y, *outs)
        results.append(outs)
    for name, a, b in zip(NAMES, *results):
        same = (a.view(f"int{a.itemsize * 8}") == b.view(f"int{a.itemsize * 8}")) | (np.isnan(a) & np.isnan(b))
        assert same.all(), (name, x[~same][:3], a[~same][:3], b[~same][:3])


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_the_c_library_are_near(dtype):
    """Within 4 ulp of ours, where those of the library are exact to 1 or 2."""
    x, y = arguments(dtype)
    results = []
    for math in ("libm", "own"):
        outs = [np.empty_like(x) for _ in NAMES]
        with tedsl.transform.PassContext(opt_level=0):
            tedsl.build(*all_functions(dtype), strict_target(f"-math={math}"))(x, y, *outs)
        results.append(outs)
    for name, a, b in zip(NAMES, *results):
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= 4 * np.spacing(np.maximum(np.abs(a), np.finfo(dtype).tiny))
        assert (near | (a == b) | (np.isnan(a) & np.isnan(b))).all(), name


def test_the_text_has_only_the_functions_that_are_used():
    s, args = all_functions("float32")
    libm = str(tedsl.build(s, args, "c").get_source())
    assert "tedsl_sigmoid_f32(float x)" in libm and "expf(X[" in libm and "tedsl_exp_f32" not in libm
    own = str(tedsl.build(s, args, "c -math=own").get_source())
    assert "tedsl_exp_f32(X[" in own and "expf" not in own.replace("tedsl_", "")
