"""What C cannot hold is refused by name."""

from functools import partial

import pytest

import tedsl
from tedsl import te, tir
from tests.codegen.c import programs


def refused(match, build):
    with pytest.raises(tedsl.TedslError, match=match) as error:
        build()
    assert error.value.hint


def element_wise(body, dtype="float32"):
    a = te.placeholder((4,), dtype, name="A")
    b = te.compute((4,), lambda i: body(a[i]), name="B")
    return te.create_schedule(b.op), [a, b]


def test_python_functions():
    a = te.placeholder((4,), name="A")
    b = te.extern((4,), [a], lambda ins, outs: tir.call_packed("my.function", ins[0], outs[0]), name="B")
    refused("call_packed of 'my.function' is a call of a Python function",
            lambda: tedsl.build(te.create_schedule(b.op), [a, b], "c"))


def test_intrinsics_of_llvm():
    s, args = element_wise(lambda x: tir.call_llvm_pure_intrin("float32", "llvm.sqrt", x))
    refused(r"llvm\.sqrt is an intrinsic of LLVM", lambda: tedsl.build(s, args, "c"))


def test_checked_mode():
    s, args = programs.added()
    refused("checks of accesses call back into Python", lambda: tedsl.build(s, args, "c", checked=True))


def test_names_that_c_does_not_have():
    for name in ("double", "my.function", "_start", "tedsl_add", "größe", "exp"):
        s, args = programs.added()
        refused("a function in C cannot be named", partial(tedsl.build, s, args, "c", name=name))


def test_choices_that_there_are_not():
    s, args = programs.added()
    refused("the option math .* is 'fast'", lambda: tedsl.build(s, args, "c -math=fast"))
    refused("has no option 'veccs'", lambda: tedsl.build(s, args, "c -veccs=gcc"))


def test_functions_of_16_bit_floats():
    s, args = element_wise(lambda x: tir.call_pure_extern("float16", "half_of", x), "float16")
    refused("half_of cannot take or return float16", lambda: tedsl.build(s, args, "c"))


def test_a_c_function_that_is_called_in_two_ways():
    a = te.placeholder((4,), "int32", name="A")
    b = te.compute((4,), lambda i: tir.call_pure_extern("int32", "f", a[i]) + tir.call_pure_extern("int32", "f", a[i], a[i]))
    refused("f is called in two ways", lambda: tedsl.build(te.create_schedule(b.op), [a, b], "c"))


def test_without_a_compiler_the_call_says_what_is_missing(monkeypatch):
    from tedsl.codegen.c.running import compiler

    monkeypatch.setattr(compiler, "find_compiler", lambda asked="": None)
    import numpy

    s, args = programs.added()
    mod = tedsl.build(s, args, "c")
    assert "int32_t default_function(" in mod.get_source()
    arrays = [numpy.zeros(100, "float32") for _ in range(3)]
    refused("none of cc, gcc, clang, zig cc is here", lambda: mod(*arrays))
    refused("'tcc' of target .* is not on the PATH", lambda: tedsl.build(*programs.added(), "c -cc=tcc")(*arrays))
