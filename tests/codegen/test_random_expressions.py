"""Random expressions over several dtypes, scalar and vector: compiled for each instruction set, against the interpreter."""

import random

import numpy as np
import pytest

from tedsl.ir import build
from tedsl.ir.dtype import dtype
from tedsl.ir.evaluate import run
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    Call,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    Let,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Ramp,
    Select,
    Sub,
    Var,
)
from tedsl.ir.ops import Op
from tedsl.ir.stmt import For, ForKind, Store, seq
from tests.codegen.kernels import RUNNABLE, Kernel, array, const, function

INTS = ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float32", "float64", "float16"]
SIZE = 32


class Grower:
    """Grows expressions of a wanted dtype over arrays, the loop variable and a size."""

    def __init__(self, seed, lanes):
        self.random = random.Random(seed)
        self.lanes = lanes
        self.arrays = {of: array(f"a_{of}", (SIZE + 40,), of) for of in (*INTS, *FLOATS, "bool")}
        self.i, self.n = Var("i"), Var("n")
        self.made = {}

    def at(self, shift=0, stride=1):
        base = build.add(build.mul(self.i, self.lanes), shift)
        return base if self.lanes == 1 else Ramp(base, const(stride), self.lanes)

    def spread(self, e):
        return e if self.lanes == 1 else Broadcast(e, self.lanes)

    def leaf(self, of):
        pick = self.random.randrange(5)
        if pick == 0 and of != "bool":
            value = self.random.choice([0, 1, 2, 3, 7, 100]) if of in INTS else self.random.choice([0.0, -1.5, 2.0, 0.1])
            return self.spread(build.const(value, of))
        if pick == 1 and of == "int32":
            return self.random.choice([self.at(), self.spread(self.n), self.at(3)])
        index = self.at(self.random.randrange(8))
        if pick == 2 and self.lanes > 1:
            index = self.spread(build.add(self.i, self.random.randrange(8)))
        if pick == 3:
            index = build.floormod(Cast(dtype("int32").with_lanes(self.lanes), self.grow("int32", 1)), self.spread(const(SIZE)))
        return Load(dtype(of).with_lanes(self.lanes), self.arrays[of][1].data, index)

    def grow(self, of, depth):
        shared = self.made.setdefault(of, [])
        if shared and self.random.random() < 0.15:
            return self.random.choice(shared)
        e = self.leaf(of) if depth == 0 else self.node(of, depth - 1)
        if depth:
            shared.append(e)
        return e

    def node(self, of, depth):
        choose = self.random.choice
        if of == "bool":
            return self.condition(depth)
        pick = self.random.randrange(8)
        if pick == 0:
            return Select(self.grow("bool", depth), self.grow(of, depth), self.grow(of, depth))
        if pick == 1:
            lazy = self.made, {}
            self.made = {}
            e = Call(dtype(of).with_lanes(self.lanes), Op.get("tir.if_then_else"),
                     (self.grow("bool", depth), self.grow(of, depth), self.grow(of, depth)))
            self.made = lazy[0]
            return e
        if pick == 2:
            return Cast(dtype(of).with_lanes(self.lanes), self.grow(choose([*INTS, *FLOATS, "bool"]), depth))
        if pick == 3 and self.lanes == 1:
            v = Var("v", of)
            return Let(v, self.grow(of, depth), choose([Add, Mul, Max])(v, self.grow(of, 0)))
        a, b = self.grow(of, depth), self.grow(of, depth)
        if of in FLOATS:
            return choose([Add, Sub, Mul, Div, Min, Max])(a, b)
        if pick > 5:
            name = choose(["shift_left", "shift_right", "bitwise_and", "bitwise_xor"])
            return Call(a.dtype, Op.get(f"tir.{name}"), (a, b))
        return choose([Add, Sub, Mul, Min, Max, FloorDiv, FloorMod, Div, Mod])(a, b)

    def condition(self, depth):
        choose = self.random.choice
        pick = self.random.randrange(6)
        if pick == 0:
            return Not(self.grow("bool", depth))
        if pick == 1:
            return choose([And, Or])(self.grow("bool", depth), self.grow("bool", depth))
        kind = choose([EQ, NE, LT, LE, GT, GE])
        if pick == 2:
            return kind(self.at(self.random.randrange(-9, 9)), self.spread(choose([self.n, self.i, const(11)])))
        of = choose([*INTS, *FLOATS])
        return kind(self.grow(of, depth), self.grow(of, depth))


def inputs(grower):
    rng = np.random.default_rng(grower.random.randrange(1 << 30))
    made = []
    for of in grower.arrays:
        if of == "bool":
            made.append(rng.integers(0, 2, SIZE + 40).astype(np.bool_))
        elif of in INTS:
            info = np.iinfo(of)
            wide = rng.integers(info.min, info.max, SIZE + 40, of, endpoint=True)
            made.append(np.where(rng.random(SIZE + 40) < 0.4, wide, rng.integers(0, 5, SIZE + 40).astype(of)))
        else:
            made.append(rng.choice(np.array([0.0, -0.0, 1.0, -2.5, 0.1, 300.0, np.inf, np.nan, 1e-7]), SIZE + 40).astype(of))
    return made


def check(seed, lanes):
    grower = Grower(seed, lanes)
    stores, outputs = [], []
    for k in range(3):
        of = grower.random.choice([*INTS, *FLOATS, "bool"])
        out = array(f"out{k}", (SIZE,), of)
        outputs.append((out, of))
        grower.made = {}
        stores.append(Store(out[1].data, grower.grow(of, 4), grower.at()))
    loop = For(grower.i, const(0), const(SIZE // lanes), ForKind.SERIAL, seq(*stores))
    func = function(loop, *grower.arrays.values(), *(o for o, _ in outputs), grower.n)
    data = inputs(grower)
    empty = lambda: [np.zeros(SIZE, np.bool_ if of == "bool" else of) for _, of in outputs]
    n = grower.random.randrange(40)
    expected = empty()
    with np.errstate(all="ignore"):
        run(func, [*data, *expected, n])
    for target in RUNNABLE:
        got = empty()
        assert Kernel(func, target, vectorize=seed % 2 == 0)(*data, *got, n) == 0
        for k, (g, e) in enumerate(zip(got, expected)):
            np.testing.assert_array_equal(g, e, err_msg=f"output {k}, {target}\n{stores[k].value}")


@pytest.mark.parametrize("lanes", [1, 4, 16])
@pytest.mark.parametrize("seed", range(12))
def test_random_expressions(seed, lanes):
    check(1000 * lanes + seed, lanes)
