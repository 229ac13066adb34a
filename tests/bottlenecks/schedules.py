"""Schedules with one planted mistake each, and good ones: functions that return a schedule and its arguments."""

import functools

import tedsl
from tedsl import te

LANES = tedsl.Target("llvm").vector_lanes("float32")
WIDE = 2 * LANES  # columns of a tile that is good here
TALL = 8 if LANES == 16 else 4  # its rows: all its sums fit the registers


def product(n=256, m=None, k=None, dtype="float32"):
    m, k = m or n, k or n
    A, B = te.placeholder((n, k), dtype, name="A"), te.placeholder((k, m), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return te.create_schedule(C.op), A, B, C, r


def copied(shape=(1024, 1024)):
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A(*i) * 2.0 + 1.0, name="B")
    return te.create_schedule(B.op), A, B


def tiled(s, C, k, rows=4, columns=WIDE, parallel=True):
    """A tile of results in registers."""
    i, j = s[C].op.axis
    io, ii = s[C].split(i, rows)
    jo, ji = s[C].split(j, columns)
    s[C].reorder(io, jo, k, ii, ji)
    s[C].unroll(ii)
    s[C].vectorize(ji)
    if parallel:
        s[C].parallel(io)
    return io, jo, ji


# --- the twenty -----------------------------------------------------------------------------------------------------------

def strided_vectors():
    s, A, B = copied()
    i, j = s[B].op.axis
    io, ii = s[B].split(i, 16)
    s[B].reorder(io, j, ii)
    s[B].vectorize(ii)
    s[B].parallel(io)
    return "gather", s, [A, B]


