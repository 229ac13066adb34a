"""The pipelines as a whole: the text users know, every pass in its place, programs of any size."""

import pytest

from tedsl.ir import build
from tedsl.ir.expr import Add, Var
from tedsl.ir.func import Accesses
from tedsl.ir.stmt import SeqStmt
from tedsl.ir.text import text
from tedsl.ir.verify import verify
from tedsl.passes.config import LoopPartitionConfig, PassConfig
from tedsl.passes.default import lowering_pipeline, reading_pipeline, target_pipeline
from tedsl.passes.pipeline import Pipeline, pass_name, with_options
from tedsl.target.target import Target
from tests.passes.programs import UNROLLED, VECTORIZED, Function, allocate, body_text, imm, loop, same_result, seq, when

TARGETS = ["llvm -mtriple=x86_64-linux-gnu", "llvm -mtriple=x86_64-linux-gnu -mattr=+avx2,+fma",
           "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512", "llvm -mtriple=aarch64-linux-gnu"]
I, J, K, V = Var("i"), Var("j"), Var("k"), Var("v")


def tiled_matmul(n, tile, lanes):
    """C = A @ B for n x n matrices in tiles of unrolled rows and vectorized columns, guarded where they do not fit."""
    f = Function(A=(n * n,), B=(n * n,), C=(n * n,))
    yo, xo, yi, xi, y2, x2 = (Var(name) for name in ("yo", "xo", "yi", "xi", "y2", "x2"))

    def rows(y_inner, x_inner, make):
        y, x = build.add(build.mul(yo, tile), y_inner), build.add(build.mul(xo, lanes), x_inner)
        body = make(build.add(build.mul(y, n), x), y, x)
        for guard in (build.less(x, n), build.less(y, n)):
            body = when(build.likely(guard), body)
        return loop(y_inner, tile, loop(x_inner, lanes, body, VECTORIZED), UNROLLED)

    start = rows(yi, xi, lambda c, y, x: f.store("C", c, 0))
    update = rows(y2, x2, lambda c, y, x: f.store("C", c, build.add(f.load("C", c), build.mul(
        f.load("A", build.add(build.mul(y, n), K)), f.load("B", build.add(build.mul(K, n), x))))))
    blocks = lambda size: -(-n // size)
    return f.func(loop(yo, blocks(tile), loop(xo, blocks(lanes), seq(start, loop(K, n, update)))))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [5, 8, 13])
def test_a_tiled_matmul_keeps_its_values_through_every_pass(target, n):
    before = tiled_matmul(n, 2, 4)
    seen, checked = [], [before]

    def observe(name, func):
        seen.append(name)
        if func is not checked[-1]:
            verify(func, flat=True)
            same_result(before, func)
            checked.append(func)

    after = (lowering_pipeline() + target_pipeline(Target(target)))(before, observe)
    assert "promote_accumulators" in seen and seen.count("simplify") == 2
    main = body_text(after)
    assert "C.acc" in main and (n == 8) == ("likely" not in text(lowering_pipeline(simple_mode=True)(before)))


def test_the_main_part_of_a_tile_has_no_masks():
    after = body_text((lowering_pipeline() + target_pipeline(Target(TARGETS[2])))(tiled_matmul(13, 2, 4)))
    main = after[after.index("for (k"):]
    assert " if " not in main[:main.index("}")]


def test_the_order_that_users_know():
    assert lowering_pipeline().names == (
        "own_memory", "inject_rolling_buffer", "inject_prefetch", "flatten_storage", "join_loops", "narrow_dtypes",
        "simplify", "partition_loops", "vectorize_loops", "inject_virtual_threads", "inject_double_buffer", "rewrite_storage",
        "unroll_loops", "simplify", "remove_no_ops", "rewrite_unsafe_selects", "hoist_conditions")
    assert "partition_loops" not in lowering_pipeline(simple_mode=True).names
    assert lowering_pipeline(accesses=Accesses.AT_RUN_TIME).names[:2] == ("own_memory", "check_accesses")
    assert reading_pipeline(PassConfig(), simple_mode=False).names == (*lowering_pipeline().names, "refuse_races")


