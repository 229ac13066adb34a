"""Every pass of tir.transform on programs in both forms, with buffers and flat: well-formed, the same results, or refused."""

import contextlib
import functools

import numpy as np
import pytest

from tedsl import te, tir
from tedsl.errors import LoweringError
from tedsl.ir.evaluate import run
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.verify import verify

T = tir.transform
PASSES = {name: getattr(T, name)() for name in (
    "Simplify", "LoopPartition", "VectorizeLoop", "InjectVirtualThread", "InjectDoubleBuffer", "StorageRewrite", "UnrollLoop",
    "RemoveNoOp", "RewriteUnsafeSelect", "HoistIfThenElse", "InjectPrefetch", "InjectRollingBuffer", "LowerIntrin",
    "SkipAssert", "BF16Promote", "BF16TypeLowering", "BF16Legalize", "InstrumentBoundCheckers", "VerifyMemory",
    "MakePackedAPI", "MakeUnpackedAPI")}
PASSES |= {"NarrowDataType32": T.NarrowDataType(32), "NarrowDataType16": T.NarrowDataType(16),
           "StorageFlatten": T.StorageFlatten(64), "ThreadSync": T.ThreadSync("shared")}
ROWS, COLUMNS = 4, 8
PROGRAMS = {}


def written(body):
    """Registers a function that writes the loops from A to B, both [4, 8], with an ir_builder."""
    def made():
        ib = tir.ir_builder.create()
        A, B = (tir.decl_buffer((ROWS, COLUMNS), name=name) for name in "AB")
        body(ib, ib.buffer_ptr(A), ib.buffer_ptr(B))
        return PrimFunc((A, B), ib.get()).with_attr({"global_symbol": "main", "tir.noalias": True})

    PROGRAMS[body.__name__] = made


def scheduled(schedule):
    """Registers the loops before StorageFlatten of a schedule of B[i, j] = (A[i, 7 - j] + 1) * 2 by way of M."""
    def made():
        A = te.placeholder((ROWS, COLUMNS), name="A")
        M = te.compute((ROWS, COLUMNS), lambda i, j: A[i, j] + 1.0, name="M")
        B = te.compute((ROWS, COLUMNS), lambda i, j: te.if_then_else(j > 0, M[i, 7 - j] * 2.0, 0.0), name="B")
        s = te.create_schedule(B.op)
        schedule(s, M, B)
        loops = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
        func = te.schedule.SchedulePostProcToPrimFunc([A, B], loops, None)
        return func.with_attr({"global_symbol": "main", "tir.noalias": True})

    PROGRAMS[schedule.__name__] = made


@written
def a_condition_on_memory_that_the_loop_writes(ib, a, b):
    with ib.for_range(0, ROWS, "i") as i, ib.for_range(0, COLUMNS, "j") as j, ib.if_scope(a[0, 0] >= 0.0):
        b[i, j] = a[i, j] + 1.0
        a[0, 0] = a[0, 0] - 3.0


@written
def vectors_under_a_guard(ib, a, b):
    with ib.for_range(0, ROWS, "i") as i, ib.for_range(0, COLUMNS, "j", kind="vectorize") as j, \
            ib.if_scope(tir.likely(i * COLUMNS + j < 29)):
        b[i, j] = a[i, j] * 2.0


@written
def unrolled_rows(ib, a, b):
    with ib.for_range(0, ROWS, "i", kind="unroll") as i:
        row = ib.allocate("float32", (COLUMNS,), name="row")
        with ib.for_range(0, COLUMNS, "j") as j:
            row[j] = a[i, COLUMNS - 1 - j]
        with ib.for_range(0, COLUMNS, "j") as j:
            b[i, j] = row[j] + tir.if_then_else(j > 0, a[i, j - 1], tir.const(0.0, "float32"))


@written
def branches_in_parallel(ib, a, b):
    with ib.for_range(0, ROWS, "i", kind="parallel") as i:
        x = ib.let("x", a[i, 0] + 1.0)
        with ib.for_range(0, COLUMNS, "j") as j:
            with ib.if_scope(i > 1):
                b[i, j] = x * a[i, j]
            with ib.else_scope():
                b[i, j] = x


