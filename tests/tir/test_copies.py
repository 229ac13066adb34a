"""Loops that copy an array, replaced by what a program writes for its machine."""

import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentTypeError, LoweringError


def flat(result, source):
    s = te.create_schedule(result.op)
    s[result].pragma(result.op.axis[0], "copy")
    loops = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    func = te.schedule.SchedulePostProcToPrimFunc([source, result], loops, None)
    return tir.transform.StorageFlatten(64)(tedsl.IRModule.from_expr(func))


def replaced(mod):
    """What the pass gives the function of a program, and the body that it leaves."""
    seen = []

    def instruction(*given):
        seen.append(given)
        return tir.Evaluate(tir.call_extern("int32", "copy", given[0].data, given[1].data))

    body = tir.transform.InjectCopyIntrin("copy", instruction)(mod)["main"].body
    return seen, body


def test_a_part_of_a_matrix_is_copied():
    m, n = te.size_var("m"), te.size_var("n")
    a = te.placeholder((m + 2, n), name="a")
    b = te.compute((m, n), lambda i, j: a[i + 2, j], name="b")
    ((src, dst, before, after, value),), body = replaced(flat(b, a))
    assert isinstance(body, tir.Evaluate)
    assert (tuple(src.shape), tuple(dst.shape)) == ((m, n), (m, n))
    assert (dst.strides[0], dst.strides[1].value) == (n, 1)
    tedsl.testing.assert_prim_expr_equal(src.elem_offset, n * 2)
    assert (before, after, value) == ((), (), None)


def test_what_is_around_the_source_is_padded():
    m, n = te.size_var("m"), te.size_var("n")
    a = te.placeholder((m, n), name="a")
    b = te.compute((m + 3, n), lambda i, j: tir.if_then_else(tir.all(i >= 1, i < m + 1), a[i - 1, j], 1.0), name="b")
    ((src, dst, before, after, value),), _ = replaced(flat(b, a))
    tedsl.testing.assert_prim_expr_equal(src.elem_offset, 0)
    tedsl.testing.assert_prim_expr_equal(src.shape[0], m)
    tedsl.testing.assert_prim_expr_equal(dst.shape[0], m + 3)
    assert [one.value for one in (*before, *after)] == [1, 0, 2, 0]
    assert value.value == 1.0


def test_loops_that_compute_are_refused():
    a = te.placeholder((8,), name="a")
    with pytest.raises(LoweringError, match="no copy of an array"):
        replaced(flat(te.compute((8,), lambda i: a[i] + 1, name="b"), a))
    with pytest.raises(ArgumentTypeError, match="pragma"):
        tir.transform.InjectCopyIntrin(lambda: 0, "copy")


def test_variables_are_bound_once():
    v = tir.Var("v", "int32")
    twice = tir.SeqStmt([tir.LetStmt(v, 16, tir.Evaluate(v)), tir.LetStmt(v, 32, tir.Evaluate(v))])
    first, second = tir.transform.ConvertSSA()(tedsl.IRModule.from_expr(tir.PrimFunc([], twice)))["main"].body
    assert first.var is not second.var
    assert second.body.value is second.var


def test_a_function_is_marked_for_a_device():
    x = te.var("x")
    func = tir.PrimFunc([x], tir.Evaluate(x))
    assert tir.transform.DecorateDeviceScope()(tedsl.IRModule.from_expr(func))["main"].body.attr_key == "device_scope"
