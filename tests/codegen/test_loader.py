"""Our own linker against LLVM's: every way in which an object refers to something gives the same address."""

import ctypes
import platform
import struct
import subprocess
import sys

import llvmlite.binding as llvm
import pytest

from tedsl.codegen.llvm.linking import jit, lljit
from tedsl.codegen.llvm.linking.elf import Object
from tedsl.codegen.llvm.linking.kept import laid_out_of, laid_out_pieces
from tedsl.codegen.llvm.linking.loader import NotUnderstood, lay_out, load
from tedsl.errors import InternalError
from tedsl.runtime.symbols import address_of
from tedsl.target.executable import PAGE

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="for x86-64")

# Constants and variables of all sizes, zeros, addresses in data, calls inside and outside, addresses of both in code.
EVERYTHING = """
@small = internal constant [3 x i32] [i32 1, i32 20, i32 300]
@wide = internal constant <16 x float> <float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0, float 7.0, float 8.0,
                                        float 9.0, float 10.0, float 11.0, float 12.0, float 13.0, float 14.0, float 15.0,
                                        float 16.0>, align 64
@text = private unnamed_addr constant [6 x i8] c"hello\\00"
@counter = internal global i64 5, align 4096
@zeros = internal global [5000 x i64] zeroinitializer
@places = internal global [2 x ptr] [ptr getelementptr (i8, ptr @text, i64 1), ptr @square]
@shared = global i32 7

declare double @exp2(double)
declare i32 @memcmp(ptr, ptr, i64)

define internal i64 @square(i64 %x) noinline {
  %y = mul i64 %x, %x
  ret i64 %y
}

define i64 @numbers(i64 %k) {
  %p = getelementptr i32, ptr @small, i64 %k
  %a = load i32, ptr %p
  %q = getelementptr float, ptr @wide, i64 %k
  %b = load float, ptr %q
  %c = fptosi float %b to i64
  %d = sext i32 %a to i64
  %e = add i64 %c, %d
  ret i64 %e
}

define i64 @count() {
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  %p = getelementptr i64, ptr @zeros, i64 %new
  %z = load i64, ptr %p
  store i64 %new, ptr %p
  %r = add i64 %z, %new
  ret i64 %r
}

define i64 @through_table(i64 %x) {
  %f = load volatile ptr, ptr getelementptr (ptr, ptr @places, i64 1)
  %y = call i64 %f(i64 %x)
  %t = load volatile ptr, ptr @places
  %c = load i8, ptr %t
  %w = zext i8 %c to i64
  %r = add i64 %y, %w
  ret i64 %r
}

define i64 @chosen(i64 %x) {
  switch i64 %x, label %other [ i64 0, label %a
                                i64 1, label %b
                                i64 2, label %c
                                i64 3, label %d
                                i64 4, label %e ]
a:
  ret i64 17
b:
  %s = call i64 @square(i64 12)
  ret i64 %s
c:
  %r = load i32, ptr @shared
  %v = sext i32 %r to i64
  ret i64 %v
d:
  %m = call i32 @memcmp(ptr @text, ptr getelementptr (i8, ptr @text, i64 1), i64 4)
  %n = sext i32 %m to i64
  ret i64 %n
e:
  %at = ptrtoint ptr @memcmp to i64
  ret i64 %at
other:
  ret i64 -1
}

define double @outside(double %x) {
  %y = call double @exp2(double %x)
  %z = fadd double %y, 1.0
  ret double %z
}
"""
EXPORTS = ["numbers", "count", "through_table", "chosen", "outside"]


def compiled(text, triple="", level=2):
    lljit.initialize()
    target = llvm.Target.from_triple(triple) if triple else llvm.Target.from_default_triple()
    machine = target.create_target_machine(reloc="pic", codemodel="small", opt=level)
    return machine.emit_object(llvm.parse_assembly(text))


def results(addresses):
    whole = {name: ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(addresses(name)) for name in EXPORTS[:-1]}
    outside = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(addresses("outside"))
    return [[whole["numbers"](k) for k in range(3)], [whole["count"](0) for _ in range(3)], whole["through_table"](9),
            [whole["chosen"](k) for k in range(6)], outside(0.5)]


BOUND = {name: address_of(name) for name in ("exp2", "memcmp")}


def test_a_laid_out_object_comes_back_from_its_pieces_and_holds_no_address():
    image = compiled(EVERYTHING)
    pieces = laid_out_pieces(image, EXPORTS)
    laid = laid_out_of(pieces)
    assert pieces == laid_out_pieces(image, EXPORTS) and set(laid.undefined) == set(BOUND)
    assert sum(len(content) for _, content in laid.filled) < 8 * PAGE < laid.size, "zeros are not kept"
    loaded, fresh = load(laid, BOUND), load(lay_out(image, EXPORTS), BOUND)
    assert results(loaded.addresses.__getitem__) == results(fresh.addresses.__getitem__)
    for one in (loaded, fresh):
        one.pages.release()
    assert laid_out_of({}) is None


