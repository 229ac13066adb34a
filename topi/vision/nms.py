"""Boxes of detectors: those with a score, and those left by non-maximum suppression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from tedsl import te, tir
from tedsl.errors import ArgumentError, ShapeError
from tedsl.record import record
from topi.arguments import checked, takes_older_calls
from topi.extents import as_int, constant, opening, require_floats, require_integers, require_shape
from topi.indexing.take import gather
from topi.ordering.sort import argsort
from topi.reduction import sum
from topi.scan import cumsum
from topi.threads.launch import independently
from topi.transform.dims import reshape
from topi.vision.boxes import box_of
from topi.vision.suppression import Greedy

Threshold = Annotated[Any, float, te.Tensor]
Limit = Annotated[Any, int, te.Tensor]


@checked
def get_valid_counts(data: te.Tensor, score_threshold: Threshold = 0, id_index: int = 0,
                     score_index: int = 1) -> list[te.Tensor]:
    """The boxes whose score is above the threshold, in their order, and how many there are of each image.

    data: (batch, boxes, numbers) of floats. score_index: the number that is the score. id_index: the number that is the class,
    which must not be below 0; -1 for none. Returns the counts (batch,), int32; the boxes, -1 behind them, in the shape of
    `data`; and their places in `data`, -1 behind them, int32 (batch, boxes).
    """
    where = opening("get_valid_counts", data)
    fields = _fields(data, where)
    _require_field(score_index, fields, where, "score_index")
    _require_field(id_index, fields, where, "id_index", -1)
    batch, boxes = data.shape[:2]

    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        (source, *given), (counts, target, places), (i,) = ins, outs, index
        threshold = _value(score_threshold, given, data.dtype, where, "score_threshold")
        number = ib.allocate("int32", (1,), name="number", scope="local")
        number[0] = 0
        with ib.for_range(0, boxes, name="j") as j:
            real = source[i, j, id_index] >= te.const(0, data.dtype) if id_index >= 0 else tir.const(True, "bool")
            with ib.if_scope(tir.all(source[i, j, score_index] > threshold, real)):
                _copy(ib, target, (i, number[0]), fields, lambda k: source[i, j, k])
                places[i, number[0]] = j.astype("int32")
                number[0] = number[0] + 1
        counts[i] = number[0]
        with ib.for_range(number[0], boxes, name="j") as j:
            _copy(ib, target, (i, j), fields, lambda k: te.const(-1, data.dtype))
            places[i, j] = -1

    made: list[te.Tensor] = te.extern(
        [(batch,), data.shape, (batch, boxes)], [data, *_tensors(score_threshold)],
        **independently((batch,), write, data.shape[1:], inside=True), name="get_valid_counts",
        dtype=["int32", data.dtype, "int32"], tag="get_valid_counts")
    return made


@record
class _Selection:
    """The arguments of non_max_suppression that are numbers."""

    limit: Any
    threshold: Any
    force: bool
    top_k: int
    coord: int
    score: int
    label: int


def _with_indices(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of non_max_suppression; TVM 0.6 had no indices behind valid_count."""
    without = len(args) > 2 and "indices" not in kwargs and args[2] is not None and not isinstance(args[2], te.Tensor)
    return (*args[:2], None, *args[2:]) if without else args


