"""Moves of blocks, mirrored borders, flatten and buffers against numpy."""

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import ArgumentError, DTypeError, ShapeError
from tests.topi.checking import check, tensor
from topi import nn, testing
from topi.kinds import InjectiveOp

SCHEDULES = {"plain": None, "x86": topi.x86.schedule_injective}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape, block, dtype", [((2, 3, 4, 6), 2, "float32"), ((1, 1, 3, 3), 3, "int8"),
                                                 ((1, 2, 1, 5), 1, "float64")])
def test_depth_and_space(shape, block, dtype, schedule):
    a, x = tensor(shape, dtype)
    deep = testing.space_to_depth_python(x, block)
    b = te.placeholder(deep.shape, dtype, name="b")
    c, last = te.placeholder((x.shape[0], *x.shape[2:], x.shape[1]), dtype, name="c"), np.moveaxis(x, 1, -1).copy()
    check([nn.space_to_depth(a, block), nn.depth_to_space(b, block), nn.depth_to_space(b, block, mode="CDR"),
           nn.space_to_depth(c, block, "NHWC"), nn.depth_to_space(nn.space_to_depth(c, block, "NHWC"), block, "NHWC")],
          {a: x, b: deep, c: last},
          [deep, x, testing.depth_to_space_python(deep, block, "CDR"), np.moveaxis(deep, 1, -1), last],
          schedule=SCHEDULES[schedule])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape, block, before, after", [
    ((2, 4, 6, 3), (2, 3), (0, 0), (0, 0)), ((1, 3, 5), (2, 2), (1, 0), (0, 1)), ((3, 7), (4,), (1,), (0,)),
    ((2, 3, 2), (), (), ())])
def test_batches_and_space(shape, block, before, after, schedule):
    a, x = tensor(shape)
    moved = testing.space_to_batch_nd_python(x, block, before, after, 1.5)
    b = te.placeholder(moved.shape, name="b")
    check([nn.space_to_batch_nd(a, block, before, after, 1.5), nn.batch_to_space_nd(b, block, before, after)], {a: x, b: moved},
          [moved, x], schedule=SCHEDULES[schedule])
    np.testing.assert_array_equal(testing.batch_to_space_nd_python(moved, block, before, after), x)


@pytest.mark.parametrize("mode", ["SYMMETRIC", "REFLECT"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_mirror_pad(mode, schedule):
    (a, x), (b, y) = tensor((3, 1, 5)), tensor((4,), "int32", "b")
    check([nn.mirror_pad(a, (2, 0, 4), (1, 0, 0), mode), nn.mirror_pad(b, (3,), mode=mode), nn.mirror_pad(b, (0,), (1,), mode)],
          {a: x, b: y}, [np.pad(x, [(2, 1), (0, 0), (4, 0)], mode.lower()), np.pad(y, 3, mode.lower()),
                         np.pad(y, (0, 1), mode.lower())], schedule=SCHEDULES[schedule])


@pytest.mark.parametrize("mode", ["SYMMETRIC", "REFLECT"])
@pytest.mark.parametrize("shape, low, high", [
    ((3, 5, 40), (0, 2, 3), (0, 0, 1)), ((2, 200), (0, 3), (1, 0)), ((2, 700), (1, 70), (1, 699)), ((4, 56), (0, 0), (2, 1))])
def test_rows_of_vectors_with_mirrored_ends(shape, low, high, mode):
    a, x = tensor(shape)
    check(nn.mirror_pad(a, low, high, mode), {a: x}, np.pad(x, list(zip(low, high)), mode.lower()),
          schedule=topi.x86.schedule_injective)


def test_a_mirrored_border_of_symbolic_rows():
    n = te.size_var("n")
    a, x = tensor(((n, 40), (n, 40)))
    check(nn.mirror_pad(a, (1, 2), (0, 3), "REFLECT"), {a: x}, np.pad(x, [(1, 0), (2, 3)], "reflect"))


def test_flatten_and_fifo_buffer():
    n = te.size_var("n")
    (a, x), (b, y), (c, z) = tensor((2, 3, 4)), tensor(((n, 3), 2, 2), name="b"), tensor((2, 5, 4), name="c")
    check([nn.flatten(a), nn.flatten(b), nn.fifo_buffer(a, c, 1), nn.fifo_buffer(c, c, -2)], {a: x, b: y, c: z},
          [x.reshape(2, 12), y.reshape(3, 4), np.concatenate([z, x], 1)[:, -5:], z])
    assert nn.flatten(a).op.info == InjectiveOp("flatten")
    assert nn.fifo_buffer(a, c, 1).op.tag == "injective,fifo_buffer"


A = te.placeholder((2, 3, 4, 5), name="a")


@pytest.mark.parametrize("call, error, words", [
    (lambda: nn.space_to_depth(A, 2), ShapeError, r"dimension 3 of \(2, 3, 4, 5\) is not divisible by 2"),
    (lambda: nn.space_to_depth(A, 2, "NCWH"), ArgumentError, 'layout is "NCWH"'),
    (lambda: nn.depth_to_space(A, 2), ShapeError, "dimension 1 of .* is not divisible by 4"),
    (lambda: nn.depth_to_space(A, 2, mode="RCD"), ArgumentError, 'mode is "RCD"'),
    (lambda: nn.space_to_batch_nd(A, (2,), (0,), (0,)), ShapeError, "dimension 1 of .* is not divisible by 2"),
    (lambda: nn.space_to_batch_nd(A, (2, 2), (0,), (0, 0)), ShapeError, r"pad_before is \(0,\) for 2 blocks"),
    (lambda: nn.batch_to_space_nd(A, (2,), (4,), (4,)), ShapeError, "more is cropped than there is"),
    (lambda: nn.mirror_pad(A, (0, 3, 0, 0), mode="REFLECT"), ShapeError, r"pad_before is \(0, 3, 0, 0\) and the shape"),
    (lambda: nn.mirror_pad(A, (0, 1)), ShapeError, "has 4 dimensions and pad_before has 2 widths"),
    (lambda: nn.mirror_pad(A, (0, 1, 0, 0), mode="WRAP"), ArgumentError, 'mode is "WRAP"'),
    (lambda: nn.fifo_buffer(A, te.placeholder((2, 2, 4, 5), name="b"), 1), ShapeError, "does not fit into b"),
    (lambda: nn.fifo_buffer(A, te.placeholder((2, 3, 4, 5), "int8", name="b"), 1), DTypeError, "float32 and b int8"),
])
def test_what_does_not_fit_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
