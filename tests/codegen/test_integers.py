"""Integer operations in machine code, all pairs of int8 and uint8, edges of the wider types; also where LLVM's traps."""

import itertools

import numpy as np
import pytest

from tedsl.ir import build
from tedsl.ir.dtype import dtype
from tedsl.ir.evaluate import evaluate, run
from tedsl.ir.expr import Call, Div, FloorDiv, FloorMod, Max, Min, Mod, Mul, Sub, Var
from tedsl.ir.ops import Op
from tests.codegen.kernels import AVX2, HOST, PLAIN, RUNNABLE, Kernel, elementwise, kernels, splat


def op(name):
    return lambda a, b: Call(a.dtype, Op.get(f"tir.{name}"), (a, b))


OPS = {"floordiv": FloorDiv, "floormod": FloorMod, "truncdiv": Div, "truncmod": Mod, "mul": Mul, "sub": Sub, "min": Min,
       "max": Max, "shift_left": op("shift_left"), "shift_right": op("shift_right"), "and": op("bitwise_and"),
       "xor": op("bitwise_xor")}


def pairs(of):
    info = np.iinfo(of)
    values = range(info.min, info.max + 1) if info.bits == 8 else sorted({
        *(v for v in range(-9, 10) if v >= info.min), info.min, info.min + 1, info.max, info.max - 1, info.max // 2, info.bits,
        info.bits - 1, info.bits + 1, 7919, 100003 % info.max})
    both = np.array(list(itertools.product(values, values)), of)
    fill = -len(both) % 16
    both = np.concatenate([both, np.ones((fill, 2), of)])
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


def reference(name, of):
    """The same operation on all pairs, by the interpreter."""
    a, b = pairs(of)
    result = np.zeros_like(a)
    run(elementwise(OPS[name], [of, of], of, 1, len(a)), [a, b, result])
    return result


