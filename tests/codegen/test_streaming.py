"""Stores past the cache, and loops that begin at lines: which loops, what they write, at any alignment."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.ir import build
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import Broadcast, Cast, Load, Ramp, SizeVar, Var
from tedsl.ir.stmt import AttrStmt, For, ForKind, LetStmt, Store, seq
from tedsl.passes.machine.mark_streams import mark_streams
from tedsl.target.machine import Machine
from tests.codegen.kernels import ARM, AVX2, HOST, PLAIN, RUNNABLE, Kernel, array, const, function

GUARD = 64  # elements around the output that must not change


def stream(lanes=16, kind=ForKind.SERIAL, of="float32", directive=True, formula=None):
    """c[i] = a[i] * s + position(i), in vectors."""
    n, s, i = SizeVar("n"), Var("s", of), Var("i")
    a, c = array("a", (n,), of), array("c", (n,), of)
    k = Var("k")
    at = Ramp(k, const(1), lanes)
    load = Load(dtype(of).with_lanes(lanes), a[1].data, at)
    value = formula(load, at, i) if formula else build.add(build.mul(load, Broadcast(s, lanes)), Cast(load.dtype, at))
    body = LetStmt(k, build.mul(i, lanes), Store(c[1].data, value, at))
    loop = For(i, const(0), build.floordiv(n, lanes), kind, body)
    return function(AttrStmt(c[1], "nontemporal", const(1), loop) if directive else loop, a, c, n, s)


def streaming_kernel(func, target=HOST):
    return Kernel(mark_streams(func, target), target)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("of, lanes", [("float32", 16), ("float64", 4), ("float32", 4), ("float32", 48)])
@pytest.mark.parametrize("kind", [ForKind.SERIAL, ForKind.PARALLEL])
def test_every_element_is_written_and_no_other(kind, of, lanes, target):
    kernel = streaming_kernel(stream(lanes, kind, of), target)
    assert "!nontemporal" in kernel.text and "sfence" in kernel.text
    for vectors in (0, 1, 2, 7, 8, 9, 40):
        for offset in range(0, lanes, 3):
            size = vectors * lanes
            a = np.random.default_rng(0).random(size + 1).astype(of)[1:]
            whole = np.full(size + 2 * GUARD + lanes, -1, of)
            c = whole[GUARD + offset:][:size]
            assert kernel(a, c, size, 2.0) == 0
            np.testing.assert_array_equal(c, a * a.dtype.type(2) + np.arange(size, dtype=of))
            assert (whole[:GUARD + offset] == -1).all() and (whole[GUARD + offset + size:] == -1).all()


def test_aligned_vectors_pass_the_cache():
    for target, instruction in ((HOST, "vmovntps"), (AVX2, "vmovntps"), (PLAIN, "movntps")):
        kernel = streaming_kernel(stream(), target)
        assert instruction in kernel.assembly() and "sfence" in kernel.assembly()
        assert kernel.text.index(", !nontemporal") < kernel.text.index("call void @llvm.x86.sse.sfence")


def test_parts_of_lines_are_stored_as_usual():
    for target in (HOST, AVX2, PLAIN):
        text = streaming_kernel(stream(), target).text
        past = [line for line in text.splitlines() if "!nontemporal" in line]
        assert past and all("store <16 x float>" in line and "align 64" in line for line in past)


def test_bytes_pass_the_cache_wherever_they_begin():
    kernel = streaming_kernel(stream(64, of="uint8"))
    a, whole = np.arange(64 * 40, dtype="uint8"), np.full(64 * 43, 7, "uint8")
    assert kernel(a, whole[64 + 13:][:a.size], a.size, 1) == 0
    np.testing.assert_array_equal(whole[64 + 13:][:a.size], a + np.arange(a.size).astype("uint8"))
    assert (whole[:64 + 13] == 7).all() and (whole[64 + 13 + a.size:] == 7).all()


def test_small_outputs_stay_in_the_cache_and_large_ones_do_not(monkeypatch):
    kernel = streaming_kernel(stream(directive=False))
    assert f", {HOST.machine.large}" in kernel.text and "!nontemporal" in kernel.text
    monkeypatch.setattr(Machine, "large", 1000)
    kernel = streaming_kernel(stream(directive=False, kind=ForKind.PARALLEL))
    for size in (64, 16 * 100):
        a, c = np.ones(size, "f"), np.zeros(size, "f")
        assert kernel(a, c, size, 1.0) == 0
        np.testing.assert_array_equal(c, 1 + np.arange(size))


LANE = lambda v, at, i: build.add(v, Cast(v.dtype, Ramp(const(0), const(1), 16)))
SCALAR = lambda v, at, i: build.add(v, Broadcast(build.cast("float32", i), 16))
STRIDED = lambda v, at, i: build.add(v, Cast(v.dtype, Ramp(build.mul(i, 16), const(2), 16)))


@pytest.mark.parametrize("formula", [LANE, SCALAR, STRIDED])
def test_a_formula_that_depends_on_the_lane_or_the_vector_is_not_shifted(formula):
    assert "!nontemporal" not in streaming_kernel(stream(formula=formula)).text


def test_an_output_that_is_read_or_written_in_pieces_is_left_alone():
    i, a = Var("i"), array("a", (1 << 24,), "float32")
    at = Ramp(build.mul(i, 16), const(1), 16)
    add = Store(a[1].data, build.add(Load(dtype("float32x16"), a[1].data, at), 1.0), at)
    assert "!nontemporal" not in streaming_kernel(function(For(i, const(0), const(1 << 20), ForKind.SERIAL, add), a)).text
    zero = Broadcast(const(0.0, "float32"), 16)
    gaps = Store(a[1].data, zero, Ramp(build.mul(i, 32), const(1), 16))
    assert "!nontemporal" not in streaming_kernel(function(For(i, const(0), const(1 << 19), ForKind.SERIAL, gaps), a)).text
    two = seq(Store(a[1].data, zero, Ramp(build.mul(i, 32), const(1), 16)),
              Store(a[1].data, zero, Ramp(build.add(build.mul(i, 32), 16), const(1), 16)))
    assert "!nontemporal" not in streaming_kernel(function(For(i, const(0), const(1 << 19), ForKind.SERIAL, two), a)).text


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("of", ["float32", "float64", "int16", "uint8"])
@pytest.mark.parametrize("kind", [ForKind.SERIAL, ForKind.PARALLEL])
def test_a_loop_in_the_caches_begins_at_a_line(kind, of, target):
    lanes = target.vector_bits // dtype(of).bits
    kernel = streaming_kernel(stream(lanes, kind, of, directive=False), target)
    for vectors in (0, 1, 2, 63, 64, 65, 70, 130):
        for offset in (0, 1, lanes // 2 + 1, lanes - 1):
            size = vectors * lanes
            a, whole = np.arange(size).astype(of), np.full(size + 2 * GUARD + lanes, 99, of)
            c = whole[GUARD + offset:][:size]
            assert kernel(a, c, size, 2) == 0
            np.testing.assert_array_equal(c, a * a.dtype.type(2) + np.arange(size).astype(of))
            assert (whole[:GUARD + offset] == 99).all() and (whole[GUARD + offset + size:] == 99).all()


def lines_of(size, formula=lambda x, y: x * y + x, target=HOST):
    """The kernel of a formula of two arrays, and whether its loop begins at a line."""
    x, y = te.placeholder((size,), name="x"), te.placeholder((size,), name="y")
    z = te.compute((size,), lambda i: formula(x[i], y[i]), name="z")
    s = te.create_schedule(z.op)
    s[z].vectorize(s[z].split(z.op.axis[0], factor=target.vector_bits // 32)[1])
    kernel = tedsl.build(s, [x, y, z], str(target))
    return kernel, "ptrtoint" in kernel.get_source("ll").split("define")[-1]


@pytest.mark.parametrize("target", [HOST, AVX2], ids=str)
@pytest.mark.parametrize("size", [4096, 4096 + 16 * 7, 5003])
def test_many_vectors_of_little_work_begin_at_lines(size, target):
    kernel, is_at_lines = lines_of(size, target=target)
    assert is_at_lines
    memory = [np.random.default_rng(k).random(size + 32).astype("f") for k in range(3)]
    for offset in (0, 1, 4, 15):
        x, y, z = (array[offset:][:size] for array in memory)
        memory[2][:] = -1
        kernel(x, y, z)
        np.testing.assert_allclose(z, x * y + x, rtol=1e-6)
        assert (memory[2][:offset] == -1).all() and (memory[2][offset + size:] == -1).all()


def test_few_vectors_functions_and_small_vectors_begin_where_the_array_does():
    assert not lines_of(512)[1]
    assert not lines_of(8192, lambda x, y: te.exp(x) + y)[1]
    assert not lines_of(8192, target=PLAIN)[1]


def test_other_architectures_have_ordinary_stores():
    assert "!nontemporal" not in streaming_kernel(stream(), ARM).text


def transpose_schedule(rows, columns, wide, dtype="float32"):
    """B[i, j] = A[j, i] in tiles that are transposed in registers, with stores past the cache."""
    A = te.placeholder((columns, rows), dtype, name="A")
    B = te.compute((rows, columns), lambda i, j: A[j, i], name="B")
    s = te.create_schedule(B.op)
    i, j = B.op.axis
    down, row = s[B].split(i, 16)
    across, lane = s[B].split(j, wide)
    s[B].reorder(across, down, row, lane)
    s[B].vectorize(lane)
    s[B].nontemporal()
    return s, [A, B]


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("columns, wide", [(16, 16), (32, 16), (64, 16), (272, 16), (320, 8), (1000, 16), (640, 32), (960, 48)])
def test_the_rows_of_tiles_are_written_at_any_alignment(columns, wide, target):
    s, args = transpose_schedule(48, columns, wide)
    kernel = tedsl.build(s, args, target)
    assert ("!nontemporal" in kernel.get_source()) == (columns % wide == 0 and columns // wide >= 2)
    a = np.random.default_rng(0).random((columns, 48), dtype="float32")
    for offset in range(0, 16, 4):
        for more in (0, 1):
            whole = np.full(48 * columns + 2 * GUARD + 32, -1, "float32")
            begin = GUARD + offset + more
            b = whole[begin:begin + 48 * columns].reshape(48, columns)
            kernel(a, b)
            np.testing.assert_array_equal(b, a.T)
            assert (whole[:begin] == -1).all() and (whole[begin + b.size:] == -1).all()


def test_rows_whose_lines_begin_at_different_places_are_stored_as_usual():
    s, args = transpose_schedule(48, 1000, 16)
    assert "!nontemporal" not in tedsl.build(s, args, HOST).get_source()


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_an_output_from_a_place_on_that_data_holds_is_stored_as_usual(target):
    n = te.size_var("n")
    a, at = te.placeholder((n,), "float32", name="a"), te.placeholder((1,), "int32", name="at")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, place, result = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        ib.scope_attr(result, "tir.data_index", "trust")
        first = ib.let("first", place[0])
        with ib.for_range(0, n // 16, name="i") as i, ib.for_range(0, 16, name="lane", kind="vectorize") as lane:
            result[first + i * 16 + lane] = source[i * 16 + lane] * 2
        return ib.get()

    made = te.extern([(n + 100,)], [a, at], body, dtype="float32", name="made")
    kernel = tedsl.build(te.create_schedule(made.op), [a, at, made], target)
    x, result = np.arange(1 << 22, dtype="float32"), np.zeros((1 << 22) + 100, "float32")
    kernel(x, np.array([37], "int32"), result)
    np.testing.assert_array_equal(result[37:-63], 2 * x)
    assert not result[:37].any() and not result[-63:].any()


# --- tiles that begin at lines -------------------------------------------------------------------------------------------

def schedule_of_lines(rows, columns, dtype="float32", symbolic=False):
    """B[i, j] = A[j, i] in tiles that begin at lines of B."""
    line = 64 // np.dtype(dtype).itemsize
    A = te.placeholder((columns, rows), dtype, name="A")
    B = te.compute((rows, columns), lambda i, j: A[j, i], name="B")
    s = te.create_schedule(B.op)
    i, j = B.op.axis
    across, lane = s[B].split(j, line, tail="shift_inwards", lines_of=B)
    down, row = s[B].split(i, 16)
    s[B].reorder(down, across, row, lane)
    s[B].vectorize(lane)
    s[B].nontemporal()
    return s, [A, B]


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("rows, columns, dtype", [
    (32, 16, "float32"), (32, 32, "float32"), (32, 48, "float32"), (40, 64, "float32"), (16, 80, "float32"),
    (32, 100, "float32"), (32, 128, "int8"),
    (32, 17, "float32"), (32, 40, "float64"), (16, 320, "int16")])
def test_tiles_from_lines_are_written_wherever_the_array_begins(rows, columns, dtype, target):
    s, args = schedule_of_lines(rows, columns, dtype)
    kernel = tedsl.build(s, args, target)
    size = np.dtype(dtype).itemsize
    in_step = columns * size % 64 == 0 and columns * size > 64
    assert ("!nontemporal" in kernel.get_source()) == in_step and ("sfence" in kernel.get_source()) == in_step
    a = np.random.default_rng(0).integers(0, 100, (columns, rows)).astype(dtype)
    for behind in range(0, 64, size):
        written_between_guards(lambda b: kernel(a, b), a.T, behind)


def written_between_guards(call, expected, behind):
    """The call writes `expected` to an array that begins `behind` bytes behind a line, and nothing around it."""
    room = np.full(expected.nbytes + 64 * 4, 0xa5, "uint8")
    first = -room.ctypes.data % 64 + 64 + behind
    end = first + expected.nbytes
    b = room[first:end].view(expected.dtype).reshape(expected.shape)
    call(b)
    np.testing.assert_array_equal(b, expected)
    assert (room[:first] == 0xa5).all() and (room[end:] == 0xa5).all()


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_tiles_from_lines_of_arrays_that_are_not_aligned_to_their_elements(target):
    s, args = schedule_of_lines(32, 80)
    kernel = streaming_kernel(tedsl.lower(s, args)["main"], target)
    assert "!nontemporal" in kernel.text
    a = np.arange(32 * 80, dtype="float32").reshape(80, 32)
    for behind in range(64):
        written_between_guards(lambda b: kernel(a, b), a.T, behind)


@pytest.mark.parametrize("target", [HOST, AVX2, PLAIN], ids=str)
def test_tiles_from_lines_have_one_copy_with_stores_past_the_cache_and_one_with_others(target):
    kernel = tedsl.build(*schedule_of_lines(32, 96), target)
    size = target.vector_lanes("float32") * 4
    past = [line for line in kernel.get_source().splitlines() if "!nontemporal" in line and "store" in line]
    assert len(past) == 16 and all(f"align {size}" in line for line in past)
    assert kernel.get_source().count("call void @tedsl.store_lanes") == 16  # of the first and the last tile
    assert "movntp" in kernel.get_source("asm") and "gather" not in kernel.get_source("asm")


def test_tiles_from_lines_of_small_arrays_stay_in_the_cache(monkeypatch):
    def built(n):
        A = te.placeholder((n, n), name="A")
        B = te.compute((n, n), lambda i, j: A[j, i], name="B")
        s = te.create_schedule(B.op)
        across, lane = s[B].split(B.op.axis[1], 16, tail="shift_inwards", lines_of=B)
        down, row = s[B].split(B.op.axis[0], 16)
        s[B].reorder(down, across, row, lane)
        s[B].vectorize(lane)
        return tedsl.build(s, [A, B], HOST).get_source()

    assert "!nontemporal" not in built(64)
    monkeypatch.setattr(Machine, "large", 1000)
    assert "!nontemporal" in built(64)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_tiles_of_vectors_smaller_than_the_parts_that_pass_the_cache(target):
    s, args = transpose_schedule(4, 640, 32, "int8")
    kernel = tedsl.build(s, args, target)
    assert "!nontemporal" in kernel.get_source()
    a = np.arange(4 * 640).astype("int8").reshape(640, 4)
    for behind in range(64):
        written_between_guards(lambda b: kernel(a, b), a.T, behind)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("lanes, of", [(32, "float32"), (48, "float32"), (64, "int16"), (24, "float64")])
def test_vectors_of_several_lines(lanes, of, target):
    A = te.placeholder((40 * lanes,), of, name="A")
    B = te.compute(A.shape, lambda i: A[i] + A[i], name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(s[B].split(B.op.axis[0], lanes)[1])
    s[B].nontemporal()
    kernel = tedsl.build(s, [A, B], target)
    assert "!nontemporal" in kernel.get_source()
    a = np.arange(40 * lanes).astype(of)
    for behind in range(0, 64, a.itemsize):
        written_between_guards(lambda b: kernel(a, b), a + a, behind)


@pytest.mark.parametrize("shape, of, target", [
    ((40, 200), "float64", HOST), ((5, 272), "float32", AVX2), ((30, 1088), "int8", HOST), ((40, 384), "float32", PLAIN)],
    ids=str)
def test_vectors_of_more_registers_than_stay_together_go_through_the_caches(shape, of, target):
    A = te.placeholder(shape, of, name="A")
    B = te.compute(shape, lambda i, j: A[i, j] + te.const(1, of), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[1])
    s[B].nontemporal()
    kernel = tedsl.build(s, [A, B], target)
    assert "!nontemporal" not in kernel.get_source()
    a, b = (np.random.default_rng(0).random(shape) * 50).astype(of), np.zeros(shape, of)
    kernel(a, b)
    np.testing.assert_array_equal(b, a + np.ones((), of))
