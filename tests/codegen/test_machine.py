"""LLVM behind a lock: several threads compile at once; one machine per target; modules that LLVM does not accept."""

import subprocess
import sys
import threading
from pathlib import Path

import llvmlite.binding
import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.codegen.llvm.effort import (
    MOST_PATHS,
    MOST_STORES,
    PLAIN,
    VECTORIZED,
    effort_of,
    functions_of,
    index_paths,
    instructions,
)
from tedsl.codegen.llvm.machine import optimize, target_machine
from tedsl.errors import InternalError
from tedsl.ir import build
from tedsl.target import Target
from tests.codegen.kernels import AVX2, HOST, Kernel, elementwise

ROOT = Path(__file__).parents[2]


def test_threads_compile_at_once():
    failures = []

    def work(number):
        try:
            for k in range(4):
                kernel = Kernel(elementwise(lambda v, k=k: build.add(v, float(number + k)), ["float32"], "float32", 8, 64))
                x, y = np.arange(64, dtype="f"), np.zeros(64, "f")
                assert kernel(x, y) == 0
                np.testing.assert_array_equal(y, x + number + k)
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_there_is_one_machine_per_target():
    assert target_machine(Target("llvm -mcpu=haswell")) is target_machine(AVX2)
    assert target_machine(HOST) is not target_machine(AVX2)


def test_text_that_llvm_does_not_accept_is_our_bug():
    with pytest.raises(InternalError, match="LLVM does not accept"):
        optimize("define i32 @f() { ret i64 0 }", HOST, vectorize=False)


def test_the_same_program_gives_the_same_text_and_object():
    f = lambda: Kernel(elementwise(build.add, ["float32"] * 2, "float32", 8, 64))
    assert f().text == f().text and f().image == f().image


def test_paths_of_an_index_to_the_counters_of_loops():
    """Data has none, sums of shared parts multiply them, and counting ends where there are too many."""
    def function(*lines):
        return ["define i32 @f(ptr %x) {", *(f"  {line}" for line in lines), "}"]

    doubled = [f"%v{k + 1} = add nsw i64 %v{k}, %v{k}" for k in range(100)]
    assert index_paths(function("%v0 = load i64, ptr %x", *doubled)) == 0
    assert index_paths(function("%v0 = phi i64 [ 0, %entry ], [ %n, %loop ]", *doubled[:5])) == 32
    assert index_paths(function("%i = phi i64 [ 0, %entry ], [ %n, %loop ]", "%c = icmp slt i64 %i, 7",
                                "%v0 = call i64 @llvm.smin.i64(i64 %i, i64 9)", "%v1 = select i1 %c, i64 %i, i64 %v0")) == 2
    paths = index_paths(function("%v0 = phi i64 [ 0, %entry ], [ %n, %loop ]", *doubled))
    assert MOST_PATHS < paths <= 2 * MOST_PATHS


def plain_loop(name, instructions):
    """A function in which a plain loop doubles 64 numbers, after as many further instructions."""
    idle = (f"  %x{k} = add i64 {f'%x{k - 1}' if k else '%n'}, 1" for k in range(instructions))
    return "\n".join([f"define i32 @{name}(ptr %a, i64 %n) {PLAIN} nounwind {{", "entry:", *idle, "  br label %loop", "loop:",
                      "  %i = phi i64 [ 0, %entry ], [ %j, %loop ]", "  %p = getelementptr float, ptr %a, i64 %i",
                      "  %v = load float, ptr %p", "  %w = fadd float %v, %v", "  store float %w, ptr %p",
                      "  %j = add nsw i64 %i, 1", "  %again = icmp slt i64 %j, 64",
                      "  br i1 %again, label %loop, label %done", "done:", "  ret i32 0", "}", ""])


