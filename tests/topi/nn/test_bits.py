"""Products by counting bits, and arithmetic of integers, against numpy."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te, tir
from tedsl.errors import ArgumentError, DTypeError, ShapeError
from tests.topi.checking import check
from topi import nn


def words(bits, dtype):
    """Words of the bits along the last dimension, the first one highest."""
    width = np.dtype(dtype).itemsize * 8
    groups = bits.reshape(*bits.shape[:-1], -1, width).astype(object)
    return (groups * [1 << width - 1 - k for k in range(width)]).sum(-1).astype(dtype)


def small(shape, bits, name, dtype="uint8", seed=0):
    data = np.random.default_rng(seed).integers(0, 1 << bits, shape).astype(dtype)
    return te.placeholder(shape, dtype, name=name), data


@pytest.mark.parametrize("shape, bits, axis, place, dtype", [((2, 16, 3), 3, 1, 1, "uint8"), ((2, 3, 64), 2, -1, 3, "uint32"),
                                                             ((64,), 1, 0, 0, "uint64"), ((16, 2), 4, 0, 2, "uint16")])
def test_bitpack(shape, bits, axis, place, dtype):
    a, x = small(shape, bits, "a", "int32")
    planes = [np.moveaxis(words(np.moveaxis(x >> b & 1, axis, -1), dtype), -1, axis) for b in range(bits)]
    check(nn.bitpack(a, bits, axis, place, dtype), {a: x}, np.stack(planes, place))


def test_signs():
    a = te.placeholder((3, 64, 2), name="a")
    x = np.random.default_rng(0).normal(size=(3, 64, 2)).astype("float32")
    x[0, :2, 0] = [0.0, -0.0]
    check(nn.binarize_pack(a, 1), {a: x}, words((x >= 0).transpose(0, 2, 1), "uint32").transpose(0, 2, 1))
    b, y = te.placeholder((2, 64), name="b"), np.ascontiguousarray(x[:2, :, 1])
    c, z = te.placeholder((5, 64), name="c"), np.random.default_rng(1).normal(size=(5, 64)).astype("float32")
    made = nn.binary_dense(nn.binarize_pack(b), nn.binarize_pack(c))
    check(made, {b: y, c: z}, (np.where(y >= 0, 1, -1) @ np.where(z >= 0, 1, -1).T).astype("float32"))


@pytest.mark.parametrize("unipolar", [True, False])
def test_dense(unipolar):
    (a, x), (b, y) = small((3, 32), 2, "a", "uint32"), small((5, 32), 1, "b", "uint32", 1)
    weight = 2 * y.astype(int) - 1 if unipolar else y.astype(int)
    expected = (x.astype(int) @ weight.T).astype("int16")
    check(nn.bitserial_dense(a, b, 2, 1, "uint16", unipolar=unipolar), {a: x, b: y}, expected)
    packed, p = te.placeholder((5, 1, 4), "uint8", name="packed"), words(y[:, None], "uint8")
    check(nn.bitserial_dense(a, packed, 2, 1, "uint8", "int32", unipolar), {a: x, packed: p}, expected.astype("int32"))


@pytest.mark.parametrize("stride, padding, bits, unipolar", [(1, 1, 1, True), ((2, 1), (0, 1), 2, False),
                                                             (1, (1, 0, 0, 2), 2, True)])
def test_convolutions(stride, padding, bits, unipolar):
    (a, x), (b, y) = small((2, 16, 5, 6), 2, "a"), small((3, 16, 3, 2), bits, "b", seed=1)
    weight = sum((2 * (y.astype(int) >> q & 1) - 1) << q for q in range(bits)) if unipolar else y.astype(int)
    top, left, bottom, right = {1: (1, 1, 1, 1), (0, 1): (0, 1, 0, 1)}.get(padding, padding)
    padded = np.pad(x.astype(int), ((0, 0), (0, 0), (top, bottom), (left, right)))
    expected = topi.testing.conv2d_nchw_python(padded.astype("float64"), weight.astype("float64"), stride, 0)
    expected = np.round(expected).astype("int16")
    check(nn.bitserial_conv2d_nchw(a, b, stride, padding, 2, bits, "uint8", unipolar=unipolar), {a: x, b: y}, expected)
    (c, z), (d, v) = [(te.placeholder(t.shape, "uint8", name=name), np.ascontiguousarray(t)) for name, t in
                      (("c", x.transpose(0, 2, 3, 1)), ("d", y.transpose(2, 3, 1, 0)))]
    check(nn.bitserial_conv2d_nhwc(c, d, stride, padding, 2, bits, "uint16", "int16", unipolar), {c: z, d: v},
          expected.transpose(0, 2, 3, 1))


def test_fixed_point():
    a = te.placeholder((7,), "int32", name="a")
    x = np.array([0, 1, -1, 12345, -12345, (1 << 31) - 1, -(1 << 31)], "int32")
    for multiplier, shift in ((1 << 30, 0), (1395864371, -3), (-5, 2)):
        exact = [v * multiplier * 2 ** (31 + shift) for v in x.tolist()]  # in units of 2 ** -62
        wanted = [(value + (1 << 61)) >> 62 for value in exact]
        if all(-(1 << 31) <= value < 1 << 31 for value in wanted):
            check(topi.fixed_point_multiply(a, multiplier, shift), {a: x}, np.array(wanted, "int32"))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_ceil_log2(dtype):
    a, x = te.placeholder((9,), dtype, name="a"), np.array([1, 2, 3, 4, 5, 1023, 1024, 1025, 1 << 20], dtype)
    check(topi.ceil_log2(a), {a: x}, np.array([0, 1, 2, 2, 3, 10, 10, 11, 20], dtype))
    assert tedsl.arith.Analyzer().simplify(topi.ceil_log2(te.const(9))).value == 4


def test_binary_search_in_statements():
    rows, values = te.placeholder((3, 4), "int32", name="rows"), te.placeholder((3,), "int32", name="values")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        ordered, wanted, out = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with ib.for_range(0, 3) as i:
            out[i] = topi.binary_search(ib, i * 4, 4, ordered, wanted[i], True, "int64")
        return ib.get()

    made = te.extern([(3,)], [rows, values], body, dtype="int64")
    x, v = np.array([[1, 2, 2, 3], [5, 6, 7, 8], [0, 0, 0, 0]], "int32"), np.array([2, 9, -1], "int32")
    check(made, {rows: x, values: v}, np.array([3, 4, 0]))


def test_parts_of_programs_of_topi():
    from tedsl.topi.cpp.util import get_const_int
    from tedsl.topi.nn.bitserial_util import binary_op_multiplier
    from tedsl.topi.reduction import _get_real_axis

    assert binary_op_multiplier("uint32") == 32 and get_const_int(3) == 3
    with pytest.raises(DTypeError, match=r"pack_dtype is 'int32'\n.*uint8, uint16, uint32, uint64"):
        binary_op_multiplier("int32")
    assert _get_real_axis(4, None) == [0, 1, 2, 3] and _get_real_axis(4, (-1, 1)) == [1, 3] and _get_real_axis(4, 2) == [2]
    with pytest.raises(ShapeError, match="_get_real_axis"):
        _get_real_axis(2, 2)


A, F = te.placeholder((2, 32), "uint32", name="A"), te.placeholder((2, 33), name="F")


@pytest.mark.parametrize("made, error, words", [
    (lambda: nn.binarize_pack(F), ShapeError, r"axis 1 of \(2, 33\) is not a multiple of 32"),
    (lambda: nn.bitpack(F, 1, 1, 1, "uint32"), DTypeError, "holds float32, not integers"),
    (lambda: nn.bitpack(A, 33, 1, 1, "uint32"), ArgumentError, "from 1 to 32"),
    (lambda: nn.bitpack(A, 1, 1, 1, "int32"), DTypeError, "pack_type is 'int32'"),
    (lambda: nn.binary_dense(A, F), ShapeError, r"where \(\?, 32\) is meant"),
    (lambda: nn.bitserial_dense(A, A, 1, 1, out_dtype="float32"), DTypeError, "out_dtype is float32"),
    (lambda: nn.bitserial_dense(A, te.placeholder((2, 1, 1), "uint8", name="W"), 1, 1), DTypeError, "W holds uint8"),
    (lambda: topi.fixed_point_multiply(F, 3, 0), DTypeError, "x holds float32"),
    (lambda: topi.fixed_point_multiply(topi.cast(F, "int32"), 3, 40), ArgumentError, "shift is 40"),
])
def test_what_is_refused(made, error, words):
    with pytest.raises(error, match=words):
        made()
