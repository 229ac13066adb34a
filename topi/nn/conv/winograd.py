"""Convolutions with fewer multiplications: tiles of m x m results from (m + r - 1)^2 products, for windows of r x r.

    out tile = A^T [ (G kernel G^T) * (B^T data tile B) ] A,  the products summed over the channels

The matrices evaluate polynomials at m + r - 2 numbers and infinity, and interpolate (Toom and Cook; Lavin and Gray, Fast
Algorithms for Convolutional Neural Networks, 2015). Results differ from those of a direct convolution in the last digits,
the more the larger m: about 1e-5 for m = 4 in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError
from topi.arguments import checked
from topi.extents import as_int, opening
from topi.kinds import InjectiveOp, ReduceOp
from topi.nn.conv.formula import require_channels, require_rank, result_dtype, windows
from topi.nn.pad import pad

Matrix = list[list[Fraction]]
_POINTS = [Fraction(p) for p in ("0", "1", "-1", "2", "-2", "1/2", "-1/2", "3", "-3", "1/3", "-1/3", "4", "-4")]


def conv2d_winograd_nchw(data: te.Tensor, weight: te.Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: Any = None,
                         pre_computed: bool = False, tile_size: int = 4) -> te.Tensor:
    """conv2d_nchw with strides and dilation 1 and a square window.

    weight: (result, channel, r, r); pre_computed: what conv2d_winograd_weight_transform made of it. tile_size: m.
    """
    return _winograd("conv2d_winograd_nchw", data, weight, strides, padding, dilation, out_dtype, pre_computed, tile_size,
                     "NCHW")


def conv2d_winograd_nhwc(data: te.Tensor, weight: te.Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: Any = None,
                         pre_computed: bool = False, tile_size: int = 4) -> te.Tensor:
    """conv2d_nhwc with strides and dilation 1 and a square window; weight: (r, r, channel, result), or pre_computed."""
    return _winograd("conv2d_winograd_nhwc", data, weight, strides, padding, dilation, out_dtype, pre_computed, tile_size,
                     "NHWC")


@checked
def conv2d_winograd_weight_transform(kernel: te.Tensor, tile_size: int, layout: str = "OIHW") -> te.Tensor:
    """G kernel G^T for each pair of channels, to be computed once: (m + r - 1, m + r - 1, result, channel)."""
    where = opening("conv2d_winograd_weight_transform", kernel)
    require_rank(kernel, layout, where)
    size = dict(zip(layout, kernel.shape))
    width = _square(size["H"], size["W"], where)
    _, _, g = winograd_transform_matrices(tile_size, width, kernel.dtype)
    kh, kw = te.reduce_axis((0, width), name="r_kh"), te.reduce_axis((0, width), name="r_kw")

    def formula(eps: Any, nu: Any, o: Any, i: Any) -> Any:
        at = {"O": o, "I": i, "H": kh, "W": kw}
        return te.sum(kernel(*[at[letter] for letter in layout]) * g(eps, kh) * g(nu, kw), axis=[kh, kw])

    alpha = tile_size + width - 1
    made: te.Tensor = te.compute((alpha, alpha, size["O"], size["I"]), formula, name="transform_weight",
                                 tag="winograd_weight_transform", info=ReduceOp("sum", kernel, (), False))
    return made


def winograd_transform_matrices(tile_size: int, kernel_size: int, out_dtype: Any) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """A (m + r - 1, m), B (m + r - 1, m + r - 1) and G (m + r - 1, r) for tiles of m results and windows of r."""
    a, b, g = transform_matrices(tile_size, kernel_size)
    return _constant(a, "A", out_dtype), _constant(b, "B", out_dtype), _constant(g, "G", out_dtype)


def transform_matrices(m: int, r: int) -> tuple[Matrix, Matrix, Matrix]:
    """A, B and G as exact fractions."""
    count = m + r - 2
    if m < 1 or r < 1 or count > len(_POINTS):
        raise ArgumentError(f"winograd: tile_size {m} and a window of {r}", hint=f"together at most {len(_POINTS) + 2}")
    points, zero, one = _POINTS[:count], Fraction(0), Fraction(1)
    a = [[p**i for i in range(m)] for p in points] + [[zero] * (m - 1) + [one]]
    g = [[p**k / _product([p - q for q in points if q != p]) for k in range(r)] for p in points] + [[zero] * (r - 1) + [one]]
    rows = [[*_polynomial([q for q in points if q != p]), zero] for p in points] + [_polynomial(points)]
    return a, [list(column) for column in zip(*rows)], g


def _product(numbers: Sequence[Fraction]) -> Fraction:
    made = Fraction(1)
    for number in numbers:
        made *= number
    return made


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the product of (x - root), the lowest first."""
    made = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *made]
        made = [s - root * c for s, c in zip(shifted, [*made, Fraction(0)])]
    return made


