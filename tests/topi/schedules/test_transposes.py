"""Which transposes write their result in runs of lines, by the pages and sets that rows of both arrays fall into."""

import re

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.schedule.relations import Split
from tedsl.transform import PassContext

ZEN3 = tedsl.target.Target("llvm -mcpu=znver3")
LONG, SQUARE, IMAGES = (4, 64, 56, 56), (1024, 1024), (32, 64, 56, 56)


def scheduled(shape, order):
    result = topi.transpose(te.placeholder(shape, name="data"), order)
    with ZEN3:
        return topi.schedules.schedule([result])[result]


def same(values, expected):
    """Asserts that large arrays are equal: numpy says where they differ, which takes it far longer to look for."""
    if not np.array_equal(values, expected):
        np.testing.assert_array_equal(values, expected)


def transposes_alone(kernel, shape, order, dtype):
    """Checks a kernel on results that begin anywhere in lines, and what lies around them."""
    x = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    expected = np.ascontiguousarray(x.transpose(order))
    for begin in (0, 1, 4, 15):
        whole = np.full(x.size + 48, -1, dtype)
        y = whole[16 + begin:16 + begin + x.size].reshape([shape[at] for at in order])
        kernel(x, y)
        same(y, expected)
        assert (whole[:16 + begin] == -1).all() and (whole[16 + begin + x.size:] == -1).all()


@pytest.mark.parametrize("shape, order, tiles", [
    (LONG, (0, 3, 1, 2), 8),             # rows of 224 bytes are read completely
    (LONG, (0, 3, 2, 1), 1),             # the pages of all rows are known at once
    (LONG, (0, 1, 3, 2), 1),             # rows of the result share pages
    (IMAGES, (3, 2, 0, 1), 1),           # whole lines are stored past the caches
    (SQUARE, (1, 0), 4),                 # their lines fall into one set of L1; those of eight tiles into few sets of L2
    ((4096, 4096), (1, 0), 1),           # into few sets of L2 from two tiles on
    ((1024, 1312), (1, 0), 1),           # rows that are prefetched
])
def test_tiles_follow_each_other_in_a_row_of_the_result(shape, order, tiles):
    stage = scheduled(shape, order)
    parts = {relation.inner: int(relation.factor) for relation in stage.relations if hasattr(relation, "factor")}
    *_, run, row, column = stage.leaf_iter_vars
    assert (parts[row], parts[column]) == (16, 16)
    assert parts.get(run, 1) == tiles


@pytest.mark.parametrize("shape, order, outer, block", [
    (IMAGES, (3, 2, 1, 0), ["ax3.outer.ax1.fused", "ax0.outer", "ax2"], []),  # 16 pages of the result at a time, not 3136
    (IMAGES, (1, 3, 2, 0), ["ax0", "ax1.outer", "ax3.outer", "ax2"], []),
    (IMAGES, (3, 0, 2, 1), ["ax1", "ax0.outer", "ax2", "ax3.outer"], []),
    (IMAGES, (3, 1, 2, 0), ["ax1", "ax0.outer", "ax3.outer", "ax2"], []),  # a tile between axes that follow each other
    (IMAGES, (2, 3, 1, 0), ["ax3.outer.ax0.ax1.fused.outer.fused", "ax2"], []),  # some loops are not tasks enough
    ((40, 50000), (1, 0), ["ax0.outer.outer", "ax1.outer", "ax0.outer.inner"], [5]),  # rows of 160 bytes
    ((64, 50000), (1, 0), ["ax0.outer", "ax1.outer"], []),  # of 256
    ((4096, 4096), (1, 0), ["ax1.outer", "ax0.outer"], []),  # streams
    ((8, 64, 56, 56), (2, 0, 3, 1), ["ax1", "ax3.outer", "ax0", "ax2.outer"], []),  # all pages are known at once
])
def test_loops_come_to_few_pages_again(shape, order, outer, block):
    stage = scheduled(shape, order)
    assert [var.var.name for var in stage.leaf_iter_vars][:-2] == outer
    assert [int(relation.factor) for relation in stage.relations if hasattr(relation, "factor")][2:] == block


