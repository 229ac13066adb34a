"""tensorize: where the parts of an intrinsic stand, what its buffers are there, and the same result as without it."""

import shutil

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tests.lower.intrinsics import GEMV_C, check, gemv, matvec, numbers, vadd

NEEDS_C = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the PATH")


def body_of(s, args):
    """The loops on one line, with short names for pointers and calls."""
    text = " ".join(str(tedsl.lower(s, args, simple_mode=True)).split())
    for long, short in (("@tir.type_annotation(, dtype=float32)", "f32"), (", dtype=handle", ""), (", dtype=int32", ""),
                        ("@tir.tvm_access_ptr", "ptr"), ("@tir.call_extern", "call")):
        text = text.replace(long, short)
    return text


def tiled(n=64, m=48, rows=16, depth=None, **options):
    A, B, C = matvec(n, m)
    s = te.create_schedule(C.op)
    yo, yi = s[C].split(C.op.axis[0], rows)
    if depth is not None:
        ko, ki = s[C].split(s[C].op.reduce_axis[0], depth)
        s[C].reorder(yo, ko, yi, ki)
    s[C].tensorize(yi, gemv(rows, depth or m, **options))
    s[C].pragma(yo, "import_c", GEMV_C)
    return s, [A, B, C]


def test_the_whole_reduction_inside_takes_the_body():
    A, B, C = matvec(64, 48)
    s = te.create_schedule(C.op)
    yo, yi = s[C].split(C.op.axis[0], 16)
    s[C].tensorize(yi, gemv(16, 48))
    assert ('for (i.outer: int32, 0, 4) { call("gemv", ptr(f32, C_2, (i.outer*16), 16, 3), '
            'ptr(f32, A_2, (i.outer*768), 768, 1), ptr(f32, B_2, 0, 48, 1), 16, 48, 48) }') in body_of(s, [A, B, C])


def test_a_loop_of_the_reduction_outside_takes_reset_and_update():
    A, B, C = matvec(64, 48)
    s = te.create_schedule(C.op)
    yo, yi = s[C].split(C.op.axis[0], 16)
    ko, ki = s[C].split(s[C].op.reduce_axis[0], 24)
    s[C].reorder(yo, ko, yi, ki)
    s[C].tensorize(yi, gemv(16, 24))
    text = body_of(s, [A, B, C])
    assert ('for (i.outer: int32, 0, 4) { call("fill", ptr(f32, C_2, (i.outer*16), 16, 2), 16) for (k.outer: int32, 0, 2) { '
            'call("gemv_add", ptr(f32, C_2, (i.outer*16), 16, 3), ptr(f32, A_2, ((i.outer*768) + (k.outer*24)), 768, 1), '
            'ptr(f32, B_2, (k.outer*24), 24, 1), 16, 24, 48) } }') in text


def test_without_reset_the_body_does_the_first_update():
    s, args = tiled(depth=24, parts="body update")
    text = body_of(s, args)
    assert 'if (k.outer == 0) { call("gemv", ' in text
    assert '} else { call("gemv_add", ' in text


@NEEDS_C
@pytest.mark.parametrize("parts", ["body reset update", "body update", "reset update"])
@pytest.mark.parametrize("depth", [None, 16, 48])
def test_gemv_gives_what_numpy_gives(parts, depth):
    if depth is None and "body" not in parts:
        parts = "body"
    s, args = tiled(depth=depth, parts=parts)
    a, b = numbers(64, 48), numbers(48)
    check(s, args, [a, b, np.zeros(64, "float32")], a @ b)


@NEEDS_C
def test_data_loops_between_the_reduction_and_the_region_are_copied_for_the_reset():
    A, B, C = matvec(64, 48)
    s = te.create_schedule(C.op)
    yo, yi = s[C].split(C.op.axis[0], 8)
    ko, ki = s[C].split(s[C].op.reduce_axis[0], 16)
    s[C].reorder(ko, yo, yi, ki)
    s[C].tensorize(yi, gemv(8, 16))
    s[C].pragma(ko, "import_c", GEMV_C)
    text = body_of(s, [A, B, C])
    assert 'for (i.outer.init: int32, 0, 8) { call("fill", ptr(f32, C_2, (i.outer.init*8), 8, 2), 8) }' in text
    a, b = numbers(64, 48), numbers(48)
    check(s, [A, B, C], [a, b, np.zeros(64, "float32")], a @ b)


