"""Products by tensor cores: schedules with the shipped intrinsics, and one with its own."""

import ml_dtypes
import numpy as np

from tedsl import te, tir
from tedsl.contrib import intrinsics

ORDERS = ("row_major", "col_major")


def product(size, shape=(16, 16, 16), dtype="float16", out="float32", a_order="row_major", b_order="row_major", warps=(1, 1),
            tiles=(1, 1), step=1, loaded=None, padding=0):
    """c = a b of size (m, n, k): blocks of warps, warps of tiles, `step` products of tiles between two barriers.

    padding: elements that rows in shared memory are further apart than a multiple of 32. loaded: the orders in which a and b
    are loaded, where those are not the orders of the product.
    """
    (M, N, K), (m, n, k) = size, shape
    A = te.placeholder((M, K) if a_order == "row_major" else (K, M), dtype, name="A")
    B = te.placeholder((K, N) if b_order == "row_major" else (N, K), dtype, name="B")
    r = te.reduce_axis((0, K), "r")

    def term(i, j):
        left, right = A[i, r] if a_order == "row_major" else A[r, i], B[r, j] if b_order == "row_major" else B[j, r]
        return left.astype(out) * right.astype(out)

    C = te.compute((M, N), lambda i, j: te.sum(term(i, j), axis=r), name="C")
    s = te.create_schedule(C.op)
    shared = [s.cache_read(X, "shared", [C]) for X in (A, B)]
    fragments = [s.cache_read(X, f"wmma.matrix_{x}", [C]) for X, x in zip(shared, "ab")]
    sums = s.cache_write(C, "wmma.accumulator")

    i, j = s[C].op.axis
    bi, i = s[C].split(i, warps[0] * tiles[0] * m)
    bj, j = s[C].split(j, warps[1] * tiles[1] * n)
    wi, i = s[C].split(i, tiles[0] * m)
    wj, j = s[C].split(j, tiles[1] * n)
    ti, i = s[C].split(i, m)
    tj, j = s[C].split(j, n)
    s[C].reorder(bi, bj, wi, wj, ti, tj, i, j)
    for loop, name in ((bi, "blockIdx.y"), (bj, "blockIdx.x"), (wi, "threadIdx.z"), (wj, "threadIdx.y")):
        s[C].bind(loop, te.thread_axis(name))
    s[C].tensorize(i, intrinsics.wmma_store(shape, out))

    s[sums].compute_at(s[C], wj)
    i, j = s[sums].op.axis
    steps, inner = s[sums].split(s[sums].op.reduce_axis[0], k * step)
    inner, kk = s[sums].split(inner, k)
    ti, i = s[sums].split(i, m)
    tj, j = s[sums].split(j, n)
    s[sums].reorder(steps, inner, ti, tj, i, j, kk)
    s[sums].tensorize(i, intrinsics.wmma_mma(shape, dtype, out, a_order, b_order))

    for X, maker, order, (rows, columns) in zip(fragments, (intrinsics.wmma_load_a, intrinsics.wmma_load_b),
                                                loaded or (a_order, b_order), ((m, k), (k, n))):
        rows, columns = (rows, columns) if order == "row_major" else (columns, rows)
        s[X].compute_at(s[sums], inner)
        ti, tj, i, j = s[X].tile(*s[X].op.axis, rows, columns)
        s[X].tensorize(i, maker(shape, dtype, order))
    for X in shared:
        s[X].compute_at(s[sums], steps)
        if padding:
            s[X].storage_align(s[X].op.axis[0], 32, padding)
        elements, lanes = s[X].split(s[X].fuse(*s[X].op.axis), 4)
        s[X].vectorize(lanes)
        by_threads(s, X, elements, warps)
    return s, [A, B, C]


def by_threads(s, X, elements, warps):
    """Deals the loop `elements` out to the threads of a block."""
    for name, count in (("threadIdx.x", 32), ("threadIdx.y", warps[1]), ("threadIdx.z", warps[0])):
        elements, thread = s[X].split(elements, count)
        s[X].bind(thread, te.thread_axis(name))


def inputs(size, dtype="float16", out="float32", a_order="row_major", b_order="row_major", **_):
    """Two arrays of small whole numbers, one for the product, and the product."""
    m, n, k = size
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0 if dtype == "uint8" else -3, 4, shape) for shape in ((m, k), (k, n)))
    given = [x if a_order == "row_major" else x.T, y if b_order == "row_major" else y.T]
    made = [np.ascontiguousarray(a).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) for a in given]
    return made, np.zeros((m, n), out), (x @ y).astype(out)


# --- a convolution whose intrinsics make the calls themselves -----------------------------------------------------------------

TILE = 16


def call(name, *args):
    return tir.Evaluate(tir.call_intrin("handle", f"tir.tvm_{name}", *args))


def whole_tile(tensor, scope):
    """A buffer of 256 elements in a row, so that its offset numbers the fragments of its memory."""
    return tir.decl_buffer(tensor.shape, tensor.dtype, tensor.op.name, scope=scope, offset_factor=TILE * TILE)


def fragment(buffer):
    return buffer.data, buffer.elem_offset // (TILE * TILE)


