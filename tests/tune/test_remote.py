"""Candidates measured by runners of a cluster: Ray is replaced by one that runs each runner in this process, when asked."""

import sys
import types

import pytest

from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.tune import Outcome, record_of
from tedsl.tune.measure import Failure, RemoteMeasurer, RunOption, remote

from .conftest import Doubled


class Lost(Exception):
    """What Ray raises when an actor has died."""


class Method:
    def __init__(self, actor, name):
        self.actor, self.name = actor, name

    def remote(self, *args):
        self.actor.cluster.calls.append((self.actor, self.name, args))
        return len(self.actor.cluster.calls) - 1


class Actor:
    def __init__(self, cluster, made):
        self.cluster, self.made, self.batch, self.measure = cluster, made, Method(self, "batch"), Method(self, "measure")


class Cluster(types.ModuleType):
    """What of Ray is used. `nodes_here`: the names of the machines; `lost`: those whose runners die when they measure."""

    def __init__(self, nodes_here, lost=()):
        super().__init__("ray")
        self.nodes_here, self.lost, self.calls, self.killed, self.initialized = nodes_here, lost, [], [], False
        self.in_order = False
        self.exceptions = types.SimpleNamespace(RayActorError=Lost)

    def is_initialized(self):
        return self.initialized

    def init(self):
        self.initialized = True

    def nodes(self):
        return [{"Alive": name != "dead", "NodeManagerAddress": name, "Resources": {"CPU": 2.0}} for name in self.nodes_here]

    def remote(self, cls):
        def options(num_cpus, resources):
            (place,) = resources
            return types.SimpleNamespace(remote=lambda *args: Actor(self, (cls, num_cpus, place, args)))

        return types.SimpleNamespace(options=options)

    def wait(self, answers, num_returns):
        if self.in_order:
            return answers[:1], answers[1:]
        return answers[-1:], answers[:-1]  # the first machine is slow

    def get(self, answer):
        actor, name, args = self.calls[answer]
        cls, _, place, made = actor.made
        if name == "batch":
            return 2
        if place.removeprefix("node:") in self.lost:
            raise Lost("the node died")
        return getattr(cls(*made), name)(*args)

    def kill(self, actor):
        self.killed.append(actor)


class QuickRunner:
    """A runner that says what it was asked, and measures nothing."""

    def __init__(self, target, build, run, check):
        assert str(target) == "llvm -keys=cpu" and run.number == 1 and build is check is None

    def measure(self, candidates, inputs):
        assert inputs is None
        return [Outcome((candidate.split * 1e-3,), machine="abacus") for candidate in candidates]


@pytest.fixture
def cluster(monkeypatch):
    def cluster(*nodes, lost=(), runner=QuickRunner):
        made = Cluster(nodes, lost)
        monkeypatch.setitem(sys.modules, "ray", made)
        monkeypatch.setattr(remote, "Runner", runner)
        return made

    return cluster


def test_every_machine_that_is_there_measures_and_outcomes_are_in_order(cluster):
    ray = cluster("here", "there", "dead")
    candidates = [Doubled(split) for split in range(1, 8)]
    with RemoteMeasurer("llvm", run=RunOption(number=1)) as measurer:
        measured = list(measurer.measure(iter(candidates)))
        assert not ray.killed
    assert [candidate for candidate, _ in measured] == candidates
    assert [outcome.cost for _, outcome in measured] == [split * 1e-3 for split in range(1, 8)]
    given = [(actor.made[2], len(args[0])) for actor, name, args in ray.calls if name == "measure"]
    assert given == [("node:here", 2), ("node:there", 2), ("node:there", 2), ("node:there", 1)], "the other one was slow"
    assert len(ray.killed) == 2 and {actor.made[1] for actor in ray.killed} == {2.0} and ray.initialized


def test_a_record_names_the_machine_that_ran_the_candidate(cluster):
    cluster("there")
    with RemoteMeasurer("llvm", run=RunOption(number=1)) as measurer:
        (candidate, outcome), = measurer.measure([Doubled()])
    record = record_of("task", candidate, outcome, "llvm")
    assert record.machine == "abacus" and record.outcome.machine == ""


def test_a_machine_that_is_lost_costs_its_trials(cluster):
    cluster("here", "there", lost=("there",))
    with RemoteMeasurer("llvm", run=RunOption(number=1)) as measurer:
        outcomes = [outcome for _, outcome in measurer.measure([Doubled(split) for split in range(1, 8)])]
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    assert len(outcomes) == 7 and failures == [Failure("crash", "the machine was lost: the node died")] * 2


def test_no_machine_is_left(cluster):
    cluster("there", lost=("there",))
    measurer = RemoteMeasurer("llvm", run=RunOption(number=1))
    measuring = measurer.measure([Doubled(split) for split in range(1, 4)])
    assert [next(measuring)[1].failure.kind for _ in range(2)] == ["crash", "crash"]
    with pytest.raises(TedslError, match="no machine of the cluster is left"):
        next(measuring)


def test_an_end_before_the_last_outcome_ends_the_runners(cluster):
    ray = cluster("here", "there")
    measurer = RemoteMeasurer("llvm", run=RunOption(number=1))
    rest = iter([Doubled(split) for split in range(1, 99)])
    measuring = measurer.measure(rest)
    next(measuring)
    assert not ray.killed and len(list(rest)) == 98 - remote._AHEAD * 4, "few are taken ahead of a machine that is slow"
    measuring.close()
    ray.in_order = True
    measuring = measurer.measure([Doubled(split) for split in range(1, 99)])
    next(measuring)
    measuring.close()
    assert len(ray.killed) == 2


def test_a_runner_measures_on_its_machine():
    runner = remote.Runner("llvm", None, RunOption(number=1, repeat=1, cooldown_interval=0, threads=1), None)
    fine, wrong = runner.measure([Doubled(), Doubled(before=lambda: 1 // 0)], None)
    assert fine.failure is None and "processor" in fine.machine == wrong.machine and wrong.failure.kind == "refused"
    assert runner.batch() >= 4


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ArgumentError, match=r"Ray is not installed here(.|\n)*tedsl\[ray\]"):
        RemoteMeasurer("llvm")
    with pytest.raises(ArgumentTypeError, match="run is a RunOption, not 5"):
        RemoteMeasurer("llvm", run=5)
