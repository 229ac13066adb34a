"""What the simplifier makes of sums, quotients, choices, conditions, casts and bits, each with the cases that it must leave.

A row: the expression, and what it becomes (None: it stays, since the side condition fails). All values of small variables are
tried; n is a size.
"""

import itertools

import pytest
from arith_reference import value

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.build import cast, const, equal, floordiv, floormod, if_then_else, logical_not, maximum, minimum, select
from tedsl.ir.build import logical_and as both
from tedsl.ir.build import logical_or as either
from tedsl.ir.build import truncdiv as tdiv
from tedsl.ir.build import truncmod as tmod
from tedsl.ir.expr import LT, NE, BufferLoad, SizeVar, Var
from tedsl.ir.walk.visitor import variables

X, Y, Z, N = Var("x"), Var("y"), Var("z"), SizeVar("n")
P, Q = Var("p", "bool"), Var("q", "bool")
A8, LONG = Var("a", "int8"), Var("i", "int64")


def differ(a, b):
    return NE(build.as_expr(a), build.as_expr(b))


SUMS = [
    (minimum(X, Y) - X, "min((y - x), 0)"), (X - minimum(Y, X), "max((x - y), 0)"), (maximum(X, Y) - X, "max((y - x), 0)"),
    (X - maximum(X, Y), "min((x - y), 0)"), (minimum(X + Z, Y) - Z, "min(x, (y - z))"),
    (maximum(X - Z, Y) + Z, "max(x, (y + z))"),
    (maximum(X, 0 - Y) + Y, "max((x + y), 0)"), (minimum(X, Y) + Z, None), (minimum(X, Y) + 3, None),
    (minimum(X, Y) * 2 - X, None), ((X + Y) * Z - X * Z, "(z*y)"), (X * (Y + 1) - X, "(x*y)"), ((X + Y) * Z - X, None),
    (tdiv(X, 4) * 4 + tmod(X, 4), "x"), (X - tdiv(X, 4) * 4, "(x % 4)"), (tdiv(X, 4) * 8 + tmod(X, 4) * 2 + Y, "((x*2) + y)"),
    (tdiv(X, 4) * 3 + tmod(X, 4), None), (X - tdiv(X, 4) * 3, None), (tdiv(X, 4) * 4 + tmod(Y, 4), None),
]
SUMS += [
    (X * Y + X * Z, "(x*(y + z))"), (X * Y - Z * X, "(x*(y - z))"), (X * Y * 2 + Z * X * 4, "((x*(y + (z*2)))*2)"),
    (X * Y + X * Z + N, "((x*(y + z)) + n)"), (X * Y + X, "(x*(y + 1))"), (X * Y + Z * N, None), (X * X + X * Y, "(x*(x + y))"),
    (X * Y * Z * 2 + (Y * 2 - 1) * Z, "(z*(((y*(x + 1))*2) - 1))"), (X + Y * X, "(x*(y + 1))"), (X * Y - X, "(x*(y - 1))"),
    (X - X * Y, "(x*(1 - y))"), (X * Y + X * 3, "(x*(y + 3))"), (X * (Y + 1) + X, "(x*(y + 2))"), (X * Y + 1, None),
    (X * Y * Z + X * Y + X, "(x*((y*(z + 1)) + 1))"), (X * Y * 2 + X * 4 + Z, "(((x*(y + 2))*2) + z)"),
    (A8 * A8 + A8, None),
    (X - floormod(X, 4), "(floordiv(x, 4)*4)"), (X * 3 - floormod(X, 4) * 3, "(floordiv(x, 4)*12)"),
    (X + 2 - floormod(X + 2, 4), "(floordiv((x + 2), 4)*4)"), (X * 2 - floormod(X, 4), None), (X - floormod(Y, 4), None),
    (floordiv(X, 2) - floormod(floordiv(X, 2), 4), "(floordiv(x, 8)*4)"), (X - floormod(X, -4), None),
    (floordiv(X + 5, 4) - floordiv(X + 1, 4), "1"), (floordiv(X + 5, 4) - floordiv(X, 4), "floordiv((floormod(x, 4) + 5), 4)"),
    (floordiv(X, 4) - floordiv(X + 1, 4), "(0 - floordiv((floormod(x, 4) + 1), 4))"),
    (floordiv(X + Y + 1, 3) - floordiv(X + Y, 3) + Y, "(floordiv((floormod((x + y), 3) + 1), 3) + y)"),
    (floordiv(X + 1, 4) - floordiv(X, 3), None), (floordiv(X + Y, 4) - floordiv(X, 4), None),
    (floordiv(X + 1, 4) + floordiv(X, 4), None), (floordiv(X + 1, -4) - floordiv(X, -4), None),
    (tdiv(N + 5, 4) - tdiv(N + 1, 4), "1"), (tdiv(X + 5, 4) - tdiv(X + 1, 4), None),
    (select(P, X, Y) - X, "select(p, 0, (y - x))"), (select(P, X, Y) - Y, "select(p, (x - y), 0)"),
    (X - select(P, X, Y), "select(p, 0, (x - y))"), (if_then_else(P, X, Y) - X, "tir.if_then_else(p, 0, (y - x))"),
    (select(P, X, Y) - Z, None), (select(P, X, Y) * 2 - X, None), (select(P, X, Y) + X, None),
]
MINMAX = [
    (minimum(X + Y, X + Z), "(min(y, z) + x)"), (maximum(X + Y, Z + X), "(max(y, z) + x)"),
    (minimum(X - Y, X - Z), "(x - max(y, z))"), (maximum(X - Y, X - Z), "(x - min(y, z))"), (minimum(X + Y, Z), None),
    (minimum(X + Y, X * 2 + Z), None), (maximum(X * 4, Y * 4), "(max(x, y)*4)"),
    (minimum(X * 4, Y * 6 + 2), "(min((x*2), ((y*3) + 1))*2)"),
    (maximum(X * -4, Y * -4), "(0 - (min(x, y)*4))"), (minimum(X * 4, Y * 4 + 1), None),
    (minimum(X * 4, 8), "(min(x, 2)*4)"), (maximum(X * -4, 8), "(0 - (min(x, -2)*4))"), (minimum(X * 4, 7), None),
    (minimum(X * 4 + 3, 8), None), (minimum(X + 1, 8), None), (minimum(X + 1, Y + 1), "(min(x, y) + 1)"),
    (minimum(X + 1, Y + 2), None), (maximum(X * 4 - 3, Y * 4 - 3), "((max(x, y)*4) - 3)"),
    (minimum(maximum(X, Y), maximum(X, Z)), "max(min(y, z), x)"), (maximum(minimum(Y, X), minimum(X, Z)), "min(max(y, z), x)"),
    (minimum(maximum(X, Y), minimum(X, Z)), "min(x, z)"), (minimum(maximum(X, Y), maximum(Z, N)), None),
]
QUOTIENTS = [
    (floordiv(floordiv(X, 3) + 1, 4), "floordiv((x + 3), 12)"), (floordiv(floordiv(X + 1, 3) + 2, 5), "floordiv((x + 7), 15)"),
    (floordiv(floordiv(X, 3) + Y, 4), None), (floordiv(floordiv(X, -3) + 1, 4), None),
    (floordiv(floordiv(X, 3) * 3 + 1, 4), None),
    (floordiv(minimum(X * 4, Y), 4), "min(x, floordiv(y, 4))"), (floordiv(maximum(Y, X * 8), 4), "max(floordiv(y, 4), (x*2))"),
    (floordiv(minimum(X * 3, Y), 4), None), (floordiv(minimum(X * 4, Y), -4), None),
    (floormod(X + 5, 4), "floormod((x + 1), 4)"), (floormod(X - 3, 4), "floormod((x + 1), 4)"), (floormod(X + 1, 4), None),
    (floormod(X * 6, 4), "(floormod(x, 2)*2)"), (floormod(X * 5, 4), "floormod(x, 4)"),
    (floormod(X * -5, 4), "floormod((x*3), 4)"), (floormod(X * 3, 4), None), (floormod(X * -3, 4), None),
    (floormod(X * 5 + Y, 4), "floormod((x + y), 4)"), (floormod(X * 6 + Y, 4), None), (floormod(X * 5, -4), None),
    (floormod(X * N, N * 4), "(floormod(x, 4)*n)"), (floormod(X * Y, Y * Z), "(floormod(x, z)*y)"),
    (floormod(X * N + 1, N * 4), None), (floordiv(X * N, N * 4), None), (floordiv(X * Y, Y * Z), None),
    (tdiv(X * 4, 4), "x"), (tdiv(X * 4, 2), "(x*2)"), (tdiv(X * 2, 4), "(x/2)"), (tdiv(X * 2 + 1, 4), None),
    (tdiv(X * 4, -4), None),
    (tdiv(X * 6 + 3, 9), "(((x*2) + 1)/3)"), (tdiv(X, -1), "(0 - x)"), (tmod(X, 1), "0"), (tmod(X * 4, 4), "0"),
    (tmod(X * 4, 2), "0"), (tmod(X * 6, 4), "(((x*3) % 2)*2)"), (tmod(X * 6 + 1, 4), None), (tmod(tmod(X, 8), 4), "(x % 4)"),
    (tmod(tmod(X, 4), 8), "(x % 4)"), (tmod(tmod(X, 6), 4), None), (tmod(X, -4), "(x % 4)"),
    (tmod(X, 0), "0"), (tdiv(X, 0), "0"),
]
COMPARISONS = [
    (floordiv(X, 4) < 3, "(x < 12)"), (floordiv(X, 4) <= 3, "(x < 16)"), (floordiv(X, 4) > 3, "(16 <= x)"),
    (floordiv(X, 4) >= 3, "(12 <= x)"), (floordiv(X, -4) < 3, None), (floordiv(X, 4) < Y, None),
    (minimum(X, Y) < X, "(y < x)"), (maximum(X, Y) > X, "(x < y)"), (minimum(X, 5) < 3, "(x < 3)"),
    (maximum(X, 3) < 5, "(x < 5)"),
    (maximum(X, 5) < 5, "(bool)0"), (minimum(X, 5) > 3, "(3 < x)"), (minimum(X, 5) > 5, "(bool)0"),
    (maximum(X, 3) >= 3, "(bool)1"),
    (minimum(X, 5) < 6, "(bool)1"), (minimum(X, 5) <= 4, "(x <= 4)"), (minimum(X, Y) < 3, None), (maximum(X, 3) < Y, None),
    (equal(maximum(X, Y), X), "(y <= x)"), (equal(minimum(X, Y), Y), "(y <= x)"), (differ(minimum(X, Y), X), "(y < x)"),
    (differ(maximum(X, Y), Y), "(y < x)"), (equal(X - Y, 0), "(x == y)"), (differ(X - Y, 0), "(x != y)"),
    (X - Y < 0, "(x < y)"), (X - Y > 0, "(y < x)"), (X - Y <= 0, "(x <= y)"), (X - Y >= 0, "(y <= x)"), (X + Y < 0, None),
    (X - Y < Z, None), (X * 2 - Y * 4 < 0, "(x < (y*2))"),
    (equal(X + Y, 0), None), (differ(cast("int32", P), 0), "p"), (cast("int32", P) > 0, "p"),
    (equal(cast("int32", P), 0), "!p"),
    (cast("int32", P) < 1, "!p"), (cast("int32", P) < 2, "(bool)1"), (equal(cast("int32", P), 3), "(bool)0"),
]
CONDITIONS = [
    (both(X <= Y, Y <= X), "(x == y)"), (both(X <= 3, X >= 3), "(x == 3)"), (either(X < Y, X > Y), "(x != y)"),
    (either(X < 3, X > 3), "(x != 3)"), (both(X <= Y, Y <= X + 1), None), (either(X < Y, Y + 1 < X), None),
    (both(equal(X, 3), X < 5), "(x == 3)"), (both(equal(X, 3), X > 5), "(bool)0"), (either(equal(X, 3), X < 5), "(x < 5)"),
    (either(equal(X, 3), LT(const(5), X)), None), (both(differ(X, 3), X > 5), "(5 < x)"), (both(differ(X, 3), X < 5), None),
    (either(differ(X, 3), X < 5), "(bool)1"), (either(differ(X, 3), X > 5), "(x != 3)"), (both(X < Y, differ(X, Y)), "(x < y)"),
    (both(X <= Y, differ(X, Y)), "(x < y)"), (both(differ(Y, X), X <= Y), "(x < y)"), (either(X < Y, equal(X, Y)), "(x <= y)"),
    (either(X < Y, differ(X, Y)), "(x != y)"), (either(X <= Y, equal(X, Y)), "(x <= y)"),
    (both(equal(X, 1), equal(X, 2)), "(bool)0"), (either(differ(X, 1), differ(X, 2)), "(bool)1"),
    (both(equal(X, 1), differ(X, 2)), "(x == 1)"), (either(equal(X, 1), differ(X, 2)), "(x != 2)"),
    (either(equal(X, 1), equal(X, 2)), None), (both(equal(X, 1), equal(Y, 2)), None), (both(equal(X, 3), Y < 5), None),
    (both(P, both(Q, P)), "(q && p)"), (either(P, both(P, Q)), "p"), (both(either(Q, P), P), "p"),
    (either(P, both(Q, X < 3)), None),
]
CHOICES = [
    (select(P, select(P, X, Y), Z), "select(p, x, z)"), (select(P, X, select(P, Y, Z)), "select(p, x, z)"),
    (select(P, select(Q, X, Y), Y), "select((p && q), x, y)"), (select(P, X, select(Q, X, Y)), "select((p || q), x, y)"),
    (select(P, select(Q, X, Y), X), None), (select(P, X, select(Q, Y, X)), None), (select(equal(X, Y), X, Y), "y"),
    (select(differ(X, Y), X, Y), "x"), (select(equal(X, Y), Y, X), "x"), (select(equal(X, Y), X, Z), None),
    (select(P, const(1, "bool"), const(0, "bool")), "p"), (select(P, const(0, "bool"), const(1, "bool")), "!p"),
    (select(P, X, Y) + select(P, Z, 2), "select(p, (x + z), (y + 2))"),
    (select(P, X, Y) - select(P, Z, Y), "select(p, (x - z), 0)"),
    (minimum(select(P, X, Y), select(P, Z, 2)), "select(p, min(x, z), min(y, 2))"), (select(P, X, Y) + select(Q, X, Y), None),
    (if_then_else(logical_not(P), X, Y), "tir.if_then_else(p, y, x)"),
    (if_then_else(P, if_then_else(P, X, Y), Z), "tir.if_then_else(p, x, z)"),
    (if_then_else(P, if_then_else(Q, X, Y), Y), "tir.if_then_else((p && q), x, y)"),
    (if_then_else(P, X, if_then_else(Q, X, Y)), "tir.if_then_else((p || q), x, y)"),
    (if_then_else(P, X, if_then_else(Q, Y, X)), None),
]
CASTS = [
    (cast("int32", cast("int64", X)), "x"), (cast("int32", cast("int64", X * Y)), None),
    (cast("int8", cast("int64", X)), "int8(x)"),
    (cast("int32", cast("int64", A8)), "int32(a)"),
    (cast("int32", cast("int8", X)), None), (cast("int32", cast("uint8", A8)), None),
    (cast("int64", cast("int32", LONG)), None),
    (cast("uint16", cast("int16", A8)), "uint16(a)"), (cast("bool", cast("int32", P)), "p"),
]
BITS = [
    (X << 0, "x"), (X >> 0, "x"), (X & 0, "0"), (X | 0, "x"), (X ^ 0, "x"), (X & X, "x"), (X | X, "x"), (X ^ X, "0"),
    (X & -1, "x"),
    (X | -1, "-1"), (X ^ -1, None), (X & Y, None), (X << 1, None), (A8 & const(0, "int8"), "(int8)0"), (A8 ^ A8, "(int8)0"),
    (build.absolute(N), "n"), (build.absolute(0 - N), "n"), (build.absolute(X), None), (build.absolute(A8), None),
]
ROWS = SUMS + MINMAX + QUOTIENTS + COMPARISONS + CONDITIONS + CHOICES + CASTS + BITS


