"""The memory of whole networks, one array for each group that fusion makes."""

import numpy as np
import pytest

from benchmarks.contenders.of_graphs import graph_of
from tedsl import graph
from tedsl.graph.match import anything, op, replace
from tedsl.graph.passes import fold_batch_norm, fold_constants, fuse, simplify
from tedsl.graph.plan import plan


def check(g, groups, separate, size):
    made = plan(fuse(g), in_place=False)
    assert (len(made.steps), round(made.separate / 1e6, 2), round(made.size / 1e6, 2)) == (groups, separate, size)
    assert made.size == sum(made.least.values()) == max(made.in_use)


@pytest.mark.parametrize("name, groups, separate, size", [
    ("ResNet-18", 23, 10.74, 4.01), ("ResNet-50", 56, 45.27, 7.23), ("MobileNet-V2", 54, 26.72, 6.02)])
def test_the_arena_of_a_network_is_no_larger_than_what_is_in_use_at_one_time(name, groups, separate, size):
    check(graph_of(name, grouped=False)[0], groups, separate, size)


@pytest.mark.parametrize("name, image, groups, separate, size", [
    ("squeezenet", 224, 38, 17.48, 3.93),
    ("vgg16", 224, 21, 60.34, 25.69),  # 22 and 60.44 where a copy makes rows of the last image; here that is a view
    ("googlenet", 224, 81, 23.52, 4.01),  # without its two local response norms, as exporters write it
    ("inception_v3", 299, 120, 56.61, 8.30),  # 124 and 57.40 with four concatenations inside of others, as exporters write it
])
def test_the_arena_of_a_model_of_onnx(name, image, groups, separate, size, monkeypatch):
    pytest.importorskip("onnx")
    check(replace(_of_onnx(name, image, monkeypatch), op("nn.lrn", anything("x")), lambda found: found["x"]), groups, separate,
          size)


def test_local_response_norms_are_groups_of_their_own(monkeypatch):
    pytest.importorskip("onnx")
    check(_of_onnx("googlenet", 224, monkeypatch), 83, 26.73, 4.82)


def _of_onnx(name, image, monkeypatch):
    """A model; weights are zeros, and inputs where there are no batch norms to fold into them."""
    from onnx import TensorProto

    from tests.graph.onnx.networks import OF_IMAGES, Builder

    given = {}

    def weights(self, *shape, fan_in):
        if name == "inception_v3":
            return self.constant(np.zeros(shape, "float32"))
        given[f"weights_{len(given)}"] = (TensorProto.FLOAT, shape)
        return list(given)[-1]

    monkeypatch.setattr(Builder, "weights", weights)
    b, y = OF_IMAGES[name](image)
    proto = b.model(y, {"x": (TensorProto.FLOAT, ["batch", 3, image, image]), **given})
    return fold_batch_norm(simplify(fold_constants(graph.from_onnx(proto, {"batch": 1}))))
