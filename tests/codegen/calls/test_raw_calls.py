"""`tir.call_extern` of a function of the same module: values, failures, what is refused before there is code."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, LoweringError
from tests.codegen.calls.modules import both, written
from tests.refusing import refused

n, m, k = te.var("n"), te.var("m"), te.var("k")
A, X = tir.decl_buffer((m,), "float32", "A"), tir.decl_buffer((n,), "float32", "X")


def doubled(ib, x):
    """Doubles the elements of X, of which X[k] is looked at, and returns their sum."""
    total = ib.allocate("float32", (1,), "total", scope="local")
    total[0] = 0.0
    with ib.for_range(0, n, "i") as i:
        x[i] = x[i] * 2.0
        total[0] = total[0] + x[i]
    x[k] = x[k]
    ib.emit(tir.ret(total[0]))


DOUBLED = written("doubled", doubled, X, scalars=(k,))


def test_memory_is_shared_and_a_number_comes_back():
    def f(ib, a):
        a[0] = tir.call_extern("float32", "doubled", A.access_ptr("rw", offset=1), m - 1, 0) + 0.5
        ib.emit(tir.call_extern("int32", "doubled", A.access_ptr("rw"), m, 1))  # as a statement: the value is not looked at
        ib.emit(tir.ret(a[0]))
    answer, a = both([written("f", f, A), DOUBLED], np.array([1, 2, 3], "float32"))
    assert a.tolist() == [21, 8, 12] and answer == 21.0


@pytest.mark.parametrize("dtype, value", [("int8", -5), ("uint64", 2**63 + 1), ("bool", True), ("float16", 1.5),
                                          ("bfloat16", -2.0), ("float64", 0.1)])
def test_numbers_of_every_dtype_go_in_and_come_back(dtype, value):
    x, y = te.var("x", dtype), te.var("y", dtype)
    inner = written("inner", lambda ib: ib.emit(tir.ret(x)), scalars=(x,))
    outer = written("outer", lambda ib: ib.emit(tir.ret(tir.call_extern(dtype, "inner", y))), scalars=(y,))
    assert both([outer, inner], value) == (value,)


def test_a_function_that_returns_nothing_is_zero():
    fill = written("fill", lambda ib, x: x.__setitem__(0, 7.0), X)
    f = written("f", lambda ib, a: ib.emit(tir.ret(tir.call_extern("int32", "fill", A.access_ptr("w"), m) + 1)), A)
    assert both([f, fill], np.zeros(2, "float32"))[0] == 1


def test_a_failed_assertion_is_the_callers_with_the_words_of_the_function():
    f = written("f", lambda ib, a: ib.emit(tir.call_extern("float32", "doubled", A.access_ptr("rw"), m, 12)), A)
    g = written("g", lambda ib, a: (ib.emit(tir.call_extern("int32", "f", A.access_ptr("rw"), m)), a.__setitem__(7, 1.0)), A)
    module = tedsl.build([g, f, DOUBLED])
    x = np.ones(8, "float32")
    words = "the store to X[k] leaves its memory: X has the indices 0 to n - 1 and the index is k"
    refused(lambda: module["g"](x), f"g: in doubled: {words}", error=ArgumentError)
    refused(lambda: module["f"](x), f"f: in doubled: {words}", error=ArgumentError)
    refused(lambda: module["doubled"](x, 12), f"doubled: {words}", error=ArgumentError)
    refused(lambda: module["g"](np.ones(7, "float32")), "g: the store to A[7] leaves its memory", error=ArgumentError)


def test_memory_that_cannot_be_had_is_the_callers_failure():
    def large(ib, x):
        t = ib.allocate("float32", (n.astype("int64") << 40,), "t")
        t[0] = 1.0
        x[0] = t[0]
    f = written("f", lambda ib, a: ib.emit(tir.call_extern("int32", "large", A.access_ptr("w"), m)), A)
    with pytest.raises(MemoryError, match="f: a temporary buffer could not be allocated"):
        tedsl.build([f, written("large", large, X)])(np.zeros(1 << 20, "float32"))


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_an_exception_of_a_python_function_passes_through_both(kind):
    def checks(value):
        if value > 2:
            raise KeyError(f"{value} is too large")
        return value
    tedsl.register_func("test.checks", checks, override=True)
    looked_at = lambda x: tir.call_intrin("float32", "tir.call_packed", "test.checks", x)
    inner = written("inner", lambda ib, x: x.__setitem__(0, looked_at(x[0])), X)

    def f(ib, a):
        with ib.for_range(0, m, "i", kind=kind) as i:
            ib.emit(tir.call_extern("int32", "inner", A.access_ptr("rw", offset=i), 1))
    module = tedsl.build([written("f", f, A), inner])
    module["f"](np.arange(3, dtype="float32"))
    for _ in range(20):
        with pytest.raises(KeyError, match=r"[345]\.0 is too large"):
            module["f"](np.arange(6, dtype="float32"))
    with pytest.raises(KeyError, match=r"9\.0 is too large"):
        module["inner"](np.full(1, 9, "float32"))
    with pytest.raises(KeyError, match=r"9\.0 is too large"):
        tedsl.build(inner)(np.full(1, 9, "float32"))


def test_parallel_loops_call_functions_with_parallel_loops():
    square = tir.decl_buffer((8, 64), "float32", "S")
    row = tir.decl_buffer((64,), "float32", "R")

    def filled(ib, r):
        with ib.for_range(0, 64, "j", kind="parallel") as j:
            r[j] = (k * 64 + j).astype("float32")

    def f(ib, s):
        with ib.for_range(0, 8, "i", kind="parallel") as i:
            ib.emit(tir.call_extern("int32", "filled", square.access_ptr("w", offset=i * 64), i))
    _, s = both([written("f", f, square), written("filled", filled, row, scalars=(k,))], np.zeros((8, 64), "float32"))
    np.testing.assert_array_equal(s.ravel(), np.arange(512))


def test_a_pure_call_in_a_vectorized_loop_is_made_lane_by_lane():
    x = te.var("x", "float32")
    cube = written("cube", lambda ib: ib.emit(tir.ret(x * x * x)), scalars=(x,))
    eight = tir.decl_buffer((8,), "float32", "E")

    def f(ib, e):
        with ib.for_range(0, 8, "i", kind="vectorize") as i:
            e[i] = tir.call_pure_extern("float32", "cube", e[i])
    _, e = both([written("f", f, eight), cube], np.arange(8, dtype="float32"))
    np.testing.assert_array_equal(e, np.arange(8, dtype="float32") ** 3)


ROOT_OF = te.var("x", "float32")


def root(ib):
    """The square root of x, which is asserted to be at least 0."""
    ib.emit(lambda body: tir.AssertStmt(ROOT_OF >= 0.0, tir.StringImm("x is at least 0"), body))
    ib.emit(tir.ret(te.sqrt(ROOT_OF)))


@pytest.mark.parametrize("value", [lambda e, i: e[i], lambda e, i: e[0]])
def test_a_call_of_a_side_that_no_lane_takes_is_not_made(value):
    eight = tir.decl_buffer((8,), "float32", "E")

    def f(ib, e):
        with ib.for_range(0, 8, "i", kind="vectorize") as i:
            e[i] = tir.if_then_else(e[i] >= 0.0, tir.call_pure_extern("float32", "root", value(e, i)), 0.0)
    functions = [written("f", f, eight), written("root", root, scalars=(ROOT_OF,))]
    both(functions, np.full(8, -1, "float32"))
    both(functions, np.arange(8, dtype="float32"))


def test_lanes_that_a_condition_selects_make_no_call():
    eight = tir.decl_buffer((8,), "float32", "E")
    lanes = tir.Ramp(tir.const(0), tir.const(1), 8)
    loaded = tir.Load("float32x8", eight.data, lanes)
    called = tir.call_pure_extern("float32x8", "root", loaded)
    chosen = tir.Call("float32x8", "tir.if_then_else", [loaded > tir.Broadcast(tir.const(1.0), 8), called, loaded])
    f = written("f", lambda ib, e: ib.emit(tir.Store(eight.data, chosen, lanes)), eight)
    refused(lambda: tedsl.build([f, written("root", root, scalars=(ROOT_OF,))]),
            "f calls root on the lanes that a vector of conditions selects", "hint: write the condition and the call",
            error=LoweringError)


def test_a_schedule_computes_by_a_function_beside_it():
    P = te.placeholder((21,), name="P")
    Q = te.compute((21,), lambda i: te.if_then_else(P[i] > 0.0, tir.call_pure_extern("float32", "root", P[i]), P[i]), name="Q")
    s = te.create_schedule(Q.op)
    outer, inner = s[Q].split(Q.op.axis[0], factor=8)
    s[Q].vectorize(inner)
    s[Q].parallel(outer)
    p, q = np.arange(-10, 11, dtype="float32"), np.zeros(21, "float32")
    tedsl.build([tedsl.lower(s, [P, Q]), written("root", root, scalars=(ROOT_OF,))])(p, q)
    np.testing.assert_array_equal(q, np.where(p > 0, np.sqrt(np.abs(p)), p))


def test_a_failed_assertion_in_a_parallel_loop_is_the_callers():
    def f(ib, a):
        with ib.for_range(0, m, "i", kind="parallel") as i:
            a[i] = tir.call_extern("float32", "root", a[i])
    module = tedsl.build([written("f", f, A), written("root", root, scalars=(ROOT_OF,))])
    for _ in range(5):
        refused(lambda: module["f"](np.arange(64, -64, -1).astype("float32")), "f: in root: x is at least 0",
                error=ArgumentError)


def test_a_function_of_the_module_goes_before_one_of_c():
    v = te.var("v", "float32")
    cbrtf = written("cbrtf", lambda ib: ib.emit(tir.ret(v + 1.0)), scalars=(v,))
    f = written("f", lambda ib, a: a.__setitem__(0, tir.call_pure_extern("float32", "cbrtf", a[0])), A)
    assert both([f, cbrtf], np.array([8], "float32"), targets=["llvm"])[1][0] == 9
    refused(lambda: tedsl.build([f, cbrtf], target="c"), "a function in C cannot be named 'cbrtf'", error=ArgumentError)
    assert tedsl.build(f).get_source().count("cbrtf") > 0  # alone, it calls the function of C


def test_a_function_that_has_the_name_of_what_it_wraps_calls_that():
    """It was a call of itself, which is refused."""
    v = te.var("v", "float32")
    cbrtf = written("cbrtf", lambda ib: ib.emit(tir.ret(tir.call_extern("float32", "cbrtf", v) + 1.0)), scalars=(v,))
    f = written("f", lambda ib, a: a.__setitem__(0, tir.call_extern("float32", "cbrtf", a[0])), A)
    llvm = ["llvm"]  # in C, a function that is called by its own name is the function itself
    assert both([cbrtf], 8.0, targets=llvm) == (3.0,)
    assert both([f, cbrtf], np.array([27], "float32"), targets=llvm)[1][0] == 4
    again = written("again", lambda ib: ib.emit(tir.ret(tir.call_extern("int32", "again", "text"))))
    refused(lambda: tedsl.build(again, target="c"), "again calls a function of its own name, and in C that is itself",
            error=LoweringError)
    tedsl.register_func("test.wraps", lambda x: 2 * x, override=True)
    wraps = written("test.wraps", lambda ib: ib.emit(tir.ret(tir.call_packed("test.wraps", k) + 1)), scalars=(k,))
    g = written("g", lambda ib: ib.emit(tir.ret(tir.call_packed("test.wraps", k) + 1)), scalars=(k,))
    assert both([wraps], 5, targets=llvm) == (11,) and both([g, wraps], 5, targets=llvm) == (12,)


def test_a_module_from_a_file_calls_too(tmp_path):
    call = tir.call_extern("float32", "doubled", A.access_ptr("rw"), m, k)
    f = written("f", lambda ib, a: ib.emit(tir.ret(call)), A, scalars=(k,))
    tedsl.build([f, DOUBLED]).save(str(tmp_path / "f.tedsl"))
    loaded = tedsl.runtime.load_module(str(tmp_path / "f.tedsl"))
    assert loaded["f"](np.ones(3, "float32"), 0) == 6.0
    refused(lambda: loaded["f"](np.ones(3, "float32"), 3), "f: in doubled: the store to X[k] leaves", error=ArgumentError)


# --- refused before there is code --------------------------------------------------------------------------------------

def building(call, *others, inner=DOUBLED):
    return lambda: tedsl.build([written("f", lambda ib, a: ib.emit(call), A), inner, *others])


RAW = "in its raw form that is\n    doubled(X: float32*, n: int32, k: int32) -> float32"


def test_arguments_that_do_not_fit_are_refused_with_the_raw_signature():
    pointer = A.access_ptr("rw")
    for args, words in [((pointer, m), "f calls doubled with 2 arguments where it takes 3"),
                        ((m, pointer, 1), "f calls doubled with argument 1, m of int32 for the pointer X")]:
        refused(building(tir.call_extern("float32", "doubled", *args)), words, RAW, "hint: pass the data pointers",
                error=LoweringError)
    refused(building(tir.call_extern("float32", "doubled", pointer, m.astype("int64"), 1)),
            "argument 2, int64(m) of int64 for", "which is int32", error=LoweringError)
    whole = tir.decl_buffer((m,), "int32", "I")
    of_whole = written("f", lambda ib, i: ib.emit(tir.call_extern("float32", "doubled", whole.access_ptr("rw"), m, 1)), whole)
    refused(lambda: tedsl.build([of_whole, DOUBLED]), "argument 1, a pointer to int32 for X, which holds float32",
            error=LoweringError)
    refused(building(tir.call_extern("float32", "doubled", A.access_ptr("r"), m, 1)),
            "argument 1, a pointer that is only read for X, which the function writes", error=LoweringError)
    refused(building(tir.call_extern("float32", "doubled", "text", m, 1)), 'for the pointer X', error=LoweringError)


def test_the_dtype_of_the_value_is_that_of_the_function():
    f = written("f", lambda ib, a: a.__setitem__(0, tir.call_extern("int32", "doubled", A.access_ptr("rw"), m, 1)
                                                 .astype("float32")), A)
    refused(lambda: tedsl.build([f, DOUBLED]), "f: doubled returns float32, and the call of it is int32",
            "hint: write tir.call_extern('float32', 'doubled', ...)", error=LoweringError)


def test_one_memory_is_not_given_twice_to_a_function_that_writes_it():
    Y = tir.decl_buffer((n,), "float32", "Y")
    copy = written("copy", lambda ib, x, y: x.__setitem__(0, y[0]), X, Y)
    refused(building(tir.call_extern("int32", "copy", A.access_ptr("w"), A.access_ptr("r"), m), inner=copy),
            "f calls copy with one memory as argument 1, which it writes, and as argument 2", error=LoweringError)


def test_recursion_is_refused_by_name():
    f = written("f", lambda ib: ib.emit(tir.call_extern("int32", "f")))
    refused(lambda: tedsl.build(f), "f calls itself: f → f; functions of a module are not recursive", error=LoweringError)
    g = written("g", lambda ib: ib.emit(tir.call_extern("int32", "h")))
    h = written("h", lambda ib: ib.emit(tir.call_extern("int32", "g")))
    refused(lambda: tedsl.build([g, h]), "g calls itself: g → h → g", "hint: write a loop", error=LoweringError)


def test_a_chain_of_calls_has_a_limit():
    chain = [written(f"f{j}", lambda ib, j=j: ib.emit(tir.call_extern("int32", f"f{j + 1}"))) for j in range(70)]
    last = written("f70", lambda ib: ib.emit(tir.ret(1)))
    refused(lambda: tedsl.build([*chain, last]), "chain of 65 functions that call each other", error=LoweringError)
