"""What programs of strangers do, each by several, and what it gives here."""

import copy
import pickle

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.compat.migrate import migrate
from tedsl.errors import AbsentModuleError
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
    with pytest.raises(AbsentModuleError, match=r"rpc\.connect is asked for, and rpc\.LocalSession is there"):
        rpc.connect("host", 9090)


def test_dtypes_had_names_at_the_root():
    import tedsl.compat.v06 as tvm

    assert tvm.var("bias", dtype=tvm.float32).dtype == "float32"
    assert migrate("import tvm\nx = tvm.var('b', dtype=tvm.float32)\n")[1] == ()
