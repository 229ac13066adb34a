"""Passes of tir.transform over memory and threads, on functions written by hand: before, after, and the same results."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import tedsl
from tedsl import te, tir, transform
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Load, Ramp, SizeVar, Var, pointer_var
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.stmt import Allocate, AttrStmt, Store, While
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.storage.rewrite_storage import rewrite_storage
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.insert_barriers import insert_barriers
from tests.passes.programs import PARALLEL, Function, allocate, body_text, check, imm, loop, seq, when

I, J, K, N = Var("i"), Var("j"), Var("k"), SizeVar("n")


def alone(step, **config):
    def run_pass(func):
        with transform.PassContext(config=config):
            return step(IRModule({"main": func}))["main"]
    return run_pass


def memory(name, scope="global", dtype="float32"):
    return pointer_var(name, DType(dtype), scope)


def element(data, index, dtype="float32"):
    return Load(DType(dtype), data, build.as_expr(index))


def allocations(func):
    return [node for node in post_order(func.body) if isinstance(node, Allocate)]


# --- StorageRewrite -------------------------------------------------------------------------------------------------------

REWRITE = alone(tir.transform.StorageRewrite())


def copied(to, source, var, size=8):
    return loop(var, size, Store(to, element(source, var) + 1.0, var))


def steps(f, temps, size=8):
    """A to B through the memories `temps`, one after the other."""
    memories = [f.data("A"), *temps, f.data("B")]
    return seq(*(copied(to, source, Var(f"i{k}"), size) for k, (source, to) in enumerate(itertools.pairwise(memories))))


def inside(temps, size, body):
    for data in reversed(temps):
        body = allocate(data, size, body)
    return body


def test_memory_in_a_while_loop_is_allocated_once_outside(golden):
    f = Function(A=(8,), B=(8,), C=(1, "int32"))
    temps = [memory("S"), memory("T"), memory("U")]
    count = f.load("C", 0)
    body = While(count < 3, inside(temps, 8, seq(steps(f, temps), f.store("C", 0, count + 1))))
    made = check(REWRITE, f.func(body), golden=golden)
    assert len(allocations(made)) == 1 and isinstance(made.body, Allocate)


def test_what_a_while_loop_carries_is_kept():
    f = Function(A=(8,), B=(8,), C=(1, "int32"))
    kept, first, second = memory("K"), memory("S"), memory("T")
    count = f.load("C", 0)
    turn = inside([first, second], 8, seq(copied(first, kept, Var("a")), copied(second, first, Var("b")),
                                          copied(kept, second, Var("c")), f.store("C", 0, count + 1)))
    whole = allocate(kept, 8, seq(copied(kept, f.data("A"), Var("d")), While(count < 3, turn),
                                  copied(f.data("B"), kept, Var("e"))))
    assert len(allocations(check(REWRITE, f.func(whole)))) == 2


def test_a_size_that_the_while_loop_computes_stays_inside():
    f = Function(A=(8,), B=(8,), C=(1, "int32"))
    data, size = memory("T"), f.load("C", 0)
    body = While(size < 8, seq(allocate(data, size + 1, Store(data, imm(1.0, "float32"), size)), f.store("C", 0, size + 1)))
    made = check(REWRITE, f.func(body))
    assert isinstance(made.body, While)


@pytest.mark.parametrize("scope, count", [("global", 1), ("global:tagged", 1), ("shared", 1), ("local.L0A", 1), ("local", 4),
                                          ("wmma.accumulator", 4)])
def test_memory_of_a_scope_with_a_tag(scope, count):
    f = Function(A=(8,), B=(8,))
    temps = [memory(name, scope) for name in "STUV"]
    made = check(REWRITE, f.func(inside(temps, 8, steps(f, temps))))
    assert len(allocations(made)) == count
    assert {node.buffer_var.type_annotation.storage_scope for node in allocations(made)} == {scope}
    assert scope != "local.L0A" or len(allocations(rewrite_storage(f.func(inside(temps, 8, steps(f, temps)))))) == 4


def test_scopes_with_other_tags_do_not_share():
    f = Function(A=(8,), B=(8,))
    temps = [memory("S", "global:a"), memory("T", "global:b"), memory("U", "global:a"), memory("V", "global:b")]
    apart = [memory("S", "global:a"), memory("T", "global:a"), memory("U", "global:b")]
    assert len(allocations(check(REWRITE, f.func(inside(temps, 8, steps(f, temps)))))) == 2
    assert len(allocations(check(REWRITE, f.func(inside(apart, 8, steps(f, apart)))))) == 2


def pool(sizes, said=None, scope="local.L7", dtype="float32"):
    """A to S to T to B, T by S backwards, so that both are live at one time; what the program says of the memory."""
    f = Function(A=(8,), B=(8,))
    first, second = memory("S", scope), memory("T", scope)
    backwards = loop(J, 8, Store(second, element(first, 7 - J) * 2.0, J))
    body = seq(copied(first, f.data("A"), I), backwards, copied(f.data("B"), second, K))
    func = f.func(allocate(first, sizes[0], allocate(second, sizes[1], body)))
    tedsl.register_func(f"tvm.info.mem.{scope}", lambda: said, override=True)
    try:
        return func, [node.extents[0].value for node in allocations(check(REWRITE, func))]
    finally:
        tedsl.runtime.remove_global_func(f"tvm.info.mem.{scope}")


@pytest.mark.parametrize("sizes, bits, total", [((8, 8), None, 16), ((9, 8), 128, 20), ((9, 8), 512, 24), ((9, 8), 32, 17)])
def test_a_tagged_scope_is_one_aligned_allocation(sizes, bits, total):
    said = None if bits is None else SimpleNamespace(max_simd_bits=bits, max_num_bits=total * 32)
    assert pool(sizes, said)[1] == [total]
    assert pool(sizes, said, scope="global")[1] == [*reversed(sizes)], "there is no tag"


@pytest.mark.parametrize("dtypes, bits, total", [
    (("float32", "int16"), None, ("uint16", 24)), (("float16", "int32"), None, ("uint16", 24)),
    (("int8", "float64"), 256, ("uint8", 96)), (("float32", "uint32"), None, ("uint32", 16))])
def test_a_tagged_scope_is_one_allocation_of_all_dtypes(dtypes, bits, total):
    """Where both are live at one time. It is counted in integers of the narrowest width."""
    f, scope = Function(A=(8,), B=(8,)), "local_TB"
    first, second = (memory(name, scope, of) for name, of in zip("ST", dtypes))
    filled = loop(I, 8, seq(Store(first, build.cast(dtypes[0], f.load("A", I)), I),
                            Store(second, build.cast(dtypes[1], f.load("A", I) * 2.0), I)))
    both = build.cast("float32", element(first, J, dtypes[0])) + build.cast("float32", element(second, J, dtypes[1]))
    body = allocate(first, 8, allocate(second, 8, seq(filled, loop(J, 8, f.store("B", J, both))), dtypes[1]), dtypes[0])
    tedsl.register_func(f"tvm.info.mem.{scope}", lambda: SimpleNamespace(max_simd_bits=bits), override=True)
    try:
        made = allocations(check(REWRITE, f.func(body)))
    finally:
        tedsl.runtime.remove_global_func(f"tvm.info.mem.{scope}")
    assert [(str(node.dtype), node.extents[0].value) for node in made] == [total]


def test_a_tagged_scope_has_an_allocation_for_each_dtype_where_vectors_are_scattered():
    f = Function(A=(8,), B=(8,))
    first, second = memory("S", "local.L7"), memory("T", "local.L7", "int16")
    even = Ramp(imm(0), imm(2), 4)
    body = seq(copied(first, f.data("A"), I), Store(second, build.cast("int16x4", Load(DType("float32x4"), first, even)), even),
               loop(J, 4, f.store("B", J * 2, element(first, J) + build.cast("float32", element(second, J * 2, "int16")))))
    made = check(REWRITE, f.func(allocate(first, 8, allocate(second, 8, body, "int16"))))
    assert sorted(str(node.dtype) for node in allocations(made)) == ["float32", "int16"]


def test_memory_grows_where_a_larger_one_follows():
    f = Function(A=(8,), B=(8,))
    small, large = memory("S", "local.L7"), memory("T", "local.L7")
    turned = loop(J, 8, Store(large, f.load("A", 7 - J), J))
    body = seq(copied(small, f.data("A"), I, 3), loop(Var("r"), 3, f.store("B", 0, element(small, 1))), turned,
               copied(f.data("B"), large, K))
    made = check(REWRITE, f.func(allocate(small, 3, allocate(large, 8, body))))
    assert [node.extents[0].value for node in allocations(made)] == [8]


def test_a_tagged_scope_that_is_too_small_is_refused():
    with pytest.raises(LoweringError, match=r"local.L7 has 544 bits, and S, T take 576 at one time"):
        pool((8, 10), SimpleNamespace(max_simd_bits=32, max_num_bits=544))


def test_vectors_in_a_pool(scope="global:tag"):
    f = Function(A=(8,), B=(8,))
    first, second = memory("S", scope), memory("T", scope)
    lanes = Ramp(imm(0), imm(1), 8)
    backwards = Load(DType("float32x8"), first, Ramp(imm(7), imm(-1), 8)) + 1.0
    body = seq(copied(first, f.data("A"), I), Store(second, backwards, lanes), copied(f.data("B"), second, K))
    made = check(REWRITE, f.func(allocate(first, 8, allocate(second, 8, body))))
    assert [node.extents[0].value for node in allocations(made)] == [16]


@pytest.mark.parametrize("size, count", [(1, 4), (2, 1), (3, 1)])
def test_small_memory_is_not_worth_sharing(size, count):
    f = Function(A=(8,), B=(8,))
    temps = [memory(name) for name in "STUV"]
    assert len(allocations(check(REWRITE, f.func(inside(temps, size, steps(f, temps, size)))))) == count


def through(second, size=8):
    """A to S, S to T by `second`, T to B: whether T has a memory of its own, after a check of the results."""
    f = Function(A=(size,), B=(size,))
    first, other = memory("S"), memory("T")
    body = seq(copied(first, f.data("A"), Var("i"), size), second(first, other), copied(f.data("B"), other, Var("k"), size))
    func = f.func(inside([first, other], size, body))
    assert len(allocations(rewrite_storage(func))) == 2, "lower keeps results and operands apart"
    return len(allocations(check(REWRITE, func))) == 2


R = Var("r")


def plus_one(source, index):
    return element(source, index) + 1.0


@pytest.mark.parametrize("second", [
    lambda s, t: loop(J, 8, Store(t, plus_one(s, J), J)),
    lambda s, t: loop(J, 2, loop(R, 4, Store(t, plus_one(s, J * 4 + R), J * 4 + R))),
    lambda s, t: loop(J, 2, loop(R, 4, Store(t, plus_one(s, R * 2 + J), R * 2 + J))),
    lambda s, t: loop(J, 8, Store(t, plus_one(s, 7 - J), 7 - J)),
    lambda s, t: loop(J, 2, Store(t, Load(DType("float32x4"), s, Ramp(J * 4, 1, 4)) + 1.0, Ramp(J * 4, 1, 4))),
    lambda s, t: loop(J, 8, Store(t, plus_one(s, J) * element(s, J), J), PARALLEL),
    lambda s, t: loop(R, 1, loop(J, 8, Store(t, plus_one(s, J), J)))])
def test_a_result_takes_the_place_of_its_operand(second):
    assert not through(second)


@pytest.mark.parametrize("second", [
    lambda s, t: loop(J, 8, Store(t, plus_one(s, 7 - J), J)),
    lambda s, t: loop(J, 8, Store(t, plus_one(s, J) + element(s, 0), J)),
    lambda s, t: loop(R, 2, loop(J, 8, Store(t, plus_one(s, J), J))),
    lambda s, t: loop(J, 3, loop(R, 4, Store(t, plus_one(s, J * 2 + R), J * 2 + R))),
    lambda s, t: loop(J, 8, seq(Store(t, plus_one(s, J), J), Store(t, element(s, J) * 2.0, J))),
    lambda s, t: loop(J, 16, Store(t, plus_one(s, J // 2), J // 2)),
    lambda s, t: loop(J, 8, when(element(s, 0) > 1.0, Store(t, plus_one(s, J), J), Store(t, plus_one(s, J), J)))])
def test_a_result_stays_beside_its_operand(second):
    """Where an element is read again, by another iteration or statement, after its place was stored to."""
    assert through(second)


M = SizeVar("m")


@pytest.mark.parametrize("index, sizes, count", [
    (lambda i, j: i * M + j, "same", 1), (lambda i, j: M * i + j, "same", 1), (lambda i, j: i * N + j, "same", 2),
    (lambda i, j: j * N + i, "same", 2), (lambda i, j: i * M + j, "other", 3)])
def test_memory_of_sizes_that_only_a_call_knows(index, sizes, count):
    """Equal products of sizes share; where elements lie in rows, one after the other, a result takes its operand's place."""
    f = Function(A=(64,), B=(64,))
    temps = [memory(name) for name in "STU"]
    memories = [f.data("A"), *temps, f.data("B")]
    parts = []
    for source, to in itertools.pairwise(memories):
        i, j = Var("i"), Var("j")
        parts.append(loop(i, N, loop(j, M, Store(to, element(source, index(i, j)) + 1.0, index(i, j)))))
    body = seq(*parts)
    for k, data in reversed(list(enumerate(temps))):
        body = allocate(data, (N + k if sizes == "other" else N) * M, body)
    assert len(allocations(check(REWRITE, f.func(body, N, M), sizes=((3, 3), (0, 2), (1, 1), (4, 4))))) == count


