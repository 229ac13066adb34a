"""Buffers of different dtypes in the same shared memory: where, with which barriers, and what all ways to run them compute."""

import dataclasses
import random
import re

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
from tedsl import te, tir
from tedsl.errors import LoweringError
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Call
from tedsl.ir.ops import SYNC
from tedsl.ir.stmt import Allocate, For
from tedsl.ir.verify import verify
from tedsl.ir.walk.visitor import post_order
from tedsl.lower.lower import lower_schedule
from tedsl.passes.default import lowering_pipeline
from tedsl.passes.device.share_memory import _Life, _offsets, common_bytes, offset_of, share_memory, undefined_bytes
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.insert_barriers import insert_barriers
from tests.codegen.nvptx.assembler import assemble
from tests.devices.opencl_device import needs_opencl
from tests.passes.programs import body_text

THREADS = 64


def chain(scopes=("shared", "shared"), blocks=2, dtypes=("float16", "int32"), parts=4, each=1):
    """Z = f(Y), Y = g(X), X = h(A) in blocks of `parts` * THREADS elements; Y is of another dtype than X, and other threads
    read both. each: rows that a block computes one after the other.
    """
    blocks, n = blocks * each, parts * THREADS
    A = te.placeholder((blocks, n), dtypes[0], name="A")
    X = te.compute(A.shape, lambda b, i: A[b, n - 1 - i] + A[b, i], name="X")
    L = te.compute(A.shape, lambda b, i: X[b, (i + 1) % n].astype("float32") * 0.5, name="L")
    Y = te.compute(A.shape, lambda b, i: L[b, i].astype(dtypes[1]) + 1, name="Y")
    Z = te.compute(A.shape, lambda b, i: Y[b, (i + 3) % n] - 1, name="Z")
    s = te.create_schedule(Z.op)
    block = row = Z.op.axis[0]
    if each > 1:
        block, row = s[Z].split(row, factor=each)
    for tensor, scope in zip((X, L, Y), (scopes[0], "local", scopes[1])):
        s[tensor].set_scope(scope)
        s[tensor].compute_at(s[Z], row)
    s[Z].bind(block, te.thread_axis("blockIdx.x"))
    for tensor in (X, L, Y, Z):
        outer, inner = s[tensor].split(tensor.op.axis[1], factor=THREADS)
        s[tensor].reorder(inner, outer)
        s[tensor].bind(inner, te.thread_axis("threadIdx.x"))
    a = (np.arange(blocks * n) % 61).reshape(blocks, n).astype(dtypes[0])
    return s, [A, Z], a, chained(a, dtypes[1])


def chained(a, dtype):
    """The result of `chain`."""
    x = a[:, ::-1] + a
    y = (np.roll(x, -1, 1).astype("float32") * np.float32(0.5)).astype(dtype) + 1
    return (np.roll(y, -3, 1) - 1).astype(dtype)


def loops(s, args):
    return gather_threads(lowering_pipeline()(lower_schedule(s, args)))


def allocations(func):
    return [node for node in post_order(func.body) if isinstance(node, Allocate)]


@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
def test_a_buffer_takes_the_bytes_of_one_of_another_dtype(scope, golden):
    s, args, a, expected = chain((scope, scope))
    before = loops(s, args)
    shared = share_memory(before)
    after = insert_barriers(shared)
    verify(after, flat=True)
    assert {node.buffer_var.name: offset_of(node) for node in allocations(after)} == {"X": 0, "Y": 0, "L": None}
    assert common_bytes(allocations(after)) == 4 * THREADS * 4
    barriers = [n for n in post_order(after.body) if isinstance(n, Call) and n.op is SYNC]
    assert [undefined_bytes(barrier) for barrier in barriers] == [[], [(scope, 0, 4 * THREADS * 4)], []]
    for backwards in (False, True):
        out = np.zeros_like(expected)
        run(after, [a, out], reverse_parallel=backwards)
        np.testing.assert_array_equal(out, expected)
    golden.sections(before=body_text(before), after=body_text(shared))


