"""Modules are written to files and come back: the same values, the same checks, and words for files that are not modules."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tedsl
from tedsl import runtime, te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, ModuleError
from tedsl.plugins import MODULES
from tedsl.runtime.modules import files
from tedsl.runtime.modules.container import pack, unpack
from tests.refusing import refused


def row_sums():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].parallel(B.op.axis[0])
    return s, [A, B]


@pytest.fixture(scope="module")
def module():
    return tedsl.build(*row_sums(), name="row_sums")


@pytest.fixture(scope="module")
def content(module, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "sums.tedsl"
    module.export_library(path)
    return path.read_bytes()


def reload(content, tmp_path, name="m.tedsl"):
    path = tmp_path / name
    path.write_bytes(content)
    return runtime.load_module(path)


def test_a_module_comes_back_whole(module, content, tmp_path):
    loaded = reload(content, tmp_path)
    a = np.random.default_rng(0).standard_normal((33, 17)).astype("float32")
    expected, got = np.zeros(33, "float32"), np.zeros(33, "float32")
    module(a, expected)
    loaded["row_sums"](a, got)
    np.testing.assert_array_equal(got, expected)
    loaded(a[::2, ::-1], got[:17])
    module(a[::2, ::-1], expected[:17])
    np.testing.assert_array_equal(got, expected)
    assert loaded.entry_name == "row_sums" and loaded.type_key == "llvm" and loaded.function_names == ("row_sums",)
    assert loaded.get_source("ll") == module.get_source("ll") and loaded.get_source("tir") == module.get_source("tir")
    assert "row_sums.kernel" in loaded.get_source("asm")
    assert loaded.time_evaluator("row_sums", number=2)(a, got).mean > 0


def test_calls_are_checked_in_the_same_words(module, content, tmp_path):
    loaded = reload(content, tmp_path)
    a, b = np.zeros((3, 4), "float32"), np.zeros(3, "float32")
    for wrong in [(a,), (a, b.astype("float64")), (b, b), (a, np.zeros(4, "float32")), (a, a[:, 0]), (a, a.reshape(-1)[:3])]:
        assert str(refused(partial(loaded, *wrong))) == str(refused(partial(module, *wrong)))
    refused(lambda: loaded(A=a, B=b), "not by name", error=ArgumentTypeError)


def test_the_same_module_makes_the_same_file(module, content, tmp_path):
    module.save(tmp_path / "again.tedsl")
    assert (tmp_path / "again.tedsl").read_bytes() == content
    reload(content, tmp_path).export(tmp_path / "third.tedsl")
    assert (tmp_path / "third.tedsl").read_bytes() == content
    assert module.save_to_bytes() == content


def test_a_fresh_process_runs_it(content, tmp_path):
    (tmp_path / "m.tedsl").write_bytes(content)
    program = """if True:
        import sys, numpy as np, tedsl
        f = tedsl.runtime.load_module("m.tedsl")
        b = np.zeros(3, "float32")
        f(np.zeros((3, 4), "float32"), b)
        print(b.tolist(), "sympy" in sys.modules, any(m.startswith(("tedsl.lower", "tedsl.schedule")) for m in sys.modules))
    """
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True,
                          env={"PYTHONPATH": str(Path(tedsl.__file__).parent.parent), "PATH": "", "TEDSL_CACHE_DIR": "off"})
    assert done.stdout == "[4.0, 4.0, 4.0] False False\n", done.stderr


def test_several_functions_and_assertions(tmp_path):
    n = te.var("n")
    A = te.placeholder((n,), "int32", name="A")
    funcs = []
    for name, step in (("up", 1), ("down", -1)):
        B = te.compute((n,), lambda i, step=step: A[i] + step, name="B")
        funcs.append(tedsl.lower(te.create_schedule(B.op), [A, B], name=name)[name])
    ib = tir.ir_builder.create()
    X = tir.decl_buffer((n,), "int32", name="X")
    ib.emit(lambda rest: tir.AssertStmt(n > 2, tir.StringImm("n must be above 2"), rest))
    with ib.for_range(0, n, "i") as i:
        ib.emit(X.vstore([i], i))
    funcs.append(tir.PrimFunc([X], ib.get()).with_attr("global_symbol", "count"))
    tedsl.build(funcs).save(tmp_path / "many.tedsl")
    loaded = runtime.load_module(tmp_path / "many.tedsl")
    assert loaded.function_names == ("up", "down", "count")
    a, b = np.arange(5, dtype="int32"), np.zeros(5, "int32")
    loaded["down"](a, b)
    np.testing.assert_array_equal(b, a - 1)
    with pytest.raises(ArgumentError, match="n must be above 2"):
        loaded["count"](b[:2])
    loaded["count"](b)
    np.testing.assert_array_equal(b, a)


def test_code_for_another_machine_is_kept_and_refused_here(tmp_path):
    s, args = row_sums()
    tedsl.build(s, args, target="llvm -mtriple=aarch64-linux-gnu").save(tmp_path / "arm.tedsl")
    if tedsl.target.Target("llvm").arch == "x86-64":
        refused(lambda: runtime.load_module(tmp_path / "arm.tedsl"), "arm.tedsl was compiled for aarch64-unknown-linux-gnu",
                "this machine is x86_64", error=ModuleError)


def changed(content, **new):
    pieces = unpack(content, "m")
    manifest = json.loads(pieces["manifest.json"])
    manifest.update(new)
    return pack({**pieces, "manifest.json": json.dumps(manifest).encode()})


@pytest.mark.parametrize("new, words", [
    ({"format": 99, "tedsl": "7.1"}, "m.tedsl has version 99 of the format, written by tedsl 7.1"),
    ({"format": None}, "does not say which version of the format"),
    ({"features": ["avx1024"]}, "this machine lacks avx1024"),
    ({"triple": "sparc-linux-gnu"}, "was compiled for sparc-linux-gnu"),
    ({"target": 5}, "is not a module that tedsl wrote: 5 is not str"),
    ({"kernels": {"nodes": [], "value": None}}, "is not a module that tedsl wrote"),
    ({"beside": 3}, "is not a module that tedsl wrote"),
    ({"process": ["no_such_function_anywhere"]}, "m.tedsl cannot be linked here"),
], ids=lambda value: next(iter(value)) if isinstance(value, dict) else "")
def test_what_does_not_fit_is_said(content, new, words, tmp_path):
    refused(lambda: reload(changed(content, **new), tmp_path), words, error=ModuleError)


def test_files_that_are_not_modules(module, tmp_path):
    (tmp_path / "notes.txt").write_text("notes")
    refused(lambda: runtime.load_module(tmp_path / "absent.tedsl"), "there is no file", error=ModuleError)
    refused(lambda: runtime.load_module(tmp_path), "it is a folder", error=ModuleError)
    refused(lambda: runtime.load_module(tmp_path / "notes.txt"), "the format 'txt'", "loadfile_txt", error=ModuleError)
    refused(lambda: runtime.load_module(tmp_path / "notes.txt", "tedsl"), "not a .tedsl file", error=ModuleError)
    refused(lambda: runtime.load_module(5), "named by a str or a path, not 5", error=ArgumentTypeError)
    for name in ("k\0.tedsl", "k\ud800.tedsl"):
        refused(lambda name=name: runtime.load_module(name), "cannot be the name of a file", error=ArgumentError)
    for wrong in (lambda: module.save(tmp_path / "m", 3), lambda: runtime.load_module(tmp_path / "notes.txt", 3)):
        refused(wrong, "the format is a str, not 3", error=ArgumentTypeError)
    refused(lambda: module.save(tmp_path / "m.doc"), "the format 'doc', as in 'm.doc'", ".tedsl", error=ModuleError)
    refused(lambda: module.save(tmp_path / "nowhere" / "m.tedsl"), "cannot be written", error=ModuleError)
    refused(lambda: module.export_library(tmp_path / "m.tedsl", cc="gcc"), "take no cc", error=ArgumentTypeError)


def test_a_file_that_cannot_be_written_whole_leaves_the_old_one(module, content, tmp_path, monkeypatch):
    path = tmp_path / "m.tedsl"
    path.write_bytes(b"old")

    def full(source, target):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", full)
        refused(lambda: module.export_library(path), "m.tedsl cannot be written: No space left", error=ModuleError)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    module.export_library(path)
    assert path.read_bytes() == content


# --- modules of others ------------------------------------------------------------------------------------------------

class Doubling:
    """A module of one function that anyone could write."""

    type_key = "doubling"

    def __init__(self, factor=2):
        self.factor = factor

    def get_function(self, name, query_imports=False):
        if name != "scale":
            raise AttributeError(name)
        return lambda x: x * self.factor

    def get_source(self, fmt=""):
        return f"x * {self.factor}"

    def save_to_bytes(self):
        return str(self.factor).encode()


@pytest.fixture
def doubling():
    tedsl.register_func("runtime.module.loadbinary_doubling", lambda data: Doubling(int(data)))
    tedsl.register_func("runtime.module.loadfile_dbl", lambda path, fmt: Doubling(int(Path(path).read_text())))
    yield Doubling(3)
    for name in ("loadbinary_doubling", "loadfile_dbl"):
        runtime.remove_global_func(f"runtime.module.{name}")


def test_modules_of_others_travel_with_ours(doubling, tmp_path):
    module = tedsl.build(*row_sums())
    module.import_module(doubling)
    assert module.imported_modules == [doubling]
    module.save(tmp_path / "both.tedsl")
    loaded = runtime.load_module(tmp_path / "both.tedsl")
    (other,) = loaded.imported_modules
    assert isinstance(other, Doubling) and isinstance(other, runtime.RuntimeModule)
    assert loaded.get_function("scale", query_imports=True)(5) == 15
    refused(lambda: loaded["scale"], "no function 'scale'", "query_imports=True", error=AttributeError)
    refused(lambda: loaded.get_function("nothing", True), "no function 'nothing'")


def test_our_modules_can_be_imported_too(module, tmp_path):
    outer = tedsl.build(*row_sums(), name="outer")
    outer.import_module(module)
    outer.save(tmp_path / "nested.tedsl")
    loaded = runtime.load_module(tmp_path / "nested.tedsl")
    b = np.zeros(2, "float32")
    loaded.get_function("row_sums", query_imports=True)(np.zeros((2, 3), "float32"), b)
    assert b.tolist() == [3, 3]
    refused(lambda: module.import_module(outer), "cannot import itself", error=ArgumentError)
    refused(lambda: module.import_module("x"), "'x' is not a module", "save_to_bytes", error=ArgumentTypeError)


def test_files_of_others_are_loaded_by_their_function(doubling, tmp_path):
    (tmp_path / "m.dbl").write_text("7")
    assert runtime.load_module(tmp_path / "m.dbl").get_function("scale")(1) == 7


def test_packages_declare_kinds_of_modules(doubling, tmp_path, monkeypatch):
    module = tedsl.build(*row_sums())
    module.import_module(doubling)
    module.save(tmp_path / "both.tedsl")
    runtime.remove_global_func("runtime.module.loadbinary_doubling")
    refused(lambda: runtime.load_module(tmp_path / "both.tedsl"), "a module of the kind 'doubling'", error=ModuleError)
    monkeypatch.setattr(files, "plugin_names", lambda group: ["loadbinary_doubling"] if group == MODULES else [])
    monkeypatch.setattr(files, "load_plugin", lambda group, name: lambda data: Doubling(int(data)))
    assert runtime.load_module(tmp_path / "both.tedsl").get_function("scale", True)(1) == 3
    monkeypatch.setattr(files, "load_plugin", lambda group, name: lambda data: "nothing")
    refused(lambda: runtime.load_module(tmp_path / "both.tedsl"), "returned 'nothing', which is not a module",
            error=ModuleError)
    tedsl.register_func("runtime.module.loadbinary_doubling", lambda data: Doubling(int(data)))


def test_linked_code_is_a_library(module, tmp_path):
    for name in ("rows.so", "rows.o", "rows.tar"):
        module.export_library(tmp_path / name)
        loaded = runtime.load_module(tmp_path / name)
        assert loaded.type_key == "library" and loaded.backend == module.type_key == "llvm"
    outer = tedsl.build(*row_sums(), name="outer")
    outer.import_module(loaded)
    outer.save(tmp_path / "nested.tedsl")
    again = runtime.load_module(tmp_path / "nested.tedsl").imported_modules[0]
    assert again.function_names == ("row_sums",)
