"""Templates of the tests."""

from tedsl import autotvm, te


@autotvm.template("tests/matmul")
def matmul(n, m, dtype):
    A, B = te.placeholder((n, m), dtype, name="A"), te.placeholder((m, n), dtype, name="B")
    k = te.reduce_axis((0, m), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    y, x = s[C].op.axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    cfg.define_knob("unroll", [False, True])
    yo, yi = cfg["tile_y"].apply(s, C, y)
    xo, xi = cfg["tile_x"].apply(s, C, x)
    s[C].reorder(yo, xo, s[C].op.reduce_axis[0], yi, xi)
    if cfg["unroll"].val:
        s[C].unroll(yi)
    return s, [A, B, C]


@autotvm.template("tests/refusing")
def refusing(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    cfg = autotvm.get_config()
    cfg.define_knob("what", ["fine", "says", "raises", "wrong"])
    if cfg["what"].val == "says":
        cfg.raise_error("it says no")
    if cfg["what"].val == "raises":
        raise ValueError("it raises")
    if cfg["what"].val == "wrong":
        s = te.create_schedule(te.compute((n,), lambda i: A[i] + 2.0, name="B").op)
        return s, [A, s.outputs[0].output(0)]
    return s, [A, B]


@autotvm.register_topi_compute("tests/scaled.x86")
def scaled(cfg, data, factor):
    cfg.define_split("tile", data.shape[0], num_outputs=2)
    return te.compute(data.shape, lambda i: data[i] * factor, name="scaled")


@autotvm.register_topi_schedule("tests/scaled.x86")
def schedule_scaled(cfg, outs):
    s = te.create_schedule([out.op for out in outs])
    cfg["tile"].apply(s, outs[0], outs[0].op.axis[0])
    return s
