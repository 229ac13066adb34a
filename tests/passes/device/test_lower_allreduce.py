"""Reductions across threads: any number of threads, along any axes, of several values, on devices with and without warps."""

import numpy as np
import pytest

from tedsl import te
from tedsl.ir import build
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Call
from tedsl.ir.ops import ALLREDUCE, SHUFFLES, SYNC
from tedsl.ir.verify import verify
from tedsl.ir.walk.visitor import post_order
from tedsl.lower.lower import lower_schedule
from tedsl.passes.config import PassConfig
from tedsl.passes.default import lowering_pipeline
from tedsl.passes.device.lower_allreduce import lower_allreduce
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.insert_barriers import insert_barriers
from tedsl.target import Target
from tests.passes.programs import body_text

CUDA, OPENCL = Target("cuda"), Target("opencl")


def gathered(s, args):
    return insert_barriers(gather_threads(lowering_pipeline(PassConfig())(lower_schedule(s, args))))


def sums(shape, counts, reduced, dtype="float32", combine=te.sum, inputs=1):
    """Sums over as many axes as `reduced` has; counts: the threads of x, y, z; reduced: which of them the axes are bound to."""
    extents = shape[-len(reduced):]
    ins = [te.placeholder(shape, dtype, f"A{k}") for k in range(inputs)]
    axes = [te.reduce_axis((0, extent), f"k{at}") for at, extent in enumerate(extents)]
    out = te.compute(shape[:-len(reduced)], lambda *i: combine(*[A[(*i, *axes)] for A in ins], axes), name="B")
    outs = [out] if not isinstance(out, (list, tuple)) else list(out)
    s = te.create_schedule(outs[0].op)
    stage = s[outs[0]]
    inner = []
    for axis, tag in zip(stage.op.reduce_axis, reduced):
        _, thread = stage.split(axis, factor=counts[tag])
        inner.append((thread, tag))
    rest = [tag for tag in counts if tag not in reduced]
    bound = []
    for axis, tag in zip(stage.op.axis, rest):
        block, thread = stage.split(axis, factor=counts[tag])
        stage.bind(block, te.thread_axis(f"blockIdx.{tag}"))
        bound.append((thread, tag))
    for thread, tag in bound + inner:
        stage.bind(thread, te.thread_axis(f"threadIdx.{tag}"))
    order = [leaf for leaf in stage.leaf_iter_vars if leaf not in [t for t, _ in inner]]
    spatial = [leaf for leaf in order if leaf not in stage.op.reduce_axis and "k" not in leaf.var.name]
    serial = [leaf for leaf in order if leaf not in spatial]
    stage.reorder(*spatial, *[t for t, _ in inner], *serial)
    return s, [*ins, *outs]


def check(s, args, expected, data, target, golden=None):
    """The reductions of a schedule after the pass, in the interpreter, in both orders of the threads; returns the function."""
    func = gathered(s, args)
    made = lower_allreduce(func, target)
    assert made is not func and not any(isinstance(n, Call) and n.op is ALLREDUCE for n in post_order(made.body))
    verify(made, flat=True)
    for backwards in (False, True):
        outs = [np.full(e.shape, 7, e.dtype) for e in expected]
        run(made, [*data, *outs], reverse_parallel=backwards)
        for out, e in zip(outs, expected):
            np.testing.assert_array_equal(out, e)
    if golden is not None:
        golden.sections(before=body_text(func), after=body_text(made))
    return made


def how_many(func, *ops):
    return sum(isinstance(node, Call) and node.op in ops for node in post_order(func.body))


def whole(*shape, dtype="float32"):
    return np.random.default_rng(3).integers(-40, 40, shape).astype(dtype)


