"""Maps of iterators: the indices that they stand for at every point, whether they are bijective, their inverse and division."""

import itertools
import random

import pytest
from arith_reference import value

from tedsl import arith, ir, tir
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir import build

X, Y, Z, C, D = tir.Var("x", "int32"), tir.Var("y", "int32"), tir.Var("z", "int32"), tir.SizeVar("c"), tir.SizeVar("d")
DIV, MOD = tir.floordiv, tir.floormod


def loops(**extents):
    return {{"x": X, "y": Y, "z": Z}[name]: ir.Range(0, extent) for name, extent in extents.items()}


def shapes(maps):
    return [tuple(repr(part) for split in one.args for part in (split.extent, split.scale)) + (repr(one.base),) for one in maps]


def points(iters, predicate=None):
    ranges = [range(int(r.min), int(r.min) + int(r.extent)) for r in iters.values()]
    for values in itertools.product(*ranges):
        env = dict(zip(iters, values))
        if predicate is None or value(build.as_expr(predicate), env):
            yield env


def bijective(indices, iters, predicate=None):
    """Whether the indices are met once each, and fill a box with one distance along each side."""
    met = [tuple(value(build.as_expr(i), env) for i in indices) for env in points(iters, predicate)]
    box = 1
    for along in zip(*met):
        box *= len(set(along))
    return len(set(met)) == len(met) == box


FOUND = [
    ([X, Y, 3], loops(x=3, y=4), [("3", "1", "0"), ("4", "1", "0"), ("3",)]),
    ([Y * 3 + 1 + X], loops(x=3, y=4), [("12", "1", "1")]),
    ([X * 4 + Y * 2], loops(x=3, y=2), [("6", "2", "0")]),
    ([7 - X], loops(x=8), [("8", "-1", "7")]),
    ([11 - Y * 3 - X], loops(x=3, y=4), [("12", "-1", "11")]),
    ([DIV(X, 3), MOD(X, 3) * 2 + 5], loops(x=24), [("8", "1", "0"), ("3", "2", "5")]),
    ([DIV(X, 6), DIV(MOD(X, 6), 2), MOD(X, 2)], loops(x=24), [("4", "1", "0"), ("3", "1", "0"), ("2", "1", "0")]),
    ([DIV(X * 2, 4), MOD(X * 2, 4)], loops(x=8), [("4", "1", "0"), ("2", "2", "0")]),
    ([DIV(X * 2, 4) * 4 + MOD(X * 2, 4)], loops(x=8), [("8", "2", "0")]),
    ([DIV(X + 8, 4), MOD(X + 8, 4)], loops(x=8), [("2", "1", "2"), ("4", "1", "0")]),
    ([DIV(X * 12 + Y * 3 + Z, 6), MOD(X * 12 + Y * 3 + Z, 6)], loops(x=5, y=4, z=3), [("10", "1", "0"), ("6", "1", "0")]),
    ([X, Y], loops(x=1, y=4), [("0",), ("4", "1", "0")]),
    ([DIV(X, 8), MOD(X, 8)], loops(x=8), [("0",), ("8", "1", "0")]),
]


@pytest.mark.parametrize("indices, iters, expected", FOUND)
def test_maps_that_are_found(indices, iters, expected):
    maps = arith.detect_iter_map(indices, iters, require_bijective=True)
    assert shapes(maps) == expected
    assert bijective(indices, iters)
    for env in points(iters):
        for one, index in zip(maps, indices):
            assert value(arith.normalize_iter_map_to_expr(one), env) == value(build.as_expr(index), env)


@pytest.mark.parametrize("indices, iters", [
    ([X, X], loops(x=3)), ([Y * 3 + X, Y], loops(x=3, y=4)), ([Y, X + 1, Y], loops(x=3, y=4)), ([Y * 4 + X], loops(x=3, y=4)),
    ([X * Y], loops(x=3, y=4)), ([DIV(X, MOD(Y, 3) + 1)], loops(x=24, y=8)), ([DIV(X, 5), MOD(X, 5)], loops(x=12)),
    ([DIV(X, 2), MOD(X, 3)], loops(x=12)), ([DIV(X + 1, 4)], loops(x=8)), ([tir.max(X, 2)], loops(x=8)),
    ([X + Y * 2 + Z], loops(x=2, y=2, z=2)),
])
def test_what_is_no_map(indices, iters):
    assert arith.detect_iter_map(indices, iters) == []


def test_maps_that_leave_iterations_out():
    iters = loops(x=24, y=4)
    for indices in ([X, 3], [DIV(X, 4), Y], [MOD(X, 4), Y], [MOD(X, 4), DIV(X, 8), Y]):
        assert len(arith.detect_iter_map(indices, iters)) == len(indices)
        assert arith.detect_iter_map(indices, iters, True, True) == []


def test_sizes_as_factors():
    assert shapes(arith.detect_iter_map([(Y + 1) * C + X], {X: ir.Range(0, C), Y: ir.Range(0, 4)})) == [("(c*4)", "1", "c")]
    assert shapes(arith.detect_iter_map([DIV(X, C), MOD(X, C)], {X: ir.Range(0, D * C)})) == [("d", "1", "0"), ("c", "1", "0")]
    assert shapes(arith.detect_iter_map([X * 2 * C + Y * 2], {X: ir.Range(0, 3), Y: ir.Range(0, C)})) == [("(c*3)", "2", "0")]


