"""Plans whose tasks are for several workers: the same results in one process and, where the package ray is, in several."""

import os
import pathlib
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from tedsl import actors
from tedsl.actors import Pipeline, Plan, RayCluster, Runtime, Spec
from tedsl.actors.running.ray_cluster import farthest_behind
from tedsl.errors import ActorError, ArgumentError, ArgumentTypeError, PlanError
from tests.actors.random_plans import random_plan

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["local", "ray"])
def cluster(request):
    if request.param == "local":
        yield None
        return
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200_000_000, log_to_driver=False,
             logging_level="ERROR", runtime_env={"env_vars": {"PYTHONPATH": str(ROOT)}})
    yield RayCluster(patience=60)
    ray.shutdown()


def numbers(number, out):
    out[...] = np.arange(out.size).reshape(out.shape) + 10 * number


def chain(middle, size=3, worker="one", **kwargs):
    """A source and a sink here, a task elsewhere."""
    p = Pipeline("chain")
    p.sink("end", None, [p.task("middle", middle, p.source("a", None, Spec((size,))), Spec((size,)), **kwargs)])
    p.at(worker, "middle")
    return p.plan()


def twice(x, out):
    np.multiply(x, 2, out=out)


def test_large_and_small_arrays_runs_again_and_no_batches(cluster):
    for size in (1, 3, 100_000):  # the last is an object of the store
        runtime = Runtime(chain(twice, size), cluster=cluster)
        for batches in (5, 0, 2):
            got = []
            report = runtime.run(batches, feed=numbers, fetch=lambda n, value, got=got: got.append(value.copy()))
            assert [value[0] for value in got] == [20 * n for n in range(batches)]
            assert all(value[-1] == 2 * (size - 1) + 20 * n for n, value in enumerate(got))
            assert list(report.shares) == ["a", "middle", "end"] and report.shares["middle"].acts == batches
            assert len(report.spans()) == 3 * batches
        runtime.close()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_plans_over_workers_compute_what_their_formulas_say(cluster, seed):
    rng = np.random.default_rng(200 + seed)
    plan, sinks = None, {}
    while plan is None or len(plan.tasks) < 6:
        plan, sinks = random_plan(rng)
    tasks = [replace(task, worker="" if task.kind in ("source", "sink") else str(rng.choice(["", "one", "two"])))
             for task in plan.tasks.values()]
    plan = Plan(tasks, list(plan.registers.values()), plan.functions, plan.name)
    assert str(actors.parse(str(plan), plan.functions)) == str(plan)
    values = [np.arange(8, dtype="float32") + 10 * n for n in range(8)]
    sources = [name for name, task in plan.tasks.items() if task.kind == "source"]
    got = {name: [] for name in sinks}
    runtime = Runtime(plan, cluster=cluster)
    feed = {name: lambda number, out, at=at: np.copyto(out, values[number] + at) for at, name in enumerate(sources)}
    runtime.run(8, feed=feed,
                fetch={name: lambda number, value, into=into: into.append(value.copy()) for name, into in got.items()})
    runtime.close()
    for name, reference in sinks.items():
        np.testing.assert_array_equal(got[name], reference(values), err_msg=f"{plan}: {name}")


def test_workers_send_to_each_other_and_change_in_place(cluster):
    def add_one(value):
        value += 1

    p = Pipeline("in_place")
    pieces = p.unpack("pieces", p.source("a", numbers_from_zero, Spec((4,))), 2)
    p.sink("end", None, [p.pack("whole", p.task("add", add_one, pieces, Spec((2,)), in_place=True), 2)])
    p.at("one", "a")
    p.at("two", "pieces", "add")
    got = []
    runtime = Runtime(p.plan(), cluster=cluster)
    runtime.run(4, fetch=lambda n, value: got.append(value.copy()))
    runtime.close()
    np.testing.assert_array_equal(got, [[1, 2, 3, 4]] * 4)


def numbers_from_zero(out):
    numbers(0, out)


def test_a_model_is_changed_before_the_next_batch_sees_it(cluster):
    """Control registers, primed ones too, between processes: a gradient at one worker, the step here."""
    state = np.array([1.0, 2.0])

    def step(number, gradient):
        state[...] -= 0.25 * gradient

    spec = Spec((2,), "float64")
    p = Pipeline("train")
    weight = p.task("weight", lambda tick, out: np.copyto(out, state), p.source("a", lambda out: None, Spec((1,))), spec)
    p.sink("step", None, [p.task("gradient", twice, weight, spec)])
    p.after("weight", "step", previous=True)
    p.after("gradient", "step", previous=True)  # from this process to the other
    p.at("one", "gradient")
    runtime = Runtime(p.plan(), cluster=cluster)
    runtime.run(5, fetch=step)
    runtime.close()
    np.testing.assert_array_equal(state, np.array([1.0, 2.0]) * 0.5**5)