@pytest.mark.parametrize("shape, order, outer", [
    ((65, 564), (1, 0), ["ax0.outer", "ax1.outer"]),  # 65 lines stay in L1, 564 do not
    ((564, 65), (1, 0), ["ax1.outer", "ax0.outer"]),
    ((8, 65, 564), (0, 2, 1), ["ax0.ax1.outer.fused", "ax2.outer"]),
    ((60, 300), (1, 0), ["ax0.outer", "ax1.outer"]),
    ((60, 120), (1, 0), ["ax1.outer", "ax0.outer"]),  # either stays
    ((400, 500), (1, 0), ["ax0.outer.outer", "ax1.outer", "ax0.outer.inner"]),  # neither: four tiles below each other
    ((320, 512), (1, 0), ["ax0.outer.outer", "ax1.outer", "ax0.outer.inner"]),
    ((1000, 1024), (1, 0), ["ax0.outer.outer", "ax1.outer", "ax0.outer.inner"]),
    ((2560, 400), (1, 0), ["ax0.outer", "ax1.outer"]),  # lines of the result fall into few sets of L2
    ((512, 1536), (1, 0), ["ax0.outer", "ax1.outer"]),  # those of both do
    ((1200, 2400), (1, 0), ["ax1.outer", "ax0.outer"]),  # most of the last cache
])
def test_rows_of_tiles_that_stay_in_the_nearest_cache_are_inside(shape, order, outer):
    stage = scheduled(shape, order)
    assert [var.var.name for var in stage.leaf_iter_vars][:-2] == outer


@pytest.mark.parametrize("target, shape, tiles", [
    ("znver5", (512, 320), 1),       # rows of the result 2 KB apart: their lines share two sets of L1
    ("znver5", (768, 900), 2),       # 3 KB: four sets
    ("znver3", (768, 900), 1),       # whose L1 has fewer ways
    ("znver5", (6, 512, 600), 1),    # matrices of their own
    ("znver5", (4096, 2500), 2),     # from memory: rows of the input are read in runs
    ("znver3", (4096, 4096), None),  # and lie in more pages than are known at once
    ("znver5", (2000, 3000), None),  # streams of the input
])
def test_rows_of_the_result_are_streams_where_their_lines_meet_in_few_sets(target, shape, tiles):
    result = topi.transpose(te.placeholder(shape, name="data"), (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2))
    with tedsl.target.Target(f"llvm -mcpu={target}"):
        stage = topi.schedules.schedule([result])[result]
    parts = {relation.inner: int(relation.factor) for relation in stage.relations if hasattr(relation, "factor")}
    inside = stage.leaf_iter_vars[-3]
    along_rows = inside.var.name == f"ax{len(shape) - 1}.outer"
    assert parts.get(inside, 1 if along_rows else None) == tiles


@pytest.mark.parametrize("shape, order", [
    ((210, 44, 27, 12), (0, 2, 3, 1)), ((30, 20, 2, 69), (0, 3, 1, 2)), ((32, 12, 8, 15), (2, 3, 0, 1))])
def test_axes_that_follow_each_other_are_tiled_as_one(shape, order):
    """The last axis of the input, or of the result, is shorter than a tile: elements were gathered."""
    stage = scheduled(shape, order)
    parts = {relation.inner: int(relation.factor) for relation in stage.relations if hasattr(relation, "factor")}
    assert [parts[var] for var in stage.leaf_iter_vars[-2:]] == [16, 16]


