"""Calls of built functions: arguments, names, timers."""

import copy
import pickle

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError
from tests.one_stage import added, doubled, runs


def test_a_class_is_no_array():
    s, a, c = doubled()
    with pytest.raises(ArgumentTypeError, match=r"argument 1 \(A\) is an array, type .*was given"):
        tedsl.build(s, [a, c])(np.ndarray, np.zeros(16, "float32"))


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8"])
def test_numpy_s_bool_is_a_number_as_python_s_is(dtype):
    x = te.var("x", dtype)
    c = te.compute((1,), lambda i: x.astype("int32"), name="C")
    f, out = tedsl.build(te.create_schedule(c.op), [x, c]), np.zeros(1, "int32")
    f(np.True_, out)
    assert out[0] == 1


def test_a_number_beyond_int64_gets_no_hint_to_use_int64():
    x = te.var("x", "int64")
    c = te.compute((1,), lambda i: x, name="C")
    with pytest.raises(ArgumentError, match="does not fit int64") as caught:
        tedsl.build(te.create_schedule(c.op), [x, c])(2**63, np.zeros(1, "int64"))
    assert "hint" not in str(caught.value)


def test_arguments_by_name_are_refused_in_our_words():
    """Python said "CheckedCall.main() takes no keyword arguments"."""
    kernel = tedsl.build(*added(), name="main")
    x = np.zeros(4, "float32")
    for call in (kernel, kernel["main"], kernel.entry_func):
        with pytest.raises(ArgumentTypeError, match=r"main takes its arguments in .*not by name: B\n  hint: call main\(A, B\)"):
            call(x, B=np.zeros(4, "float32"))
        with pytest.raises(ArgumentTypeError, match="not by name: A, B"):
            call(A=x, B=x)
    out = np.zeros(4, "float32")
    kernel(x, out, **{})
    assert out.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("sizes", [(100, 3), (3, 100)])
def test_shapes_of_one_name_are_checked_each(sizes):
    """Two conditions with one text were taken for one, and the other tensor was read beyond its end."""
    n, first, second = te.size_var("n"), te.size_var("m"), te.size_var("m")
    A, B = te.placeholder((first,), name="A"), te.placeholder((second,), name="B")
    C = te.compute((n,), lambda i: A[i + 1] + B[i + 1], name="C")
    kernel = tedsl.build(te.create_schedule(C.op), [A, B, C])
    a, b = (np.zeros(size, "float32") for size in sizes)
    with pytest.raises(ArgumentError, match=r"reads [AB]\[i \+ 1\]"):
        kernel(a, b, np.zeros(5, "float32"))


def test_machine_code_cannot_be_pickled_and_says_so():
    s, a, c = doubled()
    module = tedsl.build(s, [a, c])
    for what in (module, module["default_function"]):
        with pytest.raises(ArgumentTypeError, match=r"machine code of this process(.|\n)*IRModule"):
            pickle.dumps(what)
    assert copy.copy(module) is module and copy.deepcopy(module) is module


@pytest.mark.parametrize("name", ["1x", 'q"uo\\te', "new\nline", "naïve", "a b", "%d", "@x"])
def test_any_name_of_a_function(name):
    s, a, c = doubled()
    assert runs(tedsl.build(s, [a, c], name=name)[name])


def test_a_name_with_nul_is_refused():
    s, a, c = doubled()
    with pytest.raises(ArgumentError, match="NUL"):
        tedsl.build(s, [a, c], name="a\0b")


@pytest.mark.parametrize("dev", ["cpu", 3])
def test_the_timer_wants_a_device(dev):
    s, a, c = doubled()
    with pytest.raises(ArgumentTypeError, match=r"dev is a Device(.|\n)*cpu\(\)"):
        tedsl.build(s, [a, c]).time_evaluator("default_function", dev)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_the_timer_wants_a_finite_time(value):
    s, a, c = doubled()
    timer = tedsl.build(s, [a, c]).time_evaluator("default_function", tedsl.cpu(), min_repeat_ms=value)
    with pytest.raises(ArgumentError, match="min_repeat_ms"):
        timer(np.ones(16, "float32"), np.zeros(16, "float32"))
