"""Weights of convolutions as other layouts of computation read them, to be computed once."""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from topi.arguments import checked
from topi.extents import as_int, opening, require_shape, shown
from topi.injective import injective
from topi.nn.convolution.formula import require_rank
from topi.nn.convolution.packed import conv2d_NCHWc
from topi.nn.dense import dense_unpack_weights


@checked
def conv2d_gemm_weight_transform(kernel: te.Tensor, tile_rows: int, tile_cols: int) -> te.Tensor:
    """The weights of conv2d_nhwc as a matrix (results, height * width * channels) in tiles: (result tiles, tiles of the others,
    tile_rows, tile_cols), with zeros beyond its borders.

    kernel: (height, width, channels, results).
    """
    where = opening("conv2d_gemm_weight_transform", kernel)
    require_rank(kernel, "HWIO", where)
    if tile_rows < 1 or tile_cols < 1:
        raise ArgumentError(f"{where}: tiles of {tile_rows} x {tile_cols}", hint="both from 1 on")
    height, width, channels, results = kernel.shape
    terms = height * width * channels
    shape = ((results + tile_rows - 1) // tile_rows, (terms + tile_cols - 1) // tile_cols, tile_rows, tile_cols)

    def element(i: Any, j: Any, y: Any, x: Any) -> Any:
        result, term = i * tile_rows + y, j * tile_cols + x
        value = kernel(term // channels // width, term // channels % width, term % channels, result)
        return te.if_then_else(te.all(result < results, term < terms), value, te.const(0, kernel.dtype))

    return injective("weight_block_reshape", shape, element)


@checked
def conv2d_NCHWc_int8(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, dilation: Any, layout: str = "NCHWc",
                      out_layout: str = "NCHWc", out_dtype: Any = "int32", n_elems: int = 4) -> te.Tensor:
    """`conv2d_NCHWc` of bytes, with n_elems channels innermost in the kernel: (out chunks, chunks, height, width,
    block / n_elems, out block, n_elems).

    data: (batch, chunks, height, width, block) of uint8 or int8, usually with a kernel of int8; sums are of out_dtype.
    """
    where = opening("conv2d_NCHWc_int8", data, kernel)
    require_shape(data, [None] * 5, where, "data is (batch, chunks, height, width, block)")
    require_shape(kernel, [None] * 6 + [n_elems], where,
                  "kernel is (out chunks, chunks, height, width, block / n_elems, out block, n_elems)")
    outer, inner, height, width, groups, wide, _ = kernel.shape
    weights = injective("packed_kernel", (outer, inner, height, width, groups * n_elems, wide),
                        lambda O, I, h, w, i, o: kernel(O, I, h, w, i // n_elems, o, i % n_elems))
    return conv2d_NCHWc(data, weights, stride, padding, dilation, layout, out_layout, out_dtype)


@checked
def dense_weights(weight: te.Tensor, tile: int = 1, group: int = 1) -> te.Tensor:
    """The weights (results, terms) of `dense` out of packed ones: (result tiles, terms, tile), or with groups of neighbouring
    terms innermost (result tiles, terms / group, tile, group).
    """
    where = opening("dense", weight)
    if weight.ndim == 3:
        results = as_int(weight.shape[0] * weight.shape[2])
        if results is not None:
            return dense_unpack_weights(weight, results)
        tiles, terms, wide = weight.shape
        return injective("unpacked_weight", (tiles * wide, terms), lambda j, k: weight(j // wide, k, j % wide))
    if weight.ndim != 4:
        raise ShapeError(f"{where}: {weight.name} has the shape {shown(weight.shape)}",
                         hint="(tiles, terms, tile) of packed weights")
    require_shape(weight, [None, None, tile, group], where, f"weights are packed by {tile} results and {group} terms")
    return injective("unpacked_weight", (weight.shape[0] * tile, weight.shape[1] * group),
                     lambda j, k: weight(j // tile, k // group, j % tile, k % group))
