"""Running sums, sorting, and reading and writing at places that data holds."""

from __future__ import annotations

from typing import Any

import numpy as np

import topi
from benchmarks import reference
from benchmarks.case import Case, Contender, Maker, maker
from benchmarks.contenders import ours, with_onnx, with_torch
from benchmarks.suites.products import bytes_of, drawn, named

MILLION = (1_000_000,)
SQUARE = (1000, 1000)
FEW = 5
TABLE, WORDS = (50_000, 256), 4096
DEPTH = 1000


def _permuted(shape: tuple[int, ...]) -> Any:
    """Distinct values in random order: no sort has a choice."""
    return np.random.default_rng(0).permutation(int(np.prod(shape))).astype("float32").reshape(shape)


def _places(count: int, most: int) -> Any:
    return np.random.default_rng(1).integers(0, most, count)


def cumsum(shape: tuple[int, ...], axis: int, threads: int) -> Case:
    (x,) = drawn(shape)
    out = np.empty_like(x)
    contenders = {"tedsl": ours.operator(lambda x: topi.cumsum(x, axis), [x]),
                  "numpy": Contender(lambda: np.cumsum(x, axis, out=out), lambda: out)}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.into(torch, lambda y, x: torch.cumsum(x, axis, out=y), [x], x)
    if with_onnx.onnx_or_none():
        contenders["onnxruntime"] = with_onnx.one("CumSum", [x], x, threads, {"axis": np.array(axis, "int64")})
    return Case("order", contenders, lambda: reference.wide(x).cumsum(axis), shape[axis], read=bytes_of(x), written=bytes_of(x))


def sort(shape: tuple[int, ...], threads: int) -> Case:
    x = _permuted(shape)
    contenders = {"tedsl": ours.operator(lambda x: topi.sort(x, -1), [x]), "numpy": _remembered(lambda: np.sort(x, -1))}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        given = torch.from_numpy(x)
        contenders["torch"] = with_torch.calling(lambda: torch.sort(given, -1), lambda y: y[0].numpy())
    return Case("order", contenders, lambda: np.sort(x, -1), 0, read=bytes_of(x), written=bytes_of(x))


def argsort(shape: tuple[int, ...], threads: int) -> Case:
    x = _permuted(shape)
    contenders = {"tedsl": ours.operator(lambda x: topi.argsort(x, axis=-1, dtype="int32"), [x]),
                  "numpy": _remembered(lambda: np.argsort(x, -1))}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.returning(torch, lambda x: torch.argsort(x, -1), [x])
    return Case("order", contenders, lambda: np.argsort(x, -1), 0, read=bytes_of(x), written=bytes_of(x))


def topk(shape: tuple[int, ...], threads: int) -> Case:
    """The five largest and their places."""
    x = _permuted(shape)
    both = lambda values, places: np.stack([values.astype("float64"), places])
    inputs = ours.placeholders([x])
    contenders = {"tedsl": ours.scheduled(topi.topk(*inputs, k=FEW, axis=-1), inputs, [x], both),
                  "numpy": _remembered(lambda: _numpy_topk(x))}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        given = torch.from_numpy(x)
        contenders["torch"] = with_torch.calling(lambda: torch.topk(given, FEW, -1), lambda y: both(y[0].numpy(), y[1].numpy()))
    if with_onnx.onnx_or_none():
        outputs = {"v": np.empty((*shape[:-1], FEW), "float32"), "i": np.empty((*shape[:-1], FEW), "int64")}
        contenders["onnxruntime"] = with_onnx.session([("TopK", ["x", "k"], ["v", "i"], {})], {"x": x},
                                                      {"k": np.array([FEW], "int64")}, outputs, threads, both)
    return Case("order", contenders, lambda: _numpy_topk(x), 0, read=bytes_of(x))


def _numpy_topk(x: Any) -> Any:
    some = np.argpartition(x, -FEW, axis=-1)[..., -FEW:]
    order = np.argsort(np.take_along_axis(x, some, -1), -1)[..., ::-1]
    places = np.take_along_axis(some, order, -1)
    return np.stack([np.take_along_axis(x, places, -1).astype("float64"), places])


def unique(threads: int) -> Case:
    """The distinct values of a million integers below a hundred thousand, and where each element is among them."""
    x = _places(MILLION[0], 100_000).astype("int32")
    inputs = ours.placeholders([x])

    def found(values: Any, indices: Any, inverse: Any, count: Any) -> Any:
        return np.concatenate([values[:int(count[0])], inverse])

    contenders = {"tedsl": ours.scheduled(topi.unique(*inputs), inputs, [x], found),
                  "numpy": _remembered(lambda: np.concatenate(np.unique(x, return_inverse=True)))}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        given = torch.from_numpy(x)
        contenders["torch"] = with_torch.calling(lambda: torch.unique(given, return_inverse=True),
                                                 lambda y: np.concatenate([part.numpy() for part in y]))
    return Case("order", contenders, lambda: np.concatenate(np.unique(x, return_inverse=True)), 0, read=bytes_of(x))