def tile_copy(dtype, source, target):
    """Copies a tile between fragments, of which one of the scopes is, and other memory."""
    x = te.placeholder((TILE, TILE), dtype, name="x")
    y = te.compute(x.shape, lambda i, j: x[i, j], name="y")

    def part(ins, outs):
        stored = source.startswith("wmma")
        held, other = (ins[0], outs[0]) if stored else (outs[0], ins[0])
        data, number = fragment(held)
        return call("store_matrix_sync" if stored else "load_matrix_sync", data, TILE, TILE, TILE, number,
                    other.access_ptr("w" if stored else "r"), TILE, "row_major")

    return te.decl_tensor_intrin(y.op, part, binds={x: whole_tile(x, source), y: whole_tile(y, target)})


def tile_product():
    """Adds the product of two tiles of float16 to one of float32."""
    a, b = (te.placeholder((TILE, TILE), "float16", name=name) for name in "ab")
    k = te.reduce_axis((0, TILE), "k")
    c = te.compute(a.shape, lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), name="c")

    def parts(ins, outs):
        data, number = fragment(outs[0])
        fill = call("fill_fragment", data, TILE, TILE, TILE, number, 0.0)
        add = call("mma_sync", data, number, *fragment(ins[0]), *fragment(ins[1]), data, number)
        return add, fill, add

    scopes = {a: "wmma.matrix_a", b: "wmma.matrix_b", c: "wmma.accumulator"}
    return te.decl_tensor_intrin(c.op, parts, binds={t: whole_tile(t, scope) for t, scope in scopes.items()})


def convolution(batch=32, size=3, channels=32, filters=64, warps=2):
    """A convolution of 3 x 3 in f16, a border of zeros around, of tiles of 16 images by 16 channels: a block for each place and
    each pair of tiles of filters, a warp for each of these.
    """
    images, inner, outer = batch // TILE, channels // TILE, filters // TILE
    X = te.placeholder((images, size, size, inner, TILE, TILE), "float16", name="X")
    W = te.placeholder((3, 3, inner, outer, TILE, TILE), "float16", name="W")
    bordered = te.compute((images, size + 2, size + 2, *X.shape[3:]), lambda b, y, x, *rest: tir.if_then_else(
        tir.all(y > 0, y <= size, x > 0, x <= size), X(b, y - 1, x - 1, *rest), te.const(0, "float16")), name="bordered")
    dy, dx, c, p = (te.reduce_axis((0, extent), name) for extent, name in ((3, "dy"), (3, "dx"), (inner, "c"), (TILE, "p")))
    Y = te.compute((images, size, size, outer, TILE, TILE), lambda b, y, x, o, i, j: te.sum(
        bordered[b, y + dy, x + dx, c, i, p].astype("float32") * W[dy, dx, c, o, p, j].astype("float32"),
        axis=[dy, dx, c, p]), name="Y")

    s = te.create_schedule(Y.op)
    s[bordered].compute_inline()
    shared = [s.cache_read(tensor, "shared", [Y]) for tensor in (bordered, W)]
    held = [s.cache_read(tensor, f"wmma.matrix_{name}", [Y]) for tensor, name in zip(shared, "ab")]
    sums = s.cache_write(Y, "wmma.accumulator")

    b, y, x, o, i, j = s[Y].op.axis
    pairs, warp = s[Y].split(o, warps)
    s[Y].bind(s[Y].fuse(b, y, x), te.thread_axis("blockIdx.x"))
    s[Y].bind(pairs, te.thread_axis("blockIdx.y"))
    s[Y].bind(warp, te.thread_axis("threadIdx.y"))
    s[Y].tensorize(i, tile_copy("float32", "wmma.accumulator", "global"))

    s[sums].compute_at(s[Y], warp)
    i, j = s[sums].op.axis[-2:]
    dy, dx, c, p = s[sums].op.reduce_axis
    s[sums].reorder(dy, dx, c, *s[sums].op.axis, p)
    s[sums].tensorize(i, tile_product())
    for tensor, name in zip(held, "ab"):
        s[tensor].compute_at(s[sums], c)
        s[tensor].tensorize(s[tensor].op.axis[-2], tile_copy("float16", "shared", f"wmma.matrix_{name}"))
    for tensor in shared:
        s[tensor].compute_at(s[sums], dx)
        elements, lanes = s[tensor].split(s[tensor].fuse(*s[tensor].op.axis), 8)
        s[tensor].vectorize(lanes)
        by_threads(s, tensor, elements, (1, warps))
    return s, [X, W, Y]


def convolved(a, w):
    """What `convolution` computes, by numpy."""
    blocks, h, wide, ic, bn, bi = a.shape
    x = a.astype("float32").transpose(0, 4, 1, 2, 3, 5).reshape(blocks * bn, h, wide, ic * bi)
    kernel = w.astype("float32").transpose(0, 1, 2, 4, 3, 5).reshape(3, 3, ic * bi, -1)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = sum(np.einsum("nhwc,co->nhwo", padded[:, i:i + h, j:j + wide], kernel[i, j]) for i in range(3) for j in range(3))
    return out.reshape(blocks, bn, h, wide, w.shape[3], w.shape[5]).transpose(0, 2, 3, 4, 1, 5)
