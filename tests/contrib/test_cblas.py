"""Products by numpy's BLAS, as programs call them."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.contrib import cblas
from tedsl.errors import ShapeError


def product(make, *shapes):
    tensors = [te.placeholder(shape, name=name) for shape, name in zip(shapes, "AB")]
    C = make(*tensors)
    D = te.compute(C.shape, lambda *i: C(*i) + 1.0, name="D")
    arrays = [np.random.default_rng(0).random(shape, "float32") for shape in shapes]
    out = tedsl.nd.empty([int(n) for n in D.shape])
    tedsl.build(te.create_schedule(D.op), [*tensors, D])(*map(tedsl.nd.array, arrays), out)
    return [*arrays, out.numpy()]


@pytest.mark.parametrize(("transa", "transb"), [(False, False), (True, False), (False, True), (True, True)])
def test_matmul(transa, transb):
    shapes = (5, 3)[::-1 if transa else 1], (3, 4)[::-1 if transb else 1]
    a, b, c = product(lambda A, B: cblas.matmul(A, B, transa, transb), *shapes)
    np.testing.assert_allclose(c, (a.T if transa else a) @ (b.T if transb else b) + 1, rtol=1e-5)


@pytest.mark.parametrize("iterative", [False, True])
def test_batch_matmul(iterative):
    a, b, c = product(lambda A, B: cblas.batch_matmul(A, B, iterative=iterative), (2, 5, 3), (2, 3, 4))
    np.testing.assert_allclose(c, a @ b + 1, rtol=1e-5)


def test_the_function_alone():
    a, b, c = product(lambda A, B: te.extern((5, 4), [A, B], lambda ins, outs: tir.call_packed(
        "tvm.contrib.cblas.matmul", ins[0], ins[1], outs[0], False, False), name="C"), (5, 3), (3, 4))
    np.testing.assert_allclose(c, a @ b + 1, rtol=1e-5)
    assert tedsl.get_global_func("tvm.contrib.cblas.matmul", True) is not None
    assert tedsl.get_global_func("tvm.contrib.cudnn.conv2d", True) is None


def test_other_ranks_are_refused():
    with pytest.raises(ShapeError, match=r"cblas\.matmul multiplies tensors of 2 dimensions"):
        cblas.matmul(te.placeholder((2, 3, 4)), te.placeholder((3, 4)))
