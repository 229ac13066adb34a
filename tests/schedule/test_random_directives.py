"""Random directives, right and wrong: each applies or is refused and changes nothing; the journal rebuilds the schedule."""

import random

import numpy as np
import pytest

from tedsl import te
from tedsl.errors import ScheduleError
from tedsl.schedule.handles import create_schedule


def program():
    """A diamond with a reduction: B and C read A; D sums their product; E, the output, reads D and C."""
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4, 5), lambda i, j: A[i, j] * 2.0, name="C")
    k = te.reduce_axis((0, 5), "k")
    D = te.compute((4,), lambda i: te.sum(B[i, k] * C[i, k], axis=k), name="D")
    E = te.compute((4, 5), lambda i, j: D[i] + C[i, j], name="E")
    return {"A": A, "B": B, "C": C, "D": D, "E": E}


def some_directive(rng, s, tensors):
    """A directive on random stages with random loops, most of them loops of the stage now."""
    stage = rng.choice(s.stages)
    other = rng.choice(s.stages)

    def loop(of):
        source = of.leaf_iter_vars if rng.random() < 0.9 else rng.choice(s.stages).all_iter_vars
        return rng.choice(source) if source else 0

    tensor = stage.op.output(0)
    name = rng.choice(["split", "nparts", "fuse", "reorder", "tile", "vectorize", "unroll", "parallel", "compute_at",
                       "compute_at", "compute_inline", "compute_root", "set_scope", "pragma", "cache_read", "cache_write",
                       "rfactor"])
    loops = rng.sample(stage.leaf_iter_vars, min(len(stage.leaf_iter_vars), 2))
    return {
        "split": lambda: stage.split(loop(stage), rng.choice([0, 1, 2, 3, 7])),
        "nparts": lambda: stage.split(loop(stage), nparts=rng.choice([-1, 1, 2, 3, 7])),
        "fuse": lambda: stage.fuse(*loops),
        "reorder": lambda: stage.reorder(*loops),
        "tile": lambda: stage.tile(loop(stage), loop(stage), 2, rng.choice([0, 3])),
        "vectorize": lambda: stage.vectorize(loop(stage)),
        "unroll": lambda: stage.unroll(loop(stage)),
        "parallel": lambda: stage.parallel(loop(stage)),
        "compute_at": lambda: stage.compute_at(other, loop(other)),
        "compute_inline": stage.compute_inline,
        "compute_root": stage.compute_root,
        "set_scope": lambda: stage.set_scope(rng.choice(["local", "global", "nowhere"])),
        "pragma": lambda: stage.pragma(loop(stage), "auto_unroll_max_step", rng.choice([4, None])),
        "cache_read": lambda: s.cache_read(tensor, "local", [other.op]),
        "cache_write": lambda: s.cache_write(tensor, "local"),
        "rfactor": lambda: s.rfactor(tensor, loop(stage), rng.choice([0, 1, 5])),
    }[name]


@pytest.mark.parametrize("seed", range(60))
def test_applied_or_refused(seed, state, compute_stages):
    rng, tensors = random.Random(seed), program()
    s = create_schedule(tensors["E"].op)
    for _ in range(25):
        directive, before = some_directive(rng, s, tensors), state(s)
        try:
            directive()
        except ScheduleError as error:
            assert state(s) == before, f"changed although refused: {error}"
        else:
            assert len(s.journal) == len(before[3].splitlines()) + 1
    twin = create_schedule(tensors["E"].op)
    exec(str(s.journal), {"s": twin, **tensors})
    assert str(twin) == str(s)
    check_the_loops(s)
    a = np.random.default_rng(seed).random((4, 5))
    expected = ((a + 1) * (a * 2)).sum(axis=1)[:, None] + a * 2
    for made in (s, s.normalize()):
        np.testing.assert_allclose(compute_stages(made, {tensors["A"]: a})[made[tensors["E"]].op.output(0)], expected)


def check_the_loops(s):
    """Loops are what the relations leave of the axes; producers stand first; attached stages at loops that exist."""
    from tedsl.lang.operation import root_axes
    from tedsl.schedule.relations import children_of, parents_of

    seen = set()
    for stage in s.state.stages:
        alive = dict.fromkeys(root_axes(stage.op))
        for relation in stage.relations:
            for parent in parents_of(relation):
                del alive[parent]
            alive.update(dict.fromkeys(children_of(relation)))
        assert set(alive) == set(stage.leaf_iter_vars) and len(alive) == len(stage.leaf_iter_vars)
        assert all(t.op in seen for t in stage.op.input_tensors)
        seen.add(stage.op)
        assert stage.attach_ivar is None or any(stage.attach_ivar is loop for loop in stage.attach_stage.leaf_iter_vars)
