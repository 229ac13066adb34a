"""C functions of the process and intrinsics of LLVM: what runs, and what is refused before LLVM or the linker sees it."""

import ctypes
import pickle
import shutil
import subprocess

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError
from tedsl.ir.builder import create
from tests.lower.written.programs import both, function

n = te.var("n")
A = tir.decl_buffer((n,), "float32", "A")
I = tir.decl_buffer((n,), "int32", "I")


def each(make, buffer=A, kind="serial", extent=n):
    """buffer[i] = make(buffer[i]) for all i."""
    ib = create()
    p = ib.buffer_ptr(buffer)
    with ib.for_range(0, extent, "i", kind=kind) as i:
        p[i] = make(p[i])
    return function(ib.get(), buffer)


def test_functions_of_the_math_library():
    x = np.linspace(0.1, 4, 9).astype("float32")
    out, = both(each(lambda v: tir.call_pure_extern("float32", "cbrtf", v)), x)
    np.testing.assert_allclose(out, np.cbrt(x), rtol=1e-6)
    f = each(lambda v: tir.call_extern("float32", "sinf", v))
    out = x.copy()
    tedsl.build(f)(out)
    np.testing.assert_allclose(out, np.sin(x), rtol=1e-6)
    assert "sinf" not in tedsl.build(f).get_source()  # it is an operator of the language


def test_integers_of_every_width_and_strings():
    out, = both(each(lambda v: tir.call_extern("int32", "abs", v), I), np.array([-5, 7], "int32"))
    assert out.tolist() == [5, 7]
    length = each(lambda v: tir.call_extern("int64", "strlen", "größe").astype("int32"), I)
    kernel, out = tedsl.build(length), np.zeros(1, "int32")
    kernel(out)
    assert out[0] == len("größe".encode())


