"""The driver of CUDA: what it asks of libcuda, in which order, and the sentences for what libcuda refuses."""

import ctypes

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import AllocationError, DeviceError
from tedsl.ir.dtype import dtype
from tedsl.runtime.devices import table
from tedsl.runtime.devices.api import DeviceAPI
from tedsl.runtime.devices.code import DeviceCode, DeviceFunction, DeviceParameter
from tedsl.runtime.devices.cuda.driver import CudaDriver
from tedsl.runtime.devices.cuda.library import FUNCTIONS
from tests.runtime.devices.fake_cuda import FakeCuda

F32, I32, I64, F16, BOOL = map(dtype, ("float32", "int32", "int64", "float16", "bool"))


@pytest.fixture
def cuda(monkeypatch):
    """The library behind tedsl.cuda(...)."""
    monkeypatch.delenv("TEDSL_CUDA", raising=False)
    library = FakeCuda()
    monkeypatch.setitem(table._LOADED, "cuda", CudaDriver(library))
    return library


def code_of(*parameters, dynamic=False):
    function = DeviceFunction("f_kernel0", parameters, ("blockIdx.x", "threadIdx.x"), dynamic)
    return DeviceCode("ptx", "// kernels", (function,), "cuda -arch=sm_90")


def test_every_function_that_is_called_is_declared(cuda):
    place = tedsl.cuda(1)
    x = tedsl.nd.array(np.arange(4.0), place)
    x.copyto(tedsl.cuda(0)).numpy()
    x.copyto(x)
    stream = place.create_raw_stream()
    place.free_raw_stream(stream)
    assert place.device_name == "Imagined 100"
    driver = place.driver
    driver.load(1, code_of()).launch("f_kernel0", (1, 1, 1), (1, 1, 1), (), 1 << 16)
    driver.elapsed(1, driver.record_event(1), driver.record_event(1))
    assert {call[0] for call in cuda.calls} <= FUNCTIONS.keys()
    assert isinstance(driver, DeviceAPI)


def test_arrays_there_and_back(cuda):
    values = np.arange(12, dtype="float32").reshape(3, 4)
    x = tedsl.nd.array(values, tedsl.cuda(0))
    address = next(iter(cuda.blocks))
    np.testing.assert_array_equal(x.numpy(), values)
    y = x.copyto(tedsl.cuda(1))
    np.testing.assert_array_equal(y.numpy(), values)
    (first, *_) = cuda.asked("cuMemcpyHtoDAsync_v2")
    assert (first[1], first[3:]) == (address, (48, 0))
    ((_, _, context, of, other, size, stream),) = cuda.asked("cuMemcpyPeerAsync")
    assert (of, size, stream) == (address, 48, 0) and context != other
    del x, y
    assert not cuda.blocks


def test_the_context_is_retained_once_and_current_before_each_call(cuda):
    tedsl.nd.array(np.zeros(3), tedsl.cuda(1)).numpy()
    assert cuda.asked("cuDevicePrimaryCtxRetain") == [("cuDevicePrimaryCtxRetain", 8)]
    assert cuda.calls[0] == ("cuInit", 0)
    for before, call in zip(cuda.calls, cuda.calls[1:]):
        if call[0].startswith(("cuMem", "cuStream")):
            assert before[0] == "cuCtxSetCurrent"


def test_limits(cuda):
    place = tedsl.cuda(0)
    assert (place.exist, place.compute_version, place.warp_size, place.max_threads_per_block) == (True, "9.0", 32, 1024)
    assert (place.multi_processor_count, place.max_shared_memory_per_block) == (132, 49152)
    assert (place.max_clock_rate, place.max_thread_dimensions) == (1_755_000, [1024, 1024, 64])
    assert place.total_global_memory == 1 << 36


def test_a_launch(cuda):
    parameters = (DeviceParameter("A", F32, True), DeviceParameter("n", I32, False), DeviceParameter("m", I64, False),
                  DeviceParameter("x", F16, False), DeviceParameter("b", BOOL, False))
    seen = []

    def launched(function, *rest):
        places = (ctypes.c_void_p * 5).from_address(rest[8])
        types = (ctypes.c_uint64, ctypes.c_int32, ctypes.c_int64, ctypes.c_float, ctypes.c_uint8)
        seen.append((rest[:8], [kind.from_address(place).value for kind, place in zip(types, places)], rest[9]))

    cuda.do_cuLaunchKernel = launched
    loaded = tedsl.cuda(0).driver.load(0, code_of(*parameters))
    loaded.launch("f_kernel0", (5, 2, 1), (32, 4, 1), (1 << 40, -3, 1 << 35, 0.5, True), 64, 9)
    assert seen == [((5, 2, 1, 32, 4, 1, 64, 9), [1 << 40, -3, 1 << 35, 0.5, 1], None)]
    assert not cuda.asked("cuFuncSetAttribute")
    loaded.launch("f_kernel0", (1, 1, 1), (1, 1, 1), (1, 1, 1, 1.0, False), 50_000)
    assert cuda.asked("cuFuncSetAttribute")[0][2:] == (8, 50_000)
    assert cuda.asked("cuModuleGetFunction")[0][2:] == (b"f_kernel0",)
    del loaded
    assert cuda.asked("cuModuleUnload")


