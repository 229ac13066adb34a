"""Sizes of temporary memory: below 0 is nothing, and what does not fit 64 bits is refused, never wrapped around."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.ir import build
from tedsl.ir.expr import IntImm, Load, Var, pointer_var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Allocate, For, ForKind, Store, seq


def test_loops_that_run_nothing_may_ask_for_less_than_nothing():
    """An extent that is proved inside a loop may be negative where the allocation ends up, outside of it."""
    n = te.var("n")
    out = tedsl.tir.decl_buffer((n,), name="out")
    tmp, i = pointer_var("tmp", tedsl.ir.dtype.dtype("float32"), ""), Var("i")
    body = For(i, IntImm("int32", 0), n, ForKind.SERIAL, seq(
        Store(tmp, te.const(1.0, "float32"), IntImm("int32", 0)), Store(out.data, Load("float32", tmp, IntImm("int32", 0)), i)))
    size = build.add(build.mul(build.sub(n, 1), 100_000), 4)
    func = PrimFunc((Var("h", "handle"),), Allocate(tmp, "float32", (size,), build.true(), body), None, {},
                    {"global_symbol": "main"})
    handle = func.params[0]
    kernel = tedsl.build(func.replace(buffer_map={handle: out}), checked=True)
    for count in (0, 3):
        a = np.zeros(count, "float32")
        kernel(a)
        np.testing.assert_array_equal(a, 1)


def test_a_size_beyond_64_bits_is_a_memory_error():
    n, m, k = te.var("n"), te.var("m"), te.var("k")
    A, B, C = (te.placeholder((d,), "int8", name=x) for d, x in ((n, "A"), (m, "B"), (k, "C")))
    T = te.compute((n, m, k), lambda a, b, c: (A[a] + B[b] + C[c]).astype("float32"), name="T")
    U = te.compute((1,), lambda u: T[0, 0, 0] + T[u, u, u], name="U")
    kernel = tedsl.build(te.create_schedule(U.op), [A, B, C, U])
    u = np.zeros(1, "float32")
    with pytest.raises(MemoryError):
        kernel(*[np.zeros(1 << 21, "int8")] * 3, u)  # 2**65 bytes
    kernel(*[np.ones(2, "int8")] * 3, u)
    assert u[0] == 6
