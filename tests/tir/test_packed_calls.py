"""LowerTVMBuiltin and LegalizePackedCalls on functions written by hand: what they make, and that `build` runs it."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, LoweringError
from tedsl.ir import build
from tedsl.ir.evaluate import run
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.stmt import Allocate, AttrStmt, Evaluate, For, LetStmt
from tedsl.ir.verify import verify
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.machine.raise_builtins import raise_builtins

T = tir.transform
SEEN = []


@tedsl.register_func("tests.packed.add", override=True)
def add(a, b, number, factor, text):
    SEEN.append((a.shape, number, factor, text))
    b.copyfrom(a.numpy() * factor + number)


@tedsl.register_func("tests.packed.twice", override=True)
def twice(x):
    return 2 * x


def lowered(func, *more):
    mod = IRModule({"main": func})
    for step in (*more, T.LowerTVMBuiltin()):
        mod = step(mod)
    verify(mod["main"], flat=True)
    return mod["main"]


def function(body, *buffers):
    ib = tir.ir_builder.create()
    body(ib, *(ib.buffer_ptr(buffer) for buffer in buffers))
    return PrimFunc(buffers, ib.get()).with_attr({"global_symbol": "main", "tir.noalias": True})


def lets(stmt):
    found = {}
    while isinstance(stmt, LetStmt):
        found[stmt.value.args[0].value] = build.as_int(stmt.value.args[1])
        stmt = stmt.body
    return found


def calls(func, name):
    return [node for node in post_order(func.body) if isinstance(node, tir.Call) and node.op.name == f"tir.{name}"]


def arrays(*shape, count=2):
    return [tir.decl_buffer(shape, name=name) for name in "AB"[:count]]


@pytest.mark.parametrize("shape", [(5,), (2, 3), (1, 1, 1), (0,), ()])
def test_arguments_stand_on_stacks(shape):
    A, B = arrays(*shape)
    half = tir.const(0.5, "float32")
    func = function(lambda ib, a, b: ib.emit(tir.call_packed("tests.packed.add", A, B, 3, half, "ü")), A, B)
    made = lowered(func)
    rank = len(shape)
    assert lets(made.body) == {"arg_tcode": 6, "arg_value": 6, "array": 2} | ({"shape": 2 * rank} if rank else {})
    assert "call_packed(" in str(tedsl.lower(made))
    assert not calls(made, "call_packed") and len(calls(made, "tvm_call_packed_lowered")) == 1
    assert str(raise_builtins(made)).replace("0i64", "0") == str(func)
    a, b = np.arange(np.prod(shape), dtype="float32").reshape(shape), np.zeros(shape, "float32")
    tedsl.build(made)(a, b)
    np.testing.assert_array_equal(b, a * 0.5 + 3)
    assert SEEN.pop() == (shape, 3, 0.5, "ü")


def test_iterations_of_a_parallel_loop_have_stacks_of_their_own():
    A, B = arrays(4, 6)

    def body(ib, a, b):
        with ib.for_range(0, 4, "i", kind="parallel") as i:
            ib.emit(tir.call_packed("tests.packed.add", row(A, i), row(B, i), i, 2.0, "row"))

    def row(of, i):
        return tir.call_intrin("handle", "tir.tvm_stack_make_array", of.data, shape(6), 0, 1, tir.const(0.0, "float32"), i * 6)

    def shape(*extents):
        return tir.call_intrin("handle", "tir.tvm_stack_make_shape", *extents)

    made = lowered(function(body, A, B))
    assert isinstance(made.body, For)
    assert lets(made.body.body) == {"arg_tcode": 6, "arg_value": 6, "array": 2, "shape": 2}
    a, b = np.arange(24, dtype="float32").reshape(4, 6), np.zeros((4, 6), "float32")
    tedsl.build(made)(a, b)
    np.testing.assert_array_equal(b, a * 2 + np.arange(4).reshape(4, 1))
    SEEN.clear()


def test_calls_whose_values_are_used():
    """In a store, one as the argument of another, in a let, and in a condition."""
    A, = arrays(4, count=1)

    def call(x):
        return tir.call_intrin(x.dtype, "tir.tvm_call_packed", "tests.packed.twice", x)

    def body(ib, a):
        a[0] = call(call(a[0]) + 1.0)
        x = ib.let("x", call(tir.const(5, "int32")))
        a[1] = x.astype("float32")
        with ib.if_scope(call(te.const(1, "int32")) > 1):
            a[2] = call(tir.const(1.5, "float32"))

    func = function(body, A)
    made = lowered(func)
    assert max(lets(made.body).values()) == 4, "the nested call has its values beside those of the call around it"
    assert str(raise_builtins(made)) == str(func)
    for program in (func, made):
        a = np.array([3, 0, 0, 9], "float32")
        tedsl.build(program)(a)
        np.testing.assert_array_equal(a, [14, 10, 3, 9])


def test_a_call_that_is_not_always_made_is_refused():
    A, = arrays(4, count=1)
    called = tir.call_intrin("float32", "tir.tvm_call_packed", "tests.packed.twice", tir.const(1.0, "float32"))

    def body(ib, a):
        with ib.for_range(0, 4, "i") as i:
            a[i] = tir.if_then_else(i < 2, called, tir.const(0.0, "float32"))

    with pytest.raises(LoweringError, match=r"cannot be stored before(.|\n)*ib.let"):
        lowered(function(body, A))


def on_device(*keys):
    A, = arrays(16, count=1)

    def body(ib, a):
        for key, value in keys:
            ib.scope_attr("device", key, value)
        t = ib.allocate("float32", 16, name="t")
        t[0] = a[0]
        a[1] = t[0]

    return function(body, A)


def test_memory_of_a_device_comes_from_its_allocator():
    made = lowered(on_device(("device_type", 2), ("device_id", 0)), T.StorageFlatten(64))
    assert isinstance(made.body, LetStmt)
    allocation = made.body.value
    assert [getattr(arg, "value", None) for arg in allocation.args] == ["TVMBackendAllocWorkspace", 2, 0, 64, 2, 32]
    assert [node.op.short for node in post_order(made.body) if isinstance(node, tir.Call)].count("tvm_throw_last_error") == 2
    assert not any(isinstance(node, AttrStmt) for node in post_order(made.body))


def test_memory_of_processors_stays():
    made = lowered(on_device(("device_type", 1), ("device_id", 0)), T.StorageFlatten(64))
    assert isinstance(made.body, Allocate)
    a = np.array([4.0] + [0.0] * 15, "float32")
    tedsl.build(made)(a)
    assert a[1] == 4


@pytest.mark.parametrize("n, calls", [(256, 0), (257, 2), (None, 2)])
def test_memory_of_processors_beyond_a_kilobyte_is_a_workspace(n, calls):
    """As the documentation of LowerTVMBuiltin has it: beyond 1024 bytes it is taken and freed by calls, and `build` runs it."""
    size = te.size_var("n") if n is None else n
    A, B = (tir.decl_buffer((size,), name=name) for name in "AB")

    def body(ib, a, b):
        ib.scope_attr("device", "device_type", 1)
        ib.scope_attr("device", "device_id", 0)
        t = ib.allocate("float32", size, name="t")
        with ib.for_range(0, size, "i") as i:
            t[i] = a[i] * 2.0
        with ib.for_range(0, size, "j") as j:
            b[j] = t[size - 1 - j] + 1.0

    made = lowered(function(body, A, B), T.StorageFlatten(64))
    calls_made = [node for node in post_order(made.body) if isinstance(node, tir.Call) and node.op.short == "call_extern"]
    names = [call.args[0].value for call in calls_made]
    assert len(names) == calls and set(names) <= {"TVMBackendAllocWorkspace", "TVMBackendFreeWorkspace"}
    assert isinstance(raise_builtins(made).body, Allocate)
    for func in (made, T.Simplify()(IRModule({"main": made}))["main"]):
        a, b = np.arange(n or 500, dtype="float32"), np.zeros(n or 500, "float32")
        tedsl.build(func)(a, b)
        np.testing.assert_array_equal(b, a[::-1] * 2 + 1)


@pytest.mark.parametrize("key, missing", [("device_id", "device_type"), ("device_type", "device_id")])
def test_a_device_of_which_half_is_known(key, missing):
    with pytest.raises(LoweringError, match=f"'{missing}' of the device of t is missing"):
        lowered(on_device((key, 2)), T.StorageFlatten(64))


def test_a_function_without_calls_stays():
    func = function(lambda ib, a: a.__setitem__(0, 1.0), *arrays(4, count=1))
    assert lowered(func) is func


def test_pointers_become_arrays():
    A, B = arrays(2, 3)
    pointers = function(lambda ib, a, b: ib.emit(tir.call_packed("tests.packed.add", A.data, B.data, 1, 2.0, "p")), A, B)
    made = T.LegalizePackedCalls()(IRModule({"main": pointers}))["main"]
    buffers = function(lambda ib, a, b: ib.emit(tir.call_packed("tests.packed.add", A, B, 1, 2.0, "p")), A, B)
    assert str(made) == str(buffers)
    a, b = np.arange(6, dtype="float32").reshape(2, 3), np.zeros((2, 3), "float32")
    tedsl.build(lowered(pointers, T.LegalizePackedCalls()))(a, b)
    np.testing.assert_array_equal(b, a * 2 + 1)
    SEEN.clear()


def test_a_pointer_to_unknown_memory_is_refused():
    unknown = tir.Var("p", "handle")
    func = PrimFunc((unknown,), Evaluate(tir.call_packed("tests.packed.twice", unknown)))
    with pytest.raises(LoweringError, match=r"with p, a pointer of which no buffer is known"):
        T.LegalizePackedCalls()(IRModule({"main": func}))


def test_the_interpreter_says_that_it_runs_functions_before_the_pass():
    A, B = arrays(4)
    func = function(lambda ib, a, b: ib.emit(tir.call_packed("tests.packed.add", A, B, 1, 2.0, "text")), A, B)
    with pytest.raises(ArgumentError, match=r"LowerTVMBuiltin has lowered.*\n  hint: run it as it is before that pass"):
        run(lowered(func), (np.ones(4, "float32"), np.zeros(4, "float32")))