def test_events_measure_seconds(cuda):
    driver = tedsl.cuda(0).driver
    start, end = driver.record_event(0, 3), driver.record_event(0, 3)
    assert driver.elapsed(0, start, end) == pytest.approx(2.5e-3)
    assert [call[2] for call in cuda.asked("cuEventRecord")] == [3, 3]
    assert [call[1] for call in cuda.asked("cuEventDestroy_v2")] == [start, end]


@pytest.mark.parametrize("function, status, use, words", [
    ("cuMemAlloc_v2", 2, lambda d: tedsl.nd.empty((8,), "int8", d), "no memory left to allocate 8 bytes"),
    ("cuMemcpyHtoDAsync_v2", 700, lambda d: tedsl.nd.array([1.0], d),
     "failed to copy 8 bytes to it: CUDA_ERROR_ILLEGAL_ADDRESS, an illegal memory access.*\n.*this process cannot"),
    ("cuStreamSynchronize", 700, lambda d: d.sync(), "failed to run what it was given: CUDA_ERROR_ILLEGAL_ADDRESS"),
    ("cuModuleLoadDataEx", 218, lambda d: d.driver.load(0, code_of()),
     "failed to load the kernels: CUDA_ERROR_INVALID_PTX, bad PTX\nptxas error : line 3\n  built for cuda -arch=sm_90"),
    ("cuModuleLoadDataEx", 209, lambda d: d.driver.load(0, code_of()), "hint: build for the generation of this device"),
    ("cuLaunchKernel", 700, lambda d: d.driver.load(0, code_of()).launch("f_kernel0", (1, 1, 1), (2, 1, 1), ()),
     r"failed to launch f_kernel0 on \(1, 1, 1\) blocks of \(2, 1, 1\) threads: CUDA_ERROR"),
])
def test_what_the_library_refuses(cuda, function, status, use, words):
    cuda.fails[function] = status
    with pytest.raises(AllocationError if status == 2 else DeviceError, match=rf"^cuda\(0\)(.|\n)*{words}"):
        use(tedsl.cuda(0))


def test_devices_that_are_not_there(cuda):
    assert not tedsl.cuda(2).exist and tedsl.cuda(2).missing == "the last one is cuda(1)"
    with pytest.raises(DeviceError, match=r"there is no device cuda\(2\) here: the last one is cuda\(1\)"):
        tedsl.cuda(2).sync()


@pytest.mark.parametrize("fails, devices, words", [
    ({"cuInit": 100}, 1, "the driver does not start: CUDA_ERROR_NO_DEVICE, no CUDA-capable device"), ({}, 0, "sees no device"),
])
def test_a_driver_without_devices(cuda, fails, devices, words):
    cuda.fails, cuda.devices = fails, devices
    assert words in tedsl.cuda(0).missing and not tedsl.cuda(0).exist


def test_without_the_library(monkeypatch):
    monkeypatch.setattr("tedsl.runtime.devices.cuda.driver.libcuda", lambda: None)
    monkeypatch.setitem(table._LOADED, "cuda", CudaDriver())
    monkeypatch.delenv("TEDSL_CUDA", raising=False)
    assert tedsl.cuda(0).missing == "NVIDIA's driver is not installed: there is no libcuda.so.1"
    assert not tedsl.cuda(0).exist


def test_a_function_is_built_called_and_timed(cuda):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 64)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    f = tedsl.build(s, [A, B], target="cuda", name="f")
    a, b = (tedsl.nd.array(np.zeros(100, "float32"), tedsl.cuda(0)) for _ in range(2))
    f(a, b)
    assert [kernel[0] for kernel in cuda.kernels] == [(2, 1, 1, 64, 1, 1)]
    assert f.time_evaluator("f", tedsl.cuda(0), number=5)(a, b).mean == pytest.approx(5e-4)
    assert len(cuda.kernels) == 7


def test_the_environment_names_a_stand_in(monkeypatch):
    monkeypatch.setenv("TEDSL_CUDA", "nonsense")
    with pytest.raises(tedsl.errors.ArgumentError, match="TEDSL_CUDA is 'nonsense'"):
        _ = tedsl.cuda(0).exist


@tedsl.testing.requires_cuda
def test_a_device_that_is_here():
    x = tedsl.nd.array(np.arange(1000.0), tedsl.cuda(0))
    np.testing.assert_array_equal(x.numpy(), np.arange(1000.0))