def test_options_reach_the_passes():
    f = Function(A=(50,), B=(50,))
    x = build.add(build.mul(I, 8), V)
    body = when(build.likely(build.less(x, 50)), f.store("B", x, f.load("A", x)))
    func = f.func(loop(I, 7, loop(V, 8, body, VECTORIZED)))
    off = lowering_pipeline(PassConfig(disable_vectorize=True, noalias=False))(func)
    assert "ramp" not in body_text(off) and "tir.noalias" not in off.attrs
    split = lowering_pipeline(PassConfig(loop_partition=LoopPartitionConfig(partition_const_loop=True)))(func)
    assert "for (i: int32, 0, 6)" in body_text(split)


def test_added_passes_run_in_their_phase():
    marks = [with_options(lambda func, phase: func, phase=k) for k in range(4)]
    for k, mark in enumerate(marks):
        mark.__name__ = f"mark{k}"
    names = lowering_pipeline(PassConfig(add_lower_pass=tuple(enumerate(marks)))).names
    assert [n for n in names if n.startswith("mark")] == ["mark0", "mark1", "mark2", "mark3"]
    assert names[:2] == ("own_memory", "mark0") and names[-1] == "mark3"
    assert names.index("mark1") < names.index("vectorize_loops")


def test_observers_see_every_pass():
    seen = []
    f = Function(A=(8,))
    func = f.func(loop(I, 8, f.store("A", I, 1)))
    Pipeline((with_options(_unchanged, mark=1), _unchanged))(func, lambda name, result: seen.append((name, result)))
    assert seen == [("_unchanged", func)] * 2 and pass_name(_unchanged) == "_unchanged"


def _unchanged(func, mark=0):
    return func


def test_sequences_of_ten_thousand_statements():
    f = Function(A=(10_000,), B=(10_000,))
    body = SeqStmt(tuple(f.store("B", imm(k), f.load("A", imm(k))) for k in range(10_000)))
    func = f.func(loop(I, 2, body))
    lowered = lowering_pipeline()(func)
    for target in TARGETS[1:3]:
        assert len(target_pipeline(Target(target))(lowered).body.body.seq) == 10_000


def test_expressions_ten_thousand_deep():
    f = Function(A=(16,), B=(16,))
    x = build.add(build.mul(I, 4), V)
    value = f.load("A", x)
    for _ in range(10_000):
        value = Add(value, f.load("A", x))
    body = when(build.likely(build.less(x, 14)), f.store("B", x, value))
    func = f.func(loop(I, 4, loop(V, 4, body, VECTORIZED)))
    lowered = lowering_pipeline()(func)
    for target in TARGETS[1:3]:
        verify(target_pipeline(Target(target))(lowered), flat=True)


def test_a_function_without_work_is_itself():
    f = Function(A=(8,), B=(8,))
    func = f.func(loop(I, 8, f.store("B", I, f.load("A", I))))
    for target in TARGETS:
        assert (lowering_pipeline() + target_pipeline(Target(target)))(func) is func


def test_producers_inside_parallel_tiles():
    from tests.passes.programs import PARALLEL, Load, Store
    f = Function(A=(66,), B=(64,))
    T = Var("T", f.data("A").type_annotation)
    x = build.add(build.mul(I, 8), J)
    fill = loop(K, 10, Store(T, build.mul(f.load("A", build.add(build.mul(I, 8), K)), imm(3.0, "float32")), K))
    read = lambda k: Load("float32", T, build.add(J, k))
    use = loop(J, 8, f.store("B", x, build.add(build.add(read(0), read(1)), read(2))), VECTORIZED)
    before = f.func(loop(I, 8, allocate(T, 10, seq(fill, use)), PARALLEL))
    after = (lowering_pipeline() + target_pipeline(Target(TARGETS[2])))(before)
    verify(after, flat=True)
    same_result(before, after)
