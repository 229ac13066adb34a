"""specialize: two versions of the loops of a stage behind one condition, scheduled apart."""

from textwrap import dedent

import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError, ScheduleError
from tedsl.schedule.handles import create_schedule
from tests.lower.end_to_end import check_both, check_calls, loops
from tests.lower.programs import whole_numbers

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes

SIZES = (0, 1, 7, 8, 13, 16, 20)


def chain(factor=8):
    """C = (A + 1) * 2 over n elements; the loop of C is split."""
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    P = te.compute((n,), lambda i: A[i] + 1.0, name="P")
    C = te.compute((n,), lambda i: P[i] * 2.0, name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor)
    return s, n, A, P, C, outer, inner


def right(s, n, A, C, sizes=SIZES):
    check_calls(s, [A, C], [({A: whole_numbers((size,))}, {n: size}) for size in sizes])


def test_before_and_after():
    s, n, A, P, C, _, inner = chain()
    s[P].compute_inline()
    s[C].vectorize(inner)
    s[C].specialize(n % 8 == 0)
    assert loops(s, [A, C]) == dedent("""\
        if (floormod(n, 8) == 0) {
          for (i.outer: int32, 0, floordiv(n, 8)) {
            for (i.inner: int32, 0, 8) "vectorized" {
              C[((i.outer*8) + i.inner)] = ((A[((i.outer*8) + i.inner)] + 1f32)*2f32)
            }
          }
        } else {
          for (i.outer_1: int32, 0, floordiv((n + 7), 8)) {
            for (i.inner_1: int32, 0, 8) "vectorized" {
              if @tir.likely((((i.outer_1*8) + i.inner_1) < n), dtype=bool) {
                C[((i.outer_1*8) + i.inner_1)] = ((A[((i.outer_1*8) + i.inner_1)] + 1f32)*2f32)
              }
            }
          }
        }
        """)
    right(s, n, A, C)


def test_each_version_has_directives_of_its_own():
    s, n, A, P, C, outer, inner = chain()
    version = s[C].specialize(n >= 8)
    version.vectorize(inner)
    version.parallel(outer)
    again = s[C].specialize(n == 7)
    a, _ = again.split(inner, 4)
    again.reorder(a, outer)
    s[C].unroll(inner)
    assert [loop.name for loop in s[C].versions[1].leaf_iter_vars] == ["i.inner.outer", "i.outer", "i.inner.inner"]
    assert s[C].leaf_iter_vars == [outer, inner] and s[C].versions[0] == version and isinstance(version, te.Stage)
    text = loops(s, [A, C])
    assert text.count('"parallel"') == text.count('"vectorized"') == text.count('"unroll"') == 1
    assert "n == 7" in text and "(n >= 8)" in text
    right(s, n, A, C)


def test_a_stage_inside_both_versions():
    s, n, A, P, C, outer, inner = chain()
    s[P].compute_at(s[C], outer)
    s[C].vectorize(inner)
    s[C].specialize(n % 8 == 0).parallel(outer)
    s[C].specialize(n == 20)
    text = loops(s, [A, C])
    assert text.count("realize(P") == 3 and text.count("likely") == 4  # none where n % 8 == 0
    right(s, n, A, C)


def test_an_attached_stage_with_versions():
    s, n, A, P, C, outer, _ = chain()
    s[P].compute_at(s[C], outer)
    _, lanes = s[P].split(P.op.axis[0], 4)
    s[P].specialize(n % 4 == 0).vectorize(lanes)
    s[C].specialize(n >= 8)
    assert loops(s, [A, C]).count("if (floormod(n, 4) == 0)") == 2
    right(s, n, A, C)


@pytest.mark.parametrize("tail", ["guard", "mask", "partition", "shift_inwards"])
def test_tails_under_a_condition(tail):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] * 2.0, name="C")
    s = create_schedule(C.op)
    _, inner = s[C].split(C.op.axis[0], 8, tail=tail)
    s[C].vectorize(inner)
    s[C].specialize(n >= 8)
    if tail == "shift_inwards":  # no lane is in doubt where there is a whole tile
        special, general = loops(s, [A, C]).split("} else {")
        assert "likely" not in special and "likely((i.inner_1 < n)" in general
    right(s, n, A, C)