@takes_older_calls(_with_indices)
@checked
def non_max_suppression(data: te.Tensor, valid_count: te.Tensor, indices: te.Tensor | None = None, max_output_size: Limit = -1,
                        iou_threshold: Threshold = 0.5, force_suppress: bool = False, top_k: int = -1, coord_start: int = 2,
                        score_index: int = 1, id_index: int = 0, return_indices: bool = True,
                        invalid_to_bottom: bool = False) -> Any:
    """The boxes of each image in the order of their scores, without those that overlap a better one of the same class.

    data: (batch, boxes, numbers) of floats, of which the first valid_count[i] of image i are considered, at most the `top_k`
    best. The numbers from coord_start on are two opposite corners, score_index is the score and id_index the class (-1: one
    class); with force_suppress classes do not count. Boxes go where the area that they share is at least iou_threshold of the
    area that they cover; where the threshold is not above 0 all stay as they are. At most max_output_size stay, all if it is
    below 0. A box whose score is not above 0 stays, and is neither compared nor counted.

    Returns, with return_indices, their places, indices[i, place in data], -1 behind them, int32 (batch, boxes), and how many
    there are, int32 (batch, 1). Else a tensor like `data`: a box that went is -1; with invalid_to_bottom those whose first
    number is not below 0 stand first. get_valid_counts gives valid_count and indices; only return_indices reads `indices`,
    which are those of `data` where none are given.
    """
    where = opening("non_max_suppression", data, valid_count)
    fields = _fields(data, where)
    batch, boxes = data.shape[:2]
    _require_field(score_index, fields, where, "score_index")
    _require_field(id_index, fields, where, "id_index", -1)
    _require_field(coord_start, fields - 3, where, "coord_start")
    require_shape(valid_count, [batch], where, "a count for each image")
    require_integers(valid_count, where, "valid_count")
    if return_indices and indices is None:
        indices = te.compute((batch, boxes), lambda i, j: j.astype("int32"), name="places")
    if return_indices:
        assert indices is not None
        require_shape(indices, [batch, boxes], where, "indices are the places of the boxes in the data")
        require_integers(indices, where)
    scores = te.compute((batch, boxes), lambda i, j: data[i, j, score_index], name="scores")
    order = argsort(scores, valid_count, 1, False)
    selection = _Selection(max_output_size, iou_threshold, force_suppress, top_k, coord_start, score_index, id_index)
    shapes = [(batch, boxes), (batch, 1)] if return_indices else [data.shape]
    dtypes = ["int32", "int32"] if return_indices else [data.dtype]

    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        source, sorted_, counts, *given = ins
        numbers = ib.allocate("int32", (1,), name="written", scope="local")
        numbers[0] = 0
        emit = _emit_places(ib, given.pop(0), outs, index[0], numbers, boxes) if return_indices else \
            _emit_boxes(ib, source, outs, index[0], numbers, fields, invalid_to_bottom)
        _select(ib, source, sorted_, counts, given, (outs[-2], outs[-1]), index[0], boxes, selection, emit, where)
        with ib.for_range(numbers[0], boxes, name="j") as j:
            if return_indices:
                outs[0][index[0], j] = -1
            else:
                _copy(ib, outs[0], (index[0], j), fields, lambda k: te.const(-1, data.dtype))
        if return_indices:
            outs[1][index[0], 0] = numbers[0]

    inputs = [data, order, valid_count, *([indices] if return_indices and indices is not None else []),
              *_tensors(max_output_size), *_tensors(iou_threshold)]
    *made, _, _ = te.extern([*shapes, (batch, boxes), (batch, boxes, 4)], inputs,
                            **independently((batch,), write, data.shape[1:], inside=True), name="non_max_suppression",
                            dtype=[*dtypes, "int32", data.dtype], tag="nms")
    return made if return_indices else made[0]


Emit = tuple[Callable[[Any], None], Callable[[], None]]  # writes the box at a place of the data; writes that a box went


def _emit_places(ib: Any, indices: Any, outs: list[Any], i: Any, numbers: Any, boxes: Any) -> Emit:
    """Stores places of boxes that stay one behind the other."""
    def stays(place: Any) -> None:
        given = ib.let("given", indices[i, place].astype("int32"))
        with ib.if_scope(given >= 0):
            outs[0][i, numbers[0]] = given
            numbers[0] = numbers[0] + 1

    return stays, lambda: None


def _emit_boxes(ib: Any, source: Any, outs: list[Any], i: Any, numbers: Any, fields: int, compact: bool) -> Emit:
    """Stores boxes that stay, and -1 for those that went; compact: only those whose first number is not below 0."""
    dtype = source.dtype

    def stays(place: Any) -> None:
        with ib.if_scope(source[i, place, 0] >= te.const(0, dtype) if compact else tir.const(True, "bool")):
            _copy(ib, outs[0], (i, numbers[0]), fields, lambda k: source[i, place, k])
            numbers[0] = numbers[0] + 1

    def goes() -> None:
        if not compact:
            _copy(ib, outs[0], (i, numbers[0]), fields, lambda k: te.const(-1, dtype))
            numbers[0] = numbers[0] + 1

    return stays, goes


