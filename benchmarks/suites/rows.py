"""Formulas on rows and reductions: softmax, norms, sums along each axis; and transposes, which only move elements."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import topi
from benchmarks import reference
from benchmarks.case import Case, Contender, Maker, maker
from benchmarks.contenders import ours, with_onnx, with_torch
from benchmarks.suites.products import bytes_of, drawn, named

SHAPES = ((512, 512), (4096, 1024), (128, 32000), (1000, 77))
IMAGES = (32, 64, 56, 56)
SQUARE = (4096, 4096)


# --- rows -----------------------------------------------------------------------------------------------------------------

def softmax(shape: tuple[int, ...], log: bool, threads: int) -> Case:
    """softmax or log_softmax of each row."""
    (x,) = drawn(shape)
    name = "log_softmax" if log else "softmax"
    contenders = {"tedsl": ours.operator(getattr(topi.nn, name), [x])}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        function = torch.log_softmax if log else torch.softmax
        contenders["torch"] = with_torch.into(torch, lambda out, x: function(x, 1, out=out), [x], x)
    if with_onnx.onnx_or_none():
        contenders["onnxruntime"] = with_onnx.one("LogSoftmax" if log else "Softmax", [x], x, threads, axis=1)
    return Case("rows", contenders, lambda: reference.softmax(x, 1, log), shape[1],
                read=bytes_of(x), written=bytes_of(x))


def layer_norm(shape: tuple[int, ...], threads: int) -> Case:
    """The normalization of each row."""
    x, gamma, beta = drawn(shape, shape[1:], shape[1:])
    contenders = {"tedsl": ours.operator(lambda x, g, b: topi.nn.layer_norm(x, g, b, -1), [x, gamma, beta])}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.returning(
            torch, lambda x, g, b: torch.nn.functional.layer_norm(x, g.shape, g, b), [x, gamma, beta])
    if with_onnx.onnx_or_none():
        contenders["onnxruntime"] = with_onnx.one("LayerNormalization", [x], x, threads, {"g": gamma, "b": beta}, axis=-1)
    return Case("rows", contenders, lambda: reference.layer_norm(x, gamma, beta), shape[1],
                read=bytes_of(x), written=bytes_of(x))


# --- reductions -----------------------------------------------------------------------------------------------------------

def reduction(kind: str, shape: tuple[int, ...], axis: int, threads: int) -> Case:
    """The sum, the largest element or its place along an axis."""
    (x,) = drawn(shape)
    formula = {"sum": topi.sum, "max": topi.max, "argmax": topi.argmax}[kind]
    places = kind == "argmax"
    like = np.empty(tuple(n for d, n in enumerate(shape) if d != axis), "int64" if places else "float32")
    contenders = {"tedsl": ours.operator(lambda x: formula(x, axis), [x])}
    by_numpy = {"sum": np.sum, "max": np.max, "argmax": np.argmax}[kind]
    out = np.empty_like(like)
    contenders["numpy"] = Contender(lambda: by_numpy(x, axis=axis, out=out), lambda: out)
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        function = {"sum": torch.sum, "max": torch.amax, "argmax": torch.argmax}[kind]
        contenders["torch"] = with_torch.into(torch, lambda y, x: function(x, axis, out=y), [x], like)
    if with_onnx.onnx_or_none():
        contenders["onnxruntime"] = _reduction_of_onnxruntime(kind, x, axis, like, threads)
    wide = {"sum": lambda: x.sum(axis, "float64"), "max": lambda: x.max(axis), "argmax": lambda: x.argmax(axis)}[kind]
    return Case("reduce", contenders, wide, shape[axis] if kind == "sum" else 0,
                read=bytes_of(x), written=bytes_of(like))


def _reduction_of_onnxruntime(kind: str, x: Any, axis: int, like: Any, threads: int) -> Contender:
    if kind == "sum":
        return with_onnx.one("ReduceSum", [x], like, threads, {"axes": np.array([axis], "int64")}, keepdims=0)
    if kind == "max":
        return with_onnx.one("ReduceMax", [x], like, threads, axes=[axis], keepdims=0)
    return with_onnx.one("ArgMax", [x], like, threads, axis=axis, keepdims=0)


# --- transposes -----------------------------------------------------------------------------------------------------------

def transpose(shape: tuple[int, ...], order: tuple[int, ...], threads: int) -> Case:
    """The dimensions in another order."""
    (x,) = drawn(shape)
    like = np.empty(tuple(shape[d] for d in order), "float32")
    turned = x.transpose(order)
    contenders = {"tedsl": ours.operator(lambda x: topi.transpose(x, order), [x])}
    out = np.empty_like(like)
    contenders["numpy"] = Contender(lambda: np.copyto(out, turned), lambda: out)
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.into(torch, lambda y, x: y.copy_(x.permute(order)), [x], like)
    if with_onnx.onnx_or_none():
        contenders["onnxruntime"] = with_onnx.one("Transpose", [x], like, threads, perm=list(order))
    return Case("transpose", contenders, lambda: turned, 0,
                read=bytes_of(x), written=bytes_of(x))


def cases(threads: int) -> list[Maker]:
    """The cases of this suite."""
    made = []
    for shape in SHAPES:
        made += [maker(f"softmax {named(shape)}", softmax, shape, False, threads),
                 maker(f"log_softmax {named(shape)}", softmax, shape, True, threads),
                 maker(f"layer_norm {named(shape)}", layer_norm, shape, threads)]
    for shape, kind in itertools.product((SQUARE, IMAGES), ("sum", "max", "argmax")):
        made += [maker(f"{kind} {named(shape)}, axis {axis}", reduction, kind, shape, axis, threads)
                 for axis in range(len(shape))]
    for shape in (SQUARE, IMAGES):
        same, *orders = itertools.permutations(range(len(shape)))
        made += [maker(f"transpose {named(shape)} to {named(order)}", transpose, shape, order, threads) for order in orders]
    return made