@pytest.mark.parametrize("shape, order", [
    ((2, 64, 56, 56), (0, 3, 1, 2)), ((256, 1024), (1, 0)), ((65, 564), (1, 0)),
    ((419, 523), (1, 0)), ((3, 419, 523), (0, 2, 1)), ((512, 333), (1, 0)), ((768, 130), (1, 0)),
    ((21, 44, 27, 12), (0, 2, 3, 1)),
    ((30, 20, 2, 69), (0, 3, 1, 2)), ((32, 12, 8, 15), (2, 3, 0, 1)), ((33, 70, 60, 50), (2, 3, 1, 0)),
    ((33, 70, 60, 50), (3, 2, 1, 0)), ((33, 70, 60, 50), (3, 1, 0, 2)), ((33, 70, 60, 50), (0, 3, 2, 1))])
def test_values(shape, order):
    data = te.placeholder(shape, name="data")
    result = topi.transpose(data, order)
    x = np.arange(np.prod(shape), dtype="f").reshape(shape)
    y = np.empty([shape[at] for at in order], "f")
    tedsl.build(topi.schedules.schedule([result]), [data, result])(x, y)
    same(y, x.transpose(order))


@pytest.mark.parametrize("shape, order, staged", [
    ((32, 64, 56, 56), (0, 1, 3, 2), True),
    ((64, 32, 50, 56), (1, 0, 3, 2), True),
    ((4, 64, 56, 56), (0, 1, 3, 2), False),  # stays in the caches
    ((32, 64, 64, 56), (0, 1, 3, 2), False),  # rows of whole lines
    ((32, 8, 150, 150), (0, 1, 3, 2), False),  # in L2
    ((32, 64, 56, 56), (0, 3, 1, 2), False),  # matrices of which others have parts
])
def test_short_matrices_are_turned_in_a_cache_where_rows_are_no_lines(shape, order, staged):
    result = topi.transpose(te.placeholder(shape, name="data"), order)
    with ZEN3:
        assert ("global memory" in str(topi.schedules.schedule([result]))) == staged


def test_values_of_short_matrices():
    data = te.placeholder((3000, 37, 40), name="data")
    with ZEN3:
        result = topi.transpose(data, (0, 2, 1)) * 2.0
        s = topi.schedules.schedule([result])
    assert "global memory" in str(s)
    x = np.arange(3000 * 37 * 40, dtype="f").reshape(3000, 37, 40)
    y = np.empty((3000, 40, 37), "f")
    tedsl.build(s, [data, result])(x, y)
    same(y, x.transpose(0, 2, 1) * 2)


@pytest.mark.parametrize("shape, order, run, together", [
    ((32, 64, 56, 56), (0, 2, 1, 3), 8, 2),
    ((32, 64, 56, 56), (2, 1, 0, 3), 8, 2),
    ((24, 95, 63, 92), (2, 1, 0, 3), 3, 1),
    ((96, 95, 60, 3, 8), (1, 0, 2, 3, 4), None, None),  # pieces of 5760 bytes
    ((96, 95, 210, 8), (2, 1, 0, 3), None, None),  # of half a line
    ((4, 64, 56, 56), (0, 2, 1, 3), None, None),  # stays in the caches
    ((32, 67, 56, 56), (0, 2, 1, 3), None, None),  # 67 pieces are no run that fits
    ((32, 64, 56, 56), (0, 3, 1, 2), None, None),
])
def test_pieces_are_gathered_as_runs_of_lines(shape, order, run, together):
    with ZEN3:
        result = topi.transpose(te.placeholder(shape, name="data"), order)
        s = topi.schedules.schedule([result])
    assert ("global memory" in str(s)) == (run is not None)
    if run is not None:
        parts = [int(relation.factor) for relation in s[result].relations if getattr(relation, "factor", None) is not None]
        assert parts[:2] == [run, together]


