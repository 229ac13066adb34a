"""Operators of object detectors against references in numpy, which follow their definitions box by box."""

import itertools

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from tests.topi.checking import check, tensor
from topi import testing, vision

n = te.size_var("n")


def placed(shape, array, name="a"):
    """A placeholder of a shape, which may be symbolic, and the array to feed it with."""
    return te.placeholder(shape, str(array.dtype), name=name), array


def share(a, b, pixel=0.0):
    """The area that two boxes (x, y, x, y) have in common over the area of both."""
    (a0, a1), (b0, b1) = (np.sort(np.reshape(box, (2, 2)), 0) for box in (a, b))
    common = np.maximum(np.minimum(a1, b1) - np.maximum(a0, b0) + pixel, 0).prod()
    both = (a1 - a0 + pixel).prod() + (b1 - b0 + pixel).prod() - common
    return common / both if both > 0 else 0.0


def boxes(batch, count, seed=0, extent=10):
    """(class, score, x, y, x, y) for each box; corners in any order, scores without two equal ones."""
    random = np.random.default_rng(seed)
    data = np.empty((batch, count, 6), "float32")
    data[..., 0] = random.integers(-1, 2, (batch, count))
    data[..., 1] = random.permutation(batch * count).reshape(batch, count) / max(batch * count, 1) - 0.2
    data[..., 2:] = random.integers(0, extent, (batch, count, 4))
    return data


# --- counts and suppression ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("batch, count, threshold, label", [(2, 9, 0.3, -1), (1, 1, 0, 0), (3, 0, 0, 0), ((n, 2), 7, 0, 0),
                                                             (1, 3, 5, 0)])
def test_valid_counts(batch, count, threshold, label):
    data = boxes(batch[1] if isinstance(batch, tuple) else batch, count)
    a, x = placed((batch[0] if isinstance(batch, tuple) else batch, count, 6), data)
    kept = [[j for j in range(count) if row[j, 1] > threshold and (label < 0 or row[j, 0] >= 0)] for row in x]
    values, places = np.full_like(x, -1), np.full(x.shape[:2], -1, "int32")
    for i, rows in enumerate(kept):
        values[i, :len(rows)], places[i, :len(rows)] = x[i, rows], rows
    check(vision.get_valid_counts(a, threshold, label), {a: x},
          [np.array([len(rows) for rows in kept], "int32"), values, places], schedule=topi.x86.schedule_injective)


def suppressed(x, counts, limit, threshold, force, top_k, label):
    """For each image the places of the boxes by descending score, None for those that went."""
    result = []
    for rows, count in zip(x, counts):
        order = sorted(range(count), key=lambda j: -rows[j, 1])
        if threshold <= 0:
            result.append(list(range(count)))
            continue
        kept, shown = [], []
        for rank, j in enumerate(order):
            stays = len(kept) != limit and (top_k <= 0 or rank < top_k)
            if rows[j, 1] > 0:
                stays = stays and not any(
                    share(rows[j, 2:6], rows[k, 2:6]) >= threshold for k in kept
                    if label < 0 or (rows[k, 0] >= 0 and (force or rows[j, 0] == rows[k, 0])))
                kept += [j] if stays else []
            shown.append(j if stays else None)
        result.append(shown)
    return result


@pytest.mark.parametrize("case, batch, count, valid", [
    ((-1, 0.2, False, -1, 0), 2, 12, [12, 7]), ((-1, 0.3, True, -1, 0), 2, 12, [0, 12]),
    ((2, 0.2, False, -1, -1), 2, 12, [12, 5]),
    ((-1, 0.4, False, 4, 0), 1, 9, [20]), ((0, 0.5, True, -1, 0), 1, 3, [3]), ((-1, 0.0, False, -1, 0), 2, 5, [0, 4]),
    ((3, 0.1, False, 6, 0), 1, 12, [11]), ((-1, 0.5, False, -1, 0), 1, 0, [0]), ((-1, 0.5, False, -1, 0), 1, 1, [1])])
