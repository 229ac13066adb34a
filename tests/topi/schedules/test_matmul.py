"""Products of matrices by every schedule, over shapes that no tile divides, dtypes, transposed and symbolic ones."""

import dataclasses
import json
import re

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ShapeError
from tedsl.target import Target
from tests.topi.run import run
from topi.schedules.packing import panels_in

rng = np.random.default_rng(0)
SHAPES = [(1, 1, 1), (1, 70, 33), (3, 5, 7), (4, 300, 6), (13, 1, 40), (12, 64, 32), (25, 17, 65), (40, 33, 100), (17, 130, 1)]


def tensors(*arrays):
    return [te.placeholder(a.shape, str(a.dtype), name=name) for a, name in zip(arrays, "abcd")]


def floats(*shape):
    return rng.standard_normal(shape, "float32")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_dense_with_what_follows(shape):
    m, k, n = shape
    x, w, bias = floats(m, k), floats(n, k), floats(n)
    a, b, c = tensors(x, w, bias)
    out = topi.nn.relu(topi.nn.dense(a, b, c))
    np.testing.assert_allclose(run(out, {a: x, b: w, c: bias}), np.maximum(x @ w.T + bias, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("wide", [16, 32, 48, 5])
@pytest.mark.parametrize("shape", [(1, 20, 64), (3, 5, 70), (40, 33, 100), (17, 130, 48)], ids=str)
def test_dense_by_panels(shape, wide):
    m, k, n = shape
    x, w, bias = floats(m, k), floats(n, k), floats(n)
    v = te.placeholder(w.shape, name="v")
    panels = run(topi.nn.dense_pack_weights(v, wide), {v: w})
    assert panels.shape == (-(-n // wide), k, wide)
    a, p, c = tensors(x, panels, bias)
    out = topi.nn.relu(topi.nn.dense(a, topi.nn.dense_unpack_weights(p, n), c))
    np.testing.assert_allclose(run(out, {a: x, p: panels, c: bias}), np.maximum(x @ w.T + bias, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int8"])
def test_dense_by_panels_of_other_dtypes(dtype):
    x, w = (rng.integers(-5, 5, shape).astype(dtype) for shape in ((9, 24), (50, 24)))
    u, (a, v) = te.placeholder((24, 50), dtype, name="u"), tensors(x, w)
    panels = run(topi.nn.dense_pack_weights(v, 32), {v: w})
    np.testing.assert_array_equal(run(topi.nn.dense_pack_weights(u, 32, "IO"), {u: np.ascontiguousarray(w.T)}), panels)
    p = te.placeholder(panels.shape, dtype, name="p")
    out = topi.nn.dense(a, topi.nn.dense_unpack_weights(p, 50), None, "int32" if dtype == "int8" else dtype)
    np.testing.assert_array_equal(run(out, {a: x, p: panels}), x.astype("int64") @ w.T.astype("int64"))


def test_panels_are_read_as_they_lie():
    a, w = te.placeholder((40, 96), name="a"), te.placeholder((70, 96), name="w")
    wide = panels_in([topi.nn.dense(a, w)])[w].results
    p = te.placeholder((-(-70 // wide), 96, wide), name="p")
    for size in (wide, 16):
        p = te.placeholder((-(-70 // size), 96, size), name="p")
        s = topi.schedules.schedule([topi.nn.dense(a, topi.nn.dense_unpack_weights(p, 70))])
        assert not [stage.op.name for stage in s.stages if stage.op.name.endswith(".global")]


def by_panels(m, k, n, target):
    """relu(x wᵀ) by weights that were packed as is best: the panels, their width, x and the result."""
    with target:
        a, w = te.placeholder((m, k), name="a"), te.placeholder((n, k), name="w")
        wide = panels_in([topi.nn.dense(a, w)])[w].results
        p = te.placeholder((-(-n // wide), k, wide), name="p")
        return p, wide, a, topi.nn.relu(topi.nn.dense(a, topi.nn.dense_unpack_weights(p, n)))


@pytest.mark.parametrize("m, k, n, asked", [
    (128, 768, 3072, True),
    (128, 768, 300, False),     # the panels stay in half of the second cache
    (64, 4096, 1024, True),     # panels of 32 columns: two of 64 would not fit half of it
    (64, 16384, 1024, False),   # nor would two of one vector
    (4000, 768, 3072, False)])  # the first of so many tiles does not count
def test_the_next_panel_is_asked_for_beside_this_one(m, k, n, asked):
    target = Target("llvm -mcpu=sapphirerapids -model=sapphirerapids")
    *_, out = by_panels(m, k, n, target)
    with target:
        s = topi.schedules.schedule([out])
    assert ("prefetching p 1 ahead bit by bit" in str(s[s.outputs[0]])) == asked


def test_few_lines_are_asked_for_at_once():
    """A core follows some 16 lines: 43 of them after each 64 terms, which would come out even, kept tiles waiting."""
    target = Target("llvm -mcpu=sapphirerapids -model=sapphirerapids")
    *_, out = by_panels(24, 4096, 1024, target)
    with target:
        s = topi.schedules.schedule([out])
    assert re.search(r"for k\.inner in 0\.\.16\b", str(s))


@pytest.mark.parametrize("m, k, n", [(40, 96, 200), (33, 130, 300), (70, 64, 240), (12, 192, 301)])
def test_panels_that_are_asked_for(m, k, n, tmp_path):
    machine = dataclasses.asdict(Target("llvm -mcpu=x86-64-v3 -model=x86-64-v3").machine)
    machine["l2"]["size"] = 96 << 10
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    target = Target(f"llvm -mcpu=x86-64-v3 -model={tmp_path / 'machine.json'}")
    p, wide, a, out = by_panels(m, k, n, target)
    with target:
        s = topi.schedules.schedule([out])
        kernel = tedsl.build(s, [a, p, out])
    assert "bit by bit" in str(s[s.outputs[0]])
    x, w = floats(m, k), floats(n, k)
    panels = np.zeros((-(-n // wide) * wide, k), "float32")
    panels[:n] = w
    y = np.empty((m, n), "float32")
    kernel(x, np.ascontiguousarray(panels.reshape(-1, wide, k).swapaxes(1, 2)), y)
    np.testing.assert_allclose(y, np.maximum(x @ w.T, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("made, message", [
    (lambda w, p: topi.nn.dense_pack_weights(w, 0), "panels have 0 results"),
    (lambda w, p: topi.nn.dense_pack_weights(p, 4), "weights of 2 dimensions"),
    (lambda w, p: topi.nn.dense_pack_weights(w, 4, "NC"), 'layout "NC"'),
    (lambda w, p: topi.nn.dense_unpack_weights(p, 9), "are no panels of 9 results"),
    (lambda w, p: topi.nn.dense_unpack_weights(w, 9), "are no panels of 9 results"),
])
def test_what_are_no_panels(made, message):
    with pytest.raises(ShapeError, match=message):
        made(te.placeholder((8, 3), name="w"), te.placeholder((2, 3, 4), name="p"))


@pytest.mark.parametrize("rows, columns", [(1, 3), (13, 1), (33, 10), (100, 16)])
@pytest.mark.parametrize("behind", [False, True])
def test_few_columns_are_added_up_in_two_halves(rows, columns, behind):
    """An odd term of 1 is lost beside 2**24 in float32, and not in a sum of its own."""
    x, w, bias = np.zeros((rows, 64), "float32"), np.ones((columns, 64), "float32"), np.zeros(columns, "float32")
    x[:, 0], x[:, 1::2] = 2**24, 1
    a, b, c = tensors(x, w, bias)
    out = topi.nn.dense(a, b, c) if behind else topi.nn.dense(a, b)
    np.testing.assert_array_equal(run(out, {a: x, b: w, **({c: bias} if behind else {})}), np.float32(2**24 + 32))


@pytest.mark.parametrize("schedule", ["x86", "generic", "cuda"])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)], ids=str)
def test_matmul(turned, schedule):
    x, y = floats(19, 37), floats(37, 45)
    a, b = tensors(np.ascontiguousarray(x.T) if turned[0] else x, np.ascontiguousarray(y.T) if turned[1] else y)
    out = topi.matmul(a, b, *turned)
    arrays = {a: x.T if turned[0] else x, b: y.T if turned[1] else y}
    np.testing.assert_allclose(run(out, arrays, schedule), x @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 2, 3, 4), (3, 20, 70, 33), (2, 12, 300, 5), (3, 34, 64, 10), (5, 1, 8, 40)], ids=str)
@pytest.mark.parametrize("batches", ["both", "first", "second"])
def test_batch_matmul(shape, batches):
    n, m, k, p = shape
    x, y = floats(1 if batches == "second" else n, m, k), floats(1 if batches == "first" else n, p, k)
    a, b = tensors(x, y)
    np.testing.assert_allclose(run(topi.nn.batch_matmul(a, b), {a: x, b: y}), x @ y.transpose(0, 2, 1), rtol=1e-4, atol=1e-4)


def test_batch_matmul_by_other_layouts():
    x, y = floats(2, 9, 21), floats(2, 9, 34)
    a, b = tensors(x, y)
    out = topi.nn.batch_matmul(a, b, transpose_a=True, transpose_b=False)
    np.testing.assert_allclose(run(out, {a: x, b: y}), x.transpose(0, 2, 1) @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype, out_dtype", [("float64", None), ("float16", None), ("int8", "int32"), ("int32", None)])
def test_dtypes(dtype, out_dtype):
    x, w = (rng.integers(-5, 5, shape).astype(dtype) for shape in ((7, 40), (20, 40)))
    a, b = tensors(x, w)
    out = topi.nn.dense(a, b, out_dtype=out_dtype)
    assert out.dtype == (out_dtype or dtype)
    expected = x.astype("float64") @ w.T.astype("float64")
    np.testing.assert_array_equal(run(out, {a: x, b: w}), expected.astype(out_dtype or dtype))


@pytest.mark.parametrize("schedule", ["x86", "generic"])
def test_symbolic_batch(schedule):
    n = te.var("n")
    x, w = floats(19, 24), floats(20, 24)
    a, b = te.placeholder((n, 24), name="a"), te.placeholder((20, 24), name="b")
    np.testing.assert_allclose(run(topi.nn.dense(a, b), {a: x, b: w}, schedule), x @ w.T, rtol=1e-4, atol=1e-4)
    c, d = te.placeholder((n, 7, 24), name="c"), te.placeholder((n, 20, 24), name="d")
    y, z = floats(3, 7, 24), floats(3, 20, 24)
    np.testing.assert_allclose(run(topi.nn.batch_matmul(c, d), {c: y, d: z}, schedule), y @ z.transpose(0, 2, 1), rtol=1e-4,
                               atol=1e-4)


@pytest.mark.parametrize("shape", [(0, 4, 5), (3, 0, 5), (3, 4, 0)], ids=str)
def test_empty(shape):
    m, k, n = shape
    x, w = floats(m, k), floats(n, k)
    a, b = tensors(x, w)
    np.testing.assert_array_equal(run(topi.nn.dense(a, b), {a: x, b: w}), np.zeros((m, n)))


@pytest.mark.parametrize("axes", [0, 1, 2, ((0,), (1,)), ((1, 0), (0, 1)), (1, 0)], ids=str)
def test_tensordot(axes):
    x, y = floats(4, 4), floats(4, 4)
    a, b = tensors(x, y)
    np.testing.assert_allclose(run(topi.tensordot(a, b, axes), {a: x, b: y}), np.tensordot(x, y, axes), rtol=1e-4, atol=1e-5)


def test_refusals():
    a, b = te.placeholder((3, 4), name="a"), te.placeholder((5, 6), name="b")
    with pytest.raises(ValueError, match=r"dense of a and b: 4 and 6 terms to sum, shapes \(3, 4\) and \(5, 6\)"):
        topi.nn.dense(a, b)
    with pytest.raises(ValueError, match=r"matmul of a and b: 4 and 5 terms"):
        topi.matmul(a, b)
    with pytest.raises(ValueError, match=r"bias c has the shape \(3,\), the result \(3, 5\)"):
        topi.nn.dense(a, te.placeholder((5, 4), name="b"), te.placeholder((3,), name="c"))
    with pytest.raises(ValueError, match="not 3 dimensions"):
        topi.nn.batch_matmul(a, b)
    with pytest.raises(ValueError, match=r"batches of 2 and 3"):
        topi.nn.batch_matmul(te.placeholder((2, 3, 4), name="a"), te.placeholder((3, 5, 4), name="b"))
    with pytest.raises(TypeError, match="a holds float32 and c int8"):
        topi.nn.dense(a, te.placeholder((5, 4), "int8", name="c"))
    with pytest.raises(ValueError, match=r"tensordot of a and b: the axes \(1,\) of \(3, 4\) and \(0,\)"):
        topi.tensordot(a, b, 1)


@pytest.mark.parametrize("rows, columns, terms, panels", [(36, 512, 40, 4), (61, 432, 33, 3), (40, 112, 200, 1),
                                                           (64, 64, 64, 0)])
def test_columns_are_packed_by_panels_beside_each_other(rows, columns, terms, panels):
    """Rows of the second matrix are read in pieces of several lines; a small matrix stays in L1 as it is."""
    x, y = floats(rows, terms), floats(terms, columns)
    a, b = tensors(x, y)
    product = topi.matmul(a, b)
    s = topi.schedules.schedule([product], Target("llvm -mcpu=znver3 -model=znver3"))
    assert ("b.global" in [stage.op.name for stage in s.stages]) == (panels > 0)
    journal = str(s.journal)
    assert f"split(j_outer, factor={panels})" in journal if panels > 1 else "transform_layout" not in journal
    out = np.zeros((rows, columns), "float32")
    tedsl.build(s, [a, b, product])(x, y, out)
    np.testing.assert_allclose(out, x @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows, columns, terms, is_packed, cores, inside", [
    (61, 384, 300, False, 1, True),   # a panel of 77 KB: each tile of rows is multiplied with several before the next one
    (61, 384, 300, True, 1, True),
    (120, 144, 300, False, 2, True),  # three panels are copied before, and two cores share the rows
    (61, 384, 40, False, 1, False),   # a panel of 10 KB stays in L1 and serves all rows
    (61, 384, 40, True, 1, False)])
def test_panels_that_do_not_stay_in_l1_share_tiles_of_rows(rows, columns, terms, is_packed, cores, inside, tmp_path):
    machine = dataclasses.asdict(Target("llvm -mcpu=znver4 -model=znver4").machine) | {"cores": cores}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    target = Target(f"llvm -mcpu=znver4 -model={tmp_path / 'machine.json'}")
    x, y = floats(rows, terms), floats(terms, columns)
    a, b = tensors(x, y)
    given, packed = [x, y], [a, b]
    with target:
        product = topi.matmul(a, b)
        if is_packed:
            weights = te.placeholder((columns, terms), name="w")
            wide = panels_in(topi.nn.dense(a, weights))[weights].results
            given[1] = np.ascontiguousarray(y.reshape(terms, columns // wide, wide).transpose(1, 0, 2))
            packed[1] = te.placeholder(given[1].shape, name="p")
            product = topi.nn.dense(a, topi.nn.dense_unpack_weights(packed[1], columns))
        s = topi.schedules.schedule([product])
        loops = re.findall(r"for \((\S+?):", str(tedsl.lower(s, [*packed, product], simple_mode=True)))
    below = [at for at, loop in enumerate(loops) if loop.startswith("i.outer")]
    beside = [at for at, loop in enumerate(loops) if loop == "j.outer.inner"]
    assert (bool(beside) and beside[0] > below[-1]) == inside
    if target.runs_here:
        out = np.zeros((rows, columns), "float32")
        tedsl.build(s, [*packed, product], target=target)(*given, out)
        np.testing.assert_allclose(out, x @ y, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("batch, rows, columns, terms", [((), 4, 1024, 520), ((), 6, 520, 515), ((2,), 5, 512, 300),
                                                        ((), 3, 2056, 77)])
@pytest.mark.parametrize("behind", [False, True])
def test_a_few_rows_read_a_large_matrix_once(batch, rows, columns, terms, behind):
    """In the order of memory, 8 rows at a time, or some that divide them: 5 of 515; 77 and 7."""
    x, y = floats(*batch, rows, terms), floats(*batch, terms, columns)
    a, b = tensors(x, y)
    product = topi.nn.batch_matmul(a, b, transpose_b=False) if batch else topi.matmul(a, b)
    out = topi.nn.relu(product * 2.0) if behind else product
    s = topi.schedules.schedule([out], Target("llvm -mcpu=znver3 -model=znver3"))
    assert ".rfactor(" in str(s.journal) and "cache_read" not in str(s.journal)
    expected = np.maximum(2 * (x @ y), 0) if behind else x @ y
    np.testing.assert_allclose(run(out, {a: x, b: y}), expected, rtol=1e-3, atol=1e-3)


def test_rows_that_fit_no_tile_have_panels():
    for rows, columns, terms in [(7, 1024, 1024), (4, 1001, 1024), (4, 128, 128), (4, 1024, 1021)]:
        a, b = te.placeholder((rows, terms), name="a"), te.placeholder((terms, columns), name="b")
        s = topi.schedules.schedule([topi.matmul(a, b)], Target("llvm -mcpu=znver3 -model=znver3"))
        assert ".rfactor(" not in str(s.journal)


def test_batches_whose_columns_leave_a_rest_are_shared_out_alone():
    """Fused with the batches, the loop over tiles of columns would have conditions around every term."""
    x, y = floats(8, 9, 30), floats(8, 23, 30)
    a, b = tensors(x, y)
    product = topi.nn.batch_matmul(a, b)
    target = Target("llvm -mcpu=znver3 -model=znver3")
    s = topi.schedules.schedule([product], target)
    journal = str(s.journal)
    assert "split(T_batch_matmul_NT.op.axis[2]" in journal.replace("s[T_batch_matmul_NT]", "T_batch_matmul_NT")
    assert ".fuse(" not in journal and ".parallel(s[T_batch_matmul_NT].op.axis[0])" in journal
    np.testing.assert_allclose(run(product, {a: x, b: y}), x @ y.transpose(0, 2, 1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("columns, terms, along_terms", [(3, 117, True), (4, 512, True), (1, 64, True), (5, 117, False),
                                                        (2, 24, True), (4, 16, False), (64, 117, False)])
def test_lanes_run_along_the_terms_of_a_few_columns(columns, terms, along_terms):
    """Columns that fill no half of a vector leave most of its lanes idle, however many rows there are."""
    a, b = te.placeholder((4, 36, terms), name="a"), te.placeholder((4, columns, terms), name="b")
    s = topi.schedules.schedule([topi.nn.batch_matmul(a, b)], Target("llvm -mcpu=znver3 -model=znver3"))
    assert (".rfactor(" in str(s.journal)) == along_terms and ("b_global" in str(s.journal)) != along_terms


NARROW = [((), 40, 1, 300), ((), 37, 2, 101), ((), 9, 3, 640), ((), 300, 4, 77), ((), 1, 1, 500), ((2,), 30, 1, 90),
          ((3,), 33, 3, 230), ((), 3, 1, 24), ((), 64, 4, 2000)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("batch, rows, columns, terms", NARROW, ids=str)
def test_a_few_columns_are_turned_into_rows(batch, rows, columns, terms, behind, dtype):
    x, y = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((*batch, rows, terms), (*batch, terms, columns)))
    a, b = tensors(x, y)
    product = topi.nn.batch_matmul(a, b, transpose_b=False) if batch else topi.matmul(a, b)
    out = topi.nn.relu(product * te.const(2, dtype)) if behind else product
    expected = np.maximum(2 * (x @ y), 0) if behind else x @ y
    assert np.array_equal(run(out, {a: x, b: y}), expected)


@pytest.mark.parametrize("rows, columns, terms, lanes_along_terms, copied", [
    (300, 1, 300, True, False), (300, 4, 300, True, True), (1, 1, 64, True, False), (5, 4, 300, False, False),
    (300, 4, 20, False, False), (300, 5, 300, True, True), (300, 8, 300, False, False), (300, 2, 32, True, True)])
def test_which_columns_are_turned_into_rows(rows, columns, terms, lanes_along_terms, copied):
    """Not those that few rows use, sums of few terms, whose lanes would take longer, or columns that fill a vector."""
    a, b = te.placeholder((rows, terms), name="a"), te.placeholder((terms, columns), name="b")
    product = topi.matmul(a, b)
    s = topi.schedules.schedule([product], Target("llvm -mcpu=znver3 -model=znver3"))
    assert ("tir.sum_lanes" in str(tedsl.lower(s, [a, b, product]))) == lanes_along_terms
    assert ("cache_read(b" in str(s.journal)) == copied


def test_a_product_of_few_columns_with_a_matrix_that_is_computed():
    x, y = floats(50, 200), floats(200, 2)
    a, b = tensors(x, y)
    out = topi.matmul(a, topi.nn.relu(b) * 2.0)
    np.testing.assert_allclose(run(out, {a: x, b: y}), x @ (np.maximum(y, 0) * 2), rtol=1e-4, atol=1e-4)
    z = floats(3, 3)
    c = te.placeholder(z.shape, name="c")
    np.testing.assert_allclose(run(topi.matmul(c, c), {c: z}), z @ z, rtol=1e-4, atol=1e-4)


def test_sums_of_rows_times_rows_fit_the_registers():
    """Tiles of 8 rows by 2 would keep 16 sums of vectors, which is more than AVX2 has registers for."""
    a, b = te.placeholder((16, 256), name="a"), te.placeholder((300, 256), name="b")
    s = topi.schedules.schedule([topi.nn.dense(a, b)], Target("llvm -mcpu=znver3 -model=znver3"))
    assert "factor=8)" in str(s.journal) and str(s.journal).count("factor=4)") == 1 and "factor=3)" in str(s.journal)


@pytest.mark.parametrize("rows, columns, processor, together", [
    (1, 1000, "znver4", 10), (2, 1000, "znver4", 10), (1, 1000, "znver3", 10), (2, 1000, "znver3", 5), (1, 9, "znver4", 9),
    (1, 1031, "znver4", 10)])
def test_rows_times_rows_of_short_sums(rows, columns, processor, together):
    a, b = te.placeholder((rows, 114), name="a"), te.placeholder((columns, 114), name="b")
    s = topi.schedules.schedule([topi.nn.dense(a, b)], Target(f"llvm -mcpu={processor} -model={processor}"))
    assert f"factor={together})" in str(s.journal)


@pytest.mark.parametrize("rows, columns, processor, tall", [
    (1918, 6, "znver4", 4), (1000, 4, "znver4", 4), (999, 7, "znver4", 3), (1000, 6, "znver3", 2)])
def test_rows_are_read_once_for_all_of_a_few_columns(rows, columns, processor, tall):
    a, b = te.placeholder((rows, 1579), name="a"), te.placeholder((1579, columns), name="b")
    s = topi.schedules.schedule([topi.matmul(a, b)], Target(f"llvm -mcpu={processor} -model={processor}"))
    made = [line.split("split(")[1] for line in str(s.journal).splitlines() if "T_matmul_NN].split(" in line]
    assert any(f"factor={columns})" in line for line in made) and any(f"factor={tall})" in line for line in made), s.journal
