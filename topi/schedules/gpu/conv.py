"""Convolutions: a block computes a tile of channels and pixels from shared memory that its threads fill.

Each of the three axes of the result (channels, rows, columns) is in four parts: blocks, virtual threads, threads, and results
of a thread. The reduction is in two: what is in shared memory at a time, and the steps over it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from tedsl.errors import ArgumentError
from tedsl.record import record
from topi.kinds import DepthwiseConvOp
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.gpu.block_tiles import block_tile, element_threads, evenly, unrolled_statements
from topi.schedules.gpu.limits import Limits, check_threads, limits_of
from topi.schedules.gpu.parts import bind, fill_shared, in_four
from topi.schedules.gpu.reduce import schedule_reduce
from topi.schedules.kernel import Kernel

_SPACE = "DHW"
_UNROLLED = 512  # statements


@record
class ConvTiles:
    """The parts of each loop, outer ones first: channels f, rows y and columns x of the result as (blocks, virtual threads,
    threads, results of a thread); the reduced channels rc and the window ry, rx as (steps, terms in shared memory).

    The first number of each is what the others leave of the extent. unroll: loops inside a thread are unrolled to at most so
    many statements; explicit: as copies, and not by the code generator.
    """

    f: tuple[int, int, int, int]
    y: tuple[int, int, int, int]
    x: tuple[int, int, int, int]
    rc: tuple[int, int]
    ry: tuple[int, int]
    rx: tuple[int, int]
    unroll: int = _UNROLLED
    explicit: bool = True


def schedule_conv(kernel: Kernel, tiles: ConvTiles | None = None) -> None:
    """Bind tiles of the result to blocks of threads. tiles: None for those of the model (`block_tiles.py`)."""
    axes = (*kernel.tail.axis, *kernel.anchor.reduce_axis)
    if kernel.record.layout[0] != "N" or any(extent_of(axis) is None for axis in axes):
        schedule_reduce(kernel)
        return
    limits = limits_of(kernel.target)
    if tiles is not None:
        _check(tiles, limits)
    _tiled(kernel, tiles or _modelled(kernel, limits))


def _check(tiles: ConvTiles, limits: Limits) -> None:
    """Refuses tiles whose parts are not positive numbers, and blocks of more threads than the device has."""
    for name, count in (("f", 4), ("y", 4), ("x", 4), ("rc", 2), ("ry", 2), ("rx", 2)):
        sizes = getattr(tiles, name)
        if not isinstance(sizes, tuple) or len(sizes) != count or not all(type(n) is int and n > 0 for n in sizes):
            raise ArgumentError(f"ConvTiles: {name} is {sizes!r}, not a tuple of {count} positive numbers",
                                hint="blocks, virtual threads, threads and results of a thread" if count == 4 else
                                "steps and terms in shared memory")
    check_threads("ConvTiles", {"f": tiles.f[2], "y": tiles.y[2], "x": tiles.x[2]}, limits)


def _tiled(kernel: Kernel, tiles: ConvTiles) -> None:
    s = kernel.schedule
    if kernel.fused:
        s[kernel.anchor].set_scope("local")
    sums = s[kernel.anchor if kernel.fused else s.cache_write(kernel.tail.output(0), "local").op]
    shared = [s[s.cache_read(tensor, "shared", [sums.op])] for tensor in (kernel.record.padded, kernel.record.kernel)]
    tail = s[kernel.tail]
    axis = dict(zip(kernel.record.layout, tail.op.axis))
    whole = [axis[letter] for letter in kernel.record.layout if letter == "N" or letter == "D"]
    sizes_of = {"C": tiles.f, "H": tiles.y, "W": tiles.x}
    letters = [letter for letter in kernel.record.layout if letter in sizes_of]
    directions = "zyx" if len(letters) == 3 else "zx"  # neighbours in memory are in threadIdx.x
    named = [(axis[letter], sizes_of[letter], direction) for letter, direction in zip(letters, directions)]
    parts = [in_four(tail, loop, sizes) for loop, sizes, _ in named]
    names = [name for _, _, name in named]
    blocks, virtual, threads, results = zip(*parts)
    tail.reorder(*whole, *blocks, *virtual, *threads, *results)
    blocks = (tail.fuse(*whole, blocks[0]), *blocks[1:])
    bind(tail, blocks, [f"blockIdx.{name}" for name in names])
    bind(tail, virtual, ["vthread"] * len(names))
    bind(tail, threads, [f"threadIdx.{name}" for name in names])
    sums.compute_at(tail, threads[-1])
    step = _steps(sums, kernel, tiles)
    counts = [(f"threadIdx.{name}", sizes[2]) for (_, sizes, name) in named]
    for stage in shared:
        fill_shared(stage, sums, step, counts)
    tail.pragma(blocks[0], "auto_unroll_max_step", tiles.unroll)
    tail.pragma(blocks[0], "unroll_explicit", int(tiles.explicit))


def _steps(sums: Any, kernel: Kernel, tiles: ConvTiles) -> Any:
    """Splits the reduction; returns the loop inside of which a part of the operands is in shared memory."""
    reduced = dict(zip([letter for letter in kernel.record.kernel_layout if letter in "IDHW"], sums.op.reduce_axis))
    sizes = {"I": tiles.rc, "H": tiles.ry, "W": tiles.rx}
    split = {letter: sums.split(loop, factor=sizes[letter][1]) for letter, loop in reduced.items() if letter in sizes}
    order = [letter for letter in ("I", "H", "W") if letter in split]
    steps, terms = [split[letter][0] for letter in order], [split[letter][1] for letter in order]
    deep = [reduced["D"]] if "D" in reduced else []
    sums.reorder(*deep, *steps, *terms, *sums.op.axis)
    return steps[-1]


# --- the model --------------------------------------------------------------------------------------------------------

def _modelled(kernel: Kernel, limits: Limits) -> ConvTiles:
    """The tiles of the product that the convolution is: channels x pixels, over the reduced channels and the window."""
    record = kernel.record
    size = {letter: extent_of(axis) or 1 for letter, axis in zip(record.layout, kernel.tail.axis)}
    window = {letter: constant(n) or 1 for letter, n in zip(record.kernel_layout, record.kernel.shape)}
    height, width = size.get("H", 1), size["W"]
    terms = product([extent_of(axis) for axis in kernel.anchor.reduce_axis]) or 1
    bytes_of = record.padded.dtype.bits // 8
    batch = size["N"] * size.get("D", 1)
    if isinstance(record, DepthwiseConvOp):
        (channels, each), (pixels, results) = _of_channels(size, limits, record.layout[-1] == "C")
    else:
        group = max(1, size["C"] // record.groups)  # a block reads the channels of one group
        sides = (group, height * width) if record.layout[-1] != "C" else (height * width, group)
        tile = block_tile(*sides, terms, batch * record.groups, bytes_of, limits)
        (channels, each), (pixels, results) = (tile.threads_down, tile.down), (tile.threads_across, tile.across)
        if record.layout[-1] == "C":
            (channels, each), (pixels, results) = (pixels, results), (channels, each)
    across = min(pixels, _power(width))
    rows = min(pixels // across, _power(height))
    each_x = min(evenly(width, across, results), -(-width // across))
    each_y = min(max(1, results // each_x), -(-height // rows))
    x, y, f = (1, each_x, across, 1), (1, each_y, rows, 1), (1, each, channels, 1)
    rc, ry, rx = _shares(record, window, f, y, x, limits)
    unroll = unrolled_statements(f[1], y[1] * x[1], f[2] * y[2] * x[2], limits)
    return ConvTiles(f, y, x, rc, ry, rx, min(_UNROLLED, unroll))


def _of_channels(size: dict[str, int], limits: Limits, last: bool) -> tuple[tuple[int, int], tuple[int, int]]:
    """Threads, and results of each, along channels and along pixels, for channels that have nothing in common.

    Neighbours in memory fill warps; a thread has several results where there are still as many blocks as processors.
    """
    pixels = size.get("H", 1) * size["W"]
    threads = _power(element_threads(size["N"] * size["C"] * pixels, 1, limits) + 1) // 2  # a power of two, at most so many
    first, other = (size["C"], pixels) if last else (pixels, size["C"])
    along = min(limits.warp if last else threads, _power(first))
    beside = min(max(1, threads // along), _power(other))
    results = next((each for each in (4, 2, 1) if size["N"] * size["C"] * pixels >= limits.processors * threads * each), 1)
    return ((along, 1), (beside, results)) if last else ((beside, 1), (along, results))


_Shares: TypeAlias = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]


def _shares(record: Any, window: dict[str, int], f: Any, y: Any, x: Any, limits: Limits) -> _Shares:
    """How many channels and which part of the window are in shared memory at a time: the most that fill a quarter of it."""
    stride = dict(zip([letter for letter in record.layout if letter in _SPACE], record.strides))
    holes = dict(zip([letter for letter in record.layout if letter in _SPACE], record.dilation))
    room = limits.shared // 4 // (record.padded.dtype.bits // 8)

    def words(channels: int, high: int, wide: int) -> int:
        tall = (y[1] * y[2] - 1) * stride.get("H", 1) + (high - 1) * holes.get("H", 1) + 1
        long = (x[1] * x[2] - 1) * stride["W"] + (wide - 1) * holes["W"] + 1
        own = f[1] * f[2]
        return int(own * (tall * long + high * wide) if "M" in window else channels * (tall * long + own * high * wide))

    high, wide = window.get("H", 1), window["W"]
    choices = [(high, wide), (1, wide), (1, 1)]
    part = next((choice for choice in choices if words(1, *choice) <= room), choices[-1])
    channels = 1
    while channels * 2 <= window.get("I", 1) and words(channels * 2, *part) <= room and channels * 2 * part[0] * part[1] <= 64:
        channels *= 2
    return (1, channels), (1, part[0]), (1, part[1])


def _power(count: int) -> int:
    """The smallest power of two that is at least `count`."""
    return 1 << max(0, count - 1).bit_length()
