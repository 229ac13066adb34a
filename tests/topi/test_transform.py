"""Operators that move, join, cut and repeat elements, over shapes and dtypes, against numpy."""

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import ArgumentError, DTypeError, ShapeError
from tedsl.target import Target
from tests.topi.checking import check, numbers, tensor
from topi.kinds import InjectiveOp

n, m = te.size_var("n"), te.size_var("m")
SHAPES = [(2, 3, 4), (1, 1, 5), (7, 1, 3), (0, 3, 2)]
DTYPES = ["float32", "int8", "bool", "float16", "int64"]


@pytest.mark.parametrize("shape, dtype", [*zip(SHAPES, DTYPES), (((n, 2), (m, 3), 5), "float32")])
def test_dimensions_move(shape, dtype):
    a, x = tensor(shape, dtype)
    check([topi.expand_dims(a, 0), topi.expand_dims(a, -1, 2), topi.expand_dims(a, -2), topi.transpose(a),
           topi.transpose(a, (1, -1, 0)), topi.flip(a), topi.flip(a, -1), topi.tile(a, 2), topi.tile(a, (2, 1, 3)),
           topi.tile(a, (2, 1, 1, 2)), topi.repeat(a, 2, 1), topi.repeat(a, 3, -1)], {a: x},
          [x[None], x[..., None, None], np.expand_dims(x, -2), x.T, x.transpose(1, 2, 0), np.flip(x, 0), np.flip(x, -1),
           np.tile(x, 2), np.tile(x, (2, 1, 3)), np.tile(x, (2, 1, 1, 2)), np.repeat(x, 2, 1), np.repeat(x, 3, -1)])


@pytest.mark.parametrize("shape, reps, dtype", [
    ((40,), (3,), "float32"), ((3, 16), (1, 5), "float64"), ((3, 33), (2, 4), "int8"), ((2, 3, 50), (2, 2, 3), "float32"),
    ((3, 7), (1, 9), "float32"), ((5, 200), (3, 40), "float32")])
def test_rows_that_are_repeated_whole(shape, reps, dtype):
    """Where a row has a vector or more, it is a loop of its own: places are no remainders."""
    a, x = tensor(shape, dtype)
    expected = np.tile(x, reps)
    check([topi.tile(a, reps), topi.add(topi.tile(a, reps), 1)], {a: x},
          [expected, expected + x.dtype.type(1)], schedule=topi.x86.schedule_injective)


def test_a_row_that_is_repeated_is_a_loop_of_its_own():
    made = topi.tile(te.placeholder((3, 33), name="a"), (2, 4))
    loops = [line.strip() for line in str(topi.schedules.schedule(made, Target("llvm -mcpu=znver5"))).splitlines()]
    assert loops[-2:] == ["for ax1.inner.outer in 0..3", "for ax1.inner.inner in 0..16 (vectorized)"]


def test_records_tags_and_names():
    a, _ = tensor((2, 3))
    for made, name, tag in [(topi.transpose(a), "T_transpose", "injective"),
                            (topi.expand_dims(a, 0), "T_expand_dims", "broadcast"),
                            (topi.concatenate([a, a]), "T_concat", "injective"), (topi.tile(a, 2), "T_tile", "broadcast"),
                            (topi.reshape(a, (6,)), "T_reshape", "injective"), (topi.squeeze(a), "T_squeeze", "injective")]:
        assert (made.name, made.op.tag) == (name, tag) and isinstance(made.op.info, InjectiveOp)
        assert [axis.name for axis in made.op.axis] == [f"ax{d}" for d in range(made.ndim)]


@pytest.mark.parametrize("shape, new", [((2, 3, 4), (4, 6)), ((2, 3, 4), (24,)), ((2, 3, 4), (2, 12)), ((2, 3, 4), (6, 4)),
                                        ((2, 3, 4), (-1, 8)), ((2, 3, 4), (2, -1, 2, 1)), ((1,), ()), ((), (1, 1)),
                                        ((0, 3), (3, 0)), ((0, 3), (-1, 3)), ((7, 1, 5), (5, 7)), ((6,), 6), ((2, 0), (2, -1))])
def test_reshape(shape, new):
    a, x = tensor(shape)
    check(topi.reshape(a, new), {a: x}, x.reshape(new))


def test_reshape_of_symbolic_shapes():
    a, x = tensor(((n, 3), 4, 6))
    check([topi.reshape(a, (n, 24)), topi.reshape(a, (n, -1)), topi.reshape(a, (-1, 4, 6)), topi.reshape(a, (-1, 8)),
           topi.reshape(a, (n * 4, 6)), topi.reshape(a, (-1,))], {a: x},
          [x.reshape(3, 24), x.reshape(3, 24), x, x.reshape(9, 8), x.reshape(12, 6), x.reshape(-1)])
    assert topi.reshape(a, (n, -1)).shape[1].value == 24
    b, y = tensor(((n, 3), (m, 4)))
    check(topi.reshape(b, (n * m,)), {b: y}, y.reshape(-1))


