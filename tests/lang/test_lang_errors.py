"""Wrong programs are refused where they are written, and the message says what to write instead."""

import math
import re

import numpy as np
import pytest

from tedsl import te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ExpressionError, ShapeError, TedslError

n = te.var("n")
A = te.placeholder((n, 4), name="A")
V = te.placeholder((8,), name="V")
I = te.placeholder((8,), "int32", name="I")
U = te.placeholder((8,), "bool", name="U")
k = te.reduce_axis((0, 4), name="k")
l = te.reduce_axis((0, 8), name="l")


def argmax_with(identity):
    return te.comm_reducer(lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
                           identity, name="argmax")


def row_sum(i):
    return te.sum(A[i, k], axis=k)


CASES = {
    # ranks and indices
    "too few indices": (lambda: te.compute((n,), lambda i: A[i] + 1.0), ShapeError,
                        "A[i]", "A has 2 dimensions", "shape (n, 4)", "read with 1 index", "A[i, j]"),
    "too few indices alone": (lambda: te.compute((n,), lambda i: A[i]), ShapeError, "2 dimensions", "1 index"),
    "too many indices": (lambda: A[0, 1, 2], ShapeError, "A[0, 1, 2]", "2 dimensions", "3 indices"),
    "a call with too few": (lambda: A(0), ShapeError, "A[0]", "one index per dimension"),
    "an index on a scalar": (lambda: te.placeholder((), name="S")[0], ShapeError, "0 dimensions", "S()"),
    "a float index": (lambda: V[2.0], DTypeError, "index 0", "V", "float32", "not an integer", "//"),
    "a float element as index": (lambda: te.compute((8,), lambda i: V[V[i]]), DTypeError, "V[V[i]]", "float32", "astype"),
    "a condition as index": (lambda: te.compute((8,), lambda i: V[i > 2]), DTypeError, "bool", "not an integer"),
    "a tensor as index": (lambda: V[I], DTypeError, "whole tensor I", "V[I[i]", "topi.take"),
    "a list as index": (lambda: A[[0, 1]], DTypeError, "list", "tuple(indices)"),
    "a region as a value": (lambda: te.compute((8,), lambda i: V[0:2]), ExpressionError, "region", "V[0:2]"),
    "iterating a tensor": (lambda: list(V), ArgumentTypeError, "cannot be iterated", "A.shape"),
    "an assignment": (lambda: V.__setitem__(0, 1.0), ExpressionError, "V cannot be assigned", "te.if_then_else"),
    "Python's math": (lambda: math.exp(V[0]), ArgumentTypeError, "V[0]", "no value", "te.exp"),
    "the length of a tensor": (lambda: len(V), ArgumentTypeError, "V.shape[0]"),
    # reductions in the wrong place
    "a reduction under arithmetic": (lambda: te.compute((n,), lambda i: row_sum(i) * 2.0), ExpressionError,
                                     "whole body", "its own compute"),
    "a reduction of a reduction": (lambda: te.compute((1,), lambda i: te.sum(te.sum(A[l, k], axis=k), axis=l)), ExpressionError,
                                   "sum of a reduction", "whole body", "axis=[k, l]"),
    "a reduction deep in a reduction": (lambda: te.compute((1,), lambda i: te.sum(te.sum(A[l, k], axis=k) + 1.0, axis=l)),
                                        ExpressionError, "whole body"),
    "a reduction as a condition": (lambda: te.compute((n,), lambda i: te.if_then_else(row_sum(i) > 0.0, 1.0, 0.0)),
                                   ExpressionError, "its own compute"),
    "two reductions in a tuple": (lambda: te.compute((n,), lambda i: (row_sum(i), row_sum(i))), ExpressionError,
                                  "different reductions", "comm_reducer"),
    "a reduction beside a value": (lambda: te.compute((n,), lambda i: (row_sum(i), A[i, 0])), ExpressionError,
                                   "output 1 is not a reduction", "two computes"),
    "half of a tuple reduction": (lambda: te.compute((n,), lambda i: argmax_with(
        lambda t0, t1: (te.const(-1, t0), te.min_value(t1)))((k, A[i, k]), axis=k)[0]), ExpressionError, "only some",
        "whole tuple"),
    # reduce axes
    "an axis twice": (lambda: te.sum(A[0, k], axis=[k, k]), ArgumentError, "k is named twice", "axis=[k, k]"),
    "forgotten axis": (lambda: te.sum(A[0, k]), ArgumentTypeError, "axis is missing", "axis=k"),
    "a variable as axis": (lambda: te.compute((8,), lambda i: te.sum(V[i], axis=i)), ArgumentTypeError, "i (Var)",
                           "te.reduce_axis"),
    "a number as axis": (lambda: te.sum(A[0, k], axis=1), ArgumentTypeError, "not a reduce axis"),
    "an axis of a shape": (lambda: te.sum(V[0], axis=te.compute((8,), lambda i: V[i]).op.axis[0]), ArgumentTypeError,
                           "the axis i of a shape"),
    "a free reduce axis": (lambda: te.compute((n,), lambda i: A[i, k]), ExpressionError, "uses k", "te.sum"),
    "a bad domain": (lambda: te.reduce_axis(8), ArgumentTypeError, "te.reduce_axis((0, n))"),
    "a domain backwards": (lambda: te.reduce_axis((8, 0)), ShapeError, "begin <= end"),
    "a float domain": (lambda: te.reduce_axis((0, 2.5)), DTypeError, "2.5", "not an integer"),
    "a where that is a number": (lambda: te.sum(V[l], axis=l, where=V[l]), DTypeError, "where", "not bool"),
    "an init of another dtype": (lambda: te.sum(V[l], axis=l, init=I[0]), DTypeError, "init", "int32", "float32"),
    "a sum of bool": (lambda: te.sum(V[l] > 0.0, axis=l), DTypeError, "sum of bool", "te.any"),
    "a tensor to sum": (lambda: te.sum(V, axis=l), ExpressionError, "whole tensor of rank 1", "V[i]"),
    "all of numbers": (lambda: te.all(V[l], axis=l), DTypeError, "not bool"),
    "all of nothing": (lambda: te.all(), ArgumentError, "at least one"),
    # combiners
    "an identity of another dtype": (lambda: argmax_with(lambda t0, t1: (te.const(-1, "int64"), te.min_value(t1)))
                                     ((k, A[0, k]), axis=k), DTypeError, "identity", "number 0", "int64", "int32"),
    "a combiner of another dtype": (lambda: te.comm_reducer(lambda x, y: (x + y).astype("float64"), lambda t: te.const(0, t))
                                    (V[l], axis=l), DTypeError, "combiner", "float64", "float32"),
    "a combiner that forgets a value": (lambda: te.comm_reducer(lambda x, y: x[0], lambda *t: (0, 0))((l, V[l]), axis=l),
                                        ExpressionError, "combiner returned 1", "tuple"),
    "a combiner without return": (lambda: te.comm_reducer(lambda x, y: None, lambda t: 0)(V[l], axis=l), ExpressionError,
                                  "returned None"),
    "a combiner of three": (lambda: te.comm_reducer(lambda x, y, z: x, lambda t: 0)(V[l], axis=l), ArgumentTypeError,
                            "2 arguments", "not 3"),
    # logic, division, bits
    "and": (lambda: te.compute((8,), lambda i: (i > 1) and (i < 5)), ExpressionError, "te.all"),
    "or": (lambda: te.compute((8,), lambda i: (i > 1) or (i < 5)), ExpressionError, "te.any"),
    "not": (lambda: te.compute((8,), lambda i: not i > 1), ExpressionError, "tir.Not"),
    "if": (lambda: te.compute((8,), lambda i: V[i] if i < 4 else 0.0), ExpressionError, "te.if_then_else"),
    "a chain": (lambda: te.compute((8,), lambda i: 0 <= i < 4), ExpressionError, "te.all(a < b, b < c)"),
    "a division of integers": (lambda: te.compute((8,), lambda i: I[i] / 2), DTypeError, "ambiguous", "//", "te.truncdiv"),
    "a division of tensors of integers": (lambda: I / I, DTypeError, "ambiguous", "//"),
    "bits of floats": (lambda: te.compute((8,), lambda i: V[i] & 1), DTypeError, "bitwise_and takes integers", "reinterpret"),
    "shifted floats": (lambda: te.compute((8,), lambda i: V[i] << 1), DTypeError, "shift_left takes integers"),
    "inverted floats": (lambda: ~V, DTypeError, "bitwise_not takes integers"),
    "a constant too large": (lambda: te.placeholder((2,), "int8")[0] + 300, DTypeError, "300", "int8", "astype"),
    "half and brain floats": (lambda: te.placeholder((2,), "float16")[0] + te.placeholder((2,), "bfloat16")[0], DTypeError,
                              "no common dtype", "float32"),
    "a choice by a number": (lambda: te.if_then_else(I[0], 1.0, 0.0), DTypeError, "not bool", "x != 0"),
    "exp of a bool": (lambda: te.exp(I[0] < 1), DTypeError, "exp takes floats", "bool", "astype('float32')"),
    "fmod of a bool": (lambda: te.fmod(I[0] < 1, 2.0), DTypeError, "fmod takes floats", "cast"),
    "exp of a tensor": (lambda: te.exp(V), ExpressionError, "whole tensor", "topi"),
    "popcount of a float": (lambda: te.popcount(V[0]), DTypeError, "popcount takes integers"),
    "reinterpret to another width": (lambda: te.reinterpret(V[0], "int64"), DTypeError, "width", "astype"),
    "infinity of integers": (lambda: te.infinity("int32"), DTypeError, "no infinity", "max_value"),
    # the function of a compute
    "a function of too few indices": (lambda: te.compute((n, 4), lambda i: A[i, 0]), ShapeError, "2 dimensions",
                                      "takes 1 index (i)", "lambda i, j"),
    "a function of too many indices": (lambda: te.compute((n,), lambda i, j: A[i, j]), ShapeError, "1 dimension ",
                                       "takes 2 indices"),
    "no function": (lambda: te.compute((n,), 3), ArgumentTypeError, "3, not a function", "lambda"),
    "None": (lambda: te.compute((8,), lambda i: None), ExpressionError, "returned None", "return"),
    "a string": (lambda: te.compute((8,), lambda i: "x"), ExpressionError, "'x' (str)"),
    "a whole tensor": (lambda: te.compute((8,), lambda i: V), ExpressionError, "whole tensor", "V[i]"),
    "an empty tuple": (lambda: te.compute((8,), lambda i: ()), ExpressionError, "empty tuple"),
    "an array as a value": (lambda: te.compute((8,), lambda i: np.zeros(3)), ArgumentTypeError, "ndarray of shape (3,)",
                            "te.placeholder"),
    "an array that is indexed": (lambda: te.compute((8,), lambda i: np.arange(8.0)[i]), ArgumentTypeError, "numpy array",
                                 "te.placeholder"),
    "a list that is indexed": (lambda: te.compute((8,), lambda i: [1, 2, 3][i]), ArgumentTypeError, "list", "te.placeholder"),
    "an array beside a tensor": (lambda: V + np.zeros(8), ArgumentTypeError, "ndarray", "te.placeholder"),
    "a tensor beside an array": (lambda: np.zeros(8) * V, ArgumentTypeError, "ndarray", "te.placeholder"),
    "an array to reduce": (lambda: te.max(np.zeros(8), axis=l), ArgumentTypeError, "te.placeholder"),
    "an array as a formula": (lambda: te.compute((8,), np.zeros(8)), ArgumentTypeError, "te.placeholder"),
    "a foreign axis": (lambda: te.compute((8,), lambda i: V[te.compute((8,), lambda j: V[j]).op.axis[0]]), ExpressionError,
                       "uses j", "does not belong", "its axes: i"),
    "an inner compute over an outer axis": (lambda: te.compute((8,), lambda i: te.compute((8,), lambda j: V[i + j])[0]),
                                            ExpressionError, "uses i"),
    "a whole tensor in a formula": (lambda: te.compute((8,), lambda i: I[i] * V), ExpressionError, "formula over i", "V[i]"),
    # shapes
    "a negative shape": (lambda: te.placeholder((4, -1), name="A"), ShapeError, "placeholder A", "dimension 1", "-1"),
    "a float shape": (lambda: te.compute((5 / 2,), lambda i: i), ShapeError, "2.5", "//"),
    "a shape of text": (lambda: te.placeholder("4"), ShapeError, "'4'"),
    "a shape of a bool": (lambda: te.placeholder((V[0] > 1.0,)), ShapeError, "not an integer"),
    "a shape of a small integer": (lambda: te.placeholder((te.var("m", "uint8"),)), ShapeError, "m", "uint8", "int32"),
    "no shape": (lambda: te.placeholder(None), ShapeError, "()"),
    "an unknown dtype": (lambda: te.placeholder((4,), "float31"), DTypeError, "float31", "float32"),
    "a dtype as name": (lambda: te.placeholder((4,), "float32", 7), ArgumentTypeError, "name", "7"),
    # operators on whole tensors
    "shapes that do not broadcast": (lambda: V + te.placeholder((7,), name="W"), ShapeError, "(8) of V", "(7) of W",
                                     "one of them 1"),
    "symbolic shapes that may differ": (lambda: A + te.placeholder((te.var("m"), 4), name="B"), ShapeError, "n and m",
                                        "cannot be proved equal", "te.var"),
    "the truth of a comparison": (lambda: bool(V > 1.0), ExpressionError, "no truth value", "if_then_else"),
    # tags and outputs
    "an output that is not there": (lambda: V.op.output(1), ArgumentError, "1 output", "output(1)"),
    "a tag of a number": (lambda: te.tag_scope(3), ArgumentError, "str"),
    "a thread axis without tag": (lambda: te.thread_axis(), ArgumentError, "threadIdx.x"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.replace(" ", "-"))
def test_refused_with_words(case):
    program, kind, *words = CASES[case]
    with pytest.raises(kind) as caught:
        program()
    assert isinstance(caught.value, TedslError)
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in:\n{caught.value}"
    assert not re.search(r"0x[0-9a-f]{6}|tedsl\.|object at", str(caught.value))


def test_a_cyclic_definition():
    with pytest.raises(ExpressionError, match=r"compute B(.|\n)*cyclic definition(.|\n)*te\.scan"):
        B = te.compute((8,), lambda i: B[i - 1] + V[i], name="B")
    with pytest.raises(ExpressionError, match=r"'Undefined'(.|\n)*spelling(.|\n)*cyclic"):
        te.compute((8,), lambda i: Undefined[i])  # noqa: F821


def test_a_reduce_axis_used_again_downstream():
    m = te.reduce_axis((0, 8), name="m")
    B = te.compute((8,), lambda i: te.sum(V[m] * V[i], axis=m), name="B")
    C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
    with pytest.raises(ExpressionError, match=r"compute D: (.|\n)*m is already used by the compute B(.|\n)*another"):
        te.compute((8,), lambda i: te.sum(C[m], axis=m), name="D")


def test_tag_scopes_do_not_nest():
    with te.tag_scope("a"):
        with pytest.raises(ArgumentError, match=r"'b'(.|\n)*'a'"), te.tag_scope("b"):
            pass
        with pytest.raises(ArgumentError, match="tag='c'"):
            te.compute((8,), lambda i: V[i], tag="c")
    assert te.compute((8,), lambda i: V[i]).op.tag == ""


def test_errors_of_the_users_own_code_pass_through():
    def broken(i):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        te.compute((8,), broken)
    with pytest.raises(TypeError, match="unsupported operand"):
        V + object()
    with pytest.raises(TypeError, match="unsupported operand"):
        te.compute((8,), lambda i: V[i] + object())
