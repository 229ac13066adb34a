"""Searches of a second or two: what takes longer than they have is ended, and nothing before the search takes long."""

import functools
import os
import time

import numpy as np
import pytest

import tedsl
from tedsl import auto_scheduler, autotvm, te
from tedsl.auto_scheduler.cost.features import operations
from tedsl.auto_scheduler.search.proposal import Proposal
from tedsl.autotvm.task.space import ConfigEntity
from tedsl.tune.measure import Checker, Measurer, check
from tests.tune.conftest import QUICK, Doubled, hang
from tests.tune.test_measurer import children

ENOUGH = 9.0  # seconds for a search of one, on a machine that is busy; what is ended would take as long as a build may
PROGRAM = os.getpid()


def program(n=16):
    A = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    return [A, te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")]


def sleepy(n):
    """A template each of whose points takes longer to build than a search of a second has."""
    cfg = autotvm.get_config()
    if os.getpid() != PROGRAM and isinstance(cfg, ConfigEntity) and cfg.index is not None:
        time.sleep(60)
    A, B = program(n)
    s = te.create_schedule(B.op)
    cfg.define_split("rows", B.op.axis[0], num_outputs=2)
    cfg["rows"].apply(s, B, B.op.axis[0])
    return s, [A, B]


def kept_default(search):
    """The result of a search in which nothing but the default was built in time."""
    begun = time.monotonic()
    best = search()
    assert time.monotonic() - begun < ENOUGH and not children()
    assert len(best.trials) == 1 and best.speedup == 1
    assert str(best.explain_best()) == "no decision is known to matter: nothing but the default schedule has a time"
    return best


def test_points_that_take_long_to_build_are_ended(monkeypatch):
    monkeypatch.setattr(f"{__name__}.PROGRAM", os.getpid())
    kept_default(lambda: tedsl.tune(sleepy, 1, args=(16,), progress=False))


def test_schedules_that_take_long_to_build_are_ended(monkeypatch):
    schedule, here = Proposal.schedule, os.getpid()

    def slow(self):
        if self.decisions and os.getpid() != here:
            time.sleep(60)
        return schedule(self)

    monkeypatch.setattr(Proposal, "schedule", slow)
    best = kept_default(lambda: tedsl.tune(program(), 1, progress=False))
    a, b = np.ones((16, 16), "float32"), np.zeros(16, "float32")
    best.build()(a, b)
    assert (b == 16).all()


def test_builds_that_take_long_are_ended():
    begun, done = time.monotonic(), []
    with Measurer(run=QUICK) as measurer:
        measurer.until = begun + 2.0
        for _, outcome in measurer.measure([Doubled(8, before=hang), Doubled(16)]):
            done.append(outcome.failure)
        assert time.monotonic() - begun < ENOUGH and not done and not children()
        assert list(measurer.measure([Doubled()])) == []


def long_formula(depth, rows=1):
    """A formula of some nodes for each level, of which the next level uses three: as a tree it has 3**depth leaves."""
    def level(value, k):
        return te.tanh(value) * te.exp(value * -0.1) + te.erf(value)

    A = te.placeholder((rows,), name="A")
    return [A, te.compute((rows,), lambda i: functools.reduce(level, range(depth), A[i]), name="B")]


def test_operations_of_a_formula_that_are_used_often_count_once():
    """Proposals of a chain of 14 functions, all inlined, took some seconds each: of a search of one second, 102."""
    body = long_formula(60)[-1].op.body[0]
    assert 5 * 60 <= operations(body) <= 7 * 60


@pytest.mark.parametrize("rows, depth, by_default", [(100_000, 12, True), (100_000, 1, False), (1000, 12, False)])
def test_the_interpreter_is_left_out_where_a_long_formula_would_take_it_long(monkeypatch, rows, depth, by_default):
    """131072 elements of a long formula took it 15 s, before a search of one second began."""
    asked = []
    monkeypatch.setattr(check, "run", lambda *args: asked.append(args))
    Checker(long_formula(depth, rows))._computed()
    assert bool(asked) != by_default


def test_a_program_of_many_stages_is_searched_in_time():
    A = out = te.placeholder((64, 64), name="A")
    for at in range(14):
        out = te.compute((64, 64), lambda i, j, of=out: te.tanh(of[i, j]) + te.exp(of[i, j]) * of[i, j], name=f"B{at}")
    begun = time.monotonic()
    auto_scheduler.search([A, out], seconds=1)
    assert time.monotonic() - begun < 3 * ENOUGH
