"""The version for compact arrays: symbolic strides become products of the shape."""

from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.expr import BufferLoad, Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import BufferStore, Store
from tedsl.passes.assume_compact import assume_compact

N, M, I, J = Var("n"), Var("m"), Var("i"), Var("j")


def matrix(name, strides, **options):
    return decl_buffer((N, M), "float32", name, strides=strides, **options)


def func(body, *buffers):
    params = [Var(b.name, "handle") for b in buffers]
    return PrimFunc(tuple(params), body, None, dict(zip(params, buffers)), {"global_symbol": "f"})


def test_flat_loops_index_compactly():
    s, t = Var("stride"), Var("stride_1")
    a = matrix("A", [s, t])
    before = func(Store(a.data, Load("float32", a.data, build.add(build.mul(I, s), build.mul(J, t))), J), a)
    after = assume_compact(before)
    assert after.buffers[0].strides == ()
    assert repr(after.body.value.index) == "((i*m) + (j*1))"


def test_buffers_of_accesses_are_those_of_the_function():
    a = matrix("A", [Var("stride"), Var("stride_1")])
    after = assume_compact(func(BufferStore(a, BufferLoad(a, (I, J)), (I, J)), a))
    assert after.body.buffer is after.body.value.buffer is after.buffers[0] is not a


def test_functions_without_symbolic_strides_are_left_alone():
    for strides in ([], [64, 1]):
        a = matrix("A", strides)
        before = func(Store(a.data, build.const(0.0), I), a)
        assert assume_compact(before) is before


def test_strides_that_say_something_else_are_kept():
    s = Var("stride")
    shared = [matrix("A", [s, 1]), matrix("B", [s, 1])]
    before = func(Store(shared[0].data, build.const(0.0), I), *shared)
    assert assume_compact(before) is before
    broadcast = matrix("C", [Var("stride"), Var("stride_1")], buffer_type="auto_broadcast")
    before = func(Store(broadcast.data, build.const(0.0), I), broadcast)
    assert assume_compact(before) is before
