"""Tuple reductions, scans, externs and shapes: no finding."""

from tedsl import te, tir, topi

n = te.var("n")
A = te.placeholder((n, n), name="A", dtype="float64")
k = te.reduce_axis((0, A.shape[1]), "k")
argmax = te.comm_reducer(lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
                         lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
place, value = te.compute((n,), lambda i: argmax((k.var, A[i, k]), axis=k), name="argmax")
doubled, shifted = te.compute((n,), lambda i: (A[i, 0] * 2, A[i, 0] + 1.0), name="two")
assert doubled.op.axis[0].dom is not None

state = te.placeholder((n, n), name="state")
init = te.compute((1, n), lambda _, i: A[0, i], name="init")
update = te.compute((n, n), lambda t, i: state[t - 1, i] + A[t, i], name="update")
rows = te.scan(init, update, state)
assert rows.op.scan_axis.dom is not None

outside = te.extern((n, n), [A], lambda ins, outs: tir.call_packed("fill", ins[0], outs[0]), name="outside")
assert len(outside.op.inputs) == 1

peak: te.Tensor = topi.max(A, axis=1)
s = te.create_schedule([peak.op, rows.op])
s[peak].fuse(*peak.op.axis)
