"""What hints say about memory that is the caller's can be done, whatever an output is made by."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ScheduleError

A = te.placeholder((8, 4), name="A")


@te.hybrid.script
def plus(a):
    b = output_tensor((8, 4), "float32")  # noqa: F821
    for i in range(8):
        for j in range(4):
            for k in range(2):
                b[i, j] = a[i, j] + k
    return b


def by_script():
    return plus(A)


def by_statements():
    return te.extern((8, 4), [A], lambda ins, outs: tir.call_packed("f", ins[0], outs[0]), name="E")


def by_scan():
    state = te.placeholder((8, 4), name="state")
    first = te.compute((1, 4), lambda t, i: A[t, i], name="first")
    row = te.compute((8, 4), lambda t, i: state[t - 1, i] + A[t, i], name="row")
    return te.scan(first, row, state, name="R")


def hint_of(directive):
    with pytest.raises(ScheduleError) as caught:
        directive()
    return str(caught.value).split("hint: ")[1]


MADE = [by_script, by_statements, by_scan]


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("directive", [lambda stage: stage.set_scope("local"), lambda stage: stage.double_buffer()])
def test_an_output_that_is_no_formula_is_copied_by_one(made, directive):
    """The hint was cache_write, which refuses what is no formula."""
    T = made()
    hint = hint_of(lambda: directive(te.create_schedule(T.op)[T]))
    assert hint.startswith(f"put a te.compute that copies {T.name} in its place") and "cache_write" not in hint
    C = te.compute((8, 4), lambda i, j: T[i, j], name="C")
    directive(te.create_schedule(C.op)[T])


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("scope", ["local", "global:tag"])
def test_an_output_that_is_a_formula_is_written_through_a_cache(outputs, scope):
    """All outputs of an operation move together, and the stage copies them."""
    C = te.compute((8, 4), lambda i, j: (A[i, j], A[i, j] + 1.0) if outputs == 2 else A[i, j], name="C")
    results = [C] if outputs == 1 else list(C)
    s = te.create_schedule(results[0].op)
    stage = s[results[0]]
    assert stage.set_scope(scope) is stage and stage.scope == ""
    cache, copy = s.stages[-2:]
    assert cache.scope == scope and cache.op.name == f"C.{scope}" and copy.op.name == "C"
    stage.split(results[0].op.axis[0], 3)
    assert f"storage_scope = {scope}" in str(tedsl.lower(s, [A, *results]))
    a = np.arange(32, dtype="float32").reshape(8, 4)
    made = [np.zeros_like(a) for _ in results]
    tedsl.build(s, [A, *results])(a, *made)
    for k, got in enumerate(made):
        np.testing.assert_array_equal(got, a + k)
    again = te.create_schedule(results[0].op)
    again.replay(s.journal)
    assert str(tedsl.lower(again, [A, *results])) == str(tedsl.lower(s, [A, *results]))


def test_an_output_whose_loops_are_annotated_stays_where_it_is():
    C = te.compute((8, 4), lambda i, j: A[i, j] * 2, name="C")
    s = te.create_schedule(C.op)
    s[C].parallel(C.op.axis[0])
    before = str(s)
    with pytest.raises(ScheduleError, match="cache_write first"):
        s[C].set_scope("local")
    assert str(s) == before and s[C].set_scope("global").scope == "global"


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("is_output", [True, False])
def test_what_computes_all_of_its_output_does_not_roll(made, is_output):
    T = made()
    C = te.compute((8, 4), lambda i, j: T[i, j], name="C")
    s = te.create_schedule((T if is_output else C).op)
    assert hint_of(s[T].rolling_buffer).startswith(f"leave that out; a copy that others read can roll at a loop: "
                                                   f"s.cache_read({T.name}")
    if not is_output:
        copy = s.cache_read(T, "global", [C])
        s[copy].compute_at(s[C], C.op.axis[0])
        s[copy].rolling_buffer()


@pytest.mark.parametrize("is_output", [True, False])
def test_what_is_never_aligned(is_output):
    E, R = by_statements(), by_scan()
    C = te.compute((8, 4), lambda i, j: E[i, j] + R[i, j], name="C")
    s = te.create_schedule([E.op, R.op] if is_output else C.op)
    assert hint_of(lambda: s[E].storage_align(None, 8, 0)).startswith("leave that out; a copy that others read can be aligned")
    assert 's.cache_write(row, "local") computes rows' in hint_of(lambda: s[R].storage_align(R.op.spatial_axis_[0], 8, 0))
    for tensor in (s.cache_read(E, "global", [C]), s.cache_write(R.op.update[0], "local")) if not is_output else ():
        s[tensor].storage_align(s[tensor].op.axis[0], 8, 0)


def test_loops_of_a_script_beyond_its_dimensions_have_no_stride():
    T = by_script()
    s = te.create_schedule(te.compute((8, 4), lambda i, j: T[i, j], name="C").op)
    s[T].storage_align(T.op.axis[1], 8, 0)
    assert "the first loops stand for the dimensions" in hint_of(lambda: s[T].storage_align(T.op.axis[2], 8, 0))