@NEEDS_C
def test_symbolic_shapes_and_strides():
    n, m = te.var("n"), te.var("m")
    A, B, C = matvec(n * 16, m)
    s = te.create_schedule(C.op)
    yo, yi = s[C].split(C.op.axis[0], 16)
    s[C].tensorize(yi, gemv(16, m))
    s[C].pragma(yo, "import_c", GEMV_C)
    built = tedsl.build(s, [A, B, C], "llvm")
    for a in (numbers(32, 5), numbers(16, 1), numbers(64, 9)[::2, :7]):  # the last: rows further apart
        x, c = numbers(a.shape[1]), np.zeros(a.shape[0], "float32")
        built(a, x, c)
        np.testing.assert_allclose(c, a @ x, rtol=1e-5)
    with pytest.raises(tedsl.TedslError, match="the strides of the array A do not fit the buffer W of an intrinsic"):
        built(np.asfortranarray(numbers(32, 5)), numbers(5), np.zeros(32, "float32"))


@NEEDS_C
def test_a_symbol_of_the_intrinsic_takes_the_value_of_the_region():
    m = te.var("m")
    A, B, C = matvec(64, 48)
    s = te.create_schedule(C.op)
    yo, yi = s[C].split(C.op.axis[0], 16)
    s[C].tensorize(yi, gemv(16, m))
    s[C].pragma(yo, "import_c", GEMV_C)
    assert "16, 48, 48)" in body_of(s, [A, B, C])
    a, b = numbers(64, 48), numbers(48)
    check(s, [A, B, C], [a, b, np.zeros(64, "float32")], a @ b)


def elementwise(n=64, swapped=False):
    A, B = te.placeholder((n, 16), name="A"), te.placeholder((n, 16), name="B")
    C = te.compute((n, 16), lambda i, j: B[i, j] + A[i, j] if swapped else A[i, j] + B[i, j], name="C")
    return A, B, C


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("how", ["plain", "split", "parallel", "vectorize", "unroll", "fuse"])
def test_loops_outside_may_be_anything(how, swapped):
    A, B, C = elementwise(swapped=swapped)
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    if how == "split":
        s[C].split(i, 7)  # a guard outside of the region stays
    elif how == "fuse":
        jo, j = s[C].split(j, 8)
        s[C].fuse(i, jo)
    elif how != "plain":
        _, ii = s[C].split(i, 4)
        getattr(s[C], how)(ii)
    s[C].tensorize(j, vadd(8 if how == "fuse" else 16))
    a, b = numbers(64, 16), numbers(64, 16) + 1
    check(s, [A, B, C], [a, b, np.zeros((64, 16), "float32")], a + b)


def test_inputs_are_told_by_where_they_are_read():
    """x - y of the intrinsic is B - A of the loops: x stands for B."""
    x, y = te.placeholder((8,), name="x"), te.placeholder((8,), name="y")
    z = te.compute((8,), lambda i: x[i] - y[i] * 2.0, name="z")
    sub = te.decl_tensor_intrin(z.op, lambda ins, outs: outs[0].vstore(
        [0], ins[0].vload([0], "float32x8") - ins[1].vload([0], "float32x8") * tir.const(2.0, "float32x8")),
        default_buffer_params={"offset_factor": 1})
    A, B = te.placeholder((24,), name="A"), te.placeholder((24,), name="B")
    C = te.compute((24,), lambda i: B[i] - 2.0 * A[i], name="C")
    s = te.create_schedule(C.op)
    _, ii = s[C].split(C.op.axis[0], 8)
    s[C].tensorize(ii, sub)
    a, b = numbers(24), numbers(24) + 1
    check(s, [A, B, C], [a, b, np.zeros(24, "float32")], b - 2 * a)


def test_one_tensor_may_be_two_inputs():
    A = te.placeholder((32, 16), name="A")
    C = te.compute((16, 16), lambda i, j: A[i, j] + A[i + 16, j], name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], vadd(16))
    a = numbers(32, 16)
    check(s, [A, C], [a, np.zeros((16, 16), "float32")], a[:16] + a[16:])


