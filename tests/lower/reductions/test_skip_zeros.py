"""skip_zeros: iterations of a sum whose data are a border of zeros do not run."""

from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError, ScheduleError
from tests.lower.end_to_end import check_both, check_calls, loops
from tests.lower.programs import whole_numbers


def conv(rows, columns, channels=3, window=3, border=1, step=1, dtype="float32", other=0):
    """An image with channels innermost, a border, and sums of its products with weights in windows."""
    A = te.placeholder((rows, columns, channels), dtype, name="A")
    W = te.placeholder((window, window, channels), dtype, name="W")
    P = te.compute((rows + 2 * border, columns + 2 * border, channels), lambda y, x, c: te.if_then_else(
        te.all(y >= border, y < rows + border, x >= border, x < columns + border), A[y - border, x - border, c],
        te.const(other, dtype)), name="P")
    ky, kx = te.reduce_axis((0, window), "ky"), te.reduce_axis((0, window), "kx")
    c = te.reduce_axis((0, channels), "c")
    shape = [(size + 2 * border - window) // step + 1 for size in (rows, columns)]
    B = te.compute(shape, lambda y, x: te.sum(P[y * step + ky, x * step + kx, c] * W[ky, kx, c], axis=[ky, kx, c]), name="B")
    return A, W, P, B


def conditions(s, args):
    """The conditions in the loops, without those of the formula of the border."""
    return [line.strip() for line in loops(s, args, passes=True).splitlines() if line.strip().startswith("if ")]


def test_a_row_of_the_window_is_skipped_where_it_lies_in_the_border():
    A, W, P, B = conv(4, 5, channels=1)
    s = te.create_schedule(B.op)
    s[P].compute_inline()
    s[B].skip_zeros(B.op.reduce_axis[0])
    assert loops(s, [A, W, B]).startswith(dedent("""\
        for (y: int32, 0, 4) {
          for (x: int32, 0, 5) {
            B[y, x] = 0f32
            for (ky: int32, 0, 3) {
              if (1 <= (y + ky)) {
                if ((y + ky) < 5) {
                  for (kx: int32, 0, 3) {
                    B[y, x] = (B[y, x] + (@tir.if_then_else("""))
    check_both(s, [A, W, B], {A: whole_numbers((4, 5, 1)), W: whole_numbers((3, 3, 1))})


@pytest.mark.parametrize(("rows", "columns", "window", "border", "step"), [
    (4, 5, 3, 1, 1), (5, 4, 5, 2, 1), (1, 1, 3, 1, 1), (7, 6, 3, 1, 2), (2, 3, 5, 4, 1), (3, 1, 1, 1, 1)])
def test_windows_and_borders_of_all_sizes(rows, columns, window, border, step):
    A, W, P, B = conv(rows, columns, 2, window, border, step)
    s = te.create_schedule(B.op)
    for axis in B.op.reduce_axis[:2]:
        s[B].skip_zeros(axis)
    s[P].compute_root()
    check_both(s, [A, W, B], {A: whole_numbers((rows, columns, 2)), W: whole_numbers((window, window, 2))})


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "float16", "float64", "bfloat16"])
def test_other_dtypes(dtype):
    A, W, _, B = conv(5, 5, dtype=dtype)
    s = te.create_schedule(B.op)
    s[B].skip_zeros(B.op.reduce_axis[0])
    kind = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
    rng = np.random.default_rng(1)
    data = {T: rng.integers(0, 3, [int(n) for n in T.shape]).astype(kind) for T in (A, W)}
    check_both(s, [A, W, B], data)


def test_a_tile_of_two_rows_skips_what_is_zero_for_both():
    A, W, _, B = conv(6, 8, window=5, border=2)
    s = te.create_schedule(B.op)
    (y, x), (ky, kx, c) = B.op.axis, B.op.reduce_axis
    yo, yi = s[B].split(y, factor=2)
    s[B].reorder(yo, ky, kx, c, yi, x)
    s[B].unroll(yi)
    s[B].vectorize(x)
    s[B].skip_zeros(ky)
    assert conditions(s, [A, W, B]) == ["if (1 <= ((y.outer*2) + ky)) {", "if (((y.outer*2) + ky) < 8) {"]
    check_both(s, [A, W, B], {A: whole_numbers((6, 8, 3)), W: whole_numbers((5, 5, 3))})


def test_data_that_are_read_through_copies():
    A, W, P, B = conv(6, 8)
    s = te.create_schedule(B.op)
    copy = s.cache_read(P, "global", [B])
    s[copy].transform_layout(lambda y, x, c: [c, y, x])
    s[B].skip_zeros(s[B].op.reduce_axis[1])
    assert conditions(s, [A, W, B]) == ["if (1 <= (x_1 + kx)) {", "if ((x_1 + kx) < 9) {"]
    check_both(s, [A, W, B], {A: whole_numbers((6, 8, 3)), W: whole_numbers((3, 3, 3))})


