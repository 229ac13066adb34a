"""`tir.ret`: numbers that kernels return, to Python and to the timer; where a return may not stand."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import DTypeError, LoweringError
from tedsl.ir.builder import create
from tedsl.ir.evaluate import run
from tedsl.ir.types import PrimType
from tedsl.lower.lower import check_function
from tedsl.runtime.signature import signature_of
from tests.lower.written.programs import function
from tests.refusing import refused

n = te.var("n")
A = tir.decl_buffer((n,), "float32", "A")


def returning(write, *buffers, scalars=()):
    """A function whose body `write(ib, *pointers)` writes."""
    ib = create()
    write(ib, *map(ib.buffer_ptr, buffers))
    return function(ib.get(), *buffers, scalars=scalars)


def answers(func, *args):
    """What `func` returns: by the compiled entry point, by the checked call in Python, by the interpreter."""
    kernel = tedsl.build(func)
    with tedsl.transform.PassContext(opt_level=0):
        checked = tedsl.build(func)
    assert checked.time_evaluator("f", number=2)(*args).mean > 0
    return [kernel(*args), checked(*args), run(check_function(func), args)]


@pytest.mark.parametrize("dtype, value, kind", [
    ("int8", -5, int), ("uint8", 250, int), ("int32", -7, int), ("uint32", 2**32 - 1, int), ("int64", -2**40, int),
    ("uint64", 2**63 + 1, int), ("bool", True, bool), ("float16", 1.5, float), ("bfloat16", -2.0, float),
    ("float32", float(np.float32(0.1)), float), ("float64", 0.1, float)])
def test_a_number_of_every_dtype_comes_back(dtype, value, kind):
    x = te.var("x", dtype)
    for answer in answers(returning(lambda ib: ib.emit(tir.ret(x)), scalars=(x,)), value):
        assert answer == value and type(answer) is kind


def first_above(ib, a):
    """The position of the first element above 2, else -1; a temporary array is given back on both ways."""
    t = ib.allocate("float32", (n,), "t")
    with ib.for_range(0, n, "i") as i:
        t[i] = a[i]
        with ib.if_scope(t[i] > 2.0):
            ib.emit(tir.ret(i))
    ib.emit(tir.ret(-1))


def test_a_return_inside_of_a_loop_gives_temporary_memory_back():
    func = returning(first_above, A)
    assert answers(func, np.array([1, 2, 3, 4], "float32")) == [2, 2, 2]
    assert answers(func, np.array([1, 2], "float32")) == [-1, -1, -1]
    kernel = tedsl.build(func)
    assert kernel.get_source().count("@tedsl_workspace_free(ptr %t)") == 3  # both returns, and the end that is not reached
    assert all(kernel(np.array([1, 2, 3], "float32")[:k]) == (2 if k == 3 else -1) for k in (1, 2, 3))


def test_the_end_of_a_function_that_returns_a_number_elsewhere_is_zero():
    def write(ib, a):
        with ib.if_scope(a[0] > 2.0):
            ib.emit(tir.ret(a[0]))
        a[0] = 5.0
    func = returning(write, A)
    assert answers(func, np.array([3], "float32")) == [3.0] * 3
    assert tedsl.build(func)(np.array([1], "float32")) == 0.0
    assert run(check_function(func), [np.array([1], "float32")]) == 0.0


def test_the_signature_and_the_text_state_the_result(golden):
    func = returning(first_above, A)
    assert signature_of(check_function(func)).result == "int32"
    assert signature_of(check_function(returning(lambda ib, a: a.__setitem__(0, 1.0), A))).result is None
    golden.sections(text=str(tedsl.lower(func)), script=tedsl.lower(func).readable())


def test_a_stated_result_holds_without_a_return():
    stated = returning(lambda ib, a: ib.emit(tir.ret(tir.const(1.0, "float64"))), A).replace(ret_type=PrimType("float64"))
    assert tedsl.build(stated)(np.zeros(1, "float32")) == 1.0
    unreached = stated.with_body(tir.IfThenElse(n < 0, stated.body))
    assert tedsl.build(unreached)(np.zeros(1, "float32")) == 0.0


def test_a_return_in_an_extern_stage_ends_the_kernel():
    X = te.placeholder((4,), name="X")

    def body(ins, outs):
        ib = create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        y[0] = x[0]
        ib.emit(tir.ret(x[1]))
        y[1] = x[1]
        return ib.get()
    Y = te.extern((4,), [X], body, dtype="float32", name="Y")
    kernel = tedsl.build(te.create_schedule(Y.op), [X, Y])
    y = np.zeros(4, "float32")
    assert kernel(np.array([3, 7, 0, 0], "float32"), y) == 7.0 and y.tolist() == [3, 0, 0, 0]


@pytest.mark.parametrize("kind, words", [("parallel", "is parallel"), ("vectorize", "is vectorized")])
def test_a_return_where_iterations_run_together_is_refused(kind, words):
    def write(ib, a):
        with ib.for_range(0, 8, "i", kind=kind) as i, ib.if_scope(a[i] > 2.0):
            ib.emit(tir.ret(i))
    refused(lambda: tedsl.build(returning(write, tir.decl_buffer((8,), "float32", "A"))),
            f"f: tir.ret inside of the loop i, which {words}: one iteration cannot end the others",
            "hint: store what is to be returned, and return it after the loop", error=LoweringError)


def test_a_return_of_a_thread_is_refused():
    def write(ib, a):
        ib.scope_attr(te.thread_axis("threadIdx.x"), "thread_extent", 4)
        ib.emit(tir.ret(1))
    refused(lambda: tedsl.build(returning(write, A)), "tir.ret inside of the threads threadIdx.x", error=LoweringError)


def test_what_is_no_number_of_the_function_is_refused():
    two = lambda ib, a: (ib.emit(tir.ret(1)), ib.emit(tir.ret(a[0])))
    refused(lambda: tedsl.lower(returning(two, A)), "f returns int32, and tir.ret of float32",
            "hint: cast the value: tir.ret(x.astype('int32'))", error=DTypeError)
    refused(lambda: tedsl.lower(returning(lambda ib, a: ib.emit(tir.ret(A.data)), A)),
            "tir.ret of handle; a function returns one number", error=DTypeError)
    lanes = lambda ib, a: ib.emit(tir.ret(tir.Broadcast(tir.const(1, "int32"), 4)))
    refused(lambda: tedsl.lower(returning(lanes, A)), "tir.ret of int32x4; a function returns one number", error=DTypeError)
    stated = returning(lambda ib, a: ib.emit(tir.ret(1)), A).replace(ret_type=PrimType("float32"))
    refused(lambda: tedsl.lower(stated), "f returns float32, and tir.ret of int32", error=DTypeError)


def test_a_return_is_no_value():
    used = lambda ib, a: a.__setitem__(0, tir.ret(a[0]) + 1.0)
    refused(lambda: tedsl.lower(returning(used, A)), "f: tir.ret is used as a value; it ends the function, and has none",
            "hint: write it as a statement", error=LoweringError)


def test_a_pass_of_the_users_may_add_a_return():
    def early(func, *_):
        return func.with_body(tir.SeqStmt((tir.Evaluate(tir.ret(4)), func.body)))
    with tedsl.transform.PassContext(config={"tir.add_lower_pass": [(1, early)]}):
        kernel = tedsl.build(returning(lambda ib, a: a.__setitem__(0, 1.0), A))
    x = np.zeros(1, "float32")
    assert kernel(x) == 4 and x[0] == 0


def test_a_module_from_a_file_returns_numbers_too(tmp_path):
    x = te.var("x", "bool")
    func = returning(lambda ib: ib.emit(tir.ret(x)), scalars=(x,))
    tedsl.build(func).save(str(tmp_path / "f.tedsl"))
    loaded = tedsl.runtime.load_module(str(tmp_path / "f.tedsl"))
    assert loaded(True) is True and loaded(False) is False
