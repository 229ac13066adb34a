"""Adjoints of convolutions against central differences, and that they are convolutions."""


import numpy as np
import pytest

from tedsl import te
from tests.topi.adjoints.differences import check_record, distinct
from topi import nn
from topi.adjoints.interleave import interleaved
from topi.nn.convolution.depthwise import convolve_channels
from topi.nn.convolution.formula import convolve

pytestmark = pytest.mark.whole

RANKS = {1: ("W", (6,), (3,)), 2: ("HW", (6, 7), (3, 2)), 3: ("DHW", (4, 5, 3), (2, 3, 1))}


def operands(layout, kernel_layout, size):
    data = te.placeholder([size[letter] for letter in layout], "float64", name="data")
    kernel = te.placeholder([size[f"k{letter}"] for letter in kernel_layout], "float64", name="kernel")
    return {tensor: distinct([int(n.value) for n in tensor.shape], seed=n) for n, tensor in enumerate((data, kernel))}


def sizes(space, data, kernel, **channels):
    return {**dict(zip(space, data)), **{f"k{letter}": n for letter, n in zip(space, kernel)}, **channels}


STEPS = [(1, 1, 0), (1, 1, 1), (2, 1, 1), (1, 2, 2), (2, 2, 1), (3, 2, 2), (3, 1, 0), (2, 3, 3), (4, 2, 1)]


@pytest.mark.parametrize("rank, last, stride, dilation, padding", [  # each rank, and one of the layouts, with each of the steps
    (rank, (rank + at) % 2 == 0, *steps) for rank in (1, 2, 3) for at, steps in enumerate(STEPS)])
def test_convolutions_of_every_rank_and_layout(rank, last, stride, dilation, padding):
    space, data, kernel = RANKS[rank]
    data = tuple(n + 2 * (dilation - 1) for n in data)
    layout, weights = (f"N{space}C", f"{space}IO") if last else (f"NC{space}", f"OI{space}")
    feeds = operands(layout, weights, sizes(space, data, kernel, N=2, C=3, kI=3, kO=2))
    check_record(convolve("conv", *feeds, stride, padding, dilation, None, layout=layout, kernel_layout=weights), feeds)


@pytest.mark.parametrize("stride, dilation, padding", [
    ((1, 2), 1, (0, 1, 2, 3)), ((3, 1), (1, 2), (4, 0, 0, 1)), (1, 1, (3, 4, 0, 0)), ((2, 2), (2, 1), (5, 4, 1, 3))])
def test_every_side_has_a_padding_of_its_own(stride, dilation, padding):
    feeds = operands("NCHW", "OIHW", sizes("HW", (5, 7), (2, 3), N=2, C=2, kI=2, kO=3))
    check_record(convolve("conv", *feeds, stride, padding, dilation, None, layout="NCHW", kernel_layout="OIHW"), feeds)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("layout, weights", [("NCHW", "OIHW"), ("NHWC", "HWIO"), ("HWCN", "HWIO")])
