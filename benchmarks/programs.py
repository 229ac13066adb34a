"""Programs whose builds are measured, each from the start: a function that makes the schedule and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import topi
from benchmarks import networks
from benchmarks.matmul import packed_matmul
from tedsl import te

Program = Callable[[], tuple[Any, list[Any]]]


def vector_add() -> tuple[Any, list[Any]]:
    """A + B of 1024 elements in vectors of 16."""
    A, B = te.placeholder((1024,), name="A"), te.placeholder((1024,), name="B")
    C = te.compute((1024,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    _, lanes = s[C].split(C.op.axis[0], factor=16)
    s[C].vectorize(lanes)
    return s, [A, B, C]


def softmax() -> tuple[Any, list[Any]]:
    """softmax of topi, 512 rows of 512."""
    x = te.placeholder((512, 512), name="x")
    y = topi.nn.softmax(x)
    return topi.schedules.schedule(y), [x, y]


def dense() -> tuple[Any, list[Any]]:
    """dense and relu of topi."""
    x, w = te.placeholder((128, 512), name="x"), te.placeholder((512, 512), name="w")
    y = topi.nn.relu(topi.nn.dense(x, w))
    return topi.schedules.schedule(y), [x, w, y]


def convolution() -> tuple[Any, list[Any]]:
    """conv2d and relu of topi, NCHW."""
    x, w = te.placeholder((1, 64, 56, 56), name="x"), te.placeholder((64, 64, 3, 3), name="w")
    y = topi.nn.relu(topi.nn.conv2d_nchw(x, w, 1, 1, 1))
    return topi.schedules.schedule(y), [x, w, y]


def network() -> tuple[Any, list[Any]]:
    """ResNet-18, whose weights are not drawn: that is no part of a build."""
    net = networks.Declared(1)
    out = networks.resnet18(net)
    return topi.schedules.schedule(out), [*net.inputs, out]


PROGRAMS: dict[str, Program] = {"vector add": vector_add, "softmax": softmax, "packed matmul": lambda: packed_matmul(512),
                                "dense + relu": dense, "conv2d + relu": convolution, "ResNet-18": network}