def test_round_up_of_an_output_whose_size_is_known():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] * 2.0, name="C")
    s = create_schedule(C.op)
    version = s[C].specialize(n == 16)
    with pytest.raises(ScheduleError, match="nothing proves that 5 divides 16"):
        version.split(C.op.axis[0], 5, tail="round_up")
    _, inner = version.split(C.op.axis[0], 8, tail="round_up")
    version.vectorize(inner)
    right(s, n, A, C)


def test_a_loop_of_known_size_can_be_a_vector():
    n = te.var("n")
    A = te.placeholder((n, 3), name="A")
    k = te.reduce_axis((0, 3), "k")
    C = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    version = s[C].specialize(te.all(n == 8, n > 1))
    version.reorder(k, C.op.axis[0])
    version.vectorize(C.op.axis[0])
    version.decompose_reduction(k)
    check_calls(s, [A, C], [({A: whole_numbers((size, 3))}, {n: size}) for size in (0, 1, 8, 9)])


def test_strides():
    n = te.var("n")
    A = te.placeholder((n, n), name="A")
    C = te.compute((n, n), lambda i, j: A[i, j] * 2.0, name="C")
    stride = te.var("stride")
    strided = tir.decl_buffer((n, n), "float32", "A", strides=[te.var("rows"), stride])
    s = create_schedule(C.op)
    _, inner = s[C].split(C.op.axis[1], 4)
    s[C].specialize(stride == 1).vectorize(inner)
    kernel = tedsl.build(s, [A, C], binds={A: strided})
    for data in (whole_numbers((6, 6)), whole_numbers((6, 6)).T, whole_numbers((6, 12))[:, ::2]):
        out = whole_numbers((6, 6), seed=3)
        kernel(data, out)
        assert (out == data * 2).all()
    assert "if (stride == 1)" in str(tedsl.driver.schedule_to_module(s, [A, C], binds={A: strided}))


def test_conditions_that_are_decided():
    A = te.placeholder((16,), name="A")
    C = te.compute((16,), lambda i: A[i] * 2.0, name="C")
    for holds in (True, False, te.const(True, "bool")):
        s = create_schedule(C.op)
        s[C].specialize(holds).vectorize(C.op.axis[0])
        text = loops(s, [A, C])
        assert "if" not in text and ("vectorized" in text) == bool(holds)
        check_both(s, [A, C], {A: whole_numbers((16,))})


def test_the_journal_copies_and_undo():
    s, n, A, P, C, outer, inner = chain()
    before = str(s)
    s[P].compute_at(s[C], outer)
    s[C].specialize(n % 8 == 0).vectorize(inner)
    assert str(s.journal).splitlines()[-2:] == ["C_special = s[C].specialize(((n % 8) == 0))", "C_special.vectorize(i_inner)"]
    assert "where n%8 == 0:" in str(s)
    twin = create_schedule(C.op)
    twin.replay(s.journal)
    copy = s.copy()
    assert loops(twin, [A, C]) == loops(s, [A, C]) == loops(copy, [A, C]) and str(twin) == str(s) == str(copy)
    copy[C].versions[0].parallel(outer)
    assert "parallel" not in str(s) and "parallel" in str(copy)
    right(s.normalize(), n, A, C, (7, 8))
    s.undo(1)
    assert "vectorized" not in str(s) and "where" in str(s)
    s.undo(2)
    assert str(s) == before and s[C].versions == []


def test_later_directives_on_the_graph():
    s, n, A, P, C, outer, inner = chain()
    s[C].specialize(n % 8 == 0).vectorize(inner)
    read = s.cache_read(P, "local", [C])
    s[read].compute_at(s[C], outer)
    right(s, n, A, C, (8, 9))


# --- refusals ------------------------------------------------------------------------------------------------------------

def refusal(directive, kind=ScheduleError):
    with pytest.raises(kind) as caught:
        directive()
    return str(caught.value)


def test_conditions_that_are_none():
    s, n, A, P, C, outer, _ = chain()
    assert "a condition is a comparison of numbers, got the int 3" in refusal(lambda: s[C].specialize(3))
    assert "a condition is a comparison of numbers" in refusal(lambda: s[C].specialize(n + 1))
    assert "a condition is a comparison" in refusal(lambda: s[C].specialize("n == 3"))
    assert "is about the axis i" in refusal(lambda: s[C].specialize(C.op.axis[0].var < 3))
    assert "reads a tensor" in refusal(lambda: s[C].specialize(A[0] < 3.0))
    assert "A is a placeholder" in refusal(lambda: s[A].specialize(n == 3))
    m = te.var("m")
    s[C].specialize(m == 3)
    assert "the loops use m" in refusal(lambda: tedsl.lower(s, [A, C]), LoweringError)