@pytest.mark.parametrize("target", [tedsl.target.Target("llvm -model=znver5"), ZEN3], ids=str)  # last caches of 32 MB
@pytest.mark.parametrize("shape, order, of", [
    ((24, 95, 63, 92), (2, 1, 0, 3), "float32"), ((24, 96, 63, 31), (0, 2, 1, 3), "float32"),
    ((963, 45, 3, 20), (1, 0, 2, 3), "float64"),
    ((963, 93, 300), (1, 0, 2), "int8"), ((24, 300, 90, 33), (1, 2, 0, 3), "int16")])
def test_values_of_gathered_pieces(shape, order, of, target):
    data = te.placeholder(shape, of, name="data")
    with target:
        result = topi.transpose(data, order) + te.const(1, of)
        s = topi.schedules.schedule([result])
    assert "global memory" in str(s)
    x = (np.arange(np.prod(shape)) % 120).astype(of).reshape(shape)
    whole, kernel = np.zeros(x.size + 65, of), tedsl.build(s, [data, result], target=target)
    for first in (0, 5):
        y = whole[first:first + x.size].reshape([shape[at] for at in order])
        y[...] = 0
        kernel(x, y)
        same(y, x.transpose(order) + x.dtype.type(1))
        assert (whole[first + x.size:] == 0).all()


@pytest.mark.parametrize("shape, order, positions", [
    (IMAGES, (1, 2, 3, 0), 56),        # 32 channels: rows of two lines
    (IMAGES, (0, 2, 3, 1), 28),        # 64: a third of L1 does not hold 56 rows
    (IMAGES, (2, 1, 3, 0), 56),
    ((40, 200000), (1, 0), 64),        # rows of 160 bytes
    ((33, 320000), (1, 0), 64),
    ((52, 200000), (1, 0), 50),        # of 208: a third of L1
    ((80, 64000), (1, 0), None),       # of five whole lines
    ((32, 20000), (1, 0), None),       # stays in the caches
    (IMAGES, (3, 1, 2, 0), None),      # rows that do not follow each other as elements of the input do
    ((32, 64, 64, 56), (0, 1, 3, 2), None),  # a plane is a stream
    ((32, 1000003), (1, 0), None),     # no blocks without a rest
])
def test_short_rows_are_stored_in_runs(shape, order, positions):
    data = te.placeholder(shape, name="data")
    result = topi.transpose(data, order)
    with ZEN3:
        lowered = str(tedsl.lower(topi.schedules.schedule([result]), [data, result], simple_mode=True))
    held = re.findall(r"allocate.*float32, \[(\d+)\]", lowered)
    assert held == ([] if positions is None else [str(positions * shape[order[-1]])])


@pytest.mark.parametrize("shape, order, dtype", [
    ((32, 500000), (1, 0), "float32"), ((40, 200000), (1, 0), "float32"), ((33, 210000), (1, 0), "float32"),
    ((21, 40, 100, 100), (2, 0, 3, 1), "float32"), ((24, 16, 100, 150), (1, 2, 3, 0), "float64"),
    ((32, 1000000), (1, 0), "int8"), ((50, 300000), (1, 0), "float16"), ((2, 17, 600, 800), (0, 2, 3, 1), "int32")])
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=znver3", "llvm -num-cores=7"])
def test_values_of_runs(shape, order, dtype, target):
    """Arrays begin anywhere in lines: which elements of a run go past the caches depends on that."""
    data = te.placeholder(shape, name="data", dtype=dtype)
    with tedsl.target.Target(target):
        result = topi.negative(topi.transpose(data, order))
        s = topi.schedules.schedule([result])
        kernel = tedsl.build(s, [data, result])
    assert "global memory" in str(s)
    x = (np.arange(np.prod(shape)) % 120).astype(dtype).reshape(shape)
    expected = np.ascontiguousarray(-x.transpose(order))
    for begin in (0, 4, 5):
        y = np.zeros(x.size + 16, dtype)[begin:begin + x.size].reshape([shape[at] for at in order])
        kernel(x, y)
        same(y, expected)


