"""The lanes of a vector where a condition holds, packed, on every backend."""

import shutil

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import DTypeError
from tedsl.ir.evaluate import run

LANES = (2, 4, 8, 16, 32, 64)
DTYPES = ["int32", "int64", "float32", "float64", "uint8", "int16", "float16"]


def packed(dtype):
    """Lanes above 3 of vectors of each width, one behind the other."""
    a = te.placeholder((sum(LANES),), dtype, name="A")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        first = 0
        for lanes in LANES:
            value = ib.let("value", source[tir.Ramp(first, 1, lanes)])
            target[tir.Ramp(first, 1, lanes)] = te.compress_lanes(value, value > te.const(3, dtype))
            first += lanes
        return ib.get()

    made = te.extern((sum(LANES),), [a], body, dtype=dtype, name="packed")
    return te.create_schedule(made.op), [a, made]


def drawn(dtype):
    return np.random.default_rng(0).integers(0, 7, sum(LANES)).astype(dtype)


def expected(data):
    result, first = np.zeros_like(data), 0
    for lanes in LANES:
        held = data[first:first + lanes]
        held = held[held > 3]
        result[first:first + len(held)] = held
        first += lanes
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64", "llvm -mcpu=haswell", "c", "c -vectors=gcc"])
def test_lanes_that_hold_come_first(target, dtype):
    if target.startswith("c") and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    data = drawn(dtype)
    result = np.ones_like(data)
    tedsl.build(*packed(dtype), target=target)(data, result)
    assert result.tolist() == expected(data).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_interpreter_gives_the_same(dtype):
    data = drawn(dtype)
    result = np.ones_like(data)
    run(tedsl.lower(*packed(dtype))["main"], [data, result])
    assert result.tolist() == expected(data).tolist()


V = te.var("v", "int32x4")


@pytest.mark.parametrize("value, condition", [(te.var("s", "int32"), te.var("c", "bool")), (V, te.var("c", "boolx8")), (V, V),
                                              (te.var("b", "boolx4"), te.var("c", "boolx4"))])
def test_other_values_are_refused(value, condition):
    with pytest.raises(DTypeError, match="compress_lanes takes a vector of numbers and one of bools with as many lanes"):
        te.compress_lanes(value, condition)


def test_a_result_of_another_dtype_is_refused():
    with pytest.raises(DTypeError, match="gives the dtype of the first"):
        tir.call_intrin("int64x4", "tir.compress_lanes", V, te.var("c", "boolx4"))


def test_the_text_of_a_program_holds_it():
    text = tedsl.lower(*packed("int32"))["main"].script()
    assert 'T.call_intrin("int32x16", "tir.compress_lanes"' in text
