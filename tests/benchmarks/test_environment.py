"""What the processes of the benchmarks find in their environment."""

import subprocess
import sys

from benchmarks.__main__ import OVERRIDES, THREAD_VARIABLES, environment


def test_each_library_chooses_its_kernels_itself(monkeypatch):
    """A machine that told OpenBLAS to take the kernels of Haswell had numpy's products at half of their speed."""
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("PATH", "/bin")
    found = environment(3)
    assert not {*OVERRIDES} & {*found} and found["PATH"] == "/bin"
    assert {found[name] for name in THREAD_VARIABLES} == {"3"}


SPIN = """
import os, time, numpy
a = numpy.ones((512, 512), "float32")
a @ a
before = sum(os.times()[:2])
time.sleep(0.3)
print(sum(os.times()[:2]) - before)
"""


def test_the_threads_of_numpy_rest_soon_after_a_call():
    """OpenBLAS's spin for 100 ms by default: kernels of others on two threads, called meanwhile, took twice their time."""
    said = subprocess.run([sys.executable, "-c", SPIN], env=environment(2), check=True, capture_output=True, text=True).stdout
    assert float(said) < 0.05
