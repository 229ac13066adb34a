"""Proofs about integers: ranges, canonical sums, simplification, divisibility, linear equations.

    ranges -> affine (sums of terms) -> canonical (equal values, one representative) -> bounds (what is known here)
    rules/<operator>: one step of simplification each, with its side condition -> simplify -> analyzer (the front door)
    inequality: proofs over symbols      prove: sympy's opinion      interval: regions
    pattern, bound: equations, conditions
    int_solver/: linear equations and inequalities in several variables
    iter_affine_map/: indices as parts of loops, and their inverse
    splits: x//4*4 + x%4 is x            modular: divisibility       conditions: what an `if` teaches

**When the rules apply.** The arithmetic rules hold for ideal integers. An expression is treated as ideal (it is *exact*) if
- it is *index arithmetic*: scalar int32 or int64 whose leaves are variables and constants (decision 3: it never overflows;
  the conditions of its choices may be anything), or
- the range of its ideal value is proved to lie within its dtype by the ranges of its variables and the dtypes of its other
  leaves (not by the conditions around it), e.g. `cast(int32, A[i]) + 1` for a uint8 `A`.
Everything else (loads, calls, narrow or unsigned dtypes, sums of them that may wrap, variables that stand for such values)
is *data*: opaque to the arithmetic, and rewritten only by identities that also hold modulo 2**bits. Floats: only identities
that hold for every bit pattern. Division by zero gives 0, so a rule that cancels a divisor asks for a proof that it is not 0;
the extent of a loop whose variable is used counts as positive, since that loop runs.
Memory may change between two statements, so no fact about a loaded value is remembered by a constraint.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tedsl.errors import missing_name, public

if TYPE_CHECKING:
    from tedsl.arith.analyzer import Analyzer
    from tedsl.arith.bound import deduce_bound, detect_clip_bound
    from tedsl.arith.int_set import DomainTouched, estimate_region_lower_bound
    from tedsl.arith.int_solver.constraints import IntConstraints, IntConstraintsTransform, IntGroupBounds
    from tedsl.arith.int_solver.solve import solve_linear_equations, solve_linear_inequalities
    from tedsl.arith.iter_affine_map.detect import detect_iter_map
    from tedsl.arith.iter_affine_map.divide import subspace_divide
    from tedsl.arith.iter_affine_map.inverse import inverse_affine_iter_map
    from tedsl.arith.iter_affine_map.nodes import IterMapExpr, IterMark, IterSplitExpr, IterSumExpr, normalize_iter_map_to_expr
    from tedsl.arith.linear import detect_linear_equation
    from tedsl.arith.sets import ConstIntBound, IntervalSet, IntSet, ModularSet

_HOMES = {  # name → the module that defines it; imported on first use
    "Analyzer": "analyzer", "ConstIntBound": "sets", "ModularSet": "sets", "IntSet": "sets", "IntervalSet": "sets",
    "detect_linear_equation": "pattern", "deduce_bound": "bound", "detect_clip_bound": "bound",
    "IntConstraints": "int_solver", "IntConstraintsTransform": "int_solver", "IntGroupBounds": "int_solver",
    "solve_linear_equations": "int_solver", "solve_linear_inequalities": "int_solver", "IterMapExpr": "iter_affine_map",
    "IterMark": "iter_affine_map", "IterSplitExpr": "iter_affine_map", "IterSumExpr": "iter_affine_map",
    "normalize_iter_map_to_expr": "iter_affine_map", "detect_iter_map": "iter_affine_map",
    "subspace_divide": "iter_affine_map", "inverse_affine_iter_map": "iter_affine_map",
    "estimate_region_lower_bound": "int_set", "DomainTouched": "int_set",
}
# Modules of names that programs write `arith.<module>.<name>`, and what they are called here.
_MODULES = {"analyzer": "analyzer", "bound": "bound", "int_set": "int_set", "int_solver": "int_solver",
            "iter_affine_map": "iter_affine_map", "pattern": "pattern", "_ffi_api": "int_set"}
__all__ = ["Analyzer", "ConstIntBound", "DomainTouched", "IntConstraints", "IntConstraintsTransform", "IntGroupBounds",
           "IntSet", "IntervalSet", "IterMapExpr", "IterMark", "IterSplitExpr", "IterSumExpr", "ModularSet",
           "deduce_bound", "detect_clip_bound", "detect_iter_map", "detect_linear_equation", "estimate_region_lower_bound",
           "inverse_affine_iter_map", "normalize_iter_map_to_expr", "solve_linear_equations", "solve_linear_inequalities",
           "subspace_divide"]


if not TYPE_CHECKING:  # for type checkers a misspelled name is an error
    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"tedsl.arith.{_MODULES[name]}")
        home = _HOMES.get(name)
        if home is None:
            raise missing_name(__name__, name, _HOMES)
        return public(getattr(import_module(f"tedsl.arith.{home}"), name), __name__, name)
