"""Linking: one library per module, gone with its last reference; nothing unknown ever reaches the linker.

Both linkers are tested: our own for x86-64, and LLVM's.
"""

import ctypes
import gc
import pathlib
import platform
import subprocess
import sys
import threading

import llvmlite.binding as llvm
import pytest

from tedsl.codegen.llvm.linking import jit, lljit
from tedsl.codegen.llvm.linking.elf import undefined_symbols
from tedsl.codegen.llvm.linking.loader import NotUnderstood
from tedsl.errors import InternalError

ROOT = pathlib.Path(__file__).parents[2]
KERNEL = """
@table = internal constant [4 x i64] [i64 10, i64 20, i64 30, i64 {0}]
declare double @{1}(double)
define i64 @look(i64 %k) {{
  %p = getelementptr i64, ptr @table, i64 %k
  %v = load i64, ptr %p
  ret i64 %v
}}
define double @apply(double %x) {{
  %r = call double @{1}(double %x)
  ret double %r
}}
"""


@pytest.fixture(params=["ours", "LLVM's"], autouse=True)
def linker(request, monkeypatch):
    if request.param == "LLVM's":
        def refuse(*args):
            raise NotUnderstood

        monkeypatch.setattr(jit, "load", refuse)
    elif platform.machine() != "x86_64":
        pytest.skip("for x86-64")


def compiled(last=40, function="exp2"):
    lljit.initialize()
    machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="small")
    return machine.emit_object(llvm.parse_assembly(KERNEL.format(last, function)))


def function(library, name, result, argument):
    return ctypes.CFUNCTYPE(result, argument)(library.address(name))


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_linked_code_runs_and_finds_libm():
    library = jit.link(compiled(), ["look", "apply"])
    assert function(library, "look", ctypes.c_int64, ctypes.c_int64)(3) == 40
    assert function(library, "apply", ctypes.c_double, ctypes.c_double)(5.0) == 32.0


def test_libraries_with_the_same_names_are_apart():
    kept = [jit.link(compiled(k), ["look"]) for k in range(5)]
    assert [function(lib, "look", ctypes.c_int64, ctypes.c_int64)(3) for lib in kept] == [0, 1, 2, 3, 4]


def test_undefined_symbols_are_read_from_the_object():
    assert undefined_symbols(compiled()) == ["exp2"]


def test_what_is_no_object_is_refused():
    with pytest.raises(InternalError, match="not little-endian ELF"):
        undefined_symbols(b"MZ" + bytes(100))


def test_a_symbol_that_nobody_provides_is_refused_before_linking():
    with pytest.raises(InternalError, match="calls no_such_function, which tedsl does not provide"):
        jit.link(compiled(function="no_such_function"), ["look"])


def test_2000_libraries_built_and_dropped_give_the_memory_back():
    image = compiled()
    for _ in range(200):
        jit.link(image, ["look"])
    gc.collect()
    before = resident()
    for k in range(2000):
        library = jit.link(compiled(k) if k % 10 == 0 else image, ["look"])
        assert function(library, "look", ctypes.c_int64, ctypes.c_int64)(0) == 10
    del library
    gc.collect()
    assert resident() - before < 20e6


def test_libraries_kept_and_dropped_together_give_the_memory_back():
    image = compiled()
    jit.link(image, ["look"])
    gc.collect()
    before = resident()
    kept = [jit.link(image, ["look"]) for _ in range(500)]
    while kept:
        kept.pop()
    gc.collect()
    assert resident() - before < 20e6


def test_libraries_may_be_linked_with_large_arrays_in_between():
    """In a process of its own: a linker that cannot do it ends the process."""
    code = ("import mmap\nfrom tests.codegen.test_jit import compiled, function, jit, ctypes\n"
            "kept = []\n"
            "for k in range(100):\n"
            "    kept.append((jit.link(compiled(k), ['look', 'apply']), mmap.mmap(-1, 1 << 31)))\n"
            "print([function(lib, 'look', ctypes.c_int64, ctypes.c_int64)(3) for lib, _ in kept] == list(range(100)))\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "True"


def test_threads_link_and_drop_at_the_same_moment():
    image = compiled()
    wrong = []

    def work():
        for _ in range(100):
            if function(jit.link(image, ["look"]), "look", ctypes.c_int64, ctypes.c_int64) is None:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
