"""Programs of several kernels, loops of the host, streams, time and files on the devices that are here."""

import numpy as np
import pytest

import tedsl
import tedsl.testing
from tedsl import te
from tedsl.errors import ArgumentTypeError
from tests.devices.opencl_device import needs_opencl

PLACES = [("cuda", tedsl.sim(0)), pytest.param(("opencl", tedsl.opencl(0)), marks=needs_opencl),
          pytest.param(("cuda", tedsl.cuda(0)), marks=tedsl.testing.requires_cuda())]


@pytest.fixture(params=PLACES, ids=lambda place: str(place[1]))
def place(request):
    """The kind of target, and the device."""
    return request.param


def bound(stage, axis, threads=32):
    outer, inner = stage.split(axis, threads)
    stage.bind(outer, te.thread_axis("blockIdx.x"))
    stage.bind(inner, te.thread_axis("threadIdx.x"))


def two_stages(kind):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * B[n - 1 - i], name="C")
    s = te.create_schedule(C.op)
    for tensor in (B, C):
        bound(s[tensor], s[tensor].op.axis[0])
    return tedsl.build(s, [A, C], target=kind, name="f")


def expected(x):
    return (x + 1) * (x + 1)[::-1]


@pytest.mark.parametrize("n", [1, 100, 1000])
def test_several_kernels_with_memory_between_them(place, n):
    kind, device = place
    x, c = np.arange(n, dtype="float32"), tedsl.nd.empty((n,), "float32", device)
    two_stages(kind)(tedsl.nd.array(x, device), c)
    np.testing.assert_array_equal(c.numpy(), expected(x))


def test_launches_on_a_stream_of_its_own(place):
    kind, device = place
    x, c = np.arange(50, dtype="float32"), tedsl.nd.empty((50,), "float32", device)
    stream = device.create_raw_stream()
    device.set_raw_stream(stream)
    try:
        two_stages(kind)(tedsl.nd.array(x, device), c)
        device.sync()
        np.testing.assert_array_equal(c.numpy(), expected(x))
    finally:
        device.free_raw_stream(stream)


def test_time(place):
    kind, device = place
    x, c = tedsl.nd.array(np.arange(50, dtype="float32"), device), tedsl.nd.empty((50,), "float32", device)
    times = two_stages(kind).time_evaluator("f", device, number=3, repeat=2)(x, c)
    assert len(times.results) == 2 and times.min > 0


def test_files(place, tmp_path):
    kind, device = place
    two_stages(kind).export_library(tmp_path / "f.tedsl")
    f = tedsl.runtime.load_module(tmp_path / "f.tedsl")
    x, c = np.arange(50, dtype="float32"), tedsl.nd.empty((50,), "float32", device)
    f(tedsl.nd.array(x, device), c)
    np.testing.assert_array_equal(c.numpy(), expected(x))


def test_a_loop_of_the_host(place):
    kind, device = place
    A = te.placeholder((3, 40), name="A")
    B = te.compute((3, 40), lambda i, j: A[i, j] * A[i, j], name="B")
    s = te.create_schedule(B.op)
    bound(s[B], B.op.axis[1])
    x, b = np.random.default_rng(0).random((3, 40), "float32"), tedsl.nd.empty((3, 40), "float32", device)
    tedsl.build(s, [A, B], target=kind)(tedsl.nd.array(x, device), b)
    np.testing.assert_array_equal(b.numpy(), x * x)


def test_dynamic_shared_memory(place):
    kind, device = place
    A = te.placeholder((4, 20), name="A")
    B = te.compute((4, 20), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4, 20), lambda i, j: B[i, 19 - j], name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].set_scope("shared.dyn")
    s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
    x, c = np.random.default_rng(0).random((4, 20), "float32"), tedsl.nd.empty((4, 20), "float32", device)
    tedsl.build(s, [A, C], target=kind)(tedsl.nd.array(x, device), c)
    np.testing.assert_array_equal(c.numpy(), (x + 1)[:, ::-1])


@pytest.mark.parametrize("dtype", ["int8", "int64", "float64", "uint8", "int32", "float32"])
def test_numbers_as_arguments(place, dtype):
    kind, device = place
    n, factor = te.var("n"), te.var("factor", dtype)
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute((n,), lambda i: A[i] * factor, name="B")
    s = te.create_schedule(B.op)
    bound(s[B], B.op.axis[0])
    x, b = np.arange(40).astype(dtype), tedsl.nd.empty((40,), dtype, device)
    tedsl.build(s, [A, factor, B], target=kind)(tedsl.nd.array(x, device), 3, b)
    np.testing.assert_array_equal(b.numpy(), x * 3)


def test_other_libraries_cannot_reach_the_memory(place):
    if place[1].kind == "cuda":
        return  # they can
    with pytest.raises(ArgumentTypeError, match="other libraries cannot reach"):
        tedsl.nd.array([1.0], place[1]).__dlpack__()
