"""Candidates measured by runners of a cluster: Ray is replaced by one that runs each runner in this process, when asked."""

import sys
import types
from dataclasses import replace

import numpy as np
import pytest

import tedsl
from tedsl import auto_scheduler, autotvm
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.tune import Outcome, record_of
from tedsl.tune.measure import Failure, RemoteMeasurer, RunOption, remote

from .conftest import Doubled


class Lost(Exception):
    """What Ray raises when an actor has died."""


class TooLate(Exception):
    """What Ray raises when an answer does not come in time."""


class Failing(Exception):
    """What Ray raises when a method of an actor has raised an error."""


class Method:
    def __init__(self, actor, name):
        self.actor, self.name = actor, name

    def remote(self, *args):
        self.actor.cluster.calls.append((self.actor, self.name, args))
        return len(self.actor.cluster.calls) - 1


class Actor:
    def __init__(self, cluster, made):
        cls, _, place, args = made
        self.cluster, self.made, self.node = cluster, made, place.removeprefix("node:")
        self.runner = cls(*args)
        self.about, self.outcome = Method(self, "about"), Method(self, "outcome")
        self.begun = []  # the candidates of the work that waits


class Cluster(types.ModuleType):
    """What of Ray is used. nodes_here: the names of the machines; deadly: splits of candidates that kill the runner; silent:
    machines whose runner does not start; gone: machines that are lost with their runner; models: of machines.
    """

    def __init__(self, nodes_here, deadly=(), silent=(), gone=(), models=None):
        super().__init__("ray")
        self.nodes_here, self.deadly, self.silent, self.gone, self.models = list(nodes_here), deadly, silent, gone, models or {}
        self.calls, self.killed, self.inits = [], [], []
        self.exceptions = types.SimpleNamespace(RayActorError=Lost, GetTimeoutError=TooLate, RayTaskError=Failing,
                                                RayError=Failing)

    def is_initialized(self):
        return bool(self.inits)

    def init(self, **options):
        if options.get("address") == "nowhere":
            raise ConnectionError("nobody answers")
        self.inits.append(options)

    def nodes(self):
        return [{"Alive": name != "dead", "NodeManagerAddress": name, "Resources": {"CPU": 2.0}} for name in self.nodes_here]

    def remote(self, cls):
        def options(num_cpus, resources):
            (place,) = resources
            return types.SimpleNamespace(remote=lambda *args: Actor(self, (cls, num_cpus, place, args)))

        return types.SimpleNamespace(options=options)

    def wait(self, answers, num_returns):
        return answers[-1:], answers[:-1]  # the first machine is slow

    def get(self, answer, timeout=None):
        actor, name, args = self.calls[answer]
        if name == "about":
            if actor.node in self.silent:
                raise TooLate("no answer")
            return 2, self.models.get(actor.node, "abacus")
        if args[0] is not None:
            actor.begun = list(args[0].candidates)
        split = actor.begun.pop(0).split
        if split in self.deadly:
            if actor.node in self.gone:
                self.nodes_here.remove(actor.node)
            raise Lost("the runner died")
        return actor.runner.outcome(args[0])

    def kill(self, actor):
        self.killed.append(actor)


class QuickRunner:
    """A runner that says what it was asked, and measures nothing."""

    def __init__(self, target, build, run, check):
        assert str(target) == "llvm -keys=cpu" and run.number == 1 and build is check is None

    def outcome(self, work):
        if work is not None:
            assert work.inputs is None and work.run.number == 1
            self.waiting = list(work.candidates)
        return Outcome((self.waiting.pop(0).split * 1e-3,), machine="abacus")


@pytest.fixture
def cluster(monkeypatch):
    def cluster(*nodes, runner=QuickRunner, **named):
        made = Cluster(nodes, **named)
        monkeypatch.setitem(sys.modules, "ray", made)
        monkeypatch.setattr(remote, "Runner", runner)
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        return made

    return cluster


def candidates(count):
    return [Doubled(split) for split in range(1, count + 1)]


def measured(count, **named):
    with RemoteMeasurer("llvm", run=RunOption(number=1), **named) as measurer:
        return [outcome for _, outcome in measurer.measure(candidates(count))]


def begun(ray):
    """Which machine was given how many candidates, in order."""
    return [(actor.node, len(args[0].candidates)) for actor, name, args in ray.calls if name == "outcome" and args[0]]


def test_every_machine_that_is_there_measures_and_outcomes_are_in_order(cluster):
    ray = cluster("here", "there", "dead")
    these = candidates(7)
    with RemoteMeasurer("llvm", run=RunOption(number=1)) as measurer:
        assert measurer.batch == 4
        found = list(measurer.measure(iter(these)))
        assert not ray.killed
    assert [candidate for candidate, _ in found] == these
    assert [outcome.cost for _, outcome in found] == [split * 1e-3 for split in range(1, 8)]
    assert begun(ray) == [("here", 2), ("there", 2), ("there", 2), ("there", 1)], "the other one was slow"
    assert len(ray.killed) == 2 and {actor.made[1] for actor in ray.killed} == {2.0} and len(ray.inits) == 1


def test_a_record_names_the_machine_that_ran_the_candidate(cluster):
    cluster("there")
    outcome, = measured(1)
    record = record_of("task", Doubled(), outcome, "llvm")
    assert record.machine == "abacus" and record.outcome.machine == ""


