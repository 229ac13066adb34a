"""Builds that take their code from the cache on disk: the same modules, without lowering or without compiling."""

import os
import platform
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import tedsl
import topi
from tedsl import compiler, te, tir
from tedsl.cache.store import CODE, SCHEDULE, current_store
from tedsl.codegen.llvm import cached
from tedsl.codegen.llvm import compiled as compiling
from tedsl.codegen.llvm.linking import jit
from tedsl.codegen.llvm.linking.loader import lay_out
from tedsl.errors import AccessError, ArgumentError, LoweringError, TedslError
from tedsl.ir.instrument import PassTimingInstrument
from tedsl.runtime import versions
from tedsl.runtime.modules.image import image_of

FORMATS = ("ll", "asm", "tir")


@dataclass
class Work:
    """How often schedules were lowered and modules compiled."""

    lowered: int = 0
    compiled: int = 0

    def since(self):
        done = self.lowered, self.compiled
        self.lowered = self.compiled = 0
        return done


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A cache in a folder of this test, and the work that builds do."""
    done = Work()

    def counted(module, name, field):
        function = getattr(module, name)

        def call(*args, **named):
            setattr(done, field, getattr(done, field) + 1)
            return function(*args, **named)

        monkeypatch.setattr(module, name, call)

    counted(compiler, "functions_of", "lowered")
    counted(compiling, "object_code", "compiled")
    monkeypatch.setenv("TEDSL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(versions, "source_of", lambda folder, since: "as it was")  # also while someone edits tedsl
    monkeypatch.setattr(versions, "_seen", versions._Seen(-1, None))
    return done


def tiled(n=64, factor=16, dtype="float32", add=1.0, name="B", vector=True, parallel=False):
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute((n,), lambda i: A[i] * 2 + te.const(add, dtype), name=name)
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=factor)
    if vector:
        s[B].vectorize(inner)
    if parallel:
        s[B].parallel(outer)
    return s, [A, B]


def called(module, n=64, dtype="float32"):
    out = np.zeros(n, dtype)
    module(np.arange(n).astype(dtype), out)
    return out


EXPECTED = np.arange(64) * 2 + 1.0


# --- the two ways to a module -----------------------------------------------------------------------------------------

def test_a_schedule_seen_before_is_neither_lowered_nor_compiled(work):
    first = tedsl.build(*tiled())
    assert work.since() == (1, 1)
    again = tedsl.build(*tiled())
    assert work.since() == (0, 0)
    assert first.code_key == again.code_key != ""
    np.testing.assert_array_equal(called(again), EXPECTED)


def test_loops_seen_before_are_not_compiled(work):
    s, args = tiled()
    func = tedsl.lower(s, args, name="f")
    tedsl.build(func)
    work.since()
    module = tedsl.build(tedsl.lower(*tiled(), name="f"))
    assert work.since() == (2, 0)  # once by `lower`, once for the check of what `build` is given
    np.testing.assert_array_equal(called(module), EXPECTED)
    assert module.entry_name == "f"


def test_two_schedules_with_the_same_loops_share_their_code(work):
    def program(through):
        A = te.placeholder((64,), name="A")
        B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
        s = te.create_schedule(B.op)
        if through:
            s[B].unroll(B.op.axis[0])
            s.undo()
        return s, [A, B]

    tedsl.build(*program(False))
    work.since()
    tedsl.build(*program(True))
    assert work.since()[1] == 0


def test_without_a_cache_nothing_is_written(work, monkeypatch, tmp_path):
    monkeypatch.setenv("TEDSL_CACHE_DIR", "off")
    assert tedsl.build(*tiled()).code_key == ""
    tedsl.build(*tiled())
    assert work.since() == (2, 2) and list(tmp_path.iterdir()) == []


# --- modules from the cache are the modules -----------------------------------------------------------------------------

def softmax():
    A = te.placeholder((8, 33), name="A")
    B = topi.nn.softmax(A)
    return topi.schedules.schedule(B), [A, B]


def symbolic():
    n = te.size_var("n")
    A = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=4)
    return s, [n, A, B]


PROGRAMS = {"tiled": tiled, "parallel": lambda: tiled(parallel=True), "softmax": softmax, "symbolic": symbolic,
            "float16": lambda: tiled(dtype="float16"), "bool": lambda: tiled(dtype="uint8", add=3)}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_texts_and_files_are_those_of_a_fresh_build(program, work, monkeypatch):
    with monkeypatch.context() as off:
        off.setenv("TEDSL_CACHE_DIR", "off")
        fresh = tedsl.build(*program())
    tedsl.build(*program())
    by_schedule = tedsl.build(*program())
    current_store().drop(*next(name.split(".") for name in os.listdir(current_store().folder) if name.endswith(SCHEDULE)))
    by_loops = tedsl.build(*program())
    for module in (by_schedule, by_loops):
        assert repr(module) == repr(fresh)
        assert [module.get_source(form) for form in FORMATS] == [fresh.get_source(form) for form in FORMATS]
        assert module.image().parts() == fresh.image().parts()
        assert module.save_to_bytes() == fresh.save_to_bytes()
    assert work.since() == (3, 2)


def test_texts_are_those_of_the_build_whatever_becomes_of_the_schedule(work):
    tedsl.build(*tiled())
    s, args = tiled()
    module = tedsl.build(s, args)
    s[args[1]].unroll(s[args[1]].leaf_iter_vars[0])
    assert "unroll" not in module.get_source("tir") and work.since() == (1, 1)


def test_symbolic_sizes_and_their_checks_come_back(work):
    tedsl.build(*symbolic())
    module = tedsl.build(*symbolic())
    assert work.since() == (1, 1)
    a, out = np.arange(9, dtype="float32").reshape(3, 3), np.zeros(3, "float32")
    module(3, a, out)
    np.testing.assert_array_equal(out, a.sum(1))
    module(3, a.T, out)
    np.testing.assert_array_equal(out, a.sum(0))
    with pytest.raises(ArgumentError, match=r"A"):
        module(4, a, out)
    assert module.time_evaluator(module.entry_name, number=2)(3, a, out).mean > 0


def test_checked_builds_name_the_stage_again(work):
    def reads_outside():
        A = te.placeholder((4,), name="A")
        K = te.placeholder((4,), "int32", name="K")
        B = te.compute((4,), lambda i: A[K[i]], name="B")
        return te.create_schedule(B.op), [A, K, B]

    messages = []
    for _ in range(2):
        module = tedsl.build(*reads_outside(), checked=True)
        with pytest.raises(AccessError) as error:
            module(np.zeros(4, "float32"), np.array([0, 9, 0, 0], "int32"), np.zeros(4, "float32"))
        messages.append(str(error.value))
    assert messages[0] == messages[1] and "A[9]" in messages[0]
    assert work.since() == (1, 1)
    tedsl.build(*reads_outside())
    assert work.since() == (1, 1), "without checks it is another program"


def test_python_functions_are_called_by_their_names(work):
    def program():
        A = te.placeholder((4,), name="A")
        B = te.extern((4,), [A], lambda ins, outs: tir.call_packed("tests.cache.fill", outs[0]), dtype="float32", name="B")
        return te.create_schedule(B.op), [A, B]

    out = np.zeros(4, "float32")
    for value in (3.0, 5.0):
        tedsl.register_func("tests.cache.fill", lambda b, value=value: b.copyfrom(np.full(4, value, "float32")), override=True)
        tedsl.build(*program())(np.zeros(4, "float32"), out)
        assert (out == value).all()
    assert work.since() == (1, 1)


def test_a_c_function_that_is_not_here_is_named(work, monkeypatch):
    def program():
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: tir.call_pure_extern("float32", "fabsf_of_another_library", A[i]), name="B")
        return te.create_schedule(B.op), [A, B]

    from tedsl.codegen.llvm.outside import extern
    from tedsl.runtime import symbols

    real = symbols.extern_address
    with monkeypatch.context() as library:
        for module in (extern, symbols):
            library.setattr(module, "extern_address", lambda name: real("fabsf" if "another" in name else name))
        tedsl.build(*program())
    assert work.since() == (1, 1)
    with pytest.raises(LoweringError, match=r"there is no C function 'fabsf_of_another_library' in this process"):
        tedsl.build(*program())


def test_options_of_a_build_are_kept_apart(work):
    """quick builds and others, versions for other processors: each finds its own."""
    for _ in range(2):
        plain = tedsl.build(*tiled())
        with tedsl.PassContext(opt_level=0):
            quick = tedsl.build(*tiled())
        baseline = tedsl.build(*tiled(), target="llvm -mcpu=x86-64" if "x86" in plain.target.triple else "llvm")
        for module in (plain, quick, baseline):
            np.testing.assert_array_equal(called(module), EXPECTED)
    assert len({plain.code_key, quick.code_key, baseline.code_key}) == (3 if "x86" in plain.target.triple else 2)
    assert "zmm" not in baseline.get_source("asm") and work.since()[0] <= 3


def test_code_for_another_machine_is_not_kept(work):
    for _ in range(2):
        module = tedsl.build(*tiled(), target="llvm -mtriple=aarch64-linux-gnu" if "x86" in tedsl.Target("llvm").triple
                             else "llvm -mtriple=x86_64-linux-gnu")
        assert module.code_key == "" and "B" in module.get_source("tir")
    assert current_store().contents().size == 0


# --- what must not be taken from it -------------------------------------------------------------------------------------

def test_a_build_that_warns_warns_every_time(work):
    def program():
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        C = te.compute((8,), lambda i: A[i] * 2.0, name="C")
        return te.create_schedule([B.op, C.op]), [A, B]

    for _ in range(2):
        with pytest.warns(UserWarning, match="C is computed and dropped"):
            tedsl.build(*program())
    assert work.since() == (2, 1)


def test_a_refused_schedule_is_refused_every_time(work):
    def program():
        n = te.var("n")
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + n, name="B")
        return te.create_schedule(B.op), [A, B]

    for _ in range(2):
        with pytest.raises(LoweringError, match="the loops use n, and no argument gives it a value"):
            tedsl.build(*program())
    assert current_store().contents().size == 0


def test_wrong_arguments_are_refused_as_ever(work, monkeypatch):
    s, args = tiled()
    wrong = [(s, None), (s, "A"), (s, [args[0], [args[1]]]), (s, [args[0], 3]), (s, [None]), (s, {}), (s, args, None, None, 7)]
    messages = []
    for folder in (os.environ["TEDSL_CACHE_DIR"], "off"):
        monkeypatch.setenv("TEDSL_CACHE_DIR", folder)
        for given in wrong:
            with pytest.raises(TedslError) as error:
                tedsl.build(*given)
            messages.append(str(error.value))
    assert messages[:len(wrong)] == messages[len(wrong):]


def test_the_signature_of_a_kept_kernel_is_read_when_it_is_asked_for(work, monkeypatch):
    fresh = tedsl.build(*tiled())
    read = []
    monkeypatch.setattr(cached, "image_of", lambda *given: read.append(1) or image_of(*given))
    module = tedsl.build(*tiled())
    np.testing.assert_array_equal(called(module), EXPECTED)
    assert module.entry_func.__doc__ == fresh.entry_func.__doc__ and not read
    messages = []
    for of in (fresh, module, module):
        with pytest.raises(ArgumentError) as error:
            called(of, n=63)
        messages.append(str(error.value))
    assert messages[0] == messages[1] == messages[2] and read == [1]
    assert module.time_evaluator(module.entry_name)(np.zeros(64, "float32"), np.zeros(64, "float32")).mean > 0
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        module.entry_func.__self__.absent


@pytest.mark.skipif(platform.machine() != "x86_64", reason="for x86-64")
@pytest.mark.parametrize("without", ["", "laid.json", "laid.bin"])
def test_kept_code_is_laid_out_already_or_else_its_object_is_read(without, work, monkeypatch):
    """Kernels with constants, calls of libm and threads; the object is read where an entry lacks a piece of the layout."""
    A = te.placeholder((40,), name="A")
    B = te.compute((40,), lambda i: te.atan2(A[i], 2.0) + te.exp(A[i]), name="B")

    def program():
        s = te.create_schedule(B.op)
        s[B].parallel(s[B].split(B.op.axis[0], 8)[0])
        return s, [A, B]

    first = called(tedsl.build(*program()), n=40)
    work.since()
    store = current_store()
    pieces = store.load(tedsl.build(*program()).code_key, CODE)
    store.save(tedsl.build(*program()).code_key, CODE, {name: data for name, data in pieces.items() if name != without})
    laid = []
    monkeypatch.setattr(jit, "lay_out", lambda *given: laid.append(1) or lay_out(*given))
    again = tedsl.build(*program())
    assert work.since() == (0, 0) and len(laid) == bool(without)
    np.testing.assert_array_equal(called(again, n=40), first)
    assert "atan2" in again.get_source("asm")


def test_buffers_of_the_caller_are_in_the_key(work):
    def program(strides):
        s, (A, B) = tiled()
        return s, [A, B], {A: tir.decl_buffer(A.shape, A.dtype, name="A_in", strides=strides)}

    for strides in ([1], [2], [1], [2]):
        s, args, binds = program(strides)
        module = tedsl.build(s, args, binds=binds)
        out = np.zeros(64, "float32")
        module(np.arange(64 * strides[0]).astype("float32")[::strides[0]], out)
        np.testing.assert_array_equal(out, EXPECTED if strides == [1] else np.arange(0, 128, 2) * 2 + 1)
    assert work.since() == (2, 2)


def test_instruments_see_every_pass_of_every_build(work):
    seen = []
    for _ in range(2):
        timing = PassTimingInstrument()
        with tedsl.PassContext(instruments=[timing]):
            tedsl.build(*tiled())
            seen.append([line.split(":")[0] for line in timing.render().splitlines()])
    assert seen[0] == seen[1] and len(seen[0]) > 20 and work.since() == (2, 2)


def test_passes_of_the_user_run_every_time(work):
    """Their functions say nothing that another process could compare; what they made of the loops does."""
    ran = []

    def noting(func):
        ran.append(func.name)
        return func

    for _ in range(2):
        with tedsl.PassContext(config={"tir.add_lower_pass": [(1, noting)]}):
            tedsl.build(*tiled())
    assert len(ran) == 2 and work.since() == (2, 1)


def test_imported_code_is_compiled_every_time(work):
    text = "define float @three(float %x) {\n  %y = fmul float %x, 3.0\n  ret float %y\n}\n"

    def program():
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: tir.call_pure_extern("float32", "three", A[i]), name="B")
        s = te.create_schedule(B.op)
        s[B].pragma(B.op.axis[0], "import_llvm", text)
        return s, [A, B]

    for _ in range(2):
        assert called(tedsl.build(*program()), 4).tolist() == [0, 3, 6, 9]
    assert work.since() == (2, 2)


def test_what_holds_an_object_of_the_user_is_lowered_every_time(work):
    class Mine:
        pass

    def program():
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 1.0, name="B", attrs={"mine": Mine()})
        return te.create_schedule(B.op), [A, B]

    for _ in range(2):
        tedsl.build(*program())
    assert work.since() == (2, 1)


def test_an_edited_source_of_tedsl_is_another_compiler(work, monkeypatch):
    tedsl.build(*tiled())
    for source, expected in (("edited", (1, 1)), ("as it was", (0, 0)), (None, (1, 1))):
        work.since()
        monkeypatch.setattr(versions, "source_of", lambda folder, since, source=source: source)
        monkeypatch.setattr(versions, "FRESH", 0)  # a moment later
        tedsl.build(*tiled())
        assert work.since() == expected


def test_damaged_entries_are_compiled_again(work):
    tedsl.build(*tiled())
    folder = Path(current_store().folder)
    for path in folder.glob("*.*"):
        data = path.read_bytes()
        for damaged in (b"", data[:30], data[:-1], data[:60] + b"\xff" + data[61:]):
            path.write_bytes(damaged)
            np.testing.assert_array_equal(called(tedsl.build(*tiled())), EXPECTED)
            assert path.read_bytes() == data, "it was written again"
    assert {path.suffix for path in folder.glob("*.*")} == {f".{CODE}", f".{SCHEDULE}"}


def test_a_schedule_whose_code_was_dropped_is_compiled_again(work):
    module = tedsl.build(*tiled())
    current_store().drop(module.code_key, CODE)
    np.testing.assert_array_equal(called(tedsl.build(*tiled())), EXPECTED)
    np.testing.assert_array_equal(called(tedsl.build(*tiled())), EXPECTED)
    assert work.since() == (2, 2)


def test_a_folder_that_is_a_file_costs_one_warning(work, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TEDSL_CACHE_DIR", str(tmp_path / "file"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            np.testing.assert_array_equal(called(tedsl.build(*tiled(parallel=True))), EXPECTED)
    assert [warning.category for warning in caught] == [RuntimeWarning]
    assert caught[0].filename == __file__


# --- other processes ----------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
import tedsl, topi
from tedsl import te
from tedsl.codegen.llvm import compiled as compiling
from tedsl.codegen.llvm.linking import jit
from tedsl.runtime import versions
versions.source_of = lambda folder, since: "as it was"

compiled = []
object_code, pool = compiling.object_code, jit._compile
compiling.object_code = lambda *args, **named: compiled.append(1) or object_code(*args, **named)
jit._compile = lambda text: compiled.append(text) or pool(text)
A = te.placeholder((300, 70), name="A")
B = topi.nn.softmax(A)
with tedsl.Target("llvm"):
    s = topi.schedules.schedule(B)
module = tedsl.build(s, [A, B])
a, out = np.random.default_rng(1).random((300, 70), "float32"), np.zeros((300, 70), "float32")
module(a, out)
print(module.code_key, len(compiled), "llvmlite" in sys.modules, out.tobytes().hex()[:400], float(out.sum()))
"""


def test_another_process_takes_the_code_and_computes_the_same(tmp_path):
    lines = []
    for seed in ("1", "2"):
        made = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120,
                              env=os.environ | {"TEDSL_CACHE_DIR": str(tmp_path / "cache"), "PYTHONHASHSEED": seed})
        assert made.stderr == ""
        lines.append(made.stdout.split())
    assert int(lines[0][1]) >= 2 and lines[1][1] == "0", "the kernel and the pool of threads"
    assert len({(line[0], *line[3:]) for line in lines}) == 1
    assert lines[0][2] == "True" and (lines[1][2] == "False" or platform.machine() != "x86_64"), "LLVM is not even loaded"
    assert not (tmp_path / ".cache").exists()
