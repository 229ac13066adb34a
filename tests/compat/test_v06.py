"""Programs of TVM 0.6 with one import line changed."""

import numpy as np
import pytest

import tedsl.compat.v06 as tvm
from tedsl.compat import make, v06
from tedsl.errors import ArgumentTypeError, OptionError
from tedsl.ir import ops
from tedsl.ir.calls import registered, signatures


@pytest.fixture
def own_operators(monkeypatch):
    """Operators and rules that the test registers are forgotten after it."""
    for owner, name in ((registered, "_ATTRIBUTES"), (registered, "_OWN"), (ops, "OPS"), (signatures, "SIGNATURES")):
        monkeypatch.setattr(owner, name, type(getattr(owner, name))(getattr(owner, name)))
    for owner in (registered, make):
        monkeypatch.setattr(owner, "OPS", ops.OPS)
    monkeypatch.setattr(registered, "SIGNATURES", signatures.SIGNATURES)


@pytest.mark.parametrize("name", sorted({*v06.NAMES, *v06.MODULES}))
def test_each_name_is_there(name):
    assert getattr(tvm, name) is not None


def test_a_name_that_is_not_there():
    with pytest.raises(OptionError, match="did you mean placeholder"):
        tvm.placeholders


def test_a_program():
    n = tvm.var("n")
    A = tvm.placeholder((n,), dtype="int32", name="A")
    B = tvm.compute(A.shape, lambda i: tvm.select(A[i] > tvm.const(3, dtype="int32"), A[i], tvm.const(0)), name="B")
    s = tvm.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=8)
    s[B].unroll(inner)
    f = tvm.build(s, [A, B], "llvm")
    a, b = tvm.nd.array(np.arange(10, dtype="int32"), tvm.context("cpu", 0)), tvm.nd.empty((10,), "int32", ctx=tvm.cpu(0))
    f(a, b)
    np.testing.assert_array_equal(b.asnumpy(), [0, 0, 0, 0, 4, 5, 6, 7, 8, 9])
    assert f.time_evaluator(f.entry_name, ctx=tvm.cpu(0), number=1)(a, b).mean > 0


def test_passes_over_statements():
    A = tvm.placeholder((8, 4), name="A")
    B = tvm.compute((8, 4), lambda i, j: A[i, j] + 1, name="B")
    s = tvm.create_schedule(B.op)
    s[B].vectorize(B.op.axis[1])
    s[B].unroll(B.op.axis[0])
    s = s.normalize()
    stmt = tvm.schedule.ScheduleOps(s, tvm.schedule.InferBound(s))
    flat = tvm.ir_pass.StorageFlatten(stmt, {}, 64)
    unrolled = tvm.ir_pass.Simplify(tvm.ir_pass.UnrollLoop(tvm.ir_pass.VectorizeLoop(flat), 0, 8, 0, True))
    stores = []
    tvm.ir_pass.PostOrderVisit(unrolled, lambda node: stores.append(node) if isinstance(node, tvm.stmt.Store) else None)
    assert [store.value.dtype for store in stores] == ["float32x4"] * 8


