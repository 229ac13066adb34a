"""softmax, log_softmax and layer_norm by every schedule: any axis, odd rows, narrow floats, symbolic shapes, neighbours."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import scipy.special

import tedsl
import topi
from tedsl import te
from tedsl.target.machine import MACHINES
from tests.topi.run import run

rng = np.random.default_rng(0)
SHAPES = [((1, 1), -1), ((3, 7), -1), ((3, 7), 0), ((2, 100), 1), ((5, 64), 1), ((4, 130), 0), ((2, 3, 5), 1), ((2, 5, 40), 1),
          ((2, 3, 4, 17), -1), ((9,), 0), ((2, 6, 3, 70), 1), ((8, 77), 1), ((16, 5), 1), ((3, 24, 130), 2), ((8, 1), 1),
          ((16, 300), 1), ((2, 8, 1, 8), -1), ((2, 16, 1, 1, 4), -1), ((33, 17), 1), ((3, 37, 50), 2), ((15, 40), 1)]


@pytest.mark.parametrize("shape, axis", SHAPES, ids=str)
@pytest.mark.parametrize("operator", ["softmax", "log_softmax"])
def test_along_any_axis(operator, shape, axis):
    data = rng.standard_normal(shape, "float32") * 5
    x = te.placeholder(shape, name="x")
    expected = getattr(scipy.special, operator)(data, axis=axis)
    np.testing.assert_allclose(run(getattr(topi.nn, operator)(x, axis), {x: data}), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape, axis", [((3, 4, 0), 1), ((0, 5, 0), 1), ((0, 5), 0), ((5, 0), 1), ((0, 40), -1)], ids=str)
@pytest.mark.parametrize("operator", ["softmax", "log_softmax"])
def test_without_elements(operator, shape, axis):
    x = te.placeholder(shape, name="x")
    assert run(getattr(topi.nn, operator)(x, axis), {x: np.empty(shape, "float32")}).shape == shape


@pytest.mark.parametrize("schedule", ["plain", "generic", "cuda"])
@pytest.mark.parametrize("axis", [0, 1])
def test_by_other_schedules(schedule, axis):
    data = rng.standard_normal((5, 33), "float32")
    x = te.placeholder(data.shape, name="x")
    for operator in ("softmax", "log_softmax"):
        made = run(getattr(topi.nn, operator)(x, axis), {x: data}, schedule)
        np.testing.assert_allclose(made, getattr(scipy.special, operator)(data, axis=axis), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("schedule", ["x86", "generic"])
def test_large_values_do_not_overflow(schedule):
    data = np.array([[1000, 999, -1000], [-np.inf, 0, 0], [np.nan, 0, 1]], "float32")
    x = te.placeholder(data.shape, name="x")
    with np.errstate(invalid="ignore"):
        expected = scipy.special.softmax(data, axis=1)
    np.testing.assert_allclose(run(topi.nn.softmax(x), {x: data}, schedule), expected, rtol=1e-6)


@pytest.mark.parametrize("operator", ["softmax", "log_softmax"])
def test_a_nan_anywhere_in_a_row_makes_it_nan(operator):
    data = rng.standard_normal((70, 70), "float32")
    data[np.arange(66), np.arange(66)] = np.nan
    data[66], data[67, 3], data[68, 5] = -np.inf, np.inf, -np.inf
    x = te.placeholder(data.shape, name="x")
    with np.errstate(invalid="ignore"):
        less = data - data.max(1, keepdims=True)
        total = np.exp(less).sum(1, keepdims=True)
        expected = np.exp(less) / total if operator == "softmax" else less - np.log(total)
    np.testing.assert_allclose(run(getattr(topi.nn, operator)(x), {x: data}), expected, rtol=1e-5, atol=1e-6)


def test_maxima_and_exponentials_of_softmax_take_fewer_instructions():
    x = te.placeholder((512, 512), name="x")
    with tedsl.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"):
        y = topi.nn.softmax(x)
        built = tedsl.build(topi.schedules.schedule(y), [x, y])
    text = built.get_source("ll")
    assert "tedsl.exp_bounded" in text and "tedsl.exp." not in text and "fcmp uno" not in text
    assert "vminps" not in built.get_source("asm")  # nothing is compared with what is promised
    assert "llvm.prefetch" in text and "262143" not in text  # beyond the last element a prefetch does nothing


@pytest.mark.parametrize("dtype, rtol", [("float16", 2e-3), ("float64", 1e-13)])
def test_dtypes(dtype, rtol):
    data = rng.standard_normal((6, 300)).astype(dtype)
    x = te.placeholder(data.shape, dtype, name="x")
    made = run(topi.nn.softmax(x), {x: data})
    np.testing.assert_allclose(made, scipy.special.softmax(data.astype("float64"), axis=1), rtol=rtol, atol=1e-7)
    assert made.dtype == dtype and abs(made.astype("float64").sum(1) - 1).max() < (1e-2 if dtype == "float16" else 1e-12)


@pytest.mark.parametrize("schedule", ["x86", "generic"])
@pytest.mark.parametrize("axis", [0, 1])
def test_symbolic_shapes(schedule, axis):
    n, m = te.var("n"), te.var("m")
    data = rng.standard_normal((7, 83), "float32")
    x = te.placeholder((n, m), name="x")
    np.testing.assert_allclose(run(topi.nn.softmax(x, axis), {x: data}, schedule), scipy.special.softmax(data, axis), rtol=1e-5)


def test_mask_before_and_scale_after_are_computed_in_the_loops_of_softmax():
    data, mask = rng.standard_normal((6, 40), "float32"), rng.random((6, 40)) > 0.3
    x, keep = te.placeholder(data.shape, name="x"), te.placeholder(mask.shape, "bool", name="keep")
    masked = te.compute(data.shape, lambda i, j: te.if_then_else(keep[i, j], x[i, j] * 0.5, -1e9), name="masked")
    out = topi.nn.softmax(masked) * 3.0
    s = topi.x86.schedule_softmax(out)
    assert "at the root" not in str(s) and str(s).count("parallel") <= 1, s
    expected = scipy.special.softmax(np.where(mask, data * np.float32(0.5), -1e9), axis=1) * 3
    np.testing.assert_allclose(run(out, {x: data, keep: mask}), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("schedule", ["x86", "generic", "cuda"])
@pytest.mark.parametrize("shape, axis", [((4, 50), -1), ((3, 5, 33), (1, 2)), ((2, 5, 3), 1), ((2, 3, 128), 2), ((8, 77), 1),
                                         ((2, 16, 5, 9), (2, 3)), ((24, 300), 1)], ids=str)
def test_layer_norm(shape, axis, schedule):
    axes = tuple(np.atleast_1d(axis) % len(shape))
    data = rng.standard_normal(shape, "float32") + 100
    gamma, beta = (rng.random([shape[d] for d in axes], "float32") for _ in range(2))
    x, g, b = (te.placeholder(a.shape, name=name) for a, name in ((data, "x"), (gamma, "g"), (beta, "b")))
    wide = [1 if d not in axes else n for d, n in enumerate(shape)]
    exact = data.astype("float64")
    expected = (exact - exact.mean(axes, keepdims=True)) / np.sqrt(exact.var(axes, keepdims=True) + 1e-5)
    made = run(topi.nn.layer_norm(x, g, b, axis), {x: data, g: gamma, b: beta}, schedule)
    np.testing.assert_allclose(made, expected * gamma.reshape(wide) + beta.reshape(wide), rtol=1e-4, atol=1e-4)


def test_refusals():
    x = te.placeholder((3, 4), name="x")
    with pytest.raises(ValueError, match="softmax of x: axis 2 of a tensor of rank 2"):
        topi.nn.softmax(x, 2)
    with pytest.raises(TypeError, match="log_softmax of i: its elements are int32"):
        topi.nn.log_softmax(te.placeholder((3,), "int32", name="i"))
    with pytest.raises(ValueError, match=r"gamma has the shape \(3,\), the dimensions \(1,\) of \(3, 4\) are \(4,\)"):
        topi.nn.layer_norm(x, te.placeholder((3,), name="g"), None, 1)
    with pytest.raises(ValueError, match=r"bias_add of x: bias b has the shape \(3,\), dimension 1 of \(3, 4\) has 4"):
        topi.nn.bias_add(x, te.placeholder((3,), name="b"))


def test_bias_add():
    data, bias = rng.random((2, 3, 4, 5), "float32"), rng.random(3, "float32")
    x, b = te.placeholder(data.shape, name="x"), te.placeholder((3,), name="b")
    np.testing.assert_array_equal(run(topi.nn.bias_add(x, b), {x: data, b: bias}), data + bias[:, None, None])


def _asks_for_arguments(text):
    return ", 0, 3, 1, dtype=int32)" in text


def _asks_for_results(text):
    return ", 1, 3, 1, dtype=int32)" in text


@pytest.mark.parametrize("shape, formula, asks", [
    ((600, 1027), topi.nn.softmax, 1), ((512, 1024), topi.nn.log_softmax, 1),
    ((512, 1024), lambda x: topi.nn.softmax(x * 2), 1),
    ((16, 1024), topi.nn.softmax, 0), ((1, 1 << 20), topi.nn.softmax, 0), ((1 << 17, 10), topi.nn.softmax, 0),
], ids=["tails", "sums_of_exponentials", "inlined", "near", "one_row", "short_rows"])
def test_the_next_row_of_a_large_argument_is_asked_for(shape, formula, asks):
    with tedsl.target.Target("llvm -mcpu=znver4"):
        x = te.placeholder(shape, name="x")
        out = formula(x)
        text = str(tedsl.lower(topi.schedules.schedule([out]), [x, out], simple_mode=True))
    assert _asks_for_arguments(text) == bool(asks)


def normalized(data, scale, shift):
    return (data - data.mean(-1, keepdims=True)) / np.sqrt(data.var(-1, keepdims=True) + 1e-5) * scale + shift


def layer_norm_of(shape):
    x = te.placeholder(shape, name="x")
    scale, shift = [te.placeholder(shape[-1:], name=name) for name in ("scale", "shift")]
    return [x, scale, shift, topi.nn.layer_norm(x, scale, shift, [len(shape) - 1])]


# Blocks that divide the rows in tiles of four, or do not; odd ones; the last block of one row; long rows; one beyond L2.
BLOCKS = [(48, 50), (70, 33), (9, 30), (65, 29), (27, 100), (13, 583), (21, 1030), (5, 1537), (3, 50, 41), (2, 67, 600),
          (131, 2050)]


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3"])
@pytest.mark.parametrize("shape", BLOCKS, ids=str)
def test_rows_in_blocks(shape, target):
    args = layer_norm_of(shape)
    data, scale, shift = [rng.standard_normal([int(extent) for extent in arg.shape], "float32") for arg in args[:3]]
    probabilities = topi.nn.softmax(args[0])
    for inputs, tensors, out, expected in (([data, scale, shift], args[:3], args[3], normalized(data, scale, shift)),
                                           ([data], args[:1], probabilities, scipy.special.softmax(data, -1))):
        with tedsl.target.Target(target):
            s = topi.schedules.schedule([out])
        result = np.full(shape, np.nan, "float32")
        tedsl.build(s, [*tensors, out], target)(*inputs, result)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape, cores, block", [
    ((512, 50), 1, 64),  # as many as wait together
    ((486, 50), 1, 64),  # the last block is smaller: 27 or 54 rows are not whole tiles of four
    ((480, 50), 1, 60),
    ((512, 50), 16, 16),  # tasks for all cores
    ((400, 400), 1, 8),  # half of L1
    ((100, 1300), 1, 4),
    ((100, 1300), 64, 1),
    ((100, 1600), 1, 1),
    ((400, 1100), 1, 1),  # beyond L2 the next row is asked for
], ids=str)
def test_rows_of_a_block(shape, cores, block, tmp_path):
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps(asdict(replace(MACHINES["znver5"], cores=cores))))
    args = layer_norm_of(shape)
    with tedsl.target.Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu=znver5 -model={machine}"):
        s = topi.schedules.schedule(args[-1])
    text = str(tedsl.lower(s, args, simple_mode=True))
    assert f"0, {-(-shape[0] // block)}) \"parallel\"" in text, text
    assert _asks_for_arguments(text) == (4 * shape[0] * shape[1] > 1 << 20)


@pytest.mark.parametrize("shape, block, asks", [
    ((256, 512), 8, False),
    ((512, 512), 1, True),  # they and their results fill L2
    ((2048, 300), 1, True),
    ((10240, 77), 4, False),  # short rows: as many as processors look ahead
    ((10240, 30), 16, False),
], ids=str)
def test_rows_from_a_last_cache_as_far_as_memory(shape, block, asks):
    args = layer_norm_of(shape)
    with tedsl.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -model=sapphirerapids"):
        s = topi.schedules.schedule(args[-1])
    text = str(tedsl.lower(s, args, simple_mode=True))
    assert f"0, {shape[0] // block}) \"parallel\"" in text, text
    assert _asks_for_arguments(text) == asks


@pytest.mark.parametrize("shape, formula, asks", [
    ((512, 512), topi.nn.softmax, True), ((200, 512), topi.nn.log_softmax, True), ((200, 1000), None, True),
    ((512, 512), None, False),  # rows by themselves: the sum of squares is over before the lines are there
    ((8, 512), topi.nn.softmax, False),  # the result stays in L1
    ((1, 1 << 20), topi.nn.softmax, False),  # lines of a long row would be gone before they are written
    ((4096, 1024), topi.nn.softmax, False),  # past the caches
])
def test_lines_of_the_result_are_asked_for_while_a_row_is_computed(shape, formula, asks):
    args = layer_norm_of(shape) if formula is None else [x := te.placeholder(shape, name="x"), formula(x)]
    with tedsl.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -model=sapphirerapids"):
        s = topi.schedules.schedule(args[-1])
    text = str(tedsl.lower(s, args, simple_mode=True))
    assert _asks_for_results(text) == asks, text


def test_what_a_block_of_rows_adds_up_stays_in_registers_and_two_rows_share_scales():
    """In memory, 16 lanes of which the end of a row stored 2 were read again at once: 1.7 times slower."""
    args = layer_norm_of((486, 50))
    with tedsl.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver5 -model=znver5"):
        s = topi.schedules.schedule(args[-1])
    text = str(tedsl.lower(s, args, simple_mode=True))
    assert "T_layer_norm_sum.rf: Pointer(local float32), float32, [16]" in text
    assert "T_layer_norm_squares.rf: Pointer(local float32), float32, [16]" in text
    assert ".unroll(i0_inner_inner)" in str(s.journal) and ".unroll(i1_outer)" in str(s.journal)


@pytest.mark.parametrize("processor, maxima", [("znver5", 1), ("znver3", 16)])
def test_steps_of_several_vectors_of_softmax_are_written_once(processor, maxima):
    """Copies of them cost time to build, and no loop saves none of the time of the kernel."""
    with tedsl.target.Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={processor} -model={processor}"):
        x = te.placeholder((512, 512), name="x")
        y = topi.nn.softmax(x)
        text = str(tedsl.lower(topi.schedules.schedule(y), [x, y], simple_mode=True))
    lines = [line.strip() for line in text.splitlines()]
    assert sum(line.startswith("T_softmax_maxelem.rf[") for line in lines) == 1 + maxima
    assert sum(line.startswith("T_softmax_norm") and " = " in line for line in lines) == 1, text
