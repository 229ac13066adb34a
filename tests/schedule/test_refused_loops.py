"""Directives on loops that cannot be applied: each is a ScheduleError that says why and what to do, and changes nothing."""

import warnings

import numpy as np
import pytest

from tedsl import lower, te
from tedsl.errors import ScheduleError
from tedsl.schedule.handles import create_schedule

# --- a loop that is none ----------------------------------------------------------------------------------------------

def test_a_loop_that_was_split(chain, refused):
    i, _ = chain.D.op.axis
    chain.s[chain.D].split(i, 8)
    error = refused(chain.s, lambda: chain.s[chain.D].vectorize(i), "vectorize(i) on stage D",
                    "i was split into i.outer, i.inner", "loops now: i.outer, i.inner, j", "hint: use one of these loops")
    assert error.stage == "D" and error.loops == ("i.outer", "i.inner", "j")


def test_a_loop_that_was_fused(chain, refused):
    i, j = chain.D.op.axis
    chain.s[chain.D].fuse(i, j)
    refused(chain.s, lambda: chain.s[chain.D].split(j, 8), "i and j were fused into i.j.fused", "use i.j.fused")


def test_reorder_with_a_loop_that_was_split(chain, refused):
    i, j = chain.D.op.axis
    chain.s[chain.D].split(j, 8)
    refused(chain.s, lambda: chain.s[chain.D].reorder(j, i), "reorder(j, i)", "j was split into j.outer, j.inner")


def test_a_loop_of_another_stage(chain, refused):
    i, _ = chain.C.op.axis
    refused(chain.s, lambda: chain.s[chain.D].split(i, 8), "i is a loop of stage C", "s[C]", "s[D].op.axis")


def test_reorder_with_a_loop_of_another_stage(chain, refused):
    refused(chain.s, lambda: chain.s[chain.D].reorder(chain.D.op.axis[1], chain.C.op.axis[0]), "i is a loop of stage C")


def test_a_loop_of_another_schedule(chain, refused):
    other = create_schedule(chain.D.op)
    outer, _ = other[chain.D].split(chain.D.op.axis[0], 4)
    chain.s[chain.D].split(chain.D.op.axis[0], 4)
    refused(chain.s, lambda: chain.s[chain.D].parallel(outer), "the loop i.outer given is not the i.outer of this stage",
            "another schedule")


def test_a_loop_of_another_program(chain, refused):
    refused(chain.s, lambda: chain.s[chain.D].parallel(te.reduce_axis((0, 4), "r")), "r is not a loop of this schedule")


@pytest.mark.parametrize("value, words", [(0, "expected an axis, got the int 0"), (None, "got None"), ("i", "got the str 'i'"),
                                          ([1, 2], "got a list of 2")])
def test_no_axis_at_all(chain, refused, value, words):
    for name in ("split", "vectorize", "unroll", "parallel"):
        arguments = (value, 4) if name == "split" else (value,)
        refused(chain.s, lambda n=name, a=arguments: getattr(chain.s[chain.D], n)(*a), words, "s[D].op.axis")


def test_a_tensor_in_place_of_an_axis(chain, refused):
    refused(chain.s, lambda: chain.s[chain.D].split(chain.C, 4), "split(C, factor=4)", "expected an axis, got the tensor C")


def test_a_variable_in_place_of_an_axis(chain, refused):
    refused(chain.s, lambda: chain.s[chain.D].unroll(chain.D.op.axis[0].var), "got the variable i")


def test_fuse_of_a_list(chain, refused):
    refused(chain.s, lambda: chain.s[chain.D].fuse(list(chain.D.op.axis)), "expected an axis, got a list of 2")


def test_reorder_of_a_list(chain, refused):
    refused(chain.s, lambda: chain.s[chain.D].reorder(list(chain.D.op.axis)), "expected an axis, got a list of 2")


@pytest.mark.parametrize("directive", [
    lambda st, i: st.split(i, 4), lambda st, i: st.fuse(i), lambda st, i: st.fuse(), lambda st, i: st.reorder(i),
    lambda st, i: st.reorder(), lambda st, i: st.vectorize(i), lambda st, i: st.unroll(i), lambda st, i: st.parallel(i),
    lambda st, i: st.tile(i, i, 2, 2), lambda st, i: st.pragma(i, "unroll"), lambda st, i: st.compute_inline(),
    lambda st, i: st.set_scope("local"), lambda st, i: st.nontemporal()])
