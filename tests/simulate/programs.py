"""Schedules for devices, as programs of the simulator's tests: each with its values by numpy, most with shared memory."""

import functools

import numpy as np

from tedsl import te
from tests.passes.device.test_share_memory import chain, chained

X, Y, Z = "x", "y", "z"


def thread(axis):
    return te.thread_axis(f"threadIdx.{axis}")


def block(axis):
    return te.thread_axis(f"blockIdx.{axis}")


def share(s, tensor, reader, at, threads):
    """A copy of what `reader` reads of a tensor, in shared memory, loaded by all threads ((axis, count), ...) together."""
    copy = s.cache_read(tensor, "shared", [reader])
    s[copy].compute_at(s[reader], at)
    load(s, copy, threads)
    return copy


def load(s, copy, threads):
    rest = s[copy].fuse(*s[copy].op.axis)
    for axis, count in threads:
        rest, inner = s[copy].split(rest, count)
        s[copy].bind(inner, thread(axis))


def vector_add(n=1000, threads=64, dtype="float32"):
    A, B = te.placeholder((n,), dtype, name="A"), te.placeholder((n,), dtype, name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], threads)
    s[C].bind(outer, block(X))
    s[C].bind(inner, thread(X))
    return s, [A, B, C], lambda a, b: a + b


