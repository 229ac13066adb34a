"""`tir.call_packed` of a function of the same module: arrays bind its shapes, and are checked as in a call from Python."""

import shutil

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, LoweringError
from tests.codegen.c.compilers import needs_cplusplus, read_as_cplusplus
from tests.codegen.calls.modules import both, built, written
from tests.refusing import refused

n, m, k, p, q = (te.var(name) for name in "nmkpq")
A, B = tir.decl_buffer((p,), "float32", "A"), tir.decl_buffer((q,), "float32", "B")
X, Y = tir.decl_buffer((n,), "float32", "X"), tir.decl_buffer((n,), "float32", "Y")


def add(ib, x, y):
    """Y = X + k, and the number of elements."""
    with ib.for_range(0, n, "i") as i:
        y[i] = x[i] + k.astype("float32")
    ib.emit(tir.ret(n))


ADD = written("add", add, X, Y, scalars=(k,))


def calling(*args, buffers=(A, B), scalars=(), result=True):
    """A function that calls `add` with `args` and returns what it returns."""
    call = tir.call_packed("add", *args)
    return written("f", lambda ib, *_: ib.emit(tir.ret(call) if result else call), *buffers, scalars=scalars)


def test_arrays_bind_the_shapes_of_the_function():
    answer, _, b = both([calling(A, B, 7), ADD], np.array([1, 2, 3], "float32"), np.zeros(3, "float32"))
    assert answer == 3 and b.tolist() == [8, 9, 10]


def test_what_does_not_fit_at_run_time_is_an_argument_error_in_the_words_of_a_call():
    b = np.zeros(4, "float32")
    for module in built([calling(A, B, 7), ADD]):
        refused(lambda f=module["f"]: f(np.ones(3, "float32"), b), "f: add: argument 2 (Y) has shape (q,), it needs (n,) with "
                "n = p from dimension 0 of X, that is (p,)", error=ArgumentError)
    assert not b.any()


def test_what_does_not_fit_by_constants_is_refused_when_it_is_built():
    four, five = tir.decl_buffer((4,), "float32", "F"), tir.decl_buffer((5,), "float32", "G")
    refused(lambda: tedsl.build([calling(four, five, 7, buffers=(four, five)), ADD]),
            "f: add: argument 2 (Y) has shape (5,), it needs (n,) with n = 4 from dimension 0 of X, that is (4,)",
            error=LoweringError)
    ints, square = tir.decl_buffer((4,), "int32", "I"), tir.decl_buffer((2, 2), "float32", "S")
    for args, words in [((A, B), "add takes 3 arguments (X, Y, k), 2 given"),
                        ((ints, B, 7), "add: argument 1 (X) has dtype int32, it needs float32"),
                        ((square, B, 7), "add: argument 1 (X) has 2 dimensions, shape (2, 2); it needs 1, shape (n,)"),
                        ((A.data, B, 7), "add: argument 1 (X) is A, and an array is needed"),
                        ((A, B, "text"), 'add: argument 3 (k) is "text" of handle, it needs a number of int32'),
                        ((A, B, 2.5), "add: argument 3 (k) is 2.5 of float32, it needs a number of int32"),
                        ((A, B.access_ptr("r"), 7), "add: argument 2 (Y) is an output, and the call passes it to be read only"),
                        ((A, B, tir.const(2**40, "int64")), "add: argument 3 (k) is 1099511627776, which does not fit int32")]:
        f = calling(*args, buffers=(A, B, ints, square))
        for target in ("llvm", "c"):
            refused(lambda f=f, target=target: tedsl.build([f, ADD], target=target), words, error=LoweringError)


def test_the_value_has_the_dtype_of_the_function():
    f = written("f", lambda ib, a, b: a.__setitem__(0, tir.call_intrin("float32", "tir.call_packed", "add", A, B, 1)), A, B)
    refused(lambda: tedsl.build([f, ADD]), "f: add returns int32, and the call of it is float32",
            "hint: write tir.call_intrin('int32', 'tir.call_packed', 'add', ...)", error=LoweringError)


def test_overlap_is_found_at_run_time():
    parts = written("f", lambda ib, a: ib.emit(tir.call_packed("add", _part(0, m), _part(k, m), 1)), A, scalars=(k, m))
    words = "f: add: argument 2 (Y) is an output and overlaps argument 1 (X)"
    for module, same in zip(built([parts, ADD]), built([calling(A, A, 7, buffers=(A,)), ADD])):
        a, f = np.arange(6, dtype="float32"), module["f"]
        f(a, 3, 3)
        assert a.tolist() == [0, 1, 2, 1, 2, 3]
        refused(lambda f=same["f"], a=a: f(a), words, error=ArgumentError)
        refused(lambda f=f, a=a: f(a, 2, 3), words, error=ArgumentError)
        refused(lambda f=f, a=a: f(a, 3, -1), error=ArgumentError)