def test_buffers_of_one_iteration_take_each_others_bytes(golden):
    """Threads wait before each of both: in the next iteration the first takes the bytes of the second again."""
    s, args, a, expected = chain(each=3)
    before = loops(s, args)
    shared = share_memory(before)
    after = insert_barriers(shared)
    verify(after, flat=True)
    assert {node.buffer_var.name: offset_of(node) for node in allocations(after)} == {"X": 0, "Y": 0, "L": None}
    barriers = [n for n in post_order(after.body) if isinstance(n, Call) and n.op is SYNC]
    x, y = ("shared", 0, THREADS * 4 * 2), ("shared", 0, THREADS * 4 * 4)
    assert [undefined_bytes(barrier) for barrier in barriers] == [[x], [], [y], []]
    for backwards in (False, True):
        out = np.zeros_like(expected)
        run(after, [a, out], reverse_parallel=backwards)
        np.testing.assert_array_equal(out, expected)
    golden.sections(before=body_text(before), after=body_text(shared))


def test_what_an_iteration_leaves_to_the_next_is_in_use_all_the_time():
    """X is computed once for all iterations, Y in each of them."""
    s, args, *_ = chain(each=3)
    z = args[1]
    x = next(stage.op.output(0) for stage in s.stages if stage.op.name == "X")
    s[x].compute_at(s[z], s[z].leaf_iter_vars[0])
    before = loops(s, args)
    assert share_memory(before) is before


def staged(ahead, blocks=2, rows=2, steps=3):
    """In each row sums over steps, whose tiles X are filled in shared memory, then passed to other threads through Y.
    ahead: a tile is filled while the one before is read.
    """
    n = 4 * THREADS
    A, k = te.placeholder((blocks, rows, steps, n), name="A"), te.reduce_axis((0, steps), name="k")
    X = te.compute(A.shape, lambda b, o, r, i: A[b, o, r, i], name="X")
    L = te.compute((blocks, rows, n), lambda b, o, i: te.sum(X[b, o, k, (i + 1) % n], axis=k), name="L")
    Y = te.compute(L.shape, lambda b, o, i: L[b, o, i].astype("float64"), name="Y")
    Z = te.compute(L.shape, lambda b, o, i: Y[b, o, (i + 3) % n] + 1, name="Z")
    s = te.create_schedule(Z.op)
    for tensor, scope in ((X, "shared"), (Y, "shared"), (L, "local")):
        s[tensor].set_scope(scope)
    s[Z].bind(Z.op.axis[0], te.thread_axis("blockIdx.x"))
    for tensor in (Z, Y, L, X):
        outer, inner = s[tensor].split(tensor.op.axis[-1], factor=THREADS)
        s[tensor].bind(inner, te.thread_axis("threadIdx.x"))
        if tensor is L:
            s[L].reorder(k, inner, outer)
    for tensor in (Y, L):
        s[tensor].compute_at(s[Z], Z.op.axis[1])
    s[X].compute_at(s[L], k)
    if ahead:
        s[X].double_buffer()
    a = np.random.default_rng(0).integers(0, 9, (blocks, rows, steps, n)).astype("float32")
    return s, [A, Z], a, np.roll(a.sum(2).astype("float64"), -4, -1) + 1


@pytest.mark.parametrize("ahead", [False, True])
def test_threads_wait_once_before_a_loop_inside(ahead, tmp_path):
    """Y lives in the loop over rows, X in one inside of it: between both they wait before that one, not in it."""
    s, args, a, expected = staged(ahead)
    after = share_memory(loops(s, args))
    assert {offset_of(node) for node in allocations(after) if node.buffer_var.name in "XY"} == {0}
    rows, *inside = sorted((node for node in post_order(after.body) if isinstance(node, For)),
                           key=lambda loop: -len(list(post_order(loop))))
    counts = [sum(isinstance(node, Call) and node.op is SYNC for node in post_order(loop)) for loop in (rows, *inside)]
    assert counts == [2] + [0] * len(inside)
    f = tedsl.build(s, args, target="cuda -arch=sm_80")
    with simulate.mode("checked"):
        np.testing.assert_array_equal(simulated(f, a, expected), expected)
    text = f.imported_modules[0].get_source("ptx")
    assert ("cp.async" in text) == ahead
    assemble(text, "sm_80", tmp_path)


