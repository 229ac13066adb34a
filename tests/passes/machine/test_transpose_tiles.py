"""Turned tiles, which are read by rows and turned in registers."""

import itertools
import re

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Load, Ramp, Shuffle, SizeVar, Var, pointer_var
from tedsl.ir.stmt import For, LetStmt, Store, seq
from tedsl.ir.walk.visitor import post_order, uses
from tedsl.passes.loops.vectorize_loops import vectorize_loops
from tedsl.passes.machine.transpose_tiles import transpose_tiles, transposed
from tedsl.target import Target
from tests.passes.programs import VECTORIZED, Function, allocate, check, imm, loop, when

pytestmark = pytest.mark.sampled(2)

SSE, AVX2 = Target("llvm -mtriple=x86_64-linux-gnu"), Target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell")
AVX512, NEON = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"), Target("llvm -mtriple=aarch64-linux-gnu")
ZEN3 = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver3")
RISCV = Target("llvm -mtriple=riscv64-linux-gnu -mcpu=spacemit-x60")
K, V = Var("k"), Var("v")


def turned(columns, lanes, dtype="float32", rows=None, on=None, noalias=True):
    """B[k, v] = A[v, k] + 1 for `columns` values of k, vectorized along v; lanes from `on` on are off."""
    rows = lanes if rows is None else rows
    f = Function(noalias, A=(rows * 64, dtype), B=(64 * lanes, dtype))
    value = build.add(f.load("A", build.add(build.mul(V, 64), K)), imm(1, dtype))
    body = f.store("B", build.add(build.mul(K, lanes), V), value)
    if on is not None:
        body = when(build.less(V, on), body)
    return vectorize_loops(f.func(loop(K, columns, loop(V, lanes, body, VECTORIZED))))


@pytest.mark.parametrize("size, part", [(2, 2), (4, 4), (8, 4), (8, 8), (16, 4), (16, 2), (16, 16), (4, 16)])
def test_columns_are_made_from_rows(size, part):
    """The network on numbered elements; each shuffle takes two rows of the right length."""
    rows = [np.arange(size) + 100 * at for at in range(size)]
    steps = []

    def shuffle(a, b, picks):
        steps.append(picks)
        return np.concatenate([a, b])[picks]

    assert np.array_equal(np.stack(transposed(rows, part, shuffle)), np.stack(rows).T)
    assert len(steps) == size * (size.bit_length() - 1)


@pytest.mark.parametrize("target, width", [(SSE, 4), (AVX2, 8), (AVX512, 16), (NEON, 4)])
def test_a_tile_is_as_wide_as_a_vector_of_the_target(target, width):
    after = check(transpose_tiles, turned(16, 16), target)
    loads = [node for node in post_order(after.body) if isinstance(node, Load)]
    assert {load.dtype.lanes for load in loads} == {width}
    assert {build.as_int(load.index.stride) for load in loads} == {1}


@pytest.mark.parametrize("columns, lanes, dtype, target", [  # each extent with each number of lanes, dtypes by turns
    (columns, lanes, ("float64", "int8", "int16", "float32")[(at + turn) % 4], target)
    for at, columns in enumerate([1, 3, 4, 7, 16, 37]) for turn, lanes in enumerate([4, 5, 8, 12, 14, 16, 17, 48])
    for target in (SSE, AVX512)])
def test_any_extent_and_any_number_of_lanes(columns, lanes, dtype, target):
    check(transpose_tiles, turned(columns, lanes, dtype), target)


@pytest.mark.parametrize("columns", [4, 9, 16, 37])
@pytest.mark.parametrize("lanes", [4, 12, 16, 17])
def test_iterations_that_go_down_in_memory(columns, lanes):
    """B[k, v] = A[v, columns - 1 - k], as where a window is flipped."""
    f = Function(A=(lanes, columns), B=(columns, lanes))
    last = build.sub(columns - 1, K)
    body = f.store("B", build.add(build.mul(K, lanes), V), f.load("A", build.add(build.mul(V, columns), last)))
    before = vectorize_loops(f.func(loop(K, columns, loop(V, lanes, body, VECTORIZED))))
    for target in (SSE, AVX2, AVX512, NEON):
        after = check(transpose_tiles, before, target)
        loads = [node for node in post_order(after.body) if isinstance(node, Load)]
        assert any(node.dtype.lanes > 1 and build.as_int(node.index.stride) == 1 for node in loads)


