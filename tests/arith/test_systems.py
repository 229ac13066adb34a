"""Systems of linear equations and inequalities: their solutions are the image of what the solvers return."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tedsl import arith, ir, te, tir
from tedsl.arith.int_solver.smith import smith_normal_form
from tedsl.errors import ArgumentError
from tedsl.ir.build import as_expr
from tests.arith.arith_reference import value

X, Y, Z, N = te.var("x"), te.var("y"), te.var("z"), te.var("n")
NAMES = [X, Y, Z]
RELATIONS = [tir.EQ, tir.EQ, tir.LE, tir.LT, tir.GE, tir.GT]


def linear(coefficients, constant, variables=(*NAMES, N)):
    total = as_expr(constant)
    for c, v in zip(coefficients, variables):
        total = total + v * c
    return total


def matrix_product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(st.integers(-9, 9), min_size=width, max_size=width),
                                                        min_size=1, max_size=4)))
def test_smith_normal_form(matrix):
    form = smith_normal_form(matrix)
    diagonal = [[form.diagonal[i] if i == j and i < len(form.diagonal) else 0 for j in range(len(matrix[0]))]
                for i in range(len(matrix))]
    assert matrix_product(matrix_product(form.left, matrix), form.right) == diagonal
    width = range(len(matrix[0]))
    assert matrix_product(form.inverse, form.right) == [[int(i == j) for j in width] for i in width]
    assert all(b % a == 0 for a, b in zip(form.diagonal, form.diagonal[1:]))


COEFFICIENTS = st.lists(st.integers(-3, 3), min_size=4, max_size=4)
CONDITIONS = st.lists(st.tuples(st.sampled_from(RELATIONS), COEFFICIENTS, st.integers(-6, 6)), min_size=1, max_size=3)
RANGES = st.tuples(*[st.tuples(st.integers(-3, 1), st.integers(1, 4)) for _ in NAMES])


def points(spans):
    return product(*[range(low, low + extent) for low, extent in spans])


def holds(relations, env):
    return all(value(as_expr(relation), env) for relation in relations)


def inside(ranges, env):
    return all(value(span.min, env) <= env[v] < value(span.min, env) + value(span.extent, env) for v, span in ranges.items())


def system(conditions, spans):
    relations = [kind(linear(coefficients, 0), as_expr(constant)) for kind, coefficients, constant in conditions]
    return relations, {v: ir.Range.from_min_extent(low, extent) for v, (low, extent) in zip(NAMES, spans)}


@settings(max_examples=150, deadline=None)
@given(CONDITIONS, RANGES, st.integers(-4, 4))
def test_equations_have_the_solutions_of_the_new_system(conditions, spans, symbol):
    relations, ranges = system(conditions, spans)
    solution = arith.solve_linear_equations(relations, NAMES, ranges)
    expected = {point for point in points(spans) if holds(relations, {**dict(zip(NAMES, point)), N: symbol})}
    if not solution.src_to_dst:
        assert not expected
        return
    new = list(solution.dst.variables)
    images = set()
    for point in product(*[range(-9, 10)] * len(new)) if len(new) < 3 else points(spans):
        env = {**dict(zip(new, point)), N: symbol}
        if inside(solution.dst.ranges, env) and holds(solution.dst.relations, env):
            image = tuple(value(solution.src_to_dst[v], env) for v in NAMES)
            assert image not in images
            back = {**dict(zip(NAMES, image)), N: symbol}
            assert point == tuple(value(solution.dst_to_src[v], back) for v in new)
            images.add(image)
    assert images <= expected
    for point in expected:
        env = {**dict(zip(NAMES, point)), N: symbol}
        there = {**{v: value(meaning, env) for v, meaning in solution.dst_to_src.items()}, N: symbol}
        assert inside(solution.dst.ranges, there)
        assert holds(solution.dst.relations, there)
        assert point == tuple(value(solution.src_to_dst[v], there) for v in NAMES)


@settings(max_examples=150, deadline=None)
@given(CONDITIONS, RANGES, st.integers(-4, 4))
def test_inequalities_have_the_solutions_of_the_ranges(conditions, spans, symbol):
    relations, ranges = system(conditions, spans)
    expected = {point for point in points(spans) if holds(relations, {**dict(zip(NAMES, point)), N: symbol})}
    solution = arith.solve_linear_inequalities(relations, NAMES, ranges)
    envs = [{**dict(zip(NAMES, point)), N: symbol} for point in product(range(-4, 6), repeat=3)]
    assert expected == {tuple(env[v] for v in NAMES) for env in envs
                        if solution.variables and inside(solution.ranges, env) and holds(solution.relations, env)}


@settings(max_examples=150, deadline=None)
@given(CONDITIONS, RANGES, st.integers(-4, 4))
def test_ranges_that_begin_at_0_have_the_same_solutions(conditions, spans, symbol):
    relations, ranges = system(conditions, spans)
    expected = {point for point in points(spans) if holds(relations, {**dict(zip(NAMES, point)), N: symbol})}
    solution = arith.solve_linear_inequalities(relations, NAMES, ranges, deskew_range=True)
    if not solution.src_to_dst:
        assert not expected
        return
    new = list(solution.dst.variables)
    images = []
    for point in points([(0, value(solution.dst.ranges[v].extent, {N: symbol})) for v in new]):
        env = {**dict(zip(new, point)), N: symbol}
        if holds(solution.dst.relations, env):
            images.append(tuple(value(solution.src_to_dst[v], env) for v in NAMES))
            back = {**dict(zip(NAMES, images[-1])), N: symbol}
            assert point == tuple(value(solution.dst_to_src[v], back) for v in new)
    assert len(images) == len(set(images))
    assert set(images) == expected


def test_a_unique_solution_leaves_no_variable():
    solution = arith.solve_linear_equations([X + Y == 20, X - Y == 10], [X, Y])
    assert list(solution.dst.variables) == []
    assert [int(solution.src_to_dst[v]) for v in (X, Y)] == [15, 5]


def test_equations_without_a_solution():
    solution = arith.solve_linear_equations([X + Y == 0, X - Y == 0, X == 5], [X, Y], {})
    relation, = solution.dst.relations
    assert (list(solution.dst.variables), solution.src_to_dst, solution.dst_to_src, int(relation)) == ([], {}, {}, 0)


def test_nothing_to_solve_for():
    solution = arith.solve_linear_equations([X + Y == 20])
    assert solution.src is solution.dst
    assert solution.src_to_dst == {}


def test_symbols_on_the_right():
    solution = arith.solve_linear_equations([2 * X + 4 * Y == N], [X, Y])
    n0, = solution.dst.variables
    assert repr(solution.dst.relations) == "((floormod(n, 2) == 0),)"
    assert [repr(solution.src_to_dst[v]) for v in (X, Y)] == ["(floordiv(n, 2) - (n0*2))", "n0"]


def test_symbolic_coefficients():
    """The digits of an index: the quotient and the remainder by a symbolic size."""
    m = te.size_var("m")
    ranges = {X: ir.Range.from_min_extent(0, N), Y: ir.Range.from_min_extent(0, m), m: ir.Range.from_min_extent(1, 100)}
    equations = arith.solve_linear_equations([X * m + Y == Z], [X, Y], ranges)
    n0, = equations.dst.variables
    assert [repr(equations.src_to_dst[v]) for v in (X, Y)] == ["n0", "(z - (n0*m))"]
    digits = arith.solve_linear_inequalities(equations.dst.relations, [n0], {m: ranges[m]}, deskew_range=True)
    assert repr(digits.src_to_dst[n0]) == "floordiv(z, m)"
    assert digits.dst.relations == ()


def test_a_range_depends_on_later_variables():
    ranges = {X: ir.Range(-100, 100), Y: ir.Range(0, 10)}
    solution = arith.solve_linear_inequalities([X + Y <= 20, X - Y >= 10], [X, Y], ranges)
    assert repr(solution.ranges[X]) == "range(min=(y + 10), ext=11)"
    assert repr(solution.ranges[Y]) == "range(min=0, ext=6)"
    new = arith.solve_linear_inequalities([X + Y <= 20, X - Y >= 10], [X, Y], ranges, deskew_range=True)
    assert [v.name for v in new.dst.variables] == ["x_new", "y_new"]
    assert repr(new.dst.relations) == "(((x_new + (y_new*2)) <= 10),)"


def test_a_variable_of_one_value_is_no_variable():
    conditions = [X + Y >= 10, X - Y >= 2, X <= 6]
    solution = arith.solve_linear_inequalities(conditions, [X, Y])
    assert [(int(solution.ranges[v].min), int(solution.ranges[v].extent)) for v in (X, Y)] == [(6, 1), (4, 1)]
    new = arith.solve_linear_inequalities(conditions, [X, Y], deskew_range=True)
    assert (new.dst.variables, new.dst.ranges, new.dst.relations) == ((), {}, ())
    assert [int(new.src_to_dst[v]) for v in (X, Y)] == [6, 4]


def test_a_variable_without_bounds_stays():
    conditions = [X <= 6, X >= 6, X - Z * Y >= 0, X - Z * Y <= 0]
    new = arith.solve_linear_inequalities(conditions, [X, Y, Z], deskew_range=True)
    assert new.src_to_dst[Y] is Y
    assert new.src_to_dst[Z] is Z
    assert int(new.src_to_dst[X]) == 6


@pytest.mark.parametrize("deskew", [False, True])
def test_inequalities_without_a_solution(deskew):
    solution = arith.solve_linear_inequalities([-X - 4 <= -5 * X + 2, X * 4 + 5 <= X * 5], [X], {X: ir.Range(-20, 20)}, deskew)
    left = solution.dst if deskew else solution
    assert (list(left.variables), [int(relation) for relation in left.relations]) == ([], [0])


def test_groups_of_bounds():
    assert repr(arith.IntGroupBounds.from_range(ir.Range(3, 9)).find_best_range()) == "range(min=3, ext=6)"
    assert repr(arith.IntGroupBounds(2, [3], [], [9, N]).find_best_range()) == "range(min=1, ext=4)"
    assert arith.IntGroupBounds(1, [], [], [9]).find_best_range() is None
    assert repr(arith.IntGroupBounds(1, [0], [5], [9]).find_best_range()) == "range(min=5, ext=1)"


@pytest.mark.parametrize(("call", "said"), [
    (lambda: arith.solve_linear_equations(X + 1 == 5, [X]), "takes a list of conditions"),
    (lambda: arith.solve_linear_equations([X + 1], [X]), "is not a condition"),
    (lambda: arith.solve_linear_equations([X == 1], [5]), "is not a variable"),
    (lambda: arith.solve_linear_inequalities([X >= 1], [X], {X: (0, 5)}), "not a Range"),
    (lambda: arith.solve_linear_inequalities(arith.IntConstraints([X], {}, [X >= 1]), [X]), "give them alone"),
    (lambda: arith.IntGroupBounds(0, [1], [], [2]), "positive integer"),
    (lambda: arith.IntGroupBounds.from_range(5), "takes a Range"),
    (lambda: arith.solve_linear_equations([2**20 * X == 3**9 * Y, 3**18 * X + 2**25 * Z == N], [X, Y, Z]), "not fit int32"),
])
def test_mistakes_are_refused_by_name(call, said):
    with pytest.raises(ArgumentError, match=said):
        call()
