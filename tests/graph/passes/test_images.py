"""Groups of images: what operators read of other images, what is moved, and graphs whose layers run for groups."""

import dataclasses
import json
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tedsl import graph, te
from tedsl.errors import GraphError
from tedsl.graph import Graph, Spec, Value, constant, ops
from tedsl.graph.apply import apply
from tedsl.graph.network import compile
from tedsl.graph.passes import by_groups
from tedsl.graph.passes.images import groups
from tedsl.graph.passes.images.alone import treats_images_alone
from tedsl.graph.passes.images.traffic import Layer, Segment, Stage, Traffic
from tedsl.target import Target
from tedsl.target.current import as_target
from tests.graph.network.test_network import arrays_for
from tests.graph.networks import Weights


def weights(*shape):
    return constant(np.random.default_rng(0).standard_normal(shape).astype("float32"))


ALONE = {
    "relu": (ops.nn.relu, (4, 3)),
    "bias": (lambda x: ops.nn.bias_add(x, weights(3), 1), (4, 3, 5, 5)),
    "convolution": (lambda x: ops.nn.conv2d(x, weights(4, 3, 3, 3), 1, 1, 1), (4, 3, 9, 9)),
    "winograd": (lambda x: ops.nn.conv2d_winograd_nchw(x, weights(4, 3, 3, 3), 1, 1, 1), (4, 3, 9, 7)),
    "channels last": (lambda x: ops.nn.conv2d(x, weights(3, 3, 3, 4), 2, 1, 1, "NHWC"), (4, 9, 9, 3)),
    "depthwise": (lambda x: ops.nn.depthwise_conv2d_nchw(x, weights(3, 1, 3, 3), 1, 1, 1), (4, 3, 9, 9)),
    "pool": (lambda x: ops.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"), (4, 3, 9, 9)),
    "mean": (lambda x: ops.nn.global_pool(x, "avg"), (4, 3, 9, 9)),
    "dense": (lambda x: ops.nn.dense(x, weights(4, 6)), (4, 6)),
    "softmax": (ops.nn.softmax, (4, 6)),
    "flattened": (lambda x: ops.reshape(x, (4, 75)), (4, 3, 5, 5)),
    "with itself": (lambda x: ops.nn.batch_matmul(x, x), (4, 3, 5)),
    "padded": (lambda x: ops.nn.pad(x, (0, 1, 0), (0, 2, 0)), (4, 3, 5)),
    "turned inside": (lambda x: ops.transpose(x, (0, 2, 1)), (4, 3, 5)),
}
TOGETHER = {
    "sum": (lambda x: ops.add(x, ops.sum(x, 0, True)), (4, 4)),
    "softmax": (lambda x: ops.nn.softmax(x, 0), (4, 6)),
    "turned": (lambda x: ops.transpose(x, (1, 0)), (4, 4)),
    "reversed": (lambda x: ops.flip(x, 0), (4, 6)),
    "padded": (lambda x: ops.strided_slice(ops.nn.pad(x, (1, 0), (0, 0)), (0, 0), (4, 6)), (4, 6)),
    "running sum": (lambda x: ops.cumsum(x, 0), (4, 6)),
    "numbered": (lambda x: ops.add(x, ops.reshape(ops.arange(0, 4, 1, "float32"), (4, 1))), (4, 6)),
    "dense with itself": (lambda x: ops.nn.dense(x, x), (4, 6)),
    "mixed by a reshape": (lambda x: ops.reshape(ops.transpose(x, (1, 0)), (4, 6)), (4, 6)),
    "a part": (lambda x: ops.strided_slice(x, (0,), (3,)), (4, 6)),
    "the first four": (lambda x: ops.strided_slice(x, (0,), (4,)), (4, 6)),
    "number of elements": (lambda x: ops.multiply(x, ops.cast(ops.ndarray_size(x), "float32")), (4, 6)),
    "number of ones": (lambda x: ops.multiply(x, ops.sum(ops.full_like(x, 1.0), 0, True)), (4, 6)),
}


def is_alone(fn, shape):
    """Of the function as one node, whether it treats images alone."""
    inside = graph.trace(fn, Spec(shape))
    x = Value("x", Spec(shape))
    node = graph.call(inside, x)
    node = getattr(node, "node", node)
    images = {value for value in (x, *node.outputs) if value.shape[:1] == shape[:1]}
    return treats_images_alone(node, images, shape[0])


@pytest.mark.parametrize("fn, shape", ALONE.values(), ids=list(ALONE))
def test_each_image_depends_on_itself_alone(fn, shape):
    assert is_alone(fn, shape)
    g = graph.trace(fn, Spec(shape))
    x = arrays_for(g)[0]
    y = graph.evaluate(g, x)[0]
    x[1:] += 1  # image 0 stays
    np.testing.assert_array_equal(graph.evaluate(g, x)[0][0], y[0])


@pytest.mark.parametrize("fn, shape", TOGETHER.values(), ids=list(TOGETHER))
def test_images_that_depend_on_others_or_on_their_number(fn, shape):
    assert not is_alone(fn, shape)


# --- the model --------------------------------------------------------------------------------------------------------

def machine(l2, l3):
    here = as_target(None).machine
    return dataclasses.replace(here, l2=dataclasses.replace(here.l2, size=l2), l3=dataclasses.replace(here.l3, size=l3))


def chain(*layers):
    """Stages of a layer each: (bytes of an image of the result, bytes of the weights)."""
    values = [Value("x", Spec((8, layers[0][0] // 4)))]
    stages = []
    for size, weight in layers:
        values.append(Value("y", Spec((8, size // 4))))
        stages.append(Stage((Layer((values[-2],), (values[-1],), weight),), True))
    return stages


LARGE, SMALL = 1 << 20, 1 << 16


@pytest.mark.parametrize("layers, found", [
    ([(SMALL, SMALL)] * 4, [Segment(0, 4, 8)]),  # all of it stays in L3
    ([(LARGE, SMALL)] * 4, [Segment(0, 4, 1)]),  # of one image two results stay
    ([(SMALL, 16 * LARGE)] * 4, [Segment(0, 4, 8)]),  # weights are read once
    ([(LARGE, SMALL)] * 4 + [(SMALL, 16 * LARGE)] * 2, [Segment(0, 4, 1), Segment(4, 6, 8)])],
    ids=["small", "large images", "large weights", "images, then weights"])
def test_groups_are_those_for_which_least_is_moved(layers, found):
    merged = []
    for one in Traffic(chain(*layers), 8, machine(1 << 19, 1 << 23)).segments():
        if merged and merged[-1].size == one.size == 8:  # parted or not, the same
            merged[-1] = Segment(merged[-1].begin, one.end, 8)
        else:
            merged.append(one)
    assert merged == found


def test_layers_that_mix_images_run_at_once():
    stages = chain(*[(LARGE, SMALL)] * 5)
    stages[2] = Stage(stages[2].layers, False)
    found = Traffic(stages, 8, machine(1 << 19, 1 << 23)).segments()
    assert [(one.begin, one.end) for one in found if one.size == 8] == [(2, 3)]


@pytest.mark.parametrize("count", [8, 64, 97, 128])
def test_many_layers_take_no_time(count):
    stages = chain(*[(LARGE, SMALL)] * 300)
    begin = time.perf_counter()
    Traffic(stages, count, machine(1 << 19, 1 << 23)).segments()
    assert time.perf_counter() - begin < 5.0, "the time grows with the square of the number of layers, not with its cube"


def test_many_images_take_no_time():
    """The sizes of groups are found from the few numbers of groups, not from all numbers of images."""
    begin = time.perf_counter()
    found = Traffic(chain(*[(LARGE, SMALL)] * 3), 1 << 40, machine(1 << 19, 1 << 23)).sizes
    assert found == [(1 << 40) // parts for parts in (16, 8, 4, 2, 1)]
    assert Traffic(chain((LARGE, SMALL)), 12, machine(1 << 19, 1 << 23)).sizes == [1, 2, 3, 4, 6, 12]
    assert time.perf_counter() - begin < 1.0


# --- graphs -----------------------------------------------------------------------------------------------------------

@pytest.fixture
def small_caches(tmp_path):
    """A machine like this one, with caches that hold little."""
    path = tmp_path / "small.json"
    path.write_text(json.dumps(dataclasses.asdict(machine(1 << 14, 1 << 18))))
    with Target(f"llvm -model={path}"):
        yield


def close(g, network, arrays):
    for result, wanted in zip(np.atleast_2d(network(*arrays)), graph.evaluate(g, *arrays)[0]):
        np.testing.assert_allclose(result, wanted, rtol=2e-4, atol=2e-4)


def residual(batch):
    """Convolutions of images that are larger than their weights, and a dense layer."""
    made = Weights(1)

    def fn(x):
        for at in range(3):
            y = ops.nn.relu(made.conv_norm(x, 8, 3, 1, f"a{at}"))
            x = ops.nn.relu(made.conv_norm(y, 8, 3, 1, f"b{at}") + x)
        return ops.nn.dense(ops.reshape(ops.nn.global_pool(x, "avg"), (batch, 8)), weights(5, 8))

    return graph.trace(fn, Spec((batch, 8, 24, 24)))


@pytest.mark.parametrize("level", [1, 2])
def test_a_network_runs_for_groups(small_caches, level):
    g = residual(4)
    network = compile(g, opt_level=level)
    images = {use.writes[0].shape[0] for use in network.instance(()).uses}
    assert {1, 2} & images and 4 in images
    assert len(network.plan.steps) > len(compile(g, Target("llvm"), opt_level=level).plan.steps)
    assert not any(node.operator in ("split", "concatenate") for node in network.plan.steps)
    close(g, network, arrays_for(g))
    assert len(network.graph.constants) <= len(g.constants), "weights are packed once for all groups"
    profile = network.profile(repeat=1)
    assert any(step.calls > 1 for step in profile.steps) and " x float32[" in str(profile)


def test_files_have_the_groups(small_caches, tmp_path):
    g = residual(4)
    network = compile(g)
    network.save(tmp_path / "net.tedsl")
    loaded = graph.Network.load(tmp_path / "net.tedsl")
    assert len(loaded.plan.steps) == len(network.plan.steps) and str(loaded.graph) == str(network.graph)
    (x,) = arrays_for(g)
    np.testing.assert_array_equal(loaded(x), network(x))


@pytest.mark.parametrize("level", [1, 2])
def test_batches_that_are_asked_for_run_by_groups(small_caches, tmp_path, level):
    """Each asked one by its own groups; others run all at once, by kernels of any number of images."""
    g = residual(te.var("n"))
    network = compile(g, opt_level=level, batches=(2, 4))
    alone = compile(residual(4), opt_level=level)
    assert len(network.plan_for(n=4).steps) == len(alone.plan.steps) > len(network.plan_for(n=3).steps)
    for n in (2, 4, 3):
        close(g, network, arrays_for(g, n=n))
    network.save(tmp_path / "net.tedsl")
    loaded = graph.Network.load(tmp_path / "net.tedsl")
    assert loaded.groups == network.groups and len(loaded.plan_for(n=4).steps) == len(alone.plan.steps)
    for n in (2, 4, 3):
        (x,) = arrays_for(g, n=n)
        np.testing.assert_array_equal(loaded(x), network(x))


def test_batches_without_passes_are_not_grouped(small_caches):
    assert not compile(residual(te.var("n")), opt_level=0, batches=(4,)).groups


def test_groups_of_another_graph_are_refused(small_caches):
    g = graph.trace(two_layers, Spec((4, 8, 1024)))
    assert groups.in_groups(g, ()) is g
    for wrong in ([Segment(0, 1, 3)], [Segment(0, 1, 4), Segment(2, 3, 4)], [Segment(0, 9, 2)], [Segment(0, 1, 0)]):
        with pytest.raises(GraphError, match="no groups"):
            groups.in_groups(g, wrong)


def large(fn, *shapes):
    """A graph after the pass."""
    return by_groups(graph.trace(fn, *[Spec(shape) for shape in shapes]))


def two_layers(x):
    return ops.nn.softmax(ops.exp(x))


def test_layers_of_large_images_run_one_by_one(small_caches):
    g = large(two_layers, (4, 8, 1024))
    assert [node.operator for node in g.nodes] == ["split", *["exp", "nn.softmax"] * 2, "concatenate"]
    assert {value.shape for node in g.nodes[:-1] for value in node.outputs} == {(2, 8, 1024)}


@pytest.mark.parametrize("fn, shapes", [
    (two_layers, ((1, 8, 1024),)), (two_layers, ((7, 3),)), (two_layers, ((4, 8, te.var("n")),)), (two_layers, ((4096,),)),
    (lambda x, y: ops.add(two_layers(x), ops.reshape(y, (4, 1, 1))), ((4, 8, 1024), (2, 2))),
    (lambda x: ops.reshape(x, (4, 64, 128)), ((4, 8, 1024),)),
    (lambda x: ops.add(ops.flip(ops.exp(x), 0), constant(np.float32(1))), ((4, 8, 1024),))],
    ids=["one image", "small", "any extent", "no images", "two counts", "views alone", "mixed"])
def test_graphs_that_stay(small_caches, fn, shapes):
    g = graph.trace(fn, *[Spec(shape) for shape in shapes])
    assert by_groups(g) is g


def test_the_number_of_images_in_arguments_changes(small_caches):
    g = large(lambda x: ops.nn.softmax(ops.exp(ops.reshape(ops.exp(x), (4, 8192)))), (4, 8, 1024))
    assert {node.arguments["newshape"] for node in g.nodes if node.operator == "reshape"} == {(2, 8192)}
    assert len([node for node in g.nodes if node.operator == "exp"]) == 4


def test_a_graph_whose_operators_keep_the_number_of_images_stays(small_caches):
    g = graph.trace(lambda x: ops.nn.softmax(ops.broadcast_to(ops.exp(ops.sum(x, 1, True)), (4, 8, 1024))), Spec((4, 8, 1024)))
    assert by_groups(g) is g


@graph.register_operator("tests.divided_by_the_number_of_images")
def divided(x):
    return te.compute(x.shape, lambda n, i: x[n, i] / x.shape[0].astype("float32"), name="divided")


def test_operators_that_divide_by_the_number_of_images_are_called_with_all(small_caches):
    g = graph.trace(lambda x: ops.nn.softmax(apply("tests.divided_by_the_number_of_images", ops.nn.softmax(ops.tanh(x)))),
                    Spec((4, 8192)))
    close(g, compile(g, opt_level=1), arrays_for(g))


def test_weights_of_as_many_outputs_as_there_are_images_are_read_whole(small_caches):
    w = constant(np.ones((4, 4096), "float32"))
    g = large(lambda x: ops.nn.softmax(ops.nn.dense(ops.exp(ops.tanh(x)), ops.exp(w))), (4, 4096))
    assert {node.inputs[1].shape for node in g.nodes if node.operator == "nn.dense"} == {(4, 4096)}


OPERATORS = {
    "exp": lambda x, y: ops.tanh(x), "add": ops.add, "rows": lambda x, y: ops.nn.softmax(x),
    "product": lambda x, y: ops.nn.batch_matmul(x, y), "view": lambda x, y: ops.reshape(ops.reshape(x, (6, 256)), (6, 16, 16)),
    "mix": lambda x, y: ops.add(x, ops.max(y, 0, True)), "turn": lambda x, y: ops.flip(x, 0),
    "inside": lambda x, y: ops.transpose(x, (0, 2, 1)), "number": lambda x, y: ops.multiply(x, constant(np.float32(0.5))),
    "parts": lambda x, y: ops.concatenate(list(reversed(ops.split(x, 2, 0))), 0)}


@st.composite
def batches(draw):
    inputs = [Value(name, Spec((6, 16, 16))) for name in ("x", "y")[:draw(st.integers(1, 2))]]
    values = list(inputs)
    for _ in range(draw(st.integers(2, 10))):
        near = st.sampled_from(values[-3:])
        values.append(OPERATORS[draw(st.sampled_from(list(OPERATORS)))](draw(near), draw(near)))
    outputs = [values[-1], *draw(st.lists(st.sampled_from(values[len(inputs):]), max_size=1))]
    return Graph(inputs, outputs, "batch")


@given(batches(), st.lists(st.sampled_from((1, 2, 3, 6)), min_size=12, max_size=12), st.sampled_from((0, 2)))
@settings(deadline=None, max_examples=25)
def test_random_graphs_by_random_groups(g, sizes, level):
    class AnyGroups(Traffic):
        def segments(self):
            return [Segment(at, at + 1, size if stage.alone else 6) for at, (stage, size) in enumerate(zip(self.stages, sizes))]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "Traffic", AnyGroups)
        made = by_groups(g)
    network = compile(made, opt_level=level)
    arrays = arrays_for(g)
    results = network(*arrays)
    for result, wanted in zip(results if isinstance(results, tuple) else (results,), graph.evaluate(g, *arrays)):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