@pytest.mark.parametrize("level", range(4))
def test_an_object_computes_what_it_does_by_llvms_linker(level):
    image = compiled(EVERYTHING, level=level)
    kinds = {struct.unpack_from("<I", image, at + 8)[0] for section in Object(image).sections if section.kind == 4
             for at in range(section.offset, section.offset + section.size, 24)}
    assert kinds >= {1, 2, 4, 42}, "addresses, distances, calls, the table"
    loaded, theirs = load(lay_out(image, EXPORTS), BOUND), lljit.link([image], EXPORTS, BOUND)
    ours = results(loaded.addresses.__getitem__)
    loaded.pages.release()
    assert ours == results(theirs.address)
    assert ours[0] == [2, 22, 303] and ours[1] == [6, 7, 8] and ours[2] == 81 + ord("e") and ours[4] == 2.0 ** 0.5 + 1.0
    assert ours[3][:3] == [17, 144, 7] and ours[3][4:] == [BOUND["memcmp"], -1]


def test_code_is_not_written_and_constants_are_neither_written_nor_run():
    loaded = load(lay_out(compiled(EVERYTHING), EXPORTS), BOUND)
    with open("/proc/self/maps") as file:
        lines = [line.split()[:2] for line in file]
    allowed = {}
    for place, access in lines:
        begin, end = (int(part, 16) for part in place.split("-"))
        if begin < loaded.pages.address + loaded.pages.size and loaded.pages.address < end:
            allowed[begin] = access
    assert list(allowed.values()) == ["r-xp", "r--p", "rw-p"] and min(allowed) == loaded.pages.address
    loaded.pages.release()


@pytest.mark.parametrize("text, triple", [
    ("@t = thread_local global i32 3\ndefine i32 @f() {\n  %v = load i32, ptr @t\n  ret i32 %v\n}\n", ""),
    ("define i32 @f() {\n  ret i32 1\n}\n", "aarch64-linux-gnu"),
    ("@x = global i32 1, section \"far\", align 8192\ndefine ptr @f() {\n  ret ptr @x\n}\n", ""),
], ids=["threads", "aarch64", "alignment"])
def test_what_is_not_understood_is_left_to_llvms_linker(text, triple):
    if triple:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    with pytest.raises(NotUnderstood):
        lay_out(compiled(text, triple), ["f"])


def test_a_relocation_of_another_kind_is_left_to_llvms_linker():
    image = bytearray(compiled(EVERYTHING))
    table = next(section for section in Object(bytes(image)).sections if section.kind == 4 and section.name == ".rela.text")
    struct.pack_into("<I", image, table.offset + 8, 10)  # R_X86_64_32
    with pytest.raises(NotUnderstood, match="the relocation 10"):
        lay_out(bytes(image), EXPORTS)


def test_a_function_that_is_not_there_is_an_error_of_ours():
    with pytest.raises(InternalError, match="does not have the function absent"):
        lay_out(compiled(EVERYTHING), ["absent"])


def test_a_process_ends_while_threads_wait_in_code():
    """The pool of threads, and a kernel that a daemon thread never stops calling."""
    program = ("import threading, time, numpy as np, tedsl\nfrom tedsl import te\n"
               "A = te.placeholder((1 << 16,), name='A')\nB = te.compute(A.shape, lambda i: A[i] + 1.0, name='B')\n"
               "s = te.create_schedule(B.op)\ns[B].parallel(s[B].split(B.op.axis[0], 64)[0])\n"
               "f, a, b = tedsl.build(s, [A, B]), np.zeros(1 << 16, 'float32'), np.zeros(1 << 16, 'float32')\n"
               "def work():\n    while True:\n        f(a, b)\n"
               "threading.Thread(target=work, daemon=True).start()\ntime.sleep(0.2)\nprint('end')\n")
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert (run.returncode, run.stdout, run.stderr) == (0, "end\n", "")


def test_what_the_runtime_compiles_is_linked_by_ours(monkeypatch):
    monkeypatch.setattr(jit, "_runtime", {})
    monkeypatch.setattr(lljit, "link", lambda *args: pytest.fail("LLVM's linker"))
    for name in ("tedsl_parallel_launch", "tedsl_workspace_alloc", "tedsl_time_calls", "tedsl_call_packed"):
        assert jit.runtime_address(name)
