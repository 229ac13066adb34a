"""The notation for eyes, expression by expression; what it says is what Python computes from it."""

import random
from dataclasses import field

import pytest

from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import (
    Add,
    BinaryOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CommReducer,
    Div,
    Expr,
    FloatImm,
    Let,
    Load,
    Mod,
    Not,
    ProducerLoad,
    Ramp,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Var,
    pointer_var,
)
from tedsl.ir.func import GlobalVar
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import Node, node
from tedsl.ir.ops import OPS, Op
from tedsl.ir.script import script
from tedsl.ir.script.statements import SCRIPT
from tedsl.ir.text import TEXT
from tests.ir.programs import F32, vector_buffer

x, y, f = Var("x"), Var("y"), Var("f", "float32")
P, A = pointer_var("P", F32), vector_buffer("A", 64)
UP_TO_3 = build.less(x, 3)
RAMP = Ramp(x, build.const(1), 4)
MASK = build.less(RAMP, Broadcast(y, 4))
I, K = IterVar(Range(0, 8), Var("i")), IterVar(Range(2, 8), Var("k"), 2)
LEFT, RIGHT = Var("a"), Var("b")
SUM = CommReducer((LEFT,), (RIGHT,), (build.add(LEFT, RIGHT),), (build.const(0),))


class Tensor:
    name, dtype = "T", F32


