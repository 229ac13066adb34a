"""Memory of a warp: in registers where each thread stores to its own part, in shared memory elsewhere."""

import numpy as np
import pytest

from tedsl import te, tir
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Call
from tedsl.ir.ops import SHUFFLES, SYNC
from tedsl.ir.stmt import Allocate
from tedsl.ir.verify import verify
from tedsl.ir.walk.visitor import post_order
from tedsl.lower.lower import lower_schedule
from tedsl.passes.default import lowering_pipeline
from tedsl.passes.device.lower_warp_memory import lower_warp_memory
from tedsl.passes.facts.threads import scope_of
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.insert_barriers import insert_barriers
from tedsl.target import Target
from tests.passes.programs import body_text

CUDA, OPENCL = Target("cuda"), Target("opencl")


def kept(index, n=64, x=32, y=2):
    """B[i] = A[index(i)] for rows of x elements, each in the memory of a warp."""
    A = te.placeholder((n // x, x), name="A")
    B = te.compute((n // x, x), lambda r, i: A[r, index(i)] * 2.0, name="B")
    s = te.create_schedule(B.op)
    copy = s.cache_read(A, "warp", [B])
    block, row = s[B].split(B.op.axis[0], factor=y)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    ty, tx = te.thread_axis((0, y), "threadIdx.y"), te.thread_axis((0, x), "threadIdx.x")
    s[B].bind(row, ty)
    s[B].bind(B.op.axis[1], tx)
    s[copy].compute_at(s[B], row)
    s[copy].bind(copy.op.axis[1], tx)
    a = np.arange(n, dtype="float32").reshape(n // x, x)
    where = [int(index(k)) for k in range(x)]
    return s, [A, B], a, a[:, where] * 2


def check(s, args, a, expected, target, golden=None):
    func = gather_threads(lowering_pipeline()(lower_schedule(s, args)))
    made = insert_barriers(lower_warp_memory(func, target))
    verify(made, flat=True)
    assert not any(isinstance(n, Allocate) and scope_of(n.buffer_var.type_annotation) == "warp" for n in post_order(made.body))
    for backwards in (False, True):
        out = np.full(expected.shape, 7, expected.dtype)
        run(made, [a, out], reverse_parallel=backwards)
        np.testing.assert_array_equal(out, expected)
    if golden is not None:
        golden.sections(before=body_text(func), after=body_text(made))
    return [sum(isinstance(n, Call) and n.op in ops for n in post_order(made.body)) for ops in (SHUFFLES, (SYNC,))]


@pytest.mark.parametrize("x", [8, 32])
def test_values_of_other_threads(x):
    assert check(*kept(lambda i: x - 1 - i, x=x, y=32 // x), CUDA) == [1, 0]


def test_own_values_need_no_shuffle():
    assert check(*kept(lambda i: i), CUDA) == [0, 0]


def test_rows_that_are_no_part_of_a_warp():
    shuffles, barriers = check(*kept(lambda i: 11 - i, n=48, x=12, y=2), CUDA)
    assert shuffles == 0 and barriers >= 1


def test_devices_without_warps():
    shuffles, barriers = check(*kept(lambda i: 31 - i), OPENCL)
    assert shuffles == 0 and barriers >= 1


@pytest.mark.parametrize("turn", [1, 2, 4])
def test_several_elements_of_a_thread(turn):
    """Each thread stores `turn` neighbours; the others read them in another order."""
    n = 32 * turn
    A = te.placeholder((4, n), name="A")
    B = te.compute((4, n), lambda r, i: A[r, n - 1 - i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    copy = s.cache_read(A, "warp", [B])
    tx = te.thread_axis((0, 32), "threadIdx.x")
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    outer, inner = s[B].split(B.op.axis[1], factor=turn)
    s[B].bind(outer, tx)
    s[copy].compute_at(s[B], B.op.axis[0])
    outer, inner = s[copy].split(copy.op.axis[1], factor=turn)
    s[copy].bind(outer, tx)
    a = np.arange(4 * n, dtype="float32").reshape(4, n)
    assert check(s, [A, B], a, a[:, ::-1] + 1, CUDA)[0] == 1


def test_a_condition_that_differs_needs_shared_memory():
    """Threads that are off cannot give their value."""
    def index(i):
        return 31 - i

    A = te.placeholder((2, 32), name="A")
    copy = te.compute((2, 32), lambda r, i: A[r, i], name="copy")
    B = te.compute((2, 32), lambda r, i: tir.if_then_else(i < 5, copy[r, index(i)], 0.0), name="B")
    s = te.create_schedule(B.op)
    s[copy].set_scope("warp")
    tx = te.thread_axis((0, 32), "threadIdx.x")
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].bind(B.op.axis[1], tx)
    s[copy].compute_at(s[B], B.op.axis[0])
    s[copy].bind(copy.op.axis[1], tx)
    a = np.arange(64, dtype="float32").reshape(2, 32)
    expected = np.where(np.arange(32) < 5, a[:, ::-1], 0).astype("float32")
    shuffles, barriers = check(s, [A, B], a, expected, CUDA)
    assert shuffles == 0 and barriers >= 1


def test_registers_golden(golden):
    check(*kept(lambda i: 31 - i), CUDA, golden)


def test_shared_golden(golden):
    check(*kept(lambda i: 31 - i), OPENCL, golden)
