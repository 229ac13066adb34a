"""Networks for tests, with random weights from a seed."""

from __future__ import annotations

import numpy as np

from tedsl import graph
from tedsl.graph import Graph, Spec, Value, constant, ops


class Weights:
    """Arrays from a seed; batch norms whose statistics keep outputs of order 1."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def kernel(self, *shape: int, name: str = "w") -> Value:
        scale = np.float32((2 / np.prod(shape[1:])) ** 0.5)
        return constant(self.rng.standard_normal(shape, "float32") * scale, name=name)

    def around(self, center: float, size: int, name: str) -> Value:
        return constant((center + self.rng.uniform(-0.1, 0.1, size)).astype("float32"), name=name)

    def conv_norm(self, x: Value, filters: int, kernel: int, stride: int, name: str, scale: float = 1.0) -> Value:
        """A convolution and a batch norm."""
        weight = self.kernel(filters, int(x.shape[1]), kernel, kernel, name=f"{name}_weight")
        y = ops.nn.conv2d(x, weight, stride, kernel // 2, 1)
        around = {"gamma": scale, "beta": 0.0, "mean": 0.0, "var": 1.0}
        return ops.nn.batch_norm(y, *[self.around(at, filters, f"{name}_{key}") for key, at in around.items()])[0]


def resnet18(size: int = 224, batch: object = 1, classes: int = 1000, width: int = 64, seed: int = 18) -> Graph:
    """ResNet-18, before any pass. batch may be a variable; width: the channels of the first stage."""
    weights = Weights(seed)

    def block(x: Value, filters: int, stride: int, name: str) -> Value:
        y = ops.nn.relu(weights.conv_norm(x, filters, 3, stride, f"{name}_1"))
        y = weights.conv_norm(y, filters, 3, 1, f"{name}_2", 0.5)
        same = stride == 1 and x.shape[1] == filters
        return ops.nn.relu(y + (x if same else weights.conv_norm(x, filters, 1, stride, f"{name}_short")))

    def network(image: Value) -> Value:
        x = ops.nn.relu(weights.conv_norm(image, width, 7, 2, "stem"))
        x = ops.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")
        for stage in range(4):
            for number in range(2):
                x = block(x, width << stage, 2 if stage and not number else 1, f"b{stage}_{number}")
        x = ops.nn.flatten(ops.nn.global_pool(x, "avg"))
        return ops.nn.dense(x, weights.kernel(classes, width * 8, name="fc_weight"), weights.around(0.0, classes, "fc_bias"))

    return graph.trace(network, Spec((batch, 3, size, size)), name="resnet18")
