"""Sums of products of small integers, computed by counting bits of words.

Data of `activation_bits` bits and weights of `weight_bits` bits are packed by `bitpack`; of bits p of the data and q of the
weights the number of places at which both are set counts 2^(p + q) times. Weights are unsigned, or with `unipolar` a bit stands
for 1 where it is set and for -1 where it is not.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import DTypeError
from topi.arguments import checked
from topi.extents import opening, require_integers, require_shape
from topi.nn.bits.pack import WORDS, bitpack
from topi.nn.convolution.formula import windows
from topi.nn.pad import pad


@checked
def binary_dense(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """data @ weight^T of numbers 1 and -1, whose signs `binarize_pack` has packed: uint32 (batch, words), (results, words).

    The result is float32 (batch, results).
    """
    where = opening("binary_dense", data, weight)
    require_shape(data, [None, None], where, "data is (batch, words)")
    require_shape(weight, [None, data.shape[1]], where, "weight is (results, words)")
    for tensor in (data, weight):
        if tensor.dtype != "uint32":
            raise DTypeError(f"{where}: {tensor.name} holds {tensor.dtype}, not uint32",
                             hint="topi.nn.binarize_pack packs signs")
    k = te.reduce_axis((0, data.shape[1]), name="k")
    shape = (data.shape[0], weight.shape[0])
    differing = te.compute(shape, lambda i, j: te.sum(te.popcount(data(i, k) ^ weight(j, k)), axis=k), name="differing",
                           tag="binary_dense")
    places = (data.shape[1] * 32).astype("float32")
    made: te.Tensor = te.compute(shape, lambda i, j: places - te.const(2.0) * differing(i, j).astype("float32"),
                                 name="binary_dense", tag="elemwise", info=te.ElementwiseOp("subtract"))
    return made


@checked
def bitserial_dense(data: te.Tensor, weight: te.Tensor, data_bits: int, weight_bits: int, pack_dtype: str = "uint32",
                    out_dtype: Any = "int16", unipolar: bool = True) -> te.Tensor:
    """data @ weight^T of small integers: data (batch, channels), weight (results, channels), or packed (results, bits, words).

    The result is (batch, results) of out_dtype, in which sums wrap around.
    """
    where = opening("bitserial_dense", data, weight)
    require_shape(data, [None, None], where, "data is (batch, channels)")
    left = bitpack(data, data_bits, 1, 1, pack_dtype)
    right = bitpack(weight, weight_bits, 1, 1, pack_dtype) if weight.ndim == 2 else weight
    require_shape(right, [None, weight_bits, left.shape[2]], where, "weight is (results, channels), or (results, bits, words)")
    _require_words(right, pack_dtype, out_dtype, where)
    k, p, q = (te.reduce_axis((0, extent), name=name) for extent, name in
               ((left.shape[2], "k"), (data_bits, "db"), (weight_bits, "wb")))
    made: te.Tensor = te.compute(
        (data.shape[0], right.shape[0]),
        lambda i, j: te.sum(_counted(left(i, p, k), right(j, q, k), p + q, out_dtype, unipolar), axis=[q, p, k]),
        name="bitserial_dense", tag="bitserial_dense_unipolar" if unipolar else "bitserial_dense")
    return made


@checked
def bitserial_conv2d_nchw(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, activation_bits: int, weight_bits: int,
                          pack_dtype: str = "uint32", out_dtype: Any = "int16", unipolar: bool = True) -> te.Tensor:
    """The convolution of small integers in NCHW: data (batch, channels, height, width), kernel (filters, channels, height,
    width), or packed (filters, words, height, width, bits).

    The result is of out_dtype, in which sums wrap around. Outside of the data there are zeros.
    """
    where = opening("bitserial_conv2d_nchw", data, kernel)
    require_shape(data, [None] * 4, where, "data is (batch, channels, height, width)")
    left = bitpack(data, activation_bits, 1, 2, pack_dtype)
    right = bitpack(kernel, weight_bits, 1, 4, pack_dtype) if kernel.ndim == 4 else kernel
    require_shape(right, [None, left.shape[1], None, None, weight_bits], where, "kernel is (filters, channels, height, width)")
    _require_words(right, pack_dtype, out_dtype, where)
    w = windows(right.shape[2:4], stride, padding, 1, where)
    height, width = w.results(data.shape[2:], where)
    padded = pad(left, [0, 0, 0, *w.before], [0, 0, 0, *w.after], name="pad_temp")
    rc, ry, rx, p, q = _reduced(left.shape[1], right.shape[2:4], activation_bits, weight_bits)
    made: te.Tensor = te.compute(
        (data.shape[0], right.shape[0], height, width),
        lambda n, f, y, x: te.sum(_counted(padded(n, rc, p, y * w.strides[0] + ry, x * w.strides[1] + rx),
                                           right(f, rc, ry, rx, q), p + q, out_dtype, unipolar), axis=[rc, ry, rx, q, p]),
        name="Conv2dOutput", tag="bitserial_conv2d_nchw")
    return made


@checked
def bitserial_conv2d_nhwc(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, activation_bits: int, weight_bits: int,
                          pack_dtype: str = "uint32", out_dtype: Any = "int16", unipolar: bool = True) -> te.Tensor:
    """Like `bitserial_conv2d_nchw` in NHWC, with the kernel (height, width, channels, filters), or packed (height, width,
    words, filters, bits).
    """
    where = opening("bitserial_conv2d_nhwc", data, kernel)
    require_shape(data, [None] * 4, where, "data is (batch, height, width, channels)")
    left = bitpack(data, activation_bits, 3, 4, pack_dtype)
    right = bitpack(kernel, weight_bits, 2, 4, pack_dtype) if kernel.ndim == 4 else kernel
    require_shape(right, [None, None, left.shape[3], None, weight_bits], where, "kernel is (height, width, channels, results)")
    _require_words(right, pack_dtype, out_dtype, where)
    w = windows(right.shape[:2], stride, padding, 1, where)
    height, width = w.results(data.shape[1:3], where)
    padded = pad(left, [0, *w.before, 0, 0], [0, *w.after, 0, 0], name="PaddedInput")
    rc, ry, rx, p, q = _reduced(left.shape[3], right.shape[:2], activation_bits, weight_bits)
    made: te.Tensor = te.compute(
        (data.shape[0], height, width, right.shape[3]),
        lambda n, y, x, f: te.sum(_counted(padded(n, y * w.strides[0] + ry, x * w.strides[1] + rx, rc, p),
                                           right(ry, rx, rc, f, q), p + q, out_dtype, unipolar), axis=[rc, ry, rx, q, p]),
        name="Conv2dOutput", tag="bitserial_conv2d_nhwc")
    return made


def _reduced(words: Any, extents: Any, activation_bits: int, weight_bits: int) -> list[Any]:
    """The loops of a sum: words of channels, rows and columns of a window, bits of the data and of the kernel."""
    return [te.reduce_axis((0, extent), name=name) for extent, name in
            zip((words, *extents, activation_bits, weight_bits), ("rc", "ry", "rx", "b1", "b2"))]


def _counted(data: Any, weight: Any, places: Any, dtype: Any, unipolar: bool) -> Any:
    """How many bits two words have in common (unipolar: less those that only the data have), moved by `places`."""
    count = te.popcount(data & weight).astype(dtype)
    if unipolar:
        count = count - te.popcount(data & ~weight).astype(dtype)
    return count << places.astype(dtype)


def _require_words(weight: te.Tensor, pack_dtype: str, out_dtype: Any, where: str) -> None:
    require_integers(weight, where, "the weight")
    if weight.dtype != pack_dtype:
        raise DTypeError(f"{where}: {weight.name} holds {weight.dtype}, pack_dtype is {pack_dtype}",
                         hint=f"choose one of {', '.join(WORDS)} for both")
    if te.const(0, out_dtype).dtype.is_float or out_dtype == "bool":
        raise DTypeError(f"{where}: out_dtype is {out_dtype}", hint="sums are integers: 'int16' or 'int32'")