def test_a_symbolic_extent():
    n = SizeVar("n")
    f = Function(A=(16, n), B=(n, 16))
    body = f.store("B", build.add(build.mul(K, 16), V), f.load("A", build.add(build.mul(V, n), K)))
    before = vectorize_loops(f.func(loop(K, n, loop(V, 16, body, VECTORIZED))))
    for size in (0, 1, 3, 8, 15, 16, 17, 40):
        after = check(transpose_tiles, before, AVX2, shapes={"A": (16, size), "B": (size, 16)})
        assert after is not before


@pytest.mark.parametrize("lanes", [4, 5, 7, 14, 16, 24])
def test_rows_that_are_a_size_of_the_call_apart(lanes):
    """Every group of lanes is computed, although a proof about its rows may fail."""
    n = SizeVar("n")
    f = Function(A=(lanes, n), B=(lanes, n))
    at = build.add(build.mul(V, n), K)
    before = vectorize_loops(f.func(loop(K, n, loop(V, lanes, f.store("B", at, f.load("A", at)), VECTORIZED))))
    for size in (0, 3, 8, 19, 32):
        for target in (SSE, AVX2):
            assert check(transpose_tiles, before, target, shapes={"A": (lanes, size), "B": (lanes, size)}) is not before


def test_a_negative_extent_runs_nothing():
    n = Var("n")
    f = Function(A=(16, 64), B=(64, 16))
    body = f.store("B", build.add(build.mul(K, 16), V), f.load("A", build.add(build.mul(V, 64), K)))
    before = vectorize_loops(f.func(loop(K, n, loop(V, 16, body, VECTORIZED)), n))
    for extent in (-20, -9, -8, -5, -1, 0, 1, 8, 60):
        assert check(transpose_tiles, before, AVX2, scalars=(extent,)) is not before


def test_what_is_read_under_a_condition_is_not_read_by_rows():
    """The row of lane 15 ends where A ends; the iterations that would read beyond do not read."""
    f = Function(A=(15 * 16 + 12,), B=(256,))
    value = build.if_then_else(build.less(K, 12), f.load("A", build.add(build.mul(V, 16), K)), imm(3, "float32"))
    before = vectorize_loops(f.func(loop(K, 16, loop(V, 16, f.store("B", build.add(build.mul(K, 16), V), value), VECTORIZED))))
    assert transpose_tiles(before, AVX2) is before


@pytest.mark.parametrize("target", [SSE, AVX2, AVX512], ids=["lane by lane", "AVX2", "AVX-512"])
@pytest.mark.parametrize("lanes", [8, 12, 16])
def test_rows_of_lanes_that_are_off_are_not_read(target, lanes):
    """The array ends with the last row that is on, so that reading another would be seen."""
    for on in (1, 2, 4, 7, 8):
        count = Var("count")
        f = Function(A=(on * 16,), B=(16 * lanes,))
        body = when(build.less(V, count), f.store("B", build.add(build.mul(K, lanes), V),
                                                  f.load("A", build.add(build.mul(V, 16), K))))
        before = vectorize_loops(f.func(loop(K, 16, loop(V, lanes, body, VECTORIZED)), count))
        after = check(transpose_tiles, before, target, scalars=(on,))
        assert any(isinstance(node, Shuffle) for node in post_order(after.body))


def test_what_is_read_may_be_computed_with_and_there_may_be_several():
    f = Function(A=(256,), B=(256,), C=(256,), D=(16,))
    at = build.add(build.mul(V, 16), K)
    value = build.add(build.mul(f.load("A", at), f.load("C", at)), f.load("D", V))
    before = vectorize_loops(f.func(loop(K, 16, loop(V, 16, f.store("B", build.add(build.mul(K, 16), V), value), VECTORIZED))))
    after = check(transpose_tiles, before, AVX2)
    assert sum(isinstance(node, Shuffle) for node in post_order(after.body)) == 2 * 2 * 24


