"""The analyzer's public answers: bounds, divisibility, sets, scopes, and that it stays fast."""

import itertools

import pytest
from arith_reference import value

from benchmarks.drawn_programs import calls_made_by
from tedsl import arith, tir
from tedsl.arith.analyzer import Analyzer
from tedsl.arith.bound import deduce_bound
from tedsl.arith.pattern import detect_linear_equation, solve_for
from tedsl.arith.sets import NEG_INF, POS_INF, ConstIntBound, IntervalSet, IntSet, ModularSet
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.expr import BufferLoad, FloatImm, IntImm, Let, Ramp, SizeVar, Var
from tedsl.ir.iters import Range

X, Y, Z, N, M = Var("x"), Var("y"), Var("z"), SizeVar("n"), SizeVar("m")


def test_bounds_of_bound_variables():
    known = Analyzer()
    known.bind(X, Range(0, 8))
    known.bind(Y, (-3, 4))
    assert known.bounds(X * 2 - Y) == (-4, 17)
    assert known.bounds(X // 3) == (0, 2)
    assert known.bounds(Y % 5) == (0, 4)
    assert known.bounds(Z) == (None, None)
    assert known.bounds(N) == (0, None)


def test_const_int_bound_and_update():
    known = Analyzer()
    wide = Var("w", "int64")
    assert known.const_int_bound(wide) == ConstIntBound(ConstIntBound.NEG_INF, ConstIntBound.POS_INF)
    assert known.const_int_bound(Var("b", "int8")) == ConstIntBound(-128, 127)
    known.update(X, ConstIntBound(0, 9))
    assert known.const_int_bound(X + 1) == ConstIntBound(1, 10)
    known.update(X, ConstIntBound(5, 20))
    assert known.const_int_bound(X) == ConstIntBound(5, 9)
    known.update(X, ConstIntBound(0, 3), override=True)
    assert known.const_int_bound(X) == ConstIntBound(0, 3)


def test_residues_and_sets_of_conditions():
    known = Analyzer()
    assert known.modular_set(X < 3) == known.modular_set(Var("p", "bool")) == ModularSet(1, 0)
    assert repr(known.int_set(X < 3, {X: IntervalSet(0, 9)})) == "IntervalSet[0, 1]"
    known.bind(X, (0, 2))
    assert known.modular_set(X < 3) == ModularSet(0, 1)
    assert repr(known.int_set(X < 3, {})) == "IntervalSet[1, 1]"
    with pytest.raises(ArgumentTypeError, match="only integers have bounds"):
        known.modular_set(build.as_expr(1.5))


def test_divisibility():
    known = Analyzer()
    assert known.modular(X * 6 + Y * 4 + 3) == ModularSet(2, 1)
    assert known.modular((X * 8 + 4) // 4) == ModularSet(2, 1)
    assert known.modular(build.minimum(X * 4, Y * 6 + 2)) == ModularSet(2, 0)
    assert known.modular(build.as_expr(7)) == ModularSet(0, 7)
    with known.constraint_scope(build.equal(X % 4, 1)):
        assert known.modular(X * 2) == ModularSet(8, 2)
        assert build.as_int(known.simplify((X + Y * 4) % 2)) == 1
    assert known.modular(X) == ModularSet(1, 0)


def test_sets():
    known = Analyzer()
    found = known.int_set(X + Y, {X: IntervalSet(0, 3), Y: IntervalSet(N, N + 1)})
    assert repr(found) == "IntervalSet[n, (n + 4)]"
    assert repr(IntervalSet(0, 3)) == "IntervalSet[0, 3]"
    assert repr(IntSet.vector(Ramp(X, build.as_expr(2), 4))) == "IntervalSet[x, (x + 6)]"
    assert repr(IntSet.single_point(3)) == "IntervalSet[3, 3]"
    assert IntervalSet(1, 0).is_nothing()


def test_deduce_bound():
    tile = deduce_bound(X, X * 8 + Y < N, {}, {Y: IntervalSet(0, 7)})
    assert tile.min_value is NEG_INF
    assert repr(tile.max_value) == "floordiv((n - 8), 8)" or repr(tile.max_value) == "(floordiv(n, 8) - 1)"
    both = deduce_bound(X, build.logical_and(X - 3 >= 0, X * 2 <= 21), {}, {})
    assert repr(both) == "IntervalSet[3, 10]"
    assert deduce_bound(X, X * Y < N, {}, {}).max_value is POS_INF
    hints = {Y: IntervalSet(2, 3), Z: IntervalSet(8, 9)}
    assert repr(deduce_bound(X, X * 4 + Y < Z, hints, {}).max_value) == "floordiv(((z - y) - 1), 4)"
    assert repr(deduce_bound(X, Z - X * Y >= 0, hints, {}).max_value) == "floordiv(z, y)"
    assert repr(deduce_bound(X, X * Y - Z > 0, hints, {}).min_value) == "floordiv((y + z), y)"
    assert repr(deduce_bound(X, X * Y > Z, hints, {Z: IntervalSet(8, 9)}).min_value) == "floordiv((y + 9), y)"
    never = deduce_bound(X, build.maximum(5, X * 4) < 0, {}, {})
    assert (never.min_value, never.max_value) == (POS_INF, NEG_INF)


@pytest.mark.parametrize("part", [
    Z < 3, X + X > X * X, X * Y < N, build.not_equal(X, Y), build.logical_or(X < 3, X > 4), Var("p", "bool"),
])
def test_a_part_that_cannot_be_solved_leaves_nothing_known(part):
    for condition in (part, build.logical_and(X <= 5, part), build.logical_and(part, build.equal(X, -6))):
        found = deduce_bound(X, condition, {}, {})
        assert (found.min_value, found.max_value) == (NEG_INF, POS_INF)


def test_a_part_that_always_holds_or_never_holds_is_no_obstacle():
    both = build.logical_and(X <= 5, Z < 3)
    within, beyond = {Z: IntervalSet(0, 2)}, {Z: IntervalSet(0, 3)}
    assert repr(deduce_bound(X, both, {}, within)) == repr(deduce_bound(X, both, within, {})) == "IntervalSet[neg_inf, 5]"
    assert deduce_bound(X, both, {}, beyond).max_value is deduce_bound(X, both, within, beyond).max_value is POS_INF
    never = deduce_bound(X, build.logical_and(Z < 3, build.maximum(5, X * 4) < 0), {}, {})
    assert (never.min_value, never.max_value) == (POS_INF, NEG_INF)


def test_bounds_by_symbolic_factors_hold():
    for condition in (X * Y <= Z, X * Y >= Z, X * Y < Z - 3, 0 - X * Y > Z, X * (Y + 1) + Z >= 2):
        found = deduce_bound(X, condition, {Y: IntervalSet(1, 4)}, {})
        for x, y, z in itertools.product(range(-9, 10), range(1, 5), range(-9, 10)):
            env = {X: x, Y: y, Z: z}
            low, high = (None if end is NEG_INF or end is POS_INF else value(end, env)
                         for end in (found.min_value, found.max_value))
            assert bool(value(condition, env)) == ((low is None or x >= low) and (high is None or x <= high))


@pytest.mark.parametrize("least, most", [(1, 4), (2, None), (-4, -2), (None, -1)])
def test_bounds_hold_for_every_factor_of_relax_map(least, most):
    factors = range(-40 if least is None else least, 41 if most is None else most + 1)  # 40 stands for unboundedly many
    interval = IntervalSet(NEG_INF if least is None else least, POS_INF if most is None else most)
    for condition in (X * Y <= Z, X * Y >= Z, X * Y < Z - 3, 0 - X * Y > Z):
        found = deduce_bound(X, condition, {}, {Y: interval})
        assert (found.min_value is NEG_INF) != (found.max_value is POS_INF)
        for x, z in itertools.product(range(-9, 10), repeat=2):
            low, high = (None if end is NEG_INF or end is POS_INF else value(end, {X: x, Z: z})
                         for end in (found.min_value, found.max_value))
            holds = all(value(condition, {X: x, Y: y, Z: z}) for y in factors)
            assert holds == ((low is None or x >= low) and (high is None or x <= high))


@pytest.mark.parametrize("e, variables, expected", [
    (X * 3 + Y + 2, [X, Y], ["3", "1", "2"]), ((X + N) * 4, [X], ["4", "(n*4)"]), (X * N + Y, [X], ["n", "y"]),
    (X * Y, [X, Y], []), (X // 2, [X], []), (N + 1, [X], ["0", "(n + 1)"]),
])
def test_linear_equations(e, variables, expected):
    assert [repr(part) for part in detect_linear_equation(e, variables)] == expected


def test_solving():
    assert repr(solve_for(X * 2 + 3, X, Y)) == "floordiv((y - 3), 2)"
    assert repr(solve_for(N - X, X, Y)) == "(n - y)"
    assert solve_for(X * X, X, Y) is None


def test_nothing_to_do_gives_the_same_object():
    known = Analyzer()
    for e in (X * 32 + Y, (N + 31) // 32, build.less(X * 32 + Y, N), build.maximum(build.minimum(X, N - 1), 0),
              X * N + Y * M + 1, build.select(build.less(X, 3), X, Y), N - X - 1, (X % 12) // 4):
        assert known.simplify(e) is e
        twin = build.add(build.mul(X, 32), Y)
        assert known.simplify(twin) is twin, "an equal expression met before does not replace this one"


def test_printed_forms():
    known = Analyzer()
    known.bind(Y, Range(0, 32))
    for e, expected in [
        (4 + X, "(x + 4)"), (X + 1 + Z, "((x + z) + 1)"), ((X * 32 + Y) * 4, "((x*128) + (y*4))"), (X - 4 + 4, "x"),
        (4 * X, "(x*4)"), ((X + Y) + (Z + N), "(((x + y) + z) + n)"), ((X * 32 + Y) // 32, "x"), (X > 3, "(3 < x)"),
        (X + (-3), "(x - 3)"), (X - Y + Z, "((x + z) - y)"), (0 - X, "(0 - x)"), (5 - X, "(5 - x)"), (X >= 0, "(0 <= x)"),
        (X // 4 % 3, "floordiv(floormod(x, 12), 4)"), (X + 1 < Z + 3, "(x < (z + 2))"), (X * 4 < 10, "(x < 3)"),
    ]:
        assert repr(known.simplify(build.as_expr(e))) == expected


def test_parts_are_put_together_again():
    known = Analyzer()
    known.bind(Y, Range(0, 48))
    whole = X * 48 + Y
    for e in (whole // 64 * 64 + whole % 64, whole - whole // 64 * 64 + whole // 64 * 64,
              whole // 64 * 64 + (whole % 64) // 8 * 8 + whole % 8):
        assert repr(known.simplify(e)) == repr(whole)
    assert known.simplify(X % 64 + X // 64 % 3 * 64 + X // 192 * 192) is X


def test_scopes_end():
    known = Analyzer()
    with known.constraint_scope(X < 4):
        with known.constraint_scope(X >= 2):
            assert known.bounds(X) == (2, 3)
            assert build.as_int(known.simplify(X // 2)) == 1
        assert known.bounds(X) == (None, 3)
        assert known.can_prove(X < 5)
    assert not known.can_prove(X < 5)
    assert known.bounds(X) == (None, None)


def test_any_condition_is_true_inside_itself():
    known = Analyzer()
    p, q = Var("p", "bool"), Var("q", "bool")
    for condition in (p, build.logical_or(p, q), build.logical_not(p), build.equal(X % 4, 0), build.not_equal(X, 3)):
        with known.constraint_scope(condition):
            assert known.can_prove(condition)
        assert not known.can_prove(condition)


def test_sides_of_a_choice_know_its_condition():
    known = Analyzer()
    inner = build.if_then_else(X > 0, build.maximum(X - 1, 0), Y)
    e = build.if_then_else(build.logical_and(X >= 1, X < 5), inner, build.if_then_else(X < 9, X // 16, Y))
    assert repr(known.simplify(e)) == \
        "tir.if_then_else(((1 <= x) && (x < 5)), (x - 1), tir.if_then_else((x < 9), floordiv(x, 16), y))"
    both = build.select(X > 0, build.maximum(X - 1, 0), Y)
    assert repr(known.simplify(both)) == "select((0 < x), max((x - 1), 0), y)", "the range of both sides"
    for simplified in (known.canonical_simplify(both), known.rewrite_simplify(both)):
        assert repr(simplified) == "select((0 < x), (x - 1), y)"
    T = BufferLoad(decl_buffer((4,), "int32", "T"), (build.maximum(X, 0),))
    assert known.canonical_simplify(build.select(X >= 0, T, Y)).true_value.indices[0].b.value == 0, "both sides are evaluated"
    p = Var("p", "bool")
    assert repr(known.simplify(build.if_then_else(p, build.select(p, X, Y), 3))) == "tir.if_then_else(p, x, 3)"


def test_a_variable_is_replaced_by_the_value_that_it_is_bound_to():
    known = Analyzer()
    known.bind(X, Y + 1)
    known.bind(Z, 3)
    assert repr(known.simplify(X * Z - Y)) == "((y*2) + 3)" and known.can_prove(X > Y)
    known.bind(X, Range(0, 8))
    assert repr(known.simplify(X + Z)) == "(x + 3)"
    known.bind_let(X, Y + 1)
    assert repr(known.simplify(X + Z)) == "(x + 3)" and known.can_prove(X > Y)
    known.bind(X, BufferLoad(decl_buffer((4,), "int32", "T"), (Y,)))
    assert known.simplify(X) is X, "memory may change"


def test_a_quotient_of_what_is_not_negative_is_one_however_it_is_rounded():
    known = Analyzer()
    known.bind(Y, Range(0, 1025))
    quotient = build.truncdiv(X * 1024 + Y, 65536) + build.truncdiv(Y, 256) - Y // 256 - build.truncmod(Y, 16) + Y % 16
    known.bind(X, Range(0, 6))
    assert repr(known.simplify(quotient)) == repr(known.simplify((X * 1024 + Y) // 65536))


def test_floats_keep_their_bits():
    known = Analyzer()
    a = Var("a", "float32")
    for e in (a - a, a + 0.0, build.mul(a, 0.0), build.minimum(a, a + 1.0), build.less(a, a + 1.0)):
        assert known.simplify(e) is e
    assert isinstance(known.simplify(build.mul(build.const(2.0), build.const(3.0))), FloatImm)
    assert known.simplify(a > 1.0).b is a


@pytest.mark.parametrize("make", [
    lambda e, k: e + Var(f"v{k}"), lambda e, k: e * 2 + k, lambda e, k: build.minimum(e, k) + 1, lambda e, k: (e + k) // 2,
    lambda e, k: (e + X) % (k + 2), lambda e, k: build.select(build.less(e, k), e, X), lambda e, k: build.maximum(e, X + k),
    lambda e, k: build.if_then_else(build.less(X, k), e, e + 1), lambda e, k: (e * 7 + k) % 97,
], ids=["sum", "powers", "min", "floordiv", "floormod", "select", "max", "choice", "floormods by the same"])
@pytest.mark.sampled(3)
def test_depth_costs_no_recursion(make):
    def questions(depth):
        e, known = X, Analyzer()
        for k in range(depth):
            e = make(e, k)
        known.simplify(e)
        known.bounds(e)
        known.modular(e)

    questions(10_000)
    few, many = (calls_made_by(lambda depth=depth: questions(depth)) for depth in (200, 400))
    assert many < 2.5 * few, "the work grows with the depth alone"


def test_a_small_index_costs_few_steps():
    """About 180 calls of functions, of Python and of C, which are about 13 µs."""
    known = Analyzer()
    known.bind(Y, Range(0, 32))
    fresh = [X * 32 + Y + k for k in range(500)]
    assert calls_made_by(lambda: [known.simplify(e) for e in fresh]) < 500 * 260
    assert isinstance(known.simplify(IntImm("int32", 3)), IntImm)


EVERY = ConstIntBound.NEG_INF, ConstIntBound.POS_INF
INT32_ALL = -2**31, 2**31 - 1
U, V, W8 = Var("u", "int64"), Var("v", "int64"), Var("w8", "int8")


@pytest.mark.parametrize("e, known, expected", [
    (U, {}, EVERY), (X, {}, INT32_ALL), (W8, {}, (-128, 127)), (N, {}, (0, EVERY[1])), (N + 1, {}, (1, EVERY[1])),
    (X, {X: EVERY}, EVERY), (X * Y, {X: (EVERY[0], 4), Y: (-8, 2)}, EVERY), (X * Y, {X: (-3, 4), Y: (-8, 2)}, (-32, 24)),
    (U - V, {U: (0, EVERY[1]), V: (1, 10)}, (-10, EVERY[1])), (X + 1, {}, (INT32_ALL[0] + 1, INT32_ALL[1] + 1)),
    (build.truncdiv(X, Y), {X: (-9, 4), Y: (-2, 0)}, (-4, 9)), (build.truncmod(X, Y), {X: EVERY, Y: (4, 10)}, (-9, 9)),
    (X // Y, {X: (EVERY[0], 4), Y: (-2, 1)}, EVERY), (X % Y, {X: EVERY, Y: (4, 10)}, (0, 9)),
    (build.minimum(X, Y), {X: EVERY, Y: (4, 10)}, (EVERY[0], 10)), (X >> Y, {X: (-9, 11), Y: (2, 10)}, (-3, 2)),
    (X >> Y, {X: (-9, 11), Y: (-1, 10)}, INT32_ALL), (X << 2, {X: (0, 3)}, (0, 12)), (X & Y, {Y: (2, 10)}, (0, 10)),
    (X << 31, {X: (0, 3)}, INT32_ALL), (build.absolute(X), {X: (-9, 4)}, (0, 9)), (build.absolute(X), {X: (-9, -4)}, (4, 9)),
    (build.cast("int32", build.cast("float32", build.truncmod(W8, 3))), {}, (-2, 2)), (X < 3, {}, (0, 1)),
    (build.cast("int32", build.cast("float16", X)), {X: (0, 2048)}, (0, 2048)),
    (build.cast("int32", build.cast("float16", X)), {X: (0, 2049)}, INT32_ALL), (X < 3, {X: (0, 2)}, (1, 1)),
])
def test_bounds_with_infinities(e, known, expected):
    analyzer = Analyzer()
    for var, bounds in known.items():
        analyzer.update(var, ConstIntBound(*bounds), override=True)
    found = analyzer.const_int_bound(build.as_expr(e))
    assert (found.min_value, found.max_value) == expected


def test_bounds_in_scopes():
    analyzer = Analyzer()
    with analyzer.constraint_scope(build.logical_and(X >= 2, X < 9)):
        assert analyzer.const_int_bound(X * 2) == ConstIntBound(4, 16)
    assert analyzer.const_int_bound(X) == ConstIntBound(*INT32_ALL)


REMAINDERS = [((4, 2), (2, 0)), ((4, 1), (3, 1)), ((6, 5), (4, 3)), ((3, 2), (5, 3)), ((4, 0), (8, 4))]


@pytest.mark.parametrize("remainder", [build.floormod, build.truncmod])
@pytest.mark.parametrize("first, second", REMAINDERS)
def test_several_residues(remainder, first, second):
    analyzer = Analyzer()
    both = [build.equal(remainder(X + 2, d), r) for d, r in (first, second)]
    with analyzer.constraint_scope(both[0]), analyzer.constraint_scope(both[1]):
        found = analyzer.modular(X)
        meant = [x for x in range(200) if all((x + 2) % d == r for d, r in (first, second))]
        assert found.coeff == meant[1] - meant[0] and found.base == meant[0] % found.coeff
    assert analyzer.modular(X) == ModularSet(1, 0)


@pytest.mark.parametrize("e, expected", [
    ((X * 4 + 2) >> 1, (2, 1)), (X << 2, (4, 0)), (X & -4, (4, 0)), (X & 3, (1, 0)), (build.truncdiv(X * 8, 4), (2, 0)),
    (build.truncdiv(X * 4 + 3, 2), (1, 0)), (build.truncmod(X * 4 + 3, 8), (4, 3)), (X >> Y, (1, 0)), (X & 0, (1, 0)),
])
def test_residues_of_operators(e, expected):
    coeff, base = expected
    assert Analyzer().modular(e) in (ModularSet(coeff, base), ModularSet(0, 0))
    ends = Analyzer()
    ends.bind(Y, X * 4 + 1)
    assert ends.modular(1 - Y) == ModularSet(4, 0)
    ends.bind(Y, Range(0, 9))
    assert ends.modular(1 - Y) == ModularSet(1, 0)


def test_what_update_takes():
    with pytest.raises(ArgumentTypeError, match="is not a ConstIntBound"):
        Analyzer().update(X, ModularSet(4, 0))


def test_residue_of_a_let():
    assert Analyzer().modular(Let(X, Y * 4 + 2, X * 2 + X + 1)) == ModularSet(12, 7)
    assert Analyzer().modular(Let(X, Y * 4 + 2, X + 1)) == ModularSet(4, 3)


@pytest.mark.parametrize("wrong", [
    lambda: ConstIntBound("a", 4), lambda: ConstIntBound(4, None), lambda: ModularSet("a", 0), lambda: ModularSet(2, None),
    lambda: ModularSet(-1, 0), lambda: Analyzer().bind(X, "a"), lambda: Analyzer().simplify("x"),
    lambda: Analyzer().rewrite_simplify("x"), lambda: Analyzer().simplify(X, "2"), lambda: detect_linear_equation("x", [X]),
    lambda: arith.solve_linear_inequalities([X < 3], 3), lambda: arith.solve_linear_equations([X.equal(3)], "x"),
    lambda: arith.IterMark(X, "a"), lambda: arith.IterMark(X, 1.5), lambda: arith.IntGroupBounds(1, ["a"], [], []),
    lambda: arith.IntConstraints(3, {}, []), lambda: arith.IntConstraints([X], 3, []),
    lambda: arith.IntConstraints([X], {}, 3), lambda: arith.IntConstraints(["x"], {}, []),
    lambda: arith.IntConstraints([X], {X: 3}, []), lambda: arith.IntConstraints([X], {}, [X]),
    lambda: arith.IntConstraintsTransform(1, 2, 3, 4),
    lambda: arith.IntConstraintsTransform(arith.IntConstraints(), arith.IntConstraints(), 3, {})])
def test_arguments_that_are_refused(wrong):
    with pytest.raises((ArgumentTypeError, ArgumentError)):
        wrong()


@pytest.mark.parametrize("e, bounds", [
    ((X + 5) // 4, (1, 5)), ((X + 5) // 4 // 2, (0, 2)), (((X + 5) // 4 + 3) // 2, (2, 4)), ((X + 5) % 16 // 4, (0, 3)),
    ((X - 5) // 4, (-2, 2)), (((X - 5) // 4 - 1) // 3, (-1, 0)), ((X * 3 + 7) // 5 % 4, (0, 3)), (X // 4 * 4 + 3, (3, 15))])
def test_bounds_of_quotients_with_offsets(e, bounds):
    """They hold, and are the values at the ends where the quotients grow with x."""
    known = Analyzer()
    known.bind(X, Range(0, 16))
    found, values = known.const_int_bound(e), [value(e, {X: i}) for i in range(16)]
    assert (found.min_value, found.max_value) == bounds
    assert bounds[0] <= min(values) and max(values) <= bounds[1]


@pytest.mark.parametrize("low, high", [(1, 8), (0, 8), (-3, -1), (-3, 2)])
def test_products_that_are_zero(low, high):
    known = Analyzer()
    for var in (X, Y):
        known.bind(var, Range(low, high + 1))
    pairs = list(itertools.product(range(low, high + 1), repeat=2))
    for e in ((X * Y).equal(0), X * Y > 0, X * Y >= 0, (X * Y * 2).equal(0), build.not_equal(X * Y, 0)):
        simple, values = known.simplify(e), {value(e, {X: i, Y: j}) for i, j in pairs}
        assert all(value(simple, {X: i, Y: j}) == value(e, {X: i, Y: j}) for i, j in pairs)
        assert isinstance(simple, IntImm) == (len(values) == 1), e


def test_what_a_let_binds_is_known_inside_of_it_alone():
    known = Analyzer()
    assert known.simplify(Let(X, IntImm("int32", 3), X < 5)).body.value == 1
    assert known.simplify(Let(X, IntImm("int32", 7), X < 5)).body.value == 0
    both = known.simplify(tir.all(Let(X, IntImm("int32", 3), X < 5), Let(X, IntImm("int32", 7), X < 5)))
    assert both.a.body.value == 1 and both.b.body.value == 0
    shadowed = known.simplify(Let(X, IntImm("int32", 3), Let(X, X + 4, X < 5)))
    assert shadowed.body.body.value == 0
    assert known.modular(Let(X, Y * 4, X)) == ModularSet(4, 0) and known.bounds(Let(X, IntImm("int32", 3), X)) == (3, 3)
    assert known.const_int_bound(X) == Analyzer().const_int_bound(X) and known.modular(X) == ModularSet(1, 0)
    kept = Let(X, Y, X * Y)
    assert known.simplify(kept) is kept
