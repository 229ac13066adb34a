"""cache_read with a dtype: a copy in wider numbers, to which elements are cast once."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tests.codegen.kernels import RUNNABLE


def product(dtype="float16"):
    a, b = te.placeholder((5, 7), dtype, name="a"), te.placeholder((7, 6), dtype, name="b")
    k = te.reduce_axis((0, 7), name="k")
    c = te.compute((5, 6), lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), name="c")
    return te.create_schedule(c.op), a, b, c


def test_casts_are_in_the_copy_alone():
    s, a, b, c = product()
    s.cache_read(a, "global", [c], dtype="float32")
    s.cache_read(b, "local", [c], "float32")
    text = str(tedsl.lower(s, [a, b, c], simple_mode=True))
    assert text.count("cast(float32") == 2 and "a.global[((ax0*7) + ax1)] = cast(float32, (float16*)a_2[" in text
    assert "((float32*)a.global[((i*7) + k)]*(float32*)b.local[((k*6) + j)])" in text


@pytest.mark.parametrize("narrow, wide", [
    ("float16", "float32"), ("float16", "float64"), ("float32", "float64"), ("int8", "float16"), ("uint8", "int16"),
    ("int32", "int64"), ("int16", "float32"), ("uint8", "bfloat16"), ("uint32", "int64")])
def test_elements_that_are_not_cast_are_cast_back(narrow, wide):
    """Sums of two elements wrap or round as before, those of casts to another dtype too."""
    x = te.placeholder((40,), narrow, name="x")
    y = te.compute((40,), lambda i: x[i] * x[i] + x[39 - i], name="y")
    z = te.compute((40,), lambda i: y[i].astype("float64") + x[i].astype("float64"), name="z")
    results = []
    for copied in (False, True):
        s = te.create_schedule([y.op, z.op])
        if copied:
            copy = s.cache_read(x, "global", [y, z], dtype=wide)
            assert copy.dtype == wide
            again = tedsl.te.create_schedule([y.op, z.op])
            again.replay(s.journal)
            assert str(again.journal) == str(s.journal)
        kernel = tedsl.build(s, [x, y, z])
        given = np.random.default_rng(0).integers(0, 120, 40).astype(narrow)
        out = [np.zeros(40, given.dtype), np.zeros(40, "float64")]
        kernel(given, *out)
        results.append(out)
    for plain, wider in zip(*results):
        np.testing.assert_array_equal(plain, wider)


@pytest.mark.parametrize("target", [str(target) for target in RUNNABLE])
@pytest.mark.parametrize("shape", [(61, 77, 100), (130, 40, 97), (20, 1, 120)])
def test_products_of_float16_read_copies_in_float32(shape, target):
    m, k, n = shape
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(of).astype("float16") for of in ((m, k), (n, k)))
    a, b = te.placeholder((m, k), "float16", name="a"), te.placeholder((n, k), "float16", name="b")
    with tedsl.target.Target(target):
        c = topi.nn.dense(a, b)
        s = topi.schedules.schedule(c)
        kernel = tedsl.build(s, [a, b, c])
    assert "s.cache_read(a, 'global', [T_dense], 'float32')" in str(s.journal)
    result = np.zeros((m, n), "float16")
    kernel(x, w, result)
    np.testing.assert_allclose(result, (x.astype("float64") @ w.astype("float64").T).astype("float16"), rtol=2e-3, atol=2e-3)