def test_suppression(case, batch, count, valid):
    limit, threshold, force, top_k, label = case
    a, x = placed((batch, count, 6), boxes(batch, count, 3))
    valid_count, v = placed((batch,), np.array(valid, "int32"), "valid")
    indices, p = placed((batch, count), (np.arange(batch * count, dtype="int32").reshape(batch, count) + 5), "indices")
    found = suppressed(x, np.minimum(v, count), limit, threshold, force, top_k, label)
    values, firsts = np.full_like(x, -1), np.full_like(x, -1)
    places, counts = np.full((batch, count), -1, "int32"), np.zeros((batch, 1), "int32")
    for i, shown in enumerate(found):
        for rank, j in enumerate(shown):
            values[i, rank] = x[i, j] if j is not None else -1
        kept = [j for j in shown if j is not None]
        places[i, :len(kept)], counts[i] = p[i, kept], len(kept)
        first = [j for j in kept if x[i, j, 0] >= 0]
        firsts[i, :len(first)] = x[i, first]

    def made(**more):
        return vision.non_max_suppression(a, valid_count, indices, limit, threshold, force, top_k, id_index=label, **more)

    both = [*made(), made(return_indices=False), made(return_indices=False, invalid_to_bottom=True)]
    check(both, {a: x, valid_count: v, indices: p}, [places, counts, values, firsts], schedule=topi.x86.schedule_injective)


def test_numbers_of_suppression_in_tensors_and_by_threads():
    a, x = placed((n, 8, 6), boxes(2, 8, 5))
    valid_count, v = placed((n,), np.array([8, 6], "int32"), "valid")
    limit, m = placed((1,), np.array([3], "int32"), "limit")
    threshold, t = placed((), np.array(0.3, "float32"), "threshold")
    made = vision.non_max_suppression(a, valid_count, valid_count, limit, threshold, return_indices=False)
    values = np.full_like(x, -1)
    for i, shown in enumerate(suppressed(x, v, 3, np.float32(0.3), False, -1, 0)):
        for rank, j in enumerate(shown):
            values[i, rank] = x[i, j] if j is not None else -1
    for schedule in (topi.generic.schedule_nms, topi.cuda.schedule_nms):
        check(made, {a: x, valid_count: v, limit: m, threshold: t}, values, schedule=schedule)


@pytest.mark.parametrize("output_format", ["onnx", "tensorflow"])
@pytest.mark.parametrize("limit, threshold, least, batch, classes, count", [
    (0, 0.4, 0.0, 2, 3, 7), (2, 0.2, 0.3, 2, 3, 7), (-1, 0.9, 2.0, 1, 1, 1), (0, 0.5, 0.0, 1, 2, 0)])
def test_suppression_of_each_class(batch, classes, count, limit, threshold, least, output_format):
    random = np.random.default_rng(1)
    a, x = placed((batch, count, 4), random.integers(0, 9, (batch, count, 4)).astype("float32"))
    values = random.permutation(batch * classes * count).reshape(batch, classes, count) / 40
    scores, p = placed(values.shape, values.astype("float32"), "scores")
    rows = []
    for b, c in itertools.product(range(batch), range(classes)):
        kept = []
        for j in sorted((j for j in range(count) if p[b, c, j] > least), key=lambda j: -p[b, c, j]):
            if not any(share(x[b, j], x[b, k]) >= threshold for k in kept) and (limit <= 0 or len(kept) < limit):
                kept.append(j)
        rows += [(b, c, j) for j in kept]
    if output_format == "onnx":
        table = np.zeros((batch * classes * count, 3), "int64")
        table[:len(rows)] = np.array(rows).reshape(-1, 3)
        expected = [table, np.array([len(rows)], "int64")]
    else:
        table, values = np.zeros((batch, classes * count, 2), "int64"), np.zeros((batch, classes * count), "float32")
        numbers = np.zeros(batch, "int64")
        for b, c, j in rows:
            table[b, numbers[b]], values[b, numbers[b]] = (c, j), p[b, c, j]
            numbers[b] += 1
        expected = [table, values, numbers]
    check(vision.all_class_non_max_suppression(a, scores, limit, threshold, least, output_format), {a: x, scores: p}, expected,
          schedule=topi.x86.schedule_injective)


# --- SSD -------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("sizes, ratios, steps, offsets, clip", [
    ((1,), (1,), (-1, -1), (0.5, 0.5), False), ((0.5, 0.25), (1, 2, 0.5), (0.1, -1), (0.25, 0.75), True)])
