"""What errors of directives name and propose is there, is Python, and is what was given."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError, ScheduleError
from tedsl.schedule.journal import Journal

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes


@pytest.fixture
def sums():
    """A -> B -> C (a reduction) -> D, the output."""
    A = te.placeholder((8, 16), name="A")
    B = te.compute((8, 16), lambda y, x: A[y, x] + 1.0, name="B")
    k = te.reduce_axis((0, 16), "k")
    C = te.compute((8, 16), lambda y, x: te.sum(B[y, k] * B[y, x], axis=k), name="C")
    D = te.compute((8, 16), lambda y, x: C[y, x] - 1.0, name="D")
    return te.create_schedule(D.op), A, B, C, D


# --- numbers and annotations --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.array])
def test_integers_of_numpy(sums, kind):
    s, A, B, C, D = sums
    s[B].storage_align(B.op.axis[0], kind(16), kind(1))
    s[D].pragma(D.op.axis[1], "auto_unroll_max_step", kind(4))
    s[D].split(D.op.axis[0], kind(2))
    s.rfactor(C, C.op.reduce_axis[0], kind(0))
    assert str(s.journal).splitlines()[0] == "s[B].storage_align(s[B].op.axis[0], 16, 1)" and "(4)" not in str(s.journal)
    assert str(s.journal).splitlines()[-1] == "C_rf = s.rfactor(C, s[C].op.reduce_axis[0])"
    again = te.create_schedule(D.op)
    again.replay(Journal.from_json(s.journal.to_json()))
    assert str(tedsl.lower(again, [A, D])) == str(tedsl.lower(s, [A, D]))
    assert len(s.undo(kind(3))) == 3


@pytest.mark.parametrize("wrong", [True, np.bool_(True), 1.0, "1", None, [1]])
def test_no_integers(sums, wrong):
    s, _, B, C, _ = sums
    for directive in (lambda: s[B].storage_align(B.op.axis[0], wrong, 0), lambda: s.rfactor(C, C.op.reduce_axis[0], wrong)):
        with pytest.raises(ScheduleError, match="integer"):
            directive()
    s[B].compute_inline()
    with pytest.raises(ArgumentTypeError, match=r"undo\(n\): n is a number of directives, an integer.*this schedule has 1"):
        s.undo(wrong)


@pytest.mark.parametrize("directive", ["vectorize", "parallel", "unroll"])
def test_the_same_annotation_twice(sums, directive):
    s, A, B, _, D = sums
    getattr(s[B], directive)(B.op.axis[1])
    expected = str(tedsl.lower(s, [A, D]))
    getattr(s[B], directive)(B.op.axis[1])
    assert str(tedsl.lower(s, [A, D])) == expected and len(s.journal) == 2
    s.undo()
    assert str(tedsl.lower(s, [A, D])) == expected


# --- hints --------------------------------------------------------------------------------------------------------------

def test_readers_are_the_real_ones(sums):
    s, A, B, C, D = sums
    with pytest.raises(ScheduleError, match=r"s\[C\]\.compute_at\(s\[D\], loop\)"):
        s[C].compute_inline()
    with pytest.raises(ScheduleError, match=r"s\[C\]\.compute_at\(s\[D\], loop\) first"):
        s[C].rolling_buffer()
    with pytest.raises(ScheduleError, match=r"write s\[C\]\.compute_at\(s\[D\], loop\)"):
        s[C].compute_at(D, D.op.axis[0])
    DG = s.cache_write(D, "global")
    s[DG].double_buffer()
    with pytest.raises(LoweringError, match=r"call s\[D_global\]\.compute_at\(s\[D\], loop\)"):
        tedsl.lower(s, [A, D])


def test_stages_are_written_as_the_journal_writes_them(sums):
    s, _, B, C, _ = sums
    CR = s.rfactor(C, C.op.reduce_axis[0])
    with pytest.raises(ScheduleError, match=r"use one of s\[C_rf\]\.op\.axis: k, y, x"):
        s[CR].storage_align(B.op.axis[0], 4, 0)
    named = te.compute((4,), lambda i: te.max(i, 1), name="a b")
    other = te.create_schedule(te.compute((4,), lambda i: named[i] + 1, name="E").op)
    with pytest.raises(ScheduleError, match=r"take the axis from s\.stages\[0\]\.op\.axis"):
        other[named].split(0, 4)


def test_a_reduction_cannot_be_shifted(sums):
    """The hint was to call cache_write, whose reduction is refused in the same words."""
    s, _, _, C, _ = sums
    with pytest.raises(ScheduleError) as caught:
        s[C].split(C.op.reduce_axis[0], 3, tail="shift_inwards")
    assert "cache_write" not in str(caught.value)
    with pytest.raises(ScheduleError, match=r"s\.cache_write"):
        s[C].split(C.op.axis[0], 3, tail="shift_inwards")
    s.cache_write(C, "local")
    s[C].split(C.op.axis[0], 3, tail="shift_inwards")


def test_a_version_that_was_taken_back(sums):
    s, _, _, C, _ = sums
    version = s[C].specialize(te.var("n") > 4)
    s.undo()
    with pytest.raises(ScheduleError, match=r"vectorize\(\.\.\.\) on stage C: the version of C where .* was made by a special"):
        version.vectorize(C.op.axis[1])


def test_the_directive_that_placed_a_guest(chain):
    s, B, C, D = chain.s, chain.B, chain.C, chain.D
    outer = s[D].reverse_compute_at(s[C], C.op.axis[0])[0]
    with pytest.raises(ScheduleError, match=r"do this before s\[D\]\.reverse_compute_at\(s\[C\], s\[C\]\.op\.axis\[0\]\), or"):
        s.cache_write(D, "global")
    assert outer is s[D].leaf_iter_vars[0]
    s[B].compute_at(s[C], C.op.axis[1])
    with pytest.raises(ScheduleError, match=r"do this before s\[B\]\.compute_at\(s\[C\], s\[C\]\.op\.axis\[1\]\), or"):
        s.cache_write(C, "global")


@pytest.mark.parametrize("scope, whose", [("local", "which each thread has for itself"),
                                          ("shared", "which the threads of one block share")])
def test_whose_memory_it_is(sums, scope, whose):
    s, A, B, C, D = sums
    s[B].set_scope(scope)
    s[C].bind(C.op.reduce_axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(LoweringError, match=whose + r"(.|\n)*hint: compute it inside .* s\[B\]\.compute_at\(s\[C\], loop\)"):
        tedsl.lower(s, [A, D])
    s[B].compute_at(s[C], C.op.axis[0])
    with pytest.raises(LoweringError, match="hint: move B inside of the threads that read it, to a loop of C within those"):
        tedsl.lower(s, [A, D])


# --- arguments ----------------------------------------------------------------------------------------------------------

def test_which_argument_it_was(sums):
    s, A, B, C, D = sums
    for given, words in [
        (lambda: s.cache_read(A, "local", None), "a reader, the third argument, is a tensor or an operation .* got None"),
        (lambda: s.cache_read("A", "local", [B]), "the first argument is .* got the str 'A'(.|\n)*the tensor that has this"),
        (lambda: s.cache_write(None, "local"), "the first argument is a tensor .* got None"),
        (lambda: s.cache_write(s[B], "local"), "the first argument is a tensor .*(.|\n)*write the tensor, B, not its stage"),
        (lambda: s.create_group(outputs="B", inputs=A), "each of outputs is a tensor"),
        (lambda: s[s[B]], "write the tensor, B, not its stage"),
        (lambda: s[C].reverse_compute_at(s[B], None), "expected an axis, got None"),
    ]:
        with pytest.raises(ScheduleError, match=words):
            given()


# --- journals -----------------------------------------------------------------------------------------------------------

def test_replay_says_once_what_loops_there_are(chain):
    s = chain.s
    s[chain.D].split(chain.D.op.axis[0], 4)
    with pytest.raises(ScheduleError) as caught:
        s.replay(s.journal)
    assert str(caught.value).count("loops now:") == 1 and str(caught.value).count("on stage D") == 1


def test_a_program_of_other_axes(chain):
    s = chain.s
    s[chain.D].split(chain.D.op.axis[1], 4)
    A = te.placeholder((8,), name="A")
    D = te.compute((8,), lambda i: A[i] + 1.0, name="D")
    with pytest.raises(ArgumentError, match=r"s\[D\]\.op\.axis has 1 entry here, and number 1(.|\n)*the same stages and axes"):
        te.create_schedule(D.op).replay(s.journal)


def test_journals_are_added(chain):
    s = chain.s
    s[chain.D].split(chain.D.op.axis[0], 4)
    s[chain.C].specialize(te.var("q") > 4)
    journal = s.journal
    whole = journal[:1] + journal[1:]
    assert type(whole) is type(journal * 2) is type(2 * journal) is Journal and len(journal * 2) == 4
    assert whole == journal and whole.objects == journal.objects
    again = te.create_schedule(chain.D.op)
    again.replay(whole)
    assert str(again) == str(s)
    other = te.create_schedule(chain.D.op)
    other[chain.C].specialize(te.var("q") > 4)
    with pytest.raises(ArgumentError, match="both journals speak of q"):
        journal + other.journal
    with pytest.raises(TypeError):
        journal + ("text",)


def test_the_journal_is_a_public_name():
    assert te.Journal is tedsl.Journal is Journal


# --- versions, groups, layouts ----------------------------------------------------------------------------------------------

@pytest.fixture
def versions():
    """The row sums C of A, with a version where n >= 8, in which the elements and the sum are split."""
    n = te.size_var("n")
    A = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    v = s[C].specialize(n >= 8)
    return s, C, v, v.split(C.op.axis[0], n // 2), v.split(k, 4), [A, C]


def test_hints_about_a_version_are_written_on_its_handle(versions):
    s, C, C_special, (_, i_inner), _, args = versions
    with pytest.raises(ScheduleError, match=r"_, inner = C_special.split\(i.inner, factor=8\); C_special.vectorize\(inner\)"):
        C_special.vectorize(i_inner)
    _, inner = C_special.split(i_inner, factor=8)
    C_special.vectorize(inner)
    tedsl.lower(s, args)


def test_a_loop_of_a_version_is_known_as_one(versions):
    s, C, C_special, (_, i_inner), _, _ = versions
    with pytest.raises(ScheduleError, match=r"i.inner is a loop of stage C in its version where n >= 8(.|\n)*write "
                                            "C_special"):
        s[C].unroll(i_inner)


@pytest.mark.parametrize("apply", [lambda v, i, k: v.parallel(k[0]),
                                   lambda v, i, k: v.split(i[1], 4, tail="shift_inwards"),
                                   lambda v, i, k: v.split(i[1], 4, tail="round_up")])
def test_new_stages_are_made_before_versions(versions, apply):
    _, _, C_special, i, k, _ = versions
    with pytest.raises(ScheduleError, match="written before specialize"):
        apply(C_special, i, k)


def test_a_double_buffer_that_reads_a_rolling_one():
    A = te.placeholder((64,), name="A")
    B = te.compute((63,), lambda i: A[i] + A[i + 1], name="B")
    D = te.compute((62,), lambda i: B[i] + B[i + 1], name="D")
    E = te.compute((62,), lambda i: D[i] * 2.0, name="E")

    def lowered(double=True, rolling=True):
        s = te.create_schedule(E.op)
        outer, _ = s[E].split(E.op.axis[0], 8)
        s[D].compute_at(s[E], outer)
        if double:
            s[D].double_buffer()
        if rolling:
            s[B].compute_at(s[E], outer)
            s[B].rolling_buffer()
        else:
            s[B].compute_root()
        return tedsl.lower(s, [A, E])

    with pytest.raises(LoweringError, match=r"leave s\[D\].double_buffer\(\) out, or s\[B\].rolling_buffer\(\), and then call "
                                            r"s\[B\].compute_root\(\)"):
        lowered()
    lowered(double=False)
    lowered(rolling=False)


def test_the_loop_of_a_group_stays_until_the_group_moves(sums):
    s, A, B, C, D = sums
    group = s.create_group(outputs=C, inputs=A)
    y, _ = D.op.axis
    group.compute_at(s[D], y)
    with pytest.raises(ScheduleError, match=r"do this before (group\w*).compute_at, or call \1.compute_root\(\) first"):
        s.cache_write(D, "global")
    group.compute_root()
    s.cache_write(D, "global")


def test_a_sum_is_divided_in_two_steps(sums):
    s, A, B, C, D = sums
    with pytest.raises(ScheduleError, match=r"call transform_layout twice, first with y\*16 \+ x as an index"):
        s[C].transform_layout(lambda y, x: [(y * 16 + x) // 4, (y * 16 + x) % 4])
    s[C].transform_layout(lambda y, x: [y * 16 + x])
    s[C].transform_layout(lambda at: [at // 4, at % 4])
    tedsl.lower(s, [A, D])


def test_values_of_pragmas_are_journaled_as_they_are(sums):
    s, A, B, C, D = sums
    s[D].pragma(D.op.axis[1], "auto_unroll_max_step", te.const(4, "int64"))
    again = te.create_schedule(D.op)
    again.replay(s.journal)
    assert str(again) == str(s)


def test_strides_that_no_memory_has(sums):
    s, A, B, C, D = sums
    with pytest.raises(ScheduleError, match="the factor is an integer of at least 1 and below 2"):
        s[B].storage_align(B.op.axis[0], 2**31, 0)


def test_loops_of_env_threads_are_launched_as_they_are(sums):
    s, A, B, C, D = sums
    s[D].env_threads([te.thread_axis((0, 4), "threadIdx.x")])
    with pytest.raises(ScheduleError, match="the loops of env_threads are launched as they are"):
        s[D].split(s[D].leaf_iter_vars[0], 2)
