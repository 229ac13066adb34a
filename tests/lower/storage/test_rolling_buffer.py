"""rolling_buffer: what the next iteration needs too is kept, in memory that wraps around."""

from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError
from tedsl.ir.evaluate import run
from tests.lower.end_to_end import check_both, check_calls, loops
from tests.lower.programs import whole_numbers
from tests.refusing import refused


def blur(n, m, *, halo=2):
    """R sums rows of three, O columns of `halo` + 1."""
    A = te.placeholder((n + halo, m + 2), name="A")
    R = te.compute((n + halo, m), lambda y, x: A[y, x] + A[y, x + 1] + A[y, x + 2], name="R")
    O = te.compute((n, m), lambda y, x: sum((R[y + d, x] for d in range(1, halo + 1)), R[y, x]), name="O")
    return A, R, O, te.create_schedule(O.op)


def test_the_mark():
    A, R, O, s = blur(16, 18)
    s[R].compute_at(s[O], O.op.axis[0])
    s[R].rolling_buffer()
    assert 'attr [R] "rolling_buffer_scope" = True {' in loops(s, [A, O])


def test_after_the_first_iteration_one_row_is_new():
    A, R, O, s = blur(16, 18)
    s[R].compute_at(s[O], O.op.axis[0])
    s[R].rolling_buffer()
    assert loops(s, [A, O], passes=True).splitlines()[:7] == dedent("""\
        allocate(R: Pointer(global float32), float32, [54]), storage_scope = global;
        for (y: int32, 0, 16) {
          for (y_1: int32, 0, 3) {
            if ((y < 1) || (2 <= y_1)) {
              for (x: int32, 0, 18) {
                R[((floormod((y + y_1), 3)*18) + x)] = (((float32*)A_2[(((y*20) + (y_1*20)) + x)] +\
 (float32*)A_2[((((y*20) + (y_1*20)) + x) + 1)]) + (float32*)A_2[((((y*20) + (y_1*20)) + x) + 2)])
              }
        """).splitlines()


@pytest.mark.parametrize("halo", [1, 2, 4])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_rows(n, halo):
    A, R, O, s = blur(n, 6, halo=halo)
    s[R].compute_at(s[O], O.op.axis[0])
    s[R].rolling_buffer()
    check_both(s, [A, O], {A: whole_numbers((n + halo, 8))})


@pytest.mark.parametrize("tile", [1, 2, 3, 4, 7, 16, 20])
def test_tiles_with_a_halo(tile):
    A, R, O, s = blur(16, 6, halo=3)
    outer, inner = s[O].split(O.op.axis[0], tile)
    s[R].compute_at(s[O], outer)
    if tile < 16:
        s[R].rolling_buffer()
    check_both(s, [A, O], {A: whole_numbers((19, 8))})


@pytest.mark.parametrize("tile", [1, 2, 5])
def test_symbolic_sizes(tile):
    n, m = te.var("n"), te.var("m")
    A, R, O, s = blur(n, m)
    outer, inner = s[O].split(O.op.axis[0], tile)
    s[O].vectorize(s[O].split(O.op.axis[1], 4)[1])
    s[R].compute_at(s[O], outer)
    s[R].rolling_buffer()
    s[R].vectorize(s[R].split(R.op.axis[1], 4)[1])
    calls = [({A: whole_numbers((k + 2, w + 2))}, {n: k, m: w}) for k, w in ((0, 3), (1, 1), (2, 5), (5, 4), (6, 9), (11, 7))]
    check_calls(s, [A, O], calls)


def test_columns_inside_rows():
    A = te.placeholder((6, 13), name="A")
    R = te.compute((6, 13), lambda y, x: A[y, x] + 1.0, name="R")
    O = te.compute((6, 9), lambda y, x: R[y, x] + R[y, x + 2] + R[y, x + 4], name="O")
    for factor in (1, 2, 4, 5):
        s = te.create_schedule(O.op)
        xo, xi = s[O].split(O.op.axis[1], factor)
        s[R].compute_at(s[O], xo)
        s[R].rolling_buffer()
        check_both(s, [A, O], {A: whole_numbers((6, 13))})


def test_a_strided_reader():
    A = te.placeholder((21, 4), name="A")
    R = te.compute((21, 4), lambda y, x: A[y, x] * 2.0, name="R")
    O = te.compute((9, 4), lambda y, x: R[2 * y, x] + R[2 * y + 1, x] + R[2 * y + 4, x], name="O")
    s = te.create_schedule(O.op)
    s[R].compute_at(s[O], O.op.axis[0])
    s[R].rolling_buffer()
    assert "[20]" in loops(s, [A, O], passes=True)  # five rows, of which three are kept
    check_both(s, [A, O], {A: whole_numbers((21, 4))})


