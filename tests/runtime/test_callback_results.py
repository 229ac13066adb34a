"""What Python functions return to a kernel as numbers, and writes to arrays that they may only read."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError
from tedsl.ir.evaluate import run
from tests.runtime.test_callbacks import answered, calling, register  # noqa: F401 - a fixture

HUGE = "more digits than Python writes"


@pytest.mark.parametrize("dtype, answer, problem", [
    ("int32", float("nan"), "returned nan, and the program uses it as int32: cannot convert float NaN to integer"),
    ("int64", float("inf"), "returned inf, and the program uses it as int64"),
    ("int32", 2.5, "returned 2.5, and the program uses it as int32: it is not a whole number"),
    ("int32", 2**31, "as int32: that holds -2147483648 to 2147483647"),
    ("int64", 2**70, "as int64: that holds -9223372036854775808 to"),
    ("uint8", -1, "as uint8: that holds 0 to 255"),
    ("bool", 2, "as bool: that holds 0 to 1"),
    ("int32", HUGE, "returned an int of too many digits, and the program uses it as int32"),
    ("float32", 10**400, "as float32: int too large to convert to float"),
    ("int32", np.array(["x"])[0], "and the program uses it as a number"),
    ("float64", np.array(["1"])[0], "and the program uses it as a number"),
    ("float32", np.complex64(1j), "and the program uses it as a number"),
])
def test_results_that_the_dtype_cannot_hold_are_refused_by_name(register, dtype, answer, problem):
    """They leaked numpy's or Python's error without the function, or were wrapped (2**70 gave 0) and cut off (2.5 gave 2)."""
    register(lambda: 10**5000 if answer is HUGE else answer)
    out = tir.decl_buffer((1,), dtype, "out")

    def write(ib, o):
        o[0] = tir.call_intrin(dtype, "tir.call_packed", "test.f")
    f = calling(write, out)
    for kernel in (tedsl.build(f), tedsl.build(f, checked=True), lambda o: run(f, [o])):
        with pytest.raises(ArgumentError) as caught:
            kernel(np.zeros(1, dtype))
        assert "call_packed: test.f" in str(caught.value) and problem in str(caught.value)


@pytest.mark.parametrize("dtype, answer, expected", [("int32", 2.0, 2), ("int8", np.float32(-128), -128), ("int64", True, 1),
                                                     ("bool", np.bool_(True), 1), ("uint64", 2**64 - 1, 2**64 - 1),
                                                     ("bool", 0.0, 0), ("int32", np.array(7), 7), ("float32", np.array(7), 7)])
def test_results_that_the_dtype_holds_whatever_their_type(register, dtype, answer, expected):
    assert answered(register, dtype, answer) == expected


def test_writing_to_an_array_that_is_only_read_names_the_function(register):
    """numpy's error said neither which function nor why."""
    register(lambda x, y: x.__setitem__(slice(None), 5))
    source = te.placeholder((4,), name="S")
    result = te.extern((4,), [source], lambda ins, outs: tir.call_packed("test.f", ins[0], outs[0]), name="R", dtype="float32")
    kernel = tedsl.build(te.create_schedule(result.op), [source, result])
    with pytest.raises(ArgumentError, match=r"test.f writes to a read-only array .*only read its argument 0, counted from 0"):
        kernel(np.zeros(4, "float32"), np.zeros(4, "float32"))

    def other(x, y):
        raise ValueError("not that")
    register(other)
    with pytest.raises(ValueError, match=r"^not that$"):
        kernel(np.zeros(4, "float32"), np.zeros(4, "float32"))
