"""A schedule goes to another process by pickle, and into a copy by copy.deepcopy: it is lowered to the same loops there."""

import copy
import pickle

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ScheduleError
from tests.one_stage import doubled


def plain():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2, name="B")
    C = te.compute((8,), lambda i: B[i] + 1, name="C")
    return te.create_schedule(C.op), A, B, C


def attached():
    s, A, B, C = plain()
    outer, inner = s[C].split(C.op.axis[0], 4)
    s[B].compute_at(s[C], outer)
    s[B].double_buffer()
    s[C].vectorize(inner)
    return s, A, B, C


def layout():
    s, A, B, C = plain()
    s[B].transform_layout(lambda i: [i // 4, i % 4])
    s.cache_read(A, "local", [B])
    s[C].parallel(C.op.axis[0])
    return s, A, B, C


def threads():
    s, A, B, C = plain()
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[B].set_scope("shared")
    s[B].compute_at(s[C], C.op.axis[0])
    return s, A, B, C


def scan():
    A = te.placeholder((8,), name="A")
    state = te.placeholder((8,), name="state")
    B = te.compute((8,), lambda t: state[t - 1] * 0 + A[t] * 2, name="B")
    rows = te.scan(te.compute((1,), lambda _: A[0] * 2, name="init"), B, state, name="rows")
    C = te.compute((8,), lambda t: rows[t] + 1, name="C")
    return te.create_schedule(C.op), A, B, C


@pytest.mark.parametrize("program", [plain, attached, layout, threads, scan])
@pytest.mark.parametrize("copied", [lambda t: pickle.loads(pickle.dumps(t)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_the_same_loops_and_values(program, copied):
    s, A, B, C = program()
    t, A2, _, C2 = copied((s, A, B, C))
    assert str(tedsl.lower(t, [A2, C2], simple_mode=True)) == str(tedsl.lower(s, [A, C], simple_mode=True))
    assert t.explain() == s.explain()
    result = np.zeros(8, "float32")
    tedsl.build(t, [A2, C2])(np.arange(8, dtype="float32"), result)
    np.testing.assert_array_equal(result, np.arange(8) * 2 + 1)


def test_errors_of_schedules_travel_between_processes():
    s, _, c = doubled()
    with pytest.raises(ScheduleError) as caught:
        s[c].split(c.op.axis[0], factor=0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.loops) == (ScheduleError, str(caught.value), caught.value.loops)
    assert str(copy.deepcopy(caught.value)) == str(caught.value)
