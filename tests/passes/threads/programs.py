"""Schedules for a GPU as people write them, and what must hold of each: it means the same in every form, on every machine."""

import numpy as np

import tedsl
from tedsl import te
from tedsl.ir.evaluate import run
from tedsl.ir.verify import verify
from tedsl.lower.lower import lower_schedule
from tedsl.passes.machine.lower_threads import lower_threads
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.insert_barriers import insert_barriers


def vector_add(n, factor=8):
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    block, thread = s[C].split(C.op.axis[0], factor=factor)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [A, B, C]


def tiled_matmul(n, m, depth, threads=4, virtual=2, scale=2, step=8):
    """Tiles of both factors in shared memory, loaded by all threads together; a tile of the result per thread, with virtual
    threads far apart."""
    A, B = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    AS, BS = s.cache_read(A, "shared", [C]), s.cache_read(B, "shared", [C])
    AL, BL = s.cache_read(AS, "local", [C]), s.cache_read(BS, "local", [C])
    CL = s.cache_write(C, "local")
    ty, tx = te.thread_axis((0, threads), "threadIdx.y"), te.thread_axis((0, threads), "threadIdx.x")
    outside, between, inside = [], [], []
    for axis, (block, thread, far) in zip(s[C].op.axis, (("blockIdx.y", ty, "vy"), ("blockIdx.x", tx, "vx"))):
        outer, inner = s[C].split(axis, factor=threads * scale * virtual)
        apart, inner = s[C].split(inner, nparts=virtual)
        own, inner = s[C].split(inner, nparts=threads)
        s[C].bind(outer, te.thread_axis(block))
        s[C].bind(apart, te.thread_axis((0, virtual), "vthread", name=far))
        s[C].bind(own, thread)
        outside.append(outer)
        between += [apart]
        inside += [own, inner]
    s[C].reorder(*outside, *between, inside[0], inside[2], inside[1], inside[3])
    s[CL].compute_at(s[C], inside[2])
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], factor=step)
    s[CL].reorder(ko, ki, *s[CL].op.axis)
    for tile in (AS, BS):
        s[tile].compute_at(s[CL], ko)
        y, yi = s[tile].split(s[tile].op.axis[0], nparts=threads)
        x, xi = s[tile].split(s[tile].op.axis[1], nparts=threads)
        s[tile].reorder(y, x, yi, xi)
        s[tile].bind(y, ty)
        s[tile].bind(x, tx)
    for tile in (AL, BL):
        s[tile].compute_at(s[CL], ki)
    return s, [A, B, C]


def row_sums(n, m, threads=8, rows=4, factored=True, reduce=te.sum):
    """Each row by the threads of one row of a block: partial sums in registers, combined across the threads."""
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: reduce(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(s[B].op.reduce_axis[0], factor=threads)
    tx = te.thread_axis("threadIdx.x")
    if factored:
        partial = s.rfactor(B, inner)
        inner = s[B].op.reduce_axis[0]
        s[partial].compute_at(s[B], inner)
    block, row = s[B].split(s[B].op.axis[0], factor=rows)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(row, te.thread_axis("threadIdx.y"))
    s[B].bind(inner, tx)
    s[B].set_store_predicate(tx.var.equal(0))
    return s, [A, B]


def softmax(n, m, threads=8):
    """A block per row: maximum and sum across the threads, kept in shared memory."""
    A = te.placeholder((n, m), name="A")
    k, l = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="l")
    top = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="top")
    e = te.compute((n, m), lambda i, j: te.exp(A[i, j] - top[i]), name="e")
    total = te.compute((n,), lambda i: te.sum(e[i, l], axis=l), name="total")
    out = te.compute((n, m), lambda i, j: e[i, j] / total[i], name="out")
    s = te.create_schedule(out.op)
    tx = te.thread_axis("threadIdx.x")
    row, column = s[out].op.axis
    _, lane = s[out].split(column, factor=threads)
    s[out].bind(row, te.thread_axis("blockIdx.x"))
    s[out].bind(lane, tx)
    for stage in (top, total):
        _, inner = s[stage].split(s[stage].op.reduce_axis[0], factor=threads)
        s[stage].compute_at(s[out], row)
        s[stage].set_scope("shared")
        s[stage].bind(inner, tx)
        s[stage].set_store_predicate(tx.var.equal(0))
    s[e].compute_at(s[out], row)
    s[e].set_scope("shared")
    _, lane = s[e].split(s[e].op.axis[1], factor=threads)
    s[e].bind(lane, tx)
    return s, [A, out]


