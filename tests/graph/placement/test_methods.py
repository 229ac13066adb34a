"""Placements of random problems against the best ones."""

import numpy as np
import pytest

from tedsl import graph
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.graph import Spec, ops
from tedsl.graph.placement import (
    Edge,
    Placement,
    Problem,
    Processor,
    Simulated,
    Transfers,
    place,
    profile,
    schedule_of,
    split,
)
from tests.graph.placement.random_problems import exhaustive, exhaustive_with_orders, random_problem, ratios


@pytest.mark.parametrize("branches, limits", [
    (False, {"single": 1.29, "fastest": 1.09, "critical_path": 1.005, "moves": 1.003, "heft": 1.03}),
    (True, {"fastest": 1.25, "critical_path": 1.03, "moves": 1.006, "heft": 1.06})])
def test_how_far_methods_are_from_the_best(branches, limits):
    """A sample; `python -m tests.graph.placement.random_problems 1000` takes a thousand."""
    found = ratios(60, branches, seed=1)
    assert {name: found[name][0] <= limit for name, limit in limits.items()} == dict.fromkeys(limits, True), found
    assert found["moves"][0] <= found["critical_path"][0] <= found["fastest"][0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("branches", [False, True])
def test_the_integer_program_finds_the_best(seed, branches):
    problem = random_problem(np.random.default_rng(seed), branches, parts=5)
    found, best = place(problem, method="optimal").makespan, exhaustive_with_orders(problem)
    assert found == pytest.approx(best, rel=1e-6) and best <= exhaustive(problem)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_from_waist_to_waist_is_the_best(seed):
    """Blocks with two branches, one after the other; between the last ones an edge leads past what joins them."""
    rng = np.random.default_rng(seed)
    seconds = tuple(tuple(float(time) for time in row) for row in rng.lognormal(0, 0.7, (7, 2)))
    pairs = ((0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6))
    edges = [Edge(a, b, int(rng.integers(0, 1000))) for a, b in pairs]
    past = [Edge(2, 4, 500)] if seed % 2 else []
    problem = Problem(tuple("abcdefg"), ("x", "y"), seconds, (*edges, *past),
                      Transfers(((0.0, 0.02), (0.05, 0.0)), ((0.0, 0.001), (0.0005, 0.0))))
    assert place(problem, method="optimal").makespan == pytest.approx(exhaustive_with_orders(problem), rel=1e-6)


def test_a_solver_that_fails_is_asked_otherwise():
    """HiGHS, as of scipy 1.17, gave up on the first as one integer program, and gives up on the second after its presolve."""
    for seed, parts in ((2006, 10), (2025, 14)):
        problem = random_problem(np.random.default_rng(seed), True, parts)
        assert place(problem, method="optimal").makespan <= place(problem, method="moves").makespan


def test_many_blocks_take_no_longer_each():
    """What is chosen between two waists is chosen apart: the work is a sum over blocks, no product. As one problem: hours."""
    rng = np.random.default_rng(3)
    edges = [Edge(5 * block + a, 5 * block + b, 300) for block in range(12) for a in (0, 1, 2, 3, 4) for b in (1, 2, 3, 4, 5)
             if (a == 0) != (b == 5)]
    seconds = tuple(tuple(float(time) for time in row) for row in rng.lognormal(0, 0.7, (61, 2)))
    problem = Problem(tuple(f"p{at}" for at in range(61)), ("x", "y"), seconds, tuple(edges),
                      Transfers(((0.0, 0.02), (0.02, 0.0)), ((0.0, 0.0005), (0.0005, 0.0))))
    assert place(problem, method="optimal").makespan <= place(problem, method="moves").makespan


def test_the_order_of_parts_is_chosen_too():
    """Two parts wait on one device, and the one that others wait for is not the one with the longer way to the end."""
    edges = (Edge(0, 1), Edge(0, 2), Edge(1, 3), Edge(2, 4))
    problem = two(((1, 9), (2, 9), (2, 9), (9, 3), (12, 1.5)), edges, free=False, sent=1)
    placed = place(problem, method="optimal")
    assert placed.makespan == exhaustive_with_orders(problem) == 8.5 and placed.assignment == (0, 0, 0, 1, 1)
    assert placed.order.index(1) < placed.order.index(2)
    assert schedule_of(problem, placed.assignment).makespan == 9, "in the order of the distance to the end"


def two(seconds, edges=(), free=True, sent=5.0):
    count = len(seconds[0])
    apart = tuple(tuple(0.0 if a == b else sent for b in range(count)) for a in range(count))
    nothing = Transfers.free(count)
    return Problem(tuple(f"p{at}" for at in range(len(seconds))), tuple("ab"[:count]), seconds, tuple(edges),
                   nothing if free else Transfers(apart, nothing.per_byte))


def test_times_of_a_diamond():
    edges = (Edge(0, 1), Edge(0, 2), Edge(1, 3), Edge(2, 3))
    problem = two(((1, 1), (4, 2), (3, 6), (1, 1)), edges, free=False, sent=0.5)
    times = schedule_of(problem, (0, 1, 0, 0))
    assert times.begin == (0, 1.5, 1, 4) and times.end == (1, 3.5, 4, 5) and times.makespan == 5
    assert times.critical_path == (0, 2, 3)


def test_sending_decides():
    edges = (Edge(0, 1), Edge(1, 2))
    near, far = two(((1, 3), (3, 1), (1, 3)), edges), two(((1, 3), (3, 1), (1, 3)), edges, free=False)
    assert place(near, method="critical_path").assignment == (0, 1, 0)
    assert place(far, method="fastest").assignment == (0, 1, 0)
    assert place(far, method="critical_path").assignment == place(far, method="optimal").assignment == (0, 0, 0)
    assert place(far, method="single").makespan == 5


def test_measured_times_take_the_place_of_the_estimate():
    problem = two(((1, 2), (1, 2)), (Edge(0, 1),))
    asked = []

    def measure(assignment):
        asked.append(assignment)
        return 1.0 if assignment == (1, 1) else 2.0

    assert place(problem, method="moves", measure=measure).assignment == (1, 1)
    assert len(set(asked)) == len(asked)


def test_what_a_placement_tells():
    placed = place(two(((0.001, 0.003), (0.004, 0.001)), (Edge(0, 1),), free=False, sent=0.0005), method="heft")
    assert placed.devices == {"p0": "a", "p1": "b"} and repr(placed) == "<Placement of 2 parts by heft: 2.5 ms>"
    assert placed.reasons["p1"] == "critical; 1 here; 4 on a: the whole +2.5"
    picture = placed._repr_svg_()
    assert picture.count("<rect") == 2 and "<svg" in placed._repr_html_() and "begin" in str(placed)
    with pytest.raises(ArgumentError, match="which has no parts to run"):
        placed.run(1)


@pytest.mark.parametrize("make, words", [
    (lambda: place(two(((1, 1),)), method="best"), "there is no method 'best'(.|\n)*critical_path"),
    (lambda: place(two(((1, 1),)), rounds=0), "rounds is an int of at least 1"),
    (lambda: place(3), "parts, a profile or a problem"),
    (lambda: two(((1, 1), (1, 1)), (Edge(1, 0),)), "does not lead from a part to a later one"),
    (lambda: two(((1, 1), (1,))), "rows"),
    (lambda: two(((1, float("nan")),)), "negative, not finite"),
    (lambda: place(two(((1, 1),)), method="moves", measure=3), "measure is a function of an assignment"),
    (lambda: place(two(((1, 1),)), method="moves", measure=lambda a: None), "measure returned None"),
    (lambda: Problem(("a",), ("b",), ((1,),), (3,), Transfers.free(1)), "3 is no Edge"),
    (lambda: Problem(("a",), ("b",), ((1,),), (), Transfers.free(2)), "not those of 1 devices"),
    (lambda: schedule_of(two(((1, 1),)), (4,)), "does not name one of 2 devices"),
    (lambda: schedule_of(two(((1, 1), (1, 1)), (Edge(0, 1),)), (0, 0), (1, 0)), "sources before targets"),
    (lambda: Simulated(3, 1.0, 1.0), "the name of a device is a str"),
    (lambda: profile(3, [Processor()]), "it takes parts, not an int"),
    (lambda: split(graph.trace(ops.nn.relu, Spec((2, 3))), at=3), "at names operators"),
    (lambda: place(split(graph.trace(ops.nn.relu, Spec((2, 3)))), "cpu"), "a device has name, text, link, measure"),
    (lambda: profile(split(graph.trace(ops.nn.relu, Spec((2, 3)))), [Simulated("a", 1.0, 1.0)], file="/nowhere/x"),
     "cannot be written"),
    (lambda: profile(split(graph.trace(ops.nn.relu, Spec((2, 3)))), [Processor("a"), Processor("b")]), "list one Processor"),
    (lambda: profile(split(graph.trace(ops.nn.relu, Spec((2, 3)))), [Processor("a", [0]), Processor("b", (0,))]),
     "a and b both have core 0"),
    (lambda: Processor("a", cores=[4000]), "cores of a are .4000.; those that this process may use: 0"),
    (lambda: Processor("a", cores=0), "cores of a are 0"), (lambda: Processor("a", cores=[]), "cores of a are"),
    (lambda: profile(split(graph.trace(ops.nn.relu, Spec((2, 3)))), [Processor()], file=3), "the path of a file"),
    (lambda: split(graph.trace(ops.nn.relu, Spec((2, 3))), residual="no"), "residual is True or False"),
    (lambda: Problem((), (), (), (), Transfers.free(0)), "no parts or no devices"),
    (lambda: Placement(two(((1, 1),)), two(((1, 1),)).check((2,)), "x"), "does not name one of 2 devices")])
def test_misuse(make, words):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=words):
        make()
