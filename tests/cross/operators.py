"""Forty operators and kernels at odd shapes: each with its schedule, its arguments, and inputs by a fixed seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tedsl
from tedsl import te, topi

MATH = ("exp", "log", "tanh", "sigmoid", "erf", "sqrt", "rsqrt", "sin", "cos", "tan", "atan", "floor", "round")


@dataclass(frozen=True)
class Case:
    """A function: what it computes, by the inputs. scheduled: as topi schedules it for the target, else plain loops."""

    name: str
    outputs: Callable[..., Any]
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    scheduled: bool = False
    positive: bool = False

    def lower(self, target: Any) -> Any:
        """The function for `target`, whose width of vectors its schedule may ask for."""
        with tedsl.target.Target(target):
            args = [te.placeholder(shape, dtype, name=f"A{k}") for k, (shape, dtype) in enumerate(self.inputs)]
            out = self.outputs(*args)
            outs = list(out) if isinstance(out, (list, tuple)) else [out]
            if self.scheduled:
                s = topi.schedules.schedule(outs)
            else:
                s = te.create_schedule([t.op for t in outs])
            return tedsl.lower(s, [*args, *outs], name=self.name)

    def arrays(self) -> list[np.ndarray]:
        """The inputs."""
        draw = np.random.default_rng(len(self.name) + sum(map(ord, self.name)))
        made = []
        for shape, dtype in self.inputs:
            if dtype.startswith("float"):
                values = draw.standard_normal(shape) * 3
                made.append((np.abs(values) + 0.01 if self.positive else values).astype(dtype))
            else:
                made.append(draw.integers(0, 5, shape).astype(dtype))
        return made


def parallel_rows(a: Any) -> Any:
    return te.compute(a.shape, lambda i, j: te.exp(a[i, j]) + i, name="rows")


def through_a_workspace(a: Any) -> Any:
    twice = te.compute((30_000,), lambda i: a[i % 100] * i, name="twice")  # more than stands on the stack
    return te.compute((30_000,), lambda i: twice[i] + twice[29_999 - i], name="sums")


F, D, H = "float32", "float64", "float16"
CASES = [
    *(Case(f"math_{name}", getattr(topi, name), (((3, 129), F),), positive=name in ("log", "sqrt", "rsqrt")) for name in MATH),
    Case("exp64", topi.exp, (((129,), D),)), Case("exp16", topi.exp, (((129,), H),)),
    Case("power", topi.power, (((65,), F), ((65,), F)), positive=True),
    Case("add", topi.add, (((5, 1, 7), F), ((3, 7), F))), Case("floor_mod", topi.floor_mod, (((99,), "int8"), ((99,), "int8"))),
    Case("softmax", topi.nn.softmax, (((5, 77), F),)), Case("log_softmax", topi.nn.log_softmax, (((3, 33), F),)),
    Case("dense", topi.nn.dense, (((5, 67), F), ((9, 67), F))), Case("matmul", topi.matmul, (((7, 13), D), ((13, 5), D))),
    Case("batch_matmul", topi.nn.batch_matmul, (((2, 5, 9), F), ((2, 4, 9), F))),
    Case("conv2d", lambda x, w: topi.nn.conv2d(x, w, 2, 1, 1), (((1, 3, 11, 13), F), ((4, 3, 3, 3), F))),
    Case("depthwise", lambda x, w: topi.nn.depthwise_conv2d_nchw(x, w, (1, 1), (1, 1), (1, 1)),
         (((1, 6, 9, 9), F), ((6, 1, 3, 3), F))),
    Case("max_pool", lambda x: topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"), (((1, 4, 9, 9), F),)),
    Case("avg_pool", lambda x: topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "avg"), (((1, 4, 9, 9), F),)),
    Case("sum", lambda x: topi.sum(x, axis=1), (((7, 131), F),)),
    Case("argmax", lambda x: topi.argmax(x, axis=1), (((7, 31), F),)),
    Case("cumsum", lambda x: topi.cumsum(x, axis=1), (((3, 37), "int64"),)), Case("sort", topi.sort, (((3, 29), F),)),
    Case("transpose", topi.transpose, (((5, 7, 3), "int16"),)), Case("concatenate", lambda a, b: topi.concatenate((a, b), 1),
                                                                      (((2, 3), F), ((2, 5), F))),
    Case("take", lambda a, i: topi.take(a, i, axis=0), (((9, 4), F), ((6,), "int32"))),
    Case("one_hot", lambda i: topi.one_hot(i, te.const(1, F), te.const(0, F), 5, -1, F), (((7,), "int32"),)),
    Case("cast_half", lambda a: topi.cast(topi.cast(a, H), D), (((301,), F),)),
    Case("resize", lambda x: topi.image.resize2d(x, [0.0] * 4, (7, 9), "NCHW", "linear"), (((1, 2, 5, 6), F),)),
    Case("workspace", through_a_workspace, (((100,), F),)),
    Case("dense_tuned", topi.nn.dense, (((16, 64), F), ((32, 64), F)), scheduled=True),
    Case("softmax_tuned", topi.nn.softmax, (((33, 77), F),), scheduled=True),
    Case("conv_tuned", lambda x, w: topi.nn.relu(topi.nn.conv2d(x, w, 1, 1, 1)), (((1, 16, 14, 14), F), ((16, 16, 3, 3), F)),
         scheduled=True),
    Case("add_tuned", topi.add, (((1000,), F), ((1000,), F)), scheduled=True),
    Case("rows_tuned", parallel_rows, (((17, 33), F),), scheduled=True),
]