def convolution(size, channels, filters, batch, kernel=3, threads=4, tile=2, virtual=2, step=2):
    """A convolution with padding over [height, width, channel, batch]: a block per pixel and part of filters and batch."""
    A = te.placeholder((size, size, channels, batch), name="A")
    W = te.placeholder((kernel, kernel, channels, filters), name="W")
    pad = kernel // 2
    padded = te.compute((size + 2 * pad, size + 2 * pad, channels, batch), lambda y, x, c, b: te.if_then_else(
        te.all(y >= pad, y - pad < size, x >= pad, x - pad < size), A[y - pad, x - pad, c, b], 0.0), name="padded")
    c, dy, dx = (te.reduce_axis((0, e), name=n) for e, n in ((channels, "c"), (kernel, "dy"), (kernel, "dx")))
    B = te.compute((size, size, filters, batch), lambda y, x, f, b: te.sum(
        padded[y + dy, x + dx, c, b] * W[dy, dx, c, f], axis=[dy, dx, c]), name="B")
    s = te.create_schedule(B.op)
    s[padded].compute_inline()
    AS, WS = s.cache_read(padded, "shared", [B]), s.cache_read(W, "shared", [B])
    AL, WL = s.cache_read(AS, "local", [B]), s.cache_read(WS, "local", [B])
    BL = s.cache_write(B, "local")
    y, x, f, b = s[B].op.axis
    ty, tx = te.thread_axis((0, threads), "threadIdx.y"), te.thread_axis((0, threads), "threadIdx.x")
    pixel = s[B].fuse(y, x)
    blocks = [pixel]
    far, own, rest = [], [], []
    for axis, thread, name in ((f, ty, "vf"), (b, tx, "vb")):
        block, inner = s[B].split(axis, factor=threads * tile * virtual)
        apart, inner = s[B].split(inner, nparts=virtual)
        mine, inner = s[B].split(inner, nparts=threads)
        s[B].bind(apart, te.thread_axis((0, virtual), "vthread", name=name))
        s[B].bind(mine, thread)
        blocks.append(block)
        far.append(apart)
        own.append(mine)
        rest.append(inner)
    for loop, dim in zip(blocks, "zyx"):
        s[B].bind(loop, te.thread_axis(f"blockIdx.{dim}"))
    s[B].reorder(*blocks, *far, *own, *rest)
    s[BL].compute_at(s[B], own[1])
    dy, dx, c = s[BL].op.reduce_axis
    co, ci = s[BL].split(c, factor=step)
    s[BL].reorder(co, dy, dx, ci, *s[BL].op.axis)
    s[AS].compute_at(s[BL], dx)
    s[WS].compute_at(s[BL], dx)
    s[AL].compute_at(s[BL], ci)
    s[WL].compute_at(s[BL], ci)
    for stage in (AS, WS):
        row, last = s[stage].op.axis[2:]
        r, _ = s[stage].split(row, nparts=threads)
        inner_thread, lanes = s[stage].split(last, nparts=threads)
        s[stage].reorder(r, inner_thread, lanes)
        s[stage].bind(r, ty)
        s[stage].bind(inner_thread, tx)
    return s, [A, W, B]


def forms(s, args):
    """The function at each step on its way to loops of the CPU."""
    raw = lower_schedule(s, args)
    lowered = tedsl.lower(s, args)["main"]
    barriers = insert_barriers(gather_threads(lowered))
    made = {"buffers": raw, "lowered": lowered, "barriers": barriers, "loops": lower_threads(barriers)}
    verify(raw, flat=False)
    for name in ("lowered", "barriers", "loops"):
        verify(made[name], flat=True)
    return made


def check(s, args, inputs, expected, rtol=0.0):
    """All forms in the interpreter, in both orders of threads and blocks, and the compiled program compute `expected`."""
    check_calls(s, args, [(inputs, expected)], rtol)


def check_calls(s, args, calls, rtol=0.0):
    """As `check`, for several calls of one program: pairs of inputs and what they give."""
    def same(call, what):
        for inputs, expected in calls:
            out = np.full(expected.shape, 77, expected.dtype)
            call([*inputs, out])
            np.testing.assert_allclose(out, expected, rtol=rtol, atol=0, err_msg=f"{what} of {expected.shape}")

    for name, func in forms(s, args).items():
        for backwards in (False, True):
            same(lambda values, f=func, b=backwards: run(f, values, reverse_parallel=b), f"{name}, backwards {backwards}")
    built = tedsl.build(s, args)
    same(lambda values: built(*values), "compiled")


def whole_numbers(*shape, seed=0):
    """Small integers, so that sums are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("float32")