def test_scalar_parameters_take_what_stands_in_the_loops():
    v = te.var("v", "float32")
    x = te.placeholder((4,), name="x")
    z = te.compute((4,), lambda i: x[i] * v, name="z")
    scale = te.decl_tensor_intrin(z.op, lambda ins, outs, given: outs[0].vstore(
        [0], ins[0].vload([0], "float32x4") * given[0].astype("float32x4")), scalar_params=[v],
        default_buffer_params={"offset_factor": 1})
    A, q = te.placeholder((8, 4), name="A"), te.var("q", "float32")
    C = te.compute((8, 4), lambda i, j: A[i, j] * (q + i.astype("float32")), name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], scale)
    a, c = numbers(8, 4), np.zeros((8, 4), "float32")
    tedsl.build(s, [A, q, C], "llvm")(a, 2.5, c)
    np.testing.assert_allclose(c, a * (2.5 + np.arange(8, dtype="float32"))[:, None], rtol=1e-5)


def axpy(dtype):
    """z = v x + v y, with one v, over regions of 4 elements."""
    v = te.var("v", dtype)
    x, y = te.placeholder((4,), name="x"), te.placeholder((4,), name="y")
    z = te.compute((4,), lambda i: v.astype("float32") * x[i] + v.astype("float32") * y[i], name="z")

    def function(ins, outs, given):
        factor = given[0].astype("float32")
        return tir.SeqStmt(tuple([outs[0].vstore([i], factor * ins[0].vload([i]) + factor * ins[1].vload([i]))
                                  for i in range(4)]))

    return te.decl_tensor_intrin(z.op, function, scalar_params=[v], name="axpy", default_buffer_params={"offset_factor": 1})


@pytest.mark.parametrize("dtype, value, result", [
    ("float32", lambda q, i: te.const(2.0), 2.0), ("float32", lambda q, i: q + 1.0, 3.5), ("float32", lambda q, i: q, 2.5),
    ("float32", lambda q, i: te.exp(q), np.exp(np.float32(2.5))), ("bool", lambda q, i: q > 2.0, 1.0),
    ("int32", lambda q, i: q.astype("int32") + 3, 5.0), ("float32", lambda q, i: i.astype("float32") * q, np.arange(3) * 2.5)])
def test_a_scalar_parameter_that_stands_twice(dtype, value, result):
    """Each time it is made anew, as a formula in Python makes it: the same value, in other objects."""
    A, B, q = te.placeholder((3, 4), name="A"), te.placeholder((3, 4), name="B"), te.var("q", "float32")
    C = te.compute((3, 4), lambda i, j: value(q, i).astype("float32") * A[i, j] + value(q, i).astype("float32") * B[i, j],
                   name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], axpy(dtype))
    a, b, c = numbers(3, 4), numbers(3, 4), np.zeros((3, 4), "float32")
    tedsl.build(s, [A, B, q, C])(a, b, 2.5, c)
    np.testing.assert_allclose(c, np.broadcast_to(result, 3)[:, None] * (a + b), rtol=1e-5)


def test_stages_attached_outside_and_storage_that_is_aligned():
    A, B = te.placeholder((64, 16), name="A"), te.placeholder((64, 16), name="B")
    D = te.compute((64, 16), lambda i, j: A[i, j] * 2.0, name="D")
    E = te.compute((64, 16), lambda i, j: D[i, j] + B[i, j], name="E")
    F = te.compute((64, 16), lambda i, j: E[i, j] + 1.0, name="F")
    s = te.create_schedule(F.op)
    fo, _ = s[F].split(F.op.axis[0], 4)
    s[E].compute_at(s[F], fo)
    s[D].compute_at(s[E], E.op.axis[0])
    s[E].storage_align(E.op.axis[0], 8, 3)
    s[E].tensorize(E.op.axis[1], vadd(16))
    a, b = numbers(64, 16), numbers(64, 16)
    check(s, [A, B, F], [a, b, np.zeros((64, 16), "float32")], a * 2 + b + 1)


