"""Wrong uses of tensorize and of intrinsics: what the errors say."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tests.lower.intrinsics import gemv, matvec, vadd
from tests.refusing import refused


def refuses(s, args, *words):
    """The text with which lower refuses the schedule."""
    return str(refused(lambda: tedsl.lower(s, args), *words))


def total(n):
    """b[0] = the sum of a."""
    a = te.placeholder((n,), name="a")
    k = te.reduce_axis((0, n), name="k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="b")

    def body(ins, outs, first=True):
        ib = tir.ir_builder.create()
        x, y = ins[0], outs[0]
        if first:
            ib.emit(y.vstore([0], 0.0))
        with ib.for_range(0, n, "q") as q:
            ib.emit(y.vstore([0], y.vload([0]) + x.vload([q])))
        return ib.get()

    def reset(outs):
        return outs[0].vstore([0], 0.0)

    return te.decl_tensor_intrin(b.op, lambda ins, outs: (body(ins, outs), reset(outs), body(ins, outs, False)),
                                 default_buffer_params={"offset_factor": 1})


def elementwise(n=64, m=16, dtype="float32"):
    A, B = te.placeholder((n, m), dtype, name="A"), te.placeholder((n, m), dtype, name="B")
    C = te.compute((n, m), lambda i, j: A[i, j] + B[i, j], name="C")
    return te.create_schedule(C.op), A, B, C


# --- what the loops compute ------------------------------------------------------------------------------------------

def test_another_formula_shows_both_and_where_they_differ():
    A, B = te.placeholder((64, 16), name="A"), te.placeholder((64, 16), name="B")
    C = te.compute((64, 16), lambda i, j: A[i, j] + B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], vadd(16))
    refuses(s, [A, B, C], "the intrinsic vadd at loop j of C: its formula is not what the loops compute",
            "intrinsic  z[i'] = x[i'] + y[i']", "loops      z[i'] = A[i, i'] + B[i, i']*2.0",
            "operator differs:\n    intrinsic  y[i']\n    loops      B[i, i']*2.0",
            "from: s[C].tensorize(s[C].op.axis[1], vadd)", "hint: declare the intrinsic with the formula")


def test_another_dtype_inside_is_named():
    x = te.placeholder((16,), "int8", name="x")
    z = te.compute((16,), lambda i: x[i].astype("int32"), name="z")
    widen = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "f", ins[0].data), name="widen")
    A = te.placeholder((4, 16), "uint8", name="A")
    C = te.compute((4, 16), lambda i, j: A[i, j].astype("int32"), name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], widen)
    refuses(s, [A, C], "dtype differs", "intrinsic  x[i'] is int8", "loops      A[i, i'] is uint8")


def test_another_shape_is_named_with_the_loops():
    s, A, B, C = elementwise()
    s[C].tensorize(C.op.axis[1], vadd(8))
    refuses(s, [A, B, C], "shape of the output: the intrinsic has (8,), the loops cover (1, 16) (i: 1, j: 16)",
            "hint: split the loops by the sizes of the intrinsic")


def test_another_reduction_is_named():
    A, B, C = matvec(64, 48)
    s = te.create_schedule(C.op)
    _, yi = s[C].split(C.op.axis[0], 16)
    s[C].tensorize(yi, gemv(16, 32))
    refuses(s, [A, B, C], "extents of the reduction: the intrinsic has (32,), the loops cover (48,) (k: 48)")


def test_another_combiner_is_shown():
    A = te.placeholder((64, 16), name="A")
    k, q = te.reduce_axis((0, 16), name="k"), te.reduce_axis((0, 16), name="q")
    C = te.compute((64,), lambda i: te.max(A[i, k], axis=k), name="C")
    x = te.placeholder((16,), name="x")
    z = te.compute((1,), lambda i: te.sum(x[q], axis=q), name="z")
    total = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "f", ins[0].data), name="total")
    s = te.create_schedule(C.op)
    s[C].tensorize(k, total)
    refuses(s, [A, C], "combiner differs", "z[0] = sum(x[q] over q)", "z[0] = max(A[i, q] over q)")


@pytest.mark.parametrize("ours, theirs, words", [
    ({}, {"init": 1.0}, ("z[0] = sum(x[k] over k)\n", "z[0] = sum(A[i, k] over k, from 1.0)", "start value differs",
                         "intrinsic  that of the combiner\n    loops      1.0")),
    ({"init": 2.0}, {}, ("z[0] = sum(x[k] over k, from 2.0)", "intrinsic  2.0\n    loops      that of the combiner")),
    ({"init": 2.0}, {"init": 1.0}, ("over k, from 2.0)", "over k, from 1.0)", "constant differs:\n    intrinsic  2.0")),
])
def test_other_start_values_are_shown(ours, theirs, words):
    x, A = te.placeholder((4,), name="x"), te.placeholder((8, 4), name="A")
    k, q = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 4), name="q")
    z = te.compute((1,), lambda i: te.sum(x[k], axis=k, **ours), name="z")
    total = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "f", ins[0].data), name="total")
    C = te.compute((8,), lambda i: te.sum(A[i, q], axis=q, **theirs), name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(q, total)
    refuses(s, [A, C], *words)


def test_an_input_that_would_be_two_tensors():
    x = te.placeholder((16,), name="x")
    z = te.compute((16,), lambda i: x[i] * x[i], name="z")
    square = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "f", ins[0].data), name="square")
    A, B = te.placeholder((4, 16), name="A"), te.placeholder((4, 16), name="B")
    C = te.compute((4, 16), lambda i, j: A[i, j] * B[i, j], name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], square)
    refuses(s, [A, B, C], "input x differs", "always the same tensor", "A and B")


@pytest.mark.parametrize("twice", [lambda q: (q, q + 1.0), lambda q: (te.const(0.0), te.const(-0.0)),
                                   lambda q: (tir.call_extern("float32", "rand"), tir.call_extern("float32", "rand"))])
def test_a_scalar_parameter_of_two_values(twice):
    v, q = te.var("v", "float32"), te.var("q", "float32")
    x = te.placeholder((4,), name="x")
    z = te.compute((4,), lambda i: (x[i] * v) / v, name="z")
    scale = te.decl_tensor_intrin(z.op, lambda ins, outs, given: tir.call_extern("int32", "f", given[0]), scalar_params=[v],
                                  name="scale")
    A = te.placeholder((8, 4), name="A")
    first, second = twice(q)
    C = te.compute((8, 4), lambda i, j: (A[i, j] * first) / second, name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], scale)
    refuses(s, [A, q, C], "scalar parameter v differs")


def test_an_input_read_across():
    A = te.placeholder((16, 16), name="A")
    C = te.compute((16, 16), lambda i, j: A[j, j] + A[i, j], name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], vadd(16))
    refuses(s, [A, C], "indices differs", "intrinsic  x[i']", "loops      A[i', i']")


def test_a_formula_that_reads_a_part_of_its_input():
    x = te.placeholder((32,), name="x")
    z = te.compute((16,), lambda i: x[i], name="z")
    half = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "f", ins[0].data), name="half")
    A = te.placeholder((4, 16), name="A")
    C = te.compute((4, 16), lambda i, j: A[i, j], name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], half)
    refuses(s, [A, C], "reads only a part of its input x [32], in dimension 0: x[i']",
            "hint: declare the placeholder as large")


def test_a_formula_that_reads_more_than_its_input():
    x = te.placeholder((4,), name="x")
    z = te.compute((4,), lambda i: x[i] * x[i + 1], name="z")
    pairs = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "f", ins[0].data), name="pairs")
    A = te.placeholder((9,), name="A")
    C = te.compute((8,), lambda i: A[i] * A[i + 1], name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(s[C].split(C.op.axis[0], 4)[1], pairs)
    refuses(s, [A, C], "reads more than its input x [4], in dimension 0: x[i], x[i + 1]")


def test_a_formula_that_reads_neither_end_of_its_input():
    x = te.placeholder((8,), name="x")
    z = te.compute((4,), lambda i: x[i + 1] * x[i + 2], name="z")
    pairs = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "f", ins[0].data), name="pairs")
    A = te.placeholder((12,), name="A")
    C = te.compute((8,), lambda i: A[i + 1] * A[i + 2], name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(s[C].split(C.op.axis[0], 4)[1], pairs)
    refuses(s, [A, C], "reads only a part of its input x [8], in dimension 0: x[i + 1], x[i + 2]")


def test_an_axis_of_one_element_is_no_axis_of_several():
    """The intrinsic knows one element of y; the loops go through four."""
    x, y = te.placeholder((4,), name="x"), te.placeholder((1,), name="y")
    z = te.compute((1, 4), lambda i, j: x[j] * y[i], name="z")
    scale = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "f", ins[0].data), name="scale")
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    for second, words in ((lambda i, j: B[j], ("indices differs", "y[0]", "B[j']")),
                          (lambda i, j: i.astype("float32"), ("operator differs", "y[0]", "float32(i)"))):
        C = te.compute((8, 4), lambda i, j, second=second: A[j] * second(i, j), name="C")
        s = te.create_schedule(C.op)
        s[C].tensorize(C.op.axis[1], scale)
        refuses(s, [A, B, C], *words)
    C = te.compute((8, 4), lambda i, j: A[j] * B[i // 2], name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[0], scale)
    refuses(s, [A, B, C], "shape of the output: the intrinsic has (1, 4), the loops cover (8, 4)")


def test_an_axis_of_one_element_has_its_own_value():
    """The intrinsic multiplies by 0, the loops by i."""
    x = te.placeholder((4,), name="x")
    k = te.reduce_axis((0, 4), name="k")
    z = te.compute((1,), lambda i: te.sum(x[k] * i.astype("float32"), axis=k), name="z")
    nothing = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "f", ins[0].data), name="nothing")
    A, q = te.placeholder((8, 4), name="A"), te.reduce_axis((0, 4), name="q")
    C = te.compute((8,), lambda i: te.sum(A[i, q] * i.astype("float32"), axis=q), name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(q, nothing)
    refuses(s, [A, C], "its formula is not what the loops compute")


# --- the loops -------------------------------------------------------------------------------------------------------

def test_extents_that_do_not_divide():
    A, B, C = matvec(50, 48)
    s = te.create_schedule(C.op)
    _, yi = s[C].split(C.op.axis[0], 16)
    s[C].tensorize(yi, gemv(16, 48))
    refuses(s, [A, B, C], "always computes its whole region", "leaves out iterations of loop i.inner inside it",
            "hint: split by a factor that divides the extent, or pad")


def test_a_region_with_holes():
    s, A, B, C = elementwise()
    jo, ji = s[C].split(C.op.axis[1], 4)
    s[C].reorder(ji, jo)
    s[C].tensorize(jo, vadd(4))
    refuses(s, [A, B, C], "run through 4 elements, scattered over a region of 13",
            "hint: an intrinsic takes neighbouring elements: the inner part of a split goes inside")


def test_a_loop_inside_that_is_annotated_later():
    s, A, B, C = elementwise()
    jo, ji = s[C].split(C.op.axis[1], 4)
    s[C].tensorize(jo, vadd(16))
    s[C].vectorize(ji)
    refuses(s, [A, B, C], "loop j.inner of C is vectorized, and an intrinsic at loop j.outer replaces it",
            "s[C].vectorize(j_inner)")


@pytest.mark.parametrize("chosen", [False, True])
def test_a_reduction_across_threads_around_it(chosen):
    """A store predicate made the threads look like one: it guards the update, and the start values stood outside of them."""
    A = te.placeholder((8, 4), name="A")
    k, l = te.reduce_axis((0, 8), name="k"), te.reduce_axis((0, 4), name="l")
    B = te.compute((1,), lambda i: te.sum(A[k, l], axis=[k, l]), name="B")
    s = te.create_schedule(B.op)
    thread = te.thread_axis("threadIdx.x")
    s[B].tensorize(l, total(4))
    s[B].bind(k, thread)
    if chosen:
        s[B].set_store_predicate(thread.var.equal(0))
    refuses(s, [A, B], "its reduction loop k, which is bound to threadIdx.x: an intrinsic updates memory",
            "from: s[B].bind", "s.rfactor(B, k)")
    s = te.create_schedule(B.op)
    parts = s.rfactor(B, k)
    s[parts].bind(s[parts].op.axis[0], te.thread_axis("threadIdx.x"))
    s[parts].tensorize(s[parts].op.reduce_axis[0], total(4))
    a, b = np.arange(32, dtype="float32").reshape(8, 4), np.zeros(1, "float32")
    tedsl.build(s, [A, B])(a, b)
    assert b[0] == a.sum()


def test_one_thread_around_it_and_a_predicate():
    """The start values stood outside of the thread that the predicate names."""
    A = te.placeholder((1, 4), name="A")
    k, l = te.reduce_axis((0, 1), name="k"), te.reduce_axis((0, 4), name="l")
    B = te.compute((1,), lambda i: te.sum(A[k, l], axis=[k, l]), name="B")
    s = te.create_schedule(B.op)
    thread = te.thread_axis("threadIdx.x")
    s[B].tensorize(l, total(4))
    s[B].bind(k, thread)
    s[B].set_store_predicate(thread.var.equal(0))
    a, b = np.arange(4, dtype="float32").reshape(1, 4), np.zeros(1, "float32")
    tedsl.build(s, [A, B])(a, b)
    assert b[0] == a.sum()


def test_a_stage_computed_inside():
    A, B = te.placeholder((64, 16), name="A"), te.placeholder((64, 16), name="B")
    D = te.compute((64, 16), lambda i, j: A[i, j] * 2.0, name="D")
    C = te.compute((64, 16), lambda i, j: D[i, j] + B[i, j], name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], vadd(16))
    s[D].compute_at(s[C], C.op.axis[1])
    refuses(s, [A, B, C], "D is computed at loop j of C, inside what the intrinsic at loop j replaces")


def test_a_part_that_the_intrinsic_does_not_have():
    A, B, C = matvec(64, 48)
    s = te.create_schedule(C.op)
    _, yi = s[C].split(C.op.axis[0], 16)
    s[C].tensorize(yi, gemv(16, 48, parts="reset update"))
    refuses(s, [A, B, C], "gemv in C has no body: the whole reduction is inside")
    s = te.create_schedule(C.op)
    yo, yi = s[C].split(C.op.axis[0], 16)
    ko, ki = s[C].split(s[C].op.reduce_axis[0], 16)
    s[C].reorder(yo, ko, yi, ki)
    s[C].tensorize(yi, gemv(16, 16, parts="body reset"))
    refuses(s, [A, B, C], "gemv in C has no reduce_update: a loop of the reduction is outside",
            "hint: return (body, reduce_init, reduce_update)")


def test_a_reduction_that_may_be_empty_needs_start_values():
    m = te.var("m")
    A, B, C = matvec(64, m * 16)
    s = te.create_schedule(C.op)
    yo, yi = s[C].split(C.op.axis[0], 16)
    ko, ki = s[C].split(s[C].op.reduce_axis[0], 16)
    s[C].reorder(yo, ko, yi, ki)
    s[C].tensorize(yi, gemv(16, 16, parts="body update"))
    refuses(s, [A, B, C], "has no reduce_init, and loop k.outer of the reduction may have no iteration")


# --- buffers ---------------------------------------------------------------------------------------------------------

def test_a_compact_buffer_for_rows_that_stand_apart():
    x = te.placeholder((4, 4), name="x")
    z = te.compute((4, 4), lambda i, j: x[i, j], name="z")
    copy = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "f", ins[0].access_ptr("r")),
                                 default_buffer_params={"offset_factor": 1})
    A = te.placeholder((16, 16), name="A")
    C = te.compute((16, 16), lambda i, j: A[i, j], name="C")
    s = te.create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(C.op.axis[0], C.op.axis[1], 4, 4)
    s[C].tensorize(ii, copy)
    refuses(s, [A, C], "of an intrinsic stands for a region of", "and is compact (it has no strides), and the region is not: "
            "its rows of 4 elements stand 16 apart", "hint: declare strides: binds={tensor: tir.decl_buffer(")


def test_a_buffer_without_offset():
    s, A, B, C = elementwise()
    x, y = te.placeholder((16,), name="x"), te.placeholder((16,), name="y")
    z = te.compute((16,), lambda i: x[i] + y[i], name="z")
    add = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "f", ins[0].access_ptr("r")))
    s[C].tensorize(C.op.axis[1], add)
    refuses(s, [A, B, C], "is declared to begin at element 0, and the region begins at",
            "hint: declare it with offset_factor=1")


def test_an_offset_that_the_factor_does_not_divide():
    A, B = te.placeholder((65,), name="A"), te.placeholder((65,), name="B")
    C = te.compute((64,), lambda i: A[i + 1] + B[i + 1], name="C")
    s = te.create_schedule(C.op)
    _, ii = s[C].split(C.op.axis[0], 16)
    s[C].tensorize(ii, vadd(16, offset_factor=16))
    refuses(s, [A, B, C], "its offset_factor is 16, and the region begins at", "1 beyond a multiple of it")


def test_a_stride_of_another_number():
    A, B, C = matvec(64, 48)
    w, x = te.placeholder((16, 48), name="w"), te.placeholder((48,), name="x")
    k = te.reduce_axis((0, 48), name="k")
    z = te.compute((16,), lambda i: te.sum(w[i, k] * x[k], axis=k), name="z")
    W = tir.decl_buffer(w.shape, w.dtype, name="W", strides=[64, 1], offset_factor=1)
    intrin = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "f", ins[0].access_ptr("r")), binds={w: W},
                                   default_buffer_params={"offset_factor": 1})
    s = te.create_schedule(C.op)
    _, yi = s[C].split(C.op.axis[0], 16)
    s[C].tensorize(yi, intrin)
    refuses(s, [A, B, C], "stride 0 is declared as 64, and the memory has 48", "hint: declare it as a te.var")


def test_start_values_that_read_an_input():
    A, B, C = matvec(64, 48)
    good = gemv(16, 16)
    bad = te.decl_tensor_intrin(good.op, lambda ins, outs: (None, tir.call_extern("int32", "f", ins[0].access_ptr("r")),
                                                            tir.call_extern("int32", "g", ins[0].access_ptr("r"))), name="bad",
                                default_buffer_params={"offset_factor": 1})
    s = te.create_schedule(C.op)
    yo, yi = s[C].split(C.op.axis[0], 16)
    ko, ki = s[C].split(s[C].op.reduce_axis[0], 16)
    s[C].reorder(yo, ko, yi, ki)
    s[C].tensorize(yi, bad)
    refuses(s, [A, B, C], "the reduce_init of the intrinsic bad reads its input w")


# --- directives and declarations -------------------------------------------------------------------------------------

def says(words, function):
    with pytest.raises(tedsl.TedslError) as caught:
        function()
    assert words in str(caught.value), caught.value


def test_the_directive_refuses_what_it_sees():
    s, A, B, C = elementwise()
    before = str(s)
    i, j = C.op.axis
    says("the second argument is an intrinsic, got the int 16", lambda: s[C].tensorize(j, 16))
    says("the intrinsic computes float64, C is float32", lambda: s[C].tensorize(j, vadd(16, "float64")))
    says("the formula of the intrinsic is a reduction, that of C is not a reduction", lambda: s[C].tensorize(j, gemv(16, 16)))
    says("A is a placeholder", lambda: s[A].tensorize(j, vadd(16)))
    assert str(s) == before
    s[C].vectorize(j)
    says("loop j, inside i, is vectorized: the intrinsic replaces it", lambda: s[C].tensorize(i, vadd(16)))
    says("j is already vectorized", lambda: s[C].tensorize(j, vadd(16)))
    t, *_, D = elementwise()
    t[D].tensorize(D.op.axis[1], vadd(16))
    says("loop j is tensorized already", lambda: t[D].tensorize(D.op.axis[0], vadd(16)))
    says("j is already tensorized", lambda: t[D].split(D.op.axis[1], 4))


def test_declarations_that_are_wrong():
    x = te.placeholder((4,), name="x")
    z = te.compute((4,), lambda i: x[i] + 1.0, name="z")
    y = te.compute((4,), lambda i: z[i] + 1.0, name="y")
    f = lambda ins, outs: tir.call_extern("int32", "f", ins[0].data)
    says("z is a tensor, not an operation\n  hint: write z.op", lambda: te.decl_tensor_intrin(z, f))
    says("the formula reads z, which is computed itself", lambda: te.decl_tensor_intrin(y.op, f))
    says("x is a PlaceholderOp; the formula of an intrinsic is a te.compute", lambda: te.decl_tensor_intrin(x.op, f))
    says("the function returned nothing", lambda: te.decl_tensor_intrin(z.op, lambda ins, outs: None))
    says("which is neither a statement nor a call", lambda: te.decl_tensor_intrin(z.op, lambda ins, outs: "gemv"))
    says("the function returned 4 values", lambda: te.decl_tensor_intrin(z.op, lambda ins, outs: (f(ins, outs),) * 4))
    says("the buffer b of float64", lambda: te.decl_tensor_intrin(z.op, f, binds={x: tir.decl_buffer((4,), "float64", "b")}))
    says("the buffer b of 2", lambda: te.decl_tensor_intrin(z.op, f, binds={x: tir.decl_buffer((4, 1), "float32", "b")}))
    says("dimension 0 is 5, not 4", lambda: te.decl_tensor_intrin(z.op, f, binds={x: tir.decl_buffer((5,), "float32", "b")}))
    says("binds is a dict of tensors", lambda: te.decl_tensor_intrin(z.op, f, binds=5))
    says("scalar_params is a list of variables", lambda: te.decl_tensor_intrin(z.op, f, scalar_params=5))
    says("intrin 5: the name is a str", lambda: te.decl_tensor_intrin(z.op, f, name=5))
    says("called with 2 arguments, and it does not take them", lambda: te.decl_tensor_intrin(z.op, lambda ins: None))
    says("binds names y, which is neither", lambda: te.decl_tensor_intrin(z.op, f, binds={y: tir.decl_buffer((4,))}))
    says("default_buffer_params", lambda: te.decl_tensor_intrin(z.op, f, default_buffer_params={"offset": 1}))
    buffer = tir.decl_buffer((4,), "float32", "b")
    says('the access mask is \'x\'\n  hint: write "r", "w" or "rw"', lambda: buffer.access_ptr("x"))
    says("vload of float64 from buffer b of float32", lambda: buffer.vload([0], "float64"))
    says("buffer b has 1 dimensions, 2 indices are given", lambda: buffer.vload([0, 0]))


def test_calls_that_are_wrong():
    A = te.placeholder((8, 16), name="A")
    add, matrix = vadd(16), gemv(16, 8)
    k = te.reduce_axis((0, 4), name="k")
    says("it has 2 inputs (x, y), and 1 regions are given", lambda: te.compute((8, 16), lambda i: add(A[i, 0:16])))
    says("it has 0 scalar parameters (none), and 1 are given",
         lambda: te.compute((8, 16), lambda i: add(i, A[i, 0:16], A[i, 0:16])))
    says("input 0 of the intrinsic vadd (x) has the shape (16,), the region A[i, 0:8] the shape (1, 8)",
         lambda: te.compute((8, 16), lambda i: add(A[i, 0:8], A[i, 0:16])))
    says("is float32, B is int8", lambda: te.compute((8, 16), lambda i: add(te.placeholder((8, 16), "int8", "B")[i, 0:16],
                                                                            A[i, 0:16])))
    says("the output of the intrinsic vadd has the shape (16,); beside the 1 dimensions with an index there are (8,)",
         lambda: te.compute((8, 8), lambda i: add(A[i, 0:16], A[i, 0:16])))
    says("and the formula of the intrinsic vadd is not a reduction",
         lambda: te.compute((8, 16), lambda i: add(A[i, 0:16], A[i, 0:16], reduce_axis=k)))
    says("reduce_axis is 4", lambda: matrix(A[0:16, 0:8], A[0, 0:8], reduce_axis=4))
    says("the shape has 2 dimensions and the function takes 1 index (i)", lambda: te.compute((8, 16), lambda i: A[i, 0] + 1))
    C = te.compute((8, 16), lambda i: add(A[i, 0:16], A[i, 0:16]), name="C")
    D = te.compute((8, 16), lambda i, j: C[i, j] + 1, name="D")
    s = te.create_schedule(D.op)
    says("C is computed by calls of an intrinsic", s[C].compute_inline)
    says("C is computed by calls of an intrinsic already", lambda: s[C].tensorize(C.op.axis[0], add))