def test_a_placeholder_has_no_loops(chain, refused, directive):
    i, _ = chain.D.op.axis
    refused(chain.s, lambda: directive(chain.s[chain.A], i), "on stage A", "A is a placeholder", "loops now: (none)",
            "cache_read(A")


# --- split and tile -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("factor", [0, -1, -64])
def test_a_factor_below_one(chain, refused, factor):
    i, _ = chain.D.op.axis
    refused(chain.s, lambda: chain.s[chain.D].split(i, factor), f"split(i, factor={factor})", "the factor must be at least 1",
            "factor=1 leaves i in one piece")
    refused(chain.s, lambda: chain.s[chain.D].split(i, nparts=factor), f"nparts={factor}", "the nparts must be at least 1")


@pytest.mark.parametrize("factor, words", [(2.0, "2.0"), ("8", "the str '8'"), (True, "the bool True"), ((8,), "a tuple of 1"),
                                           (np.float32(2), "float32")])
def test_a_factor_that_is_no_integer(chain, refused, factor, words):
    i, _ = chain.D.op.axis
    refused(chain.s, lambda: chain.s[chain.D].split(i, factor), "the factor must be an integer", words, "for example factor=8")


def test_a_factor_that_is_an_axis(chain, refused):
    i, j = chain.D.op.axis
    refused(chain.s, lambda: chain.s[chain.D].split(i, j), "the factor must be an integer, got the IterVar j")


def test_a_factor_beyond_the_dtype(chain, refused):
    refused(chain.s, lambda: chain.s[chain.D].split(chain.D.op.axis[0], 2**40), "does not fit the dtype int32 of i")


def test_neither_factor_nor_nparts(chain, refused):
    i, _ = chain.D.op.axis
    error = refused(chain.s, lambda: chain.s[chain.D].split(i), "neither of factor and nparts", "give one")
    assert isinstance(error, ValueError)


def test_both_factor_and_nparts(chain, refused):
    i, _ = chain.D.op.axis
    error = refused(chain.s, lambda: chain.s[chain.D].split(i, 4, 4), "split(i, factor=4, nparts=4)",
            "both of factor and nparts")
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("annotate, said", [("vectorize", "vectorized"), ("parallel", "parallel"), ("unroll", "unrolled")])
@pytest.mark.parametrize("written, cut", [
    ("split(i, factor=4)", lambda stage, i, j: stage.split(i, 4)), ("fuse(i, j)", lambda stage, i, j: stage.fuse(i, j)),
    ("tile(i, j, 4, 4)", lambda stage, i, j: stage.tile(i, j, 4, 4)),
    ("tile(j, i, 4, 4)", lambda stage, i, j: (stage.reorder(j, i), stage.tile(j, i, 4, 4)))])
def test_the_loops_that_replace_an_annotated_loop_are_plain(chain, annotate, said, written, cut):
    plain, stage = create_schedule(chain.D.op), chain.s[chain.D]
    i, j = chain.D.op.axis
    cut(plain[chain.D], i, j)
    getattr(stage, annotate)(i)
    with pytest.warns(UserWarning) as warned:
        cut(stage, i, j)
    assert [str(one.message) for one in warned] == [
        f"{written} on stage D: i was {said}, and what replaces it is not, as in TVM; call {annotate} after "
        f"{written.partition('(')[0]}, on a new loop"]
    assert warned[0].filename == __file__
    args = [chain.A, chain.D]
    assert str(lower(chain.s, args, simple_mode=True)) == str(lower(plain, args, simple_mode=True))
    assert str(lower(chain.s.copy(), args, simple_mode=True)) == str(lower(plain, args, simple_mode=True))
    chain.s.undo()
    assert stage.state.annotation_of(i) == said


def test_a_warning_that_is_an_error_leaves_the_schedule_as_it_was(chain):
    i, j = chain.D.op.axis
    stage = chain.s[chain.D]
    stage.parallel(i)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cut in (lambda: stage.split(i, 4), lambda: stage.fuse(i, j), lambda: stage.tile(j, i, 4, 4)):
            with pytest.raises(UserWarning, match="i was parallel"):
                cut()
            assert stage.state.annotation_of(i) == "parallel" and stage.state.leaf_iter_vars == (i, j)
            assert stage.state.iter_var_attrs.keys() == {i}


