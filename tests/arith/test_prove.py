"""sympy is asked about products of symbols only, and stays away otherwise."""

import subprocess
import sys

import pytest

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import SizeVar, Var

N, M, K, X = SizeVar("n"), SizeVar("m"), SizeVar("k"), Var("x")


def test_products_of_sizes():
    known = Analyzer()
    with known.constraint_scope(M > 0):
        assert known.can_prove(N * M >= N)
        assert known.can_prove(N * M * K >= N * K)
        assert not known.can_prove(N * M >= M)
    assert not known.can_prove(N * M >= N)


def test_squares():
    known = Analyzer()
    assert known.can_prove(X * X + 1 > 0)
    assert known.can_prove(X * X - X * 2 + 1 >= 0)
    assert not known.can_prove(X * X - X * 3 + 1 >= 0)


@pytest.mark.parametrize("statement", ["X * 32 + Y < 4096", "X * 32 + Y < N", "X // 4 * 4 + Y % 4 <= N + 3"])
def test_sympy_is_not_loaded_for_affine_questions(statement):
    code = f"""
import sys
from tedsl.arith.analyzer import Analyzer
from tedsl.ir.expr import SizeVar, Var
X, Y, N = Var("x"), Var("y"), SizeVar("n")
Analyzer().can_prove({statement})
assert "sympy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_conjunction_needs_all_its_parts():
    known = Analyzer()
    with known.constraint_scope(M > 0):
        assert known.can_prove(build.logical_and(N * M >= N, N * M * K >= N * K))
        assert not known.can_prove(build.logical_and(N * M >= N, X > 0))
