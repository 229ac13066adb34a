"""Arrays on devices: made, copied, read, shared by DLPack, freed; streams and limits of devices."""

import gc
import pickle

import numpy as np
import pytest

import tedsl
from tedsl import nd
from tedsl.errors import ArgumentError, ArgumentTypeError, DeviceError
from tests.runtime.devices.pretend import DRIVER

HERE, THERE = tedsl.device("pretend", 0), tedsl.device("pretend", 1)
VALUES = np.arange(12, dtype="float32").reshape(3, 4)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float16", "uint64", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 0, 3)])
def test_there_and_back(shape, dtype):
    values = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    x = nd.array(values, HERE)
    assert (x.shape, x.dtype, x.device, x.ndim) == (shape, dtype, HERE, len(shape))
    for back in (x.numpy(), np.asarray(x), x.copyto(tedsl.cpu()).numpy(), nd.array(x).numpy(), x.asnumpy()):
        np.testing.assert_array_equal(back, values)
        assert back.dtype == values.dtype


def test_strided_and_converted_sources():
    x = nd.array(VALUES.T, HERE)
    np.testing.assert_array_equal(x.numpy(), VALUES.T)
    x.copyfrom(np.arange(12).reshape(4, 3)[::-1])
    np.testing.assert_array_equal(x.numpy(), np.arange(12).reshape(4, 3)[::-1])
    with pytest.raises(ArgumentError, match="the source has shape"):
        x.copyfrom(VALUES)


def test_copies_between_arrays_and_devices():
    x, y, z = nd.array(VALUES, HERE), nd.empty((3, 4), "float32", THERE), nd.empty((3, 4), "float64")
    assert x.copyto(y) is y and y.device == THERE
    assert x.copyto(z) is z
    assert nd.array(x, THERE).device == THERE
    for other in (y, z, x.copyto(THERE), y.copyto(HERE)):
        np.testing.assert_array_equal(other.numpy(), VALUES)
    y[:] = 7
    np.testing.assert_array_equal(y.numpy(), np.full((3, 4), 7))
    y[1, ::2] = 0
    assert y[1].tolist() == [0, 7, 0, 7] and y[2, 3] == 7 and len(y) == 3
    x[:] = y
    np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_what_an_array_says_of_itself():
    x = nd.array(VALUES, HERE)
    assert "pretend(0)" in repr(x) and "11." in repr(x)
    assert "pretend(0)" in x._repr_html_()
    again = pickle.loads(pickle.dumps(x))
    assert again.device == tedsl.cpu()
    np.testing.assert_array_equal(again.numpy(), VALUES)
    with pytest.raises(ValueError, match="without a copy"):
        np.array(x, copy=False) if np.__version__ >= "2" else x.__array__(copy=False)


def test_memory_is_freed_with_its_last_array():
    gc.collect()
    before = len(DRIVER.memory)
    x = nd.empty((100,), "float32", HERE)
    shared = nd.from_dlpack(x)
    assert len(DRIVER.memory) == before + 1
    del x
    assert len(DRIVER.memory) == before + 1
    del shared
    gc.collect()
    assert len(DRIVER.memory) == before


@pytest.mark.parametrize("shape", [(3, 4), (), (0, 2)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float16"])
def test_dlpack_shares_the_memory(shape, dtype):
    x = nd.array(np.ones(shape, dtype), HERE)
    assert x.__dlpack_device__() == (HERE.device_type, 0)
    y = nd.from_dlpack(x)
    assert (y.device, y.dtype, y.shape) == (HERE, dtype, shape)
    y[:] = np.zeros(shape, dtype)
    assert not x.numpy().any()


def test_unread_capsules_give_their_memory_back():
    before = len(DRIVER.memory)
    x = nd.array(VALUES, HERE)
    capsule = x.__dlpack__()
    del x
    assert len(DRIVER.memory) == before + 1
    del capsule
    gc.collect()
    assert len(DRIVER.memory) == before


def test_dlpack_waits_for_the_work_of_the_stream():
    x = nd.array(VALUES, HERE)
    DRIVER.waits.clear()
    x.__dlpack__(stream=-1)
    assert not DRIVER.waits
    x.__dlpack__(stream=None, max_version=(1, 0))
    assert DRIVER.waits == [(0, 0)]


def test_memory_of_devices_that_nobody_knows():
    class Elsewhere:
        def __dlpack__(self, **options):
            raise AssertionError

        def __dlpack_device__(self):
            return 77, 0

    with pytest.raises(ArgumentTypeError, match="DLPack's kind 77"):
        nd.from_dlpack(Elsewhere())


def test_devices_that_are_not_there():
    far = tedsl.device("pretend", 5)
    assert not far.exist and far.warp_size is None
    for make in (lambda: nd.empty((1,), device=far), lambda: nd.array([1.0], far), lambda: nd.array(VALUES, HERE).copyto(far)):
        with pytest.raises(ArgumentError, match=r"there is no device pretend\(5\) here: there are 2 pretended devices"):
            make()
    for use in (far.sync, far.create_raw_stream, lambda: far.set_raw_stream(0), lambda: tedsl.vulkan(0).sync()):
        with pytest.raises(DeviceError, match="there is no device"):
            use()


def test_streams():
    stream = HERE.create_raw_stream()
    HERE.set_raw_stream(stream)
    DRIVER.waits.clear()
    HERE.sync()
    HERE.sync(0)
    THERE.sync()
    assert DRIVER.waits == [(0, stream), (0, 0), (1, 0)]
    HERE.free_raw_stream(stream)
    HERE.sync()
    assert DRIVER.waits[-1] == (0, 0) and stream not in DRIVER.streams
    assert tedsl.cpu().create_raw_stream() == 0
    tedsl.cpu().set_raw_stream(0)


def test_limits_by_their_names_in_tvm():
    assert (HERE.exist, HERE.device_name, HERE.compute_version, HERE.max_threads_per_block) == (True, "pretended", "1.5", 256)
    assert (HERE.warp_size, HERE.multi_processor_count, HERE.max_shared_memory_per_block) == (1, 4, 1 << 15)
    assert (HERE.max_clock_rate, HERE.max_thread_dimensions) == (1_500_000, [256, 256, 64])
    assert tedsl.cpu().warp_size is None


def test_more_memory_than_there_is():
    with pytest.raises(MemoryError):
        nd.empty((1 << 40,), "int8", HERE)