def test_parts_of_a_window_that_was_split():
    A, W, _, B = conv(6, 8, window=5, border=2)
    s = te.create_schedule(B.op)
    outer, _ = s[B].split(B.op.reduce_axis[0], factor=2)
    s[B].skip_zeros(outer)
    check_both(s, [A, W, B], {A: whole_numbers((6, 8, 3)), W: whole_numbers((5, 5, 3))})
    assert conditions(s, [A, W, B])[:1] == ["if (1 <= (y_1 + (ky.outer*2))) {"]


def test_symbolic_sizes():
    n = te.size_var("n")
    A, W, _, B = conv(n, 4)
    s = te.create_schedule(B.op)
    yo, _ = s[B].split(B.op.axis[0], factor=3)
    s[B].skip_zeros(B.op.reduce_axis[0])
    assert "if (1 <= " in loops(s, [A, W, B])
    weights = whole_numbers((3, 3, 3))
    check_calls(s, [A, W, B], [({A: whole_numbers((size, 4, 3)), W: weights}, {n: size}) for size in (1, 2, 7)])


def test_unrolled_rows_are_decided_when_they_are_built():
    A, W, _, B = conv(3, 4)
    s = te.create_schedule(B.op)
    s[B].unroll(B.op.axis[0])
    s[B].unroll(B.op.reduce_axis[0])
    s[B].skip_zeros(B.op.reduce_axis[0])
    assert conditions(s, [A, W, B]) == []
    assert loops(s, [A, W, B], passes=True).count("for (kx") == 7  # of nine pairs of a row and one of the window
    check_both(s, [A, W, B], {A: whole_numbers((3, 4, 3)), W: whole_numbers((3, 3, 3))})


def test_partial_sums_of_threads():
    A, W, _, B = conv(4, 6, channels=4)
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].bind(B.op.reduce_axis[2], te.thread_axis("threadIdx.x"))
    s[B].skip_zeros(B.op.reduce_axis[0])
    assert "if (1 <= (blockIdx.x + ky)) {" in conditions(s, [A, W, B])
    check_both(s, [A, W, B], {A: whole_numbers((4, 6, 4)), W: whole_numbers((3, 3, 4))})


def test_nan_and_infinity_beside_a_zero_do_not_count():
    A, W, _, B = conv(2, 2, channels=1)
    s = te.create_schedule(B.op)
    for axis in B.op.reduce_axis[:2]:
        s[B].skip_zeros(axis)
    weights = np.zeros((3, 3, 1), "float32")
    weights[0], weights[1, 1] = np.inf, 1
    found = np.zeros((2, 2), "float32")
    tedsl.build(s, [A, W, B])(np.ones((2, 2, 1), "float32"), weights, found)
    np.testing.assert_array_equal(found, [[1, 1], [np.inf, np.inf]])


def test_an_intrinsic_inside_with_start_values_of_its_own():
    A, W, _, B = conv(4, 6, channels=16)
    s = te.create_schedule(B.op)
    s[B].skip_zeros(B.op.reduce_axis[0])
    s[B].tensorize(B.op.reduce_axis[2], dot(16, ("reset", "update")))
    check_both(s, [A, W, B], {A: whole_numbers((4, 6, 16)), W: whole_numbers((3, 3, 16))})


def dot(n, parts):
    """z = sum of x * y, by statements."""
    x, y = te.placeholder((n,), name="x"), te.placeholder((n,), name="y")
    k = te.reduce_axis((0, n), name="k")
    z = te.compute((1,), lambda i: te.sum(x[k] * y[k], axis=k), name="z")

    def function(ins, outs):
        def add(start):
            ib = tir.ir_builder.create()
            a, b, c = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
            if start:
                c[0] = 0.0
            with ib.for_range(0, n) as i:
                c[0] += a[i] * b[i]
            return ib.get()

        ib = tir.ir_builder.create()
        ib.buffer_ptr(outs[0])[0] = 0.0
        return add(True), ib.get() if "reset" in parts else None, add(False) if "update" in parts else None

    return te.decl_tensor_intrin(z.op, function, name="dot", default_buffer_params={"offset_factor": 1})


@pytest.mark.parametrize("outside", [False, True])
def test_lanes_of_a_sum_skip_nothing(outside):
    """The condition of a lane implied that the element exists, and all lanes are added to it at once."""
    A, k, c = te.placeholder((14, 8), "int32", name="A"), te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 2), "c")
    B = te.compute((14,), lambda i: te.sum(te.if_then_else(i + k < 14, A[i, k] + c, 0), axis=[k, c]), name="B")
    s = te.create_schedule(B.op)
    s[B].fuse(*s[B].split(B.op.axis[0], factor=4, tail="mask"))
    s[B].skip_zeros(c if outside else k)
    s[B].vectorize(k)
    check_both(s, [A, B], {A: np.ones((14, 8), "int32")})


@pytest.mark.parametrize("inside", [
    lambda i: i.astype("int8") * te.const(7, "int8") > 3,
    lambda i: (i.astype("int8") * te.const(7, "int8")).astype("int32") > 3,
    lambda i: (i.astype("int16") * te.const(3000, "int16")).astype("int32") + i > 3,
    lambda i: i.astype("uint8") * te.const(70, "uint8") > te.const(99, "uint8")], ids=["int8", "cast", "sum", "uint8"])
