"""Masks that the machine lacks, and vectors that it cannot hold."""

import pytest

from tedsl.ir import build
from tedsl.ir.expr import SizeVar, Var
from tedsl.ir.stmt import LetStmt
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.loops.vectorize_loops import vectorize_loops
from tedsl.passes.machine.split_vectors import powers, split_vectors
from tedsl.target.target import Target
from tests.passes.programs import VECTORIZED, Function, body_text, check, imm, loop, seq, when

SSE, AVX2 = Target("llvm -mtriple=x86_64-linux-gnu"), Target("llvm -mtriple=x86_64-linux-gnu -mattr=+avx2,+fma")
AVX512 = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512")
V, I = Var("v"), Var("i")


def guarded(dtype, lanes, n):
    f = Function(A=(n, dtype), B=(n, dtype))
    x = build.add(build.mul(I, lanes), V)
    body = when(build.likely(build.less(x, n)), f.store("B", x, build.add(f.load("A", x), imm(1, dtype))))
    blocks = build.floordiv(build.add(n, lanes - 1), lanes)
    return vectorize_loops(f.func(loop(I, blocks, loop(V, lanes, body, VECTORIZED))))


@pytest.mark.parametrize("target, dtype, kept", [
    (SSE, "float32", False), (SSE, "int8", False), (AVX2, "float32", True), (AVX2, "float64", True), (AVX2, "int16", False),
    (AVX2, "int8", False), (AVX512, "int8", True), (AVX512, "float32", True)])
def test_masks_stay_where_the_target_has_them(target, dtype, kept):
    n = SizeVar("n")
    before = guarded(dtype, 8, n)
    for size in (1, 2, 3, 7, 8, 9, 15, 21):
        after = check(split_vectors, before, target, shapes={"A": (size,), "B": (size,)})
    masks = [node for node in post_order(after.body) if getattr(node, "predicate", None) is not None]
    assert (after is before) == kept and bool(masks) == kept


def test_lanes_that_are_no_power_of_two():
    n = SizeVar("n")
    for size in range(1, 15):
        check(split_vectors, guarded("float32", 6, n), SSE, shapes={"A": (size,), "B": (size,)})


def test_a_constant_tail_is_its_powers_of_two():
    f = Function(A=(64,), B=(64,))
    body = when(build.less(V, 6), f.store("B", V, f.load("A", V)))
    before = vectorize_loops(f.func(loop(V, 8, body, VECTORIZED)))
    for target in (SSE, AVX512):
        assert body_text(check(split_vectors, before, target)) == (
            "B_1[ramp(0, 1, 4)] = (float32x4*)A_1[ramp(0, 1, 4)]\nB_1[ramp(4, 1, 2)] = (float32x2*)A_1[ramp(4, 1, 2)]")


@pytest.mark.parametrize("rest, cut", [(6, False), (12, False), (8, True)])
def test_the_tail_of_a_sum_stays_one_vector_unless_it_fills_a_narrower_one(rest, cut):
    """Of the sums of 16 lanes, which stay in a register, parts of 4 and 2 were taken out and put in again."""
    f = Function(A=(64,), B=(64,))
    body = when(build.less(V, rest), f.store("B", V, build.add(f.load("B", V), f.load("A", V))))
    before = vectorize_loops(f.func(loop(V, 16, body, VECTORIZED)))
    assert (check(split_vectors, before, AVX512) is before) != cut
    assert check(split_vectors, before, SSE) is not before


def test_other_masks_go_lane_by_lane(golden):
    f = Function(A=(64,), B=(64,), C=(8, "int32"))
    chosen = build.if_then_else(build.greater(f.load("C", V), imm(2)), f.load("A", V), f.load("B", build.add(V, 8)))
    before = vectorize_loops(f.func(loop(V, 8, f.store("B", V, chosen), VECTORIZED)))
    check(split_vectors, before, SSE, golden=golden)


def test_a_mask_that_is_a_let_goes_along():
    f = Function(A=(8,), B=(8,))
    body = when(build.greater(f.load("A", V), imm(0.0, "float32")), f.store("A", V, build.mul(f.load("A", V), f.load("B", V))))
    before = vectorize_loops(f.func(loop(V, 8, body, VECTORIZED)))
    check(split_vectors, before, SSE)


@pytest.mark.parametrize("lanes", [16, 100, 48, 23, 512, 5])
def test_very_wide_and_odd_vectors_are_cut(lanes, golden):
    f = Function(A=(600,), B=(600,))
    before = vectorize_loops(f.func(loop(V, lanes, f.store("B", V, f.load("A", V)), VECTORIZED)))
    check(split_vectors, before, AVX512, golden=golden)


def test_vectors_that_are_bound_are_cut_with_their_stores():
    f = Function(A=(112,), B=(112,), C=(112, "int32"))
    a, better = Var("a", "float32"), f.load("B", V)
    kept = build.greater_equal(better, f.load("A", V))
    stores = seq(f.store("C", V, build.if_then_else(kept, f.load("C", V), I)), f.store("B", V, a))
    body = loop(V, 56, LetStmt(a, build.maximum(better, f.load("A", V)), stores), VECTORIZED)
    before = vectorize_loops(f.func(loop(I, 3, body)))
    after = check(split_vectors, before, AVX512)
    bound = [node.value.dtype.lanes for node in post_order(after.body) if isinstance(node, LetStmt)]
    assert sorted(bound) == [8, 16, 32], body_text(after)


def test_powers():
    assert powers(13) == [(0, 8), (8, 4), (12, 1)] and powers(0) == []
