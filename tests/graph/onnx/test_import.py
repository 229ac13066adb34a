"""Models become graphs: inputs, symbolic extents, constants, bodies of functions, what is refused."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="models of ONNX need the extra: pip install 'tedsl[onnx]'")

from onnx import helper, numpy_helper

import tedsl
from tedsl import graph, te
from tedsl.errors import ArgumentError, ArgumentTypeError, GraphError
from tedsl.graph.onnx import ModelRefused, from_onnx
from tedsl.graph.passes import quantized
from tedsl.shell.table import main
from tests.graph.onnx.models import model, node, random, reference


def check(proto, *arrays, shapes=None, constants=None, operators=None):
    """Imports, compares with the reference implementation of onnx, and returns the graph."""
    g = from_onnx(proto, shapes, constants)
    given = [array for array, one in zip(arrays, proto.graph.input) if one.name not in (constants or {})]
    for ours, theirs in zip(graph.evaluate(g, *given), reference(proto, arrays)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if operators is not None:
        assert [one.operator for one in g.nodes] == operators
    return g


def small():
    nodes = [node("Conv", "x w b", "c", pads=[1, 1, 1, 1], strides=[2, 2]), node("Relu", "c", "r"), node("Flatten", "r", "f"),
             node("Gemm", "f v u", "y", transB=1)]
    return model(nodes, {"x": (["batch", 3, 8, 8], "float32")},
                 constants={"w": random(4, 3, 3, 3), "b": random(4), "v": random(5, 64), "u": random(5)})


def test_a_model_is_read_from_a_path_bytes_and_a_proto(tmp_path):
    proto, x = small(), random(2, 3, 8, 8)
    onnx.save(proto, tmp_path / "m.onnx")
    expected = reference(proto, [x])[0]
    for given in (proto, proto.SerializeToString(), str(tmp_path / "m.onnx"), tmp_path / "m.onnx"):
        np.testing.assert_allclose(graph.evaluate(from_onnx(given), x)[0], expected, rtol=1e-4, atol=1e-5)


def test_external_data_lies_beside_the_model(tmp_path):
    proto, x = small(), random(1, 3, 8, 8)
    expected = reference(proto, [x])[0]
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    np.testing.assert_allclose(graph.evaluate(from_onnx(tmp_path / "m.onnx"), x)[0], expected, rtol=1e-4, atol=1e-5)


def test_named_extents_are_variables_unless_shapes_gives_them():
    proto = small()
    g = from_onnx(proto)
    assert str(g.inputs[0].spec) == "float32[batch, 3, 8, 8]" and str(g.outputs[0].spec) == "float32[batch, 5]"
    assert str(from_onnx(proto, {"batch": 7}).outputs[0].spec) == "float32[7, 5]"
    assert str(from_onnx(proto, {"x": (2, 3, 8, 8)}).inputs[0].spec) == "float32[2, 3, 8, 8]"
    n = te.size_var("n")
    assert from_onnx(proto, {"x": (n, 3, 8, 8)}).outputs[0].shape[0] is n
    x = random(3, 3, 8, 8)
    np.testing.assert_allclose(graph.evaluate(g, x)[0], reference(proto, [x])[0], rtol=1e-4, atol=1e-5)


def test_a_shape_subgraph_of_a_symbolic_batch_disappears():
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Unsqueeze", "n zeros", "n1"),
             node("Concat", "n1 rest", "to", axis=0), node("Reshape", "x to", "y")]
    constants = {"zero": np.array(0), "zeros": np.array([0]), "rest": np.array([2, -1])}
    g = check(model(nodes, {"x": (["n", 4, 6], "float32")}, constants=constants), random(3, 4, 6), operators=["reshape"])
    assert str(g.outputs[0].spec) == "float32[n, 2, 12]"


def test_nodes_of_constants_are_folded():
    nodes = [node("Shape", "x", "s"), node("ConstantOfShape", "s", "zeros"), node("NonZero", "m", "where"),
             node("Cast", "where", "c", to=1), node("ReduceSum", "c", "total"), node("Add", "x zeros", "a"),
             node("Mul", "a total", "y")]
    g = check(model(nodes, {"x": ((2, 3), "float32")}, constants={"m": np.eye(3, dtype="float32")}), random(2, 3),
              operators=["add", "multiply"])
    assert sorted(value.spec.size for value in g.constants) == [1, 6]


def test_functions_with_bodies_are_inlined():
    loss = model(node("SoftmaxCrossEntropyLoss", "x t"), {"x": ((3, 5), "float32"), "t": ((3,), "int64")})
    check(loss, random(3, 5), np.array([0, 4, 2]))
    twice = helper.make_function("own", "Scaled", ["a"], ["b"], [
        helper.make_node("Constant", [], ["k"]), helper.make_node("Mul", ["a", "k"], ["b"])],
        [helper.make_opsetid("", 21)], attributes=["factor"])
    factor = onnx.AttributeProto(name="value_float", type=onnx.AttributeProto.FLOAT, ref_attr_name="factor")
    twice.node[0].attribute.append(factor)
    call = helper.make_node("Scaled", ["x"], ["y"], domain="own", factor=3.0)
    check(model(call, {"x": ((2,), "float32")}, functions=[twice]), random(2), operators=["multiply"])


def test_the_branch_of_a_constant_condition_is_taken():
    def branch(operator):
        return helper.make_graph([node(operator, "x", "z")], operator, [], [helper.make_value_info("z", onnx.TypeProto())])

    proto = model(helper.make_node("If", ["flag"], ["y"], then_branch=branch("Neg"), else_branch=branch("Abs")),
                  {"x": ((3,), "float32")}, constants={"flag": np.array(False)})
    g = from_onnx(proto)
    assert [one.operator for one in g.nodes] == ["abs"]


def steps(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", [helper.make_value_info(name, onnx.TypeProto()) for name in inputs.split()],
                             [helper.make_value_info(name, onnx.TypeProto()) for name in outputs.split()])


def test_loops_of_constant_length_are_unrolled():
    x = random(4, 3)
    body = steps([node("Add", "s e", "t"), node("Mul", "t e", "o")], "s e", "t o")
    g = from_onnx(model(helper.make_node("Scan", ["zero", "x"], ["last", "y"], body=body, num_scan_inputs=1,
                                         scan_input_directions=[1]),
                        {"x": x}, ["last", "y"], constants={"zero": np.zeros(3, "float32")}))
    last, y = graph.evaluate(g, x)
    np.testing.assert_allclose(last, x.sum(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y, np.cumsum(x[::-1], 0) * x[::-1], rtol=1e-5, atol=1e-6)
    body = steps([node("Cast", "i", "f", to=1), node("Add", "s f", "t"), node("Less", "i two", "on"),
                  node("Identity", "t", "o")], "i c s", "on t o")
    g = from_onnx(model(helper.make_node("Loop", ["ten", "", "x"], ["last", "y"], body=body), {"x": x}, ["last", "y"],
                        constants={"ten": np.array(10), "two": np.array(2)}))
    last, y = graph.evaluate(g, x)
    np.testing.assert_allclose(last, x + 3, rtol=1e-6)
    assert y.shape == (3, 4, 3)


def test_what_a_body_lacks_is_named():
    body = steps([node("Add", "s e", "t"), helper.make_node("Mine", ["t"], ["o"], "inside", domain="own")], "s e", "t o")
    with pytest.raises(ModelRefused) as refused:
        from_onnx(model([helper.make_node("Scan", ["x", "y"], ["last", "z"], "scan", body=body, num_scan_inputs=1)],
                        {"x": ((3,), "float32"), "y": ((4, 3), "float32")}, ["z"]))
    assert [(one.operator, one.node) for one in refused.value.problems] == [("own.Mine", "scan/0/inside")]


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 21])
def test_operators_of_old_sets_keep_their_meaning(opset):
    x = random(2, 3, 4)
    softmax = from_onnx(model(node("Softmax", "x", "y", axis=1), {"x": x}, opset=opset))
    over = 1 if opset >= 13 else (1, 2)
    np.testing.assert_allclose(graph.evaluate(softmax, x)[0], np.exp(x) / np.exp(x).sum(over, keepdims=True), rtol=1e-5)
    if opset < 13:
        check(model([node("Unsqueeze", "x", "u", axes=[0]), node("Squeeze", "u", "y", axes=[0])], {"x": x}, opset=opset), x)
        check(model(node("ReduceSum", "x", "y", axes=[1], keepdims=0), {"x": x}, opset=opset), x)
        check(model(node("Split", "x", "y z", axis=2, split=[1, 3]), {"x": x}, ["y", "z"], opset=opset), x)
    if opset < 11:
        check(model(node("Clip", "x", "y", min=-0.25, max=0.25), {"x": x}, opset=opset), x)
        check(model(node("Pad", "x", "y", pads=[0, 1, 0, 0, 0, 2], value=1.5), {"x": x}, opset=opset), x)
    if opset < 10:
        check(model(node("Slice", "x", "y", starts=[1, -2], ends=[9999, 3], axes=[1, 2]), {"x": x}, opset=opset), x)


def test_everything_that_is_missing_is_said_at_once():
    nodes = [node("NonZero", "x", "a"), node("Cast", "a", "b", to=1), node("StringNormalizer", "b", "c"),
             node("Relu", "c", "d"), helper.make_node("Mine", ["d"], ["e"], name="my_node", domain="own"),
             node("RandomNormalLike", "x", "f"), node("Add", "e f", "y")]
    with pytest.raises(ModelRefused) as refused:
        from_onnx(model(nodes, {"x": ((2, 3), "float32")}))
    assert [(one.operator, one.node) for one in refused.value.problems] == [
        ("NonZero", "NonZero_0"), ("StringNormalizer", "StringNormalizer_2"), ("own.Mine", "my_node"),
        ("RandomNormalLike", "RandomNormalLike_5")]


def test_values_that_shapes_depend_on_are_fixed_or_named():
    proto = model(node("Reshape", "x s", "y"), {"x": ((2, 6), "float32"), "s": ((2,), "int64")})
    with pytest.raises(ModelRefused, match=r"input number 1 \(s\) is not a constant(.|\n)*constants=\{'s': array\}") as refused:
        from_onnx(proto)
    assert refused.value.needed == {"s"}
    check(proto, random(2, 6), np.array([4, 3]), constants={"s": np.array([4, 3])}, operators=["reshape"])


@pytest.mark.parametrize("given, error, match", [
    (3, ArgumentTypeError, "a path, bytes or an onnx.ModelProto"), (b"no model", ArgumentError, "ONNX model|empty"),
    ("nowhere.onnx", ArgumentError, "there is no file"),
    (model(node("Relu", "x"), {"x": ((2,), "float32")}, opset=99), GraphError, "operator set 99; those from 7 to"),
    (model(node("Reshape", "x"), {"x": ((2,), "float32")}, opset=1), GraphError, "operator set 1"),
])
def test_what_is_no_model_is_refused(given, error, match):
    with pytest.raises(error, match=match):
        from_onnx(given)


def test_names_in_shapes_are_checked():
    with pytest.raises(ArgumentError, match=r"no input and no dimension called 'y'; its inputs: x; its dimensions: batch"):
        from_onnx(small(), {"y": (1,)})


def test_optional_inputs_and_several_outputs():
    x = random(2, 4)
    check(model(node("Clip", "x - high"), {"x": x}, constants={"high": np.array(0.5, "float32")}), x)
    check(model(node("TopK", "x k", "v i", axis=1), {"x": x}, ["v", "i"], constants={"k": np.array([2])}), x)
    check(model(node("LSTM", "x w r - - h c", "y yh yc", hidden_size=3),
                {"x": ((4, 2, 5), "float32"), "h": ((1, 2, 3), "float32"), "c": ((1, 2, 3), "float32")}, ["y", "yh", "yc"],
                constants={"w": random(1, 12, 5), "r": random(1, 12, 3)}), random(4, 2, 5), random(1, 2, 3), random(1, 2, 3))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int64", "uint8"])
def test_dtypes_are_those_of_the_model(dtype):
    x = random(3, 4, dtype=dtype)
    check(model([node("Add", "x x", "a"), node("Mul", "a two", "b"), node("Transpose", "b", "y")], {"x": x},
                constants={"two": np.array(2, dtype)}), x)


def test_quantised_values():
    x, w = random(1, 3, 6, 6, dtype="uint8"), random(4, 3, 3, 3, dtype="int8") - np.int8(4)
    constants = {"xs": np.float32(0.1), "xz": np.uint8(3), "w": w, "ws": np.full(4, 0.05, "float32"), "wz": np.zeros(4, "int8"),
                 "ys": np.float32(0.2), "yz": np.uint8(100), "b": np.arange(4, dtype="int32")}
    constants = {name: np.asarray(value) for name, value in constants.items()}
    check(model(node("QLinearConv", "x xs xz w ws wz ys yz b", pads=[1, 1, 1, 1]), {"x": x}, constants=constants), x)
    check(model(node("DequantizeLinear", "x xs xz"), {"x": x}, constants=constants), x)
    y = random(2, 5)
    there_and_back = [node("QuantizeLinear", "a xs xz", "q"), node("DequantizeLinear", "q xs xz")]
    check(model(there_and_back, {"a": y}, constants=constants), y)


def quantised_layers(channels=3, filters=6):
    """A convolution, a pool and a product between QuantizeLinear and DequantizeLinear, as tools for quantization write them."""
    constants = {"s0": 0.02, "s1": 0.031, "s2": 0.07, "s3": 0.11}
    constants = {name: np.asarray(value, "float32") for name, value in constants.items()}
    scales = np.linspace(0.001, 0.002, filters, dtype="float32")
    constants |= {"z0": np.asarray(120, "uint8"), "z1": np.asarray(0, "uint8"), "zw": np.zeros(filters, "int8"), "sw": scales,
                  "w": random(filters, channels, 3, 3, dtype="int8") * np.int8(9), "sb": scales * np.float32(0.02),
                  "b": random(filters, dtype="int32"), "v": random(5, filters * 16, dtype="int8") * np.int8(9),
                  "sv": np.asarray(0.002, "float32")}

    def twice(x, at, zero):
        return [node("QuantizeLinear", f"{x} s{at} z{zero}", f"{x}_q"),
                node("DequantizeLinear", f"{x}_q s{at} z{zero}", f"{x}_d")]

    nodes = [*twice("x", 0, 0), node("DequantizeLinear", "w sw zw", "w_d", axis=0),
             node("DequantizeLinear", "b sb", "b_d", axis=0),
             node("Conv", "x_d w_d b_d", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"), *twice("r", 1, 1),
             node("MaxPool", "r_d", "p", kernel_shape=[2, 2], strides=[2, 2]), *twice("p", 1, 1),
             node("Flatten", "p_d", "f"), *twice("f", 1, 1), node("DequantizeLinear", "v sv", "v_d"),
             node("Gemm", "f_d v_d", "g", transB=1), *twice("g", 3, 0)]
    return model(nodes, {"x": ((1, channels, 8, 8), "float32")}, ["g_d"], constants=constants)


@pytest.mark.parametrize("cpu", ["znver5", "znver3"])
def test_quantised_layers_are_compiled_as_products_of_integers(cpu):
    proto, x = quantised_layers(), random(1, 3, 8, 8)
    target = tedsl.Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}")
    g = from_onnx(proto)
    with target:
        after = quantized(g)
    sums = [node.outputs[0].dtype for node in after.nodes if node.operator in ("nn.conv2d", "nn.dense")]
    assert [str(dtype) for dtype in sums] == ["int32" if cpu == "znver5" else "float32"] * 2
    assert [node.operator for node in after.nodes].count("nearbyint") == 3  # what is quantized as it was stays as it is
    expected = reference(proto, [x])[0]
    for got in (graph.evaluate(after, x)[0], graph.compile(g)(x)):
        assert np.abs(got - expected).max() <= 0.11 * 1.01  # one step, where a sum is rounded up or down
        assert (np.abs(got - expected) > 1e-5).mean() <= 0.2


def test_a_constant_of_strings_is_refused():
    text = numpy_helper.from_array(np.array(["a"], dtype=object), "t")
    with pytest.raises(ModelRefused, match="a tensor of STRING"):
        from_onnx(model([helper.make_node("Constant", [], ["c"], value=text), node("Identity", "c")], {}))


def test_what_a_model_has_to_do(tmp_path, capsys):
    """`python -m tedsl flops`: a convolution of 8 filters (3, 3, 3) over 10 by 12 results, and a product of 960 by 5."""
    file = tmp_path / "net.onnx"
    nodes = [node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("Flatten", "c", "f"), node("MatMul", "f m", "y")]
    constants = {"w": random(8, 3, 3, 3), "m": random(960, 5)}
    onnx.save(model(nodes, {"x": ((1, 3, 10, 12), "float32")}, constants=constants), file)
    assert main(["flops", str(file)]) == 0
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()[1:]}
    assert rows["nn.conv2d"][3] == f"{8 * 10 * 12 * 27:,}" and rows["all"][3] == f"{8 * 10 * 12 * 27 + 960 * 5:,}"
    assert f"{8 * 27 + 960 * 5:,}" in rows["all"]
    assert main(["flops", str(file), "--parts"]) == 0 and "part0" in capsys.readouterr().out