@pytest.mark.parametrize("change", ["itself", "contiguous", "two apart", "the same for all", "may overlap", "a vector machine"])
def test_other_loops_stay(change):
    f = Function(change != "may overlap", A=(2048,), B=(2048,))
    source = "B" if change == "itself" else "A"
    index = {"contiguous": build.add(build.mul(K, 16), V), "the same for all": K,
             "two apart": build.add(build.mul(V, 64), build.mul(K, 2))}.get(change, build.add(build.mul(V, 64), K))
    body = f.store("B", build.add(build.mul(K, 16), V), f.load(source, index))
    before = vectorize_loops(f.func(loop(K, 16, loop(V, 16, body, VECTORIZED))))
    assert transpose_tiles(before, RISCV if change == "a vector machine" else AVX2) is before


@pytest.mark.parametrize("dtype, lanes, target, steps", [
    ("float32", 16, AVX2, (8, 8)), ("float64", 8, AVX2, (4, 4)), ("float32", 16, SSE, (4, 4)), ("float32", 16, NEON, (4, 4)),
    ("float32", 16, AVX512, (16, 16)), ("float32", 8, AVX2, (8, 8)), ("float32", 32, AVX2, (8, 24))])
def test_lines_of_a_tile_are_stored_as_a_whole(dtype, lanes, target, steps):
    """The vectors that make up a line follow each other, since parts of lines are slow past the cache; then the next row."""
    body = transpose_tiles(turned(16, lanes, dtype), target).body
    places = [node.index.base for node in post_order(body) if isinstance(node, Store)]
    for (first, second), step in zip(itertools.pairwise(places), steps):
        assert Analyzer().can_prove_equal(build.sub(second, first), step)


def packed(columns, lanes, dtype="float32", down=False):
    """P[k, v] = A[v, k] into memory of the function's own, then B = P; down: k counts down in A."""
    f = Function(A=(lanes * 64, dtype), B=(64 * lanes, dtype))
    own = pointer_var("P", f.buffers["A"].dtype)
    k = build.sub(63, K) if down else K
    copy = Store(own, f.load("A", build.add(build.mul(V, 64), k)), build.add(build.mul(K, lanes), V))
    i = Var("i")
    back = f.store("B", i, Load(f.buffers["A"].dtype, own, i))
    both = seq(loop(K, columns, loop(V, lanes, copy, VECTORIZED)), loop(i, build.mul(columns, lanes), back))
    return vectorize_loops(f.func(allocate(own, 64 * lanes, both, dtype)))


@pytest.mark.parametrize("columns", [16, 17, 31, 32, 37, 63])
@pytest.mark.parametrize("dtype, lanes", [("float32", 32), ("float32", 48), ("int32", 64), ("float64", 16)])
@pytest.mark.parametrize("down", [False, True])
def test_lines_beside_each_other_in_memory_of_ours_are_one_tile_in_a_loop(columns, dtype, lanes, down):
    func = packed(columns, lanes, dtype, down)
    after = check(transpose_tiles, func, AVX512)
    width = 64 // np.dtype(dtype).itemsize
    shuffles = [node for node in post_order(after.body) if isinstance(node, Shuffle)]
    tiles = 1 if columns % width == 0 else 2
    assert len(shuffles) == tiles * width * (width.bit_length() - 1)
    loops = {node.loop_var.name: build.as_int(node.extent) for node in post_order(after.body) if isinstance(node, For)}
    assert loops["part"] == lanes // width


@pytest.mark.parametrize("make, target, tiles", [
    (lambda: packed(16, 32), AVX2, 8), (lambda: packed(16, 16), AVX512, 1), (lambda: packed(16, 24), AVX512, 2),
    (lambda: turned(16, 32), AVX512, 2), (lambda: packed(8, 32, "float64"), AVX2, 16)])
def test_parts_of_lines_rests_and_arrays_of_the_user_have_their_own_tiles(make, target, tiles):
    after = check(transpose_tiles, make(), target)
    assert "part" not in [node.loop_var.name for node in post_order(after.body) if isinstance(node, For)]
    assert sum(isinstance(node, Shuffle) for node in post_order(after.body)) > tiles * 2


