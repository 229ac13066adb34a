"""Reductions along any axes by every schedule: rows, columns, all, pairs, narrow and symbolic ones, with their neighbours."""

import dataclasses
import json

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tests.topi.run import run

pytestmark = pytest.mark.sampled(2)

rng = np.random.default_rng(0)
SHAPES = [((7,), None), ((3, 100), 1), ((3, 100), 0), ((1, 1), 1), ((5, 3, 67), (0, 2)), ((5, 3, 67), (1,)),
          ((5, 33, 17), (1, 2)), ((2, 300, 3), 1), ((4, 130), None), ((2, 3, 4, 5), (1, 3)), ((300, 300), None), ((6, 1000), 0)]


@pytest.mark.parametrize("schedule", ["x86", "generic", "cuda"])
@pytest.mark.parametrize("shape, axis", SHAPES, ids=str)
def test_sums(shape, axis, schedule):
    data = rng.random(shape, "float32")
    x = te.placeholder(shape, name="x")
    np.testing.assert_allclose(run(topi.sum(x, axis), {x: data}, schedule), data.sum(axis), rtol=2e-5)


@pytest.mark.parametrize("shape, axis", [((3, 100), 1), ((3, 100), 0), ((5, 3, 67), (0, 2)), ((70,), None)], ids=str)
@pytest.mark.parametrize("operator", ["max", "min", "prod", "argmax", "argmin"])
def test_other_reductions(operator, shape, axis):
    data = rng.random(shape, "float32") + np.float32(0.5)
    if operator != "prod":
        data.flat[[1, 60]] = np.nan, 7
    x = te.placeholder(shape, name="x")
    result = run(getattr(topi, operator)(x, axis, keepdims=True), {x: data})
    if "arg" in operator and isinstance(axis, tuple):
        moved = np.moveaxis(data, axis, (1, 2)).reshape(shape[1], -1)
        expected = getattr(np, operator)(moved, axis=1).reshape(1, -1, 1)
    else:
        expected = getattr(np, operator)(data, axis=axis, keepdims=True)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize("last, expected", [(False, [1, 0]), (True, [100, 102])])
def test_ties_of_argmax(last, expected):
    data = np.zeros((2, 103), "float32")
    data[0, [1, 50, 100]] = 3
    x = te.placeholder(data.shape, name="x")
    assert run(topi.argmax(x, 1, select_last_index=last), {x: data}).tolist() == expected
    assert run(topi.argmin(x, 1, select_last_index=last), {x: -data}).tolist() == expected


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int64"])
def test_dtypes(dtype):
    data = (rng.random((5, 200)) * 3).astype(dtype)
    x = te.placeholder(data.shape, dtype, name="x")
    with np.errstate(over="ignore"):
        expected = data.astype("float32").sum(1).astype(dtype) if dtype == "float16" else data.sum(1, dtype=dtype)
    np.testing.assert_allclose(run(topi.sum(x, 1), {x: data}), expected, rtol=1e-3 if dtype == "float16" else 1e-12)
    np.testing.assert_array_equal(run(topi.max(x, 0), {x: data}), data.max(0))


def test_float16_adds_up_in_float32():
    data = np.ones((2, 5000), "float16")
    x = te.placeholder(data.shape, "float16", name="x")
    assert run(topi.sum(x, 1), {x: data}).tolist() == [5000, 5000]


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("schedule", ["x86", "generic", "cuda"])
def test_symbolic_shapes(axis, schedule):
    n, m = te.var("n"), te.var("m")
    x = te.placeholder((n, m), name="x")
    data = rng.random((13, 77), "float32")
    np.testing.assert_allclose(run(topi.sum(x, axis), {x: data}, schedule), data.sum(axis), rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_what_is_around_a_reduction_is_computed_in_its_loops(axis):
    data = rng.standard_normal((40, 50), "float32")
    x = te.placeholder(data.shape, name="x")
    y = topi.exp(topi.sum(topi.nn.relu(x) * 2.0, axis) * 0.01) + 1.0
    s = topi.x86.schedule_reduce(y)
    assert str(s).count("computed inline") == 4, s
    expected = np.exp((np.maximum(data, 0) * 2).sum(axis) * np.float32(0.01)) + 1
    np.testing.assert_allclose(run(y, {x: data}), expected, rtol=1e-5)


def test_empty_axis():
    x = te.placeholder((3, 0), name="x")
    assert run(topi.sum(x, 1), {x: np.ones((3, 0), "float32")}).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match=r"argmax of x: dimension 1 of shape .* is empty"):
        topi.argmax(x, 1)
    with pytest.raises(TypeError, match="bool values have no order"):
        topi.argmin(te.placeholder((3,), "bool", name="x"))


