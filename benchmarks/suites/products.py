"""Products of matrices: square, tall, wide and thin, in batches, and attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import topi
from benchmarks import reference
from benchmarks.case import Case, Contender, Goal, Maker, maker
from benchmarks.contenders import ours, with_onnx, with_torch
from benchmarks.matmul import prepacked_matmul
from tedsl import te
from topi.schedules.packing import panels_in

MIB = 2**20
LARGE = 512  # from which square products have a goal in parts of the peak
DENSE = ((1, 4096, 4096), (4096, 64, 64), (64, 4096, 64), (64, 512, 512), (128, 768, 3072), (32, 512, 512), (1, 512, 1000))
BATCHES = ((12, 128, 64, 128), (8, 256, 256, 256))
HEADS, LENGTH, WIDTH = 8 * 12, 256, 64


def drawn(*shapes: tuple[int, ...], seed: int = 0) -> list[Any]:
    """Arrays of the standard normal distribution."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape, dtype="float32") for shape in shapes]


def named(shape: Sequence[int]) -> str:
    """A shape as in the table: 512x512."""
    return "x".join(map(str, shape))


def bytes_of(*arrays: Any) -> float:
    """The bytes of arrays together."""
    return float(sum(array.nbytes for array in arrays))


# --- square ---------------------------------------------------------------------------------------------------------------

def product(m: int, k: int, n: int, threads: int) -> Case:
    """a b."""
    a, b = drawn((m, k), (k, n))
    contenders = {"tedsl": ours.operator(topi.nn.matmul, [a, b])}
    return Case("matmul", contenders | products_of_others(a, b, threads), lambda: reference.wide(a) @ b, k, 2.0 * m * k * n,
                bytes_of(a, b), 4.0 * m * n)


def matmul(size: int, threads: int) -> Case:
    """A square product."""
    return replace(product(size, size, size, threads), goal=Goal(1.05, 0.85) if size >= LARGE else None)


def products_of_others(a: Any, b: Any, threads: int) -> dict[str, Contender]:
    """a @ b by numpy, torch and onnxruntime."""
    out = np.empty((a.shape[0], b.shape[1]), "float32")
    contenders = {"numpy": Contender(lambda: np.matmul(a, b, out=out), lambda: out)}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.into(torch, lambda y, x, w: torch.matmul(x, w, out=y), [a, b], out)
    if with_onnx.onnx_or_none():
        contenders["onnxruntime"] = with_onnx.one("MatMul", [a, b], out, threads)
    return contenders


def matmul_packed_before(size: int, threads: int) -> Case:
    """The second matrix is a constant that each library may pack once."""
    a, b = drawn((size, size), (size, size))
    s, arguments, packed = prepacked_matmul(b)
    contenders = {"tedsl by hand": ours.scheduled(arguments[-1], arguments[:-1], [a, packed], schedule=s)}
    turned, zeros = np.ascontiguousarray(b.T), np.zeros(size, "float32")
    contenders |= packed_layer(topi.nn.dense, a, turned)
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders |= {name: made for name, made in with_torch.layers(torch, a, turned, zeros, "").items() if name != "torch"}
    if with_onnx.onnx_or_none():
        out = np.empty((size, size), "float32")
        contenders["onnxruntime packed"] = with_onnx.one("MatMul", [a], out, threads, {"w": b})
    return Case("matmul packed", contenders, lambda: reference.wide(a) @ b, size, 2.0 * size**3)


# --- layers ---------------------------------------------------------------------------------------------------------------

def dense(m: int, k: int, n: int, threads: int) -> Case:
    """relu(x wᵀ + b)."""
    x, w, b = drawn((m, k), (n, k), (n,))
    like = np.empty((m, n), "float32")
    contenders = {"tedsl": ours.operator(_layer, [x, w, b])} | packed_layer(_layer, x, w, b)
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders |= with_torch.layers(torch, x, w, b, "relu")
    if with_onnx.onnx_or_none():
        nodes: list[with_onnx.Node] = [("Gemm", ["x", "w", "b"], ["c"], {}), ("Relu", ["c"], ["y"], {})]
        contenders["onnxruntime"] = with_onnx.session(nodes, {"x": x}, {"w": np.ascontiguousarray(w.T), "b": b}, {"y": like},
                                                      threads)
    out = np.empty_like(like)
    turned = w.T

    def numpys() -> None:
        np.matmul(x, turned, out=out)
        np.add(out, b, out=out)
        np.maximum(out, 0, out=out)

    contenders["numpy"] = Contender(numpys, lambda: out)
    goal = Goal(1.05, 0.95) if m == 1 and n * k * 4 > 16 * MIB else None
    return Case("dense", contenders, lambda: np.maximum(reference.wide(x) @ w.T + b, 0), k,
                2.0 * m * k * n, bytes_of(x, w, b), bytes_of(like), goal=goal)