def test_loops_made_by_a_pass():
    n = tvm.const(32, "int32")
    a, b = tvm.placeholder((n,), name="a"), tvm.placeholder((n,), name="b")
    c = tvm.compute((n,), lambda i: a[i] + b[i], name="c")

    def in_vectors(op):
        if not isinstance(op, tvm.stmt.For) or op.extent.value % 8:
            return None
        outer, inner = tvm.var("outer"), tvm.var("inner")
        body = tvm.ir_pass.Substitute(op.body, {op.loop_var: outer * 8 + inner})
        body = tvm.make.For(inner, 0, 8, tvm.stmt.For.Vectorized, 0, body)
        return tvm.make.For(outer, 0, op.extent.value // 8, tvm.stmt.For.Serial, 0, body)

    def step(stmt):
        return tvm.ir_pass.IRTransform(stmt, None, in_vectors, ["For"])

    with tvm.build_config(add_lower_pass=[(1, step)]):
        text = str(tvm.lower(tvm.create_schedule(c.op), [a, b, c], simple_mode=True))
    assert "for (outer: int32, 0, 4)" in text and "ramp((outer*8), 1, 8)" in text


def test_operators_by_names_without_prefix():
    A = tvm.placeholder((4,), name="A")
    B = tvm.compute((4,), lambda i: tvm.call_pure_intrin("float32", "exp", A[i]), name="B")
    b = np.zeros(4, "float32")
    tvm.build(tvm.create_schedule(B.op), [A, B], "llvm")(np.arange(4, dtype="float32"), b)
    np.testing.assert_allclose(b, np.exp(np.arange(4)), rtol=1e-6)


def test_operators_of_programs_come_to_be_by_their_first_call_or_rule(own_operators):
    A = tvm.placeholder((4,), name="A")
    B = tvm.compute((4,), lambda i: tvm.call_pure_intrin("float32", "mylog_of_06", A[i]) + tvm.exp(A[i]), name="B")

    @tvm.register_intrin_rule("llvm", "mylog_of_06")
    def rule(op):
        return tvm.call_pure_intrin(op.dtype, op.name.removeprefix("my").removesuffix("_of_06"), op.args[0])

    assert callable(rule)
    assert not tvm.call_intrin("int32", "my_effect_of_06", A[0]).op.is_pure
    tvm.register_intrin_rule("llvm", "exp", lambda op: op if op.name == "exp" else None, override=True)
    b = np.zeros(4, "float32")
    tvm.build(tvm.create_schedule(B.op), [A, B], "llvm")(np.arange(1, 5, dtype="float32"), b)
    np.testing.assert_allclose(b, np.log(np.arange(1, 5)) + np.exp(np.arange(1, 5)), rtol=1e-6)


def test_modules_by_their_old_names():
    from tedsl.contrib import util

    A = tvm.placeholder((4,), name="A")
    B = tvm.compute((4,), lambda i: A[i] + 1, name="B")
    with tvm.target.create("llvm"):
        assert tvm.target.current_target().kind.name == "llvm"
        f = tvm.build(tvm.create_schedule(B.op), [A, B])
    assert tvm.target.current_target() is None
    folder = util.tempdir()
    path = folder.relpath("f.so")
    f.export_library(path)
    b = np.zeros(4, "float32")
    tvm.module.load(path)(np.ones(4, "float32"), b)
    np.testing.assert_array_equal(b, 2)
    assert tvm.contrib.util.tempdir is util.tempdir and tvm.module.enabled("llvm")
    assert isinstance(tvm.load_json(tvm.save_json(tvm.var("x") + 1)), tvm.expr.Add)
    assert tvm.datatype.get_type_registered(7) is False


def test_passes_over_expressions():
    x = tvm.var("x")
    assert tvm.ir_pass.Equal(tvm.ir_pass.Simplify((x * 4 + 3) // 4), x)
    assert tvm.ir_pass.ExprUseVar(x + 1, x) and not tvm.ir_pass.ExprUseVar(tvm.var("y") + 1, x)
    assert tvm.ir_pass.Simplify(tvm.ir_pass.Substitute(x + 1, {x: tvm.const(2)})).value == 3
    with pytest.raises(ArgumentTypeError, match="takes a statement"):
        tvm.ir_pass.UnrollLoop(x)


def test_buffers_of_intrinsics_have_the_offsets_of_build_config():
    x = tvm.placeholder((4,), name="x")
    y = tvm.compute((4,), lambda i: x[i] + 1.0, name="y")

    def added(ins, outs):
        return outs[0].vstore(0, ins[0].vload([0], "float32x4") + tvm.const(1.0, "float32x4"))

    A = tvm.placeholder((8,), name="A")
    B = tvm.compute((8,), lambda i: A[i] + 1.0, name="B")
    s = tvm.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 4)
    with tvm.build_config(offset_factor=1):
        intrin = tvm.decl_tensor_intrin(y.op, added)
    s[B].tensorize(inner, intrin)
    b = np.zeros(8, "float32")
    tvm.build(s, [A, B])(np.arange(8, dtype="float32"), b)
    assert b.tolist() == list(range(1, 9))
    assert tvm.decl_tensor_intrin(y.op, added).buffers[1].offset_factor != 1


def test_form_body_gives_the_loops_that_passes_have_not_seen():
    A = tvm.placeholder((6, 4), name="A")
    B = tvm.compute((6, 4), lambda i, j: A[i, j] + 1.0, name="B")
    s = tvm.create_schedule(B.op)
    s[B].split(B.op.axis[0], 4)
    loops = []
    tvm.ir_pass.PostOrderVisit(tvm.build_module.form_body(s),
                               lambda node: loops.append(node) if isinstance(node, tvm.stmt.For) else None)
    assert [loop.loop_var.name for loop in loops] == ["j", "i.inner", "i.outer"]


def test_values_are_traced_by_the_name_at_the_root(capsys):
    A = tvm.placeholder((2,), "int32", name="A")
    B = tvm.compute((2,), lambda i: tvm.trace([i, A[i]]) + 100, name="B")
    b = np.zeros(2, "int32")
    tvm.build(tvm.create_schedule(B.op), [A, B])(np.array([5, 6], "int32"), b)
    assert b.tolist() == [105, 106] and "6" in capsys.readouterr().out