@written
def rows_by_a_while_loop(ib, a, b):
    k = ib.allocate("int32", (1,), name="k")
    k[0] = 0
    with ib.while_loop(k[0] < ROWS):
        with ib.for_range(0, COLUMNS, "j", kind="vectorize") as j:
            b[k[0], j] = a[k[0], j] + 1.0
        k[0] = k[0] + 1


@written
def threads_that_turn_rows(ib, a, b):
    block, x = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
    ib.scope_attr(block, "thread_extent", ROWS)
    ib.scope_attr(x, "thread_extent", COLUMNS)
    row = ib.allocate("float32", (COLUMNS,), name="row", scope="shared")
    row[x.var] = a[block.var, x.var]
    with ib.if_scope(tir.likely(block.var * COLUMNS + x.var < 29)):
        b[block.var, x.var] = row[COLUMNS - 1 - x.var]


@written
def virtual_threads(ib, a, b):
    v = te.thread_axis("vthread", name="v")
    ib.scope_attr(v, "virtual_thread", 2)
    with ib.for_range(0, ROWS, "i") as i:
        part = ib.allocate("float32", (4,), name="part", scope="local")
        with ib.for_range(0, 4, "j") as j:
            part[j] = a[i, v.var * 4 + j]
        with ib.for_range(0, 4, "j") as j, ib.if_scope(j + v.var < 4):
            b[i, v.var * 4 + j] = part[3 - j]


@scheduled
def tiles_that_do_not_divide(s, M, B):
    _, inner = s[B].split(B.op.axis[1], 3)
    s[M].compute_at(s[B], B.op.axis[0])
    s[B].unroll(inner)
    s[M].vectorize(M.op.axis[1])


@scheduled
def rows_filled_ahead(s, M, B):
    s[M].compute_at(s[B], B.op.axis[0])
    s[M].double_buffer()


@scheduled
def virtual_threads_of_a_schedule(s, M, B):
    outer, inner = s[B].split(B.op.axis[1], nparts=2)
    s[B].reorder(outer, B.op.axis[0], inner)
    s[B].bind(outer, te.thread_axis("vthread"))
    s[M].compute_at(s[B], B.op.axis[0])


# Where a pass needs flat memory.
REFUSED = {("virtual_threads_of_a_schedule", "InjectVirtualThread")}
# Where a pass makes it, from loops that become vectors.
FLATTENED = {("vectors_under_a_guard", "VectorizeLoop"), ("rows_by_a_while_loop", "VectorizeLoop"),
             ("tiles_that_do_not_divide", "VectorizeLoop")}


def after(step, func):
    return step(IRModule({"main": func}))["main"]


@functools.cache
def program(name):
    """A program with its results, which are those of the interpreter once threads have their barriers."""
    func = PROGRAMS[name]()
    return func, results(after(PASSES["ThreadSync"], func))


def results(func):
    a, b = (np.arange(ROWS * COLUMNS, dtype="float32").reshape(ROWS, COLUMNS) * 5 % 7 for _ in "ab")
    run(func, [a, b] if func.buffer_map else [a.reshape(-1), b.reshape(-1)])
    return a, b


@pytest.mark.parametrize("form", ["buffers", "flat"])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_every_pass_keeps_the_results(name, form):
    func, expected = program(name)
    before = func if form == "buffers" else after(PASSES["StorageFlatten"], func)
    for called, step in PASSES.items():
        refuses = form == "buffers" and (name, called) in REFUSED
        with pytest.raises(LoweringError, match="needs flat memory") if refuses else contextlib.nullcontext():
            made = after(step, before)
        if refuses:
            continue
        verify(made, flat=form == "flat" or called in ("StorageFlatten", "MakeUnpackedAPI") or (name, called) in FLATTENED)
        for got, wanted in zip(results(after(PASSES["ThreadSync"], made)), expected):
            np.testing.assert_array_equal(got, wanted, err_msg=called)