def _part(first, count):
    """`count` elements of A from `first` on."""
    return tir.decl_buffer((count,), "float32", "P", data=A.data, elem_offset=first)


# --- strides ------------------------------------------------------------------------------------------------------------

ROWS, COLUMNS = te.var("rows"), te.var("columns")
STRIDED = tir.decl_buffer((n, m), "float32", "X", strides=(ROWS, COLUMNS))
OUT = tir.decl_buffer((n, m), "float32", "Y", strides=(te.var("s"), te.var("t")))


def copied(ib, x, y):
    with ib.for_range(0, n, "i") as i, ib.for_range(0, m, "j") as j:
        y[i, j] = x[i, j] + 1.0


COPY = written("copied", copied, STRIDED, OUT)


@pytest.mark.parametrize("to_transposed", [False, True])
def test_strides_are_bound_too(to_transposed):
    W = tir.decl_buffer((p, q), "float32", "W")
    V = tir.decl_buffer((q, p), "float32", "V")
    turned = tir.decl_buffer((q, p), "float32", "T", data=W.data, strides=(1, q))
    args = (V, turned) if to_transposed else (turned, V)
    f = written("f", lambda ib, w, v: ib.emit(tir.call_packed("copied", *args)), W, V)
    w, v = np.arange(6, dtype="float32").reshape(2, 3), np.arange(6, 12, dtype="float32").reshape(3, 2)
    _, w_after, v_after = both([f, COPY], w, v)
    np.testing.assert_array_equal(*((w_after, v.T + 1) if to_transposed else (v_after, w.T + 1)))


def test_the_compact_version_is_called_where_arrays_are_compact():
    W, V = (tir.decl_buffer((8, 4), "float32", name) for name in "WV")
    f = written("f", lambda ib, w, v: ib.emit(tir.call_packed("copied", W, V)), W, V)
    text = tedsl.build([f, COPY]).get_source()
    assert text.count("call i32 @copied.compact.kernel") == 1 and "call i32 @copied.kernel" not in text
    checks = text[text.index("define internal i32 @f.kernel.call0("):]
    assert checks[:checks.index("}")].count("br i1") == 1  # by the status of the call: constants decide all of the checks
    both([f, COPY], np.ones((8, 4), "float32"), np.zeros((8, 4), "float32"))


def test_an_output_whose_elements_share_memory_is_refused():
    W = tir.decl_buffer((8, 4), "float32", "W")
    same = tir.decl_buffer((8, 4), "float32", "T", data=B.data, strides=(1, 1))
    f = written("f", lambda ib, w, b: ib.emit(tir.call_packed("copied", W, same)), W, B)
    refused(lambda: tedsl.build([f, COPY]), "f: copied: argument 2 (Y) is an output whose elements may share memory: "
            "strides (1, 1) in elements for shape (8, 4)", error=LoweringError)


def test_the_strides_of_an_empty_array_do_not_matter():
    every = [te.var(name) for name in "abcd"]
    given = tir.decl_buffer(every[:2], "float32", "W", strides=every[2:])
    f = written("f", lambda ib, w: ib.emit(tir.call_packed("copied", given, given)), given).with_attr("tir.noalias", False)
    for module in built([f, COPY.with_attr("tir.noalias", False)]):
        module["f"](np.lib.stride_tricks.as_strided(np.zeros(9, "float32"), (3, 0), (4, 4)))
        with pytest.raises(ArgumentError):
            module["copied"](*[np.lib.stride_tricks.as_strided(np.zeros(9, "float32"), (3, 3), (4, 4))] * 2)


def test_a_function_of_compact_arrays_refuses_others():
    whole = tir.decl_buffer((8,), "float32", "W")
    every_other = tir.decl_buffer((4,), "float32", "E", data=whole.data, strides=(2,))
    refused(lambda: tedsl.build([calling(every_other, B, 7, buffers=(whole, B)), ADD]),
            "f: add: argument 1 (X) is not contiguous in row-major order: strides (2,) in elements for shape (4,)",
            error=LoweringError)


@needs_cplusplus
@pytest.mark.parametrize("arrays", ["compact", "strided"])
def test_the_checks_in_c_are_c_plus_plus_too(arrays):
    strided = tir.decl_buffer((p, q), "float32", "W", strides=(te.var("r"), te.var("c")))
    first, other = (strided, tir.decl_buffer((p, q), "float32", "V")) if arrays == "strided" else (A, B)
    call = tir.call_packed("copied", first, other) if arrays == "strided" else tir.call_packed("add", first, other, 7)
    f = written("f", lambda ib, *_: ib.emit(call), first, other)
    assert not read_as_cplusplus(tedsl.build([f, COPY, ADD], target="c").get_source())


def test_python_functions_are_refused_in_c():
    refused(lambda: tedsl.build([calling(A, B, 7)], target="c"), "call_packed of 'add' is a call of a Python function, which "
            "code in C cannot do", "or build the function of that name into the same module", error=LoweringError)