def test_tails_that_move_inwards_are_whole_regions():
    A, B = te.placeholder((50,), name="A"), te.placeholder((50,), name="B")
    C = te.compute((50,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    _, ii = s[C].split(C.op.axis[0], 16, tail="shift_inwards")
    s[C].tensorize(ii, vadd(16))
    a, b = numbers(50), numbers(50)
    check(s, [A, B, C], [a, b, np.zeros(50, "float32")], a + b)


def test_several_outputs():
    x = te.placeholder((4,), name="x")
    z = te.compute((4,), lambda i: (x[i] + 1.0, x[i] * 2.0), name="z")

    def both(ins, outs):
        v = ins[0].vload([0], "float32x4")
        return tir.SeqStmt((outs[0].vstore([0], v + tir.const(1.0, "float32x4")), outs[1].vstore([0], v + v)))

    intrin = te.decl_tensor_intrin(z[0].op, both, default_buffer_params={"offset_factor": 1})
    A = te.placeholder((8, 4), name="A")
    P, Q = te.compute((8, 4), lambda i, j: (A[i, j] + 1.0, A[i, j] * 2.0), name="P")
    s = te.create_schedule(P.op)
    s[P].tensorize(P.op.axis[1], intrin)
    a = numbers(8, 4)
    p, q = np.zeros((2, 8, 4), "float32")
    tedsl.build(s, [A, P, Q], "llvm")(a, p, q)
    np.testing.assert_array_equal(p, a + 1)
    np.testing.assert_array_equal(q, a * 2)


# --- te.compute of calls ----------------------------------------------------------------------------------------------

def test_a_compute_of_calls():
    A, B = te.placeholder((64, 16), name="A"), te.placeholder((64, 16), name="B")
    add = vadd(16)
    C = te.compute((64, 16), lambda i: add(A[i, 0:16], B[i, 0:16]), name="C")
    assert [axis.name for axis in C.op.axis] == ["i", "ax0"]
    s = te.create_schedule(C.op)
    assert [loop.name for loop in s[C].leaf_iter_vars] == ["i"]
    s[C].split(C.op.axis[0], 7)
    a, b = numbers(64, 16), numbers(64, 16)
    check(s, [A, B, C], [a, b, np.zeros((64, 16), "float32")], a + b)


def test_a_compute_of_calls_reads_inlined_attached_and_cached_stages():
    A, B = te.placeholder((64, 16), name="A"), te.placeholder((64, 16), name="B")
    add = vadd(16)
    D = te.compute((64, 16), lambda i, j: A[i, j] * 2.0, name="D")
    C = te.compute((64, 16), lambda i: add(D[i, 0:16], B[i, 0:16]), name="C")
    F = te.compute((64, 16), lambda i, j: C[i, j] + 1.0, name="F")
    s = te.create_schedule(F.op)
    s[C].compute_at(s[F], F.op.axis[0])
    s[D].compute_at(s[C], C.op.axis[0])
    copy = s.cache_read(B, "global", [C])
    s[copy].compute_at(s[C], s[C].op.axis[0])
    a, b = numbers(64, 16), numbers(64, 16)
    check(s, [A, B, F], [a, b, np.zeros((64, 16), "float32")], a * 2 + b + 1)
    with pytest.raises(tedsl.TedslError, match="C is computed by calls of an intrinsic: it reads D in memory"):
        s[D].compute_inline()


@NEEDS_C
def test_a_reduction_over_calls():
    mul = gemv(16, 8)
    A, B = te.placeholder((4, 6, 16, 8), name="A"), te.placeholder((6, 8), name="B")
    k = te.reduce_axis((0, 6), name="k")
    C = te.compute((4, 16), lambda i: mul(A[i, k, 0:16, 0:8], B[k, 0:8], reduce_axis=k), name="C")
    s = te.create_schedule(C.op)
    s[C].pragma(C.op.axis[0], "import_c", GEMV_C)
    text = body_of(s, [A, B, C])
    assert 'call("fill", ' in text and 'for (k: int32, 0, 6) { call("gemv_add", ' in text
    a, b = numbers(4, 6, 16, 8), numbers(6, 8)
    check(s, [A, B, C], [a, b, np.zeros((4, 16), "float32")], np.einsum("ikmn,kn->im", a, b))


def test_scalars_stand_among_the_regions():
    n = te.size_var("n")
    x, v, w = te.placeholder((n,), name="x"), te.size_var("v"), te.size_var("w")
    z = te.compute((n,), lambda i: x[i] * v + w, name="z")

    def function(ins, outs, given):
        assert ins[0].shape[0] is n and given == [v, w]
        return tir.call_packed("hw_func", ins[0].data, outs[0].data, given[0], given[1])

    intrin = te.decl_tensor_intrin(z.op, function, scalar_params=[v, w], default_buffer_params={"offset_factor": 1})
    assert intrin.op is z.op and intrin.reduce_init is None and intrin.inputs == (x,)
    assert intrin.buffers[0].shape[0] is n and intrin.scalar_params == (v, w)
    A = te.placeholder((10, 10), name="A")
    C = te.compute((10, 10), lambda i, j: intrin(i * i, A[i, j], i + j), name="C")
    s = te.create_schedule(C.op)
    text = str(tedsl.lower(s, [A, C], simple_mode=True))
    assert '@tir.call_packed("hw_func", A_2, C_2, (i*i), (i + j), dtype=int32)' in text


def test_checked_mode_checks_what_an_intrinsic_touches():
    A, B, C = elementwise()
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], vadd(16))
    a, b, c = numbers(64, 16), numbers(64, 16), np.zeros((64, 16), "float32")
    tedsl.build(s, [A, B, C], "llvm", checked=True)(a, b, c)
    np.testing.assert_allclose(c, a + b)