def test_a_source_of_a_worker_ends_a_run(cluster):
    p = Pipeline("ends")
    p.sink("end", None, [p.source("a", lambda out: None, Spec((2,)))])
    p.at("one", "a")
    runtime = Runtime(p.plan(), cluster=cluster)
    assert runtime.run(feed=lambda number, out: number < 3).shares["end"].acts == 3
    runtime.close()


def test_a_failure_of_a_worker_names_actor_act_and_cause(cluster):
    def fails(x, out):
        if x[0] == 30:
            raise ValueError("no such picture")

    before = threading.active_count()
    runtime = Runtime(chain(fails), cluster=cluster)
    for _ in range(2):  # a run after one that failed has other processes
        with pytest.raises(ActorError, match=r"plan chain: middle failed in its act 3 .*ValueError: no such picture") as caught:
            runtime.run(100, feed=numbers)
        assert isinstance(caught.value.__cause__, ValueError)
    assert not [one for one in threading.enumerate() if one.name in ("a", "end", "from_one")] or \
        threading.active_count() <= before


def test_a_failure_here_ends_the_workers(cluster):
    def breaks(number, out):
        if number == 2:
            raise OSError("no disk")

    runtime = Runtime(chain(twice), cluster=cluster)
    with pytest.raises(ActorError, match=r"a failed in its act 2 .*no disk"):
        runtime.run(100, feed=breaks)
    assert not [one for one in threading.enumerate() if one.name in ("a", "end", "from_one")]


def test_a_group_that_is_not_whole_is_told(cluster):
    p = Pipeline("groups")
    p.sink("end", None, [p.acc("total", p.source("a", None, Spec((2,))), 4)])
    p.at("one", "total")
    runtime = Runtime(p.plan(), cluster=cluster)
    with pytest.raises(ActorError, match="the batches ended when total had 2 of 4 steps"):
        runtime.run(feed=lambda number, out: number < 6)
    runtime.close()


def test_a_killed_worker_is_told_with_actor_and_act(cluster):
    if cluster is None:
        pytest.skip("one process has no other to lose")

    def dies(x, out):
        if x[0] == 30:
            os.kill(os.getpid(), signal.SIGKILL)
        out[...] = x

    fed = []

    def feed(number, out):
        numbers(number, out)
        fed.append(time.perf_counter())

    # Act 3 kills it; the result of act 2 may still have been with it, and then that is the first one that nobody has.
    with pytest.raises(ActorError, match=r"middle failed in its act [23] .*worker one is lost"):
        Runtime(chain(dies), cluster=cluster).run(100, feed=feed)
    assert time.perf_counter() - fed[-1] < 5  # what is promised; it takes about half a second


def test_places_that_are_not_there_are_told(cluster):
    if cluster is None:
        pytest.skip("one process has no placement group")
    with pytest.raises(ActorError, match="Ray found no place for the workers one in 1 s; they ask for"):
        Runtime(chain(twice), cluster=RayCluster({"one": {"CPU": 99}}, patience=1)).run(1, feed=numbers)
    with pytest.raises(ArgumentError, match="resources names 'three', which is no worker of plan chain"):
        Runtime(chain(twice), cluster=RayCluster({"three": {"CPU": 1}})).run(1, feed=numbers)


def test_the_farthest_behind_is_who_has_done_the_fewest_batches():
    p = Pipeline("p")
    b = p.task("b", None, p.source("a", None, Spec((2,))), Spec((2,)))
    p.sink("end", None, [p.task("d", None, p.task("c", None, b, Spec((2,))), Spec((2,)))])
    p.at("one", "b", "c", "d")
    plan = p.plan()
    assert farthest_behind(plan, "one", {}) == ("b", 0)
    assert farthest_behind(plan, "one", {"a": 3, "d": 3}) == ("b", 3)
    assert farthest_behind(plan, "one", {"a": 5, "d": 3}) == ("d", 3)


MISTAKES = {
    "strategy": (lambda: RayCluster(strategy="NEAR"), ArgumentError, "no strategy 'NEAR'"),
    "resources": (lambda: RayCluster(3), ArgumentTypeError, "resources is an int"),
    "patience": (lambda: RayCluster(patience=0), ArgumentError, "patience is a number of seconds above 0, not 0"),
    "cluster": (lambda: Runtime(chain(twice), cluster="ray"), ArgumentTypeError, "cluster is a str"),
    "worker": (lambda: chain(twice, worker="a b"), PlanError, "'a b' cannot be the name of a worker"),
    "task": (lambda: Pipeline().at("one", "z"), PlanError, "there is no task 'z'; tasks: none"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_in_words(name):
    wrong, kind, words = MISTAKES[name]
    with pytest.raises(kind, match=words):
        wrong()