def test_anchors(sizes, ratios, steps, offsets, clip):
    a, x = tensor((2, 3, (n, 5), 4))
    high, wide = 5, 4
    rows = []
    for y, x_ in itertools.product(range(high), range(wide)):
        centers = [(y + offsets[0]) * (steps[0] if steps[0] > 0 else 1 / high),
                   (x_ + offsets[1]) * (steps[1] if steps[1] > 0 else 1 / wide)]
        for size, ratio in [*[(size, 1) for size in sizes], *[(sizes[0], ratio) for ratio in ratios[1:]]]:
            h, w = size / ratio**0.5 / 2, size * ratio**0.5 * high / wide / 2
            rows.append([centers[1] - w, centers[0] - h, centers[1] + w, centers[0] + h])
    expected = np.array([rows], "float32")
    check(vision.ssd.multibox_prior(a, sizes, ratios, steps, offsets, clip), {a: x}, expected.clip(0, 1) if clip else expected)


def located(probability, moves, anchors, clip, threshold, variances):
    batch, _, count = probability.shape
    result, numbers = np.full((batch, count, 6), -1, "float32"), np.zeros(batch, "int32")
    for b, j in itertools.product(range(batch), range(count)):
        best = probability[b, 1:, j].argmax()
        if probability[b, best + 1, j] < threshold:
            continue
        corner, move = anchors[0, j], moves[b].reshape(-1, 4)[j] * variances
        extent, center = corner[2:] - corner[:2], (corner[2:] + corner[:2]) / 2
        middle, reach = center + move[:2] * extent, np.exp(move[2:]) * extent / 2
        box = np.concatenate([middle - reach, middle + reach])
        result[b, numbers[b]] = [best, probability[b, best + 1, j], *(box.clip(0, 1) if clip else box)]
        numbers[b] += 1
    return result, numbers


@pytest.mark.parametrize("batch, classes, count, clip", [(2, 3, 9, True), (1, 2, 1, False), ((n, 2), 4, 5, False),
                                                         (1, 3, 0, True)])
def test_boxes_of_detections(batch, classes, count, clip):
    random, number = np.random.default_rng(2), batch[1] if isinstance(batch, tuple) else batch
    batch = batch[0] if isinstance(batch, tuple) else batch
    scores = random.permutation(number * classes * count).reshape(number, classes, count) / max(number * classes * count, 1)
    probability, p = placed((batch, classes, count), scores.astype("float32"), "probability")
    moves, m = placed((batch, 4 * count), random.normal(size=(number, 4 * count)).astype("float32"), "moves")
    corners = np.sort(random.random((1, count, 2, 2)), 2).reshape(1, count, 4)
    anchors, a = placed((1, count, 4), corners.astype("float32"), "anchors")
    feeds, variances = {probability: p, moves: m, anchors: a}, (0.1, 0.2, 0.3, 0.1)
    found, numbers = located(p, m, a, clip, 0.4, variances)
    check(vision.ssd.multibox_transform_loc(probability, moves, anchors, clip, 0.4, variances), feeds, [found, numbers], 1e-5,
          1e-5, topi.x86.schedule_injective)
    values = np.full_like(found, -1)
    for i, shown in enumerate(suppressed(found, numbers, -1, 0.2, False, 3, 0)):
        for rank, j in enumerate(shown):
            values[i, rank] = found[i, j] if j is not None else -1
    check(vision.ssd.multibox_detection(probability, moves, anchors, clip, 0.4, 0.2, False, variances, 3), feeds, values, 1e-5,
          1e-5, topi.x86.schedule_injective)


# --- regions ---------------------------------------------------------------------------------------------------------------

REGIONS = np.array([[0, 0.3, 1.2, 6.1, 5.4], [1, 3.5, 2.5, 3.6, 2.4], [0, -4, -3, 2, 1.5], [1, 5, 6, 14, 19],
                    [0, 30, 30, 40, 40]], "float32")


@pytest.mark.parametrize("mode", ["avg", b"max"])
@pytest.mark.parametrize("size, scale, ratio", [((2, 3), 1.0, -1), (1, 0.5, 2), ((3, 1), 0.75, 3)])
def test_averages_of_regions(size, scale, ratio, mode):
    a, x = tensor((2, 3, 8, 7))
    x = np.random.default_rng(0).normal(size=x.shape).astype("float32")
    regions, r = placed((n, 5), REGIONS, "regions")
    expected = testing.roi_align_nchw_python(x, r, size, scale, ratio, mode)
    check(vision.roi_align_nchw(a, regions, size, scale, mode, ratio), {a: x, regions: r}, expected, 1e-4, 1e-4)
    last, y = placed((2, 8, 7, 3), np.ascontiguousarray(x.transpose(0, 2, 3, 1)), "last")
    made = vision.rcnn.roi_align_nhwc(last, regions, size, scale, mode, ratio)
    check(made, {last: y, regions: r}, testing.roi_align_nhwc_python(y, r, size, scale, ratio, mode), 1e-4, 1e-4,
          topi.cuda.schedule_roi_align)