def test_a_schedule_with_an_intrinsic_is_replayed():
    A, B, C = elementwise()
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], vadd(16))
    assert str(s.journal) == "s[C].tensorize(s[C].op.axis[1], vadd)"
    again = te.create_schedule(C.op)
    again.replay(s.journal)
    assert str(tedsl.lower(again, [A, B, C])) == str(tedsl.lower(s, [A, B, C]))
    assert s.copy()[C].iter_var_attrs[C.op.axis[1]].tensor_intrin is s[C].iter_var_attrs[C.op.axis[1]].tensor_intrin


CALLED = "int add(float *z, float *x, float *y) { for (int i = 0; i < 16; ++i) z[i] = x[i] + y[i]; return 0; }"


def called_add():
    x, y = te.placeholder((16,), name="x"), te.placeholder((16,), name="y")
    z = te.compute((16,), lambda i: x[i] + y[i], name="z")
    return te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern(
        "int32", "add", outs[0].access_ptr("w"), ins[0].access_ptr("r"), ins[1].access_ptr("r")),
        default_buffer_params={"offset_factor": 1})


@NEEDS_C
@pytest.mark.parametrize("how", ["double_buffer", "vthread", "parallel", "vectorize"])
def test_memory_that_passes_change_around_a_call(how):
    A, B = te.placeholder((66, 16), name="A"), te.placeholder((64, 16), name="B")
    D = te.compute((66, 16), lambda i, j: A[i, j] * 2.0, name="D")
    C = te.compute((64, 16), lambda i, j: D[i + 2, j] + B[i, j], name="C")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    s[C].tensorize(j, called_add())
    io, ii = s[C].split(i, 8)
    s[C].pragma(ii, "import_c", CALLED)
    s[D].compute_at(s[C], ii if how != "vectorize" else io)
    if how == "vthread":
        s[C].bind(io, te.thread_axis("vthread"))
    elif how == "parallel":
        s[C].parallel(io)
    elif how == "vectorize":
        s[C].vectorize(ii)
    else:
        getattr(s[D], how)()
    a, b = numbers(66, 16), numbers(64, 16)
    check(s, [A, B, C], [a, b, np.zeros((64, 16), "float32")], a[2:] * 2 + b)


