"""`s.explain()`: loops, places, memory and the reasons of guards, as text."""

import textwrap

from tedsl import te

PROGRAM = """\
def reduction(n, m):
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="B")
    k = te.reduce_axis((0, m), "k")
    C = te.compute((n,), lambda i: te.sum(B[i, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    return A, B, C, k, s
"""  # seven lines; the directives begin at line 8


def explained(directives):
    """What the schedule `s` of `directives`, which stand in prog.py, says of itself."""
    names = {"te": te}
    exec(compile(PROGRAM + textwrap.dedent(directives).lstrip(), "prog.py", "exec"), names)
    return names["s"].explain()


def test_a_schedule_without_directives():
    assert explained("A, B, C, k, s = reduction(16, 4)") == """\
schedule of C
  A: placeholder [16, 4] float32
  B: computed at the root
    memory: 16 x 4 float32, 64 elements, 256 bytes
    for i in 0..16
      for j in 0..4
  C: output
    memory: the caller's array
    for i in 0..16
      for k in 0..4 (reduction)"""


def test_places_memory_notes_and_guards():
    assert explained("""
        A, B, C, k, s = reduction(100, 30)
        io, ii = s[C].split(C.op.axis[0], factor=8)
        ko, ki = s[C].split(k, nparts=7)
        s[C].parallel(io)
        s[B].compute_at(s[C], io)
        s[B].set_scope("local")
        s[B].vectorize(s[B].op.axis[1])
        """) == """\
schedule of C
  A: placeholder [100, 30] float32
  B: computed at C, loop i.outer, in local memory, from s[B].compute_at(s[C], i_outer)  (prog.py:12)
    memory: 8 x 30 float32, 240 elements, 960 bytes, in local scope, for each iteration of i.outer of C
    for i in 0..8
      for j in 0..30 (vectorized)
        guard: i.outer*8 + i < 100: what an iteration of i.outer of C needs may reach beyond B along i
          from s[B].compute_at(s[C], i_outer)  (prog.py:12)
  C: output
    memory: the caller's array
    for i.outer in 0..13 (parallel)
      (B is computed here)
      for i.inner in 0..8
        for k.outer in 0..7 (reduction)
          for k.inner in 0..5 (reduction)
            guard: i.outer*8 + i.inner < 100: 8 does not divide 100
              from i_outer, i_inner = s[C].split(s[C].op.axis[0], factor=8)  (prog.py:9)
            guard: k.outer*5 + k.inner < 30: 7 parts of 30 iterations are not all of one size
              from k_outer, k_inner = s[C].split(s[C].op.reduce_axis[0], nparts=7)  (prog.py:10)"""


def test_symbolic_shapes():
    text = explained("""
        n = te.var("n")
        A, B, C, k, s = reduction(n, 30)
        io, ii = s[C].split(C.op.axis[0], factor=8)
        s[B].compute_inline()
        """)
    assert "guard: i.outer*8 + i.inner < n: 8 is not proved to divide n\n" in text
    assert "B: computed inline, from s[B].compute_inline()  (prog.py:11)\n" in text
    assert "bytes" not in text


def test_a_symbolic_buffer_has_no_number_of_bytes():
    assert "memory: n x 30 float32\n" in explained('A, B, C, k, s = reduction(te.var("n"), 30)')


def test_splits_that_come_out_even_leave_no_guard():
    text = explained("""
        n = te.var("n")
        A, B, C, k, s = reduction(n * 8, 32)
        io, ii = s[C].split(C.op.axis[0], factor=8)
        s[C].split(k, 4)
        s[B].compute_at(s[C], ii)
        """)
    assert "guard" not in text and "memory: 1 x 32 float32, 32 elements, 128 bytes, for each iteration of i.inner of C" in text


def test_every_split_behind_a_guard_is_named():
    text = explained("""
        A, B, C, k, s = reduction(100, 4)
        io, ii = s[C].split(C.op.axis[0], factor=8)
        s[C].split(io, factor=3)
        """)
    assert ": 8 does not divide 100; 3 does not divide 13\n" in text
    assert "(prog.py:9)\n" in text and text.endswith("s[C].split(i_outer, factor=3)  (prog.py:10)")


def test_a_store_predicate():
    text = explained("""
        A, B, C, k, s = reduction(16, 4)
        tx = te.thread_axis((0, 4), "threadIdx.x")
        s[C].bind(k, tx)
        s[C].set_store_predicate(tx.var.equal(0))
        """)
    assert "guard: threadIdx.x == 0: the schedule asks for it\n" in text and "(prog.py:11)" in text


def test_a_schedule_that_cannot_be_lowered_says_why():
    text = explained("""
        A, B, C, k, s = reduction(16, 4)
        cache = s.cache_write(C, "local")
        s[B].compute_at(s[cache], s[cache].op.axis[0])
        s.cache_read(B, "local", [cache])
        """)
    assert text.startswith("schedule of C\n  A: placeholder [16, 4] float32\n")
    assert "This schedule cannot be lowered to loops as it stands:\n  B.local reads B, which is computed" in text
    assert "\n    from: s[B].compute_at(s[C_local], s[C_local].op.axis[0])  (prog.py:10)\n" in text


def test_a_scan():
    X = te.placeholder((16, 8), name="X")
    state = te.placeholder((16, 8), name="state")
    first = te.compute((1, 8), lambda _, i: X[0, i], name="first")
    step = te.compute((16, 8), lambda t, i: state[t - 1, i] + X[t, i], name="step")
    total = te.scan(first, step, state, inputs=[X], name="total")
    text = te.create_schedule(total.op).explain()
    assert "cannot be lowered" not in text and "total: output\n    memory: the caller's array" in text
    assert "first: computed at the root\n    memory: rows of total\n" in text
