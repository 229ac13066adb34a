"""Blocks of a launch that a person wrote: those that are shown to race over memory that outlives the launch are refused."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError
from tests.passes.threads.kernels import COUNT, compiled, computes, schedule

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes

BLOCKS = {"blockIdx.x": COUNT}
BOTH = {"blockIdx.x": 2, "threadIdx.x": 4}
WHY = r"\. The blocks of a launch run in any order and cannot wait for each other\n"


def update(builder, a, b, start):
    x = start()
    b[x // 2] = b[x // 2] + a[x]


def neighbour(builder, a, b, start):
    x = start()
    with builder.if_scope(x < 7):
        b[x + 1] = b[x] + a[x + 1]


def forward(builder, a, b, start):
    x = start()
    b[x] = a[x]
    with builder.if_scope(x < 4):
        b[x + 4] = b[x + 1]


def one_for_all(builder, a, b, start):
    scratch = builder.allocate("float32", (1,), name="scratch", scope="global")
    x = start()
    scratch[0] = a[x]
    b[x] = scratch[0]


def overlap(builder, a, b, start):
    x = start()
    with builder.if_scope(x < 5), builder.for_range(0, 4, "j") as j:
        b[x + j] = a[j]


@pytest.mark.parametrize("body, words", [
    (update, r"blockIdx\.x = 0 writes B\[blockIdx\.x//2\], which is B\[0\], and blockIdx\.x = 1 reads it"),
    (neighbour, r"blockIdx\.x = 0 writes B\[blockIdx\.x \+ 1\], which is B\[1\], and blockIdx\.x = 1 reads it"),
    (forward, r"blockIdx\.x = 1 writes B\[blockIdx\.x\], which is B\[1\], and blockIdx\.x = 0 reads it"),
    (one_for_all, r"blockIdx\.x = 0 writes scratch\[0\], and blockIdx\.x = 1 writes it too"),
    (overlap, r"blockIdx\.x = 0 writes B\[.*which is B\[1\], and blockIdx\.x = 1 writes it too"),
])
def test_blocks_that_race_are_refused(body, words):
    """They ran one after the other and computed what another order would not."""
    s, args = schedule(body, launch=BLOCKS)
    for step in (tedsl.lower, tedsl.build, lambda *what: tedsl.build(*what, checked=True)):
        with pytest.raises(LoweringError, match="^blocks of one launch race: " + words + WHY) as error:
            step(s, args)
        assert "make it two launches" in str(error.value)


def test_threads_of_different_blocks():
    def shared(builder, a, b, start):
        x, t = start()
        b[x * 2 + t] = a[x * 4 + t]

    s, args = schedule(shared, launch=BOTH)
    with pytest.raises(LoweringError, match=r"blockIdx\.x = 0 writes B\[.*which is B\[2\], and blockIdx\.x = 1 writes it too"):
        tedsl.lower(s, args)


def test_axes_of_blocks_count_together():
    """Along each of them alone, nothing would be known."""
    def rows(builder, a, b, start, wide=4):
        y, x = start()
        b[y * wide + x] = a[y * wide + x]

    launch = {"blockIdx.y": 2, "blockIdx.x": 4}
    computes(rows, np.arange(COUNT), launch=launch)
    s, args = schedule(lambda *parts: rows(*parts, wide=3), launch=launch)
    with pytest.raises(LoweringError, match=r"blockIdx\.y = 0, blockIdx\.x = 3 writes B\[.*which is B\[3\], "
                                            r"and blockIdx\.y = 1, blockIdx\.x = 0 writes it too"):
        tedsl.lower(s, args)


def test_blocks_of_a_hybrid_script():
    @te.hybrid.script
    def halves(a):
        c = output_tensor((8,), "float32")  # noqa: F821
        for t in bind("blockIdx.x", 8):  # noqa: F821
            c[t] = 0.0
        for t in bind("blockIdx.x", 8):  # noqa: F821
            c[t // 2] = c[t // 2] + a[t]
        return c

    A = te.placeholder((8,), name="A")
    C = halves(A)
    with pytest.raises(LoweringError, match=r"blocks of one launch race: blockIdx\.x = 0 writes halves\["):
        tedsl.build(te.create_schedule(C.op), [A, C])


# --- accepted -----------------------------------------------------------------------------------------------------------

def test_elements_of_their_own():
    def own(builder, a, b, start):
        x = start()
        b[x] = a[x]
        with builder.if_scope(x == 0):
            b[0] = b[0] + 5.0
        b[x] = b[x] + a[COUNT - 1 - x]

    computes(own, [12, 7, 7, 7, 7, 7, 7, 7], launch=BLOCKS)


def test_memory_inside_of_the_launch():
    def scratch(builder, a, b, start):
        x, t = start()
        shared = builder.allocate("float32", (4,), name="shared", scope="shared")
        kept = builder.allocate("float32", (4,), name="kept", scope="global")
        shared[t] = a[x * 4 + t]
        kept[t] = shared[3 - t]
        b[x * 4 + t] = kept[t]

    computes(scratch, [3, 2, 1, 0, 7, 6, 5, 4], launch=BOTH)


def test_all_blocks_write_the_same():
    """Also where each reads what itself wrote; in whichever order they run."""
    def same(builder, a, b, start):
        x, t = start()
        b[t] = a[t]
        b[x * 4 + t + 4 - x * 4] = 1.0

    computes(same, [0, 1, 2, 3, 1, 1, 1, 1], launch=BOTH)

    def and_read(builder, a, b, start):
        x = start()
        b[0] = 1.0
        with builder.if_scope(x > 0):
            b[x] = b[0]

    computes(and_read, [1] * COUNT, launch=BLOCKS)


def test_what_each_writes_last_is_the_same():
    def last(builder, a, b, start):
        x, t = start()
        with builder.for_range(0, 3, "j") as j:
            b[x + t] = a[j]
        with builder.if_scope(x + t == 4):
            b[5] = 2.0
            b[6] = 2.0
            b[7] = 2.0

    s, args = schedule(last, launch=BOTH)
    np.testing.assert_array_equal(compiled(s, args, np.arange(COUNT, dtype="float32"), checked=False), [2] * COUNT)


def test_one_launch_after_the_other():
    def two(builder, a, b, start):
        with builder.new_scope():
            x = start()
            b[x] = a[x]
        with builder.new_scope():
            x = start()
            with builder.if_scope(x == 0):
                b[0] = b[1] + b[7]

    computes(two, [8, 1, 2, 3, 4, 5, 6, 7], launch=BLOCKS)


def test_launches_in_a_loop_run_one_after_the_other():
    def turns(builder, a, b, start):
        with builder.for_range(0, COUNT, "z") as z:
            b[z] = 0.0
        with builder.for_range(0, COUNT, "k") as k:
            x = start()
            b[x] = b[x] + a[k]

    computes(turns, [28] * COUNT, launch=BLOCKS)


def test_blocks_of_a_schedule():
    """Each computes the part that it needs of a stage in global memory, and parts overlap."""
    A = te.placeholder((18,), name="A")
    P = te.compute((18,), lambda i: A[i] * 2.0, name="P")
    B = te.compute((16,), lambda i: P[i] + P[i + 2], name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 4)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[P].compute_at(s[B], outer)
    a = np.arange(18, dtype="float32")
    for checked in (False, True):
        b = np.zeros(16, "float32")
        tedsl.build(s, [A, B], checked=checked)(a, b)
        np.testing.assert_array_equal(b, a[:-2] * 2 + a[2:] * 2)


# --- lets, for parallel loops too ---------------------------------------------------------------------------------------

def test_a_value_that_a_let_names():
    """It was taken for the same in all iterations."""
    def blocks(builder, a, b, start):
        x = start()
        twice = builder.let("twice", x * 2)
        b[0] = twice.astype("float32")

    def iterations(builder, a, b, start):
        with builder.for_range(0, COUNT, "i", kind="parallel") as i:
            twice = builder.let("twice", i * 2)
            b[0] = twice.astype("float32")

    for body, words in (blocks, r"blockIdx\.x = 0 writes B\[0\]"), (iterations, r"race: i = 0 writes B\[0\]"):
        s, args = schedule(body, launch=BLOCKS)
        with pytest.raises(LoweringError, match=words):
            tedsl.lower(s, args)


def test_iterations_that_write_the_same_data():
    """As far as their order goes, they may."""
    def same(builder, a, b, start):
        with builder.for_range(0, COUNT, "i", kind="parallel"), builder.for_range(0, COUNT, "j") as j:
            b[j] = a[j]

    s, args = schedule(same)
    a, b = np.arange(COUNT, dtype="float32"), np.zeros(COUNT, "float32")
    tedsl.build(s, args)(a, b)
    np.testing.assert_array_equal(a, b)
