"""Loops that `build` splits by their guards before it unrolls what is inside: the same loops, of fewer steps."""

import numpy as np
import pytest

import tedsl
from benchmarks.drawn_programs import calls_made_by
from tedsl import te
from tedsl.ir.func import Accesses
from tedsl.ir.ops import LIKELY
from tedsl.ir.stmt import For
from tedsl.ir.walk.contents import contains, of_kinds
from tedsl.ir.walk.equal import structural_equal
from tedsl.passes.config import PassConfig
from tedsl.passes.default import lowering_pipeline, target_pipeline
from tedsl.target.target import Target

AVX2 = Target("llvm -mcpu=x86-64-v3")


def product(rows, columns, terms=20, tile=6, parallel=False):
    """A matrix product in tiles of unrolled rows: a guard for each row if `tile` does not divide the rows."""
    a, b = te.placeholder((rows, terms), name="a"), te.placeholder((terms, columns), name="b")
    k = te.reduce_axis((0, terms), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    s = te.create_schedule(c.op)
    local = s.cache_write(c, "local")
    i, j, ii, jj = s[c].tile(*c.op.axis, tile, 16)
    s[c].unroll(ii)
    s[c].vectorize(jj)
    if parallel:
        s[c].parallel(i)
    s[local].compute_at(s[c], j)
    rows_of, lanes = s[local].op.axis
    s[local].reorder(*s[local].op.reduce_axis, rows_of, lanes)
    s[local].unroll(rows_of)
    s[local].vectorize(lanes)
    return s, [a, b, c]


def flat(program):
    """The loops before any pass."""
    return tedsl.driver.schedule_to_module(*program)["main"]


def ready(func, early, config=PassConfig()):
    """The loops for the machine."""
    return (lowering_pipeline(config, early_tails=early) + target_pipeline(AVX2, config))(func)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("rows", [1, 5, 6, 7, 11, 12, 20, 31])
def test_the_loops_for_the_machine_are_the_same(rows, parallel):
    func = flat(product(rows, 32, parallel=parallel))
    assert structural_equal(ready(func, True), ready(func, False))


def test_guards_are_gone_before_loops_are_unrolled():
    func = flat(product(20, 32))
    assert not contains(lowering_pipeline(early_tails=True)(func).body, LIKELY)
    assert contains(lowering_pipeline()(func).body, LIKELY)


def test_it_takes_fewer_steps():
    func = flat(product(44, 32, tile=12))
    early, late = calls_made_by(lambda: ready(func, True)), calls_made_by(lambda: ready(func, False))
    assert early < 0.92 * late


@pytest.mark.parametrize("change", [
    {"accesses": Accesses.AT_RUN_TIME}, {"simple_mode": True}, {"config": PassConfig(add_lower_pass=((2, lambda f: f),))}])
def test_loops_that_users_see_or_check_are_left(change):
    assert "separate_early" not in lowering_pipeline(early_tails=True, **change).names
    assert "separate_early" in lowering_pipeline(early_tails=True).names


@pytest.mark.parametrize("make", [
    lambda: product(20, 40), lambda: product(te.var("n"), 32), lambda: product(18, 32)])
def test_masks_symbolic_loops_and_tiles_that_fit_are_left(make):
    seen = []

    def observe(name, func):
        if name in ("rewrite_storage", "separate_early"):
            seen.append(func)

    lowering_pipeline(early_tails=True)(flat(make()), observe)
    assert seen[0] is seen[1]


def test_launches_of_threads_are_left():
    a = te.placeholder((50,), name="a")
    b = te.compute((50,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    block, inner = s[b].split(b.op.axis[0], 16)
    thread, four = s[b].split(inner, 4)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    s[b].unroll(four)
    lowered = []
    lowering_pipeline(early_tails=True)(flat((s, [a, b])), lambda name, func: lowered.append((name, func)))
    before, after = (dict(lowered)[name] for name in ("rewrite_storage", "separate_early"))
    assert before is after and contains(before.body, LIKELY) and any(isinstance(s, For) for s in of_kinds(before.body, For))


def test_a_disabled_pass_does_not_run_early():
    with tedsl.transform.PassContext(disabled_pass=["tir.SeparateTails"]):
        text = tedsl.build(*product(20, 32), "llvm").get_source("tir")
    assert "if (" in text
    assert "if (" not in tedsl.build(*product(20, 32), "llvm").get_source("tir")


@pytest.mark.parametrize("rows", [0, 1, 6, 7, 29])
@pytest.mark.parametrize("parallel", [False, True])
def test_values(rows, parallel):
    s, arguments = product(rows, 32, parallel=parallel)
    rng = np.random.default_rng(rows)
    a, b = (rng.integers(-4, 5, [int(n) for n in t.shape]).astype("float32") for t in arguments[:2])
    c = np.empty((rows, 32), "float32")
    tedsl.build(s, arguments, "llvm")(a, b, c)
    np.testing.assert_array_equal(c, a @ b)