def test_a_large_function_does_not_keep_others_from_the_vectorizer():
    text = plain_loop("large.kernel", VECTORIZED) + plain_loop("small.kernel", 40) + plain_loop("large.kernel.part0", 40)
    assert effort_of(text).lean == {"@large.kernel"}
    assert effort_of(plain_loop("small.kernel", 40)).lean == frozenset()
    module = optimize(text, AVX2, vectorize=True)
    vectors = {f.name: "x float>" in str(f) for f in module.functions}
    assert vectors == {"large.kernel": False, "small.kernel": True, "large.kernel.part0": True}
    assert "optnone" not in str(module) and "%x5 " not in str(module.get_function("large.kernel"))


def shaped(name, line, result="<8 x float>"):
    """The LLVM IR of a function with many products, and with `line`, which LLVM's combination of instructions removes."""
    products = [f"  %x{k} = call <8 x float> @llvm.fma.v8f32(<8 x float> %x{k - 1 or ''}, <8 x float> %x, <8 x float> %x)"
                for k in range(1, 60)]
    return "\n".join([f"define {result} @{name}(<8 x float> %x, i64 %n, {result} %y) nounwind {{", "entry:", line, *products,
                      f"  ret {result} %same", "}", ""])


@pytest.mark.parametrize("line, result, settled", [
    ("  %same = add i64 %n, 0", "i64", True),
    ("  %same = call i64 @llvm.smin.i64(i64 %n, i64 %n)", "i64", True),
    ("  %same = call i32 @llvm.smin.i32(i32 %y, i32 %y)", "i32", False),
    ("  %same = or <8 x i1> %y, zeroinitializer", "<8 x i1>", False),
    ("  %same = add <8 x i32> %y, zeroinitializer", "<8 x i32>", False)])
def test_tiles_without_masks_and_integers_have_nothing_to_combine(line, result, settled):
    text = "declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)\n\n" + \
        shaped("one", line, result) + shaped("other", "  %same = or <8 x i1> %y, zeroinitializer", "<8 x i1>")
    assert effort_of(text).settled == ({"@one"} if settled else frozenset())
    module = optimize(text, AVX2, vectorize=False)
    assert ("%same = " in str(module.get_function("one"))) == settled and "%same = " not in str(module.get_function("other"))
    assert "%same = " not in str(optimize(text, AVX2, vectorize=False, unroll=True))


def test_tiles_of_products_are_settled():
    A, B = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="B")
    k = te.reduce_axis((0, 64), "k")
    C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    _, row = s[C].split(i, factor=4)
    _, lane = s[C].split(j, factor=16)
    s[C].reorder(k, row, lane)
    s[C].unroll(row)
    s[C].vectorize(lane)
    assert len(effort_of(tedsl.build(s, [A, B, C], target=AVX2).get_source("ll")).settled) == 1


@pytest.mark.parametrize("columns, settled", [(512, True), (50, False)])
def test_exponentials_of_rows_are_settled_but_for_many_copies(columns, settled):
    with Target("llvm -mcpu=skylake-avx512") as target:
        x = te.placeholder((128, columns), name="x")
        y = topi.nn.softmax(x)
        text = tedsl.build(topi.schedules.schedule(y), [x, y], target=target).get_source("ll")
    assert any(".parallel" in name for name in effort_of(text).settled) == settled


def test_functions_that_llvm_leaves_alone_are_settled_beside_others():
    text = "declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)\n\n" + \
        shaped("one", "  %same = add i64 %n, 0", "i64") + plain_loop("launches", 40).replace(PLAIN, "noinline optnone")
    assert effort_of(text).settled == {"@one", "@launches"}


def test_indices_of_a_short_module_are_not_looked_at_without_the_pipeline_of_llvm(monkeypatch):
    text = plain_loop("shaped.kernel", 100).replace(f" {PLAIN}", "")
    monkeypatch.setattr("tedsl.codegen.llvm.effort.index_paths", lambda lines: pytest.fail("they are"))
    assert effort_of(text, pipeline=False).combine
    with pytest.raises(pytest.fail.Exception):
        effort_of(text)


