"""The smaller or larger of two integers one of which is a + ~b: Intel's runtime for processors makes another number of it.

So it does of the one line `o[i] = max(t[i], a[i] + ~t[i]);` of OpenCL C; compiled with -cl-opt-disable its results are right.
"""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.runtime.devices.opencl.program import _folds_choices_wrongly
from tests.devices.opencl_device import needs_opencl

FORMS = {"max, a - (t + 1)": lambda a, t: te.max(t, a - (t + 1)), "min, a + ~t": lambda a, t: te.min(t, a + ~t),
         "max, ~t": lambda a, t: te.max(~t, a + t), "choice": lambda a, t: te.if_then_else(t > a - t - 1, t, a - t - 1)}


@needs_opencl
@pytest.mark.parametrize("of", ["int32", "uint32", "int64", "int8"])
@pytest.mark.parametrize("form", FORMS)
def test_choices_between_a_number_and_a_difference(form, of):
    a, t = te.placeholder((64,), of, name="a"), te.placeholder((64,), of, name="t")
    out = te.compute((64,), lambda i: FORMS[form](a[i], t[i]), name="out")
    s = te.create_schedule(out.op)
    s[out].bind(out.op.axis[0], te.thread_axis("threadIdx.x"))
    x, y = np.random.default_rng(0).integers(0, 50, (2, 64)).astype(of)
    results = []
    for target, place in (("opencl", tedsl.opencl(0)), ("llvm", tedsl.cpu(0))):
        arrays = [tedsl.nd.array(value, place) for value in (x, y, np.zeros_like(x))]
        tedsl.build(s, [a, t, out], target)(*arrays)
        results.append(arrays[2].numpy())
    np.testing.assert_array_equal(*results)


def test_only_where_the_fault_is():
    class Platform:
        name = "Intel(R) OpenCL"

    assert _folds_choices_wrongly(Platform, "return a > b ? a : b; ... tedsl_sub_i32(a, b)")
    assert not _folds_choices_wrongly(Platform, "c[i] = x ? a[i - 1] : 0.0f;")
    Platform.name = "Portable Computing Language"
    assert not _folds_choices_wrongly(Platform, "return a > b ? a : b; ... tedsl_sub_i32(a, b)")
