"""Checked mode finds what is planted, and nothing in programs that are right. The interpreter runs the instrumented loops."""

import numpy as np
import pytest

from tedsl import te, tir
from tedsl.driver import schedule_to_module
from tedsl.ir import build
from tedsl.ir.evaluate import run
from tedsl.ir.expr import BufferLoad, IntImm, Ramp
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.stmt import BufferRealize, BufferStore, For, ForKind, IfThenElse, SeqStmt, seq
from tedsl.ir.verify import verify
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.passes.checked.check_accesses import check_accesses
from tedsl.passes.config import PassConfig
from tedsl.passes.default import lowering_pipeline
from tedsl.runtime.faults import FAULT


class Fault(Exception):
    pass


def fault(template, *values):
    raise Fault(template.format(*values))


def run_checked(func, *args):
    """Runs `func` with its checks: as they are written, and after the passes, which must come to the same."""
    arrays = [np.array(a) for a in args]
    checked = check_accesses(func)
    lowered = lowering_pipeline(PassConfig(disable_vectorize=True), simple_mode=True)(checked)
    verify(lowered, flat=True)
    outcomes = []
    for version, given in ((checked, args), (lowered, arrays)):
        try:
            run(version, given, external={FAULT: fault})
            outcomes.append(None)
        except Fault as found:
            outcomes.append(str(found))
    assert outcomes[0] == outcomes[1]
    for a, b in zip(args, arrays):
        np.testing.assert_array_equal(a, b)
    if outcomes[0] is not None:
        raise Fault(outcomes[0])


class Planted(Rewriter):
    """Replaces statements and expressions by `fault(node)` where it gives something."""

    def __init__(self, change):
        super().__init__()
        self.change, self.count = change, 0

    def rewrite(self, node):
        made = self.change(node)
        if made is not None:
            self.count += 1
        return node if made is None else made


def planted(func, change):
    rewriter = Planted(change)
    made = func.with_body(rewriter(func.body))
    assert rewriter.count, "the fault was not planted"
    return made


def blurred(parallel=True):
    """A stencil whose producer is computed at the tiles of its consumer, 11 elements in tiles of 4."""
    A = te.placeholder((13,), name="A")
    B = te.compute((13,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((11,), lambda i: B[i] + B[i + 1] + B[i + 2], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 4)
    s[B].compute_at(s[C], outer)
    s[C].vectorize(inner)
    if parallel:
        s[C].parallel(outer)
    a = np.arange(13, dtype="float32")
    return schedule_to_module(s, [A, C])["main"], a, np.zeros(11, "float32"), 2 * (a[:11] + a[1:12] + a[2:])


@pytest.mark.parametrize("parallel", [False, True])
def test_a_right_program_passes_its_checks(parallel):
    func, a, c, expected = blurred(parallel)
    run_checked(func, a, c)
    np.testing.assert_allclose(c, expected)


def test_a_right_reduction_over_any_size_passes_its_checks():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, _ = s[B].split(k, 4)
    rf = s.rfactor(B, ko)
    s[rf].parallel(rf.op.axis[0])
    a, b = np.arange(35, dtype="float32").reshape(5, 7), np.zeros(5, "float32")
    run_checked(schedule_to_module(s, [A, B])["main"], a, b)
    np.testing.assert_allclose(b, a.sum(1))


def test_a_halo_short_by_one_is_found():
    func, a, c, _ = blurred()

    def short(node):
        if isinstance(node, BufferRealize) and node.buffer.name == "B":
            low = node.bounds[0]
            return node.replace(bounds=(Range.from_min_extent(low.min, build.sub(low.extent, 1)),))
        return None

    with pytest.raises(Fault, match=r"B\[5\]: index 5 of dimension 0 is not in \[0, 5\)"):
        run_checked(planted(func, short), a, c)


def test_a_dropped_guard_is_found():
    func, a, c, _ = blurred()
    with pytest.raises(Fault, match=r"reads A\[13\]: index 13 of dimension 0 is not in \[0, 13\)"):
        run_checked(planted(func, lambda n: n.then_case if isinstance(n, IfThenElse) else None), a, c)


def test_an_index_off_by_one_is_found():
    func, a, c, _ = blurred()

    def shifted(node):
        if isinstance(node, BufferStore) and node.buffer.name == "C":
            return node.replace(indices=(build.add(node.indices[0], 1),))
        return None

    with pytest.raises(Fault, match=r"stores C\[11\]: index 11 of dimension 0 is not in \[0, 11\)\n  loops: i.outer = 2"):
        run_checked(planted(func, shifted), a, c)


def test_a_lost_store_leaves_a_read_without_value():
    func, a, c, _ = blurred()

    def fewer(node):
        is_producer = isinstance(node, For) and node.loop_var.name == "i"
        return node.replace(extent=build.sub(node.extent, 1)) if is_producer else None

    with pytest.raises(Fault, match=r"reads B\[5\], to which nothing was written before\n  loops: i.outer = 0, i.inner = 3"):
        run_checked(planted(func, fewer), a, c)


def test_a_dropped_init_is_found():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), "k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    func = schedule_to_module(te.create_schedule(B.op), [A, B])["main"]

    def dropped(node):
        return seq(*node.seq[1:]) if isinstance(node, SeqStmt) else None

    with pytest.raises(Fault, match=r"reads B\[0\], to which nothing was written before\n  loops: i = 0, k = 0"):
        run_checked(planted(func, dropped), np.ones((4, 5), "float32"), np.zeros(4, "float32"))


def test_swapped_stages_are_found():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: B[i] * 2.0, name="C")
    func = schedule_to_module(te.create_schedule(C.op), [A, C])["main"]

    def swapped(node):
        return SeqStmt(tuple(reversed(node.seq))) if isinstance(node, SeqStmt) else None

    with pytest.raises(Fault, match=r"reads B\[0\], to which nothing was written"):
        run_checked(planted(func, swapped), np.ones(4, "float32"), np.zeros(4, "float32"))