PLACES = [((9,), 0), ((3, 1), 1), ((1, 5), 0), ((5, 16), 1), ((33, 56), 1), ((2, 300), 1), ((6, 1000), 0), ((3, 4, 57), 2),
          ((3, 70, 5), 1), ((70000,), None)]


ORDERED = ("float32", "float64", "float16", "int8", "uint8", "int32", "int64")


@pytest.mark.parametrize("dtype, shape, axis", [  # each dtype with every other shape
    (dtype, *place) for i, dtype in enumerate(ORDERED) for j, place in enumerate(PLACES) if (i + j // 2) % 2 == 0])
def test_places_of_the_extremes_among_equal_ones(dtype, shape, axis):
    data = (rng.integers(0, 4, shape) - (dtype[0] != "u")).astype(dtype)
    x = te.placeholder(shape, dtype, name="x")
    by_turns = (PLACES.index((shape, axis)) + ORDERED.index(dtype)) % 2  # of argmax the first place and of argmin the last one
    first, last = ("argmax", "argmin")[::1 if by_turns else -1]
    np.testing.assert_array_equal(run(getattr(topi, first)(x, axis), {x: data}), getattr(np, first)(data, axis))
    flipped = np.flip(data, axis if axis is not None else 0)
    length = data.shape[axis] if axis is not None else data.size
    np.testing.assert_array_equal(run(getattr(topi, last)(x, axis, select_last_index=True), {x: data}),
                                  length - 1 - getattr(np, last)(flipped, axis))


@pytest.mark.parametrize("fill", ["worst", "nan", "mixed", "zeros"])
@pytest.mark.parametrize("shape, axis", PLACES[:-1], ids=str)
def test_places_of_the_extremes_among_special_values(shape, axis, fill):
    for operator, worst in (("argmax", -np.inf), ("argmin", np.inf)):
        data = {"worst": np.full(shape, worst), "nan": np.full(shape, np.nan), "zeros": rng.choice([0.0, -0.0], shape),
                "mixed": rng.choice([worst, np.nan, 0.0, 1.0, -worst], shape, p=[0.5, 0.02, 0.2, 0.2, 0.08])}[fill]
        data = data.astype("float32")
        x = te.placeholder(shape, name="x")
        schedule = "plain" if (operator == "argmax") == (fill in ("nan", "zeros")) else "x86"  # by turns
        np.testing.assert_array_equal(run(getattr(topi, operator)(x, axis), {x: data}, schedule),
                                      getattr(np, operator)(data, axis))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_places_of_the_extremes_where_all_are_the_worst(dtype):
    limits = np.iinfo(dtype)
    for operator, worst in (("argmax", limits.min), ("argmin", limits.max)):
        x = te.placeholder((3, 100), dtype, name="x")
        for axis in (0, 1):
            assert not run(getattr(topi, operator)(x, axis), {x: np.full((3, 100), worst, dtype)}).any()


def test_places_of_the_largest_of_symbolic_shapes():
    n, m = te.var("n"), te.var("m")
    x = te.placeholder((n, m), name="x")
    for shape in ((13, 77), (1, 1), (5, 300)):
        data = rng.integers(0, 4, shape).astype("float32")
        for axis in (0, 1):
            np.testing.assert_array_equal(run(topi.argmax(x, axis), {x: data}), data.argmax(axis))


SIDE_BY_SIDE = [((16, 56), 1), ((8, 40), 1), ((24, 5), 1), ((4, 3, 12, 33), 3), ((2, 64, 17), 2), ((8, 300), 1),
                ((3, 8, 5, 9), (2, 3)), ((64, 1), 1), ((16, 0), 1), ((4, 8, 16), (0, 2)), ((32, 1, 70), 2), ((16, 20), 1),
                ((16, 31), 1), ((32, 6), 1), ((48, 10), 1), ((16, 3), 1)]
# Of 15, 7 or 11 rows; a last block of one row or of several, with other axes around it; too few rows for blocks.
ODD_ROWS = [((15, 23), 1), ((3, 225, 19), 2), ((5, 7, 33), 2), ((11, 8), 1), ((33, 37), 1), ((101, 40), 1), ((3, 67, 41), 2),
            ((2, 37, 100), 2), ((3, 3, 50), 2), ((5, 53, 1, 20), 3)]


@pytest.mark.parametrize("dtype, shape, axis", [  # each dtype with every other shape
    (dtype, *case) for i, dtype in enumerate(["float32", "float64", "float16", "int8", "int32"])
    for j, case in enumerate(SIDE_BY_SIDE + ODD_ROWS) if (i + j) % 2 == 0])
def test_short_rows_are_reduced_side_by_side(dtype, shape, axis):
    keepdims = dtype in ("float64", "int8") or axis == (2, 3)
    data = rng.integers(-3, 4, shape).astype(dtype)
    x = te.placeholder(shape, dtype, name="x")
    total = run(topi.sum(x, axis, keepdims), {x: data})
    np.testing.assert_array_equal(total, data.sum(axis, keepdims=keepdims, dtype=dtype))
    if data.size:
        np.testing.assert_array_equal(run(topi.max(x, axis, keepdims), {x: data}), data.max(axis, keepdims=keepdims))
    if data.size and not isinstance(axis, tuple):
        np.testing.assert_array_equal(run(topi.argmin(x, axis, keepdims), {x: data}), data.argmin(axis, keepdims=keepdims))


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v3", "llvm"])
@pytest.mark.parametrize("columns", [56, 77, 16, 130])
def test_short_rows_on_processors_with_other_vectors(columns, target):
    data = rng.standard_normal((24, columns), "float32")
    data[3, 5], data[7, -1] = np.nan, np.inf
    x = te.placeholder(data.shape, name="x")
    for formula, expected in ((topi.max(x, 1) + 1.0, data.max(1) + 1), (topi.argmax(x, 1), data.argmax(1))):
        with tedsl.target.Target(target):
            s = topi.schedules.schedule([formula])
        result = np.empty(24, str(formula.dtype))
        tedsl.build(s, [x, formula], target)(data, result)
        np.testing.assert_array_equal(result, expected)


ROW_BLOCKS = [((154, 225, 23), ["0, 2310", "0, 15)"]), ((1001, 37), ["0, 63", "0, 16)"]), ((1000, 37), ["0, 125", "0, 8)"]),
              ((1009, 37), ["0, 64", "0, 16)"]),
              ((54, 211, 40), ["0, 54", "0, 14)", "0, 16)"])]


@pytest.mark.parametrize("shape, loops", ROW_BLOCKS, ids=str)
def test_odd_numbers_of_rows_have_blocks(shape, loops):
    x = te.placeholder(shape, name="x")
    y = topi.max(x, -1)
    with tedsl.target.Target("llvm -mcpu=znver4"):
        text = str(tedsl.lower(topi.schedules.schedule(y), [x, y]))
    assert f'{loops[0]}) "parallel"' in text and all(loop in text for loop in loops[1:]), text


CHUNKED = [((4096, 160), 0), ((1, 2048, 300), 1), ((16, 20, 40, 64), (0, 1, 2)), ((2, 8192, 40), (0, 1)), ((2048, 17, 19), 0),
           ((70000, 8), 0), ((70001, 80), 0), ((8192, 70, 1), 0)]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("shape, axis", CHUNKED, ids=str)
def test_columns_of_many_rows_are_reduced_in_chunks_of_rows(shape, axis, dtype, keepdims):
    data = rng.integers(-2, 3, shape).astype(dtype)
    x = te.placeholder(shape, dtype, name="x")
    total = run(topi.sum(x, axis, keepdims), {x: data})
    wide = "float32" if dtype == "float16" else dtype
    np.testing.assert_array_equal(total, data.sum(axis, keepdims=keepdims, dtype=wide).astype(dtype))
    if not isinstance(axis, tuple):
        np.testing.assert_array_equal(run(topi.argmax(x, axis, keepdims), {x: data}), data.argmax(axis, keepdims=keepdims))


def test_places_of_several_vectors_of_columns_stay_in_registers_for_some_rows():
    data = rng.integers(0, 50, (3, 20, 72)).astype("float32")  # as one vector, 72 lanes went through memory at each row
    x = te.placeholder(data.shape, name="x")
    y = topi.argmax(x, 1)
    s = topi.x86.schedule_reduce(y)
    assert "k1.outer" in str(s) and "k1.inner" in str(s)
    np.testing.assert_array_equal(run(y, {x: data}), data.argmax(1))


def test_what_is_around_chunks_of_rows_is_computed_in_their_loops():
    data = rng.standard_normal((4096, 160), "float32")
    x = te.placeholder(data.shape, name="x")
    y = topi.nn.relu(topi.sum(topi.exp(x), 0) * 2.0 - 1.0)
    with tedsl.target.Target("llvm -num-cores=2"):
        s = topi.x86.schedule_reduce(y)
    assert str(s).count("parallel") == 1, s
    np.testing.assert_allclose(run(y, {x: data}), np.maximum(np.exp(data).sum(0) * 2 - 1, 0), rtol=1e-4)


# The last block of columns is smaller: lines do not divide them, or a prime number of planes is shared out.
UNEVEN = [((3, 2707), 0), ((2, 5, 20011), 1), ((4, 20011), 0), ((3, 67, 33, 41), 0), ((2, 3, 61, 50, 50), 1),
          ((2, 5, 61, 400, 3), 1)]


@pytest.mark.parametrize("shape, axis", UNEVEN, ids=str)
def test_the_last_block_of_columns_is_smaller(shape, axis):
    data = rng.integers(-9, 10, shape).astype("float32")
    x = te.placeholder(shape, name="x")
    np.testing.assert_array_equal(run(topi.sum(x, axis), {x: data}), data.sum(axis))
    np.testing.assert_array_equal(run(topi.argmax(x, axis), {x: data}), data.argmax(axis))
    np.testing.assert_array_equal(run(topi.nn.relu(topi.max(x, axis) * 2.0), {x: data}), np.maximum(data.max(axis) * 2, 0))


BLOCKS = [((200, 20011), 0, ["0, 2", "*10016)"]), ((6, 100, 20011), 1, ["0, 6", "*10016)"]),
          ((9, 67, 33, 41), 0, ["0, 6", "*15120)"])]


@pytest.mark.parametrize("shape, axis, loops", BLOCKS, ids=str)
def test_blocks_of_columns_are_whole_lines_and_alone_where_the_last_is_smaller(shape, axis, loops):
    target = tedsl.target.Target("llvm -mcpu=znver4")
    x = te.placeholder(shape, name="x")
    with target:
        y = topi.sum(x, axis)
        text = str(tedsl.lower(topi.schedules.schedule(y), [x, y]))
    assert f'{loops[0]}) "parallel"' in text and loops[1] in text, text


@pytest.mark.parametrize("operator", ["sum", "max", "argmax"])
@pytest.mark.parametrize("shape, axis, ahead", [
    ((600, 14336), 0, "+ 384)"), ((30, 90, 56, 56), 1, "+ 384)"), ((7000, 700), 0, "*16)) + 5600)"),
    ((5000, 20, 56), 1, "+ 3024)"), ((2048, 4096), 1, "+ 3072)"), ((80000, 56), 1, "+ 2688)"), ((100, 200), 1, "")], ids=str)
def test_what_comes_from_memory_is_asked_for(shape, axis, ahead, operator):
    target = tedsl.target.Target("llvm -mcpu=znver5 -num-cores=2")
    x = te.placeholder(shape, name="x")
    with target:
        y = getattr(topi, operator)(x, axis)
        text = str(tedsl.lower(topi.schedules.schedule(y), [x, y]))
    lines = [line for line in text.splitlines() if "tir.prefetch" in line]
    columns = axis < len(shape) - 1
    assert len(lines) == (1 if ahead and not (operator == "sum" and columns) else 0), lines
    assert all(ahead in line for line in lines), lines


@pytest.mark.parametrize("model, shape, asks", [
    ("sapphirerapids", (1024, 1024), True), ("znver5", (1024, 1024), False),  # of 4 MB; the last cache is as far as memory
    ("sapphirerapids", (500, 1024), False)])  # stays in L2
def test_what_comes_from_a_far_cache_is_asked_for(model, shape, asks):
    x = te.placeholder(shape, name="x")
    with tedsl.target.Target(f"llvm -mcpu=znver5 -model={model}"):
        y = topi.argmax(x, 1)
        assert ("tir.prefetch" in str(tedsl.lower(topi.schedules.schedule(y), [x, y]))) == asks


@pytest.mark.parametrize("shape, axis", [((3, 90, 4000), 1), ((40, 45, 333), 1), ((700, 1300), 1), ((9000, 70), 1),
                                         ((7, 40, 20, 41), 1), ((200, 1000), None)], ids=str)
def test_results_are_the_same_where_memory_is_asked(shape, axis, tmp_path):
    machine = dataclasses.asdict(tedsl.target.Target("llvm").machine)
    machine |= {"l2": {"size": 65536, "ways": 8}, "l3": {"size": 65536, "ways": 8}}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    data = rng.integers(-9, 10, shape).astype("float32")
    x = te.placeholder(shape, name="x")
    with tedsl.target.Target(f"llvm -model={tmp_path / 'machine.json'}"):
        asked = topi.argmax(x, axis)
        assert "tir.prefetch" in str(tedsl.lower(topi.schedules.schedule(asked), [x, asked])) or axis is None
        np.testing.assert_array_equal(run(asked, {x: data}), data.argmax(axis))
        np.testing.assert_array_equal(run(topi.sum(x, axis), {x: data}), data.sum(axis))


@pytest.mark.parametrize("shape, combined", [((64, 56), True), ((2, 3, 56, 40), True), ((57, 40), True), ((5, 15, 40), False)],
                         ids=str)
def test_places_of_rows_are_combined_before_they_are_stored(shape, combined):
    x = te.placeholder(shape, name="x")
    with tedsl.target.Target("llvm -mcpu=znver5 -num-cores=2"):
        y = topi.argmax(x, -1)
        text = str(tedsl.lower(topi.schedules.schedule(y), [x, y]))
    assert ("x_red_temp.repl.local.v0" in text) == combined, text  # in memory they were masked stores that the next step read
    data = rng.integers(0, 20, shape).astype("float32")
    data.flat[[3, 41, 77]] = np.nan, -0.0, np.nan
    np.testing.assert_array_equal(run(y, {x: data}), data.argmax(-1))


@pytest.mark.parametrize("shape, block", [((3, 56, 40), 28), ((1000, 77), 20), ((96, 56), 32), ((5, 51, 52), 16)], ids=str)
def test_places_of_some_vectors_of_rows_are_combined_together(shape, block):
    x = te.placeholder(shape, name="x")
    with tedsl.target.Target("llvm -mcpu=znver5 -num-cores=2"):
        y = topi.argmin(x, -1)
        text = str(tedsl.lower(topi.schedules.schedule(y), [x, y]))
    assert f", 0, {block})" in text, text
    data = rng.integers(0, 20, shape).astype("float32")
    np.testing.assert_array_equal(run(y, {x: data}), data.argmin(-1))


FEW = [((500, 1), 0), ((500, 3), 0), ((1001, 7), 0), ((77, 16), 0), ((300, 30), 0), ((5, 200, 4), 1), ((2, 130, 2, 3), 1),
       ((40, 50, 5), (0, 1)), ((100_000, 8), 0), ((70_001, 9), 0)]


@pytest.mark.parametrize("shape, axis", FEW, ids=str)
def test_few_columns_have_results_of_neighbouring_rows(shape, axis):
    data = rng.integers(-9, 10, shape).astype("float32")
    x = te.placeholder(shape, name="x")
    for behind in (False, True):
        for op, of in ((topi.sum, np.sum), (topi.max, np.max)):
            out = topi.nn.relu(op(x, axis) - 3.0) if behind else op(x, axis)
            expected = of(data, axis=axis)
            np.testing.assert_array_equal(run(out, {x: data}), np.maximum(expected - 3, 0) if behind else expected)


@pytest.mark.parametrize("cores", [1, 4])
@pytest.mark.parametrize("shape, rows", [((4096, 8), 8), ((4096, 16), 4), ((4096, 20), 2), ((4096, 40), 1), ((20, 8), 1)],
                         ids=str)
def test_so_many_rows_are_added_up_beside_each_other(shape, rows, cores):
    """Eight vectors of results at least: an addition waits for the one before."""
    x = te.placeholder(shape, name="x")
    s = topi.schedules.schedule([topi.sum(x, 0)], tedsl.target.Target(f"llvm -mcpu=znver3 -model=znver3 -num-cores={cores}"))
    assert (".rfactor(" in str(s.journal)) == (rows > 1) and (f"factor={rows})" in str(s.journal)) == (rows > 1)


def test_compilers_of_c_combine_lanes_in_steps():
    """The halves of a vector would be arrays in memory."""
    x = te.placeholder((40, 200), name="x")
    y = topi.sum(x, 1)
    for target, combined in (("c", False), ("llvm -mcpu=znver3", True)):
        s = topi.schedules.schedule([y], tedsl.target.Target(target))
        assert ("tir.sum_lanes" in str(tedsl.lower(s, [x, y]))) == combined


@pytest.mark.parametrize("target", ["llvm -mtriple=aarch64-linux-gnu", "llvm -mcpu=x86-64"])
def test_rows_are_vectors_where_the_machine_has_no_masks(target):
    """Only the last vector of a row has a mask, of a constant number of lanes."""
    x = te.placeholder((64, 200), name="x")
    y = topi.sum(x, 1)
    s = topi.schedules.schedule([y], tedsl.target.Target(target))
    text = tedsl.build(s, [x, y], target=target).get_source("ll")
    assert "load <16 x float>" in text and "load <8 x float>" in text
    assert text.count("load float") == 1  # the element that the row is added to
