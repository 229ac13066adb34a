"""A network from an ONNX file: read, fused, compiled, looked at, saved.

Run it: `pip install ".[tutorials]"`, then `python tutorials/14_networks.py`. A small network learns digits first, so that there
are weights that mean something; what it learned is written to an ONNX file, as another framework would.
"""

import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

from tedsl import autograd, graph, nn, optim
from tedsl.graph import Network, Spec

out = Path(__file__).parent / "out"
out.mkdir(exist_ok=True)

# --- 1. Weights --------------------------------------------------------------------------------------------------------
digits = load_digits()
images, labels = (digits.images[:, None] / 16).astype("float32"), digits.target.astype("int64")
nn.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                      nn.Linear(16 * 4 * 4, 10))
optimizer, loss_of = optim.SGD(model.parameters(), lr=0.02, momentum=0.9), nn.CrossEntropyLoss()
for first in [*range(0, 1472, 32)] * 12:
    optimizer.zero_grad()
    loss_of(model(autograd.from_numpy(images[first:first + 32])), autograd.from_numpy(labels[first:first + 32])).backward()
    optimizer.step()
weights = {name: np.asarray(array) for name, array in model.state_dict().items()}


# --- 2. An ONNX file ---------------------------------------------------------------------------------------------------
def onnx_file(path):
    """The network as an ONNX file for any number of images; the weights are inside."""
    names = {"0.weight": "kernel", "0.bias": "kernel_bias", "1.weight": "scale", "1.bias": "shift", "1.running_mean": "mean",
             "1.running_var": "variance", "5.weight": "classes", "5.bias": "classes_bias"}
    nodes = [helper.make_node("Conv", ["image", "kernel", "kernel_bias"], ["conv"], pads=[1, 1, 1, 1]),
             helper.make_node("BatchNormalization", ["conv", "scale", "shift", "mean", "variance"], ["norm"], epsilon=1e-5),
             helper.make_node("Relu", ["norm"], ["relu"]),
             helper.make_node("MaxPool", ["relu"], ["pool"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Flatten", ["pool"], ["flat"]),
             helper.make_node("Gemm", ["flat", "classes", "classes_bias"], ["scores"], transB=1)]
    body = helper.make_graph(nodes, "digits", [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 1, 8, 8])],
                             [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 10])],
                             [numpy_helper.from_array(weights[ours], theirs) for ours, theirs in names.items()])
    onnx.save(helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


onnx_file(out / "digits.onnx")
g = graph.from_onnx(str(out / "digits.onnx"))
print("As it is read:\n")
for line in str(g).splitlines():
    print(line if len(line) < 110 else f"{line[:106]} ...")
print()

# --- 3. Compiled -------------------------------------------------------------------------------------------------------
# Nodes that one kernel computes become functions; what depends on the weights alone is computed once, now.
one = graph.with_inputs(g, [Spec((1, 1, 8, 8))])
network = graph.compile(one)
print("As it runs, for one image:\n")
for node in network.graph.nodes:
    print(f"  {node.outputs[0].spec!s:24} {node.function.name if node.function else node.operator}")
print(f"\n{network.plan}\n")
assert len(network.graph.nodes) < len(one.nodes)

guesses = np.array([network(image[None]).argmax() for image in images[1472:]])
right = (guesses == labels[1472:]).mean()
print(f"{right:.1%} of {len(guesses)} images that it has not seen are read right")
assert right > 0.9

# The oracle runs node by node, each a kernel of its own.
np.testing.assert_allclose(network(images[:1]), graph.evaluate(one, images[:1])[0], rtol=1e-4, atol=1e-5)

# --- 4. Any number of images ---------------------------------------------------------------------------------------------
# The shape of the input has a variable, n; for one extent of it kernels of their own are compiled, which know it.
any_number = graph.compile(g, batches=[64])
with autograd.no_grad():
    learned = model.eval()(autograd.from_numpy(images[:64])).numpy()
for count in (1, 5, 64):
    np.testing.assert_allclose(any_number(images[:count]), learned[:count], rtol=1e-4, atol=1e-4)

# --- 5. How fast? ------------------------------------------------------------------------------------------------------
print(f"\n{any_number.profile(images[:64])}\n")

# --- 6. Saved ----------------------------------------------------------------------------------------------------------
# Weights, plan and machine code in one file: another process loads it and compiles nothing.
network.save(out / "digits.tedsl")
begin = time.perf_counter()
again = Network.load(out / "digits.tedsl")
print(f"loaded from tutorials/out/digits.tedsl in {1000 * (time.perf_counter() - begin):.0f} ms")
np.testing.assert_array_equal(again(images[:1]), network(images[:1]))
