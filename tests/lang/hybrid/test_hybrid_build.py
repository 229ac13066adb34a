"""te.hybrid.build: schedules as hybrid scripts, which run as Python and can be read again."""

from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tests.lang.hybrid import scripts


def check(module, inputs, outputs, tensors, results):
    """The script as Python, and read and compiled again, gives the results."""
    made = module(*inputs)
    for got, want in zip(made if isinstance(made, tuple) else (made,), outputs):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    again = module(*tensors)
    again = again if isinstance(again, list) else [again]
    arrays = [np.zeros_like(want) for want in outputs]
    tedsl.build(te.create_schedule([t.op for t in again]), [*tensors, *again])(*inputs, *arrays)
    for got, want in zip(arrays, outputs):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_formula_with_a_schedule():
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: te.if_then_else(i > 3, te.exp(A[i]), 0.5), name="B")
    C = te.compute((8,), lambda i: B[i] + B[i + 2], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 3)
    s[C].parallel(outer)
    s[B].compute_at(s[C], outer)
    module = te.hybrid.build(s, [A], [C])
    assert module.get_source() == dedent("""\
        import tedsl


        @tedsl.te.hybrid.script
        def hybrid_func(A):
            C = output_tensor((8,), 'float32')
            for i_outer in parallel(3):
                B = allocate((5,), 'float32', 'global')
                for i in range(5):
                    if likely((((i_outer * 3) + i) < 10)):
                        B[i] = (exp(A[((i_outer * 3) + i)]) if (((i_outer * 3) + i) > 3) else float32(0.5))
                for i_inner in range(3):
                    if likely((((i_outer * 3) + i_inner) < 8)):
                        C[((i_outer * 3) + i_inner)] = (B[i_inner] + B[(i_inner + 2)])
            return C
        """)
    a = np.random.default_rng(0).random(10, dtype="float32")
    b = np.where(np.arange(10) > 3, np.exp(a), np.float32(0.5))
    check(module, [a], [b[:8] + b[2:]], [A], [C])


def test_a_reduction_over_symbolic_shapes():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    module = te.hybrid.build(te.create_schedule(B.op), [A], [B], name="rows")
    a = np.random.default_rng(0).random((3, 5), dtype="float32")
    np.testing.assert_allclose(module(a), a.sum(axis=1), rtol=1e-6)
    X = te.placeholder((3, 5), name="X")
    check(module, [a], [a.sum(axis=1)], [X], [B])


def test_a_script_with_directives(tmp_path):
    A, B = te.placeholder((10,), name="A"), te.placeholder((6,), name="B")
    C = scripts.product(A, B)
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    s[C].reorder(j, i)
    s[C].vectorize(i)
    module = te.hybrid.build(s, [A, B], [C])
    assert "for j in range(6):\n        for i in vectorize(10):" in module.get_source()
    a, b = np.arange(10, dtype="float32"), np.arange(6, dtype="float32")
    check(module, [a, b], [np.outer(a, b)], [A, B], [C])
    module.save(tmp_path / "product")
    again = te.hybrid.HybridModule.load(tmp_path / "product.py")
    np.testing.assert_array_equal(again(a, b), np.outer(a, b))


def test_what_has_no_form_in_a_script():
    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], lambda ins, outs: tir.call_packed("f", ins[0], outs[0]), dtype="float32", name="B")
    with pytest.raises(tedsl.TedslError, match=r"has no form in hybrid script"):
        te.hybrid.build(te.create_schedule(B.op), [A], [B])
    with pytest.raises(TypeError, match=r"cannot be the name of a Python function"):
        te.hybrid.build(te.create_schedule(B.op), [A], [B], name="a b")
