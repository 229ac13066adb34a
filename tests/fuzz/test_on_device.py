"""Random programs as kernels of devices; `python -m tedsl fuzz --target opencl`, or cuda in the simulator, runs more."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.fuzz.check import Disagreement, Refused
from tedsl.fuzz.directives.table import BOUND
from tedsl.fuzz.report import Report
from tedsl.fuzz.run import GROUP, Group, case_of
from tedsl.fuzz.targets import on_device
from tedsl.fuzz.targets.on_device import case_on_device, check_on_device, check_seed, in_kernels, reduced_on_device
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
    refused = 0
    for number in range(GROUP):
        group = Group(number)
        case, scheduler = group.sequence(GROUP * number)
        for tensor in group.expected.values():  # by more than bfloat16 rounds
            tensor.array = tensor.array + np.maximum(1, np.abs(tensor.array))
        try:
            with pytest.raises(Disagreement, match="opencl: "):
                check_on_device(case, scheduler.names, group.expected, TARGET)
        except Refused:  # what no device can do
            refused += 1
    assert refused < GROUP


def test_loops_without_threads_become_a_kernel_of_one():
    s, args = vector_add(8)
    bound = tedsl.lower(s, args)["main"].body
    assert in_kernels(bound) is bound
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    text = str(in_kernels(tedsl.lower(te.create_schedule(b.op), [a, b])["main"].body))
    assert text.startswith("attr [IterVar(threadIdx.x") and '"thread_extent" = 1' in text


def test_programs_that_bind_loops_run_in_the_simulator(monkeypatch):
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    report, group = Report(), None
    for seed in range(240, 256):
        group = check_seed(seed, Target("cuda"), report, group, bound=True)
    assert not report.findings, report.text()
    assert report.counts["bound"] == report.counts["accepted"] > 0
    assert report.counts["sequences"] < 16


def test_rounded_sums_across_threads_may_differ_in_last_bits(monkeypatch):
    """Of bfloat16: threads add in another order than the loops that the interpreter runs."""
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    report = Report()
    check_seed(92390, Target("cuda"), report, None)
    assert not report.findings, report.text()


def test_a_prefetch_is_a_hint_that_a_device_may_leave_out():
    a = te.placeholder((8, 16), name="A")
    b = te.compute((8, 16), lambda i, j: a[i, j] + 1.0, name="B")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    s[b].prefetch(a, b.op.axis[1], 1)
    place, values = tedsl.sim(0), np.random.default_rng(0).random((8, 16), "float32")
    out = tedsl.nd.empty((8, 16), "float32", place)
    tedsl.build(s, [a, b], "cuda")(tedsl.nd.array(values, place), out)
    np.testing.assert_array_equal(out.numpy(), values + 1)


def test_what_fails_on_a_device_is_reduced_there(monkeypatch):
    """A device whose programs fail as soon as a loop is split: one split remains."""
    monkeypatch.setenv("TEDSL_CUDA", "sim")

    def check(case, names, expected, target):
        if any(".split(" in text for text in case.schedule):
            raise Disagreement("cuda", "wrong")

    monkeypatch.setattr(on_device, "check_on_device", check)
    seed = next(seed for seed in range(240, 280) if len(case_of(seed).schedule) > 4
                and any(".split(" in text for text in Group(seed // GROUP).sequence(seed, BOUND)[0].schedule))
    case = reduced_on_device(case_on_device(seed, Target("cuda"), bound=True))
    assert len(case.schedule) == 1 and ".split(" in case.schedule[0] and case.target.startswith("cuda")
