"""The driver of OpenCL devices: memory, copies, streams, events, programs, and what it says where it cannot."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tedsl.errors import AllocationError, DeviceError
from tedsl.ir.dtype import dtype
from tedsl.runtime.devices.api import DeviceAPI
from tedsl.runtime.devices.code import DeviceCode, DeviceFunction, DeviceParameter
from tests.devices.opencl_device import DRIVER, needs_opencl

SCALE = """__kernel void scale(__global float *A, const long n, const float by)
{
    const long i = get_group_id(0) * get_local_size(0) + get_local_id(0);
    if (i < n) {
        A[i] *= by;
    }
}
"""


def code(text=SCALE):
    parameters = (DeviceParameter("A", dtype("float32"), True, True), DeviceParameter("n", dtype("int64"), False),
                  DeviceParameter("by", dtype("float32"), False))
    return DeviceCode("cl", text, (DeviceFunction("scale", parameters, ("blockIdx.x", "threadIdx.x")),), "opencl")


@pytest.fixture
def array():
    """Sixty-four floats on the device, and a function that reads them back."""
    values = np.arange(64, dtype="float32")
    memory = DRIVER.allocate(0, values.nbytes)
    DRIVER.copy_in(0, memory, values.ctypes.data, values.nbytes)

    def read():
        got = np.zeros(64, "float32")
        DRIVER.copy_out(0, got.ctypes.data, memory, got.nbytes)
        return got

    yield memory, values, read
    DRIVER.free(0, memory)


def test_it_is_a_driver():
    assert isinstance(DRIVER, DeviceAPI)


def test_a_device_that_is_not_there_is_one_sentence():
    for number in (99, -1):
        sentence = DRIVER.missing(number)
        assert sentence.startswith(f"there is no opencl({number}): ") and "\n" not in sentence
        with pytest.raises(DeviceError, match=f"there is no opencl\\({number}\\)"):
            DRIVER.allocate(number, 4)


def test_without_pyopencl_it_says_what_to_install():
    script = ("import sys; sys.modules['pyopencl'] = None\n"
              "from tedsl.runtime.devices.table import driver_of; print(driver_of('opencl').missing(0))")
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.startswith("there is no opencl(0): the package pyopencl is not installed (pip install 'tedsl[opencl]'")


@needs_opencl
def test_properties():
    found = DRIVER.properties(0)
    assert found.name and found.max_threads >= 1 and found.shared_memory >= 16384
    assert found.capability[0] in "123"
    assert len(found.max_block) == 3 and found.memory > 0 and found.processors > 0


@needs_opencl
def test_what_is_copied_comes_back(array):
    _, values, read = array
    np.testing.assert_array_equal(read(), values)


@needs_opencl
def test_an_address_inside_of_an_array_is_its_part(array):
    memory, values, read = array
    new = np.full(3, -1, "float32")
    DRIVER.copy_in(0, memory + 8, new.ctypes.data, new.nbytes)
    values[2:5] = -1
    np.testing.assert_array_equal(read(), values)
    DRIVER.copy(0, memory + 128, 0, memory, 16)
    values[32:36] = values[:4]
    np.testing.assert_array_equal(read(), values)


@needs_opencl
def test_memory_is_aligned_and_apart():
    taken = [DRIVER.allocate(0, size) for size in (0, 1, 256, 1000)]
    assert all(address % 256 == 0 for address in taken) and len(set(taken)) == 4
    for address in taken:
        DRIVER.free(0, address)
    with pytest.raises(DeviceError, match="is no address of memory of this device"):
        DRIVER.copy(0, taken[1], 0, taken[1], 1)


@needs_opencl
def test_too_much_memory_is_an_allocation_error():
    with pytest.raises(AllocationError, match="has no 1180591620717411303424 bytes"):
        DRIVER.allocate(0, 1 << 70)
    with pytest.raises(MemoryError):
        DRIVER.allocate(0, 1 << 50)


@needs_opencl
def test_a_kernel_runs_on_an_array_and_on_its_part(array):
    memory, values, read = array
    loaded = DRIVER.load(0, code())
    loaded.launch("scale", (8, 1, 1), (8, 1, 1), [memory, 63, 2.0])
    values[:63] *= 2
    np.testing.assert_array_equal(read(), values)
    loaded.launch("scale", (1, 1, 1), (8, 1, 1), [memory + 128, 8, 3.0])
    values[32:40] *= 3
    np.testing.assert_array_equal(read(), values)
    loaded.launch("scale", (0, 1, 1), (8, 1, 1), [memory, 63, 2.0])  # no blocks
    np.testing.assert_array_equal(read(), values)


@needs_opencl
def test_streams_and_events(array):
    memory, values, read = array
    loaded, stream = DRIVER.load(0, code()), DRIVER.create_stream(0)
    assert stream != 0
    start = DRIVER.record_event(0, stream)
    for _ in range(3):
        loaded.launch("scale", (8, 1, 1), (8, 1, 1), [memory, 64, 2.0], stream=stream)
    end = DRIVER.record_event(0, stream)
    DRIVER.synchronise(0, stream)
    assert 0 <= DRIVER.elapsed(0, start, end) < 60
    with pytest.raises(DeviceError, match="has no event"):
        DRIVER.elapsed(0, start, end)
    DRIVER.free_stream(0, stream)
    np.testing.assert_array_equal(read(), values * 8)
    with pytest.raises(DeviceError, match="has no stream"):
        DRIVER.synchronise(0, stream)


@needs_opencl
def test_code_that_does_not_compile_comes_with_the_report_of_the_compiler():
    with pytest.raises(DeviceError, match=r"does not compile the kernels[\s\S]*undeclared identifier 'wrong'"):
        DRIVER.load(0, code(SCALE.replace("*= by", "*= wrong")))
    with pytest.raises(DeviceError, match="failed to find the kernel scale"):
        DRIVER.load(0, code(SCALE.replace("void scale", "void other")))
    with pytest.raises(DeviceError, match="takes OpenCL C, not code of the form 'ptx'"):
        DRIVER.load(0, DeviceCode("ptx", "", (), "cuda"))


@needs_opencl
def test_too_many_threads_in_a_block(array):
    with pytest.raises(DeviceError, match=r"has at most \d+ threads in a block, not 1048576"):
        DRIVER.load(0, code()).launch("scale", (1, 1, 1), (1 << 20, 1, 1), [array[0], 64, 2.0])


SEVERAL = """
import numpy as np
from tedsl.runtime.devices.table import driver_of
from tests.devices.test_opencl_driver import code
driver = driver_of("opencl")
assert not driver.missing(1), driver.missing(1)
values = np.arange(8, dtype="float32")
first, second = driver.allocate(0, 32), driver.allocate(1, 32)
driver.copy_in(0, first, values.ctypes.data, 32)
driver.load(0, code()).launch("scale", (1, 1, 1), (8, 1, 1), [first, 8, 2.0])
driver.copy(1, second, 0, first, 32)
driver.load(1, code()).launch("scale", (1, 1, 1), (8, 1, 1), [second, 8, 5.0])
got = np.zeros(8, "float32")
driver.copy_out(1, got.ctypes.data, second, 32)
assert (got == values * 10).all(), got
"""


@needs_opencl
def test_two_devices():
    """PoCL gives as many devices as it is asked for."""
    if "Portable Computing Language" not in __import__("pyopencl").get_platforms()[0].name:
        pytest.skip("only PoCL makes two devices of one processor")
    environment = {**os.environ, "POCL_DEVICES": "basic basic", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    run = subprocess.run([sys.executable, "-c", SEVERAL], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
