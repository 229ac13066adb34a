"""Formulas on each element, of arrays in memory and of arrays in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import topi
from benchmarks import reference
from benchmarks.case import Case, Contender, Maker, maker
from benchmarks.contenders import ours, with_numba, with_onnx, with_torch
from benchmarks.suites.products import bytes_of, drawn

SIZES = {"16 M": 16 * 2**20, "100 k": 100_000}
ROUNDINGS = 2.0  # the functions of float32 of all libraries are within some units in the last place


@dataclass(frozen=True)
class Formula:
    """An element-wise formula in each library. numpy, torch: called with the result, then the inputs; torch also with the
    module before them. positive: where the formula needs it.
    """

    name: str
    inputs: int
    ours: Callable[..., Any]
    wide: Callable[..., Any]
    numpy: Callable[..., Any] | None
    torch: Callable[..., Any]
    numba: Callable[[Any], Callable[..., None]] | None = None
    onnx: str = ""
    positive: bool = False


def _gelu(x: Any) -> Any:
    return topi.multiply(topi.multiply(x, 0.5), topi.add(topi.erf(topi.multiply(x, math.sqrt(0.5))), 1.0))


def _wide_gelu(x: Any) -> Any:
    from scipy.special import erf

    return 0.5 * x * (1.0 + erf(x * math.sqrt(0.5)))


def _numpy_sigmoid(out: Any, x: Any) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


def _numpy_multiply_add(out: Any, a: Any, b: Any, c: Any) -> None:
    np.multiply(a, b, out=out)
    np.add(out, c, out=out)


def _numba_multiply_add(prange: Any) -> Callable[..., None]:
    def loop(a: Any, b: Any, c: Any, d: Any) -> None:
        for i in prange(a.size):
            d[i] = a[i] * b[i] + c[i]

    return loop


FORMULAS = (
    Formula("a*b+c", 3, lambda a, b, c: topi.add(topi.multiply(a, b), c), lambda a, b, c: a * b + c, _numpy_multiply_add,
            lambda t, out, a, b, c: t.addcmul(c, a, b, out=out), _numba_multiply_add),
    Formula("exp", 1, topi.exp, np.exp, lambda out, x: np.exp(x, out=out), lambda t, out, x: t.exp(x, out=out), onnx="Exp"),
    Formula("tanh", 1, topi.tanh, np.tanh, lambda out, x: np.tanh(x, out=out), lambda t, out, x: t.tanh(x, out=out),
            onnx="Tanh"),
    Formula("sigmoid", 1, topi.sigmoid, lambda x: 1 / (1 + np.exp(-x)), _numpy_sigmoid,
            lambda t, out, x: t.sigmoid(x, out=out), onnx="Sigmoid"),
    Formula("gelu", 1, _gelu, _wide_gelu, None, lambda t, out, x: t._C._nn.gelu(x, out=out), onnx="com.microsoft:Gelu"),
    Formula("pow", 2, topi.power, lambda x, y: x**y, lambda out, x, y: np.power(x, y, out=out),
            lambda t, out, x, y: t.pow(x, y, out=out), onnx="Pow", positive=True),
    Formula("log", 1, topi.log, np.log, lambda out, x: np.log(x, out=out), lambda t, out, x: t.log(x, out=out), onnx="Log",
            positive=True),
)


def elementwise(formula: Formula, size: str, threads: int) -> Case:
    """A formula on arrays of so many elements."""
    arrays = drawn(*[(SIZES[size],)] * formula.inputs)
    if formula.positive:
        arrays[0] = np.abs(arrays[0]) + np.float32(0.01)
    out = np.empty_like(arrays[0])
    contenders = {"tedsl": ours.operator(formula.ours, arrays)}
    by_numpy = formula.numpy
    if by_numpy is not None:
        contenders["numpy"] = Contender(lambda: by_numpy(out, *arrays), lambda: out)
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.into(torch, partial(formula.torch, torch), arrays, out)
    if formula.onnx and with_onnx.onnx_or_none():
        contenders["onnxruntime"] = with_onnx.one(formula.onnx, arrays, out, threads)
    if formula.numba is not None:
        compiled = with_numba.loops(formula.numba, arrays, out, threads)
        contenders |= {"numba": compiled} if compiled is not None else {}
    return Case("element-wise", contenders, lambda: formula.wide(*map(reference.wide, arrays)), 1,
                read=bytes_of(*arrays), written=bytes_of(out), factor=ROUNDINGS)


def cases(threads: int) -> list[Maker]:
    """The cases of this suite."""
    return [maker(f"{formula.name}, {size}", elementwise, formula, size, threads) for size in SIZES for formula in FORMULAS]
