"""Convolutions with fewer multiplications: tiles of m x m results from (m + r - 1)^2 products, for windows of r x r.

    out tile = A^T [ (G kernel G^T) * (B^T data tile B) ] A,  the products summed over the channels

The matrices evaluate polynomials at m + r - 2 numbers and infinity, and interpolate (Toom and Cook; Lavin and Gray, Fast
Algorithms for Convolutional Neural Networks, 2015). Results differ from those of a direct convolution in the last digits,
the more the larger m: about 1e-5 for m = 4 in float32.

Each transformation by two matrices is two formulas, one for each matrix, which sum only the terms with a factor other than 0.
The small axes of a formula select among these sums: schedules unroll them. Channels are innermost throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, DTypeError
from tedsl.tir import Expr
from topi.arguments import checked
from topi.extents import as_int, opening
from topi.kinds import InjectiveOp, ReduceOp, TiledConvOp, TransformOp
from topi.nn.convolution.formula import require_channels, require_rank, result_dtype, windows
from topi.nn.pad import pad

Matrix = list[list[Fraction]]
_POINTS = [Fraction(p) for p in ("0", "1", "-1", "2", "-2", "1/2", "-1/2", "3", "-3", "1/3", "-1/3", "4", "-4")]


@checked
def conv2d_winograd_nchw(data: te.Tensor, weight: te.Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: Any = None,
                         pre_computed: bool = False, tile_size: int = 4) -> te.Tensor:
    """The convolution of conv2d_nchw for strides and dilation 1 and a square window.

    weight: (result, channel, r, r); pre_computed: the result of conv2d_winograd_weight_transform. tile_size: m.
    """
    return _winograd("conv2d_winograd_nchw", data, weight, strides, padding, dilation, out_dtype, pre_computed, tile_size,
                     "NCHW")


@checked
def conv2d_winograd_nhwc(data: te.Tensor, weight: te.Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: Any = None,
                         pre_computed: bool = False, auto_scheduler_rewritten_layout: str = "", *,
                         tile_size: int = 4) -> te.Tensor:
    """The convolution of conv2d_nhwc for strides and dilation 1 and a square window.

    weight: (r, r, channel, result), or, if pre_computed, the result of conv2d_winograd_weight_transform.
    auto_scheduler_rewritten_layout: accepted; layouts are those of the tensors.
    """
    return _winograd("conv2d_winograd_nhwc", data, weight, strides, padding, dilation, out_dtype, pre_computed, tile_size,
                     "NHWC")


@checked
def conv2d_winograd_weight_transform(kernel: te.Tensor, tile_size: int, layout: str = "OIHW") -> te.Tensor:
    """G kernel G^T for each pair of channels, to be computed once: (m + r - 1, m + r - 1, result, channel)."""
    where = opening("conv2d_winograd_weight_transform", kernel)
    require_rank(kernel, layout, where)
    return _weights(kernel, tile_size, layout, "OI", str(kernel.dtype), where)


@checked
def conv3d_winograd_weight_transform(kernel: te.Tensor, tile_size: int) -> te.Tensor:
    """G applied along height and width, and along depth where it has their extent, for each pair of channels.

    kernel: (result, channel, depth, height, width). The result is (m + r - 1, m + r - 1, m + r - 1, result, channel), of depth,
    height and width, or without a transformed depth (m + r - 1, m + r - 1, depth, result, channel).
    """
    where = opening("conv3d_winograd_weight_transform", kernel)
    require_rank(kernel, "OIDHW", where)
    results, channels, depth, height, width = kernel.shape
    r, wide = _square(height, width, where), _wide(kernel.dtype, where)
    _, _, g = transform_matrices(tile_size, r)
    alpha = tile_size + r - 1
    rows = te.compute((alpha, r, depth, results, channels), lambda e, x, d, o, c: _times(
        g, e, lambda y: kernel(o, c, d, y, x).astype(wide), wide), name="weight_rows", info=InjectiveOp("winograd"))
    is_deep = as_int(depth) == r
    dtype = wide if is_deep else kernel.dtype
    flat: te.Tensor = te.compute(
        (alpha, alpha, depth, results, channels), lambda e, n, d, o, c: _times(
            g, n, lambda x: rows(e, x, d, o, c), wide).astype(dtype), name="weight_planes" if is_deep else "transform_weight",
        info=InjectiveOp("winograd") if is_deep else TransformOp("winograd_weights", (rows,), (0, 1)))
    if not is_deep:
        return flat
    deep: te.Tensor = te.compute(
        (alpha, alpha, alpha, results, channels), lambda w, e, n, o, c: _times(
            g, w, lambda d: flat(e, n, d, o, c), wide).astype(kernel.dtype), name="transform_weight",
        info=TransformOp("winograd_weights", (rows, flat), (0, 1, 2)))
    return deep


def transform_matrices(m: int, r: int) -> tuple[Matrix, Matrix, Matrix]:
    """A (m + r - 1, m), B (m + r - 1, m + r - 1) and G (m + r - 1, r) as exact fractions."""
    count = m + r - 2
    if m < 1 or r < 1 or count > len(_POINTS):
        raise ArgumentError(f"winograd: tile_size {m} and a window of {r}", hint=f"together at most {len(_POINTS) + 2}")
    points, zero, one = _POINTS[:count], Fraction(0), Fraction(1)
    a = [[p**i for i in range(m)] for p in points] + [[zero] * (m - 1) + [one]]
    g = [[p**k / _product([p - q for q in points if q != p]) for k in range(r)] for p in points] + [[zero] * (r - 1) + [one]]
    rows = [[*_polynomial([q for q in points if q != p]), zero] for p in points] + [_polynomial(points)]
    return a, _turned(rows), g


def _product(numbers: Sequence[Fraction]) -> Fraction:
    product = Fraction(1)
    for number in numbers:
        product *= number
    return product


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the product of (x - root), the lowest first."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *coefficients]
        coefficients = [s - root * c for s, c in zip(shifted, [*coefficients, Fraction(0)])]
    return coefficients


def _turned(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix)]


# --- sums with the rows of a matrix ---------------------------------------------------------------------------------------

def _times(matrix: Matrix, i: Any, element: Callable[[int], Any], dtype: str) -> Any:
    """Row `i`, an index, of `matrix` times the vector of `element(0)`, `element(1)`, ..."""
    sums = [_sum_of(row, element, dtype) for row in matrix]
    chosen = sums[-1]
    for number in reversed(range(len(sums) - 1)):
        chosen = te.select(i.equal(number), sums[number], chosen)
    return chosen


def _sum_of(row: Sequence[Fraction], element: Callable[[int], Any], dtype: str) -> Any:
    """The sum of row[k] * element(k) over the k with row[k] != 0."""
    total = None
    for k, factor in enumerate(row):
        if factor:
            term = element(k) if abs(factor) == 1 else element(k) * te.const(float(abs(factor)), dtype)
            if total is None:
                total = -term if factor < 0 else term
            else:
                total = total - term if factor < 0 else total + term
    return te.const(0, dtype) if total is None else total


def _square(height: Any, width: Any, where: str) -> int:
    one, other = as_int(height), as_int(width)
    if one is None or one != other:
        raise ArgumentError(f"{where}: the window is {height!r} x {width!r}", hint="winograd needs a square window; use conv2d")
    return one


def _weights(kernel: te.Tensor, m: int, layout: str, order: str, dtype: str, where: str) -> te.Tensor:
    """G kernel G^T with the channels in the order "OI" or "IO"."""
    size = dict(zip(layout, kernel.shape))
    width = _square(size["H"], size["W"], where)
    wide = _wide(dtype, where)
    _, _, g = transform_matrices(m, width)
    alpha, channels = m + width - 1, [size[letter] for letter in order]

    def read(y: int, x: Any, *channel: Any) -> Expr:
        at = {**dict(zip(order, channel)), "H": y, "W": x}
        return kernel(*[at[letter] for letter in layout]).astype(wide)

    rows = te.compute((alpha, width, *channels), lambda eps, x, *c: _times(
        g, eps, lambda y: read(y, x, *c), wide), name="weight_rows", info=InjectiveOp("winograd"))
    output: te.Tensor = te.compute(
        (alpha, alpha, *channels), lambda eps, nu, *c: _times(g, nu, lambda x: rows(eps, x, *c), wide).astype(dtype),
        name="transform_weight", tag="winograd_weight_transform", info=TransformOp("winograd_weights", (rows,), (0, 1)))
    return output


def _wide(dtype: Any, where: str) -> str:
    """The dtype of the computation for data of `dtype`."""
    if dtype not in ("float16", "bfloat16", "float32", "float64"):
        raise DTypeError(f"{where}: the matrices of winograd hold fractions, and the dtype is {dtype}",
                         hint="use conv2d, or convert: topi.cast(data, 'float32')")
    return str(dtype) if dtype in ("float32", "float64") else "float32"


# --- the convolution ------------------------------------------------------------------------------------------------------

def _winograd(operator: str, data: te.Tensor, weight: te.Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: Any,
              pre_computed: bool, m: int, layout: str) -> te.Tensor:
    where = opening(operator, data, weight)
    kernel_layout = "OIHW" if layout == "NCHW" else "HWIO"
    require_rank(data, layout, where)
    require_rank(weight, kernel_layout, where)
    dtype = result_dtype(data, weight, out_dtype, where)
    wide = _wide(dtype, where)
    if pre_computed:
        alpha, _, outputs, inputs = weight.shape
        r, transformed, order = (as_int(alpha) or 0) - m + 1, weight, "OI"
    else:
        size = dict(zip(kernel_layout, weight.shape))
        outputs, inputs, r = size["O"], size["I"], _square(size["H"], size["W"], where)
        order = "IO"
        transformed = _weights(weight, m, kernel_layout, order, wide, where)
    extents = dict(zip(layout, data.shape))
    require_channels(extents["C"], inputs, outputs, 1, (data, weight), where)
    w = windows([r, r], strides, padding, dilation, where)
    if w.strides != (1, 1) or w.dilation != (1, 1):
        raise ArgumentError(f"{where}: strides are {w.strides} and dilation {w.dilation}", hint="winograd needs 1; use conv2d")
    height, width = w.results([extents["H"], extents["W"]], where)
    tiles = (height + (m - 1)) // m, (width + (m - 1)) // m
    before = {"H": w.before[0], "W": w.before[1]}
    after = {"H": w.after[0] + tiles[0] * m - height, "W": w.after[1] + tiles[1] * m - width}
    padded = pad(data, [before.get(d, 0) for d in layout], [after.get(d, 0) for d in layout], name="data_pad")
    if layout == "NCHW":
        padded = te.compute([padded.shape[d] for d in (0, 2, 3, 1)], lambda n, h, w, c: padded(n, c, h, w), name="data_last",
                            tag="injective", info=InjectiveOp("transpose"))
    packed = _packed(padded, m, r, tiles, wide)
    ci = te.reduce_axis((0, inputs), name="ci")
    sums = te.compute((m + r - 1, m + r - 1, packed.shape[2], outputs), lambda eps, nu, p, o: te.sum(
        packed(eps, nu, p, ci) * transformed(eps, nu, *((o, ci) if order == "OI" else (ci, o))).astype(wide), axis=ci),
        name="bgemm", info=ReduceOp("sum", packed, (), False))
    inverse = _inverse(sums, m, r, wide)

    def formula(*i: Any) -> Expr:
        at = dict(zip(layout, i))
        tile = (at["N"] * tiles[0] + at["H"] // m) * tiles[1] + at["W"] // m
        return inverse(tile, at["H"] % m, at["W"] % m, at["C"]).astype(dtype)

    shape = [{"N": extents["N"], "C": outputs, "H": height, "W": width}[d] for d in layout]
    info: Any = InjectiveOp(operator)
    if not pre_computed:
        info = TiledConvOp(operator, data, weight, layout, kernel_layout, w.before, w.after)
    return te.compute(shape, formula, name=operator, tag=operator, info=info, axes="ax")


def _packed(padded: te.Tensor, m: int, r: int, tiles: tuple[Any, Any], wide: str) -> te.Tensor:
    """B^T tile B for each tile and channel: (m + r - 1, m + r - 1, tile, channel)."""
    alpha, count = m + r - 1, padded.shape[0] * tiles[0] * tiles[1]
    _, b, _ = transform_matrices(m, r)

    def read(p: Any, y: int, x: Any, c: Any) -> Expr:
        row, column = p // tiles[1] % tiles[0] * m + y, p % tiles[1] * m + x
        return padded(p // (tiles[0] * tiles[1]), row, column, c).astype(wide)

    rows = te.compute((count, alpha, alpha, padded.shape[3]), lambda p, eps, x, c: _times(
        _turned(b), eps, lambda y: read(p, y, x, c), wide), name="data_rows", info=InjectiveOp("winograd"))
    output: te.Tensor = te.compute((alpha, alpha, count, padded.shape[3]), lambda eps, nu, p, c: _times(
                     _turned(b), nu, lambda x: rows(p, eps, x, c), wide), name="data_pack",
                     info=TransformOp("winograd_data", (rows,), (0, 1)))
    return output


def _inverse(sums: te.Tensor, m: int, r: int, wide: str) -> te.Tensor:
    """A^T sums A for each tile: (tile, m, m, result)."""
    a, _, _ = transform_matrices(m, r)
    count, outputs = sums.shape[2:]
    rows = te.compute((count, m, m + r - 1, outputs), lambda p, y, nu, o: _times(
        _turned(a), y, lambda eps: sums(eps, nu, p, o), wide), name="sum_rows", info=InjectiveOp("winograd"))
    output: te.Tensor = te.compute((count, m, m, outputs), lambda p, y, x, o: _times(
                     _turned(a), x, lambda nu: rows(p, y, nu, o), wide), name="inverse",
                     info=TransformOp("winograd_result", (rows,), (1, 2)))
    return output
