"""Random functions of flat loops: expressions over several dtypes, scalar or in vectors, as no formula of `te` writes them.

Nodes that lowering never makes side by side stand here beside each other: lets, eager selects that share their operands,
loads at indices from data, reversed and strided vectors, truncating and flooring divisions of every integer dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tedsl.fuzz.draw import Draw
from tedsl.fuzz.values import Array
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.dtype import DType, dtype
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
    Expr,
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
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import IF_THEN_ELSE, Op
from tedsl.ir.stmt import For, ForKind, Store, seq
from tedsl.record import record

INTS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float64", "float16")
DTYPES = (*INTS, *FLOATS, "bool")
SIZE = 32  # elements of an output
BEYOND = 40  # elements of an input behind those: an index is at most that far ahead
DEPTH = 4  # nodes above a leaf


class Grower:
    """Grows expressions of a wanted dtype over arrays of all dtypes, the loop variable `i` and a size `n`."""

    def __init__(self, draw: Draw, lanes: int) -> None:
        self.draw, self.lanes = draw, lanes
        self.arrays = {of: decl_buffer((SIZE + BEYOND,), of, f"a_{of}") for of in DTYPES}
        self.i, self.n = Var("i"), Var("n")
        self.shared: dict[str, list[Expr]] = {}  # grown expressions that others may use again, by dtype

    def vector(self, of: str) -> DType:
        return dtype(of).with_lanes(self.lanes)

    def at(self, shift: int = 0) -> Expr:
        """The index of the elements of this iteration, `shift` elements ahead."""
        base = build.add(build.mul(self.i, self.lanes), shift)
        return base if self.lanes == 1 else Ramp(base, build.const(1, "int32"), self.lanes)

    def spread(self, e: Expr) -> Expr:
        return e if self.lanes == 1 else Broadcast(e, self.lanes)

    def leaf(self, of: str) -> Expr:
        """A constant, an index, or a load: of neighbours, of one element for all lanes, or at indices from data."""
        kind = self.draw.which(5)
        if kind == 0 and of != "bool":
            value = self.draw.choice([0, 1, 2, 3, 7, 100]) if of in INTS else self.draw.choice([0.0, -1.5, 2.0, 0.1])
            return self.spread(build.const(value, of))
        if kind == 1 and of == "int32":
            return self.draw.choice([self.at(), self.spread(self.n), self.at(3)])
        index = self.at(self.draw.which(8))
        if kind == 2 and self.lanes > 1:
            index = self.spread(build.add(self.i, self.draw.which(8)))
        if kind == 3:
            wanted = Cast(self.vector("int32"), self.grow("int32", 1))
            index = build.floormod(wanted, self.spread(build.const(SIZE, "int32")))
        return Load(self.vector(of), self.arrays[of].data, index)

    def grow(self, of: str, depth: int) -> Expr:
        """An expression of dtype `of` with at most `depth` nodes above each leaf, or one that was grown before."""
        shared = self.shared.setdefault(of, [])
        if shared and self.draw.chance(15):
            return self.draw.choice(shared)
        e = self.node(of, depth - 1) if depth else self.leaf(of)
        if depth:
            shared.append(e)
        return e

    def node(self, of: str, depth: int) -> Expr:
        choice = self.draw.choice
        if of == "bool":
            return self.condition(depth)
        kind = self.draw.which(8)
        if kind == 0:
            return Select(self.grow("bool", depth), self.grow(of, depth), self.grow(of, depth))
        if kind == 1:
            return self.lazy(of, depth)
        if kind == 2:
            return Cast(self.vector(of), self.grow(choice(DTYPES), depth))
        if kind == 3 and self.lanes == 1:
            v = Var("v", dtype(of))
            return Let(v, self.grow(of, depth), choice([Add, Mul, Max])(v, self.grow(of, 0)))
        a, b = self.grow(of, depth), self.grow(of, depth)
        if of in FLOATS:
            return choice([Add, Sub, Mul, Div, Min, Max])(a, b)
        if kind > 5:
            name = choice(["shift_left", "shift_right", "bitwise_and", "bitwise_xor"])
            return Call(a.dtype, Op.get(f"tir.{name}"), (a, b))
        return choice([Add, Sub, Mul, Min, Max, FloorDiv, FloorMod, Div, Mod])(a, b)

    def lazy(self, of: str, depth: int) -> Expr:
        """An if_then_else: what is grown inside of it is used nowhere else, since it may not have been computed."""
        outside, self.shared = self.shared, {}
        parts = self.grow("bool", depth), self.grow(of, depth), self.grow(of, depth)
        self.shared = outside
        return Call(self.vector(of), IF_THEN_ELSE, parts)

    def condition(self, depth: int) -> Expr:
        choice = self.draw.choice
        kind = self.draw.which(6)
        if kind == 0:
            return Not(self.grow("bool", depth))
        if kind == 1:
            return choice([And, Or])(self.grow("bool", depth), self.grow("bool", depth))
        compare = choice([EQ, NE, LT, LE, GT, GE])
        if kind == 2:
            bound = choice([self.n, self.i, build.const(11, "int32")])
            return compare(self.at(self.draw.between(-9, 8)), self.spread(bound))
        of = choice([*INTS, *FLOATS])
        return compare(self.grow(of, depth), self.grow(of, depth))


@record
class Expressions:
    """A function that stores random expressions, and its arguments: inputs, then one output of each dtype in `outputs`,
    then n.
    """

    func: PrimFunc
    values: tuple[Expr, ...]
    inputs: tuple[Array, ...]
    outputs: tuple[str, ...]
    n: int

    def results(self) -> list[Array]:
        """Fresh output arrays of zeros."""
        return [np.zeros(SIZE, _numpy(of)) for of in self.outputs]


def draw_expressions(draw: Draw, lanes: int, count: int = 3) -> Expressions:
    """A loop over SIZE elements in vectors of `lanes`, which stores `count` expressions."""
    grower = Grower(draw, lanes)
    outputs, values = [], []
    for _ in range(count):
        outputs.append(draw.choice(DTYPES))
        grower.shared = {}
        values.append(grower.grow(outputs[-1], DEPTH))
    buffers = [decl_buffer((SIZE,), of, f"out{k}") for k, of in enumerate(outputs)]
    stores = [Store(buffer.data, value, grower.at()) for buffer, value in zip(buffers, values)]
    loop = For(grower.i, build.const(0, "int32"), build.const(SIZE // lanes, "int32"), ForKind.SERIAL, seq(*stores))
    func = _function(loop, [*grower.arrays.values(), *buffers], grower.n)
    return Expressions(func, tuple(values), tuple(_inputs(draw)), tuple(outputs), draw.which(40))


def _function(body: For, buffers: Sequence[Buffer], *scalars: Var) -> PrimFunc:
    handles = {Var(f"{buffer.name}_handle", dtype("handle")): buffer for buffer in buffers}
    return PrimFunc((*handles, *scalars), body, None, handles, {"global_symbol": "f", "tir.noalias": True})


def _inputs(draw: Draw) -> list[Array]:
    """An array for each dtype: extremes among small integers, special values among floats."""
    rng = np.random.default_rng(draw.which(1 << 30))
    special = np.array([0.0, -0.0, 1.0, -2.5, 0.1, 300.0, np.inf, np.nan, 1e-7])
    return [_some(rng, of, special) for of in DTYPES]


def _some(rng: np.random.Generator, of: str, special: Array) -> Array:
    count = SIZE + BEYOND
    if of == "bool":
        return rng.integers(0, 2, count).astype(np.bool_)
    if of in FLOATS:
        return np.asarray(rng.choice(special, count).astype(of))
    limits = np.iinfo(of)
    wide: Any = rng.integers(limits.min, limits.max, count, _numpy(of), endpoint=True)
    return np.where(rng.random(count) < 0.4, wide, rng.integers(0, 5, count).astype(of))


def _numpy(of: str) -> np.dtype[Any]:
    return np.dtype(of)
