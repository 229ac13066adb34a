"""Idioms of TVM 0.6 in passes and operators of programs: nodes as they were made there, and the fields that they had."""

import numpy as np
import pytest

import tedsl
import tedsl.compat.v06 as tvm
from tedsl.errors import ArgumentError, ArgumentTypeError, OptionError


def doubled(n=8):
    A = tvm.placeholder((n,), name="A")
    B = tvm.compute((n,), lambda i: A[i] * 2.0, name="B")
    return A, B, tvm.create_schedule(B.op)


def test_blocks_are_sequences_of_two():
    a, b, c = (tvm.make.Evaluate(tvm.call_extern("int32", name)) for name in "abc")
    block = tvm.make.Block(a, tvm.make.Block(b, c))
    assert isinstance(block, tvm.stmt.Block) and block.first is a and block.rest.first is b and block.rest.rest is c
    assert isinstance(block, tedsl.tir.SeqStmt) and not isinstance(a, tvm.stmt.Block)
    with pytest.raises(ArgumentTypeError, match="two statements, not an int"):
        tvm.make.Block(a, 3)
    with pytest.raises(ArgumentTypeError, match=r"called as make\.Block\(first, rest\)"):
        tvm.make.Block([a, b])


def test_kinds_of_loops_are_numbers():
    body = tvm.make.Evaluate(0)
    for kind in ("Serial", "Parallel", "Vectorized", "Unrolled"):
        number = getattr(tvm.stmt.For, kind)
        loop = tvm.make.For(tvm.var("i"), 0, 8, number, 0, body)
        assert loop.for_type == number and isinstance(loop, tvm.stmt.For)
    with pytest.raises(ArgumentError, match=r"For\.Serial, Parallel"):
        tvm.make.For(tvm.var("i"), 0, 8, 9, 0, body)


def test_a_pass_that_sets_the_kind_of_a_loop():
    A, B, s = doubled()

    def unrolled(op):
        return tvm.make.For(op.loop_var, op.min, op.extent, tvm.stmt.For.Unrolled, op.for_type, op.body)

    with tvm.build_config(add_lower_pass=[(1, lambda stmt: tvm.ir_pass.IRTransform(stmt, None, unrolled, ["For"]))]):
        function = tvm.lower(s, [A, B])
    assert len(function.body.seq) == 8


def test_functions_that_lower_gives():
    A, B, s = doubled()
    function = tvm.lower(s, [A, B], name="twice")
    assert isinstance(function, tvm.container.LoweredFunc) and isinstance(function, tedsl.tir.PrimFunc)
    assert [arg.name for arg in function.args] == ["A", "B"] and function.name == "twice" and function.thread_axis == ()
    assert function.func_type == tvm.container.LoweredFunc.MixedFunc and function.is_restricted
    assert isinstance(function.with_attr("x", 1), tvm.container.LoweredFunc)
    b = np.zeros(8, "float32")
    tvm.build(function, target="llvm")(np.arange(8, dtype="float32"), b)
    assert b.tolist() == list(range(0, 16, 2))


def test_functions_of_threads():
    A, B, s = doubled(64)
    outer, inner = s[B].split(B.op.axis[0], 32)
    s[B].bind(outer, tvm.thread_axis("blockIdx.x"))
    s[B].bind(inner, tvm.thread_axis("threadIdx.x"))
    function = tvm.lower(s, [A, B])
    assert sorted(axis.thread_tag for axis in function.thread_axis) == ["blockIdx.x", "threadIdx.x"]
    host, kernel = tvm.ir_pass.SplitHostDevice(function)
    of = tvm.container.LoweredFunc
    assert (host.func_type, kernel.func_type) == (of.HostFunc, of.DeviceFunc)
    assert [len(part.thread_axis) for part in (host, kernel)] == [0, 2]


def test_calls_by_their_type():
    x, Call = tvm.const(1.0, "float32"), tvm.expr.Call
    made = tvm.make.Call("float32", "exp", [x], Call.PureIntrinsic, None, 0)
    assert made.op is tvm.exp(x).op and made.name == "exp" and isinstance(made, Call)
    extern = tvm.make.Call("float32", "expf", [x], Call.PureExtern, None, 0)
    assert extern.name == "expf" and tvm.ir_pass.Equal(extern, tvm.call_pure_extern("float32", "expf", x))
    assert tvm.ir_pass.Equal(tvm.make.Call("int32", "f", [x], Call.Extern, None, 0), tvm.call_extern("int32", "f", x))
    A = tvm.placeholder((8,), name="A")
    assert tvm.ir_pass.Equal(tvm.make.Call("float32", "A", [tvm.const(3)], Call.Halide, A.op, 0), A[3])
    with pytest.raises(ArgumentError, match="call_type is"):
        tvm.make.Call("float32", "exp", [x], 7, None, 0)
    with pytest.raises(ArgumentTypeError, match="func is an operation, not a NoneType"):
        tvm.make.Call("float32", "A", [x], Call.Halide, None, 0)


