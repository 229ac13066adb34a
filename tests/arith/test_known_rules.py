"""What the simplifiers of TVM 0.8 are documented and tested to simplify, as pairs: an expression, and what it is at least.

The result has the value of the expression for all small integers, and is no longer than the expected one; sums may stand in
another order. A third entry gives variables a range.
"""

import itertools

import pytest
from arith_reference import value

from tedsl.arith.analyzer import Analyzer
from tedsl.ir.build import (
    as_expr,
    cast,
    const,
    equal,
    floordiv,
    floormod,
    if_then_else,
    logical_not,
    maximum,
    minimum,
    select,
    truncdiv,
    truncmod,
)
from tedsl.ir.build import logical_and as both
from tedsl.ir.build import logical_or as either
from tedsl.ir.expr import NE, SizeVar, Var
from tedsl.ir.iters import Range
from tedsl.ir.walk.visitor import variables

X, Y, Z, N = Var("x"), Var("y"), Var("z"), SizeVar("n")
P, Q, R = Var("p", "bool"), Var("q", "bool"), Var("r", "bool")


def differ(a, b):
    return NE(as_expr(a), as_expr(b))


SUMS = [
    (X + (Y - X), Y), (X - (Y + X), 0 - Y), (X - Y + (Y - X), 0), (X - Y + (Z - X), Z - Y), (X - Y + (Y - Z), X - Z),
    (minimum(X, Y - Z) + Z, minimum(X + Z, Y)), (minimum(X - Z, Y) + Z, minimum(X, Y + Z)),
    (minimum(X, Y - 10) + 10, minimum(X + 10, Y)), (minimum(X - 10, Y) + 10, minimum(X, Y + 10)),
    (maximum(X, Y - Z) + Z, maximum(X + Z, Y)), (maximum(X - Z, Y) + Z, maximum(X, Y + Z)),
    (maximum(X, Y - 10) + 10, maximum(X + 10, Y)), (maximum(X - 10, Y) + 10, maximum(X, Y + 10)),
    (maximum(X, Y) + minimum(X, Y), X + Y), (minimum(X, Y) + maximum(X, Y), X + Y), (maximum(X, Y) + minimum(Y, X), X + Y),
    (minimum(X, Y + -2) + 2, minimum(X + 2, Y)), (X * Y + X * 10, X * (Y + 10)), (Y * X + X * 10, X * (Y + 10)),
    (Y * X + 10 * X, X * (Y + 10)), (X * Y + 10 * X, X * (Y + 10)), (2 * Z + minimum(X, Y - 2 * Z), minimum(X + Z * 2, Y)),
    (Y * X + X, X * (Y + 1)), (X * Y + X, X * (Y + 1)), (X + 10 + 13, X + 23), (X + 10 + (13 + Z), X + Z + 23),
    (X * Y + Y * X, X * Y * 2), ((X + 3) * 4, X * 4 + 12), (X * (N + 1) - X * N, X),
    (floordiv(X, 3) + floormod(X, 3), floordiv(X, 3) + floormod(X, 3)), (4 * floordiv(X, 4) + floormod(X, 4), X),
    (floormod(X, 4) + floordiv(X, 4) * 4, X), (floordiv(X, 4) * 4 + floormod(X, 4), X),
    (floordiv(X + Y, 8) * 8 + floormod(X + Y, 8), X + Y), (truncdiv(X, 4) * 4 + truncmod(X, 4), X), (X - 3 + 4, X + 1),
    (floordiv(X, -4) * -4 + floormod(X, -4), X), (X + X + X, X * 3), (X * 3 + X, X * 4),
]
DIFFERENCES = [
    (X - X, 0), (X + Y - X, Y), (X + Y - Y, X), (X - (X + Y), 0 - Y), (Y - (X + Y), 0 - X),
    (minimum(X, Y) - X, minimum(0, Y - X)), (minimum(X, Y) - Y, minimum(X - Y, 0)), (maximum(X, Y) - X, maximum(0, Y - X)),
    (maximum(X, Y) - Y, maximum(X - Y, 0)), (X - minimum(X, Y), maximum(0, X - Y)), (Y - minimum(X, Y), maximum(Y - X, 0)),
    (X - maximum(X, Y), minimum(0, X - Y)), (Y - maximum(X, Y), minimum(Y - X, 0)), (X + Y - (X + Z), Y - Z),
    (Y + X - (X + Z), Y - Z), (X + Y - (Z + X), Y - Z), (Y + X - (Z + X), Y - Z), (minimum(X + Y, Z) - X, minimum(Y, Z - X)),
    (minimum(Y + X, Z) - X, minimum(Y, Z - X)), (minimum(Z, X + Y) - X, minimum(Z - X, Y)),
    (minimum(Z, Y + X) - X, minimum(Z - X, Y)), (maximum(X + Y, Z) - X, maximum(Y, Z - X)),
    (X - minimum(X + Y, Z), maximum(0 - Y, X - Z)), (X - minimum(Y + X, Z), maximum(0 - Y, X - Z)),
    (X - minimum(Z, X + Y), maximum(X - Z, 0 - Y)), (X - maximum(X + Y, Z), minimum(0 - Y, X - Z)),
    (X - maximum(Z, Y + X), minimum(X - Z, 0 - Y)), (minimum(X, Y) - minimum(Y, X), 0), (maximum(X, Y) - maximum(Y, X), 0),
    (minimum(X, Y) - minimum(X + 10, Y + 10), -10), (minimum(X + 10, Y + 1) - minimum(X, Y - 9), 10),
    (maximum(X + 10, Y + 1) - maximum(X, Y - 9), 10), (minimum(X + 2, Y) - minimum(X, Y - 2), 2),
    (minimum(Y, X + 2) - minimum(Y - 2, X), 2), (minimum(X, Y + 1) - minimum(Y, X - 1), 1), (X * Y - X, X * (Y + -1)),
    (X * Y - 10 * X, X * (Y - 10)), (Y * X - X * Z, X * (Y - Z)), (Y * X - Z * X, X * (Y - Z)), (X + 10 - 20, X + -10),
    (X - truncdiv(X, 3) * 3, truncmod(X, 3)), (truncdiv(X, 3) * 3 - X, 0 - truncmod(X, 3)),
    (X - floordiv(X, 3) * 3, floormod(X, 3)), (floordiv(X, 3) * 3 - X, 0 - floormod(X, 3)),
    (X + Y - truncdiv(X + Y, 5) * 5, truncmod(X + Y, 5)), (3 * X - floordiv(X, 5) * 15, 3 * floormod(X, 5)),
    (floordiv(X + 5, 3) - floordiv(X, 3), floordiv(floormod(X, 3) + 5, 3)), (floordiv(X + 5, 3) - floordiv(X + 2, 3), 1),
    (truncdiv(X + 5, 3) - truncdiv(X, 3), truncdiv(truncmod(X, 3) + 5, 3), {X: (0, 9)}),
    (floordiv(X + 4, 3) * 6 - floordiv(X + 1, 3) * 6, 6), (2 * floordiv(X + 5, 4) - 2 * floordiv(X + 1, 4), 2),
    ((X + Y) * 2 - Y * 2, X * 2), (floordiv(Y, 4) * 4 - Y, 0 - floormod(Y, 4)),
    ((Y - floordiv(Y, 4) * 4) * 3, floormod(Y, 4) * 3), (X - floormod(X, 4), floordiv(X, 4) * 4),
    (floordiv(X * 2, 4), floordiv(X, 2)),
]
PRODUCTS = [
    ((X + 2) * 3, X * 3 + 6), (X * 2 * 3, X * 6), (minimum(X, Y) * maximum(X, Y), X * Y),
    (maximum(X, Y) * minimum(X, Y), X * Y), ((X - Y) * -2, (Y - X) * 2), (maximum(X, Y) * minimum(Y, X), X * Y), (0 * X, 0),
    (X * (Y * 3), X * Y * 3),
]
TRUNCATED = [
    (truncmod(truncdiv(truncmod(X, 20), 2) * 2, 4), truncdiv(truncmod(X, 4), 2) * 2),
    (truncmod(truncdiv(truncmod(X, 12), 3), 4), truncdiv(truncmod(X, 12), 3)),
    (truncdiv(X, X), 1, {X: (1, 9)}), (truncdiv(truncdiv(X, 2), 3), truncdiv(X, 6)),
    (truncdiv(truncdiv(X, 2) + 1, 3), truncdiv(X + 2, 6), {X: (0, 20)}), (truncdiv(X * 2, 4), truncdiv(X, 2)),
    (truncdiv(X * 4, 2), X * 2), (truncdiv(X * 4 + Y, 2), X * 2 + truncdiv(Y, 2), {X: (0, 8), Y: (0, 8)}),
    (truncdiv(minimum(X * 6, Y), 2), minimum(X * 3, truncdiv(Y, 2)), {X: (0, 8), Y: (0, 8)}),
    (truncdiv(maximum(X * 6, Y), 2), maximum(X * 3, truncdiv(Y, 2)), {X: (0, 8), Y: (0, 8)}),
    (truncdiv(Y + X * 4, 2), X * 2 + truncdiv(Y, 2), {X: (0, 8), Y: (0, 8)}),
    (truncdiv(minimum(Y, X * 6), 2), minimum(truncdiv(Y, 2), X * 3), {X: (0, 8), Y: (0, 8)}),
    (truncdiv(maximum(Y, X * 6), 2), maximum(truncdiv(Y, 2), X * 3), {X: (0, 8), Y: (0, 8)}),
    (truncdiv(X * Z, Z), X, {Z: (1, 5)}), (truncdiv(Z * X, Z), X, {Z: (1, 5)}),
    (truncdiv(X * Z + Y, Z), X + truncdiv(Y, Z), {X: (0, 5), Y: (0, 5), Z: (1, 5)}),
    (truncdiv(X + 8, 4), truncdiv(X, 4) + 2, {X: (0, 9)}), (truncdiv(X * -2, 2), 0 - X),
    (truncdiv(X * Z + Y * Z, Z), X + Y, {X: (0, 5), Y: (0, 5), Z: (1, 5)}),
    (truncdiv(X * Z + Z, Z), X + 1, {X: (0, 5), Z: (1, 5)}),
    (truncdiv(Y + X * Z, Z), X + truncdiv(Y, Z), {X: (0, 5), Y: (0, 5), Z: (1, 5)}), (truncdiv(X * 4 + Y * 8, 4), X + Y * 2),
    (truncdiv(X * 4 + 1, 8), truncdiv(X, 2), {X: (0, 9)}), (truncdiv(X * 4 + Y, 8), truncdiv(X, 2), {X: (0, 9), Y: (0, 3)}),
    (truncdiv(X + Y + X, 2), X + truncdiv(Y, 2), {X: (0, 8), Y: (0, 8)}),
]
QUOTIENTS = [
    (floordiv(floordiv(X, 2), 3), floordiv(X, 6)), (floordiv(floordiv(X, 2) + 1, 3), floordiv(X + 2, 6)),
    (floordiv(X - floormod(X, 21), 21), floordiv(X, 21)), (floordiv(X - floormod(X, 4), 2), floordiv(X, 4) * 2),
    (floordiv(X * 4, 2), X * 2), (floordiv(X * 8 + 7, 16), floordiv(X, 2)), (floordiv(X * 8 + 39, 16), floordiv(X + 4, 2)),
    (floordiv(X * 8 - 1, 16), floordiv(X * 8 + -1, 16)), (floordiv(X * 8 - 9, 16), floordiv(X * 8 + -9, 16)),
    (floordiv(X * 4 + Y, 2), X * 2 + floordiv(Y, 2)), (floordiv(minimum(X * 6, Y), 2), minimum(X * 3, floordiv(Y, 2))),
    (floordiv(maximum(X * 6, Y), 2), maximum(X * 3, floordiv(Y, 2))), (floordiv(Y + X * 4, 2), X * 2 + floordiv(Y, 2)),
    (floordiv(minimum(Y, X * 6), 2), minimum(floordiv(Y, 2), X * 3)), (floordiv(X + 8, 4), floordiv(X, 4) + 2),
    (floordiv(X * Z, Z), X, {Z: (1, 5)}), (floordiv(Z * X, Z), X, {Z: (1, 5)}),
    (floordiv(X * Z + Y, Z), X + floordiv(Y, Z), {Z: (1, 5)}), (floordiv(Y + Z * X, Z), floordiv(Y, Z) + X, {Z: (1, 5)}),
    (floordiv((X + Y) * Z, Z), X + Y, {Z: (1, 5)}), (floordiv(X * Z + Y * Z, Z), X + Y, {Z: (1, 5)}),
    (floordiv(X * Z + Z * 3, Z), X + 3, {Z: (1, 5)}), (floordiv(X * Z - Y * Z, Z), X - Y, {Z: (1, 5)}),
    (floordiv(X * 32 + Y, 64), floordiv(X, 2), {Y: (0, 31)}), (floordiv(X * 16 + Y, 64), floordiv(X, 4), {Y: (0, 15)}),
    (floordiv(Y + X * 32, 64), floordiv(X, 2), {Y: (0, 31)}), (floordiv(X, X), 1, {X: (1, 9)}),
    (floordiv(X, N), 0, {X: (0, 2), N: (3, 5)}),
    (floordiv(X * 360 + Y, 16), X * 22 + floordiv(X * 8 + Y, 16), {X: (0, 4), Y: (0, 7)}),
    (floordiv(X * 360 + Y, 25), X * 14 + floordiv(X * 10 + Y, 25), {X: (0, 4), Y: (0, 7)}),
    (floordiv(X * 360 - 8, 25), floordiv(X * 360 + -8, 25)), (floordiv(X + 16, 16), floordiv(X, 16) + 1),
    (floordiv(floordiv(X + 3, 4) + 1, 2), floordiv(X + 7, 8)), (floordiv(X * 4 + 2, 8), floordiv(X, 2)),
    (floordiv(X * 6 + 5, 6), X), (floordiv(X * 6 + 6, 6), X + 1), (floordiv(floormod(X, 4), 4), 0),
    (floordiv(floormod(X, 8) * 4, 32), 0), (floordiv(floormod(X, 8) * 4 + floormod(Y, 4), 8), floordiv(floormod(X, 8), 2)),
    (floordiv(X * -4, 4), 0 - X), (floordiv(X * -4, 8), floordiv(0 - X, 2)), (floordiv(X * -4 + Y, 4), floordiv(Y, 4) - X),
    (floordiv(X, -1), 0 - X), (floordiv(X - Y, 0 - Z), floordiv(Y - X, Z)), (floordiv(X, Z * -2), floordiv(0 - X, Z * 2)),
]
REMAINDERS = [
    (floormod(X * 10, 2), 0), (floormod(X * 9 + Y, 2), floormod(X + Y, 2)), (floormod(X + 10, 2), floormod(X, 2)),
    (floormod(X + Y * 10, 2), floormod(X, 2)), (floormod(X * 10 + 1 + Y * 2 + 2, 2), 1), (floormod(X * -10, 2), 0),
    (floormod(X * -9 + Y, 2), floormod(X + Y, 2)), (floormod(X * -10 + Y, 2), floormod(Y, 2)),
    (floormod(X + Y * -10, 2), floormod(X, 2)), (floormod(X * 32 + Y, 64), floormod(X, 2) * 32 + Y, {Y: (0, 31)}),
    (floormod(X * 32 - Y, 64), floormod(X * 32 - Y, 64), {Y: (0, 31)}),
    (floormod(X * 16 + Y, 64), floormod(X, 4) * 16 + Y, {Y: (0, 15)}), (floormod(X * 16 * 4 + Y, 64), Y, {Y: (0, 31)}),
    (floormod(X + Y, N), floormod(X + Y, N)), (floormod(X * N, N), 0, {N: (1, 5)}),
    (floormod(N * X + Y, N), floormod(Y, N), {N: (1, 5)}), (floormod(X * N + Y * N + Z, N), floormod(Z, N), {N: (1, 5)}),
    (floormod(floormod(X, 8), 4), floormod(X, 4)), (floormod(floormod(X, 4), 8), floormod(X, 4)),
    (floormod(floormod(X, 6) + floormod(Y, 6), 3), floormod(X + Y, 3)), (floormod(X * 5 + 7, 5), 2),
    (floormod(X - 8, 4), floormod(X, 4)), (floormod(X * 4 + 2, 8), floormod(X, 2) * 4 + 2),
    (floormod(X * 12 + Y * 8, 16), floormod(X * 3 + Y * 2, 4) * 4), (floormod(X * 12 + 8, 16), floormod(X * 3 + 2, 4) * 4),
    (floormod(floordiv(X, 4) * 4, 4), 0), (floormod(floordiv(X, 4) * 8 + floormod(X, 4), 8), floormod(X, 4)),
    (floormod(X + Y * 4, 4), floormod(X, 4)), (floormod(X, X), 0), (floormod(2 * X, X), 0, {X: (1, 5)}),
    (truncmod(X * 10, 2), 0), (truncmod(X * 9 + Y, 2), truncmod(X + Y, 2), {X: (0, 8), Y: (0, 8)}),
    (truncmod(X + 10, 2), truncmod(X, 2), {X: (0, 8)}), (truncmod(X + Y * 10, 2), truncmod(X, 2), {X: (0, 8), Y: (0, 8)}),
    (truncmod(X * 10 + 1 + Y * 2 + 2, 2), 1, {X: (0, 8), Y: (0, 8)}), (truncmod(X * 10, -2), 0),
    (truncmod(X * 4 + Y, 4), truncmod(Y, 4), {X: (0, 8), Y: (0, 8)}), (truncmod(X, 4), X, {X: (0, 3)}),
    (truncmod(X, 4), X, {X: (-3, 3)}), (truncdiv(X, 4), 0, {X: (-3, 3)}), (truncmod(X * Z, Z), 0),
    (truncmod(X * 4 + 6, 4), 2, {X: (0, 9)}),
]
MINIMA = [
    (minimum(X, X), X), (minimum(maximum(X, Y), X), X), (minimum(maximum(Y, X), X), X),
    (minimum(minimum(X, Y), X), minimum(X, Y)), (minimum(minimum(X, Y), Y), minimum(X, Y)), (minimum(X, maximum(X, Y)), X),
    (minimum(X, maximum(Y, X)), X), (minimum(X, minimum(X, Y)), minimum(X, Y)),
    (minimum(minimum(minimum(X, Y), Z), Y), minimum(minimum(X, Y), Z)),
    (minimum(minimum(minimum(minimum(X, Y), Z), X * 2), Y), minimum(minimum(minimum(X, Y), Z), X * 2)),
    (minimum(minimum(minimum(minimum(minimum(X, Y), Z), X * 2), Z * 2), Y),
     minimum(minimum(minimum(minimum(X, Y), Z), X * 2), Z * 2)),
    (minimum(maximum(X, Y), maximum(X, Z)), maximum(minimum(Y, Z), X)),
    (minimum(maximum(X, Y), maximum(Z, X)), maximum(minimum(Y, Z), X)),
    (minimum(maximum(Y, X), maximum(X, Z)), maximum(minimum(Y, Z), X)),
    (minimum(minimum(X, Y), minimum(X, Z)), minimum(minimum(Y, Z), X)),
    (minimum(minimum(Y, X), minimum(Z, X)), minimum(minimum(Y, Z), X)), (minimum(Y + X, Z + X), minimum(Y, Z) + X),
    (minimum(Y + X, X + Z), minimum(Y, Z) + X), (minimum(X + Y, Z + X), minimum(Y, Z) + X),
    (minimum(X + Y, X + Z), minimum(Y, Z) + X), (minimum(X - Y, X - Z), X - maximum(Y, Z)),
    (minimum(Y - X, Z - X), minimum(Y, Z) - X), (minimum(minimum(X, 1), 10), minimum(X, 1)),
    (minimum(minimum(X, 11), 10), minimum(X, 10)), (minimum(X * 3, 9), minimum(X, 3) * 3),
    (minimum(X * 2, 0), minimum(X, 0) * 2), (minimum(0 - X * 2, 0), 0 - maximum(X, 0) * 2),
    (minimum(3 - X, 2), 3 - maximum(X, 1)), (minimum(X * -2, -4), 0 - maximum(X, 2) * 2),
    (minimum(X * -2, 4), 0 - maximum(X, -2) * 2), (minimum(X * 2, 4), minimum(X, 2) * 2), (minimum(X + 3, X + 5), X + 3),
    (minimum(X + 3, X - 5), X - 5), (minimum(X - 3, X), X - 3), (minimum(3 - X, 5 - X), 3 - X),
    (minimum(minimum(X, Y + 1), Y), minimum(X, Y)), (minimum(minimum(X, Y), Y + 1), minimum(X, Y)),
    (minimum(X, minimum(Y, X + 1)), minimum(X, Y)), (minimum(minimum(X, Y + 3), Y + 5), minimum(X, Y + 3)),
    (minimum(X, floordiv(X, 4) * 4), floordiv(X, 4) * 4), (minimum(floordiv(X + 3, 4) * 4, X), X),
    (minimum(X, floordiv(X + 3, 4) * 4), X), (minimum(floordiv(X, 4) * 4, X), floordiv(X, 4) * 4),
    (minimum(truncdiv(X + 3, 4) * 4, X), X, {X: (0, 9)}),
    (minimum(truncdiv(X + 3, 4) * 4, maximum(X, 4)), maximum(X, 4), {X: (1, 9)}),
    (minimum(X, truncdiv(X, 4) * 4), truncdiv(X, 4) * 4, {X: (0, 9)}),
    (minimum(floordiv(X, 2), floordiv(Y, 2)), floordiv(minimum(X, Y), 2)),
    (minimum(floordiv(X, 10), floordiv(Y, 10)), floordiv(minimum(X, Y), 10)),
    (minimum(floordiv(X, -10), floordiv(Y, -10)), floordiv(maximum(X, Y), -10)),
    (minimum(truncdiv(X, 10), truncdiv(Y, 10)), truncdiv(minimum(X, Y), 10)), (minimum(maximum(X, 3), 3), 3),
    (minimum(maximum(X, 5), 3), 3), (minimum(maximum(X, Y), minimum(X, Y)), minimum(X, Y)),
    (minimum(maximum(X, Y), minimum(Y, X)), minimum(X, Y)), (minimum(maximum(X, 11), 10), 10),
    (minimum(minimum(X, Y), maximum(X, Y)), minimum(X, Y)),
    (minimum(select(X > 0, Y, 0), select(X > 0, 1, Z)), select(X > 0, minimum(Y, 1), minimum(0, Z))),
]
MAXIMA = [
    (maximum(X, X), X), (maximum(minimum(X, Y), X), X), (maximum(maximum(X, Y), X), maximum(X, Y)),
    (maximum(maximum(maximum(X, Y), Z), Y), maximum(maximum(X, Y), Z)),
    (maximum(maximum(maximum(maximum(X, Y), Z), X * 2), Y), maximum(maximum(maximum(X, Y), Z), X * 2)),
    (maximum(minimum(X, Y), minimum(X, Z)), minimum(maximum(Y, Z), X)),
    (maximum(maximum(X, Y), maximum(X, Z)), maximum(maximum(Y, Z), X)), (maximum(Y + X, Z + X), maximum(Y, Z) + X),
    (maximum(X - Y, X - Z), X - minimum(Y, Z)), (maximum(maximum(X, 1), 10), maximum(X, 10)),
    (maximum(maximum(X, 11), 10), maximum(X, 11)), (maximum(X * 3, 9), maximum(X, 3) * 3),
    (maximum(3 - X, 1), 3 - minimum(X, 2)), (maximum(X * 2, 0), maximum(X, 0) * 2),
    (maximum(0 - X * 2, 0), 0 - minimum(X, 0) * 2), (maximum(floordiv(X, 10), floordiv(Y, 10)), floordiv(maximum(X, Y), 10)),
    (maximum(floordiv(X, -10), floordiv(Y, -10)), floordiv(minimum(X, Y), -10)),
    (maximum(floordiv(X + 3, 4) * 4, X), floordiv(X + 3, 4) * 4), (maximum(floordiv(X, 4) * 4, X), X),
    (maximum(X, floordiv(X, 4) * 4), X), (maximum(minimum(X, 11), 12), 12),
    (maximum(minimum(X, 11), 10), maximum(minimum(X, 11), 10)), (maximum(minimum(X, Y), maximum(X, Y)), maximum(X, Y)),
    (maximum(X, minimum(X, Y)), X), (maximum(maximum(X, Y), Y - 1), maximum(X, Y)),
    (maximum(maximum(X, Y - 1), Y), maximum(X, Y)), (maximum(truncdiv(X, 10), truncdiv(Y, 10)), truncdiv(maximum(X, Y), 10)),
    (maximum(select(X > 0, Y, 0), select(X > 0, 1, Z)), select(X > 0, maximum(Y, 1), maximum(0, Z))),
    (maximum(X, floordiv(X + 3, 4) * 4), floordiv(X + 3, 4) * 4),
]
COMPARISONS = [
    ((X - 10).equal(0), X.equal(10)), ((10 - X).equal(0), X.equal(10)), ((X * Y).equal(0), either(X.equal(0), Y.equal(0))),
    ((X * 2).equal(0), X.equal(0)), (equal(10, 10) if False else equal(X, X), True), (X.equal(X + 1), False),
    (differ(X, X + 1), True), (X - 10 < 0, X < 10), (10 - X < 0, X > 10), (X + Y < X + Z, Y < Z), (X + Y < Z + X, Y < Z),
    (Y + X < X + Z, Y < Z), (Y - X < Z - X, Y < Z), (X - Y < X - Z, Z < Y), (X < Z + X, Z > 0), (X < X + Z, Z > 0),
    (X + 1 > 100, X > 99), (100 - X > 1, X < 99), (X * 3 < Y * 3, X < Y), (X * -3 < Y * -3, Y < X), (X * 3 >= Y * 3, Y <= X),
    (X * 4 >= 2, X >= 1), (X * 2 >= 50, X >= 25), (X * 4 <= 2, X <= 0), (0 - X * 3 <= 0, X >= 0), (0 - X * 3 >= 0, X <= 0),
    (2 * X <= 0, X <= 0), (X * 2 >= 3, X >= 2), (X * 2 >= 2, X >= 1), (X * 2 >= 1, X >= 1), (X * 2 >= 0, X >= 0),
    (X * 2 >= -1, X >= 0), (X * 2 >= -2, X >= -1), (X * 2 >= -3, X >= -1), (X * 2 <= 3, X <= 1), (X * 2 <= 2, X <= 1),
    (X * 2 <= 1, X <= 0), (X * 2 <= 0, X <= 0), (X * 2 <= -1, X <= -1), (X * 2 <= -2, X <= -1), (X * 2 <= -3, X <= -2),
    (floordiv(X, 2) >= 0, X >= 0), (floordiv(X, 2) < 3, X < 6), (floordiv(X, 2) > 3, X > 7), (floordiv(X, 2) <= 3, X <= 7),
    (floordiv(X, 2) <= 2, X <= 5), (floordiv(X, 2) <= 1, X <= 3), (floordiv(X, 2) <= 0, X <= 1),
    (floordiv(X, 2) <= -1, X <= -1), (floordiv(X, 2) <= -2, X <= -3), (floordiv(X, 2) <= -3, X <= -5),
    (floordiv(X, 2) >= 3, X >= 6), (floordiv(X, 2) >= 1, X >= 2), (floordiv(X, 2) >= 0, X >= 0),
    (floordiv(X, 2) >= -1, X >= -2), (floordiv(X, 2) >= -3, X >= -6), (floordiv(X, 4) * 4 < X, floormod(X, 4) > 0),
    (floordiv(X, 4) * 4 >= X, floormod(X, 4) <= 0), (floordiv(X, 4) * 4 < X + Y, floormod(X, 4) + Y > 0),
    (floordiv(X, 4) * 4 < X - Y, floormod(X, 4) > Y), (floordiv(X + 2, 4) * 4 >= X, floormod(X + 2, 4) <= 2),
    (floordiv(X + 2, 4) * 4 >= X + Y, floormod(X + 2, 4) + Y <= 2),
    (floordiv(X + 2, 4) * 4 < X - Y, floormod(X + 2, 4) > Y + 2), (truncdiv(X, 2) < 3, X < 6), (truncdiv(X, 2) > 3, X > 7),
    (truncdiv(X, 2) <= 3, X <= 7), (truncdiv(X, 2) <= 2, X <= 5), (truncdiv(X, 2) <= 1, X <= 3),
    (truncdiv(X, 2) <= 0, X <= 1), (truncdiv(X, 2) <= -1, X <= -2), (truncdiv(X, 2) <= -2, X <= -4),
    (truncdiv(X, 2) >= 3, X >= 6), (truncdiv(X, 2) >= 2, X >= 4), (truncdiv(X, 2) >= 1, X >= 2),
    (truncdiv(X, 2) >= 0, X >= -1), (truncdiv(X, 2) >= -1, X >= -3), (truncdiv(X, 2) >= -2, X >= -5),
    (truncdiv(X, 4) * 4 < X, truncmod(X, 4) > 0), (truncdiv(X, 4) * 4 >= X, truncmod(X, 4) <= 0),
    (truncdiv(X, 4) * 4 < X + Y, truncmod(X, 4) + Y > 0), (truncdiv(X, 4) * 4 < X - Y, truncmod(X, 4) > Y),
    (truncdiv(X + 2, 4) * 4 >= X, truncmod(X + 2, 4) <= 2), (minimum(X, 11) < 10, X < 10), (minimum(X, 8) < 10, True),
    (maximum(8, X) > 10, X > 10), (maximum(8, X) > X + 1, X < 7), (minimum(X, Y) < Z, either(X < Z, Y < Z)),
    (maximum(X, Y) < X, False), (minimum(X, Y) > X, False), (minimum(X, Y) > X, False), (minimum(X, Y) <= X, True),
    (maximum(X, Y) >= Y, True), (minimum(X, Y) < Y, X < Y), (maximum(X, Y) > X, X < Y), (maximum(X, 10) <= 10, X <= 10),
    (minimum(X, 10) >= 10, X >= 10), (X < 11, True, {X: (0, 10)}), (X <= 10, True, {X: (0, 10)}),
    (Z <= 5, True, {Z: (-5, 5)}), (X + Y <= 10, True, {X: (0, 10), Y: (-10, 0)}),
    (X + Y >= -10, True, {X: (0, 10), Y: (-10, 0)}), (Z - 5 <= Y + 10, True, {Z: (-5, 5), Y: (0, 10)}),
    (both(X > -1, Z <= X + 5), True, {X: (0, 10), Z: (-5, 5)}), (X * Y <= 0, True, {X: (0, 10), Y: (-10, 0)}),
    ((X + 1) * (Y - 1) < 0, True, {X: (0, 10), Y: (-10, 0)}), (Y * Y >= 0, True, {Y: (-10, 0)}),
    (X * 6 <= -3, False, {X: (0, 10)}), (truncmod(Y - 1, 3).equal(0), truncmod(Y + -1, 3).equal(0)),
    (X * 4 < Y * 4 + 4, X < Y + 1), (X * 4 <= Y * 4 + 3, X <= Y), (X * 4 + 3 < Y * 4, X < Y),
    (X * 4 + Y < Z * 4, X < Z, {Y: (0, 3)}), ((X * 4 + Y).equal(Z * 4 + Y), X.equal(Z)), ((X * 4).equal(Y * 8 + 2), False),
    ((X * 6 + 3).equal(9), X.equal(1)), (floormod(X, 4) < 4, True), (floormod(X, 4) >= 0, True),
    (floormod(X, 4).equal(5), False), (floormod(X, 4) < 0, False), (floordiv(X, 4) * 4 <= X, True),
    (floordiv(X + 3, 4) * 4 >= X, True), (floordiv(X, 4) * 4 + 4 > X, True), (floordiv(X, 4) * 4 > X, False),
    (floordiv(X, 4) < floordiv(X, 4) + 1, True), (floordiv(X, 8) <= floordiv(X, 4), True, {X: (0, 9)}),
    (floordiv(X, 4) <= X, True, {X: (0, 9)}), (floordiv(X, 4) <= floordiv(X + 1, 4), True),
    (minimum(X, Y) < maximum(X, Y), differ(X, Y)), (minimum(X, Y) <= maximum(X, Y), True),
    (maximum(X, Y) < minimum(X, Y), False), (minimum(X, Y).equal(maximum(X, Y)), X.equal(Y)),
    ((X * 2 + 1).equal(Y * 2), False), (X * X >= 0, X * X >= 0),
]
CONDITIONS = [
    (logical_not(X < Y), Y <= X), (logical_not(X <= Y), Y < X), (logical_not(both(X < Y, Y < Z)), either(Y <= X, Z <= Y)),
    (logical_not(either(X < Y, Y < Z)), both(Y <= X, Z <= Y)), (logical_not(logical_not(X < Y)), X < Y),
    (both(X < Y, Y <= X), False), (both(X <= Y, Y < X), False), (both(X.equal(Y), differ(X, Y)), False),
    (both(X > 1, logical_not(X > 1)), False), (both(X <= 1, X > 2), False), (both(X > 2, X <= 1), False),
    (both(X <= 1, X >= 2), False), (both(X >= 2, X <= 1), False), (both(X.equal(1), differ(X, 2)), X.equal(1)),
    (both(differ(X, 2), X.equal(1)), X.equal(1)), (both(X < 5, X < 3), X < 3),
    (both(both(X < 3, Y < 2), X < 5), both(X < 3, Y < 2)), (both(P, both(Q, P)), both(P, Q)), (both(both(P, Q), P), both(P, Q)),
    (both(X < 3, X <= 2), X <= 2 if False else X < 3), (either(X < Y, Y <= X), True), (either(X <= Y, Y < X), True),
    (either(X.equal(Y), differ(X, Y)), True), (either(X > 1, logical_not(X > 1)), True),
    (either(X <= 1, X > 2), either(X <= 1, X > 2)), (either(X > 2, X <= 1), either(X > 2, X <= 1)),
    (either(X <= 1, X >= 2), True), (either(X >= 2, X <= 1), True), (either(X <= 1, X > 1), True),
    (either(X < 3, X < 5), X < 5), (either(X.equal(1), differ(X, 2)), differ(X, 2)),
    (either(differ(X, 2), X.equal(1)), differ(X, 2)), (either(P, either(Q, P)), either(P, Q)),
    (both(const(True, "bool"), P), P), (either(P, const(False, "bool")), P),
]
CHOICES = [
    (select(X >= 0, Y, 0) + select(X >= 0, 1, Z), select(X >= 0, Y + 1, Z)),
    (select(X >= 0, Y, 1) - select(X >= 0, 1, Z), select(X >= 0, Y + -1, 1 - Z)),
    (select(X >= 0, Y, Z) - Y, select(X >= 0, 0, Z - Y)), (select(X >= 0, Y, Z) - Z, select(X >= 0, Y - Z, 0)),
    (select(both(X >= -1, Y >= 0), X + Y, 0), select(both(X >= -1, Y >= 0), X + Y, 0)),
    (select(X < 0, 1, 0), select(X < 0, 1, 0)), (select(X < 0, 1, 0), 0, {X: (0, 5)}), (select(const(1, "bool"), Y, 0), Y),
    (if_then_else(X > 2, Y, if_then_else(X > 5, 1, 0)), if_then_else(X > 2, Y, 0)),
    (if_then_else(X > 5, if_then_else(X > 2, Y, Z), 0), if_then_else(X > 5, Y, 0)),
    (if_then_else(X < 2, if_then_else(X < 1, Y, Z), Z), if_then_else(X < 1, Y, Z)),
    (if_then_else(P, X, Y) + if_then_else(P, Y, X), if_then_else(P, X + Y, X + Y) if False else X + Y),
    (if_then_else(P, X, Y) - if_then_else(P, X, Z), if_then_else(P, 0, Y - Z)),
    (select(P, X + Z, Y + Z) - Z, select(P, X, Y)), (cast("int32", cast("int64", X)), X),
    (if_then_else(P, X + Z, Y + Z) - Z, if_then_else(P, X, Y)), (select(P, X + 1, X + 2) - X, select(P, 1, 2)),
    (select(P, select(P, X, Y), Z), select(P, X, Z)), (select(P, const(1), const(0)).equal(1), P),
    (select(P, const(1), const(0)) > 0, P), (if_then_else(P, const(1), const(0)).equal(0), logical_not(P)),
    (differ(if_then_else(P, const(1), const(0)), 0), P), (select(P, X, Y) < select(P, X + 1, Y + 1), True),
    (select(P, X, X) - X, 0), (if_then_else(X < 3, minimum(X, 3), Y), if_then_else(X < 3, X, Y)),
    (if_then_else(X < 3, Y, maximum(X, 3)), if_then_else(X < 3, Y, X)),
    (if_then_else(X < Y, minimum(X, Y), Z), if_then_else(X < Y, X, Z)),
    (if_then_else(X < Y, Z, minimum(X, Y)), if_then_else(X < Y, Z, Y)),
]
CASTS = [
    (cast("int64", X + 1) - cast("int64", X), 1), (cast("int32", cast("int32", X)), X),
    (cast("int64", X) * 2 - cast("int64", X * 2), 0), (floordiv(cast("int64", X * 4), 4), cast("int64", X)),
    (floormod(cast("int64", X * 8 + 3), 4), 3), (cast("int32", floordiv(cast("int64", X), 4)), floordiv(X, 4)),
    (cast("int32", cast("int64", X) * 4 + cast("int64", Y)), X * 4 + Y, {X: (0, 9), Y: (0, 9)}),
    (cast("int32", cast("int8", X)), X, {X: (0, 9)}),
    (cast("int32", minimum(cast("int64", X), cast("int64", Y))), minimum(X, Y)),
    (cast("int32", floormod(cast("int64", X), 4)), floormod(X, 4)),
]
SPLITS = [
    (floordiv(X, 6) * 2 + floormod(floordiv(X, 3), 2), floordiv(X, 3)),
    (floormod(floordiv(X, 4), 4) * 4 + floormod(X, 4), floormod(X, 16)),
    (floormod(floordiv(X, 4), 4) * 8 + floormod(X, 4) * 2, floormod(X, 16) * 2),
    (floordiv(X, 16) * 16 + floormod(floordiv(X, 4), 4) * 4 + floormod(X, 4), X),
    (floordiv(floormod(X, 16), 4), floormod(floordiv(X, 4), 4)),
    (floordiv(floormod(X, 16), 4) * 4 + floormod(X, 4), floormod(X, 16)),
    (floordiv(X * 128 + Y * 4 + Z, 4), X * 32 + Y, {Z: (0, 3)}), (floormod(X * 128 + Y * 4 + Z, 4), Z, {Z: (0, 3)}),
    (floordiv(floordiv(X * 128 + Y * 4 + Z, 4), 32), X, {Y: (0, 31), Z: (0, 3)}),
    (floormod(floordiv(X * 12 + Y * 4 + Z, 4), 3), Y, {X: (0, 3), Y: (0, 2), Z: (0, 3)}),
    (floordiv(X * 4 + Y, 2) + floordiv(Y, 2) * -1, X * 2), (truncdiv(X, 6) * 2 + truncmod(truncdiv(X, 3), 2), truncdiv(X, 3)),
    (truncdiv(X, 16) * 16 + truncmod(truncdiv(X, 4), 4) * 4 + truncmod(X, 4), X),
    (truncmod(truncdiv(X, 4), 4) * 4 + truncmod(X, 4), truncmod(X, 16)),
    (truncdiv(truncmod(X, 16), 2) * 2 + truncmod(X, 2), truncmod(X, 16)), (truncmod(X * 8, 2), 0),
    (truncdiv(X * 8 + 4, 2), X * 4 + 2), (floordiv((X * 3 + Y * 6) * 2, 6), X + Y * 2), (X * 3 + Y * 6 - (X + Y * 2) * 3, 0),
    (truncdiv((X + Y * 2) * 4, 4), X + Y * 2), ((X + Y) * (X + Y) - X * X - X * Y * 2 - Y * Y, 0),
    ((X + 1) * (X - 1) - X * X, -1), ((X + Y) * (X - Y) + Y * Y, X * X), (X * (Y + Z) - X * Y - X * Z, 0),
    (floordiv(floormod(X, 6) * 5 + floormod(Y, 5), 5), floormod(X, 6)),
    (floormod(floormod(X, 6) * 5 + floormod(Y, 5), 5), floormod(Y, 5)), (floordiv(Z * 9 + X, 9), Z, {X: (0, 8)}),
    (minimum(X * 4, X * 4 + Y), X * 4, {Y: (0, 3)}), (floordiv(X * 8 + Y * 2 + Z, 8), X, {Y: (0, 3), Z: (0, 1)}),
    (floormod(X * 8 + Y * 2 + Z, 8), Y * 2 + Z, {Y: (0, 3), Z: (0, 1)}),
    (floormod(floordiv(X * 8 + Y * 2 + Z, 2), 4), Y, {X: (0, 3), Y: (0, 3), Z: (0, 1)}),
]
ROWS = (SUMS + DIFFERENCES + PRODUCTS + TRUNCATED + QUOTIENTS + REMAINDERS + MINIMA + MAXIMA + COMPARISONS + CONDITIONS
        + CHOICES + CASTS + SPLITS)


def values(var, ranges):
    low, high = ranges.get(var, (0, 1) if var.dtype == "bool" else (0 if isinstance(var, SizeVar) else -4, 4))
    return range(low, high + 1)


def size(e):
    """The number of nodes that are written: equal constants may be one."""
    return 1 + sum(map(size, e.child_nodes()))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: repr(row[0]))
def test_simplified_at_least_as_far(row):
    e, expected, ranges = as_expr(row[0]), row[1], dict(*row[2:])
    expected = const(expected, "bool") if isinstance(expected, bool) else as_expr(expected)
    known = Analyzer()
    for var, (low, high) in ranges.items():
        known.bind(var, Range(low, high + 1))
    simple = known.simplify(e)
    assert size(simple) <= size(known.simplify(expected)), repr(simple)
    used = variables(e)
    for point in itertools.product(*(values(var, ranges) for var in used)):
        env = dict(zip(used, point))
        assert value(simple, env) == value(e, env) == value(expected, env)
