"""Imported code that cannot work in a running process, or that only its own text can call; assembler in it."""

import shutil

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.codegen.llvm.outside import compile_c
from tests.refusing import refused

NEEDS_C = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the PATH")
X86 = pytest.mark.skipif(tedsl.target.Target("llvm").arch != "x86-64", reason="assembler of x86-64")
ONE = "define i32 @f(i32 %x) { %y = add i32 %x, 1\n ret i32 %y }"


@pytest.fixture(autouse=True)
def _without_clang(monkeypatch):
    """C becomes objects, by cc: clang's IR says less about what stood in the C."""
    which = shutil.which
    monkeypatch.setattr(compile_c.shutil, "which", lambda name: None if name == "clang" else which(name))


def build(code, kind="import_llvm", target="llvm", name="f"):
    A = te.placeholder((4,), "int32", name="A")
    C = te.compute((4,), lambda i: A[i] + tir.call_extern("int32", name, tir.const(4, "int32")), name="C")
    s = te.create_schedule(C.op)
    for text in [code] if not isinstance(code, list) else code:
        s[C].pragma(C.op.axis[0], kind, text)
    return tedsl.build(s, [A, C], target)


def value(*args, **named):
    """What f(4) gives, by a kernel that calls it."""
    out = np.zeros(4, "int32")
    build(*args, **named)(np.zeros(4, "int32"), out)
    return out.tolist()


def refuses(words, *args, **named):
    refused(lambda: build(*args, **named).get_source("asm"), words, error=tedsl.errors.LoweringError)


# --- storage of threads, work of a loader -----------------------------------------------------------------------------

@pytest.mark.parametrize("variable", ["@t = thread_local global i32 5", "@t = internal thread_local(initialexec) global i32 5",
                                      "@t = external thread_local global i32"])
