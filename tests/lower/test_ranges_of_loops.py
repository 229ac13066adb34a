"""te.schedule.InferBound: ranges in their simplest form, and ScheduleOps of them."""

import pytest

from tedsl import te
from tedsl.ir.evaluate import evaluate
from tests.lower.intrinsics import vadd


def ranges(s, *stages):
    """The ranges of the loops of stages, as text without dtypes; the loops can be made of them."""
    bounds = te.schedule.InferBound(s)
    te.schedule.ScheduleOps(s, bounds)
    return [{iv.var.name: (repr(bounds[iv].min), repr(bounds[iv].extent)) for iv in s[stage].all_iter_vars} for stage in stages]


def recurrence():
    m, n = te.var("m"), te.var("n")
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="state")
    first = te.compute((1, n), lambda _, i: X[0, i], name="first")
    doubled = te.compute((m, n), lambda t, i: state[t - 1, i] * 2, name="doubled")
    update = te.compute((m, n), lambda t, i: doubled[t, i] + X[t, i], name="update")
    return first, doubled, update, te.scan(first, update, state, inputs=[X], name="scan")


def test_scans():
    first, doubled, update, scan = recurrence()
    s = te.create_schedule(scan.op)
    outer, _ = s[update].split(update.op.axis[1], factor=10)
    s[doubled].compute_at(s[update], outer)
    of_first, of_doubled, of_update, of_scan = ranges(s, first, doubled, update, scan)
    assert of_first == {"_": ("0", "1"), "i": ("0", "n")} and of_scan == {"scan.idx": ("1", "(m - 1)")}
    assert of_doubled == {"t": ("(scan.idx + 1)", "1"), "i": ("(i.outer*10)", "10")}
    assert of_update["i"] == ("0", "n") and of_update["i.outer"] == ("0", "floordiv((n + 9), 10)")


def test_scans_on_threads():
    _, doubled, update, scan = recurrence()
    s = te.create_schedule(scan.op)
    s[doubled].compute_inline()
    outer, inner = s[update].split(update.op.axis[1], factor=32)
    s[update].bind(outer, te.thread_axis("blockIdx.x"))
    s[update].bind(inner, te.thread_axis("threadIdx.x"))
    (of_update,) = ranges(s, update)
    assert of_update["i.outer"] == ("0", "floordiv((n + 31), 32)") and of_update["i.inner"] == ("0", "32")


def test_groups_inside_groups():
    m, n = te.var("m"), te.var("n")
    A = te.placeholder((m + 1, n), name="A")
    B = te.compute((m + 1, n), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((m + 1, n), lambda i, j: B[i, j] * 2, name="C")
    D = te.compute((m + 1, n), lambda i, j: C[i, j] * 3, name="D")
    E = te.compute((m + 1, n), lambda i, j: D[i, j] + 1, name="E")
    s = te.create_schedule(E.op)
    outer = s.create_group(outputs=D, inputs=A)
    inner = s.create_group(outputs=C, inputs=A)
    outer.compute_at(s[E], E.op.axis[0])
    inner.compute_at(s[D], D.op.axis[1])
    assert ranges(s, B, C, D, E) == [{"i": ("i", "1"), "j": ("j", "1")}] * 2 + [
        {"i": ("i", "1"), "j": ("0", "n")}, {"i": ("0", "(m + 1)"), "j": ("0", "n")}]


def test_tensor_intrinsics():
    n, call = te.var("n"), vadd(16)
    A, B = te.placeholder((n, 16), name="A"), te.placeholder((n, 16), name="B")
    C = te.compute((n, 16), lambda i: call(A[i, 0:16], B[i, 0:16]), name="C")
    D = te.compute((n, 16), lambda i, j: C[i, j] * 2.0, name="D")
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[0])
    assert ranges(s, C, D) == [{"i": ("i", "1"), "ax0": ("0", "16")}, {"i": ("0", "n"), "j": ("0", "16")}]
    flat, other = te.placeholder((n * 16,), name="F"), te.placeholder((n * 16,), name="G")
    E = te.compute((n * 16,), lambda i: flat[i] + other[i], name="E")
    s = te.create_schedule(E.op)
    s[E].tensorize(s[E].split(E.op.axis[0], 16)[1], call)
    assert ranges(s, E) == [{"i": ("0", "(n*16)"), "i.outer": ("0", "n"), "i.inner": ("0", "16")}]


@pytest.mark.parametrize("virtual", [False, True])
def test_threads(virtual):
    n = te.var("n")
    A = te.placeholder((n, n), name="A")
    C = te.compute((n, n), lambda i, j: A[i, j] + 1, name="C")
    s = te.create_schedule(C.op)
    kept = s.cache_read(A, "local", [C])
    block, inner = s[C].split(s[C].fuse(*C.op.axis), 64)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    if virtual:
        copies, inner = s[C].split(inner, nparts=2)
        s[C].bind(copies, te.thread_axis("vthread"))
    s[C].bind(inner, te.thread_axis("threadIdx.x"))
    s[kept].compute_at(s[C], inner)
    of_kept, of_c = ranges(s, kept, C)
    assert [extent for _, extent in of_kept.values()] == ["1", "1"] and of_c["i.j.fused"] == ("0", "(n*n)")
    assert of_c["i.j.fused.outer"] == ("0", "floordiv(((n*n) + 63), 64)")


def test_whole_dimensions_of_a_stage_inside_another_are_sizes_that_no_placeholder_has():
    m, n, k = te.var("m"), te.var("n"), te.var("k")
    A = te.placeholder((k,), name="A")
    B = te.compute((m, n), lambda i, j: A[0] + j, name="B")
    C = te.compute((m, n), lambda i, j: B[i, j] * 2, name="C")
    D = te.compute((m, n), lambda i, j: C[i, j] + 1, name="D")
    s = te.create_schedule(D.op)
    group = s.create_group(outputs=C, inputs=A)
    s.create_group(outputs=C, inputs=B, include_inputs=True)
    group.compute_at(s[D], D.op.axis[0])
    of_b, of_c = ranges(s, B, C)
    assert of_b["j"] == of_c["j"] == ("0", "n") and of_c["i"] == ("i", "1")


@pytest.mark.parametrize("factor", [1, 5])
def test_rows_of_a_piece_of_a_fused_loop(factor):
    """Rows of unknown length: from the row of the first element of a piece to that of the last one, which is not before it."""
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((n, m), lambda i, j: B[i, j] * 2, name="C")
    s = te.create_schedule(C.op)
    outer, _ = s[C].split(s[C].fuse(*C.op.axis), factor)
    s[B].compute_at(s[C], outer)
    bounds = te.schedule.InferBound(s)
    low, count = bounds[B.op.axis[0]].min, bounds[B.op.axis[0]].extent
    assert "max" not in repr(count)
    for columns in range(1, 8):
        for piece in range(4):
            first, last = piece * factor // columns, ((piece + 1) * factor - 1) // columns
            assert [evaluate(e, {m: columns, outer.var: piece}) for e in (low, count)] == [first, last - first + 1]