def test_lanes_of_a_vector_one_by_one():
    f = each(lambda v: tir.call_pure_extern("float32", "cbrtf", v), tir.decl_buffer((16,), "float32", "V"), "vectorize", 16)
    x = np.arange(16, dtype="float32")
    np.testing.assert_allclose(both(f, x)[0], np.cbrt(x), rtol=1e-6)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_library_that_the_program_loads(tmp_path):
    source = "signed char half(signed char x) { return x / 2; }\nvoid fill(float *p, int n) { while (n--) p[n] = n; }\n"
    (tmp_path / "mine.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "mine.so", tmp_path / "mine.c"], check=True)
    narrow = tir.decl_buffer((3,), "int8", "N")
    f = each(lambda v: tir.call_extern("int8", "half", v), narrow, extent=3)
    with pytest.raises(LoweringError, match=r"no C function 'half' in this process(.|\n)*RTLD_GLOBAL"):
        tedsl.build(f)
    ctypes.CDLL(str(tmp_path / "mine.so"), mode=ctypes.RTLD_GLOBAL)
    assert both(f, np.array([-100, 7, 127], "int8"))[0].tolist() == [-50, 3, 63]
    ib = create()
    ib.emit(tir.call_extern("int32", "fill", A.access_ptr("w"), n))
    assert both(function(ib.get(), A), np.zeros(4, "float32"))[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["frobnicate", "", "a b", "llvm.sqrt", "tedsl_call_packed"])
def test_a_symbol_that_nobody_has(name):
    with pytest.raises(LoweringError, match="C function"):
        tedsl.build(each(lambda v: tir.call_pure_extern("float32", name, v, v, v, v)))


def test_half_precision_has_no_type_in_c():
    half = tir.decl_buffer((n,), "float16", "H")
    with pytest.raises(LoweringError, match=r"cbrt cannot take or return float16\n  hint: cast"):
        tedsl.build(each(lambda v: tir.call_pure_extern("float16", "cbrt", v), half))


def emitting(*calls, buffers):
    ib = create()
    for call in calls:
        ib.emit(call)
    return function(ib.get(), *buffers)


@pytest.mark.parametrize("ptr_type", ["handle", "int32", "float32x4"])
def test_the_pointer_type_of_access_ptr_is_what_it_points_to(ptr_type):
    """LLVM was given the address as an int32: VTA's programs write access_ptr("rw", "int32")."""
    to, of = tir.decl_buffer((8,), "int32", "T"), tir.decl_buffer((8,), "int32", "S")
    copy = tir.call_extern("handle", "memcpy", to.access_ptr("w", ptr_type, offset=2), of.access_ptr("r", ptr_type),
                           tir.const(16, "int64"))
    assert copy.args[1].dtype == "handle"
    out, _ = both(emitting(copy, buffers=[to, of]), np.zeros(8, "int32"), np.arange(1, 9, dtype="int32"))
    assert out.tolist() == [0, 0, 1, 2, 3, 4, 0, 0]
    with pytest.raises(tedsl.TedslError, match="there is no dtype 'pointer'"):
        to.access_ptr("w", "pointer")


def test_an_access_ptr_written_as_a_call_of_its_element_type():
    data = tir.call_intrin("int32", "tir.tvm_access_ptr", tir.call_intrin("int32", "tir.type_annotation"), I.data, 1, 2, 2)
    assert data.dtype == "handle" and tir.Call("int32", data.op, data.args).dtype == "handle"
    out, = both(emitting(tir.call_extern("handle", "memset", data, 0, tir.const(8, "int64")), buffers=[I]),
                np.arange(1, 5, dtype="int32"))
    assert out.tolist() == [1, 0, 0, 4]


@pytest.mark.parametrize("nothing", ["void", None])
def test_a_call_that_gives_no_value(nothing):
    """tir.Call(None, "tir.tvm_storage_sync", ...) was refused: None is not a dtype."""
    sync = tir.Call(nothing, "tir.tvm_storage_sync", tedsl.runtime.convert(["shared"]))
    assert str(sync) == '@tir.tvm_storage_sync("shared", dtype=void)' and sync.dtype == "void"
    assert pickle.loads(pickle.dumps(sync.dtype)) is sync.dtype
    clear = tir.Call(nothing, "tir.call_extern", tedsl.runtime.convert(["bzero", I.access_ptr("w"), tir.const(8, "int64")]))
    out, = both(emitting(sync, clear, buffers=[I]), np.arange(1, 5, dtype="int32"))
    assert out.tolist() == [0, 0, 3, 4]


def test_no_value_of_a_call_without_one_is_used():
    clear = tir.call_extern("void", "bzero", I.access_ptr("w"), tir.const(8, "int64"))
    with pytest.raises(tedsl.TedslError, match="void"):
        clear + 1
    with pytest.raises(tedsl.TedslError, match=r"void|no value"):
        tedsl.build(emitting(tir.call_extern("int32", "abs", clear), buffers=[I]))
    with pytest.raises(tedsl.TedslError, match="void"):
        te.placeholder((4,), "void")


def test_void_functions_of_every_kind():
    """Of C, of imported LLVM IR, an intrinsic, and a Python function whose answer nobody wants."""
    code = ("define void @seven(ptr %p) {\n store i32 7, ptr %p\n ret void\n}\n"
            "define i32 @eight(ptr %p) {\n store i32 8, ptr %p\n ret i32 1\n}")
    tedsl.register_func("test.answers", lambda a: "a text", override=True)
    ib = create()
    ib.scope_attr(tir.const(0), "pragma_import_llvm", code)
    for call in (tir.call_extern(None, "seven", I.access_ptr("w")),
                 tir.call_extern("void", "eight", I.access_ptr("w", offset=1)),
                 tir.call_llvm_intrin("void", "llvm.donothing"),
                 tir.Call("void", "tir.call_packed", [tir.StringImm("test.answers"), I.access_ptr("r")]),
                 tir.call_extern("void", "bzero", I.access_ptr("w", offset=2), tir.const(4, "int64"))):
        ib.emit(call)
    out = np.arange(1, 5, dtype="int32")
    tedsl.build(function(ib.get(), I))(out)
    assert out.tolist() == [7, 8, 0, 4]


def test_calls_inside_of_an_expression_that_nobody_wants():
    """They were dropped with it, and what they do."""
    def clear(k):
        return tir.call_extern("int32", "memset", I.access_ptr("w", offset=k), 0, tir.const(4, "int64"))

    out, = both(emitting(clear(1) + 1, tir.if_then_else(n > 3, clear(2), 0), tir.if_then_else(n > 4, clear(3), 0), buffers=[I]),
                np.arange(1, 5, dtype="int32"))
    assert out.tolist() == [1, 0, 0, 4]
    ib = create()
    with ib.for_range(0, 2, "i") as i, ib.if_scope(i > 0):
        ib.emit(-clear(i))
    out, = both(function(ib.get(), I), np.arange(1, 5, dtype="int32"))
    assert out.tolist() == [1, 0, 3, 4]


# --- intrinsics of LLVM ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["llvm.fma", "llvm.fma.f32", tedsl.target.codegen.llvm_lookup_intrinsic_id("llvm.fma.f32")])
def test_an_intrinsic_by_name(name):
    f = each(lambda v: tir.call_llvm_pure_intrin("float32", name, tir.const(3, "uint32"), v, v, v))
    out = np.array([2, 3], "float32")
    tedsl.build(f)(out)
    assert out.tolist() == [6, 12]


def test_an_intrinsic_with_a_constant_that_belongs_to_it():
    f = each(lambda v: tir.call_llvm_pure_intrin("int32", "llvm.ctlz.i32", v, tir.const(False)), I)
    out = np.array([1, 256], "int32")
    tedsl.build(f)(out)
    assert out.tolist() == [31, 23]


@pytest.mark.parametrize("name, args, match", [
    ("llvm.nothing.at.all", 1, "programs may not call llvm.nothing.at.all: .* or do not exist"),
    ("llvm.sqrtt", 1, r"may not call llvm.sqrtt: .*; did you mean llvm.sqrt\?"),
    ("llvm.x86.sse2.nothing", 1, "there is no intrinsic of that name"),
    ("llvm.x86.avx2.nothing", 1, "there is no intrinsic of that name|needs avx2"),
    ("llvm.x86.avx2.psad.bw", 1, "LLVM cannot call|needs avx2"),
    ("llvm.fma", 2, "LLVM cannot call"),
    ("llvm.ctpop", 1, "LLVM cannot call"),
    ("llvm.aarch64.neon.sdot", 3, "cannot be called for target"),
    ("sqrt", 1, "names an intrinsic of LLVM"),
    ("llvm.sqrt; ret", 1, "names an intrinsic of LLVM"),
])
def test_what_llvm_would_end_the_process_over(name, args, match):
    target = tedsl.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512")
    with pytest.raises(LoweringError, match=match):
        tedsl.build(each(lambda v: tir.call_llvm_pure_intrin("float32", name, *[v] * args)), target=target)


@pytest.mark.parametrize("name", [
    "llvm.x86.wbinvd", "llvm.x86.invd", "llvm.x86.sse.ldmxcsr", "llvm.x86.sse3.mwait", "llvm.x86.int", "llvm.x86.clui",
    "llvm.x86.tileloadd64", "llvm.x86.flags.write.u64", "llvm.x86.wrmsr", "llvm.x86.rdpkru", "llvm.trap",
    "llvm.debugtrap", "llvm.assume", "llvm.stackrestore", "llvm.set.rounding",
    "llvm.eh.sjlj.longjmp", "llvm.ubsantrap", "llvm.write_register", "llvm.va_end",
    "llvm.aarch64.break", "llvm.aarch64.dmb", "llvm.coro.destroy", "llvm.instrprof.increment"])
def test_privileged_and_unknown_intrinsics_are_refused_before_anything_runs(name):
    for op in ("call_llvm_intrin", "call_llvm_pure_intrin"):
        with pytest.raises(LoweringError, match=f"programs may not call {name}: .*need privileges(.|\n)*hint: "):
            tedsl.build(each(lambda v, call=getattr(tir, op): call("float32", name)))


def test_an_intrinsic_that_the_target_lacks_is_named():
    target = tedsl.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell")
    x = tir.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.vpdpbusd.512", *[tir.const(0, "int32x16")] * 3)
    with pytest.raises(LoweringError, match="needs avx512vnni, which target"):
        tedsl.build(each(lambda v: v + tir.Shuffle([x], [tir.const(0)]), I), target=target)
