"""Random programs as kernels of OpenCL; `python -m tedsl fuzz --target opencl` runs more."""

import pytest

import tedsl
from tedsl import te
from tedsl.fuzz.check import Disagreement
from tedsl.fuzz.report import Report
from tedsl.fuzz.run import Group
from tedsl.fuzz.targets.on_device import check_on_device, check_seed, in_kernels
from tedsl.target import Target
from tests.devices.opencl_device import needs_opencl
from tests.passes.threads.programs import vector_add

TARGET = Target("opencl -fma=0")


@needs_opencl
def test_random_programs():
    report, group = Report(), None
    for seed in range(500, 524):
        group = check_seed(seed, TARGET, report, group)
    assert not report.findings, report.text()
    assert report.counts["sequences"] == 24


@needs_opencl
def test_a_wrong_result_is_found():
    group = Group(0)
    case, scheduler = group.sequence(0)
    for tensor in group.expected.values():
        tensor.array = tensor.array + 1
    with pytest.raises(Disagreement, match="opencl: "):
        check_on_device(case, scheduler.names, group.expected, TARGET)


def test_loops_without_threads_become_a_kernel_of_one():
    s, args = vector_add(8)
    bound = tedsl.lower(s, args)["main"].body
    assert in_kernels(bound) is bound
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    text = str(in_kernels(tedsl.lower(te.create_schedule(b.op), [a, b])["main"].body))
    assert text.startswith("attr [IterVar(threadIdx.x") and '"thread_extent" = 1' in text
