"""Threads and the memory of statements that users write: te.extern inside of a bound loop, bound loops of a hybrid script."""
# ruff: noqa: F821 - the names of hybrid script are known inside of the functions only

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError


def extern_inside_threads(scope, launched, around, count=8):
    """B, the numbers of A backwards, by threads that its own statements launch, inside of a loop over threads."""

    def statements(ins, outs):
        builder = tir.ir_builder.create()
        thread = te.thread_axis(launched)
        builder.scope_attr(thread, "thread_extent", count)
        read, write = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        with builder.for_range(0, 8 // count, name="i") as i:
            write[thread + i] = read[7 - thread - i]
        return builder.get()

    A = te.placeholder((8,), name="A")
    B = te.extern((8,), [A], statements, name="B", dtype="float32")
    C = te.compute((8, 8), lambda i, j: B[7 - j] + i, name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[1], te.thread_axis(around))
    s[B].compute_at(s[C], C.op.axis[1])
    s[B].set_scope(scope)
    return s, [A, C]


@pytest.mark.parametrize("scope,launched,around", [("", "threadIdx.x", "threadIdx.x"), ("", "threadIdx.y", "threadIdx.x"),
                                                   ("local", "threadIdx.x", "threadIdx.x"), ("", "threadIdx.x", "vthread"),
                                                   ("warp", "threadIdx.y", "threadIdx.y")])
def test_statements_that_launch_threads_do_not_fill_the_memory_of_one(scope, launched, around):
    """Each thread had one element, in memory of its own, and read that of another: whatever was there."""
    with pytest.raises(LoweringError) as refused:
        tedsl.lower(*extern_inside_threads(scope, launched, around))
    text = str(refused.value)
    assert f"the statements of B launch threads of {launched}, and the memory of B, of scope '{scope or 'local'}'" in text
    assert "s[B].compute_at(s[C], " in text and 's[B].set_scope("shared")' in text


def test_statements_do_not_launch_blocks_inside_of_a_kernel():
    with pytest.raises(LoweringError, match=r"launch threads of blockIdx.x(.|\n)*blocks cannot wait(.|\n)*compute_root\(\)"):
        tedsl.lower(*extern_inside_threads("global", "blockIdx.x", "threadIdx.x"))


@pytest.mark.parametrize("scope,launched,around,count", [
    ("shared", "threadIdx.x", "threadIdx.x", 8), ("shared", "threadIdx.y", "threadIdx.x", 8),
    ("warp", "threadIdx.x", "threadIdx.x", 8), ("", "threadIdx.x", "blockIdx.x", 8), ("", "threadIdx.y", "threadIdx.x", 1)])
@pytest.mark.parametrize("checked", [False, True])
def test_statements_launch_threads_for_memory_that_these_share(scope, launched, around, count, checked):
    a, c = np.arange(8, dtype="float32"), np.zeros((8, 8), "float32")
    tedsl.build(*extern_inside_threads(scope, launched, around, count), checked=checked)(a, c)
    np.testing.assert_array_equal(c, a + np.arange(8)[:, None])


@te.hybrid.script
def reversed_rows(a):
    b = output_tensor((4, 8), "float32")
    kept = allocate((8,), "float32", "local")
    for i in range(4):
        for j in range(8):
            kept[j] = a[i, j] * 2.0
        for k in range(8):
            b[i, k] = kept[7 - k]
    return b


@te.hybrid.script
def reversed_rows_in_shared_memory(a):
    b = output_tensor((4, 8), "float32")
    kept = allocate((8,), "float32", "shared")
    for i in range(4):
        for j in range(8):
            kept[j] = a[i, j] * 2.0
        for k in range(8):
            b[i, k] = kept[7 - k]
    return b


@te.hybrid.script
def reversed_rows_each_in_its_own(a):
    b = output_tensor((4, 8), "float32")
    for i in range(4):
        kept = allocate((8,), "float32", "local")
        for j in range(8):
            kept[j] = a[i, j] * 2.0
        for k in range(8):
            b[i, k] = kept[7 - k]
    return b


@te.hybrid.script
def rows_by_blocks(a):
    b = output_tensor((4, 8), "float32")
    for i in range(4):
        kept = allocate((8,), "float32")
        for j in range(8):
            kept[j] = a[i, j] * 2.0
        for k in range(8):
            b[i, k] = kept[7 - k]
    return b


def script_on_threads(script, loop, tag, scope="shared", around="threadIdx.x", split=False):
    """`script`, one of whose loops is bound, inside of a loop over threads of `around` or at the root (None)."""
    A = te.placeholder((4, 8), name="A")
    B = script(A)
    C = te.compute((4, 8), lambda i, j: B[i, j] + 1, name="C")
    s = te.create_schedule(C.op)
    if around is not None:
        s[C].bind(C.op.axis[1], te.thread_axis(around))
        s[B].compute_at(s[C], C.op.axis[1])
        s[B].set_scope(scope)
    bound = s[B].leaf_iter_vars["ijk".index(loop)]
    if split:
        _, bound = s[B].split(bound, factor=4)
    s[B].bind(bound, te.thread_axis(tag))
    return s, [A, C]


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("tag,scope,around", [("threadIdx.x", "shared", "threadIdx.x"),
                                              ("threadIdx.x", "global", "threadIdx.x"),
                                              ("threadIdx.x", "warp", "threadIdx.x"), ("threadIdx.y", "shared", "threadIdx.y"),
                                              ("threadIdx.y", "shared", "threadIdx.x"), ("threadIdx.x", "", None)])
def test_a_script_does_not_read_what_other_threads_keep_for_themselves(tag, scope, around, split):
    """Each thread wrote the element of its iteration to memory of its own, and read that of another: whatever was there."""
    with pytest.raises(LoweringError) as refused:
        tedsl.lower(*script_on_threads(reversed_rows, "j", tag, scope, around, split))
    text = str(refused.value)
    assert f"loop j{'.inner' if split else ''} of reversed_rows is bound to {tag} and writes kept, whose memory, of scope " \
           "'local', belongs to one thread; kept is read outside of that loop" in text
    assert 'allocate kept in the script with scope "shared"' in text and ".bind(" in text


def test_a_script_does_not_read_what_other_blocks_write():
    s, args = script_on_threads(rows_by_blocks, "j", "blockIdx.x", around=None)
    s.stages[1].bind(s.stages[1].leaf_iter_vars[0], te.thread_axis("blockIdx.y"))
    with pytest.raises(LoweringError, match=r"loop j of rows_by_blocks is bound to blockIdx.x and writes kept(.|\n)*one block"):
        tedsl.lower(s, args)


@pytest.mark.parametrize("script,loop,tag,around", [
    (reversed_rows_in_shared_memory, "j", "threadIdx.x", "threadIdx.x"), (rows_by_blocks, "j", "threadIdx.y", "threadIdx.x"),
    (reversed_rows, "k", "threadIdx.x", "threadIdx.x"), (reversed_rows, "j", "vthread", "threadIdx.x"),
    (reversed_rows_each_in_its_own, "i", "threadIdx.y", "threadIdx.x"),
    (reversed_rows_each_in_its_own, "i", "threadIdx.x", None),
    (reversed_rows_each_in_its_own, "k", "threadIdx.x", None), (rows_by_blocks, "j", "blockIdx.x", None)])
@pytest.mark.parametrize("checked", [False, True])
def test_a_script_keeps_values_where_threads_find_them(script, loop, tag, around, checked):
    s, args = script_on_threads(script, loop, tag, around=around)
    a, c = np.arange(32, dtype="float32").reshape(4, 8), np.zeros((4, 8), "float32")
    tedsl.build(s, args, checked=checked)(a, c)
    np.testing.assert_array_equal(c, a[:, ::-1] * 2 + 1)


def test_indices_and_conditions_that_go_through_memory_of_a_thread():
    """A cursor and a condition in local memory tell the threads apart: no two update one element."""
    def cursor(ins, outs):
        ib = tir.ir_builder.create()
        data, out, tx = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]), te.thread_axis("threadIdx.x")
        ib.scope_attr(tx, "thread_extent", 4)
        at = ib.allocate("int32", (1,), name="at", scope="local")
        at[0] = tx * 4
        with ib.for_range(0, 4):
            out[at[0]] = 0
            with ib.for_range(0, 3):
                out[at[0]] = out[at[0]] + data[at[0]]
            at[0] = at[0] + 1
        with ib.if_scope(at[0] < 5):
            out[0] = out[0] + 5
        return ib.get()

    A = te.placeholder((16,), "int32", name="A")
    C = te.extern((16,), [A], cursor, dtype="int32", name="C")
    data, result = np.arange(16, dtype="int32"), np.zeros(16, "int32")
    for checked in (False, True):
        tedsl.build(te.create_schedule(C.op), [A, C], checked=checked)(data, result)
        np.testing.assert_array_equal(result, 3 * data + 5 * (data == 0))


def test_memory_of_a_thread_that_all_fill_alike_tells_nothing_apart():
    def same(_, outs):
        ib = tir.ir_builder.create()
        out, tx = ib.buffer_ptr(outs[0]), te.thread_axis("threadIdx.x")
        ib.scope_attr(tx, "thread_extent", 4)
        at = ib.allocate("int32", (1,), name="at", scope="local")
        at[0] = 2
        out[at[0]] = out[at[0]] + 1
        return ib.get()

    C = te.extern((16,), [], same, dtype="int32", name="C")
    with pytest.raises(LoweringError, match=r"4 threads of threadIdx\.x update"):
        tedsl.build(te.create_schedule(C.op), [C])