def test_averages_of_regions_are_those_of_onnx():
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    node = onnx.helper.make_node("RoiAlign", ["x", "rois", "images"], ["y"], output_height=2, output_width=3, sampling_ratio=2,
                                 spatial_scale=0.5, coordinate_transformation_mode="output_half_pixel")
    a, x = tensor((2, 3, 8, 7))
    regions, r = placed((5, 5), REGIONS, "regions")
    expected = ReferenceEvaluator(node).run(None, {"x": x, "rois": r[:, 1:], "images": r[:, 0].astype("int64")})[0]
    check(vision.roi_align_nchw(a, regions, (2, 3), 0.5, "avg", 2), {a: x, regions: r}, expected.astype("float32"), 1e-4, 1e-4)


@pytest.mark.parametrize("size, scale", [((2, 3), 1.0), (1, 0.5), (4, 0.25)])
def test_maxima_of_regions(size, scale):
    a, x = tensor((2, 3, 8, 7))
    regions, r = placed((5, 5), REGIONS, "regions")
    check(vision.roi_pool_nchw(a, regions, size, scale), {a: x, regions: r}, testing.roi_pool_nchw_python(x, r, size, scale))
    none, empty = placed((0, 5), REGIONS[:0], "none")
    check(vision.roi_pool_nchw(a, none, 2, scale), {a: x, none: empty}, np.zeros((0, 3, 2, 2), "float32"))


@pytest.mark.parametrize("stride", [1, 2])
def test_reorg(stride):
    a, x = tensor((2, 8, 4, 6), "int32")
    check(vision.reorg(a, stride), {a: x}, testing.reorg_python(x, stride))
    moved = np.empty((2, 8, 4, 6), "int32").reshape(-1)  # the definition of darknet, element by element
    blocks = 8 // stride**2
    for at, (b, k, y, i) in enumerate(itertools.product(range(2), range(8), range(4), range(6))):
        column, row = i * stride + k // blocks % stride, y * stride + k // blocks // stride
        moved[at] = x.reshape(-1)[column + 6 * stride * (row + 4 * stride * (k % blocks + blocks * b))]
    np.testing.assert_array_equal(testing.reorg_python(x, stride).reshape(-1), moved)


def proposed(scores, moves, info, scales, ratios, stride, threshold, before, after, least, corners):
    batch, _, high, wide = scores.shape
    shapes = [(scale, ratio) for ratio in ratios for scale in scales]
    rows = []
    for b in range(batch):
        found = []
        for y, x, (k, (scale, ratio)) in itertools.product(range(high), range(wide), enumerate(shapes)):
            w = np.floor(np.sqrt(np.floor(stride * stride / ratio)) + 0.5)
            sides = np.array([w, np.floor(w * ratio + 0.5)]) * scale
            center = np.array([x, y]) * stride + (stride - 1) / 2
            box = np.concatenate([center - (sides - 1) / 2, center + (sides - 1) / 2])
            move = moves[b, 4 * k:4 * k + 4, y, x]
            if corners:
                box = box + move
            else:
                middle, reach = center + move[:2] * sides, (np.exp(move[2:]) * sides - 1) / 2
                box = np.concatenate([middle - reach, middle + reach])
            box = np.clip(box, 0, np.tile(info[b, 1::-1] - 1, 2))
            score, smallest = scores[b, len(shapes) + k, y, x], info[b, 2] * least
            if (box[2:] - box[:2] + 1 < smallest).any():
                box, score = box + np.array([-1, -1, 1, 1]) * smallest / 2, -1
            if y >= int(info[b, 0] / stride) or x >= int(info[b, 1] / stride):
                score = -1
            found.append((score, box))
        order = sorted(range(len(found)), key=lambda j: -found[j][0])[:before if before > 0 else None]
        kept = []
        for j in order:
            if not any(share(found[j][1], found[k][1], 1.0) > threshold for k in kept):
                kept.append(j)
        rows += [[b, *found[kept[t % len(kept)]][1]] for t in range(after)]
    return np.array(rows, "float32")


