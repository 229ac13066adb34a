"""The tasks of a network: its kernels, how often they occur, and that what is found for them is used."""

import numpy as np
import pytest

from tedsl import auto_scheduler, graph, te
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.graph import ops

RNG = np.random.default_rng(0)
SQUARE, LAST = (RNG.standard_normal(shape).astype("float32") for shape in ((24, 24), (5, 24)))


def network(extent=6):
    """Three products with an activation, two of them equal, and a copy."""
    def fn(x):
        for _ in range(2):
            x = ops.nn.relu(ops.nn.dense(x, SQUARE))
        return ops.nn.relu(ops.nn.dense(x, LAST)), ops.transpose(x)

    return graph.trace(fn, graph.Spec((extent, 24)))


def test_equal_kernels_are_one_task_that_weighs_more():
    tasks, weights = auto_scheduler.extract_tasks(network(), target="llvm")
    assert sorted(weights) == [1, 2] and weights[0] == 2, "the task with the most operations is the first"
    with_copies, _ = auto_scheduler.extract_tasks(network(), None, "llvm", include_simple_tasks=True)
    assert {task.workload_key for task in with_copies} > {task.workload_key for task in tasks}
    assert all(task.desc for task in tasks)


@pytest.mark.whole
def test_what_is_found_for_the_tasks_is_what_the_network_runs(tmp_path, monkeypatch):
    """Also where the cache on disk has the kernels of the rules, and these again without the records."""
    monkeypatch.setenv("TEDSL_CACHE_DIR", str(tmp_path / "cache"))
    x, log = RNG.standard_normal((6, 24)).astype("float32"), tmp_path / "log.json"
    by_rules = graph.compile(network())
    tasks, weights = auto_scheduler.extract_tasks(network())
    options = auto_scheduler.TuningOptions(8, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(log)])
    auto_scheduler.TaskScheduler(tasks, weights).tune(options)
    used = []
    replay = te.Schedule.replay
    monkeypatch.setattr(te.Schedule, "replay", lambda s, journal: used.append(journal) or replay(s, journal))
    with auto_scheduler.ApplyHistoryBest(log):
        tuned = graph.compile(network())
    assert used
    for one, other in zip(by_rules(x), tuned(x)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    used.clear()
    graph.compile(network())(x)
    assert not used


def test_what_has_no_tasks_is_refused_in_words():
    with pytest.raises(ArgumentTypeError, match=r"a network is a Graph, not (.|\n)*graph\.trace"):
        auto_scheduler.extract_tasks(lambda x: x)
    with pytest.raises(ArgumentError, match=r"have variables(.|\n)*extents that occur most"):
        auto_scheduler.extract_tasks(network(te.var("n")))
    with pytest.raises(ArgumentError, match="is a device"):
        auto_scheduler.extract_tasks(network(), target="cuda")
