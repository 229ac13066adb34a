"""Memory of one thread that decides the way of all: a barrier fits in where all of them fill it alike, and nowhere else."""

import numpy as np
import pytest

import tedsl
from tedsl import tir
from tedsl.errors import LoweringError
from tedsl.ir.evaluate import run
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.insert_barriers import insert_barriers
from tests.passes.threads.kernels import COUNT, compiled, computes, schedule
from tests.passes.threads.test_decided_by_data import SYNC


def kernel(fill, again=None, decide="while"):
    """fill(builder, n, x, a); then rounds with a barrier while n[0] > 0, again(...) after each; b = the sum of a, or S."""
    def body(builder, a, b, start):
        x = start().var
        S = builder.allocate("float32", COUNT, name="S", scope="shared")
        n = builder.allocate("int32", 2, name="n", scope="local")
        S[x] = a[x]
        n[0] = 4
        fill(builder, n, x, a)
        builder.emit(SYNC)

        def turn():
            with builder.if_scope(x < n[0]):
                S[x] = S[x] + S[x + n[0]]
            builder.emit(SYNC)
            n[0] = n[0] // 2
            if again is not None:
                again(builder, n, x, a)

        if decide == "while":
            with builder.while_loop(n[0] > 0):
                turn()
        elif decide == "if":
            with builder.for_range(0, 4, name="k"), builder.if_scope(n[0] > 0):
                turn()
        else:
            with builder.for_range(0, n[0] - 1, name="k"):
                turn()
        b[x] = S[0]

    return body


def nothing(builder, n, x, a):
    pass


@pytest.mark.parametrize("decide", ["while", "if", "for"])
def test_a_sum_as_a_tree_whose_step_is_counted_in_memory(decide):
    computes(kernel(nothing, decide=decide), [sum(range(8))] * 8)


def through_other_memory(builder, n, x, a):
    other = builder.allocate("int32", 1, name="other", scope="local")
    other[0] = 4
    n[0] = other[0]


def in_a_loop_of_all(builder, n, x, a):
    n[0] = 0
    with builder.for_range(0, 4, name="i"):
        n[0] = n[0] + 1


def from_data_of_all(builder, n, x, a):
    with builder.if_scope(a[1] > 0.5):
        n[0] = a[4].astype("int32")


@pytest.mark.parametrize("fill", [through_other_memory, in_a_loop_of_all, from_data_of_all])
def test_what_all_threads_fill_alike(fill):
    computes(kernel(fill), [sum(range(8))] * 8)


def by_thread(builder, n, x, a):
    n[0] = x


def by_data_of_each(builder, n, x, a):
    n[0] = a[x].astype("int32")


def under_a_condition(builder, n, x, a):
    with builder.if_scope(x < 4):
        n[0] = 2


def on_one_side(builder, n, x, a):
    with builder.if_scope(a[x] > 3.5):
        builder.emit(tir.Evaluate(0))
    with builder.else_scope():
        n[0] = 2


def in_a_loop_of_some(builder, n, x, a):
    with builder.for_range(0, x, name="i"):
        n[0] = 2


def in_a_while_of_some(builder, n, x, a):
    count = builder.allocate("int32", 1, name="count", scope="local")
    count[0] = x
    with builder.while_loop(count[0] > 0):
        count[0] = count[0] - 1
        n[0] = 2


def at_different_places(builder, n, x, a):
    n[tir.floormod(x, 2)] = 2


def through_memory_that_differs(builder, n, x, a):
    other = builder.allocate("int32", 1, name="other", scope="local")
    other[0] = x
    n[0] = other[0]


def a_turn_later(builder, n, x, a):
    first = builder.allocate("int32", 1, name="first", scope="local")
    second = builder.allocate("int32", 1, name="second", scope="local")
    first[0] = 4
    second[0] = 4
    with builder.for_range(0, 3, name="i"):
        n[0] = first[0]
        first[0] = second[0]
        second[0] = x


def through_a_let(builder, n, x, a):
    n[0] = builder.let("v", x // 2)


def never_filled(builder, n, x, a):
    other = builder.allocate("int32", 1, name="other", scope="local")
    n[0] = other[0]


def by_a_call(builder, n, x, a):
    other = builder.allocate("int32", 1, name="other", scope="local")
    other[0] = 4
    builder.emit(tir.call_extern("int32", "fills", other.asobject()))
    n[0] = other[0]


def at_an_address(builder, n, x, a):
    other = builder.allocate("int32", 1, name="other", scope="local")
    other[0] = 4
    builder.emit(tir.call_extern("int32", "fills", tir.call_intrin("handle", "tir.address_of", other[0])))
    n[0] = other[0]


def through_a_row(builder, n, x, a):
    other = builder.allocate("int32", COUNT, name="other", scope="warp")
    other[x] = x
    n[0] = other[x]


DIFFERENT = [by_thread, by_data_of_each, under_a_condition, on_one_side, in_a_loop_of_some, in_a_while_of_some,
             at_different_places, through_memory_that_differs, a_turn_later, through_a_let, never_filled, by_a_call,
             at_an_address, through_a_row]


@pytest.mark.parametrize("fill", DIFFERENT)
@pytest.mark.parametrize("decide", ["while", "if", "for"])
def test_what_differs_among_the_threads_is_refused(fill, decide):
    for checked in (False, True):
        with pytest.raises(LoweringError, match=r"which differs among the threads of a block|some would wait forever"):
            tedsl.build(*schedule(kernel(fill, decide=decide)), checked=checked)


@pytest.mark.parametrize("again", [by_thread, under_a_condition, through_memory_that_differs])
def test_what_comes_to_differ_in_the_loop_is_refused(again):
    with pytest.raises(LoweringError, match="which differs among the threads of a block"):
        tedsl.build(*schedule(kernel(nothing, again)))


def test_what_is_read_from_shared_memory_is_read_after_it_is_written():
    """All threads read S[0] into their own n, which one thread wrote: a barrier comes in between."""
    def body(builder, a, b, start):
        x = start().var
        S = builder.allocate("int32", COUNT, name="S", scope="shared")
        n = builder.allocate("int32", 1, name="n", scope="local")
        S[x] = 0
        with builder.if_scope(x.equal(7)):
            S[0] = 3
        n[0] = S[0]
        b[x] = 0.0
        with builder.while_loop(n[0] > 0):
            S[x] = n[0]
            builder.emit(SYNC)
            b[x] = b[x] + S[7 - x].astype("float32")
            builder.emit(SYNC)
            n[0] = n[0] - 1

    s, args = schedule(body)
    a = np.zeros(COUNT, "float32")
    for checked in (False, True):
        np.testing.assert_array_equal(compiled(s, args, a, checked), [6] * COUNT, err_msg=f"checked={checked}")
    func = insert_barriers(gather_threads(tedsl.lower(s, args)["main"]))
    for backwards in (False, True):
        b = np.zeros(COUNT, "float32")
        run(func, [a, b], reverse_parallel=backwards)
        np.testing.assert_array_equal(b, [6] * COUNT, err_msg=f"interpreter, backwards={backwards}")