@pytest.mark.parametrize("dtypes, count", [
    (("float32", "int32"), 1), (("int32", "float32", "uint32"), 1), (("float32", "float64"), 1), (("int8", "bool"), 2),
    (("float16", "bfloat16", "int16"), 1), (("float64", "int8", "float16"), 1), (("int8", "float32", "int64"), 1)])
def test_values_of_several_dtypes_share_memory(dtypes, count):
    """B = the sum of what passes through memories of each dtype, one after the other."""
    f = Function(A=(8,), B=(8,))
    temps = [memory(f"T{k}", dtype=of) for k, of in enumerate(dtypes)]
    parts = []
    for data, of in zip(temps, dtypes):
        i, j = Var("i"), Var("j")
        parts += [loop(i, 8, Store(data, build.cast(of, f.load("A", i)), i)),
                  loop(j, 8, f.store("B", j, f.load("B", j) + build.cast("float32", element(data, j, of))))]
    body = seq(*parts)
    for data, of in reversed(list(zip(temps, dtypes))):
        body = allocate(data, 8, body, of)
    made = check(REWRITE, f.func(body))
    assert len(allocations(made)) == count
    widths = [DType(of).bits for of in dtypes]
    assert count == 2 or {node.dtype for node in allocations(made)} == {f"uint{min(widths)}"}
    assert count == 2 or build.as_int(allocations(made)[0].extents[0]) == 8 * max(widths) // min(widths)


