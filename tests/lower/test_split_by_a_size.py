"""Splits by numbers that a call makes 0 or negative: elements stayed unwritten, and rounded-up tiles read other memory."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentError, LoweringError, ScheduleError
from tedsl.ir.evaluate import run
from tests.lower.end_to_end import check_calls
from tests.lower.programs import whole_numbers
from tests.refusing import refused

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes

THREAD = te.thread_axis("threadIdx.x")
TAILS = "guard", "mask", "partition", "shift_inwards", "round_up"


def chain(dtype="int32"):
    """C = reversed (A + 1) * 2 over n elements, and a number f for splits."""
    n, f = te.size_var("n"), te.var("f", dtype)
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[n - 1 - i] * 2.0, name="C")
    return n, f, A, B, C, te.create_schedule(C.op)


def rows():
    """B = the sums of the rows of A, n by m."""
    n, m, f = te.size_var("n"), te.size_var("m"), te.var("f")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return n, m, f, A, B, te.create_schedule(B.op)


def ways(s, args):
    """The program as loops in the interpreter, before and after the passes, as machine code, and with checks."""
    before, after = tedsl.driver.schedule_to_module(s, args)["main"], tedsl.lower(s, args)["main"]
    kernels = tedsl.build(s, args), tedsl.build(s, args, checked=True)
    return [lambda *given: run(before, given), lambda *given: run(after, given), *kernels]


def refuses(s, args, given, *words):
    for kernel in ways(s, args):
        refused(lambda call=kernel: call(*given), *words, error=ArgumentError)


def vector(size):
    return np.arange(size, dtype="float32")


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("how", ["factor", "nparts"])
def test_a_number_below_one_is_refused_at_the_call(how, tail):
    n, f, A, B, C, s = chain()
    s[B].split(B.op.axis[0], **{how: f}, tail=tail)
    kernels = ways(s, [f, A, C])
    for call in kernels:
        for value in (0, -3, -100):
            with pytest.raises(ArgumentError, match=rf"the {how} f of split\(i\) of B is 0 or negative in this call, and must "
                               rf"be at least 1\n  from: .*s\[B\]\.split\(s\[B\]\.op\.axis\[0\], {how}=f"):
                call(value, vector(5), vector(5))
        for value in (1, 2, 9):
            result = vector(5)
            call(value, vector(5), result)
            np.testing.assert_array_equal(result, (vector(5)[::-1] + 1) * 2)
        call(0, vector(0), vector(0))


@pytest.mark.parametrize("how", ["factor", "nparts"])
def test_a_part_of_a_size_that_is_too_small(how):
    n, _, A, B, C, s = chain()
    s[C].split(C.op.axis[0], **{how: n // 4})
    refuses(s, [A, C], (vector(3), vector(3)), f"the {how} n // 4 of split(i) of C is 0 in this call", "te.max(n // 4, 1)")
    check_calls(s, [A, C], [({A: whole_numbers((size,))}, {n: size}) for size in (0, 4, 9)])


def test_a_number_that_wraps_to_zero():
    n, f, A, B, C, s = chain("int64")
    s[C].split(C.op.axis[0], factor=f)
    refuses(s, [f, A, C], (2**32, vector(3), vector(3)), "the factor f (as int32) of split(i) of C is 0 or negative")


@pytest.mark.parametrize("factor", [lambda n: 4, lambda n: n, lambda n: (n + 3) // 4, lambda n: te.max(n // 4, 1)])
def test_what_is_known_to_be_positive_is_not_asked(factor):
    n, _, A, B, C, s = chain()
    s[C].split(C.op.axis[0], factor=factor(n))
    assert "assert" not in str(tedsl.driver.schedule_to_module(s, [A, C])["main"])
    check_calls(s, [A, C], [({A: whole_numbers((size,))}, {n: size}) for size in (0, 1, 3, 9)])


def test_both_numbers_of_a_tile_are_asked_although_they_have_one_name():
    n, x, y = te.size_var("n"), te.var("f"), te.var("f")
    A = te.placeholder((n, n), name="A")
    C = te.compute((n, n), lambda i, j: A[i, j] + 1.0, name="C")
    s = te.create_schedule(C.op)
    s[C].tile(*C.op.axis, x, y)
    a, c = np.ones((3, 3), "float32"), np.zeros((3, 3), "float32")
    refuses(s, [x, y, A, C], (0, 2, a, c), "the factor f of split(i) of C", "s[C].tile(")
    refuses(s, [x, y, A, C], (2, 0, a, c), "the factor f of split(j) of C", "s[C].tile(")
    ways(s, [x, y, A, C])[2](2, 2, a, c)
    np.testing.assert_array_equal(c, 2)


def test_only_the_version_that_runs_is_asked():
    n, f, A, B, C, s = chain()
    first, second = s[C].specialize(n >= 8), s[C].specialize(n >= 4)
    first.split(C.op.axis[0], factor=n // 8)
    second.split(C.op.axis[0], factor=f)
    assert str(tedsl.driver.schedule_to_module(s, [f, A, C])["main"]).count("assert") == 1
    for call in ways(s, [f, A, C]):
        for size, value in ((3, 0), (8, 0), (9, -1), (5, 2)):
            result = vector(size)
            call(value, vector(size), result)
            np.testing.assert_array_equal(result, (vector(size)[::-1] + 1) * 2)
    refuses(s, [f, A, C], (0, vector(5), vector(5)), "the factor f of split(i) of C", "C_special_1.split(")


def test_a_split_before_specialize_is_asked_in_both_versions():
    n, f, A, B, C, s = chain()
    s[C].split(C.op.axis[0], factor=f)
    s[C].specialize(n % 4 == 0)
    for size in (4, 5):
        refuses(s, [f, A, C], (0, vector(size), vector(size)), "the factor f of split(i) of C",
                "from: i_outer, i_inner = s[C].split")


def test_a_version_for_small_sizes_leaves_nothing_to_ask():
    n, _, A, B, C, s = chain()
    s[C].specialize(n < 4)
    s[C].split(C.op.axis[0], factor=n // 4)
    assert "assert" not in str(tedsl.driver.schedule_to_module(s, [A, C])["main"])
    check_calls(s, [A, C], [({A: whole_numbers((size,))}, {n: size}) for size in (0, 3, 4, 9)])


@pytest.mark.parametrize("always", [True, False])
def test_a_version_that_never_runs_is_not_asked(always):
    n, f, A, B, C, s = chain()
    version = s[C].specialize(always)
    (s[C] if always else version).split(C.op.axis[0], factor=f)
    assert "assert" not in str(tedsl.driver.schedule_to_module(s, [f, A, C])["main"])


def test_a_stage_inside_of_both_versions_of_another():
    n, f, A, B, C, s = chain()
    outer, _ = s[C].split(C.op.axis[0], 8)
    s[B].compute_at(s[C], outer)
    s[C].specialize(n % 8 == 0)
    s[B].split(B.op.axis[0], factor=f)
    for size in (8, 9):
        refuses(s, [f, A, C], (0, vector(size), vector(size)), "the factor f of split(i) of B")
        result = vector(size)
        ways(s, [f, A, C])[2](3, vector(size), result)
        np.testing.assert_array_equal(result, (vector(size)[::-1] + 1) * 2)


def test_a_reduction_loop():
    n, m, f, A, B, s = rows()
    s[B].split(B.op.reduce_axis[0], factor=f)
    one = np.ones((2, 3), "float32")
    refuses(s, [f, A, B], (0, one, vector(2)), "the factor f of split(k) of B")
    for call in ways(s, [f, A, B]):
        result = vector(2)
        call(0, np.ones((2, 0), "float32"), result)
        np.testing.assert_array_equal(result, 0)


@pytest.mark.parametrize("inner", [0, 1])
def test_rfactor_of_such_a_split(inner):
    """The new stages have the number in their extents, and no split."""
    n, m, f, A, B, s = rows()
    s.rfactor(B, s[B].split(B.op.reduce_axis[0], factor=f)[inner])
    args = [f, A, s[B].op.output(0)]
    one = np.ones((2, 3), "float32")
    for value in (0, -2):
        refuses(s, args, (value, one, vector(2)), "the factor f of split(k) of B",
                "s[B].split(s[B].op.reduce_axis[0], factor=f)")
    for call in ways(s, args):
        result = vector(2)
        call(2, one, result)
        np.testing.assert_array_equal(result, 3)
    s.undo(2)
    assert "assert" not in str(tedsl.driver.schedule_to_module(s, [f, A, B])["main"])


@pytest.mark.parametrize("factor, words", [
    (lambda A, i, j: A[0, 0], "A[0, 0] reads a tensor"),
    (lambda A, i, j: te.sum(A[0, i], axis=te.reduce_axis((0, 4), "q")), "reads a tensor"),
    (lambda A, i, j: j.var, "j is about the axis j, which takes many values in a call"),
    (lambda A, i, j: j + 1, "j + 1 is about the axis j"),
    (lambda A, i, j: i + 1, "i + 1 is about the axis i"),
    (lambda A, i, j: THREAD.var, "is about the axis threadIdx.x")])
def test_what_takes_many_values_in_a_call_is_no_factor(factor, words):
    """These were accepted, and then build broke, or gave a hint that could not work."""
    n = te.size_var("n")
    A = te.placeholder((n, n), "int32", name="A")
    C = te.compute((n, n), lambda i, j: A[i, j] + 1, name="C")
    s = te.create_schedule(C.op)
    given = factor(A, *C.op.axis)
    for directive in (lambda: s[C].split(C.op.axis[0], given), lambda: s[C].split(C.op.axis[0], nparts=given),
                      lambda: s[C].tile(*C.op.axis, 4, given)):
        with pytest.raises(ScheduleError) as caught:
            directive()
        assert words in str(caught.value) and "what a call decides: sizes, strides, scalar arguments" in str(caught.value)
    assert not s[C].relations


def test_the_old_axis_of_a_stage_is_no_factor():
    n, _, A, B, C, s = chain()
    old = C.op.axis[0]
    s.cache_write(C, "local")
    with pytest.raises(ScheduleError, match="is about the axis i"):
        s[C].split(s[C].op.axis[0], old.var + 1)


def test_a_number_that_no_argument_gives():
    _, f, A, B, C, s = chain()
    s[C].split(C.op.axis[0], factor=f)
    with pytest.raises(LoweringError, match="the loops use f, and no argument gives it a value"):
        tedsl.lower(s, [A, C])
