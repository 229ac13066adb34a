"""The kernels whose builds for devices are measured: each schedule that the tutorial builds, for both targets."""

import re

import tedsl
from benchmarks.device_build_time import TUTORIAL, kernels


def test_each_kernel_of_the_tutorial_is_measured():
    build = tedsl.build
    found = kernels()
    assert tedsl.build is build
    text = TUTORIAL.read_text()
    assert len(found) == 6 and {kernel.args[-1].name for kernel in found} == {"C", "Y", "R"}
    assert len({kernel.name for kernel in found}) == 6
    assert set(re.findall(r"te\.create_schedule\((\w)\.op\)", text)) == {"C", "Y", "R"}
    assert all(found[0].build(target) > 0 for target in ("cuda -arch=sm_80", "llvm"))
