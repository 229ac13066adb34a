"""Every barrier and every byte of shared memory counts: without one, the simulator finds something in each kernel."""

import dataclasses

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
from tests.simulate import programs
from tests.simulate.mutants import with_smaller_buffers, without_barriers

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
def test_kernels_compute_what_numpy_does_and_each_barrier_and_byte_counts(name):
    function, arrays, expected = built({**programs.CASES, **programs.WITHOUT_SHARED}[name])
    with simulate.mode("checked"):
        function(*arrays)
    got = arrays[-1].numpy()
    np.testing.assert_allclose(got, expected, rtol=2e-3 if got.dtype == np.float16 else 1e-5)
    module = function.imported_modules[0]
    code = module.code
    smaller = got.dtype.itemsize * (1 + UNUSED.get(name, 0))
    changed = [*without_barriers(code.text), *with_smaller_buffers(code.text, smaller)]
    assert changed or name in programs.WITHOUT_SHARED
    for what, text in changed:
        module.code = dataclasses.replace(code, text=text)
        module._loaded.clear()
        simulate.reset()
        function(*arrays)
        assert any(report.findings for report in simulate.report()), f"nothing is found without {what}"
