"""Inequalities over symbolic shapes: what is provable is proved, what is not stays undecided."""

import pytest

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import SizeVar, Var
from tedsl.ir.iters import Range

N, M, F = SizeVar("n"), SizeVar("m"), SizeVar("f")
IO, II, I, J, K = (Var(name) for name in ("io", "ii", "i", "j", "k"))


def loops(**extents):
    known = Analyzer()
    for name, extent in extents.items():
        var = next(v for v in (IO, II, I, J, K) if v.name == name)
        known.bind(var, Range.from_min_extent(0, build.as_expr(extent)))
    return known


def test_a_dividing_split_needs_no_guard():
    known = loops(io=N // 32, ii=32)
    assert known.can_prove(IO * 32 + II < N)


def test_a_split_that_may_not_divide_keeps_its_guard():
    known = loops(io=(N + 31) // 32, ii=32)
    guard = IO * 32 + II < N
    assert not known.can_prove(guard)
    assert known.simplify(guard) is guard


def test_a_split_by_a_symbol():
    known = loops(io=N // F, ii=F)
    with known.constraint_scope(F > 0):
        assert known.can_prove(IO * F + II < N)
    assert not loops(io=(N + F - 1) // F, ii=F).can_prove(IO * F + II < N)


def test_a_rounded_up_split_stays_below_the_rounded_size():
    known = loops(io=(N + 31) // 32, ii=32)
    assert known.can_prove(IO * 32 + II < (N + 31) // 32 * 32)
    assert known.can_prove(IO * 32 + II < N + 31)
    assert not known.can_prove(IO * 32 + II < N + 30)


def test_a_condition_decides_itself_and_its_opposite():
    known = loops(io=(N + 31) // 32, ii=32)
    with known.constraint_scope(build.likely(IO * 32 + II < N)):
        assert known.can_prove(IO * 32 + II < N)
        assert known.can_prove(IO * 32 + II + 1 <= N)
        assert known.can_prove(build.logical_not(IO * 32 + II >= N))
        assert known.can_prove(IO * 32 < N)
    assert not known.can_prove(IO * 32 + II < N)


@pytest.mark.parametrize("claim", [
    lambda: build.minimum(I, J) <= I, lambda: build.minimum(I, J) <= J, lambda: build.maximum(I, J) >= I,
    lambda: build.maximum(build.minimum(I, N - 1), 0) <= build.maximum(N - 1, 0),
    lambda: build.minimum(I, J) <= build.maximum(I, J), lambda: build.minimum(I + K, J) <= J,
    lambda: build.minimum(I, 3) <= 3,
])
def test_min_and_max(claim):
    assert Analyzer().can_prove(claim())


def test_a_loop_variable_is_below_its_extent():
    known = loops(i=N)
    assert known.can_prove(N - I - 1 >= 0)
    assert known.can_prove(I < N)
    assert known.can_prove(I * M + M <= N * M)
    assert not known.can_prove(I + 1 < N)


def test_nested_ranges():
    known = loops(i=N, j=I + 1)
    assert known.can_prove(J < N)
    assert known.can_prove(I - J >= 0)


def test_row_major_addresses_are_in_the_buffer():
    known = loops(i=N, j=M)
    assert known.can_prove(I * M + J < N * M)
    assert known.can_prove(I * M + J >= 0)
    assert not known.can_prove(I * M + J + 1 < N * M)


def test_a_fused_loop_is_taken_apart_and_put_together():
    known = loops(k=N * M)
    fused = K // M * M + K % M
    assert known.simplify(fused) is K
    assert known.can_prove(K % M < M)
    assert known.can_prove(K // M < N)


def test_nothing_is_cancelled_where_the_divisor_may_be_zero():
    known = Analyzer()
    assert not known.can_prove(build.equal(N * M // M, N))
    assert known.can_prove(build.equal(N * M % M, 0))
    with known.constraint_scope(M > 0):
        assert known.can_prove(build.equal(N * M // M, N))


def test_a_size_is_not_negative():
    known = Analyzer()
    assert known.can_prove(N + M >= 0)
    assert not known.can_prove(N > 0)
    assert not known.can_prove(I >= 0)


def test_equal_symbols_cancel():
    known = Analyzer()
    assert build.as_int(known.simplify(N - N)) == 0
    assert build.as_int(known.simplify((N + M) * 4 - N * 4 - M * 4)) == 0
    assert known.can_prove(build.equal((I + 1) * N, I * N + N))


def test_a_cache_of_a_tile_at_the_border():
    """The tile [io*32, min(io*32 + 31, n - 1)] has at most 32 elements, all of them in [0, n)."""
    known = loops(io=(N + 31) // 32)
    last = build.minimum(IO * 32 + 31, N - 1)
    assert known.can_prove(last - IO * 32 + 1 <= 32)
    assert known.can_prove(last < N)
    assert known.can_prove(last - IO * 32 >= 0)


def test_long_products_keep_all_their_factors():
    sizes = [SizeVar(f"s{k}") for k in range(12)]
    product = sizes[0]
    for size in sizes[1:]:
        product = product * size
    known = Analyzer()
    with known.constraint_scope(sizes[0] > 0):
        assert not known.can_prove(product >= sizes[0])
    assert known.can_prove(product >= 0)
    assert known.can_prove(build.equal(product * 2 - product, product))


@pytest.mark.parametrize("factor, other, shift, proved", [
    (1, 1, 7, True), (1, 1, 0, True), (1, 1, -1, False), (3, 2, 5, False), (2, 2, 1, True)])
def test_quotients_by_a_size_increase(factor, other, shift, proved):
    """The difference of quotients is at least the quotient of the difference; proved is true, for sizes of 0 too."""
    known = Analyzer()
    holds = (I + shift) // M * factor >= I // M * other
    assert known.can_prove(holds) == proved
    for size in range(6) if proved else ():
        for i in range(-12, 12):
            assert evaluate(holds, {I: i, M: size}), (i, size)


def test_quotients_by_what_may_be_negative_are_undecided():
    assert not Analyzer().can_prove((I + 7) // J >= I // J)


@pytest.mark.parametrize("distance", [-3, 0, 4])
def test_the_difference_of_quotients_is_at_least_the_quotient_of_the_difference(distance):
    for d in range(-4, 5):
        for i in range(-9, 9):
            assert evaluate((I + distance) // J - I // J >= build.floordiv(distance + 0 * I, J), {I: i, J: d})
