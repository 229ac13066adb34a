"""Line tables: which printed loop each instruction belongs to, in listings, objects and the maps of profilers."""

import gc
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import tedsl
from tedsl import te, tir, topi
from tedsl.codegen.kernels.kernel import make_kernel
from tedsl.codegen.llvm.debug.lines import print_loops
from tedsl.codegen.llvm.linking.elf import function_ranges, with_code_address
from tedsl.codegen.llvm.machine import assembly, optimize
from tedsl.errors import OptionError
from tedsl.ir.script import script
from tedsl.ir.stmt import For, Store
from tedsl.passes.context import PassContext
from tedsl.target import Target
from tests.refusing import refused


def two_stages():
    n = te.var("n")
    A = te.placeholder((n, 64), name="A")
    P = te.compute((n, 64), lambda i, j: te.exp(A[i, j]), name="P")
    k = te.reduce_axis((0, 64), "k")
    B = te.compute((n,), lambda i: te.sum(P[i, k] * 1.5, axis=k), name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 8)
    s[B].parallel(outer)
    s[B].vectorize(inner)
    return s, [A, B]


def kernels(*funcs, target="llvm"):
    return [v for f in funcs for v in make_kernel(f, Target(target), PassContext.current().options).versions()]


def test_every_statement_stands_in_its_line():
    funcs = kernels(tedsl.lower(*two_stages(), name="f")["f"])
    loops = print_loops(funcs)
    text = loops.text.split("\n")
    assert loops.text == "\n\n".join(script(func, func.name) for func in funcs) + "\n"
    for name, line in loops.functions.items():
        assert text[line - 1].startswith(f"def {name}(")
    stores = [s for s in loops.lines if isinstance(s, Store)]
    assert len(stores) >= 8
    for statement, line in loops.lines.items():
        if isinstance(statement, Store):
            assert text[line - 1].lstrip().startswith(statement.buffer_var.name.removesuffix(".acc")), text[line - 1]
        if isinstance(statement, For):
            assert text[line - 1].lstrip().startswith(f"for {statement.loop_var.name}"), text[line - 1]
    assert set(loops.stages.values()) >= {"P", "B"}


def test_lines_of_wrapped_and_of_several_functions_are_counted():
    A = te.placeholder((64,), name="A")
    long = te.compute((64,), lambda i: sum(A[(i * 7 + k * 13) % 64] * (k + 0.123456) for k in range(20)), name="long")
    after = te.compute((64,), lambda i: long[i] + 1, name="after")
    s = te.create_schedule(after.op)
    loops = print_loops(kernels(*[tedsl.lower(s, [A, long, after], name=name)[name] for name in ("one", "two")]))
    text = loops.text.split("\n")
    assert max(map(len, text)) <= 110 and text[loops.functions["two"] - 1].startswith("def two(")
    for statement, line in loops.lines.items():
        if isinstance(statement, Store):
            assert text[line - 1].lstrip().startswith(f"{statement.buffer_var.name}[")


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64", "llvm -mtriple=aarch64-linux-gnu",
                                    "llvm -mtriple=riscv64-linux-gnu", "llvm -mtriple=armv7a-linux-gnueabihf"])
def test_the_listing_shows_loops_between_instructions(target):
    text = tedsl.build(*two_stages(), target=target, name="f").get_source("asm")
    for line in ("P[i, j] = exp(A[i, j])", "for i.outer in parallel((n + 7)//8):"):
        assert re.search(rf"^(#|//|@) +\d+: +{re.escape(line)}$", text, re.MULTILINE), text[:3000]
    assert ".loc" not in text and ".debug" not in text and ".Ltmp" not in text
    assert re.search(r"^f\.kernel:", text, re.MULTILINE)


def test_the_listing_has_the_instructions_of_the_code():
    s, args = two_stages()
    module = tedsl.build(s, args)
    image = module.image()
    plain = assembly(optimize(module.get_source("ll"), module.target, vectorize=image.vectorize, unroll=image.unroll),
                     module.target)
    instructions = lambda text: [line.split()[0] for line in text.splitlines() if re.match(r"\t[a-z]", line)]
    assert instructions(module.get_source("asm")) == instructions(plain)


def test_the_code_with_lines_computes_the_same():
    s, args = two_stages()
    with PassContext(config={"tedsl.line_tables": True}):
        module = tedsl.build(s, args, name="with_lines")
    a = np.random.default_rng(1).standard_normal((37, 64)).astype("float32")
    expected, got = np.zeros(37, "float32"), np.zeros(37, "float32")
    tedsl.build(s, args)(a, expected)
    module(a, got)
    np.testing.assert_array_equal(got, expected)
    file = Path(re.search(r'!DIFile\(filename: "(.*?)", directory: "(.*?)"', module.get_source("ll")).expand(r"\2/\1"))
    assert file.read_text().startswith("def with_lines(")
    assert 'name: "P"' in module.get_source("ll") and "inlinedAt" in module.get_source("ll")


LOOPS = re.compile(r'!DIFile\(filename: "(.*?)", directory: "(.*?)"')


def built_with_lines(name):
    with PassContext(config={"tedsl.line_tables": True}):
        module = tedsl.build(*two_stages(), name=name)
    return module, Path(LOOPS.search(module.get_source("ll")).expand(r"\2/\1"))


