"""The schedules of GPU tutorials run on the CPU and agree with numpy: odd sizes, size 1, symbolic shapes."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import TedslError
from tests.passes.threads.programs import (
    check,
    check_calls,
    convolution,
    forms,
    row_sums,
    softmax,
    tiled_matmul,
    vector_add,
    whole_numbers,
)


def each_and_symbolic(name, sizes):
    """A parameter: each of the sizes alone, as constants, and all of them in calls of one program of symbolic sizes."""
    return pytest.mark.parametrize(f"symbolic, {name}", [*((False, [size]) for size in sizes), (True, sizes)])


@each_and_symbolic("sizes", [1, 7, 64])
def test_vector_add(sizes, symbolic):
    calls = [[whole_numbers(n), whole_numbers(n, seed=1)] for n in sizes]
    check_calls(*vector_add(te.var("n") if symbolic else sizes[0]), [([a, b], a + b) for a, b in calls])


@each_and_symbolic("sizes", [(16, 16, 16), (17, 5, 9), (1, 1, 1), (3, 33, 20)])
def test_matmul_with_shared_tiles_and_virtual_threads(sizes, symbolic):
    calls = [[whole_numbers(n, depth), whole_numbers(depth, m, seed=1)] for n, m, depth in sizes]
    program = tiled_matmul(*([te.var(name) for name in "nmk"] if symbolic else sizes[0]))
    check_calls(*program, [([a, b], a @ b) for a, b in calls])


@pytest.mark.parametrize("virtual, step", [(1, 4), (3, 8), (16, 2)])
def test_numbers_of_virtual_threads(virtual, step):
    a, b = whole_numbers(20, 12), whole_numbers(12, 36, seed=1)
    check(*tiled_matmul(20, 36, 12, threads=2, virtual=virtual, step=step), [a, b], a @ b)


@each_and_symbolic("sizes", [(8, 32), (5, 13), (1, 1), (3, 100)])
@pytest.mark.parametrize("factored", [True, False])
def test_reduction_across_threads(sizes, factored, symbolic):
    calls = [whole_numbers(n, m) for n, m in sizes]
    program = row_sums(*((te.var("n"), te.var("m")) if symbolic else sizes[0]), factored=factored)
    check_calls(*program, [([a], a.sum(1)) for a in calls])


@pytest.mark.parametrize("n, m", [(4, 0), (0, 4)])
def test_reduction_across_threads_of_nothing(n, m):
    a = whole_numbers(n, m)
    check(*row_sums(te.var("n"), te.var("m")), [a], a.sum(1))


def test_maximum_across_threads():
    a = whole_numbers(5, 19)
    check(*row_sums(5, 19, reduce=te.max), [a], a.max(1))


@pytest.mark.parametrize("n, m", [(3, 16), (4, 13), (1, 1)])
def test_softmax(n, m):
    a = whole_numbers(n, m)
    e = np.exp(a - a.max(1, keepdims=True))
    check(*softmax(n, m), [a], e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("size, channels, filters, batch", [(3, 4, 16, 16), (2, 3, 5, 7)])
def test_convolution(size, channels, filters, batch):
    a, w = whole_numbers(size, size, channels, batch), whole_numbers(3, 3, channels, filters, seed=1)
    padded = np.pad(a, ((1, 1), (1, 1), (0, 0), (0, 0)))
    expected = sum(np.einsum("yxcb,cf->yxfb", padded[dy:dy + size, dx:dx + size], w[dy, dx]) for dy in range(3)
                   for dx in range(3)).astype("float32")
    check(*convolution(size, channels, filters, batch), [a, w], expected)


def test_argmax_across_threads():
    argmax = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.if_then_else(x[1] >= y[1], x[1], y[1])),
        lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")
    A = te.placeholder((5, 13), name="A")
    k = te.reduce_axis((0, 13), name="k")
    index, value = te.compute((5,), lambda i: argmax((k.var, A[i, k]), axis=k), name="B")
    s = te.create_schedule(index.op)
    _, inner = s[index].split(s[index].op.reduce_axis[0], factor=4)
    s[index].bind(s[index].op.axis[0], te.thread_axis("blockIdx.x"))
    s[index].bind(inner, te.thread_axis("threadIdx.x"))
    a = whole_numbers(5, 13)
    found, best = np.zeros(5, "int32"), np.zeros(5, "float32")
    tedsl.build(s, [A, index, value])(a, found, best)
    np.testing.assert_array_equal(best, a.max(1))
    np.testing.assert_array_equal(a[np.arange(5), found], a.max(1))


def test_vector_loads_and_unrolled_loops_by_cooperating_threads():
    A = te.placeholder((32, 32), name="A")
    B = te.compute((32, 32), lambda i, j: A[j, i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    tile = s.cache_read(A, "shared", [B])
    ty, tx = te.thread_axis((0, 4), "threadIdx.y"), te.thread_axis((0, 8), "threadIdx.x")
    yo, xo, yi, xi = s[B].tile(*s[B].op.axis, 16, 16)
    y, _ = s[B].split(yi, nparts=4)
    x, _ = s[B].split(xi, nparts=8)
    s[B].reorder(yo, xo, y, x)
    for loop, thread in ((yo, te.thread_axis("blockIdx.y")), (xo, te.thread_axis("blockIdx.x")), (y, ty), (x, tx)):
        s[B].bind(loop, thread)
    s[tile].compute_at(s[B], xo)
    flat = s[tile].fuse(*s[tile].op.axis)
    rest, lanes = s[tile].split(flat, factor=4)
    rest, x = s[tile].split(rest, factor=8)
    rest, y = s[tile].split(rest, factor=4)
    s[tile].bind(y, ty)
    s[tile].bind(x, tx)
    s[tile].vectorize(lanes)
    s[tile].unroll(rest)
    a = whole_numbers(32, 32)
    check(s, [A, B], [a], a.T * 2)


def test_two_kernels_use_one_thread_axis_with_different_numbers_of_threads():
    A = te.placeholder((24,), name="A")
    B = te.compute((24,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((24,), lambda i: B[23 - i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    tx = te.thread_axis("threadIdx.x")
    for stage, factor in ((B, 8), (C, 3)):
        outer, inner = s[stage].split(s[stage].op.axis[0], factor=factor)
        s[stage].bind(outer, te.thread_axis("blockIdx.x"))
        s[stage].bind(inner, tx)
    a = whole_numbers(24)
    check(s, [A, C], [a], (a[::-1] + 1) * 2)


def test_memory_of_a_warp():
    A = te.placeholder((6, 8), name="A")
    B = te.compute((6, 8), lambda i, j: A[i, 7 - j] + A[i, j], name="B")
    s = te.create_schedule(B.op)
    kept = s.cache_read(A, "warp", [B])
    tx = te.thread_axis("threadIdx.x")
    outer, row = s[B].split(s[B].op.axis[0], factor=2)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(row, te.thread_axis("threadIdx.y"))
    s[B].bind(s[B].op.axis[1], tx)
    s[kept].compute_at(s[B], row)
    s[kept].bind(s[kept].op.axis[1], tx)
    a = whole_numbers(6, 8)
    check(s, [A, B], [a], a[:, ::-1] + a)


def test_threads_around_a_stage_that_binds_nothing():
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4, 8), lambda i, j: B[i, 7 - j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    tx = te.thread_axis((0, 8), "threadIdx.x")
    s[C].env_threads([tx])
    s[B].compute_at(s[C], s[C].op.axis[0])
    s[B].set_scope("shared")
    s[B].bind(s[B].op.axis[1], tx)
    a = whole_numbers(4, 8)
    check(s, [A, C], [a], (a[:, ::-1] + 1) * 2)
    assert str(forms(s, [A, C])["lowered"]).count("thread_extent") == 2


def test_a_device_without_code_generator_says_how_to_check():
    s, args = vector_add(16)
    with pytest.raises(TedslError, match=r'no code generator for the device \'vulkan\'(.|\n)*target="llvm"'):
        tedsl.build(s, args, target="vulkan")
    assert "threadIdx.x" in str(tedsl.lower(s, args))