@pytest.mark.parametrize("target", ["llvm", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"])
def test_thread_local_variables_of_ir(variable, target):
    """They were read at the wrong address: 0 for 5, and stores went into memory of others."""
    refuses("the variable t of the imported code is thread-local",
            f"{variable}\ndefine i32 @f(i32 %x) {{ %y = load i32, ptr @t\n ret i32 %y }}", target=target)


def test_the_words_alone_are_no_thread_local_variable():
    code = '@"a thread_local b" = global i32 5, section "thread_local"\n' \
        'define i32 @f(i32 %x) { %y = load i32, ptr @"a thread_local b"\n ret i32 %y }'
    assert value(code) == [5, 5, 5, 5]


@NEEDS_C
@pytest.mark.parametrize("code", ["__thread int t = 5; int f(int x) { t += x; return t; }",
                                  "static __thread int t = 5; int f(int x) { t += x; return t; }"])
def test_thread_local_variables_of_c(code):
    """The first began at 0 instead of 5, the second was an InternalError."""
    refuses("the variable t of the imported code is thread-local", code, "import_c")


@NEEDS_C
def test_errno_is_no_variable_of_the_code():
    assert value("#include <errno.h>\nint f(int x) { errno = x; return errno; }", "import_c") == [4, 4, 4, 4]


CONSTRUCTOR = """
@g = global i32 1
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @c, ptr null }]
define void @c() { STORE i32 8, ptr @g
  ret void }
define i32 @f(i32 %x) { LOAD
  ret i32 %y }
"""


def test_constructors_of_ir_that_set_variables_are_run_by_the_compiler():
    assert value(CONSTRUCTOR.replace("STORE", "store").replace("LOAD", "%y = load i32, ptr @g")) == [8, 8, 8, 8]


@pytest.mark.parametrize("target", ["llvm", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"])
@pytest.mark.parametrize("which", ["global_ctors", "global_dtors"])
def test_other_constructors_of_ir_and_destructors(which, target):
    """They were not run: the variable had the value from before."""
    code = CONSTRUCTOR.replace("STORE", "store volatile").replace("LOAD", "%y = load volatile i32, ptr @g")
    refuses("functions to be run when it is loaded or unloaded", code.replace("global_ctors", which), target=target)


@NEEDS_C
@pytest.mark.parametrize("which", ["constructor", "destructor"])
def test_constructors_and_destructors_of_c(which):
    refuses("functions to be run when it is loaded or unloaded",
            f"int c; __attribute__(({which})) void init(void) {{ c = 3; }} int f(int x) {{ return c; }}", "import_c")


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler on the PATH")
def test_objects_of_cpp_with_constructors():
    refuses("functions to be run when it is loaded or unloaded", "struct S { int v; S(int); }; extern \"C\" int f(int x);\n"
            "volatile int three = 3; S::S(int x) : v(x + three) {} S s(4); int f(int x) { return s.v; }", "import_c")


def test_ifuncs():
    refuses("has the ifunc f, which a loader would resolve",
            "@f = ifunc i32 (i32), ptr @r\ndefine ptr @r() { ret ptr @g }\ndefine i32 @g(i32 %x) { ret i32 9 }")


# --- who may call ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("linkage", ["linkonce", "linkonce_odr", "weak", "weak_odr", "hidden", "linkonce_odr hidden"])
def test_weak_functions_are_definitions(linkage):
    """Those that a linker may drop were dropped: an InternalError about f."""
    assert value(ONE.replace("define", f"define {linkage}")) == [5, 5, 5, 5]


def test_weak_functions_in_groups_as_cpp_has_them():
    code = "$f = comdat any\ndefine linkonce_odr i32 @f(i32 %x) comdat { ret i32 9 }"
    assert value(code) == [9, 9, 9, 9]


@pytest.mark.parametrize("code, what", [
    (ONE.replace("define", "define internal"),
     "f as an internal function: the program cannot call it\n  hint: drop 'internal'"),
    (ONE.replace("define", "define private"), "f as a private function: the program cannot call it\n  hint: drop 'private'"),
    (ONE.replace("define", "define available_externally"), "f as available_externally, a copy of a function that is elsewhere"),
    ("define internal i32 @g(i32 %x) { ret i32 9 }\n@f = alias i32 (i32), ptr @g",
     "f as an alias: the program cannot call it\n  hint: write a function that calls it"),
])
def test_functions_that_only_their_own_text_can_call(code, what):
    """InternalErrors, or the advice to load a library."""
    refuses(f"the imported code has {what}", code)


def test_a_copy_of_a_function_of_the_process():
    assert value("define available_externally i32 @abs(i32 %x) { ret i32 4 }", name="abs") == [4, 4, 4, 4]


def test_internal_functions_of_one_name_in_two_texts():
    texts = [f"define internal i32 @own(i32 %x) {{ ret i32 {k} }}\n"
             f"define i32 @{name}(i32 %x) {{ %y = call i32 @own(i32 %x)\n ret i32 %y }}" for k, name in enumerate("gf")]
    assert value(texts) == [1, 1, 1, 1]


@NEEDS_C
@pytest.mark.parametrize("code", ["static int f(int x) { return x; }",
                                  "static inline int f(int x) { return x; } int g; int h(void) { return f(g); }",
                                  "static\nint *__attribute__((noinline))\nf (int x) { return 0; }"])
def test_static_functions_of_c(code):
    refuses("the imported code has f as a static function: the program cannot call it\n  hint: drop 'static'", code, "import_c")


@pytest.mark.parametrize("kind", ["import_llvm", "import_c"])
def test_text_is_expected(kind):
    with pytest.raises(tedsl.errors.ScheduleError, match=f"{kind} takes code as text, got the int 5"):
        build(5, kind)
    builder = tir.ir_builder.create()  # a schedule does not let it through; statements by hand may
    buffer = tir.decl_buffer((4,), "int32", "C")
    builder.scope_attr(buffer.data, f"pragma_{kind}", 5)
    builder.buffer_ptr(buffer)[0] = tir.const(1, "int32")
    with pytest.raises(tedsl.errors.LoweringError, match=f"the pragma {kind} takes the code as text, got 5"):
        tedsl.build(tir.PrimFunc([buffer], builder.get()))


# --- assembler ---------------------------------------------------------------------------------------------------------

def with_assembler(text, constraints="", result=False):
    made = "%y = call i32" if result else "call void"
    return f'define i32 @f(i32 %x) {{ {made} asm sideeffect "{text}", "{constraints}"({"i32 %x" if result else ""})\n' \
        f' ret i32 {"%y" if result else "%x"} }}'


@X86
def test_assembler_in_ir():
    """LLVM ended the process over all of it."""
    assert value(with_assembler("nop")) == [4, 4, 4, 4]
    assert value(with_assembler("leal 3($1), $0", "=r,r", result=True)) == [7, 7, 7, 7]
    assert value('module asm ".text"\nmodule asm ".globl six"\nmodule asm ".type six,@function"\nmodule asm "six:"\n'
                 'module asm "movl $6, %eax"\nmodule asm "ret"\ndeclare i32 @six()\n'
                 "define i32 @f(i32 %x) { %y = call i32 @six()\n ret i32 %y }") == [6, 6, 6, 6]


@X86
def test_a_label_in_assembler_is_not_copied():
    """Its function stands apart, so that neither inlining nor the two versions of a kernel define the label twice."""
    code = with_assembler("once_only: leal 3($1), $0", "=r,r", result=True).replace("i32 %x) {", "i32 %x) alwaysinline {", 1)
    assert value(code) == [7, 7, 7, 7]


@X86
def test_assembler_beside_other_code():
    texts = ["declare i32 @abs(i32)\n" + with_assembler("nop").replace("ret i32 %x", "%z = call i32 @abs(i32 -8)\n ret i32 %z"),
             ONE.replace("@f", "@other")]
    assert value(texts) == [8, 8, 8, 8]
    texts[0] = texts[0].replace("@abs", "@other")
    refuses("imported code calls other, which stands in another imported text of LLVM IR", texts)


@X86
@pytest.mark.parametrize("code, said", [
    (with_assembler("junkinsn"), "invalid instruction mnemonic 'junkinsn'"),
    ('module asm "junkinsn"\n' + ONE, "invalid instruction mnemonic 'junkinsn'"),
    (with_assembler("nop", "={zzz}"), "Bad inline asm!"),
    (with_assembler("movl $1, $0", "={zzz},r", result=True), "couldn't allocate output register for constraint '{zzz}'"),
    (with_assembler("once_only: nop").replace("call void", "call void asm sideeffect \"once_only:\", \"\"()\n call void"),
     "symbol 'once_only' is already defined"),
])
def test_wrong_assembler_is_an_error_not_the_end(code, said):
    refuses("import_llvm: LLVM does not compile the assembler in the code:\n    ", code)
    refuses(said, code)


def test_assembler_for_another_machine():
    for target in ("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"):
        if tedsl.target.Target(target).arch != tedsl.target.Target("llvm").arch:
            refuses("the code has assembler in it, which is read only for", with_assembler("nop"), target=target)


def test_the_word_alone_is_no_assembler():
    code = '@text = constant [4 x i8] c"asm\\00"\ndefine i32 @asm.f(i32 %asm) { ret i32 %asm }\n' + ONE
    code += '!asm.note = !{!0}\n!0 = !{!"call asm"}\n'
    assert "@f" in build(code).get_source("ll").partition("define")[2]  # linked, not apart
    assert value(code) == [5, 5, 5, 5]
