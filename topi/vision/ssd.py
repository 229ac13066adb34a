"""Operators of the detector SSD (Liu et al., 2016): anchor boxes, and boxes from what it predicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import ArgumentError, entries
from tedsl.target.generic import give_implementations
from topi.arguments import checked
from topi.elementwise import clip as clipped
from topi.extents import constant, indices_at, opening, require_floats, require_one_dtype, require_shape
from topi.injective import injective
from topi.threads.launch import independently
from topi.vision.nms import non_max_suppression

__all__ = ["multibox_detection", "multibox_prior", "multibox_transform_loc"]

Numbers = Sequence[float]


@checked
def multibox_prior(data: te.Tensor, sizes: Numbers = (1,), ratios: Numbers = (1,), steps: Numbers = (-1, -1),
                   offsets: Numbers = (0.5, 0.5), clip: bool = False) -> te.Tensor:
    """Anchor boxes around each pixel: of each size with the first ratio, then of the first size with each further ratio.

    data: (batch, channels, height, width), of which only the shape is used. The result is float32 (1, height * width *
    (sizes + ratios - 1), 4), corners (x, y, x, y) as fractions of the image. A box has the height size / sqrt(ratio), and
    size * sqrt(ratio) * height / width of the image as its width; the first ratio counts as 1. Its center is (index + offset)
    * step, of y and x in this order; a step not above 0 is 1 / extent. clip: corners are clipped to 0 to 1.
    """
    where = opening("multibox_prior", data)
    require_shape(data, [None] * 4, where, "data is (batch, channels, height, width)")
    sizes, ratios, steps, offsets = ([float(number) for number in numbers] for numbers in (sizes, ratios, steps, offsets))
    if not sizes or not ratios or len(steps) != 2 or len(offsets) != 2 or min(ratios) <= 0:
        raise ArgumentError(f"{where}: sizes {sizes}, ratios {ratios}, steps {steps}, offsets {offsets}",
                            hint="at least one size and one ratio above 0, two steps and two offsets (y, x)")
    extents = data.shape[2:]
    halves = [(size / 2, size / 2) for size in sizes] + [(sizes[0] / 2 / r**0.5, sizes[0] / 2 * r**0.5) for r in ratios[1:]]
    height, width = (extent.astype("float32") for extent in extents)

    def element(_: Any, n: Any, side: Any) -> Any:
        y, x, k = indices_at(n, (*extents, len(halves)))
        centers = [(index.astype("float32") + te.const(offset, "float32")) *
                   (te.const(step, "float32") if step > 0 else 1 / extent)
                   for index, offset, step, extent in zip((y, x), offsets, steps, (height, width))]
        reach_y = _chosen([half for half, _ in halves], k)
        reach_x = _chosen([half for _, half in halves], k) * height / width
        center, reach = tir.Select(side % 2 == 0, centers[1], centers[0]), tir.Select(side % 2 == 0, reach_x, reach_y)
        return tir.Select(side < 2, center - reach, center + reach)

    boxes = injective("multibox_prior", (1, extents[0] * extents[1] * len(halves), 4), element, name="multibox_prior",
                      tag="multibox_prior")
    return clipped(boxes, 0, 1) if clip else boxes


def _chosen(values: Sequence[float], k: Any) -> Any:
    """Value number k."""
    found = te.const(values[-1], "float32")
    for place in range(len(values) - 2, -1, -1):
        found = tir.Select(k == place, te.const(values[place], "float32"), found)
    return found


@checked
def multibox_transform_loc(cls_prob: te.Tensor, loc_pred: te.Tensor, anchor: te.Tensor, clip: bool = True,
                           threshold: float = 0.01, variances: Numbers = (0.1, 0.1, 0.2, 0.2)) -> list[te.Tensor]:
    """The boxes that are predicted to be of a class: (class, probability, x, y, x, y) for each, and how many of each image.

    cls_prob: (batch, classes, anchors), class 0 the background; loc_pred: (batch, anchors * 4), for each anchor how far its
    center moves and the logarithms of how much wider and higher it becomes, in units of `variances`; anchor: (1, anchors, 4),
    corners. A box has the most probable class but the background, counted from 0, if its probability is at least `threshold`;
    others are left out. clip: corners are clipped to 0 to 1. Returns boxes (batch, anchors, 6), -1 behind those of an image,
    and counts, int32 (batch,).
    """
    where = opening("multibox_transform_loc", cls_prob, loc_pred, anchor)
    require_shape(cls_prob, [None] * 3, where, "cls_prob is (batch, classes, anchors)")
    batch, classes, anchors = cls_prob.shape
    require_shape(loc_pred, [batch, anchors * 4], where, "loc_pred is (batch, anchors * 4)")
    require_shape(anchor, [1, anchors, 4], where, "anchor is (1, anchors, 4)")
    require_floats(cls_prob, where)
    require_one_dtype([cls_prob, loc_pred, anchor], where)
    dtype = cls_prob.dtype
    if len(variances) != 4:
        raise ArgumentError(f"{where}: variances are {list(variances)}", hint="four numbers: of x, y, width, height")
    spread, least = [constant(v, dtype, where, "variances") for v in variances], constant(threshold, dtype, where, "threshold")

    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        (probability, moves, corners), (boxes, counts), (i,) = ins, outs, index
        number = ib.allocate("int32", (2,), name="number", scope="local")  # of the boxes; the class
        score = ib.allocate(dtype, (1,), name="score", scope="local")
        number[0] = 0
        with ib.for_range(0, anchors, name="j") as j:
            score[0], number[1] = te.const(-1, dtype), 0
            with ib.for_range(1, classes, name="k") as k, ib.if_scope(probability[i, k, j] > score[0]):
                score[0], number[1] = probability[i, k, j], k.astype("int32")
            with ib.if_scope(tir.all(number[1] > 0, score[0] >= least)):
                box = _moved([corners[0, j, d] for d in range(4)], [moves[i, j * 4 + d] for d in range(4)], spread)
                limits = [te.max(te.min(side, te.const(1, dtype)), te.const(0, dtype)) if clip else side for side in box]
                for d, value in enumerate([(number[1] - 1).astype(dtype), score[0], *limits]):
                    boxes[i, number[0], d] = value
                number[0] = number[0] + 1
        counts[i] = number[0]
        with ib.for_range(number[0], anchors, name="j") as j, ib.for_range(0, 6, name="d") as d:
            boxes[i, j, d] = te.const(-1, dtype)

    made: list[te.Tensor] = te.extern([(batch, anchors, 6), (batch,)], [cls_prob, loc_pred, anchor],
                                      **independently((batch,), write, (classes, anchors), inside=True),
                                      name="multibox_transform_loc", dtype=[dtype, "int32"], tag="multibox_transform_loc")
    return made


def _moved(anchor: Sequence[Any], moves: Sequence[Any], spread: Sequence[Any]) -> list[Any]:
    """The corners of an anchor box after its center was moved and its sides were scaled."""
    half = te.const(0.5, anchor[0].dtype)
    low, high = [], []
    for d in (0, 1):
        extent, center = anchor[d + 2] - anchor[d], (anchor[d] + anchor[d + 2]) * half
        middle = moves[d] * spread[d] * extent + center
        reach = te.exp(moves[d + 2] * spread[d + 2]) * extent * half
        low.append(middle - reach)
        high.append(middle + reach)
    return [*low, *high]


@checked
def multibox_detection(cls_prob: te.Tensor, loc_pred: te.Tensor, anchor: te.Tensor, clip: bool = True, threshold: float = 0.01,
                       nms_threshold: float = 0.5, force_suppress: bool = False, variances: Numbers = (0.1, 0.1, 0.2, 0.2),
                       nms_topk: int = -1) -> te.Tensor:
    """The boxes of `multibox_transform_loc` by descending probability, with -1 for those that `non_max_suppression` removes.

    The result is (batch, anchors, 6), each box (class, probability, x, y, x, y). nms_threshold, force_suppress, nms_topk: the
    iou_threshold, force_suppress and top_k of non_max_suppression.
    """
    boxes, counts = multibox_transform_loc(cls_prob, loc_pred, anchor, clip, threshold, variances)
    detected: te.Tensor = non_max_suppression(boxes, counts, counts, -1, nms_threshold, force_suppress, nms_topk,
                                              return_indices=False)
    return detected


give_implementations(globals())
entries(globals())