def _layer(x: te.Tensor, w: te.Tensor, b: te.Tensor) -> te.Tensor:
    return topi.nn.relu(topi.nn.dense(x, w, b))


def packed_layer(layer: Callable[..., Any], x: Any, w: Any, *rest: Any) -> dict[str, Contender]:
    """The layer whose weights are a constant that is packed once, if its schedule has panels."""
    inputs = ours.placeholders([x, w, *rest])
    asked = panels_in(layer(*inputs)).get(inputs[1])
    if asked is None:
        return {}
    panels = ours.computed(lambda w: topi.nn.dense_pack_weights(w, asked.results, group=asked.group), w)
    return {"tedsl packed": ours.operator(
        lambda x, p, *rest: layer(x, topi.nn.dense_unpack_weights(p, len(w)), *rest), [x, panels, *rest])}


def batch_matmul(batch: int, m: int, k: int, n: int, threads: int) -> Case:
    """x[b] y[b]ᵀ."""
    x, y = drawn((batch, m, k), (batch, n, k))
    turned, out = y.swapaxes(1, 2), np.empty((batch, m, n), "float32")
    contenders = {"tedsl": ours.operator(topi.nn.batch_matmul, [x, y]),
                  "numpy": Contender(lambda: np.matmul(x, turned, out=out), lambda: out)}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.into(torch, lambda o, a, b: torch.bmm(a, b.transpose(1, 2), out=o), [x, y], out)
    return Case("batch matmul", contenders, lambda: reference.wide(x) @ turned, k,
                2.0 * batch * m * k * n, bytes_of(x, y), bytes_of(out))


# --- attention ------------------------------------------------------------------------------------------------------------

def attention(threads: int) -> Case:
    """softmax(Q Kᵀ / sqrt(d)) V of all heads."""
    q, k, v = drawn(*[(HEADS, LENGTH, WIDTH)] * 3)

    def formula(q: Any, k: Any, v: Any) -> Any:
        scores = topi.nn.batch_matmul(q, k)
        weights = topi.nn.softmax(topi.multiply(scores, float(WIDTH**-0.5)))
        return topi.nn.batch_matmul(weights, v, transpose_b=False)

    contenders = {"tedsl": ours.operator(formula, [q, k, v])}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        tensors = [torch.from_numpy(a.reshape(8, 12, LENGTH, WIDTH)) for a in (q, k, v)]
        contenders["torch"] = with_torch.calling(lambda: torch.nn.functional.scaled_dot_product_attention(*tensors),
                                                 lambda y: y.reshape(HEADS, LENGTH, WIDTH).numpy())
    if with_onnx.onnx_or_none():
        contenders["onnxruntime"] = _attention_of_onnxruntime(q, k, v, threads)
    return Case("attention", contenders, lambda: reference.attention(q, k, v), LENGTH,
                4.0 * HEADS * LENGTH**2 * WIDTH, bytes_of(q, k, v), bytes_of(q))


def _attention_of_onnxruntime(q: Any, k: Any, v: Any, threads: int) -> Contender:
    """Its operator for all heads, which takes (batch, length, heads * width)."""
    def joined(a: Any) -> Any:
        return np.ascontiguousarray(a.reshape(8, 12, LENGTH, WIDTH).transpose(0, 2, 1, 3)).reshape(8, LENGTH, 12 * WIDTH)

    inputs = {name: joined(a) for name, a in (("q", q), ("k", k), ("v", v))}
    nodes: list[with_onnx.Node] = [("com.microsoft:MultiHeadAttention", ["q", "k", "v"], ["y"], {"num_heads": 12})]
    return with_onnx.session(nodes, inputs, {}, {"y": inputs["q"]}, threads,
                             lambda y: y.reshape(8, LENGTH, 12, WIDTH).transpose(0, 2, 1, 3).reshape(HEADS, LENGTH, WIDTH))


def cases(threads: int) -> list[Maker]:
    """The cases of this suite."""
    made = [maker(f"matmul {size}", matmul, size, threads) for size in (128, 256, 512, 1024, 2048)]
    made += [maker(f"matmul {size}, packed before", matmul_packed_before, size, threads) for size in (256, 512, 1024, 2048)]
    made += [maker(f"dense {named(shape)}", dense, *shape, threads) for shape in DENSE]
    made += [maker(f"batch_matmul {named(shape)}", batch_matmul, *shape, threads) for shape in BATCHES]
    return [*made, maker(f"attention {HEADS}x{LENGTH}x{WIDTH}", attention, threads)]
