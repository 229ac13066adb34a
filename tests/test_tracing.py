"""tedsl.trace: the loops after each directive and pass, as text and as a page; what notebooks show."""

import io
import itertools
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
from tedsl import te, tracing
from tedsl.errors import ArgumentTypeError
from tests.display.structure import checked

HOSTILE = "<script>alert(1)</script>\"'&\x1b[2J"


def program(name="B", n=100):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name=name)
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=8)
    s[C].parallel(outer)
    s[B].compute_at(s[C], outer)
    s[C].vectorize(inner)
    return s, [A, C]


def test_each_directive_and_each_pass_is_a_step():
    s, args = program()
    trace = tedsl.trace(s, args)
    titles = [step.title for step in trace.steps]
    assert titles[0] == "the schedule without directives"
    assert [title.split("(test_tracing.py:")[0] for title in titles[1:5]] == [
        "1. i_outer, i_inner = s[C].split(s[C].op.axis[0], factor=8)  ", "2. s[C].parallel(i_outer)  ",
        "3. s[B].compute_at(s[C], i_outer)  ", "4. s[C].vectorize(i_inner)  "]
    assert "flatten_storage" in titles and "vectorize_loops" in titles and "promote_accumulators" in titles
    assert [step.group for step in trace.steps][:6] == ["directives"] * 5 + ["passes"]
    assert repr(trace) == f"<trace of {len(titles)} steps; print it, or show(), save('trace.html')>"


def test_the_text_of_a_directive():
    s, args = program()
    assert str(tedsl.trace(s, args).steps[2]).splitlines()[1:] == [
        "  ... 2 equal lines", "      for i in range(100):", "          B[i] = A[i] + 1.0",
        "-     for i.outer in range(13):", "+     for i.outer in parallel(13):",
        "          for i.inner in range(8):", "              if likely(i.outer*8 + i.inner < 100):", "  ... 1 equal line"]


def test_a_pass_whose_change_the_notation_does_not_show():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[j, i] + 1.0, name="B")
    steps = {step.title: step for step in tedsl.trace(te.create_schedule(B.op), [A, B]).steps}
    flat, still = steps["flatten_storage"], steps["inject_prefetch"]
    assert str(flat) == "== flatten_storage\n  (a change that this notation does not show)"
    assert str(still) == "== inject_prefetch\n  (no change)"
    assert "A change that this notation does not show." in checked(flat._repr_html_()).seen()


def test_the_last_step_of_lowering_is_what_lower_prints():
    s, args = program()
    trace = tedsl.trace(s, args)
    last = [step for step in trace.steps if step.group == "passes"][-1]
    assert list(last.loops.lines) == tedsl.lower(s, args).readable().splitlines()


def test_options_of_the_pass_context_count():
    s, args = program()
    with tedsl.PassContext(config={"tir.disable_vectorize": True}):
        trace = tedsl.trace(s, args)
    assert "B[0:8]*2.0" not in str(trace) and "B[0:8]*2.0" in str(tedsl.trace(s, args))


def test_the_schedule_is_left_alone_and_later_directives_do_not_count():
    s, args = program()
    before, handles = str(s), list(s.stages)
    trace = tedsl.trace(s, args)
    steps = len(trace.steps)
    trace.html()
    assert str(s) == before and s.stages == handles
    s.undo(2)
    assert len(tedsl.trace(s, args).steps) == steps - 2
    assert "vectorize(i_inner)" in str(trace)