def test_squeeze():
    a, x = tensor((1, 3, 1))
    check([topi.squeeze(a), topi.squeeze(a, 0), topi.squeeze(a, (-1,)), topi.squeeze(a, [0, 2])], {a: x},
          [x.squeeze(), x.squeeze(0), x.squeeze(-1), x.squeeze()])
    b, y = tensor((1, 1), "int8")
    check(topi.squeeze(b), {b: y}, y.squeeze())


def test_expand_like():
    a, x = tensor((3,))
    like = te.placeholder((3, 2, 4), name="like")
    made = topi.expand_like(a, like, [1, 2])
    check(made, {a: x}, np.broadcast_to(x[:, None, None], (3, 2, 4)))
    one, y = tensor((1,))
    check(topi.expand_like(one, like, [0, 1, -1]), {one: y}, np.full((3, 2, 4), y[0]))
    with pytest.raises(ShapeError, match=r"expand_like of a: the shape \(3,\) with new dims at \(0, 1\) is not \(3, 2, 4\)"):
        topi.expand_like(a, like, [0, 1])


@pytest.mark.parametrize("shapes, axis", [([(2, 3), (4, 3)], 0), ([(2, 3), (2, 1), (2, 5)], -1), ([(3,), (0,), (2,)], 0),
                                          ([(2, 1, 3)], 1), ([((n, 2), 3), ((m, 4), 3)], 0), ([((n, 2), 3), ((n, 2), 1)], 1)])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_concatenate(shapes, axis, dtype):
    pairs = [tensor(shape, dtype, name=f"a{k}") for k, shape in enumerate(shapes)]
    check(topi.concatenate([a for a, _ in pairs], axis), dict(pairs), np.concatenate([x for _, x in pairs], axis))


@pytest.mark.parametrize("shape", [(2, 3), (1,), (), (0, 2), ((n, 3), 2)])
def test_stack_and_unstack(shape):
    (a, x), (b, y) = tensor(shape), tensor(shape, name="b")
    y = y + 1
    for axis in (0, -1):
        check(topi.stack([a, b], axis), {a: x, b: y}, np.stack([x, y], axis))


@pytest.mark.parametrize("shape, parts, axis", [((6, 2), 3, 0), ((2, 5), [1, 3], 1), ((2, 5), (0, 2, 2, 9), -1), ((4,), 1, 0),
                                                ((4, 1), [4], 0), (((n, 6), 2), 3, 0), (((n, 6), 2), [1, 4], 0),
                                                ((0, 2), 2, 0)])
def test_split(shape, parts, axis):
    a, x = tensor(shape)
    made = topi.split(a, parts, axis)
    expected = np.split(x, parts, axis)
    assert len(made) == len(expected)
    check(made, {a: x}, expected)


@pytest.mark.parametrize("lengths", [[0, 1, 2, 3], [4, 5, -2, 9]])
def test_reverse_sequence(lengths):
    a, x = tensor((4, 5, 2))
    length = te.placeholder((4,), "int32", name="length")
    given = np.array(lengths, "int32")
    y = topi.testing.reverse_sequence_python(x, given, 1, 0)
    check([topi.reverse_sequence(a, length), topi.reverse_sequence(a, None, -1)], {a: x, length: given}, [y, x[:, :, ::-1]])
    check(topi.reverse_sequence(a, te_swapped(a, length), 0, 1), {a: x, length: given},
          topi.testing.reverse_sequence_python(x, np.append(given, 2).astype("int32"), 0, 1))


def te_swapped(a, length):
    """One length more, for the five positions of the other axis."""
    return topi.concatenate([length, topi.full((1,), "int32", 2)])


