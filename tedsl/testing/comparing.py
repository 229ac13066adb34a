"""Compares results: arrays, expressions, and derivatives with finite differences."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.int_solver.constraints import IntConstraints, IntConstraintsTransform
from tedsl.errors import ArgumentError, ArgumentTypeError, entry
from tedsl.ir import build
from tedsl.ir.build import as_expr, as_int, logical_not, logical_or
from tedsl.ir.evaluate import evaluate
from tedsl.ir.iters import Range
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables
from tedsl.runtime.array import NDArray


@entry
def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Raises AssertionError unless shapes agree and |actual - desired| <= atol + rtol * |desired| everywhere; NaNs are equal.
    """
    import numpy

    left, right = (numpy.asanyarray(x.numpy() if isinstance(x, NDArray) else x) for x in (actual, desired))
    if left.shape != right.shape:
        raise AssertionError(f"the shapes differ: {left.shape} and {right.shape}")
    numpy.testing.assert_allclose(left, right, rtol=rtol, atol=atol, verbose=True)


@entry
def assert_prim_expr_equal(lhs: Any, rhs: Any) -> None:
    """Raises AssertionError unless both expressions are proved equal for all values of their variables."""
    a, b = as_expr(lhs), as_expr(rhs)
    if not structural_equal(a, b) and not Analyzer().can_prove(a.equal(b)):
        raise AssertionError(f"{a!r} and {b!r} are not known to be equal")


@entry
def check_bool_expr_is_true(bool_expr: Any, vranges: Mapping[Any, Range], cond: Any = None) -> None:
    """Raises AssertionError unless `bool_expr` holds for all values of the variables in `vranges` for which `cond` does.

    vranges: a Range of constants for each variable. Every combination of values is tried.
    """
    holds = as_expr(bool_expr) if cond is None else logical_or(logical_not(as_expr(cond)), as_expr(bool_expr))
    spans = []
    for var, of in vranges.items():
        first, count = as_int(of.min), None if of.extent is None else as_int(of.extent)
        if first is None or count is None:
            raise ArgumentError(f"check_bool_expr_is_true: the range of {var.name} is {of!r}, not of constants")
        spans.append(range(first, first + count))
    free = [var.name for var in variables(holds) if var not in vranges]
    if free:
        raise ArgumentError(f"check_bool_expr_is_true: {bool_expr!r} uses {', '.join(free)}, and vranges has no range of it")
    for point in itertools.product(*spans):
        values = dict(zip(vranges, point))
        if not evaluate(holds, values):
            where = ", ".join(f"{var.name} = {value}" for var, value in values.items())
            raise AssertionError(f"{bool_expr!r} does not hold for {where}")


@entry
def check_int_constraints_trans_consistency(constraints_trans: IntConstraintsTransform,
                                            vranges: Mapping[Any, Range] | None = None) -> None:
    """Raises AssertionError unless the two systems of a transformation have solutions that correspond one to one.

    Every combination of values of the variables of each side is tried: one that fulfils its system gives, by the
    transformation, one that fulfils the other and that gives the first one back. vranges: of variables that the systems have
    no range for.
    """
    if not isinstance(constraints_trans, IntConstraintsTransform):
        raise ArgumentTypeError("check_int_constraints_trans_consistency takes what arith.solve_linear_equations returns, "
                                f"not {constraints_trans!r}")
    there, back = constraints_trans.src_to_dst, constraints_trans.dst_to_src
    _check_one_way(constraints_trans.src, constraints_trans.dst, back, there, vranges or {})
    _check_one_way(constraints_trans.dst, constraints_trans.src, there, back, vranges or {})


def _check_one_way(one: IntConstraints, other: IntConstraints, of_others: Mapping[Any, Any], of_own: Mapping[Any, Any],
                   vranges: Mapping[Any, Range]) -> None:
    """Tries the solutions of `one`. of_others: the variables of `other` in terms of those of `one`; of_own: the reverse."""
    ranges = {var: known for var in one.variables if (known := one.ranges.get(var, vranges.get(var))) is not None}
    conditions = [build.equal(substitute(of_own[var], of_others), var) for var in one.variables if var in of_own]
    for var, known in other.ranges.items():
        moved = of_others[var]
        assert known.extent is not None, "ranges of systems have extents"
        conditions += [moved >= known.min, moved < known.min + known.extent]
    conditions += [substitute(relation, of_others) for relation in other.relations]
    given = functools.reduce(build.logical_and, one.relations, build.const(True))
    check_bool_expr_is_true(functools.reduce(build.logical_and, conditions, build.const(True)), ranges, given)


@entry
def check_numerical_grads(function: Callable[..., Any], input_values: Any, grad_values: Any, function_value: Any = None,
                          delta: float = 1e-3, atol: float = 1e-2, rtol: float = 0.1) -> None:
    """Raises AssertionError unless `grad_values` are close to the finite differences of `function` at `input_values`.

    function: takes arrays, by position or by name, and returns a number. input_values, grad_values: lists or dicts of arrays,
    with one derivative for each element. The differences are central, over 2 * delta. As in TVM, the Euclidean distance between
    derivatives and differences must be at most atol * sqrt(size) + rtol * the norm of the differences. function_value is not
    needed: central differences do not use it.
    """
    import numpy

    by_name = isinstance(input_values, dict)
    names = list(input_values) if by_name else list(range(len(input_values)))
    if (set(grad_values) if by_name else set(range(len(grad_values)))) != set(names):
        raise ArgumentError("check_numerical_grads: there is one array of derivatives for each array of inputs")
    inputs: dict[Any, Any] = {name: numpy.array(_plain(input_values[name]), "float64") for name in names}
    for name in names:
        derivative = numpy.asarray(_plain(grad_values[name]), "float64")
        if derivative.shape != inputs[name].shape:
            raise AssertionError(f"input {name} has shape {inputs[name].shape}, its derivatives {derivative.shape}")
        difference = numpy.zeros_like(derivative)
        for place in numpy.ndindex(*derivative.shape):
            difference[place] = (_moved(function, inputs, name, place, delta, by_name)
                                 - _moved(function, inputs, name, place, -delta, by_name)) / (2 * delta)
        distance = float(numpy.linalg.norm(derivative - difference))
        if not distance <= atol * derivative.size**0.5 + rtol * float(numpy.linalg.norm(difference)):
            raise AssertionError(f"the derivatives by input {name} are at a distance of {distance:g} from the differences:\n"
                                 f"{derivative}\nand\n{difference}")


def _plain(value: Any) -> Any:
    return value.numpy() if isinstance(value, NDArray) else value


def _moved(function: Callable[..., Any], inputs: dict[Any, Any], name: Any, place: Sequence[int], step: float,
           by_name: bool) -> float:
    """Returns the value of `function` with one element of one input changed by `step`."""
    given = {key: value.copy() for key, value in inputs.items()}
    given[name][tuple(place)] += step
    return float(function(**given) if by_name else function(*given.values()))
