"""fma, intrinsics, parallel loops."""

import numpy as np
import pytest

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Load, Ramp, SizeVar, Var
from tedsl.ir.stmt import Store
from tedsl.ir.walk.equal import structural_equal
from tedsl.passes.machine.choose_fma import choose_fma
from tedsl.passes.machine.lower_intrinsics import lower_intrinsics
from tedsl.passes.machine.normalize_parallel import normalize_parallel
from tedsl.passes.machine.straighten_indices import straighten_indices
from tedsl.passes.machine.widen_loops import widen_loops
from tests.passes.programs import PARALLEL, Function, allocate, body_text, check, imm, loop, seq, when

I, J, K = Var("i"), Var("j"), Var("k")


@pytest.mark.parametrize("formula, expected", [
    (lambda a, b, c: a * b + c, "@tir.fma(a, b, c)"), (lambda a, b, c: c + a * b, "@tir.fma(a, b, c)"),
    (lambda a, b, c: a * b - c, "@tir.fma(a, b, (c*-1f32))"), (lambda a, b, c: c - a * b, "@tir.fma((a*-1f32), b, c)"),
    (lambda a, b, c: a * b + b * c, "@tir.fma(a, b, (b*c))"), (lambda a, b, c: a * (b + c), None),
    (lambda a, b, c: (a * b + c) * b + c, "@tir.fma(@tir.fma(a, b, c), b, c)")])
def test_sums_of_products_are_fused(formula, expected):
    f = Function(A=(8,))
    a, b, c = (Var(x, "float32") for x in "abc")
    before = f.func(f.store("A", imm(0), formula(a, b, c)), a, b, c)
    after = check(choose_fma, before, scalars=(2.0, 3.0, 4.0))
    if expected is None:
        assert after is before
    else:
        assert body_text(after).replace(", dtype=float32)", ")") == f"A_1[0] = {expected}"


@pytest.mark.parametrize("dtype, fused", [("float64", True), ("float16", False), ("int32", False), ("bfloat16", False)])
def test_only_floats_of_the_machine_are_fused(dtype, fused):
    f = Function(A=(8, dtype))
    a = Load(f.buffers["A"].dtype, f.data("A"), I)
    before = f.func(loop(I, 8, f.store("A", I, build.add(build.mul(a, a), a))))
    assert (choose_fma(before) is not before) == fused


def test_a_fused_sum_rounds_once():
    f = Function(A=(3,), B=(1,))
    value = build.add(build.mul(f.load("A", imm(0)), f.load("A", imm(1))), f.load("A", imm(2)))
    after = choose_fma(f.func(f.store("B", imm(0), value)))
    x = np.float32(1 + 2.0 ** -12)
    a, b = np.array([x, x, -1], "float32"), np.zeros(1, "float32")
    run(after, [a, b])
    assert b[0] == np.float32(float(x) * float(x) - 1) and b[0] != np.float32(x * x) - np.float32(1)


def nest(f, index, *extents):
    body = f.store("B", index, f.load("A", index))
    for var, extent in reversed(extents):
        body = loop(var, extent, body)
    return body


def test_floor_divisions_of_known_sign_are_plain(golden):
    f = Function(A=(64,), B=(64,))
    check(lower_intrinsics, f.func(nest(f, build.add(build.floordiv(I, 3), build.floormod(I, 5)), (I, 20))), golden=golden)


def test_floor_divisions_of_unknown_sign_and_by_powers_of_two_stay():
    f = Function(A=(64,), B=(64,))
    low = build.add(build.floordiv(build.sub(I, 9), 3), 4)
    for index in (low, build.floordiv(I, 4)):
        before = f.func(nest(f, index, (I, 20)))
        assert lower_intrinsics(before) is before


def test_classification_is_comparison(golden):
    f = Function(A=(4,), B=(4,))
    x = f.load("A", I)
    tests = [build.call(f"tir.{name}", x, dtype_="bool") for name in ("isnan", "isinf", "isfinite")]
    value = sum((build.mul(build.cast("float32", t), float(10 ** k)) for k, t in enumerate(tests)), imm(0.0, "float32"))
    before = f.func(loop(I, 4, f.store("B", I, value)))
    after = lower_intrinsics(before)
    golden.sections(before=body_text(before), after=body_text(after))
    a, b = np.array([np.nan, np.inf, -np.inf, 3], "float32"), np.zeros(4, "float32")
    run(after, [a, b])
    np.testing.assert_array_equal(b, [1, 10, 10, 100])


def test_only_the_outer_parallel_loop_stays(golden):
    f = Function(A=(64,), B=(64,))
    x = build.add(build.mul(I, 8), J)
    before = f.func(loop(I, 8, loop(J, 8, f.store("B", x, f.load("A", x)), PARALLEL), PARALLEL))
    check(normalize_parallel, before, golden=golden)


