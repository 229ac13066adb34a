"""The way to PTX is little more work than that to the processor's code of the same schedule, counted in calls of functions.

`python -m benchmarks.device_build_time` compares the times of both, with what LLVM takes.
"""

import pytest

import tedsl
from benchmarks.drawn_programs import calls_made_by
from tests.simulate.programs import CASES

NAMES = ("blur_100_1_20", "convolution_5_3", "matmul_16_8_2", "row_sums_100_64_1", "softmax_100_64", "transpose_64_32_1")


def work(make, target):
    s, args, _ = make()
    return calls_made_by(lambda: tedsl.build(s, args, target))


@pytest.mark.parametrize("name", NAMES)
def test_work_of_a_build(name):
    for target in ("cuda -arch=sm_80", "llvm"):
        work(CASES[name], target)  # what is imported, and known from then on
    assert work(CASES[name], "cuda -arch=sm_80") < 1.5 * work(CASES[name], "llvm")