def test_loops_that_begin_elsewhere():
    iters = {X: ir.Range(4, 12), Y: ir.Range(-2, 1)}
    maps = arith.detect_iter_map([X * 3 + Y], iters, True, True)
    assert shapes(maps) == [("24", "1", "10")]
    back = arith.inverse_affine_iter_map(maps, [X * 3 + Y])
    for env in points(iters):
        assert {v: value(e, env) for v, e in back.items()} == env


PREDICATES = [
    ([X * 10 + Y], X * 10 + Y < 128, [("128", "1", "0")]),
    ([X * 10 + Y], X * 10 + Y <= 127, [("128", "1", "0")]),
    ([X * 10 + Y], tir.GT(build.as_expr(128), X * 10 + Y), [("128", "1", "0")]),
    ([X * 10 + Y], tir.all(X * 10 + Y < 128, X * 10 + Y > 5), [("122", "1", "6")]),
    ([DIV(X * 10 + Y, 4), MOD(X * 10 + Y, 4)], tir.all(X * 10 + Y < 128, X * 10 + Y >= 4), [("31", "1", "1"), ("4", "1", "0")]),
    ([X * 10 + Y], X * 20 + Y * 2 < 255, [("128", "1", "0")]),
    ([X, Y], tir.all(X < 9, X > 2), [("6", "1", "3"), ("10", "1", "0")]),
    ([X * 10 + Y], X * 10 + Y < 900, [("130", "1", "0")]),
]


@pytest.mark.parametrize("indices, predicate, expected", PREDICATES)
def test_predicates(indices, predicate, expected):
    iters = loops(x=13, y=10)
    maps = arith.detect_iter_map(indices, iters, predicate, True)
    assert shapes(maps) == expected
    assert bijective(indices, iters, predicate)
    outputs = [tir.Var(f"o{i}") for i in range(len(maps))]
    back = arith.inverse_affine_iter_map(maps, outputs)
    for env in points(iters, predicate):
        there = {o: value(build.as_expr(i), env) for o, i in zip(outputs, indices)}
        assert [value(arith.normalize_iter_map_to_expr(one), env) for one in maps] == list(there.values())
        assert {v: value(e, there) for v, e in back.items()} == env


def test_predicates_that_say_something_else():
    iters = loops(x=13, y=10)
    assert arith.detect_iter_map([X, Y], iters, X * 10 + Y < 128) == [], "the limited sum is not used"
    assert arith.detect_iter_map([X, Y], iters, tir.any(X < 3, Y < 2)) == []
    assert arith.detect_iter_map([X, Y], iters, MOD(X, 2).equal(0)) == []