@NEEDS_C
def test_rows_that_an_intrinsic_takes_do_not_roll():
    A = te.placeholder((65, 16), name="A")
    D = te.compute((65, 16), lambda i, j: A[i, j] * 2.0, name="D")
    C = te.compute((64, 16), lambda i, j: D[i, j] + D[i + 1, j], name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], called_add())
    s[C].pragma(C.op.axis[0], "import_c", CALLED)
    s[D].compute_at(s[C], C.op.axis[0])
    s[D].rolling_buffer()
    a = numbers(65, 16)
    check(s, [A, C], [a, np.zeros((64, 16), "float32")], (a[:-1] + a[1:]) * 2)


@NEEDS_C
def test_an_output_of_no_dimensions():
    x, y = te.placeholder((16,), name="x"), te.placeholder((16,), name="y")
    k = te.reduce_axis((0, 16), name="k")
    z = te.compute((), lambda: te.sum(x[k] * y[k], axis=k), name="z")

    def parts(ins, outs):
        add = tir.call_extern("int32", "dot", outs[0].access_ptr("rw"), ins[0].access_ptr("r"), ins[1].access_ptr("r"))
        return None, outs[0].vstore([], tir.const(0.0, "float32")), add

    dot = te.decl_tensor_intrin(z.op, parts, default_buffer_params={"offset_factor": 1})
    A, B, C = matvec(8, 48)
    s = te.create_schedule(C.op)
    ko, ki = s[C].split(C.op.reduce_axis[0], 16)
    s[C].tensorize(ki, dot)
    s[C].pragma(ko, "import_c", "int dot(float *z, float *x, float *y) "
                "{ for (int i = 0; i < 16; ++i) *z += x[i] * y[i]; return 0; }")
    a, b = numbers(8, 48), numbers(48)
    check(s, [A, B, C], [a, b, np.zeros(8, "float32")], a @ b)


DP4A = """typedef signed char i8;
int reset(int *z) { *z = 0; return 0; }
int update(const i8 *x, const i8 *y, int *z) { for (int i = 0; i < 4; ++i) *z += x[i] * y[i]; return 0; }
int full(const i8 *x, const i8 *y, int *z) { *z = 0; return update(x, y, z); }
"""


def dp4a():
    """As TVM's schedules declare it: an output with an axis of one element, which is an index of no input."""
    x, y = te.placeholder((4,), "int8", name="x"), te.placeholder((4,), "int8", name="y")
    k = te.reduce_axis((0, 4), name="rc")
    z = te.compute((1,), lambda i: te.sum(x[k].astype("int32") * y[k].astype("int32"), axis=[k]), name="z")

    def parts(ins, outs):
        def call(name, mask):
            return tir.call_extern("int32", name, ins[0].access_ptr("r"), ins[1].access_ptr("r"), outs[0].access_ptr(mask))

        return call("full", "w"), tir.call_extern("int32", "reset", outs[0].access_ptr("w")), call("update", "rw")

    return te.decl_tensor_intrin(z.op, parts, name="dp4a", default_buffer_params={"data_alignment": 4, "offset_factor": 1})


@NEEDS_C
@pytest.mark.parametrize("order", ["reduction outside", "unit loop inside", "all inside"])
def test_an_output_axis_of_one_element_stands_for_any_loop(order):
    depth = 4 if order == "all inside" else 16
    A, B = te.placeholder((8, depth), "int8", name="A"), te.placeholder((6, depth), "int8", name="B")
    k = te.reduce_axis((0, depth), name="k")
    D = te.compute((8, 6), lambda i, j: te.sum(A[i, k].astype("int32") * B[j, k].astype("int32"), axis=k), name="D")
    s = te.create_schedule(D.op)
    ko, ki = s[D].split(k, 4)
    if order == "unit loop inside":
        jo, ji = s[D].split(D.op.axis[1], 1)
        s[D].reorder(jo, ko, ji, ki)
        ki = ji
    s[D].pragma(D.op.axis[0], "import_c", DP4A)
    s[D].tensorize(ki, dp4a())
    draw = np.random.default_rng(3)
    a, b = draw.integers(-9, 9, (8, depth)).astype("int8"), draw.integers(-9, 9, (6, depth)).astype("int8")
    check(s, [A, B, D], [a, b, np.zeros((8, 6), "int32")], a.astype("int32") @ b.T)


