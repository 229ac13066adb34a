"""Directives on the memory of a stage: what they record, and what they refuse."""

import pytest

from tedsl import te
from tedsl.schedule.handles import create_schedule

DIRECTIVES = {
    "storage_align": lambda s, t: s[t].storage_align(s[t].op.axis[0], 16, 0),
    "double_buffer": lambda s, t: s[t].double_buffer(),
    "rolling_buffer": lambda s, t: s[t].rolling_buffer(),
}


def test_what_is_recorded(chain):
    s = chain.s
    s[chain.C].storage_align(chain.C.op.axis[0], 16, 1)
    s[chain.C].compute_at(s[chain.D], chain.D.op.axis[0])
    s[chain.C].double_buffer()
    s[chain.D].prefetch(chain.B, chain.D.op.axis[0], 2)
    assert str(s.journal).splitlines() == [
        "s[C].storage_align(s[C].op.axis[0], 16, 1)", "s[C].compute_at(s[D], s[D].op.axis[0])", "s[C].double_buffer()",
        "s[D].prefetch(B, s[D].op.axis[0], 2)"]
    text = str(s)
    assert "C: computed at D, loop i, stride of i = 1 modulo 16, double-buffered" in text
    assert "for i in 0..64 (prefetching B 2 ahead)" in text


def test_the_journal_rebuilds_it(chain):
    s = chain.s
    s[chain.C].compute_at(s[chain.D], chain.D.op.axis[0])
    s[chain.C].storage_align(chain.C.op.axis[1], 4, 0)
    s[chain.C].rolling_buffer()
    s[chain.D].prefetch(chain.A, chain.D.op.axis[1], 1)
    again = create_schedule(chain.D.op)
    exec(str(s.journal), {"s": again, "te": te, "A": chain.A, "C": chain.C, "D": chain.D})
    assert str(again) == str(s)


@pytest.mark.parametrize("name", DIRECTIVES)
def test_the_callers_memory_is_left_alone(chain, refused, name):
    for tensor, what in ((chain.D, "D is an output of the schedule: its memory is the caller's"),
                         (chain.A, "A is a placeholder: the caller decides")):
        error = refused(chain.s, lambda t=tensor: _apply(chain, name, t), what)
        assert error.directive.startswith(name) and "cache_" in str(error)


def _apply(chain, name, tensor):
    if name == "storage_align" and tensor is chain.A:
        return chain.s[tensor].storage_align(chain.B.op.axis[0], 16, 0)
    return DIRECTIVES[name](chain.s, tensor)


@pytest.mark.parametrize("name", DIRECTIVES)
def test_an_inlined_stage_has_no_memory(chain, refused, name):
    chain.s[chain.C].compute_inline()
    refused(chain.s, lambda: DIRECTIVES[name](chain.s, chain.C), "C is computed inline: it has no memory")


@pytest.mark.parametrize("factor, offset, words", [
    (0, 0, "the factor is an integer of at least 1, got the int 0"), ("8", 0, "got the str '8'"), (True, 0, "the factor is"),
    (8, 8, "the offset is an integer from 0 to 7, got the int 8"), (8, -1, "got the int -1"), (8, 0.5, "got the float 0.5"),
])
def test_numbers_of_storage_align(chain, refused, factor, offset, words):
    refused(chain.s, lambda: chain.s[chain.C].storage_align(chain.C.op.axis[0], factor, offset), words)


def test_strides_belong_to_axes(chain, refused):
    outer, _ = chain.s[chain.C].split(chain.C.op.axis[0], 8)
    refused(chain.s, lambda: chain.s[chain.C].storage_align(outer, 8, 0), "i.outer is a loop", "s[C].op.axis: i, j")
    refused(chain.s, lambda: chain.s[chain.C].storage_align(chain.B.op.axis[0], 8, 0), "i is no axis of C")
    refused(chain.s, lambda: chain.s[chain.C].storage_align(0, 8, 0), "expected an axis, got the int 0")


def test_rolling_needs_a_place(chain, refused):
    refused(chain.s, lambda: chain.s[chain.C].rolling_buffer(), "C is computed at the root", "compute_at(s[C], loop) first")


def test_rolling_along_a_parallel_loop(chain, refused):
    s = chain.s
    s[chain.D].parallel(chain.D.op.axis[0])
    s[chain.C].compute_at(s[chain.D], chain.D.op.axis[0])
    refused(s, lambda: s[chain.C].rolling_buffer(), "loop i of D, which is parallel", "split i")


def test_one_of_the_two_buffers(chain, refused):
    s = chain.s
    s[chain.C].compute_at(s[chain.D], chain.D.op.axis[0])
    s[chain.C].double_buffer()
    refused(s, lambda: s[chain.C].rolling_buffer(), "C is double-buffered", "use one of the two")
    s[chain.B].compute_at(s[chain.D], chain.D.op.axis[0])
    s[chain.B].rolling_buffer()
    refused(s, lambda: s[chain.B].double_buffer(), "B is in a rolling buffer")


@pytest.mark.parametrize("offset, words", [("1", "got the str '1'"), (1.5, "got the float 1.5"), (None, "got None")])
def test_offsets_of_prefetch(chain, refused, offset, words):
    refused(chain.s, lambda: chain.s[chain.D].prefetch(chain.A, chain.D.op.axis[0], offset), "a number of iterations", words)


def test_tensors_of_prefetch(chain, refused):
    s, i = chain.s, chain.D.op.axis[0]
    refused(s, lambda: s[chain.D].prefetch(chain.D, i, 1), "D is what D writes", "a tensor that it reads: C")
    refused(s, lambda: s[chain.D].prefetch(te.placeholder((4,), name="Z"), i, 1), "Z is not part of this schedule")
    refused(s, lambda: s[chain.D].prefetch("A", i, 1), "the first argument is a tensor, got the str 'A'")
    refused(s, lambda: s[chain.D].prefetch(chain.A, chain.C.op.axis[0], 1), "i is a loop of stage C")


def test_a_loop_that_prefetches_stays(chain, refused):
    s, i = chain.s, chain.D.op.axis[0]
    s[chain.D].prefetch(chain.A, i, 1)
    refused(s, lambda: s[chain.D].split(i, 4), "i is already prefetching A")
    s[chain.D].vectorize(chain.D.op.axis[1])
    refused(s, lambda: s[chain.D].prefetch(chain.A, chain.D.op.axis[1], 1), "j is vectorized")
