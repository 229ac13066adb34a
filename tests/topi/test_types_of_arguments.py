"""Every operator with something of another type in the place of each argument: no bare error of Python comes out."""

import importlib.util
import inspect
import pathlib
import sys

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import ArgumentTypeError, DTypeError, ShapeError, TedslError

PLACE = pathlib.Path(__file__).parents[2] / "docs" / "operator_examples.py"
SPEC = importlib.util.spec_from_file_location("operator_examples", PLACE)
EXAMPLES = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(EXAMPLES)

WRONG = {"None": None, "string": "x", "number": 7, "fraction": 1.5, "list": [1, "a"], "nones": [None, None], "object": object(),
         "scalar": te.placeholder((), "float32", name="scalar")}
ROOMS = ((topi, ""), (topi.nn, "nn."), (topi.image, "image."), (topi.vision, "vision."),
         (topi.random, "random."), (topi.sparse, "sparse."))
OPERATORS = [(prefix + name, getattr(room, name)) for room, prefix in ROOMS for name in sorted(room.__all__)
             if inspect.isfunction(getattr(room, name)) and getattr(room, name).__name__ == name]


def arguments_of(name, operator):
    """What the example of the operator calls it with, by parameter."""
    own = inspect.unwrap(operator)
    required = [one for one in inspect.signature(operator).parameters.values() if one.default is inspect.Parameter.empty]
    example = EXAMPLES.EXAMPLES.get(name) or EXAMPLES.plain(operator, len(required))
    for dtype in ("float32", "int32", "bool", "uint32", "uint64"):
        found = []

        def look(frame, event, argument, found=found):
            if event == "call" and frame.f_code is own.__code__:
                found.append(dict(frame.f_locals))

        before = sys.getprofile()
        sys.setprofile(look)
        try:
            example(lambda *shape, dtype=dtype: te.placeholder(shape, dtype, name="data"))
        except TedslError:
            continue
        finally:
            sys.setprofile(before)
        return found[0]
    raise AssertionError(f"no example of {name}")


def call(operator, values):
    by_place, by_name = [], {}
    for name, parameter in inspect.signature(operator).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            by_name[name] = values[name]
            continue
        listed = parameter.kind is parameter.VAR_POSITIONAL and isinstance(values[name], tuple)
        by_place += values[name] if listed else [values[name]]
    return operator(*by_place, **by_name)


@pytest.mark.parametrize("room", ["", "nn.", "image."])
def test_no_argument_gives_a_bare_error(room):
    bare, calls = [], 0
    for name, operator in OPERATORS:
        if not name.startswith(room) or (not room and "." in name):
            continue
        values = arguments_of(name, operator)
        for parameter in values:
            for what, wrong in WRONG.items():
                calls += 1
                try:
                    call(operator, {**values, parameter: wrong})
                except TedslError:
                    pass
                except Exception as error:  # whatever else comes out is what this test is about
                    bare.append(f"{name}({parameter}={what}): {type(error).__name__}: {error}")
    assert not bare, "\n".join(bare)
    assert calls > 300


A, N, B = te.placeholder((2, 3), name="A"), te.placeholder((4,), "int32", name="N"), te.placeholder((4,), "bool", name="B")
DATA, WEIGHT = te.placeholder((1, 3, 8, 8), name="data"), te.placeholder((4, 3, 3, 3), name="weight")


@pytest.mark.parametrize("made, error, words", [
    (lambda: topi.concatenate(None), ArgumentTypeError, "concatenate: a_tuple is None where a tensor or a list is meant"),
    (lambda: topi.concatenate([A, None]), ArgumentTypeError, "concatenate: a_tuple.1. is None where a tensor is meant"),
    (lambda: topi.broadcast_to(A, 7), ShapeError, r"broadcast_to: A has 2 dimensions, the shape \(7,\) only 1"),
    (lambda: topi.layout_transform(A, "NC", None), ArgumentTypeError, "layout_transform: dst_layout is None where a string"),
    (lambda: topi.strided_slice(A, "x", [1]), ArgumentTypeError, "strided_slice: begin is 'x' where"),
    (lambda: topi.tensordot(A, A, axes=1.5), ArgumentTypeError, "tensordot: axes is 1.5 where a whole number or a list"),
    (lambda: topi.nn.lrn(DATA, "x"), ArgumentTypeError, "lrn: size is 'x' where a whole number is meant"),
    (lambda: topi.nn.lrn(DATA, 3, alpha="x"), ArgumentTypeError, "lrn: alpha is 'x' where a number is meant"),
    (lambda: topi.nn.upsampling(DATA, 2, 2, output_shape=4), ArgumentTypeError, "upsampling: output_shape is 4 where a list"),
    (lambda: topi.einsum("ij,jk", A, 3), ArgumentTypeError, "einsum: .* is 3 where a tensor is meant"),
    (lambda: topi.left_shift(N, -1), ShapeError, "left_shift: rhs is -1(.|\n)*topi.right_shift by 1"),
    (lambda: topi.right_shift(N, te.const(-3)), ShapeError, "right_shift: rhs is -3"),
    (lambda: topi.negative(B), DTypeError, "negative: x is bool"),
    (lambda: topi.sign(B), DTypeError, "sign: x is bool"),
    (lambda: topi.nn.conv2d(DATA, WEIGHT, 1, 1, 1, out_dtype="int8"), DTypeError,
     "conv2d_nchw of data and weight: out_dtype is int8 and data holds float32"),
    (lambda: topi.nn.dense(A, A, out_dtype="int32"), DTypeError, "dense of A and A: out_dtype is int32"),
    (lambda: topi.searchsorted(te.placeholder((4,)), WRONG["scalar"]), ShapeError, "values scalar is a scalar"),
    *[(lambda room=room: room.schedule_reduce(A), ArgumentTypeError, "schedule: A is a placeholder, which has no loops")
      for room in (topi.generic, topi.x86, topi.cuda)],
])
def test_the_operator_and_its_argument_are_named(made, error, words):
    with pytest.raises(error, match=words):
        made()


def test_numbers_of_numpy_are_numbers():
    assert topi.tile(A, np.array([1, 2])).shape[1].value == 6
    assert topi.nn.lrn(DATA, np.int64(3), alpha=np.float32(0.1)).shape == DATA.shape
    assert topi.tensordot(A, te.placeholder((3, 2)), np.int64(1)).ndim == 2
    assert topi.tensordot(A, te.placeholder((3, 2)), [[1], (0,)]).ndim == 2
    assert str(topi.divide(A, np.float32(2)).dtype) == "float32"
