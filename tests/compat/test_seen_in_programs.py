"""What programs of strangers do, each by several, and what it gives here."""

import copy
import pickle

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te, tir
from tedsl.errors import AbsentModuleError, ArgumentError
from tedsl.ir.container import Array


def test_shapes_and_axes_print_as_lists():
    A = te.placeholder((4, te.var("n")), name="A")
    k = te.reduce_axis((0, 3), "k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    assert str(A.shape) == "[4, n]" and f"{B.op.axis}" == "[iter_var(i, range(min=0, ext=4))]"
    assert repr(B.op.reduce_axis) == "[iter_var(k, range(min=0, ext=3))]"
    assert str(tedsl.runtime.convert([1, [2]])) == "[1, [2]]"
    s = te.create_schedule(B.op)
    assert str(s[s.cache_write(B, "local")].op.axis).startswith("[iter_var(i.c")


def test_lists_and_tuples_are_added_to_shapes():
    A = te.placeholder((4, 5, 6), name="A")
    assert A.shape[:1] + [7] + A.shape[2:] == [4, 7, 6] and type(A.shape[:1] + [7]) is list
    assert [1] + A.shape == [1, 4, 5, 6] and (1,) + A.shape == (1, 4, 5, 6) and A.shape + (1,) == (4, 5, 6, 1)
    assert te.compute(A.shape[:2] + [A.shape[2] * 2], lambda *i: 0.0).shape == (4, 5, 12)
    with pytest.raises(TypeError):
        A.shape + 1


def test_arrays_stay_tuples():
    shape = te.placeholder((4, 5)).shape
    assert isinstance(shape, tuple) and hash(shape) == hash(tuple(shape)) and {shape: 1}[tuple(shape)] == 1
    assert isinstance((1, 2), Array) and not isinstance([1, 2], Array) and isinstance(shape[:1], Array)
    for same in (copy.copy(shape), copy.deepcopy(shape), pickle.loads(pickle.dumps(shape))):
        assert type(same) is Array and list(map(int, same)) == [4, 5]


def test_a_target_names_its_device():
    assert tedsl.device(tedsl.target.Target("llvm -mcpu=haswell")) == tedsl.cpu(0)
    assert tedsl.device(tedsl.target.Target("nvptx"), 1) == tedsl.cuda(1)


def test_stackvm_is_the_processor():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    f = tedsl.build(te.create_schedule(B.op), [A, B], "stackvm")
    b = tedsl.nd.empty((8,), device=tedsl.device("stackvm"))
    f(tedsl.nd.array(np.arange(8, dtype="float32")), b)
    assert b.numpy().tolist() == [0, 2, 4, 6, 8, 10, 12, 14] and tedsl.runtime.enabled("stackvm")


def test_an_argument_that_threads_compute_is_shown_and_not_built():
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.warns(UserWarning, match="build refuses these loops: B is an argument"):
        text = str(tedsl.lower(s, [A, B, C], simple_mode=True))
    assert "threadIdx.x" in text
    with pytest.raises(tedsl.TedslError, match="B is an argument, and its stage is computed inside a loop"):
        tedsl.build(s, [A, B, C], "cuda")


def test_a_session_on_this_machine(tmp_path):
    from tedsl import rpc

    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    tedsl.build(te.create_schedule(B.op), [A, B]).export_library(str(tmp_path / "lib.tedsl"))
    remote = rpc.LocalSession()
    remote.upload(str(tmp_path / "lib.tedsl"))
    f = remote.load_module("lib.tedsl")
    a, b = (tedsl.nd.array(np.zeros(4, "float32"), remote.cpu()) for _ in range(2))
    f(a, b)
    assert b.numpy().tolist() == [1.0] * 4
    remote.upload(b"abc", target="x")
    assert remote.download("x") == b"abc"
    with pytest.raises(AbsentModuleError, match=r"rpc\.connect is not part of tedsl(.|\n)*which is rpc\.LocalSession"):
        rpc.connect("host", 9090)


def test_dtypes_had_names_at_the_root():
    import tedsl.compat.v06 as tvm

    assert tvm.var("bias", dtype=tvm.float32).dtype == "float32"


def test_schedules_are_found_through_the_module_of_their_file():
    x = te.placeholder((4, 8), name="x")
    assert topi.cuda.reduction.schedule_reduce is topi.cuda.schedule_reduce
    assert topi.x86.injective.schedule_injective([topi.nn.relu(x)]).outputs
    assert callable(topi.nn.dense) and callable(topi.nn.pooling.pool2d) and callable(topi.sort)


def test_sizes_of_no_extent_are_told_from_variables():
    n, unknown = te.var("n"), tir.Any()
    assert isinstance(unknown, tir.Any) and isinstance(unknown, (tir.IntImm, tir.expr.Any)) and isinstance(unknown, tir.Var)
    assert not isinstance(n, tir.Any) and not isinstance(tir.SizeVar("m", "int32"), tir.Any)


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_bits_by_name(dtype):
    x = te.placeholder((5,), dtype, name="x")
    one, low = tir.const(1, dtype), tir.const(7, dtype)
    odd = te.compute((5,), lambda i: tir.bitwise_or(tir.shift_left(x[i], one), one))
    kept = te.compute((5,), lambda i: tir.bitwise_xor(odd[i], tir.bitwise_and(x[i], low)))
    turned = te.compute((5,), lambda i: tir.shift_right(tir.bitwise_not(x[i]), one))
    a = np.array([0, 1, 6, 77, 100], dtype)
    for result, expected in ((kept, ((a << 1) | 1) ^ (a & 7)), (turned, ~a >> 1)):
        out = np.zeros(5, dtype)
        tedsl.build(te.create_schedule(result.op), [x, result])(a, out)
        np.testing.assert_array_equal(out, expected.astype(dtype))


@pytest.mark.parametrize("dtypes", [("int8", "int8"), ("uint8", "uint8")])
def test_four_products_of_bytes_are_an_intrinsic(dtypes):
    from tedsl.topi.cuda.tensor_intrin import dp4a

    A, B = (te.placeholder((6, 16), dtype, name=name) for name, dtype in zip("AB", dtypes))
    k, sums = te.reduce_axis((0, 16), "k"), "int32" if dtypes[0] == "int8" else "uint32"
    C = te.compute((6, 6), lambda i, j: te.sum(A[i, k].astype(sums) * B[j, k].astype(sums), axis=k), name="C")
    s = te.create_schedule(C.op)
    near = [s.cache_read(tensor, "local", [C]) for tensor in (A, B)]
    CC = s.cache_write(C, "local")
    s[CC].compute_at(s[C], C.op.axis[1])
    ko, ki = s[CC].split(CC.op.reduce_axis[0], factor=4)
    s[CC].reorder(*CC.op.axis, ko, ki)
    s[CC].tensorize(ki, dp4a(dtypes=dtypes))
    for tensor in near:
        s[tensor].compute_at(s[CC], ko)
    a, b = np.random.default_rng(0).integers(0, 99, (2, 6, 16)).astype(dtypes[0])
    c = np.zeros((6, 6), sums)
    tedsl.build(s, [A, B, C])(a, b, c)
    np.testing.assert_array_equal(c, a.astype(sums) @ b.T.astype(sums))
    with pytest.raises(ArgumentError, match="dp4a multiplies bytes, not float32 and int8"):
        dp4a(dtypes=("float32", "int8"))


def test_the_best_record_by_its_older_name():
    from tedsl import auto_scheduler

    assert auto_scheduler.load_best is auto_scheduler.load_best_record


def test_callbacks_are_removed_by_the_registry_of_the_bridge():
    tedsl.register_func("tests.removed", lambda code: code)
    assert "tests.removed" in tedsl._ffi.registry.list_global_func_names()
    tedsl._ffi.registry.remove_global_func("tests.removed")
    assert tedsl.get_global_func("tests.removed", allow_missing=True) is None


def incremented():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    return te.create_schedule(B.op), [A, B]


def test_a_function_of_the_module_is_called_by_its_variable():
    B, i = tir.decl_buffer((4,), "float32", "B"), te.var("i")
    store = tir.PrimFunc([B, i], tir.Store(B.data, tir.const(7.0), i)).with_attr("global_symbol", "put")
    call = tir.Call("int32", tedsl.ir.GlobalVar("put"), [B.access_ptr("w"), tir.const(2)])
    f = tedsl.build([tir.PrimFunc([B], tir.Evaluate(call)).with_attr("global_symbol", "f"), store])
    b = np.zeros(4, "float32")
    f["f"](b)
    assert b.tolist() == [0, 0, 7, 0] and call.args[0].value == "put"


def test_more_names_of_older_programs():
    import tedsl.compat.v06 as tvm

    assert tvm.TypeCode.HANDLE == tvm._ffi.runtime_ctypes.TypeCode.HANDLE == 3
    assert tvm.generic.add(1, 2).value == 3 and tvm.attrs.Range
    _, (A, B) = incremented()
    seen = []
    tvm.ir_pass.PostOrderVisit(B.op.body, seen.append)
    assert seen[-1] is B.op.body[0] and len(seen) > 2


def test_the_text_of_a_module_for_cuda_is_cuda_c():
    s, args = incremented()
    s[args[1]].bind(args[1].op.axis[0], te.thread_axis("threadIdx.x"))
    (kernels,) = tedsl.build(s, args, "cuda").imported_modules
    assert 'extern "C" __global__ ' in kernels.get_source() and ".entry" in kernels.get_source("ptx")
    (kernels,) = tedsl.build(s, args, "nvptx").imported_modules
    assert ".entry" in kernels.get_source()


def test_loops_as_tvm_07_makes_them():
    """The kind as a number, and a device_api before the body."""
    i = te.var("i")
    loop = tir.For(i, 0, 8, 3, 0, tir.Evaluate(i))
    assert loop.kind is tir.ForKind.UNROLLED and loop.thread_binding is None
    assert tedsl.ir.structural_equal(loop, tir.For(i, 0, 8, tir.ForKind.UNROLLED, tir.Evaluate(i)))
    with pytest.raises(tedsl.TedslError, match="For: the field body is a Stmt, not 0"):
        tir.For(i, 0, 8, 3, 0)


def test_the_text_of_functions_of_tvm_06():
    """Of LoweredFunc, which MakeAPI gives: it is written as the function that it is."""
    import tedsl.compat.v06 as tvm

    n = tvm.var("n")
    A = tvm.decl_buffer((n,), "float32")
    i = tvm.var("i")
    stmt = tvm.make.For(i, 0, n, 0, 0, tvm.make.Store(A.data, tvm.make.Load("float32", A.data, i) + 1.0, i))
    module = tvm.codegen.build_module(tvm.ir_pass.MakeAPI(stmt, "add_one", [A], 0, True), "llvm")
    assert "define" in module.get_source()
    a = np.zeros(3, "float32")
    module(a)
    assert a.tolist() == [1, 1, 1] and "add_one" in tedsl.ir.save_json(tvm.ir_pass.MakeAPI(stmt, "add_one", [A], 0, True))