def test_tvms_name_of_the_call_is_known():
    assert tir.call_intrin("int32", "tir.tvm_call_packed", "add", A, B, 7).op is tir.Op.get("tir.call_packed")


# --- names, failures, numbers -------------------------------------------------------------------------------------------

def test_a_function_of_the_module_goes_before_a_python_function():
    tedsl.register_func("add", lambda *_: 99, override=True)
    try:
        assert both([calling(A, B, 7), ADD], np.ones(2, "float32"), np.zeros(2, "float32"))[0] == 2
        assert tedsl.build(calling(A, B, 7))(np.ones(2, "float32"), np.zeros(2, "float32")) == 99
    finally:
        tedsl.runtime.functions.remove_global_func("add")


def test_a_failure_inside_is_the_callers():
    sets = written("sets", lambda ib, x: x.__setitem__(k, 1.0), X, scalars=(k,))
    f = written("f", lambda ib, a: ib.emit(tir.call_packed("sets", A, 5)), A)
    for module in built([f, sets]):
        refused(lambda f=module["f"]: f(np.zeros(3, "float32")),
                "f: in sets: the store to X[k] leaves its memory: X has the indices 0 to n - 1 and the index is k",
                error=ArgumentError)


def test_exceptions_pass_from_functions_that_call_python():
    def fails(x):
        raise KeyError(f"{x.numpy()[0]}")
    tedsl.register_func("test.fails", fails, override=True)
    inner = written("inner", lambda ib, x: ib.emit(tir.call_packed("test.fails", X)), X)

    def f(ib, a):
        with ib.for_range(0, p, "i", kind="parallel") as i:
            ib.emit(tir.call_packed("inner", _part(i, 1)))
    module = tedsl.build([written("f", f, A), inner])
    for _ in range(5):
        with pytest.raises(KeyError, match=r"2\.0"):
            module["f"](np.full(8, 2, "float32"))


@pytest.mark.parametrize("given, wanted, value, fits", [
    ("int8", "int64", -3, True), ("uint64", "uint64", 2**63, True), ("uint64", "int64", 2**63, False),
    ("int64", "int32", 2**31, False), ("int32", "uint8", -1, False), ("uint32", "int32", 5, True),
    ("float32", "float64", 0.5, True),
    ("float64", "float32", 1e300, False), ("float64", "float16", 1.5, True), ("bool", "bool", True, True)])
def test_numbers_are_converted_where_they_fit(given, wanted, value, fits):
    x, y = te.var("x", wanted), te.var("y", given)
    inner = written("inner", lambda ib: ib.emit(tir.ret(x)), scalars=(x,))
    call = tir.call_intrin(wanted, "tir.call_packed", "inner", y)
    outer = written("outer", lambda ib: ib.emit(tir.ret(call)), scalars=(y,))
    if fits:
        assert both([outer, inner], value) == (value,)
    else:
        for module in built([outer, inner]):
            refused(lambda f=module["outer"]: f(value), f"outer: inner: argument 1 (x) is y, which does not fit {wanted}",
                    error=ArgumentError)


def test_a_size_is_at_least_zero():
    size = te.size_var("size")
    inner = written("inner", lambda ib: ib.emit(tir.ret(size)), scalars=(size,))
    outer = written("outer", lambda ib: ib.emit(tir.ret(tir.call_packed("inner", k))), scalars=(k,))
    assert both([outer, inner], 3) == (3,)
    for module in built([outer, inner]):
        refused(lambda f=module["outer"]: f(-1), "outer: inner: argument 1 (size) is k, and a size is at least 0",
                error=ArgumentError)


def test_a_schedule_calls_a_function_beside_it():
    T = te.placeholder((8,), name="T")
    R = te.extern((8,), [T], lambda ins, outs: tir.call_packed("add", ins[0], outs[0], 5), dtype="float32", name="R")
    S = te.compute((8,), lambda i: R[i] * 2.0, name="S")
    lowered = tedsl.lower(te.create_schedule(S.op), [T, S], name="main")
    t, s = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tedsl.build([lowered, tedsl.IRModule({"add": ADD})])(t, s)
    np.testing.assert_array_equal(s, (t + 5) * 2)


@pytest.mark.skipif(not any(map(shutil.which, ("ld", "cc"))), reason="needs a linker")
def test_functions_of_a_library_call_each_other_without_python(tmp_path):
    tedsl.build([calling(A, B, 7), ADD]).export_library(tmp_path / "f.so")
    loaded = tedsl.runtime.load_module(tmp_path / "f.so")
    x, y = np.ones(3, "float32"), np.zeros(3, "float32")
    assert loaded["f"](x, y) == 3 and y.tolist() == [8, 8, 8]
    refused(lambda: loaded["f"](x, np.zeros(4, "float32")), "f: add: argument 2 (Y) has shape (q,), it needs (n,) with n = p "
            "from dimension 0 of X", error=ArgumentError)