@pytest.mark.parametrize("target, shape, cores, tasks", [
    ("znver5", (4096, 4096), 1, 1),
    ("znver5", (4096, 4096), 2, 2),
    ("znver5", (4096, 4096), 16, 16),     # of 16, whose lines go past the caches
    ("znver5", (4096, 4096), 64, None),   # strips would be too few tasks
    ("znver5", (4, 2048, 2048), 1, 1),    # of each matrix
    ("znver5", (2560, 3072), 1, 1),       # rows of the result that wait for their lines share two sets of L1
    ("znver5", (1008, 20000), 1, 1),      # and are in 20000 pages
    ("znver5", (4000, 4000), 1, None),    # streams of the input
    ("znver5", (4096, 4090), 1, None),    # whose rows begin anywhere in lines
    ("znver5", (1024, 1024), 1, None),    # stays in the caches
    ("znver3", (4096, 4096), 1, None),    # a line is two vectors
])
def test_large_matrices_are_turned_strip_by_strip(target, shape, cores, tasks):
    result = topi.transpose(te.placeholder(shape, name="data"), (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2))
    with tedsl.target.Target(f"llvm -mcpu={target} -num-cores={cores}"):
        stage = topi.schedules.schedule([result])[result]
    splits = [relation for relation in stage.relations if isinstance(relation, Split)]
    assert [int(split.nparts) for split in splits if split.nparts is not None] == ([] if tasks is None else [tasks])
    assert any(split.lines_of is not None for split in splits) == (tasks is not None or shape == (4000, 4000))


@pytest.mark.parametrize("shape, order, dtype", [
    ((2048, 3072), (1, 0), "float32"), ((2048, 3072), (1, 0), "int32"), ((1456, 2320), (1, 0), "float64"),
    ((3, 1040, 1040), (0, 2, 1), "float32"), ((2000, 2512), (1, 0), "float32"), ((24, 1040, 16, 16), (2, 3, 0, 1), "float32")])
@pytest.mark.parametrize("cores", [1, 2, 7])
def test_values_of_tiles_that_begin_at_lines_of_the_input(shape, order, dtype, cores):
    data = te.placeholder(shape, name="data", dtype=dtype)
    with tedsl.target.Target(f"llvm -num-cores={cores}"):
        result = topi.transpose(data, order)
        kernel = tedsl.build(topi.schedules.schedule([result]), [data, result])
    elements = np.arange(np.prod(shape) + 16).astype(dtype)
    for begin in (0, 4, 5, 15):
        x = elements[begin:begin + np.prod(shape)].reshape(shape)
        y = np.zeros([shape[at] for at in order], dtype)
        kernel(x, y)
        same(y, x.transpose(order))


@pytest.mark.parametrize("shape, order", [
    ((5000, 8), (1, 0)), ((3000, 4), (1, 0)), ((3000, 15), (1, 0)), ((2, 60, 50, 5), (0, 3, 1, 2)),  # elements of the input
    ((3, 4000), (1, 0)), ((2, 3, 60, 60), (0, 2, 3, 1))])  # rows of three
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("cpu", ["znver5", "znver3"])
def test_few_columns_are_turned_in_registers(shape, order, dtype, cpu):
    data = te.placeholder(shape, name="data", dtype=dtype)
    with tedsl.target.Target(f"llvm -mcpu={cpu} -num-cores=1") as target:
        result = topi.transpose(data, order)
        s = topi.schedules.schedule([result])
        assert "gather" not in tedsl.build(s, [data, result], target).get_source("asm")
        kernel = tedsl.build(s, [data, result], tedsl.target.Target("llvm"))
    x = (np.arange(np.prod(shape)) % 1009).astype(dtype).reshape(shape)
    y = np.zeros([shape[at] for at in order], dtype)
    kernel(x, y)
    same(y, x.transpose(order))


