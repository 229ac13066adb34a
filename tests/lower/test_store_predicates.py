"""set_store_predicate: chosen threads store what all of them compute; a choice that leaves elements to nobody is refused."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes


def chain(n=16):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((n,), lambda i: B[i] + 1.0, name="C")
    return A, B, C, te.create_schedule(C.op)


def check(s, A, C, n=16):
    a, c = np.random.default_rng(0).random(n, "float32"), np.full(n, 7, "float32")
    tedsl.build(s, [A, C])(a, c)
    np.testing.assert_allclose(c, a * 2 + 1, rtol=1e-6)


def within(scope, size=None):
    """B is computed within each thread of C."""
    A, B, C, s = chain()
    thread = te.thread_axis("threadIdx.x")
    outer, inner = s[C].split(C.op.axis[0], 4)
    s[C].bind(inner, thread)
    s[B].compute_at(s[C], inner)
    s[B].set_scope(scope)
    return A, B, C, s, thread


def test_elements_that_are_those_of_one_thread():
    """12 of 16 elements of B were never stored, and C read what was in memory."""
    A, B, C, s = chain()
    thread = te.thread_axis("threadIdx.x")
    _, inner = s[B].split(B.op.axis[0], 4)
    s[B].bind(inner, thread)
    s[B].set_store_predicate(thread.var.equal(3))
    with pytest.raises(LoweringError, match=r"(?s)no thread stores the elements of threadIdx\.x = 0 \(threadIdx\.x has its "
                                            r"elements, by loop i\.inner\).*from: s\[B\]\.set_store_predicate"):
        tedsl.lower(s, [A, C])
    s[B].set_store_predicate(thread.var < 4)
    check(s, A, C)


@pytest.mark.parametrize("chosen, stored", [(0, True), (3, True), (9, False)])
def test_threads_around_a_stage_all_do_the_same(chosen, stored):
    A, B, C, s = chain()
    thread = te.thread_axis((0, 4), "threadIdx.x")
    s[B].env_threads([thread])
    s[B].set_store_predicate(thread.var.equal(chosen))
    if stored:
        check(s, A, C)
    else:
        with pytest.raises(LoweringError, match="it holds for no thread"):
            tedsl.lower(s, [A, C])


@pytest.mark.parametrize("scope, stored", [("local", False), ("shared", True), ("global", True)])
def test_memory_of_each_thread_is_stored_by_each(scope, stored):
    """In local memory the other threads read what they had not stored."""
    A, B, C, s, thread = within(scope)
    s[B].set_store_predicate(thread.var.equal(0))
    if stored:
        check(s, A, C)
    else:
        with pytest.raises(LoweringError, match=r"the elements of threadIdx\.x = 1 .* its memory, of scope 'local'"):
            tedsl.lower(s, [A, C])


def test_blocks_have_shared_memory_of_their_own():
    A, B, C, s = chain()
    block = te.thread_axis("blockIdx.x")
    outer, _ = s[C].split(C.op.axis[0], 4)
    s[C].bind(outer, block)
    s[B].compute_at(s[C], outer)
    s[B].set_scope("shared")
    s[B].set_store_predicate(block.var.equal(0))
    with pytest.raises(LoweringError, match=r"no thread stores the elements of blockIdx\.x = 1"):
        tedsl.lower(s, [A, C])


def test_a_condition_over_no_thread():
    n = te.size_var("n")
    A, B, C, s = chain(n)
    s[B].set_store_predicate(n > 100)
    with pytest.raises(LoweringError, match="is about n: that is not a thread"):
        tedsl.lower(s, [A, C])
    A, B, C, s = chain()
    s[B].set_store_predicate(te.const(1, "int32") > 2)
    with pytest.raises(LoweringError, match="is not shown to leave every element"):
        tedsl.lower(s, [A, C])


@pytest.mark.parametrize("which", ["first", "last", "all rows", "one row", "a thread beyond"])
def test_threads_of_a_reduction_in_symbolic_numbers(which):
    n = te.size_var("n")
    A = te.placeholder((n, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    x, y = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")
    _, row = s[B].split(B.op.axis[0], 4)
    s[B].bind(row, y)
    s[B].bind(k, x)
    s[B].set_store_predicate({"first": x.var.equal(0), "last": x.var.equal(7), "a thread beyond": x.var.equal(8),
                              "one row": tir.all(x.var.equal(0), y.var.equal(0)),
                              "all rows": tir.all(x.var.equal(y.var), y.var < 4)}[which])
    if which in ("one row", "a thread beyond"):
        with pytest.raises(LoweringError, match="leave every element to some thread"):
            tedsl.lower(s, [A, B])
        return
    a, b = np.random.default_rng(0).random((7, 8), "float32"), np.zeros(7, "float32")
    tedsl.build(s, [A, B])(a, b)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-5)


def test_copies_that_only_the_same_threads_read():
    """Local memory of other threads stays as it was; they do not read it."""
    A, B, C, s = chain()
    thread = te.thread_axis((0, 4), "threadIdx.x")
    s[C].env_threads([thread])
    s[B].compute_at(s[C], s[C].op.axis[0])
    s[B].set_scope("local")
    for stage in (B, C):
        s[stage].set_store_predicate(thread.var.equal(2))
    check(s, A, C)
    s[C].set_store_predicate(thread.var.equal(1))
    with pytest.raises(LoweringError, match="of scope 'local'"):
        tedsl.lower(s, [A, C])