def gathered_operand():
    A = te.placeholder((48, 48), name="A")  # it stays in the nearest cache, the result in the second
    B = te.compute((16, 48, 48), lambda n, i, j: A[j, i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(s[B].split(s[B].op.axis[2], 16)[1])
    return "gather", s, [A, B]


def no_blocking():
    s, A, B, C, k = product(512)
    i, j = s[C].op.axis
    s[C].reorder(i, k, j)
    s[C].vectorize(s[C].split(j, LANES)[1])
    s[C].parallel(i)
    return "blocking", s, [A, B, C]


def no_blocking_in_caches():
    A, B = te.placeholder((64, 1024), name="A"), te.placeholder((8192 // WIDE, 1024, WIDE), name="B")
    k = te.reduce_axis((0, 1024), name="k")
    C = te.compute((64, 8192), lambda i, j: te.sum(A[i, k] * B[j // WIDE, k, j % WIDE], axis=k), name="C")
    s = te.create_schedule(C.op)
    tiled(s, C, k, TALL)
    return "blocking", s, [A, B, C]


def guard():
    A, B = te.placeholder((256, 256), name="A"), te.placeholder((256, 256), name="B")
    k = te.reduce_axis((0, 256), name="k")
    C = te.compute((256, 256), lambda i, j: te.sum(te.if_then_else((j + k) % 3 == 0, 0.0, A[i, k] * B[j, k]), axis=k), name="C")
    s = te.create_schedule(C.op)
    s[C].parallel(C.op.axis[0])
    return "guard", s, [A, B, C]


def small_chunks():
    s, A, B = copied((2048, 256))
    i, j = s[B].op.axis
    jo, ji = s[B].split(j, 16)
    s[B].vectorize(ji)
    s[B].parallel(jo)
    return "chunks", s, [A, B]


def nothing_packed():
    s, A, B, C, k = product(2048, 1024, 128)
    tiled(s, C, k)
    return "packing", s, [A, B, C]


def too_many_accumulators():
    s, A, B, C, k = product(256)
    tiled(s, C, k, 16, 64)
    return "spills", s, [A, B, C]


def wrong_order():
    s, A, B = copied()
    i, j = s[B].op.axis
    io, ii = s[B].split(i, 64)
    s[B].reorder(io, j, ii)
    s[B].parallel(io)
    return "order", s, [A, B]


def scalar_innermost():
    s, A, B, C, k = product(256)
    s[C].parallel(s[C].op.axis[0])
    return "scalar", s, [A, B, C]


def unrolled_too_far():
    s, A, B = polynomial((64, 128 * LANES), 37)  # beyond what is kept decoded, half again as much
    i, j = s[B].op.axis
    jo, ji = s[B].split(j, 16)
    s[B].vectorize(ji)
    s[B].unroll(jo)
    s[B].parallel(i)
    return "unrolled", s, [A, B]


def recomputed():
    A = te.placeholder((256, 256), name="A")
    P = te.compute((256, 256), lambda i, j: te.exp(te.sin(A[i, j])), name="P")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((240, 256), lambda i, j: te.sum(P[i + k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    i, j = s[C].op.axis
    jo, ji = s[C].split(j, 16)
    s[C].reorder(i, jo, k, ji)
    s[C].vectorize(ji)
    s[C].parallel(i)
    s[P].compute_at(s[C], i)
    s[P].vectorize(s[P].split(s[P].op.axis[1], 16)[1])
    return "recomputed", s, [A, C]


def recomputed_for_each_tile():
    A, B = te.placeholder((256, 256), name="A"), te.placeholder((256, 256), name="B")
    P = te.compute((256, 256), lambda i, j: te.exp(te.sin(A[i, j]) * te.log(A[i, j] + 2.0)), name="P")
    k = te.reduce_axis((0, 256), name="k")
    C = te.compute((256, 256), lambda i, j: te.sum(P[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    io, jo, _ = tiled(s, C, k, 8, LANES)
    s[P].compute_at(s[C], jo)
    s[P].vectorize(s[P].split(s[P].op.axis[1], 16)[1])
    return "recomputed", s, [A, B, C]


def false_sharing():
    A = te.placeholder((4, 1 << 14), name="A")
    k = te.reduce_axis((0, 1 << 14), name="k")
    B = te.compute((64, 4), lambda r, t: te.sum(A[t, k] * (r + 1.0), axis=k), name="B")
    s = te.create_schedule(B.op)
    r, t = s[B].op.axis
    s[B].reorder(t, k, r)
    s[B].parallel(t)
    return "false sharing", s, [A, B]


def one_thread():
    s, A, B, C, k = product()
    tiled(s, C, k, parallel=False)
    return "serial", s, [A, B, C]


def too_few_iterations():
    s, A, B = polynomial((3, 1 << 16), 30)
    i, j = s[B].op.axis
    s[B].vectorize(s[B].split(j, 16)[1])
    s[B].parallel(i)
    return "uneven", s, [A, B]


def polynomial(shape, terms):
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: functools.reduce(lambda sum, k: sum * 0.9 + 0.5 / k, range(1, terms), A(*i)), name="B")
    return te.create_schedule(B.op), A, B


def narrow_vectors():
    s, A, B = polynomial((512, 512), 12)
    i, j = s[B].op.axis
    s[B].vectorize(s[B].split(j, 2)[1])
    s[B].parallel(i)
    return "narrow", s, [A, B]


def too_few_accumulators():
    s, A, B, C, k = product(512, 16, 1024)
    i, j = s[C].op.axis
    s[C].reorder(i, k, j)
    s[C].vectorize(j)
    s[C].parallel(i)
    return "chains", s, [A, B, C]


def through_memory():
    A = te.placeholder((2048, 2048), name="A")
    P = te.compute((2048, 2048), lambda i, j: A[i, j] * 3.0, name="P")
    B = te.compute((2048, 2048), lambda i, j: P[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    for stage in (P, B):
        i, j = s[stage].op.axis
        s[stage].vectorize(s[stage].split(j, 16)[1])
        s[stage].parallel(i)
    return "intermediate", s, [A, B]


def columns_first():
    A = te.placeholder((1024, 1024), name="A")
    k = te.reduce_axis((0, 1024), name="k")
    B = te.compute((1024,), lambda j: te.sum(A[k, j], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].parallel(s[B].op.axis[0])
    return "scalar", s, [A, B]


BAD = [strided_vectors, gathered_operand, no_blocking, no_blocking_in_caches, guard, small_chunks, nothing_packed,
       too_many_accumulators, wrong_order, scalar_innermost, unrolled_too_far, recomputed, recomputed_for_each_tile,
       false_sharing, one_thread, too_few_iterations, narrow_vectors, too_few_accumulators, through_memory, columns_first]


# --- good ones ------------------------------------------------------------------------------------------------------------

def good_copy():
    s, A, B = copied()
    i, j = s[B].op.axis
    s[B].vectorize(s[B].split(j, 16)[1])
    s[B].parallel(i)
    return s, [A, B]


def good_product():
    A, B = te.placeholder((256, 256), name="A"), te.placeholder((256 // WIDE, 256, WIDE), name="B")
    k = te.reduce_axis((0, 256), name="k")
    C = te.compute((256, 256), lambda i, j: te.sum(A[i, k] * B[j // WIDE, k, j % WIDE], axis=k), name="C")
    s = te.create_schedule(C.op)
    tiled(s, C, k, TALL)
    return s, [A, B, C]


GOOD = [good_copy, good_product]
