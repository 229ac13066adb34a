"""Short loops, of which several iterations are written as one."""

import re

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.codegen.llvm.short_loops import has_short_loops, together
from tedsl.ir.stmt import For
from tedsl.ir.walk.contents import of_kinds

AVX2 = "llvm -mcpu=x86-64-v3"
BITS = 256  # of its registers


def along(formula, extent, lanes, dtype="float32"):
    """A program that computes `extent` elements in vectors of `lanes`."""
    a = te.placeholder((4 * extent,), dtype, name="a")
    b = te.compute((extent,), lambda i: formula(a, i), name="b")
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], factor=lanes)[1])
    return s, [a, b]


def loops(program):
    """The loops of a program, lowered."""
    func = tedsl.lower(*program)["main"]
    return func, [s for s in of_kinds(func.body, For) if isinstance(s, For)]


def two(a, i):
    return a[i] + a[i + 1]


@pytest.mark.parametrize("formula, extent, lanes, count", [
    (two, 1024, 8, 4), (two, 1024, 16, 2), (two, 1024, 32, 1), (two, 1024, 256, 1), (lambda a, i: a[i], 1024, 8, 4),
    (lambda a, i: a[i], 1024, 64, 1), (lambda a, i: a[i * 3], 1024, 8, 1), (lambda a, i: te.exp(a[i]), 1024, 8, None),
    (lambda a, i: te.exp(te.exp(a[i])), 1024, 64, 1), (two, 8 * 63, 8, 3), (two, 8 * 35, 8, 5), (two, 8 * 98, 8, 7),
    (two, 8 * 61, 8, None), (two, 16 * 63, 16, 3), (two, 16 * 61, 16, None), (two, 8 * 16, 8, None),
], ids=["one register", "two", "four", "many", "copy", "copy of many", "gather", "function", "functions of many", "by three",
        "by five", "by seven", "of a prime", "two by three", "two of a prime", "few iterations"])
def test_how_many_iterations_are_written_as_one(formula, extent, lanes, count):
    func, (loop,) = loops(along(formula, extent, lanes))
    assert together(loop, BITS) == count
    assert has_short_loops(func, BITS) is (count is None)


def test_sums_and_several_values_are_for_the_unroller_of_llvm():
    a, k = te.placeholder((64, 8), name="a"), te.reduce_axis((0, 64), "k")
    b = te.compute((8,), lambda i: te.sum(a[k, i], axis=k), name="b")
    s = te.create_schedule(b.op)
    s[b].reorder(k, b.op.axis[0])
    s[b].vectorize(b.op.axis[0])
    assert has_short_loops(loops((s, [a, b]))[0], BITS)
    assert has_short_loops(loops((s, [a, b]))[0], 512)
    c, d = te.compute((512,), lambda i: (a[i // 8, i % 8] + 1, a[i // 8, i % 8] * 2), name="c")
    s = te.create_schedule(c.op)
    s[c].vectorize(s[c].split(c.op.axis[0], factor=8)[1])
    assert has_short_loops(loops((s, [a, c, d]))[0], BITS)


@pytest.mark.parametrize("register, count", [(512, 1), (256, None)])
def test_sums_of_several_wide_registers_stay_one_by_one(register, count):
    a, k = te.placeholder((64, register // 8), name="a"), te.reduce_axis((0, 64), "k")
    b = te.compute((register // 8,), lambda i: te.sum(a[k, i], axis=k), name="b")
    s = te.create_schedule(b.op)
    s[b].reorder(k, b.op.axis[0])
    s[b].vectorize(b.op.axis[0])
    (loop,) = loops((s, [a, b]))[1]
    assert together(loop, register) == count


@pytest.mark.parametrize("terms, count", [(1, 4), (5, 2), (9, None)])
def test_operations_on_integers_count(terms, count):
    _, (loop,) = loops(along(lambda a, i: sum((a[i + t] for t in range(terms)), te.const(1, "int32")), 1024, 8, "int32"))
    assert together(loop, BITS) == count


@pytest.mark.parametrize("extent, count", [(8 * 60, 4), (8 * 63, 3), (8 * 35, 5), (8 * 61, 1)])
def test_a_counter_grows_by_the_iterations(extent, count):
    module = tedsl.build(*along(two, extent, 8), target=AVX2)
    text = module.get_source("ll")
    assert text.count("fadd <8 x float>") == count
    assert re.search(rf"%v\d+ = add nsw i64 %i.outer, {count}\n", text)
    assert "fence" not in text


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint16", "int64"])
@pytest.mark.parametrize("vectors", [1, 4, 5, 16, 18, 22, 33, 35, 48, 49, 61, 64, 100])
def test_each_element_is_computed_once(vectors, dtype):
    lanes = 64 // np.dtype(dtype).itemsize
    s, (a, b) = along(lambda a, i: a[i] * a[i + 3], lanes * vectors, lanes, dtype)
    x = np.random.default_rng(vectors).integers(-9, 9, 4 * lanes * vectors).astype(dtype)
    y = np.zeros(lanes * vectors + 8, dtype)
    tedsl.build(s, [a, b])(x, y[4:-4])
    np.testing.assert_array_equal(y[4:-4], (x[:-3] * x[3:])[:lanes * vectors])
    assert not y[:4].any() and not y[-4:].any()


def test_an_iteration_sees_what_the_one_before_wrote():
    # the arrays are one, 16 elements apart
    arrays = [tir.decl_buffer((1024,), "int32", name=name) for name in "ab"]
    handles, i = [tir.Var(name, "handle") for name in "ab"], tir.Var("i", "int32")
    at, one = tir.Ramp(i * 16, 1, 16), tir.Broadcast(tir.IntImm("int32", 1), 16)
    body = tir.BufferStore(arrays[1], tir.BufferLoad(arrays[0], [at]) + one, [at])
    loop = tir.For(i, tir.IntImm("int32", 0), tir.IntImm("int32", 64), tir.ForKind.SERIAL, body)
    build = tedsl.build(tir.PrimFunc(handles, loop, None, dict(zip(handles, arrays))))
    memory = np.zeros(1040, "int32")
    build(memory[:1024], memory[16:])
    np.testing.assert_array_equal(memory, np.arange(1040) // 16)
