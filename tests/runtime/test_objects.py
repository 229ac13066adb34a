"""The names of tedsl.runtime."""

import functools

import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentTypeError


def test_values_become_objects():
    convert = tedsl.runtime.convert
    assert convert(3).dtype == "int32" and convert(2.5).value == 2.5 and convert(True).dtype == "bool"
    assert convert("text") == "text" and convert(None) is None
    assert [int(i) for i in convert([1, 2])] == [1, 2] and int(convert({"a": 1})["a"]) == 1
    assert convert(lambda x: x + 1)(2) == 3
    n = te.var("n")
    assert convert(n) is n
    with pytest.raises(ArgumentTypeError, match="an object cannot be converted"):
        convert(object())


def test_objects_of_programs_stay_what_they_are():
    A = te.placeholder((8,), name="A")
    C = te.compute((8,), lambda i: A[i] * 2, name="C")
    s = te.create_schedule(C.op)
    x = te.placeholder((8,), name="x")
    intrinsic = te.decl_tensor_intrin(te.compute((8,), lambda i: x[i] * 2).op, lambda ins, outs: tir.Evaluate(0))
    total = te.comm_reducer(lambda x, y: x + y, lambda t: tir.const(0, t), name="total")
    for kept in (A, C.op, s, s[C], tedsl.Target("llvm"), tedsl.cpu(0), tedsl.build(s, [A, C]), intrinsic, total):
        assert tedsl.runtime.convert(kept) is kept
    assert tedsl.runtime.convert([A, C]) == (A, C)


def test_all_that_is_called_and_not_ours_is_a_packed_function():
    class Adder:
        def __call__(self, x):
            return x + 1

        def method(self, x):
            return x + 1

    for function in (Adder(), Adder().method, functools.partial(lambda a, x: a + x, 1), (1).__add__):
        made = tedsl.runtime.convert(function)
        assert type(made) is tedsl.runtime.PackedFunc and made(2) == 3


def test_enabled():
    assert tedsl.runtime.enabled("llvm")
    assert not tedsl.runtime.enabled("cuda") and not tedsl.runtime.enabled("nonsense")


def test_classes_of_objects():
    runtime = tedsl.runtime
    A = te.placeholder((8,), name="A")
    for one in (A, A.op, te.var("n") + 1, tedsl.Target("llvm"), runtime.convert([1])[0]):
        assert isinstance(one, runtime.Object)
    assert not isinstance(3, runtime.Object) and not isinstance("x", runtime.Object)
    kind = runtime.DataType("float32x4")
    assert (kind.bits, kind.lanes) == (32, 4) and kind is runtime.DataType(kind) and isinstance(A.dtype, runtime.DataType)
    assert isinstance(str(runtime.String("a")), runtime.String)
    assert int(runtime.const(3, "int8")) == 3 and runtime.const(3, "int8").dtype == "int8"
    with pytest.raises(tedsl.TedslError, match="there is no dtype"):
        runtime.DataType("float33")


def test_names_are_there():
    for name in ("Module", "NDArray", "PackedFunc", "register_func", "get_global_func"):
        assert name in dir(tedsl.runtime) and getattr(tedsl.runtime, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tedsl.runtime.nothing
