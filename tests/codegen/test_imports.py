"""Code of others in a module: LLVM IR and C, and what is refused before it can do harm."""

import re
import shutil
from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tests.lower.intrinsics import GEMV_C, check, gemv, matvec, numbers
from tests.refusing import refused

NEEDS_C = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the PATH")

TWICE = """
define i32 @twice(ptr %c, ptr %a, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%next, %loop]
  %from = getelementptr float, ptr %a, i32 %i
  %to = getelementptr float, ptr %c, i32 %i
  %x = load float, ptr %from
  %y = fadd float %x, %x
  store float %y, ptr %to
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
"""


def program(code, kind="import_llvm", call=None, n=8):
    """C = 2 A, by the imported function `twice` for `n` elements at a time."""
    x = te.placeholder((n,), name="x")
    z = te.compute((n,), lambda i: x[i] * 2.0, name="z")

    def function(ins, outs):
        arguments = outs[0].access_ptr("w"), ins[0].access_ptr("r")
        return call(*arguments) if call else tir.call_extern("int32", "twice", *arguments, n)

    intrin = te.decl_tensor_intrin(z.op, function, name="twice", default_buffer_params={"offset_factor": 1})
    A = te.placeholder((64,), name="A")
    C = te.compute((64,), lambda i: A[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    io, ii = s[C].split(C.op.axis[0], n)
    s[C].tensorize(ii, intrin)
    if code is not None:
        s[C].pragma(io, kind, code)
    return s, [A, C]


def refuses(words, *args, target="llvm", **named):
    s, tensors = program(*args, **named)
    refused(lambda: tedsl.build(s, tensors, target), words)


def test_llvm_ir_is_linked_and_local_to_the_module():
    s, args = program(TWICE)
    built = check(s, args, [numbers(64), np.zeros(64, "float32")], numbers(64) * 2)
    assert re.search(r"define internal .*i32 @twice", built.get_source("ll"))


def test_ir_from_a_file(tmp_path):
    path = tmp_path / "twice.ll"
    path.write_text(TWICE)
    s, args = program(str(path))
    check(s, args, [numbers(64), np.zeros(64, "float32")], numbers(64) * 2)
    refuses("import_llvm of the file", str(tmp_path / "absent.ll"))


def test_the_pragma_may_stand_on_the_tensorized_loop_and_several_times():
    s, args = program(TWICE)
    io, ii = s[args[1]].leaf_iter_vars
    s[args[1]].pragma(ii, "import_llvm", TWICE)
    check(s, args, [numbers(64), np.zeros(64, "float32")], numbers(64) * 2)


def test_it_may_call_what_the_process_has():
    code = dedent("""
        declare i32 @abs(i32)
        define i32 @twice(ptr %c, ptr %a, i32 %n) {
          %x = load float, ptr %a
          %y = fadd float %x, %x
          store float %y, ptr %c
          %z = call i32 @abs(i32 %n)
          ret i32 %z
        }
        """)
    s, args = program(code, n=1)
    check(s, args, [numbers(64), np.zeros(64, "float32")], numbers(64) * 2)


def test_integers_are_widened_and_nothing_returned_is_zero():
    code = TWICE.replace("i32 %n)", "i64 %long)").replace("define i32", "define void").replace("ret i32 0", "ret void").replace(
        "entry:", "entry:\n  %n = trunc i64 %long to i32")
    s, args = program(code)
    check(s, args, [numbers(64), np.zeros(64, "float32")], numbers(64) * 2)


def test_wrong_ir_is_an_error_that_names_the_line():
    refuses("import_llvm: line 9 of the code: expected instruction opcode\n    %x = lod float, ptr %from",
            TWICE.replace("load", "lod"))
    refuses("import_llvm: line 10 of the code: floating point constant invalid for type",
            TWICE.replace("fadd float %x, %x", "add i32 %i, 1.5"))
    refuses("the code defines no function", "declare i32 @twice(ptr, ptr, i32)\n\n")
    refuses("the pragma import_llvm has no code", "  \n")


def test_code_for_another_machine():
    refuses("import_llvm: the code is for aarch64-unknown-linux-gnu, and the target is",
            'target triple = "aarch64-unknown-linux-gnu"' + TWICE, target="llvm -mtriple=x86_64-linux-gnu")
    refuses("import_llvm: the code is for x86_64-pc-windows-msvc", 'target triple = "x86_64-pc-windows-msvc"\n' + TWICE,
            target="llvm -mtriple=x86_64-linux-gnu")


def test_instructions_that_the_target_lacks():
    code = """
        declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <16 x i32>, <16 x i32>)
        define i32 @twice(ptr %c, ptr %a, i32 %n) {
          %x = load <16 x i32>, ptr %a
          %y = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %x, <16 x i32> %x, <16 x i32> %x)
          store <16 x i32> %y, ptr %c
          ret i32 0
        }"""
    refuses("needs avx512vnni, which target", code, target="llvm -mtriple=x86_64-linux-gnu -mcpu=haswell")
    refuses("llvm.x86.avx512.vpdpbusd.512 is an instruction of x86", code, target="llvm -mtriple=aarch64-linux-gnu")
    unknown = "declare i32 @llvm.x86.foo(i32)\ndefine i32 @twice(ptr %c, ptr %a, i32 %n) {\n" \
        "  %r = call i32 @llvm.x86.foo(i32 %n)\n  ret i32 %r\n}\n"
    refuses("LLVM has no intrinsic llvm.x86.foo", unknown, target="llvm -mtriple=x86_64-linux-gnu")


def test_functions_that_nobody_has():
    refuses("there is no C function 'twice' in this process", None)
    missing = "declare i32 @tedsl_nowhere(i32)\ndefine i32 @twice(ptr %c, ptr %a, i32 %n) {\n" \
        "  %r = call i32 @tedsl_nowhere(i32 %n)\n  ret i32 %r\n}\n"
    refuses("the imported code calls tedsl_nowhere, which neither it nor a library of this process has", missing)


def test_a_function_in_two_texts():
    s, args = program(TWICE)
    s[args[1]].pragma(s[args[1]].leaf_iter_vars[0], "import_llvm", TWICE + "\n; another text\n")
    with pytest.raises(tedsl.TedslError, match="the function twice is defined in two imported texts"):
        tedsl.build(s, args, "llvm")


def test_a_call_that_does_not_fit_the_function():
    refuses("the call of twice does not fit the imported function:\n    call      i32 (ptr, ptr)\n"
            "    imported  i32 (ptr, ptr, i32)", TWICE, call=lambda c, a: tir.call_extern("int32", "twice", c, a))
    refuses("call      i32 (ptr, ptr, i64)\n    imported  i32 (ptr, ptr, i32)", TWICE,
            call=lambda c, a: tir.call_extern("int32", "twice", c, a, tir.const(8, "int64")))
    refuses("call      float (ptr, ptr, i32)", TWICE, call=lambda c, a: tir.call_extern("float32", "twice", c, a, 8))


# --- C ---------------------------------------------------------------------------------------------------------------

@NEEDS_C
@pytest.mark.parametrize("cpp", [False, True])
def test_c_and_cpp(cpp):
    if cpp and shutil.which("c++") is None:
        pytest.skip("no C++ compiler on the PATH")
    code = f'extern "C" {{ {GEMV_C} }}' if cpp else GEMV_C
    A, B, C = matvec(64, 48)
    s = te.create_schedule(C.op)
    yo, yi = s[C].split(C.op.axis[0], 16)
    s[C].tensorize(yi, gemv(16, 48))
    s[C].pragma(yo, "import_c", code)
    s[C].parallel(yo)
    a, b = numbers(64, 48), numbers(48)
    check(s, [A, B, C], [a, b, np.zeros(64, "float32")], a @ b)


@NEEDS_C
def test_c_that_uses_the_library_of_c():
    code = "#include <math.h>\n#include <string.h>\nstatic float two = 2;\nfloat scale(float x) { return two * x; }\n" \
        "int twice(float *c, float *a, int n) { memcpy(c, a, n * sizeof *c); " \
        "for (int i = 0; i < n; ++i) c[i] = scale(fabsf(cbrtf(c[i] * c[i] * c[i]))); return 0; }"
    s, args = program(code, "import_c")
    check(s, args, [numbers(64), np.zeros(64, "float32")], numbers(64) * 2, rtol=1e-4)


@NEEDS_C
def test_wrong_c():
    refuses("does not compile the code:\n    line 1:", "int twice(float *c, float *a, int n) { return c }", "import_c")
    refuses("the imported code calls tedsl_nowhere", "int tedsl_nowhere(int); int twice(float *c, float *a, int n) "
            "{ return tedsl_nowhere(n); }", "import_c")


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for words in ("import_c needs a C compiler, and none of clang, cc, gcc is on the PATH", "hint: install clang or gcc"):
        refuses(words, "int twice(float *c, float *a, int n) { return 0; }", "import_c")


@NEEDS_C
@pytest.mark.skipif(shutil.which("clang") is not None, reason="clang compiles for other machines")
def test_c_for_another_machine_needs_clang():
    refuses("which is not this machine, needs clang", GEMV_C + "int twice(float *c, float *a, int n) { return 0; }", "import_c",
            target="llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1")
