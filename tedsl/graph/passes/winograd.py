"""use_winograd: convolutions by the algorithm with fewer multiplications, where a model says that it takes less time.

The transformed weights are larger, (m + 2)^2 / 9 times, and are read once for each call: with many channels and few pixels that
takes longer than the multiplications saved. Of 256 channels and 14 x 14 pixels, tiles of 2 x 2 take 0.56 of the time of the
direct convolution, of 64 channels and 56 x 56 pixels, tiles of 4 x 4 take 0.39; of 512 channels and 7 x 7 pixels, 1.08.
"""

from __future__ import annotations

from tedsl.graph.apply import apply
from tedsl.graph.dimensions import expected_extent
from tedsl.graph.graph import Graph
from tedsl.graph.passes.weights import Layer, Prepared, with_prepared_weights
from tedsl.graph.value import Node, Value
from topi.kinds import ConvOp

_SIZES = (2, 4)  # of tiles; larger ones lose digits
_PER_BYTE = 4.5  # multiply-adds in the time in which a byte of the weights comes from memory
_MOVED = 12  # multiply-adds in the time in which an element is transformed and stored, or loaded and transformed back
_WORTH = 0.75  # of the time of the direct convolution: the model is not exact
_FEWEST = 16  # channels: of 16 and 56 x 56 pixels, 0.8 of the time; with fewer, sums are too short for what is around them


def use_winograd(graph: Graph) -> Graph:
    """The graph with convolutions of constant weights, a window of 3 x 3 and stride 1 by winograd where that takes less time.

    Results differ from those of the direct convolution in the last digits: about 1e-5 of the largest.
    """
    return with_prepared_weights(graph, _by_tiles)


def _by_tiles(layer: Layer) -> Prepared | None:
    info, weights = layer.info, layer.node.inputs[1]
    if not isinstance(info, ConvOp):
        return None
    outputs, inputs, *window = [int(extent) for extent in weights.shape]
    plain = (info.layout, info.kernel_layout, info.groups, tuple(info.strides), tuple(info.dilation), tuple(window)) == \
        ("NCHW", "OIHW", 1, (1, 1), (1, 1), (3, 3))
    image = layer.node.outputs[0].shape
    if not plain or str(weights.dtype) != "float32" or layer.node.outputs[0].dtype != weights.dtype or \
            not all(isinstance(extent, int) for extent in image[2:]):
        return None
    size = tiles_for((expected_extent(image[0]), int(image[2]), int(image[3])), inputs, outputs)
    return None if size is None else _prepared(size)


def tiles_for(image: tuple[int, int, int], inputs: int, outputs: int) -> int | None:
    """The size of the tiles by which a convolution of a window of 3 x 3 takes less time; None if none does."""
    batch, height, width = image
    if min(outputs, inputs) < _FEWEST:
        return None
    times = {size: cost(size, image, inputs, outputs) for size in _SIZES}
    best = min(_SIZES, key=lambda size: times[size])
    return best if times[best] <= _WORTH * batch * height * width * 9 * inputs * outputs else None


def cost(size: int, image: tuple[int, int, int], inputs: int, outputs: int) -> float:
    """The time of a convolution by tiles of size x size, in multiply-adds of the direct one."""
    batch, height, width = image
    tiles, alpha = batch * -(-height // size) * -(-width // size), (size + 2) ** 2
    moved = tiles * alpha * (inputs + outputs)
    return tiles * alpha * inputs * outputs + 4 * alpha * inputs * outputs * _PER_BYTE + moved * _MOVED


def _prepared(size: int) -> Prepared:
    def instead(node: Node, transformed: Value) -> Value:
        result: Value = apply("nn.conv2d_winograd_nchw", node.inputs[0], transformed, 1, node.arguments["padding"], 1,
                              pre_computed=True, tile_size=size)
        return result

    return Prepared(lambda weights: apply("nn.conv2d_winograd_weight_transform", weights, size), instead)
