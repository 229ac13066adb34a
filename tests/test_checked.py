"""build(..., checked=True): the machine code with checks, and what it says."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.driver import schedule_to_module
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.stmt import For, IfThenElse
from tedsl.ir.walk.rewriter import Rewriter
from tests.one_stage import added


def blurred(n=None):
    """A stencil computed at tiles of 4, parallel and vectorized; what it takes and gives for 13 elements."""
    size = te.var("n") if n is None else n
    A = te.placeholder((size + 2,), name="A")
    B = te.compute((size + 2,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((size,), lambda i: B[i] + B[i + 1] + B[i + 2], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 4)
    s[B].compute_at(s[C], outer)
    s[C].vectorize(inner)
    s[C].parallel(outer)
    a = np.arange(13, dtype="float32")
    return s, [A, C], (a, np.zeros(11, "float32")), 2 * (a[:11] + a[1:12] + a[2:])


@pytest.mark.parametrize("n", [11, None])
def test_a_right_program_gives_the_same_as_without_checks(n):
    s, args, (a, c), expected = blurred(n)
    tedsl.build(s, args, checked=True)(a, c)
    np.testing.assert_allclose(c, expected)


def test_the_environment_switches_checks_on(monkeypatch):
    monkeypatch.setenv("TEDSL_CHECKED", "1")
    s, args, _, _ = blurred(11)
    assert "C.written" in tedsl.build(s, args).get_source("tir")
    monkeypatch.setenv("TEDSL_CHECKED", "0")
    assert "C.written" not in tedsl.build(s, args).get_source("tir")


def test_an_index_from_data_is_reported_with_stage_line_and_loops():
    A = te.placeholder((4,), name="A")
    rows = te.placeholder((3,), "int32", name="rows")
    B = te.compute((3,), lambda i: A[rows[i]], name="B")  # the line of the report
    checked = tedsl.build(te.create_schedule(B.op), [A, rows, B], checked=True)
    a, b = np.arange(4, dtype="float32"), np.zeros(3, "float32")
    checked(a, np.array([3, 0, 1], "int32"), b)
    np.testing.assert_array_equal(b, [3, 0, 1])
    with pytest.raises(tedsl.errors.AccessError) as found:
        checked(a, np.array([3, 9, 1], "int32"), b)
    lines = str(found.value).splitlines()
    assert lines[0] == "reads A[9]: index 9 of dimension 0 is not in [0, 4)"
    assert lines[1].startswith("  in stage B (") and lines[1].endswith(f"{__file__}:{line_of('# the line of the report')})")
    assert lines[2] == "  loops: i = 1"
    assert isinstance(found.value, IndexError)


def line_of(mark):
    with open(__file__) as source:
        return next(number for number, line in enumerate(source, 1) if mark in line)


class Without(Rewriter):
    """Drops every guard."""

    def rewrite(self, node):
        return node.then_case if isinstance(node, IfThenElse) else node


def test_loops_without_their_guards_are_stopped_before_they_touch_memory():
    s, args, (a, c), _ = blurred(11)
    func = schedule_to_module(s, args)["main"]
    with pytest.raises(tedsl.errors.AccessError, match=r"reads A\[13\]"):
        tedsl.build(func.with_body(Without()(func.body)), checked=True)(a, c)


def test_loops_that_leave_out_an_element_are_found():
    s, args, (a, c), _ = blurred(11)
    flat = tedsl.lower(s, args, simple_mode=True)["main"]

    class Fewer(Rewriter):
        def rewrite(self, node):
            return node.replace(extent=te.const(2)) if isinstance(node, For) and node.loop_var.name == "i.outer" else node

    with pytest.raises(tedsl.errors.AccessError, match=r"never writes C\[8\]"):
        tedsl.build(flat.with_body(Fewer()(flat.body)), checked=True)(a, c)


def extern(body, n=8, **options):
    """B of n elements, by what `body(ib, a, b)` writes, in checked mode."""
    A = te.placeholder((n,), name="A")

    def function(ins, outs):
        ib = tedsl.tir.ir_builder.create()
        body(ib, ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]))
        return ib.get()

    B = te.extern((n,), [A], function, name="B")  # the line of the extern
    a, b = np.arange(n, dtype="float32"), np.zeros(n, "float32")
    tedsl.build(te.create_schedule(B.op), [A, B], checked=True, **options)(a, b)
    return b


def counted(most):
    def body(ib, a, b):
        at = ib.allocate("int32", (1,), name="at", scope="local")
        at[0] = 0
        with ib.while_loop(at[0] < most):
            b[at[0]] = a[at[0]] * 2.0
            at[0] = at[0] + 1
    return body


def test_a_place_that_memory_decides_is_reported_with_its_value():
    np.testing.assert_array_equal(extern(counted(8)), np.arange(8) * 2)
    with pytest.raises(tedsl.errors.AccessError) as found:
        extern(counted(9))
    lines = str(found.value).splitlines()
    assert lines[0] == "reads A[8]: index 8 of dimension 0 is not in [0, 8)"
    assert lines[1].startswith("  in stage B (") and lines[1].endswith(f"{__file__}:{line_of('# the line of the extern')})")

    def spread(ib, a, b):
        with ib.for_range(0, 8, "i") as i:
            b[i] = a[0]
            b[a[i].astype("int32") * 2] = a[i]

    with pytest.raises(tedsl.errors.AccessError) as found:
        extern(spread)
    assert str(found.value).startswith("stores B[8]: index 8 of dimension 0 is not in [0, 8)\n  in stage B (")
    assert str(found.value).endswith("\n  loops: i = 4")


def test_a_read_that_would_be_clamped_is_reported():
    def gathered(ib, a, b):
        with ib.for_range(0, 8, "i") as i:
            b[i] = a[a[i].astype("int32") + 1]

    with pytest.raises(tedsl.errors.AccessError, match=r"reads A\[8\].*\n  in stage B .*\n  loops: i = 7"):
        extern(gathered)

    def chosen(ib, a, b):
        with ib.for_range(0, 8, "i") as i:
            at = a[i].astype("int32") + 1
            b[i] = tedsl.tir.Select(at < 8, a[at], tedsl.tir.const(0.0, "float32"))

    np.testing.assert_array_equal(extern(chosen), [1, 2, 3, 4, 5, 6, 7, 0])


def test_a_hybrid_script_that_reads_outside_is_reported():
    @te.hybrid.script
    def picked(a, rows):
        b = output_tensor((3,), "float32")  # noqa: F821
        for i in range(3):
            b[i] = a[rows[i]]
        return b

    A, rows = te.placeholder((4,), name="A"), te.placeholder((3,), "int32", name="rows")
    B = picked(A, rows)
    checked = tedsl.build(te.create_schedule(B.op), [A, rows, B], checked=True)
    a, b = np.arange(4, dtype="float32"), np.zeros(3, "float32")
    checked(a, np.array([3, 0, 1], "int32"), b)
    np.testing.assert_array_equal(b, [3, 0, 1])
    with pytest.raises(tedsl.errors.AccessError, match=r"reads A\[9\]: index 9 of dimension 0 is not in \[0, 4\)"):
        checked(a, np.array([3, 9, 1], "int32"), b)


def test_an_output_that_is_not_whole_names_its_stage():
    def most(ib, a, b):
        with ib.for_range(0, 7, "i") as i:
            b[i] = a[i]

    with pytest.raises(tedsl.errors.AccessError) as found:
        extern(most)
    lines = str(found.value).splitlines()
    assert lines[0] == "never writes B[7]"
    assert lines[1].startswith("  in stage B (") and lines[1].endswith(f"{__file__}:{line_of('# the line of the extern')})")


def test_iterations_that_write_the_same_element():
    ib = tedsl.tir.ir_builder.create()
    C = tedsl.tir.decl_buffer((4,), name="C")
    out = ib.buffer_ptr(C)
    with ib.for_range(0, 8, "i", kind="parallel") as i:
        out[i // 2] = te.const(1.0, "float32")
    handle = tedsl.tir.Var("C_handle", "handle")
    func = tedsl.tir.PrimFunc([handle], ib.get(), None, {handle: C})
    words = r"stores C\[0\], which another iteration of the parallel loop i, i = 0, wrote"
    with pytest.raises(tedsl.errors.AccessError, match=words):
        tedsl.build(func, checked=True)(np.zeros(4, "float32"))


@pytest.mark.parametrize("said, checks", [
    ("1", True), ("true", True), ("ON", True), ("0", False), ("false", False), ("No", False), ("off", False), ("", False),
    (None, False), ("maybe", None)])
def test_what_the_environment_says_about_checked_mode(monkeypatch, said, checks):
    """TEDSL_CHECKED=false switched it on."""
    monkeypatch.delenv("TEDSL_CHECKED", raising=False)
    if said is not None:
        monkeypatch.setenv("TEDSL_CHECKED", said)
    if checks is None:
        with pytest.raises(ArgumentError, match=r"TEDSL_CHECKED is 'maybe'\n  hint: set it to 1 or 0"):
            tedsl.build(*added())
    else:
        assert ("call_packed" in tedsl.build(*added()).get_source("tir")) == checks
    assert "call_packed" not in tedsl.build(*added(), checked=False).get_source("tir")


def test_checked_is_a_truth_value():
    with pytest.raises(ArgumentTypeError, match="checked is True, False or None, not 'x'"):
        tedsl.build(*added(), checked="x")