@pytest.mark.parametrize("target, shape, order, loops", [
    ("znver5 -num-cores=1", IMAGES, (3, 1, 2, 0), ["part", "tile", "row"]),  # rows go on with the input's: tiles share lines
    ("znver5 -num-cores=1", IMAGES, (1, 3, 2, 0), ["ax0", "part", "tile", "row"]),
    ("znver5 -num-cores=1", IMAGES, (3, 2, 1, 0), ["tile", "part", "row"]),
    ("znver5 -num-cores=1", IMAGES, (2, 3, 1, 0), None),  # 196 tiles follow each other
    ("znver5 -num-cores=64", IMAGES, (3, 1, 2, 0), None),  # four tiles are too few tasks
    ("znver5 -num-cores=1", IMAGES, (0, 3, 2, 1), None),  # rows of four lines
    ("znver5 -num-cores=1", (40, 64, 56, 56), (3, 1, 2, 0), None),  # of two and a half
    ("znver5 -num-cores=1", (32, 8, 20, 20), (3, 1, 2, 0), None),  # stays in the caches
    ("znver3 -num-cores=1", IMAGES, (3, 1, 2, 0), None),  # a line is two vectors
])
def test_vectors_of_short_rows_begin_at_lines_of_the_result(target, shape, order, loops):
    result = topi.transpose(te.placeholder(shape, name="data"), order)
    with tedsl.target.Target(f"llvm -mcpu={target}"):
        stage = topi.schedules.schedule([result])[result]
    splits = [relation for relation in stage.relations if isinstance(relation, Split)]
    lines = [split for split in splits if split.lines_of is not None and split.lines_of.op is result.op]
    assert len(lines) == (loops is not None)
    if loops is not None:
        number, = (split for split in splits if split.parent is lines[0].outer)
        tile, = (split.outer for split in splits if split not in (*lines, number))
        names = {number.outer: "row", number.inner: "part", tile: "tile"}
        assert [names.get(var, var.var.name) for var in stage.leaf_iter_vars][:-2] == loops


@pytest.mark.parametrize("shape, order, dtype", [
    (IMAGES, (3, 1, 2, 0), "float32"), ((32, 40, 70, 75), (1, 3, 2, 0), "float32"), ((16, 90, 60, 83), (3, 2, 1, 0), "float64"),
    ((16, 64, 57, 100), (2, 3, 1, 0), "int32")])
@pytest.mark.parametrize("cores", [1, 2])
def test_values_of_vectors_that_begin_at_lines_of_the_result(shape, order, dtype, cores):
    data = te.placeholder(shape, name="data", dtype=dtype)
    with tedsl.target.Target(f"llvm -num-cores={cores}"):
        result = topi.transpose(data, order)
        kernel = tedsl.build(topi.schedules.schedule([result]), [data, result])
    transposes_alone(kernel, shape, order, dtype)


FAR = "sapphirerapids -num-cores="


@pytest.mark.parametrize("cpu, shape, order, past", [
    ("sapphirerapids", (1024, 1024), (1, 0), True), ("sapphirerapids", (512, 1024), (1, 0), False),
    ("sapphirerapids", IMAGES, (3, 2, 1, 0), False),  # as all results of that size
    ("sapphirerapids", (4, 64, 56, 56), (0, 2, 1, 3), False),  # pieces
    ("znver5", (1024, 1024), (1, 0), False)])
def test_transposes_go_past_a_far_cache_sooner(cpu, shape, order, past):
    result = topi.transpose(te.placeholder(shape, name="data"), order)
    with tedsl.target.Target(f"llvm -mcpu={cpu}"):
        assert ("stored past the cache" in str(topi.schedules.schedule([result]))) == past


