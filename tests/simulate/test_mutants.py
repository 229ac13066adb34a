"""Every barrier and every array of shared memory counts: without one, or with less, the simulator finds something."""

import dataclasses

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
from tests.simulate import programs
from tests.simulate.mutants import with_smaller_buffers, without_barriers

pytestmark = pytest.mark.whole

ROUNDED = 16  # bytes, of whose multiples LLVM's arrays are
# Barriers behind a number that all threads write alike: without them LLVM lets each thread use its own, and nothing goes wrong.
NOT_NEEDED = {name: {f"barrier {number}" for number in numbers} for name, numbers in (
    ("softmax_64_32", (0, 1)), ("softmax_33_16", (0, 1)), ("softmax_100_64", (1, 3)), ("softmax_200_128", (1, 3)),
    ("softmax_96_96", (1, 3)))}
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
    changed = [*without_barriers(lambda: tedsl.build(*make()[:2], "cuda"), monkeypatch),
               *with_smaller_buffers(code.text, smaller)]
    assert changed or name in programs.WITHOUT_SHARED
    for what, text in changed:
        if what in NOT_NEEDED.get(name, ()):
            continue
        module.code = dataclasses.replace(code, text=text)
        module._loaded.clear()
        simulate.reset()
        function(*arrays)
        assert any(report.findings for report in simulate.report()), f"nothing is found without {what}"
