"""Every schedule that a sketch writes computes what the formulas say, and the same decisions write the same schedule."""

import random

import numpy as np
import pytest

import tedsl
from tedsl.auto_scheduler.search.problem import Problem
from tedsl.auto_scheduler.search.proposal import DEFAULT, SKETCH, default_proposal, proposal_of, proposed
from tedsl.auto_scheduler.sketch.choices import Choices, crossed, mutated
from tedsl.auto_scheduler.sketch.extents import counts, factors, rows_of_tile
from tedsl.target import Target
from tedsl.tune import Checker
from tests.auto_scheduler.programs import PROGRAMS, fused_end, matmul, random_dag


def drawn(problem, sketch, seed):
    return proposed(problem, sketch, Choices(random.Random(seed)))


def expected_of(problem):
    checker = Checker(problem.args, problem.target)
    return checker.inputs, checker.expected()


def difference(inputs, expected, proposal):
    sch, args = proposal.schedule()
    arrays = [np.array(one) for one in inputs]
    tedsl.build(sch, args)(*arrays)
    return expected.difference(arrays)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_sketches_write_is_right(name):
    problem = Problem(PROGRAMS[name](), Target("llvm"))
    inputs, expected = expected_of(problem)
    found = [drawn(problem, SKETCH, seed) for seed in range(2)] + [drawn(problem, DEFAULT, 0)]
    found = [one for one in found if one is not None and one.compiles]
    assert found
    for one in [default_proposal(problem), *found]:
        assert difference(inputs, expected, one) == "", f"{one.decisions}\n{one.text}"


@pytest.mark.parametrize("seed", range(6))
def test_what_sketches_write_for_random_programs_is_right(seed):
    draw = random.Random(seed)
    problem = Problem(random_dag(draw), Target("llvm"))
    inputs, expected = expected_of(problem)
    for number in range(2):
        one = drawn(problem, SKETCH, seed * 10 + number)
        if one is not None and one.compiles:
            assert difference(inputs, expected, one) == "", f"{one.decisions}\n{one.text}"


def test_each_directive_is_used():
    problem = Problem(matmul(64, 48, 80), Target("llvm"))
    texts = "".join(one.text for seed in range(25) for one in [drawn(problem, SKETCH, seed)] if one is not None)
    for word in ("cache_read", "cache_write", "rfactor", "transform_layout", "compute_at", "vectorize", "unroll", "parallel",
                 "fuse", "reorder"):
        assert f".{word}(" in texts
    texts = "".join(one.text for seed in range(20) for one in [drawn(Problem(fused_end(), Target("llvm")), SKETCH, seed)]
                    if one is not None)
    assert "s[D].compute_inline()" in texts and "s[C].compute_at(s[E]" in texts


def test_decisions_write_a_schedule_again():
    problem = Problem(fused_end(), Target("llvm"))
    for seed in range(5):
        one = drawn(problem, SKETCH, seed)
        again = proposal_of(Problem(fused_end(), Target("llvm")), one.to_json())
        assert again.text == one.text == drawn(problem, SKETCH, seed).text
    assert proposal_of(problem, {"sketch": "another"}) is None and proposal_of(problem, 3) is None


def test_a_mutation_changes_one_or_two_decisions_and_a_child_has_those_of_its_parents():
    problem = Problem(matmul(64, 48, 80), Target("llvm"))
    one, other = drawn(problem, SKETCH, 1), drawn(problem, SKETCH, 2)
    for seed in range(20):
        choices = mutated(random.Random(seed), one.decisions, one.free)
        proposed(problem, SKETCH, choices)
        assert 1 <= len(choices.without) <= 2
        assert all(choices.made.get(name) != value for name, value in choices.without.items())
        child = crossed(random.Random(seed), one.decisions, other.decisions)
        assert all(value in (one.decisions.get(name), other.decisions.get(name)) for name, value in child.given.items())


def test_sizes_of_tiles():
    assert factors(12, 12) == [1, 2, 3, 4, 6, 12] and factors(12, 5) == [1, 2, 3, 4] and factors(1, 8) == [1]
    assert factors(17, 17) == [1, 2, 4, 8, 16, 17] and len(factors(720720, 720720)) == 24
    assert rows_of_tile(64, 12) == [1, 2, 4, 8, 9, 10, 11, 12] and rows_of_tile(3, 12) == [1, 2, 3]
    assert counts(1, 8) == [1] and counts(12, 99) == [1, 2, 4, 8, 12] and counts(12, 5) == [1, 2, 4]
