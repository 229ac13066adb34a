"""The networks that are measured: their convolutions are those of the papers, and topi computes what numpy does."""

import numpy as np
import pytest

import tedsl
import topi
from benchmarks import networks, reference
from benchmarks.networks import Conv

SMALL = Conv(6, 9, 8, 3, 2, activation="relu6")
WIDE = Conv(8, 7, 8, 3, 1, groups=8, activation="relu")


@pytest.mark.parametrize("name, count, operations", [("ResNet-18", 20, 3.63e9), ("ResNet-50", 53, 8.17e9),
                                                     ("MobileNet-V2", 52, 0.60e9)])
def test_the_convolutions_are_those_of_the_network(name, count, operations):
    assert networks.convolutions(name).total() == count
    assert networks.operations(name) == pytest.approx(operations, rel=0.01)


def test_mobilenet_has_seventeen_depthwise_convolutions():
    assert sum(times for spec, times in networks.convolutions("MobileNet-V2").items() if spec.groups > 1) == 17


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "NCHWc"])
@pytest.mark.parametrize("spec", [SMALL, WIDE], ids=str)
def test_a_layer_of_each_layout_computes_the_convolution(layout, spec):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, spec.channels, spec.size, spec.size), dtype="float32")
    w = rng.standard_normal((spec.filters, spec.channels // spec.groups, spec.kernel, spec.kernel), dtype="float32")
    b = rng.standard_normal(spec.filters, dtype="float32")
    builder = networks.TopiBuilder(2, layout, block=4)
    data = builder._argument(networks.in_layout(x, layout, 4), "x")
    y = builder._conv(spec, data, w, b, None)
    result = np.empty(topi.utils.get_const_tuple(y.shape), "float32")
    tedsl.build(topi.schedules.schedule(y), [*builder.inputs, y])(*builder.arrays, result)
    expected = reference.convolution(x, w, b, spec.stride, spec.pad, spec.groups, spec.activation)
    np.testing.assert_allclose(networks.back_to_nchw(result, layout), expected, rtol=1e-4, atol=1e-4)


def test_a_network_is_one_program_with_the_weights_that_numpy_has():
    program = networks.program("MobileNet-V2", 1, "NHWC")
    assert len(program.arrays) == len(program.inputs) == 1 + 2 * 52 + 2
    assert all(tuple(map(int, x.shape)) == a.shape for x, a in zip(program.inputs, program.arrays))
    other = networks.program("MobileNet-V2", 1, "NCHW")
    np.testing.assert_array_equal(program.arrays[-1], other.arrays[-1])
