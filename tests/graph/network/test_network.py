"""Networks compute what their graphs say."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings

import tedsl
from tedsl import graph, te
from tedsl.errors import ArgumentError
from tedsl.graph import Graph, Spec, call, constant, ops
from tedsl.graph.network import compile
from tests.graph.networks import resnet18
from tests.graph.random_graphs import graphs


def arrays_for(g, seed=0, **extents):
    rng = np.random.default_rng(seed)
    shapes = [[extent if isinstance(extent, int) else extents[extent.name] for extent in value.shape] for value in g.inputs]
    return [rng.standard_normal(shape).astype(str(value.dtype)) for shape, value in zip(shapes, g.inputs)]


def same(g, network, arrays):
    results = network(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    expected = graph.evaluate(g, *arrays)
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected):
        np.testing.assert_array_equal(result, wanted)


@given(graphs())
@settings(deadline=None, max_examples=25)
def test_a_network_gives_what_its_nodes_give_one_by_one(g):
    network = compile(g, opt_level=0)
    for seed in range(2):
        same(g, network, arrays_for(g, seed))


def test_resnet18():
    g = resnet18(32, width=8)
    network = compile(g, opt_level=0)
    same(g, network, arrays_for(g))
    assert len(network.modules) < len(network.plan.steps) / 2


def test_equal_steps_have_one_kernel():
    g = graph.trace(lambda x: ops.nn.softmax(ops.nn.softmax(ops.nn.softmax(x))), Spec((4, 8)))
    assert len(compile(g, opt_level=0).modules) == 1


def test_outputs_are_fresh_or_those_of_the_caller():
    g = graph.trace(lambda x, y: (ops.add(x, y), ops.tanh(x)), Spec((2, 3)), Spec((2, 3)))
    network = compile(g)
    x, y = arrays_for(g)
    first, second = network(x, y), network(y, x)
    assert first[0] is not second[0] and not np.shares_memory(first[0], second[0])
    out = (np.empty((2, 3), "float32"), np.empty((2, 3), "float32"))
    assert network(x, y=y, out=out) is out
    np.testing.assert_array_equal(out[1], first[1])


def test_an_input_that_is_an_output_is_copied():
    x = graph.Value("x", Spec((2, 3)))
    network = compile(Graph([x], [x, ops.reshape(x, (6,)), constant([1.0, 2.0])]))
    given = np.arange(6, dtype="float32").reshape(2, 3)
    same_shape, flat, fixed = network(given)
    assert not np.shares_memory(same_shape, given) and not np.shares_memory(flat, same_shape)
    np.testing.assert_array_equal(flat, np.arange(6))
    np.testing.assert_array_equal(fixed, [1, 2])


def test_arrays_that_are_not_contiguous_are_taken():
    g = graph.trace(ops.tanh, Spec((3, 4)))
    x = np.arange(12, dtype="float32").reshape(4, 3).T
    np.testing.assert_array_equal(compile(g)(x), compile(g)(np.ascontiguousarray(x)))


def test_ndarrays_are_taken():
    g = graph.trace(ops.nn.relu, Spec((3,)))
    np.testing.assert_array_equal(compile(g)(tedsl.nd.array(np.array([-1, 0, 2], "float32"))), [0, 0, 2])


def test_calls_of_graphs_are_kernels():
    inner = graph.trace(lambda x, w: ops.nn.relu(ops.nn.conv2d(x, w, 1, 1, 1)), Spec((1, 4, 8, 8)), Spec((4, 4, 3, 3)),
                        name="f")
    weights = [constant(array) for array in (np.random.default_rng(at).standard_normal((4, 4, 3, 3)).astype("float32")
                                             for at in range(3))]

    def fn(x):
        for w in weights:
            x = call(inner, x, w).outputs[0]
        return x

    g = graph.trace(fn, Spec((1, 4, 8, 8)))
    network = compile(g)
    assert [source.name for source in network.modules] == ["conv2d_relu"]
    same(g, network, arrays_for(g))


def test_constants_inside_of_a_called_graph():
    inner = graph.trace(lambda x: ops.maximum(x, constant(np.arange(40, dtype="float32"))) + 2.0, Spec((40,)), name="f")
    g = graph.trace(lambda x: call(inner, call(inner, x).outputs[0]).outputs[0], Spec((40,)))
    same(g, compile(g), arrays_for(g))


def test_what_depends_on_constants_alone_is_computed_once():
    w = constant(np.random.default_rng(0).standard_normal((8, 8)).astype("float32"), name="w")

    def fn(x):
        turned = ops.transpose(w)
        return ops.matmul(x, turned) + ops.matmul(x, ops.tanh(turned))

    g = graph.trace(fn, Spec((4, 8)))
    network = compile(g, opt_level=0)
    assert [node.operator for node in network.graph.nodes] == ["matmul", "matmul", "add"]
    same(g, network, arrays_for(g))


def test_calls_from_several_threads_do_not_disturb_each_other():
    g = graph.trace(lambda x: ops.nn.softmax(ops.tanh(ops.nn.softmax(x))), Spec((64, 64)))
    network = compile(g)
    arrays = [arrays_for(g, seed) for seed in range(4)]
    expected = [network(*given) for given in arrays]
    wrong = []

    def work(at):
        for _ in range(50):
            if not np.array_equal(network(*arrays[at]), expected[at]):
                wrong.append(at)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- any size of a batch ----------------------------------------------------------------------------------------------

def batched():
    n = te.var("n")  # whole numbers: kernels of one size may add up in another order than those of all sizes
    w = np.random.default_rng(1).integers(-3, 4, (5, 12)).astype("float32")
    return graph.trace(lambda x: ops.nn.softmax(ops.nn.relu(ops.nn.dense(ops.reshape(ops.floor(x), (n, 12)), constant(w)))),
                       Spec((n, 3, 4)))


def test_one_network_takes_batches_of_any_size():
    g = batched()
    network = compile(g)
    for n in (1, 2, 7, 20):
        same(g, network, arrays_for(g, n=n))


def test_sizes_that_are_asked_for_have_kernels_of_their_own():
    g = batched()
    general, special = compile(g), compile(g, batches=(1, 8))
    assert len(special.modules) == 3 * len(general.modules)
    for n in (1, 8, 3):
        same(g, special, arrays_for(g, n=n))
    assert special.plan_for(n=8).size > special.plan.size
    assert compile(g, batches=np.int64(8)).asked == compile(g, batches=np.array([8])).asked == ((8,),)


def test_inputs_with_extents_that_follow_from_others():
    n = te.var("n")
    g = graph.trace(lambda x, y: ops.concatenate([x, ops.tanh(y)], 0), Spec((n, 3)), Spec((n * 2 + 1, 3)))
    network = compile(g, batches=(2,))
    for count in (2, 0, 3):
        x, y = np.ones((count, 3), "float32"), np.ones((2 * count + 1, 3), "float32")
        same(g, network, (x, y))
    with pytest.raises(ArgumentError, match=r"not of the shape \(6, 3\), for n = 3"):
        network(x, y[:6])
    with pytest.raises(ArgumentError, match="no input says what n is"):
        compile(graph.trace(ops.tanh, Spec((n * 2, 3))))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_extents_that_no_operand_of_a_node_says(level):
    """A result says them; and graphs that nodes call have the variables of their callers."""
    n = te.var("n")
    g = graph.trace(lambda x, y: ops.add(x, ops.broadcast_to(y, (n, 3))), Spec((n, 3)), Spec((1, 3)))
    same(g, compile(g, opt_level=level, batches=(4,)), arrays_for(g, n=4))
    same(g, compile(g, opt_level=level), arrays_for(g, n=2))
    g = graph.trace(lambda x: ops.add(x, ops.full((n, 3), "float32", 2.0)), Spec((n, 3)))
    same(g, compile(g, opt_level=level), arrays_for(g, n=2))
    g = graph.trace(lambda x: ops.broadcast_to(ops.negative(ops.max(ops.concatenate([x, x], 0), 1, True)), (n * 2, 5)),
                    Spec((n, 3)))
    same(g, compile(g, opt_level=level), arrays_for(g, n=2))


def test_passes_choose_for_the_first_batch_that_is_asked_for():
    """Of 64 channels and 7 x 7 pixels one image is convolved directly, eight by winograd."""
    n = te.var("n")
    w = constant(np.random.default_rng(0).integers(-2, 3, (64, 64, 3, 3)).astype("float32"))
    g = graph.trace(lambda x: ops.nn.relu(ops.nn.conv2d(ops.floor(x), w, 1, 1, 1)), Spec((n, 64, 7, 7)))
    for batches, by_winograd in (((), False), ((1, 8), False), ((8, 1), True)):
        network = compile(g, batches=batches)
        assert ("winograd" in str(network.graph)) == by_winograd
        for count in (8, 1, 2):
            (x,) = arrays_for(g, n=count)
            np.testing.assert_allclose(network(x), graph.evaluate(g, x)[0], rtol=1e-4, atol=1e-2)


@pytest.mark.whole
def test_resnet18_of_any_batch():
    g = resnet18(32, batch=te.var("n"), width=8)
    network = compile(g)
    for n in (1, 3):
        (image,) = arrays_for(g, n=n)
        np.testing.assert_allclose(network(image), graph.evaluate(g, image)[0], rtol=1e-4, atol=1e-4)  # sums in another order


# --- refusals ---------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def network():
    return compile(graph.trace(lambda image, mask: ops.add(image, mask), Spec((2, 3)), Spec((2, 3)), name="masked"))


X = np.zeros((2, 3), "float32")


@pytest.mark.parametrize("args, named, message", [
    ((X,), {}, r"masked: no array for its input mask(.|\n)*image: float32\[2, 3\]"),
    ((X, X, X), {}, "masked takes 2 arrays, not 3"),
    ((X,), {"image": X}, "its input image is given by its place and by its name"),
    ((X,), {"masc": X}, r"masked has no input 'masc'(.|\n)*image: float32"),
    ((X, X.astype("float64")), {}, r"its input mask is an array of float32\[2, 3\], not of float64"),
    ((X, X[:1]), {}, r"its input mask is an array of float32\[2, 3\], not of the shape \(1, 3\)"),
    ((X, [1, 2]), {}, "its input mask is an array of float32.*not a list"),
])
def test_an_array_that_does_not_fit_is_refused_by_name(network, args, named, message):
    with pytest.raises(ArgumentError, match=message):
        network(*args, **named)


@pytest.mark.parametrize("out, message", [
    (X.astype("float64"), "the array for its output add is float64"),
    ((X, X), "masked has 1 outputs, and out= has 2 arrays"),
    (np.zeros((3, 2), "float32").T, "is not contiguous"),
    ("y", "is a str"),
])
def test_an_output_that_does_not_fit_is_refused(network, out, message):
    with pytest.raises(ArgumentError, match=message):
        network(X, X, out=out)


def test_an_output_is_no_input(network):
    x = X.copy()
    with pytest.raises(ArgumentError, match="shares memory with an input"):
        network(x, X, out=x)


def test_arrays_have_to_agree_on_the_batch():
    n = te.var("n")
    network = compile(graph.trace(lambda a, b: ops.add(a, b), Spec((n, 3)), Spec((n, 3))))
    with pytest.raises(ArgumentError, match="n is 2 by its input a and 4 by its input b"):
        network(X, np.zeros((4, 3), "float32"))


def test_compile_says_what_it_takes():
    g = graph.trace(ops.tanh, Spec((2, 3)))
    with pytest.raises(ArgumentError, match="a network is made of a Graph, not of a str"):
        compile(str(g))
    with pytest.raises(ArgumentError, match="extents of the one variable"):
        compile(g, batches=(1,))
    with pytest.raises(ArgumentError, match="sizes of batches, not a float"):
        compile(g, batches=8.0)
    with pytest.raises(ArgumentError, match="is a device"):
        compile(g, "cuda")


def test_numbers_and_misaligned_arrays():
    number = graph.compile(graph.trace(ops.nn.relu, Spec(())))
    assert [float(number(given)) for given in (3.0, np.float32(-1), np.array(2, "float32"))] == [3, 0, 2]
    with pytest.raises(ArgumentError, match="not of float64"):
        number(np.float64(1))
    row = graph.compile(graph.trace(ops.nn.relu, Spec((4,))))
    askew = np.zeros(17, "uint8")[1:].view("float32")
    assert not askew.flags.aligned and row(askew).tolist() == [0, 0, 0, 0]
