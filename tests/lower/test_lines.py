"""Tiles that begin at lines of memory: the loops, the same results wherever arrays begin, and where such tiles cannot be."""

from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError, ScheduleError
from tedsl.ir.evaluate import evaluate, run
from tedsl.ir.expr import Call
from tedsl.ir.ops import ELEMENTS_PAST_LINE
from tedsl.ir.stmt import For, LetStmt, Store
from tedsl.ir.walk.visitor import post_order
from tedsl.schedule.handles import create_schedule
from tests.codegen.c.compilers import needs_compiler, strict_target
from tests.lower.end_to_end import check_both, loops
from tests.lower.programs import whole_numbers

pytestmark = pytest.mark.sampled(2)
INWARDS = "shift_inwards"


def doubled(n, factor=16, dtype="float32", of="A", vectorize=True):
    """B = A + A, in tiles that begin at lines of `of`."""
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute((n,), lambda i: A[i] + A[i] if dtype != "bool" else A[i], name="B")
    s = create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[0], factor, tail=INWARDS, lines_of=A if of == "A" else B)
    if vectorize:
        s[B].vectorize(inner)
    return s, A, B


def placed(values, behind):
    """A copy of `values` that begins `behind` elements behind a line of memory."""
    size = values.dtype.itemsize
    room = np.zeros(values.size + 128 // size, values.dtype)
    start = (-room.ctypes.data // size) % (64 // size) + behind
    at = room[start:start + values.size].reshape(values.shape)
    at[...] = values
    assert at.size == 0 or at.ctypes.data % 64 == behind * size % 64
    return at


def in_all_places(kernel, lowered, values, out, expected):
    """The kernel, and its loops in the interpreter, give the same wherever arguments and result begin within a line."""
    per_line = 64 // out.dtype.itemsize
    for behind in range(per_line):
        given, result = [placed(v, behind) for v in values], placed(out, (behind * 3 + 1) % per_line)
        kernel(*given, result)
        np.testing.assert_array_equal(result, expected, err_msg=f"compiled, {behind} elements behind a line")
        if behind % 5 == 0:
            result[...] = out
            run(lowered, [*given, result])
            np.testing.assert_array_equal(result, expected, err_msg=f"interpreted, {behind} elements behind a line")


def some(shape, dtype):
    numbers = np.arange(int(np.prod(shape))) % 50
    return (numbers % 2 if dtype == "bool" else numbers).astype(dtype).reshape(shape)


# --- the loops -----------------------------------------------------------------------------------------------------------

def test_the_loops():
    s, A, B = doubled(60)
    assert loops(s, [A, B]) == dedent("""\
        let A.lead: int32 = @tir.elements_past_line(A_2, 16, 4, dtype=int32)
        for (i.outer: int32, 0, 5) {
          for (i.inner: int32, 0, 16) "vectorized" {
            B[PLACE] = (A[PLACE] + A[PLACE])
          }
        }
        """).replace("PLACE", "(max(min(((i.outer*16) - A.lead), 44), 0) + i.inner)")


def test_the_vectors():
    s, A, B = doubled(60)
    place = "ramp(max(min(((i.outer*16) - A.lead), 44), 0), 1, 16)"
    assert dedent(loops(s, [A, B], passes=True)) == dedent(f"""\
        let A.lead: int32 = @tir.elements_past_line(A_2, 16, 4, dtype=int32)
        for (i.outer: int32, 0, 5) {{
          B_2[{place}] = ((float32x16*)A_2[{place}] + (float32x16*)A_2[{place}])
        }}
        """)


def index_of_tiles(s, args):
    """The number of tiles, and the first index that tile t writes as a function of t and the place of the array in a line."""
    func = tedsl.lower(s, args)["main"]
    let = next(node for node in post_order(func.body) if isinstance(node, LetStmt))
    loop = next(node for node in post_order(func.body) if isinstance(node, For))
    store = next(node for node in post_order(loop) if isinstance(node, Store))
    count = int(loop.extent)
    return count, lambda t, lead: int(evaluate(store.index.base, {loop.loop_var: t, let.var: lead}))


@pytest.mark.parametrize("n", [17, 47, 48, 64, 65])
@pytest.mark.parametrize("factor, dtype, line", [
    (16, "float32", 16), (16, "float64", 8), (16, "float16", 16), (64, "int8", 64), (8, "float32", 8), (12, "float32", 4),
    (32, "float32", 16)])
def test_tiles_begin_at_lines(n, factor, dtype, line):
    s, A, B = doubled(n, factor, dtype)
    if n <= factor:
        assert "lead" not in loops(s, [A, B])  # one tile
        return
    count, start = index_of_tiles(s, [A, B])
    assert count == -(-(n + line - 1) // factor)
    for lead in range(line):
        starts = [start(t, lead) for t in range(count)]
        assert starts == [max(min(t * factor - lead, n - factor), 0) for t in range(count)]
        assert all((at + lead) % line == 0 for at in starts if 0 < at < n - factor)
        assert {at + k for at in starts for k in range(factor)} == set(range(n))


def test_the_place_is_asked_for_once():
    source = tedsl.build(*_with_args(doubled(1000))).get_source("ll")
    assert source.count("ptrtoint") == 1 and source.index("ptrtoint") < source.index("loop:")


def _with_args(program):
    s, A, B = program
    return s, [A, B]


def test_memory_of_the_function_begins_at_lines():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((64,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    s[B].split(B.op.axis[0], 16, tail=INWARDS, lines_of=B)
    s[C].split(C.op.axis[0], 16, tail=INWARDS, lines_of=B)
    text = loops(s, [A, C])
    assert "lead" not in text and "min(" not in text and "outer: int32, 0, 4" in text
    assert "lead" in loops(s, [A, B, C])  # it is an argument
    check_both(s, [A, C], {A: whole_numbers((64,))})
    check_both(s, [A, B, C], {A: whole_numbers((64,))})


def test_memory_of_another_layout():
    A = te.placeholder((16,), name="A")
    B = te.compute((16, 16), lambda i, j: A[i] * A[j], name="B")
    s = create_schedule(B.op)
    copy = s.cache_read(A, "global", [B])
    s[copy].transform_layout(lambda i: [i % 2, i // 2])
    s[copy].split(s[copy].op.axis[1], 2, tail=INWARDS, lines_of=copy)
    check_both(s, [A, B], {A: whole_numbers((16,))})


def test_one_place_for_all_loops_of_an_array():
    A = te.placeholder((20, 64), name="A")
    B = te.compute((20, 64), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((64, 20), lambda i, j: A[j, i] * 2.0, name="C")
    s = create_schedule([B.op, C.op])
    s[B].split(B.op.axis[1], 16, tail=INWARDS, lines_of=A)
    s[C].split(C.op.axis[0], 32, tail=INWARDS, lines_of=A)
    s[B].split(B.op.axis[0], 4, tail=INWARDS, lines_of=B)
    text = loops(s, [A, B, C])
    assert text.count("A.lead: ") == text.count("B.lead: ") == 1
    check_both(s, [A, B, C], {A: whole_numbers((20, 64))})


def test_the_text_of_the_schedule():
    s, _, _ = doubled(64)
    assert "for i.outer in 0..5" in str(s)
    assert "for i.outer in 0..1" in str(doubled(16)[0])


# --- the results ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("n", [1, 5, 15, 16, 17, 31, 32, 47, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int8", "bool"])
@pytest.mark.parametrize("of", ["A", "B"])
def test_constant_sizes(n, dtype, of):
    s, A, B = doubled(n, 16, dtype, of)
    values = some((n,), dtype)
    kernel, lowered = tedsl.build(s, [A, B]), tedsl.lower(s, [A, B])["main"]
    in_all_places(kernel, lowered, [values], np.zeros(n, dtype), values if dtype == "bool" else values + values)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int8"])
@pytest.mark.parametrize("vectorize", [False, True])
def test_symbolic_sizes(dtype, vectorize):
    n = te.var("n")
    s, A, B = doubled(n, 16, dtype, vectorize=vectorize)
    kernel, lowered = tedsl.build(s, [A, B]), tedsl.lower(s, [A, B])["main"]
    for size in (0, 1, 2, 15, 16, 17, 32, 33, 90):
        values = some((size,), dtype)
        in_all_places(kernel, lowered, [values], np.zeros(size, dtype), values + values)


@pytest.mark.parametrize("factor", [1, 3, 4, 6, 24, 64])
def test_factors(factor):
    for n in (23, 64, 96):
        s, A, B = doubled(n, factor)
        values = some((n,), "float32")
        in_all_places(tedsl.build(s, [A, B]), tedsl.lower(s, [A, B])["main"], [values], np.zeros(n, "float32"), 2 * values)


@pytest.mark.parametrize("n, m", [(20, 48), (33, 17), (3, 5)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_transpositions(n, m, symbolic):
    rows, columns = (te.var("n"), te.var("m")) if symbolic else (n, m)
    A = te.placeholder((rows, columns), name="A")
    B = te.compute((columns, rows), lambda i, j: A[j, i], name="B")
    s = create_schedule(B.op)
    i, j = B.op.axis
    io, ii = s[B].split(i, 16, tail=INWARDS, lines_of=A)
    jo, ji = s[B].split(j, 16, tail=INWARDS, lines_of=B)
    s[B].reorder(io, jo, ii, ji)
    s[B].vectorize(ji)
    values = some((n, m), "float32")
    kernel, lowered = tedsl.build(s, [A, B]), tedsl.lower(s, [A, B])["main"]
    in_all_places(kernel, lowered, [values], np.zeros((m, n), "float32"), values.T)


@pytest.mark.parametrize("factor", [4, 16])
@pytest.mark.parametrize("size", [2, 6, 17, 40])
@pytest.mark.parametrize("symbolic", [False, True])
def test_stages_inside_of_tiles(factor, size, symbolic):
    n = te.var("n") if symbolic else size
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 3.0, name="B")
    C = te.compute((n - 1,), lambda i: B[i] + B[i + 1], name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor, tail=INWARDS, lines_of=A)
    s[C].vectorize(inner)
    s[B].compute_at(s[C], outer)
    values = some((size,), "float32")
    in_all_places(tedsl.build(s, [A, C]), tedsl.lower(s, [A, C])["main"], [values], np.zeros(size - 1, "float32"),
                  3 * values[:-1] + 3 * values[1:])


def test_the_region_of_a_stage_inside_of_a_tile_is_the_tile():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] * 3.0, name="B")
    C = te.compute((64,), lambda i: B[i] + 1.0, name="C")
    s = create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[0], 16, tail=INWARDS, lines_of=A)
    s[B].compute_at(s[C], outer)
    text = loops(s, [A, C])
    assert "for (i: int32, 0, 16)" in text and "if" not in text


def test_threads_outside_of_the_tiles():
    A = te.placeholder((7, 3, 50), name="A")
    B = te.compute((7, 3, 50), lambda i, j, k: A[i, j, k] + 1.0, name="B")
    s = create_schedule(B.op)
    i, j, k = B.op.axis
    _, inner = s[B].split(k, 16, tail=INWARDS, lines_of=A)
    s[B].vectorize(inner)
    s[B].parallel(s[B].fuse(i, j))
    values = some((7, 3, 50), "float32")
    in_all_places(tedsl.build(s, [A, B]), tedsl.lower(s, [A, B])["main"], [values], np.zeros((7, 3, 50), "float32"), values + 1)


def test_threads_of_parts_that_are_whole_lines():
    """Each part has its own first and last tile, so that no element is computed by two threads."""
    A = te.placeholder((4 * 64,), name="A")
    B = te.compute((4 * 64,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    part, i = s[B].split(B.op.axis[0], nparts=4)
    _, inner = s[B].split(i, 16, tail=INWARDS, lines_of=A)
    s[B].parallel(part)
    s[B].vectorize(inner)
    assert "max(min(((i.inner.outer*16) - A.lead), 48), 0)" in loops(s, [A, B], passes=True)
    values = some((256,), "float32")
    in_all_places(tedsl.build(s, [A, B]), tedsl.lower(s, [A, B])["main"], [values], np.zeros(256, "float32"), values + 1)


def test_sums_of_columns():
    """The sums of a tile are a stage of their own: tiles of sums would add up elements twice."""
    A = te.placeholder((9, 5, 50), name="A")
    k = te.reduce_axis((0, 9), name="k")
    B = te.compute((5, 50), lambda i, j: te.sum(A[k, i, j], axis=k), name="B")
    s = create_schedule(B.op)
    s[B].fuse(*B.op.axis)
    sums = s.cache_write(B, "local")
    tile, lanes = s[B].split(s[B].fuse(*s[B].op.axis), 32, tail=INWARDS, lines_of=A)
    s[sums].compute_at(s[B], tile)
    s[sums].reorder(*s[sums].op.reduce_axis, *s[sums].op.axis)
    s[sums].vectorize(s[sums].op.axis[0])
    s[B].vectorize(lanes)
    assert "ramp(((k*250) + max(min(((i.j.fused.outer*32) - A.lead), 218), 0)), 1, 32)" in loops(s, [A, B], passes=True)
    values = some((9, 5, 50), "float32")
    in_all_places(tedsl.build(s, [A, B]), tedsl.lower(s, [A, B])["main"], [values], np.zeros((5, 50), "float32"), values.sum(0))


def test_checked_mode_still_watches_an_array_whose_place_is_asked_for():
    s, A, B = doubled(60, of="B")
    assert "B.written" in tedsl.build(s, [A, B], checked=True).get_source("tir")


def test_versions_and_splits_of_splits():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + A[i], name="B")
    s = create_schedule(B.op)
    special = s[B].specialize(n == 64)
    for stage in (special, s[B]):
        outer, inner = stage.split(B.op.axis[0], 32, tail=INWARDS, lines_of=A)
        stage.split(outer, 2, tail=INWARDS, lines_of=A)
        stage.split(inner, 8, tail=INWARDS, lines_of=B)
    kernel, lowered = tedsl.build(s, [A, B]), tedsl.lower(s, [A, B])["main"]
    for size in (3, 64, 100):
        values = some((size,), "float32")
        in_all_places(kernel, lowered, [values], np.zeros(size, "float32"), 2 * values)


def test_strided_views():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="B")
    s = create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[1], 16, tail=INWARDS, lines_of=A)
    s[B].vectorize(inner)
    kernel = tedsl.build(s, [A, B])
    whole = some((6, 200), "float32")
    for a in (whole[::2, 3:100], whole[:, 1::3], whole.T[5:70]):
        out = np.zeros(a.shape, "float32")
        kernel(a, out)
        np.testing.assert_array_equal(out, a + 1)


@pytest.mark.parametrize("bound", [(True, True), (True, False), (False, True)])
def test_kernels_of_devices(bound):
    A = te.placeholder((7, 60), name="A")
    B = te.compute((7, 60), lambda i, j: A[i, j] + 1.0, name="B")
    s = create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[1], 16, tail=INWARDS, lines_of=A)
    for loop, tag, is_bound in zip((B.op.axis[0], inner), ("blockIdx.x", "threadIdx.x"), bound):
        if is_bound:
            s[B].bind(loop, te.thread_axis(tag))
    a = tedsl.nd.array(some((7, 60), "float32"), tedsl.sim(0))
    b = tedsl.nd.array(np.zeros((7, 60), "float32"), tedsl.sim(0))
    tedsl.build(s, [A, B], "nvptx")(a, b)
    np.testing.assert_array_equal(b.numpy(), a.numpy() + 1)


@needs_compiler
@pytest.mark.parametrize("options", ["", "-vectors=gcc"])
def test_functions_in_c(options):
    s, A, B = doubled(60)
    values = some((60,), "float32")
    kernel, lowered = tedsl.build(s, [A, B], strict_target(options)), tedsl.lower(s, [A, B])["main"]
    in_all_places(kernel, lowered, [values], np.zeros(60, "float32"), 2 * values)


# --- passes behind it ------------------------------------------------------------------------------------------------------

def transposed(n, by_rows):
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[j, i], name="B")
    s = create_schedule(B.op)
    io, ii = s[B].split(B.op.axis[0], 16, tail=INWARDS, lines_of=A)
    jo, ji = s[B].split(B.op.axis[1], 16)
    s[B].reorder(*((io, jo) if by_rows else (jo, io)), ii, ji)
    s[B].vectorize(ji)
    return tedsl.build(s, [A, B], target="llvm -mcpu=znver4")


def test_tiles_of_transpositions_are_still_found():
    source = transposed(512, by_rows=False).get_source("ll")
    assert source.count("load <16 x float>") == 16 and source.count("shufflevector") == 64 and "gather" not in source


@pytest.mark.parametrize("by_rows", [False, True])
def test_stores_past_the_cache_are_still_found(by_rows):
    source = transposed(4096, by_rows).get_source("ll")
    assert source.count("!nontemporal") >= 16 and "gather" not in source


# --- journals, texts and files ---------------------------------------------------------------------------------------------

def test_the_journal_says_it():
    s, A, B = doubled(60)
    assert "split(s[B].op.axis[0], factor=16, tail='shift_inwards', lines_of=A)" in str(s.journal)
    twin = create_schedule(B.op)
    exec(str(s.journal), {"s": twin, "A": A, "B": B})
    assert loops(twin, [A, B]) == loops(s, [A, B])
    again = create_schedule(B.op)
    again.replay(te.Journal.from_json(s.journal.to_json()))
    assert loops(again, [A, B]) == loops(s, [A, B])


def test_a_function_is_read_back_from_its_text():
    s, A, B = doubled(60)
    module = tedsl.lower(s, [A, B])
    copy = tedsl.ir.load_json(tedsl.ir.save_json(module))
    assert str(copy["main"]) == str(module["main"])
    calls = [node for node in post_order(copy["main"].body) if isinstance(node, Call) and node.op is ELEMENTS_PAST_LINE]
    assert len(calls) == 1


# --- refusals ------------------------------------------------------------------------------------------------------------

def refusal(directive, kind=ScheduleError):
    with pytest.raises(kind) as caught:
        directive()
    return str(caught.value)


def plain():
    A = te.placeholder((50,), name="A")
    B = te.compute((50,), lambda i: A[i] + 1.0, name="B")
    return A, B, create_schedule(B.op)


@pytest.mark.parametrize("tail", ["guard", "mask", "partition"])
def test_another_tail(tail):
    A, B, s = plain()
    message = refusal(lambda: s[B].split(B.op.axis[0], 16, tail=tail, lines_of=A))
    assert f'overlap at the ends of the loop, where they are moved inwards, and the tail is "{tail}"' in message
    assert 'hint: say tail="shift_inwards" too' in message and "lines_of=A) on stage B" in message
    assert len(s[B].leaf_iter_vars) == 1


def test_tensors_of_others():
    A, B, s = plain()
    other, _, _ = plain()
    message = refusal(lambda: s[B].split(B.op.axis[0], 16, tail=INWARDS, lines_of=other))
    assert "lines_of is a tensor of this schedule, got the tensor A, which is of another one" in message
    assert "one of A, B" in message
    for wrong in ("A", 64, np.zeros(3), s[A], A.op):
        assert "lines_of is a tensor of this schedule, got " in refusal(
            lambda wrong=wrong: s[B].split(B.op.axis[0], 16, tail=INWARDS, lines_of=wrong))


def test_sizes_that_are_not_constant():
    A, B, s = plain()
    message = refusal(lambda: s[B].split(B.op.axis[0], nparts=4, tail=INWARDS, lines_of=A))
    assert "nparts is given, and only tiles of a constant size can all begin at lines of A" in message
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    message = refusal(lambda: s[B].split(B.op.axis[0], te.max(n // 4, 1), tail=INWARDS, lines_of=A))
    assert "the factor max((n // 4), 1) is not a constant" in message or "is not a constant, and only tiles" in message


def test_what_is_refused_of_tiles_that_overlap():
    s, A, B = doubled(64, vectorize=False)  # which the factor divides
    outer = s[B].leaf_iter_vars[0]
    assert "two threads would write the same elements" in refusal(lambda: s[B].parallel(outer))
    assert "two threads" in refusal(lambda: s[B].bind(outer, te.thread_axis("threadIdx.x")))
    shared = tir.decl_buffer((64,), "float32", "AB")
    assert "B is computed in place" in refusal(lambda: tedsl.lower(s, [shared], binds={A: shared, B: shared}), LoweringError)
    A = te.placeholder((10, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    C = te.compute((10,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    assert "C is a reduction" in refusal(lambda: s[C].split(C.op.axis[0], 4, tail=INWARDS, lines_of=A))


def test_an_array_whose_place_is_asked_for_may_be_read_only():
    s, A, B = doubled(60)
    kernel = tedsl.build(s, [A, B])
    a, b = np.arange(60, dtype="float32"), np.zeros(60, "float32")
    a.flags.writeable = False
    kernel(a, b)
    np.testing.assert_array_equal(b, a * 2)
