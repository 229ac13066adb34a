"""Random networks of parts, and how far each method is from the best placement.

    python -m tests.graph.placement.random_problems 1000

A part takes lognormal seconds on the first device, and a lognormal factor of that on the others; what is sent takes up to as
long as a part.
"""

import itertools
import sys

import numpy as np

from tedsl.graph.placement import Edge, Problem, Transfers
from tedsl.graph.placement.methods import METHODS
from tedsl.graph.placement.problem import makespan


def random_problem(rng, branches, parts=8):
    devices = int(rng.integers(2, 4))
    base = rng.lognormal(0, 0.8, parts)
    seconds = tuple(tuple(float(time * factor) for factor in (1.0, *rng.lognormal(0, 0.7, devices - 1))) for time in base)
    edges = []
    for target in range(1, parts):
        sources = {target - 1}
        if branches:
            sources = set(rng.choice(target, size=min(target, int(rng.integers(1, 3))), replace=False).tolist())
        edges += [Edge(int(source), target, int(rng.integers(0, 1000))) for source in sorted(sources)]
    latency, per_byte = 0.02, 1.0 / 1000 * float(rng.uniform(0.1, 1.0))
    apart = lambda value: tuple(tuple(0.0 if a == b else value for b in range(devices)) for a in range(devices))
    return Problem(tuple(f"p{at}" for at in range(parts)), tuple(f"d{at}" for at in range(devices)), seconds, tuple(edges),
                   Transfers(apart(latency), apart(per_byte)))


def exhaustive(problem):
    """The least makespan of all assignments, parts begun by their distance to the end."""
    everything = itertools.product(range(len(problem.devices)), repeat=len(problem.parts))
    return min(makespan(problem, assignment) for assignment in everything)


def exhaustive_with_orders(problem):
    """The least makespan of all assignments and orders."""
    orders = [order for order in itertools.permutations(range(len(problem.parts)))
              if all(order.index(edge.source) < order.index(edge.target) for edge in problem.edges)]
    return min(makespan(problem, assignment, order) for order in orders
               for assignment in itertools.product(range(len(problem.devices)), repeat=len(problem.parts)))


def ratios(count, branches, seed=0, methods=("single", "fastest", "critical_path", "moves", "heft")):
    """Of each method the mean ratio to the best list schedule, and the share of problems in which it finds that."""
    rng = np.random.default_rng(seed)
    found = {name: [] for name in methods}
    for _ in range(count):
        problem = random_problem(rng, branches)
        best = exhaustive(problem)
        for name in methods:
            found[name].append(makespan(problem, METHODS[name](problem, None, 3)) / best)
    return {name: (float(np.mean(values)), float(np.mean(np.array(values) < 1 + 1e-9))) for name, values in found.items()}


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for what, branches in (("chains", False), ("branches", True)):
        for name, (mean, share) in ratios(count // 2, branches).items():
            print(f"{what:9}{name:15}{mean:7.3f} of the best, optimal in {share:.0%}")
