"""Kernels written by hand with tir.ir_builder, run as machine code, with and without checks, and in the interpreter."""

import numpy as np

import tedsl
from tedsl import te, tir
from tedsl.ir.evaluate import run

COUNT = 8


def schedule(body, size=COUNT, launch=None):
    """B = body(builder, a, b, start), where start() launches `launch` (threadIdx.x: 8 threads) and returns the axes."""
    axes = launch or {"threadIdx.x": COUNT}
    A = te.placeholder((size,), name="A")

    def statements(ins, outs):
        builder = tir.ir_builder.create()

        def start():
            made = [te.thread_axis(tag) for tag in axes]
            for axis, count in zip(made, axes.values()):
                builder.scope_attr(axis, "thread_extent", count)
            return made[0] if len(made) == 1 else made

        body(builder, builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0]), start)
        return builder.get()

    B = te.extern((size,), [A], statements, name="B", dtype="float32")
    return te.create_schedule(B.op), [A, B]


def compiled(s, args, a, checked):
    b = np.full(a.shape, 77, "float32")
    tedsl.build(s, args, checked=checked)(a, b)
    return b


def computes(body, expected, size=None, launch=None):
    """Whether `body` makes `expected` of 0.0, 1.0, ..., however it is run."""
    expected = np.asarray(expected, "float32")
    a = np.arange(len(expected), dtype="float32")
    s, args = schedule(body, len(expected) if size is None else size, launch)
    for checked in (False, True):
        np.testing.assert_array_equal(compiled(s, args, a, checked), expected, err_msg=f"checked={checked}")
    func = tedsl.lower(s, args)["main"]
    for backwards in (False, True):
        b = np.full(a.shape, 77, "float32")
        run(func, [a, b], reverse_parallel=backwards)
        np.testing.assert_array_equal(b, expected, err_msg=f"interpreter, backwards={backwards}")
