"""Checked mode looks into the bodies of tensor intrinsics: what the user wrote there is what runs."""

import shutil

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import AccessError
from tests.lower.intrinsics import gemv, matvec, numbers


def doubling(body, size=4):
    """b = 2 a for `size` elements, by what `body(ib, ins[0], outs[0])` writes."""
    a = te.placeholder((size,), name="a")
    b = te.compute((size,), lambda i: a[i] * 2.0, name="b")

    def function(ins, outs):
        ib = tir.ir_builder.create()
        body(ib, ins[0], outs[0])
        return ib.get()

    return te.decl_tensor_intrin(b.op, function, default_buffer_params={"offset_factor": 1}, name="dbl")


def through_stores(low=0, high=4, read=0, write=0):
    def body(ib, a, b):
        with ib.for_range(0, high - low, "j") as j:
            ib.emit(b.vstore([j + low + write], a.vload([j + low + read], "float32") * 2.0))
    return body


def through_pointers(low=0, high=4, read=0, write=0):
    def body(ib, a, b):
        x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
        with ib.for_range(0, high - low, "j") as j:
            y[j + low + write] = x[j + low + read] * 2.0
    return body


def vectors(low=0, high=4, read=0, write=0):
    def body(ib, a, b):
        lanes = f"float32x{high - low}"
        ib.emit(b.vstore([low + write], a.vload([low + read], lanes) * tir.const(2.0, lanes)))
    return body


def run(body, parallel=False, size=4):
    """The result of 16 elements in checked mode."""
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] * 2.0, name="B")  # the line of the stage
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], size)
    s[B].tensorize(inner, doubling(body, size))
    if parallel:
        s[B].parallel(outer)
    a, memory = numbers(16), np.zeros(64, "float32")
    try:
        tedsl.build(s, [A, B], checked=True)(a, memory[:16])
    finally:
        assert not memory[16:].any()
    np.testing.assert_array_equal(memory[:16], a * 2)


HOW = pytest.mark.parametrize("how", [through_stores, through_pointers, vectors])
WHERE = pytest.mark.parametrize("parallel", [False, True])


@HOW
@WHERE
def test_a_right_body_passes(how, parallel):
    run(how(), parallel)


@HOW
@WHERE
@pytest.mark.parametrize("fault, words", [
    ({"write": 1}, r"stores B\[4\], outside of the region that the intrinsic dbl gets as b: "
                   r"index 4 of dimension 0 of b is not in \[0, 4\)"),
    ({"write": 1000}, r"stores B\[100.\], outside of the region that the intrinsic dbl gets as b: index 100. of dimension 0"),
    ({"write": -1}, r"stores B\[-1\], outside of the region that the intrinsic dbl gets as b: index -1 "),
    ({"read": 1}, r"reads A\[4\], outside of the region that the intrinsic dbl gets as a: index 4 "),
    ({"high": 5}, r"(reads A|stores B)\[4\], outside of the region that the intrinsic dbl gets"),
    ({"high": 3}, r"never writes B\[3\], which is in the region that the intrinsic dbl computes"),
    ({"low": 1}, r"never writes B\[0\], which is in the region that the intrinsic dbl computes"),
])
def test_a_body_that_leaves_its_region_or_part_of_it(how, parallel, fault, words):
    with pytest.raises(AccessError, match=words) as found:
        run(how(**fault), parallel)
    assert "\n  in stage B (" in str(found.value) and f"{__file__}:{line_of('# the line of the stage')}" in str(found.value)
    assert "\n  loops: i.outer = 0" in str(found.value)


def line_of(mark):
    with open(__file__) as source:
        return next(number for number, line in enumerate(source, 1) if mark in line)


def test_a_fault_of_a_later_tile_names_the_element_and_the_loops():
    """The tile at 8 writes the element behind it: it counts tiles where it should not."""
    def body(ib, a, b):
        x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
        with ib.for_range(0, 4, "j") as j:
            with ib.if_scope(tir.all(x[j] > 1.5, j == 3)):
                y[j + 1] = 1.0
            y[j] = x[j] * 2.0

    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    s[B].tensorize(s[B].split(B.op.axis[0], 4)[1], doubling(body))
    built, a = tedsl.build(s, [A, B], checked=True), numbers(16)
    built(a, np.zeros(16, "float32"))
    a[11] = 2.0
    with pytest.raises(AccessError, match=r"stores B\[12\], outside .*: index 4 of dimension 0") as found:
        built(a, np.zeros(16, "float32"))
    assert str(found.value).endswith("loops: i.outer = 2, j = 3")


def test_memory_and_loops_of_the_body_are_checked_too():
    def body(ib, a, b, most=4):
        x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
        t, at = ib.allocate("float32", (4,), name="t", scope="local"), ib.allocate("int32", (1,), name="at", scope="local")
        at[0] = 0
        with ib.while_loop(at[0] < most):
            t[at[0]] = x[at[0]]
            at[0] = at[0] + 1
        with ib.for_range(0, 4, "j") as j:
            y[j] = t[j] * 2.0

    run(body)
    with pytest.raises(AccessError, match=r"reads A\[4\], outside"):
        run(lambda ib, a, b: body(ib, a, b, 5))
    with pytest.raises(AccessError, match=r"reads t\[3\], to which nothing was written before"):
        run(lambda ib, a, b: body(ib, a, b, 3))


