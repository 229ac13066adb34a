"""tedsl.why_slow: the first line of its report names the mistake that was planted; what it counts; what it refuses."""

import functools

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.bottlenecks import Report
from tedsl.errors import ArgumentError, ArgumentTypeError, ModuleError
from tedsl.graph.network.limits import Limits
from tests.bottlenecks import schedules
from tests.bottlenecks.schedules import BAD, GOOD, LANES, copied, product, tiled

# What a machine does in a second: the same for all runs of the tests. Memory is slow, so that what comes from there is a good
# part of the time also where other programs slow what is measured.
LIMITS = Limits(5e11, ((1 << 22, 4e11), (1 << 24, 5e10), (1 << 26, 1.5e10)))
FIRST_WORDS = {"gather": ("gather", "scatter"), "blocking": ("no blocking",), "guard": ("guard in the inner loop",),
               "chunks": ("small parallel chunks",), "packing": ("nothing is packed",), "spills": ("too many accumulators",),
               "order": ("wrong loop order",), "scalar": ("scalar innermost loop",), "unrolled": ("unrolled too far",),
               "recomputed": ("recomputed",), "false sharing": ("false sharing",), "serial": ("idle threads: one",),
               "uneven": ("idle threads",), "narrow": ("narrow vectors",), "chains": ("too few accumulators",),
               "intermediate": ("through memory",)}
X86 = pytest.mark.skipif(tedsl.Target("llvm").arch != "x86-64", reason="machine code is read on x86-64")


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr("tedsl.bottlenecks.diagnosis.current_limits", lambda target: LIMITS)
    before = tedsl.get_num_threads()
    tedsl.set_num_threads(2)
    yield
    tedsl.set_num_threads(before)


def arrays_of(args):
    rng = np.random.default_rng(0)
    return [rng.random([int(extent) for extent in arg.shape], dtype="float32").astype(arg.dtype) for arg in args]


def looked_at(s, args):
    """On the caches of one machine, whatever this one is: where its last cache is as far as memory, other causes come first."""
    return tedsl.why_slow(tedsl.build(s, args, "llvm -mcpu=native -model=znver5"), *arrays_of(args))


def by_name(report):
    return {stage.name: stage for stage in report.stages}


@X86
@pytest.mark.sampled(2)
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
def test_the_first_line_names_the_planted_cause(bad):
    kind, s, args = bad()
    report = looked_at(s, args)
    assert report.causes[0].kind == kind, report
    stage, _, words = str(report).splitlines()[0].partition(": ")
    assert words.startswith(FIRST_WORDS[kind]) and stage in by_name(report)


@X86
@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.__name__)
def test_good_schedules_are_said_to_be_good(good):
    report = looked_at(*good())
    assert str(report).startswith("nothing stands out: default_function reaches ")


def test_there_are_twenty_mistakes():
    assert len(BAD) == 20


def inlined(function):
    """W[i, j] = function(V[j]) * X[i, j], whose function is computed anew for each row."""
    V, X = te.placeholder((512,), name="V"), te.placeholder((512, 512), name="X")
    E = te.compute((512,), lambda i: function(V[i]), name="E")
    W = te.compute((512, 512), lambda i, j: E[j] * X[i, j], name="W")
    s = te.create_schedule(W.op)
    s[E].compute_inline()
    s[W].vectorize(s[W].split(W.op.axis[1], 16)[1])
    return s, [V, X, W]


def blurred(inline, width=1024, function=te.tanh):
    """Q[i, j], the sum of a function of three rows, which is computed anew for each of the rows that need it."""
    image = te.placeholder((1026, width), name="I")
    P = te.compute((1026, width), lambda i, j: function(image[i, j]), name="P")
    Q = te.compute((1024, width), lambda i, j: P[i, j] + P[i + 1, j] + P[i + 2, j], name="Q")
    s = te.create_schedule(Q.op)
    s[Q].vectorize(s[Q].split(Q.op.axis[1], 16)[1])
    if inline:
        s[P].compute_inline()
    else:
        s[P].compute_at(s[Q], Q.op.axis[0])
        s[P].vectorize(s[P].split(P.op.axis[1], 16)[1])
    return s, [image, Q]


