"""A thread that reads what another one writes in the same statement races; one that keeps to its own elements does not."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError
from tests.passes.threads.kernels import compiled, schedule

ZERO = 0.0


def program(body, threads=8, size=64, depth=1):
    """A fills S in shared memory, body(ib, S, tx, n) works on it, B gets it back; all by hand."""
    symbol = te.var("n") if threads is None else None
    count = symbol if threads is None else threads
    A = te.placeholder((size,), name="A")

    def written(ins, outs):
        ib = tir.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        tx = te.thread_axis("threadIdx.x")
        ib.scope_attr(tx, "thread_extent", count)
        S = ib.allocate("float32", size, name="S", scope="shared")
        S[tx.var] = a[tx.var]
        body(ib, S, tx.var, count)
        b[tx.var] = S[tx.var]
        return ib.get()

    B = te.extern((size,), [A], written, name="B", dtype="float32")
    return te.create_schedule(B.op), [A, B, *([symbol] if threads is None else [])]


def refusal(body, **kind):
    s, args = program(body, **kind)
    with pytest.raises(LoweringError) as caught:
        tedsl.build(s, args)
    return str(caught.value)


def run(body, threads=8, symbolic=False):
    s, args = program(body, threads=None if symbolic else threads)
    a, b = np.arange(64, dtype="float32") - 3, np.zeros(64, "float32")
    tedsl.build(s, args)(a, b, *([threads] if symbolic else []))
    return a[:threads], b[:threads]


def reverse(ib, S, tx, n):
    S[tx] = S[n - 1 - tx]


@pytest.mark.parametrize("symbolic", [False, True])
def test_a_reversal_in_place(symbolic):
    words = refusal(reverse, threads=None if symbolic else 8)
    assert "the threads of threadIdx.x write S[" in words and "in one statement: they would race" in words
    if symbolic:
        assert "where n = 8" in words
    else:
        assert "write S[threadIdx.x] and read S[7 - threadIdx.x]" in words
    assert "Thread 0 reads S[7], which thread 7 writes" in words
    assert "scope 'local'" in words and "then a barrier, tvm_storage_sync" in words


@pytest.mark.parametrize("symbolic", [False, True])
def test_what_the_hint_says_works(symbolic):
    def body(ib, S, tx, n):
        kept = ib.allocate("float32", 1, name="kept", scope="local")
        kept[0] = S[n - 1 - tx]
        S[tx] = kept[0]

    a, b = run(body, symbolic=symbolic)
    np.testing.assert_array_equal(b, a[::-1])


def decide(ib, S, tx, n):
    with ib.if_scope(S[n - 1 - tx] > ZERO):
        S[tx] = ZERO


def decide_by_one(ib, S, tx, n):
    with ib.if_scope(S[0] < ZERO):
        S[tx] = 5.0


def decide_and_else(ib, S, tx, n):
    with ib.if_scope(S[n - 1 - tx] > ZERO):
        S[tx + n] = ZERO
    with ib.else_scope():
        S[tx] = ZERO


def how_often(ib, S, tx, n):
    with ib.for_range(0, S[n - 1 - tx].astype("int32"), name="k"):
        S[tx] = ZERO


@pytest.mark.parametrize("body", [decide, decide_by_one, decide_and_else, how_often])
@pytest.mark.parametrize("threads", [8, None])
def test_some_decide_after_others_have_written(body, threads):
    words = refusal(body, threads=threads)
    assert "they would race" in words and "S[" in words and "threadIdx.x" in words


def shift(ib, S, tx, n):
    S[tx] = S[tx + 1]


def some_iterations(ib, S, tx, n):
    with ib.for_range(0, 3, name="k") as k:
        S[tx] = S[tx + k]


def overlapping(ib, S, tx, n):
    with ib.if_scope(tx < 5):
        S[tx] = S[tx + 3]


def two_of_one(ib, S, tx, n):
    S[tx // 2] = S[tx // 2] + 1.0


@pytest.mark.parametrize("body", [shift, some_iterations, overlapping, two_of_one])
def test_other_elements_of_others(body):
    assert "they would race" in refusal(body)


# --- harmless --------------------------------------------------------------------------------------------------------------

def own(ib, S, tx, n):
    S[tx] = S[tx] + 1.0


def halves(ib, S, tx, n):
    with ib.if_scope(tx < n // 2):
        S[tx] = S[tx + n // 2]


def outside(ib, S, tx, n):
    S[tx] = S[tx + n]


def chosen(ib, S, tx, n):
    S[tx] = te.if_then_else(tx >= n, S[n - 1 - tx], S[tx] * 2.0)


def own_decision(ib, S, tx, n):
    with ib.if_scope(S[tx] > ZERO):
        S[tx] = ZERO


def decision_of_the_other_half(ib, S, tx, n):
    with ib.if_scope(tir.all(tx < n // 2, S[tx + n // 2] > ZERO)):
        S[tx] = ZERO


def one_thread(ib, S, tx, n):
    with ib.if_scope(tx == 0):
        S[0] = S[0] + S[n - 1]


def tree(ib, S, tx, n):
    for stride in (4, 2, 1):
        with ib.if_scope(tx < stride):
            S[tx] = S[tx] + S[tx + stride]


EXPECTED = [
    (own, lambda a: a + 1), (own_decision, lambda a: np.where(a > 0, 0, a)), (chosen, lambda a: a * 2),
    (halves, lambda a: np.concatenate([a[4:], a[4:]])),
    (decision_of_the_other_half, lambda a: np.concatenate([np.where(a[4:] > 0, 0, a[:4]), a[4:]])),
    (one_thread, lambda a: np.concatenate([a[:1] + a[-1:], a[1:]])),
]


@pytest.mark.parametrize("body, expected, symbolic", [
    *[(*one, False) for one in EXPECTED], *[(*one, True) for one in EXPECTED[:3]]])
def test_harmless(body, expected, symbolic):
    a, b = run(body, symbolic=symbolic)
    np.testing.assert_array_equal(b, expected(a))


def test_a_tree_of_sums():
    a, b = run(tree)
    assert b[0] == a.sum()


@pytest.mark.parametrize("threads", [8, None])
def test_elements_that_nobody_writes(threads):
    tedsl.build(*program(outside, threads=threads))


# --- memory of the caller's ------------------------------------------------------------------------------------------------

def in_the_output(body, checked=False):
    def kernel(builder, a, b, start):
        x = start()
        b[x] = a[x]
        body(b, x, builder)

    s, args = schedule(kernel)
    return compiled(s, args, np.arange(8, dtype="float32"), checked)


def test_a_reversal_of_the_output_in_place():
    def body(b, x, builder):
        b[x] = b[7 - x]

    with pytest.raises(LoweringError, match=r"Thread 0 reads B\[7\], which thread 7 writes"):
        in_the_output(body)


@pytest.mark.parametrize("checked", [False, True])
def test_the_output_is_updated_in_place(checked):
    def body(b, x, builder):
        b[x] = b[x] + 1.0
        with builder.if_scope(b[x] > 4.0):  # true of one half only, which nobody can know
            b[x - 4] = b[x] * 10.0

    np.testing.assert_array_equal(in_the_output(body, checked), [50, 60, 70, 80, 5, 6, 7, 8])