def test_nothing_is_parallel_on_one_core():
    f = Function(A=(64,), B=(64,))
    body = f.store("B", I, f.load("A", I))
    before, serial = f.func(loop(I, 64, body, PARALLEL)), f.func(loop(I, 64, body))
    assert structural_equal(normalize_parallel(before, cores=1), serial)
    assert normalize_parallel(before, cores=2) is before


def test_one_iteration_is_not_parallel(golden):
    f = Function(A=(64,), B=(64,))
    check(normalize_parallel, f.func(loop(I, 1, f.store("B", I, f.load("A", I)), PARALLEL)), golden=golden)


def test_a_race_is_refused():
    f = Function(A=(64,), B=(64,))
    race = f.store("B", imm(0), build.add(f.load("B", imm(0)), f.load("A", I)))
    with pytest.raises(LoweringError, match=r"parallel loop i all update B\[0\](.|\n)*hint: make the loop serial"):
        normalize_parallel(f.func(loop(I, 8, race, PARALLEL)))
    T = Var("T", f.data("A").type_annotation)
    shared = allocate(T, 1, loop(I, 8, Store(T, build.add(Load("float32", T, imm(0)), f.load("A", I)), imm(0)), PARALLEL))
    with pytest.raises(LoweringError, match=r"all update T\[0\](.|\n)*allocate T inside of the loop"):
        normalize_parallel(f.func(shared))
    own = allocate(T, 1, seq(Store(T, imm(0.0, "float32"), imm(0)),
                             Store(T, build.add(Load("float32", T, imm(0)), f.load("A", I)), imm(0)),
                             f.store("B", I, Load("float32", T, imm(0)))))
    before = f.func(loop(I, 8, own, PARALLEL))
    assert normalize_parallel(before) is before
    chosen = f.func(loop(I, 8, when(build.equal(I, 3), race), PARALLEL))
    assert normalize_parallel(chosen) is chosen


def test_a_fused_symbolic_loop_counts_in_int64(golden):
    n, m = SizeVar("n"), SizeVar("m")
    f = Function(A=(6, 5), B=(6, 5))
    index = build.add(build.mul(build.floordiv(I, m), m), build.floormod(I, m))
    value = build.add(f.load("A", index), build.cast("float32", build.floormod(I, 7)))
    guarded = when(build.likely(build.less(I, build.mul(n, m))), f.store("B", index, value))
    check(widen_loops, f.func(loop(I, build.mul(n, m), guarded), n, m), scalars=(6, 5), golden=golden)


def test_loops_that_fit_are_left_alone():
    n = SizeVar("n")
    f = Function(A=(64,), B=(64,))
    for extent in (n, build.floordiv(build.add(n, 31), 32), imm(64)):
        before = f.func(loop(I, extent, when(build.less(I, 64), f.store("B", I, f.load("A", I)))), n)
        assert widen_loops(before) is before


def test_vectors_and_inner_loops_of_a_wide_loop():
    n = SizeVar("n")
    f = Function(A=(64,), B=(64,))
    lanes = Ramp(build.add(build.mul(I, 8), J), imm(1), 4)
    store = Store(f.data("B"), f.load("A", lanes), lanes, build.less(lanes, build.const(64, "int32x4")))
    inner = loop(J, build.minimum(build.add(I, 1), 4), store)
    check(widen_loops, f.func(loop(I, build.floordiv(build.mul(n, n), 2), inner), n), scalars=(4,))


def test_quotient_and_remainder_of_a_fused_index_make_it_again(golden):
    m = SizeVar("m")
    f = Function(A=(13, m), B=(13, m))
    lanes = Ramp(build.mul(I, 8), imm(1), 8)
    divisor = build.cast("int32x8", m)
    index = build.add(build.mul(build.floordiv(lanes, divisor), divisor), build.floormod(lanes, divisor))
    vector = f.func(loop(I, 8, Store(f.data("B"), f.load("A", index), index)), m)
    shapes = {"A": (13, 5), "B": (13, 5)}
    assert body_text(check(straighten_indices, vector, scalars=(5,), shapes=shapes)) == (
        "for (i: int32, 0, 8) {\n  B_1[ramp((i*8), 1, 8)] = (float32x8*)A_1[ramp((i*8), 1, 8)]\n}")
    scalar = build.add(build.mul(build.floordiv(I, m), m), build.floormod(I, m))
    check(straighten_indices, f.func(nest(f, scalar, (I, 64)), m), scalars=(5,), shapes=shapes, golden=golden)