def by_way_of(f, data, of, size, source="A", lanes=1, stride=1, predicate=None):
    """B = B + what passes through `data`, `lanes` elements at a time."""
    i, j = Var("i"), Var("j")
    at = lambda v: Ramp(v * lanes, stride, lanes) if lanes > 1 else v
    wide = lambda name: DType(name).with_lanes(lanes)
    read = lambda name, v: Load(wide("float32"), f.data(name), at(v))
    put = Store(data, build.cast(wide(of), read(source, i)), at(i), predicate)
    got = Load(wide(of), data, at(j), predicate)
    return seq(loop(i, size // lanes, put),
               loop(j, size // lanes, Store(f.data("B"), read("B", j) + build.cast(wide("float32"), got), at(j))))


@pytest.mark.parametrize("sizes, dtypes, words", [
    ((16, 4), ("int8", "float32"), 16), ((4, 16), ("float32", "int8"), 16), ((5, 3), ("int8", "int16"), 6),
    ((3, 7, 5), ("float64", "int16", "int8"), 24), ((9, 9), ("int16", "float64"), 36)])
def test_memory_is_large_enough_for_the_values_of_each_dtype(sizes, dtypes, words):
    f = Function(A=(16,), B=(16,))
    temps = [memory(f"T{k}", dtype=of) for k, of in enumerate(dtypes)]
    body = seq(*(by_way_of(f, data, of, size) for data, of, size in zip(temps, dtypes, sizes)))
    for data, of, size in reversed(list(zip(temps, dtypes, sizes))):
        body = allocate(data, size, body, of)
    made = allocations(check(REWRITE, f.func(body)))
    assert [build.as_int(node.extents[0]) for node in made] == [words]


@pytest.mark.parametrize("lanes, stride, count", [(4, 1, 1), (2, 1, 1), (4, 2, 2)])
def test_vectors_share_memory_of_several_widths_if_they_are_of_neighbours(lanes, stride, count):
    f = Function(A=(16,), B=(16,))
    first, other = memory("S", dtype="int16"), memory("T")
    body = seq(by_way_of(f, first, "int16", 8, lanes=lanes, stride=stride), by_way_of(f, other, "float32", 8, lanes=lanes))
    made = check(REWRITE, f.func(allocate(first, 16, allocate(other, 16, body), "int16")))
    assert len(allocations(made)) == count


def test_a_wider_result_does_not_take_the_place_of_its_operand():
    f = Function(A=(8,), B=(8,))
    first, other = memory("S", dtype="int16"), memory("T", dtype="int32")
    body = seq(loop(I, 8, Store(first, build.cast("int16", f.load("A", I)), I)),
               loop(J, 8, Store(other, build.cast("int32", element(first, J, "int16")), J)),
               loop(K, 8, f.store("B", K, build.cast("float32", element(other, K, "int32")))))
    made = check(REWRITE, f.func(allocate(first, 8, allocate(other, 8, body, "int32"), "int16")))
    assert len(allocations(made)) == 2

def test_memory_whose_address_goes_elsewhere_keeps_its_dtype():
    f = Function(A=(8,), B=(8,))
    first, other = memory("S"), memory("T", dtype="int32")
    call = tir.Evaluate(tir.call_extern("int32", "touch", other))
    body = allocate(first, 8, allocate(other, 8, seq(copied(first, f.data("A"), Var("i")), copied(f.data("B"), first, Var("k")),
                                                     call), "int32"))
    assert len(allocations(REWRITE(f.func(body)))) == 2


def test_threads_keep_results_and_operands_apart():
    """Each thread may compute the same element."""
    f, thread = Function(A=(8,), B=(8,)), te.thread_axis("threadIdx.x")
    first, other = memory("S", "shared"), memory("T", "shared")
    body = seq(copied(first, f.data("A"), Var("i")), copied(other, first, Var("j")), copied(f.data("B"), other, Var("k")))
    func = f.func(AttrStmt(thread, "thread_extent", 4, inside([first, other], 8, body)))
    made = REWRITE(func)
    assert len(allocations(made)) == 2


# --- InjectDoubleBuffer, ThreadSync ------------------------------------------------------------------------------------------

def turned_rows(threads, rows):
    """C[i] = A[i] turned round, each row of `threads` numbers by way of shared memory that is filled ahead."""
    ib = tir.ir_builder.create()
    A, C = tir.decl_buffer((rows * threads,), name="A"), tir.decl_buffer((rows * threads,), name="C")
    a, c = ib.buffer_ptr(A), ib.buffer_ptr(C)
    x = te.thread_axis("threadIdx.x")
    ib.scope_attr(x, "thread_extent", threads)
    with ib.for_range(0, rows, "i") as i:
        row = ib.allocate("float32", threads, name="row", scope="shared")
        with ib.new_scope():
            ib.scope_attr(row.asobject(), "double_buffer_scope", 1)
            row[x.var] = a[i * threads + x.var]
        c[i * threads + x.var] = row[threads - 1 - x.var]
    return PrimFunc((A, C), ib.get()).with_attr({"global_symbol": "main", "tir.noalias": True})


@pytest.mark.parametrize("threads, rows", [(4, 1), (4, 2), (4, 5), (3, 8), (1, 3)])
@pytest.mark.parametrize("split_loop", [1, 2])
def test_shared_memory_is_filled_one_row_ahead(threads, rows, split_loop, golden):
    before = turned_rows(threads, rows)
    stores = lambda func: sum(isinstance(node, Store) for node in post_order(func.body))
    with transform.PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": split_loop}}):
        ahead = tir.transform.InjectDoubleBuffer()(IRModule({"main": before}))
    made = transform.Sequential([tir.transform.Simplify(), tir.transform.ThreadSync("shared")])(ahead)["main"]
    assert [[build.as_int(extent) for extent in node.extents] for node in allocations(made)] == [[2, threads]]
    if rows > 2:
        assert stores(ahead["main"]) == (4 if split_loop == 1 else 6 + 2 * ((rows - 1) % 2)) and stores(before) == 2
    a = np.arange(rows * threads, dtype="float32")
    for backwards in (False, True):
        c = np.zeros_like(a)
        run(made, [a, c], reverse_parallel=backwards)
        np.testing.assert_array_equal(c.reshape(rows, threads), a.reshape(rows, threads)[:, ::-1])
    if (threads, rows) == (4, 5):
        golden.sections(before=body_text(before), after=body_text(made))


@pytest.mark.parametrize("split_loop", [1, 2, 4])
def test_barriers_of_shared_memory_that_is_filled_ahead(split_loop):
    """One for the first filling, one for each iteration in a step but the last, one before the last use; also where the program
    does not say that its arrays do not overlap.
    """
    before = turned_rows(4, 9).without_attr("tir.noalias")
    with transform.PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": split_loop}}):
        ahead = tir.transform.InjectDoubleBuffer()(IRModule({"main": before}))
    made = transform.Sequential([tir.transform.Simplify(), tir.transform.ThreadSync("shared")])(ahead)["main"]
    assert str(made).count("storage_sync") == 2 * split_loop and str(made).count("double_buffer_write") == split_loop


# --- StorageFlatten ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("shape, line, counts", [
    ((25, 100, 4), 64, [2, 2]), ((25, 100, 4), 16, [2, 8]), ((25, 100, 4), 128, [2]), ((25, 4, 4), 128, [1]),
    ((25, 100, 64), 64, [2, 8])])
def test_prefetches_are_as_many_as_cache_lines(shape, line, counts):
    A = tir.decl_buffer(shape, name="A")
    n = SizeVar("n")
    region = [Range.from_min_extent(*part) for part in ((n, 2), (0, min(8, shape[1])), (0, 4))]
    func = IRModule.from_expr(PrimFunc((A, n), tir.Prefetch(A, region)))
    made = transform.Sequential([tir.transform.StorageFlatten(line), tir.transform.Simplify()])(func)["main"]
    loops = [build.as_int(node.extent) for node in post_order(made.body) if isinstance(node, tir.For)]
    assert sorted(loops) == [count for count in sorted(counts) if count > 1]


def test_checks_of_bounds_need_no_attributes():
    A, B = tir.decl_buffer((4, 2), name="A"), tir.decl_buffer((4, 2), name="B")
    ib = tir.ir_builder.create()
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    with ib.for_range(0, 4, "i") as i:
        b[i, 1] = a[i + 1, 0]
    func = IRModule.from_expr(PrimFunc((A, B), ib.get()))
    both = transform.Sequential([tir.transform.StorageFlatten(64, True), tir.transform.InstrumentBoundCheckers()])
    with pytest.raises(tedsl.TedslError, match="8"):
        tedsl.build(both(func))(np.zeros((4, 2), "float32"), np.zeros((4, 2), "float32"))


# --- InjectVirtualThread -----------------------------------------------------------------------------------------------------

def on_virtual_threads(body, *axes):
    for axis, count in reversed(axes):
        body = AttrStmt(axis, "virtual_thread", build.as_expr(count), body)
    return body


@pytest.mark.parametrize("count", [1, 2, 3])
def test_virtual_threads_have_memory_of_their_own(count, golden):
    f = Function(A=(20, ), B=(20, ))
    x = te.thread_axis("vthread", name="vx")
    data = memory("T", "shared")
    at = I * count + x.var
    body = allocate(data, 4, seq(Store(data, f.load("A", at), imm(0)), f.store("B", at, element(data, 0) * 2.0)))
    before = f.func(on_virtual_threads(loop(I, 5, body), (x, count)))
    made = check(alone(tir.transform.InjectVirtualThread()), before, golden=golden if count == 2 else None)
    assert "virtual_thread" not in str(made)
    sizes = [build.as_int(extent) for extent in allocations(made)[0].extents]
    assert int(np.prod(sizes)) == 4 * count


def test_a_branch_that_all_virtual_threads_take_stands_once(golden):
    f = Function(A=(20,), B=(20,))
    x = te.thread_axis("vthread", name="vx")
    at = I * 2 + x.var
    branch = tir.IfThenElse(build.less(I, N), f.store("B", at, f.load("A", at)), f.store("B", at, 3))
    made = check(alone(tir.transform.InjectVirtualThread()), f.func(on_virtual_threads(loop(I, 5, branch), (x, 2)), N),
                 sizes=((0,), (3,), (9,)), golden=golden)
    assert str(made).count("if (") == 1


@pytest.mark.parametrize("axes", [{"blockIdx.x": 4}, {"blockIdx.x": 4, "threadIdx.x": 1}])
def test_one_thread_gets_the_barriers_that_are_asked_for(axes):
    """ThreadSync serves whatever number of threads runs; lower and build leave out what one thread does not need."""
    ib = tir.ir_builder.create()
    A, B = (tir.decl_buffer((4,), name=name) for name in "AB")
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    block = te.thread_axis("blockIdx.x")
    ib.scope_attr(block, "thread_extent", 4)
    if "threadIdx.x" in axes:
        ib.scope_attr(te.thread_axis("threadIdx.x"), "thread_extent", 1)
    kept = ib.allocate("float32", (1,), name="kept", scope="shared")
    kept[0] = a[block.var] + 1.0
    b[block.var] = kept[0]
    func = tir.transform.StorageFlatten(64)(IRModule({"main": PrimFunc((A, B), ib.get())}))["main"]
    made = alone(tir.transform.ThreadSync("shared"))(func)
    assert body_text(made).count("storage_sync") == 1 and body_text(func).count("storage_sync") == 0
    assert "storage_sync" not in body_text(insert_barriers(gather_threads(func)))
    numbers, out = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    run(made, [numbers, out])
    np.testing.assert_array_equal(out, numbers + 1)
