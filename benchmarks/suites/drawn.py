"""Shapes drawn at random: products, layers, convolutions, pools and reductions of the sizes that programs have."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.case import Case, Goal, Maker, maker
from benchmarks.networks import Conv
from benchmarks.suites import convolutions, images, products, rows
from benchmarks.suites.products import named

MOST = 6e8  # operations of a case
GOAL = Goal(0.8)


def between(draw: random.Random, low: int, high: int) -> int:
    """A number whose logarithm is uniform."""
    return min(high, int(low * (high / low) ** draw.random() + 0.5))


def _matmul(draw: random.Random, threads: int) -> Maker:
    while True:
        m, k, n = (between(draw, 1, 2048) for _ in range(3))
        if 1e4 < 2.0 * m * k * n <= MOST:
            return maker(f"matmul {m}x{k}x{n}", products.product, m, k, n, threads)


def _batch_matmul(draw: random.Random, threads: int) -> Maker:
    while True:
        batch, m, k, n = between(draw, 2, 64), *(between(draw, 8, 512) for _ in range(3))
        if 2.0 * batch * m * k * n <= MOST:
            return maker(f"batch_matmul {batch}x{m}x{k}x{n}", products.batch_matmul, batch, m, k, n, threads)


def _dense(draw: random.Random, threads: int) -> Maker:
    while True:
        m, k, n = between(draw, 1, 512), between(draw, 16, 4096), between(draw, 8, 4096)
        if 2.0 * m * k * n <= MOST:
            return maker(f"dense {m}x{k}x{n}", products.dense, m, k, n, threads)


def _conv(draw: random.Random, threads: int) -> Maker:
    while True:
        channels, filters, size = between(draw, 3, 512), between(draw, 8, 512), between(draw, 7, 112)
        spec = Conv(channels, size, filters, draw.choice((1, 1, 3, 3, 3, 5)), draw.choice((1, 1, 2)), activation="relu")
        if draw.random() < 0.2:
            spec = replace(spec, filters=channels, groups=channels, kernel=draw.choice((3, 3, 5)))
        if spec.kernel <= spec.size and spec.operations <= MOST:
            layout = draw.choice(("NHWC", "NCHW"))
            make = convolutions.nhwc if layout == "NHWC" else convolutions.nchw
            return maker(f"{spec} {layout}", make, spec, 1, threads)


def _pool(draw: random.Random, threads: int) -> Maker:
    kernel = draw.choice((2, 3, 3, 5))
    size = between(draw, 2 * kernel, 112)
    shape = (1, between(draw, 8, 512), size, size)
    spec = images.Pool(draw.choice(("max", "avg")), shape, kernel, draw.choice((1, 2)), draw.choice((0, kernel // 2)))
    return maker(str(spec), images.pool, spec, threads)


def _reduction(draw: random.Random, threads: int) -> Maker:
    rank = draw.choice((2, 2, 3, 4))
    most = {2: 4096, 3: 256, 4: 64}[rank]
    shape = tuple(between(draw, 2, most) for _ in range(rank))
    axis, kind = draw.randrange(rank), draw.choice(("sum", "max", "argmax"))
    return maker(f"{kind} {named(shape)}, axis {axis}", rows.reduction, kind, shape, axis, threads)


KINDS: tuple[Callable[[random.Random, int], Maker], ...] = (
    _matmul, _batch_matmul, _dense, _conv, _conv, _conv, _pool, _reduction)


def _judged(make: Callable[..., Case], arguments: tuple[Any, ...]) -> Case:
    return replace(make(*arguments), row="random", goal=GOAL)


def cases(threads: int, count: int, seed: int) -> list[Maker]:
    """`count` different cases; the same for the same seed."""
    draw = random.Random(seed)
    found: dict[str, Maker] = {}
    while len(found) < count:
        made = KINDS[len(found) % len(KINDS)](draw, threads)
        found.setdefault(made.name, made)
    return [Maker(f"drawn: {made.name}", _judged, (made.make, made.arguments)) for made in found.values()]
