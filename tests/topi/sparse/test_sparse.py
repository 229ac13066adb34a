"""Sparse matrices against the same operations on dense ones."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.contrib import sparse
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from tests.topi.checking import check
from topi import nn

n = te.size_var("n")


def dense(shape, dtype="float32", seed=0):
    """A matrix most of whose elements are 0, and one row of which is."""
    random = np.random.default_rng(seed)
    values = np.where(random.random(shape) < 0.4, random.integers(-8, 9, shape), 0).astype(dtype)
    values[len(values) // 2:len(values) // 2 + 1] = 0
    return values


def rows_of(values, block=()):
    """data, indices and indptr of a matrix, in blocks (rows, columns) or (rows,) of them."""
    high, wide = (*block, 1, 1)[:2]
    parts = values.reshape(values.shape[0] // high, high, values.shape[1] // wide, wide).transpose(0, 2, 1, 3)
    full = parts.any((2, 3))
    data = parts[full].reshape(-1, *[high, wide][:len(block)])
    return data, np.nonzero(full)[1].astype("int32"), np.concatenate([[0], np.cumsum(full.sum(1))]).astype("int32")


def declared(parts, number=None, dtype=None):
    """Placeholders for the parts of a matrix, and the arrays to feed them with."""
    length = parts[0].shape[0] if number is None else number
    shapes = [(length, *part.shape[1:]) for part in parts[:2]] + [parts[2].shape]
    tensors = [te.placeholder(shape, str(part.dtype), name=name) for shape, part, name in
               zip(shapes, parts, ("data", "indices", "indptr"))]
    return tensors, dict(zip(tensors, parts))


def placed(array, name="a", shape=None):
    return te.placeholder(shape or array.shape, str(array.dtype), name=name), array


@pytest.mark.parametrize("block, number, dtype", [((), n, "float32"), ((), None, "int32"), ((2, 3), None, "float32"),
                                                  ((4, 1), None, "float16")])
def test_products(block, number, dtype):
    weight = dense((8, 6), dtype)
    tensors, feeds = declared(rows_of(weight, block), number)
    a, x = placed(dense((5, 6), dtype, 1))
    check([nn.sparse_dense(a, *tensors), nn.sparse_dense(a, *tensors, sparse_lhs=True)], {a: x, **feeds},
          [x @ weight.T, weight @ x.T])
    made = [nn.sparse_dense_sp_rhs(a, *tensors), nn.sparse_dense_sp_lhs(*tensors, a)]
    check(made, {a: x, **feeds}, [x @ weight.T, weight @ x.T], schedule=topi.cuda.schedule_sparse_dense)


@pytest.mark.parametrize("rows, block, dtype, schedule", [
    (8, (), "float32", topi.x86.schedule_sparse_dense), (20, (2, 3), "float32", topi.x86.schedule_sparse_dense),
    (100, (8, 1), "float16", topi.x86.schedule_sparse_dense), (64, (4, 6), "int32", topi.generic.schedule_sparse_dense),
    (9, (2, 1), "float32", topi.cuda.schedule_sparse_dense)])
def test_products_in_tiles_of_the_dense_rows(rows, block, dtype, schedule):
    weight = dense((16, 6), dtype)
    tensors, feeds = declared(rows_of(weight, block))
    a, x = placed(dense((rows, 6), dtype, 1))
    check([nn.sparse_dense(a, *tensors), nn.sparse_dense(a, *tensors, sparse_lhs=True)], {a: x, **feeds},
          [x @ weight.T, weight @ x.T], schedule=schedule)


def test_blocks_that_registers_do_not_hold():
    weight = dense((64, 32))
    tensors, feeds = declared(rows_of(weight, (32, 32)))
    a, x = placed(dense((16, 32), seed=1))
    check(nn.sparse_dense(a, *tensors), {a: x, **feeds}, x @ weight.T)


def test_a_matrix_without_elements():
    tensors, feeds = declared(rows_of(np.zeros((3, 4), "float32")))
    a, x = placed(dense((1, 4)))
    check([nn.sparse_dense(a, *tensors), nn.sparse_add(topi.reshape(topi.tile(a, (3, 1)), (3, 4)), *tensors)], {a: x, **feeds},
          [np.zeros((1, 3), "float32"), np.tile(x, (3, 1))], schedule=topi.generic.schedule_sparse_dense)


@pytest.mark.parametrize("block", [(2, 3), (4,)])
def test_convolutions(block):
    weight, x = dense((8, 6)), np.random.default_rng(1).integers(-4, 5, (2, 3, 2, 6)).astype("float32")
    tensors, feeds = declared(rows_of(weight, block))
    a, moved = placed(x)[0], np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    b = te.placeholder(moved.shape, name="b")
    check([nn.sparse_conv2d(a, *tensors), nn.sparse_conv2d(b, *tensors, "NCHW")], {a: x, b: moved, **feeds},
          [x @ weight.T, (x @ weight.T).transpose(0, 3, 1, 2)])


@pytest.mark.parametrize("batch, block", [(2, (2, 3)), (1, (4,)), (te.size_var("batch"), (2, 3))])
def test_convolutions_of_nine_pixels(batch, block):
    kernel, x = dense((8, 54), seed=2), np.random.default_rng(1).integers(-4, 5, (2, 5, 4, 6)).astype("float32")
    x = x if batch != 1 else x[:1]
    tensors, feeds = declared(rows_of(kernel, block))
    a = te.placeholder((batch, 5, 4, 6), name="a")
    b = te.placeholder((batch, 6, 5, 4), name="b")
    want = topi.testing.conv2d_nhwc_python(x, kernel.reshape(8, 3, 3, 6).transpose(1, 2, 3, 0), 1, 1)
    check([nn.sparse_conv2d(a, *tensors, "NHWC", 3), nn.sparse_conv2d(b, *tensors, "NCHW", 3)],
          {a: x, b: np.ascontiguousarray(x.transpose(0, 3, 1, 2)), **feeds}, [want, want.transpose(0, 3, 1, 2)])
    if batch == 1:
        flat = topi.x86.spconv2d_3x3_nhwc(a, *tensors)
        check(flat, {a: x, **feeds}, want, schedule=topi.x86.schedule_spconv2d_3x3_nhwc)


@pytest.mark.parametrize("extent", [7, 1])
def test_transposed_and_added(extent):
    matrix = dense((extent, extent), seed=3) + np.eye(extent, dtype="float32")
    tensors, feeds = declared(rows_of(matrix))
    check(nn.sparse_transpose(*tensors), feeds, rows_of(matrix.T))
    a, x = placed(dense((extent, extent), seed=4))
    check(nn.sparse_add(a, *tensors), {a: x, **feeds}, x + matrix)


def test_arrays_and_their_products():
    matrix, x = dense((6, 5)), np.random.default_rng(1).integers(-4, 5, (5, 4)).astype("float32")
    array = sparse.array(matrix)
    np.testing.assert_array_equal(array.numpy(), matrix)
    np.testing.assert_array_equal(sparse.array((array.data, array.indices, array.indptr), shape=(6, 5)).asnumpy(), matrix)
    np.testing.assert_array_equal(sparse.array(np.zeros((0, 3))).indptr.numpy(), [0])
    a = sparse.placeholder((6, 5), nonzeros=n, name="A")
    feeds = {a.data: array.data.numpy(), a.indices: array.indices.numpy(), a.indptr: array.indptr.numpy()}
    (b, bx), (v, vx), (d, dx) = placed(x, "b"), placed(x[:, :1].copy(), "v"), placed(np.ascontiguousarray(x.T), "d")
    c, cx = placed(np.arange(6, dtype="float32"), "c")
    e, ex = placed(np.arange(4, dtype="float32"), "e")
    check([topi.sparse.csrmm(a, b, c), topi.sparse.csrmv(a, v), topi.sparse.dense(a, d, e), topi.sparse.dense(d, a, c)],
          {**feeds, b: bx, v: vx, c: cx, d: dx, e: ex},
          [matrix @ x + cx[:, None], matrix @ vx, matrix @ x + ex, x.T @ matrix.T + cx])


@pytest.mark.parametrize("bias", [5, 1, None])
def test_a_matrix_of_any_rows_and_columns(bias):
    """The sizes are arguments of the function, as is the number of elements."""
    rows, columns = te.size_var("rows"), te.size_var("columns")
    a = sparse.placeholder((rows, columns), nonzeros=n, name="A")
    x, c = te.placeholder((columns, 1), name="x"), te.placeholder((bias,), name="c") if bias else None
    product = topi.sparse.csrmv(a, x, c)
    s = te.create_schedule(product.op)
    f = tedsl.build(s, [rows, a.data, a.indices, a.indptr, x, *([c] if bias else []), product])
    matrix, vector = dense((5, 4)), np.arange(4, dtype="float32").reshape(4, 1)
    added = np.arange(bias or 0, dtype="float32") + 7
    array, result = sparse.array(matrix), np.zeros((5, 1), "float32")
    f(5, array.data, array.indices, array.indptr, vector, *([added] if bias else []), result)
    np.testing.assert_allclose(result, matrix @ vector + (added.reshape(-1, 1) if bias else 0), rtol=1e-5)


@pytest.mark.parametrize("indices, rows, room", [([[0, 1], [0, 3], [2, 0]], 5, 6), ([], 2, 3),
                                                 ([[1, 1], [0, 2], [1, 0]], 2, 3)])
def test_rows_that_were_empty(indices, rows, room):
    found = np.array(indices, "int32").reshape(-1, 2)
    (i, x), (v, y), (s, z), (d, w) = placed(found, "i"), placed(np.arange(len(found), dtype="float32") + 1, "v"), \
        placed(np.array([rows, 9], "int32"), "s"), placed(np.array([7] if rows == 2 else 7, "float32"), "d")
    listed = []
    for row in range(rows):
        own = [(tuple(place), value) for place, value in zip(x.tolist(), y) if place[0] == row]
        listed += own or [((row, 0), 7)]
    places, values = np.zeros((room, 2), "int64"), np.zeros(room, "float32")
    places[:len(listed)], values[:len(listed)] = [place for place, _ in listed], [value for _, value in listed]
    empty = np.array([row not in x[:, 0] for row in range(rows)])
    check(topi.sparse_fill_empty_rows(i, v, s, d, (room, 2), (room,), (rows,)), {i: x, v: y, s: z, d: w},
          [places, values, empty])


@pytest.mark.parametrize("before, after", [((2, 3, 4), (9, -1)), ((2, 3, 4), (24,)), ((6, 4), (2, -1, 2, 3)), ((5,), (1, 5))])
def test_reshaped(before, after):
    total = int(np.prod(before))
    flat = np.random.default_rng(0).permutation(total)[:5]
    shape = (3, 8) if after == (9, -1) else tuple(total // -np.prod(after) if e == -1 else e for e in after)
    after = (3, -1) if after == (9, -1) else after
    (i, x), (p, y), (s, z) = placed(np.stack(np.unravel_index(flat, before), 1), "i", (n, len(before))), \
        placed(np.array(before), "p"), placed(np.array(after), "s")
    expected = np.stack(np.unravel_index(flat, shape), 1).astype("int64")
    check(topi.sparse_reshape(i, p, s, (n, len(after)), (len(after),)), {i: x, p: y, s: z}, [expected, np.array(shape)])


A, F = te.placeholder((3, 4), name="A"), te.placeholder((5,), name="F")
I, P = te.placeholder((5,), "int32", name="I"), te.placeholder((4,), "int32", name="P")


@pytest.mark.parametrize("made, error, words", [
    (lambda: nn.sparse_dense(A, A, I, P), ShapeError, r"A has the shape \(3, 4\)(.|\n)*elements or \(number, rows, columns\)"),
    (lambda: nn.sparse_dense(A, F, P, P), ShapeError, r"P has the shape \(4,\) where \(5\) is meant"),
    (lambda: nn.sparse_dense(A, F, F, P), DTypeError, "F holds float32, not integers"),
    (lambda: nn.sparse_dense(A, te.placeholder((5, 2, 3), name="B"), I, P), ShapeError, "blocks of 3 columns do not divide 4"),
    (lambda: nn.sparse_dense(topi.cast(A, "int32"), F, I, P), DTypeError, "convert one of them"),
    (lambda: nn.sparse_conv2d(A, F, I, P, "CHWN"), ArgumentError, "layout is 'CHWN'"),
    (lambda: nn.sparse_conv2d(A, F, I, P, "NHWC", 5), ArgumentError, "kernel_size 5(.|\n)*1 or 3"),
    (lambda: nn.sparse_add(topi.transpose(A), F, I, P), ShapeError, r"where \(3, \?\) is meant"),
    (lambda: topi.sparse.csrmm(A, A), ArgumentTypeError, "where a sparse matrix is meant"),
    (lambda: sparse.array(np.zeros(3)), ShapeError, "two dimensions"),
    (lambda: sparse.array([1]), ArgumentTypeError, "sparse.array: got"),
    (lambda: sparse.placeholder((3, 4), stype="coo"), ArgumentError, "no stype 'coo'"),
    (lambda: topi.sparse_reshape(te.placeholder((3, 2), "int32"), I, P, (3, 4), (4,)), ShapeError, r"where \(2\) is meant"),
])
def test_what_is_refused(made, error, words):
    with pytest.raises(error, match=words):
        made()