def test_a_schedule_on_the_way_that_cannot_be_lowered():
    """A place that is right only after the next directive is no reason to stop."""
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((16,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    cache = s.cache_read(B, "local", [C])
    s[cache].compute_at(s[C], C.op.axis[0])
    steps = tedsl.trace(s, [A, C]).steps
    assert [bool(step.loops.problem) for step in steps[:4]] == [False, False, True, False]
    assert "Not to be lowered to loops as it stands here: B.local reads B" in str(steps[2])
    assert "from: s[B].compute_at(s[C], s[C].op.axis[0])  (test_tracing.py:" in str(steps[2])
    assert steps[3].lines_before == steps[1].loops.lines
    checked(tedsl.trace(s, [A, C]).html())


def test_a_pass_that_refuses_ends_the_trace():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].unroll(B.op.axis[0])
    steps = {step.title: step for step in tedsl.trace(s, [A, B]).steps}
    assert "from: s[B].unroll(s[B].op.axis[0])" in steps["unroll_loops"].loops.problem
    assert steps["remove_no_ops"].loops.problem == "Not reached."


def test_colour_only_where_it_is_wanted():
    s, args = program()
    trace = tedsl.trace(s, args)
    plain, colour = io.StringIO(), io.StringIO()
    trace.show(plain)
    trace.show(colour, colour=True)
    assert plain.getvalue() == f"{trace}\n" and "\033[32m+ " in colour.getvalue() and "\033" not in plain.getvalue()


def test_a_notebook_shows_steps_and_traces(monkeypatch):
    shown = []
    display = SimpleNamespace(display=shown.append)
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=display, get_ipython=lambda: shell))
    s, args = program()
    trace = tedsl.trace(s, args)
    trace.show()
    assert shown == [trace]
    trace.show(io.StringIO())
    del shell.kernel  # IPython in a terminal
    trace.show(io.StringIO())
    assert len(shown) == 1
    step = checked(trace.steps[2]._repr_html_()).seen()
    assert "s[C].parallel(i_outer)" in step and "for i.outer in parallel(13):" in step
    assert repr(trace.steps[8]) == "<step 'flatten_storage' of a trace; print it>"


def test_the_page():
    s, args = program()
    page = tedsl.trace(s, args).html()
    found = checked(page)
    assert page.startswith("<!DOCTYPE html>\n<html lang=\"en\">") and "default-src &#x27;none&#x27;" in page
    names = [name for name, _ in found.elements]
    assert names.count("svg") == 1 and names.count("script") == 1 and names.count("section") == len(tedsl.trace(s, args).steps)
    assert all(not attributes for name, attributes in found.elements if name == "script")
    assert "1. C split" in found.seen() and "for i.outer in parallel(13):" in found.seen()
    assert page == tedsl.trace(s, args).html(), "the same schedule gives the same page"


def test_names_cannot_break_out_of_the_page(tmp_path):
    s, args = program(name=HOSTILE)
    trace = tedsl.trace(s, args)
    path = tmp_path / "trace.html"
    trace.save(path)
    page = path.read_text(encoding="utf-8")
    found = checked(page)
    assert "<script>alert" not in page and [name for name, _ in found.elements].count("script") == 1
    assert "\x1b" not in page and "<script>alert(1)</script>" in found.seen()
    for made in (s._repr_html_(), trace._repr_html_(), tedsl.lower(s, args)._repr_html_()):
        assert "<script" not in made and checked(made)


def test_what_notebooks_show():
    s, args = program()
    shown = checked(s._repr_html_()).seen()
    assert "schedule(C)" in shown and "for i.outer in 0..13 (parallel)" in shown and "Journal of 4 directives" in shown
    assert "does not divide 100" in shown and "at C, i.outer" in shown
    assert "primfn(" in checked(tedsl.lower(s, args)._repr_html_()).seen()
    module = checked(tedsl.build(s, args)._repr_html_())
    assert "<tedsl.Module" in module.seen() and "LLVM IR" in module.seen()
    assert "<script" not in s._repr_html_() and len(s._repr_html_()) < 30_000


def test_a_long_schedule_stays_cheap(monkeypatch):
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    for _ in range(300):
        s[B].fuse()
    lowered = []
    monkeypatch.setattr(tracing, "lower_schedule", lambda *args, **given: lowered.append(args))
    trace = tedsl.trace(s, [A, B])
    assert not lowered, "nothing is lowered before it is asked for"
    monkeypatch.undo()
    assert trace.steps[0].title == "the schedule after its first 200 directives"
    assert trace.steps[0].note == "Only the last 100 of 300 directives are shown one by one."
    assert sum(step.group == "directives" for step in trace.steps) == 101
    assert trace.steps[0].note in checked(trace.html()).seen()


