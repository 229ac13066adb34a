"""Intervals of Python integers: (low, high), inclusive; None is minus infinity as low and plus infinity as high."""

from __future__ import annotations

Range = tuple[int | None, int | None]

EVERYTHING: Range = (None, None)


def add(r: Range, s: Range) -> Range:
    """Returns the range of x + y."""
    return (None if r[0] is None or s[0] is None else r[0] + s[0],
            None if r[1] is None or s[1] is None else r[1] + s[1])


def negate(r: Range) -> Range:
    """Returns the range of -x."""
    low, high = r
    return None if high is None else -high, None if low is None else -low


def scale(r: Range, k: int) -> Range:
    """Returns the range of x * k."""
    low, high = r
    if k < 0:
        low, high = high, low
    elif k == 0:
        return 0, 0
    return None if low is None else low * k, None if high is None else high * k


def multiply(r: Range, s: Range) -> Range:
    """Returns the range of x * y for independent x and y."""
    if r == (0, 0) or s == (0, 0):
        return 0, 0
    corners = [_product(x, y) for x in _ends(r) for y in _ends(s)]
    low, high = min(corners), max(corners)
    return _finite(low), _finite(high)


_INF = float("inf")


def _ends(r: Range) -> tuple[float, float]:
    return -_INF if r[0] is None else r[0], _INF if r[1] is None else r[1]


def _product(x: float, y: float) -> float:
    return 0 if x == 0 or y == 0 else x * y  # ints stay exact; infinity appears only beside an infinity


def _finite(x: float) -> int | None:
    return None if x in (_INF, -_INF) else int(x)


def union(r: Range, s: Range) -> Range:
    """Returns the smallest interval that covers both."""
    return (None if r[0] is None or s[0] is None else min(r[0], s[0]),
            None if r[1] is None or s[1] is None else max(r[1], s[1]))


def intersect(r: Range, s: Range) -> Range:
    """Returns the intersection. It may be empty (low > high): the place is unreachable then, and every answer is right."""
    low = s[0] if r[0] is None else r[0] if s[0] is None else max(r[0], s[0])
    high = s[1] if r[1] is None else r[1] if s[1] is None else min(r[1], s[1])
    return low, high


def minimum(r: Range, s: Range) -> Range:
    """Returns the range of min(x, y)."""
    return (None if r[0] is None or s[0] is None else min(r[0], s[0]),
            s[1] if r[1] is None else r[1] if s[1] is None else min(r[1], s[1]))


def maximum(r: Range, s: Range) -> Range:
    """Returns the range of max(x, y)."""
    return (s[0] if r[0] is None else r[0] if s[0] is None else max(r[0], s[0]),
            None if r[1] is None or s[1] is None else max(r[1], s[1]))


def _parts(s: Range) -> tuple[Range | None, Range | None, bool]:
    """Returns the positive divisors of `s`, the negated negative ones, and whether 0 is one."""
    low, high = s
    positive: Range | None = None if high is not None and high < 1 else (max(low or 1, 1), high)
    negative: Range | None = None if low is not None and low > -1 else (max(-high, 1) if high is not None else 1,
                                                                          None if low is None else -low)
    return positive, negative, (low is None or low <= 0) and (high is None or high >= 0)


def _join(pieces: list[Range]) -> Range:
    result = pieces[0]
    for piece in pieces[1:]:
        result = union(result, piece)
    return result


def floordiv(r: Range, s: Range) -> Range:
    """Returns the range of x // y, which is 0 for y = 0."""
    positive, negative, zero = _parts(s)
    pieces = [_floordiv_positive(r, positive)] if positive else []
    pieces += [_floordiv_positive(negate(r), negative)] if negative else []
    return _join(pieces + [(0, 0)] * zero) if pieces or zero else EVERYTHING


def _floordiv_positive(r: Range, s: Range) -> Range:
    low, high = r
    p, q = s
    assert p is not None
    if low is not None:
        low = low // p if low < 0 else 0 if q is None else low // q
    if high is not None:
        high = high // p if high >= 0 else -1 if q is None else high // q
    return low, high


def truncdiv(r: Range, s: Range) -> Range:
    """Returns the range of trunc(x / y), which is 0 for y = 0."""
    positive, negative, zero = _parts(s)
    pieces = [_truncdiv_positive(r, positive)] if positive else []
    pieces += [_truncdiv_positive(negate(r), negative)] if negative else []
    return _join(pieces + [(0, 0)] * zero) if pieces or zero else EVERYTHING


def _truncdiv_positive(r: Range, s: Range) -> Range:
    low, high = r
    p, q = s
    assert p is not None
    if low is not None:
        low = -(-low // p) if low < 0 else 0 if q is None else low // q
    if high is not None:
        high = high // p if high >= 0 else 0 if q is None else -(-high // q)
    return low, high


def floormod(r: Range, s: Range) -> Range:
    """Returns the range of x - (x // y) * y, which is 0 for y = 0."""
    if s[0] is not None and s[0] == s[1] and s[0] > 0 and r[0] is not None and r[1] is not None \
            and r[0] // s[0] == r[1] // s[0]:
        return r[0] % s[0], r[1] % s[0]
    positive, negative, zero = _parts(s)
    pieces: list[Range] = []
    if positive:
        top = None if positive[1] is None else positive[1] - 1
        pieces.append((0, top) if r[0] is None or r[0] < 0 else minimum((0, top), (0, r[1])))
    if negative:
        bottom = None if negative[1] is None else 1 - negative[1]
        pieces.append((bottom, 0) if r[1] is None or r[1] > 0 else maximum((bottom, 0), (r[0], 0)))
    return _join(pieces + [(0, 0)] * zero) if pieces or zero else EVERYTHING


def truncmod(r: Range, s: Range) -> Range:
    """Returns the range of x - trunc(x / y) * y, 0 for y = 0: the sign of x, smaller than |y| and no larger than |x|."""
    positive, negative, _ = _parts(s)
    if (positive and positive[1] is None) or (negative and negative[1] is None):
        top = None
    else:
        top = max([part[1] - 1 for part in (positive, negative) if part and part[1] is not None] + [0])
    low = 0 if r[0] is not None and r[0] >= 0 else maximum((r[0], 0), (None if top is None else -top, 0))[0]
    high = 0 if r[1] is not None and r[1] <= 0 else minimum((0, r[1]), (0, top))[1]
    return low, high


def within(r: Range, s: Range) -> bool:
    """Tells whether every number of `r` lies in `s`."""
    return (s[0] is None or (r[0] is not None and r[0] >= s[0])) and (s[1] is None or (r[1] is not None and r[1] <= s[1]))