@pytest.mark.parametrize("call, error, words", [
    (lambda a, b: topi.expand_dims(a, 4), ShapeError, r"expand_dims of a: axis 4 of a tensor of rank 3"),
    (lambda a, b: topi.expand_dims(a, 0, -1), ShapeError, r"num_newaxis is -1"),
    (lambda a, b: topi.transpose(a, (0, 0)), ShapeError, r"transpose of a: axes=\(0, 0\) names a dimension twice"),
    (lambda a, b: topi.transpose(a, (1,)), ShapeError, r"1 axes for a tensor of 2 dimensions"),
    (lambda a, b: topi.squeeze(a, 1), ShapeError, r"squeeze of a: dimension 1 has extent 3, not 1; the shape is \(2, 3\)"),
    (lambda a, b: topi.reshape(a, (4, 2)), ShapeError, r"reshape of a: the shape \(2, 3\) has 6 elements, \(4, 2\) has 8"),
    (lambda a, b: topi.reshape(a, (-1, 4)), ShapeError, r"the shape \(2, 3\) does not divide into \(-1, 4\)"),
    (lambda a, b: topi.reshape(a, (-1, -1)), ShapeError, r"the new shape is \(-1, -1\)"),
    (lambda a, b: topi.flip(a, 2), ShapeError, r"flip of a: axis 2 of a tensor of rank 2"),
    (lambda a, b: topi.concatenate([a, b], 1), ShapeError, r"concatenate: a has the shape \(2, 3\) and b \(4, 3\)"),
    (lambda a, b: topi.concatenate([a, topi.cast(b, "int8")]), DTypeError, r"concatenate: a holds float32 and T_cast int8"),
    (lambda a, b: topi.concatenate([]), ArgumentError, r"concatenate: there is no tensor to join"),
    (lambda a, b: topi.stack([a, b]), ShapeError, r"stack: a has the shape \(2, 3\) and b \(4, 3\)"),
    (lambda a, b: topi.split(a, 2, 1), ShapeError, r"split of a: the extent 3 cannot be cut into 2 equal parts"),
    (lambda a, b: topi.split(a, [2, 1], 1), ShapeError, r"the positions \[2, 1\] do not ascend"),
    (lambda a, b: topi.repeat(a, 0, 1), ShapeError, r"repeat of a: repeats is 0"),
    (lambda a, b: topi.tile(a, (1, -1)), ShapeError, r"tile of a: reps is \(1, -1\), a count is below 0"),
    (lambda a, b: topi.reverse_sequence(a, b), DTypeError, r"reverse_sequence of a: seq_lengths b holds float32, not integers"),
    (lambda a, b: topi.reverse_sequence(a, topi.full((3,), "int32", 1)), ShapeError, r"has the shape \(3,\), and dimension 0"),
])
def test_what_is_refused(call, error, words):
    a, b = te.placeholder((2, 3), name="a"), te.placeholder((4, 3), name="b")
    with pytest.raises(error, match=words):
        call(a, b)


SLICES = [((5, 4), [1, 0], [4, 3], None), ((5, 4), [0], [-1], [2]), ((5, 4), [4, 3], [0, 0], [-1, -2]),
          ((5, 4), [-3], [99], None), ((5, 4), [9, 1], [2, 9], None), ((5,), [None], [None], [-1]), ((5,), [10], [-10], [-2]),
          ((5,), [3], [3], None),
          ((1,), [0], [1], [3]), ((0, 2), [0], [4], None), ((7,), [1], [6], [4]), ((3, 4, 2), [1], [2], None)]


@pytest.mark.parametrize("shape, begin, end, strides", SLICES)
def test_strided_slice(shape, begin, end, strides):
    a, x = tensor(shape)
    expected = x[tuple(slice(*parts) for parts in zip(begin, end, strides or [None] * len(begin)))]
    check(topi.strided_slice(a, begin, end, strides), {a: x}, expected)
    np.testing.assert_array_equal(topi.testing.strided_slice_python(x, begin, end, strides), expected)


@pytest.mark.parametrize("shape, begin, end, strides", [s for s in SLICES if len(s[0]) < 3])
def test_strided_slice_of_symbolic_extents(shape, begin, end, strides):
    extents = [te.size_var("n"), te.size_var("m")]
    a, x = tensor([(extents[d], size) for d, size in enumerate(shape)])
    expected = x[tuple(slice(*parts) for parts in zip(begin, end, strides or [None] * len(begin)))]
    check(topi.strided_slice(a, begin, end, strides), {a: x}, expected)


def test_strided_slice_by_axes_sizes_and_symbols():
    a, x = tensor((5, 4, 3))
    check([topi.strided_slice(a, [1], [3], axes=[1]), topi.strided_slice(a, [-1, 1], [0, 3], [-2, 1], axes=[0, -1]),
           topi.strided_slice(a, [1, 0, -2], [2, -1, 1], slice_mode="size"), topi.strided_slice(a, (1,), (3,), None, (2,))],
          {a: x}, [x[:, 1:3], x[-1:0:-2, :, 1:3], x[1:3, :, -2:-1], x[:, :, 1:3]])
    b, y = tensor(((n, 6), 3))
    whole = topi.strided_slice(b, [0], [None])
    assert whole.shape[0] is n
    check([topi.strided_slice(b, [0], [n - 1]), topi.strided_slice(b, [1, 0], [n, 2])], {b: y}, [y[:-1], y[1:, :2]])


