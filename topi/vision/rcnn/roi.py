"""Regions of interest of images, resampled to one size: by averages between pixels, and by maxima of pixels.

A region is (image, x, y, x, y) in pixels of an image of which the data are `spatial_scale` times the size.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from tedsl import te, tir
from tedsl.errors import ArgumentError, ShapeError
from topi.arguments import checked
from topi.extents import as_int, constant, opening, require_floats, require_shape, shown
from topi.nn.pool.layout import lowest, wide
from topi.statements import loops, rows_kind, store
from topi.threads.launch import independently

Size = Annotated[Any, int, Sequence[int]]
_MODES: dict[Any, str] = {"avg": "avg", b"avg": "avg", 0: "avg", "max": "max", b"max": "max", 1: "max"}
_CHANNELS = 4096  # of which a thread keeps the sums of a part: 16 KB, half of the nearest cache
_LANES = 16  # channels side by side: a vector of 512 bits, two of 256, of float32
EDGE = 1e-5  # borders of parts that rounding has moved by less than this are the same


@checked
def roi_align_nchw(data: te.Tensor, rois: te.Tensor, pooled_size: Size, spatial_scale: float, mode: Any = "avg",
                   sample_ratio: int = -1) -> te.Tensor:
    """Averages or maxima of samples between pixels in equal parts of regions (He et al., Mask R-CNN, 2017).

    data: (batch, channels, height, width); rois: (regions, 5), (image, x, y, x, y). The result is (regions, channels,
    *pooled_size). A part is sampled at sample_ratio x sample_ratio points, for -1 at as many as it is pixels wide and high,
    rounded up, by linear interpolation; points more than a pixel outside of the image are 0. mode: "avg" or 0, "max" or 1.
    Regions are at least 1 x 1. Averages are those of ONNX RoiAlign with coordinate_transformation_mode output_half_pixel.
    """
    return _roi_align("roi_align_nchw", data, rois, pooled_size, spatial_scale, mode, sample_ratio, "NCHW")


@checked
def roi_align_nhwc(data: te.Tensor, rois: te.Tensor, pooled_size: Size, spatial_scale: float, mode: Any = "avg",
                   sample_ratio: int = -1) -> te.Tensor:
    """Like `roi_align_nchw` for data (batch, height, width, channels); the result is (regions, *pooled_size, channels)."""
    return _roi_align("roi_align_nhwc", data, rois, pooled_size, spatial_scale, mode, sample_ratio, "NHWC")


def _roi_align(operator: str, data: te.Tensor, rois: te.Tensor, pooled_size: Any, spatial_scale: Any, mode: Any,
               sample_ratio: int, layout: str) -> te.Tensor:
    where, sizes = _checked(operator, data, rois, pooled_size, layout)
    kind = _MODES.get(mode) if isinstance(mode, (str, bytes, int)) else None
    if kind is None:
        raise ArgumentError(f"{where}: there is no mode {mode!r}", hint='choose "avg" or "max"')
    scale = constant(spatial_scale, rois.dtype, where, "spatial_scale")
    extent = dict(zip(layout, data.shape))
    shape = {"N": rois.shape[0], "C": extent["C"], "H": sizes[0], "W": sizes[1]}
    total_of = te.const(0, wide(data.dtype)).dtype
    start = te.const(0, total_of) if kind == "avg" else lowest(total_of)
    channels = as_int(extent["C"]) or 0  # 0 also for those that only a call knows

    def joined(total: Any, value: Any) -> Any:
        return total + value if kind == "avg" else te.max(total, value)

    def finished(total: Any, count: Any) -> Any:
        return (total / count if kind == "avg" else total).astype(data.dtype)

    def at(letters: dict[str, Any]) -> tuple[Any, ...]:
        return tuple([letters[letter] for letter in layout])

    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        (source, regions), place = ins, dict(zip(layout, index))
        part = _Part(ib, regions, place, sizes, scale, sample_ratio)
        total = ib.allocate(total_of, (1,), name="total", scope="local")
        total[0] = start
        with part.samples(extent, total_of) as sample:
            total[0] = joined(total[0], sample.value(lambda h, w: source[at({**part.image, "C": place["C"], "H": h, "W": w})]))
        outs[0][index] = finished(total[0], part.count.astype(total_of))

    def by_parts(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, regions, result = (ib.buffer_ptr(one) for one in (*ins, *outs))
        with loops(ib, (shape["N"], *sizes), rows_kind(tuple(shape.values()))) as index:
            place = dict(zip("NHW", index))
            part = _Part(ib, regions, place, sizes, scale, sample_ratio)
            totals = ib.allocate(total_of, (channels,), name="totals", scope="local")
            _each(ib, channels, layout, lambda c: store(totals, c, start))
            with part.samples(extent, total_of) as sample:
                _each(ib, channels, layout, lambda c: store(totals, c, joined(totals[c], sample.value(
                    lambda h, w: source[at({**part.image, "C": c, "H": h, "W": w})]))))
            count = ib.let("count", part.count.astype(total_of))
            _each(ib, channels, layout, lambda c: store(result, at({**place, "C": c}), finished(totals[c], count)))
        made: tir.Stmt = ib.get()
        return made

    statements = independently(at(shape), write)
    if 0 < channels <= _CHANNELS:
        statements["fcompute"] = by_parts
    made: te.Tensor = te.extern([at(shape)], [data, rois], **statements, name=operator, dtype=data.dtype,
                                tag=f"pool,{operator}")
    return made


class _Part:
    """One part of one region: its image, and the points at which it is sampled."""

    def __init__(self, ib: Any, regions: Any, place: dict[str, Any], sizes: Sequence[int], scale: Any, ratio: int) -> None:
        self.ib, self.of = ib, scale.dtype
        self.grid, self.first, self.step = [], [], []
        single = te.const(1, self.of)
        for d, (axis, size) in enumerate(zip("HW", sizes)):
            start, end = (regions[place["N"], at] * scale for at in (2 - d, 4 - d))
            part = ib.let("part", te.max(end - start, single) / te.const(size, self.of))
            self.grid.append(ib.let("samples", te.ceil(part).astype("int32") if ratio <= 0 else te.const(ratio)))
            self.first.append(ib.let("first", start + place[axis].astype(self.of) * part))
            self.step.append(ib.let("step", part / self.grid[d].astype(self.of)))
        self.image = {"N": ib.let("image", regions[place["N"], 0].astype("int32"))}
        self.count = self.grid[0] * self.grid[1]

    @contextmanager
    def samples(self, extent: dict[str, Any], dtype: Any) -> Iterator[_Sample]:
        """Loops over the points; passes each of them."""
        half = te.const(0.5, self.of)
        with self.ib.for_range(0, self.grid[0], name="sy") as sy, self.ib.for_range(0, self.grid[1], name="sx") as sx:
            y, x = (self.ib.let("point", start + (s.astype(self.of) + half) * width)
                    for start, s, width in zip(self.first, (sy, sx), self.step))
            yield _Sample(self.ib, y, x, extent["H"], extent["W"], dtype)


class _Sample:
    """A point between pixels: the four around it with their shares, and whether it is over a pixel outside of the image."""

    def __init__(self, ib: Any, y: Any, x: Any, height: Any, width: Any, dtype: Any) -> None:
        self.dtype = dtype
        outside = tir.const(False, "bool")
        lines: list[list[tuple[Any, Any]]] = []
        for point, extent in ((y, height), (x, width)):
            outside = tir.any(outside, point < te.const(-1, point.dtype), point > extent.astype(point.dtype))
            inside = ib.let("inside", te.max(te.min(point, (extent - 1).astype(point.dtype)), te.const(0, point.dtype)))
            low = ib.let("low", te.floor(inside).astype("int32"))
            share = ib.let("share", (inside - low.astype(point.dtype)).astype(dtype))
            lines.append([(low, te.const(1, dtype) - share), (ib.let("next", te.min(low + 1, extent - 1)), share)])
        self.outside = ib.let("outside", outside)
        self.corners = [(row, column, ib.let("weight", above * left))
                        for (row, above), (column, left) in itertools.product(*lines)]

    def value(self, pixel: Callable[[Any, Any], Any]) -> Any:
        """The value at the point, 0 outside; pixel: the value at a row and a column."""
        total: Any = te.const(0, self.dtype)
        for row, column, weight in self.corners:
            total = total + pixel(row, column).astype(self.dtype) * weight
        return tir.Select(self.outside, te.const(0, self.dtype), total)  # the pixels are there in any case


def _each(ib: Any, channels: int, layout: str, write: Callable[[Any], None]) -> None:
    """Writes statements for every channel: in vectors where channels are neighbours in memory."""
    whole = channels // _LANES * _LANES if layout == "NHWC" else 0
    if whole:
        with (ib.for_range(0, channels // _LANES, name="co") as co,
              ib.for_range(0, _LANES, name="ci", kind="vectorize") as ci):
            write(co * _LANES + ci)
    if whole < channels:
        with ib.for_range(0, channels - whole, name="c") as c:
            write(c + whole)


@checked
def roi_pool_nchw(data: te.Tensor, rois: te.Tensor, pooled_size: Size, spatial_scale: float) -> te.Tensor:
    """Maxima of the pixels in equal parts of regions, 0 where a part has none (Girshick, Fast R-CNN, 2015).

    data: (batch, channels, height, width); rois: (regions, 5), (image, x, y, x, y) with both corners inside. The result is
    (regions, channels, *pooled_size). Corners are rounded to pixels; parts overlap where their borders are between pixels.
    """
    where, sizes = _checked("roi_pool_nchw", data, rois, pooled_size, "NCHW")
    scale, edge = constant(spatial_scale, rois.dtype, where, "spatial_scale"), te.const(EDGE, rois.dtype)
    shape = (rois.shape[0], data.shape[1], *sizes)

    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        (source, regions), (n, c, *place) = ins, index
        spans = []
        for d, (own, size, extent) in enumerate(zip(place, sizes, data.shape[2:])):
            start, end = (ib.let("corner", te.round(regions[n, at] * scale).astype("int32")) for at in (2 - d, 4 - d))
            part = ib.let("part", te.max(end - start + 1, 1).astype(rois.dtype) / te.const(size, rois.dtype))
            low = te.floor(own.astype(rois.dtype) * part + edge).astype("int32") + start
            high = te.ceil((own + 1).astype(rois.dtype) * part - edge).astype("int32") + start
            spans.append([ib.let("border", te.min(te.max(border, 0), extent)) for border in (low, high)])
        image = ib.let("image", regions[n, 0].astype("int32"))
        most = ib.allocate(data.dtype, (1,), name="most", scope="local")
        empty = tir.any(*[low >= high for low, high in spans])
        most[0] = te.if_then_else(empty, te.const(0, data.dtype), lowest(data.dtype))
        with ib.for_range(*spans[0], name="y") as y, ib.for_range(*spans[1], name="x") as x:
            most[0] = te.max(most[0], source[image, c, y, x])
        outs[0][index] = most[0]

    made: te.Tensor = te.extern([shape], [data, rois], **independently(shape, write), name="roi_pool_nchw", dtype=data.dtype,
                                tag="pool,roi_pool")
    return made


def _checked(operator: str, data: te.Tensor, rois: te.Tensor, pooled_size: Any, layout: str) -> tuple[str, list[int]]:
    """The beginning of messages, and the height and width of the result."""
    where = opening(operator, data, rois)
    require_shape(data, [None] * 4, where, f"data has the layout {layout}")
    require_shape(rois, [None, 5], where, "rois are (image, x, y, x, y) for each region")
    require_floats(data, where)
    require_floats(rois, where)
    given = list(pooled_size) if isinstance(pooled_size, (list, tuple)) else [pooled_size] * 2
    sizes = [as_int(size) or 0 for size in given]
    if len(sizes) != 2 or min(sizes) < 1:
        raise ShapeError(f"{where}: pooled_size is {shown(given)}", hint="an int from 1 on, or two: height and width")
    return where, sizes
