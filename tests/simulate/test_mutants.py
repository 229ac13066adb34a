"""Every barrier and every array of shared memory counts: without one, or with less, the simulator finds something."""

import dataclasses

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
from tests.simulate import programs
from tests.simulate.mutants import with_smaller_buffers, without_barriers, without_barriers_of_text

ROUNDED = 16  # bytes, of whose multiples LLVM's arrays are
# Here threads wait for a number that all of them write alike. Without a barrier LLVM lets each thread use its own, and nothing
# goes wrong: these barriers leave the text that LLVM wrote.
IN_TEXT = ("softmax_64_32", "softmax_33_16", "softmax_100_64", "softmax_200_128", "softmax_96_96")
UNUSED = {"transpose_48_16_1": 17, "transpose_64_32_1": 33}  # elements behind the last row, where rows are padded


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    monkeypatch.setenv("TEDSL_CUDA", "sim")


def built(make):
    """The built function, its arrays on the device, and what its last array should hold."""
    s, args, values = make()
    function = tedsl.build(s, args, "cuda")
    given = programs.inputs(args)
    device = tedsl.cuda(0)
    shape = [int(extent) for extent in args[-1].shape]
    arrays = [*[tedsl.nd.array(one, device) for one in given], tedsl.nd.empty(shape, args[-1].dtype, device)]
    return function, arrays, values(*given)


def test_there_are_fifty_kernels_with_shared_memory():
    assert len(programs.CASES) >= 50


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", [*programs.CASES, *programs.WITHOUT_SHARED])
def test_kernels_compute_what_numpy_does_and_each_barrier_and_array_counts(monkeypatch, name):
    make = {**programs.CASES, **programs.WITHOUT_SHARED}[name]
    function, arrays, expected = built(make)
    with simulate.mode("checked"):
        function(*arrays)
    got = arrays[-1].numpy()
    np.testing.assert_allclose(got, expected, rtol=2e-3 if got.dtype == np.float16 else 1e-5)
    module = function.imported_modules[0]
    code = module.code
    smaller = ROUNDED + got.dtype.itemsize * UNUSED.get(name, 0)
    barriers = without_barriers_of_text(code.text) if name in IN_TEXT else without_barriers(
        lambda: tedsl.build(*make()[:2], "cuda"), monkeypatch)
    changed = [*barriers, *with_smaller_buffers(code.text, smaller)]
    assert changed or name in programs.WITHOUT_SHARED
    for what, text in changed:
        module.code = dataclasses.replace(code, text=text)
        module._loaded.clear()
        simulate.reset()
        function(*arrays)
        assert any(report.findings for report in simulate.report()), f"nothing is found without {what}"