def test_a_loop_with_a_pragma_is_not_split(chain, refused):
    i, _ = chain.D.op.axis
    chain.s[chain.D].pragma(i, "auto_unroll_max_step", 8)
    refused(chain.s, lambda: chain.s[chain.D].split(i, 4), "i is already marked with the pragma auto_unroll_max_step")


def test_tile_checks_both_loops_before_it_splits_one(chain, refused):
    i, j = chain.D.op.axis
    stage = chain.s[chain.D]
    refused(chain.s, lambda: stage.tile(i, j, 8, 0), "tile(i, j, 8, 0) on stage D", "the y_factor must be at least 1")
    refused(chain.s, lambda: stage.tile(i, i, 8, 8), "i is named twice")
    refused(chain.s, lambda: stage.tile(i, chain.C.op.axis[0], 8, 8), "i is a loop of stage C")


# --- fuse and reorder -----------------------------------------------------------------------------------------------------

def test_fuse_of_loops_that_are_not_neighbours(matmul, refused):
    s = matmul.s
    i, j = matmul.D.op.axis
    jo, ji = s[matmul.D].split(j, 4)
    refused(s, lambda: s[matmul.D].fuse(i, ji), "i and j.inner are not neighbours: j.outer stands between them",
            "reorder first")
    refused(s, lambda: s[matmul.D].fuse(i, jo, i), "i is named twice")


def test_fuse_of_three_with_a_gap_changes_nothing(refused):
    A = te.placeholder((2, 3, 4, 5), name="A")
    B = te.compute((2, 3, 4, 5), lambda a, b, c, d: A[a, b, c, d], name="B")
    s = create_schedule(B.op)
    a, b, _, d = B.op.axis
    refused(s, lambda: s[B].fuse(a, b, d), "a.b.fused and d are not neighbours: c stands between them")


def test_fuse_of_a_reduction_with_elements(matmul, refused):
    _, j = matmul.C.op.axis
    matmul.s[matmul.C].decompose_reduction(j)
    refused(matmul.s, lambda: matmul.s[matmul.C].fuse(j, matmul.k), "fuse(j, k) on stage C", "j is already the place of")
    i, j = matmul.C.op.axis
    matmul.s.undo()
    matmul.s[matmul.C].decompose_reduction(i)
    refused(matmul.s, lambda: matmul.s[matmul.C].fuse(j, matmul.k), "k is a reduction loop and j a loop over elements, and "
            "decompose_reduction put the start values at i")


def test_reorder_with_a_loop_named_twice(chain, refused):
    i, j = chain.D.op.axis
    refused(chain.s, lambda: chain.s[chain.D].reorder(i, j, i), "reorder(i, j, i)", "i is named twice", "name each loop once")


# --- annotations --------------------------------------------------------------------------------------------------------

def test_parallel_of_a_reduction(matmul, refused):
    refused(matmul.s, lambda: matmul.s[matmul.C].parallel(matmul.k), "parallel(k) on stage C", "k is a reduction loop",
            "threads would race", "s.rfactor(C, k)", "loops now: i, j, k")


@pytest.mark.parametrize("mark, words", [("vectorize", "lanes would race"), ("parallel", "threads would race")])
def test_marks_of_elements_and_their_reduction(matmul, refused, mark, words):
    both = matmul.s[matmul.C].fuse(matmul.C.op.axis[1], matmul.k)
    told = refused(matmul.s, lambda: getattr(matmul.s[matmul.C], mark)(both), "j.k.fused is a reduction loop", words,
                   "j.k.fused runs over elements and over the reduction at once")
    assert "rfactor" not in str(told)  # which refuses such a loop


def test_vectorize_of_a_symbolic_extent(refused):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    refused(s, lambda: s[B].vectorize(B.op.axis[0]), "the extent of i is n, which is not a constant", "split it by a constant")
    outer, _ = s[B].split(B.op.axis[0], 8)
    refused(s, lambda: s[B].vectorize(outer), "the extent of i.outer is (n + 7)//8")


def test_vectorize_of_a_loop_at_which_a_stage_is_computed(chain, refused):
    i, _ = chain.D.op.axis
    chain.s[chain.C].compute_at(chain.s[chain.D], i)
    chain.s[chain.C].vectorize(chain.C.op.axis[1])
    refused(chain.s, lambda: chain.s[chain.D].vectorize(i), "C is computed at i, inside what would be a vector",
            "j of C is vectorized", "a loop outside of i")