@pytest.mark.parametrize("count", [2, 3, 8, 31, 32, 33, 40, 64, 65, 70, 96, 100, 128, 250, 256])
def test_one_group_of_any_size(count):
    """One row by one block: a part of a warp, a whole one, several, and a last warp with few threads."""
    a = whole(2, count + count // 2 + 1)
    made = check(*sums(a.shape, {"x": count}, "x"), [a.sum(1)], [a], CUDA)
    if count <= 32:
        assert how_many(made, SYNC) == 0
    check(*sums(a.shape, {"x": count}, "x"), [a.sum(1)], [a], OPENCL)


@pytest.mark.parametrize("x, y", [(8, 4), (16, 2), (32, 3), (64, 3), (3, 5), (5, 3), (24, 2), (96, 2)])
def test_groups_along_x(x, y):
    a = whole(2 * y, x * 2 + 1)
    check(*sums(a.shape, {"x": x, "y": y}, "x"), [a.sum(1)], [a], CUDA)


@pytest.mark.parametrize("x, y", [(8, 4), (16, 16), (7, 3), (5, 32)])
def test_groups_along_y(x, y):
    """Threads of a group are not neighbours: through shared memory, in which neighbours stay neighbours."""
    a = whole(2 * x, y * 2 + 1)
    for target in (CUDA, OPENCL):
        made = check(*sums(a.shape, {"x": x, "y": y}, "y"), [a.sum(1)], [a], target)
        assert how_many(made, *SHUFFLES) == 0


@pytest.mark.parametrize("x, y, z", [(8, 4, 2), (16, 2, 2), (5, 3, 2), (32, 4, 2)])
def test_two_axes_at_once(x, y, z):
    a = whole(2 * z, 2 * y + 1, x + 3)
    for target in (CUDA, OPENCL):
        check(*sums(a.shape, {"x": x, "y": y, "z": z}, "yx"), [a.sum((1, 2))], [a], target)


@pytest.mark.parametrize("count", [8, 20, 48, 70])
@pytest.mark.parametrize("target", [CUDA, OPENCL], ids=["cuda", "opencl"])
def test_index_of_the_largest(count, target):
    """Two values at once, of two dtypes."""
    n = count + 9
    A = te.placeholder((3, n), name="A")
    argmax = te.comm_reducer(lambda x, y: (te.Select(te.any(x[1] > y[1], te.all(x[1].equal(y[1]), x[0] < y[0])), x[0], y[0]),
                                           te.max(x[1], y[1])),
                             lambda i, v: (te.const(2**31 - 1, i), te.min_value(v)), name="argmax") \
        if hasattr(te, "Select") else _argmax()
    k = te.reduce_axis((0, n), "k")
    I, V = te.compute((3,), lambda i: argmax((k, A[i, k]), axis=k), name="I")
    s = te.create_schedule(I.op)
    _, thread = s[I].split(s[I].op.reduce_axis[0], factor=count)
    s[I].bind(s[I].op.axis[0], te.thread_axis("blockIdx.x"))
    s[I].bind(thread, te.thread_axis("threadIdx.x"))
    s[I].reorder(s[I].op.axis[0], thread, s[I].leaf_iter_vars[1] if s[I].leaf_iter_vars[1] is not thread
                 else s[I].leaf_iter_vars[2])
    a = whole(3, n)
    check(s, [A, I, V], [a.argmax(1).astype("int32"), a.max(1)], [a], target)


def _argmax():
    from tedsl import tir

    def larger(x, y):
        return tir.any(x[1] > y[1], tir.all(x[1].equal(y[1]), x[0] < y[0]))

    return te.comm_reducer(lambda x, y: (tir.Select(larger(x, y), x[0], y[0]), tir.Select(larger(x, y), x[1], y[1])),
                           lambda i, v: (tir.const(2**31 - 1, i), te.min_value(v)), name="argmax")


@pytest.mark.parametrize("dtype", ["float64", "int64", "int8", "float16"])
def test_other_dtypes(dtype):
    a = whole(2, 40, dtype="int8").astype(dtype) // 10
    check(*sums(a.shape, {"x": 40}, "x", dtype), [a.sum(1, dtype=dtype)], [a], CUDA)


@pytest.mark.parametrize("count", [16, 64, 100])
def test_repeated_reductions_wait_for_their_readers(count):
    """In a loop the memory of one reduction is written again when all threads have read it."""
    rows = 3
    A = te.placeholder((rows, count), name="A")
    k = te.reduce_axis((0, count), "k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(s[B].op.reduce_axis[0], te.thread_axis("threadIdx.x"))
    a = whole(rows, count)
    for target in (CUDA, OPENCL):
        made = check(s, [A, B], [a.sum(1)], [a], target)
        assert how_many(made, SYNC) == (0 if count == 16 and target is CUDA else how_many(made, SYNC))


# --- golden forms -----------------------------------------------------------------------------------------------------


def test_one_warp_golden(golden):
    a = whole(2, 32)
    check(*sums(a.shape, {"x": 32}, "x"), [a.sum(1)], [a], CUDA, golden)


def test_block_golden(golden):
    a = whole(2, 65)
    check(*sums(a.shape, {"x": 65}, "x"), [a.sum(1)], [a], CUDA, golden)


def test_memory_golden(golden):
    a = whole(2, 5)
    check(*sums(a.shape, {"x": 5}, "x"), [a.sum(1)], [a], OPENCL, golden)


def test_nothing_to_do():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + build.const(1, "float32"), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    func = gathered(s, [A, B])
    assert lower_allreduce(func, CUDA) is func
