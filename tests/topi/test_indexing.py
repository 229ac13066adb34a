"""Operators that read, write and choose at positions that tensors hold, against numpy."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentError, DTypeError, ShapeError
from tests.topi.checking import check, numbers, tensor
from topi.kinds import InjectiveOp, ScatterOp

n, m = te.size_var("n"), te.size_var("m")
reference = topi.testing


def places(shape, low, high, dtype="int32", seed=1, name="indices"):
    """A placeholder of positions and an array for it."""
    data = np.random.default_rng(seed).integers(low, high, [e[1] if isinstance(e, tuple) else e for e in shape])
    return te.placeholder([e[0] if isinstance(e, tuple) else e for e in shape], dtype, name=name), data.astype(dtype)


@pytest.mark.parametrize("shape, index_shape, axis", [((5, 3), (4,), 0), ((5, 3), (2, 2), 1), ((2, 5, 3), (3, 2), -2),
                                                      ((6,), (), 0),
                                                      ((2, 3, 4), (5,), None), ((3, 2), (0,), 1), ((1, 1), (3, 1), 0),
                                                      (((n, 5), 3), ((m, 4),), 0), (((n, 5), (m, 2)), (3,), None)])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_take(shape, index_shape, axis, dtype):
    a, x = tensor(shape)
    indices, p = places(index_shape, -9, 12, dtype)
    extent = x.size if axis is None else x.shape[axis]
    check([topi.take(a, indices, axis), topi.take(a, indices, axis, mode="wrap"),
           topi.take(a, topi.floor_mod(indices, extent), axis, 0, "fast")], {a: x, indices: p},
          [np.take(x, p, axis, mode="clip"), np.take(x, p, axis, mode="wrap"), np.take(x, p % extent, axis)])
    made = topi.take(a, indices, axis)
    assert (made.name, made.op.tag, made.op.info) == ("T_take", "injective", InjectiveOp("take"))


@pytest.mark.parametrize("shape, index_shape, axis, batch", [((2, 5, 3), (2, 4), 1, 1), ((2, 3, 5), (2, 3, 2), 2, 2),
                                                             ((2, 3, 5), (2, 4), -1, 1), ((2, 3, 5), (2, 3, 2), 2, -1)])
def test_take_in_batches(shape, index_shape, axis, batch):
    a, x = tensor(shape)
    indices, p = places(index_shape, 0, shape[axis])
    check(topi.take(a, indices, axis, batch), {a: x, indices: p}, reference.take_python(x, p, axis, batch))


@pytest.mark.parametrize("shape, index_shape, axis", [((4, 3), (2, 3), 0), ((4, 3), (4, 5), 1), ((2, 3, 4), (2, 1, 4), -2),
                                                      ((6,), (9,), 0), (((n, 4), 3), ((n, 4), 2), 1), ((3, 2), (0, 2), 0)])
def test_gather(shape, index_shape, axis):
    a, x = tensor(shape, "int8")
    indices, p = places(index_shape, -x.shape[axis], x.shape[axis], "int64")
    check(topi.gather(a, axis, indices), {a: x, indices: p}, reference.gather_python(x, axis, p))
    unsigned, q = places(index_shape, 0, x.shape[axis], "uint8")
    check(topi.gather(a, axis, unsigned), {a: x, unsigned: q}, reference.gather_python(x, axis, q))


@pytest.mark.parametrize("shape, index_shape", [((4, 3), (2, 5)), ((4, 3), (1, 2, 2)), ((2, 3, 4), (2,)), ((2, 3, 4), (3, 6)),
                                                ((5,), (1, 1)), (((n, 4), 3), (1, (m, 2)))])
def test_gather_nd(shape, index_shape):
    a, x = tensor(shape)
    indices, p = places(index_shape, -min(x.shape), min(x.shape))
    check(topi.gather_nd(a, indices), {a: x, indices: p}, reference.gather_nd_python(x, p))


@pytest.mark.parametrize("shape, index_shape, batch", [((2, 3, 4, 5), (2, 2, 3), 1), ((2, 3, 4), (1, 2, 3), 2),
                                                       ((2, 3, 4), (2, 2), 1)])
def test_gather_nd_of_batches(shape, index_shape, batch):
    x = np.random.default_rng(3).standard_normal(shape).astype("float32")
    count, places = index_shape[0], index_shape[1:]
    p = np.stack([np.random.default_rng(d).integers(-shape[batch + d], shape[batch + d], places) for d in range(count)])
    p = p.astype("int32")
    a, indices = te.placeholder(shape, name="a"), te.placeholder(index_shape, "int32", name="indices")
    want = np.empty(places + shape[batch + count:], "float32")
    for y in np.ndindex(*places):
        want[y] = x[(*y[:batch], *p[(slice(None), *y)])]
    check(topi.gather_nd(a, indices, batch), {a: x, indices: p}, want)
    with pytest.raises(ShapeError, match="batch_dims is 4 for data"):
        topi.gather_nd(a, indices, 4)


def test_gather_nd_drops_fractions():
    a, x = tensor((4, 3))
    indices, p = te.placeholder((2, 3), name="indices"), np.array([[0, 3, 1.9], [2.5, 0, 1]], "float32")
    check(topi.gather_nd(a, indices), {a: x, indices: p}, x[[0, 3, 1], [2, 0, 1]])


def test_adv_index():
    a, x = tensor((4, 5, 3))
    (i, p), (j, q), (k, r) = places((3, 1), -4, 4, name="i"), places((2,), 0, 5, "int64", name="j"), places((), 0, 3, name="k")
    check([topi.adv_index(a, [i]), topi.adv_index(a, [i, j]), topi.adv_index(a, [i, j, k])], {a: x, i: p, j: q, k: r},
          [x[p], x[p, q], x[p, q, r]])


@pytest.mark.parametrize("c, x, y", [((2, 3), (2, 3), (2, 3)), ((3,), (2, 3), (1,)), ((2, 1), (3,), (2, 3)), ((), (2,), (2,)),
                                     (((n, 4), 1), ((n, 4), 3), (3,)), ((0, 2), (0, 2), (2,))])
@pytest.mark.parametrize("kind", ["bool", "int32", "float32"])
def test_where(c, x, y, kind):
    (condition, p), (a, u), (b, v) = tensor(c, kind, "c"), tensor(x, name="a"), tensor(y, name="b")
    p = (numbers(p.shape, "int32") % 2).astype(kind)
    made = topi.where(condition, a, b)
    assert made.op.tag == "broadcast" and made.op.info == te.ElementwiseOp("where", broadcasts=True)
    check(made, {condition: p, a: u, b: v - 50}, np.where(p, u, v - 50).astype("float32"))


@pytest.mark.parametrize("shape, axis", [((4, 3), 0), ((4, 3, 2), 1), ((1, 1), 0), (((n, 5), 2), 0)])
def test_sequence_mask(shape, axis):
    a, x = tensor(shape)
    length = te.placeholder((a.shape[1 - axis],), "int32", name="length")
    p = np.arange(x.shape[1 - axis], dtype="int32") - 1
    check([topi.sequence_mask(a, length, axis=axis), topi.sequence_mask(a, length, -7.5, axis)], {a: x, length: p},
          [reference.sequence_mask_python(x, p, 0, axis), reference.sequence_mask_python(x, p, -7.5, axis)])


@pytest.mark.parametrize("shape, axis", [((4,), -1), ((2, 3), 0), ((2, 3), 1), ((), 0), (((n, 3),), 0)])
def test_one_hot(shape, axis):
    indices, p = places(shape, -1, 6)
    check([topi.one_hot(indices, 1, 0, 5, axis, "float32"), topi.one_hot(indices, 3, -1, 5, axis, "int8")], {indices: p},
          [reference.one_hot(p, 1, 0, 5, axis, "float32"), reference.one_hot(p, 3, -1, 5, axis, "int8")])


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_one_hot_of_indices_far_outside(dtype):
    indices = te.placeholder((6,), dtype, name="indices")
    p = np.array([1, 2**32 + 1, 2**63 - 1, 5, 4, 0], dtype)
    p[3] = -1 if dtype == "int64" else 2**64 - 1
    expected = (p[:, None] == np.arange(5, dtype=dtype)).astype("float32")
    check(topi.one_hot(indices, 1, 0, 5, -1, "float32"), {indices: p}, expected)


@pytest.mark.parametrize("shape, k, length", [((3, 4), 0, 3), ((2, 4, 3), -1, 3), ((3, 4), 2, 2), ((2, 3, 4), (-1, 1), 3),
                                              ((4, 3), (0, 2), 3), ((3, 5), (-2, -1), 2), ((1, 1), 0, 1), ((3, 5), (1, 4), 3)])
@pytest.mark.parametrize("align", ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"])
def test_matrix_set_diag(shape, k, length, align):
    a, x = tensor(shape)
    rows = () if isinstance(k, int) else (k[1] - k[0] + 1,)
    d, v = tensor((*shape[:-2], *rows, length), name="d")
    check(topi.matrix_set_diag(a, d, k, align), {a: x, d: v - 99}, reference.matrix_set_diag(x, v - 99, k, align))


SCATTERS = [((6,), (4,), 0), ((4, 3), (2, 3), 0), ((4, 3), (4, 5), 1), ((2, 3, 4), (2, 3, 4), -1), ((1,), (3,), 0),
            ((3, 2), (0, 2), 0), (((n, 4), 3), ((m, 2), 3), 0)]


@pytest.mark.parametrize("shape, index_shape, axis", SCATTERS)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_scatter(shape, index_shape, axis, dtype):
    a, x = tensor(shape, dtype)
    indices, p = places(index_shape, -x.shape[axis], x.shape[axis], "int64" if dtype == "int32" else "int32")
    updates, u = tensor(index_shape, dtype, name="u")
    made = topi.scatter(a, indices, updates, axis)
    assert made.op.info == ScatterOp("scatter", axis % a.ndim) and made.op.tag == "scatter_generic"
    check([made, topi.scatter_add(a, indices, updates, axis)], {a: x, indices: p, updates: u - 40},
          [reference.scatter_python(x, p, u - 40, axis), reference.scatter_python(x, p, u - 40, axis, add=True)])


def test_scatter_between_formulas_leaves_out_what_lies_outside():
    a, x = tensor((4,))
    indices = te.placeholder((3,), "int32", name="i")
    made = topi.scatter(topi.exp(a), indices, topi.full((3,), "float32", 1.5)) * 2.0
    expected = np.exp(x) * 2
    expected[[1, 3]] = 3
    check(made, {a: x, indices: np.array([7, 1, -1], "int32")}, expected, rtol=1e-6)


@pytest.mark.parametrize("shape, index_shape", [((4, 3), (2, 5)), ((4, 3), (1, 2)), ((2, 3, 4), (2, 2, 3)), ((5,), (1, 4)),
                                                ((3, 2), (1, 0)), (((n, 4), 3), (1, (m, 2)))])
@pytest.mark.parametrize("mode", ["update", "add", "mul", "min", "max"])
def test_scatter_nd(shape, index_shape, mode):
    a, x = tensor(shape)
    indices, p = places(index_shape, 0, min(x.shape), "int64")
    updates, u = tensor((*index_shape[1:], *shape[index_shape[0]:]), name="u")
    check(topi.scatter_nd(a, indices, updates, mode), {a: x, indices: p, updates: u - 40},
          reference.scatter_nd_python(x, p, u - 40, mode))


def test_sparse_to_dense():
    indices, p = te.placeholder((3, 2), "int32", name="i"), np.array([[0, 1], [2, 0], [1, 1]], "int32")
    values, v = tensor((3,), name="v")
    default, d = te.placeholder((), name="d"), np.array(-1, "float32")
    check([topi.sparse_to_dense(indices, (3, 2), values), topi.sparse_to_dense(indices, [3, 2], values, 7),
           topi.sparse_to_dense(indices, [3, 2], values, default)], {indices: p, values: v, default: d},
          [reference.sparse_to_dense(p, (3, 2), v, fill) for fill in (0, 7, -1)])
    line, q = te.placeholder((2,), "int64", name="i"), np.array([4, 1])
    one, w = te.placeholder((), "int8", name="one"), np.array(5, "int8")
    check(topi.sparse_to_dense(line, (6,), one), {line: q, one: w}, reference.sparse_to_dense(q, (6,), w))
    point, r = te.placeholder((), "int32", name="i"), np.array(2, "int32")
    check(topi.sparse_to_dense(point, (3,), one), {point: r, one: w}, np.array([0, 0, 5], "int8"))


@pytest.mark.parametrize("shape", [(7, 6), (24,), (2, 3, 4), (1, 1)])
def test_unravel_index(shape):
    indices, p = places((5,), 0, int(np.prod(shape)))
    extents = te.placeholder((len(shape),), "int32", name="shape")
    expected = np.stack(np.unravel_index(p, shape)).astype("int32")
    check([topi.unravel_index(indices, extents), topi.unravel_index(indices, shape)],
          {indices: p, extents: np.array(shape, "int32")}, [expected, expected])
    one, q = places((), 0, int(np.prod(shape)), "int64")
    check(topi.unravel_index(one, shape), {one: q}, np.stack(np.unravel_index(q, shape)))


def test_invert_permutation_and_argwhere():
    data, p = te.placeholder((n,), "int64", name="p"), np.random.default_rng(0).permutation(9)
    check(topi.invert_permutation(data), {data: p}, np.argsort(p))
    for dtype in ("bool", "int32", "float32"):
        for shape in [(7,), (3, 4), (2, 3, 2)]:
            c = te.placeholder(shape, dtype, name="c")
            given = (numbers(shape, "int32") % 3 == 0).astype(dtype)
            found = np.argwhere(given).astype("int32")
            room = np.concatenate([found, np.zeros((2, len(shape)), "int32")])
            check([topi.argwhere(found.shape, c), topi.argwhere(te.placeholder(room.shape, name="o"), c),
                   topi.argwhere((1, len(shape)), c)], {c: given}, [found, room, found[:1]])


I = te.placeholder((2, 3), "int32", name="i")


@pytest.mark.parametrize("call, error, words", [
    (lambda a: topi.take(a, a), DTypeError, r"take of a: indices a holds float32, not integers"),
    (lambda a: topi.take(a, I, mode="nearest"), ArgumentError, r"there is no mode 'nearest'"),
    (lambda a: topi.take(a, I, 5), ShapeError, r"axis 5 of a tensor of rank 2"),
    (lambda a: topi.take(a, I, 0, 1), ShapeError, r"1 batch dimensions of the shapes \(5, 4\) and \(2, 3\) at axis 0"),
    (lambda a: topi.gather(a, 0, topi.reshape(I, (6,))), ShapeError, r"the indices T_reshape have the shape \(6,\)"),
    (lambda a: topi.gather(a, 0, topi.full((2, 9), "int32", 0)), ShapeError, r"beside axis 0"),
    (lambda a: topi.gather_nd(a, topi.reshape(I, (3, 2))), ShapeError, r"the data \(5, 4\)"),
    (lambda a: topi.adv_index(a, [I, topi.full((2,), "int32", 0)]), ShapeError, r"adv_index of a: the shapes"),
    (lambda a: topi.adv_index(a, []), ShapeError, r"0 indices for the shape \(5, 4\)"),
    (lambda a: topi.where(I, a, I), DTypeError, r"where: a holds float32 and i int32"),
    (lambda a: topi.where(I, a, a), ShapeError, r"where: the shapes \(2, 3\) of i and \(5, 4\)"),
    (lambda a: topi.sequence_mask(a, I), ShapeError, r"valid_length i has the shape \(2, 3\)"),
    (lambda a: topi.sequence_mask(a, I, 0, 2), ShapeError, r"axis 2 of the shape \(5, 4\)"),
    (lambda a: topi.one_hot(a, 1, 0, 3, 0, "int32"), DTypeError, r"indices a holds float32"),
    (lambda a: topi.matrix_set_diag(a, a), ShapeError, r"diagonals 0 to 0 of the shape \(5, 4\) from \(5, 4\)"),
    (lambda a: topi.matrix_set_diag(a, topi.full((3,), "float32", 0)), ShapeError, r"have 3 elements each, .* \(5, 4\) has 4"),
    (lambda a: topi.matrix_set_diag(a, a, 0, "LEFT"), ArgumentError, r"there is no align 'LEFT'"),
    (lambda a: topi.scatter(a, I, I), DTypeError, r"scatter of a: a holds float32 and i int32"),
    (lambda a: topi.scatter(a, I, a), ShapeError, r"the shapes are \(5, 4\), \(2, 3\) of the indices and \(5, 4\)"),
    (lambda a: topi.scatter_nd(a, I, a, "update"), ShapeError, r"which must have \(3,\)"),
    (lambda a: topi.scatter_nd(a, I, a, "mean"), ArgumentError, r"there is no mode 'mean'"),
    (lambda a: topi.sparse_to_dense(I, (3, 2), a), ShapeError, r"sparse_to_dense of i: the shapes are \(2, 3\)"),
    (lambda a: topi.unravel_index(I, I), ShapeError, r"not that of a vector of constant length"),
    (lambda a: topi.invert_permutation(I), ShapeError, r"the shape is \(2, 3\), not that of a vector"),
    (lambda a: topi.argwhere((3, 3), I), ShapeError, r"the result has the shape \(3, 3\) and the condition \(2, 3\)"),
])
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(te.placeholder((5, 4), name="a"))


@pytest.mark.parametrize("cpu, rows, lanes, most", [
    ("znver4", 100, 16, 16), ("znver4", 100_000, 8, 16), ("znver3", 100_000, 8, 8)])
def test_a_place_of_a_row_in_64_bits_does_not_make_vectors_narrower_than_half_a_line(cpu, rows, lanes, most):
    table, at = te.placeholder((rows, 48), name="table"), te.placeholder((7,), "int64", name="at")
    one, zero = (tedsl.tir.const(value, "float32") for value in (1, 0))
    with tedsl.target.Target(f"llvm -mcpu={cpu}"):
        for y, count in ((topi.take(table, at, 0), lanes), (topi.one_hot(at, one, zero, 48, -1, "float32"), most)):
            text = str(tedsl.lower(topi.schedules.schedule(y), [table, at, y]))
            assert f"1, {count})] =" in text, text
