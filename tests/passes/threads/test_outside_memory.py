"""Memory that is allocated around the launch of a kernel, and memory of the caller's: threads wait there as in any other."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError
from tedsl.ir.stmt import Allocate, AttrStmt
from tedsl.ir.walk.visitor import post_order
from tests.passes.threads.kernels import COUNT, compiled, computes, schedule

BACK = list(range(7, -1, -1))


def wait(builder):
    builder.emit(tir.call_intrin("int32", "tir.tvm_storage_sync", "shared"))


def reverses(scope, own=False):
    def body(builder, a, b, start):
        M = builder.allocate("float32", COUNT, name="M", scope=scope)
        x = start()
        M[x] = a[x]
        if own:
            wait(builder)
        b[x] = M[7 - x]

    return body


@pytest.mark.parametrize("scope", ["shared", "global", "warp"])
@pytest.mark.parametrize("own", [False, True])
def test_threads_wait_for_memory_of_outside(scope, own):
    computes(reverses(scope, own), BACK)


@pytest.mark.parametrize("scope", ["shared", "global"])
def test_memory_of_several_kernels(scope):
    def body(builder, a, b, start):
        M = builder.allocate("float32", COUNT, name="M", scope=scope)
        with builder.new_scope():
            x = start()
            M[x] = a[x]
            b[x] = M[7 - x]
        with builder.new_scope():
            x = start()
            M[x] = M[x] + b[7 - x]
            b[x] = M[7 - x]

    computes(body, [14 - 2 * k for k in range(8)])


@pytest.mark.parametrize("scope", ["shared", "warp"])
@pytest.mark.parametrize("checked", [False, True])
def test_a_statement_that_races_there(scope, checked):
    def body(builder, a, b, start):
        M = builder.allocate("float32", COUNT, name="M", scope=scope)
        x = start()
        M[x] = a[x]
        M[x] = M[7 - x]
        b[x] = M[x]

    with pytest.raises(LoweringError, match="in one statement: they would race"):
        tedsl.build(*schedule(body), checked=checked)


@pytest.mark.parametrize("waits", [False, True])
def test_memory_of_a_thread_is_its_own(waits):
    def body(builder, a, b, start):
        M = builder.allocate("float32", 1, name="M", scope="local")
        x = start()
        M[0] = a[x]
        if waits:
            wait(builder)
        b[x] = M[0] + 1.0

    computes(body, range(1, 9))
    made = tedsl.lower(*schedule(body))["main"]
    launch = next(node for node in post_order(made.body) if isinstance(node, AttrStmt) and node.attr_key == "thread_extent")
    assert any(isinstance(node, Allocate) for node in post_order(launch.body))


def test_memory_of_a_thread_among_rows_and_blocks():
    def body(builder, a, b, start):
        M = builder.allocate("float32", 2, name="M", scope="local")
        block, y, x = start()
        at = block * 4 + y * 2 + x
        M[0] = a[at]
        wait(builder)
        M[1] = M[0] * 2.0
        wait(builder)
        b[at] = M[1] + M[0]

    computes(body, [3 * k for k in range(8)], launch={"blockIdx.x": 2, "threadIdx.y": 2, "threadIdx.x": 2})


def two_kernels(own):
    """Values in memory of threads, from one kernel to the next: legal where each thread has its own elements."""
    def body(builder, a, b, start):
        M = builder.allocate("float32", COUNT, name="M", scope="local")
        with builder.new_scope():
            x = start()
            M[x if own else 0] = a[x]
            wait(builder)
            b[x] = M[x if own else 0]
        with builder.new_scope():
            x = start()
            b[x] = b[x] + M[x if own else 0]

    return body


def test_memory_of_threads_of_two_kernels():
    computes(two_kernels(True), [2 * k for k in range(8)])


@pytest.mark.parametrize("checked", [False, True])
def test_one_element_for_the_threads_of_two_kernels_is_refused(checked):
    with pytest.raises(LoweringError, match=r"M\[0\].*allocated outside of the kernel") as refused:
        tedsl.build(*schedule(two_kernels(False)), checked=checked)
    assert "allocate it inside of the threads" in str(refused.value)


def test_memory_of_threads_that_are_launched_again():
    def body(builder, a, b, start):
        M = builder.allocate("float32", COUNT, name="M", scope="local")
        with builder.for_range(0, 3, name="k"), builder.new_scope():
            x = start()
            M[x] = a[x]
            b[x] = M[x]

    computes(body, range(8))


# --- hybrid scripts --------------------------------------------------------------------------------------------------------

@te.hybrid.script
def reverse_in_shared(a):
    b = output_tensor((8,), "float32")  # noqa: F821
    s = allocate((8,), "float32", "shared")  # noqa: F821
    for i in bind("threadIdx.x", 8):  # noqa: F821
        s[i] = a[i]
        b[i] = s[7 - i]
    return b


@te.hybrid.script
def own_element(a):
    b = output_tensor((8,), "float32")  # noqa: F821
    s = allocate((8,), "float32", "shared")  # noqa: F821
    own = allocate((1,), "float32", "local")  # noqa: F821
    for i in bind("threadIdx.x", 8):  # noqa: F821
        own[0] = a[i]
        s[i] = a[i] * 10.0
        b[i] = s[7 - i] + own[0]
    return b


@pytest.mark.parametrize("script, expected", [(reverse_in_shared, BACK), (own_element, [70 - 9 * k for k in range(8)])])
@pytest.mark.parametrize("checked", [False, True])
def test_scripts(script, expected, checked):
    A = te.placeholder((8,), name="A")
    B = script(A)
    b = compiled(te.create_schedule(B.op), [A, B], np.arange(8, dtype="float32"), checked)
    np.testing.assert_array_equal(b, expected)


# --- memory of the caller's ------------------------------------------------------------------------------------------------

def test_the_output_is_read_by_other_threads():
    def body(builder, a, b, start):
        x = start()
        own = builder.allocate("float32", 1, name="own", scope="local")
        b[x] = a[x]
        own[0] = b[7 - x]
        b[x] = own[0] * 2.0

    computes(body, [2 * k for k in BACK])


def test_what_was_scattered_is_read():
    def body(builder, a, b, start):
        x = start()
        own = builder.allocate("float32", 1, name="own", scope="local")
        b[7 - a[x].astype("int32")] = a[x]
        own[0] = b[x]
        b[x] = own[0] + 1.0

    computes(body, [k + 1 for k in BACK])


def test_a_thread_alone_with_its_element():
    """The same place in the same words, which nothing is known of: no thread waits, also where others do not come."""
    def body(builder, a, b, start):
        x = start()
        with builder.if_scope(x < 4):
            at = builder.let("at", a[x].astype("int32"))
            b[at] = 0.0
            with builder.for_range(0, x % 2 + 3, name="k"):
                b[at] = b[at] + 1.0
        with builder.else_scope():
            b[x] = a[x]

    computes(body, [3, 4, 3, 4, 4, 5, 6, 7])


@pytest.mark.parametrize("writer", [0, 1])
def test_two_threads_that_name_one_element_in_the_same_words(writer):
    def body(builder, a, b, start):
        x = start()
        own = builder.allocate("float32", 1, name="own", scope="local")
        with builder.if_scope((x % 2).equal(writer)):
            b[x // 2] = a[x]
        own[0] = b[x // 2]
        b[x] = own[0]

    computes(body, [writer + 2 * (k // 2) for k in range(8)])


def test_sums_of_threads_with_digits_of_a_fused_axis_do_not_wait():
    A = te.placeholder((24, 30), name="A")
    k = te.reduce_axis((0, 30), "k")
    C = te.compute((24, 21), lambda i, j: te.sum(A[i, k] * (j + 1), axis=k), name="C")
    s = te.create_schedule(C.op)
    i, j, ii, jj = s[C].tile(*C.op.axis, 8, 4)
    s[C].bind(i, te.thread_axis("blockIdx.x"))
    s[C].bind(j, te.thread_axis("blockIdx.y"))
    s[C].bind(s[C].fuse(ii, jj), te.thread_axis("threadIdx.x"))
    made = str(tedsl.tir.transform.ThreadSync("shared")(tedsl.lower(s, [A, C])))
    assert "storage_sync" not in made
    a, c = np.ones((24, 30), "float32"), np.zeros((24, 21), "float32")
    tedsl.build(s, [A, C])(a, c)
    np.testing.assert_array_equal(c, np.tile(30 * np.arange(1.0, 22), (24, 1)))
