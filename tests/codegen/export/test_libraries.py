"""Shared libraries: what is in them, the linkers, loading them again, and what is refused."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.codegen.llvm.linking.elf import undefined_symbols
from tedsl.contrib import cc
from tedsl.errors import ArgumentError, ArgumentTypeError, ModuleError
from tedsl.runtime import load_module
from tedsl.runtime.symbols import PROCESS
from tedsl.target.host import host
from tests.codegen.export import programs
from tests.codegen.export.tensors import Library
from tests.refusing import refused

ALL = ("add", "symbolic", "sums", "halves", "large", "first_above")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "libkernels.so"
    programs.module(*ALL).export_library(path)
    return path


def refused_file(path, words):
    refused(lambda: load_module(path), error=ModuleError, match=words)


# --- content ------------------------------------------------------------------------------------------------------------

def test_an_object_needs_the_c_library_alone_and_shows_its_interface(tmp_path):
    programs.module(*ALL).export_library(tmp_path / "kernels.o")
    image = (tmp_path / "kernels.o").read_bytes()
    assert set(undefined_symbols(image)) <= PROCESS | {"snprintf", "getenv", "strtoll", "__register_atfork", "pthread_atfork"}
    assert not [name for name in undefined_symbols(image) if "tedsl" in name or name.startswith("Py")]


@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm here")
def test_a_library_shows_only_symbols_with_its_prefix(library):
    shown = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert shown and all(line.split()[2].startswith("kernels_") for line in shown.splitlines())


def test_a_kernel_without_parallel_loops_brings_no_pool(tmp_path):
    programs.module("add").export_library(tmp_path / "add.o")
    assert undefined_symbols((tmp_path / "add.o").read_bytes()) == ["snprintf"]
    programs.module("add").export_library(tmp_path / "add.h")
    assert "set_num_threads" not in (tmp_path / "add.h").read_text()


def test_the_header_says_what_functions_take(tmp_path):
    programs.module(*ALL).export_library(tmp_path / "kernels.h")
    text = (tmp_path / "kernels.h").read_text()
    assert " *   A: int32 (n, m), input, any strides\n" in text and " *   k: a number of dtype int8\n" in text
    assert " *   result: int32, a tensor of rank 0 that takes the number that is returned\n" in text
    assert " * Status 16: x must be above 0, at 100 %\n" in text
    assert "int32_t kernels_first_above_raw(const float *A, int64_t n, int64_t s, float x, int64_t *result);" in text
    assert "int32_t kernels_halves_raw_compact(const uint16_t *A, uint16_t *C, int64_t n, float x);" in text
    if_there = ["#include <dlpack/dlpack.h>", '#include "dlpack.h"']
    assert re.findall("#include .*", text) == ["#include <stddef.h>", "#include <stdint.h>", *if_there]


def test_names_that_c_does_not_have_are_changed_or_refused(tmp_path):
    n = te.var("int")
    A = te.placeholder((n,), name="new")
    s = te.create_schedule(te.compute((n,), lambda i: A[i] + 1, name="*/ class").op)
    module = tedsl.build(s, [A, s.outputs[0].output(0)], name="an operator")
    module.export_library(tmp_path / "1st-try.h")
    text = (tmp_path / "1st-try.h").read_text()
    assert "int32_t _1st_try_an_operator_raw_compact(const float *new_, float *___class, int64_t int_);" in text
    assert "*/ class" not in text
    x, y = te.placeholder((n,), name="int64_t"), te.placeholder((n,), name="NULL")
    total = te.compute((n,), lambda i: x[i] + y[i], name="SIZE_MAX")
    tedsl.build(te.create_schedule(total.op), [x, y, total], name="f").export_library(tmp_path / "k.h")
    assert "k_f_raw_compact(const float *int64_t_, const float *NULL_, float *SIZE_MAX_, " in (tmp_path / "k.h").read_text()
    refused(lambda: module.export_library(tmp_path / "x.h", prefix="a-b"), error=ModuleError, match="'a-b' is no name in C")
    refused(lambda: module.export_library(tmp_path / "x.h", prefix=1), error=ArgumentTypeError, match="prefix is a str")
    both = tedsl.build([tedsl.lower(s, [A, s.outputs[0].output(0)], name=name) for name in ("f g", "f_g")])
    refused(lambda: both.export_library(tmp_path / "x.o"), error=ModuleError, match="x_f_g in C would be of .* 'f_g' and")


def test_one_program_makes_the_same_files_again(tmp_path):
    for name in ("k.so", "k.o", "k.tar", "k.h", "k.ll"):
        contents = []
        for _ in range(2):
            programs.module("symbolic", "sums").export_library(tmp_path / name)
            contents.append((tmp_path / name).read_bytes())
        assert contents[0] == contents[1], name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.h", "k.ll", "k.o", "k.so", "k.tar"]  # nothing is left behind
    assert os.access(tmp_path / "k.so", os.X_OK) and not os.access(tmp_path / "k.o", os.X_OK)


def test_an_archive_is_loaded_without_a_linker(tmp_path, monkeypatch):
    programs.module("add").export_library(tmp_path / "k.tar")
    monkeypatch.setenv("PATH", "")
    again = load_module(str(tmp_path / "k.tar"))
    assert again.function_names == programs.module("add").function_names and callable(again[again.entry_name])
    with tarfile.open(tmp_path / "k.tar") as archive:
        assert sorted(archive.getnames()) == ["k.h", "k.o", "k.tedsl"]


def test_two_libraries_of_one_program_do_not_meet(tmp_path):
    calls = []
    for name in ("one", "two"):
        programs.module("symbolic").export_library(tmp_path / f"{name}.so")
        calls.append(Library(tmp_path / f"{name}.so", name))
    calls[0].loaded.one_set_num_threads(2)
    calls[1].loaded.two_set_num_threads(3)
    a, b = np.arange(12, dtype=np.int32).reshape(3, 4), np.ones(4, np.int32)
    for call in calls:
        c = np.zeros((3, 4), np.int32)
        assert call("scale", a, b, 2, c) == (0, "untouched")
        np.testing.assert_array_equal(c, a * 2 + 1)
    assert (calls[0].loaded.one_get_num_threads(), calls[1].loaded.two_get_num_threads()) == (2, 3)


# --- linkers --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("linker", ["ld", "cc", "ziglang"])
def test_every_linker_makes_a_library(linker, tmp_path):
    if find_spec(linker) is None if linker == "ziglang" else shutil.which(linker) is None:
        pytest.skip(f"{linker} is not installed")
    programs.module("symbolic", "sums").export_library(tmp_path / "k.so", linker=linker)
    again = load_module(tmp_path / "k.so")
    a, c = np.arange(280, dtype=np.float32).reshape(4, 70), np.zeros(4, np.float32)
    again["sums"](a, c)
    np.testing.assert_allclose(c, a.sum(1) * a.sum(), rtol=1e-5)


def test_without_a_linker_all_that_would_do_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ziglang", None)
    module = programs.module("add")
    refused(lambda: module.export_library(tmp_path / "k.so"), error=ModuleError,
            match=r"no linker for .*: looked for ld, cc, ziglang\n.*apt install binutils")
    refused(lambda: module.export_library(tmp_path / "k.so", linker="cc"), error=ModuleError, match="looked for cc\n")
    refused(lambda: module.export_library(tmp_path / "k.so", linker="gold"), error=ModuleError, match="one of ld, cc, ziglang")
    module.export_library(tmp_path / "k.o")  # needs none


def test_a_shared_library_is_for_platforms_with_elf(tmp_path):
    module = tedsl.build(programs.add(), target="llvm -mtriple=x86_64-pc-windows-msvc")
    refused(lambda: module.export_library(tmp_path / "k.so"), "not for x86_64-pc-windows-msvc", "fcompile=", error=ModuleError)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(cc.get_cc() is None, reason="there is no C compiler here")
def test_an_object_that_a_compiler_made_a_library_is_loaded(tmp_path):
    programs.module("add").save(str(tmp_path / "add.o"))
    cc.create_shared(tmp_path / "linked.so", [tmp_path / "add.o"])
    a, c = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    load_module(tmp_path / "linked.so")["add"](a, a, c)
    assert (c == a + a).all()
    cut = tmp_path / "cut.so"
    for count in (1, 64, 1000):
        cut.write_bytes((tmp_path / "linked.so").read_bytes()[:-count])
        refused_file(cut, "cut.so has no trailer of tedsl")


@pytest.mark.parametrize("vectors", [False, True])
def test_an_object_for_arm_needs_no_tables_of_exceptions(vectors, tmp_path):
    """The checks in C are not inlined everywhere: none of them may be one that could throw."""
    A, B = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="B")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    if vectors:
        s[C].vectorize(s[C].split(C.op.axis[1], 8)[1])
    tedsl.build(s, [A, B, C], target="llvm -mtriple=armv7-linux-gnueabihf").export_library(tmp_path / "k.o")
    assert undefined_symbols((tmp_path / "k.o").read_bytes()) == ["snprintf"]


@pytest.mark.parametrize("target, words", [
    ("llvm -mtriple=arm-linux-gnueabihf", "no instructions for floats(.|\n)*-mtriple=armv7a"),
    ("llvm -mtriple=armv6-linux-gnueabihf", "no instructions for floats"),
    ("llvm -mtriple=s390x-linux-gnu", "s390x-unknown-linux-gnu is big-endian"),
])
def test_processors_for_which_no_code_is_made_are_refused_in_words(target, words, tmp_path):
    def export():
        tedsl.build(programs.add(), target=target).export_library(tmp_path / "k.o")
    refused(export, error=ArgumentError, match=words)


def test_a_linker_that_fails_is_quoted(tmp_path, monkeypatch):
    (tmp_path / "ld").write_text("#!/bin/sh\necho this linker is broken >&2\nexit 3\n")
    (tmp_path / "ld").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    refused(lambda: programs.module("add").export_library(tmp_path / "k.so"), error=ModuleError,
            match="ld failed: this linker is broken")
    assert not (tmp_path / "k.so").exists()


def test_fcompile_gets_the_objects_and_its_options(tmp_path):
    seen = {}

    def fcompile(file_name, files, **options):
        seen.update(name=file_name, files=[Path(file).read_bytes()[:4] for file in files], options=options)
        Path(file_name).write_text("linked")

    programs.module("add").export_library(tmp_path / "k.so", fcompile, level=3)
    assert seen == {"name": str(tmp_path / "k.so"), "files": [b"\x7fELF"], "options": {"level": 3}}
    fcompile.object_format = "ll"
    programs.module("add").export_library(str(tmp_path / "k.anything"), fcompile=fcompile)
    assert seen["files"] != [b"\x7fELF"]
    refused(lambda: programs.module("add").export_library(tmp_path / "none.so", fcompile=lambda *made: None), error=ModuleError,
            match="fcompile made no file '.*none.so'")
    refused(lambda: programs.module("add").export_library(tmp_path / "k.so", fcompile=3), error=ArgumentTypeError,
            match="fcompile is a function")


@pytest.mark.skipif(cc.get_cc() is None, reason="there is no C compiler here")
@pytest.mark.parametrize("fcompile", [
    cc.create_shared, cc.cross_compiler("cc", options=["-s"]), cc.cross_compiler(cc.create_shared)],
                         ids=["create_shared", "cross_compiler", "cross_compiler of a function"])
def test_compilers_link_as_in_tvm(fcompile, tmp_path):
    programs.module("add").export_library(tmp_path / "k.so", fcompile=fcompile)
    a, c = np.ones(8, np.float32), np.zeros(8, np.float32)
    load_module(tmp_path / "k.so")(a, a, c)
    assert (c == 2).all()


def test_compilers_that_are_not_there_or_fail(tmp_path, monkeypatch):
    (tmp_path / "bad.o").write_bytes(b"no object")
    refused(lambda: cc.create_shared(tmp_path / "k.so", [tmp_path / "bad.o"], cc="no-such-compiler"), error=ModuleError,
            match="there is no compiler 'no-such-compiler'")
    refused(lambda: cc.create_shared(tmp_path / "k.so", [], options="-O2"), error=ArgumentTypeError, match="is a list of str")
    refused(lambda: cc.cross_compiler(3), error=ArgumentTypeError, match="a compiler's name or a function")
    if cc.get_cc() is not None:
        refused(lambda: cc.create_shared(tmp_path / "k.so", [tmp_path / "bad.o"]), error=ModuleError, match="bad.o.* failed: ")
        assert "-" in cc.cross_compiler("cc").get_target_triple()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    refused(lambda: cc.create_executable(tmp_path / "k", []), error=ModuleError, match="there is no C compiler here")


# --- loading --------------------------------------------------------------------------------------------------------------

def test_a_library_that_is_loaded_computes_what_the_module_computes(library):
    module, again = programs.module(*ALL), load_module(library)
    assert again.function_names == module.function_names and again.target == module.target
    assert again.get_source("tir") == module.get_source("tir") and again.get_source("ll") == module.get_source("ll")
    a = np.random.RandomState(0).uniform(-1, 1, (6, 70)).astype(np.float32)
    first, second = np.zeros(6, np.float32), np.zeros(6, np.float32)
    module["sums"](a[:, ::-1], first)
    again["sums"](a[:, ::-1], second)
    np.testing.assert_array_equal(first, second)
    halves = [np.zeros(70, np.float16) for _ in range(2)]
    module["halves"](a[0].astype("float16"), 0.3, halves[0])
    again["halves"](a[0].astype("float16"), 0.3, halves[1])
    np.testing.assert_array_equal(*halves)
    assert again["first_above"](a[0], 0.5) == module["first_above"](a[0], 0.5)
    assert again.time_evaluator("sums", number=2)(a, first).mean > 0
    refused(lambda: again["first_above"](a[0], -0.5), error=ArgumentError, match="x must be above 0, at 100 %")
    refused(lambda: again["sums"](a[:5], first), error=ArgumentError, match="dimension 0 is 5, which no n makes equal to")


def test_a_library_that_is_loaded_is_exported_again(library, tmp_path):
    for form in ("tedsl", "so"):
        load_module(library).export_library(tmp_path / f"again.{form}")
        again = load_module(tmp_path / f"again.{form}")
        c = np.zeros(8, np.float32)
        again["add"](np.ones(8, np.float32), np.ones(8, np.float32), c)
        assert (c == 2).all() and again["first_above"](c, 1.0) == 0


def test_a_file_that_is_written_again_is_loaded_again(tmp_path):
    A, c, loaded = te.placeholder((3,), name="A"), np.zeros(3, np.float32), []
    files = len(os.listdir("/proc/self/fd"))
    for number in range(6):
        C = te.compute((3,), lambda i, number=number: A[i] + float(number), name="C")
        tedsl.build(te.create_schedule(C.op), [A, C]).export_library(tmp_path / "k.so")
        loaded.append(load_module(tmp_path / "k.so"))
    for number, module in enumerate([*loaded, *(load_module(tmp_path / "k.so") for _ in range(3))]):
        module(np.zeros(3, np.float32), c)
        assert (c == min(number, 5)).all()
    assert len(os.listdir("/proc/self/fd")) == files, "no descriptor stays open"


def test_the_name_of_a_library_may_end_in_its_version(tmp_path):
    programs.module("add").export_library(tmp_path / "libkernels.so.1.2")
    x, c = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    load_module(tmp_path / "libkernels.so.1.2")["add"](x, x, c)
    assert (c == 2 * x).all() and os.access(tmp_path / "libkernels.so.1.2", os.X_OK)
    assert hasattr(ctypes.CDLL(tmp_path / "libkernels.so.1.2"), "kernels_add"), "the prefix is without the version"


@pytest.mark.skipif(cc.get_cc() is None, reason="there is no C compiler here")
def test_libraries_that_differ_in_imported_c_alone_are_not_taken_for_each_other(tmp_path):
    A, c = te.placeholder((3,), name="A"), np.zeros(3, np.float32)
    for number in (1, 2):
        C = te.compute((3,), lambda i: tir.call_extern("float32", "more", A[i]), name="C")
        s = te.create_schedule(C.op)
        s[C].pragma(C.op.axis[0], "import_c", f"float more(float x) {{ return x + {number}; }}")
        tedsl.build(s, [A, C]).export_library(tmp_path / "k.so")
        load_module(tmp_path / "k.so")(np.zeros(3, np.float32), c)
        assert (c == number).all()


def test_files_of_others_are_refused(library, tmp_path):
    path = tmp_path / "k.so"
    path.write_bytes(b"")
    refused_file(path, "k.so is empty")
    path.write_bytes(b"PK\x03\x04 and more")
    refused_file(path, "k.so is not a shared library: it begins with")
    import numpy.linalg._umath_linalg as foreign

    path.write_bytes(Path(foreign.__file__).read_bytes())
    refused_file(path, "k.so has no trailer of tedsl: it is cut off, stripped, or the library of somebody else")
    refused_file(tmp_path / "none.so", "there is no file")


def test_code_for_another_machine_is_refused(tmp_path, monkeypatch):
    programs.module("add").export_library(tmp_path / "k.so")
    monkeypatch.setattr("tedsl.runtime.modules.image.host", lambda: host()._replace(features=frozenset()))
    refused_file(tmp_path / "k.so", "k.so was compiled for .*, and this machine lacks")


# --- functions of the program -----------------------------------------------------------------------------------------------

def test_a_kernel_that_calls_python_is_refused_by_name(tmp_path):
    tedsl.register_func("tests.export.double", lambda x: 2 * x, override=True)
    A = te.placeholder((4,), name="A")
    C = te.extern((4,), [A], lambda ins, outs: tir.call_packed("tests.export.double", ins[0], outs[0]), name="C")
    module = tedsl.build(te.create_schedule(C.op), [A, C], name="asks")
    refused(lambda: module.export_library(tmp_path / "k.so"), error=ModuleError, match=r"asks calls Python \(tir.call_packed\)")


def calling(function, dtype):
    """The module of C[i] = function(A[i]), a C function."""
    A = te.placeholder((4,), dtype, name="A")
    C = te.compute((4,), lambda i: tir.call_extern(dtype, function, A[i]), name="C")
    return tedsl.build(te.create_schedule(C.op), [A, C])


def test_c_functions_are_taken_from_the_program(tmp_path):
    """abs of the C library stays a function of the program: it is named in the header, and found when the library is loaded."""
    module = calling("abs", "int32")
    module.export_library(tmp_path / "k.so")
    module.export_library(tmp_path / "k.h")
    assert " * The program provides: abs.\n" in (tmp_path / "k.h").read_text()
    c = np.zeros(4, np.int32)
    load_module(tmp_path / "k.so")(np.array([-1, 2, -3, 4], np.int32), c)
    assert c.tolist() == [1, 2, 3, 4]
    refused(lambda: module.export_library(tmp_path / "k-1.0.whl"), error=ModuleError,
            match="call abs, which a wheel does not bring")


def test_calls_of_a_loaded_library_are_checked_by_machine_code(library):
    loaded, module = load_module(library), programs.module(*ALL)
    assert type(loaded["add"]) is type(module["add"]) and "CheckedCall" not in repr(type(loaded["add"]))
    a, c = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    loaded["add"](a, a, c)
    np.testing.assert_array_equal(c, a + a)
    assert loaded["first_above"](a, 2.5) == module["first_above"](a, 2.5) == 3
    assert loaded["first_above"](a[::-2], 2.5) == module["first_above"](a[::-2], 2.5)
    for function in (loaded["first_above"], module["first_above"]):
        refused(lambda f=function: f(a, -1.0), "x must be above 0, at 100 %", error=ArgumentError)
    refused(lambda: loaded["add"](a, a), "takes 3 arguments", error=ArgumentTypeError)
    del module


# --- linked into the program ----------------------------------------------------------------------------------------------

def test_a_library_in_the_program_is_a_module(tmp_path):
    module = programs.module("add", "symbolic", "first_above")
    module.export_library(tmp_path / "inside.so", prefix="inside")
    program = """if True:
        import ctypes, numpy as np
        from tedsl import runtime
        from tedsl.errors import ModuleError
        try:
            runtime.system_lib("inside")
        except ModuleError as error:
            print(str(error).splitlines()[0])
        ctypes.CDLL("./inside.so", mode=ctypes.RTLD_GLOBAL)
        module = runtime.system_lib("inside")
        x, c = np.arange(8, dtype="float32"), np.zeros(8, "float32")
        module["add"](x, x, c)
        print(c.tolist(), module["first_above"](x, 2.5), module.function_names)
    """
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(Path(tedsl.__file__).parent.parent)})
    assert done.stdout.splitlines() == [
        "this program has no library with the prefix 'inside'",
        "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0] 3 ('add', 'scale', 'first_above')"], done.stderr
    for given in ((), ("",)):
        refused(lambda given=given: tedsl.runtime.system_lib(*given), "a prefix of its own", 'system_lib("kernels")',
                error=ArgumentError)
    refused(lambda: tedsl.runtime.system_lib(3), "the prefix of a library, not 3", error=ArgumentTypeError)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_functions_of_the_c_library_are_found_by_the_library_itself(tmp_path):
    """A program that is not linked with libm loads a library that needs cbrtf."""
    module = calling("cbrtf", "float32")
    module.export_library(tmp_path / "libk.so")
    module.export_library(tmp_path / "k.h")
    assert "The program provides" not in (tmp_path / "k.h").read_text()
    (tmp_path / "main.c").write_text("""
        #include <stdio.h>
        #include "k.h"
        int main(void) {
            float a[4] = {1, 8, 27, 64}, c[4];
            int status = k_default_function_raw(a, c);
            printf("%d %g %g\\n", status, c[1], c[3]);
            return 0;
        }
    """)
    options = ["-L", str(tmp_path), "-I", str(tmp_path), "-lk", f"-Wl,-rpath,{tmp_path}"]
    cc.create_executable(tmp_path / "main", [tmp_path / "main.c"], options, cc="cc")
    assert subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout == "0 2 4\n"


@pytest.mark.skipif(not any(map(shutil.which, ("ld", "cc"))), reason="there is no linker here")
def test_an_object_is_linked_where_it_is_loaded(tmp_path):
    module = programs.module("add")
    module.save(tmp_path / "add.o")
    assert load_module(tmp_path / "add.o").function_names == module.function_names
    (tmp_path / "plain.o").write_bytes((tmp_path / "add.o").read_bytes()[:-512])
    refused_file(tmp_path / "plain.o", "plain.o is damaged, or no .o file of export_library")


def test_assembly_by_both_suffixes(tmp_path):
    for suffix in ("s", "asm"):
        programs.module("add").save(tmp_path / f"add.{suffix}")
    assert (tmp_path / "add.s").read_text() == (tmp_path / "add.asm").read_text() != ""
