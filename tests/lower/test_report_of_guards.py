"""`s.explain()` says what the lowered text shows: the sizes of memory, every guard and its directive, names told apart."""

import itertools
import re

import pytest

import tedsl
from tedsl import te


def table(rows=8, columns=12):
    A = te.placeholder((rows, columns), name="A")
    B = te.compute(A.shape, lambda y, x: A[y, x] + 1.0, name="B")
    C = te.compute(A.shape, lambda y, x: B[y, x] * 2.0, name="C")
    return A, B, C, te.create_schedule(C.op)


def blur():
    A = te.placeholder((18,), name="A")
    B = te.compute((18,), lambda x: A[x] * 2.0, name="B")
    C = te.compute((16,), lambda x: B[x] + B[x + 2], name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], s[C].split(C.op.axis[0], 4)[0])
    return A, B, C, s


def aligned():
    A, B, C, s = table()
    s[B].storage_align(B.op.axis[0], 16, 1)
    return s, [A, C]


def aligned_in_tiles():
    A, B, C, s = table(10, 16)
    s[B].compute_at(s[C], s[C].tile(*C.op.axis, 4, 5)[1])
    s[B].storage_align(B.op.axis[0], 8, 1)
    return s, [A, C]


def double_buffered():
    A, B, C, s = blur()
    s[B].double_buffer()
    return s, [A, C]


def rolling():
    A, B, C, s = blur()
    s[B].rolling_buffer()
    return s, [A, C]


def under_virtual_threads():
    A, B, C, s = table()
    outer, _ = s[C].split(C.op.axis[0], nparts=2)
    s[C].bind(outer, te.thread_axis("vthread"))
    s[B].compute_at(s[C], outer)
    return s, [A, C]


@pytest.mark.parametrize("program", [aligned, aligned_in_tiles, double_buffered, rolling, under_virtual_threads])
def test_memory_is_what_the_loops_allocate(program):
    s, args = program()
    (size,) = re.findall(r"allocate\(B: [^\[]*\[(\d+)\]", str(tedsl.lower(s, args, simple_mode=True)))
    assert f" float32, {size} elements, {4 * int(size)} bytes" in s.explain()


def test_the_scope_stands_at_every_output():
    A = te.placeholder((8,), name="A")
    T, U = te.compute((8,), lambda i: (A[i] * 2, A[i] + 1.0), name="T")
    C = te.compute((8,), lambda i: T[i] + U[i], name="C")
    s = te.create_schedule(C.op)
    s[T].set_scope("local")
    assert s.explain().count("8 float32, 8 elements, 32 bytes, in local scope") == 2


def guards(s):
    """The conditions of an explanation, each with the line below it."""
    lines = [line.strip() for line in s.explain().splitlines()]
    return {line.removeprefix("guard: ").split(": ")[0]: below for line, below in itertools.pairwise(lines)
            if line.startswith("guard: ")}


def test_the_tail_that_rfactor_took_over():
    A = te.placeholder((7, 30), name="A")
    k = te.reduce_axis((0, 30), "k")
    for where in (None, lambda i: A[i, k] > 0):
        B = te.compute((7,), lambda i, where=where: te.sum(A[i, k], axis=k, where=where and where(i)), name="B")
        s = te.create_schedule(B.op)
        s.rfactor(B, s[B].split(k, 8)[1])
        (line,) = guards(s).items()
        assert line[0] == "k.outer*8 + k.inner < 30" and "= s.rfactor(B, k_inner)" in line[1]


@pytest.mark.parametrize("extent", [10, te.size_var("n")], ids=["constant", "symbolic"])
@pytest.mark.parametrize("formula", ["elements", "sums", "where"])
def test_the_tails_that_cache_write_took_over(extent, formula):
    A = te.placeholder((extent, 6), name="A")
    k = te.reduce_axis((0, 6), "k")
    C = te.compute((extent, 6), lambda i, j: {
        "elements": lambda: te.if_then_else(j < 3, A[i, j], 0.0), "sums": lambda: te.sum(A[i, k], axis=k),
        "where": lambda: te.sum(A[i, k], axis=k, where=k < j)}[formula](), name="C")
    s = te.create_schedule(C.op)
    s[C].tile(*C.op.axis, 4, 5)
    s.cache_write(C, "local")
    said = re.findall(r"guard: (.*): a loop that cache_write took over has a tail\n *from (.*?) +\(", s.explain())
    assert len(said) == 1 and said[0][1] == "C_local = s.cache_write(C, 'local')"
    assert re.search(r"i.outer.c\*4.* < (10|n).* < 6", said[0][0]), said


def test_a_rolling_buffer():
    s, _ = rolling()
    assert "s[B].rolling_buffer()" in guards(s)["not computed by the iteration of x.outer before"]


def test_a_stage_on_fewer_threads_than_the_launch():
    A, B, C, s = table()
    s[B].set_scope("shared")
    s[B].compute_at(s[C], C.op.axis[0])
    tx = te.thread_axis("threadIdx.x")
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    s[C].bind(C.op.axis[1], tx)
    s[B].bind(s[B].split(B.op.axis[1], 4)[1], tx)
    found = guards(s)
    assert "threadIdx.x < 4" in str(tedsl.lower(s, [A, C], simple_mode=True))
    assert "s[B].bind(" in found["threadIdx.x < 4"]
    assert not any("s[C].bind(" in line for line in found.values())


def test_a_layout_with_places_that_hold_nothing():
    A, B, C, s = table()
    s[B].transform_layout(lambda y, x: [x // 5, y, x % 5])
    assert "s[B].transform_layout(" in guards(s)["axis2 + axis0*5 < 12"]
    A, B, C, s = table()
    s[B].transform_layout(lambda y, x: [x // 4, y, x % 4])
    assert not guards(s)


def test_reads_of_full_tiles():
    n = te.size_var("n")
    A, B, C, s = table(n, 16)
    s[B].split(B.op.axis[0], 3, tail="round_up")
    assert "tail='round_up')" in guards(s)["y.outer*3 + y.inner < n"]


def test_tiles_that_are_moved_inwards():
    n = te.size_var("n")
    A, B, C, s = table(n, 16)
    s[C].split(C.op.axis[0], 4, tail="shift_inwards")
    assert "tail='shift_inwards')" in guards(s)["y.inner < n"]


def test_two_loops_of_one_name_in_one_condition():
    A, B, C, s = table(10, 16)
    s[B].compute_at(s[C], s[C].tile(*C.op.axis, 4, 5)[1])
    s[B].split(B.op.axis[1], 4)
    assert "C.x.outer*5 + (x.outer*4 + x.inner) < 16" in guards(s)
