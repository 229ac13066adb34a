"""Operators of topi with the schedules of topi, beside torch: `python -m benchmarks --suite topi`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tedsl
import topi
from benchmarks.cases import Case, torch_or_none
from benchmarks.conv_cases import conv_cases
from benchmarks.measure import Contender
from tedsl import te

MILLIONS = 16 * 2**20


def against_torch(name: str, shapes: Sequence[Sequence[int]], ours: Callable[..., te.Tensor], theirs: Callable[..., Any],
                  threads: int, work: float = 0.0, unit: str = "") -> Case:
    """The case of an operator `ours` on tensors of `shapes`, scheduled for this machine, beside `theirs`, which is called with
    torch, the result and the inputs.
    """
    rng = np.random.default_rng(0)
    inputs = [te.placeholder(shape, name=f"x{at}") for at, shape in enumerate(shapes)]
    out = ours(*inputs)
    kernel = tedsl.build(topi.schedules.schedule(out), [*inputs, out])
    arrays = [rng.standard_normal(shape, dtype="float32") for shape in shapes]
    result = np.empty(topi.utils.get_const_tuple(out.shape), str(out.dtype))
    contenders: dict[str, Contender] = {"tedsl": lambda: kernel(*arrays, result)}
    kernel(*arrays, result)
    torch = torch_or_none(threads)
    if torch is not None:
        given = [torch.from_numpy(array) for array in arrays]
        with torch.inference_mode():
            into = torch.empty_like(torch.from_numpy(result))
            np.testing.assert_allclose(result, theirs(torch, into, *given).numpy(), rtol=2e-3, atol=2e-3)
        contenders["torch"] = lambda: _without_gradients(torch, theirs, [into, *given])
    return Case(name, contenders, work, unit)


def _without_gradients(torch: Any, function: Callable[..., Any], given: Sequence[Any]) -> None:
    with torch.inference_mode():
        function(torch, *given)


def rows(threads: int) -> list[Callable[[], Case]]:
    """Cases of operators on rows, such as softmax."""
    made: list[Callable[[], Case]] = []
    for shape in ((512, 512), (4096, 1024)):
        size = f"{shape[0]}x{shape[1]}"
        made += [
            lambda shape=shape, size=size: against_torch(f"topi softmax {size}", [shape], topi.nn.softmax,
                                                         lambda t, out, x: t.softmax(x, 1, out=out), threads),
            lambda shape=shape, size=size: against_torch(f"topi log_softmax {size}", [shape], topi.nn.log_softmax,
                                                         lambda t, out, x: t.log_softmax(x, 1, out=out), threads),
            lambda shape=shape, size=size: against_torch(
                f"topi layer_norm {size}", [shape, shape[1:], shape[1:]], lambda x, g, b: topi.nn.layer_norm(x, g, b, -1),
                lambda t, out, x, g, b: t.nn.functional.layer_norm(x, g.shape, g, b), threads)]
    return made


def sums(threads: int) -> list[Callable[[], Case]]:
    """Cases of reductions along every axis."""
    made: list[Callable[[], Case]] = []
    for axis in (0, 1, None):
        made.append(lambda axis=axis: against_torch(f"topi sum 4096x4096, axis {axis}", [(4096, 4096)],
                                                    lambda x: topi.sum(x, axis),
                                                    lambda t, out, x: t.sum(x, axis, out=out), threads,
                                                    4.0 * 4096**2, "read"))
    image = (32, 64, 56, 56)
    made += [lambda: against_torch("topi sum of images, axes 2, 3", [image], lambda x: topi.sum(x, (2, 3)),
                                   lambda t, out, x: t.sum(x, (2, 3), out=out), threads),
             lambda: against_torch("topi sum of channels, axes 0, 2, 3", [image], lambda x: topi.sum(x, (0, 2, 3)),
                                   lambda t, out, x: t.sum(x, (0, 2, 3), out=out), threads),
             lambda: against_torch("topi max 1024x1024, axis 1", [(1024, 1024)], lambda x: topi.max(x, 1),
                                   lambda t, out, x: t.amax(x, 1, out=out), threads)]
    return made


def elementwise(threads: int) -> list[Callable[[], Case]]:
    """Cases of element-wise operators and broadcasts on large arrays."""
    flat = (MILLIONS,)
    return [
        lambda: against_torch("topi add, 16 M", [flat, flat], topi.add,
                              lambda t, out, x, y: t.add(x, y, out=out), threads, 12.0 * MILLIONS, "read"),
        lambda: against_torch("topi relu, 16 M", [flat], topi.nn.relu,
                              lambda t, out, x: t.clamp_min(x, 0, out=out), threads, 8.0 * MILLIONS, "read"),
        lambda: against_torch("topi sigmoid, 16 M", [flat], topi.sigmoid, lambda t, out, x: t.sigmoid(x, out=out), threads),
        lambda: against_torch("topi tanh, 100 k", [(100_000,)], topi.tanh, lambda t, out, x: t.tanh(x, out=out), threads),
        lambda: against_torch("topi bias_add 32x64x56x56", [(32, 64, 56, 56), (64,)], topi.nn.bias_add,
                              lambda t, out, x, b: t.add(x, b[:, None, None], out=out), threads),
        lambda: against_torch("topi transpose 1024x1024", [(1024, 1024)], topi.transpose,
                              lambda t, out, x: out.copy_(x.t()), threads)]


def products(threads: int) -> list[Callable[[], Case]]:
    """Cases of matrix products."""
    made: list[Callable[[], Case]] = []
    for m, k, n in ((1, 1024, 1000), (32, 512, 512), (128, 768, 3072), (512, 512, 512), (1024, 1024, 1024)):
        made.append(lambda m=m, k=k, n=n: against_torch(
            f"topi dense {m}x{k}x{n}", [(m, k), (n, k), (n,)], topi.nn.dense,
            lambda t, out, x, w, b: t.addmm(b, x, w.t(), out=out), threads, 2.0 * m * k * n, "FMA"))
    for b, m, k, n in ((12, 128, 64, 128), (8, 256, 256, 256)):
        made.append(lambda b=b, m=m, k=k, n=n: against_torch(
            f"topi batch_matmul {b}x{m}x{k}x{n}", [(b, m, k), (b, n, k)], topi.nn.batch_matmul,
            lambda t, out, x, y: t.bmm(x, y.transpose(1, 2), out=out), threads, 2.0 * b * m * k * n, "FMA"))
    return made


def images(threads: int) -> list[Callable[[], Case]]:
    """Cases of operators on images of the sizes in networks, without convolutions."""
    image = (1, 64, 56, 56)
    return [
        lambda: against_torch("topi relu(x * 2 + 1) 1x64x56x56", [image], lambda x: topi.nn.relu(x * 2.0 + 1.0),
                              lambda t, out, x: t.mul(x, 2, out=out).add_(1).relu_(), threads),
        lambda: against_torch("topi to int32 and back, 1 M", [(1024, 1024)],
                              lambda x: topi.cast(topi.cast(x * 100.0, "int32"), "float32"),
                              lambda t, out, x: out.copy_((x * 100.0).to(t.int32)), threads),
        lambda: against_torch("topi upsampling x2 1x64x56x56", [image], lambda x: topi.nn.upsampling(x, 2, 2),
                              lambda t, out, x: t.nn.functional.interpolate(x, scale_factor=2), threads),
        lambda: against_torch("topi max pool 3x3 / 2 1x64x112x112", [(1, 64, 112, 112)],
                              lambda x: topi.nn.pool2d(x, [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], "max"),
                              lambda t, out, x: t.nn.functional.max_pool2d(x, 3, 2, 1), threads),
        lambda: against_torch("topi conv2d_transpose 4x4 / 2 64-32 28x28", [(1, 64, 28, 28), (64, 32, 4, 4)],
                              lambda x, w: topi.nn.conv2d_transpose_nchw(x, w, (2, 2), (1, 1), "float32", (0, 0)),
                              lambda t, out, x, w: t.nn.functional.conv_transpose2d(x, w, stride=2, padding=1), threads)]


def contractions(threads: int) -> list[Callable[[], Case]]:
    """Cases of topi.einsum."""
    made: list[Callable[[], Case]] = []
    for subscripts, a, b in (("ij,jk->ik", (256, 256), (256, 256)), ("ij,kj->ik", (256, 256), (256, 256)),
                             ("bhid,bhjd->bhij", (2, 4, 64, 32), (2, 4, 64, 32)),
                             ("bhij,bhjd->bhid", (2, 4, 64, 64), (2, 4, 64, 32))):
        made.append(lambda subscripts=subscripts, a=a, b=b: against_torch(
            f"topi einsum {subscripts}", [a, b], lambda x, y: topi.einsum(subscripts, x, y),
            lambda t, out, x, y: t.einsum(subscripts, x, y), threads))
    return made


def build_times() -> list[Callable[[], Case]]:
    """Cases that time schedule, lower and build of whole operators."""
    def softmax() -> None:
        x = te.placeholder((512, 512), name="x")
        y = topi.nn.softmax(x)
        tedsl.build(topi.schedules.schedule(y), [x, y])

    def dense() -> None:
        x, w = te.placeholder((128, 512), name="x"), te.placeholder((512, 512), name="w")
        y = topi.nn.relu(topi.nn.dense(x, w))
        tedsl.build(topi.schedules.schedule(y), [x, w, y])

    return [lambda: Case("topi softmax: schedule + lower + build", {"tedsl": softmax}),
            lambda: Case("topi dense + relu: schedule + lower + build", {"tedsl": dense})]


def topi_cases(threads: int, quick: bool) -> list[Callable[[], Case]]:
    """Functions that make the cases, so that only one case's arrays live at a time."""
    made = rows(threads) + sums(threads) + elementwise(threads) + images(threads) + contractions(threads) + products(threads)
    made += conv_cases(threads)
    return made + (build_times() if threads == 1 else [])
