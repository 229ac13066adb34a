"""Assertions on what a thread accesses stood around the barriers of the kernel, and made legal kernels refused."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentError, LoweringError
from tests.passes.threads.kernels import COUNT, compiled, computes, schedule

N = te.size_var("n")


def shared(builder, size=COUNT):
    return builder.allocate("float32", size, name="S", scope="shared")


def first_reads(builder, a, b, start):
    x = start()
    S = shared(builder, 1)
    with builder.if_scope(x.equal(0)):
        S[0] = a[3]
    b[x] = S[0]


def first_doubles(builder, a, b, start):
    x = start()
    S = shared(builder, 1)
    with builder.if_scope(x.equal(0)):
        S[0] = a[3]
    b[x] = S[0]
    with builder.if_scope(x.equal(0)):
        S[0] = b[x] * 2.0
    b[x] = S[0]


def under_a_condition(builder, a, b, start):
    x = start()
    S = shared(builder)
    with builder.if_scope(x < 6):
        with builder.if_scope(x < 4):
            S[x] = a[x + 3]
        with builder.else_scope():
            S[x] = a[x]
        b[x] = S[5 - x]
    with builder.else_scope():
        b[x] = a[x]


def loaded_place(builder, a, b, start):
    x = start()
    S = shared(builder)
    at = builder.let("at", a[x].astype("int32"))
    S[at] = a[x]
    b[x] = S[7 - x]


def part_of_a_row(builder, a, b, start):
    x = start()
    S = shared(builder)
    with builder.for_range(0, x + 1, name="k") as k:
        S[k] = a[k]
    b[x] = S[7 - x]


@pytest.mark.parametrize("size", [COUNT, N])
@pytest.mark.parametrize("body, expected", [
    (first_reads, [3] * 8), (first_doubles, [6] * 8), (under_a_condition, [5, 4, 6, 5, 4, 3, 6, 7]),
    (loaded_place, range(7, -1, -1)), (part_of_a_row, range(7, -1, -1))])
def test_threads_wait_for_each_other_behind_an_assertion(body, expected, size):
    computes(body, list(expected), size)


@pytest.mark.parametrize("size", [3, 4])
def test_the_assertion_still_holds(size):
    """With three elements, thread 0 reads what is not there."""
    def body(builder, a, b, start):
        x = start()
        S = shared(builder, 1)
        with builder.if_scope(x.equal(0)):
            S[0] = a[3]
        with builder.if_scope(x < 3):
            b[x] = S[0]

    s, args = schedule(body, N)
    a = np.arange(size, dtype="float32")
    if size == 4:
        np.testing.assert_array_equal(compiled(s, args, a, False), [3, 3, 3, 77])
        return
    with pytest.raises(ArgumentError, match=r"the read of A\[3\] leaves its memory"):
        compiled(s, args, a, False)


@pytest.mark.parametrize("checked", [False, True])
def test_nobody_is_blamed_for_a_barrier_that_was_inserted(checked):
    def body(builder, a, b, start):
        x = start()
        S = shared(builder)
        with builder.for_range(0, x + 1, name="k") as k:
            S[x] = a[k]
            b[x] = S[7 - x]

    with pytest.raises(LoweringError, match=r"threads must wait for each other here.* stands under the loop k") as refused:
        tedsl.build(*schedule(body), checked=checked)
    assert "tvm_storage_sync" not in str(refused.value).split("\n")[0]


@pytest.mark.parametrize("size", [COUNT, 5])
def test_iterations_that_share_elements_still_wait(size):
    """Only an element that one iteration alone touches needs no barrier before the next one."""
    def body(builder, a, b, start):
        x = start()
        S = shared(builder)
        with builder.for_range(0, size, name="k") as k:
            with builder.if_scope(x.equal(k)):
                S[k // 2] = a[k]
            b[k] = S[k // 2]

    computes(body, list(range(size)))
