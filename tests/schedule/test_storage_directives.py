"""Directives on the memory of a stage: what they record, and what they refuse."""

import pytest

from tedsl import te
from tedsl.ir import builder
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
    (8, -1, "the offset is an integer of at least 0, got the int -1"), (8, 0.5, "got the float 0.5"),
])
def test_numbers_of_storage_align(chain, refused, factor, offset, words):
    refused(chain.s, lambda: chain.s[chain.C].storage_align(chain.C.op.axis[0], factor, offset), words)


def test_strides_belong_to_axes(chain, refused):
    outer, _ = chain.s[chain.C].split(chain.C.op.axis[0], 8)
    refused(chain.s, lambda: chain.s[chain.C].storage_align(outer, 8, 0), "i.outer is a loop", "s[C].op.axis: i, j")
    refused(chain.s, lambda: chain.s[chain.C].storage_align(chain.B.op.axis[0], 8, 0), "i is not an axis of C")
    refused(chain.s, lambda: chain.s[chain.C].storage_align(0, 8, 0), "expected an axis, got the int 0")


def test_rolling_needs_a_place(chain, refused):
    refused(chain.s, lambda: chain.s[chain.C].rolling_buffer(), "C is computed at the root",
            "s[C].compute_at(s[D], loop) first")


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


def test_outputs_of_prefetch(chain, refused):
    s, i = chain.s, chain.C.op.axis[0]
    refused(s, lambda: s[chain.C].prefetch(chain.A, i, 0, into="D"), "into is a tensor, got the str 'D'")
    refused(s, lambda: s[chain.C].prefetch(chain.A, i, 0, into=chain.B), "B is not an output", "create_schedule: D")
    refused(s, lambda: s[chain.C].prefetch(chain.A, i, 0, into=chain.D, spread=True), "asked for at once", "leave out spread")
    row = te.placeholder((4,), name="row")
    out = te.compute((4, 4), lambda i, j: row[i] + te.exp(row[j]), name="out")
    s = te.create_schedule(out.op)
    t = s.cache_read(row, "local", [out])
    refused(s, lambda: s[t].prefetch(row, s[t].op.axis[0], 0, into=out), "out has 2 dimensions, row has 1")


def test_a_loop_that_prefetches_stays(chain, refused):
    s, i = chain.s, chain.D.op.axis[0]
    s[chain.D].prefetch(chain.A, i, 1)
    refused(s, lambda: s[chain.D].split(i, 4), "i is already prefetching A")
    s[chain.D].vectorize(chain.D.op.axis[1])
    refused(s, lambda: s[chain.D].prefetch(chain.A, chain.D.op.axis[1], 1), "j is vectorized")


# --- transform_layout ---------------------------------------------------------------------------------------------------