def matmul(m=32, n=32, k=32, tile=16, step=8, each=2, dtype="float32", virtual=False):
    """A product by tiles in shared memory, each thread computing each x each elements, next to each other or far apart."""
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = te.create_schedule(C.op)
    local = s.cache_write(C, "local")
    i, j = s[C].op.axis
    bi, i = s[C].split(i, tile)
    bj, j = s[C].split(j, tile)
    if virtual:
        vi, ti = s[C].split(i, nparts=each)
        vj, tj = s[C].split(j, nparts=each)
        s[C].reorder(bi, bj, vi, vj, ti, tj)
        s[C].bind(vi, te.thread_axis("vthread", name="vy"))
        s[C].bind(vj, te.thread_axis("vthread", name="vx"))
    else:
        ti, i = s[C].split(i, each)
        tj, j = s[C].split(j, each)
        s[C].reorder(bi, bj, ti, tj, i, j)
    for loop, axis in ((bi, block(Y)), (bj, block(X)), (ti, thread(Y)), (tj, thread(X))):
        s[C].bind(loop, axis)
    s[local].compute_at(s[C], tj)
    outer, inner = s[local].split(s[local].op.reduce_axis[0], step)
    s[local].reorder(outer, inner, *s[local].op.axis)
    for tensor in (A, B):
        share(s, tensor, local, outer, ((X, tile // each), (Y, tile // each)))
    return s, [A, B, C], lambda a, b: a @ b


def row_sums(rows=16, columns=100, threads=64, rows_of_block=1):
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    i, = s[B].op.axis
    outer, inner = s[B].split(i, rows_of_block)
    s[B].bind(outer, block(X))
    s[B].bind(inner, thread(Y))
    _, kt = s[B].split(s[B].op.reduce_axis[0], threads)
    s[B].bind(kt, thread(X))
    return s, [A, B], lambda a: a.sum(axis=1)


def softmax(rows=8, columns=100, threads=64):
    A = te.placeholder((rows, columns), name="A")
    k, l = te.reduce_axis((0, columns), name="k"), te.reduce_axis((0, columns), name="l")
    top = te.compute((rows,), lambda i: te.max(A[i, k], axis=k), name="top")
    e = te.compute((rows, columns), lambda i, j: te.exp(A[i, j] - top[i]), name="e")
    total = te.compute((rows,), lambda i: te.sum(e[i, l], axis=l), name="total")
    out = te.compute((rows, columns), lambda i, j: e[i, j] / total[i], name="out")
    s = te.create_schedule(out.op)
    i, j = s[out].op.axis
    s[out].bind(i, block(X))
    _, jt = s[out].split(j, threads)
    s[out].bind(jt, thread(X))
    for tensor in (top, e, total):
        s[tensor].set_scope("shared")
        s[tensor].compute_at(s[out], i)
    _, et = s[e].split(s[e].op.axis[1], threads)
    s[e].bind(et, thread(X))
    for tensor in (top, total):
        _, kt = s[tensor].split(s[tensor].op.reduce_axis[0], threads)
        s[tensor].bind(kt, thread(X))

    def values(a):
        powers = np.exp(a - a.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    return s, [A, out], values


def transpose(n=48, tile=16, rows=4, pad=0, dtype="float32"):
    A = te.placeholder((n, n), dtype, name="A")
    B = te.compute((n, n), lambda i, j: A[j, i] + A[j, i], name="B")
    s = te.create_schedule(B.op)
    copy = s.cache_read(A, "shared", [B])
    i, j = s[B].op.axis
    bi, i = s[B].split(i, tile)
    bj, j = s[B].split(j, tile)
    s[B].reorder(bi, bj, i, j)
    s[B].bind(bi, block(Y))
    s[B].bind(bj, block(X))
    _, ti = s[B].split(i, rows)
    s[B].bind(ti, thread(Y))
    s[B].bind(j, thread(X))
    s[copy].compute_at(s[B], bj)
    if pad:
        s[copy].storage_align(s[copy].op.axis[0], tile * 2, pad)
    p, q = s[copy].op.axis
    _, tp = s[copy].split(p, rows)
    s[copy].bind(tp, thread(Y))
    s[copy].bind(q, thread(X))
    return s, [A, B], lambda a: 2 * a.T


def blur(n=200, radius=2, threads=50):
    """A sum of neighbours from a line in shared memory."""
    A = te.placeholder((n + 2 * radius,), name="A")
    k = te.reduce_axis((0, 2 * radius + 1), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i + k], axis=k), name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], threads)
    s[B].bind(outer, block(X))
    s[B].bind(inner, thread(X))
    share(s, A, B, outer, ((X, threads),))
    return s, [A, B], lambda a: sum(a[d:d + n] for d in range(2 * radius + 1)).astype(a.dtype)


def convolution(channels=3, size=12, filters=4, width=3, threads=5):
    A = te.placeholder((channels, size, size), name="A")
    W = te.placeholder((filters, channels, width, width), name="W")
    out = size - width + 1
    c, u, v = (te.reduce_axis((0, n), name=name) for n, name in ((channels, "c"), (width, "u"), (width, "v")))
    C = te.compute((filters, out, out), lambda f, y, x: te.sum(A[c, y + u, x + v] * W[f, c, u, v], axis=[c, u, v]), name="C")
    s = te.create_schedule(C.op)
    local = s.cache_write(C, "local")
    f, y, x = s[C].op.axis
    fo, fi = s[C].split(f, 2)
    xo, xt = s[C].split(x, threads)
    s[C].reorder(fo, y, xo, xt, fi)
    for loop, axis in ((fo, block(Z)), (y, block(Y)), (xo, block(X)), (xt, thread(X))):
        s[C].bind(loop, axis)
    s[local].compute_at(s[C], xt)
    c, u, v = s[local].op.reduce_axis
    s[local].reorder(c, u, v, *s[local].op.axis)
    for tensor in (A, W):
        share(s, tensor, local, c, ((X, threads),))

    def values(a, w):
        made = np.zeros((filters, out, out), np.float32)
        for p in range(width):
            for q in range(width):
                made += np.einsum("cyx,fc->fyx", a[:, p:p + out, q:q + out], w[:, :, p, q])
        return made

    return s, [A, W, C], values


def stages(n=256, threads=64, steps=2):
    """Stages in shared memory, each reading its neighbour's element of the one before."""
    A = te.placeholder((n,), name="A")
    tensors = [A]
    for step in range(steps):
        before = tensors[-1]
        tensors.append(te.compute((n,), lambda i, p=before, d=step: p[(i // threads) * threads + (i + 1) % threads] * 2.0,
                                  name=f"T{step}"))
    s = te.create_schedule(tensors[-1].op)
    last = tensors[-1]
    outer, inner = s[last].split(last.op.axis[0], threads)
    s[last].bind(outer, block(X))
    s[last].bind(inner, thread(X))
    for tensor in tensors[1:-1]:
        s[tensor].set_scope("shared")
        s[tensor].compute_at(s[last], outer)
        _, t = s[tensor].split(tensor.op.axis[0], threads)
        s[tensor].bind(t, thread(X))

    def values(a):
        for _ in range(steps):
            a = np.roll(a.reshape(-1, threads), -1, axis=1).reshape(-1) * 2
        return a.astype(np.float32)

    return s, [A, last], values


def column_sums(rows=40, columns=64, threads=16, parts=4):
    """Sums over the first axis: parts of it in parallel, joined across threads."""
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, rows), name="k")
    B = te.compute((columns,), lambda j: te.sum(A[k, j], axis=k), name="B")
    s = te.create_schedule(B.op)
    j, = s[B].op.axis
    bj, tj = s[B].split(j, threads)
    s[B].bind(bj, block(X))
    s[B].bind(tj, thread(X))
    _, kt = s[B].split(s[B].op.reduce_axis[0], parts)
    s[B].bind(kt, thread(Y))
    return s, [A, B], lambda a: a.sum(axis=0)


def phases(dtypes=("float16", "int32"), each=3, **options):
    """Buffers of two dtypes that have the same shared memory, one after the other in each iteration."""
    s, args, *_ = chain(dtypes=dtypes, each=each, **options)
    return s, args, lambda a: chained(a, dtypes[1])


CASES = {
    **{f"matmul_{tile}_{step}_{each}": functools.partial(matmul, tile=tile, step=step, each=each)
       for tile, step, each in ((16, 8, 2), (16, 4, 1), (8, 8, 1), (32, 16, 4), (16, 16, 4), (8, 4, 2), (32, 8, 2))},
    **{f"matmul_virtual_{tile}_{step}": functools.partial(matmul, tile=tile, step=step, virtual=True)
       for tile, step in ((16, 8), (8, 4), (32, 8))},
    **{f"matmul_{m}_{n}_{k}": functools.partial(matmul, m, n, k)
       for m, n, k in ((30, 32, 32), (32, 23, 17), (40, 40, 20), (17, 9, 5))},
    "matmul_f64": functools.partial(matmul, dtype="float64"), "matmul_i32": functools.partial(matmul, dtype="int32"),
    **{f"transpose_{n}_{tile}_{pad}": functools.partial(transpose, n, tile, 4, pad)
       for n, tile, pad in ((48, 16, 0), (48, 16, 1), (50, 16, 0), (32, 8, 0), (64, 32, 1), (33, 8, 0))},
    "transpose_f16": functools.partial(transpose, dtype="float16"), "transpose_i8": functools.partial(transpose, dtype="int8"),
    **{f"blur_{n}_{radius}_{threads}": functools.partial(blur, n, radius, threads)
       for n, radius, threads in ((200, 2, 50), (100, 1, 20), (96, 4, 32), (77, 3, 16), (256, 8, 128), (60, 5, 64))},
    **{f"convolution_{threads}_{channels}": functools.partial(convolution, channels, threads=threads)
       for threads, channels in ((5, 3), (10, 2), (2, 1), (4, 3))},
    **{f"stages_{threads}_{steps}": functools.partial(stages, 256, threads, steps)
       for threads, steps in ((64, 2), (64, 3), (32, 4), (128, 2), (16, 3), (256, 2))},
    **{f"softmax_{columns}_{threads}": functools.partial(softmax, 6, columns, threads)
       for columns, threads in ((100, 64), (64, 32), (33, 16), (200, 128), (96, 96))},
    **{f"row_sums_{columns}_{threads}_{each}": functools.partial(row_sums, 16, columns, threads, each)
       for columns, threads, each in ((100, 64, 1), (256, 128, 2), (64, 256, 1), (100, 96, 2), (1000, 512, 1))},
    **{f"column_sums_{threads}_{parts}": functools.partial(column_sums, 40, 64, threads, parts)
       for threads, parts in ((16, 4), (32, 8), (8, 16), (64, 2))},
    "phases": phases, "phases_at_once": functools.partial(phases, each=1),
    "phases_f64_i8": functools.partial(phases, ("float64", "int8"), 2),
    "phases_dynamic": functools.partial(phases, scopes=("shared.dyn", "shared.dyn")),
}
WITHOUT_SHARED = {"vector_add": vector_add, "vector_add_f16": functools.partial(vector_add, dtype="float16"),
                  "row_sums_in_warps": functools.partial(row_sums, threads=8, rows_of_block=4),
                  "row_sums_by_warps": functools.partial(row_sums, threads=32, rows_of_block=2)}


def inputs(args, seed=0):
    """Random values for all but the last of the arguments."""
    rng = np.random.default_rng(seed)
    made = []
    for arg in args[:-1]:
        shape = [int(extent) for extent in arg.shape]
        drawn = rng.random(shape) if arg.dtype.startswith("float") else rng.integers(0, 10, shape)
        made.append(drawn.astype(arg.dtype))
    return made
