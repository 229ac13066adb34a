"""What `contains` says of a tree is what a walk finds, after each pass again."""

import pickle

import pytest

import topi
from tedsl import te, tir
from tedsl.driver import schedule_to_module
from tedsl.ir import expr, stmt
from tedsl.ir.ops import FMA, IF_THEN_ELSE, LIKELY
from tedsl.ir.walk.contents import FLOAT_PRODUCT, MASKED, contains, of_kinds
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.default import lowering_pipeline, target_pipeline
from tedsl.target import Target

KINDS = (expr.Load, expr.Select, expr.Ramp, expr.FloorDiv, expr.Var, stmt.Store, stmt.For, stmt.Allocate, stmt.LetStmt,
         stmt.IfThenElse, IF_THEN_ELSE, LIKELY, FMA, MASKED, FLOAT_PRODUCT, "pragma_import_c")


def is_of(node, kind):
    if kind is MASKED:
        return isinstance(node, (expr.Load, stmt.Store)) and node.predicate is not None
    if kind is FLOAT_PRODUCT:
        return type(node) is expr.Mul and node.dtype.is_float
    return type(node) is kind or getattr(node, "op", None) is kind or getattr(node, "attr_key", None) == kind


def padded_rows():
    n = te.var("n")
    x = te.placeholder((n, 30), name="x")
    y = topi.nn.relu(topi.nn.pad(x, [0, 1], [0, 1]))
    s = te.create_schedule(y.op)
    s[y].vectorize(s[y].split(y.op.axis[1], 8)[1])
    return schedule_to_module(s, [x, y])["main"]


def test_after_each_pass_it_says_what_a_walk_finds():
    func, target = padded_rows(), Target("llvm -mcpu=haswell")
    found = set()
    for step in (*lowering_pipeline().passes, *target_pipeline(target).passes):
        func = step(func)
        for root in post_order(func.body):
            inside = list(post_order(root))
            for kind in KINDS:
                expected = any(is_of(node, kind) for node in inside)
                assert contains(root, kind) == expected, (step, kind)
                found |= {kind} if expected else set()
    assert len(found) > 6


def test_any_of_several_kinds():
    x = tir.Var("x", "int32")
    assert contains(x + 1, expr.Mul, expr.Add) and not contains(x + 1, expr.Mul, expr.Sub) and not contains(x + 1)


def test_a_walk_to_some_kinds_goes_where_they_stand_in_the_order_of_the_whole_walk():
    body = lowering_pipeline()(padded_rows()).body
    for kind in (expr.Load, stmt.Store, expr.Select, stmt.LetStmt):
        assert list(of_kinds(body, kind)) == [node for node in post_order(body) if contains(node, kind)]
    assert len(list(of_kinds(body, expr.Load))) < len(list(post_order(body))) / 2


def test_nodes_that_were_pickled_know_what_stands_in_them():
    x = tir.Var("x", "int32")
    e = pickle.loads(pickle.dumps(tir.max(x + 1, 3)))
    assert contains(e, expr.Max) and contains(e, expr.Add) and not contains(e, expr.Mul)
    assert contains(tir.if_then_else(x > 1, e, x), IF_THEN_ELSE)


@pytest.mark.parametrize("depth", [10_000])
def test_a_deep_tree(depth):
    e = x = tir.Var("x", "int32")
    for _ in range(depth):
        e = tir.Mul(e, x)
    assert contains(e, expr.Mul) and contains(e, expr.Var) and not contains(e, expr.Add)