@pytest.mark.parametrize("before, after, least, corners", [(-1, 5, 2, False), (6, 20, 4, True)])
def test_proposals(before, after, least, corners):
    random = np.random.default_rng(4)
    scales, ratios = (0.5, 2.0), (0.5, 1.0)
    scores, p = placed((2, 8, 3, 4), random.permutation(192).reshape(2, 8, 3, 4).astype("float32") / 192, "scores")
    moves, m = placed((2, 16, 3, 4), (random.normal(size=(2, 16, 3, 4)) / 3).astype("float32"), "moves")
    info, i = placed((2, 3), np.array([[24, 32, 1], [20, 26, 1.5]], "float32"), "info")
    arguments = scales, ratios, 8, 0.3, before, after, least, corners
    check(vision.rcnn.proposal(scores, moves, info, *arguments), {scores: p, moves: m, info: i},
          proposed(p, m, i, *arguments), 1e-4, 1e-4, topi.x86.schedule_injective)


# --- what is refused --------------------------------------------------------------------------------------------------------

A, F = te.placeholder((2, 5, 6), name="A"), te.placeholder((2, 4, 6, 6), name="F")
C, R = te.placeholder((2,), "int32", name="C"), te.placeholder((3, 5), name="R")


@pytest.mark.parametrize("made, error, words", [
    (lambda: vision.get_valid_counts(F), ShapeError, r"get_valid_counts of F: F has the .* where \(\?, \?, \?\) is meant"),
    (lambda: vision.get_valid_counts(A, score_index=6), ArgumentError, "score_index is 6(.|\n)*from 0 to 5"),
    (lambda: vision.get_valid_counts(topi.cast(A, "int32")), DTypeError, "holds int32, not floats"),
    (lambda: vision.non_max_suppression(A, C, C), ShapeError, r"C has the shape \(2,\) where \(2, 5\) is meant"),
    (lambda: vision.non_max_suppression(A, C, C, coord_start=3, return_indices=False), ArgumentError, "coord_start is 3"),
    (lambda: vision.non_max_suppression(A, None, C), ArgumentTypeError, "valid_count is None"),
    (lambda: vision.all_class_non_max_suppression(A, A, 1, 0.5, 0), ShapeError, r"A has .* where \(\?, \?, 4\)"),
    (lambda: vision.all_class_non_max_suppression(A, A, 1, 0.5, 0, "tf"), ArgumentError, "no output_format 'tf'"),
    (lambda: vision.multibox_prior(A), ShapeError, "batch, channels, height, width"),
    (lambda: vision.multibox_prior(F, ratios=(1, 0)), ArgumentError, "above 0"),
    (lambda: vision.roi_align_nchw(F, R, 2, 1.0, "mean"), ArgumentError, "no mode 'mean'"),
    (lambda: vision.roi_align_nchw(F, R, (2, 0), 1.0, "avg"), ShapeError, r"pooled_size is \(2, 0\)"),
    (lambda: vision.roi_pool_nchw(F, A, 2, 1.0), ShapeError, r"where \(\?, 5\) is meant"),
    (lambda: vision.reorg(F, 4), ShapeError, "stride 4 does not divide"),
    (lambda: vision.rcnn.proposal(F, F, R, (1,), (1, 1), 8, 0.5, 1, 1, 1, False), ShapeError, "4 . anchors"),
])
def test_what_is_refused(made, error, words):
    with pytest.raises(error, match=words):
        made()


@pytest.mark.parametrize("channels, mode, ratio", [(37, "avg", 2), (16, "max", -1), (te.size_var("channels"), "avg", -1)])
def test_aligned_regions_of_many_channels(channels, mode, ratio):
    random = np.random.default_rng(3)
    count = channels if isinstance(channels, int) else 5
    x = random.standard_normal((2, 9, 8, count)).astype("float32")
    corners = random.uniform(-2, 6, (3, 2))
    r = np.concatenate([[[1], [0], [1]], corners, corners + random.uniform(1, 6, (3, 2))], 1).astype("float32")
    batch = te.size_var("batch")
    last, regions = te.placeholder((batch, 9, 8, channels), name="last"), te.placeholder((3, 5), name="regions")
    first = te.placeholder((batch, channels, 9, 8), name="first")
    want = testing.roi_align_nhwc_python(x, r, (2, 3), 0.7, ratio, mode)
    check(vision.rcnn.roi_align_nhwc(last, regions, (2, 3), 0.7, mode, ratio), {last: x, regions: r}, want, 1e-4, 1e-4)
    check(vision.rcnn.roi_align_nchw(first, regions, (2, 3), 0.7, mode, ratio),
          {first: np.ascontiguousarray(x.transpose(0, 3, 1, 2)), regions: r}, want.transpose(0, 3, 1, 2), 1e-4, 1e-4)
