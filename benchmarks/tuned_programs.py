"""Random programs whose schedules are searched for: a function for each family, which draws a shape."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import topi
from tedsl import te

Case = tuple[str, list[Any], Callable[[Any, Sequence[Any]], Any] | None]  # name, tensors of the function, the same in torch


def plain_product(n: int, m: int, terms: int) -> list[Any]:
    """A product of matrices as its formula."""
    A, B = te.placeholder((n, terms), name="A"), te.placeholder((terms, m), name="B")
    k = te.reduce_axis((0, terms), name="k")
    return [A, B, te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")]


def matmul(draw: random.Random) -> Case:
    n, m, terms = (draw.randint(2, 48) * 16 + draw.choice((0, 0, 3)) for _ in range(3))
    return f"matmul {n}x{m}x{terms}", plain_product(n, m, terms), lambda torch, arrays: torch.mm(*arrays)


def dense(draw: random.Random) -> Case:
    n, m, terms = draw.randint(1, 64), draw.randint(2, 64) * 16, draw.randint(2, 64) * 16
    A, W, b = te.placeholder((n, terms), name="A"), te.placeholder((m, terms), name="W"), te.placeholder((m,), name="b")
    return f"dense relu {n}x{m}x{terms}", [A, W, b, topi.nn.relu(topi.nn.dense(A, W, b))], \
        lambda torch, arrays: torch.relu(torch.nn.functional.linear(*arrays))


def batched(draw: random.Random) -> Case:
    batch, n, m, terms = draw.randint(1, 16), draw.randint(1, 128), draw.randint(1, 128), draw.randint(8, 128)
    A, B = te.placeholder((batch, n, terms), name="A"), te.placeholder((batch, m, terms), name="B")
    return f"batch matmul {batch}x{n}x{m}x{terms}", [A, B, topi.nn.batch_matmul(A, B)], \
        lambda torch, arrays: torch.bmm(arrays[0], arrays[1].transpose(1, 2))


def convolution_relu(draw: random.Random) -> Case:
    name, (A, W, out), of_torch = convolution(draw)
    return f"{name}, relu", [A, W, topi.nn.relu(out)], \
        lambda torch, arrays: torch.relu_(of_torch(torch, arrays)) if of_torch is not None else None


def depthwise(draw: random.Random) -> Case:
    channels, size, kernel = draw.randint(1, 32) * 8, draw.randint(7, 56), draw.choice((3, 5))
    A = te.placeholder((1, channels, size, size), name="A")
    W = te.placeholder((channels, 1, kernel, kernel), name="W")
    return f"depthwise {channels} {size}x{size} by {kernel}", [A, W, topi.nn.depthwise_conv2d_nchw(A, W, 1, kernel // 2, 1)], \
        lambda torch, arrays: torch.nn.functional.conv2d(*arrays, padding=kernel // 2, groups=channels)


def pooling(draw: random.Random) -> Case:
    channels, size = draw.randint(1, 128), draw.randint(8, 112)
    A = te.placeholder((1, channels, size, size), name="A")
    return f"max pool {channels} {size}x{size}", \
        [A, topi.nn.pool2d(A, [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], "max")], \
        lambda torch, arrays: torch.nn.functional.max_pool2d(arrays[0], 3, 2, 1)


def layer_norm(draw: random.Random) -> Case:
    n, m = draw.randint(1, 512), draw.randint(10, 2048)
    A, scale, shift = te.placeholder((n, m), name="A"), te.placeholder((m,), name="scale"), te.placeholder((m,), name="shift")
    return f"layer norm {n}x{m}", [A, scale, shift, topi.nn.layer_norm(A, scale, shift, [1])], \
        lambda torch, arrays: torch.nn.functional.layer_norm(arrays[0], [m], *arrays[1:])


def convolution(draw: random.Random) -> Case:
    channels, filters, size, kernel = draw.randint(1, 12) * 8, draw.randint(1, 12) * 8, draw.randint(7, 56), draw.choice((1, 3))
    A = te.placeholder((1, channels, size, size), name="A")
    W = te.placeholder((filters, channels, kernel, kernel), name="W")
    return f"conv {channels}->{filters} {size}x{size} by {kernel}", [A, W, topi.nn.conv2d(A, W, 1, kernel // 2, 1)], \
        lambda torch, arrays: torch.nn.functional.conv2d(*arrays, padding=kernel // 2)


def softmax(draw: random.Random) -> Case:
    n, m = draw.randint(1, 512), draw.randint(10, 2048)
    A = te.placeholder((n, m), name="A")
    return f"softmax {n}x{m}", [A, topi.nn.softmax(A)], lambda torch, arrays: torch.softmax(arrays[0], -1)


def rows(draw: random.Random) -> Case:
    n, m = draw.randint(1, 2048), draw.randint(10, 4096)
    A = te.placeholder((n, m), name="A")
    return f"sum of rows {n}x{m}", [A, topi.sum(A, axis=1)], lambda torch, arrays: arrays[0].sum(1)


def columns(draw: random.Random) -> Case:
    n, m = draw.randint(10, 2048), draw.randint(1, 4096)
    A = te.placeholder((n, m), name="A")
    return f"sum of columns {n}x{m}", [A, topi.sum(A, axis=0)], lambda torch, arrays: arrays[0].sum(0)


def elementwise(draw: random.Random) -> Case:
    n, m = draw.randint(1, 1024), draw.randint(10, 2048)
    A, B = te.placeholder((n, m), name="A"), te.placeholder((m,), name="B")
    return f"tanh(a + b) {n}x{m}", [A, B, topi.tanh(topi.add(A, B))], lambda torch, arrays: torch.tanh(arrays[0] + arrays[1])


def transposed(draw: random.Random) -> Case:
    n, m = draw.randint(10, 2048), draw.randint(10, 2048)
    A = te.placeholder((n, m), name="A")
    return f"transpose {n}x{m}", [A, topi.transpose(A)], lambda torch, arrays: arrays[0].t().contiguous()


def gradient(draw: random.Random) -> Case:
    n, m, terms = (draw.randint(2, 24) * 8 for _ in range(3))
    A, B, C = plain_product(n, m, terms)
    return f"gradient {n}x{m}x{terms}", [A, B, *te.gradient(topi.sum(topi.tanh(C)), [A, B])], None


FAMILIES = {"matmul": matmul, "dense": dense, "batched": batched, "convolution": convolution,
            "convolution relu": convolution_relu, "depthwise": depthwise, "pooling": pooling, "softmax": softmax,
            "layer norm": layer_norm, "rows": rows, "columns": columns, "elementwise": elementwise, "transposed": transposed,
            "gradient": gradient}


def drawn(family: str, number: int, seed: int) -> Case:
    """Shape `number` of a family: the same whichever others are measured."""
    return FAMILIES[family](random.Random(f"{seed} {family} {number}"))
