"""Vectorized reduction loops: the lanes of a vector are combined before they reach the element that all of them write."""

import shutil

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import DTypeError, ScheduleError
from tedsl.ir.evaluate import run
from tests.refusing import refused

FORMS = {"sum": (te.sum, np.sum), "prod": (tir.prod, np.prod), "max": (te.max, np.max),
         "min": (te.min, np.min)}
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
TARGETS = ["llvm", "llvm -mcpu=x86-64", "llvm -mcpu=haswell", "c", "c -vectors=gcc"]
SIZES = [(64, 16), (50, 16), (7, 7), (48, 12), (3, 16), (5, 2), (130, 100), (1, 4)]  # elements of a row, lanes


def rows(form, dtype, length, lanes, count=3):
    """A reduction of each of some rows, whose loop over so many elements is vectorized, and its arguments."""
    A, k = te.placeholder((count, length), dtype, name="A"), te.reduce_axis((0, length), name="k")
    B = te.compute((count,), lambda i: FORMS[form][0](A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, lane = s[B].split(k, factor=lanes)
    s[B].vectorize(lane)
    return s, [A, B]


def drawn(shape, dtype):
    values = np.random.default_rng(1).integers(-3, 4, shape)
    return tedsl.nd.array((values if dtype[0] != "u" else values + 3).astype("float32"), dtype=dtype) if dtype == "bfloat16" \
        else (values if dtype[0] != "u" else values + 3).astype(dtype)


def expected(form, data):
    with np.errstate(over="ignore"):
        return FORMS[form][1](data, axis=1, **({"dtype": data.dtype} if form in ("sum", "prod") else {}))


@pytest.mark.parametrize("form", FORMS)
def test_a_vector_is_combined_with_the_element(form, golden):
    s, args = rows(form, "float32", 16, 8)
    golden(str(tedsl.lower(s, args, simple_mode=True)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_results_are_those_of_numpy(form, target):
    if target.startswith("c") and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    for dtype in DTYPES:
        if dtype == "bfloat16":
            continue
        names = {f"rows_{length}_{lanes}": (length, lanes) for length, lanes in SIZES}
        loops = [tedsl.lower(*rows(form, dtype, *size), name=name) for name, size in names.items()]
        kernels = tedsl.build(loops, target=target)  # one call of the compiler
        for name, (length, lanes) in names.items():
            data = drawn((3, length), dtype)
            result = np.zeros(3, dtype)
            kernels[name](data, result)
            with np.errstate(all="ignore"):
                assert np.array_equal(result, expected(form, data)), (dtype, length, lanes)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_the_interpreter_gives_the_same(form, dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes") if dtype == "bfloat16" else None
    kind = ml_dtypes.bfloat16 if ml_dtypes else dtype
    for length, lanes in SIZES[:5]:
        s, args = rows(form, dtype, length, lanes)
        data = (np.random.default_rng(1).integers(0, 4, (3, length)) / 2).astype(kind)
        built, interpreted = np.zeros(3, kind), np.zeros(3, kind)
        tedsl.build(s, args)(data, built)
        run(tedsl.lower(s, args)["main"], [data, interpreted])
        assert np.array_equal(built, interpreted), (length, lanes)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", ["max", "min"])
@pytest.mark.parametrize("length, lanes", [(64, 16), (50, 32), (200, 128), (9, 9)])
def test_one_nan_is_the_result(form, target, length, lanes):
    if target.startswith("c") and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    f = tedsl.build(*rows(form, "float32", length, lanes), target=target)
    for at in range(0, length, 7):
        data = np.random.default_rng(2).standard_normal((3, length), "float32")
        data[1, at] = np.nan
        data[2, :] = -np.inf if form == "max" else np.inf
        result = np.zeros(3, "float32")
        f(data, result)
        assert np.array_equal(result, FORMS[form][1](data, axis=1), equal_nan=True), at


def test_a_condition_and_a_loop_inside():
    A, k = te.placeholder((20, 6), name="A"), te.reduce_axis((0, 20), name="k")
    B = te.compute((6,), lambda j: te.sum(A[k, j], axis=k, where=A[k, j] > 0), name="B")
    s = te.create_schedule(B.op)
    _, lane = s[B].split(k, factor=8)
    s[B].reorder(lane, B.op.axis[0])
    s[B].vectorize(lane)
    assert "tir.sum_lanes" in str(tedsl.lower(s, [A, B]))
    data = np.random.default_rng(3).standard_normal((20, 6), "float32")
    result = np.zeros(6, "float32")
    tedsl.build(s, [A, B])(data, result)
    np.testing.assert_allclose(result, np.where(data > 0, data, 0).sum(0), rtol=1e-5)


def test_terms_that_are_alike_count_once_for_each_lane():
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((3,), lambda i: te.sum(te.const(0.5), axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(k)
    result = np.zeros(3, "float32")
    tedsl.build(s, [B])(result)
    assert result.tolist() == [4.0] * 3


def test_symbolic_rows():
    n = te.var("n")
    A, k = te.placeholder((3, n), name="A"), te.reduce_axis((0, n), name="k")
    B = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, lane = s[B].split(k, factor=8)
    s[B].vectorize(lane)
    f = tedsl.build(s, [A, B])
    for length in (0, 1, 7, 8, 9, 50):
        data, result = np.arange(3 * length, dtype="float32").reshape(3, length), np.ones(3, "float32")
        f(data, result)
        assert result.tolist() == data.sum(1).tolist()


def test_partial_results_in_lanes_are_combined():
    A, k = te.placeholder((3, 100), name="A"), te.reduce_axis((0, 100), name="k")
    B = te.compute((3,), lambda i: te.max(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, lane = s[B].split(k, factor=16)
    P = s.rfactor(B, lane, 1)
    s[P].compute_at(s[B], s[B].op.axis[0])
    s[P].reorder(*s[P].op.reduce_axis, s[P].op.axis[1])
    s[P].vectorize(s[P].op.axis[1])
    s[B].vectorize(s[B].op.reduce_axis[0])
    assert "max_lanes((float32x16*)B.rf" in str(tedsl.lower(s, [A, B], simple_mode=True))
    data, result = np.random.default_rng(4).standard_normal((3, 100), "float32"), np.zeros(3, "float32")
    tedsl.build(s, [A, B])(data, result)
    assert np.array_equal(result, data.max(1))


@pytest.mark.parametrize("length", [32, 29])
@pytest.mark.parametrize("form", FORMS)
def test_stages_computed_in_the_loop_have_an_element_for_each_lane(form, length):
    A, k, r = te.placeholder((3, 32, 5), name="A"), te.reduce_axis((0, length), name="k"), te.reduce_axis((0, 5), name="r")
    M = te.compute((3, 32), lambda i, j: te.max(A[i, j, r], axis=r), name="M")
    T = te.compute((3, 32), lambda i, j: te.if_then_else(j % 3 == 1, M[i, j] * 2.0, M[i, j]), name="T")
    B = te.compute((3,), lambda i: FORMS[form][0](T[i, k], axis=k, where=T[i, k] != 4.0), name="B")
    s = te.create_schedule(B.op)
    _, lane = s[B].split(k, factor=8)
    s[B].vectorize(lane)
    s[T].compute_at(s[B], lane)
    s[M].compute_at(s[B], lane)
    func = tedsl.lower(s, [A, B])["main"]
    assert f"tir.{form}_lanes" in func.script() and "k_inner" not in func.script()
    data = np.random.default_rng(4).choice(np.array([0.5, 1.0, 2.0], "float32"), (3, 32, 5))
    built, interpreted = np.zeros(3, "float32"), np.zeros(3, "float32")
    tedsl.build(s, [A, B])(data, built)
    run(func, [data, interpreted])
    terms = data.max(2)[:, :length] * np.where(np.arange(length) % 3 == 1, 2, 1).astype("float32")
    neutral = {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf}[form]
    assert np.array_equal(built, FORMS[form][1](np.where(terms != 4, terms, neutral), axis=1))
    assert np.array_equal(built, interpreted)


def test_without_vectors_the_loop_is_serial():
    s, args = rows("sum", "float32", 20, 8)
    with tedsl.transform.PassContext(config={"tir.disable_vectorize": True}):
        text = str(tedsl.lower(s, args))
    assert "lanes" not in text and "for (k.inner" in text


def test_a_loop_written_by_hand_stays_in_order():
    a = te.placeholder((8,), name="A")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        target[0] = 0.0
        with ib.for_range(0, 8, name="k", kind="vectorize") as k:
            target[0] += source[k]
        return ib.get()

    made = te.extern((1,), [a], body, dtype="float32", name="B")
    text = str(tedsl.lower(te.create_schedule(made.op), [a, made]))
    assert "sum_lanes" not in text and "for (k" in text


def with_a_factor(A, k):
    return te.comm_reducer(lambda x, y: x + y * 2, lambda of: te.const(0, of))(A[k], axis=k)


def of_conditions(A, k):
    return te.comm_reducer(lambda x, y: tir.any(x, y), lambda of: te.const(False, of))(A[k] > 0, axis=k)


@pytest.mark.parametrize("make, words", [(with_a_factor, "sums, products, largest"),
                                         (of_conditions, "lanes of bool are not combined")])
def test_other_reductions_are_refused(make, words):
    A, k = te.placeholder((8,), name="A"), te.reduce_axis((0, 8), name="k")
    B = te.compute((1,), lambda i: make(A, k), name="B")
    s = te.create_schedule(B.op)
    refused(lambda: s[B].vectorize(k), "vectorize(k) on stage B: k is a reduction loop", words, "s.rfactor(B, k)",
            error=ScheduleError)


def test_values_that_belong_together_are_refused():
    A, k = te.placeholder((8,), name="A"), te.reduce_axis((0, 8), name="k")
    pair = te.comm_reducer(lambda x, y: (tir.Select(x[1] > y[1], x[0], y[0]), te.max(x[1], y[1])),
                           lambda t, u: (te.const(-1, t), te.min_value(u)))
    B, _ = te.compute((1,), lambda i: pair((k, A[k]), axis=k), name="B")
    s = te.create_schedule(B.op)
    refused(lambda: s[B].vectorize(k), "lanes of 2 values that belong together are not combined", error=ScheduleError)


V = te.var("v", "int32x4")


@pytest.mark.parametrize("dtype, value", [("int64", V), ("int32x4", V), ("int32", te.var("s", "int32")),
                                          ("bool", te.var("b", "boolx4"))])
def test_calls_of_other_dtypes_are_refused(dtype, value):
    with pytest.raises(DTypeError, match="it takes a vector of numbers, and gives one of their dtype"):
        tir.call_intrin(dtype, "tir.sum_lanes", value)


def test_the_text_of_a_program_holds_it():
    text = tedsl.lower(*rows("min", "int32", 32, 16))["main"].script()
    assert 'T.call_intrin("int32", "tir.min_lanes"' in text
