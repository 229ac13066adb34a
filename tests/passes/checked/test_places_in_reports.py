"""Where a checked kernel says that it went wrong: the stage that was inlined, the line of a script, the numbers of threads."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import AccessError

GIVEN = np.ones(4, "float32"), np.array([0, 1, 2, 3, 0, 9, 1, 1], "int32")


def failure(s, args, *given):
    """What the checked kernel says."""
    with pytest.raises(AccessError) as found:
        tedsl.build(s, args, checked=True)(*given, np.zeros(8, "float32"))
    return str(found.value)


def gathered(both=False):
    A, rows = te.placeholder((4,), name="A"), te.placeholder((8,), "int32", name="rows")
    B = te.compute((8,), lambda i: A[rows[i]] * 2.0, name="B")
    C = te.compute((8,), lambda i: B[i] + (A[rows[i]] if both else 1.0), name="C")
    return A, rows, B, C, te.create_schedule(C.op)


def test_an_inlined_stage_that_alone_reads_a_tensor_is_named():
    A, rows, B, C, s = gathered()
    s[B].compute_inline()
    said = failure(s, [A, rows, C], *GIVEN)
    assert f"in stage B ({B.op.source}), inlined into C ({C.op.source})\n" in said


def test_a_tensor_that_both_read():
    A, rows, B, C, s = gathered(both=True)
    s[B].compute_inline()
    assert f"in stage C ({C.op.source}), with B ({B.op.source}) inlined\n" in failure(s, [A, rows, C], *GIVEN)


def test_a_stage_that_is_not_inlined_is_named_alone():
    A, rows, B, C, s = gathered()
    s[B].compute_at(s[C], C.op.axis[0])
    assert f"in stage B ({B.op.source})\n" in failure(s, [A, rows, C], *GIVEN)


@pytest.mark.parametrize("outer, inner", [("blockIdx.x", "threadIdx.x"), ("vthread", None)])
def test_threads_are_loops_of_the_report(outer, inner):
    A, rows, B, _, _ = gathered()
    s = te.create_schedule(B.op)
    o, i = s[B].split(B.op.axis[0], nparts=2)
    s[B].bind(o, te.thread_axis(outer))
    if inner is not None:
        s[B].bind(i, te.thread_axis(inner))
    assert failure(s, [A, rows, B], *GIVEN).endswith(f"loops: {outer} = 1, {inner or 'i.inner'} = 1")


@te.hybrid.script
def scattered(a, rows):
    c = output_tensor((8,), "float32")  # noqa: F821 - a word of hybrid scripts
    for i in range(8):
        c[rows[i]] = a[0]
    return c


def test_the_line_of_a_hybrid_script():
    A, rows = te.placeholder((4,), name="A"), te.placeholder((8,), "int32", name="rows")
    H = scattered(A, rows)
    s = te.create_schedule(H.op)
    said = failure(s, [A, rows, H], *GIVEN)
    assert "`c[rows[i]] = a[0]`)\n" in said and "in hybrid script scattered (" in said