@pytest.mark.parametrize("of", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("name", OPS)
def test_binary_operations(name, of):
    a, b = pairs(of)
    expected = reference(name, of)
    for lanes, target in ((1, HOST), (16, HOST), (4, PLAIN)):
        got = np.zeros_like(a)
        assert Kernel(elementwise(OPS[name], [of, of], of, lanes, len(a)), target)(a, b, got) == 0
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("of", ["int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("name", ["floordiv", "floormod"])
def test_quotients_that_are_nearly_whole(name, of):
    """Vectors are divided as floats: multiples of divisors of all sizes, one less and one more."""
    info, rng = np.iinfo(of), np.random.default_rng(0)
    b = rng.integers(info.min, info.max, 1 << 14, of, endpoint=True) >> rng.integers(0, info.bits - 2, 1 << 14).astype(of)
    b[b == 0] = 1
    quotient = rng.integers(info.min, info.max, len(b), of, endpoint=True).astype("int64") // b
    a = np.clip(quotient * b + rng.integers(-1, 2, len(b)), info.min + 1 if info.min else 0, info.max).astype(of)
    expected = (a // b if name == "floordiv" else a % b).astype(of)
    for lanes, target in ((16, HOST), (4, PLAIN)):
        got = np.zeros_like(a)
        assert Kernel(elementwise(OPS[name], [of, of], of, lanes, len(a)), target)(a, b, got) == 0
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("of", ["int64", "uint64"])
@pytest.mark.parametrize("divisor", [None, 3, 1000, 2**50 + 1, 2**51, -7])
def test_quotients_of_64_bits(of, divisor):
    """Vectors whose lanes all are below 2**51 are divided as floats, others lane by lane; also by constants."""
    if divisor == -7 and of == "uint64":
        divisor = 2**64 - 7
    rng, count = np.random.default_rng(1), 1 << 12
    small = rng.integers(-2**51 if of == "int64" else 0, 2**51, (2, count), of)
    small[:, :3] = [[2**51 - 1, 2**51 - 1, 1], [2**51 - 1, 1, 2**51 - 1]]
    info = np.iinfo(of)
    b = np.concatenate([small[1] >> rng.integers(0, 50, count).astype(of), rng.integers(info.min, info.max, count, of)])
    b[b == 0] = 1
    if divisor is not None:
        b[:] = divisor
    a = np.concatenate([small[0], rng.integers(info.min, info.max, count, of)])
    whole = rng.random(2 * count) < 0.7  # multiples of the divisor, one more and one less
    a = np.where(whole, a // b * b + rng.integers(0, 2, 2 * count).astype(of) - rng.integers(0, 2, 2 * count).astype(of), a)
    rest = np.fmod(a, b)
    expected = {"floordiv": a // b, "floormod": a % b, "truncdiv": (a - rest) // b, "truncmod": rest}
    for name, lanes, target in itertools.product(expected, (2, 8), RUNNABLE):
        make = OPS[name] if divisor is None else lambda x, y, name=name, lanes=lanes: OPS[name](x, splat(divisor, of, lanes))
        got = np.zeros_like(a)
        assert Kernel(elementwise(make, [of, of], of, lanes, len(a)), target)(a, b, got) == 0
        np.testing.assert_array_equal(got, expected[name], err_msg=f"{name}, {lanes} lanes")


@pytest.mark.parametrize("of", ["int64", "uint64"])
@pytest.mark.parametrize("name", ["floordiv", "floormod", "truncdiv", "truncmod"])
def test_powers_of_two_of_64_bits_are_shifted_by(name, of):
    for divisor in (1, 2, 8, 2**62, *((-8, -2**63) if of == "int64" else (2**63,))):
        kernel = Kernel(elementwise(lambda x, d=divisor: OPS[name](x, splat(d, of, 8)), [of], of, 8, 64), AVX2)
        assert "call <8 x i64> @tedsl." not in kernel.text
        if AVX2.runs_here:
            a, got = np.random.default_rng(0).integers(np.iinfo(of).min, np.iinfo(of).max, 64, of), np.zeros(64, of)
            a[:2] = np.iinfo(of).min, np.iinfo(of).max
            assert kernel(a, got) == 0
            x = Var("x", of)
            formula = OPS[name](x, build.const(divisor, of))
            np.testing.assert_array_equal(got, np.array([evaluate(formula, {x: int(v)}) for v in a], of))


@pytest.mark.parametrize("name", ["floordiv", "floormod", "truncdiv", "truncmod", "shift_left", "shift_right"])
@pytest.mark.parametrize("of", ["int8", "uint8"])
def test_constant_operands(name, of):
    info = np.iinfo(of)
    a = np.arange(info.min, info.max + 1).astype(of)
    x = Var("x", of)
    values = (0, 1, 2, 3, 7, 8, 16, info.max, *((-1, -2, -3, -8, info.min) if info.min else (128, 255)))
    cases = list(itertools.product(values, (1, 16)))
    formulas = [lambda v, value=value, lanes=lanes: OPS[name](v, splat(value, of, lanes)) for value, lanes in cases]
    together = kernels([elementwise(formula, [of], of, lanes, len(a)) for formula, (_, lanes) in zip(formulas, cases)])
    by = {value: OPS[name](x, build.const(value, of)) for value in values}
    expected = {value: np.array([evaluate(formula, {x: int(v)}) for v in a], of) for value, formula in by.items()}
    for kernel, (value, lanes) in zip(together, cases):
        got = np.zeros_like(a)
        assert kernel(a, got) == 0
        np.testing.assert_array_equal(got, expected[value], err_msg=f"{name} by {value} in {lanes} lanes")


@pytest.mark.parametrize("of", ["int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("name", ["popcount", "clz", "bitwise_not", "fabs"])
def test_unary_operations(name, of):
    a, _ = pairs(of)
    x = Var("x", of)
    result = "int32" if name in ("popcount", "clz") else of
    make = lambda v: Call(dtype(result).with_lanes(v.dtype.lanes), Op.get(f"tir.{name}"), (v,))
    known = {int(v): evaluate(make(x), {x: int(v)}) for v in set(a.tolist())}
    expected = np.array([known[int(v)] for v in a], result)
    for lanes in (1, 8):
        got = np.zeros(len(a), result)
        assert Kernel(elementwise(make, [of], result, lanes, len(a)))(a, got) == 0
        np.testing.assert_array_equal(got, expected)