def test_conditions_on_integers_that_wrap(inside):
    """The largest value of a tile says nothing of its other values."""
    A, W, k = te.placeholder((40,), name="A"), te.placeholder((5,), name="W"), te.reduce_axis((0, 5), "k")
    P = te.compute((45,), lambda i: te.if_then_else(inside(i), A[te.min(i, 39)], 0.0), name="P")
    B = te.compute((40,), lambda i: te.sum(P[i + k] * W[k], axis=k), name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=6)
    s[B].reorder(outer, k, inner)
    s[B].skip_zeros(k)
    check_both(s, [A, W, B], {A: whole_numbers((40,)), W: whole_numbers((5,))})


# --- refused ----------------------------------------------------------------------------------------------------------

def refused(call, *said):
    with pytest.raises(ScheduleError) as error:
        call()
    for text in said:
        assert text in str(error.value)


def test_what_is_no_sum_or_outside_of_it():
    A, W, P, B = conv(4, 5)
    s = te.create_schedule(B.op)
    refused(lambda: s[P].skip_zeros(P.op.axis[0]), "skip_zeros(y) on stage P", "P is not a sum", "te.sum")
    refused(lambda: s[B].skip_zeros(B.op.axis[0]), "y is outside of the sum, which begins at loop ky", "ky, kx, c")
    k = te.reduce_axis((0, 4), "k")
    M = te.compute((4,), lambda i: te.max(te.if_then_else(i + k > 1, A[i, k, 0], 0.0), axis=k), name="M")
    s = te.create_schedule(M.op)
    refused(lambda: s[M].skip_zeros(k), "M is not a sum")


def test_what_has_no_zeros():
    A, W, _, B = conv(4, 5, other=1)
    s = te.create_schedule(B.op)
    refused(lambda: s[B].skip_zeros(B.op.reduce_axis[0]), "no factor of what B adds is zero by a formula: it reads P, W",
            "te.if_then_else(inside, value, 0)")
    k = te.reduce_axis((0, 4), "k")
    C = te.compute((4,), lambda i: te.sum(i + k, axis=k), name="C")
    s = te.create_schedule(C.op)
    refused(lambda: s[C].skip_zeros(k), "no factor of what C adds is zero by a formula: it reads no tensor\n")


def test_loops_that_do_not_run_one_by_one():
    A, W, _, B = conv(4, 5, channels=8)
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.reduce_axis[2])
    refused(lambda: s[B].skip_zeros(B.op.reduce_axis[2]), "c is vectorized", "a loop around it")


def test_a_loop_that_skips_zeros_is_not_split():
    A, W, _, B = conv(4, 5)
    s = te.create_schedule(B.op)
    s[B].skip_zeros(B.op.reduce_axis[0])
    refused(lambda: s[B].split(B.op.reduce_axis[0], factor=2), "ky is already skipping zeros")
    assert "skipping zeros" in str(s)


def test_a_loop_that_skips_zeros_is_not_moved_out_of_the_sum():
    """Start values were skipped with it."""
    A, W, _, B = conv(5, 6, border=5)
    s = te.create_schedule(B.op)
    s[B].reorder(B.op.reduce_axis[0], *B.op.axis)
    s[B].skip_zeros(B.op.axis[1])
    refused(lambda: s[B].reorder(*B.op.axis, *B.op.reduce_axis), "on stage B: afterwards x, which skips zeros, is outside of "
            "the sum, which begins at loop ky", "keep x inside of ky")
    s[B].reorder(*B.op.reduce_axis, *B.op.axis)
    check_both(s, [A, W, B], {A: whole_numbers((5, 6, 3)), W: whole_numbers((3, 3, 3))})


def test_a_stage_that_is_computed_inside():
    A, W, P, B = conv(4, 5)
    s = te.create_schedule(B.op)
    s[P].compute_at(s[B], B.op.reduce_axis[1])
    s[B].skip_zeros(B.op.reduce_axis[0])
    with pytest.raises(LoweringError, match="B skips zeros at loop ky, and P is computed at loop kx inside of it") as error:
        tedsl.lower(s, [A, W, B])
    assert "skip_zeros" in str(error.value)
    s[P].compute_at(s[B], B.op.reduce_axis[0])
    check_both(s, [A, W, B], {A: whole_numbers((4, 5, 3)), W: whole_numbers((3, 3, 3))})


def test_intrinsics_that_would_lose_their_start_values():
    A, W, _, B = conv(4, 6, channels=16)
    s = te.create_schedule(B.op)
    s[B].skip_zeros(B.op.reduce_axis[0])
    s[B].tensorize(B.op.reduce_axis[2], dot(16, ("update",)))
    with pytest.raises(LoweringError, match="has no reduce_init, and the first iteration of ky"):
        tedsl.lower(s, [A, W, B])
    s = te.create_schedule(B.op)
    s[B].skip_zeros(B.op.reduce_axis[2])
    s[B].tensorize(B.op.reduce_axis[2], dot(16, ("reset", "update")))
    with pytest.raises(LoweringError, match="skips zeros at loop c, which an intrinsic replaces"):
        tedsl.lower(s, [A, W, B])