def test_an_input_that_nobody_wrote():
    """The body reads its output before it has a value."""
    def body(ib, a, b):
        x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
        with ib.for_range(0, 4, "j") as j:
            y[j] = y[j] + x[j] * 2.0

    with pytest.raises(AccessError, match=r"reads B\[0\], to which nothing was written before"):
        run(body)


@pytest.mark.parametrize("tag", [None, "blockIdx.x", "threadIdx.y", "vthread"])
def test_threads_of_the_body_fill_the_region_together(tag):
    """Inside of other threads, each of them had notes of its own: elements of the others counted as missing."""
    def body(ib, a, b):
        x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
        tx = te.thread_axis("threadIdx.x")
        ib.scope_attr(tx, "thread_extent", 4)
        y[tx] = x[tx] * 2.0

    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 4)
    if tag is not None:
        s[B].bind(outer, te.thread_axis(tag))
    s[B].tensorize(inner, doubling(body))
    a, b = numbers(16), np.zeros(16, "float32")
    tedsl.build(s, [A, B], checked=True)(a, b)
    np.testing.assert_array_equal(b, a * 2)


# --- rows that stand apart ---------------------------------------------------------------------------------------------

def tiles(function, strides, array=np.array):
    """C = 2 A by tiles of 4 x 4 of a 8 x 16 matrix; `function(ib, x, y, ldx, ldy)` writes a tile by positions."""
    x = te.placeholder((4, 4), name="x")
    y = te.compute((4, 4), lambda i, j: x[i, j] * 2.0, name="y")
    X, Y = (tir.decl_buffer((4, 4), "float32", name, strides=strides(name), offset_factor=1) for name in "XY")

    def fcompute(ins, outs):
        ib = tir.ir_builder.create()
        function(ib, ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]), *(b.strides for b in (*ins, *outs)))
        return ib.get()

    tile = te.decl_tensor_intrin(y.op, fcompute, binds={x: X, y: Y}, name="tile")
    A = te.placeholder((8, 16), name="A")
    C = te.compute((8, 16), lambda i, j: A[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    *_, ii, ji = s[C].tile(*C.op.axis, 4, 4)
    s[C].tensorize(ii, tile)
    a, c = array(numbers(8, 16)), array(np.zeros((8, 16), "float32"))
    binds = None if array is np.array else {
        t: tir.decl_buffer(t.shape, t.dtype, t.name, strides=[te.var("s"), te.var("t")]) for t in (A, C)}
    tedsl.build(s, [A, C], binds=binds, checked=True)(a, c)
    np.testing.assert_array_equal(c, a * 2)


def every(ib, x, y, sx, sy, wide=4, row=0, first=0):
    with ib.for_range(0, 4, "i") as i, ib.for_range(first, wide, "j") as j:
        y[(i + row) * sy[0] + j * sy[1]] = x[i * sx[0] + j * sx[1]] * 2.0


ROWS = [lambda name: [te.var(f"ld{name}"), 1], lambda name: [te.var(f"s{name}"), te.var(f"t{name}")]]


@pytest.mark.parametrize("strides", ROWS)
def test_positions_in_rows_that_stand_apart(strides):
    tiles(every, strides)
    with pytest.raises(AccessError, match=r"reads A\[0, 4\], outside .* index 4 of dimension 1 of X is not in"):
        tiles(lambda *args: every(*args, wide=5), strides)
    with pytest.raises(AccessError, match=r"stores C\[4, 0\], outside .* index 4 of dimension 0 of Y is not in"):
        tiles(lambda *args: every(*args, row=1), strides)
    with pytest.raises(AccessError, match=r"never writes C\[0, 3\], which is in the region"):
        tiles(lambda *args: every(*args, wide=3), strides)
    with pytest.raises(AccessError, match=r"never writes C\[0, 0\], which is in the region"):
        tiles(lambda *args: every(*args, first=1), strides)


def test_a_vector_goes_on_in_the_next_row():
    """As TVM's intrinsics load tiles: the whole tile is one vector, from its first element on."""
    def run_with(lanes, first):
        a = te.placeholder((4, 4), name="a")
        b = te.compute((4, 4), lambda i, j: a[i, j] * 2.0, name="b")
        tile = te.decl_tensor_intrin(b.op, lambda ins, outs: outs[0].vstore(
            first, ins[0].vload(first, f"float32x{lanes}") * tir.const(2.0, f"float32x{lanes}")), name="tile",
            default_buffer_params={"offset_factor": 1})
        A = te.placeholder((8, 4), name="A")
        C = te.compute((8, 4), lambda i, j: A[i, j] * 2.0, name="C")
        s = te.create_schedule(C.op)
        s[C].tensorize(s[C].split(C.op.axis[0], 4)[1], tile)
        x, c = numbers(8, 4), np.zeros((8, 4), "float32")
        tedsl.build(s, [A, C], checked=True)(x, c)
        np.testing.assert_array_equal(c, x * 2)

    run_with(16, [0, 0])
    with pytest.raises(AccessError, match=r"reads A\[4, 0\], outside of the region .* gets as a: index 4 of dimension 0"):
        run_with(16, [0, 1])
    with pytest.raises(AccessError, match=r"never writes C\[3, 3\], which is in the region"):
        run_with(15, [0, 0])


@pytest.mark.parametrize("array", [np.asfortranarray, lambda a: np.array(a)[:, ::-1], lambda a: np.array(a)[::-1]])
def test_positions_that_do_not_tell_the_element(array):
    """Columns, and rows backwards: what is known is the formula."""
    tiles(every, ROWS[1], array)


# --- reductions ---------------------------------------------------------------------------------------------------------

def dot(reset_rows=4, skip=False):
    """z += w x in loops; with `skip`, an update leaves out rows to which it would add nothing."""
    m = n = 4
    w, x = te.placeholder((m, n), name="w"), te.placeholder((n,), name="x")
    k = te.reduce_axis((0, n), name="k")
    z = te.compute((m,), lambda i: te.sum(w[i, k] * x[k], axis=k), name="z")
    W = tir.decl_buffer(w.shape, w.dtype, name="W", offset_factor=1, strides=[te.var("ldw"), 1])

    def function(ins, outs):
        def loops(first, rows, update):
            ib = tir.ir_builder.create()
            out = ib.buffer_ptr(outs[0])
            with ib.for_range(0, rows, "r") as r:
                if first:
                    out[r] = 0.0
                if update:
                    with ib.for_range(0, n, "q") as q, ib.if_scope(tir.any(not skip, ins[1].vload([q]) != 0.0)):
                        out[r] = out[r] + ins[0].vload([r, q]) * ins[1].vload([q])
            return ib.get()
        return loops(True, m, True), loops(True, reset_rows, False), loops(False, m, True)

    return te.decl_tensor_intrin(z.op, function, name="dot", binds={w: W}, default_buffer_params={"offset_factor": 1})


def run_dot(intrin, b):
    A, B, C = matvec(8, 16)
    s = te.create_schedule(C.op)
    yo, yi = s[C].split(C.op.axis[0], 4)
    ko, ki = s[C].split(s[C].op.reduce_axis[0], 4)
    s[C].reorder(yo, ko, yi, ki)
    s[C].tensorize(yi, intrin)
    a, c = numbers(8, 16), np.zeros(8, "float32")
    tedsl.build(s, [A, B, C], checked=True)(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_start_values_are_written_everywhere_and_an_update_may_add_nothing():
    run_dot(dot(), numbers(16))
    run_dot(dot(skip=True), np.where(np.arange(16) % 3, numbers(16), 0).astype("float32"))
    with pytest.raises(AccessError, match=r"never writes C\[3\], which is in the region that the intrinsic dot"):
        run_dot(dot(reset_rows=3), numbers(16))


# --- what cannot be seen --------------------------------------------------------------------------------------------------

@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the PATH")
def test_what_other_code_does_counts_as_its_formula():
    """A call writes the output; the check of the copy behind it knows that."""
    A, B, C = matvec(8, 16)
    D = te.compute((8,), lambda i: C[i] + 1.0, name="D")
    s = te.create_schedule(D.op)
    yo, yi = s[C].split(C.op.axis[0], 4)
    s[C].tensorize(yi, gemv(4, 16))
    s[C].pragma(yo, "import_c", "int gemv(float *z, float *w, float *x, int m, int n, int ld) {"
                "for (int i = 0; i < m; ++i) { z[i] = 0; for (int k = 0; k < n; ++k) z[i] += w[i * ld + k] * x[k]; } "
                "return 0; }")
    a, b, d = numbers(8, 16), numbers(16), np.zeros(8, "float32")
    tedsl.build(s, [A, B, D], checked=True)(a, b, d)
    np.testing.assert_allclose(d, a @ b + 1, rtol=1e-5)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the PATH")
def test_stores_beside_a_call_are_checked():
    """The input goes to C, the output is stored to in loops: these are seen."""
    def body(ib, a, b, shift=0):
        y = ib.buffer_ptr(b)
        with ib.for_range(0, 4, "j") as j:
            y[j + shift] = tir.call_extern("float32", "fetch", a.access_ptr("r"), j) * 2.0

    def run_with(shift):
        A = te.placeholder((16,), name="A")
        B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
        s = te.create_schedule(B.op)
        outer, inner = s[B].split(B.op.axis[0], 4)
        s[B].tensorize(inner, doubling(lambda ib, a, b: body(ib, a, b, shift)))
        s[B].pragma(outer, "import_c", "float fetch(const float *x, int j) { return x[j]; }")
        a, b = numbers(16), np.zeros(16, "float32")
        tedsl.build(s, [A, B], checked=True)(a, b)
        np.testing.assert_array_equal(b, a * 2)

    run_with(0)
    with pytest.raises(AccessError, match=r"stores B\[4\], outside of the region that the intrinsic dbl gets as b"):
        run_with(1)