@pytest.mark.parametrize("target, shape, order, loops, lanes", [
    (FAR + "1", IMAGES, (2, 3, 1, 0), ["line", "tile"], 32),
    (FAR + "2", IMAGES, (2, 3, 1, 0), ["chunk", "line", "tile"], 32),  # threads would share lines of a run
    (FAR + "1", IMAGES, (3, 2, 0, 1), ["line", "tile"], 32),
    (FAR + "2", IMAGES, (3, 2, 0, 1), ["ax1", "line", "tile"], 32),  # runs of 2048 elements
    (FAR + "1", IMAGES, (0, 3, 2, 1), ["ax0", "line", "tile"], 32),
    (FAR + "2", (4096, 4096), (1, 0), ["chunk", "line", "tile"], 32),
    (FAR + "1", (24, 512, 40, 40), (3, 2, 1, 0), ["line", "tile"], 16),  # the next row ends within two lines
    (FAR + "1", IMAGES, (0, 2, 3, 1), None, None),  # rows that follow each other as elements of the input: runs
    (FAR + "1", (32, 64, 56, 57), (3, 1, 2, 0), ["line", "tile"], 32),
    (FAR + "1", (33, 63, 57, 56), (3, 1, 2, 0), None, None),  # runs that begin anywhere in lines
    (FAR + "1", (4, 64, 56, 56), (3, 2, 0, 1), ["line", "tile"], 32),  # both arrays fill L2 more than twice
    (FAR + "1", (512, 1024), (1, 0), None, None),  # not more
    ("znver5 -num-cores=1", IMAGES, (2, 3, 1, 0), None, None),  # whose last cache is nearer
])
def test_results_are_written_by_lines_where_the_last_cache_is_far(target, shape, order, loops, lanes):
    result = topi.transpose(te.placeholder(shape, name="data"), order)
    with tedsl.target.Target(f"llvm -mcpu={target}"):
        stage = topi.schedules.schedule([result])[result]
    splits = [relation for relation in stage.relations if isinstance(relation, Split)]
    lines = [split for split in splits if split.lines_of is not None and split.lines_of.op is result.op]
    assert len(lines) == (loops is not None)
    if loops is not None:
        across, *parts = (split for split in splits if split not in lines)
        names = {lines[0].outer: "line", across.outer: "tile", **{part.outer: "chunk" for part in parts},
                 **{part.inner: "tile" for part in parts}}
        assert [names.get(var, var.var.name) for var in stage.leaf_iter_vars][:-2] == loops
        assert int(lines[0].factor) == lanes


@pytest.mark.parametrize("shape, order, dtype", [
    (IMAGES, (2, 3, 1, 0), "float32"), ((19, 64, 60, 83), (3, 2, 0, 1), "float32"),
    ((1024, 1040), (1, 0), "float32"), ((24, 512, 24, 40), (3, 2, 1, 0), "int32"),
    ((2064, 3103), (1, 0), "float32"), ((1032, 3103), (1, 0), "float64"), ((3, 40, 128, 57, 16), (0, 3, 4, 1, 2), "float32")])
@pytest.mark.parametrize("cores", [1, 2])
def test_values_of_results_that_are_written_by_lines(shape, order, dtype, cores):
    data = te.placeholder(shape, name="data", dtype=dtype)
    with tedsl.target.Target(f"llvm -model=sapphirerapids -num-cores={cores}"):
        result = topi.transpose(data, order)
        kernel = tedsl.build(topi.schedules.schedule([result]), [data, result])
    transposes_alone(kernel, shape, order, dtype)


@pytest.mark.parametrize("shape, order", [
    ((4096, 4096), (1, 0)), (IMAGES, (3, 1, 2, 0)), ((4000, 4000), (1, 0)), (IMAGES, (1, 2, 3, 0))])
def test_nothing_is_computed_twice_where_arrays_may_overlap(shape, order):
    data = te.placeholder(shape, name="data")
    with tedsl.target.Target("llvm -mcpu=znver5 -num-cores=1"), PassContext(config={"tir.noalias": False}):
        result = topi.transpose(data, order)
        s = topi.schedules.schedule([result])
        assert "lines_of" not in str(s)
        tedsl.lower(s, [data, result])