def test_strided_slice_of_positions_in_tensors():
    a, x = tensor((6, 5))
    begin, end, steps = (te.placeholder((2,), "int32", name=name) for name in ("begin", "end", "steps"))
    check(topi.strided_slice(a, begin, end, steps), {a: x, begin: np.array([4, 1], "int32"), end: np.array([0, 4], "int32"),
                                                     steps: np.array([-2, 1], "int32")}, x[4:0:-2, 1:4])
    check(topi.strided_slice(a, begin, [5, 5]), {a: x, begin: np.array([-3, 2], "int32")}, x[-3:5, 2:])


@pytest.mark.parametrize("shape, begin, end, strides", [s for s in SLICES if s[0] != (3, 4, 2)])
def test_strided_set(shape, begin, end, strides):
    a, x = tensor(shape)
    expected = x.copy()
    part = tuple(slice(*parts) for parts in zip(begin, end, strides or [None] * len(begin)))
    values = -100 - numbers(expected[part].shape)
    expected[part] = values
    np.testing.assert_array_equal(topi.testing.strided_set_python(x, values, begin, end, strides), expected)
    v = te.placeholder(values.shape, name="v")
    check(topi.strided_set(a, v, begin, end, strides), {a: x, v: values}, expected)


def test_strided_set_at_positions_in_tensors():
    a, x = tensor((6, 5))
    begin, end, steps = (te.placeholder((2,), "int32", name=name) for name in ("begin", "end", "steps"))
    v, values = te.placeholder((2, 3), name="v"), -100 - numbers((2, 3))
    expected = x.copy()
    expected[4:0:-2, 1:4] = values
    made = topi.strided_set(a, v, begin, end, steps)
    assert made.op.tag == "injective,strided_set"
    check(made, {a: x, v: values, begin: np.array([4, 1], "int32"), end: np.array([0, 4], "int32"),
                 steps: np.array([-2, 1], "int32")}, expected)


@pytest.mark.parametrize("call, error, words", [
    (lambda a: topi.strided_slice(a, [0], [1], slice_mode="middle"), ArgumentError, "there is no slice_mode 'middle'"),
    (lambda a: topi.strided_slice(a, [0], [1], [0]), ShapeError, r"strides are \[0\]"),
    (lambda a: topi.strided_slice(a, [0, 0, 0], [1, 1, 1]), ShapeError, r"3 positions for 3 axes of the shape \(5, 4\)"),
    (lambda a: topi.strided_slice(a, [0], [1], axes=[2]), ShapeError, "axes 2 of a tensor of rank 2"),
    (lambda a: topi.strided_slice(a, [3], [3], slice_mode="size"), ShapeError, r"3 elements from 3 on, and dimension 0"),
    (lambda a: topi.strided_set(a, topi.cast(a, "int8"), [0], [1]), DTypeError, "the values T_cast are int8"),
    (lambda a: topi.strided_set(a, a, a, [1]), ShapeError, r"begin a has the shape \(5, 4\), not that of a vector"),
])
def test_slices_that_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(te.placeholder((5, 4), name="a"))


@pytest.mark.parametrize("schedule", [topi.generic.schedule_injective, topi.x86.schedule_injective])
def test_a_chain_of_moves_under_schedules(schedule):
    a, x = tensor((3, 8, 5))
    b = topi.transpose(topi.strided_slice(topi.exp(topi.concatenate([a, a], 1)), [0, 1], [3, 15], [1, 2]), (2, 0, 1))
    made = topi.reshape(topi.nn.relu(b), (15, -1))
    assert schedule is topi.generic.schedule_injective or len(schedule([made]).stages) > 1
    expected = np.exp(np.concatenate([x, x], 1))[:, 1:15:2].transpose(2, 0, 1)
    check(made, {a: x}, expected.reshape(15, -1), rtol=1e-5, schedule=schedule)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
@pytest.mark.parametrize("shape, axes, tiled", [
    ((120, 200, 9), (1, 0, 2), True), ((67, 130, 3), (1, 0, 2), True), ((2, 90, 3, 130, 5), (0, 3, 2, 1, 4), True),
    ((70, 2, 75, 7), (2, 1, 0, 3), True), ((5, 6, 9), (1, 0, 2), False), ((120, 200, 9), (0, 1, 2), False),
    ((1, 200, 9), (1, 0, 2), False)])
def test_pieces_that_change_places(shape, axes, tiled, dtype):
    a, x = tensor(shape, dtype)
    made = topi.transpose(a, axes)
    check([made], {a: x}, [x.transpose(axes)])
    pieces = tiled and dtype == "float32"  # those of others are shorter, or longer
    assert not pieces or sum(".inner" in axis.var.name for axis in topi.schedules.schedule(made)[made].leaf_iter_vars) >= 2
