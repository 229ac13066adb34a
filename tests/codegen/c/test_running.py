"""Modules in C that a compiler has compiled, called with arrays."""

import ctypes
import itertools

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tests.codegen.c import programs
from tests.codegen.c.compilers import needs_compiler, strict_target

pytestmark = needs_compiler


def floats(*shape):
    return np.random.default_rng(sum(shape)).integers(-8, 9, shape).astype("float32") / 4


def test_a_module_is_called_as_any_other():
    mod = tedsl.build(*programs.added(), strict_target())
    a, b, c = floats(100), floats(100)[::-1].copy(), np.empty(100, "float32")
    mod(a, b, c)
    np.testing.assert_array_equal(c, a + b)
    with pytest.raises(tedsl.TedslError, match=r"argument 1 \(A\) has shape \(99,\)"):
        mod(a[:99], b, c)
    assert mod.time_evaluator(mod.entry_name, number=3, repeat=2)(a, b, c).mean > 0


@pytest.mark.parametrize("options", ["", "-parallel=serial", "-parallel=omp", "-vectors=gcc"])
def test_parallel_loops_strides_and_vectors(options):
    mod = tedsl.build(*programs.product(), strict_target(options))
    for n, order in itertools.product((0, 1, 7, 40), "CF"):
        a, b, d = floats(n, 24), floats(24, 32), np.empty((n, 32), "float32")
        mod(np.asarray(a, order=order), b, d)
        np.testing.assert_array_equal(d, np.maximum(a @ b, 0) + 1)


def test_c_functions_are_called_by_name():
    a = te.placeholder((5,), "int32", name="A")
    b = te.compute((5,), lambda i: tir.call_pure_extern("int32", "toupper", a[i]), name="B")
    mod = tedsl.build(te.create_schedule(b.op), [a, b], strict_target())
    x = np.frombuffer(b"hello", "int8").astype("int32")
    y = np.empty(5, "int32")
    mod(x, y)
    assert bytes(y.astype("int8")) == b"HELLO"


def test_c_functions_take_pointers_and_texts():
    a = te.placeholder((5,), "int32", name="A")
    b = te.extern((5,), [a], lambda ins, outs: tir.stmt_seq(
        tir.call_extern("int32", "swab", ins[0].access_ptr("r"), outs[0].access_ptr("w"), tir.const(8, "int64")),
        tir.call_extern("int32", "swab", ins[0].access_ptr("r", offset=1), outs[0].access_ptr("w", offset=2),
                        tir.const(12, "int64")),
        tir.call_extern("int32", "setenv", tir.StringImm("TEDSL_TEST"), tir.StringImm('a "b"\\?'), 1)), dtype="int32", name="B")
    mod = tedsl.build(te.create_schedule(b.op), [a, b], strict_target())
    y = np.empty(5, "int32")
    mod(np.arange(5, dtype="int32"), y)
    assert y.tolist() == [0, 256, 256, 512, 768]
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    assert getenv(b"TEDSL_TEST") == b'a "b"\\?'


def test_files_of_the_text_and_of_the_header(tmp_path):
    mod = tedsl.build(tedsl.lower(*programs.added()), target=strict_target())
    mod.save(tmp_path / "kernels.c")
    assert (tmp_path / "kernels.c").read_text() == mod.get_source()
    assert "int32_t main_kernel(const float *A," in (tmp_path / "kernels.h").read_text()
    a, c = floats(100), np.empty(100, "float32")
    mod["main"](a, a, c)
    np.testing.assert_array_equal(c, 2 * a)
    mod.export_library(tmp_path / "again.h")
    assert (tmp_path / "again.h").read_text() == (tmp_path / "kernels.h").read_text() == mod.get_source("h")
    with pytest.raises(tedsl.TedslError, match="a module in C is written as text"):
        mod.save(tmp_path / "kernels.so")
    with pytest.raises(tedsl.TedslError, match=r"'kernels\.c' is a file of C"):
        tedsl.build(*programs.added(), "llvm").save(tmp_path / "kernels.c")


