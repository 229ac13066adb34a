"""Undecided questions cost a bounded number of steps in one program, however many there are: this one took minutes to build."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.arith import inequality


@pytest.mark.whole
def test_unrolled_tiles_of_tiles_over_a_symbolic_extent_compile_soon(monkeypatch):
    steps, holds = [0], inequality._Proof.holds

    def counted(self, s, depth=0):
        steps[0] += 1
        return holds(self, s, depth)

    monkeypatch.setattr(inequality._Proof, "holds", counted)
    n = te.size_var("n")
    C = te.placeholder((n, 13), name="C")
    i, k = te.reduce_axis((0, n), name="i"), te.reduce_axis((0, 13), name="k")
    T = te.compute((), lambda: te.max(C[i, k], axis=[i, k]), name="T")
    s = te.create_schedule(T.op)

    def loop(number):
        return s[T].leaf_iter_vars[number]

    s[T].fuse(loop(0), loop(1))
    s[T].split(loop(0), nparts=16)
    s[T].split(loop(1), nparts=16)
    s[T].split(loop(1), factor=8, tail="partition")
    s[T].unroll(loop(2))
    s[T].tile(loop(1), loop(3), 3, 2)
    s[T].pragma(loop(4), "auto_unroll_max_step", 16)
    kernel = tedsl.build(s, [C, T])
    assert steps[0] < 30 * inequality.PATIENCE  # about a million before
    for size in (1, 5, 40):
        c, out = np.random.default_rng(size).random((size, 13), "float32"), np.zeros((), "float32")
        kernel(c, out)
        assert out == c.max()