def test_an_output_that_is_not_whole_is_found():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    func = schedule_to_module(te.create_schedule(B.op), [A, B])["main"]
    with pytest.raises(Fault, match=r"never writes B\[3\]"):
        run_checked(planted(func, lambda n: n.replace(extent=build.const(3, "int32")) if isinstance(n, For) else None),
                    np.ones(4, "float32"), np.zeros(4, "float32"))


def test_an_index_read_from_data_is_checked():
    A, idx = tir.decl_buffer((4,), name="A"), tir.decl_buffer((3,), "int32", name="idx")
    out = tir.decl_buffer((3,), name="out")
    func = over(3, lambda i: BufferStore(out, BufferLoad(A, (BufferLoad(idx, (i,)),)), (i,)), A, idx, out)
    a, c = np.arange(4, dtype="float32"), np.zeros(3, "float32")
    run_checked(func, a, np.array([3, 0, 2], "int32"), c)
    np.testing.assert_array_equal(c, [3, 0, 2])
    with pytest.raises(Fault, match=r"reads A\[-7\]: index -7 of dimension 0 is not in \[0, 4\)\n  loops: i = 1"):
        run_checked(func, a, np.array([3, -7, 2], "int32"), c)


def over(extent, body, *buffers, kind=ForKind.SERIAL):
    """A function of `buffers` with one loop."""
    i = te.var("i")
    params = [tir.Var(f"{b.name}_handle", "handle") for b in buffers]
    loop = For(i, build.const(0, "int32"), build.const(extent, "int32"), kind, body(i))
    return PrimFunc(tuple(params), loop, None, dict(zip(params, buffers)), {"global_symbol": "main"})


def test_reads_that_a_condition_excludes_are_not_reported():
    A, out = tir.decl_buffer((4,), name="A"), tir.decl_buffer((6,), name="out")
    zero = te.const(0.0, "float32")
    func = over(6, lambda i: BufferStore(out, te.if_then_else(i < 4, BufferLoad(A, (i,)), zero), (i,)), A, out)
    run_checked(func, np.ones(4, "float32"), np.zeros(6, "float32"))


PARALLEL = {
    "stores C\\[0\\], which another iteration of the parallel loop i, i = 0, wrote too\n  loops: i = 2":
        lambda C, i: BufferStore(C, te.const(1.0, "float32"), (build.floormod(i, IntImm("int32", 2)),)),
    "reads C\\[0\\], which another iteration of the parallel loop i, i = 0, wrote\n  loops: i = 1":
        lambda C, i: BufferStore(C, BufferLoad(C, (build.maximum(build.sub(i, 1), 0),)), (i,)),
    "stores C\\[1\\], which another iteration of the parallel loop i, i = 0, read\n  loops: i = 1":
        lambda C, i: BufferStore(C, BufferLoad(C, (build.minimum(build.add(i, 1), 3),)), (i,)),
}


@pytest.mark.parametrize("problem", PARALLEL)
def test_iterations_of_a_parallel_loop_that_meet(problem):
    C = tir.decl_buffer((4,), name="C")
    func = over(4, lambda i: PARALLEL[problem](C, i), C, kind=ForKind.PARALLEL)
    with pytest.raises(Fault, match=problem):
        run_checked(func, np.zeros(4, "float32"))
    run_checked(over(4, lambda i: PARALLEL[problem](C, i), C), np.zeros(4, "float32"))


def test_loops_that_are_flat_already():
    func, a, c, expected = blurred(parallel=False)
    flat = lowering_pipeline(PassConfig())(func)
    checked = check_accesses(flat)
    run(checked, [a, c], external={FAULT: fault})
    np.testing.assert_allclose(c, expected)

    def shifted(node):
        return node.replace(base=build.const(5, "int32")) if isinstance(node, Ramp) and build.as_int(node.base) == 2 else None

    with pytest.raises(Fault, match=r"reads B\[6\]: index 6 of dimension 0 is not in \[0, 6\)"):
        run(check_accesses(planted(flat, shifted)), [a, c], external={FAULT: fault})
