"""The search for register tiles: each tile that fits gives the same numbers, and the model's choice is among them."""

import random

import numpy as np
import pytest

import tedsl
import topi
from benchmarks import tile_search
from tedsl import te
from topi.schedules.cpu import matmul
from topi.schedules.cpu.conv import tiles


def a_product():
    A, B = te.placeholder((37, 12), name="A"), te.placeholder((12, 45), name="B")
    return [A, B, topi.nn.matmul(A, B)]


def a_convolution():
    x, w = te.placeholder((1, 9, 9, 8), name="x"), te.placeholder((3, 3, 8, 40), name="w")
    return [x, w, topi.nn.conv2d_nhwc(x, w, 1, 1, 1)]


@pytest.mark.parametrize("make, found, module, name", [
    (a_product, tile_search.of_products(), matmul, "tile_of"),
    (a_convolution, tile_search.of_images(), tiles, "image_tile")], ids=["product", "convolution"])
def test_every_tile_computes_the_same(make, found, module, name):
    tensors = make()
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 4, [int(extent) for extent in tensor.shape]).astype("float32") for tensor in tensors]
    results, before = [], getattr(module, name)
    with tile_search.replaced(module, name, found):
        topi.schedules.schedule(tensors[-1])
        assert found.chosen in found.all and len(found.all) > 10
        for tile in [found.chosen, *random.Random(0).sample(found.all, 6)]:
            found.given = tile
            kernel = tedsl.build(topi.schedules.schedule(tensors[-1]), tensors)
            kernel(*arrays)
            results.append(arrays[-1].copy())
    assert getattr(module, name) is before
    assert all(np.array_equal(result, results[0]) for result in results)


def test_shapes_are_drawn_by_the_seed():
    for draws in (tile_search.product, tile_search.convolution):
        assert draws(random.Random(1))[0] == draws(random.Random(1))[0] != draws(random.Random(2))[0]
