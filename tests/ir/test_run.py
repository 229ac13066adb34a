"""Running functions, in both forms."""

import numpy as np
import pytest

from tedsl.errors import ArgumentError, InternalError, OptionError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.dtype import dtype
from tedsl.ir.evaluate import run, source_of
from tedsl.ir.expr import LT, Broadcast, BufferLoad, Call, Load, Ramp, StringImm, Var, pointer_var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Store,
    While,
    seq,
)
from tests.ir.programs import F32, function, loop, row_sum, vector_buffer

i, j, x = Var("i"), Var("j"), Var("x")
ZERO, ONE = build.const(0), build.const(1)


def flat(buffer, value, index, predicate=None):
    return Store(buffer.data, value, index, predicate)


def test_row_sum_with_strides():
    func = row_sum()
    out = vector_buffer("out", 3)
    body = func.body
    copied = Allocate(body.buffer_var, F32, body.extents, build.true(),
                      seq(body.body, loop(i, 3, flat(out, Load("float32", body.buffer_var, i), i))))
    handle = Var("out", "handle")
    with_output = func.replace(params=(*func.params, handle), buffer_map={**func.buffer_map, handle: out}, body=copied)
    data, result = np.arange(24, dtype="float32").reshape(4, 6), np.zeros(3, "float32")
    run(with_output, [data[:3, ::2], result])
    np.testing.assert_array_equal(result, data[:3, ::2].sum(axis=1))
    result[:] = 0
    run(with_output, [data.T[:3], result])
    np.testing.assert_array_equal(result, data.T[:3].sum(axis=1))


def test_a_realized_region_starts_where_its_bounds_say():
    A, T = vector_buffer("A", 8), vector_buffer("T", 8)
    produce = loop(i, 5, BufferStore(T, build.mul(BufferLoad(A, (i,)), build.const(2.0)), (i,)), start=3)
    consume = loop(j, 5, BufferStore(A, BufferLoad(T, (j,)), (j,)), start=3)
    a = np.arange(8, dtype="float32")
    run(function(BufferRealize(T, (Range(3, 8),), build.true(), seq(produce, consume)), A), [a])
    np.testing.assert_array_equal(a, [0, 1, 2, 6, 8, 10, 12, 14])


def test_leaving_a_realized_region_is_an_error():
    A, T = vector_buffer("A", 8), vector_buffer("T", 8)
    body = BufferRealize(T, (Range(3, 8),), build.true(), BufferStore(A, BufferLoad(T, (build.const(2),)), (ZERO,)))
    words = r"index -1 of T, dimension 0 \(relative to the realized region\) is outside 0 <= index < 5"
    with pytest.raises(InternalError, match=words):
        run(function(body, A), [np.zeros(8, "float32")])


def test_an_access_out_of_range_names_buffer_index_size_and_loops():
    A = vector_buffer("A", 4)
    body = loop(i, 2, loop(j, 5, flat(A, build.const(1.0), build.add(build.mul(i, 4), j))))
    with pytest.raises(InternalError, match=r"index 4 of A is outside 0 <= index < 4; loops: i = 0, j = 4"):
        run(function(body, A), [np.zeros(4, "float32")])
    two = decl_buffer((2, 4), "float32", "M")
    wrong = loop(i, 2, loop(j, 5, BufferStore(two, build.const(1.0), (i, j))))
    with pytest.raises(InternalError, match=r"index 4 of M, dimension 1 is outside 0 <= index < 4; loops: i = 0, j = 4"):
        run(function(wrong, two), [np.zeros((2, 4), "float32")])


@pytest.mark.parametrize("of, expected", [("float32", [np.nan, np.nan]), ("int32", [0x7D7D7D7D, -0x7D7D7D7E]),
                                          ("uint8", [0x7D, 0x82]), ("bool", [True, False])])
def test_memory_that_nobody_wrote_shows(of, expected):
    A, B = vector_buffer("A", 2, of), pointer_var("B", dtype(of))
    body = Allocate(B, of, (build.const(2),), build.true(), loop(i, 2, flat(A, Load(of, B, i), i)))
    a = np.zeros(2, of)
    run(function(body, A), [a])
    np.testing.assert_array_equal(a, expected)


def test_parallel_loops_can_run_backwards():
    A = vector_buffer("A", 4, "int32")
    body = loop(i, 4, flat(A, i, ZERO), ForKind.PARALLEL)
    a = np.zeros(4, "int32")
    run(function(body, A), [a])
    assert a[0] == 3
    run(function(body, A), [a], reverse_parallel=True)
    assert a[0] == 0


def test_masked_and_scattered_stores():
    A = vector_buffer("A", 6, "int32")
    lanes = Ramp(ZERO, ONE, 4)
    tail = LT(Ramp(build.const(4), ONE, 4), Broadcast(build.const(6), 4))
    body = seq(flat(A, lanes, Ramp(build.const(4), ONE, 4), tail),
               flat(A, Broadcast(build.const(9), 2), Ramp(ZERO, build.const(2), 2)),
               flat(A, build.const(5), build.const(77), build.const(False)), flat(A, build.const(5), ONE, build.const(True)))
    a = np.zeros(6, "int32")
    run(function(body, A), [a])
    assert a.tolist() == [9, 5, 9, 0, 0, 1]


def test_lanes_are_written_in_ascending_order():
    A = vector_buffer("A", 1, "int32")
    a = np.zeros(1, "int32")
    run(function(flat(A, Ramp(ONE, ONE, 4), Broadcast(ZERO, 4)), A), [a])
    assert a[0] == 4


