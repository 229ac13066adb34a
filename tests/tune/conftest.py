"""Candidates that behave well, and others."""

import os
import signal
import time

import numpy as np
import pytest

import topi
from tedsl import te, tir
from tedsl.tune.measure import BuildOption, Measurer, RunOption

MEMORY = 1 << 29  # bytes that a process of these tests may take
QUICK = RunOption(number=1, repeat=2, timeout=20.0, cooldown_interval=0, threads=1)


class Doubled:
    """B = 2 A of `n` elements; `split` is its decision."""

    def __init__(self, split=4, n=37, factor=2.0, before=lambda: None):
        self.split, self.n, self.factor, self.before = split, n, factor, before

    def formula(self):
        A = te.placeholder((self.n,), name="A")
        return A, te.compute((self.n,), lambda i: A[i] * self.factor, name="B")

    def schedule(self):
        self.before()
        A, B = self.formula()
        s = te.create_schedule(B.op)
        s[B].split(B.op.axis[0], self.split)
        return s, [A, B]

    def to_json(self):
        return {"split": self.split}


class Endless(Doubled):
    """A kernel that does not end in a lifetime: a sum of 2**50 terms that depend on one another."""

    def schedule(self):
        A = te.placeholder((self.n,), name="A")
        k = te.reduce_axis((0, 1 << 50), name="k")
        B = te.compute((self.n,), lambda i: te.sum(te.sqrt(A[i] + A[(i + k) % self.n]), axis=k), name="B")
        return te.create_schedule(B.op), [A, B]


def abort():
    os.write(2, b"LLVM ERROR: out of ideas\n")
    os.abort()


def hang():
    while True:
        time.sleep(60)


def take_memory():
    return np.ones(2 * MEMORY, "uint8")


class Called(Doubled):
    """A kernel that calls a function of C, or of Python."""

    def __init__(self, function, call=tir.call_packed):
        super().__init__()
        self.function, self.call = function, call

    def schedule(self):
        A = te.placeholder((4,), name="A")
        call = self.call("int32", self.function) if self.call is tir.call_extern else self.call(self.function)
        B = te.extern((4,), [A], lambda ins, outs: tir.Evaluate(call), name="B")
        return te.create_schedule(B.op), [A, B]


@pytest.fixture(autouse=True)
def interruptible():
    """A shell starts what runs in the background with interrupts ignored, the tests among it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def measure():
    """Measures candidates and returns their outcomes."""
    def measure(*candidates, build=BuildOption(timeout=20.0, n_parallel=1), run=QUICK, check=None, inputs=None):
        with Measurer("llvm", build, run, check) as measurer:
            return [outcome for _, outcome in measurer.measure(candidates, inputs)]

    return measure


@pytest.fixture
def product():
    """The arguments of a product of matrices."""
    A, B = te.placeholder((7, 12), name="A"), te.placeholder((12, 9), name="B")
    return [A, B, topi.matmul(A, B)]
