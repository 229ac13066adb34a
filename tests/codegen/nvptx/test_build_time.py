"""PTX takes at most twice the time of the processor's build of the same schedule, measured in time of the processor."""

import time

import pytest

import tedsl
from tests.simulate.programs import CASES

NAMES = ("blur_100_1_20", "convolution_5_3", "matmul_16_8_2", "row_sums_100_64_1", "softmax_100_64", "transpose_64_32_1")


def spent(make, target):
    s, args, _ = make()
    begin = time.process_time()
    tedsl.build(s, args, target)
    return time.process_time() - begin


@pytest.mark.parametrize("name", NAMES)
def test_build_time(name):
    """The least of three builds of each, in turns."""
    turns = [(spent(CASES[name], "cuda -arch=sm_80"), spent(CASES[name], "llvm")) for _ in range(3)]
    device, processor = (min(times) for times in zip(*turns))
    assert device < 2 * processor
