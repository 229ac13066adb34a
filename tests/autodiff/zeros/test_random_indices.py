"""Random formulas: whatever is left out of a sum was zero, and no element out of range is read."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tedsl import te
from tedsl.autodiff.zeros import eliminate_zeros
from tests.autodiff.zeros.sums import adjoint, iterations, results

W = te.placeholder((40,), name="W")


@st.composite
def affine(draw, rank):
    """An index as coefficients and a constant, with what is done to the sum."""
    coefficients = draw(st.lists(st.integers(-3, 4), min_size=rank, max_size=rank))
    kind = draw(st.sampled_from(["", "", "", "//", "%", "min", "choice"]))
    return coefficients, draw(st.integers(-2, 2)), kind, draw(st.integers(2, 4))


def index_of(recipe, axes):
    coefficients, constant, kind, by = recipe
    total = sum((axis * c for axis, c in zip(axes, coefficients) if c), te.const(constant, "int32"))
    if kind == "choice":
        return te.if_then_else(axes[0] < by, total, 3 - total)
    return {"": total, "//": total // by, "%": total % by, "min": te.min(total, by)}[kind]


@st.composite
def formulas(draw):
    out = draw(st.lists(st.integers(1, 5), min_size=1, max_size=2))
    reduced = draw(st.lists(st.integers(1, 4), max_size=2))
    rank = len(out) + len(reduced)
    shape = draw(st.lists(st.integers(1, 7), min_size=1, max_size=2))
    indices = [draw(affine(rank)) for _ in shape]
    bounds = draw(st.lists(st.tuples(affine(rank), st.sampled_from(["<=", ">=", "==", "!=", "or"]), st.integers(-3, 6)),
                           max_size=2))
    return tuple(shape), tuple(out), tuple(reduced), indices, bounds


def compared(value, how, bound):
    return {"<=": lambda: value <= bound, ">=": lambda: value >= bound, "==": lambda: te.all(value == bound),
            "!=": lambda: te.all(value != bound), "or": lambda: te.any(value < bound, value > bound + 2)}[how]()


def written(formula, value=None):
    shape, out, reduced, indices, bounds = formula
    where = None if not bounds else lambda *axes: te.all(*[compared(index_of(recipe, axes), how, bound)
                                                          for recipe, how, bound in bounds])
    return adjoint(shape, out, reduced, lambda *axes: [index_of(recipe, axes) for recipe in indices], value, where)


@settings(max_examples=60, deadline=None)
@given(formulas())
def test_the_values_stay(formula):
    before = written(formula, lambda *axes: W[sum((axis * (k + 1) for k, axis in enumerate(axes)), te.const(0, "int32"))])
    after = eliminate_zeros(before)
    expected, found = results([before, after])
    assert np.array_equal(expected, found), after.op.body
    assert iterations(after) <= iterations(before)


@settings(max_examples=20, deadline=None)
@given(formulas(), st.integers(0, 6), st.integers(0, 5))
def test_the_values_stay_for_symbolic_extents(formula, n, m):
    shape, out, reduced, indices, bounds = formula
    names = te.var("n"), te.var("m")
    before = written(((names[0], *shape[1:]), (names[1], *out[1:]), reduced, indices, bounds))
    after = eliminate_zeros(before)
    expected, found = results([before, after], {"n": n, "m": m})
    assert np.array_equal(expected, found), after.op.body