@pytest.mark.parametrize("gone", [(), ("here",), ("there",)], ids=["killed", "first lost", "second lost"])
def test_a_runner_that_is_killed_costs_one_trial(cluster, gone):
    ray = cluster("here", "there", deadly=(3,), gone=gone)
    outcomes = measured(9)
    assert [outcome.failure for outcome in outcomes] == [
        Failure("crash", "the runner was lost: the runner died") if split == 3 else None for split in range(1, 10)]
    assert [outcome.cost for outcome in outcomes] == [np.inf if split == 3 else split * 1e-3 for split in range(1, 10)]
    assert {node for node, _ in begun(ray)} == {"here", "there"}


def test_a_machine_that_loses_every_runner_is_left_out(cluster):
    cluster("there", deadly=(1, 2, 3))
    measurer = RemoteMeasurer("llvm", run=RunOption(number=1))
    measuring = measurer.measure(candidates(4))
    assert [next(measuring)[1].failure.kind for _ in range(3)] == ["crash"] * 3
    with pytest.raises(TedslError, match="no machine of the cluster is left"):
        next(measuring)
    assert len(RemoteMeasurer("llvm", run=RunOption(number=1))._machines) == 1, "another one begins anew"


def test_losses_in_between_are_no_reason(cluster):
    cluster("there", deadly=(2, 4, 6, 8))
    assert [bool(outcome.failure) for outcome in measured(9)] == [split % 2 == 0 for split in range(1, 10)]


def test_machines_whose_runner_does_not_start(cluster):
    ray = cluster("here", "there", silent=("here",))
    assert len(measured(3)) == 3 and {node for node, _ in begun(ray)} == {"there"}
    cluster("here", silent=("here",))
    with pytest.raises(TedslError, match="no machine of the cluster has started a runner: no answer"):
        RemoteMeasurer("llvm", run=RunOption(number=1))


def test_machines_of_other_models_are_left_out_where_times_are_compared(cluster):
    models = {"a": "slow", "b": "fast", "c": "fast"}
    ray = cluster("a", "b", "c", models=models)
    with pytest.warns(UserWarning, match="1 of 3 machines are not used, since they are no fast"):
        measured(9, one_model=True)
    assert {node for node, _ in begun(ray)} == {"b", "c"}
    ray = cluster("a", "b", "c", models=models)
    measured(9)
    assert {node for node, _ in begun(ray)} == {"a", "b", "c"}


def test_which_cluster_is_joined(cluster, monkeypatch):
    ray = cluster("here")
    RemoteMeasurer("llvm", run=RunOption(number=1), cluster="ray://head:10001")
    assert ray.inits[0]["address"] == "ray://head:10001"
    RemoteMeasurer("llvm", run=RunOption(number=1))
    assert len(ray.inits) == 1, "the program has joined it"
    ray = cluster("here")
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    RemoteMeasurer("llvm", run=RunOption(number=1))
    assert ray.inits[0]["address"] == "head:6379"
    cluster("here")
    with pytest.raises(TedslError, match="the cluster of Ray at 'nowhere' cannot be joined: nobody answers"):
        RemoteMeasurer("llvm", cluster="nowhere")


def test_an_error_inside_of_a_runner_is_said(cluster):
    class Wrong(QuickRunner):
        def outcome(self, work):
            raise Failing("ModuleNotFoundError: no module 'mine'")

    cluster("here", runner=Wrong)
    with pytest.raises(TedslError, match="a runner of the cluster has failed: ModuleNotFoundError"):
        measured(1)


def test_an_end_before_the_last_outcome_ends_the_runners(cluster):
    ray = cluster("here", "there")
    measurer = RemoteMeasurer("llvm", run=RunOption(number=1))
    rest = iter(candidates(98))
    measuring = measurer.measure(rest)
    next(measuring)
    assert not ray.killed and len(list(rest)) == 98 - remote._AHEAD * 4, "few are taken ahead of a machine that is slow"
    measuring.close()
    assert len(ray.killed) == 2


def test_a_runner_measures_on_its_machine():
    option = RunOption(number=1, repeat=1, cooldown_interval=0, threads=1)
    runner = remote.Runner("llvm", None, option, None)
    fine = runner.outcome(remote._Work([Doubled(), Doubled(before=lambda: 1 // 0)], None, replace(option, repeat=3)))
    wrong = runner.outcome(None)
    assert fine.failure is None and len(fine.costs) == 3
    assert "processor" in fine.machine == wrong.machine and wrong.failure.kind == "refused"
    count, model = runner.about()
    assert count >= 2 and model == fine.machine


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ArgumentError, match=r"Ray is not installed here(.|\n)*tedsl\[ray\]"):
        RemoteMeasurer("llvm")
    with pytest.raises(ArgumentTypeError, match="run is a RunOption, not 5"):
        RemoteMeasurer("llvm", run=5)
    for call in (lambda: RemoteMeasurer("llvm", cluster=3), lambda: autotvm.RayRunner(cluster=3),
                 lambda: auto_scheduler.RayRunner(cluster=3), lambda: tedsl.tune("x", cluster=3)):
        with pytest.raises(ArgumentTypeError, match="cluster is True, or the address of a cluster of Ray as a text, not 3"):
            call()
