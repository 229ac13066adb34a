"""The lanes of a condition as the bits of an integer, on every backend."""

import shutil

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import DTypeError
from tedsl.ir.evaluate import run

LANES = (2, 4, 8, 16, 32, 64)
A = te.placeholder((64,), "int32", name="A")
DATA = np.random.default_rng(0).integers(0, 7, 64).astype("int32")
EXPECTED = [sum(1 << lane for lane in range(lanes) if DATA[lane] > 3) for lanes in LANES]


def masks():
    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        for at, lanes in enumerate(LANES):
            target[at] = te.lane_mask(source[tir.Ramp(0, 1, lanes)] > 3)
        return ib.get()

    made = te.extern((len(LANES),), [A], body, dtype="uint64", name="masks")
    return te.create_schedule(made.op), [A, made]


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64", "llvm -mcpu=haswell", "c", "c -vectors=gcc"])
def test_each_lane_is_a_bit(target):
    if target.startswith("c") and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    result = np.zeros(len(LANES), "uint64")
    tedsl.build(*masks(), target=target)(DATA, result)
    assert result.tolist() == EXPECTED


def test_the_interpreter_gives_the_same():
    result = np.zeros(len(LANES), "uint64")
    run(tedsl.lower(*masks())["main"], [DATA, result])
    assert result.tolist() == EXPECTED


def test_a_mask_in_a_vectorized_loop_is_computed_lane_by_lane():
    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 8, name="i", kind="vectorize") as i:
            target[i] = te.lane_mask(source[tir.Ramp(i * 8, 1, 8)] > 3)
        return ib.get()

    made = te.extern((8,), [A], body, dtype="uint64", name="masks")
    result = np.zeros(8, "uint64")
    tedsl.build(te.create_schedule(made.op), [A, made])(DATA, result)
    assert result.tolist() == [sum(1 << k for k in range(8) if DATA[8 * i + k] > 3) for i in range(8)]


@pytest.mark.parametrize("value", [A[0] > 3, te.var("v", "int32x4"), te.var("v", "boolx65")])
def test_other_values_are_refused(value):
    with pytest.raises(DTypeError, match="lane_mask takes a vector of 2 to 64 bools"):
        te.lane_mask(value)


def test_a_mask_of_another_dtype_is_refused():
    with pytest.raises(DTypeError, match="it takes a vector of 2 to 64 bools, and gives uint64"):
        tir.call_intrin("int32", "tir.lane_mask", te.var("v", "boolx4"))
