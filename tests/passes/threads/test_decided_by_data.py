"""Threads under a condition on data cannot wait for each other: they need not where each keeps to elements of its own."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError
from tests.passes.threads.kernels import COUNT, computes, schedule

SYNC = tir.call_intrin("int32", "tir.tvm_storage_sync", "shared")


def xor(x, bits):
    return tir.call_intrin("int32", "tir.bitwise_xor", x, bits)


def on_shared(update, size=COUNT):
    """S = a; update(builder, S, x, a); b = S"""
    def body(builder, a, b, start):
        x = start().var
        S = builder.allocate("float32", size, name="S", scope="shared")
        S[x] = a[x]
        builder.emit(SYNC)
        update(builder, S, x, a)
        builder.emit(SYNC)
        b[x] = S[x]

    return body


def refusal(update, checked, words, **kind):
    with pytest.raises(LoweringError, match=words) as caught:
        tedsl.build(*schedule(on_shared(update), **kind), checked=checked)
    return str(caught.value)


def every_way(update, words, **kind):
    for checked in (False, True):
        refusal(update, checked, words, **kind)


# --- conditions of several parts -------------------------------------------------------------------------------------------

def larger_of_halves(builder, S, x, a):
    with builder.if_scope(tir.all(x < 4, S[x] < S[x + 4])):
        S[x] = S[x + 4]


def smaller_or_not_of_halves(builder, S, x, a):
    with builder.if_scope(tir.any(x >= 4, S[x] > S[x + 4])):
        builder.emit(tir.Evaluate(0))
    with builder.else_scope():
        S[x] = S[x + 4]


@pytest.mark.parametrize("update", [larger_of_halves, smaller_or_not_of_halves])
def test_the_part_of_a_condition_that_is_known_tells_threads_apart(update):
    computes(on_shared(update), [4, 5, 6, 7, 4, 5, 6, 7])


def test_a_maximum_as_a_tree():
    def update(builder, S, x, a):
        for apart in (4, 2, 1):
            builder.emit(SYNC)
            with builder.if_scope(tir.all(x < apart, S[x] < S[x + apart])):
                S[x] = S[x + apart]

    computes(on_shared(update), [7, 7, 6, 7, 4, 5, 6, 7])


def overlapping(builder, S, x, a):
    with builder.if_scope(tir.all(x < 5, S[x] < S[x + 3])):
        S[x] = S[x + 3]


def one_of_two_parts(builder, S, x, a):
    with builder.if_scope(tir.any(tir.all(x < 7, a[x] > 0.5), a[x] > 3.5)):
        S[x] = S[tir.floormod(x + 4, 8)]


def wrong_side(builder, S, x, a):
    with builder.if_scope(tir.all(x < 4, a[x] > 0.5)):
        builder.emit(tir.Evaluate(0))
    with builder.else_scope():
        S[x] = S[tir.floormod(x + 4, 8)]


@pytest.mark.parametrize("update", [overlapping, one_of_two_parts, wrong_side])
def test_a_part_that_does_not_tell_them_apart_is_a_race(update):
    every_way(update, "they would race")


# --- several statements ----------------------------------------------------------------------------------------------------

def from_the_other_half(builder, S, x, a):
    with builder.if_scope(x < 4), builder.if_scope(a[x] > 1.5):
        S[x] = S[x + 4]


def test_an_update_from_elements_that_nobody_changes():
    computes(on_shared(from_the_other_half), [0, 1, 6, 7, 4, 5, 6, 7])


def test_both_sides_of_a_branch_on_data():
    def body(builder, a, b, start):
        x = start().var
        S = builder.allocate("float32", 2 * COUNT, name="S", scope="shared")
        S[x] = a[x]
        with builder.if_scope(a[x] > 2.5):
            S[x + 8] = S[7 - x]
        with builder.else_scope():
            S[x + 8] = 9.0
        b[x] = S[x + 8]

    computes(body, [9, 9, 9, 4, 3, 2, 1, 0])


def swap_under(condition, other):
    def update(builder, S, x, a):
        kept = builder.allocate("float32", 1, name="kept", scope="local")
        p = other(x)
        with builder.if_scope(condition(x, p)), builder.if_scope(S[x] < S[p]):
            kept[0] = S[x]
            S[x] = S[p]
            S[p] = kept[0]

    return update


def in_pairs(x):
    return xor(x, 1)


def in_halves(x):
    return x + 4


@pytest.mark.parametrize("update, expected", [
    (swap_under(lambda x, p: p > x, in_pairs), [1, 0, 3, 2, 5, 4, 7, 6]),
    (swap_under(lambda x, p: x < 4, in_halves), [4, 5, 6, 7, 0, 1, 2, 3])])
def test_elements_change_places_in_pairs(update, expected):
    computes(on_shared(update), expected)


@pytest.mark.parametrize("update", [
    swap_under(lambda x, p: x < 7, lambda x: x + 1),  # a chain, no pairs
    swap_under(lambda x, p: x < 5, lambda x: x + 3),
    swap_under(lambda x, p: p != x, in_pairs),  # both threads of a pair
    swap_under(lambda x, p: x < 4, lambda x: tir.max(7 - x, 6))])  # two threads with one partner
def test_elements_of_two_threads_change_places(update):
    every_way(update, "they would race|some would wait forever")


def in_two_statements(builder, S, x, a):
    kept = builder.allocate("float32", 1, name="kept", scope="local")
    with builder.if_scope(a[x] > 1.5):
        kept[0] = S[7 - x]
        S[x] = kept[0]


def written_before_it_is_read(builder, S, x, a):
    T = builder.allocate("float32", COUNT, name="T", scope="shared")
    with builder.if_scope(a[x] > -1.0):
        T[x] = a[x]
        S[x] = T[7 - x]


def looked_up(builder, S, x, a):
    kept = builder.allocate("float32", 1, name="kept", scope="local")
    with builder.if_scope(x < 4), builder.if_scope(a[x] > 1.5):
        kept[0] = S[a[x].astype("int32")]
        S[x + 4] = kept[0]


def in_the_next_iteration(builder, S, x, a):
    kept = builder.allocate("float32", 1, name="kept", scope="local")
    with builder.if_scope(a[x] > 1.5), builder.for_range(0, 2, name="k") as k:
        kept[0] = S[x]  # what the thread before wrote, one iteration ago
        with builder.if_scope(x + k < 8):
            S[x + k] = kept[0]


def only_in_the_next_iteration(builder, S, x, a):
    T = builder.allocate("float32", 2 * COUNT, name="T", scope="shared")
    kept = builder.allocate("float32", 1, name="kept", scope="local")
    T[x] = a[x]
    T[x + 8] = a[x]
    builder.emit(SYNC)
    with builder.if_scope(a[x] > 1.5), builder.for_range(0, 2, name="k") as k:
        kept[0] = T[x + 8 * k]  # the half that is written in the other iteration, by another thread
        T[15 - x - 8 * k] = kept[0]


def two_threads_write_one_element(builder, S, x, a):
    T = builder.allocate("float32", 2 * COUNT, name="T", scope="shared")
    with builder.if_scope(a[x] > -1.0):
        T[x] = a[x]
        T[8 + tir.max(x, 1)] = a[x]


@pytest.mark.parametrize("update", [
    two_threads_write_one_element, in_two_statements, written_before_it_is_read, looked_up, in_the_next_iteration,
    only_in_the_next_iteration])
def test_threads_that_must_wait_under_a_condition_on_data_are_refused(update):
    every_way(update, "some would wait forever|one uses what another stores")


def test_iterations_that_keep_to_elements_of_the_thread():
    def update(builder, S, x, a):
        with builder.if_scope(x < 4), builder.if_scope(a[x] > 0.5), builder.for_range(0, 2, name="k") as k:
            S[xor(2 * x, k)] = a[x]
            S[xor(2 * x, 1 - k)] = S[xor(2 * x, k)] + 1.0

    computes(on_shared(update), [0, 1, 1 + 1, 1, 2 + 1, 2, 3 + 1, 3])


@pytest.mark.parametrize("blocks, accepted", [(1, True), (2, False)])
def test_all_blocks_are_looked_at(blocks, accepted):
    """In block 1, thread x reads the element of thread x + 1."""
    def body(builder, a, b, start):
        block, x = start()
        S = builder.allocate("float32", 32, name="S", scope="shared")
        S[x.var] = a[x.var]
        with builder.if_scope(a[x.var] > -1.0):
            S[xor(x.var, 0) + 8] = 1.0
            b[8 * block.var + x.var] = S[x.var + 16 - 7 * block.var] if blocks == 2 else S[xor(x.var, 0) + 8]

    launch = {"blockIdx.x": blocks, "threadIdx.x": COUNT}
    if accepted:
        computes(body, [1] * 8, launch=launch)
    else:
        with pytest.raises(LoweringError, match="some would wait forever"):
            tedsl.build(*schedule(body, 16, launch))


def test_a_number_of_threads_that_a_call_decides_is_not_looked_at():
    n = te.var("n")
    A = te.placeholder((64,), name="A")

    def written(ins, outs):
        builder = tir.ir_builder.create()
        a, b = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        axis = te.thread_axis("threadIdx.x")
        builder.scope_attr(axis, "thread_extent", n)
        x = axis.var
        S = builder.allocate("float32", 64, name="S", scope="shared")
        S[x] = a[x]
        swap_under(lambda x, p: p > x, in_pairs)(builder, S, x, a)
        b[x] = S[x]
        return builder.get()

    B = te.extern((64,), [A], written, name="B", dtype="float32")
    with pytest.raises(LoweringError, match="some would wait forever"):
        tedsl.build(te.create_schedule(B.op), [A, B, n])


@pytest.mark.parametrize("checked", [False, True])
def test_memory_that_is_named_like_a_note_of_checked_mode(checked):
    """Checked mode notes in S.written what was stored to S; a memory of that name is one like others without checks."""
    def body(builder, a, b, start):
        x = start().var
        S = builder.allocate("float32", COUNT, name="S", scope="shared")
        note = builder.allocate("bool", COUNT, name="S.written", scope="shared")
        S[x] = a[x]
        note[x] = a[x] > 3.0
        b[x] = 0.0
        with builder.if_scope(a[x] > 1.5):
            with builder.if_scope(note[7 - x]):
                b[x] = S[x]
            note[x] = tir.const(True, "bool")

    with pytest.raises(LoweringError, match="some would wait forever"):
        tedsl.build(*schedule(body), checked=checked)


def test_checks_still_see_what_was_never_written():
    def body(builder, a, b, start):
        x = start().var
        S = builder.allocate("float32", 2 * COUNT, name="S", scope="shared")
        with builder.if_scope(a[x] > 2.5):
            S[x] = a[x]
        with builder.if_scope(a[x] > 3.5):
            S[x + 8] = S[7 - x]
        with builder.else_scope():
            S[x + 8] = 0.0
        b[x] = S[x + 8]

    s, args = schedule(body)
    with pytest.raises(tedsl.errors.TedslError, match=r"reads S\[7\], to which nothing was written before"):
        tedsl.build(s, args, checked=True)(np.arange(8, dtype="float32")[[7, 0, 1, 3, 4, 5, 6, 2]], np.zeros(8, "float32"))