def test_the_file_of_the_loops_goes_with_the_last_code_that_names_it():
    module, path = built_with_lines("kept")
    again, same = built_with_lines("kept")
    function = module["kept"]
    assert path == same and path.is_file()
    del module
    gc.collect()
    assert path.is_file()
    del again
    gc.collect()
    assert path.is_file(), "a function of the module is still there"
    del function
    gc.collect()
    assert not path.exists()
    other, path = built_with_lines("kept")
    assert path.is_file()


def test_a_process_leaves_no_loops_behind(tmp_path):
    """Not those of code that is there at its end; a child of a fork leaves its parent's alone."""
    program = """if True:
        import os, sys
        from tests.codegen.debug.test_line_tables import built_with_lines
        module, path = built_with_lines("left")
        if os.fork() == 0:
            sys.exit()
        os.wait()
        assert path.is_file()
        print(path)
    """
    root = Path(tedsl.__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root,
                          env={**os.environ, "TMPDIR": str(tmp_path), "TEDSL_CACHE_DIR": "off"})
    assert done.stdout.startswith(str(tmp_path)), done.stderr
    assert not list(tmp_path.iterdir())


def test_operators_of_every_kind_have_line_tables():
    x = te.placeholder((2, 6, 9, 9), name="x")
    w = te.placeholder((4, 6, 3, 3), name="w")
    for out, args in [(topi.nn.softmax(topi.reshape(x, (12, 81))), [x]), (topi.nn.conv2d(x, w, 1, 1, 1), [x, w]),
                      (topi.argmax(x, 1), [x]), (topi.sort(x, -1), [x]), (topi.cumsum(x, 2), [x])]:
        with PassContext(config={"tedsl.line_tables": True}), Target("llvm"):
            module = tedsl.build(te.create_schedule(out.op), [*args, out])
        assert "!DILocation" in module.get_source("ll")


def test_a_thread_of_python_in_between_keeps_the_lines():
    ib = tir.ir_builder.create()
    X = tir.decl_buffer((8,), "float32", name="X")
    with ib.for_range(0, 8, "i") as i:
        ib.emit(tir.call_extern("int32", "abs", i))
        ib.emit(X.vstore([i], 1.0))
    func = tir.PrimFunc([X], ib.get()).with_attr("global_symbol", "f")
    with PassContext(config={"tedsl.line_tables": True}):
        x = np.zeros(8, "float32")
        tedsl.build(func)(x)
    assert x.tolist() == [1] * 8


def test_perf_is_told_of_kernels_and_stages():
    with PassContext(config={"tedsl.perf_map": True}):
        module = tedsl.build(*two_stages(), name="seen_by_perf")
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    try:
        lines = [line.split(" ", 2) for line in path.read_text().splitlines() if "seen_by_perf" in line]
    finally:
        path.unlink()
    names = {name for _, _, name in lines}
    assert {"seen_by_perf.kernel", "seen_by_perf.entry", "seen_by_perf.call"} <= names
    assert any(re.fullmatch(r"seen_by_perf\.(compact\.)?kernel\.B\.parallel\d+", name) for name in names)
    with open("/proc/self/maps") as maps:
        code = [tuple(int(end, 16) for end in line.split()[0].split("-")) for line in maps if " r-xp " in line]
    for begin, size, name in lines:
        assert any(low <= int(begin, 16) and int(begin, 16) + int(size, 16) <= high for low, high in code), name
    del module


def test_functions_of_an_object_are_listed_with_their_places():
    image = tedsl.build(*two_stages(), name="g").image().code
    ranges = {name: (begin, size) for name, begin, size in function_ranges(image)}
    assert ranges["g.kernel"][1] > 100 and ranges["g.call"][1] > 5
    ends = sorted((begin, begin + size) for begin, size in ranges.values())
    assert all(a[1] <= b[0] for a, b in pairwise(ends))
    assert len(with_code_address(image, 0x7000_0000_1000)) == len(image) and with_code_address(image, 0x70_0000) != image


def test_options_are_checked():
    refused(lambda: PassContext(config={"tedsl.line_tables": 3}), "tedsl.line_tables", error=OptionError)
    refused(lambda: PassContext(config={"tedsl.perfmap": True}), "tedsl.perf_map", error=OptionError)


@pytest.mark.skipif(not any(map(shutil.which, ("ld", "cc"))), reason="needs a linker")
def test_a_library_has_its_loops_beside_it(tmp_path):
    with PassContext(config={"tedsl.line_tables": True}):
        module = tedsl.build(*two_stages(), name="f")
    module.export_library(tmp_path / "libkernels.so")
    assert (tmp_path / "libkernels.loops.py").read_text().startswith("def f(")
    content = (tmp_path / "libkernels.so").read_bytes()
    assert b".debug_line" in content and b"libkernels.loops.py" in content
    b = np.zeros(3, "float32")
    tedsl.runtime.load_module(tmp_path / "libkernels.so")(np.zeros((3, 64), "float32"), b)
    assert b.tolist() == [96.0] * 3
    tedsl.build(*two_stages(), name="f").export_library(tmp_path / "plain.so")
    assert not (tmp_path / "plain.loops.py").exists()