def test_of_a_schedule_of_many_stages_fewer_steps_are_shown(monkeypatch):
    monkeypatch.setattr("tedsl.tracing.MOST_STAGES", 400)
    last = te.placeholder((8,), name="A")
    args, stages = [last], []
    for n in range(40):
        last = te.compute((8,), lambda i, last=last: last[i] + 1.0, name=f"T{n}")
        stages.append(last)
    s = te.create_schedule(last.op)
    for tensor in stages:
        s[tensor].unroll(tensor.op.axis[0])
    trace = tedsl.trace(s, [*args, last])
    assert trace.steps[0].note == "Only the last 9 of 40 directives are shown one by one."
    assert len(trace.html()) < 3_000_000


def test_loops_are_written_once_for_all_passes_that_leave_them():
    s, args = program()
    loops = [step.loops for step in tedsl.trace(s, args).steps if not step.loops.problem and step.loops.program is not None]
    pairs = [(before, after) for before, after in itertools.pairwise(loops) if before.program is after.program]
    assert len(pairs) > len(loops) // 3 and all(before is after for before, after in pairs)


def test_very_long_loops_are_cut_short():
    A = te.placeholder((1010,), name="A")
    B = te.compute((1010,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].unroll(B.op.axis[0])
    step = next(step for step in tedsl.trace(s, [A, B]).steps if step.title == "unroll_loops")
    assert len(step.loops.lines) == 1001 and step.loops.lines[-1].endswith("more lines, which are left out here")


@pytest.mark.parametrize("arguments, words", [((1, []), "not int"), ((None, []), "not NoneType")])
def test_what_is_no_schedule(arguments, words):
    with pytest.raises(ArgumentTypeError, match=words):
        tedsl.trace(*arguments)
    s, _ = program()
    with pytest.raises(ArgumentTypeError, match="args is a list"):
        tedsl.trace(s, "A")


def test_showing_costs_nothing_at_import():
    code = "import tedsl, tedsl.te, sys; print([m for m in sys.modules if 'tedsl.tracing' in m or m == 'difflib'])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_line_numbers_are_those_of_this_file():
    s, _ = program()
    lines = Path(__file__).read_text().splitlines()
    for directive in s.journal:
        number = int(re.search(r":(\d+)\)$", directive.origin)[1])
        assert f".{directive.name}(" in lines[number - 1]


def bound_add(n=64):
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    return s, [a, b]


def test_a_trace_for_a_device_shows_its_kernels():
    s, args = bound_add()
    steps = tedsl.trace(s, args, target="cuda").steps
    titles = [step.title for step in steps]
    split = steps[titles.index("split_kernels")]
    assert 'call_packed("main_kernel0", A, B, 64)' in "\n".join(split.loops.lines)
    assert "def main_kernel0" in "\n".join(split.loops.lines)
    assert titles[-1] == "check_limits" and "threads(64)" in "\n".join(steps[-1].loops.lines)
    assert not any(step.loops.problem for step in steps)
    assert "threads_to_loops" not in titles


def test_a_refused_kernel_is_the_last_step_that_is_reached():
    s, args = bound_add(4096)
    steps = tedsl.trace(s, args, target="cuda").steps
    assert steps[-1].title == "check_limits"
    assert "at most 1024" in steps[-1].loops.problem or "1024" in "".join(step.loops.problem for step in steps)


def test_reports_of_the_simulator_stand_on_the_page():
    s, args = bound_add()
    f = tedsl.build(s, args, "cuda")
    place = tedsl.sim(0)
    simulate.reset()
    f(tedsl.nd.array(np.zeros(64, "float32"), place), tedsl.nd.empty((64,), "float32", place))
    trace = tedsl.trace(s, args, target="cuda", reports=simulate.report())
    last = trace.steps[-1]
    assert last.group == "simulated" and last.title == "1. default_function_kernel0 on sim(0)"
    text = "\n".join(last.text())
    assert "warp instructions" in text and "  B  " in text
    assert re.search(r"\n +\d+ +B\[threadIdx\.x\] = A\[threadIdx\.x\] \+ 1\.0", text)
    page = re.sub(r"<[^>]*>", "", trace.html())
    assert "simulated" in page and "warp instructions" in page
    with pytest.raises(ArgumentTypeError, match="reports are those of the simulator"):
        tedsl.trace(s, args, target="cuda", reports=[1])