def scatter_add(threads: int) -> Case:
    """A million numbers added to a million others, at random places."""
    (data, updates), places = drawn(MILLION, MILLION), _places(MILLION[0], MILLION[0])
    out = np.empty_like(data)

    def by_numpy() -> None:
        np.copyto(out, data)
        np.add.at(out, places, updates)

    contenders = {"tedsl": ours.operator(lambda d, i, u: topi.scatter_add(d, i, u, 0), [data, places, updates]),
                  "numpy": Contender(by_numpy, lambda: out)}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.into(torch, lambda y, d, i, u: y.copy_(d).scatter_add_(0, i, u),
                                              [data, places, updates], data)
    wide = lambda: reference.wide(data) + np.bincount(places, updates.astype("float64"), data.size)
    return Case("order", contenders, wide, 8, read=bytes_of(data, updates, places), written=bytes_of(data))


def gather(threads: int) -> Case:
    """A million numbers from random places of their rows."""
    (data,) = drawn(SQUARE)
    places = _places(data.size, SQUARE[1]).reshape(SQUARE)
    contenders = {"tedsl": ours.operator(lambda d, i: topi.gather(d, 1, i), [data, places]),
                  "numpy": _remembered(lambda: np.take_along_axis(data, places, 1))}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.into(torch, lambda y, d, i: torch.gather(d, 1, i, out=y), [data, places], data)
    if with_onnx.onnx_or_none():
        contenders["onnxruntime"] = with_onnx.one("GatherElements", [data, places], data, threads, axis=1)
    return Case("order", contenders, lambda: np.take_along_axis(data, places, 1), 0, read=bytes_of(data, places),
                written=bytes_of(data))


def one_hot(threads: int) -> Case:
    """Rows of float32 that are 1 at one place."""
    places = _places(WORDS, DEPTH)
    out = np.empty((WORDS, DEPTH), "float32")
    rows = np.arange(WORDS)

    def by_numpy() -> None:
        out.fill(0)
        out[rows, places] = 1

    contenders = {"tedsl": ours.operator(lambda i: topi.one_hot(i, 1.0, 0.0, DEPTH, -1, "float32"), [places]),
                  "numpy": Contender(by_numpy, lambda: out)}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.into(torch, lambda y, i: y.zero_().scatter_(1, i[:, None], 1.0), [places], out)
    if with_onnx.onnx_or_none():
        constants = {"depth": np.array(DEPTH, "int64"), "values": np.array([0, 1], "float32")}
        contenders["onnxruntime"] = with_onnx.one("OneHot", [places], out, threads, constants)
    return Case("order", contenders, lambda: np.eye(DEPTH)[places], 0, written=bytes_of(out))


def embedding(threads: int) -> Case:
    """Rows of a table."""
    (table,), places = drawn(TABLE), _places(WORDS, TABLE[0])
    out = np.empty((WORDS, TABLE[1]), "float32")
    contenders = {"tedsl": ours.operator(lambda t, i: topi.take(t, i, 0), [table, places]),
                  "numpy": Contender(lambda: np.take(table, places, 0, out=out, mode="clip"), lambda: out)}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.into(torch, lambda y, t, i: torch.index_select(t, 0, i, out=y), [table, places], out)
    if with_onnx.onnx_or_none():
        contenders["onnxruntime"] = with_onnx.one("Gather", [table, places], out, threads)
    return Case("order", contenders, lambda: table[places], 0, read=bytes_of(out), written=bytes_of(out))


def _remembered(function: Any) -> Contender:
    """A function of numpy that allocates its result."""
    last: list[Any] = [None]

    def call() -> None:
        last[0] = function()

    return Contender(call, lambda: last[0])


def cases(threads: int) -> list[Maker]:
    """The cases of this suite."""
    made = [maker(f"cumsum {named(shape)}, axis {axis}", cumsum, shape, axis, threads)
            for shape, axis in ((MILLION, 0), (SQUARE, 0), (SQUARE, 1))]
    for shape in (MILLION, SQUARE):
        made += [maker(f"{make.__name__} {named(shape)}", make, shape, threads) for make in (sort, argsort, topk)]
    made.append(maker("unique, 1 M int32 with inverse", unique, threads))
    made += [maker("scatter_add, 1 M at 1 M", scatter_add, threads), maker(f"gather {named(SQUARE)}", gather, threads)]
    return made + [maker(f"one_hot {WORDS} of {DEPTH}", one_hot, threads),
                   maker(f"embedding {WORDS} of {named(TABLE)}", embedding, threads)]
