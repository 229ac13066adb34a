"""Operators of the inventory that no row of the goals names, at usual sizes, in one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import topi
from benchmarks.case import Case, Contender, Maker, maker
from benchmarks.contenders import ours, with_torch
from benchmarks.suites.products import bytes_of

COUNT = 100_000
IMAGE = (1, 64, 56, 56)
STEPS, BATCH, HIDDEN = 64, 16, 128
GROUPS = 8


@dataclass(frozen=True)
class Operator:
    """An operator in each library. arrays: drawn from a generator. torch: called with the module, then the tensors.
    reference: the result in float64; numpy: where that library has the operator. terms: of its sums.
    """

    name: str
    arrays: Callable[[Any], Sequence[Any]]
    ours: Callable[..., Any]
    reference: Callable[..., Any]
    torch: Callable[..., Any] | None = None
    numpy: Callable[..., Any] | None = None
    terms: int = 1


def _normal(*shapes: tuple[int, ...], dtype: str = "float32") -> Callable[[Any], Sequence[Any]]:
    return lambda rng: [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def _positive(dtype: str) -> Callable[[Any], Sequence[Any]]:
    return lambda rng: [rng.uniform(0.05, 0.95, COUNT).astype(dtype)]


def _integers(rng: Any) -> Sequence[Any]:
    return [rng.integers(-10**6, 10**6, COUNT), rng.integers(1, 1000, COUNT)]


def _sequence(rng: Any) -> Sequence[Any]:
    values = rng.standard_normal(COUNT).astype("float32")
    return [np.sort(values), values]


def _weights(rng: Any) -> Sequence[Any]:
    shapes = ((STEPS, BATCH, HIDDEN), (4 * HIDDEN, HIDDEN), (4 * HIDDEN, HIDDEN))
    return [(rng.standard_normal(shape) * scale).astype("float32") for shape, scale in zip(shapes, (1, 0.1, 0.1))]


def _lstm(x: Any, wi: Any, wh: Any) -> Any:
    h, c, states = np.zeros((BATCH, HIDDEN)), np.zeros((BATCH, HIDDEN)), []
    for step in x:
        i, f, g, o = np.split(step @ wi.T + h @ wh.T, 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        states.append(h)
    return np.stack(states)


def _torch_lstm(torch: Any, x: Any, wi: Any, wh: Any) -> Any:
    begin = torch.zeros((1, BATCH, HIDDEN))
    return torch.lstm(x, (begin, begin), [wi, wh], False, 1, 0.0, False, False, False)[0]


def _group_norm(x: Any, gamma: Any, beta: Any) -> Any:
    groups = x.reshape(x.shape[0], GROUPS, -1)
    scaled = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    return scaled.reshape(x.shape) * gamma[:, None, None] + beta[:, None, None]


def _grid_sample(x: Any, grid: Any) -> Any:
    """Bilinear, for places inside of the image, computed in float32: their rounding shows where the image is steep."""
    at = [(grid[0, d].astype("float32") + 1) * (x.shape[3 - d] - 1) / 2 for d in (1, 0)]
    low = [np.minimum(np.floor(place).astype(int), n - 2) for place, n in zip(at, x.shape[2:])]
    (y, x0), (dy, dx) = low, (place.astype("float64") - first for place, first in zip(at, low))
    corners = ((0, 0, (1 - dy) * (1 - dx)), (0, 1, (1 - dy) * dx), (1, 0, dy * (1 - dx)), (1, 1, dy * dx))
    return sum(x[:, :, y + down, x0 + right] * weight for down, right, weight in corners)


def _dilate(x: Any) -> Any:
    out = np.zeros((*x.shape[:2], 2 * x.shape[2] - 1, 2 * x.shape[3] - 1), x.dtype)
    out[:, :, ::2, ::2] = x
    return out


OPERATORS = (
    Operator("searchsorted 100 k in 100 k", _sequence, topi.searchsorted, np.searchsorted,
             lambda t, s, v: t.searchsorted(s, v), np.searchsorted),
    Operator("unravel_index 100 k int64", lambda rng: [rng.integers(0, 10**6, COUNT), np.array([100, 100, 100])],
             topi.unravel_index, lambda i, shape: np.stack(np.unravel_index(i, shape)),
             lambda t, i, shape: t.stack(t.unravel_index(i, (100, 100, 100))),
             lambda i, shape: np.stack(np.unravel_index(i, shape))),
    Operator("floor_divide 100 k int64", _integers, topi.floor_divide, np.floor_divide,
             lambda t, a, b: t.floor_divide(a, b), np.floor_divide),
    Operator("floor_mod 100 k int64", _integers, topi.floor_mod, np.mod, lambda t, a, b: t.remainder(a, b), np.mod),
    Operator("mod 100 k float32", _normal((COUNT,), (COUNT,)), topi.mod, lambda a, b: np.fmod(a, b).astype("float64"),
             lambda t, a, b: t.fmod(a, b), np.fmod),
    *[Operator(f"{name} 100 k {dtype}", _positive(dtype), getattr(topi, name), getattr(np, name),
               lambda t, x, name=name: getattr(t, name)(x), getattr(np, name))
      for dtype in ("float32", "float64") for name in ("log", "log2", "log10", "sin", "tan", "exp")],
    Operator("group_norm 64x56x56 in 8 groups", _normal(IMAGE, (64,), (64,)),
             lambda x, g, b: topi.nn.group_norm(x, g, b, GROUPS, 1, [2, 3]), _group_norm,
             lambda t, x, g, b: t.nn.functional.group_norm(x, GROUPS, g, b), terms=25088),
    Operator("grid_sample 64x56x56", lambda rng: [rng.standard_normal(IMAGE).astype("float32"),
                                                  rng.uniform(-1, 1, (1, 2, *IMAGE[2:])).astype("float32")],
             topi.image.grid_sample, _grid_sample,
             lambda t, x, g: t.nn.functional.grid_sample(x, g.permute(0, 2, 3, 1), align_corners=True), terms=256),
    Operator("dilate 64x56x56 by 2x2", _normal(IMAGE), lambda x: topi.nn.dilate(x, [1, 1, 2, 2]), _dilate, numpy=_dilate),
    Operator(f"lstm {STEPS} steps of {BATCH}x{HIDDEN}", _weights, lambda x, wi, wh: topi.nn.lstm(x, wi, wh)[0], _lstm,
             _torch_lstm, terms=4096),
)


def operator(of: Operator, threads: int) -> Case:
    """An operator beside torch and numpy, which allocate their results."""
    arrays = list(of.arrays(np.random.default_rng(0)))
    contenders = {"tedsl": ours.operator(of.ours, arrays)}
    if of.numpy is not None:
        contenders["numpy"] = _numpy(of.numpy, arrays)
    torch = with_torch.torch_or_none(threads)
    if torch is not None and of.torch is not None:
        made = of.torch
        contenders["torch"] = with_torch.returning(torch, lambda *tensors: made(torch, *tensors), arrays)

    def reference() -> Any:
        return of.reference(*[a.astype("float64") if a.dtype.kind == "f" and a.dtype.itemsize < 8 else a for a in arrays])

    return Case("operators", contenders, reference, of.terms, read=bytes_of(*arrays))


def _numpy(function: Callable[..., Any], arrays: Sequence[Any]) -> Contender:
    last: list[Any] = [None]

    def call() -> None:
        last[0] = function(*arrays)

    return Contender(call, lambda: last[0])


def cases(threads: int) -> list[Maker]:
    """The cases of this suite."""
    return [maker(of.name, operator, of, threads) for of in OPERATORS]
