"""`python -m benchmarks.tile_search [--count 200] [--seed 0] [--kept FILE]`: register tiles that topi chooses, beside all.

For each of `count` random shapes, half of them products of matrices and half convolutions, every tile whose sums fit the
registers is built and measured (of convolutions those that take at most twice the least time by the model); the best few and
the chosen one are measured again in turns, and the best of these and the chosen one once more: the least of several medians is
less than its own time, so that it would be the best by luck. A line has the shape, the chosen tile and the best, and the part
of the best one's speed that the chosen one reaches in the last turns: medians. The last line says how many shapes reach 0.95.
One thread.

With `--kept FILE` each line is kept there as JSON, and shapes that are there are not measured again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tedsl
import topi
from benchmarks.measure import samples_of, seconds_of
from benchmarks.suites.drawn import between
from tedsl import te
from tedsl.target import Target
from topi.schedules.cpu import matmul
from topi.schedules.cpu.conv import tiles as image_tiles_of
from topi.schedules.cpu.conv.register_tiles import cycles_of_image, image_tiles
from topi.schedules.cpu.tiles import tiles_that_fit

NEAR = 0.95
FINAL, ROUNDS = 5, 15  # tiles that are measured again, and how often
LOOKED = 2.0  # times the least time by the model, beyond which tiles of convolutions are not built
MOST = 2e8  # operations
Tensors = list[Any]


class Tiles:
    """Stands for the function that chooses a tile. fit: what gives the tiles that fit, for the same arguments.

    all: these tiles; chosen: what the function says itself; given: what is taken instead.
    """

    def __init__(self, chooses: Callable[..., Any], fit: Callable[..., list[Any]]) -> None:
        self.chooses, self.fit, self.all, self.chosen, self.given = chooses, fit, list[Any](), None, None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.given is not None:
            return self.given
        self.chosen = self.chooses(*args, **kwargs)
        self.all = self.fit(*args, **kwargs)
        return self.chosen


def of_products() -> Tiles:
    """The tiles of matrix products."""
    def fit(rows: Any, columns: Any, terms: Any, lanes: int, target: Target, embeds: bool = True, panel: Any = None,
            block: Any = None, are_far: bool = False) -> list[Any]:
        return [(tall, vectors * lanes) for tall, vectors in
                tiles_that_fit(rows, columns, lanes, target, embeds and target.vector_bits == 512, panel, block)]

    return Tiles(matmul.tile_of, fit)


def of_images() -> Tiles:
    """The tiles of convolutions, without those that the model takes for slow."""
    def fit(target: Target, image: Any, channels: Any, terms: Any, lanes: int, apart: int, block: int = 1,
            whole: bool = False, dividing: bool = False, border: Any = None, copied: bool = True,
            room: Any = None) -> list[Any]:
        cycles = {tile: cycles_of_image(target, image, channels, terms, lanes, apart, tile, border, copied, room)
                  for tile in image_tiles(target, image, channels, lanes, block, whole, dividing)}
        least = min(cycles.values(), default=0.0)
        return [tile for tile, taken in cycles.items() if taken <= LOOKED * least]

    return Tiles(image_tiles_of.image_tile, fit)


@contextmanager
def replaced(module: ModuleType, name: str, by: Tiles) -> Iterator[None]:
    """Within this, a module calls another function."""
    setattr(module, name, by)
    try:
        yield
    finally:
        setattr(module, name, by.chooses)


def product(draw: random.Random) -> tuple[str, Tensors]:
    while True:
        m, k, n = (between(draw, 8, 1024) for _ in range(3))
        if 1e5 < 2.0 * m * k * n <= MOST:
            A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
            return f"matmul {m}x{k}x{n}", [A, B, topi.nn.matmul(A, B)]


def convolution(draw: random.Random) -> tuple[str, Tensors]:
    while True:
        inputs, outputs, size = between(draw, 8, 512), between(draw, 8, 512), between(draw, 7, 112)
        window, stride = draw.choice((1, 3, 3, 3, 5)), draw.choice((1, 1, 2))
        if 1e5 < 2.0 * inputs * outputs * window**2 * (size // stride) ** 2 <= MOST:
            x = te.placeholder((1, size, size, inputs), name="x")
            w = te.placeholder((window, window, inputs, outputs), name="w")
            y = topi.nn.conv2d_nhwc(x, w, stride, window // 2, 1)
            return f"conv {inputs}->{outputs} {size}² {window}x{window} by {stride}", [x, w, y]


def searched(tensors: Tensors, tiles: Tiles, module: ModuleType, name: str) -> tuple[str, str, float, int] | None:
    """The chosen tile, the best, the part of the best one's speed that the chosen one reaches, and how many were measured; None
    where the schedule has no such tiles.
    """
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal([int(extent) for extent in tensor.shape]).astype("float32") for tensor in tensors]

    def built(tile: Any) -> Callable[[], object]:
        tiles.given = tile
        kernel = tedsl.build(topi.schedules.schedule(tensors[-1]), tensors)
        return lambda: kernel(*arrays)

    with replaced(module, name, tiles):
        default = built(None)
        if tiles.chosen is None:
            return None
        made = {tiles.chosen: default} | {tile: built(tile) for tile in tiles.all if tile != tiles.chosen}
    rough = {tile: min([seconds_of(call) for _ in range(8)]) for tile, call in made.items()}

    def medians(of: list[Any]) -> dict[Any, float]:
        taken = samples_of({str(tile): made[tile] for tile in dict.fromkeys(of)}, rounds=ROUNDS, at_least=5e-4)
        return {tile: statistics.median(taken[str(tile)]) for tile in of}

    times = medians([*sorted(rough, key=lambda tile: rough[tile])[:FINAL], tiles.chosen])
    best = min(times, key=lambda tile: times[tile])
    times = medians([tiles.chosen, best])
    return str(tiles.chosen), str(best), times[best] / times[tiles.chosen], len(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("TEDSL_NUM_THREADS", "1")
    kept = {}
    if options.kept is not None and options.kept.exists():
        kept = {line["shape"]: line for line in map(json.loads, options.kept.read_text().splitlines())}
    draw, shares = random.Random(options.seed), list[float]()
    while len(shares) < options.count:
        is_product = len(shares) % 2 == 0
        shape, tensors = (product if is_product else convolution)(draw)
        if shape not in kept:
            found = searched(tensors, of_products(), matmul, "tile_of") if is_product else \
                searched(tensors, of_images(), image_tiles_of, "image_tile")
            if found is None:
                continue
            kept[shape] = dict(zip(("shape", "chosen", "best", "share", "tiles"), (shape, *found)))
            if options.kept is not None:
                with options.kept.open("a") as file:
                    file.write(json.dumps(kept[shape]) + "\n")
        line = kept[shape]
        shares.append(line["share"])
        print(f"{shape:34}  {line['chosen']:>36}  {line['best']:>36}  {line['share']:.2f} of {line['tiles']}", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, shares)))
    print(f"{sum(share >= NEAR for share in shares)} of {len(shares)} at {NEAR} of the best tile or more; "
          f"{mean:.3f} as a geometric mean, {min(shares):.2f} at least")


if __name__ == "__main__":
    main()
