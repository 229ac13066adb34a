"""bind, env_threads and set_store_predicate: what they record and what they refuse."""

import pytest

import tedsl
from tedsl import te
from tedsl.errors import ScheduleError


@pytest.fixture
def sums():
    A = te.placeholder((16, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((16,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return te.create_schedule(B.op), A, B, k


def refuses(stage, call, match):
    before = str(stage.schedule), list(stage.leaf_iter_vars), stage.store_predicate
    with pytest.raises(ScheduleError, match=match):
        call()
    assert before == (str(stage.schedule), list(stage.leaf_iter_vars), stage.store_predicate)


@pytest.mark.parametrize("tag", ["vthread", "cthread"])
def test_a_reduction_loop_is_combined_across_the_threads_of_a_block_only(sums, tag):
    s, _, B, k = sums
    refuses(s[B], lambda: s[B].bind(k, te.thread_axis(tag)), f"k is a reduction loop(.|\n)*{tag} would race(.|\n)*threadIdx.x")
    s[B].bind(k, te.thread_axis("threadIdx.x"))


def test_there_are_blocks_threads_and_virtual_threads(sums):
    s, _, B, _ = sums
    refuses(s[B], lambda: s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.w")), "no threads 'threadIdx.w'(.|\n)*threadIdx.x")


def test_two_loops_of_a_stage_are_not_bound_to_one_tag(sums):
    s, _, B, _ = sums
    outer, inner = s[B].split(B.op.axis[0], 4)
    s[B].bind(outer, te.thread_axis("threadIdx.x"))
    refuses(s[B], lambda: s[B].bind(inner, te.thread_axis("threadIdx.x")), "i.outer is already bound to threadIdx.x")


def test_env_threads_are_the_outermost_loops(sums):
    s, _, B, k = sums
    tx, ty = te.thread_axis((0, 4), "threadIdx.x"), te.thread_axis((0, 2), "threadIdx.y")
    s[B].env_threads([ty, tx])
    assert s[B].leaf_iter_vars[:2] == [ty, tx] and s[B].leaf_iter_vars[2:] == [B.op.axis[0], k]
    refuses(s[B], lambda: s[B].env_threads([te.thread_axis((0, 2), "threadIdx.z")]), "around it already")
    refuses(s[B], lambda: s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x")), "threadIdx.x is already bound")
    refuses(s[B], lambda: s[B].split(tx, 2), "threadIdx.x is already bound to threadIdx.x")


@pytest.mark.parametrize("threads, match", [
    ([], "no thread axis is given"), (["threadIdx.x"], "threads are thread axes"),
    ([te.thread_axis("threadIdx.x")], "threadIdx.x has no range"),
    ([te.thread_axis((0, 2), "threadIdx.x"), te.thread_axis((0, 2), "threadIdx.x")], "launched once")])
def test_env_threads_are_axes_with_ranges(sums, threads, match):
    s, _, B, _ = sums
    refuses(s[B], lambda: s[B].env_threads(threads), match)


def test_the_store_predicate_is_a_condition(sums):
    s, A, B, _ = sums
    tx = te.thread_axis("threadIdx.x")
    for wrong in (3, "threadIdx.x", tx, tx.var + 1):
        refuses(s[B], lambda wrong=wrong: s[B].set_store_predicate(wrong), "the predicate is a condition")
    refuses(s[A], lambda: s[A].set_store_predicate(tx.var.equal(0)), "placeholder")
    refuses(s[B], lambda: s[B].set_store_predicate(B.op.axis[0] < 2), "i is a loop of B and no thread")
    s[B].set_store_predicate(tx.var == 0)
    assert repr(s[B].store_predicate) == "(threadIdx.x == 0)"


@pytest.mark.parametrize("first, second", [("unroll", "bind"), ("bind", "unroll")])
def test_a_bound_loop_that_is_unrolled_is_bound(sums, first, second):
    s, A, B, _ = sums
    (i,) = B.op.axis
    does = {"unroll": lambda: s[B].unroll(i), "bind": lambda: s[B].bind(i, te.thread_axis("threadIdx.x"))}
    does[first](), does[second]()
    text = str(tedsl.lower(s, [A, B], simple_mode=True))
    assert '"thread_extent" = 16' in text and "unroll" not in text
    with pytest.warns(UserWarning, match="i is bound to threadIdx.x and stays so"):
        s[B].parallel(i)
    assert str(tedsl.lower(s, [A, B], simple_mode=True)) == text