def test_an_operator_that_calls_a_function_of_c():
    A = tvm.placeholder((4,), name="A")
    B = tvm.compute((4,), lambda i: tvm.make.Call("float32", "expf", [A[i]], tvm.expr.Call.PureExtern, None, 0), name="B")
    b = np.zeros(4, "float32")
    tvm.build(tvm.create_schedule(B.op), [A, B], "llvm")(np.arange(4, dtype="float32"), b)
    np.testing.assert_allclose(b, np.exp(np.arange(4)), rtol=1e-6)


def test_stores_of_an_operation():
    _, B, _ = doubled()
    i = tvm.var("i")
    store = tvm.make.Provide(B.op, 0, tvm.const(1.0), [i])
    assert isinstance(store, tvm.stmt.Provide) and store.func is B.op and store.value_index == 0 and store.args == (i,)
    whole = tvm.make.Realize(B.op, 0, "float32", [tvm.make.range_by_min_extent(0, 8)], True, store)
    assert isinstance(whole, tvm.stmt.Realize) and whole.body is store and whole.producer.op is B.op
    assert tvm.make.ProducerConsumer(B.op, True, whole) is whole and isinstance(tvm.make.Free(tvm.var("p")), tvm.stmt.Evaluate)


def test_nodes_by_the_names_of_their_classes():
    assert tvm.make.node("IntImm", dtype="int32", value=3).value == 3
    span = tvm.make.node("Range", min=2, extent=4)
    assert (span.min.value, span.extent.value) == (2, 4) and tvm.make.node("DictAttrs", axis=1)["axis"] == 1

    @tvm.register_node("programs.Own")
    class Own(tvm.NodeBase):
        def __init__(self, value):
            self.value = value

    assert tvm.make.node("programs.Own", value=5).value == 5
    with pytest.raises(ArgumentError, match="no class 'Nonsense'"):
        tvm.make.node("Nonsense")
    assert tvm.make.static_cast("int64", 3).dtype == "int64"


def test_families_of_expressions():
    x, e = tvm.var("x"), tvm.expr
    are = [(x + 1, "BinaryOpExpr"), (x < 1, "CmpExpr"), (tvm.all(x < 1, x > 0), "LogicalExpr"), (tvm.const(1), "ConstExpr")]
    families = ("BinaryOpExpr", "CmpExpr", "LogicalExpr", "ConstExpr")
    for expression, family in are:
        assert [name for name in families if isinstance(expression, getattr(e, name))] == [family]
        assert isinstance(expression, e.ExprOp) and isinstance(expression, tedsl.tir.expr.PrimExprWithOp)
    assert isinstance(x == 1, e.EqualOp) and isinstance(x != 1, e.NotEqualOp) and not isinstance(x, e.EqualOp)
    assert isinstance(tvm.reduce_axis((0, 4)), e.ExprOp) and issubclass(e.Add, e.BinaryOpExpr) and not isinstance(3, e.ExprOp)
    with pytest.raises(ArgumentTypeError, match="a family of expressions"):
        e.CmpExpr(x, x)


def test_names_that_moved():
    assert tvm.TVMType("float32x4").lanes == 4 and isinstance(tvm.cpu(0), tvm.nd.TVMContext)
    assert tvm.nd.TVMContext(1, 0) == tvm.cpu()
    assert tvm.tensor.Layout is tedsl.tir.Layout and tvm.tensor_intrin.decl_tensor_intrin is tvm.decl_tensor_intrin
    assert isinstance(tvm.var("x"), tvm.node.NodeBase) and not isinstance(3, tvm.NodeBase)
    from tedsl._ffi.base import TVMError, py_str
    from tedsl._ffi.node import NodeBase

    assert TVMError is tedsl.TVMError and py_str(b"x") == "x" and NodeBase is tvm.NodeBase


def test_fields_of_a_function_asked_of_a_module():
    A, B, s = doubled()
    mod = tedsl.lower(s, [A, B])
    with pytest.raises(OptionError, match=r"no body\n  hint: did you mean mod\['main'\]\.body"):
        mod.body
    assert not hasattr(mod, "nothing")


def test_hints_to_read_ahead_name_the_output_of_an_operation():
    A, _, _ = doubled()
    i = tvm.var("i")
    hint = tvm.make.Prefetch(A.op, 0, A.dtype, [tvm.make.range_by_min_extent(i + 1, 2)])
    assert isinstance(hint, tvm.stmt.Prefetch) and isinstance(hint, tedsl.tir.Prefetch) and hint.bounds[0].extent.value == 2
    assert hint.buffer.name == "A" and not isinstance(tvm.make.Evaluate(0), tvm.make.Prefetch)