def test_inlined_functions_count_at_each_call():
    def one(name, *lines, more=""):
        steps = [f"  %v{k} = {line}" for k, line in enumerate(lines)]
        return "\n".join([f"define float @{name}(float %x) {more}nounwind {{", *steps, "  ret float %v0", "}", ""])

    text = one("inner", "fadd float %x, %x", more="alwaysinline ") + \
        one("middle", "call float @inner(float %x)", "call float @inner(float %v0)", more="alwaysinline ") + \
        one("outer", "call float @middle(float %x)", "call float @not.inner(float %v0)")
    assert instructions(functions_of(text)) == {"@outer": 3 + 3 + 2 * 2}


@pytest.mark.parametrize("labels, lean", [(False, {"@copies.kernel"}), (True, frozenset())])
def test_a_block_of_many_stores_is_not_for_the_vectorizer(labels, lean):
    """It compares each with each. In blocks of their own they are few."""
    stores = "".join(f"next{k}:\n  store float %w, ptr %p\n" for k in range(MOST_STORES))
    stores = stores if labels else "".join(line for line in stores.splitlines(True) if "store" in line)
    text = plain_loop("copies.kernel", 40).replace("  store float %w, ptr %p\n", stores + "  store float %w, ptr %p\n")
    assert effort_of(text).lean == lean


def test_only_functions_with_plain_loops_get_the_pipeline_of_llvm():
    text = plain_loop("plain.kernel", 40) + plain_loop("shaped.kernel", 40).replace(f" {PLAIN}", "")
    text += plain_loop("none.entry", 40).replace(PLAIN, "noinline optnone")
    assert effort_of(text).lean == {"@shaped.kernel"}
    module = optimize(text, AVX2, vectorize=True)
    assert {f.name: "x float>" in str(f) for f in module.functions} == {
        "plain.kernel": True, "shaped.kernel": False, "none.entry": False}
    assert "%x5 " not in str(module.get_function("shaped.kernel"))  # but the lean list has been over it
    assert "%x5 " in str(module.get_function("none.entry")) and str(module).count("optnone }") == 1


def test_each_run_of_passes_has_a_builder_of_its_own(monkeypatch):
    """A second run with a builder calls what watched the first one, which is gone: LLVM printed that it skipped passes."""
    used = []

    def counted(run):
        return lambda passes, unit, builder: (used.append(builder), run(passes, unit, builder))

    for manager in (llvmlite.binding.ModulePassManager, llvmlite.binding.FunctionPassManager):
        monkeypatch.setattr(manager, "run", counted(manager.run))
    text = "declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)\n\n" + \
        shaped("one", "  %same = add i64 %n, 0", "i64") + "".join(
            shaped(name, "  %same = or <8 x i1> %y, zeroinitializer", "<8 x i1>") for name in ("other", "third"))
    optimize(text, AVX2, vectorize=False)
    optimize(text + plain_loop("plain.kernel", 40), AVX2, vectorize=True)
    assert len(used) > 5 and len({id(builder) for builder in used}) == len(used)


def test_without_llvmlite_lower_works_and_build_says_what_is_missing():
    program = ("import sys; sys.modules['llvmlite'] = None\n"
               "import tedsl; from tedsl import te\n"
               "A = te.placeholder((4,), name='A'); B = te.compute((4,), lambda i: A[i] + 1, name='B')\n"
               "s = te.create_schedule(B.op); print(tedsl.lower(s, [A, B]))\n"
               "try: tedsl.build(s, [A, B], target=sys.argv[1] or None)\n"
               "except tedsl.TedslError as e: print(e)\n")
    for target in ("", "llvm -mcpu=haswell"):
        done = subprocess.run([sys.executable, "-c", program, target], cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert "primfn" in done.stdout and "llvmlite, which is missing" in done.stdout, done.stderr
        assert "pip install llvmlite" in done.stdout
