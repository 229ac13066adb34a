"""te.scan: what it returns, and what it refuses where it is written."""

import pytest

from tedsl import te
from tedsl.errors import ArgumentTypeError, DTypeError, ExpressionError, ShapeError
from tedsl.ir.iters import IterType

m, n = te.size_var("m"), te.size_var("n")


def parts(m=m, n=n, formula=None):
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    formula = formula or (lambda state, X, t, i: state[t - 1, i] + X[t, i])
    update = te.compute((m, n), lambda t, i: formula(state, X, t, i), name="update")
    return X, state, init, update


def test_one_state():
    X, state, init, update = parts()
    S = te.scan(init, update, state, inputs=[X], name="S", tag="sum", attrs={"k": 1})
    assert isinstance(S, te.Tensor) and tuple(S.shape) == (m, n) and S.dtype == "float32" and S.name == "S"
    op = S.op
    assert isinstance(op, te.ScanOp) and isinstance(op, te.tensor.ScanOp) and op.tag == "sum" and op.attrs["k"] == 1
    assert [*op.init, *op.update, *op.state_placeholder, *op.inputs] == [init, update, state, X]
    assert op.input_tensors == [init, update] and op.num_outputs == 1
    assert repr(op.scan_axis) == "iter_var(S.idx, range(min=1, ext=(m - 1)))" and op.scan_axis.iter_type == IterType.ORDERED
    assert [axis.name for axis in op.spatial_axis_] == ["S.out0.i1"]
    assert repr(op) == "scan(S, init=[init], update=[update], state_placeholder=[state])"


def test_several_states():
    _, s1, i1, u1 = parts()
    s2 = te.placeholder((m, 4), "int8", name="s2")
    i2 = te.compute((1, 4), lambda _, i: te.const(0, "int8"), name="i2")
    u2 = te.compute((m, 4), lambda t, i: s2[t - 1, i] + s1[t - 1, 0].astype("int8"), name="u2")
    found = te.scan([i1, i2], [u1, u2], [s1, s2])
    assert isinstance(found, list) and [t.value_index for t in found] == [0, 1] and found[0].op is found[1].op
    assert [t.dtype for t in found] == ["float32", "int8"] and [axis.name for axis in found[0].op.spatial_axis_] == [
        "scan.out0.i1", "scan.out1.i1"]


