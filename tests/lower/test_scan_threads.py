"""Scans on threads: a kernel for each step, or threads around all steps that wait for each other."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError
from tests.passes.threads.programs import check, whole_numbers

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes


def scan(columns, step):
    """S[t, j] = S[t-1, j - step] + X[t, j], around the end of the row."""
    m = te.var("m")
    X = te.placeholder((m, columns), name="X")
    before = te.placeholder((m, columns), name="before")
    first = te.compute((1, columns), lambda _, j: X[0, j], name="first")
    update = te.compute((m, columns), lambda t, j: before[t - 1, (j + columns - step) % columns] + X[t, j], name="update")
    S = te.scan(first, update, before, inputs=[X], name="S")
    return te.create_schedule(S.op), X, S, first, update


def expected(x, step):
    rows = [x[0]]
    for row in x[1:]:
        rows.append(np.roll(rows[-1], step) + row)
    return np.array(rows)


@pytest.mark.parametrize("step", [0, 3])
def test_a_kernel_per_step(step):
    s, X, S, first, update = scan(10, step)
    for stage in (first, update):
        block, thread = s[stage].split(stage.op.axis[1], factor=4)
        s[stage].bind(block, te.thread_axis("blockIdx.x"))
        s[stage].bind(thread, te.thread_axis("threadIdx.x"))
    x = whole_numbers(5, 10)
    check(s, [X, S], [x], expected(x, step))


@pytest.mark.parametrize("step", [0, 3])
def test_threads_around_all_steps(step):
    s, X, S, first, update = scan(10, step)
    tx = te.thread_axis((0, 4), "threadIdx.x")
    s[S].env_threads([tx])
    for stage in (first, update):
        _, thread = s[stage].split(stage.op.axis[1], factor=4)
        s[stage].bind(thread, tx)
    x = whole_numbers(5, 10)
    check(s, [X, S], [x], expected(x, step))


def scan_on_threads(scope="", init_scope="", init=True, update=False, at=1):
    """A running sum whose state is made inside of a loop over threadIdx.x, and its first row, its update or both by them."""
    A, before = te.placeholder((8, 3), "int32", name="A"), te.placeholder((8, 3), "int32", name="before")
    first = te.compute((1, 3), lambda _, j: A[0, j], name="first")
    step = te.compute((8, 3), lambda t, j: before[t - 1, j] + A[t, j], name="step")
    S = te.scan(first, step, before, inputs=[A], name="S")
    B = te.compute((8, 3), lambda i, j: S[i, j] * 2, name="B")
    s = te.create_schedule(B.op)
    if at is not None:
        s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
        s[S].compute_at(s[B], B.op.axis[at])
    s[S].set_scope(scope)
    s[first].set_scope(init_scope)
    for wanted, stage in ((init, first), (update, step)):
        if wanted:
            s[stage].bind(stage.op.axis[1], te.thread_axis("threadIdx.x"))
    return s, [A, B]


@pytest.mark.parametrize("init_scope", ["", "shared", "global"])
@pytest.mark.parametrize("init", [False, True])
def test_rows_in_the_state_of_each_thread_are_not_computed_by_others(init_scope, init):
    """A scope of the first rows, which have no memory of their own, switched the check off: the states had parts of them."""
    with pytest.raises(LoweringError) as refused:
        tedsl.lower(*scan_on_threads(init_scope=init_scope, init=init, update=not init))
    text = str(refused.value)
    assert f"loop j of {'first' if init else 'step'} is bound to threadIdx.x" in text
    assert "the memory of S that it is computed into, of scope 'local'" in text and 's[S].set_scope("shared")' in text


@pytest.mark.parametrize("scope,init_scope,at", [("shared", "", 1), ("shared", "local", 1), ("warp", "", 1), ("global", "", 1),
                                                 ("", "shared", None)])
@pytest.mark.parametrize("checked", [False, True])
def test_threads_compute_the_rows_of_a_state_that_they_share(scope, init_scope, at, checked):
    """Those in shared memory were said to be in memory of each thread."""
    s, args = scan_on_threads(scope, init_scope, True, True, at=at)
    a, b = np.arange(24, dtype="int32").reshape(8, 3), np.zeros((8, 3), "int32")
    tedsl.build(s, args, checked=checked)(a, b)
    np.testing.assert_array_equal(b, a.cumsum(0) * 2)


def test_a_state_in_shared_memory_is_not_there_in_another_kernel():
    with pytest.raises(LoweringError, match=r"S is kept in shared memory(.|\n)*by the threads of first and read by S without"):
        tedsl.lower(*scan_on_threads("shared", at=None))


def test_first_rows_of_two_states_have_memory_of_their_own():
    A = te.placeholder((8, 3), "int32", name="A")
    one, two = te.placeholder((8, 3), "int32", name="one"), te.placeholder((8, 3), "int32", name="two")
    first = te.compute((1, 3), lambda _, j: A[0, j], name="first")
    sums = te.compute((8, 3), lambda t, j: one[t - 1, j] + A[t, j], name="sums")
    tops = te.compute((8, 3), lambda t, j: tir.max(two[t - 1, j], A[t, j]), name="tops")
    S, T = te.scan([first, first], [sums, tops], [one, two], inputs=[A], name="S")
    B = te.compute((8, 3), lambda i, j: S[i, j] - T[i, j], name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
    s[S].compute_at(s[B], B.op.axis[1])
    s[first].set_scope("shared")
    s[first].bind(first.op.axis[1], te.thread_axis("threadIdx.x"))
    a, b = np.random.default_rng(0).integers(-9, 9, (8, 3)).astype("int32"), np.zeros((8, 3), "int32")
    tedsl.build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b, a.cumsum(0) - np.maximum.accumulate(a))


def test_blocks_around_all_steps_are_refused_with_words_that_help():
    """The hint named s[update].compute_root(), which a stage in the steps of a scan does not have."""
    s, X, S, first, update = scan(12, 1)
    block, thread = te.thread_axis((0, 3), "blockIdx.x"), te.thread_axis((0, 4), "threadIdx.x")
    s[S].env_threads([block, thread])
    for stage in (first, update):
        outer, inner = s[stage].split(stage.op.axis[1], factor=4)
        s[stage].bind(outer, block)
        s[stage].bind(inner, thread)
    with pytest.raises(LoweringError, match=r"blocks cannot wait for each other(.|\n)*leave loop j.outer unbound, or bind it "
                                            r"to a threadIdx axis, and give s\[S\].env_threads axes of threadIdx") as error:
        tedsl.lower(s, [X, S])
    assert "compute_root" not in str(error.value)
    s, X, S, first, update = scan(12, 1)  # as it says
    block = te.thread_axis((0, 3), "threadIdx.y")
    s[S].env_threads([block, thread])
    for stage in (first, update):
        outer, inner = s[stage].split(stage.op.axis[1], factor=4)
        s[stage].bind(outer, block)
        s[stage].bind(inner, thread)
    x = whole_numbers(5, 12)
    check(s, [X, S], [x], expected(x, 1))