def sums(columns, lanes, dtype="float32", adds=False, on=None):
    """B[k, v] = P[v, k] + C[v], or B[0, v] the sum of all P[v, k], from memory of the function's own, P = A; lanes from `on` on
    are off.
    """
    f = Function(A=(lanes * columns, dtype), B=(columns * lanes, dtype), C=(lanes, dtype))
    own, i, at = pointer_var("P", f.buffers["A"].dtype), Var("i"), V if adds else build.add(build.mul(K, lanes), V)
    value = Load(f.buffers["A"].dtype, own, build.add(build.mul(V, columns), K))
    body = f.store("B", at, build.add(value, f.load("B", at) if adds else f.load("C", V)))
    if on is not None:
        body = when(build.less(V, on), body)
    both = seq(loop(i, lanes * columns, Store(own, f.load("A", i), i)), loop(K, columns, loop(V, lanes, body, VECTORIZED)))
    return vectorize_loops(f.func(allocate(own, lanes * columns, both, dtype)))


def parts(func, target):
    """The extents of loops over tiles beside each other, and how many shuffles there are."""
    body = check(transpose_tiles, func, target).body
    shuffles = sum(isinstance(node, Shuffle) for node in post_order(body))
    loops = [node for node in post_order(body) if isinstance(node, For) and node.loop_var.name == "part"]
    return [build.as_int(node.extent) for node in loops], shuffles


@pytest.mark.parametrize("columns", [16, 21])
@pytest.mark.parametrize("dtype, lanes, target, width", [
    ("float32", 14, AVX512, 8), ("float32", 13, AVX2, 8), ("float32", 22, AVX2, 8), ("float64", 7, AVX2, 4),
    ("float32", 28, AVX512, 16), ("int8", 15, SSE, 8), ("float32", 7, NEON, 4)])
