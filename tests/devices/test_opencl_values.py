"""Values in OpenCL C: random expressions against the interpreter, casts and all mathematical functions against LLVM's machine
code, bit for bit.
"""

import itertools

import numpy as np
import pytest

from tedsl.codegen.formulas.table import BINARY, MAX_ULP
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.expressions import draw_expressions
from tedsl.ir.dtype import KNOWN, dtype
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Call, Cast
from tedsl.ir.ops import Op
from tedsl.target import Target
from tests.codegen.c.test_math import arguments
from tests.codegen.c.test_values import samples, viewed
from tests.codegen.kernels import PLAIN, elementwise, kernels
from tests.devices.opencl_device import needs_opencl
from tests.devices.opencl_kernels import Compiled

pytestmark = [needs_opencl, pytest.mark.filterwarnings("ignore:.*encountered in cast")]  # values out of range are meant


@pytest.mark.parametrize("lanes, options", [(1, ""), (4, ""), (16, ""), (4, "-vectors=loops")])
def test_random_expressions(lanes, options):
    seeds = range(1000 * lanes, 1000 * lanes + 12)
    drawn = [draw_expressions(Draw(seed), lanes) for seed in seeds]
    compiled, wrong = Compiled([one.func for one in drawn], f"opencl {options}"), []
    for k, one in enumerate(drawn):
        expected, results = one.results(), one.results()
        with np.errstate(all="ignore"):
            run(one.func, [*one.inputs, *expected, one.n])
        compiled(k, *one.inputs, *results, one.n)
        if not all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(results, expected)):
            wrong.append(seeds[k])
    assert wrong == []


def same_bits(got, wanted, of):
    """Whether two arrays of bits are equal, but for NaN of a dtype, of which there are many."""
    if of.is_float:
        size = 8 * of.bytes
        mantissa = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[str(of)]
        infinity, sign = ((1 << (size - 1 - mantissa)) - 1) << mantissa, np.array((1 << (size - 1)) - 1, wanted.dtype)
        return (got == wanted) | (((got & sign) > infinity) & ((wanted & sign) > infinity))
    return got == wanted


def test_casts_have_the_bits_of_llvm():
    """Of every dtype to every other."""
    pairs = [(dtype(a), dtype(b)) for a, b in itertools.permutations(KNOWN, 2)]
    inputs = [samples(a) for a, _ in pairs]
    funcs = [elementwise(lambda v, b=b: Cast(b, v), [str(a)], str(b), 1, len(x)) for (a, b), x in zip(pairs, inputs)]
    compiled = Compiled(funcs)
    for k, ((a, b), x, theirs) in enumerate(zip(pairs, inputs, kernels(funcs, PLAIN))):
        got, wanted = np.zeros(len(x), f"u{b.bytes}"), np.zeros(len(x), f"u{b.bytes}")
        compiled(k, viewed(x, a), got)
        assert theirs(x, wanted) == 0
        assert same_bits(got, wanted, b).all(), f"{a} to {b}"


@pytest.mark.parametrize("fma", [0, 1])
@pytest.mark.parametrize("of", ["float32", "float64"])
def test_own_functions_have_the_bits_of_llvm(of, fma):
    llvm = Target("llvm -mcpu=haswell") if fma else PLAIN
    if not llvm.runs_here:
        pytest.skip("this machine has no fused multiply-add")
    names, (x, y) = sorted(MAX_ULP), arguments(of)
    funcs = [elementwise(lambda *v, name=name: Call(dtype(of), Op.get(f"tir.{name}"), v), [of] * (2 if name in BINARY else 1),
                         of, 1, len(x)) for name in names]
    compiled = Compiled(funcs, f"opencl -fma={fma}")
    for k, (name, theirs) in enumerate(zip(names, kernels(funcs, llvm))):
        got, wanted = np.zeros_like(x), np.zeros_like(x)
        given = [x, y][:2 if name in BINARY else 1]
        compiled(k, *given, got)
        assert theirs(*given, wanted) == 0
        same = same_bits(got.view(f"u{x.itemsize}"), wanted.view(f"u{x.itemsize}"), dtype(of))
        assert same.all(), (name, x[~same][:3], got[~same][:3], wanted[~same][:3])


def test_functions_of_opencl_itself_need_no_doubles():
    func = elementwise(lambda v: Call(v.dtype, Op.get("tir.sin"), (v,)), ["float32"], "float32", 1, 64)
    assert "double" in Compiled([func]).code.text
    compiled, x = Compiled([func], "opencl -math=libm"), np.linspace(-3, 3, 64, dtype="float32")
    assert "double" not in compiled.code.text and " sin(" in compiled.code.text
    got = np.zeros_like(x)
    compiled(0, x, got)
    np.testing.assert_allclose(got, np.sin(x), rtol=1e-5, atol=1e-6)
