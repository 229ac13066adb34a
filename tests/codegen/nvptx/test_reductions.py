"""Reductions across threads and memory of warps as PTX: shuffles and barriers where needed, values of the processor."""

import numpy as np
import pytest

import tedsl
from tests.codegen.nvptx.assembler import ARCHS, assemble, count
from tests.codegen.nvptx.kernels import device_code
from tests.passes.device.test_lower_allreduce import sums, whole
from tests.passes.device.test_lower_warp_memory import kept
from tests.passes.threads.programs import row_sums, softmax


def in_simulator(monkeypatch, make, data):
    """The outputs of the schedule that `make` gives, of PTX in the simulator and of the processor."""
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    results = []
    for target, device in (("cuda -arch=sm_80", tedsl.cuda(0)), ("llvm", tedsl.cpu(0))):
        s, args = make()
        arrays = [tedsl.nd.array(value, device) for value in data]
        arrays += [tedsl.nd.empty([int(dim) for dim in arg.shape], str(arg.dtype), device) for arg in args[len(data):]]
        tedsl.build(s, args, target=target)(*arrays)
        results.append([array.numpy() for array in arrays[len(data):]])
    return results


@pytest.mark.parametrize("threads, shuffles, barriers", [(8, 4, 0), (31, 6, 0), (32, 6, 0), (64, 7, 1), (65, 7, 2),
                                                         (256, 9, 1)])
def test_shuffles_and_barriers(threads, shuffles, barriers, tmp_path):
    code = device_code(*sums((4, 1000), {"x": threads}, "x"))
    image, _ = assemble(code.text, "sm_80", tmp_path)
    assert count(image, "SHFL", "DOWN") + count(image, "SHFL", "IDX") == shuffles
    assert code.text.count("bar.sync") == barriers


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("schedule", [lambda: row_sums(16, 1000, threads=256, rows=1), lambda: softmax(8, 100)],
                         ids=["rows", "softmax"])
def test_every_device(schedule, arch, tmp_path):
    assemble(device_code(*schedule(), arch).text, arch, tmp_path)


@pytest.mark.parametrize("threads", [3, 32, 33, 65, 100, 256])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16"])
def test_values(threads, dtype, monkeypatch):
    a = whole(2, threads + 5, dtype="int8").astype(dtype) // 10
    device, processor = in_simulator(monkeypatch, lambda: sums(a.shape, {"x": threads}, "x", dtype), [a])
    np.testing.assert_array_equal(device[0], processor[0])
    np.testing.assert_array_equal(device[0], a.sum(1, dtype=dtype))


@pytest.mark.parametrize("x, y", [(8, 4), (32, 3), (3, 5), (64, 2)])
@pytest.mark.parametrize("reduced", ["x", "y"])
def test_groups_of_threads(x, y, reduced, monkeypatch):
    other, own = (y, x) if reduced == "x" else (x, y)
    a = whole(2 * other, 2 * own + 1)
    device, processor = in_simulator(monkeypatch, lambda: sums(a.shape, {"x": x, "y": y}, reduced), [a])
    np.testing.assert_array_equal(device[0], processor[0])


@pytest.mark.parametrize("x", [8, 12, 32])
def test_memory_of_a_warp(x, monkeypatch, tmp_path):
    s, args, a, expected = kept(lambda i: x - 1 - i, n=4 * x, x=x)
    device, _ = in_simulator(monkeypatch, lambda: kept(lambda i: x - 1 - i, n=4 * x, x=x)[:2], [a])
    np.testing.assert_array_equal(device[0], expected)
    image, _ = assemble(device_code(s, args).text, "sm_80", tmp_path)
    assert (count(image, "SHFL", "IDX") > 0) == (x != 12)