def small(var, count):
    """The values that are tried of a variable, fewer where there are more variables."""
    if var.dtype == "bool":
        return (0, 1)
    reach = 9 if count == 1 else 5 if count == 2 else 3
    ends = (-128, -127, 127) if var.dtype == "int8" else (300, -2**40) if var.dtype == "int64" else ()
    return (*range(0 if isinstance(var, SizeVar) else -reach, reach + 1), *ends)


@pytest.mark.parametrize("e, expected", ROWS, ids=lambda p: repr(p) if p is not None and not isinstance(p, str) else "")
def test_identity(e, expected):
    known = Analyzer()
    simple = known.simplify(e)
    assert repr(simple) == (repr(e) if expected is None else expected)
    assert known.simplify(simple) is simple
    used = variables(e)
    for point in itertools.product(*(small(v, sum(v.dtype != "bool" for v in used)) for v in used)):
        env = dict(zip(used, point))
        assert value(simple, env) == value(e, env)


@pytest.mark.parametrize("least", [1, 0, -3])
def test_a_common_factor_of_dividend_and_divisor_is_cancelled_where_it_is_not_zero(least):
    e = floordiv(X * Y, Y * 4)
    known = Analyzer()
    known.bind(Y, (least, 5))
    simple = known.simplify(e)
    assert repr(simple) == ("floordiv(x, 4)" if least > 0 else repr(e))
    for x, y in itertools.product(range(-9, 10), range(least, 6)):
        assert value(simple, {X: x, Y: y}) == value(e, {X: x, Y: y})


def test_sums_of_data_that_wraps_stay():
    b8 = Var("b", "int8")
    for e in (A8 * b8 + A8 * A8, minimum(A8 + b8, b8 + const(1, "int8")), A8 - floormod(A8 * b8, const(4, "int8"))):
        assert Analyzer().simplify(e) is e


def test_a_condition_that_reads_what_another_guards_stays_behind_it():
    table = decl_buffer((4,), "int32", "T")
    reads = BufferLoad(table, (X,)) < 3
    inside = if_then_else(X < 4, if_then_else(reads, Y, Z), Z)
    assert Analyzer().simplify(inside) is inside
    assert repr(Analyzer().simplify(select(X < 4, select(Y < 3, X, Z), Z))) == "select(((x < 4) && (y < 3)), x, z)"


def test_sums_that_begin_alike_share_what_is_alike():
    known = Analyzer()
    first, second = (known.simplify(X * 4 + (k + floormod(Y, 3) * 2) + Z) for k in (1, 2))
    assert first.a is second.a and repr(first) == "((((x*4) + (floormod(y, 3)*2)) + z) + 1)"
    assert known.simplify(Z + X * 4 + 1 - Z) is known.simplify(1 + X * 4)