@pytest.mark.parametrize("formula", [
    lambda state, X, t, i: state[t - 1, n - 1 - i],
    lambda state, X, t, i: te.if_then_else(t > 1, state[t - 2, i], 0.0),
    lambda state, X, t, i: state[te.min(X[t, i].astype("int32"), t - 1), i],
    lambda state, X, t, i: state[(t - 1) // 2, i],
    lambda state, X, t, i: te.if_then_else(i < t, state[i, i], 0.0),
])
def test_rows_before(formula):
    _, state, init, update = parts(formula=formula)
    assert tuple(te.scan(init, update, state).op.update) == (update,)


def test_a_sum_over_the_rows_before():
    k = te.reduce_axis((0, m), name="k")
    _, state, init, update = parts(formula=lambda state, X, t, i: te.sum(state[k, i], axis=k, where=k < t))
    te.scan(init, update, state)


@pytest.mark.parametrize("formula, problem", [
    (lambda state, X, t, i: state[t, i], r"update reads state\[t, i\], and in step t only the rows before t exist: t is not "
                                         r"known to be less than t(.|\n)*state\[t - 1, ...\]"),
    (lambda state, X, t, i: state[t + 1, i], r"t \+ 1 is not known to be less than t"),
    (lambda state, X, t, i: state[i, t], r"i is not known to be less than t"),
    (lambda state, X, t, i: state[X[t, i].astype("int32"), i], r"is not known to be less than t(.|\n)*te.min\(index, t - 1\)"),
    (lambda state, X, t, i: state[t - 2, i], r"in the first step, 1, that is row -1(.|\n)*give init 2 rows"),
])
def test_rows_that_are_not_there_yet(formula, problem):
    _, state, init, update = parts(formula=formula)
    with pytest.raises(ExpressionError, match=problem):
        te.scan(init, update, state)


def test_rows_through_operations_between():
    X, state, init, _ = parts()
    half = te.compute((m, n), lambda r, i: state[r - 1, i] / 2, name="half")

    def with_update(formula):
        return te.scan(init, te.compute((m, n), formula, name="update"), state)

    with_update(lambda t, i: half[t, i] + X[t, i])
    with_update(lambda t, i: half[t, i] + te.if_then_else(t > 1, half[t - 1, i], 0.0))
    with pytest.raises(ExpressionError, match=r"half reads state\[r - 1, i\], and in step(.|\n)*is not known to be less"):
        with_update(lambda t, i: half[t + 1, i])
    with pytest.raises(ExpressionError, match=r"half reads state\[r - 1, i\]"):
        with_update(lambda t, i: half[n - 1 - t, i])


def test_an_update_is_read_in_its_own_step():
    X, s1, i1, u1 = parts()
    s2 = te.placeholder((m, n), name="s2")
    i2 = te.compute((1, n), lambda _, i: 0.0, name="i2")
    te.scan([i1, i2], [u1, te.compute((m, n), lambda t, i: u1[t, n - 1 - i] + s2[t - 1, i], name="u2")], [s1, s2])
    late = te.compute((m, n), lambda t, i: u1[t - 1, i] + s2[t - 1, i], name="late")
    with pytest.raises(ExpressionError, match=r"late reads update\[t - 1, i\], of which only the row of the step at hand"):
        te.scan([i1, i2], [u1, late], [s1, s2])


def test_only_formulas_depend_on_the_state():
    from tedsl.tir import call_packed

    _, state, init, _ = parts()
    E = te.extern((m, n), [state], lambda ins, outs: call_packed("f"), name="E")
    update = te.compute((m, n), lambda t, i: E[t, i], name="update")
    with pytest.raises(ExpressionError, match=r"E depends on the state and is not a plain te.compute"):
        te.scan(init, update, state)


def test_shapes():
    X, state, init, update = parts()
    other = te.placeholder((m, 5), name="other")
    with pytest.raises(ShapeError, match=r"dimension 1 of init init is n, and of the state other 5"):
        te.scan(init, update, other)
    with pytest.raises(ShapeError, match=r"dimension 0 of update X1 is m \+ 1, and of the state state m"):
        te.scan(init, te.compute((m + 1, n), lambda t, i: state[t - 1, i], name="X1"), state)
    with pytest.raises(ShapeError, match=r"init flat has 1 dimensions, the state state has 2"):
        te.scan(te.compute((n,), lambda i: X[0, i], name="flat"), update, state)
    with pytest.raises(ShapeError, match=r"init none has no rows"):
        te.scan(te.compute((0, n), lambda _, i: X[0, i], name="none"), update, state)
    _, state, init, update = parts(3, 4)
    with pytest.raises(ShapeError, match=r"init long has 5 rows, and all of the state state only 3"):
        te.scan(te.compute((5, 4), lambda _, i: 0.0, name="long"), update, state)
    two = te.compute((2, 4), lambda _, i: 0.0, name="two")
    s2 = te.placeholder((3, 4), name="s2")
    u2 = te.compute((3, 4), lambda t, i: s2[t - 1, i], name="u2")
    with pytest.raises(ShapeError, match=r"init has 1 rows and two has 2, both init"):
        te.scan([init, two], [update, u2], [state, s2])


def test_dtypes():
    X, state, init, _ = parts()
    with pytest.raises(DTypeError, match=r"update whole is int32, and the state state is float32(.|\n)*astype\('float32'\)"):
        te.scan(init, te.compute((m, n), lambda t, i: t, name="whole"), state)


def test_roles():
    X, state, init, update = parts()
    with pytest.raises(ArgumentTypeError, match=r"the state update is not a placeholder(.|\n)*init, update, state_placeholder"):
        te.scan(init, state, update)
    with pytest.raises(ArgumentTypeError, match=r"the update X is not made by te.compute"):
        te.scan(init, X, state)
    with pytest.raises(ArgumentTypeError, match=r"1 init, 2 update and 1 state_placeholder"):
        te.scan(init, [update, update], state)
    with pytest.raises(ArgumentTypeError, match=r"state is given twice as state_placeholder"):
        te.scan([init, init], [update, update], [state, state])
    with pytest.raises(ArgumentTypeError, match=r"init is 3, not a tensor or a list of tensors"):
        te.scan(3, update, state)
    with pytest.raises(ArgumentTypeError, match=r"inputs is 'X'"):
        te.scan(init, update, state, inputs="X")
    with pytest.raises(ExpressionError, match=r"the initial rows depend on the state state"):
        te.scan(te.compute((1, n), lambda _, i: state[0, i], name="init"), update, state)
