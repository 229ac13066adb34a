"""Short loops whose iterations look like neighbours to add up or to turn, and are not: they compute what their loops say."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.ir.evaluate import run

rng = np.random.default_rng(0)


def agree(s, arguments, inputs, *shapes, dtype="int32"):
    """The machine code of a program computes what the interpreter says its loops do."""
    results = [[np.full(shape, 7, dtype) for shape in shapes] for _ in range(2)]
    run(tedsl.lower(s, arguments)["main"], [*inputs, *results[0]])
    tedsl.build(s, arguments)(*inputs, *results[1])
    for expected, got in zip(*results):
        np.testing.assert_array_equal(got, expected)


def test_products_of_bytes_added_to_two_arrays_in_one_loop():
    inputs = [rng.integers(-9, 9, shape).astype("int8") for shape in ((8,), (2, 16, 4), (2, 16, 4))]
    places = [te.placeholder(value.shape, "int8", name=name) for name, value in zip("abd", inputs)]

    def body(ins, outs):
        ib, (a, b, d) = tir.ir_builder.create(), ins
        with ib.for_range(0, 16, name="z") as z:
            for out in outs:
                ib.emit(out.vstore([z], tir.const(0, "int32")))
        with ib.for_range(0, 2, name="q") as q, ib.for_range(0, 4, name="r") as r, \
                ib.for_range(0, 16, kind="vectorize", name="j") as j:
            for out, of in zip(outs, (b, d)):
                product = a.vload([q * 4 + r], "int8").astype("int32") * of.vload([q, j, r], "int8").astype("int32")
                ib.emit(out.vstore([j], out.vload([j], "int32") + product))
        return ib.get()

    x, y = te.extern([(16,), (16,)], places, body, dtype=["int32", "int32"], name="sums")
    agree(te.create_schedule(x.op), [*places, x, y], inputs, (16,), (16,))


def products(statement, lanes, size, count=400):
    """Four times `statement(ib, inputs, out, r)`, which adds products of bytes to an array of `size` zeros."""
    inputs = [rng.integers(1, 9, n).astype("int8") for n in (count, 4 * lanes)]
    places = [te.placeholder(value.shape, "int8", name=f"i{k}") for k, value in enumerate(inputs)]

    def body(ins, outs):
        ib = tir.ir_builder.create()
        with ib.for_range(0, size, name="z") as z:
            ib.emit(outs[0].vstore([z], tir.const(0, "int32")))
        for r in range(4):
            statement(ib, ins, outs[0], r)
        return ib.get()

    out = te.extern([(size,)], places, body, dtype=["int32"], name="out")
    agree(te.create_schedule(out.op), [*places, out], inputs, (size,))


def test_products_of_bytes_at_places_that_the_sum_decides():
    def statement(ib, ins, out, r):
        first = tir.max(tir.min(out.vload([0], "int32"), 300), 0)
        left = tir.Broadcast(ins[0].vload([first + r], "int8").astype("int32"), 16)
        right = tir.BufferLoad(ins[1], [tir.Ramp(r, 4, 16)]).astype("int32x16")
        ib.emit(out.vstore([0], out.vload([0], "int32x16") + left * right))

    products(statement, 16, 16)


@pytest.mark.parametrize("lanes", [4, 5, 6, 7, 20, 33])
@pytest.mark.parametrize("stride", [0, 1, 2])
def test_products_of_bytes_stored_to_one_place(lanes, stride):
    def statement(ib, ins, out, r):
        left = tir.Broadcast(ins[0].vload([r], "int8").astype("int32"), lanes)
        right = tir.BufferLoad(ins[1], [tir.Ramp(r, 4, lanes)]).astype(f"int32x{lanes}")
        at = [tir.Ramp(0, stride, lanes)]
        ib.emit(tir.BufferStore(out, tir.BufferLoad(out, at) + left * right, at))

    products(statement, lanes, lanes * stride + 1)


@pytest.mark.parametrize("place", [lambda k: tir.floordiv(k, 2) * 16, lambda k: k * k, lambda k: tir.floormod(k * 16, 64)])
def test_rows_that_overlap_keep_their_order(place):
    """Each iteration stores 32 elements from `place` on, which the next ones store to again."""
    a = te.placeholder((32, 16), name="a")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        with ib.for_range(0, 300, name="z") as z:
            ib.emit(outs[0].vstore([z], tir.const(0, "float32")))
        with ib.for_range(0, 16, name="k") as k, ib.for_range(0, 32, kind="vectorize", name="j") as j:
            ib.emit(outs[0].vstore([place(k) + j], ins[0].vload([j, k], "float32")))
        return ib.get()

    out = te.extern([(300,)], [a], body, dtype=["float32"], name="out")
    agree(te.create_schedule(out.op), [a, out], [rng.random((32, 16), "float32")], (300,), dtype="float32")


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_powers_of_zero_and_infinity_with_a_sign(dtype, target):
    """Only odd whole exponents keep the sign."""
    x, y = (grid.ravel().astype(dtype) for grid in np.meshgrid(
        [0.0, -0.0, np.inf, -np.inf, -1.5, -1.0], [1.0, 1.125, 3.5, -1.0, -3.5, -87.25, 2.0, 3.0, -2.0, 5e4, np.inf, -np.inf]))
    a, b = te.placeholder(x.shape, dtype, name="a"), te.placeholder(x.shape, dtype, name="b")
    c = te.compute(x.shape, lambda i: te.power(a[i], b[i]), name="c")
    got = np.zeros_like(x)
    tedsl.build(te.create_schedule(c.op), [a, b, c], target)(x, y, got)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype("float64"), y.astype("float64")).astype(dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    numbers = ~np.isnan(expected)
    np.testing.assert_allclose(got[numbers], expected[numbers], rtol=1e-3 if dtype == "float16" else 1e-6)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(expected[numbers]))
