"""Products of matrices that do not say so: einsums and sums of products written by hand get tiles in registers."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tests.topi.run import run
from topi.schedules import schedule


def arrays_of(shapes, dtype="float32"):
    r = np.random.default_rng(len(shapes))
    return [(r.random(shape) * 4 - 2).astype(dtype) for shape in shapes]


SUBSCRIPTS = [("ij,jk->ik", (37, 19), (19, 53)), ("ij,jk->ik", (1, 5), (5, 1)), ("ij,jk->ik", (3, 0), (0, 4)),
              ("ij,jk->ik", (64, 64), (64, 64)), ("bij,bjk->bik", (3, 17, 5), (3, 5, 33)),
              ("bhij,bhjd->bhid", (2, 3, 7, 9), (2, 3, 9, 18)),
              ("ji,jk->ik", (13, 11), (13, 40)), ("ikl,klj->ij", (9, 3, 4), (3, 4, 21)), ("ib,bjk->ikj", (5, 6), (6, 7, 8)),
              ("ij,kj->ik", (37, 19), (53, 19)), ("ij,kj->ik", (2, 19), (53, 19)), ("ij,kj->ik", (9, 0), (4, 0)),
              ("bhid,bhjd->bhij", (2, 3, 9, 5), (2, 3, 19, 5)), ("ji,kj->ik", (13, 11), (40, 13)),
              ("bij,kj->bik", (2, 9, 7), (20, 7)),
              ("ikl,jkl->ij", (12, 3, 4), (21, 3, 4)), ("ij,kjj->ik", (9, 6), (20, 6, 6)),
              ("i,ij->j", (9,), (9, 30)), ("i,j->ij", (9,), (30,))]


@pytest.mark.parametrize(("subscripts", "a", "b"), SUBSCRIPTS, ids=lambda p: str(p).replace(" ", ""))
def test_einsum_agrees_with_numpy(subscripts, a, b):
    x, y = arrays_of([a, b])
    A, B = te.placeholder(a, name="A"), te.placeholder(b, name="B")
    out = topi.einsum(subscripts, A, B)
    np.testing.assert_allclose(run(out, {A: x, B: y}), np.einsum(subscripts, x, y), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int8"])
def test_dtypes(dtype):
    x, y = arrays_of([(21, 10), (10, 35)], dtype)
    A, B = te.placeholder(x.shape, dtype, name="A"), te.placeholder(y.shape, dtype, name="B")
    np.testing.assert_allclose(run(topi.einsum("ij,jk->ik", A, B), {A: x, B: y}), np.einsum("ij,jk->ik", x, y), rtol=1e-12)


def product(n, m, t):
    A, B = te.placeholder((n, t), name="A"), te.placeholder((t, m), name="B")
    k = te.reduce_axis((0, t), name="k")
    return A, B, te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


@pytest.mark.parametrize("shape", [(40, 50, 30), (1, 70, 3), (33, 1, 8), (17, 31, 1)], ids=str)
def test_a_product_by_hand_with_something_behind_it(shape):
    n, m, t = shape
    A, B, C = product(n, m, t)
    D = topi.nn.relu(C + 1.0)
    x, y = arrays_of([(n, t), (t, m)])
    np.testing.assert_allclose(run(D, {A: x, B: y}), np.maximum(x @ y + 1, 0), rtol=1e-5, atol=1e-5)


def test_symbolic_extents():
    n, m, t = te.var("n"), te.var("m"), te.var("t")
    A, B, C = product(n, m, t)
    kernel = tedsl.build(schedule(C, "llvm"), [A, B, C], "llvm")
    for sizes in [(1, 1, 1), (23, 70, 11), (0, 4, 2), (5, 33, 0)]:
        x, y = arrays_of([(sizes[0], sizes[2]), (sizes[2], sizes[1])])
        result = np.full((sizes[0], sizes[1]), np.nan, "float32")
        kernel(x, y, result)
        np.testing.assert_allclose(result, x @ y, rtol=1e-5, atol=1e-5)


def test_the_sums_of_a_tile_are_local():
    A, B, C = product(64, 64, 64)
    s = schedule(C, "llvm")
    assert [stage.scope for stage in s.stages if stage.op.name == "C.local"] == ["local"]


def test_a_factor_that_is_computed_and_read_turned_round():
    A, B = te.placeholder((20, 16), name="A"), te.placeholder((33, 16), name="B")
    x, y = arrays_of([(20, 16), (33, 16)])
    costly, cheap = te.compute(B.shape, lambda *i: te.exp(B(*i)), name="E"), te.compute(B.shape, lambda *i: B(*i) * 2.0)
    for factor in (costly, cheap):
        wanted = np.exp(y) if factor is costly else y * 2
        out = topi.nn.relu(topi.einsum("ij,kj->ik", A, factor) + B[3, 4])
        np.testing.assert_allclose(run(out, {A: x, B: y}), np.maximum(x @ wanted.T + y[3, 4], 0), rtol=1e-4, atol=1e-4)


def test_both_factors_are_one_tensor():
    A = te.placeholder((20, 16), name="A")
    (x,) = arrays_of([(20, 16)])
    np.testing.assert_allclose(run(topi.einsum("ij,kj->ik", A, A), {A: x}), x @ x.T, rtol=1e-5, atol=1e-5)


def test_rows_that_share_nothing_are_reduced_as_before():
    A, B = te.placeholder((30, 40), name="A"), te.placeholder((30, 40), name="B")
    out = topi.einsum("ij,ij->i", A, B)
    x, y = arrays_of([(30, 40), (30, 40)])
    assert any(stage.op.name.endswith(".rf") for stage in schedule(out, "llvm").stages)  # sums in lanes, not a tile
    np.testing.assert_allclose(run(out, {A: x, B: y}), (x * y).sum(1), rtol=1e-5)
