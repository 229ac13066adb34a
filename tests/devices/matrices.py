"""Products by tensor cores: schedules with the shipped intrinsics, and one as TVM's tutorials write them."""

import ml_dtypes
import numpy as np

from tedsl import te, tir
from tedsl.contrib import intrinsics

ORDERS = ("row_major", "col_major")


def product(size, shape=(16, 16, 16), dtype="float16", out="float32", a_order="row_major", b_order="row_major", warps=(1, 1),
            tiles=(1, 1), step=1, loaded=None):
    """c = a b of size (m, n, k): blocks of warps, warps of tiles, `step` products of tiles between two barriers.

    loaded: the orders in which a and b are loaded, where those are not the orders of the product.
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


# --- a convolution as a published tutorial has it, with its own calls --------------------------------------------------------

def buffer(tensor, scope, name="buffer"):
    return tir.decl_buffer(tensor.shape, tensor.dtype, name=name, scope=scope, data_alignment=32, offset_factor=256)


def intrin_wmma_load_matrix(scope, n=16):
    A = te.placeholder((n, n), name="A", dtype="float16")
    C = te.compute((n, n), lambda i, j: A[i, j], name="C")

    def intrin_func(ins, outs):
        ib = tir.ir_builder.create()
        BA, BC = ins[0], outs[0]
        ib.emit(tir.call_intrin("handle", "tir.tvm_load_matrix_sync", BC.data, n, n, n, BC.elem_offset // 256,
                                BA.access_ptr("r"), n, "row_major"))
        return ib.get()

    return te.decl_tensor_intrin(C.op, intrin_func, binds={A: buffer(A, "shared"), C: buffer(C, scope)})


def intrin_wmma_gemm(n=16):
    A, B = te.placeholder((n, n), name="A", dtype="float16"), te.placeholder((n, n), name="B", dtype="float16")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda ii, jj: te.sum(A[ii, k].astype("float") * B[k, jj].astype("float"), axis=k), name="C")

    def intrin_func(ins, outs):
        (BA, BB), (BC,) = ins, outs

        def init():
            ib = tir.ir_builder.create()
            ib.emit(tir.call_intrin("handle", "tir.tvm_fill_fragment", BC.data, n, n, n, BC.elem_offset // 256, 0.0))
            return ib.get()

        def update():
            ib = tir.ir_builder.create()
            ib.emit(tir.call_intrin("handle", "tir.tvm_mma_sync", BC.data, BC.elem_offset // 256, BA.data,
                                    BA.elem_offset // 256, BB.data, BB.elem_offset // 256, BC.data, BC.elem_offset // 256))
            return ib.get()

        return update(), init(), update()

    return te.decl_tensor_intrin(C.op, intrin_func, binds={A: buffer(A, "wmma.matrix_a"), B: buffer(B, "wmma.matrix_b"),
                                                           C: buffer(C, "wmma.accumulator")})


def intrin_wmma_store_matrix(n=16):
    A = te.placeholder((n, n), name="A", dtype="float32")
    C = te.compute((n, n), lambda i, j: A[i, j], name="C")

    def intrin_func(ins, outs):
        ib = tir.ir_builder.create()
        BA, BC = ins[0], outs[0]
        ib.emit(tir.call_intrin("handle", "tir.tvm_store_matrix_sync", BA.data, n, n, n, BA.elem_offset // 256,
                                BC.access_ptr("w"), n, "row_major"))
        return ib.get()

    return te.decl_tensor_intrin(C.op, intrin_func, binds={A: buffer(A, "wmma.accumulator"), C: buffer(C, "global")})


def convolution(batch=32, size=3, channels=32, filters=64, warps=(1, 2), tiles=(2, 2), chunk=1):
    """A convolution of 3 x 3 in f16 over blocks of 16 images and 16 channels."""
    A = te.placeholder((batch // 16, size, size, channels // 16, 16, 16), name="A", dtype="float16")
    W = te.placeholder((3, 3, channels // 16, filters // 16, 16, 16), name="W", dtype="float16")
    kh, kw = te.reduce_axis((0, 3), name="kh"), te.reduce_axis((0, 3), name="kw")
    ic, ii = te.reduce_axis((0, channels // 16), name="ic"), te.reduce_axis((0, 16), name="ii")
    padded = te.compute(
        (batch // 16, size + 2, size + 2, channels // 16, 16, 16),
        lambda n, h, w, i, nn, ii: tir.if_then_else(tir.all(h >= 1, h - 1 < size, w >= 1, w - 1 < size),
                                                    A[n, h - 1, w - 1, i, nn, ii], tir.const(0.0, "float16")), name="Apad")
    conv = te.compute(
        (batch // 16, size, size, filters // 16, 16, 16),
        lambda n, h, w, o, nn, oo: te.sum(padded[n, h + kh, w + kw, ic, nn, ii].astype("float32")
                                          * W[kh, kw, ic, o, ii, oo].astype("float32"), axis=[ic, kh, kw, ii]), name="Conv")
    s = te.create_schedule(conv.op)
    s[padded].compute_inline()
    AS, WS = s.cache_read(padded, "shared", [conv]), s.cache_read(W, "shared", [conv])
    AF, WF = s.cache_read(AS, "wmma.matrix_a", [conv]), s.cache_read(WS, "wmma.matrix_b", [conv])
    ConvF = s.cache_write(conv, "wmma.accumulator")
    x, y, z = (te.thread_axis(f"threadIdx.{axis}") for axis in "xyz")

    nc, hc, wc, oc, nnc, ooc = conv.op.axis
    block_k = s[conv].fuse(hc, wc)
    s[conv].bind(block_k, te.thread_axis("blockIdx.z"))
    nc, nci = s[conv].split(nc, factor=tiles[0])
    block_i, nc = s[conv].split(nc, factor=warps[0])
    oc, oci = s[conv].split(oc, factor=tiles[1])
    block_j, oc = s[conv].split(oc, factor=warps[1])
    s[conv].reorder(block_k, block_i, block_j, nc, oc, nci, oci, nnc, ooc)
    s[conv].bind(block_i, te.thread_axis("blockIdx.x"))
    s[conv].bind(block_j, te.thread_axis("blockIdx.y"))
    s[conv].bind(nc, y)
    s[conv].bind(oc, z)

    s[ConvF].compute_at(s[conv], oc)
    n, _, _, o, nnf, oof = ConvF.op.axis
    ko, ki = s[ConvF].split(ic, factor=chunk)
    s[ConvF].reorder(ko, kh, ki, kw, n, o, nnf, oof, ii)
    for stage, loop in ((AF, kw), (WF, kw), (WS, kh), (AS, kh)):
        s[stage].compute_at(s[ConvF], loop)
    fill_shared(s, AS, AS.op.axis[0], warps, (y, z, x))
    fill_shared(s, WS, WS.op.axis[3], warps, (y, z, x), wide=True)

    s[AF].tensorize(AF.op.axis[-2], intrin_wmma_load_matrix("wmma.matrix_a"))
    s[WF].tensorize(WF.op.axis[-2], intrin_wmma_load_matrix("wmma.matrix_b"))
    s[conv].tensorize(nnc, intrin_wmma_store_matrix())
    s[ConvF].tensorize(nnf, intrin_wmma_gemm())
    return s, [A, W, conv]


def fill_shared(s, stage, tiles, warps, threads, wide=False):
    rows, rest = s[stage].split(tiles, nparts=warps[0])
    columns, _ = s[stage].split(rest, nparts=warps[1])
    inside = s[stage].fuse(*stage.op.axis[-2:])
    outer, inner = s[stage].split(inside, **({"nparts": 32} if wide else {"factor": 32}))
    for loop, thread in zip((rows, columns, outer if wide else inner), threads):
        s[stage].bind(loop, thread)
    if wide:
        s[stage].vectorize(inner)


def convolved(a, w):
    """What `convolution` computes, by numpy."""
    blocks, h, wide, ic, bn, bi = a.shape
    x = a.astype("float32").transpose(0, 4, 1, 2, 3, 5).reshape(blocks * bn, h, wide, ic * bi)
    kernel = w.astype("float32").transpose(0, 1, 2, 4, 3, 5).reshape(3, 3, ic * bi, -1)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = sum(np.einsum("nhwc,co->nhwo", padded[:, i:i + h, j:j + wide], kernel[i, j]) for i in range(3) for j in range(3))
    return out.reshape(blocks, bn, h, wide, w.shape[3], w.shape[5]).transpose(0, 2, 3, 4, 1, 5)
