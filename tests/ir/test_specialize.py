"""func.specialize: functions for known numbers and shapes."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, ShapeError


def program():
    """b[i, j] = a[i, j] * x for n rows of m, with parameters a, b and x."""
    n, m, x = te.var("n"), te.var("m"), te.var("x", "float32")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * x, name="B")
    return tedsl.driver.schedule_to_module(te.create_schedule(B.op), [A, B, x])["main"]


def test_shapes_and_numbers():
    func = program()
    a, b, x = func.params
    known = func.specialize({a: tir.decl_buffer((3, 4), "float32"), x: 2.0})
    assert [param.name for param in known.params] == [a.name, b.name]
    assert [[int(dim) for dim in buffer.shape] for buffer in known.buffers] == [[3, 4], [3, 4]]
    assert "for (i: int32, 0, 3)" in str(known.body)
    given, got = np.arange(12, dtype="float32").reshape(3, 4), np.zeros((3, 4), "float32")
    tedsl.build(known)(given, got)
    np.testing.assert_array_equal(got, given * 2)
    with pytest.raises(tedsl.TedslError):
        tedsl.build(known)(given[:2], got[:2])
    assert [str(dim) for dim in func.buffers[0].shape] != ["3", "4"]


def test_a_part_of_a_shape_and_expressions():
    func, k = program(), te.var("k")
    a, b, x = func.params
    half = func.specialize({b: tir.decl_buffer((k, 4), "float32")})
    assert half.buffers[0].shape[0] is half.buffers[1].shape[0] is k and int(half.buffers[0].shape[1]) == 4
    rows, got = np.ones((5, 4), "float32"), np.zeros((5, 4), "float32")
    tedsl.build(half)(rows, got, 3.0)
    assert (got == 3).all()


def test_what_is_refused():
    func = program()
    a, b, x = func.params
    buffer = tir.decl_buffer((3, 4), "float32")
    for given, error, words in (
            ({a: buffer, b: tir.decl_buffer((3, 5), "float32")}, ArgumentError, "m is 4 and 5"),
            ({a: tir.decl_buffer((3,), "float32")}, ShapeError, r"the buffer of float32 and shape \(3,\)"),
            ({a: tir.decl_buffer((3, 4), "int8")}, ShapeError, "the buffer of int8"),
            ({a: 3}, ArgumentTypeError, "is a buffer"),
            ({x: buffer}, ArgumentTypeError, "x is a number of dtype float32"), (3, ArgumentTypeError, "takes a dict"),
            ({te.var("other"): 3}, ArgumentError, r"other is no parameter of main\n.*its parameters are")):
        with pytest.raises(error, match=words):
            func.specialize(given)
    fixed = func.specialize({a: buffer})
    with pytest.raises(ShapeError, match=r"an extent or stride of A.* is 3, of the buffer 7"):
        fixed.specialize({fixed.params[0]: tir.decl_buffer((7, 4), "float32")})
