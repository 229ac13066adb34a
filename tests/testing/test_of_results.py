"""References that topi.testing has, transformations of constraints, and marks of tests by target."""

import numpy as np
import pytest

import tedsl.testing
import topi
from tedsl import arith, te
from tedsl.ir import Range


def test_transformations_of_constraints():
    x, y = te.var("x"), te.var("y")
    found = arith.solve_linear_equations([(x + 2 * y).equal(7)], [x, y], {x: Range(0, 8), y: Range(0, 5)})
    tedsl.testing.check_int_constraints_trans_consistency(found)
    n = found.dst.variables[0]
    shifted = {var: value + 1 for var, value in found.src_to_dst.items()}
    with pytest.raises(AssertionError, match="does not hold for"):
        tedsl.testing.check_int_constraints_trans_consistency(
            arith.IntConstraintsTransform(found.src, found.dst, shifted, {n: found.dst_to_src[n]}))
    with pytest.raises(tedsl.TedslError, match="solve_linear_equations"):
        tedsl.testing.check_int_constraints_trans_consistency(3)


@tedsl.testing.parametrize_targets("llvm", "c")
@tedsl.testing.exclude_targets("c")
@tedsl.testing.known_failing_targets("cuda")
def test_the_targets_that_are_left(target):
    assert target == "llvm"


def test_references():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((2, 2, 5, 6, 4)).astype("float32")
    w = rng.standard_normal((2, 1, 3, 3, 1, 4)).astype("float32")
    got = topi.testing.depthwise_conv2d_python_nchwc(a, w, 1, 1)
    want = topi.testing.depthwise_conv2d_python_nhwc(
        a.transpose(0, 2, 3, 1, 4).reshape(2, 5, 6, 8), w.transpose(2, 3, 0, 5, 1, 4).reshape(3, 3, 8, 1), 1, 1)
    np.testing.assert_allclose(got.transpose(0, 2, 3, 1, 4).reshape(2, 5, 6, 8), want, rtol=1e-5)
    image, kernel = a[:, 0].transpose(0, 3, 1, 2), rng.standard_normal((4, 2, 3)).astype("float32")
    by_rows = topi.testing.dilation2d_nchw_python(image, kernel, 2, 1, (1, 2))
    np.testing.assert_array_equal(by_rows.transpose(0, 2, 3, 1), topi.testing.dilation2d_nhwc_python(
        image.transpose(0, 2, 3, 1), kernel.transpose(1, 2, 0), (2, 2), (1, 1), (1, 2)))
    pooled = topi.testing.adaptive_pool_channel_first(image, (2, 3), np.mean)
    np.testing.assert_allclose(pooled, topi.testing.adaptive_pool(image, (2, 3), "avg", "NCHW"), atol=1e-6)


def test_an_operator_beside_numpy():
    a = np.arange(12, dtype="float32").reshape(3, 4)
    schedule = topi.testing.get_injective_schedule("llvm")
    topi.testing.compare_numpy_tvm([a], a + 1, "llvm", tedsl.cpu(), lambda x: topi.add(x, 1.0), schedule)
    with pytest.raises(AssertionError):
        topi.testing.compare_numpy_tvm([a], a + 2, "llvm", tedsl.cpu(), lambda x: topi.add(x, 1.0), schedule)
