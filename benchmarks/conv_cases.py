"""Every convolution of ResNet-18 with the x86 schedules, and by winograd, beside torch with channels first and last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tedsl
import topi
from benchmarks.cases import Case, torch_or_none
from benchmarks.measure import Contender
from tedsl import te

# channels in, size of the image, channels out, size of the kernel, stride
LAYERS = ((3, 224, 64, 7, 2), (64, 56, 64, 3, 1), (64, 56, 128, 3, 2), (64, 56, 128, 1, 2), (128, 28, 128, 3, 1),
          (128, 28, 256, 3, 2), (128, 28, 256, 1, 2), (256, 14, 256, 3, 1), (256, 14, 512, 3, 2), (256, 14, 512, 1, 2),
          (512, 7, 512, 3, 1))
AXES = {"NCHW": ((0, 1, 2, 3), (0, 1, 2, 3)), "NHWC": ((0, 2, 3, 1), (2, 3, 1, 0))}  # of NCHW data, of OIHW weights


def convolution(threads: int, channels: int, size: int, filters: int, kernel: int, stride: int) -> Case:
    """conv2d and relu at batch 1 with padding that keeps the image; `tedsl` takes NCHW, as torch does by default."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, channels, size, size), dtype="float32")
    w = rng.standard_normal((filters, channels, kernel, kernel), dtype="float32")
    pad = kernel // 2
    contenders: dict[str, Contender] = {}
    results = {}
    for layout, (of_data, of_weights) in AXES.items():
        data, weights = (np.ascontiguousarray(a.transpose(axes)) for a, axes in ((x, of_data), (w, of_weights)))
        D, W = te.placeholder(data.shape, name="data"), te.placeholder(weights.shape, name="weights")
        out = topi.nn.relu(topi.nn.conv2d(D, W, stride, pad, 1, layout))
        run = tedsl.build(topi.schedules.schedule(out), [D, W, out])
        results[layout] = np.empty(topi.utils.get_const_tuple(out.shape), "float32")
        run(data, weights, results[layout])
        contenders["tedsl" if layout == "NCHW" else f"tedsl {layout}"] = \
            lambda run=run, data=data, weights=weights, y=results[layout]: run(data, weights, y)
    np.testing.assert_allclose(results["NHWC"].transpose(0, 3, 1, 2), results["NCHW"], rtol=2e-3, atol=2e-3)
    torch = torch_or_none(threads)
    if torch is not None:
        _add_torch(torch, contenders, x, w, stride, pad, results["NCHW"])
    out_size = results["NCHW"].shape[2]
    name = f"topi conv2d {channels}->{filters} {kernel}x{kernel} {size}²" + (f" stride {stride}" if stride > 1 else "")
    return Case(name, contenders, 2.0 * filters * out_size**2 * channels * kernel**2, "FMA")


def _add_torch(torch: Any, contenders: dict[str, Contender], x: Any, w: Any, stride: int, pad: int, expected: Any) -> None:
    def run(data: Any, weights: Any) -> Any:
        with torch.inference_mode():
            return torch.relu_(torch.nn.functional.conv2d(data, weights, stride=stride, padding=pad))

    for name, layout in (("torch", torch.contiguous_format), ("torch channels last", torch.channels_last)):
        data, weights = (torch.from_numpy(a).to(memory_format=layout) for a in (x, w))
        np.testing.assert_allclose(run(data, weights).numpy(), expected, rtol=2e-3, atol=2e-3)
        contenders[name] = lambda data=data, weights=weights: run(data, weights)


def winograd(threads: int, channels: int, size: int) -> Case:
    """A 3 x 3 convolution by tiles of 4 x 4 results, with weights that were transformed before; FLOPS as of the direct sum."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, channels, size, size), dtype="float32")
    w = rng.standard_normal((channels, channels, 3, 3), dtype="float32")
    W = te.placeholder(w.shape, name="weights")
    transform = topi.nn.conv2d_winograd_weight_transform(W, 4)
    u = np.empty((6, 6, channels, channels), "float32")
    tedsl.build(topi.schedules.schedule(transform), [W, transform])(w, u)
    D, U = te.placeholder(x.shape, name="data"), te.placeholder(u.shape, name="transformed")
    contenders: dict[str, Contender] = {}
    y = np.empty(x.shape, "float32")
    for name, inputs, arrays, out in (
            ("tedsl", [D, U], (x, u), topi.nn.conv2d_winograd_nchw(D, U, 1, 1, 1, pre_computed=True)),
            ("tedsl direct", [D, W], (x, w), topi.nn.conv2d_nchw(D, W, 1, 1, 1))):
        made = topi.nn.relu(out)
        run = tedsl.build(topi.schedules.schedule(made), [*inputs, made])
        run(*arrays, y)
        contenders[name] = lambda run=run, arrays=arrays: run(*arrays, y)
    torch = torch_or_none(threads)
    if torch is not None:
        _add_torch(torch, contenders, x, w, 1, 1, y)
    return Case(f"topi winograd {channels}->{channels} 3x3 {size}²", contenders, 2.0 * channels**2 * size**2 * 9, "FMA")


def conv_cases(threads: int) -> list[Callable[[], Case]]:
    """Functions that make the cases."""
    direct = [lambda layer=layer: convolution(threads, *layer) for layer in LAYERS]
    return direct + [lambda of=of: winograd(threads, *of) for of in ((64, 56), (128, 28), (256, 14))]
