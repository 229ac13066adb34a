"""compute_with: the loops of two stages become one, and are refused where that would change a result."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError, ScheduleError

a = np.random.default_rng(0).random((20, 8)).astype("float32")


def centred(n=20):
    """Row sums M, Y = A - M by rows, and Z, a sum of each column that needs M."""
    A = te.placeholder((n, 8), name="A")
    k, r = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, n), "r")
    M = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="M")
    Y = te.compute((n, 8), lambda i, j: A[i, j] - M[i], name="Y")
    Z = te.compute((8,), lambda j: te.sum(A[r, j] * M[r], axis=r), name="Z")
    return te.create_schedule([Y.op, Z.op]), A, M, Y, Z, r


def check(s, A, Y, Z, n=20, rows=None):
    given = np.concatenate([a] * 3)[:rows or n]
    y, z = np.empty_like(given), np.empty(8, "float32")
    tedsl.build(s, [A, Y, Z])(given, y, z)
    m = given.sum(1)
    np.testing.assert_allclose(y, given - m[:, None], rtol=1e-4)
    np.testing.assert_allclose(z, (given * m[:, None]).sum(0), rtol=1e-4)


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_chunks_of_rows_are_computed_together(kind):
    s, A, M, Y, Z, r = centred()
    P = s.rfactor(Z, s[Z].split(r, factor=5)[0])
    loops = [s[T].split(T.op.axis[0], factor=5)[0] for T in (M, Y)] + [P.op.axis[0]]
    if kind == "parallel":
        for T, loop in zip((M, Y, P), loops):
            s[T].parallel(loop)
    s[Y].compute_with(s[M], loops[0], loops[1])
    s[P].compute_with(s[Y], loops[1], loops[2])
    text = str(tedsl.lower(s, [A, Y, Z], simple_mode=True))
    assert text.count('"parallel"') == (kind == "parallel") and text.count(" 0, 4)") == 2  # the chunks, and their sum
    check(s, A, Y, Z)


@pytest.mark.parametrize("factor", [4, 7])  # 7 does not divide 20
def test_two_loops_of_each(factor):
    s, A, M, Y, Z, _ = centred()
    (mo, mi), (yo, yi) = [s[T].split(T.op.axis[0], factor=factor) for T in (M, Y)]
    s[Y].compute_with(s[M], mi, yi)
    text = str(tedsl.lower(s, [A, Y, Z], simple_mode=True))
    assert text.index("M[") < text.index("Y_2[") and text.count(f"0, {factor})") == 1
    check(s, A, Y, Z)


def test_symbolic_extents():
    s, A, M, Y, Z, _ = centred(te.var("n"))
    s[Y].compute_with(s[M], M.op.axis[0], Y.op.axis[0])
    for rows in (0, 1, 13):
        if rows:
            check(s, A, Y, Z, rows=rows)
    assert str(tedsl.lower(s, [A, Y, Z], simple_mode=True)).count("for (i") == 1


def test_loops_of_one_iteration():
    s, A, M, Y, Z, _ = centred(1)
    s[Y].compute_with(s[M], M.op.axis[0], Y.op.axis[0])
    check(s, A, Y, Z, 1)


def test_what_is_attached_inside_stays_there():
    A = te.placeholder((12, 8), name="A")
    B = te.compute((12, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((12, 8), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((12, 8), lambda i, j: C[i, 7 - j] + A[i, j], name="D")
    s = te.create_schedule(D.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[D].compute_with(s[C], C.op.axis[0], D.op.axis[0])
    given, out = np.concatenate([a])[:12], np.empty((12, 8), "float32")
    tedsl.build(s, [A, D], checked=True)(given, out)
    np.testing.assert_allclose(out, (given[:, ::-1] + 1) * 2 + given, rtol=1e-6)
    assert str(tedsl.lower(s, [A, D], simple_mode=True)).count("0, 12)") == 1


def pair(read, n=20, m=20):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((m,), lambda i: read(B, i), name="C")
    return te.create_schedule(C.op), A, B, C


@pytest.mark.parametrize("read, m, words", [
    (lambda B, i: B[19 - i], 20, "what one iteration writes to B another may read"),
    (lambda B, i: B[i + 1], 19, "one has 20 iterations from 0 on, the other 19 from 0 on"),
    (lambda B, i: B[te.max(i - 1, 0)], 20, "what one iteration writes to B another may read")])
def test_what_lowering_refuses(read, m, words):
    s, A, B, C = pair(read, m=m)
    s[C].compute_with(s[B], B.op.axis[0], C.op.axis[0])
    with pytest.raises(LoweringError, match=f"compute_with: .*{words}(.|\n)*from: s"):
        tedsl.lower(s, [A, C])


def test_a_stage_between_them_that_needs_the_first():
    s, A, B, C = pair(lambda B, i: B[i])
    E = te.compute((20,), lambda i: B[19 - i], name="E")
    D = te.compute((20,), lambda i: B[i] + E[i], name="D")
    s = te.create_schedule(D.op)
    s[D].compute_with(s[B], B.op.axis[0], D.op.axis[0])
    with pytest.raises(LoweringError, match="what stands between the stages uses E, as both of them do"):
        tedsl.lower(s, [A, D])


def refused(s, call, words):
    before = str(s.journal)
    with pytest.raises(ScheduleError, match=words):
        call()
    assert str(s.journal) == before


def test_what_the_schedule_refuses():
    s, A, M, Y, Z, _ = centred()
    i, (y, j) = M.op.axis[0], Y.op.axis
    refused(s, lambda: s[Y].compute_with(s[M], i, j), "j is loop number 1 of Y, and i number 0 of M")
    refused(s, lambda: s[Y].compute_with(M, i, y), "the first argument is a stage")
    refused(s, lambda: s[Y].compute_with(s[Y], y, y), "the stage itself")
    other = te.create_schedule([Y.op, Z.op])
    refused(s, lambda: s[Y].compute_with(other[M], i, y), "a stage of another schedule")
    s[Y].parallel(y)
    refused(s, lambda: s[Y].compute_with(s[M], i, y), "i is parallel, and i of M serial")
    s[M].parallel(i)
    s[Y].compute_with(s[M], i, y)
    refused(s, lambda: s[M].split(i, factor=2), r"i is already one with the loop of another stage \(compute_with\)")
    refused(s, lambda: s[Y].vectorize(y), "i is one with a loop of another stage since compute_with")
    refused(s, lambda: s[Y].reorder(j, y), "is one with a loop of another stage")
    refused(s, lambda: s[M].compute_at(s[Y], y), "is one with a loop of another stage")


def test_stages_at_different_places():
    s, A, B, C = pair(lambda B, i: B[i])
    D = te.compute((20,), lambda i: C[i] + 1.0, name="D")
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[0])
    refused(s, lambda: s[C].compute_with(s[B], B.op.axis[0], C.op.axis[0]), "computed at different places")


def calling(name, reads, n=8):
    """A stage of n elements that calls the Python function `name` with the stages `reads` and its own result."""
    return te.extern((n,), reads, lambda ins, outs: tedsl.tir.call_packed(name, *ins, outs[0]), name="E", dtype="float32")


@tedsl.register_func("tests.compute_with.reverse", override=True)
def reverse(given, result):
    result.copyfrom(given.numpy()[::-1])


def test_a_call_that_is_passed_the_first_stage_comes_after_it():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    E = calling("tests.compute_with.reverse", [B])
    D = te.compute((8,), lambda i: A[i] * 2.0, name="D")
    s = te.create_schedule([E.op, D.op])
    s[D].compute_with(s[B], B.op.axis[0], D.op.axis[0])
    given, e, d = np.arange(8, dtype="float32"), np.zeros(8, "float32"), np.zeros(8, "float32")
    tedsl.build(s, [A, E, D])(given, e, d)
    np.testing.assert_array_equal(e, given[::-1] + 1)
    np.testing.assert_array_equal(d, given * 2)


def test_a_call_that_both_stages_are_passed_to():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    E = calling("tests.compute_with.reverse", [B])
    D = te.compute((8,), lambda i: B[i] + E[i], name="D")
    s = te.create_schedule(D.op)
    s[D].compute_with(s[B], B.op.axis[0], D.op.axis[0])
    with pytest.raises(LoweringError, match="what stands between the stages uses B, as both of them do"):
        tedsl.lower(s, [A, D])


def added(first):
    """An intrinsic that adds one to four elements by a call of a C function named `first`."""
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1.0, name="y")

    def body(ins, outs):
        return tedsl.tir.call_extern("int32", first, ins[0].access_ptr("r"), outs[0].access_ptr("w"))
    return te.decl_tensor_intrin(y.op, body, default_buffer_params={"offset_factor": 1})


@pytest.mark.parametrize("both", [False, True])
def test_intrinsics_in_joined_loops(both):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: A[i] + 1.0 if both else B[i] * 2.0, name="C")
    s = te.create_schedule([B.op, C.op])
    (bo, bi), (co, ci) = [s[T].split(T.op.axis[0], factor=4) for T in (B, C)]
    s[B].tensorize(bi, added("one"))
    if both:
        s[C].tensorize(ci, added("two"))
    s[C].compute_with(s[B], bo, co)
    words = "calls of one and of two may have side effects" if both else "what one iteration writes to B another may read"
    with pytest.raises(LoweringError, match=words):
        tedsl.lower(s, [A, B, C])
