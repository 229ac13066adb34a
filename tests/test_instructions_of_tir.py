"""Operators of devices, traces and unknown sizes by names of their own in tir."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentTypeError
from tedsl.ir.evaluate import run

FRAGMENTS = {"tvm_fill_fragment": 6, "tvm_load_matrix_sync": 8, "tvm_store_matrix_sync": 8, "tvm_mma_sync": 8,
             "tvm_bmma_sync": 8}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments(name):
    memory = tir.decl_buffer((256,), "float16", name="memory", scope="wmma.matrix_a")
    given = {"fragment": memory.data, "buffer_ptr": memory.access_ptr("r"), "layout": "row_major", "value": 0.0}
    named = {"tvm_fill_fragment": ("fragment", 16, 16, 16, 0, "value"),
             "tvm_mma_sync": ("fragment", 0) * 4, "tvm_bmma_sync": ("fragment", 0) * 4}.get(
                 name, ("fragment", 16, 16, 16, 0, "buffer_ptr", 16, "layout"))
    args = [given.get(arg, arg) for arg in named]
    call = getattr(tir, name)(*args)
    assert (call.op.name, call.dtype, len(call.args)) == (f"tir.{name}", "handle", FRAGMENTS[name])
    assert str(call) == str(tir.call_intrin("handle", f"tir.{name}", *args))


@pytest.mark.parametrize("name", ["tvm_warp_shuffle", "tvm_warp_shuffle_up", "tvm_warp_shuffle_down"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_shuffles_have_the_dtype_of_their_value(name, dtype):
    call = getattr(tir, name)(tir.tvm_warp_activemask(), tir.Var("x", dtype), 1, 32, 32)
    assert (call.op.name, call.dtype) == (f"tir.{name}", dtype)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_barrier_and_a_turned_row(target):
    """Threads write a row into shared memory, wait, and read it from its end."""
    A, B = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="B")
    ib = tir.ir_builder.create()
    thread = te.thread_axis("threadIdx.x")
    ib.scope_attr(thread, "thread_extent", 8)
    row = ib.allocate("float32", 8, name="row", scope="shared")
    row[thread.var] = ib.buffer_ptr(A)[thread.var]
    ib.emit(tir.tvm_storage_sync("shared"))
    ib.buffer_ptr(B)[thread.var] = row[7 - thread.var]
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tedsl.build(tir.PrimFunc([A, B], ib.get()), target=target)(a, b)
    np.testing.assert_array_equal(b, a[::-1])


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_atomic_add(dtype):
    A, total = tir.decl_buffer((6,), dtype, name="A"), tir.decl_buffer((1,), dtype, name="total")
    ib = tir.ir_builder.create()
    a, sums = ib.buffer_ptr(A), ib.buffer_ptr(total)
    with ib.for_range(0, 6, name="i") as i:
        ib.emit(tir.atomic_add(tir.address_of(sums[0]), a[i]))
    func = tir.PrimFunc([A, total], ib.get())
    given = np.arange(6).astype(dtype)
    for call in (tedsl.build(func), lambda *arrays: run(func, arrays)):
        out = np.zeros(1, dtype)
        call(given, out)
        assert out[0] == 15


def test_pointers_and_tuples():
    memory = tir.decl_buffer((8,), "float32", name="memory")
    by_name = tir.tvm_access_ptr("float32", memory.data, 2, 4, 3)
    assert str(by_name) == str(tir.tvm_access_ptr(tir.type_annotation("float32"), memory.data, 2, 4, 3))
    assert by_name.dtype == "handle" and tir.tvm_tuple(1, 2).dtype == "handle"
    assert tir.tvm_thread_allreduce(1, 2.0, True, memory.data, te.thread_axis("threadIdx.x").var).dtype == "handle"


# --- traces ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_trace_sees_each_value_and_may_replace_it(dtype):
    seen = []

    @tedsl.register_func("tests.trace", override=True)
    def trace(at, value):
        seen.append((at, value))
        return None if at < 2 else value * 10

    A = te.placeholder((4,), dtype, name="A")
    B = te.compute((4,), lambda i: tir.trace([i, A[i] + 1], "tests.trace"), name="B")
    a, b = np.arange(4).astype(dtype), np.zeros(4, dtype)
    tedsl.build(te.create_schedule(B.op), [A, B])(a, b)
    assert seen == [(at, at + 1) for at in range(4)]
    np.testing.assert_array_equal(b, [1, 2, 30, 40])


def test_the_default_action_prints(capsys):
    A = te.placeholder((2,), "int32", name="A")
    B = te.compute((2,), lambda i: tir.trace([A[i]]), name="B")
    a, b = np.array([7, 8], "int32"), np.zeros(2, "int32")
    tedsl.build(te.create_schedule(B.op), [A, B])(a, b)
    assert capsys.readouterr().out == "[7]\n[8]\n" and list(b) == [7, 8]


@pytest.mark.parametrize("args", [[], 1, None, "values"])
def test_traces_of_nothing(args):
    with pytest.raises(ArgumentTypeError, match="a list of values that is not empty"):
        tir.trace(args)
    with pytest.raises(ArgumentTypeError, match="the name of a registered function"):
        tir.trace([1], 3)


def test_sizes_that_only_a_call_gives():
    rows, columns = tir.Any(), tir.Any()
    A = te.placeholder((rows, columns), name="A")
    B = te.compute((columns, rows), lambda i, j: A[j, i], name="B")
    kernel = tedsl.build(te.create_schedule(B.op), [A, B])
    for shape in ((3, 5), (1, 1), (0, 4)):
        a, b = np.random.default_rng(0).random(shape).astype("float32"), np.zeros(shape[::-1], "float32")
        kernel(a, b)
        np.testing.assert_array_equal(b, a.T)


def test_vectors_of_consecutive_elements():
    a, b = te.placeholder((8,), name="a"), te.placeholder((8,), name="b")
    source, target = (tir.decl_buffer(t.shape, t.dtype, t.name) for t in (a, b))
    i = tir.Var("i", "int32")
    body = tir.For(i, 0, 2, 0, tir.Store(target.data, tir.Load("float32x4", source.data, i * 4) * tir.Broadcast(2.0, 4), i * 4))
    load = tir.Load("float32x4", source.data, 4)
    assert isinstance(load.index, tir.Ramp) and int(load.index.base) == 4 and isinstance(tir.Load(
        "float32", source.data, 4).index, tir.IntImm)
    handles = [tir.Var(name, "handle") for name in "ab"]
    func = tir.PrimFunc(handles, body, None, dict(zip(handles, (source, target)))).with_attr("global_symbol", "main")
    given, got = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tedsl.build(func)(given, got)
    np.testing.assert_array_equal(got, given * 2)


def test_memory_of_the_builder_as_a_pointer():
    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        part = ib.allocate("float32", (4,), name="part")
        ib.emit(tir.call_extern("handle", "memcpy", part, source, 16))
        ib.emit(tir.call_intrin("handle", "tir.call_extern", "memcpy", target, part, 16))
        return ib.get()

    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], body, dtype="float32", name="B")
    text = str(tedsl.lower(te.create_schedule(B.op), [A, B]))
    assert '@tir.call_extern("memcpy", part, A_2, 16, dtype=handle)' in text and "part, 16" in text


def test_the_number_of_the_processor():
    assert int(tir.call_intrin("int32", "tir.tvm_context_id")) == 0
