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
    "DomainTouched": {"stmt": REQUIRED, "buffer": REQUIRED, "consider_loads": True, "consider_stores": True},
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


def test_mistakes_are_named():
    from tedsl import ir, te
    from tedsl.errors import TedslError

    x, y, run = te.var("x"), te.var("y"), {te.var("i"): ir.Range(0, 4)}
    known = arith.Analyzer()
    for call, says in [
        (lambda: known.int_set(x, {"x": arith.IntervalSet(0, 4)}), "int_set: 'x' is not a variable"),
        (lambda: known.update("x", arith.ConstIntBound(0, 4)), "update: 'x' is not a variable"),
        (lambda: known.constraint_scope(x).__enter__(), "constraint_scope takes a condition, got x"),
        (lambda: known.can_prove("x > 3"), "can_prove takes a condition, got 'x > 3'"),
        (lambda: arith.IntervalSet(x > 3, 1), "an end is (x > 3) of bool"),
        (lambda: arith.detect_linear_equation(x, x), "detect_linear_equation takes a list of variables, got x"),
        (lambda: arith.detect_linear_equation(x, ["x"]), "'x' is not a variable"),
        (lambda: arith.detect_clip_bound(x + 1, [x]), "detect_clip_bound takes a condition, got (x + 1)"),
        (lambda: arith.detect_clip_bound(x < 3, x), "detect_clip_bound takes a list of variables"),
        (lambda: arith.deduce_bound("x", x < 3, {}, {}), "deduce_bound: 'x' is not a variable"),
        (lambda: arith.deduce_bound(x, "x < 3", {}, {}), "deduce_bound takes a condition, got 'x < 3'"),
        (lambda: arith.deduce_bound(x, x < y, {y: 3}, {}), "does not say the interval of each variable"),
        (lambda: arith.inverse_affine_iter_map(None, [x]), "takes lists of maps and outputs, got None"),
        (lambda: arith.estimate_region_lower_bound(ir.Range(0, 4), run, True), "is not a list of Ranges"),
        (lambda: arith.int_set.union_lower_bound(arith.IntervalSet(0, 3)), "takes a list of IntervalSets"),
        (lambda: arith.IntGroupBounds(1, 2, [], []), "takes lists of bounds, got 2"),
    ]:
        with pytest.raises(TedslError) as refused:
            call()
        assert says in str(refused.value)