def test_groups_and_other_layouts(layout, weights, stride):
    for groups in (1, 2):
        feeds = operands(layout, weights, sizes("HW", (5, 4), (3, 2), N=2, C=4, kI=4 // groups, kO=6))
        check_record(convolve("conv", *feeds, stride, 1, 1, None, layout=layout, kernel_layout=weights, groups=groups), feeds)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("layout, weights", [("NCHW", "OIHW"), ("NHWC", "HWIO")])
def test_windows_of_one_pixel_are_products(layout, weights, stride):
    feeds = operands(layout, weights, sizes("HW", (5, 6), (1, 1), N=2, C=3, kI=3, kO=4))
    check_record(convolve("conv", *feeds, stride, 0, 1, None, layout=layout, kernel_layout=weights), feeds)


@pytest.mark.parametrize("multiplier, stride, dilation", [(1, 1, 1), (1, 2, 1), (2, 1, 2), (3, 2, 1)])
@pytest.mark.parametrize("layout, weights", [("NCHW", "CMHW"), ("NHWC", "HWCM")])
def test_depthwise(layout, weights, multiplier, stride, dilation):
    feeds = operands(layout, weights, sizes("HW", (6, 7), (3, 2), N=2, C=3, kC=3, kM=multiplier))
    check_record(convolve_channels("depthwise", *feeds, stride, 1, dilation, None, layout, weights), feeds)


def test_one_tensor_that_is_data_and_kernel_gets_the_sum_of_both():
    both = te.placeholder((2, 2, 3, 3), "float64", name="both")
    check_record(convolve("conv", both, both, 1, 1, 1, None, layout="NCHW", kernel_layout="OIHW"),
                 {both: distinct((2, 2, 3, 3))})


def test_extents_that_are_known_at_the_call_are_left_to_the_formula():
    data, kernel = te.placeholder((1, 2, te.var("h"), 5), name="data"), te.placeholder((2, 2, 3, 3), name="kernel")
    made = convolve("conv", data, kernel, 1, 1, 1, None, layout="NCHW", kernel_layout="OIHW")
    assert made.op.info.operands(made.op) == (data, kernel)
    assert made.op.info.adjoint(made.op, te.placeholder(made.shape, name="head"), [data]) is None


def test_only_what_is_asked_for_is_made():
    feeds = operands("NCHW", "OIHW", sizes("HW", (5, 7), (2, 3), N=2, C=2, kI=2, kO=3))
    data, kernel = feeds
    made = convolve("conv", data, kernel, 1, 1, 1, None, layout="NCHW", kernel_layout="OIHW")
    head = te.placeholder(made.shape, "float64", name="head")
    assert list(made.op.info.adjoint(made.op, head, [kernel])) == [kernel]
    assert np.prod([n.value for n in made.op.info.adjoint(made.op, head, [kernel])[kernel].shape]) == 36


@pytest.mark.parametrize("stride, padding, more", [(1, 0, 0), (2, 1, 0), (2, 1, 1), (3, 0, 2), (3, 2, 0)])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed(rank, stride, padding, more):
    data = te.placeholder((2, 2, 4, 3, 2)[:2 + rank], "float64", name="data")
    kernel = te.placeholder((2, 3, *[3] * rank), "float64", name="kernel")
    operator = {1: nn.conv1d_transpose_ncw, 2: nn.conv2d_transpose_nchw, 3: nn.conv3d_transpose_ncdhw}[rank]
    feeds = {tensor: distinct([n.value for n in tensor.shape]) for tensor in (data, kernel)}
    check_record(operator(data, kernel, stride, padding, None, (more,) * rank), feeds)


@pytest.mark.parametrize("results", [2, 16])  # few are computed from dilated data, many by phases
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_in_groups(groups, results):
    data = te.placeholder((1, 4, 3, 4), "float64", name="data")
    kernel = te.placeholder((4, results, 3, 2), "float64", name="kernel")
    feeds = {tensor: distinct([n.value for n in tensor.shape]) for tensor in (data, kernel)}
    check_record(nn.group_conv2d_transpose_nchw(data, kernel, 2, (1, 0), None, (1, 0), groups), feeds)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
def test_blocks_of_channels(groups, stride):
    data = te.placeholder((2, 2, 5, 4, 3), "float64", name="data")
    kernel = te.placeholder((2, 2 // groups, 3, 2, 3, 2), "float64", name="kernel")
    feeds = {tensor: distinct([n.value for n in tensor.shape]) for tensor in (data, kernel)}
    check_record(nn.conv2d_NCHWc(data, kernel, stride, 1, 1), feeds)


@pytest.mark.parametrize("multiplier", [1, 2])
def test_blocks_of_channels_alone(multiplier):
    data = te.placeholder((1, 2, 5, 4, 3), "float64", name="data")
    kernel = te.placeholder((2, 1, 3, 3, 1, 3 * multiplier), "float64", name="kernel")
    feeds = {tensor: distinct([n.value for n in tensor.shape]) for tensor in (data, kernel)}
    check_record(nn.depthwise_conv2d_NCHWc(data, kernel, 1, 1, 1), feeds)


@pytest.mark.parametrize("layout, weights", [("NCHW", "OIHW"), ("NHWC", "HWIO")])
def test_winograd(layout, weights):
    feeds = operands(layout, weights, sizes("HW", (6, 5), (3, 3), N=1, C=2, kI=2, kO=3))
    operator = nn.conv2d_winograd_nchw if layout == "NCHW" else nn.conv2d_winograd_nhwc
    check_record(operator(*feeds, 1, 1, 1), feeds)


@pytest.mark.parametrize("stride", [(1, 2), (3, 2), (2, 1)])
def test_what_is_put_together_from_phases_has_an_adjoint(stride):
    feeds = operands("NCHW", "OIHW", sizes("HW", (5, 19), (2, 3), N=1, C=2, kI=2, kO=3))
    data, kernel = feeds
    made = convolve("conv", data, kernel, stride, 1, 1, None, layout="NCHW", kernel_layout="OIHW")
    head = te.placeholder(made.shape, "float64", name="of_made")
    adjoint = made.op.info.adjoint(made.op, head, [data])[data]
    parts = adjoint.op.info.operands(adjoint.op)
    arrays = {te.placeholder(part.shape, "float64", name=f"p{n}"): distinct([e.value for e in part.shape], seed=n)
              for n, part in enumerate(parts)}
    again = interleaved(dict(zip(adjoint.op.info.starts, arrays)), adjoint.op.info.steps, data.shape, "float64")
    check_record(again, arrays)
