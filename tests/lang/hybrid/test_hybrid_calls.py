"""Calls and conditions of a script: what Python does, or an error at the line; nothing that is written is dropped."""
# mypy: ignore-errors

import importlib.util

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ExpressionError

n = te.var("n")
HEAD = """
import numpy as np
from tedsl import te
OPTIONS, NUMBERED, BOUNDS, PAIR = {"scale": 3.0, "shift": 1.0}, {1: 2.0}, (1, 4), np.zeros(2)
OUTSIDE = te.placeholder((6,), name="OUTSIDE")
def scaled(x, scale=1.0, shift=0.0): return x * scale + shift
def round(x): return x + 100.0

@te.hybrid.script
def f(a, n):
    b = output_tensor(a.shape, "float32")
    for q in range(a.shape[0]):
        b[q] = 0.0
"""


@pytest.fixture
def script_of(tmp_path):
    """Makes the script whose last statement is `line`."""
    def make(line):
        path = tmp_path / "written.py"
        path.write_text(f"{HEAD}    {line}\n    return b\n")
        spec = importlib.util.spec_from_file_location("written", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.f

    return make


@pytest.mark.parametrize("line", [
    "b[0] = scaled(a[0], **OPTIONS)", "b[0] = scaled(a[0], shift=2.0)", "b[0] = scaled(*(a[0], 2.0))",
    "b[0] = max(*(1.0, a[1], a[2]))", "b[0] = round(a[0])", "b[0] = a[1] if likely(n) else a[2]", "b[0] = likely(n)",
    "b[0] = n and 5", "b[0] = n or 5", "b[0] = n and 5 and n + 1", "b[0] = (n > 2) or 7", "b[0] = not n",
    "b[0] = a[1] if n and n < 3 else 2.0", "b[0] = a[1] if not (n or n > 3) else 2.0", "b[0] = False and a[1000]",
    "for i in range(*BOUNDS): b[i] = a[i]", "for i in const_range(5, -1, -2): b[i] = a[i]",
    "for i in const_range(np.int64(2)): b[i] = a[i]", "b[0] = 1.0 if n > 2 and (n or 1) else 2.0", "b[0] = a[0] and 2.5",
    "b[0] = np.float32(3.0)",
])
@pytest.mark.parametrize("size", [0, 1, 4])
def test_it_means_what_python_does(script_of, line, size):
    f, array = script_of(line), np.array([0.5, 1.5, 2.5, -3.0, 4.0, 5.0], "float32")
    got = np.full(6, 9, "float32")
    given = te.placeholder((6,), name="a")
    made = f(given, n)
    tedsl.build(te.create_schedule(made.op), [given, n, made])(array, size, got)
    np.testing.assert_array_equal(got, f(array, size))


@pytest.mark.parametrize("line, problem, hint", [
    # what was dropped
    ("b[0] = scaled(a[0], **NUMBERED)", "** takes a dict from names to values apart, this is a dict", "write the names"),
    ("b[0] = scaled(a[0], **{'scale': 2.0})", "** takes the name of a dict around the script", "write the names"),
    ("b[0] = scaled(a[0], scale=1.0, **OPTIONS)", "the argument scale is given twice", "leave one"),
    ("b[0] = scaled(*n)", "* takes a tuple apart, this is a number", "one by one"),
    ("b[0] = float32(1, 2)", "float32 takes one argument, not 2", "write float32(x)"),
    ("t = allocate((2,), 'float32', shape=(3,))", "allocate is given shape twice", "allocate((n, m), 'float32')"),
    ("t = allocate((2,), 'float32', 'local', 3)", "allocate takes shape and dtype, and a scope", "allocate((n, m), 'float32')"),
    ("t = allocate((2,), 'float32', a)", "there is no scope the array a", "choose one of global"),
    # a whole array is no condition
    *[(line, "a is a whole array", "read an element: a[i]") for line in (
        "if a: b[0] = 1.0", "b[0] = not a", "assert a", "b[0] = 1.0 if a else 2.0", "b[0] = a and n", "b[0] = n and a and n",
        "if n and a: b[0] = 1.0", "if a or n: b[0] = 1.0", "b[0] = a == n", "b[0] = 1.0 if a == a else 2.0", "b[0] = -a",
        "b[0] = likely(a)", "b[0] = sum(a)")],
    ("if OUTSIDE: b[0] = 1.0", "OUTSIDE is a whole tensor", "make OUTSIDE an argument of the script"),
    ("b[0] = OUTSIDE[n]", "OUTSIDE is a tensor around the script", "make it an argument of the script"),
    ("if PAIR: b[0] = 1.0", "an ndarray is neither true nor false", "compare first"),
    # loops
    *[(f"for i in const_range({args}): b[i] = 1.0", "const_range takes the end; or the beginning, the end and a step",
       "write const_range(4)") for args in ("", "0, 3, 0", "0, 3, 1, 1")],
    ("for i in const_range(2.5): b[i] = 1.0", "integers that are known now, not 2.5", "use range for a bound"),
    ("for i in const_range(n): b[i] = 1.0", "integers that are known now, not n: int32", "use range for a bound"),
    ("for i in const_range(a): b[i] = 1.0", "integers that are known now, not the array a", "use range for a bound"),
    ("for i in const_range(10**30): b[i] = 1.0", "the loop is written out more than 4096 times", "use range"),
    ("for i in range(a): b[i] = 1.0", "a number is wanted here, this is the array a", "write range(a.shape[0])"),
    ("for i in parallel('a'): b[i] = 1.0", "a number is wanted here, this is the text 'a'", "write parallel(n)"),
    ("for i in range((1, 2)): b[i] = 1.0", "a number is wanted here, this is a tuple", "write range(n)"),
    ("for i in bind('threadIdx.x', a): b[i] = 1.0", "a number is wanted here, this is the array a", "write bind("),
    # the functions of the language
    ("b[0] = float32()", "float32 takes one argument, not 0", "write float32(x)"),
    ("b[0] = len()", "len takes one argument, not 0", "write len(a)"),
    ("b[0] = len(n)", "len takes what has a length, a number has none", "len(a) is a.shape[0]"),
    ("b[0] = max_num_threads(1, 2, 3)", "max_num_threads takes at most one argument, not 3", "write max_num_threads()"),
    ("b[0] = min(n)", "min takes two arguments or more, not 1", "write min(x, y)"),
    ("b[0] = power(a[0])", "power takes two arguments, not 1", "write power(x, y)"),
    ("b[0] = exp(a[0], 2)", "exp takes one argument, not 2", "write exp(x)"),
    ("b[0] = exp(x=a[0])", "exp takes no named arguments", "write exp(x)"),
    ("b[0] = n(0)", "a number cannot be called", ""),
    ("b[0] = 10.0 ** 400", "OverflowError", ""),
])
def test_what_is_refused_names_the_line_and_what_to_write(script_of, line, problem, hint):
    with pytest.raises(ExpressionError) as error:
        script_of(line)(te.placeholder((6,), name="IN"), n)
    text = str(error.value)
    assert text.startswith("hybrid script f (") and f"written.py:{HEAD.count(chr(10)) + 1}, `{line}`): " in text
    assert problem in text and hint in text.partition("\n  hint: ")[2]
    assert "Buffer(" not in text and "<lambda>" not in text


def test_memory_is_called_as_its_variable(script_of):
    A = te.placeholder((6,), name="A")
    B = script_of("kept = allocate((1,), 'float32', 'local', name='c'); kept[0] = a[0] * 0.5; b[1] = kept[0]")(A, 3)
    b = np.zeros(6, "float32")
    tedsl.build(te.create_schedule(B.op), [A, B])(np.array([3, 0, 0, 0, 0, 0], "float32"), b)
    assert b.tolist() == [0, 1.5, 0, 0, 0, 0]