def test_sums_that_leave_most_of_a_tile_are_one_tile_in_a_loop_whose_last_ends_with_them(columns, dtype, lanes, target, width):
    whole = columns // width * width == columns
    count = -(-lanes // width)
    shuffles = width * (width.bit_length() - 1)
    tiles = 1 if whole else 2
    assert parts(sums(columns, lanes, dtype), target) == ([count] * tiles, shuffles * tiles)


@pytest.mark.parametrize("make", [
    lambda: sums(16, 14, adds=True), lambda: sums(16, 14, on=13), lambda: sums(16, 12), lambda: sums(16, 21),
    lambda: turned(16, 14)],
    ids=["added up", "masks", "half a tile", "no even distance", "array of the user"])
def test_lanes_are_not_stored_twice(make):
    loops, shuffles = parts(make(), AVX2)
    assert not loops and shuffles > 24


@pytest.mark.parametrize("lanes, on, tiles, rests", [(80, None, 5, 0), (100, None, 6, 1), (112, 90, 5, 1), (240, 97, 6, 1)])
def test_many_tiles_beside_each_other_are_a_loop(lanes, on, tiles, rests):
    """A rest is a tile of its own, and lanes that are certainly off have none. What the loop adds up stays in registers."""
    assert parts(turned(16, lanes, on=on), AVX512) == ([tiles], 64 * (1 + rests) + (16 if lanes == 100 else 0))
    loops, shuffles = parts(sums(16, lanes, adds=True), AVX512)
    assert not loops and shuffles >= 64 * (lanes // 16)


def test_rows_whose_lanes_have_no_masks_are_a_loop_where_some_are_off():
    """Each is several branches on AVX2, once for the sixteen rows of a tile."""
    count, f = Var("count"), Function(A=(256, "int16"), B=(256, "int16"))
    body = when(build.less(V, count), f.store("B", build.add(build.mul(K, 16), V), f.load("A", build.add(build.mul(V, 16), K))))
    before = vectorize_loops(f.func(loop(K, 16, loop(V, 16, body, VECTORIZED)), count))
    for on in (0, 1, 7, 15, 16):
        after = check(transpose_tiles, before, AVX2, scalars=(on,))
    masked = [node for node in post_order(after.body) if isinstance(node, Store) and node.predicate is not None]
    assert len(masked) == 1 and any(isinstance(node, Shuffle) for node in post_order(after.body))


def test_a_dense_layer_turns_its_second_matrix_by_one_tile():
    import topi

    data, weight = te.placeholder((128, 64), name="data"), te.placeholder((96, 64), name="weight")
    target = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512")
    with target:
        out = topi.nn.dense(data, weight)
        text = tedsl.build(topi.schedules.schedule(out), [data, weight, out], target=target).get_source("ll")
    shuffles = [line for line in str(text).splitlines() if " = shufflevector <16 x float> " in line]
    assert len([line for line in shuffles if "zeroinitializer" not in line]) == 16 * 4, "others spread an element"


def columns_of_rows(target, dtype="float32", rows=16):
    """The module that turns rows of 64 elements."""
    A = te.placeholder((rows, 64), dtype, name="A")
    B = te.compute((64, rows), lambda i, j: A[j, i], name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[1])
    return tedsl.build(s, [A, B], target=target)


@pytest.mark.parametrize("target, dtype, fences", [
    (AVX512, "float32", 16), (AVX2, "float32", 16), (AVX512, "int32", 0), (SSE, "float32", 0)])
def test_shuffles_of_whole_registers_are_not_merged_with_all_before_them(target, dtype, fences):
    """Nothing could be gained, and LLVM takes long to see that; the fences are no instructions."""
    module = columns_of_rows(target, dtype)
    assert module.get_source("ll").count(" x float> @llvm.arithmetic.fence") == fences + min(fences, 1)  # with the declaration
    assert fences == 0 or re.search(r"^\s*[a-z]*fence", module.get_source("asm"), re.MULTILINE) is None


def test_shuffles_of_copies_of_a_row_may_be_merged():
    """Four of the eight rows of the second tile are the last one again."""
    assert columns_of_rows(AVX2, rows=12).get_source("ll").count("call <8 x float> @llvm.arithmetic.fence") == 8 + 4


def test_parts_of_rows_change_places_by_one_instruction_each():
    asm = columns_of_rows(AVX512).get_source("asm")
    assert asm.count("vshuff64x2") + asm.count("vinsertf64x4") + asm.count("vshuff32x4") == 32 and "vperm" not in asm


def test_a_small_tile_side_by_side(golden):
    check(transpose_tiles, turned(4, 4), SSE, golden=golden)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "float16", "bool"])
@pytest.mark.parametrize("shape", [(64, 64), (100, 37), (17, 19), (1, 5), (3, 128)])
def test_transposes_in_machine_code(dtype, shape):
    n, m = shape
    A = te.placeholder((n, m), dtype, name="A")
    B = te.compute((m, n), lambda i, j: A[j, i], name="B")
    for lanes in (8, 14, 16, 48):
        s = te.create_schedule(B.op)
        outer, lane = s[B].split(B.op.axis[1], factor=lanes)
        tall, row = s[B].split(B.op.axis[0], factor=16)
        s[B].reorder(outer, tall, row, lane)
        s[B].vectorize(lane)
        a = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
        b = np.zeros((m, n), dtype)
        tedsl.build(s, [A, B])(a, b)
        np.testing.assert_array_equal(b, a.T)


def test_a_matrix_that_is_packed_turned_is_not_gathered():
    import topi

    data, weight = te.placeholder((128, 64), name="data"), te.placeholder((256, 64), name="weight")
    out = topi.nn.dense(data, weight)
    target = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512")
    with target:
        asm = tedsl.build(topi.schedules.schedule(out), [data, weight, out], target=target).get_source("asm")
    assert "gather" not in asm and "vunpcklps" in asm