def test_branches_lets_and_while():
    A = vector_buffer("A", 4, "int32")
    loaded = Load("int32", A.data, ZERO)
    body = seq(While(build.less(loaded, 5), flat(A, build.add(loaded, 2), ZERO)),
               loop(i, 3, LetStmt(x, build.mul(i, 10), IfThenElse(build.likely(build.less(x, 15)), flat(A, x, build.add(i, 1)),
                                                                 flat(A, build.const(-1), build.add(i, 1))))))
    a = np.zeros(4, "int32")
    run(function(body, A), [a])
    assert a.tolist() == [6, 0, 10, -1]


def test_a_statement_reads_what_the_one_before_wrote():
    A = vector_buffer("A", 1, "int32")
    more = flat(A, build.add(Load("int32", A.data, ZERO), 1), ZERO)  # one shared node, three times
    a = np.zeros(1, "int32")
    run(function(seq(more, more, more), A), [a])
    assert a[0] == 3


def test_an_assertion_that_fails_is_raised():
    func = function(AssertStmt(build.less(x, 3), StringImm("x must be small"), Evaluate(ZERO)), scalars=(x,))
    run(func, [2])
    with pytest.raises(ArgumentError, match="x must be small"):
        run(func, [3])


def test_shapes_bind_variables_also_in_linear_expressions():
    n = Var("n")
    A, B = decl_buffer((build.add(build.mul(n, 2), 1),), "int32", "A"), decl_buffer((build.mul(n, 2),), "int32", "B")
    func = function(flat(A, n, ZERO), A, B)
    a = np.zeros(7, "int32")
    run(func, [a, np.zeros(6, "int32")])
    assert a[0] == 3
    with pytest.raises(InternalError, match="dimension 0 of B is 5"):
        run(func, [a, np.zeros(5, "int32")])
    with pytest.raises(InternalError, match="dimension 0 of A is 6"):
        run(func, [np.zeros(6, "int32"), np.zeros(4, "int32")])


def test_wrong_arguments_are_named():
    func = function(Evaluate(ZERO), vector_buffer("A", 2))
    for args, words in (([], "takes 1 arguments"), ([3], "not a numpy array"), ([np.zeros(2)], "array of float64"),
                        ([np.zeros((2, 2), "float32")], "1 dimensions"), ([np.zeros(4, "float32")[::2]], "compact")):
        with pytest.raises(InternalError, match=words):
            run(func, args)


def test_rank_zero_and_size_zero():
    A = decl_buffer((), "float32", "A")
    a = np.array(2.0, "float32")
    run(function(BufferStore(A, build.add(BufferLoad(A, ()), 1), ()), A), [a])
    assert a == 3
    n = Var("n")
    E = decl_buffer((n,), "float32", "E")
    run(function(For(i, ZERO, n, ForKind.SERIAL, flat(E, build.const(1.0), i)), E), [np.zeros(0, "float32")])


def test_symbolic_strides_of_a_buffer():
    n, s = Var("n"), Var("s")
    A = Buffer(pointer_var("A", F32), F32, (n,), (s,), ZERO, "A")
    a = np.arange(6, dtype="float32")
    run(function(loop(i, n, BufferStore(A, build.const(0.0), (i,))), A), [a[::2]])
    assert a.tolist() == [0, 1, 0, 3, 0, 5]


def test_more_loops_than_python_nests():
    A = vector_buffer("A", 1, "int32")
    loops = [Var(f"i{k}") for k in range(60)]
    at = loops[0]
    for v in loops[1:]:
        at = build.add(at, v)
    body = flat(A, build.add(Load("int32", A.data, ZERO), build.add(at, 1)), ZERO)
    for k, v in reversed(list(enumerate(loops))):
        body = loop(v, 2 if k % 30 == 0 else 1, body)
    a = np.zeros(1, "int32")
    run(function(body, A), [a])
    assert a[0] == sum(p + q + 1 for p in (0, 1) for q in (0, 1))


def test_ten_thousand_statements():
    A = vector_buffer("A", 1, "int32")
    step = flat(A, build.add(Load("int32", A.data, ZERO), 1), ZERO)
    a = np.zeros(1, "int32")
    run(function(seq(*[step] * 10_000), A), [a])
    assert a[0] == 10_000


def test_threads_are_loops():
    A = vector_buffer("A", 4, "int32")
    thread = IterVar(None, Var("tx"), 1, "threadIdx.x")
    body = AttrStmt(thread, "thread_extent", build.const(4), flat(A, thread.var, thread.var))
    a = np.zeros(4, "int32")
    run(function(body, A), [a])
    assert a.tolist() == [0, 1, 2, 3]


def test_functions_from_outside():
    A = vector_buffer("A", 2, "int32")
    called = Call("int32", "tir.call_packed", (StringImm("twice"), Load("int32", A.data, ZERO)))
    a = np.array([4, 0], "int32")
    run(function(flat(A, called, ONE), A), [a], external={"twice": lambda v: 2 * v})
    assert a[1] == 8
    with pytest.raises(OptionError, match="no Python function is registered as 'twice'"):
        run(function(flat(A, called, ONE), A), [a])


def test_the_source_can_be_read():
    assert "for i" in source_of(function(loop(i, 4, Evaluate(i)), vector_buffer("A", 4)))


def test_a_vector_access_of_a_multi_dimensional_buffer():
    A = decl_buffer((2, 4), "int32", "A")
    row = (i, Ramp(ZERO, ONE, 4))
    body = loop(i, 2, BufferStore(A, build.mul(BufferLoad(A, row), Broadcast(i, 4)), row))
    a = np.ones((2, 4), "int32")
    run(function(body, A), [a])
    assert a.tolist() == [[0] * 4, [1] * 4]
