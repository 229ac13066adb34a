"""Reports by stage: what each stage of a schedule has of the counts of its kernel."""

from collections import Counter

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
from tedsl import te
from tedsl.errors import OptionError
from tedsl.runtime.devices.code import LoopLine
from tedsl.runtime.devices.module import device_module_of
from tests.simulate.kernels import kernel, launch
from tests.simulate.programs import matmul


def ran(s, args, **options):
    """The kernels' module, and the report of a run on random float32 arrays."""
    place = tedsl.sim(0)
    shapes = [tuple(int(n) for n in arg.shape) for arg in args]
    arrays = [tedsl.nd.array(np.random.default_rng(1).standard_normal(shape).astype("float32"), place) for shape in shapes]
    f = tedsl.build(s, args, "cuda", **options)
    f(*arrays)
    return f.imported_modules[0], simulate.last_report()


def totals(report):
    counts = sum((Counter(stage.instructions) for stage in report.stages), Counter())
    return dict(counts), *(sum(getattr(stage, name) for stage in report.stages)
                           for name in ("threads", "branches", "divergent"))


def test_stages_of_a_product():
    s, args, _ = matmul()
    _, report = ran(s, args)
    assert [stage.name for stage in report.stages] == ["A.shared", "B.shared", "C.local", "C", ""]
    assert totals(report) == (report.instructions, report.threads, report.branches, report.divergent)
    assert sum(len(stage.accesses) for stage in report.stages) == len(report.accesses)
    for name, array in (("A.shared", "A"), ("B.shared", "B")):
        assert report.stage(name).traffic("global", "load", array) == report.traffic("global", "load", array)
        assert report.stage(name).traffic("shared", "store") == report.traffic("shared", "store", array + "_shared")
    assert report.stage("C").traffic("global", "store") == report.traffic("global", "store", "C")
    assert report.stage("C.local").instructions["float32"] == report.instructions["float32"]
    assert report.stage("C.local").traffic("shared").conflict == 2
    assert report.stage("").instructions["barrier"] == report.barriers
    assert "\n  C.local " in str(report) and "(no stage)" in report._repr_html_()


def test_divergence_belongs_to_the_stage_that_branches():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    k = te.reduce_axis((0, 7), name="k")
    C = te.compute((64,), lambda i: te.sum(te.if_then_else(i % 2 < 1, B[i] * k, te.exp(B[i] * k)), axis=k), name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].set_scope("local")
    _, report = ran(s, [A, C])
    assert totals(report) == (report.instructions, report.threads, report.branches, report.divergent)
    assert report.divergent == report.stage("C").divergent > 0
    assert report.stage("C").activity < 1 and report.stage("B").activity == 1


def test_a_name_that_is_no_stage_is_refused():
    s, args, _ = matmul()
    _, report = ran(s, args)
    with pytest.raises(OptionError, match=r"has no stage 'D'; it has: A\.shared, B\.shared, C\.local, C"):
        report.stage("D")


def test_lines_of_the_text_are_those_of_the_loops():
    s, args, _ = matmul()
    module, report = ran(s, args)
    lines = module.code.lines
    assert report.source == lines
    assert {lines[line - 1].stage for _, line in report.lines} == {"A.shared", "B.shared", "C.local", "C", ""}
    assert any("storage_sync" in lines[line - 1].text for _, line in report.lines)
    assert max(line for _, line in report.lines) <= len(lines)
    assert "$L__tmp" not in module.get_source("ptx") and ".debug" not in module.get_source("ptx")


def test_saved_kernels_keep_their_lines():
    s, args, _ = matmul()
    module, _ = ran(s, args)
    assert device_module_of(module.save_to_bytes(), "bytes").code == module.code


def test_a_text_without_lines_has_no_stages():
    report = launch(kernel("st.global.u32 [%rd0], %r0;", ("A",)), np.zeros(32, np.uint32), block=(1, 1, 1))
    assert report.stages == () and report.source == ()
    with pytest.raises(OptionError, match="it has: none"):
        report.stage("A")


def test_lines_that_the_loops_do_not_have_belong_to_none():
    from tedsl.simulate.reports.stages import stages_of

    class Block:
        lines, last = (((1, 9), "move", 2), ((0, 0), "move", 1), ((1, 1), "float32", 3)), None

    class Program:
        blocks = (Block,)

    class Count:
        warps, threads, branched, split = 1, 32, 0, 0

    class Run:
        program, block_counts = Program, (Count,)

    found = stages_of(Run, (), (LoopLine("B[i] = 0", "B"),))
    assert [(stage.name, stage.instructions) for stage in found] == [("B", {"float32": 3}), ("", {"move": 3})]
