"""Atomic additions: by scatters and histograms, in the interpreter, on the processor and in the simulated PTX."""

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
import topi
from tedsl import te, tir
from tedsl.errors import LoweringError, TedslError
from tedsl.ir.evaluate import run
from tests.codegen.nvptx.assembler import assemble, count
from tests.codegen.nvptx.kernels import device_code
from tests.devices.test_tensor_cores import without_formulas

TARGET = "cuda -arch=sm_80"


def add(element, value):
    return tir.call_intrin(value.dtype, "tir.atomic_add", tir.call_intrin("handle", "tir.address_of", element), value)


def launch(ib, blocks, threads):
    block, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
    ib.scope_attr(block, "thread_extent", blocks)
    ib.scope_attr(thread, "thread_extent", threads)
    return block, thread


def scatter(dtype, n=200, bins=16, threads=64):
    """Values added to global memory, each at its place."""
    def body(ins, outs):
        ib = tir.ir_builder.create()
        places, values, total = (ib.buffer_ptr(b) for b in (*ins, outs[0]))
        block, thread = launch(ib, -(-n // threads), threads)
        k = block * threads + thread
        with ib.if_scope(tir.all(k < n, places[k] >= 0, places[k] < bins)):
            ib.emit(add(total[places[k]], values[k]))
        return ib.get()

    P, V = te.placeholder((n,), "int32", name="P"), te.placeholder((n,), dtype, name="V")
    T = te.extern((bins,), [P, V], body, name="T", dtype=dtype)
    return te.create_schedule(T.op), [P, V, T]


def histogram(n=400, bins=16, threads=64, blocks=2):
    """Counts in shared memory, added to those of all blocks."""
    def body(ins, outs):
        ib = tir.ir_builder.create()
        places, total = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        block, thread = launch(ib, blocks, threads)
        counts = ib.allocate("int32", bins, name="counts", scope="shared")
        with ib.if_scope(thread < bins):
            counts[thread] = 0
        with ib.for_range(0, -(-n // blocks // threads), name="step") as step:
            k = step * threads + thread
            with ib.if_scope(k < n // blocks):
                place = ib.let("place", places[block * (n // blocks) + k])
                with ib.if_scope(tir.all(place >= 0, place < bins)):
                    ib.emit(add(counts[place], tir.const(1, "int32")))
        with ib.if_scope(thread < bins):
            ib.emit(add(total[thread], counts[thread]))
        return ib.get()

    P = te.placeholder((n,), "int32", name="P")
    T = te.extern((bins,), [P], body, name="T", dtype="int32")
    return te.create_schedule(T.op), [P, T]


def on_simulator(s, args, values):
    device = tedsl.sim(0)
    arrays = [tedsl.nd.array(value, device) for value in values]
    with simulate.mode("checked"):
        tedsl.build(s, args, target=TARGET)(*arrays)
    return arrays[-1].numpy()


def agree(s, args, inputs, start, expected):
    values = [*inputs, start.copy()]
    run(without_formulas(s, args, TARGET), values)
    np.testing.assert_array_equal(values[-1], expected, err_msg="interpreter")
    values = [*inputs, start.copy()]
    tedsl.build(s, args, target="llvm")(*values)
    np.testing.assert_array_equal(values[-1], expected, err_msg="processor")
    np.testing.assert_array_equal(on_simulator(s, args, [*inputs, start]), expected, err_msg="simulator")


PLACES = np.random.default_rng(0).integers(-1, 17, 400).astype("int32")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64", "uint64"])
def test_scatter(dtype):
    places, values = PLACES[:200], np.random.default_rng(1).integers(0, 9, 200).astype(dtype)
    start, inside = np.ones(16, dtype), (places >= 0) & (places < 16)
    expected = start.copy()
    np.add.at(expected, places[inside], values[inside])
    agree(*scatter(dtype), [places, values], start, expected)


def test_histogram():
    s, args = histogram()
    inside = PLACES[(PLACES >= 0) & (PLACES < 16)]
    agree(s, args, [PLACES], np.zeros(16, "int32"), np.bincount(inside, minlength=16).astype("int32"))
    assert str(without_formulas(s, args, TARGET)).count("tvm_storage_sync") == 2  # none among the additions


def test_the_value_before():
    """An atomic addition gives what was there: each thread takes a number of its own."""
    def body(ins, outs):
        ib = tir.ir_builder.create()
        taken, counter = ib.buffer_ptr(outs[0]), ib.buffer_ptr(ins[0])
        block, thread = launch(ib, 2, 32)
        mine = ib.let("mine", add(counter[0], tir.const(1, "int32")))
        with ib.if_scope(tir.all(mine >= 0, mine < 64)):
            taken[mine] = block * 32 + thread
        return ib.get()

    C = te.placeholder((1,), "int32", name="C")
    T = te.extern((64,), [C], body, name="T", dtype="int32")
    s = te.create_schedule(T.op)
    for values in (lambda given: tedsl.build(s, [C, T], target="llvm")(*given),
                   lambda given: given.__setitem__(1, on_simulator(s, [C, T], given))):
        given = [np.zeros(1, "int32"), np.zeros(64, "int32")]
        values(given)
        assert sorted(given[1]) == list(range(64))


def test_machine_code(tmp_path):
    code = device_code(*scatter("float32"))
    assert code.text.count("atom.global.add.f32") == 1
    image, _ = assemble(code.text, "sm_80", tmp_path)
    assert count(image, "RED", "ADD", "F32") + count(image, "REDG", "ADD", "F32") + count(image, "RED", "E", "ADD") > 0


def test_parallel_loops_of_the_processor():
    def body(ins, outs):
        ib = tir.ir_builder.create()
        total = ib.buffer_ptr(outs[0])
        with ib.for_range(0, 10000, name="i", kind="parallel"):
            ib.emit(add(total[0], tir.const(1, "int64")))
        return ib.get()

    T = te.extern((1,), [], body, name="T", dtype="int64")
    out = np.zeros(1, "int64")
    tedsl.build(te.create_schedule(T.op), [T], target="llvm")(out)
    assert out[0] == 10000


def test_what_is_refused():
    with pytest.raises(TedslError, match="of 32 or 64 bits"):
        scatter("float16")
    s, args = scatter("int32")
    with pytest.raises(LoweringError, match=r"tir\.atomic_add cannot be written in C"):
        tedsl.build(s, args, target="opencl")


@pytest.mark.parametrize("shape, of_indices, axis, dtype", [
    ((17,), (100,), 0, "float32"), ((5, 7, 9), (5, 30, 9), 1, "int32"), ((4, 6), (3, 6), 0, "float32"),
    ((4, 6), (4, 20), -1, "float64")])
def test_scatter_add(shape, of_indices, axis, dtype):
    D, U = te.placeholder(shape, dtype, name="D"), te.placeholder(of_indices, dtype, name="U")
    I = te.placeholder(of_indices, "int32", name="I")
    out = topi.cuda.scatter_add(D, I, U, axis)
    s = topi.cuda.schedule_scatter_add([out])
    rng = np.random.default_rng(0)
    data, updates = (rng.integers(0, 9, size).astype(dtype) for size in (shape, of_indices))
    places = rng.integers(-shape[axis], shape[axis], of_indices).astype("int32")
    at = list(np.indices(of_indices))
    at[axis] = places
    expected = data.copy()
    np.add.at(expected, tuple(at), updates)
    values = [data, places, updates, np.zeros(shape, dtype)]
    np.testing.assert_array_equal(on_simulator(s, [D, I, U, out], values), expected)
    tedsl.build(s, [D, I, U, out], target="llvm")(*values)
    np.testing.assert_array_equal(values[-1], expected)