def test_a_chain_of_rolling_buffers():
    A = te.placeholder((20, 5), name="A")
    P = te.compute((20, 5), lambda y, x: A[y, x] + 1.0, name="P")
    Q = te.compute((18, 5), lambda y, x: P[y, x] + P[y + 1, x] + P[y + 2, x], name="Q")
    O = te.compute((14, 5), lambda y, x: Q[y, x] + Q[y + 4, x], name="O")
    for factor in (1, 3):
        s = te.create_schedule(O.op)
        outer, _ = s[O].split(O.op.axis[0], factor)
        for stage in (P, Q):
            s[stage].compute_at(s[O], outer)
            s[stage].rolling_buffer()
        check_both(s, [A, O], {A: whole_numbers((20, 5))})


def test_a_reduction_in_a_rolling_buffer():
    A = te.placeholder((12, 7), name="A")
    k = te.reduce_axis((0, 7), "k")
    R = te.compute((12,), lambda y: te.sum(A[y, k], axis=k), name="R")
    O = te.compute((10,), lambda y: R[y] + R[y + 1] * R[y + 2], name="O")
    s = te.create_schedule(O.op)
    s[R].compute_at(s[O], O.op.axis[0])
    s[R].rolling_buffer()
    check_both(s, [A, O], {A: whole_numbers((12, 7))})


def test_both_values_of_a_tuple_reduction():
    A = te.placeholder((9, 6), name="A")
    k = te.reduce_axis((0, 6), "k")
    first = te.comm_reducer(lambda a, b: (te.if_then_else(a[1] >= b[1], a[0], b[0]), te.max(a[1], b[1])),
                            lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
    index, value = te.compute((9,), lambda y: first((k.var, A[y, k]), axis=k), name="M")
    O = te.compute((7,), lambda y: value[y] + value[y + 2] + index[y + 1].astype("float32"), name="O")
    s = te.create_schedule(O.op)
    s[index].compute_at(s[O], O.op.axis[0])
    s[index].rolling_buffer()
    check_both(s, [A, O], {A: whole_numbers((9, 6))})


def test_inside_a_parallel_loop():
    A, R, O, s = blur(22, 6)
    outer, inner = s[O].split(O.op.axis[0], 8)
    s[O].parallel(outer)
    s[R].compute_at(s[O], inner)
    s[R].rolling_buffer()
    check_both(s, [A, O], {A: whole_numbers((24, 8))})


def test_with_aligned_rows():
    A, R, O, s = blur(10, 6)
    s[R].compute_at(s[O], O.op.axis[0])
    s[R].rolling_buffer()
    s[R].storage_align(R.op.axis[0], 8, 0)
    assert "[24]" in loops(s, [A, O], passes=True)
    check_both(s, [A, O], {A: whole_numbers((12, 8))})


def refuses(s, args, *words):
    refused(lambda: tedsl.lower(s, args), *words, error=LoweringError)


def test_a_region_that_does_not_move_is_refused():
    A, R, O, s = blur(16, 6)
    s[O].reorder(O.op.axis[1], O.op.axis[0])
    s[R].compute_at(s[O], O.op.axis[1])
    s[R].rolling_buffer()
    refuses(s, [A, O], "R cannot roll along loop x of O", "no common part", "compute it at another loop")


def test_a_region_that_is_always_the_same_is_refused():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((5, 8), lambda i, j: B[j] + i, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].rolling_buffer()
    refuses(s, [A, C], "B cannot roll along loop i of C", "every iteration needs the same part")


def test_a_region_that_moves_along_a_diagonal_is_refused():
    A = te.placeholder((9, 9), name="A")
    B = te.compute((9, 9), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((7,), lambda i: B[i, i] + B[i + 2, i + 2], name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].rolling_buffer()
    refuses(s, [A, C], "moves in 2 dimensions at once")


def test_a_region_that_moves_backwards_is_refused():
    A = te.placeholder((9,), name="A")
    B = te.compute((9,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((7,), lambda i: B[8 - i] + B[6 - i], name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].rolling_buffer()
    refuses(s, [A, C], "does not move forwards")


def test_parallel_iterations_are_refused():
    A, R, O, s = blur(16, 6)
    s[R].compute_at(s[O], O.op.axis[0])
    s[R].rolling_buffer()
    s[O].parallel(O.op.axis[0])
    refuses(s, [A, O], "R cannot roll along loop y of O, which is parallel", "split y")


def test_a_root_stage_is_refused():
    A, R, O, s = blur(16, 6)
    s[R].compute_at(s[O], O.op.axis[0])
    s[R].rolling_buffer()
    s[R].compute_root()
    refuses(s, [A, O], "R is in a rolling buffer and computed at the root")


def test_loops_of_one_iteration_have_nothing_to_keep():
    A, R, O, s = blur(1, 6)
    s[R].compute_at(s[O], O.op.axis[0])
    s[R].rolling_buffer()
    func = tedsl.lower(s, [A, O])["main"]
    run(func, [data := whole_numbers((3, 8)), result := np.zeros((1, 6), "float32")])
    rows = data[:, :6] + data[:, 1:7] + data[:, 2:]
    np.testing.assert_array_equal(result[0], rows.sum(0))