def added(rows, columns, dtype="float32", step=0, pairs=False):
    """S[v] = S[v] + A[v, k] for all k, vectorized along v: rows added up side by side.

    step: by which the place of the sums moves with k. pairs: also the largest, both values computed before they are stored.
    """
    f = Function(A=(rows * columns, dtype), S=(rows + step * columns, dtype), M=(rows, dtype))
    at = build.add(V, build.mul(K, step))
    element = f.load("A", build.add(build.mul(V, columns), K))
    total = build.add(f.load("S", at), element)
    if not pairs:
        body = f.store("S", at, total)
    else:
        names = Var("total", total.dtype), Var("most", total.dtype)
        body = LetStmt(names[0], total, LetStmt(names[1], build.maximum(f.load("M", V), element),
                                                seq(f.store("S", at, names[0]), f.store("M", V, names[1]))))
    return vectorize_loops(f.func(loop(K, columns, loop(V, rows, body, VECTORIZED))))


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("rows, columns", [(4, 4), (8, 16), (16, 16), (16, 5), (5, 16), (24, 9), (16, 1), (16, 0)])
def test_rows_that_are_added_up_side_by_side(rows, columns, dtype, pairs):
    for target in (SSE, AVX512):
        after = check(transpose_tiles, added(rows, columns, dtype, pairs=pairs), target)
        assert columns < 4 or any(isinstance(node, Shuffle) for node in post_order(after.body))


@pytest.mark.parametrize("lanes", [16, 32])
def test_elements_that_other_iterations_write_in_other_lanes_keep_the_order(lanes):
    before = added(lanes, 16, step=1)
    assert check(transpose_tiles, before, AVX512) is before
    f = Function(A=(lanes * 16, "float32"), B=(lanes + 16, "float32"))
    body = f.store("B", build.add(V, K), f.load("A", build.add(build.mul(V, 16), K)))
    before = vectorize_loops(f.func(loop(K, 16, loop(V, lanes, body, VECTORIZED))))
    assert check(transpose_tiles, before, AVX512) is before


# --- lanes anywhere ----------------------------------------------------------------------------------------------------------

J = Var("j")