@pytest.mark.parametrize("of", [{"scopes": ("shared", "shared.dyn")}, {"parts": 1, "dtypes": ("int8", "int8")}], ids=str)
def test_what_lies_in_two_scopes_or_saves_little_keeps_its_memory(of):
    s, args, *_ = chain(**of)
    before = loops(s, args)
    assert share_memory(before) is before


def test_no_two_buffers_that_are_in_use_at_once_overlap():
    rng = random.Random(0)
    for _ in range(300):
        lives = []
        for _ in range(rng.randint(1, 9)):
            first, size = rng.randint(0, 6), 32 * rng.randint(1, 9)
            lives.append(_Life(None, size, first, first + rng.randint(0, 3)))
        offsets = _offsets(lives)
        for one in lives:
            assert offsets[one] % 32 == 0 and offsets[one] + one.size <= sum(life.size for life in lives)
            for other in lives:
                if other is not one and one.first <= other.last and other.first <= one.last:
                    assert offsets[one] + one.size <= offsets[other] or offsets[other] + other.size <= offsets[one]


def simulated(f, a, expected):
    arrays = [tedsl.nd.array(a, tedsl.sim(0)), tedsl.nd.empty(expected.shape, str(expected.dtype), tedsl.sim(0))]
    f(*arrays)
    return arrays[1].numpy()


@pytest.mark.parametrize("each", [1, 3])
@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
@pytest.mark.parametrize("dtypes", [("float16", "int32"), ("int8", "float64"), ("float64", "int8"),
                                    ("float32", "float32")], ids=str)
def test_ptx_is_assembled_and_simulated_without_a_finding(scope, dtypes, each, tmp_path):
    s, args, a, expected = chain((scope, scope), dtypes=dtypes, each=each)
    f = tedsl.build(s, args, target="cuda -arch=sm_80")
    with simulate.mode("checked"):
        np.testing.assert_array_equal(simulated(f, a, expected), expected)
    text = f.imported_modules[0].get_source("ptx")
    assert text.count(".shared .align") == 1
    assemble(text, "sm_80", tmp_path)
    assert "__shared__" in f.imported_modules[0].get_source("cu")


def test_the_simulator_sees_what_was_read_before_it_was_written_and_races():
    """The store of a part of Y goes: what is read there is of X. The barrier goes: threads write Y while others read X."""
    s, args, a, expected = chain()
    f = tedsl.build(s, args, target="cuda -arch=sm_80")
    module = f.imported_modules[0]
    code = module.code
    begin = code.text.index("//tedsl.undefined")
    store = re.compile(r"\tst\.shared\.b32[^\n]*\n").search(code.text, begin).group()
    without = code.text[:begin] + code.text[begin:].replace(store, "", 1)
    unmarked = re.sub(r"//tedsl\.undefined[^\n]*\n", "\n", without)
    barrier = code.text.index("bar.sync", begin)
    for text, kinds in ((code.text, set()), (without, {"uninitialised"}), (unmarked, set()),
                        (code.text[:barrier] + "//" + code.text[barrier:], {"race"})):
        module.code = dataclasses.replace(code, text=text)
        module._loaded.clear()
        simulate.reset()
        simulated(f, a, expected)
        found = {finding.kind for report in simulate.report() for finding in report.findings}
        assert found == kinds or (kinds and any(kind in word for kind in kinds for word in found)), (found, kinds)


def test_what_is_used_at_different_times_counts_once_for_the_limits_of_a_block():
    s, args, *_ = chain(parts=16, dtypes=("float32", "int32"))  # 4096 bytes, twice
    tedsl.build(s, args, target="cuda -max_shared_memory_per_block=4096")
    with pytest.raises(LoweringError, match="needs 4096 bytes of shared memory"):
        tedsl.build(s, args, target="cuda -max_shared_memory_per_block=4095")
    with tedsl.transform.PassContext(disabled_pass=["tir.ShareMemory"]), \
            pytest.raises(LoweringError, match="needs 8192 bytes of shared memory"):
        tedsl.build(s, args, target="cuda -max_shared_memory_per_block=4096")


