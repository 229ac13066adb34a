"""Programs as data: what is written comes back as it was, and damaged data is refused."""

import contextlib
import json
import math
import random

import numpy as np
import pytest

import tedsl
from tedsl import te, tir, topi
from tedsl.errors import ArgumentError, TedslError
from tedsl.ir import build
from tedsl.ir.expr import FloatImm, IntImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.serial import from_data, to_data
from tests.ir.programs import row_sum


def again(value):
    return from_data(json.loads(json.dumps(to_data(value))))


def matmul():
    n = te.var("n")
    A, B = te.placeholder((n, 64), name="A"), te.placeholder((64, 32), "float32", name="B")
    k = te.reduce_axis((0, 64), "k")
    C = te.compute((n, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[1], factor=8)
    s[C].vectorize(inner)
    s[C].parallel(C.op.axis[0])
    return s, [A, B, C]


@pytest.mark.parametrize("program", [
    row_sum(),
    tedsl.lower(*matmul(), simple_mode=True)["main"],
    tedsl.lower(*matmul())["main"],
], ids=["by hand", "simple", "lowered"])
def test_functions_come_back(program):
    copy = again(program)
    assert isinstance(copy, PrimFunc) and copy is not program
    assert str(copy) == str(program) and structural_equal(copy, program, map_free_vars=True)
    assert to_data(copy) == to_data(program)


def test_functions_of_operators_come_back_and_compute_the_same():
    data = te.placeholder((2, 3, 7, 7), name="data")
    for out in (topi.nn.softmax(topi.reshape(data, (6, 49))), topi.nn.pool2d(data, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"),
                topi.argmax(data, axis=1), topi.cast(topi.tanh(data), "float16")):
        func = tedsl.lower(te.create_schedule(out.op), [data, out])["main"]
        copy = again(func)
        x = np.linspace(-2, 2, 2 * 3 * 49, dtype="float32").reshape(2, 3, 7, 7)
        shape = tuple(int(n) for n in out.shape)
        expected, got = (np.zeros(shape, str(out.dtype)) for _ in range(2))
        tedsl.build(func)(x, expected)
        tedsl.build(copy)(x, got)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("value", [
    FloatImm("float32", math.inf), FloatImm("float64", -0.0), FloatImm("float64", 1e-310), FloatImm("float16", 0.1),
    IntImm("uint64", 2**64 - 1), IntImm("int64", -2**63), tir.StringImm('a "text"\n'), Range.from_min_extent(3, 5),
    build.true(),
], ids=str)
def test_constants_come_back(value):
    copy = again(value)
    assert type(copy) is type(value) and str(copy) == str(value) and structural_equal(copy, value)


def test_nan_comes_back():
    assert math.isnan(again(FloatImm("float32", math.nan)).value)


def test_variables_stay_one_variable_and_two():
    x, y = Var("x"), Var("x")
    a, b = again(build.add(build.mul(x, x), y)).child_nodes()
    assert a.a is a.b and a.a is not b


def test_depth_and_sharing_cost_nothing():
    value = Var("x", "int32")
    for _ in range(10_000):
        value = build.add(build.floordiv(value, 3), value)
    data = to_data(value)
    assert len(data["nodes"]) < 50_000
    assert to_data(from_data(data)) == data


def test_what_is_no_part_of_a_program_is_refused():
    with pytest.raises(ArgumentError, match="cannot be written as data"):
        to_data((1, object()))


@pytest.mark.parametrize("data", [
    None, 3, [], {}, {"nodes": 3, "value": None}, {"nodes": [], "value": [0]}, {"nodes": [["Var"]], "value": [0]},
    {"nodes": [["Add", [0], [0]]], "value": [0]}, {"nodes": [["Nothing", 1]], "value": [0]},
    {"nodes": [["Node"]], "value": [0]}, {"nodes": [["Var", "x", ["d", "float33"]]], "value": [0]},
    {"nodes": [["IntImm", ["d", "int8"], 300]], "value": [0]}, {"nodes": [], "value": ["o", "tir.system"]},
    {"nodes": [], "value": ["m", 1]}, {"nodes": [["Expr"]], "value": [0]}, {"nodes": [["IRModule", None]], "value": [0]},
], ids=str)
def test_other_data_is_refused(data):
    with pytest.raises(ArgumentError, match="this is not data of a program"):
        from_data(data)


def test_damaged_data_is_refused_or_another_well_formed_program():
    text = json.dumps(to_data(row_sum()))
    draw = random.Random(5)
    for _ in range(300):
        k = draw.randrange(len(text))
        damaged = text[:k] + draw.choice('0123[]"d,x') + text[k + 1:]
        with contextlib.suppress(json.JSONDecodeError, TedslError):
            from_data(json.loads(damaged))
