"""The driver of simulated devices: memory, copies, streams, events, limits, several devices."""

import gc

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
from tedsl import te
from tedsl.errors import AllocationError, ArgumentError, DeviceError, TedslError
from tedsl.runtime.devices.api import DeviceAPI
from tedsl.runtime.devices.code import DeviceCode
from tedsl.simulate.driver import SimDriver
from tests.simulate.kernels import code_of, kernel
from tests.simulate.programs import matmul, vector_add


def test_it_is_a_driver():
    driver = SimDriver()
    assert isinstance(driver, DeviceAPI)
    assert driver.missing(0) == "" and "there is no sim(9)" in driver.missing(9)
    assert driver.properties(0).warp_size == 32 and driver.properties(0).capability == "8.0"


def test_memory_comes_and_goes():
    driver = SimDriver()
    first, second = driver.allocate(0, 100), driver.allocate(0, 100)
    assert first % 256 == second % 256 == 0 and abs(first - second) > 100
    values, back = np.arange(100, dtype=np.uint8), np.zeros(50, np.uint8)
    driver.copy_in(0, first, values.ctypes.data, 100)
    driver.copy(0, second + 10, 0, first + 20, 40)
    driver.copy_out(0, back.ctypes.data, second + 10, 40)
    assert back[:40].tolist() == list(range(20, 60))
    driver.free(0, first)
    with pytest.raises(DeviceError, match="has not allocated"):
        driver.free(0, first)
    with pytest.raises(DeviceError, match="not all allocated"):
        driver.copy_out(0, back.ctypes.data, second + 90, 40)
    with pytest.raises(AllocationError, match=r"sim\(0\) has no"):
        driver.allocate(0, 1 << 50)


def test_what_was_copied_in_part_is_known_in_part():
    driver = SimDriver()
    memory = driver.allocate(0, 128)
    values = np.ones(64, np.uint8)
    driver.copy_in(0, memory, values.ctypes.data, 63)
    loaded = driver.load(0, code_of(kernel("mad.wide.u32 %rd9, %r0, 4, %rd0; ld.global.f32 %f1, [%rd9];", ("A",))))
    loaded.launch("k", (1, 1, 1), (15, 1, 1), [memory])
    assert simulate.last_report().findings == ()
    loaded.launch("k", (1, 1, 1), (16, 1, 1), [memory])
    assert [finding.count for finding in simulate.last_report().findings] == [1]


def test_devices_have_memory_and_clocks_of_their_own():
    driver = SimDriver()
    here, there = driver.allocate(0, 64), driver.allocate(1, 64)
    values = np.arange(64, dtype=np.uint8)
    driver.copy_in(0, here, values.ctypes.data, 64)
    driver.copy(1, there, 0, here, 64)
    back = np.zeros(64, np.uint8)
    driver.copy_out(1, back.ctypes.data, there, 64)
    assert back.tolist() == values.tolist()
    with pytest.raises(DeviceError):
        driver.copy_out(1, back.ctypes.data, here, 64)


def test_events_tell_the_time_of_the_model():
    driver = SimDriver()
    stream = driver.create_stream(0)
    start = driver.record_event(0, stream)
    memory = driver.allocate(0, 1 << 20)
    values = np.zeros(1 << 20, np.uint8)
    driver.copy_in(0, memory, values.ctypes.data, values.size, stream)
    end = driver.record_event(0, stream)
    assert driver.elapsed(0, start, end) == pytest.approx((1 << 20) / 20e9)
    with pytest.raises(DeviceError, match="has no events"):
        driver.elapsed(0, start, end)
    driver.free_stream(0, stream)
    with pytest.raises(DeviceError, match="has no stream"):
        driver.record_event(0, stream)


def test_launches_outside_of_the_limits_are_refused():
    driver = SimDriver()
    loaded = driver.load(0, code_of(kernel(".shared .align 4 .b8 s[200000]; mov.u32 %r1, 0;", ())))
    for grid, block, words in (((1, 1, 1), (2048, 1, 1), "outside of its limits"), ((0, 1, 1), (32, 1, 1), "outside"),
                               ((1, 1, 1), (32, 1, 1), "needs 200000 bytes of shared memory")):
        with pytest.raises(DeviceError, match=words):
            loaded.launch("k", grid, block, [])
    with pytest.raises(DeviceError, match="has no kernel 'other'; it has k"):
        loaded.launch("other", (1, 1, 1), (1, 1, 1), [])
    with pytest.raises(DeviceError, match="runs PTX, not code of form 'cl'"):
        driver.load(0, DeviceCode("cl", "", (), "opencl"))


def test_variables_of_a_text_live_as_long_as_its_code():
    driver = SimDriver()
    loaded = driver.load(0, DeviceCode("ptx", kernel("mov.u32 %r1, 0;", (), before=".global .align 4 .b8 t[64];"), (), ""))
    assert [region.name for region in driver._devices[0].memory.regions] == ["t"]
    del loaded
    gc.collect()
    assert driver._devices[0].memory.regions == []


