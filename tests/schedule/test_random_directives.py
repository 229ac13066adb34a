"""Random directives, right and wrong: each applies or is refused and changes nothing; the journal rebuilds the schedule."""

import numpy as np
import pytest

from tedsl.fuzz.applied import declared, portable
from tedsl.fuzz.case import Case, Data
from tedsl.fuzz.directives.table import DIRECTIVES
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.scheduler import Scheduler
from tedsl.fuzz.schedules import draw_directives
from tedsl.lang.operation import root_axes
from tedsl.schedule.handles import create_schedule
from tedsl.schedule.record.history import OWN
from tedsl.schedule.relations import children_of, parents_of

# A diamond with a reduction: B and C read A; D sums their product; E, the output, reads D and C.
DIAMOND = Case(lines=["A = te.placeholder((4, 5), 'float32', name='A')",
                      "B = te.compute((4, 5), lambda i, j: A[i, j] + 1.0, name='B')",
                      "C = te.compute((4, 5), lambda i, j: A[i, j] * 2.0, name='C')",
                      "k = te.reduce_axis((0, 5), name='k')",
                      "D = te.compute((4,), lambda i: te.sum(B[i, k] * C[i, k], axis=k), name='D')",
                      "E = te.compute((4, 5), lambda i, j: D[i] + C[i, j], name='E')"],
               outputs=["E"], args=["A", "E"], data={"A": Data("float32", (4, 5), 0)})


@pytest.mark.parametrize("seed", range(60))
def test_applied_or_refused(seed, state, compute_stages, monkeypatch):
    case, draw = Case(DIAMOND.lines, DIAMOND.outputs, DIAMOND.args, data=DIAMOND.data), Draw(seed)
    scheduler = Scheduler(case, draw, declared(case))
    attempt = scheduler.attempt

    def attempted(kind, text):
        before, s = state(scheduler.s), scheduler.s
        accepted = attempt(kind, text)
        if not accepted:
            assert state(s) == before, f"changed although refused: {text}"
        elif kind not in ONE_RECORD_OR_MORE:
            assert len(s.journal) == len(before[3].splitlines()) + 1, text
        check_the_history(scheduler.s)
        return accepted

    monkeypatch.setattr(scheduler, "attempt", attempted)
    draw_directives(scheduler, DIRECTIVES, most=40, illegal=50)
    check_the_journal(scheduler)
    check_the_loops(scheduler.s)
    check_the_values(scheduler, compute_stages)


ONE_RECORD_OR_MORE = ("undo", "copy", "replay", "auto_inline")


def check_the_journal(scheduler):
    """Its text, run as a program on a fresh schedule, makes the same schedule."""
    s, names = scheduler.s, scheduler.given
    if portable(s.journal):
        twin = create_schedule(names["E"].op)
        exec(str(s.journal), {**names, "s": twin})
        assert str(twin) == str(s)


def check_the_history(s):
    """The last snapshot is the schedule as it stands, whichever stages a directive changed and on what ways."""
    number = len(s.journal)
    said = dict(s.state.recorder.history.stages(number))
    assert said.keys() == set(s.state.with_versions())
    for stage, fields in said.items():
        assert {name for name, now in vars(stage).items() if name not in OWN and fields[name] != now} == set(), stage.name


def check_the_loops(s):
    """Loops are what the relations leave of the axes; producers stand first; attached stages at loops that exist."""
    seen = set()
    for stage in s.state.stages:
        alive = dict.fromkeys([*stage.env_threads, *root_axes(stage.op)])
        for relation in stage.relations:
            for parent in parents_of(relation):
                del alive[parent]
            alive.update(dict.fromkeys(children_of(relation)))
        assert set(alive) == set(stage.leaf_iter_vars) and len(alive) == len(stage.leaf_iter_vars)
        assert all(t.op in seen for t in stage.op.input_tensors)
        seen.add(stage.op)
        assert stage.attach_ivar is None or any(stage.attach_ivar is loop for loop in stage.attach_stage.leaf_iter_vars)


def check_the_values(scheduler, compute_stages):
    """The stages, their operations replaced as by cache_read or rfactor, compute what the formulas say, normalized too."""
    a = np.random.default_rng(0).random((4, 5))
    expected = ((a + 1) * (a * 2)).sum(axis=1)[:, None] + a * 2
    for s in (scheduler.s, scheduler.s.normalize()):
        values = compute_stages(s, {scheduler.given["A"]: a})
        np.testing.assert_allclose(values[s[scheduler.given["E"]].op.output(0)], expected)
