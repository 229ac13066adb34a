"""Results of te.compute(..., tensor_intrin) that are cached, and read through caches."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ScheduleError


def gemv(rows, columns):
    """c[i] = sum over k of a[i, k] * b[k], with an intrinsic that knows init and update."""
    a, b = te.placeholder((rows, columns), name="a"), te.placeholder((columns,), name="b")
    k = te.reduce_axis((0, columns), "k")
    c = te.compute((rows,), lambda i: te.sum(a[i, k] * b[k], axis=k), name="c")

    def body(ins, outs):
        def step(add):
            ib = tir.ir_builder.create()
            with ib.for_range(0, rows) as i:
                if not add:
                    ib.emit(outs[0].vstore([i], 0.0))
                with ib.for_range(0, columns) as j:
                    ib.emit(outs[0].vstore([i], outs[0].vload([i]) + ins[0].vload([i, j]) * ins[1].vload([j])))
            return ib.get()

        ib = tir.ir_builder.create()
        with ib.for_range(0, rows) as i:
            ib.emit(outs[0].vstore([i], 0.0))
        return step(False), ib.get(), step(True)

    strided = tir.decl_buffer(a.shape, a.dtype, "a", strides=[te.var("s"), 1], offset_factor=1)
    return te.decl_tensor_intrin(c.op, body, binds={a: strided}, default_buffer_params={"offset_factor": 1})


def matrix_product(reduced):
    """C (4, 5, 8) of A (5, 8, 12) and B (4, 12), in calls with 8 rows and 12 columns, or 3 with the loop over calls reduced."""
    A, B = te.placeholder((5, 8, 12), name="A"), te.placeholder((4, 12), name="B")
    if reduced:
        ko = te.reduce_axis((0, 4), "ko")
        call = gemv(8, 3)
        C = te.compute((4, 5, 8), lambda i, j: call(A[j, 0:8, ko * 3:ko * 3 + 3], B[i, ko * 3:ko * 3 + 3], reduce_axis=ko),
                       name="C")
    else:
        call = gemv(8, 12)
        C = te.compute((4, 5, 8), lambda i, j: call(A[j, 0:8, 0:12], B[i, 0:12]), name="C")
    return A, B, C


def check(s, A, B, out, after=lambda c: c):
    rng = np.random.default_rng(0)
    a, b, c = rng.random((5, 8, 12), "float32"), rng.random((4, 12), "float32"), np.zeros((4, 5, 8), "float32")
    tedsl.build(s, [A, B, out])(a, b, c)
    np.testing.assert_allclose(c, after(np.einsum("jrk,ik->ijr", a, b)), rtol=1e-5)


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("attach", [None, 0, 1])
def test_a_result_is_computed_in_another_memory(reduced, attach):
    A, B, C = matrix_product(reduced)
    s = te.create_schedule(C.op)
    i, j = C.op.axis[:2]
    s[C].reorder(j, i)
    kept = s.cache_write(C, "local")
    assert [axis.var.name for axis in kept.op.axis] == ["j.c", "i.c", "ax0.c"] and len(s[C].op.axis) == 3
    if attach is not None:
        s[kept].compute_at(s[C], s[C].op.axis[attach])
    s[C].vectorize(s[C].op.axis[2])
    check(s, A, B, C)


def test_a_result_that_is_read_again():
    A, B, C = matrix_product(False)
    D = te.compute((4, 5, 8), lambda *i: C(*i) * 2.0, name="D")
    s = te.create_schedule(D.op)
    kept = s.cache_write(C, "global")
    s[C].compute_inline()
    s[kept].compute_at(s[D], D.op.axis[0])
    again = s.cache_read(kept, "local", [C])
    s[again].compute_at(s[D], D.op.axis[1])
    inputs = s.cache_read(A, "global", [kept])
    s[inputs].compute_root()
    check(s, A, B, D, lambda c: c * 2)


def test_loops_over_calls_that_were_split():
    A, B, C = matrix_product(False)
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], 2)
    with pytest.raises(ScheduleError, match=r"over the calls of C's intrinsic are split or fused\n(.|\n)*cache_write first"):
        s.cache_write(C, "local")
