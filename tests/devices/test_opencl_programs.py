"""Schedules with threads, shared memory and virtual threads on an OpenCL device: the bits of the processor's build."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tests.devices.opencl_device import needs_opencl
from tests.passes.threads.programs import convolution, tiled_matmul, vector_add, whole_numbers

pytestmark = needs_opencl


def on_device(built, inputs, shape, dtype="float32"):
    """The output, an array of `shape`, of the built program on opencl(0)."""
    place = tedsl.device("opencl", 0)
    out = tedsl.nd.array(np.zeros(shape, dtype), place)
    built(*(tedsl.nd.array(x, place) for x in inputs), out)
    return out.numpy()


def agree(program, *calls, dtype="float32"):
    """The outputs on the device, after a check that the processor gives the same bits. calls: inputs, and the shape of the
    output."""
    fma = tedsl.target.host_target().has_fma
    here, there = (tedsl.build(*program, target) for target in (("llvm", "opencl") if fma else ("llvm", "opencl -fma=0")))
    results = []
    for inputs, shape in calls:
        got, wanted = on_device(there, inputs, shape, dtype), np.zeros(shape, dtype)
        here(*inputs, wanted)
        np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), wanted.view(f"u{wanted.itemsize}"))
        results.append(got)
    return results


def floats(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def test_vector_add():
    calls = [([floats(n), floats(n, seed=1)], (n,)) for n in (1, 7, 64, 1000)]
    agree(vector_add(te.var("n")), *calls)
    agree(vector_add(1000), calls[-1])


@pytest.mark.parametrize("symbolic, sizes", [(False, [(17, 5, 9)]), (False, [(64, 64, 64)]),
                                             (True, [(16, 16, 16), (17, 5, 9), (1, 1, 1)])])
def test_matmul_with_shared_tiles_and_virtual_threads(symbolic, sizes):
    calls = [([floats(n, depth), floats(depth, m, seed=1)], (n, m)) for n, m, depth in sizes]
    program = tiled_matmul(*([te.var(name) for name in "nmk"] if symbolic else sizes[0]))
    for ((a, b), _), got in zip(calls, agree(program, *calls)):
        np.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("virtual, step", [(1, 4), (3, 8), (16, 2)])
def test_numbers_of_virtual_threads(virtual, step):
    program = tiled_matmul(20, 36, 12, threads=2, virtual=virtual, step=step)
    agree(program, ([floats(20, 12), floats(12, 36, seed=1)], (20, 36)))


@pytest.mark.parametrize("size, channels, filters, batch", [(3, 4, 16, 16), (2, 3, 5, 7)])
def test_convolution(size, channels, filters, batch):
    inputs = [floats(size, size, channels, batch), floats(3, 3, channels, filters, seed=1)]
    agree(convolution(size, channels, filters, batch), (inputs, (size, size, filters, batch)))


def elementwise(formula, dtype, n=200, threads=16, vector=1, result=None):
    """B = formula(A) on blocks of threads, each with `vector` elements."""
    a = te.placeholder((n,), dtype, name="A")
    b = te.compute((n,), lambda i: formula(a[i]), name="B")
    s = te.create_schedule(b.op)
    rest, lanes = s[b].split(b.op.axis[0], factor=vector)
    block, thread = s[b].split(rest, factor=threads)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    if vector > 1:
        s[b].vectorize(lanes)
    return s, [a, b]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers(dtype):
    x = np.random.default_rng(3).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 200, dtype)
    for vector in (1, 4):
        program = elementwise(lambda v: te.if_then_else(v % 3 == 0, v // 7, v * v - v), dtype, vector=vector)
        agree(program, ([x], (200,)), dtype=dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("vector", [1, 4])
def test_floats(dtype, vector):
    x = np.random.default_rng(4).normal(size=200).astype(dtype)
    program = elementwise(lambda v: te.exp(v) * v + te.sqrt(te.abs(v)) / (v * v + 1), dtype, vector=vector)
    agree(program, ([x], (200,)), dtype=dtype)


def test_vectors_wider_than_those_of_processors():
    program, x = elementwise(lambda v: v * 0 + 2.5, "float64", 256, vector=8), floats(256).astype("float64")
    np.testing.assert_array_equal(agree(program, ([x], (256,)), dtype="float64")[0], np.full(256, 2.5))


def test_bool():
    x = floats(200)
    program = elementwise(lambda v: v > 0, "float32")
    np.testing.assert_array_equal(agree(program, ([x], (200,)), dtype="bool")[0], x > 0)


def test_two_kernels_with_memory_of_the_device_between():
    a = te.placeholder((24,), name="A")
    b = te.compute((24,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((24,), lambda i: b[23 - i] * 2.0, name="C")
    s = te.create_schedule(c.op)
    for stage, factor in ((b, 8), (c, 3)):
        outer, inner = s[stage].split(stage.op.axis[0], factor=factor)
        s[stage].bind(outer, te.thread_axis("blockIdx.x"))
        s[stage].bind(inner, te.thread_axis("threadIdx.x"))
    x = whole_numbers(24)
    np.testing.assert_array_equal(on_device(tedsl.build(s, [a, c], "opencl"), [x], (24,)), (x[::-1] + 1) * 2)


def reversed_by_blocks(scope, n=64, block=16):
    """Each block reverses its part through shared memory."""
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i // block * block + block - 1 - i % block] * 2.0, name="B")
    s = te.create_schedule(b.op)
    shared = s.cache_read(a, scope, [b])
    outer, inner = s[b].split(b.op.axis[0], factor=block)
    thread = te.thread_axis((0, block), "threadIdx.x")
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(inner, thread)
    s[shared].compute_at(s[b], outer)
    _, x = s[shared].split(shared.op.axis[0], factor=block)
    s[shared].bind(x, thread)
    return s, [a, b]


@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
def test_shared_memory_whose_size_the_code_or_the_launch_says(scope):
    x = floats(64)
    program = reversed_by_blocks(scope)
    built = tedsl.build(*program, "opencl")
    np.testing.assert_array_equal(on_device(built, [x], (64,)), x.reshape(4, 16)[:, ::-1].ravel() * 2)
    assert ("__local uchar *dynamic_shared" in built.imported_modules[0].get_source("cl")) == (scope == "shared.dyn")


def test_memory_of_a_warp_is_that_of_a_block():
    x = floats(64)
    built = tedsl.build(*reversed_by_blocks("warp"), "opencl")
    np.testing.assert_array_equal(on_device(built, [x], (64,)), x.reshape(4, 16)[:, ::-1].ravel() * 2)


def test_numbers_and_a_bool_as_arguments():
    n, by, flag = te.var("n"), te.var("by", "float16"), te.var("flag", "bool")
    a = te.placeholder((n,), "float16", name="A")
    b = te.compute((n,), lambda i: te.if_then_else(flag, a[i] * by, a[i]), name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=8)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(inner, te.thread_axis("threadIdx.x"))
    place, x = tedsl.device("opencl", 0), floats(20).astype("float16")
    built = tedsl.build(s, [a, b, by, flag], "opencl")
    for wanted in (True, False):
        given, out = tedsl.nd.array(x, place), tedsl.nd.array(np.zeros(20, "float16"), place)
        built(given, out, 1.5, wanted)
        np.testing.assert_array_equal(out.numpy(), x * np.float16(1.5) if wanted else x)
