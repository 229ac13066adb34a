"""Mistakes with devices: each is an error that says what to do, on the simulator, and on OpenCL where there is one."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, DeviceError
from tests.devices.opencl_device import needs_opencl

DEVICES = ["sim", pytest.param("opencl", marks=needs_opencl)]


def plus_one(kind):
    """The function, its kernel, and two arrays of 64 on the device."""
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], 32)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    f, device = tedsl.build(s, [A, B], "cuda" if kind == "sim" else kind), tedsl.device(kind, 0)
    a, b = tedsl.nd.array(np.ones(64, "float32"), device), tedsl.nd.empty((64,), "float32", device)
    return f, f.imported_modules[0]["default_function_kernel0"], a, b


def refused(call, words, error):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value), str(caught.value)


@pytest.mark.parametrize("kind", DEVICES)
def test_kernels_launched_by_themselves(kind):
    _, kernel, a, b = plus_one(kind)
    kernel(a, b, 2, 32)
    np.testing.assert_array_equal(b.numpy(), np.full(64, 2, "float32"))
    wide = tedsl.nd.empty((64,), "float64", a.device)
    for arguments, words in (((a, b, a, 32), "the size blockIdx.x is an int of at least 0"), ((4, 32, a, b), "A is an NDArray"),
                             ((a, wide, 2, 32), "B is an array of float32, and the given one holds float64"),
                             ((a, b, 4.5, 32), "not 4.5"), ((a, b, -4, 32), "not -4"), ((a, 4, 2, 32), "B is an NDArray"),
                             ((a, b, True, 32), "not True")):
        refused(lambda arguments=arguments: kernel(*arguments), words, ArgumentTypeError)


def test_kernels_take_arrays_of_one_device():
    _, kernel, a, _ = plus_one("sim")
    elsewhere = tedsl.nd.empty((64,), "float32", tedsl.sim(1))
    refused(lambda: kernel(a, elsewhere, 2, 32), "a kernel runs on one device", ArgumentError)


@pytest.mark.parametrize("kind", DEVICES)
def test_hints_name_the_device_that_is_there(kind):
    f, _, a, b = plus_one(kind)
    there = f"tedsl.device('{kind}', 0)"
    refused(lambda: f(a, np.zeros(64, "float32")), f"B = tedsl.nd.array(B, {there})", ArgumentTypeError)
    refused(lambda: f(a, None), f"tedsl.nd.array(values, {there}) makes one", ArgumentTypeError)
    refused(lambda: f.time_evaluator("default_function", tedsl.cpu())(a, b), f"runs on {kind}(0), not on cpu(0)", ArgumentError)
    refused(lambda: a.device.set_raw_stream("foo"), "not 'foo'", ArgumentTypeError)


@needs_opencl
def test_more_shared_memory_than_the_device_has():
    device = tedsl.opencl(0)
    n = 2 * device.max_shared_memory_per_block // 4
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[(i * 7) % n] + 1, name="B")
    s = te.create_schedule(B.op)
    shared = s.cache_read(A, "shared", [B])
    block, rest = s[B].split(B.op.axis[0], factor=n // 2)
    thread, _ = s[B].split(rest, nparts=64)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    s[shared].compute_at(s[B], block)
    s[shared].bind(s[shared].split(s[shared].op.axis[0], factor=64)[1], te.thread_axis("threadIdx.x"))
    arrays = [tedsl.nd.empty((n,), "float32", device) for _ in range(2)]
    refused(lambda: tedsl.build(s, [A, B], "opencl")(*arrays), "bytes of shared memory for a block, not", DeviceError)