@pytest.mark.parametrize("expr, shown", [
    (x, "x"), (SizeVar("n", "int64"), "n"), (build.const(3), "3"), (build.const(-3), "-3"), (build.const(1, "int64"), "1"),
    (build.const(7, "uint8"), "7"), (build.const(True), "True"), (build.const(1.5), "1.5"), (build.const(0.0), "0.0"),
    (build.const(0.1), "0.1"), (build.const(1 / 3), "0.33333334"), (build.const(1 / 3, "float64"), "0.3333333333333333"),
    (build.const(0.1, "float16"), "0.1"), (build.const(1.0, "bfloat16"), "1.0"), (build.const(1e-5), "1e-05"),
    (FloatImm("float32", float("-inf")), "-inf"), (FloatImm("float32", float("nan")), "nan"), (StringImm('s"'), '"s\\""'),
    (build.add(x, build.mul(y, 3)), "x + y*3"), (build.mul(build.add(x, y), 3), "(x + y)*3"),
    (build.sub(x, build.sub(y, x)), "x - (y - x)"), (build.sub(build.sub(x, y), x), "x - y - x"),
    (build.floordiv(build.mul(x, y), 3), "x*y//3"), (build.mul(x, build.floordiv(y, 3)), "x*(y//3)"),
    (build.floormod(build.add(x, 1), 3), "(x + 1)%3"), (Div(f, f), "f/f"), (Div(x, y), "truncdiv(x, y)"),
    (Mod(x, y), "truncmod(x, y)"), (build.minimum(x, 3), "min(x, 3)"), (build.maximum(x, build.add(y, 1)), "max(x, y + 1)"),
    (build.logical_and(UP_TO_3, build.logical_or(build.equal(y, 2), build.not_equal(x, 1))), "x < 3 and (y == 2 or x != 1)"),
    (build.logical_or(build.greater(x, 3), build.greater_equal(x, y)), "x > 3 or x >= y"),
    (Not(build.less_equal(x, 3)), "not x <= 3"), (Not(build.logical_and(UP_TO_3, UP_TO_3)), "not (x < 3 and x < 3)"),
    (Select(UP_TO_3, f, build.add(f, f)), "where(x < 3, f, f + f)"), (build.cast("float32", x), "float32(x)"),
    (Cast("int64x4", RAMP), "int64(x + arange(4))"),
    (Let(x, y, Add(x, x)), "let x = y in x + x"), (Add(y, Let(x, y, x)), "y + (let x = y in x)"),
    (build.call("tir.exp", f), "exp(f)"), (build.likely(UP_TO_3), "likely(x < 3)"),
    (build.if_then_else(UP_TO_3, f, build.const(2.0)), "f if x < 3 else 2.0"),
    (build.mul(build.if_then_else(UP_TO_3, f, f), f), "(f if x < 3 else f)*f"),
    (build.call("tir.bitwise_and", x, build.add(y, 1)), "x & y + 1"),
    (build.call("tir.shift_left", x, build.call("tir.bitwise_or", x, y)), "x << (x | y)"),
    (build.call("tir.shift_right", x, y), "x >> y"), (build.call("tir.bitwise_xor", x, y), "x ^ y"),
    (build.call("tir.bitwise_not", x), "~x"), (build.call("tir.fma", f, f, f), "fma(f, f, f)"),
    (Call("float32", Op.get("tir.call_pure_extern"), (StringImm("sinf"), f)), 'call_pure_extern("float32", "sinf", f)'),
    (Call("int32", Op.get("tir.call_packed"), (StringImm("debug"), x)), 'call_packed("debug", x)'),
    (Call("int32", Op.get("tir.reinterpret"), (f,)), 'reinterpret("int32", f)'),
    (Call(None, Op.get("tir.tvm_storage_sync"), (StringImm("shared"),)), 'storage_sync("shared")'),
    (A.access_ptr("r", offset=x), 'A.access_ptr("r", offset=x, extent=64 - x)'),
    (Broadcast(x, 4), "x"), (RAMP, "x + arange(4)"), (Ramp(build.const(0), build.const(2), 4), "arange(4)*2"),
    (build.mul(RAMP, Broadcast(y, 4)), "(x + arange(4))*y"),
    (Shuffle((Broadcast(x, 2), RAMP), (build.const(1), build.const(4))), "shuffle([x, x + arange(4)], [1, 4])"),
    (Load("float32", P, x), "P[x]"), (Load("float32x4", P, RAMP), "P[x : x+4]"),
    (Load("float32x4", P, Ramp(build.mul(x, 4), build.const(1), 4)), "P[x*4 : x*4+4]"),
    (Load("float32x4", P, Ramp(build.add(x, y), build.const(2), 4)), "P[x + y : x + y + 8 : 2]"),
    (Load("float32x4", P, Ramp(build.add(x, 4), build.const(1), 4)), "P[x+4 : x+8]"),
    (Load("float32x4", P, Ramp(build.const(8), build.const(1), 4)), "P[8:12]"),
    (Load("float32x4", P, Ramp(x, build.const(-1), 4)), "P[x + arange(4)*-1]"),
    (Load("float32x4", P, Ramp(x, y, 4)), "P[x + arange(4)*y]"), (Load("float32x4", P, MASK.a), "P[x : x+4]"),
    (Load("float32", P, x, UP_TO_3), "P[x] if x < 3 else 0"),
    (Add(Load("float32x4", P, RAMP, MASK), Broadcast(f, 4)), "(P[x : x+4] if x + arange(4) < y else 0) + f"),
    (BufferLoad(A, (x,)), "A[x]"), (ProducerLoad(Tensor, (x, build.add(y, 1))), "T[x, y + 1]"),
    (ProducerLoad(Tensor, ()), "T[()]"),
    (Reduce(SUM, (build.add(I, K),), (I, K), UP_TO_3, 0), "sum(i + k for i in range(8) for k in range(2, 8) if x < 3)"),
    (Reduce(SUM, (K.var,), (K,), build.true(), 0, (y,)), "sum(k for k in range(2, 8), init=y)"),
    (Reduce(CommReducer((x, y), (x, y), (x, build.add(y, y)), (x, y)), (I.var, f), (I,), build.true(), 1),
     "reduce(lambda x, y, x, y: (x, y + y), (i, f) for i in range(8))[1]"),
    (Range(0, 8), "range(8)"), (Range(2, 8), "range(2, 8)"), (I, "i"), (GlobalVar("main"), "main"), (A, "A"),
    (SUM, "lambda a, b: a + b"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_expressions(expr, shown):
    assert script(expr) == shown


def test_every_kind_of_node_has_its_text():
    """What TVM's notation knows, this one knows too; an operator of a kind of its own is a call."""
    assert set(TEXT) <= set(SCRIPT)

    @node
    class Power(BinaryOp):
        a: Expr
        b: Expr
        dtype: DType = field(init=False)

    assert script(Power(x, y)) == "Power(x, y)"
    assert script(Node()) == "<Node>"


def test_every_call_prints_its_arguments():
    for op in OPS.values():
        shown = script(Call("int32", op, tuple(Var(f"a{n}") for n in range(2 if op.arity is None else op.arity))))
        assert all(f"a{n}" in shown for n in range(op.arity or 0)) or op.name == "tir.tvm_access_ptr", shown


def random_expression(draw, depth):
    """An expression of integers x and y whose text Python understands."""
    if depth == 0 or draw.random() < 0.1:
        return draw.choice((x, y, build.const(draw.randint(-9, 9))))
    a, b = random_expression(draw, depth - 1), random_expression(draw, depth - 1)
    make = draw.choice((build.add, build.sub, build.mul, build.floordiv, build.floormod, build.minimum, build.maximum, "bits",
                        "not", "choice"))
    if make in (build.floordiv, build.floormod):
        return make(a, draw.choice((3, 7, -4)))
    if make == "bits":
        return build.call(draw.choice(("tir.bitwise_and", "tir.bitwise_or", "tir.bitwise_xor")), a, b)
    if make == "not":
        return build.call("tir.bitwise_not", a)
    if make == "choice":
        return build.if_then_else(random_condition(draw, depth - 1), a, b)
    return make(a, b)


def random_condition(draw, depth):
    a, b = random_expression(draw, depth), random_expression(draw, depth)
    compared = draw.choice((build.less, build.less_equal, build.equal, build.not_equal))(a, b)
    if depth == 0 or draw.random() < 0.3:
        return compared
    other = random_condition(draw, depth - 1)
    make = draw.choice((build.logical_and, build.logical_or, lambda c, d: build.logical_and(build.logical_not(c), d)))
    return make(compared, other)


def test_python_computes_from_the_text_what_the_expression_means():
    """Parentheses stand where they are needed: 300 random expressions, each at some values."""
    draw = random.Random(7)
    for _ in range(300):
        expr = random_expression(draw, 4)
        shown = script(expr)
        for at in ((0, 0), (5, -3), (-7, 2)):
            value = evaluate(expr, dict(zip((x, y), at)))
            told = eval(f"({shown})", {"min": min, "max": max}, dict(zip("xy", at)))
            assert (told + 2**31) % 2**32 - 2**31 == value, shown


def test_ten_thousand_levels():
    deep = x
    for _ in range(10_000):
        deep = build.add(build.mul(deep, 3), 1)
    shown = script(deep)
    assert shown.count("*3") == 10_000 and max(map(len, shown.splitlines()[1:])) <= 110


def test_a_text_that_would_be_exponential_is_cut():
    big = x
    for _ in range(60):
        big = Add(big, big)
    assert "..." in script(big) and len(script(big)) < 2_000_000