@NEEDS_C
@pytest.mark.parametrize("shape, whole, formula, code, want", [
    ((5,), (9,), lambda x, i: x[i] * x[i + 1], "x[i] * x[i + 1]", lambda a: a[:8] * a[1:]),
    ((4, 2), (8, 2), lambda x, i: x[i, 0] * x[i, 0] + x[i, 1] * x[i, 1], "x[2*i] * x[2*i] + x[2*i + 1] * x[2*i + 1]",
     lambda a: (a * a).sum(1)),
    ((8,), (16,), lambda x, i: x[2 * i] + x[2 * i + 1], "x[2*i] + x[2*i + 1]", lambda a: a[::2] + a[1::2]),
    ((6,), (10,), lambda x, i: x[i + 2] - x[i], "x[i + 2] - x[i]", lambda a: a[2:] - a[:-2]),
])
@pytest.mark.parametrize("staged", [False, True])
def test_several_reads_cover_an_input_together(shape, whole, formula, code, want, staged):
    x, A = te.placeholder(shape, name="x"), te.placeholder(whole, name="A")
    z = te.compute((4,), lambda i: formula(x, i), name="z")
    reads = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern(
        "int32", "reads", ins[0].access_ptr("r"), outs[0].access_ptr("w")), default_buffer_params={"offset_factor": 1})
    source = te.compute(whole, lambda *i: A[i] + 1.0, name="S") if staged else A
    B = te.compute((8,), lambda i: formula(source, i), name="B")
    s = te.create_schedule(B.op)
    io, ii = s[B].split(B.op.axis[0], 4)
    s[B].tensorize(ii, reads)
    s[B].pragma(io, "import_c", "int reads(const float *x, float *y) "
                f"{{ for (int i = 0; i < 4; ++i) y[i] = {code}; return 0; }}")
    if staged:  # the region, and no more, is in memory
        s[source].compute_at(s[B], io)
    a = numbers(*whole)
    check(s, [A, B], [a, np.zeros(8, "float32")], want(a + 1 if staged else a))


@NEEDS_C
def test_a_window_that_slides_over_its_input():
    x, w = te.placeholder((10,), name="x"), te.placeholder((3,), name="w")
    q, r = te.reduce_axis((0, 3), name="q"), te.reduce_axis((0, 3), name="r")
    z = te.compute((8,), lambda i: te.sum(x[i + q] * w[q], axis=q), name="z")
    conv = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern(
        "int32", "conv", outs[0].access_ptr("w"), ins[0].access_ptr("r"), ins[1].access_ptr("r")),
        default_buffer_params={"offset_factor": 1})
    A, W = te.placeholder((4, 18), name="A"), te.placeholder((3,), name="W")
    C = te.compute((4, 16), lambda i, j: te.sum(A[i, j + r] * W[r], axis=r), name="C")
    s = te.create_schedule(C.op)
    jo, ji = s[C].split(C.op.axis[1], 8)
    s[C].tensorize(ji, conv)
    s[C].pragma(jo, "import_c", "int conv(float *z, float *x, float *w) "
                "{ for (int i = 0; i < 8; ++i) z[i] = x[i] * w[0] + x[i + 1] * w[1] + x[i + 2] * w[2]; return 0; }")
    a, f = numbers(4, 18), numbers(3)
    check(s, [A, W, C], [a, f, np.zeros((4, 16), "float32")], sum(a[:, k:k + 16] * f[k] for k in range(3)))


def test_shapes_of_64_bits():
    n = te.var("n", "int64")
    A, B = te.placeholder((n, 16), name="A"), te.placeholder((n, 16), name="B")
    C = te.compute((n, 16), lambda i, j: A[i, j] + B[i, j], name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], vadd(16))
    a, b = numbers(33, 16), numbers(33, 16)
    check(s, [A, B, C], [a, b, np.zeros((33, 16), "float32")], a + b)


def test_a_version_for_sizes_that_divide():
    n = te.var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    version = s[C].specialize(n % 16 == 0)
    _, ii = version.split(C.op.axis[0], 16)
    version.tensorize(ii, vadd(16))
    for size in (32, 33):
        a, b = numbers(size), numbers(size)
        check(s, [A, B, C], [a, b, np.zeros(size, "float32")], a + b)
