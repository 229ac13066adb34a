"""Checked mode sees blocks of a launch by hand that meet where data decides about it."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import AccessError
from tests.lower.intrinsics import numbers

WHY = ": the blocks of a launch run in any order and cannot wait for each other\n  in stage C "


def run(body, index, launch):
    """C = body(builder, A, I, C, axes), where I has the elements `index`; the axes are launched by this order."""
    count = len(index)
    A, I = te.placeholder((count,), name="A"), te.placeholder((count,), "int32", name="I")

    def statements(ins, outs):
        ib = tir.ir_builder.create()
        a, i, c = map(ib.buffer_ptr, (*ins, *outs))
        with ib.for_range(0, count, "z") as z:
            c[z] = 0.0
        axes = [te.thread_axis(tag) for tag in launch]
        for axis, extent in zip(axes, launch.values()):
            ib.scope_attr(axis, "thread_extent", extent)
        body(ib, a, i, c, axes)
        return ib.get()

    C = te.extern((count,), [A, I], statements, name="C", dtype="float32")
    a, c = numbers(count), np.full(count, 77, "float32")
    tedsl.build(te.create_schedule(C.op), [A, I, C], checked=True)(a, np.array(index, "int32"), c)
    return a, c


def store(ib, a, i, c, axes):
    x, = axes
    c[i[x]] = a[x]


def read(ib, a, i, c, axes):
    x, = axes
    c[x] = c[i[x]] + a[x]


BLOCKS = {"blockIdx.x": 8}


def test_elements_of_their_own():
    a, c = run(store, [7, 6, 5, 4, 3, 2, 1, 0], BLOCKS)
    np.testing.assert_array_equal(c, a[::-1])
    a, c = run(read, range(8), BLOCKS)
    np.testing.assert_array_equal(c, a)


@pytest.mark.parametrize("body, index, words", [
    (store, [0, 1, 2, 3, 4, 5, 6, 2], r"stores C\[2\], which another block of the launch, blockIdx\.x = 2, wrote too"),
    (read, [0, 0, 2, 3, 4, 5, 6, 7], r"reads C\[0\], which another block of the launch, blockIdx\.x = 0, wrote"),
    (read, [3, 1, 2, 3, 4, 5, 6, 7], r"stores C\[3\], which another block of the launch, blockIdx\.x = one of several, read"),
    (read, [3, 1, 2, 4, 4, 5, 6, 7], r"stores C\[3\], which another block of the launch, blockIdx\.x = 0, read"),
])
def test_blocks_that_meet(body, index, words):
    """Nothing was said, and another order of blocks gave another result."""
    with pytest.raises(AccessError, match=words + WHY):
        run(body, index, BLOCKS)


def test_several_axes_and_threads():
    def body(ib, a, i, c, axes):
        t, x, y = axes
        c[i[y * 4 + x * 2 + t]] = a[y * 4 + x * 2 + t]

    launch = {"threadIdx.x": 2, "blockIdx.x": 2, "blockIdx.y": 2}
    a, c = run(body, range(8), launch)
    np.testing.assert_array_equal(c, a)
    words = r"stores C\[2\], which another block of the launch, blockIdx\.y = 0, blockIdx\.x = 1, wrote too"
    with pytest.raises(AccessError, match=words + WHY) as error:
        run(body, [0, 1, 2, 3, 4, 2, 6, 7], launch)
    assert str(error.value).endswith("loops: threadIdx.x = 1, blockIdx.x = 0, blockIdx.y = 1")


def test_threads_of_one_block_share():
    """They read an element together, and write under conditions on data: what is noted of it asks for no barrier."""
    def body(ib, a, i, c, axes):
        x, t = axes
        with ib.if_scope(a[x * 4 + t] > -1e9):
            c[i[x * 4 + t]] = a[x * 4 + t]

    def first(ib, a, i, c, axes):
        x, t = axes
        kept = ib.allocate("float32", (1,), name="kept", scope="local")
        c[x * 4 + t] = a[x * 4 + t]
        kept[0] = c[x * 4]
        c[x * 4 + t] = kept[0]

    launch = {"blockIdx.x": 2, "threadIdx.x": 4}
    a, c = run(body, [1, 0, 3, 2, 5, 4, 7, 6], launch)
    np.testing.assert_array_equal(c, a.reshape(4, 2)[:, ::-1].ravel())
    a, c = run(first, range(8), launch)
    np.testing.assert_array_equal(c, np.repeat(a[::4], 4))


def test_all_blocks_write_the_same():
    def body(ib, a, i, c, axes):
        x, t = axes
        c[t] = a[t]
        c[4] = 1.0

    a, c = run(body, range(8), {"blockIdx.x": 2, "threadIdx.x": 4})
    np.testing.assert_array_equal(c, [*a[:4], 1, 0, 0, 0])


def test_an_update_inside_of_a_loop_of_launches():
    """Blocks of the next launch start when all of this one have ended."""
    count = 8
    A = te.placeholder((count,), name="A")

    def statements(ins, outs):
        ib = tir.ir_builder.create()
        a, c = map(ib.buffer_ptr, (*ins, *outs))
        with ib.for_range(0, count, "z") as z:
            c[z] = 0.0
        with ib.for_range(0, count, "k") as k:
            x = te.thread_axis("blockIdx.x")
            ib.scope_attr(x, "thread_extent", count)
            c[(x + k) % count] = c[(x + k) % count] + a[k]
        return ib.get()

    C = te.extern((count,), [A], statements, name="C", dtype="float32")
    a, c = np.arange(count, dtype="float32"), np.zeros(count, "float32")
    tedsl.build(te.create_schedule(C.op), [A, C], checked=True)(a, c)
    np.testing.assert_array_equal(c, [28] * count)