def test_a_function_that_nobody_has_is_named_at_the_call():
    a = te.placeholder((5,), "int32", name="A")
    b = te.compute((5,), lambda i: tir.call_pure_extern("int32", "no_such_function", a[i]), name="B")
    mod = tedsl.build(te.create_schedule(b.op), [a, b], strict_target())
    with pytest.raises(tedsl.TedslError, match="no_such_function"):
        mod(np.zeros(5, "int32"), np.zeros(5, "int32"))


def test_imported_c_becomes_part_of_the_text():
    a = te.placeholder((5,), name="A")
    b = te.compute((5,), lambda i: tir.call_pure_extern("float32", "twice", a[i]), name="B")
    s = te.create_schedule(b.op)
    s[b].pragma(b.op.axis[0], "import_c", "static float twice(float x) { return 2.0f * x; }")
    mod = tedsl.build(s, [a, b], strict_target())
    y = np.empty(5, "float32")
    mod(floats(5), y)
    np.testing.assert_array_equal(y, 2 * floats(5))


def test_failed_assertions_and_workspaces_are_errors():
    n = te.var("n", "int64")
    a = te.placeholder((1,), name="A")
    b = te.compute((n, n), lambda i, j: a[0] + 1.0, name="B")
    c = te.compute((1,), lambda i: b[0, 0], name="C")
    mod = tedsl.build(te.create_schedule(c.op), [n, a, c], strict_target())
    x, y = np.ones(1, "float32"), np.empty(1, "float32")
    mod(3, x, y)
    assert y[0] == 2
    with pytest.raises(MemoryError):
        mod(2**40, x, y)


def test_numbers_come_back():
    n, x = te.var("n"), te.var("x", "float16")
    a = tir.decl_buffer((n,), "int32", "A")
    ib = tir.ir_builder.create()
    p = ib.buffer_ptr(a)
    with ib.for_range(0, n, "i") as i, ib.if_scope(p[i] > 2):
        ib.emit(tir.ret(x))
    first = tedsl.build(tir.PrimFunc([a, x], ib.get()), target=strict_target())
    assert first(np.array([1, 3], "int32"), 1.5) == 1.5
    assert first(np.array([1, 2], "int32"), 1.5) == 0
    flag = te.var("flag", "bool")
    ib = tir.ir_builder.create()
    ib.emit(tir.ret(flag))
    assert tedsl.build(tir.PrimFunc([flag], ib.get()), target=strict_target())(True) is True


def test_functions_of_a_module_call_each_other():
    a, b = tir.decl_buffer((4,), "int32", "A"), tir.decl_buffer((4,), "int32", "B")
    x = te.var("x", "int8")
    ib = tir.ir_builder.create()
    with ib.if_scope(x == 3):
        ib.emit(tir.AssertStmt(x < 0, tir.StringImm("three is refused"), tir.Evaluate(0)))
    ib.emit(tir.ret(x * x))
    square = tir.PrimFunc([x], ib.get()).with_attr("global_symbol", "square")
    ib = tir.ir_builder.create()
    p, q = ib.buffer_ptr(a), ib.buffer_ptr(b)
    with ib.for_range(0, 4, "i") as i:
        q[i] = tir.call_extern("int8", "square", p[i].astype("int8")).astype("int32")
    squares = tir.PrimFunc([a, b], ib.get()).with_attr("global_symbol", "squares")
    mod = tedsl.build([tedsl.IRModule({"squares": squares, "square": square})], target=strict_target())
    result = np.empty(4, "int32")
    mod["squares"](np.array([1, 2, -4, 12], "int32"), result)
    assert result.tolist() == [1, 4, 16, -112]
    with pytest.raises(tedsl.TedslError, match="in square: three is refused"):
        mod["squares"](np.array([1, 2, 3, 12], "int32"), result)


def test_a_store_that_reads_what_it_writes_reads_all_lanes_first():
    buffer = tir.decl_buffer((9,), "int32", "A")
    stored = tir.BufferStore(buffer, tir.BufferLoad(buffer, [tir.Ramp(0, 1, 8)]), [tir.Ramp(1, 1, 8)])
    mod = tedsl.build(tir.PrimFunc([buffer], stored), target=strict_target())
    x = np.arange(9, dtype="int32")
    mod(x)
    assert x.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7]
