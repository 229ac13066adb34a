"""The sides of a branch on threads, and memory of a warp: who reads there what another thread writes, at the same time."""

import numpy as np
import pytest

import tedsl
from tedsl import tir
from tedsl.errors import LoweringError
from tests.passes.threads.kernels import COUNT, computes, schedule


def memory(builder, scope="shared", size=COUNT):
    return builder.allocate("float32", size, name="S", scope=scope)


def refusal(body, checked, **kind):
    with pytest.raises(LoweringError, match="they would race") as caught:
        tedsl.build(*schedule(body, **kind), checked=checked)
    return str(caught.value)


# --- sides of a branch -----------------------------------------------------------------------------------------------------

def then_writes(builder, a, b, start):
    x = start()
    S = memory(builder)
    S[x] = a[x]
    with builder.if_scope(x < 4):
        S[x] = 10.0
    with builder.else_scope():
        b[x] = S[x - 4]
    with builder.if_scope(x < 4):
        b[x] = S[x]


def else_writes(builder, a, b, start):
    x = start()
    S = memory(builder)
    S[x] = a[x]
    with builder.if_scope(x < 4):
        b[x] = S[x + 4]
    with builder.else_scope():
        b[x] = 0.0
        with builder.for_range(0, 1, name="k") as k:
            S[x + k] = 10.0


def in_loops(builder, a, b, start):
    x = start()
    S = memory(builder, size=32)
    with builder.for_range(0, 4, name="k") as k:
        S[x * 4 + k] = a[x]
    with builder.if_scope(x < 4), builder.for_range(0, 4, name="i") as i:
        S[x * 4 + i] = 10.0
    with builder.else_scope(), builder.for_range(0, 4, name="j") as j:
        b[x] = S[(x - 4) * 4 + 3 - j]


def divided_at_a_barrier(builder, a, b, start):
    x = start()
    S = memory(builder)
    S[x] = a[x]
    with builder.if_scope(x < 4):
        b[x] = S[3 - x]
        S[x] = 10.0
    with builder.else_scope():
        b[x] = S[x - 4]


@pytest.mark.parametrize("body", [then_writes, else_writes, in_loops, divided_at_a_barrier])
@pytest.mark.parametrize("checked", [False, True])
def test_a_side_reads_what_the_other_writes(body, checked):
    words = refusal(body, checked)
    assert "read S[" in words and "on the two sides of one branch" in words and "make it two branches" in words
    if body is then_writes:
        assert "Thread 4 reads S[0], which thread 0 writes" in words


def one_after_the_other(builder, a, b, start):
    x = start()
    S = memory(builder)
    S[x] = a[x]
    with builder.if_scope(x < 4):
        S[x] = 10.0
    with builder.if_scope(tir.Not(x < 4)):
        b[x] = S[x - 4]
    with builder.if_scope(x < 4):
        b[x] = S[x]


def own_halves(builder, a, b, start):
    x = start()
    S = memory(builder)
    S[x] = a[x]
    with builder.if_scope(x < 4):
        S[x] = S[x] + 10.0
    with builder.else_scope():
        S[x] = S[x] * 2.0
    b[x] = S[x]


def same_for_all(builder, a, b, start):
    """All threads take one side: what the other one does is of no concern."""
    x = start()
    S = memory(builder)
    S[x] = a[x]
    with builder.for_range(0, 2, name="k") as k:
        with builder.if_scope(k.equal(0)):
            S[x] = a[x] + 10.0
        with builder.else_scope():
            b[x] = S[7 - x]


def on_data(builder, a, b, start):
    """The same: a[0] is one value for all threads."""
    x = start()
    S = memory(builder)
    S[x] = a[x]
    with builder.if_scope(a[0] > 0.0):
        S[x] = 10.0
    with builder.else_scope():
        b[x] = S[7 - x]


BACK = list(range(7, -1, -1))


@pytest.mark.parametrize("body, expected", [
    (one_after_the_other, [10] * 8), (own_halves, [10, 11, 12, 13, 8, 10, 12, 14]),
    (same_for_all, [17 - k for k in range(8)]), (on_data, BACK)])
def test_sides_that_keep_apart(body, expected):
    computes(body, expected)


# --- warps -----------------------------------------------------------------------------------------------------------------

def reversed_in_place(builder, a, b, start):
    x = start()
    S = memory(builder, "warp")
    S[x] = a[x]
    S[x] = S[7 - x]
    b[x] = S[x]


def reversed_after_waiting(builder, a, b, start):
    x = start()
    S = memory(builder, "warp")
    S[x] = a[x]
    own = builder.allocate("float32", 1, name="own", scope="local")
    own[0] = S[7 - x]
    S[x] = own[0]
    b[x] = S[x]


def rows(builder, a, b, start):
    """Each row of threads has memory of its own: row y writes element y, and reads what the other row writes to its own."""
    y, x = start()
    S = memory(builder, "warp", 4)
    S[x] = a[y * 4 + x]
    with builder.if_scope(x.equal(0)):
        S[y] = S[1 - y] + 100.0
    b[y * 4 + x] = S[y]


@pytest.mark.parametrize("checked", [False, True])
def test_a_warp_reads_what_it_writes(checked):
    assert "Thread 0 reads S[7], which thread 7 writes" in refusal(reversed_in_place, checked)


def test_a_warp_waits():
    computes(reversed_after_waiting, BACK)


def test_rows_of_threads_are_no_warp():
    computes(rows, np.repeat([101, 104], 4), launch={"threadIdx.y": 2, "threadIdx.x": 4})


@pytest.mark.parametrize("checked", [False, True])
def test_the_same_in_memory_of_the_block_races(checked):
    def body(builder, a, b, start):
        y, x = start()
        S = memory(builder)
        S[y * 4 + x] = a[y * 4 + x]
        with builder.if_scope(x.equal(0)):
            S[y] = S[1 - y]
        b[y * 4 + x] = S[y]

    assert "in one statement" in refusal(body, checked, launch={"threadIdx.y": 2, "threadIdx.x": 4})