@needs_opencl
@pytest.mark.parametrize("each", [1, 3])
@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
def test_opencl_computes_the_same(scope, each):
    s, args, a, expected = chain((scope, scope), each=each)
    f = tedsl.build(s, args, target="opencl")
    arrays = [tedsl.nd.array(a, tedsl.opencl(0)), tedsl.nd.empty(expected.shape, "int32", tedsl.opencl(0))]
    f(*arrays)
    np.testing.assert_array_equal(arrays[1].numpy(), expected)
    source = f.imported_modules[0].get_source()
    assert ("__local uint8_t" in source or "__local uchar" in source) and source.count("__local ushort *const X") == 1


class _Nest:
    """A random kernel of loops in loops, whose statements write a buffer in shared memory and let other threads read it.

    Each buffer is allocated in some loop, and filled there; those of loops around are also read.
    """

    def __init__(self, seed):
        self.rng, self.count = random.Random(seed), 0
        self.ib = tir.ir_builder.create()
        self.out, self.results = self.ib.buffer_ptr(buffer := tir.decl_buffer((2, THREADS), "int64", name="O")), buffer
        block, self.thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
        self.ib.scope_attr(block, "thread_extent", 2)
        self.ib.scope_attr(self.thread, "thread_extent", THREADS)
        self.total = self.ib.allocate("int64", 1, name="total", scope="local")
        self.total[0] = block.var.astype("int64") + self.thread.var
        self.body(0, [], [])
        self.out[block, self.thread] = self.total[0]

    @property
    def func(self):
        return tir.PrimFunc([self.results], self.ib.get())

    def body(self, depth, around, loops):
        for _ in range(self.rng.randint(2, 3)):
            if depth < 3 and self.rng.random() < 0.45:
                self.count += 1
                with self.ib.for_range(0, self.rng.randint(1, 3), name=f"k{self.count}") as k:
                    self.body(depth + 1, list(around), [*loops, k])
            elif around and self.rng.random() < 0.2:
                self.read(self.rng.choice(around))
            else:
                around.append(self.filled(loops))

    def filled(self, loops):
        of, parts = self.rng.choice(("int8", "int16", "int32", "int64")), self.rng.choice((2, 4, 8, 16))
        self.count += 1
        memory = self.ib.allocate(of, parts * THREADS, name=f"S{self.count}", scope="shared")
        with self.ib.for_range(0, parts, name=f"p{self.count}") as p:
            memory[p * THREADS + self.thread] = (self.total[0] + p + sum(loops, 0)).astype(of)
        self.read((memory, parts))
        return memory, parts

    def read(self, which):
        memory, parts = which
        with self.ib.for_range(0, parts, name="p") as p:
            value = memory[p * THREADS + (self.thread + self.rng.randint(1, THREADS - 1)) % THREADS]
            self.total[0] = self.total[0] * 3 + value.astype("int64")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(40))
def test_random_nests_of_loops(seed):
    """The simulator has nothing to report, and the results are those of the loops; without any one barrier it has."""
    func = _Nest(seed).func
    expected = np.zeros((2, THREADS), "int64")
    run(func, [expected])
    f = tedsl.build(func, target="cuda -arch=sm_80")
    got = tedsl.nd.empty(expected.shape, "int64", tedsl.sim(0))
    with simulate.mode("checked"):
        f(got)
    np.testing.assert_array_equal(got.numpy(), expected)


def test_random_nests_have_common_memory_in_loops():
    inside = 0
    for seed in range(40):
        after = share_memory(gather_threads(lowering_pipeline()(_Nest(seed).func)))
        for loop in (node for node in post_order(after.body) if isinstance(node, For)):
            inside += any(isinstance(node, Call) and node.op is SYNC and undefined_bytes(node) for node in post_order(loop))
    assert inside > 10