def _select(ib: Any, source: Any, order: Any, counts: Any, given: list[Any], kept: tuple[Any, Any], i: Any, boxes: Any,
            s: _Selection, emit: Emit, where: str) -> None:
    """Suppression among the boxes of image i, or where its threshold is not above 0 a copy of them."""
    count = ib.let("count", te.max(te.min(counts[i].astype("int32"), boxes), 0))
    limit = ib.let("limit", _limit(s.limit, given, boxes, te.const(0, "int32")))
    threshold = ib.let("threshold", _value(s.threshold, given, source.dtype, where, "iou_threshold"))
    best = te.min(count, s.top_k) if s.top_k > 0 else count
    zero = te.const(0, source.dtype)

    def number(j: Any, field: int) -> Any:
        return source[i, order[i, j], field]

    def comparable(j: Any, k: Any) -> Any:
        if s.label < 0:
            return tir.const(True, "bool")
        alike = tir.const(True, "bool") if s.force else number(j, s.label) == number(k, s.label)
        return tir.all(number(k, s.label) >= zero, alike)

    with ib.if_scope(threshold > zero):
        Greedy(ib, best, limit, (*kept, lambda n: (i, n)), lambda j: box_of(ib, [number(j, s.coord + d) for d in range(4)]),
               lambda share: share >= threshold, lambda j: number(j, s.score) > zero, comparable).run(
            lambda j, n: emit[0](order[i, j]), lambda j: emit[1]())
    with ib.else_scope(), ib.for_range(0, count, name="j") as j:
        emit[0](j)


