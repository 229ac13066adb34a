"""Statements over tensors: tir.ProducerStore, ProducerRealize, ProducerLoad; and tir.BufferRegion."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, LoweringError, ShapeError, TedslError
from tedsl.ir.script import script


def doubled_and_shifted(n, scope="", realized=True):
    """for i: T[i] = A[i]*2; for i: B[i] = T[i] + 1, written by hand."""
    A, T, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="T"), te.placeholder((n,), name="B")
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    first = tir.For(i, 0, n, 0, tir.ProducerStore(T, A[i] * 2, [i]))
    second = tir.For(j, 0, n, 0, tir.ProducerStore(B, tir.ProducerLoad(T, [j]) + 1, [j]))
    body = tir.SeqStmt([first, second])
    if realized:
        body = tir.ProducerRealize(T, [tedsl.ir.Range(0, n)], True, body, scope)
    return A, T, B, body


@pytest.mark.parametrize("n", [1, 7, te.var("n")], ids=str)
@pytest.mark.parametrize("flat", [False, True])
def test_a_statement_over_tensors_runs(n, flat):
    A, _, B, body = doubled_and_shifted(n, "local" if isinstance(n, int) else "")
    func = te.schedule.SchedulePostProcToPrimFunc([A, B], body)
    assert [buffer.name for buffer in func.buffers] == ["A", "B"]
    (realize,) = [node for node in nodes(func.body) if isinstance(node, tir.BufferRealize)]
    assert realize.buffer.name == "T" and realize.buffer.scope() == ("local" if isinstance(n, int) else "global")
    mod = tedsl.IRModule.from_expr(func)
    a = np.arange(n if isinstance(n, int) else 5, dtype="float32")
    b = np.zeros_like(a)
    tedsl.build(tir.transform.StorageFlatten(64)(mod) if flat else mod)(a, b)
    np.testing.assert_array_equal(b, a * 2 + 1)


def nodes(stmt):
    found = []
    tir.stmt_functor.post_order_visit(stmt, found.append)
    return found


def test_buffers_of_the_caller():
    A, T, B, body = doubled_and_shifted(6, realized=False)
    data, kept = tir.decl_buffer((6,), name="data", elem_offset=te.var("start")), tir.decl_buffer((6,), name="kept")
    func = te.schedule.SchedulePostProcToPrimFunc([data, kept, B], body, {A: data, T: kept})
    assert func.buffers[:2] == (data, kept)
    a, t, b = np.arange(9, dtype="float32")[3:], np.zeros(6, "float32"), np.zeros(6, "float32")
    tedsl.build(tedsl.IRModule.from_expr(func))(a, t, b)
    np.testing.assert_array_equal(t, a * 2)
    np.testing.assert_array_equal(b, a * 2 + 1)


def test_a_realized_region_that_does_not_begin_at_zero():
    A, T, B = (te.placeholder((10,), name=name) for name in "ATB")
    i = tir.Var("i", "int32")
    body = tir.For(i, 0, 10, 0, tir.ProducerRealize(T, [tedsl.ir.Range(i, i + 1)], True, tir.SeqStmt(
        [tir.ProducerStore(T, A[i] + 3, [i]), tir.ProducerStore(B, T[i] * T[i], [i])])))
    func = te.schedule.SchedulePostProcToPrimFunc([A, B], body)
    a, b = np.arange(10, dtype="float32"), np.zeros(10, "float32")
    tedsl.build(tir.transform.StorageFlatten(64)(tedsl.IRModule.from_expr(func)))(a, b)
    np.testing.assert_array_equal(b, (a + 3) ** 2)


def test_texts():
    A, _, _, body = doubled_and_shifted(4, "local")
    assert isinstance(A, tir.DataProducer) and not isinstance(tir.decl_buffer((4,)), tir.DataProducer)
    assert str(body).splitlines()[0] == 'producer_realize(T, [0:4], True, "local") {' and "T[i] = (A[i]*2f32)" in str(body)
    assert script(body).splitlines()[0] == 'T = allocate(float32[4], scope="local")'
    region = tir.BufferRegion(tir.decl_buffer((8, 8), name="M"), [tedsl.ir.Range(0, 8), tedsl.ir.Range(2, 5)])
    assert (str(region), script(region)) == ("M[0:8, 2:5]", "M[0 : 8, 2 : 5]") and "A[i]" in repr(body)


def test_equality_by_structure():
    A, _, B, body = doubled_and_shifted(4)
    equal = tedsl.ir.structural_equal
    again = tir.ProducerRealize(body.producer, body.bounds, body.condition, body.body)
    assert equal(body, again) and tedsl.ir.structural_hash(body) == tedsl.ir.structural_hash(again)
    assert not equal(body, tir.ProducerRealize(A, body.bounds, body.condition, body.body))
    assert not equal(body, tir.ProducerRealize(body.producer, body.bounds, body.condition, body.body, "local"))
    assert not equal(tir.ProducerStore(B, 1, [0]), tir.ProducerStore(B, 1, [1]))
    M, R = tir.decl_buffer((8,), name="M"), tedsl.ir.Range
    assert equal(tir.BufferRegion(M, [R(0, 4)]), tir.BufferRegion(M, [R(0, 4)]))
    assert not equal(tir.BufferRegion(M, [R(0, 4)]), tir.BufferRegion(M, [R(0, 5)]))


def test_what_is_refused():
    A, T, B, body = doubled_and_shifted(4, realized=False)
    with pytest.raises(LoweringError, match="the tensor T, which is neither an argument nor realized"):
        te.schedule.SchedulePostProcToPrimFunc([A, B], body)
    M = tir.decl_buffer((4,), name="M")
    mod = tedsl.IRModule.from_expr(tir.PrimFunc([M.data], body))
    for use in (tedsl.lower, tedsl.build):
        with pytest.raises(DTypeError, match="SchedulePostProcToPrimFunc gives tensors buffers"):
            use(mod)
    assert "T[i] = A[i]*2" in tir.transform.StorageFlatten(64)(mod).readable()  # a pass leaves them as they are


@pytest.mark.parametrize("wrong, error", [
    (lambda P, R: tir.ProducerStore(3, 1, [0]), ArgumentTypeError), (lambda P, R: tir.ProducerStore(P, 1, []), ShapeError),
    (lambda P, R: tir.ProducerStore(P, te.var("i"), [0]), DTypeError), (lambda P, R: tir.ProducerStore(P, 1, 0), TedslError),
    (lambda P, R: tir.ProducerRealize(P, [], True, tir.Evaluate(0)), ShapeError),
    (lambda P, R: tir.ProducerRealize("P", [R], True, tir.Evaluate(0)), ArgumentTypeError),
    (lambda P, R: tir.ProducerRealize(P, [R], 1.5, tir.Evaluate(0)), DTypeError),
    (lambda P, R: tir.ProducerRealize(P, [R], True, 3), ArgumentTypeError),
    (lambda P, R: tir.ProducerRealize(P, [R], True, tir.Evaluate(0), "nowhere"), ArgumentError),
    (lambda P, R: tir.BufferRegion(P, [R]), ArgumentTypeError),
    (lambda P, R: tir.BufferRegion(tir.decl_buffer((4, 4)), [R]), ShapeError),
    (lambda P, R: tir.BufferRegion(tir.decl_buffer((4,)), [3]), ArgumentTypeError)])
def test_wrong_fields(wrong, error):
    with pytest.raises(error):
        wrong(te.placeholder((4,), name="P"), tedsl.ir.Range(0, 4))
