"""The thread pool and the processors that it runs on."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
import numpy as np
import tedsl
from tedsl import te

A = te.placeholder((64,), name="A")
B = te.compute((64,), lambda i: A[i] + 1, name="B")
s = te.create_schedule(B.op)
s[B].parallel(B.op.axis[0])
kernel = tedsl.build(s, [A, B])
a, b = np.ones(64, "float32"), np.empty(64, "float32")
before = set(os.listdir("/proc/self/task"))
kernel(a, b)
(worker,) = set(os.listdir("/proc/self/task")) - before
here = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {here})
os.sched_setaffinity(int(worker), {here})  # as Linux sometimes places it: beside its caller
for _ in range(50):
    kernel(a, b)
print(here in os.sched_getaffinity(int(worker)), b.sum())
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_a_worker_leaves_the_processor_of_its_caller():
    """Linux woke the worker beside its caller and left both there: parallel kernels ran as slowly as serial ones."""
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ | {"TEDSL_NUM_THREADS": "2"}, capture_output=True,
                         text=True, timeout=120)
    assert run.stdout.split() == ["False", "128.0"], run.stderr