def _constant(matrix: Matrix, name: str, dtype: Any) -> te.Tensor:
    """A matrix of numbers as a formula, which is inlined where it is used."""
    def element(i: Any, j: Any) -> Any:
        value = te.const(0, dtype)
        for row, numbers in enumerate(matrix):
            for column, number in enumerate(numbers):
                if number:
                    value = te.select(te.all(i.equal(row), j.equal(column)), te.const(float(number), dtype), value)
        return value

    made: te.Tensor = te.compute((len(matrix), len(matrix[0])), element, name=name, tag="const_matrix",
                                 info=InjectiveOp("matrix"))
    return made


def _square(height: Any, width: Any, where: str) -> int:
    one, other = as_int(height), as_int(width)
    if one is None or one != other:
        raise ArgumentError(f"{where}: the window is {height!r} x {width!r}", hint="winograd wants a square; use conv2d")
    return one


def _winograd(operator: str, data: te.Tensor, weight: te.Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: Any,
              pre_computed: bool, m: int, layout: str) -> te.Tensor:
    where = opening(operator, data, weight)
    kernel_layout = "OIHW" if layout == "NCHW" else "HWIO"
    require_rank(data, layout, where)
    require_rank(weight, kernel_layout, where)
    if pre_computed:
        alpha, _, outputs, inputs = weight.shape
        r, transformed = (as_int(alpha) or 0) - m + 1, weight
    else:
        size = dict(zip(kernel_layout, weight.shape))
        outputs, inputs, r = size["O"], size["I"], _square(size["H"], size["W"], where)
        transformed = conv2d_winograd_weight_transform(weight, m, kernel_layout)
    extents = dict(zip(layout, data.shape))
    require_channels(extents["C"], inputs, outputs, 1, (data, weight), where)
    w = windows([r, r], strides, padding, dilation, where)
    if w.strides != (1, 1) or w.dilation != (1, 1):
        raise ArgumentError(f"{where}: strides are {w.strides} and dilation {w.dilation}", hint="winograd wants 1; use conv2d")
    height, width = w.results([extents["H"], extents["W"]], where)
    tiles = (height + (m - 1)) // m, (width + (m - 1)) // m
    before = {"H": w.before[0], "W": w.before[1]}
    after = {"H": w.after[0] + tiles[0] * m - height, "W": w.after[1] + tiles[1] * m - width}
    padded = pad(data, [before.get(d, 0) for d in layout], [after.get(d, 0) for d in layout], name="data_pad")
    products = _products(padded, transformed, extents["N"], inputs, outputs, m, r, tiles, layout)
    a, _, _ = winograd_transform_matrices(m, r, products.dtype)
    ra, rb = te.reduce_axis((0, m + r - 1), name="r_a"), te.reduce_axis((0, m + r - 1), name="r_b")
    inverse = te.compute((outputs, products.shape[3], m, m), lambda o, p, y, x: te.sum(
        products(ra, rb, o, p) * a(ra, y) * a(rb, x), axis=[ra, rb]), name="inverse", info=ReduceOp("sum", products, (), False))
    dtype = result_dtype(data, weight, out_dtype, where)

    def formula(*i: Any) -> Any:
        at = dict(zip(layout, i))
        tile = (at["N"] * tiles[0] + at["H"] // m) * tiles[1] + at["W"] // m
        return inverse(at["C"], tile, at["H"] % m, at["W"] % m).astype(dtype)

    shape = [{"N": extents["N"], "C": outputs, "H": height, "W": width}[d] for d in layout]
    made: te.Tensor = te.compute(shape, formula, name=operator, tag=operator, info=InjectiveOp(operator), axes="ax")
    return made


def _products(padded: te.Tensor, transformed: te.Tensor, batch: Any, inputs: Any, outputs: Any, m: int, r: int,
              tiles: tuple[Any, Any], layout: str) -> te.Tensor:
    """For each of (m + r - 1)^2 places a product of matrices: results x channels times channels x tiles."""
    alpha, dtype = m + r - 1, padded.dtype
    _, b, _ = winograd_transform_matrices(m, r, dtype)
    ra, rb = te.reduce_axis((0, alpha), name="r_a"), te.reduce_axis((0, alpha), name="r_b")

    def place(p: Any, c: Any, y: Any, x: Any) -> Any:
        at = {"N": p // (tiles[0] * tiles[1]), "C": c, "H": p // tiles[1] % tiles[0] * m + y, "W": p % tiles[1] * m + x}
        return padded(*[at[d] for d in layout])

    count = batch * tiles[0] * tiles[1]
    pack = te.compute((alpha, alpha, inputs, count), lambda eps, nu, c, p: te.sum(
        place(p, c, ra, rb) * b(ra, eps) * b(rb, nu), axis=[ra, rb]), name="data_pack", info=ReduceOp("sum", padded, (), False))
    ci = te.reduce_axis((0, inputs), name="ci")
    made: te.Tensor = te.compute((alpha, alpha, outputs, count), lambda eps, nu, o, p: te.sum(
        transformed(eps, nu, o, ci) * pack(eps, nu, ci, p), axis=ci), name="bgemm", info=ReduceOp("sum", pack, (), False))
    return made
