"""Operators on other processors, under qemu: the bits of x86-64 with fma where the order of sums is the same, else close."""

import os

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.target import Target
from tests.cross.calls import run
from tests.cross.machines import MACHINES, THREADS
from tests.cross.operators import CASES, parallel_rows

pytestmark = pytest.mark.skipif(not os.environ.get("TEDSL_CROSS"), reason="TEDSL_CROSS is not set: .ci/cross runs these")
CLOSE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


def arguments(func):
    """Zeros for each output of a function, by its signature."""
    return [np.zeros([int(n) for n in buffer.shape], str(buffer.dtype)) for buffer in func.buffers]


def built(target, cases):
    """The module of `cases` for `target`, and each function's name with its arrays before the call."""
    funcs = {case.name: case.lower(target)[case.name] for case in cases}
    calls = []
    for case in cases:
        arrays = case.arrays()
        calls.append((case.name, [*arrays, *arguments(funcs[case.name])[len(arrays):]]))
    return tedsl.build(list(funcs.values()), target=target), calls


@pytest.fixture(scope="module")
def expected():
    """What the functions compute on x86-64 with fma."""
    target = "llvm -mcpu=haswell"
    if not Target(target).runs_here:
        pytest.skip("this machine has no fma to compare with")
    module, calls = built(target, CASES)
    for name, arrays in calls:
        module[name](*arrays)
    return dict(calls)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_operators_compute_what_they_compute_here(machine, expected, tmp_path):
    if machine.missing():
        pytest.skip(f"not installed: {', '.join(machine.missing())}")
    module, calls = built(machine.target, CASES)
    scheduled = {case.name for case in CASES if case.scheduled}
    different = []
    for (name, _), after in zip(calls, run(machine, module, calls, tmp_path)):
        for got, wanted in zip(after, expected[name]):
            if got.dtype.kind == "f" and (name in scheduled or not machine.exact):
                close = CLOSE[str(got.dtype)]  # of sums in another order, whose terms are as large as other elements
                np.testing.assert_allclose(got, wanted, close, close * max(1, np.abs(wanted).max()), err_msg=name)
            elif got.tobytes() != wanted.tobytes():
                different.append((name, int((got != wanted).sum()), got.size))
    assert different == [], f"{machine.name}: bits differ"
    print(f"{machine.name}: {len(calls)} functions, {(tmp_path / 'libkernels.so').stat().st_size} bytes")


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_parallel_loops_run_on_threads(machine, tmp_path):
    if machine.missing():
        pytest.skip(f"not installed: {', '.join(machine.missing())}")
    a = te.placeholder((37, 64), name="A")
    b = parallel_rows(a)
    s = te.create_schedule(b.op)
    s[b].parallel(b.op.axis[0])
    module = tedsl.build(s, [a, b], machine.target, name="rows")
    module.export_library(tmp_path / "kernels.h", prefix="k")
    module.export_library(tmp_path / "libkernels.so", prefix="k")
    threads = int(machine.run(str(machine.compile(THREADS, tmp_path)), str(tmp_path / "libkernels.so")))
    assert threads >= 7  # qemu may have one more of its own
    print(f"{machine.name}: a loop on 8 threads")
