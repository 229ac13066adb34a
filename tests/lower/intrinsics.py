"""Intrinsics that the tests share, and the check that interpreter, machine code and numpy agree."""

import numpy as np

import tedsl
from tedsl import te, tir
from tedsl.driver import schedule_to_module
from tedsl.ir.evaluate import run
from tedsl.ir.verify import verify

GEMV_C = """
int fill(float *z, int m) { for (int i = 0; i < m; ++i) z[i] = 0; return 0; }
int gemv_add(float *z, float *w, float *x, int m, int n, int ld) {
  for (int i = 0; i < m; ++i) for (int k = 0; k < n; ++k) z[i] += w[i * ld + k] * x[k];
  return 0;
}
int gemv(float *z, float *w, float *x, int m, int n, int ld) { fill(z, m); return gemv_add(z, w, x, m, n, ld); }
"""


def gemv(m, n, *, parts="body reset update", offset_factor=1):
    """z = w x, with any distance of the rows of w; by C functions of GEMV_C."""
    w, x = te.placeholder((m, n), name="w"), te.placeholder((n,), name="x")
    k = te.reduce_axis((0, n), name="k")
    z = te.compute((m,), lambda i: te.sum(w[i, k] * x[k], axis=k), name="z")
    W = tir.decl_buffer(w.shape, w.dtype, name="W", offset_factor=offset_factor, strides=[te.var("ldw"), 1])

    def call(name, ins, outs):
        return tir.call_extern("int32", name, outs[0].access_ptr("rw"), ins[0].access_ptr("r"), ins[1].access_ptr("r"),
                               m, n, ins[0].strides[0])

    def function(ins, outs):
        fill = tir.call_extern("int32", "fill", outs[0].access_ptr("w"), m)
        return (call("gemv", ins, outs) if "body" in parts else None, fill if "reset" in parts else None,
                call("gemv_add", ins, outs) if "update" in parts else None)

    return te.decl_tensor_intrin(z.op, function, name="gemv", binds={w: W},
                                 default_buffer_params={"offset_factor": offset_factor})


def vadd(n, dtype="float32", **options):
    """z = x + y, element by element in loops of its own."""
    x, y = te.placeholder((n,), dtype, name="x"), te.placeholder((n,), dtype, name="y")
    z = te.compute((n,), lambda i: x[i] + y[i], name="z")

    def function(ins, outs):
        stores = [outs[0].vstore([i], ins[0].vload([i]) + ins[1].vload([i])) for i in range(n)]
        return tir.SeqStmt(tuple(stores)) if n > 1 else stores[0]

    return te.decl_tensor_intrin(z.op, function, name="vadd", default_buffer_params=options or {"offset_factor": 1})


def matvec(n, m, dtype="float32"):
    A, B = te.placeholder((n, m), dtype, name="A"), te.placeholder((m,), dtype, name="B")
    k = te.reduce_axis((0, m), name="k")
    C = te.compute((n,), lambda i: te.sum(A[i, k] * B[k], axis=k), name="C")
    return A, B, C


def check(s, args, arrays, expected, target="llvm", rtol=1e-5):
    """The last of `arrays` becomes `expected`: by loops over buffers, by lowered loops, by machine code, and by machine code
    that checks its accesses."""
    raw = schedule_to_module(s, args)["main"]
    verify(raw, flat=False)
    lowered = tedsl.lower(s, args)["main"]
    verify(lowered, flat=True)
    built = tedsl.build(s, args, target)
    checked = tedsl.build(s, args, target, checked=True)
    for function in (lambda *a: run(raw, a), lambda *a: run(lowered, a), built, checked):
        arrays[-1][...] = 77
        function(*arrays)
        np.testing.assert_allclose(arrays[-1], expected, rtol=rtol)
    return built


def numbers(*shape, dtype="float32"):
    return np.random.default_rng(7).random(shape).astype(dtype)
