"""Several vectors in a step: where chains of operations would wait, where chunks leave a rest, and in rows with a border."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te

AVX2 = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver3"
SSE = "llvm -mtriple=x86_64-linux-gnu -mcpu=nehalem"
AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver4"


def lanes(function, size, target):
    x = te.placeholder(size if isinstance(size, tuple) else (size,), name="x")
    y = function(x)
    with tedsl.target.Target(target):
        schedule = topi.x86.schedule_injective(y)
    (vector,) = [r for r in schedule[y].relations if getattr(r, "inner", None) is schedule[y].leaf_iter_vars[-1]]
    return vector.factor


@pytest.mark.parametrize("function, size, target, expected", [
    (topi.exp, 100_000, AVX2, 32),
    (topi.tanh, 1000 * 16, AVX2, 32),
    (topi.exp, 101 * 16, AVX2, 32),
    (topi.exp, 100_003, AVX2, 32),
    (topi.exp, 256, AVX2, 32),
    (topi.exp, (100, 1003), AVX2, 32),
    (topi.exp, (1003, 100), AVX2, 32),
    (topi.exp, (1003, 51), AVX2, 32),
    (topi.exp, (1003, 51), AVX512, 64),
    (topi.exp, (1003, 130), AVX512, 64),
    (lambda x: topi.add(x, 1.0), 100_000, AVX2, 8),
    (topi.exp, 100_000, AVX512, 64),
    (topi.exp, 1 << 20, AVX512, 64),
])
def test_vectors_of_a_step(function, size, target, expected):
    assert int(lanes(function, size, target)) == expected


@pytest.mark.parametrize("columns, target, expected", [(1446, AVX2, 32), (100, AVX2, 32), (1446, AVX512, 64)])
def test_exponentials_of_a_softmax(columns, target, expected):
    out = topi.nn.softmax(te.placeholder((40, columns), name="x"))
    with tedsl.target.Target(target):
        schedule = topi.schedules.schedule([out])
    (exponentials,) = [stage for stage in schedule.stages if stage.op.name == "T_softmax_exp"]
    (vector,) = [r for r in exponentials.relations if getattr(r, "inner", None) is exponentials.leaf_iter_vars[-1]]
    assert int(vector.factor) == expected


@pytest.mark.parametrize("columns, dtype, target, together", [
    (58, "float32", AVX512, True), (114, "float32", AVX512, True), (33, "float32", AVX512, True), (62, "float64", AVX512, True),
    (32, "float32", AVX512, False), (129, "float32", AVX512, False), (30, "float32", AVX2, True), (16, "float32", AVX2, False),
    (33, "float32", AVX2, False), (60, "int16", AVX2, False), (14, "float32", SSE, False)])
def test_rows_with_a_border_are_one_step_where_each_vector_of_them_has_a_mask(columns, dtype, target, together):
    x = te.placeholder((4, 30, columns - 2), dtype, name="x")
    with tedsl.target.Target(target):
        padded = topi.nn.pad(x, (0, 1, 1))
        lanes = topi.x86.schedule_injective(padded)[padded].leaf_iter_vars[-1]
    assert (lanes is padded.op.axis[-1]) == together


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16", "bool"])
@pytest.mark.parametrize("columns", [1, 15, 17, 31, 40, 63, 64, 100, 126])
@pytest.mark.parametrize("before, after", [(1, 1), (3, 0), (0, 5), (40, 2)])
def test_borders_of_rows(columns, dtype, before, after):
    x = te.placeholder((2, 3, columns), dtype, name="x")
    padded = topi.nn.pad(x, (0, 1, before), (1, 0, after), 1)
    a = np.random.default_rng(0).integers(0, 2, (2, 3, columns)).astype(dtype)
    b = np.zeros((3, 4, columns + before + after), dtype)
    tedsl.build(topi.schedules.schedule(padded), [x, padded])(a, b)
    np.testing.assert_array_equal(b, np.pad(a, ((0, 1), (1, 0), (before, after)), constant_values=1))


FAR = "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -model=sapphirerapids"


@pytest.mark.parametrize("function, size, target, streams", [
    (topi.exp, 1 << 23, FAR, True), (lambda x: topi.add(x, 1.0), 6_400_001, FAR, True),
    (topi.exp, 1 << 22, FAR, False),  # stays in the last cache
    (topi.exp, 1 << 23, f"{FAR} -num-cores=64", False),  # too few chunks
    (topi.exp, 1 << 24, "llvm -mtriple=x86_64-linux-gnu -mcpu=znver5 -model=znver5", False)])
def test_elements_from_afar_are_read_in_several_places_side_by_side(function, size, target, streams):
    x = te.placeholder((size,), name="x")
    y = function(x)
    with tedsl.target.Target(target):
        schedule = topi.schedules.schedule([y])
        text = str(tedsl.lower(schedule, [x, y], simple_mode=True))
    assert ("ax0.inner.outer*16384)" in text) == streams, text
    assert streams == (len(schedule[y].leaf_iter_vars) == 4)


@pytest.mark.parametrize("size", [6_400_001, 1 << 23])
def test_streams_of_elements_with_a_rest(size):
    x = te.placeholder((size,), name="x")
    y = topi.add(x, 1.0)
    with tedsl.target.Target("llvm -model=sapphirerapids"):
        kernel = tedsl.build(topi.schedules.schedule([y]), [x, y])
    room = np.zeros(size + 5, "float32")
    data, out = np.random.default_rng(0).random(size, "float32"), room[2:-3]
    kernel(data, out)
    np.testing.assert_array_equal(out, data + np.float32(1))
    assert not room[:2].any() and not room[-3:].any()