def test_annotations_of_a_stage_inside_a_vector(chain, refused):
    i, j = chain.D.op.axis
    chain.s[chain.C].compute_at(chain.s[chain.D], j)
    chain.s[chain.D].vectorize(j)
    for what, thread in (("vectorize", ()), ("parallel", ()), ("bind", (te.thread_axis("threadIdx.x"),))):
        refused(chain.s, lambda w=what, t=thread: getattr(chain.s[chain.C], w)(chain.C.op.axis[1], *t),
                "C is computed inside j of D, which is vectorized", "a loop outside of j")


@pytest.mark.parametrize("kind, value, words", [
    ("auto unroll", 16, "there is no pragma 'auto unroll'"), ("joined", 1, "there is no pragma 'joined'"),
    ("import_fortran", "end", "there is no pragma 'import_fortran'"), (3, 16, "the pragma is a string, got the int 3"),
    ("auto_unroll_max_step", None, "the value of auto_unroll_max_step is a constant integer, got None"),
    ("auto_unroll_max_step", "8", "a constant integer, got the str '8'"), ("import_c", [1],
    "import_c takes code as text, got a list of 1"), ("import_llvm", None, "import_llvm takes code as text, got None"),
    ("loop_partition_hint", [1], "a number or a string, got a list of 1"),
    ("", 1, "choose one of unroll, vectorize, auto_unroll_max_step")])
def test_wrong_pragmas(chain, refused, kind, value, words):
    refused(chain.s, lambda: chain.s[chain.D].pragma(chain.D.op.axis[0], kind, value), words)


def test_bind_takes_a_thread_axis(chain, refused):
    i, j = chain.D.op.axis
    refused(chain.s, lambda: chain.s[chain.D].bind(i, j), "bind(i, j)", "the second argument is a thread axis, got the axis j",
            "te.thread_axis")
    refused(chain.s, lambda: chain.s[chain.D].bind(i, "threadIdx.x"), "got the str 'threadIdx.x'")


def test_bind_of_a_bound_loop_or_thread(chain, refused):
    i, j = chain.D.op.axis
    thread = te.thread_axis("threadIdx.x")
    chain.s[chain.D].bind(i, thread)
    refused(chain.s, lambda: chain.s[chain.D].split(i, 4), "i is already bound to threadIdx.x")
    refused(chain.s, lambda: chain.s[chain.D].bind(j, thread), "i is already bound to threadIdx.x",
            "bind each thread axis once")


# --- memory ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("scope, words", [("Local", "there is no memory scope 'Local'"),
    (1, "the scope is a string, got the int 1")])
def test_wrong_scopes(chain, refused, scope, words):
    refused(chain.s, lambda: chain.s[chain.C].set_scope(scope), "set_scope", words)
    refused(chain.s, lambda: chain.s.cache_write(chain.C, scope), "cache_write", words)
    refused(chain.s, lambda: chain.s.cache_read(chain.A, scope, [chain.B]), "cache_read", words)


def test_nontemporal_is_for_outputs(chain, refused):
    refused(chain.s, lambda: chain.s[chain.C].nontemporal(), "nontemporal() on stage C", "C is not an output",
            "create_schedule: D")


# --- the schedule itself ------------------------------------------------------------------------------------------------

def test_a_tensor_of_another_program(chain, refused):
    X = te.placeholder((4,), name="X")
    A = te.placeholder((64, 48), name="A")
    refused(chain.s, lambda: chain.s[X], "X is not part of this schedule", "stages of this schedule: A, B, C, D")
    refused(chain.s, lambda: chain.s[A], "its A is another operation of the same name")
    refused(chain.s, lambda: chain.s["A"], "the key is a tensor or an operation of this schedule, got the str 'A'")


def test_create_schedule_of_what_is_no_operation():
    with pytest.raises(TypeError, match="takes operations, got the int 3"):
        create_schedule(3)
    with pytest.raises(TypeError, match="create_schedule of nothing"):
        create_schedule([])


def test_schedule_errors_are_value_errors(chain):
    assert issubclass(ScheduleError, RuntimeError)
    with pytest.raises(ValueError, match="at least 1"):
        chain.s[chain.D].split(chain.D.op.axis[0], 0)
