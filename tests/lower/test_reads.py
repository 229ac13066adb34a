"""Every element that is read is there: proved, checked at the call, clamped, or refused with an example."""

import re

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import InternalError, LoweringError
from tedsl.ir import build
from tedsl.ir.evaluate import run
from tedsl.lower.lower import lower_schedule
from tedsl.schedule.handles import create_schedule
from tests.lower.programs import check, execute, whole_numbers

N, M = te.var("n"), te.var("m")
TEN = te.placeholder((10,), name="A")
SYMBOLIC = te.placeholder((N,), name="A")


def lowered(out, *args):
    return lower_schedule(create_schedule(out.op), [*args, out])


def body_of(func):
    """The text from the body on, without the head."""
    return str(func).split("{\n", 1)[1]


@pytest.mark.parametrize("formula, words", [
    (lambda i: TEN[i + 1], ["B reads A[i + 1]", "dimension 0 of A has extent 10", "from 1 to 10", "it is 10 at i = 9"]),
    (lambda i: TEN[i - 1], ["from -1 to 8", "it is -1 at i = 0"]),
    (lambda i: TEN[i * 2], ["it is 18 at i = 9"]),
    (lambda i: te.if_then_else(i > 0, TEN[i - 2], 0.0), ["it is -1 at i = 1"]),
    (lambda i: te.if_then_else(i % 2 > 0, TEN[i + 1], 0.0), ["it is 10 at i = 9"]),
    (lambda i: te.if_then_else(te.any(i > 0, i < 5), TEN[i - 1], 0.0), ["it is -1 at i = 0"]),
])
def test_an_index_that_leaves_the_tensor_is_refused_with_an_iteration(formula, words):
    B = te.compute((10,), formula, name="B")
    with pytest.raises(LoweringError) as error:
        lowered(B, TEN)
    for word in words:
        assert word in str(error.value)
    assert "hint: make the shape of B smaller, pad A, or read under a condition" in str(error.value)


def test_the_refusal_names_every_axis_of_the_iteration():
    B = te.compute((10, 5), lambda i, j: TEN[i + j], name="B")
    with pytest.raises(LoweringError, match="it is 13 at i = 9, j = 4"):
        lowered(B, TEN)


def test_a_reduction_that_reads_too_far_is_refused():
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((8,), lambda i: te.sum(TEN[i + k], axis=k), name="B")
    with pytest.raises(LoweringError, match="it is 10 at i = 7, k = 3"):
        lowered(B, TEN)