def test_the_model_is_chosen_by_the_environment(monkeypatch):
    monkeypatch.setenv("TEDSL_SIM_CAPABILITY", "9.0")
    assert SimDriver().properties(0).processors == 132
    monkeypatch.setenv("TEDSL_SIM_CAPABILITY", "1.0")
    with pytest.raises(ArgumentError, match=r"there is no model of capability '1.0'"):
        SimDriver().properties(0)


def test_the_simulator_stands_for_cuda(monkeypatch):
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    s, args, values = vector_add(100, 32)
    function = tedsl.build(s, args, "cuda")
    rng = np.random.default_rng(0)
    a, b = (rng.random(100, dtype=np.float32) for _ in range(2))
    for device in (tedsl.cuda(0), tedsl.cuda(2), tedsl.device("sim", 1)):
        arrays = [tedsl.nd.array(a, device), tedsl.nd.array(b, device), tedsl.nd.empty((100,), "float32", device)]
        function(*arrays)
        assert (arrays[-1].numpy() == values(a, b)).all()
        assert simulate.last_report().device == device.device_id
    assert function.time_evaluator(function.entry_name, tedsl.cuda(0), number=2)(
        *[tedsl.nd.array(one, tedsl.cuda(0)) for one in (a, b, a)]).mean == pytest.approx(3.03e-6, abs=1e-6)


def test_uninitialised_arrays_are_named(monkeypatch):
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    s, args, _ = vector_add(100, 32)
    function = tedsl.build(s, args, "cuda")
    arrays = [tedsl.nd.empty((100,), "float32", tedsl.cuda(0)) for _ in range(3)]
    with simulate.mode("checked"), pytest.raises(TedslError, match="reads A \\+ 0, which nothing has written"):
        function(*arrays)


def test_reports_name_the_arrays_of_stages(monkeypatch):
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    s, args, values = matmul()
    function = tedsl.build(s, args, "cuda")
    rng = np.random.default_rng(0)
    given = [rng.random((32, 32), dtype=np.float32) for _ in range(3)]
    arrays = [tedsl.nd.array(one, tedsl.cuda(0)) for one in given]
    simulate.reset()
    function(*arrays)
    report, = simulate.report()
    assert {name for access in report.accesses for name in access.memory} >= {"A", "B", "C", "A_shared", "B_shared"}
    assert report.traffic("global", "load", "A").asked == 32 * 32 * 4 * 2  # by the blocks of both columns
    assert "A_shared" in str(report) and "A_shared" in simulate.report()._repr_html_()


@pytest.mark.parametrize("n, blocks", [(5, 1), (64 * 32, 32), (64 * 32 + 1, 32), (64 * 1000, 32)])
def test_a_sample_of_the_blocks_counts_for_all(n, blocks):
    """Blocks that do the same: counts are those of all, but for the last, which may have fewer threads."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], 64)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    f = tedsl.build(s, [A, B], "cuda")
    a, b = (tedsl.nd.array(np.ones(n, "float32"), tedsl.sim(0)) for _ in "ab")
    f(a, b)
    all_blocks = simulate.last_report()
    b = tedsl.nd.array(np.zeros(n, "float32"), tedsl.sim(0))
    with simulate.mode("sampled"):
        f(a, b)
    sample = simulate.last_report()
    assert sample.blocks == blocks and all_blocks.blocks == all_blocks.grid[0] == sample.grid[0]
    assert sample.duration.seconds == pytest.approx(all_blocks.duration.seconds, rel=0.1)
    assert sum(sample.instructions.values()) == pytest.approx(sum(all_blocks.instructions.values()), rel=0.1)
    assert sample.traffic("global").moved == pytest.approx(all_blocks.traffic("global").moved, rel=0.1)
    computed = b.numpy() == 2
    assert computed[0] and computed[-1] and computed.sum() in range(64 * (blocks - 1), 64 * blocks + 1)
    assert (f"from {blocks} of {sample.grid[0]} blocks" in str(sample)) == (blocks < sample.grid[0])


@pytest.mark.parametrize("mode", ["report", "fast"])
def test_a_product_of_256_is_simulated(monkeypatch, mode):
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    s, args, values = matmul(256, 256, 256, 64, 8, 4)
    function = tedsl.build(s, args, "cuda")
    rng = np.random.default_rng(0)
    given = [rng.random((256, 256), dtype=np.float32) for _ in range(3)]
    arrays = [tedsl.nd.array(one, tedsl.cuda(0)) for one in given]
    with simulate.mode(mode):
        function(*arrays)
    np.testing.assert_allclose(arrays[-1].numpy(), values(*given[:2]), rtol=1e-5)
    assert simulate.last_report().wall > 0


@pytest.mark.parametrize("variable, given, choices", [
    ("TEDSL_SIM", "check", "report, checked, fast"), ("TEDSL_SIM_CAPABILITY", "6.1", "7.0, 8.0, 9.0")])
def test_the_environment_is_checked_before_anything_runs(monkeypatch, variable, given, choices):
    monkeypatch.setenv(variable, given)
    with pytest.raises(ArgumentError, match=f"the variable {variable} of the environment") as caught:
        SimDriver()
    assert choices in str(caught.value)
