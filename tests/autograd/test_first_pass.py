"""The kernels of a first pass: compiled by all cores, and the same ones."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from unittest import mock
import numpy as np
from tedsl.autograd import tensor
from tedsl.cache import workers
forks = 0

def fork(own=os.fork):
    global forks
    forks += 1
    return own()

with mock.patch.object(os, "fork", fork), mock.patch.object(workers, "usable_processors", lambda: 2):
    x = tensor(np.linspace(0.1, 1, 6).reshape(2, 3), "float64", requires_grad=True)
    y = (x.exp().tanh() * x.sin() + x.sigmoid().sqrt() / x.cos()).log().sum()
    y.backward(retain_graph=True)
    y.backward()
print(forks, *x.grad.numpy().ravel())
"""


@pytest.mark.whole
def test_the_derivatives_of_a_first_pass_are_compiled_in_several_processes(tmp_path):
    printed = {}
    for folder in ("off", str(tmp_path)):
        done = subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, "TEDSL_CACHE_DIR": folder},
                              capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        printed[folder] = done.stdout.split()
    (serial, *expected), (forked, *found) = printed["off"], printed[str(tmp_path)]
    assert (serial, forked) == ("0", "1") and found == expected
