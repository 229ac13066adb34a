"""The names of TVM's arith, with their parameters and defaults."""

import inspect
from importlib import import_module

import pytest

from tedsl import arith

REQUIRED = inspect.Parameter.empty
SIGNATURES = {
    "ConstIntBound": {"min_value": REQUIRED, "max_value": REQUIRED},
    "ModularSet": {"coeff": REQUIRED, "base": REQUIRED},
    "IntervalSet": {"min_value": REQUIRED, "max_value": REQUIRED},
    "IntSet.vector": {"vec": REQUIRED},
    "IntSet.single_point": {"point": REQUIRED},
    "Analyzer": {},
    "Analyzer.const_int_bound": {"expr": REQUIRED},
    "Analyzer.modular_set": {"expr": REQUIRED},
    "Analyzer.simplify": {"expr": REQUIRED, "steps": 2},
    "Analyzer.rewrite_simplify": {"expr": REQUIRED},
    "Analyzer.canonical_simplify": {"expr": REQUIRED},
    "Analyzer.int_set": {"expr": REQUIRED, "dom_map": REQUIRED},
    "Analyzer.bind": {"var": REQUIRED, "expr": REQUIRED},
    "Analyzer.constraint_scope": {"constraint": REQUIRED},
    "Analyzer.update": {"var": REQUIRED, "info": REQUIRED, "override": False},
    "Analyzer.can_prove_equal": {"lhs": REQUIRED, "rhs": REQUIRED},
    "deduce_bound": {"var": REQUIRED, "cond": REQUIRED, "hint_map": REQUIRED, "relax_map": REQUIRED},
    "detect_linear_equation": {"expr": REQUIRED, "var_list": REQUIRED},
    "detect_clip_bound": {"expr": REQUIRED, "var_list": REQUIRED},
    "solve_linear_equations": {"equations": REQUIRED, "variables": None, "ranges": None},
    "solve_linear_inequalities": {"equations": REQUIRED, "variables": None, "ranges": None, "deskew_range": False},
    "IntGroupBounds": {"coef": REQUIRED, "lower": REQUIRED, "equal": REQUIRED, "upper": REQUIRED},
    "IntGroupBounds.from_range": {"rng": REQUIRED},
    "IntGroupBounds.find_best_range": {},
    "IntConstraintsTransform": {"src": REQUIRED, "dst": REQUIRED, "src_to_dst": REQUIRED, "dst_to_src": REQUIRED},
    "IterMark": {"source": REQUIRED, "extent": REQUIRED},
    "IterSplitExpr": {"source": REQUIRED, "lower_factor": REQUIRED, "extent": REQUIRED, "scale": REQUIRED},
    "IterSumExpr": {"args": REQUIRED, "base": REQUIRED},
    "detect_iter_map": {"indices": REQUIRED, "input_iters": REQUIRED, "predicate": True, "require_bijective": False},
    "normalize_iter_map_to_expr": {"expr": REQUIRED},
    "subspace_divide": {"bindings": REQUIRED, "input_iters": REQUIRED, "sub_iters": REQUIRED, "predicate": True,
                        "require_bijective": False},
    "inverse_affine_iter_map": {"iter_map": REQUIRED, "outputs": REQUIRED},
    "estimate_region_lower_bound": {"region": REQUIRED, "var_dom": REQUIRED, "predicate": REQUIRED},
    "int_set.union_lower_bound": {"sets": REQUIRED},
    "int_set.pos_inf": {},
    "int_set.neg_inf": {},
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters(name):
    found = arith
    for part in name.split("."):
        found = getattr(found, part)
    parameters = {p.name: p.default for p in inspect.signature(found).parameters.values() if p.name != "self"}
    assert parameters == SIGNATURES[name] and list(parameters) == list(SIGNATURES[name])


def test_every_public_name_is_listed():
    listed = {name.split(".")[0] for name in SIGNATURES} | {"IntSet", "IntConstraints", "IterMapExpr"}
    assert set(arith.__all__) <= listed
    assert list(inspect.signature(arith.IntConstraints).parameters) == ["variables", "ranges", "relations"]
    assert issubclass(arith.IterSumExpr, arith.IterMapExpr) and issubclass(arith.IterSplitExpr, arith.IterMapExpr)
    assert (arith.ConstIntBound.NEG_INF, arith.ConstIntBound.POS_INF) == (-2**63 + 1, 2**63 - 1)


def test_names_are_what_they_say():
    from tedsl import tir

    x = tir.Var("x", "int32")
    assert arith.Analyzer().can_prove_equal(x * 2 - x, x) and not arith.Analyzer().can_prove_equal(x, x + 1)
    assert arith.int_set.IntervalSet is arith.IntervalSet


MODULES = {
    "analyzer": ["Analyzer", "ConstIntBound", "ModularSet"], "bound": ["deduce_bound"],
    "int_set": ["IntSet", "IntervalSet", "estimate_region_lower_bound"],
    "int_solver": ["IntConstraints", "IntConstraintsTransform", "IntGroupBounds", "solve_linear_equations",
                   "solve_linear_inequalities"],
    "iter_affine_map": ["IterMapExpr", "IterMark", "IterSplitExpr", "IterSumExpr", "detect_iter_map",
                        "inverse_affine_iter_map", "normalize_iter_map_to_expr", "subspace_divide"],
    "pattern": ["detect_clip_bound", "detect_linear_equation"],
}


@pytest.mark.parametrize("module", MODULES)
def test_names_stand_in_their_modules_too(module):
    for found in (getattr(arith, module), import_module(f"tedsl.arith.{module}")):
        for name in MODULES[module]:
            assert inspect.unwrap(getattr(found, name)) is inspect.unwrap(getattr(arith, name))
