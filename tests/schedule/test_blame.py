"""Errors raised in lowering name the directive that they come from, with the line of the user's program."""

import pickle
import textwrap

import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes

PROGRAM = """\
n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
s = te.create_schedule(C.op)
"""  # five lines; the directives begin at line 6


def failed(directives, act):
    """The message of `act` on the program with `directives`, which stand in prog.py."""
    names = {"te": te, "tedsl": tedsl}
    exec(compile(PROGRAM + textwrap.dedent(directives).lstrip(), "prog.py", "exec"), names)
    with pytest.raises(LoweringError) as caught:
        eval(act, names)
    assert caught.value.about is None, "an error does not hold the schedule"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    return str(caught.value)


def test_an_inlined_stage_as_argument():
    assert failed("""
        s[C].split(C.op.axis[0], 8)
        s[B].compute_inline()
        """, "tedsl.build(s, [A, B, C])") == """\
B is an argument, and its stage is computed inline: nothing would write it
  from: s[B].compute_inline()  (prog.py:7)
  hint: drop B from the arguments, or call s[B].compute_root()"""


def test_unrolling_a_symbolic_loop():
    assert failed("""
        outer, inner = s[C].split(C.op.axis[0], factor=8)
        s[C].unroll(inner)
        s[C].unroll(outer)
        s[B].compute_at(s[C], outer)
        """, "tedsl.lower(s, [A, C])") == """\
loop i.outer is marked unroll but its extent (n + 7)//8 is not a constant
  from: s[C].unroll(i_outer)  (prog.py:8)
  hint: split it by a constant factor first, then unroll the inner loop"""


def test_unrolling_too_much():
    message = failed("""
        outer, inner = s[C].split(C.op.axis[0], factor=100_000_000)
        s[C].unroll(inner)
        """, "tedsl.lower(s, [A, C])")
    assert "\n  from: s[C].unroll(i_inner)  (prog.py:7)\n" in message


def test_each_word_about_memory_for_itself():
    message = failed("""
        s[B].compute_at(s[C], C.op.axis[0])
        s[B].rolling_buffer()
        s[B].storage_align(B.op.axis[0], 8, 1)
        """, "tedsl.lower(s, [A, C])")
    assert "cannot roll" in message
    assert "\n  from: s[B].rolling_buffer()  (prog.py:7)\n" in message
    message = failed("""
        s[B].double_buffer()
        s[B].storage_align(B.op.axis[0], 8, 1)
        """, "tedsl.lower(s, [A, C])")
    assert "\n  from: s[B].double_buffer()  (prog.py:6)\n" in message


def test_prefetching_what_is_not_read():
    message = failed("""
        s[C].prefetch(A, C.op.axis[0], 1)
        outer, inner = s[B].split(B.op.axis[0], factor=8)
        s[B].unroll(inner)
        """, "tedsl.lower(s, [A, C])")
    assert "\n  from: s[C].prefetch(A, s[C].op.axis[0], 1)  (prog.py:6)\n" in message


def test_a_reader_outside_of_the_place():
    message = failed("""
        cache = s.cache_write(C, "local")
        s[B].compute_at(s[cache], s[cache].op.axis[0])
        late = s.cache_read(B, "local", [cache])
        """, "tedsl.lower(s, [A, C])")
    assert "it would find nothing there\n  from: s[B].compute_at(s[C_local], s[C_local].op.axis[0])  (prog.py:7)" in message


def test_the_newest_of_several_placements_is_named():
    message = failed("""
        s[B].compute_inline()
        s[B].compute_root()
        for directive in (s[B].compute_inline,):
            directive()
        """, "tedsl.build(s, [A, B, C])")
    assert "from: s[B].compute_inline()  (prog.py:9)" in message


def test_what_no_directive_caused_names_none():
    assert "from:" not in failed("", "tedsl.lower(s, [C])")


def test_a_library_in_between_is_passed_over():
    """Directives of a schedule that topi wrote are those of the line that called topi."""
    names = {"te": te, "tedsl": tedsl}
    exec(compile(PROGRAM + "import topi\nD = topi.nn.relu(C)\n", "prog.py", "exec"), names)
    s = te.create_schedule(names["D"].op)
    s[names["C"]].compute_inline()
    (only,) = s.journal
    assert only.where is not None and only.where.file == __file__


def test_threads_and_tails():
    message = failed("""
        outer, inner = s[C].split(C.op.axis[0], factor=8)
        s[C].bind(inner, te.thread_axis((0, 4), "threadIdx.x"))
        """, "tedsl.lower(s, [A, C])")
    assert "the loop has 8 iterations" in message and ":= te.thread_axis((0, 4), 'threadIdx.x'))  (prog.py:7)\n" in message
    message = failed("""
        s[C].split(C.op.axis[0], factor=8)
        s[B].split(B.op.axis[0], factor=8, tail="round_up")
        """, "tedsl.lower(s, [A, B, C])")
    assert "memory of the caller cannot be enlarged\n  from: i_outer_1, i_inner_1 = s[B].split(" in message
