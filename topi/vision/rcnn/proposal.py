"""Region proposals of Faster R-CNN (Ren et al., 2015): anchors moved by what is predicted, the best without overlaps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import ArgumentError
from topi.arguments import checked
from topi.extents import as_int, indices_at, opening, require_floats, require_one_dtype, require_shape
from topi.ordering.sort import argsort
from topi.threads.launch import independently
from topi.vision.boxes import Box
from topi.vision.suppression import Greedy


@checked
def proposal(cls_prob: te.Tensor, bbox_pred: te.Tensor, im_info: te.Tensor, scales: Sequence[float], ratios: Sequence[float],
             feature_stride: int, threshold: float, rpn_pre_nms_top_n: int, rpn_post_nms_top_n: int, rpn_min_size: int,
             iou_loss: bool) -> te.Tensor:
    """The regions that are most probably objects: (image, x, y, x, y), rpn_post_nms_top_n for each image.

    cls_prob: (batch, 2 * anchors, height, width), of which the second half are probabilities of objects, with an anchor for
    each ratio and scale; bbox_pred: (batch, 4 * anchors, height, width); im_info: (batch, 3), height, width and scale of each
    image. Anchors stand around the pixels of a grid, feature_stride apart. They are moved by bbox_pred: center and logarithms
    of the sides, or with iou_loss the corners; then clipped to the image. Those smaller than rpn_min_size, and outside of the
    image, have the score -1. Of the rpn_pre_nms_top_n best (not above 0: all) those that share more than `threshold` of the
    area with a better one are left out; those that stay are repeated as often as they are needed. The result is (batch *
    rpn_post_nms_top_n, 5).
    """
    where = opening("proposal", cls_prob, bbox_pred, im_info)
    anchors = len(scales) * len(ratios)
    require_shape(cls_prob, [None, 2 * anchors, None, None], where, "cls_prob is (batch, 2 * anchors, height, width)")
    batch, _, height, width = cls_prob.shape
    require_shape(bbox_pred, [batch, 4 * anchors, height, width], where, "bbox_pred is (batch, 4 * anchors, height, width)")
    require_shape(im_info, [batch, 3], where, "im_info is (height, width, scale) of each image")
    require_floats(cls_prob, where)
    require_one_dtype([cls_prob, bbox_pred, im_info], where)
    if not anchors or rpn_post_nms_top_n < 1 or feature_stride < 1 or min(*scales, *ratios) <= 0:
        raise ArgumentError(f"{where}: scales {list(scales)}, ratios {list(ratios)}, feature_stride {feature_stride}, "
                            f"rpn_post_nms_top_n {rpn_post_nms_top_n}", hint="at least one of each, above 0")
    count = height * width * anchors
    shapes = [_anchor(ratio, scale, feature_stride) for ratio in ratios for scale in scales]
    boxes = _boxes(cls_prob, bbox_pred, im_info, shapes, feature_stride, rpn_min_size, iou_loss)
    scores = te.compute((batch, count), lambda b, n: boxes[b, n, 4], name="scores", tag="bbox_score")
    order = argsort(scores, None, 1, False, "int32")
    best = te.min(count, rpn_pre_nms_top_n) if rpn_pre_nms_top_n > 0 else count
    kept = as_int(count) if as_int(count) is not None else count

    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        (found, sorted_), (target, stayed, sides), (b,) = ins, outs, index
        share = te.const(threshold, cls_prob.dtype)

        def box(j: Any) -> Box:
            place = ib.let("place", sorted_[b, j])
            return Box(*[ib.let("side", found[b, place, d]) for d in range(4)])

        number = Greedy(ib, best, te.const(rpn_post_nms_top_n, "int32"), (stayed, sides, lambda n: (b, n)),
                        box, lambda area: area > share, pixel=1.0).run(lambda j, n: None)
        with ib.for_range(0, rpn_post_nms_top_n, name="t") as t:
            row = b * rpn_post_nms_top_n + t
            source = ib.let("source", sorted_[b, stayed[b, t % te.max(number[0], 1)]])
            target[row, 0] = b.astype(cls_prob.dtype)
            for d in range(4):
                target[row, d + 1] = found[b, source, d]

    made = te.extern([(batch * rpn_post_nms_top_n, 5), (batch, kept), (batch, kept, 4)], [boxes, order],
                     **independently((batch,), write, (count, rpn_post_nms_top_n), inside=True), name="proposal",
                     dtype=[cls_prob.dtype, "int32", cls_prob.dtype], tag="proposal")
    regions: te.Tensor = made[0]
    return regions


def _anchor(ratio: float, scale: float, base: float) -> tuple[float, float, float, float]:
    """The corners of an anchor around the first pixel of the grid: sides rounded to pixels, scaled."""
    center, area = 0.5 * (base - 1.0), math.floor(base * base / ratio)
    narrow = math.floor(math.sqrt(area) + 0.5)
    wide, high = narrow * scale, math.floor(narrow * ratio + 0.5) * scale
    return (center - 0.5 * (wide - 1), center - 0.5 * (high - 1), center + 0.5 * (wide - 1), center + 0.5 * (high - 1))


def _boxes(cls_prob: te.Tensor, bbox_pred: te.Tensor, im_info: te.Tensor, shapes: Sequence[Sequence[float]], stride: int,
           least: Any, iou_loss: bool) -> te.Tensor:
    """(x, y, x, y, score) of each moved anchor, (batch, height * width * anchors, 5)."""
    batch, _, height, width = cls_prob.shape
    dtype, anchors = cls_prob.dtype, len(shapes)
    half, one, zero = te.const(0.5, dtype), te.const(1, dtype), te.const(0, dtype)

    def element(b: Any, n: Any, side: Any) -> Any:
        y, x, k = indices_at(n, (height, width, anchors))
        corners = [_chosen([shape[d] for shape in shapes], k, dtype) + (x, y)[d % 2].astype(dtype) * te.const(stride, dtype)
                   for d in range(4)]
        moves = [bbox_pred(b, k * 4 + d, y, x) for d in range(4)]
        box = [corner + move for corner, move in zip(corners, moves)] if iou_loss else _moved(corners, moves, half, one)
        box = [te.max(te.min(value, im_info[b, 1 - d % 2] - one), zero) for d, value in enumerate(box)]
        smallest = im_info[b, 2] * te.const(least, dtype)
        small = tir.any(box[2] - box[0] + one < smallest, box[3] - box[1] + one < smallest)
        grid = [(im_info[b, d] / te.const(stride, dtype)).astype("int32") for d in (0, 1)]
        outside = tir.any(y >= grid[0], x >= grid[1])
        score = tir.Select(tir.any(small, outside), te.const(-1, dtype), cls_prob(b, anchors + k, y, x))
        grown = [value + tir.Select(small, smallest * half * te.const(-1 if d < 2 else 1, dtype), zero)
                 for d, value in enumerate(box)]
        found = score
        for d in range(3, -1, -1):
            found = tir.Select(side == d, grown[d], found)
        return found

    made: te.Tensor = te.compute((batch, height * width * anchors, 5), element, name="proposal_boxes")
    return made


def _moved(corners: Sequence[Any], moves: Sequence[Any], half: Any, one: Any) -> list[Any]:
    """The corners of a box, whose corners are pixels, after its center was moved and its sides were scaled."""
    low, high = [], []
    for d in (0, 1):
        extent = corners[d + 2] - corners[d] + one
        center = moves[d] * extent + corners[d] + half * (extent - one)
        reach = half * (te.exp(moves[d + 2]) * extent - one)
        low.append(center - reach)
        high.append(center + reach)
    return [*low, *high]


def _chosen(values: Sequence[float], k: Any, dtype: Any) -> Any:
    """Value number k."""
    found = te.const(values[-1], dtype)
    for place in range(len(values) - 2, -1, -1):
        found = tir.Select(k == place, te.const(values[place], dtype), found)
    return found