def wrapped(columns, lanes, dtype="float32", m=7, down=False, on=None):
    """B[j, k, v] = A[x mod m, k, x div m] for x = j*lanes + v: vectors go on in the next row of a matrix of rows of m."""
    tall = -(-3 * lanes // m)
    f = Function(A=(m * tall * columns, dtype), B=(3 * columns * lanes, dtype))
    x, k = build.add(build.mul(J, lanes), V), build.sub(columns - 1, K) if down else K
    row = build.add(build.mul(build.floormod(x, m), tall), build.floordiv(x, m))
    to = build.add(build.mul(build.add(build.mul(J, columns), K), lanes), V)
    body = f.store("B", to, f.load("A", build.add(build.mul(row, columns), k)))
    if on is not None:
        body = when(build.less(V, on), body)
    return vectorize_loops(f.func(loop(J, 3, loop(K, columns, loop(V, lanes, body, VECTORIZED)))))


def gathers(func):
    return [node for node in post_order(func.body) if isinstance(node, Load) and node.dtype.lanes > 1
            and not (isinstance(node.index, Ramp) and build.as_int(node.index.stride) == 1)]


@pytest.mark.parametrize("columns", [1, 3, 4, 8, 16, 21])
@pytest.mark.parametrize("lanes, dtype", [
    (4, "float64"), (8, "float32"), (16, "float32"), (14, "float32"), (16, "int8"), (8, "float64")])
@pytest.mark.parametrize("down", [False, True])
def test_vectors_that_go_on_in_the_next_row(columns, lanes, dtype, down):
    for target in (SSE, AVX2, AVX512, NEON):
        before = wrapped(columns, lanes, dtype, down=down)
        after = check(transpose_tiles, before, target)
        turns = columns >= 4 and target.vector_lanes(before.buffers[0].dtype) >= 4
        assert not turns or (not gathers(after) and any(isinstance(node, Shuffle) for node in post_order(after.body)))


@pytest.mark.parametrize("m", [1, 2, 5, 16, 17, 100])
def test_rows_of_any_length(m):
    for columns in (16, 24):
        assert not gathers(check(transpose_tiles, wrapped(columns, 16, m=m), AVX512))


@pytest.mark.parametrize("on", [1, 5, 8, 13])
@pytest.mark.parametrize("target", [SSE, AVX2, AVX512], ids=str)
def test_lanes_that_are_off_of_vectors_that_go_on_in_the_next_row(on, target):
    after = check(transpose_tiles, wrapped(16, 16, on=on), target)
    assert any(isinstance(node, Shuffle) for node in post_order(after.body))


def test_what_the_lanes_have_in_common_is_computed_once():
    after = check(transpose_tiles, wrapped(16, 16), AVX512)
    first = [node for node in post_order(after.body) if isinstance(node, LetStmt) and node.var.name == "first"]
    assert len(first) == 1
    rows = [node.index.base for node in post_order(after.body) if isinstance(node, Load)]
    assert len(rows) == 16 and all(uses(row, {first[0].var}) for row in rows)


@pytest.mark.parametrize("m, parts", [(100, True), (16, True), (15, False), (7, False)])
def test_lanes_of_at_most_two_rows_begin_at_two_places(m, parts):
    """A vector ends in the next row, if a row has as many elements as it has lanes: the place of each lane is one of two."""
    after = check(transpose_tiles, wrapped(16, 16, m=m), AVX512)
    bound = [node.var.name for node in post_order(after.body) if isinstance(node, LetStmt)]
    assert [bound.count(name) for name in ("next", "here", "there")] == [int(parts)] * 3


def in_groups(columns, lanes, size, dtype, on=None, apart=None):
    """B[k, v] = A[v div size, k*size + v mod size] + 1: groups of neighbouring elements change places. on: lanes."""
    rows, row = lanes // size, columns * (apart or size)
    f = Function(A=(rows * row, dtype), B=(columns * lanes, dtype))
    at = build.add(build.mul(build.floordiv(V, size), row), build.add(build.mul(K, apart or size), build.floormod(V, size)))
    body = f.store("B", build.add(build.mul(K, lanes), V), build.add(f.load("A", at), imm(1, dtype)))
    if on is not None:
        body = when(build.less(V, on), body)
    return vectorize_loops(f.func(loop(K, columns, loop(V, lanes, body, VECTORIZED))))


@pytest.mark.parametrize("columns", [3, 4, 9, 16, 21])
@pytest.mark.parametrize("size, lanes, dtype", [
    (2, 32, "int16"), (4, 64, "int8"), (2, 8, "float32"), (2, 24, "int16"), (2, 16, "uint8"), (8, 64, "int8"), (4, 24, "int8")])
@pytest.mark.parametrize("on", [None, 0, 1, 2])
def test_groups_of_elements_are_turned_as_words(columns, size, lanes, dtype, on):
    for target in (SSE, AVX2, AVX512, NEON):
        before = in_groups(columns, lanes, size, dtype, on=None if on is None else on * size)
        after = check(transpose_tiles, before, target)
        if on is None and columns >= 4 and target.vector_lanes(before.buffers[0].dtype) // size >= 4:
            words = [node.dtype for node in post_order(after.body) if isinstance(node, Shuffle) and len(node.vectors) == 2]
            assert not gathers(after) and words and {word.bits for word in words} == {size * before.buffers[0].dtype.bits}


def test_lanes_that_do_not_move_by_their_groups_stay():
    for size, dtype, apart in [(4, "int8", 8), (2, "float64", None), (3, "int8", None)]:
        before = in_groups(16, 48, size, dtype, apart=apart)
        assert check(transpose_tiles, before, AVX512) is before


def by_tensor(columns=16, lanes=16, source="D"):
    """B[k, v] = A[D[v], k]"""
    f = Function(A=(8 * columns,), B=(columns * lanes,), D=(lanes, "int32"), E=(columns * lanes, "int32"))
    at = build.add(build.mul(K, lanes), V)
    where = f.load(source, V if source == "D" else at)
    body = f.store("B", at, f.load("A", build.add(build.mul(where, columns), K)))
    if source == "E":
        body = seq(f.store("E", at, build.floormod(at, 5)), body)
    return vectorize_loops(f.func(loop(K, columns, loop(V, lanes, body, VECTORIZED))))


def test_rows_whose_numbers_are_data():
    """The rows that are read are those that the loop reads; the last one ends with the array."""
    for columns, lanes in ((16, 16), (21, 8), (4, 14)):
        assert not gathers(check(transpose_tiles, by_tensor(columns, lanes), AVX512))


def test_rows_whose_numbers_the_loop_writes_stay():
    before = by_tensor(source="E")
    assert check(transpose_tiles, before, AVX512) is before


@pytest.mark.parametrize("index", [
    lambda k, v: build.add(build.mul(build.floormod(build.add(v, k), 7), 64), k),
    lambda k, v: build.add(build.mul(build.floormod(v, 7), 64), build.mul(k, 2)),
    lambda k, v: build.add(build.mul(build.floormod(v, 7), 64), build.floordiv(k, 2)),
    lambda k, v: build.add(build.mul(build.floormod(v, 7), 64), build.mul(k, v)),
    lambda k, v: build.mul(build.floormod(v, 7), 64)])
def test_lanes_that_do_not_all_move_to_the_next_element_stay(index):
    f = Function(A=(2048,), B=(256,))
    body = f.store("B", build.add(build.mul(K, 16), V), f.load("A", index(K, V)))
    before = vectorize_loops(f.func(loop(K, 16, loop(V, 16, body, VECTORIZED))))
    assert check(transpose_tiles, before, AVX512) is before


@pytest.mark.parametrize("of", [lambda t: t, lambda t: build.add(t, K)])
def test_places_that_are_named_in_the_loop_stay(of):
    """They may move with it, and have no value outside."""
    f, t = Function(A=(16 * 64 + 64,), B=(256,)), Var("t")
    body = f.store("B", build.add(build.mul(K, 16), V), f.load("A", build.add(build.mul(V, 64), of(t))))
    before = vectorize_loops(f.func(loop(K, 16, LetStmt(t, build.mul(K, 3), loop(V, 16, body, VECTORIZED)))))
    assert check(transpose_tiles, before, AVX512) is before


def turned_to_lines(shape, perm, dtype="float32", target=AVX512):
    """A transpose whose vectors begin at lines of the result, and may go on in the next row."""
    A = te.placeholder(shape, dtype, name="A")
    B = te.compute([shape[p] for p in perm], lambda *i: A(*[i[perm.index(at)] for at in range(len(shape))]), name="B")
    s = te.create_schedule(B.op)
    axes = list(s[B].op.axis)
    at = perm.index(len(shape) - 1)
    line = 64 // np.dtype(dtype).itemsize
    flat = s[B].fuse(*axes[at + 1:]) if len(axes) > at + 2 else axes[at + 1]
    tile, lane = s[B].split(flat, factor=line, tail="shift_inwards", lines_of=B)
    down, row = s[B].split(axes[at], factor=16)
    s[B].reorder(*axes[:at], down, tile, row, lane)
    s[B].vectorize(lane)
    return tedsl.build(s, [A, B], target=target)


@pytest.mark.parametrize("target", [AVX512, ZEN3], ids=str)
def test_vectors_from_lines_of_the_result_are_not_gathered(target):
    asm = turned_to_lines((32, 20, 56), (2, 1, 0), target=target).get_source("asm")
    assert "gather" not in asm and "unpcklps" in asm


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("target", [Target("llvm"), *([ZEN3] if ZEN3.runs_here else [])], ids=str)
@pytest.mark.parametrize("shape, perm", [((7, 9, 56), (2, 1, 0)), ((5, 6, 7, 40), (2, 3, 0, 1)), ((100, 16), (1, 0)),
                                         ((3, 33, 5), (2, 1, 0)), ((2, 65, 24), (2, 0, 1))])
def test_transposes_to_lines_of_the_result_in_machine_code(shape, perm, dtype, target):
    kernel = turned_to_lines(shape, perm, dtype, target)
    a = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    for behind in range(0, 64 // a.itemsize, 5):
        room = np.zeros(a.size + 128, dtype)
        b = room[behind:behind + a.size].reshape([shape[p] for p in perm])
        kernel(a, b)
        np.testing.assert_array_equal(b, a.transpose(perm))
        assert not room[:behind].any() and not room[behind + a.size:].any()
