"""The walk over accesses: what is read and written where."""

import pytest

from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.builder import create
from tedsl.ir.expr import And, Broadcast, Let, Load, Or, Ramp, Select, Var, pointer_var
from tedsl.ir.stmt import AssertStmt, Evaluate, IfThenElse, LetStmt, SeqStmt, Store, While
from tedsl.ir.walk.accesses import accesses, reads
from tedsl.ir.walk.around import OUTSIDE, Condition, Loop, WithoutLets
from tedsl.ir.walk.lanes import lanes_of

A, B = pointer_var("A", "int32"), pointer_var("B", "int32")
P, Q = Var("p", "bool"), Var("q", "bool")
I, X = Var("i"), Var("x")


def load(index, memory=A):
    return Load("int32", memory, build.as_expr(index))


def store(index):
    return Store(B, build.as_expr(0), build.as_expr(index))


def shown(accesses):
    """Each access as text, under its conditions."""
    return [f"{'writes' if a.writes else 'reads'} {a.memory.name}[{a.indices[0]!r}]"
            + "".join(f", {c.value!r}" for c in a.around.conditions()) for a in accesses]


def lazy(condition, yes, no):
    return build.if_then_else(condition, yes, no)


@pytest.mark.parametrize("expr, expected", [
    (load(load(0)) + load(1), ["reads A[0]", "reads A[A[0]]", "reads A[1]"]),
    (Select(P, load(0), load(1)), ["reads A[0], p", "reads A[1], !p"]),
    (lazy(load(2) > 0, load(0), load(1)), ["reads A[2]", "reads A[0], (A[2] > 0)", "reads A[1], !(A[2] > 0)"]),
    (And(load(0) > 0, load(1) > 0), ["reads A[0]", "reads A[1], (A[0] > 0)"]),
    (Or(P, And(Q, load(1) > 0)), ["reads A[1], !p, q"]),
    (And(load(0) > 0, P), ["reads A[0]"]),
])
def test_reads_of_an_expression_in_order(expr, expected):
    assert shown(reads([expr])) == expected


def test_shared_load_comes_once_for_each_set_of_conditions():
    same = load(0)
    assert shown(reads([same + Select(P, same, 1)])) == ["reads A[0]"]  # it is read in any case
    assert shown(reads([Select(P, same, 1) + Select(Q, same, 1)])) == ["reads A[0], p", "reads A[0], q"]
    assert shown(reads([same, same + 1])) == ["reads A[0]"]
    assert shown(reads([Select(P, same, same + 1)])) == ["reads A[0]"]  # on either side


def test_load_in_many_places_comes_once_where_one_set_of_conditions_holds():
    same = load(0)
    used = build.as_expr(0)
    for k in range(5):
        used = used + Select(k > I, Select(P, same, 1), 0)
    read, = reads([Select(Q, used, 0)], most_places=4)
    either, *others = read.facts
    assert repr(others) == "[q]" and repr(either).count("p") == 5
    assert len(list(read.facts.choices())) == 11


def test_chosen_values_that_are_used_again_are_linear():
    e = load(0)
    for _ in range(60):
        e = Select(e > 0, e, e * 2)  # e occurs three times in each
    assert shown(reads([e])) == ["reads A[0]"]


@pytest.mark.parametrize("nest", [lambda e: load(e + 1), lambda e: Select(P, load(1), e), lambda e: lazy(e > 0, e, 1)])
def test_ten_thousand_levels(nest):
    e = load(0)
    for _ in range(10_000):
        e = nest(e)
    assert sum(1 for _ in reads([e])) > 0


def test_what_evaluates_both_sides_is_known():
    eager, chosen = Select(P, load(0), 1), lazy(P, load(0), 1)
    assert list(next(reads([eager])).facts.choices()) == [eager]
    assert list(next(reads([chosen])).facts.choices()) == []


def test_conditions_are_taken_apart_into_comparisons():
    condition = Condition(Or(build.logical_not(I < 4), And(I > 2, P)), False)
    assert repr(condition.facts) == "((i < 4), !((i > 2) && p))"
    assert repr(Condition(build.likely(And(I < 4, P))).facts) == "((i < 4), p)"
    assert repr(Condition(Var("f", "float32") < 1, False).facts) == "(!(f < 1f),)"  # NaN: neither < nor >=


def test_accesses_of_statements_in_order_with_what_stands_around():
    ib = create()
    out = ib.buffer_ptr(decl_buffer((8,), "int32", "out"))
    with ib.for_range(0, 8, "i") as i:
        with ib.if_scope(i > 2):
            out[i] = out[i - 1] + 1
        with ib.else_scope():
            out[i] = 0
    found = list(accesses(ib.get()))
    assert shown(found) == ["reads out[(i - 1)], (i > 2)", "writes out[i], (i > 2)", "writes out[i], !(i > 2)"]
    assert [loop.var.name for loop in found[0].around.loops()] == ["i"]
    assert found[0].statement is found[1].node


def test_bodies_of_assertions_and_while_loops_stand_under_their_conditions():
    body = Store(B, load(I), I)
    assert shown(accesses(AssertStmt(load(0) > 0, "no", body))) == [
        "reads A[0]", "reads A[i], (A[0] > 0)", "writes B[i], (A[0] > 0)"]
    assert shown(accesses(While(P, body))) == ["reads A[i], p", "writes B[i], p"]


def test_sequences_are_followed_until():
    stop = Evaluate(X)
    body = IfThenElse(P, SeqStmt([store(0), stop, store(1)]), store(2))
    assert shown(accesses(body, until=lambda stmt: stmt is stop)) == ["writes B[0], p", "writes B[2], !p"]


def test_lets_are_written_out():
    access, = accesses(LetStmt(X, load(0), store(X + 1)), wanted=lambda node: False)
    assert repr(access.indices) == "((x + 1),)"
    assert repr(access.without_lets(WithoutLets()).indices) == "((A[0] + 1),)"
    kept = access.without_lets(WithoutLets(keep=lambda value: isinstance(value, Load)))
    assert repr(kept.indices) == "((x + 1),)" and kept.around is access.around
    inner, = reads([Let(X, I + 1, load(X * 2))])
    assert repr(inner.without_lets(WithoutLets()).indices) == "(((i + 1)*2),)"


def test_places_share_what_they_have_in_common():
    loop = OUTSIDE.within(Loop(I, build.as_expr(0), build.as_expr(8)))
    one, other = loop.within(Condition(P)), loop.within(Condition(Q))
    assert one.includes(loop) and loop.includes(loop) and not one.includes(other) and not loop.includes(one)


def test_lanes_of_indices():
    ramp = Ramp(I, build.as_expr(2), 3)
    assert repr(lanes_of((X, ramp))) == "[(x, i), (x, (i + 2)), (x, (i + 4))]"
    assert repr(lanes_of((ramp + Broadcast(X, 3),))) == "[((i + x),), (((i + 2) + x),), (((i + 4) + x),)]"
