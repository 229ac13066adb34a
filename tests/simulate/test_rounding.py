"""Results are rounded once, as hardware rounds them: compared with exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from tedsl.simulate.instructions.rounding import bfloat, bfloat_values, fused32, fused64, narrowed, odd_floats, odd_sum
from tests.simulate.kernels import compute


def nearest(exact, kind):
    """The number of `kind` nearest to a fraction, ties to even; by steps from a double."""
    if kind == np.float64:
        return np.float64(float(exact))
    guess = kind(float(exact))
    around = [np.nextafter(guess, kind(-np.inf)), guess, np.nextafter(guess, kind(np.inf))]
    around = [one for one in around if np.isfinite(one)]
    bits = {np.float32: np.uint32, np.float16: np.uint16}[kind]
    return min(around, key=lambda one: (abs(Fraction(float(one)) - exact), int(one.view(bits)) & 1))


def hard_floats(rng, count, kind, spread):
    """Random numbers of few bits and many scales, so that sums of products fall on and near ties."""
    bits = {np.float32: 24, np.float64: 53}[kind]
    few = rng.integers(1, 1 << 12, count) * 2.0 ** rng.integers(-spread, spread, count)
    many = rng.integers(1 << (bits - 1), 1 << bits, count) * 2.0 ** rng.integers(-spread - bits, spread - bits, count)
    return (np.where(rng.random(count) < 0.5, few, many) * rng.choice([-1, 1], count)).astype(kind)


@pytest.mark.parametrize("spread", [4, 30, 48])
def test_fma_of_floats_is_rounded_once(spread):
    rng = np.random.default_rng(spread)
    a, b, c = (hard_floats(rng, 20000, np.float32, spread) for _ in range(3))
    c[::3] = -(a[::3] * b[::3])  # what the rounded product leaves
    c[1::3] *= np.float32(2.0 ** -24)
    with np.errstate(all="ignore"):
        got = fused32(a, b, c)
    for x, y, z, r in zip(a[:4000].tolist(), b.tolist(), c.tolist(), got):
        assert nearest(Fraction(x) * Fraction(y) + Fraction(z), np.float32) == r, (x, y, z)


def test_fma_of_floats_on_ties():
    """a * b is half of a last place of c, and a bit more or less, which a double does not see."""
    one = np.float32(1)
    a = np.array([2.0 ** -12 + 2.0 ** -35, 2.0 ** -12 - 2.0 ** -36, 2.0 ** -12], np.float32)
    b = np.full(3, 2.0 ** -12, np.float32)
    c = np.full(3, one)
    expected = [nearest(Fraction(float(x)) * Fraction(float(y)) + 1, np.float32) for x, y in zip(a, b)]
    with np.errstate(all="ignore"):
        assert fused32(a, b, c).tolist() == expected
    below = fused32(np.array([2.0 ** -75], np.float32), np.array([2.0 ** -75 * 1.5], np.float32), np.array([0], np.float32))
    assert below[0] == np.float32(2.0 ** -149)  # among the smallest numbers, 0.75 of the least



@pytest.mark.parametrize("spread", [4, 60, 480])
def test_fma_of_doubles_is_rounded_once(spread):
    rng = np.random.default_rng(spread)
    a, b, c = (hard_floats(rng, 6000, np.float64, spread) for _ in range(3))
    c[::2] = -(a[::2] * b[::2])
    got = fused64(a, b, c)
    for x, y, z, r in zip(a[:3000].tolist(), b.tolist(), c.tolist(), got):
        assert float(Fraction(x) * Fraction(y) + Fraction(z)) == r, (x, y, z)


def test_fma_of_doubles_at_the_ends_of_the_range():
    huge, tiny, inf = 1.7e308, 5e-324, np.inf
    a = np.array([huge, huge, tiny, inf, huge, 1.0, 1e-200])
    b = np.array([2.0, 2.0, 0.5, 0.0, huge, 1.0, 1e-200])
    c = np.array([-huge, 0.0, tiny, 1.0, -inf, -1.0, tiny])
    expected = [huge, inf, tiny * 2, np.nan, -inf, 0.0, tiny]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(fused64(a, b, c), expected)


@pytest.mark.parametrize("mode, sign", [("rz", 0), ("rm", -1), ("rp", 1), ("rn", 2)])
def test_directed_modes(mode, sign):
    rng = np.random.default_rng(1)
    a, b = hard_floats(rng, 3000, np.float32, 20), hard_floats(rng, 3000, np.float32, 20)
    got = narrowed(odd_sum(a.astype(np.float64), b.astype(np.float64)), "f32", mode)
    for x, y, r in zip(a.tolist(), b.tolist(), got):
        exact, value = Fraction(x) + Fraction(y), Fraction(float(r))
        if sign == 2:
            assert nearest(exact, np.float32) == r
            continue
        side = (-1 if exact > 0 else 1) if sign == 0 else sign
        assert (value - exact) * side >= 0
        other = np.nextafter(r, np.float32(-side * np.inf))
        assert value == exact or (Fraction(float(other)) - exact) * side < 0


def test_halves_are_rounded_once():
    rng = np.random.default_rng(2)
    a, b, c = (rng.standard_normal(3000).astype(np.float16) for _ in range(3))
    c[::2] *= np.float16(2.0 ** -11)
    got = compute("fma.rn.f16 R, X, Y, Z", np.float16, a, b, c)
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), got):
        assert nearest(Fraction(x) * Fraction(y) + Fraction(z), np.float16) == r


def test_bfloat16_is_rounded_once():
    values = np.array([1.0, 1 + 2.0 ** -8, 1 + 2.0 ** -8 + 2.0 ** -40, 1 + 3 * 2.0 ** -8, -3e38, 1e-45, np.inf])
    got = bfloat_values(bfloat(odd_floats(values)))
    assert got.tolist() == [1.0, 1.0, 1 + 2.0 ** -7, 1 + 2.0 ** -6, pytest.approx(-3.004055e38), 0.0, np.inf]
    assert bfloat(np.array([np.nan], np.float32))[0] == 0x7FFF
