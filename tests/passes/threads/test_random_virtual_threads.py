"""Virtual threads compute what a loop over them computes: random statements with memory of their own for each thread."""

import random

import numpy as np
import pytest

from tedsl import te, tir
from tedsl.ir.evaluate import run
from tedsl.ir.func import IRModule, PrimFunc

COUNT, SIZE = 4, 8  # threads, and the elements of each


class Program:
    """Statements of one thread `v`, the same for one seed, which store to its part of b and to local memory."""

    def __init__(self, seed, ib, a, b, v):
        self.random, self.ib, self.a, self.b, self.v = random.Random(seed), ib, a, b, v
        self.sums, self.counter = (ib.allocate(of, 4, name=of, scope="local") for of in ("float32", "int32"))
        for q in range(4):
            self.sums[q] = 0.0
        self.counter[0] = 0
        self.statements(0, tir.const(self.random.randint(0, 3), "int32"))
        with ib.for_range(0, 4, "q") as q:
            b[v * SIZE + q] = b[v * SIZE + q] + self.sums[q]

    def statements(self, depth, j):
        for _ in range(self.random.randint(1, 3)):
            kinds = (self.load, self.add, self.store, self.let, self.loop, self.branch, self.repeat)
            self.random.choice(kinds[:4] if depth == 3 else kinds)(depth + 1, j)

    def load(self, depth, j):
        self.sums[j % 4] = self.a[(self.v * SIZE + j) % 32] + self.sums[(j + 1) % 4]

    def add(self, depth, j):
        self.sums[j % 4] = self.sums[j % 4] + self.a[j % 32]

    def store(self, depth, j):
        self.b[self.v * SIZE + j % SIZE] = self.sums[j % 4]

    def let(self, depth, j):
        with self.ib.new_scope():
            x = self.ib.let("x", self.random.choice([self.sums[j % 4], self.a[self.v]]) + 1.0)
            self.b[self.v * SIZE + j % SIZE] = x
            if depth < 3:
                self.statements(depth, j)

    def loop(self, depth, j):
        with self.ib.for_range(0, self.random.randint(1, 4), "i") as i:
            self.statements(depth, j + i)

    def branch(self, depth, j):
        with self.ib.if_scope(self.random.choice([self.v, j]) % 2 == 0):
            self.statements(depth, j)

    def repeat(self, depth, j):
        times = self.random.randint(1, 3)
        if self.random.random() < 0.5:
            self.counter[0] = 0
        with self.ib.while_loop(self.counter[0] < times):
            self.sums[self.counter[0]] = self.sums[self.counter[0]] + 1.0
            self.statements(3, j + 1)
            self.counter[0] = self.counter[0] + 1


def results(seed, virtual):
    ib = tir.ir_builder.create()
    A, B = (tir.decl_buffer((COUNT * SIZE,), name=name) for name in "AB")
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    if virtual:
        axis = te.thread_axis("vthread")
        ib.scope_attr(axis, "virtual_thread", COUNT)
        Program(seed, ib, a, b, axis.var)
    else:
        with ib.for_range(0, COUNT, "v") as v:
            Program(seed, ib, a, b, v)
    mod = IRModule({"main": PrimFunc([A, B], ib.get())})
    func = (tir.transform.InjectVirtualThread()(mod) if virtual else mod)["main"]
    out = np.zeros(COUNT * SIZE, "float32")
    run(func, [np.random.default_rng(seed).normal(size=COUNT * SIZE).astype("float32"), out])
    return out


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_virtual_threads_compute_what_a_loop_computes(first):
    for seed in range(first, first + 8):
        np.testing.assert_array_equal(results(seed, True), results(seed, False), err_msg=str(seed))
