"""Work is shared out evenly among the cores of the target, and the results are right for any number of them."""

import re

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from topi.schedules.cpu.parallel import chunk_length, tasks_of_tiles

rng = np.random.default_rng(0)


def computed(out, arrays, cores):
    """Returns the extents of the parallel loops of topi's schedule for so many cores, and what the kernel computes."""
    args, result = [*arrays, out], np.zeros([int(extent) for extent in out.shape], out.dtype)
    target = Target(f"llvm -num-cores={cores}")
    s = topi.schedules.schedule(out, target)
    loops = re.findall(r', 0, (\d+)\) "parallel"', str(tedsl.lower(s, args, simple_mode=True)))
    tedsl.build(s, args, target)(*arrays.values(), result)
    return [int(extent) for extent in loops], result


@pytest.mark.parametrize("extent, cores, tasks, chunks", [
    (100_000, 2, 1, 8), (100_000, 1, 1, 7), (100_000, 16, 1, 7), (40_000, 2, 1, 4), (40_000, 2, 2, 3), (50_000, 4, 3, 4),
    (1 << 24, 6, 1, 1024), (16 * 1024, 4, 1, 1)])
def test_each_core_has_the_same_number_of_chunks(extent, cores, tasks, chunks):
    """Of seven chunks one of two cores would take four. Many chunks, and fewer than cores, are as long as they may be."""
    length = chunk_length(Target(f"llvm -num-cores={cores}"), extent, 16 * 1024, 64, tasks)
    assert length % 64 == 0 and -(-extent // length) == chunks


@pytest.mark.parametrize("around, tiles, cores, size, time", [
    (1, 79, 2, 40, 40), (3, 79, 2, 40, 120), (4, 5, 4, 5, 5), (5, 4, 4, 1, 5), (1, 1, 8, 1, 1), (1, 100, 16, 7, 7)])
def test_tiles_are_shared_out_so_that_the_cores_are_done_soonest(around, tiles, cores, size, time):
    assert tasks_of_tiles(Target(f"llvm -num-cores={cores}"), around, tiles) == (size, time)


@pytest.mark.parametrize("cores, chunks", [(1, 7), (2, 8), (4, 8), (5, 10)])
def test_elements(cores, chunks):
    a = te.placeholder((100_003,), name="a")
    x = rng.standard_normal(100_003, "float32")
    loops, y = computed(topi.multiply(a, 3.0), {a: x}, cores)
    assert loops == [chunks]
    np.testing.assert_array_equal(y, 3 * x)


@pytest.mark.parametrize("cores, chunks", [(1, 3), (2, 4)])
def test_sums_of_all_elements(cores, chunks):
    a = te.placeholder((90_001,), "int32", name="a")
    x = rng.integers(-9, 9, 90_001, "int32")
    loops, y = computed(topi.sum(a), {a: x}, cores)
    assert loops == [chunks] and y == x.sum()


@pytest.mark.parametrize("rows, terms, columns, cores", [
    (297, 130, 20, 2), (709, 481, 14, 4), (237, 324, 271, 2), (150, 202, 134, 16), (237, 324, 271, 16), (200, 90, 35, 16)])
@pytest.mark.parametrize("turned", [False, True])
def test_rows_of_products_are_tasks_where_panels_are_few(rows, terms, columns, cores, turned):
    """The cores take at most a third longer than if all were busy until the end. A copy that the tasks share is made before."""
    x, y = rng.standard_normal((rows, terms), "float32"), rng.standard_normal((terms, columns), "float32")
    a, b = te.placeholder(x.shape, name="a"), te.placeholder((columns, terms) if turned else (terms, columns), name="b")
    out = topi.nn.relu(topi.nn.dense(a, b) if turned else topi.matmul(a, b))
    loops, c = computed(out, {a: x, b: np.ascontiguousarray(y.T) if turned else y}, cores)
    assert len(loops) <= 2 and -(-loops[-1] // cores) * cores / loops[-1] <= 4 / 3, loops
    np.testing.assert_allclose(c, np.maximum(x @ y, 0), rtol=1e-4, atol=1e-3)



@pytest.mark.parametrize("cpu, batch, rows, columns, terms, cores", [
    ("znver3", 5, 19, 11, 319, 2), ("znver3", 5, 19, 11, 319, 16), ("znver5", 3, 11, 67, 417, 2)])
def test_cores_without_work_are_better_than_conditions_in_tiles(cpu, batch, rows, columns, terms, cores):
    """Fused with the batches, the loop over columns would have a condition around every term, for the last tile is smaller."""
    target = Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu} -num-cores={cores}")
    a, b = te.placeholder((batch, rows, terms), name="a"), te.placeholder((batch, columns, terms), name="b")
    out = topi.nn.batch_matmul(a, b)
    s = topi.schedules.schedule(out, target)
    assert f'0, {batch}) "parallel"' in str(tedsl.lower(s, [a, b, out], simple_mode=True))


@pytest.mark.parametrize("channels, filters, size, cores, tasks", [
    (38, 18, 59, 2, 55), (38, 18, 59, 16, 55), (300, 70, 7, 2, 12), (64, 64, 56, 16, 16), (64, 12, 40, 64, 50)])
def test_tasks_of_pointwise_convolutions(channels, filters, size, cores, tasks):
    """Panels of pixels or tiles of channels, whichever leave the cores less idle, or both."""
    target = Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu=znver5 -num-cores={cores}")
    x, w = te.placeholder((1, channels, size, size), name="x"), te.placeholder((filters, channels, 1, 1), name="w")
    out = topi.nn.relu(topi.nn.conv2d(x, w, 1, 0, 1, layout="NCHW"))
    text = str(tedsl.lower(topi.schedules.schedule(out, target), [x, w, out], simple_mode=True))
    assert re.findall(r', 0, (\d+)\) "parallel"', text) == [str(tasks)]


def test_cores_write_rows_of_their_own_where_each_would_have_one_panel():
    """Halves of each row would share lines, which two cores write at the same time."""
    a, b = te.placeholder((2000, 128), name="a"), te.placeholder((128, 64), name="b")
    out = topi.matmul(a, b)
    target = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver5 -num-cores=2")
    text = str(tedsl.lower(topi.schedules.schedule(out, target), [a, b, out], simple_mode=True))
    assert 'for (i.outer.outer: int32, 0, 2) "parallel"' in text, text


@pytest.mark.parametrize("batch, cores", [((), 1), ((2,), 2), ((2,), 1)])
def test_a_panel_alone_is_copied_where_it_is_used(batch, cores):
    """One core, or one for each batch, is busy: nothing is shared out by rows, so no copy is made before."""
    a, b = te.placeholder((*batch, 297, 600), name="a"), te.placeholder((*batch, 600, 20), name="b")
    out = topi.nn.batch_matmul(a, b, transpose_b=False) if batch else topi.matmul(a, b)
    target = Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu=znver5 -num-cores={cores}")
    text = str(tedsl.lower(topi.schedules.schedule(out, target), [a, b, out], simple_mode=True))
    assert "b.global" in text and text.count('"parallel"') == len(batch), text