def test_directives_for_the_stage_as_a_whole():
    s, n, A, P, C, outer, inner = chain()
    version = s[C].specialize(n % 8 == 0)
    for name in ("compute_inline", "compute_root", "nontemporal", "double_buffer"):
        message = refusal(getattr(version, name))
        assert f"{name}(...) on stage C: this is the version of C where" in message and f"write s[C].{name}" in message
    assert "specialized version here" in refusal(lambda: s[P].compute_at(version, outer))
    words = refusal(lambda: version.specialize(n == 3))
    assert "about the stage as a whole" in words
    assert "versions do not nest: write s[C].specialize(te.all(n%8 == 0" in words
    assert "n == 3)) and its directives, before s[C].specialize(" in words


def test_a_narrower_version_is_written_first_as_the_refusal_says():
    s, n, A, P, C, outer, inner = chain()
    s[C].specialize(te.all(n % 8 == 0, n >= 16)).parallel(outer)
    s[C].specialize(n % 8 == 0).vectorize(inner)
    right(s, n, A, C)


def test_directives_that_would_lose_the_versions():
    s, n, A, P, C, outer, inner = chain()
    s[P].specialize(n > 3)
    assert "P has a version of its own where n > 3, which this would lose" in refusal(lambda: s[P].compute_inline())
    assert "which this would lose" in refusal(lambda: s.cache_write(P, "local"))
    assert "this would lose" in refusal(lambda: s[P].bind(P.op.axis[0], te.thread_axis("threadIdx.x")))


def test_guests_and_the_loops_of_versions():
    s, n, A, P, C, outer, inner = chain()
    version = s[C].specialize(n % 8 == 0)
    version.split(outer, 2)
    message = refusal(lambda: s[P].compute_at(s[C], outer))
    assert "the version of C where n%8 == 0 has no loop i.outer" in message
    s[P].compute_at(s[C], inner)
    assert "P is computed at i.inner: that loop must stay" in refusal(lambda: version.split(inner, 2))
    right(s, n, A, C, (0, 7, 16))


def test_inlined_stages_and_threads():
    s, n, A, P, C, outer, inner = chain()
    s[P].compute_inline()
    assert "P is computed inline" in refusal(lambda: s[P].specialize(n > 3))
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    assert "runs on threads of a device" in refusal(lambda: s[C].specialize(n > 3))


def test_loops_that_start_at_0_are_the_same_in_all_versions():
    s, n, A, P, C, _, _ = chain()
    s[P].specialize(n % 4 == 0)
    right(s.normalize(), n, A, C, (0, 7, 8))


def test_versions_stand_where_the_stage_is_put_later():
    s, n, A, P, C, outer, inner = chain()
    version = s[P].specialize(n % 8 == 0)
    s[P].compute_at(s[C], outer)
    s[P].set_scope("local")
    assert version.attach_stage is s[C] and version.attach_ivar is outer and version.scope == "local"
    right(s, n, A, C)
    s[P].compute_root()
    assert version.attach_stage is None
    s[P].compute_at(s[C], inner)
    s[C].vectorize(inner)
    assert "which is vectorized" in refusal(lambda: version.parallel(P.op.axis[0]))
    right(s, n, A, C)


def test_versions_among_virtual_threads():
    n = te.var("n")
    A = te.placeholder((4, n), name="A")
    P = te.compute((4, n), lambda i, j: A[i, j] + 1.0, name="P")
    C = te.compute((4, n), lambda i, j: P[i, j] * 2.0, name="C")
    s = create_schedule(C.op)
    s[P].specialize(n == 3)
    s[C].bind(C.op.axis[0], te.thread_axis("vthread"))
    s[P].compute_at(s[C], C.op.axis[0])
    check_calls(s, [A, C], [({A: whole_numbers((4, size))}, {n: size}) for size in (0, 2, 3)])


def test_memory_that_is_kept_has_one_version():
    s, n, A, P, C, outer, inner = chain()
    s[P].compute_at(s[C], outer)
    s[P].specialize(n % 8 == 0)
    thread = te.thread_axis((0, 4), "threadIdx.x")
    for directive in (s[P].double_buffer, s[P].rolling_buffer, lambda: s[P].env_threads([thread])):
        assert "P has a version of its own" in refusal(directive)
