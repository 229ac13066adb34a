"""Workers on several nodes: placement groups choose them by what workers ask for. Needs the package ray."""

import pathlib

import numpy as np
import pytest

from tedsl.actors import Pipeline, RayCluster, Runtime, Spec
from tedsl.errors import ActorError

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def nodes():
    """Two nodes on this machine, each with a resource of its own; Ray knows its id in each process."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "resources": {"left": 1}, "include_dashboard": False,
                                                         "object_store_memory": 150_000_000})
    made.add_node(num_cpus=1, resources={"right": 1}, object_store_memory=150_000_000)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR",
             runtime_env={"env_vars": {"PYTHONPATH": str(ROOT)}})
    yield [node["NodeID"] for node in ray.nodes()]
    ray.shutdown()
    made.shutdown()


def node_and_twice(x, out):
    import ray

    out[0] = int(ray.get_runtime_context().get_node_id()[:8], 16)
    np.multiply(x, 2, out=out[1:])


def stages(size):
    p = Pipeline("two")
    first = p.task("first", node_and_twice, p.source("a", None, Spec((size,), "float64")), Spec((size + 1,), "float64"))
    p.sink("end", None, [p.task("second", node_and_twice, first, Spec((size + 2,), "float64"))])
    p.at("one", "first")
    p.at("two", "second")
    return p.plan()


def numbers(number, out):
    out[...] = np.arange(out.size) + number


@pytest.mark.parametrize("size", [3, 100_000])  # an object of a store is copied from node to node
def test_workers_run_on_the_nodes_that_have_what_they_ask_for(nodes, size):
    cluster = RayCluster({"one": {"left": 1}, "two": {"right": 1}}, strategy="SPREAD", patience=60)
    runtime = Runtime(stages(size), cluster=cluster)
    got = []
    runtime.run(4, feed=numbers, fetch=lambda n, value: got.append(value.copy()))
    runtime.close()
    assert len(got) == 4 and {int(value[0]) for value in got} | {int(value[1]) // 2 for value in got} == \
        {int(node[:8], 16) for node in nodes}
    for number, value in enumerate(got):
        np.testing.assert_array_equal(value[2:], 4 * (np.arange(size) + number))


def test_a_node_that_is_not_there_is_told(nodes):
    with pytest.raises(ActorError, match="Ray found no place for the workers one, two in 1 s"):
        Runtime(stages(3), cluster=RayCluster({"one": {"left": 1}, "two": {"middle": 1}}, patience=1)).run(1, feed=numbers)