def test_a_new_layout_gives_new_loops(chain):
    s = chain.s
    outer, j, inner = s[chain.C].transform_layout(lambda i, j: [i // 8, j, i % 8])
    assert s[chain.C].leaf_iter_vars == [outer, j, inner] and s[chain.C].op.axis == (outer, j, inner)
    assert s[chain.A].transform_layout(lambda i, j: [j, te.AXIS_SEPARATOR, i]) is None
    assert str(s.journal).splitlines() == [
        "axis0, j, axis2 = s[C].transform_layout(lambda i, j: [(i // 8), j, (i % 8)])",
        "s[A].transform_layout(lambda i, j: [j, te.AXIS_SEPARATOR, i])"]
    read = type(s.journal).from_json(s.journal.to_json())
    again = create_schedule(chain.D.op)
    again.replay(read)
    assert str(again) == str(s)
    s.undo(1)
    assert [int(dim) for dim in s[chain.A].op.shape] == [64, 48]


@pytest.mark.parametrize("fn, words", [
    (lambda i, j: [i], "the new indices tell nothing of j: several elements would share a place"),
    (lambda i, j: [i % 8, j], "tell only 8 of its 64 values of i"),
    (lambda i, j: [i, j, j], "the parts of j do not fit together"),
    (lambda i, j: [i // 4, i % 8, j], "the parts of i do not fit together"),
    (lambda i, j: [i * 2, j], "overlap with the rest, or leave gaps"),
    (lambda i, j: [i + j], "overlap with the rest, or leave gaps"),
    (lambda i, j: [(i * 48 + j) // 16, (i * 48 + j) % 16], "divides a sum"),
    (lambda i, j: [(i + j) // 2, (i + j) % 2, j], "divides i + j, in which several elements have one place"),
    (lambda i, j: [i * j, j], "is not made of axes by +, *, // and %"),
    (lambda i, j: [i + 1, j], "1 is added: the memory begins with the first element, at index 0"),
    (lambda i, j: [te.max(i, j), j], "is not made of axes"),
    (lambda i, j: [i, "j"], "an index of the map is an integer expression, got the str 'j'"),
    (lambda i, j: [i, j * 0.5], "an index of the map is an integer expression"),
    (lambda i, j: i * 48 + j, "the map returns a list of indices"),
    (lambda i: [i], "the map takes 1 indices, and C has 2 dimensions"),
    (lambda i, *, j, k: [i, j, k], "the map takes 3 indices, and C has 2 dimensions"),
    (lambda i, *r, j, k: [i, j, k, *r], "the map takes at least 3 indices, and C has 2 dimensions"),
    ([0, 1], "the map is a function of the indices, got a list of 2"),
])
def test_maps_that_are_refused(chain, refused, fn, words):
    refused(chain.s, lambda: chain.s[chain.C].transform_layout(fn), words)


def test_layouts_come_before_loops(chain, refused):
    s, C = chain.s, chain.C

    def swapped():
        s[C].transform_layout(lambda i, j: [j, i])

    outer, _ = s[C].split(C.op.axis[0], 8)
    refused(s, swapped, "i was split or fused", "call transform_layout first")
    s[chain.B].compute_at(s[C], outer)
    refused(s, swapped, "B is computed at i.outer")
    s[chain.B].compute_root()
    s[C].vectorize(C.op.axis[1])
    refused(s, swapped, "j is already vectorized")


def test_layouts_come_before_strides(chain, refused):
    chain.s[chain.C].storage_align(chain.C.op.axis[0], 8, 0)
    refused(chain.s, lambda: chain.s[chain.C].transform_layout(lambda i, j: [j, i]), "strides that storage_align asked for")


def test_an_old_axis_says_what_became_of_it(chain, refused):
    i, _ = chain.C.op.axis
    chain.s[chain.C].transform_layout(lambda i, j: [j, i])
    refused(chain.s, lambda: chain.s[chain.C].split(i, 8), "i belongs to the old layout of C, which transform_layout replaced")


def test_a_reader_that_wants_memory(refused):
    A = te.placeholder((4, 6), name="A")
    B = te.compute((4, 6), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.extern((4, 6), [B], lambda ins, outs: copied(ins[0], outs[0]), name="C", dtype="float32")
    s = create_schedule(C.op)
    refused(s, lambda: s[B].transform_layout(lambda i, j: [j, i]), "C reads B in memory as it was laid out")


def copied(source, target):
    ib = builder.create()
    a, b = ib.buffer_ptr(source), ib.buffer_ptr(target)
    with ib.for_range(0, 4, "i") as i, ib.for_range(0, 6, "j") as j:
        b[i, j] = a[i, j]
    return ib.get()


def test_a_reader_that_may_leave_the_tensor(refused):
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((m,), lambda i: B[i + 1] * 2.0, name="C")
    s = create_schedule(C.op)
    refused(s, lambda: s[B].transform_layout(lambda i: [i // 4, i % 4]), "C reads B[i + 1]", "not known to lie inside of B")