@checked
def all_class_non_max_suppression(boxes: te.Tensor, scores: te.Tensor, max_output_boxes_per_class: Limit,
                                  iou_threshold: Threshold, score_threshold: Threshold,
                                  output_format: str = "onnx") -> list[te.Tensor]:
    """Non-maximum suppression for each class by itself: ONNX NonMaxSuppression, tf.image.combined_non_max_suppression.

    boxes: (batch, boxes, 4), two opposite corners each; scores: (batch, classes, boxes), of which those above score_threshold
    count. Boxes go where the area that they share with a better one is at least iou_threshold of the area that both cover.
    At most max_output_boxes_per_class stay in a class; all where it is not above 0.

    Returns for "onnx" (batch, class, box) of those that stay, int64 (batch * classes * boxes, 3), by image, by class, by score,
    0 behind them, and how many they are, int64 (1,). For "tensorflow" (class, box), int64 (batch, classes * boxes, 2), their
    scores, and how many they are of each image, int64 (batch,).
    """
    where = opening("all_class_non_max_suppression", boxes, scores)
    if output_format not in ("onnx", "tensorflow"):
        raise ArgumentError(f"{where}: there is no output_format {output_format!r}", hint="choose 'onnx' or 'tensorflow'")
    require_shape(boxes, [None, None, 4], where, "boxes are (batch, boxes, 4)")
    require_shape(scores, [boxes.shape[0], None, boxes.shape[1]], where, "scores are (batch, classes, boxes)")
    require_floats(boxes, where)
    require_floats(scores, where)
    batch, classes, count = scores.shape
    rows = batch * classes
    flat = reshape(scores, (rows, count))
    order = argsort(flat, None, 1, False, "int32")
    best = gather(flat, 1, order)

    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        (corners, sorted_, ranked, *given), (selected, numbers, sides), (r,) = ins, outs, index
        limit = ib.let("limit", _limit(max_output_boxes_per_class, given, count, te.const(1, "int32")))
        share = ib.let("share", _value(iou_threshold, given, boxes.dtype, where, "iou_threshold"))
        least = ib.let("least", _value(score_threshold, given, scores.dtype, where, "score_threshold"))
        found = ib.allocate("int32", (1,), name="found", scope="local")
        found[0] = 0
        with ib.for_range(0, count, name="j") as j, ib.if_scope(ranked[r, j] > least):
            found[0] = j.astype("int32") + 1
        number = Greedy(ib, found[0], limit, (selected, sides, lambda n: (r, n)),
                        lambda j: box_of(ib, [corners[r // classes, sorted_[r, j], d] for d in range(4)]),
                        lambda area: area >= share).run(lambda j, n: None)
        numbers[r] = number[0]

    ranks, numbers, _ = te.extern(
        [(rows, count), (rows,), (rows, count, 4)],
        [boxes, order, best, *_tensors(max_output_boxes_per_class), *_tensors(iou_threshold), *_tensors(score_threshold)],
        **independently((rows,), write, (count, count), inside=True), name="all_class_nms",
        dtype=["int32", "int32", boxes.dtype], tag="all_class_nms")
    return _collected(scores, order, best, ranks, numbers, output_format == "onnx")


def _collected(scores: te.Tensor, order: te.Tensor, best: te.Tensor, ranks: te.Tensor, numbers: te.Tensor,
               onnx: bool) -> list[te.Tensor]:
    """The boxes that stayed of all classes of an image, or of all images, one behind the other, and zeros behind them."""
    batch, classes, count = scores.shape
    shape = (1, batch * classes) if onnx else (batch, classes)
    table = reshape(numbers, shape)
    before = cumsum(table, 1, "int64", True)
    total = sum(te.compute(shape, lambda *i: table(*i).astype("int64"), name="counts"), 1)

    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        sorted_, ranked, chosen, found, offsets, totals = ins
        b, c = index
        row = b * classes + c
        group, member = (0, row) if onnx else (b, c)
        with ib.for_range(0, count, name="j") as j:
            stays = ib.let("stays", j < found[row])
            start = ib.let("start", offsets[group, member])
            behind = totals[group] + member * count - start + j - found[row]
            at = ib.let("at", te.if_then_else(stays, start + j, behind))
            rank = ib.let("rank", te.if_then_else(stays, chosen[row, j], 0))
            place = (at,) if onnx else (b, at)
            for d, value in enumerate([*([b] if onnx else []), c, sorted_[row, rank]]):
                outs[0][(*place, d)] = te.if_then_else(stays, value.astype("int64"), te.const(0, "int64"))
            if not onnx:
                outs[1][place] = te.if_then_else(stays, ranked[row, rank], te.const(0, scores.dtype))

    shapes = [(batch * classes * count, 3)] if onnx else [(batch, classes * count, 2), (batch, classes * count)]
    made = te.extern(shapes, [order, best, ranks, numbers, before, total],
                     **independently((batch, classes), write, (count,), inside=True), name="collect_indices",
                     dtype=["int64"] if onnx else ["int64", scores.dtype], tag="collect_indices")
    return [*(made if isinstance(made, (list, tuple)) else [made]), total]


def _fields(data: te.Tensor, where: str) -> int:
    """How many numbers a box has; refuses data that are not boxes."""
    require_shape(data, [None, None, None], where, "boxes are (batch, boxes, numbers of a box)")
    require_floats(data, where)
    fields = as_int(data.shape[2])
    if fields is None:
        raise ShapeError(f"{where}: how many numbers a box has, {data.shape[2]}, is not a constant", hint="write an int")
    return fields


def _require_field(value: int, count: int, where: str, name: str, least: int = 0) -> None:
    if as_int(value) is None or not least <= value < count:
        raise ArgumentError(f"{where}: {name} is {value}", hint=f"a number from {least} to {count - 1}: the last dimension of "
                            "the data holds the numbers of a box, four of them from coord_start on")


def _copy(ib: Any, target: Any, at: tuple[Any, Any], fields: int, value: Callable[[Any], Any]) -> None:
    """Stores the numbers of the box at `at`."""
    with ib.for_range(0, fields, name="k") as k:
        target[(*at, k)] = value(k)


def _tensors(value: Any) -> list[te.Tensor]:
    """The tensor that holds a number of an operator, if one does."""
    return [value] if isinstance(value, te.Tensor) else []


def _value(value: Any, given: list[Any], dtype: Any, where: str, name: str) -> Any:
    """A number of an operator as `dtype`; where it is a tensor, the first of `given`, which is taken from there."""
    if isinstance(value, te.Tensor):
        memory = given.pop(0)
        return memory[(0,) * value.ndim].astype(dtype)
    return constant(value, dtype, where, name)


def _limit(value: Any, given: list[Any], boxes: Any, least: Any) -> Any:
    """How many boxes stay at most: all of them where the number is below `least`."""
    limit = given.pop(0)[(0,) * value.ndim].astype("int32") if isinstance(value, te.Tensor) else te.const(value, "int32")
    return te.if_then_else(limit < least, boxes, limit)
