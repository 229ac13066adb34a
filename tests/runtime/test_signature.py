"""How the arguments of a call determine the variables of shapes, and exact integers behind them."""

import itertools

import pytest

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import Add, FloorDiv, Mul, Var
from tedsl.runtime.shapes import coefficient, exact
from tedsl.runtime.signature import scalar_variables, signature_of
from tests.runtime.stand_in import array, function

N, M = Var("n"), Var("m")


def bindings(*args):
    return {b.var.name: (b.kind, b.param, b.dim, b.scale) for b in signature_of(function(*args)).bindings}


def test_a_plain_dimension_is_preferred_to_a_formula():
    assert bindings(array("A", build.mul(N, 2)), array("B", 3, N)) == {"n": ("shape", 1, 1, 1)}


def test_a_scalar_argument_is_preferred_to_all():
    assert bindings(array("A", N), N) == {"n": ("scalar", 1, 0, 1)}


def test_chains_of_formulas_are_solved_in_order():
    found = bindings(array("A", build.add(build.mul(N, 3), M)), array("B", build.add(M, 1)))
    assert found == {"m": ("shape", 1, 0, 1), "n": ("shape", 0, 0, 3)}


def test_strides_and_offsets():
    func = function(array("A", N, M, symbolic_strides=True, elem_offset=Var("offset")))
    assert bindings(*func.buffer_map.values())["offset"][0] == "offset"
    assert [b.kind for b in signature_of(func).bindings] == ["offset", "shape", "shape", "stride", "stride"]
    assert [v.name for v in scalar_variables(func)] == ["n", "m", "stride", "stride", "offset"]


@pytest.mark.parametrize("dim", [build.mul(N, M), build.floordiv(N, 2), build.maximum(N, 4)])
def test_what_is_not_linear_determines_nothing(dim):
    with pytest.raises(LoweringError, match="no argument determines n"):
        signature_of(function(array("A", dim)))


def test_written_parameters():
    sig = signature_of(function(array("A", 4), array("B", 4), N, outputs="B"))
    assert [getattr(p, "written", None) for p in sig.params] == [False, True, None]
    assert sig.names == "A, B, n" and not sig.has_symbolic_strides()


@pytest.mark.parametrize("expr, expected", [
    (N, 1), (M, 0), (build.add(build.mul(N, 3), build.mul(M, M)), 3), (build.sub(M, build.mul(2, N)), -2),
    (build.cast("int64", build.add(N, N)), 2), (Mul(N, N), None), (FloorDiv(N, build.const(2)), None),
    (Mul(M, N), None), (Add(FloorDiv(M, build.const(2)), N), 1)])
def test_coefficients(expr, expected):
    assert coefficient(expr, N) == expected


@pytest.mark.parametrize("make", [build.add, build.sub, build.mul, build.floordiv, build.floormod, build.truncdiv,
                                  build.truncmod, build.minimum, build.maximum])
def test_exact_values_agree_with_the_interpreter_and_do_not_wrap(make):
    expr = make(N, M)
    for n, m in itertools.product(range(-7, 8), range(-4, 5)):
        assert exact(expr, {N: n, M: m}) == evaluate(expr, {N: n, M: m})
    assert exact(build.mul(N, M), {N: 2**31 - 1, M: 2**31 - 1}) == (2**31 - 1) ** 2