def random_indices(rng, iters):
    """Indices that split and fuse loops at random; some are maps, some are not."""
    parts = [(v, int(r.extent)) for v, r in iters.items()]
    for _ in range(rng.randrange(1, 5)):
        if rng.random() < 0.5:
            at = rng.randrange(len(parts))
            e, extent = parts.pop(at)
            factor = rng.choice([f for f in range(1, extent + 1) if extent % f == 0])
            parts[at:at] = [(DIV(e, factor), extent // factor), (MOD(e, factor), factor)]
        elif len(parts) > 1:
            (a, m), (b, n) = (parts.pop(rng.randrange(len(parts))) for _ in range(2))
            parts.append((a * (n + (rng.random() < 0.05)) + b, m * n))
    rng.shuffle(parts)
    return [e * rng.choice([1, 1, 3]) + rng.choice([0, 0, 2]) for e, _ in parts]


def test_random_maps():
    rng, found = random.Random(7), 0
    for _ in range(120):
        iters = loops(**dict(zip("xyz", rng.sample([1, 2, 3, 4, 6, 8], rng.randrange(1, 4)))))
        indices = random_indices(rng, iters)
        maps = arith.detect_iter_map(indices, iters, True, True)
        if not maps:
            continue
        found += 1
        assert bijective(indices, iters), indices
        outputs = [tir.Var(f"o{i}") for i in range(len(maps))]
        back, shown = arith.inverse_affine_iter_map(maps, outputs), [arith.normalize_iter_map_to_expr(one) for one in maps]
        for env in points(iters):
            there = {o: value(build.as_expr(i), env) for o, i in zip(outputs, indices)}
            assert [value(e, env) for e in shown] == list(there.values()), indices
            assert all(value(e, there) == env[v] for v, e in back.items()), indices
    assert found > 90, "most of them are maps"


@pytest.mark.parametrize("bindings, sub, expected", [
    ([Z * 12 + Y * 3 + X + C], [X], [("((z*4) + y)", "(x + c)")]),
    ([Z * 12 + Y * 3 + X], [Y, X], [("z", "((y*3) + x)")]),
    ([Z * 12 + Y * 3 + X], [], [("(((z*12) + (y*3)) + x)", "0")]),
    ([Z, Y * 3 + X], [X], [("z", "0"), ("y", "x")]),
    ([DIV(Z * 12 + Y * 3 + X, 6), MOD(Z * 12 + Y * 3 + X, 6)], [X],
     [("((z*2) + floordiv(y, 2))", "0"), ("floormod(y, 2)", "x")]),
])
def test_division_by_outer_and_inner_loops(bindings, sub, expected):
    iters = loops(x=3, y=4, z=5)
    divided = arith.subspace_divide(bindings, iters, sub)
    shown = [[arith.normalize_iter_map_to_expr(half.source) for half in pair] for pair in divided[:-1]]
    assert [tuple(map(repr, pair)) for pair in shown] == expected
    assert [bool(part.extent) for part in divided[-1]] == [True, True]
    for env in points(iters):
        env |= {C: 7}
        for binding, (outer, inner), pair in zip(bindings, shown, divided):
            assert value(outer, env) * int(pair[1].extent) + value(inner, env) == value(binding, env)


def test_division_with_predicates():
    iters = loops(x=13, y=10, z=4)
    total = X * 10 + Y
    *pairs, holds = arith.subspace_divide([total * 4 + Z], iters, [Z], total < 128)
    assert repr(holds[0].extent) == "(((x*10) + y) < 128)" and build.is_true(holds[1].extent)
    assert [int(half.extent) for half in pairs[0]] == [128, 4]
    *pairs, holds = arith.subspace_divide([Z, total], iters, [X, Y], total < 128)
    assert build.is_true(holds[0].extent) and repr(holds[1].extent) == "(((x*10) + y) < 128)"
    assert arith.subspace_divide([total], loops(x=13, y=10), [Y], total < 128) == []
    assert arith.subspace_divide([Y * 13 + X], loops(x=13, y=10), [Y]) == [], "what is inner stands above what is outer"


def test_regions():
    region = [ir.Range(X * 4, X * 4 + 6), ir.Range.from_min_extent(Y + 2, 1)]
    found = arith.estimate_region_lower_bound(region, loops(x=5, y=3), True)
    assert repr(found) == "[IntervalSet[0, 21], IntervalSet[2, 4]]"
    gaps = [ir.Range(X * 4, X * 4 + 3)]
    assert arith.estimate_region_lower_bound(gaps, loops(x=5), True) is None
    assert arith.estimate_region_lower_bound([ir.Range(X, X + 1), ir.Range(X, X + 1)], loops(x=5), True) is None
    limited = arith.estimate_region_lower_bound([ir.Range.from_min_extent(X * 4 + Y, 1)], loops(x=5, y=4), X * 4 + Y < 17)
    assert repr(limited) == "[IntervalSet[0, 16]]"


def test_unions():
    union, interval = arith.int_set.union_lower_bound, arith.IntervalSet
    assert repr(union([interval(0, 3), interval(4, 9)])) == "IntervalSet[0, 9]"
    assert repr(union([interval(C + 4, C + 9), interval(C, C + 5)])) == "IntervalSet[c, (c + 9)]"
    assert repr(union([interval(0, 3), interval(5, 9), interval(-4, -1)])) == "IntervalSet[-4, 3]"
    assert repr(union([interval(None, 3), interval(2, 9)]).max_value) == "9"
    assert union([]).is_nothing()
    assert arith.int_set.neg_inf().name == "neg_inf" and arith.int_set.pos_inf().name == "pos_inf"


def test_what_is_refused():
    with pytest.raises(ArgumentTypeError, match="the indices are 3, not a list"):
        arith.detect_iter_map(3, {})
    with pytest.raises(ArgumentTypeError, match="not a dict"):
        arith.detect_iter_map([X], [X])
    with pytest.raises(ArgumentTypeError, match="not a variable and its Range"):
        arith.detect_iter_map([X], {X: 3})
    with pytest.raises(ArgumentError, match="1 maps have 2 outputs"):
        arith.inverse_affine_iter_map(arith.detect_iter_map([X], loops(x=4)), [1, 2])
    with pytest.raises(ArgumentTypeError, match="takes an IterSumExpr"):
        arith.normalize_iter_map_to_expr(X)
    with pytest.raises(ArgumentTypeError, match="iterators are integers"):
        arith.IterMark(tir.const(1.5), 3)
    with pytest.raises(ArgumentTypeError, match="takes a list of IntervalSets"):
        arith.int_set.union_lower_bound([3])
    with pytest.raises(ArgumentTypeError, match="not a list of Ranges"):
        arith.estimate_region_lower_bound([X], loops(x=4), True)


def test_maps_print_their_parts():
    (found,) = arith.detect_iter_map([X // 2], loops(x=8))
    assert str(found) == "IterSum([IterSplit(IterMark(x: int32, extent=8), lower_factor=2, extent=4, scale=1)], base=0)"
    assert repr(found) == str(found)


def test_inner_iterators_are_a_list():
    with pytest.raises(ArgumentTypeError, match="sub_iters are the inner iterators, a list of variables, not 3"):
        arith.subspace_divide([X], {X: ir.Range(0, 4)}, 3)