@pytest.mark.parametrize("made, words", [
    (lambda: inlined(te.erf), "W: recomputed: each value of erf(V) is computed 512 times: in each iteration of i"),
    (lambda: inlined(lambda one: te.power(one, 1.7)), "W: recomputed: each value of pow(V) is computed 512 times"),
    (lambda: blurred(True), "Q: recomputed: each value of tanh(I) is computed 3.0 times, for each element that needs it"),
    (lambda: blurred(False), "P: recomputed: each value is computed 3.0 times, as its stage is at loop i"),
], ids=["erf", "power", "blur inlined", "blur of rows"])
def test_functions_that_are_computed_again_are_named(made, words):
    tedsl.set_num_threads(1)  # none of these loops is parallel
    report = looked_at(*made())
    assert report.causes[0].kind == "recomputed" and str(report).startswith(words), report


def long_arithmetic(value, terms=30):
    return functools.reduce(lambda total, k: total * 0.9 + 0.5 / k, range(1, terms), value)


def product_of_arithmetic():
    """A product whose operand is computed anew for each tile of columns, as single elements that vectors repeat."""
    A, B = te.placeholder((256, 256), name="A"), te.placeholder((256, 256), name="B")
    P = te.compute((256, 256), lambda i, j: long_arithmetic(A[i, j]), name="P")
    k = te.reduce_axis((0, 256), name="k")
    C = te.compute((256, 256), lambda i, j: te.sum(P[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    jo, ji = s[C].split(j, 32)
    s[C].reorder(i, jo, k, ji)
    s[C].vectorize(ji)
    s[P].compute_inline()
    return s, [A, B, C]


@pytest.mark.parametrize("made, words", [
    (lambda: inlined(long_arithmetic), "W: recomputed: each value of 58 operations on V is computed 512 times: in each"),
    (lambda: blurred(True, 256, long_arithmetic), "Q: recomputed: each value of 58 operations on I is computed 3.0 times"),
    (lambda: blurred(False, 256, long_arithmetic), "P: recomputed: each value is computed 3.0 times, as its stage is at loop"),
    (product_of_arithmetic, "C: recomputed: each value of 58 operations on A is computed 8.0 times: in each"),
], ids=["inlined", "blur inlined", "blur of rows", "operand"])
def test_arithmetic_that_is_computed_again_is_named(made, words):
    """Only functions such as erf were: "nothing stands out" was said of these, or what loses less."""
    tedsl.set_num_threads(1)
    report = looked_at(*made())
    assert report.causes[0].kind == "recomputed" and str(report).replace("\n  ", " ").startswith(words), report


def test_arithmetic_that_is_computed_once_is_not():
    A, D = te.placeholder((64, 64), name="A"), te.placeholder((64,), name="D")
    for formula in (lambda i, j: long_arithmetic(A[i, j]) * long_arithmetic(A[i, j], 20) + D[i] * D[j],
                    lambda i, j: long_arithmetic(D[i] + D[j]), lambda i, j: long_arithmetic(A[j, i]) + A[0, 0] * 2.0 + 1.0):
        B = te.compute((64, 64), formula, name="B")
        assert not by_name(looked_at(te.create_schedule(B.op), [A, D, B]))["B"].again


def test_functions_that_are_computed_once_are_not():
    X = te.placeholder((256, 256), name="X")
    B = te.compute((256, 256), lambda i, j: te.exp(X[i, j]) + te.exp(X[i, j]) * te.tanh(X[0, 0]), name="B")
    assert not by_name(looked_at(te.create_schedule(B.op), [X, B]))["B"].again


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_limit_knows_what_functions_cost(dtype):
    X = te.placeholder((64, 1024), dtype, name="X")
    B = te.compute((64, 1024), lambda i, j: te.exp(X[i, j]), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(s[B].split(B.op.axis[1], tedsl.Target("llvm").vector_lanes(dtype))[1])
    s[B].parallel(B.op.axis[0])
    stage = by_name(looked_at(s, [X, B]))["B"]
    assert stage.least > 3 * stage.operations * (2 if dtype == "float64" else 1) / LIMITS.operations, "more than one operation"


def test_what_stays_unexplained_is_said():
    stage = by_name(looked_at(*GOOD[0]()))
    report = Report("f", 10.0 * sum(one.least for one in stage.values()), (), tuple(stage.values()), 1)
    assert str(report).startswith("nothing stands out: f reaches 10 % of the limit of the machine, and no rule knows what")


def rows_unrolled():
    """No loop but short ones is left, each with code of its own."""
    s, A, B = copied((1024, 4 * LANES))
    i, j = s[B].op.axis
    s[B].vectorize(s[B].split(j, LANES)[1])
    s[B].unroll(i)
    return s, [A, B]


def elements_unrolled():
    """A loop that LLVM makes vectors of where it is not unrolled."""
    s, A, B = copied((64, 8192))
    i, j = s[B].op.axis
    s[B].unroll(s[B].split(j, 2048)[1])
    return s, [A, B]


@X86
@pytest.mark.whole
@pytest.mark.parametrize("made, where", [
    (rows_unrolled, "of 1024 copies of short loops"), (elements_unrolled, "in the inner loop")])
def test_code_that_unrolling_makes_long_is_named(made, where):
    """Nothing stood out of the one; the other had a scalar innermost loop."""
    tedsl.set_num_threads(1)
    report = looked_at(*made())
    first = str(report).splitlines()[0]
    assert first.startswith("B: unrolled too far: ") and f" instructions {where}" in first, report


@X86
@pytest.mark.parametrize("terms", [8, 256])
def test_additions_of_an_unrolled_loop_to_one_element_are_one_sum(terms):
    s, A, B, C, k = product()
    i, j = C.op.axis
    jo, ji = s[C].split(j, LANES)
    ko, ki = s[C].split(k, terms)
    s[C].reorder(i, jo, ko, ki, ji)
    s[C].unroll(ki)
    s[C].vectorize(ji)
    s[C].parallel(i)
    report = looked_at(s, [A, B, C])
    assert report.causes[0].text.startswith("too few accumulators: 1 sum at a time"), report


@X86
def test_an_operand_that_is_not_packed_is_gathered_and_no_matter_of_blocks():
    n = 512
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    tiled(s, C, k, 8, 16)
    report = looked_at(s, [A, B, C])
    assert report.causes[0].kind == "gather" and all("come from" not in cause.text for cause in report.causes), report


def test_operations_and_bytes_of_a_product():
    s, A, B, C, k = product(64)
    tiled(s, C, k)
    stage = by_name(looked_at(s, [A, B, C]))["C"]
    assert stage.operations == 2 * 64 ** 3
    assert stage.traffic["RAM"] == stage.traffic["L3"] == 3 * 64 * 64 * 4  # all of it fits the second cache


def test_the_time_of_stages_is_that_of_the_call():
    A = te.placeholder((256, 256), name="A")
    P = te.compute((256, 256), lambda i, j: te.exp(te.sin(A[i, j])), name="P")
    B = te.compute((256, 256), lambda i, j: P[i, j] + P[i, 255 - j], name="B")
    report = looked_at(te.create_schedule(B.op), [A, B])
    assert sum(stage.seconds for stage in report.stages) == pytest.approx(report.seconds, rel=0.2)
    assert by_name(report)["P"].seconds > by_name(report)["B"].seconds


def test_stages_in_a_parallel_loop_are_told_apart():
    A = te.placeholder((64, 4096), name="A")
    P = te.compute((64, 4096), lambda i, j: te.exp(te.sin(A[i, j])), name="P")
    B = te.compute((64, 4096), lambda i, j: P[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[P].compute_at(s[B], B.op.axis[0])
    s[B].parallel(B.op.axis[0])
    stages = by_name(looked_at(s, [A, B]))
    assert stages["P"].seconds > stages["B"].seconds > 0
    assert 0 < stages["B"].busy <= 1


@pytest.mark.parametrize("n", [0, 1, 17, 100])
def test_symbolic_sizes_are_those_of_the_arrays(n):
    size = te.var("n")
    A = te.placeholder((size,), name="A")
    B = te.compute((size,), lambda i: A[i] + 1.0, name="B")
    module = tedsl.build(te.create_schedule(B.op), [A, B])
    a, b = np.ones(n, "float32"), np.zeros(n, "float32")
    stage = by_name(tedsl.why_slow(module, a, b))["B"]
    assert stage.operations == max(n, 1)
    assert (b == 2).all()


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int64", "bool"])
def test_all_dtypes(dtype):
    A = te.placeholder((33, 7), dtype, name="A")
    B = te.compute((33, 7), lambda i, j: te.max(A[i, j], A[i, j]) if dtype == "bool" else A[i, j] + A[i, j], name="B") \
        if dtype != "bool" else te.compute((33, 7), lambda i, j: A[i, j], name="B")
    assert by_name(looked_at(te.create_schedule(B.op), [A, B]))["B"].seconds > 0


def test_conditions_count_the_iterations_in_which_they_hold():
    A = te.placeholder((64,), name="A")
    B = te.compute((100,), lambda i: te.if_then_else(i < 64, A[te.min(i, 63)], 0.0), name="B")
    report = looked_at(te.create_schedule(B.op), [A, B])
    assert sum(nest.times for stage in report.stages for nest in stage.nests) == 100


@X86
def test_loads_for_each_product_are_counted():
    _, s, args = schedules.no_blocking()
    texts = [cause.text for cause in looked_at(s, args).causes]
    assert any(text.startswith("no blocking in registers: 2 loads and 1 stores for 1 multiply-adds") for text in texts)


@X86
def test_conditions_in_vectors_are_seen():
    A = te.placeholder((64, 256), name="A")
    B = te.compute((64, 256), lambda i, j: te.if_then_else((i + j) % 3 == 0, A[i, j], 1.0), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(s[B].split(B.op.axis[1], 16)[1])
    report = looked_at(s, [A, B])
    assert "guard" in [cause.kind for cause in report.causes] and by_name(report)["B"].guards > 0


@pytest.mark.parametrize("outs", [
    lambda A: topi.nn.softmax(A), lambda A: topi.sort(A), lambda A: topi.cumsum(A, axis=1), lambda A: topi.sum(A, axis=0),
    lambda A: topi.argmax(A, axis=1), lambda A: topi.take(A, topi.full((5,), "int32", 3), axis=0),
    lambda A: topi.nn.conv2d(topi.reshape(A, (1, 4, 10, 12)), topi.full((4, 4, 3, 3), "float32", 1.0), 1, 1, 1)])
def test_any_operator_has_a_report(outs):
    A = te.placeholder((20, 24), name="A")
    args = [A, outs(A)]
    for s in (topi.schedules.schedule(args[-1]), te.create_schedule(args[-1].op)):
        report = looked_at(s, args)
        assert report.stages and all(np.isfinite(stage.seconds) for stage in report.stages) and str(report)


def test_reports_are_tables_and_pages():
    s, A, B = copied((16, 16))
    report = looked_at(s, [A, B])
    lines = str(report).splitlines()
    assert repr(report) == str(report)
    assert any(line.startswith("stage") and "MB L2" in line for line in lines)
    assert "<table>" in report._repr_html_() and "B" in report._repr_html_()


def test_a_kernel_without_loops():
    A = te.placeholder((), name="A")
    B = te.compute((), lambda: A() + 1.0, name="B")
    assert by_name(looked_at(te.create_schedule(B.op), [A, B]))["B"].operations == 1


def test_what_is_no_module_of_this_machine_is_refused(tmp_path):
    s, A, B = copied((8, 8))
    with pytest.raises(ArgumentTypeError, match="a module that build has made"):
        tedsl.why_slow(s, np.zeros((8, 8), "float32"))
    with pytest.raises(ArgumentError, match="machine code that runs here"):
        tedsl.why_slow(tedsl.build(s, [A, B], target="c"))
    with pytest.raises(ArgumentError, match="takes 2 arguments"):
        tedsl.why_slow(tedsl.build(s, [A, B]), np.zeros((8, 8), "float32"))
    tedsl.build(s, [A, B]).export_library(str(tmp_path / "copied.tedsl"))
    with pytest.raises(ModuleError, match="loops"):
        tedsl.why_slow(tedsl.runtime.load_module(str(tmp_path / "copied.tedsl")), *arrays_of([A, B]))


def test_modules_from_the_cache_know_their_loops(tmp_path, monkeypatch):
    monkeypatch.setenv("TEDSL_CACHE_DIR", str(tmp_path))
    s, A, B = copied((8, 8))
    first, again = tedsl.build(s, [A, B]), tedsl.build(s, [A, B])
    assert [str(func) for func in again.compiled_loops()] == [str(func) for func in first.compiled_loops()]


def row_sums(lanes):
    A, k = te.placeholder((64, 4096), name="A"), te.reduce_axis((0, 4096), name="k")
    B = te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    if lanes > 1:
        s[B].vectorize(s[B].split(k, lanes)[1])
    return s, [A, B]


@X86
def test_rows_that_are_added_up_are_advised_to_have_lanes():
    cause = looked_at(*row_sums(1)).causes[0]
    assert cause.kind == "scalar" and f"split k by {LANES} and vectorize the inner part" in cause.remedy
    s, A, B, C, _ = product()
    assert "lanes are combined" not in looked_at(s, [A, B, C]).causes[0].remedy  # elements of a column stand apart


@X86
def test_lanes_that_are_combined_count_each_and_are_not_called_narrow():
    report = looked_at(*row_sums(LANES))
    assert by_name(report)["B"].operations == 64 * 4096
    assert "narrow" not in {cause.kind for cause in report.causes}
    chains = next(cause for cause in report.causes if cause.kind == "chains")
    assert "1 sum at a time, which waits" in chains.text and "rfactor of the vectorized loop" in chains.remedy
