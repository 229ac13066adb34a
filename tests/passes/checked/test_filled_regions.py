"""Which elements of its regions an intrinsic must store to: all of its outputs, and none of them in an update."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import AccessError
from tests.lower.intrinsics import numbers


def larger(lhs, rhs):
    keep = lhs[1] >= rhs[1]
    return te.if_then_else(keep, lhs[0], rhs[0]), te.if_then_else(keep, lhs[1], rhs[1])


ARGMAX = te.comm_reducer(larger, lambda *dtypes: (tir.const(-1, dtypes[0]), te.min_value(dtypes[1])), name="argmax")


def argmax_of(n, start=True):
    """Its update stores when it finds a larger element, and to both outputs; without `start`, one has no start value."""
    x, at, k = te.placeholder((n,), name="x"), te.placeholder((n,), "int32", name="at"), te.reduce_axis((0, n), name="k")
    z = te.compute((1,), lambda i: ARGMAX((at[k], x[k]), axis=k), name="z")

    def function(ins, outs):
        def loops(reset, update):
            ib = tir.ir_builder.create()
            where, values, best_at, best = map(ib.buffer_ptr, (*ins, *outs))
            if reset:
                best[0] = te.min_value("float32")
            if reset and start:
                best_at[0] = -1
            if update:
                with ib.for_range(0, n, "q") as q, ib.if_scope(values[q] > best[0]):
                    best_at[0] = where[q]
                    best[0] = values[q]
            return ib.get()
        return loops(True, True), loops(True, False), loops(False, True)

    return te.decl_tensor_intrin(z[0].op, function, name="larger", default_buffer_params={"offset_factor": 1})


def run_argmax(intrin, x):
    X, At = te.placeholder((1, 8), name="X"), te.placeholder((1, 8), "int32", name="At")
    k = te.reduce_axis((0, 8), name="k")
    Z = te.compute((1,), lambda i: ARGMAX((At[i, k], X[i, k]), axis=k), name="Z")
    s = te.create_schedule(Z[0].op)
    _, inner = s[Z[0]].split(Z[0].op.reduce_axis[0], 4)
    s[Z[0]].tensorize(inner, intrin)
    at, best = np.full(1, 77, "int32"), np.full(1, 77, "float32")
    tedsl.build(s, [X, At, *Z], checked=True)(x[None], np.arange(8, dtype="int32")[None], at, best)
    assert at[0] == x.argmax() and best[0] == x.max()


def test_an_update_of_several_outputs_may_leave_them():
    run_argmax(argmax_of(4), np.arange(8, 0, -1).astype("float32"))  # nothing is found in the second half
    run_argmax(argmax_of(4), np.arange(8).astype("float32"))
    with pytest.raises(AccessError, match=r"never writes Z.v0\[0\], which is in the region that the intrinsic larger"):
        run_argmax(argmax_of(4, start=False), np.arange(8).astype("float32"))


def test_rows_of_a_scan_that_an_intrinsic_reads_are_not_its_output():
    """The rows before, which it reads, and the row that it computes are regions of the same tensor."""
    assert_rows(columns=4)
    with pytest.raises(AccessError, match=r"never writes R\[1, 3\], which is in the region that the intrinsic vecmat"):
        assert_rows(columns=3)


def vecmat(n, columns):
    """z = x w; stores to the first `columns` elements of z."""
    x, w, k = te.placeholder((n,), name="x"), te.placeholder((n, n), name="w"), te.reduce_axis((0, n), name="k")
    z = te.compute((n,), lambda i: te.sum(x[k] * w[k, i], axis=k), name="z")

    def function(ins, outs):
        ib = tir.ir_builder.create()
        out = ib.buffer_ptr(outs[0])
        with ib.for_range(0, columns, "c") as c:
            out[c] = 0.0
            with ib.for_range(0, n, "q") as q:
                out[c] = out[c] + ins[0].vload([q]) * ins[1].vload([q, c])
        return ib.get()

    return te.decl_tensor_intrin(z.op, function, name="vecmat", default_buffer_params={"offset_factor": 1})


def assert_rows(columns):
    X, W, state = te.placeholder((1, 4), name="X"), te.placeholder((4, 4), name="W"), te.placeholder((3, 4), name="state")
    k = te.reduce_axis((0, 4), name="k")
    first = te.compute((1, 4), lambda t, i: X[t, i], name="first")
    row = te.compute((3, 4), lambda t, i: te.sum(state[t - 1, k] * W[k, i], axis=k), name="row")
    R = te.scan(first, row, state, inputs=[X, W], name="R")
    s = te.create_schedule(R.op)
    s[row].tensorize(row.op.axis[1], vecmat(4, columns))
    x, w, r = numbers(1, 4), numbers(4, 4), np.zeros((3, 4), "float32")
    tedsl.build(s, [X, W, R], checked=True)(x, w, r)
    np.testing.assert_allclose(r, np.concatenate([x, x @ w, x @ w @ w]), rtol=1e-5)