@pytest.mark.parametrize("formula, expected", [
    (lambda i: te.if_then_else(i > 0, TEN[i - 1], 0.0), lambda a, i: a[i - 1] if i > 0 else 0),
    (lambda i: te.if_then_else(te.any(i < 1, i > 8), 0.0, TEN[i + 1]), lambda a, i: 0 if i < 1 or i > 8 else a[i + 1]),
    (lambda i: te.if_then_else(te.all(i >= 1, i % 2 < 1), TEN[i - 1], 0.0), lambda a, i: a[i - 1] if i and i % 2 < 1 else 0),
    (lambda i: te.if_then_else(i % 2 > 0, TEN[i - 1], 0.0), lambda a, i: a[i - 1] if i % 2 else 0),
    (lambda i: te.if_then_else(i < 3, te.if_then_else(i > 0, TEN[i - 1], 1.0), TEN[i - 3]),
     lambda a, i: (a[i - 1] if i > 0 else 1) if i < 3 else a[i - 3]),
    (lambda i: build.select(i > 0, TEN[i - 1], 0.0), lambda a, i: a[i - 1] if i > 0 else 0),
    (lambda i: TEN[9 - i], lambda a, i: a[9 - i]),
    (lambda i: TEN[(i * 7) % 10], lambda a, i: a[i * 7 % 10]),
    (lambda i: TEN[i // 2 + 5], lambda a, i: a[i // 2 + 5]),
])
def test_a_read_in_range_or_under_a_condition_that_keeps_it_there_is_left_alone(formula, expected):
    B = te.compute((10,), formula, name="B")
    func = lowered(B, TEN)
    assert "max(" not in str(func)
    assert "assert" not in str(func)
    a = whole_numbers((10,))
    out = execute(create_schedule(B.op), [TEN, B], {TEN: a})[B]
    np.testing.assert_array_equal(out, [expected(a, i) for i in range(10)])


def test_the_where_of_a_reduction_is_a_condition():
    k = te.reduce_axis((0, 10), name="k")
    B = te.compute((10,), lambda i: te.sum(TEN[i + k], axis=k, where=i + k.var < 10), name="B")
    check(create_schedule(B.op), [TEN, B], {TEN: whole_numbers((10,))})


def test_a_select_whose_condition_keeps_a_read_in_range_evaluates_one_side_only():
    B = te.compute((10,), lambda i: build.select(i > 0, TEN[i - 1], TEN[i]), name="B")
    assert "B[i] = @tir.if_then_else((i > 0), A[(i - 1)], A[i], dtype=float32)" in str(lowered(B, TEN))


def test_a_select_of_safe_reads_stays():
    B = te.compute((10,), lambda i: build.select(i > 0, TEN[9 - i], TEN[i]), name="B")
    assert "select((i > 0), A[(9 - i)], A[i])" in str(lowered(B, TEN))


def test_an_index_that_always_leaves_a_symbolic_tensor_is_refused():
    B = te.compute((N,), lambda i: SYMBOLIC[i + 1], name="B")
    with pytest.raises(LoweringError, match=r"has extent n and the index i \+ 1 goes from 1 to n; it is 1 at i = 0, n = 1"):
        lowered(B, SYMBOLIC)


def test_a_condition_on_symbolic_shapes_is_checked_once_at_the_top():
    B = te.compute((M,), lambda i: SYMBOLIC[i], name="B")
    assert body_of(lowered(B, SYMBOLIC)) == """\
  assert(((m - 1) < n), "B reads A[i]: dimension 0 of A has extent n and the index goes from 0 to m - 1")
  for (i: int32, 0, m) {
    B[i] = A[i]
  }
}"""


@pytest.mark.parametrize("n, m, legal", [(5, 3, True), (5, 5, True), (5, 6, False), (0, 0, True), (3, 0, True), (1, 2, False)])
def test_the_check_at_the_call_refuses_what_would_read_outside_and_nothing_else(n, m, legal):
    B = te.compute((M,), lambda i: SYMBOLIC[i], name="B")
    func = lowered(B, SYMBOLIC)
    a, b = whole_numbers((n,)), np.zeros(m, "float32")
    if legal:
        run(func, [a, b])
        np.testing.assert_array_equal(b, a[:m])
    else:
        with pytest.raises(Exception, match="B reads A"):
            run(func, [a, b])


def test_a_condition_is_not_asked_of_a_call_without_iterations():
    B = te.compute((M,), lambda i: SYMBOLIC[i + 5], name="B")
    run(lowered(B, SYMBOLIC), [whole_numbers((2,)), np.zeros(0, "float32")])


@pytest.mark.parametrize("formula", [lambda i: SYMBOLIC[i] + SYMBOLIC[i + 2], lambda i: SYMBOLIC[N - 1 - i]])
def test_symbolic_indices_that_can_be_proved_need_no_check(formula):
    B = te.compute((N - 2,), formula, name="B")
    assert "assert" not in str(lowered(B, SYMBOLIC))


def test_padding_of_a_symbolic_tensor_needs_no_check():
    inside = lambda i: te.all(i >= 3, i - 3 < N)
    B = te.compute((N + 6,), lambda i: te.if_then_else(inside(i), SYMBOLIC[i - 3], 0.0), name="B")
    text = str(lowered(B, SYMBOLIC))
    assert "assert" not in text
    assert "max(" not in text


def test_an_index_whose_extremes_are_not_known_exactly_is_clamped_rather_than_demanded():
    B = te.compute((M,), lambda i: SYMBOLIC[i * i], name="B")
    func = lowered(B, SYMBOLIC)
    assert "A[max(min((i*i), (n - 1)), 0)]" in str(func)
    a, b = whole_numbers((10,)), np.zeros(4, "float32")
    run(func, [a, b])
    np.testing.assert_array_equal(b, a[[0, 1, 4, 9]])


def test_a_remainder_needs_an_element_and_nothing_else():
    B = te.compute((M,), lambda i: SYMBOLIC[i % N], name="B")
    func = lowered(B, SYMBOLIC)
    assert "B[i] = A[floormod(i, n)]" in str(func)
    assert "assert(((m <= 0) || (n >= 1))" in str(func)


def test_a_scalar_in_an_index_is_checked_at_the_call():
    offset = te.var("offset")
    B = te.compute((8,), lambda i: TEN[i + offset], name="B")
    func = lower_schedule(create_schedule(B.op), [TEN, offset, B])
    a, b = whole_numbers((10,)), np.zeros(8, "float32")
    run(func, [a, 2, b])
    np.testing.assert_array_equal(b, a[2:])
    for wrong in (-1, 3):
        with pytest.raises(Exception, match="B reads A"):
            run(func, [a, wrong, b])


# --- data-dependent indices ---

def test_a_data_dependent_index_is_clamped_to_the_tensor():
    index = te.placeholder((4,), "int32", name="I")
    B = te.compute((4,), lambda i: TEN[index[i]], name="B")
    assert "B[i] = A[max(min(I[i], 9), 0)]" in str(lowered(B, TEN, index))
    a = whole_numbers((10,))
    out = execute(create_schedule(B.op), [TEN, index, B], {TEN: a, index: np.array([3, -5, 99, 9], "int32")})[B]
    np.testing.assert_array_equal(out, a[[3, 0, 9, 9]])


def test_a_data_dependent_index_that_is_proved_in_range_is_left_alone():
    index, table = te.placeholder((4,), "uint8", name="I"), te.placeholder((256,), name="T")
    B = te.compute((4,), lambda i: table[index[i]], name="B")
    assert "B[i] = T[I[i]]" in str(lowered(B, table, index))
    C = te.compute((4,), lambda i: TEN[index[i] % 10], name="C")
    assert "max(" not in str(lowered(C, TEN, index))


def test_clamping_an_index_inside_a_clamped_index():
    index = te.placeholder((4,), "int32", name="I")
    B = te.compute((4,), lambda i: TEN[index[index[i]]], name="B")
    assert "A[max(min(I[max(min(I[i], 3), 0)], 9), 0)]" in str(lowered(B, TEN, index))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64"])
def test_clamping_indices_of_every_dtype(dtype):
    index = te.placeholder((3,), dtype, name="I")
    table = te.placeholder((1000 if dtype in ("int16", "uint16") else 200 if "8" not in dtype else 90,), name="T")
    B = te.compute((3,), lambda i: table[index[i]], name="B")
    info = np.iinfo(dtype)
    values = np.array([info.min, 7, info.max], dtype)
    data = np.arange(int(table.shape[0]), dtype="float32")
    out = execute(create_schedule(B.op), [table, index, B], {table: data, index: values})[B]
    low = max(int(info.min), 0)
    expected = [low, 7, min(int(info.max), len(data) - 1)]
    if dtype == "uint64":
        expected = [0, 7, len(data) - 1]
    np.testing.assert_array_equal(out, np.array(expected, "float32"))


def test_reading_a_table_without_elements_is_refused():
    index, table = te.placeholder((3,), "int32", name="I"), te.placeholder((0,), name="T")
    B = te.compute((3,), lambda i: table[index[i]], name="B")
    with pytest.raises(LoweringError, match="dimension 0 of T has extent 0: no elements"):
        lowered(B, table, index)


def test_a_symbolic_table_must_have_an_element():
    index, table = te.placeholder((3,), "int32", name="I"), te.placeholder((N,), name="T")
    B = te.compute((3,), lambda i: table[index[i]], name="B")
    assert 'assert((n >= 1), "B reads T[I[i]]: dimension 0 of T has extent n: no elements")' in str(lowered(B, table, index))


def test_no_iteration_reads_nothing():
    B = te.compute((0,), lambda i: TEN[i + 100], name="B")
    lowered(B, TEN)


def test_a_load_out_of_range_would_be_seen_by_the_interpreter():
    """The oracle of all these tests: reading outside raises."""
    B = te.compute((M,), lambda i: SYMBOLIC[i], name="B")
    func = lowered(B, SYMBOLIC)
    with pytest.raises(InternalError):
        run(func.with_body(func.body.body), [whole_numbers((2,)), np.zeros(3, "float32")])


def test_an_error_names_the_line_of_the_formula():
    out = te.compute((10,), lambda i: TEN[i + 1], name="out")
    line = out.op.source
    assert line is not None and "test_reads.py" in str(line)
    with pytest.raises(LoweringError, match=rf"it is 10 at i = 9\n  in stage out \({re.escape(str(line))}\)\n  hint"):
        lowered(out, TEN)
    empty, places = te.placeholder((0,), name="empty"), te.placeholder((1,), "int32", name="places")
    with pytest.raises(LoweringError, match=r"no elements\n  in stage first \(.*test_reads.py:\d+\)"):
        lowered(te.compute((1,), lambda i: empty[places[i]], name="first"), empty, places)


@pytest.mark.parametrize("bits", [26, 40])
def test_the_search_for_an_index_outside_keeps_nothing(bits):
    """It made tuples of whole axes: gigabytes, or a MemoryError."""
    DATA = te.placeholder((4,), name="DATA")
    far = te.compute((1 << bits,), lambda i: DATA[i], name="far")
    with pytest.raises(tedsl.TedslError, match="far reads DATA"):
        tedsl.lower(te.create_schedule(far.op), [DATA, far])
