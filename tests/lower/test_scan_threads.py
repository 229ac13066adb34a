"""Scans on threads: a kernel for each step, or threads around all steps that wait for each other."""

import numpy as np
import pytest

from tedsl import te
from tests.passes.threads.programs import check, whole_numbers


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
