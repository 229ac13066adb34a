"""Each pass with a before and after in its docstring, on a small program: both stand in its golden file, beside those words.

The program is a schedule; the pass runs where it stands in the pipelines.
"""

import itertools
import re
from pathlib import Path

import pytest

import tedsl
from tedsl import te, tir
from tedsl.ir import build
from tedsl.ir.calls import datatypes
from tedsl.ir.dtype import CUSTOM_CODES, dtype
from tedsl.ir.expr import Load, Select, SizeVar, Var, pointer_var
from tedsl.ir.func import Accesses
from tedsl.ir.stmt import AssertStmt, AttrStmt, Evaluate, Store
from tedsl.lower.inputs import functions_of
from tedsl.lower.lower import lower_schedule
from tedsl.lower.request import FunctionOptions
from tedsl.passes.assume_compact import assume_compact
from tedsl.passes.config import LoopPartitionConfig, PassConfig
from tedsl.passes.coprocessors.combine_contexts import combine_contexts
from tedsl.passes.coprocessors.lift_attributes import lift_attributes
from tedsl.passes.coprocessors.lower_access_info import lower_access_info
from tedsl.passes.default import lowering_pipeline, target_pipeline
from tedsl.passes.device.copy_asynchronously import copy_asynchronously
from tedsl.passes.device.infer_fragments import infer_fragments
from tedsl.passes.device.join_kernels import join_kernels
from tedsl.passes.device.lower_allreduce import lower_allreduce
from tedsl.passes.device.lower_warp_memory import lower_warp_memory
from tedsl.passes.device.share_memory import share_memory
from tedsl.passes.device.split_kernels import split_kernels
from tedsl.passes.device.unroll_fragments import unroll_fragments
from tedsl.passes.loops.hoist_lets import hoist_lets
from tedsl.passes.loops.share_subexpressions import share_subexpressions
from tedsl.passes.loops.vectorize_loops import vectorize_loops
from tedsl.passes.lower_datatypes import lower_datatypes
from tedsl.passes.machine.legalize_calls import legalize_calls
from tedsl.passes.machine.lower_bfloat16 import bfloat16_as_bits, promote_bfloat16
from tedsl.passes.machine.lower_builtins import lower_builtins
from tedsl.passes.machine.raise_builtins import raise_builtins
from tedsl.passes.machine.straighten_indices import straighten_indices
from tedsl.passes.machine.stride_parallel import PATTERN, stride_parallel
from tedsl.passes.products.move_signs import move_signs
from tedsl.passes.remove_asserts import remove_asserts
from tedsl.passes.remove_no_ops import remove_no_ops
from tedsl.passes.rewrite_unsafe_selects import rewrite_unsafe_selects
from tedsl.passes.storage.pool_tagged import pool_tagged
from tedsl.passes.storage.rewrite_storage import rewrite_storage
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.insert_barriers import insert_barriers
from tedsl.passes.threads.lower_fragments import lower_fragments
from tedsl.passes.threads.own_memory import own_memory
from tedsl.target import Target, datatype
from tests.passes.device.test_share_memory import chain
from tests.passes.programs import PARALLEL, VECTORIZED, Function, allocate, body_text, imm, loop, seq, when
from tests.passes.test_move_signs import VNNI, product

PASSES = Path(tedsl.__file__).parent / "passes"
AVX2 = "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"
CUDA = Target("cuda")
I, N = Var("i"), SizeVar("n")
EXAMPLES = {}


def example(name, **options):
    """Register a function that returns a schedule and its arguments as the example of the pass `name`."""
    def register(program):
        EXAMPLES[name] = program, options
        return program
    return register


def pieces(name, program, step=None, config=None, target=AVX2, accesses=Accesses.PROVED):
    """The function before and after the first run of the step that changes it; the step has the name of the pass."""
    config = config or PassConfig()
    func = functions_of(*program(), "main", None, FunctionOptions(False, accesses))["main"]
    states = [("", func)]
    pipeline = lowering_pipeline(config, accesses=accesses) + target_pipeline(Target(target), config)
    pipeline(func, lambda run, result: states.append((run, result)))
    return next((before, after) for (_, before), (run, after) in itertools.pairwise(states)
                if run == (step or name) and after is not before)


def applied(func, run):
    """A function of flat loops before and after the pass `run`."""
    return func, run(func)


def words_of(path):
    """What the docstring of the file says of before and after."""
    head = path.read_text().split('"""')[1]
    match = re.search(r"^before:(.|\n)*?(?=\n\n|\Z)", head, re.M)
    return match and match.group()


DESCRIBED = {path.stem: path for path in PASSES.rglob("*.py") if words_of(path)}
PARTS = {"place_window", "allreduce", "spread_prefetch"}  # what other passes do with one kind of node


def test_each_described_pass_has_an_example():
    assert set(EXAMPLES) == set(DESCRIBED) - PARTS


@pytest.mark.parametrize("name", sorted(DESCRIBED.keys() - PARTS))
def test_before_and_after(name, golden):
    program, options = EXAMPLES[name]
    before, after = applied(program(), **options) if "run" in options else pieces(name, program, **options)
    golden.sections(docstring=words_of(DESCRIBED[name]), before=body_text(before), after=body_text(after))


def filled(n=16, value=lambda x: x, dtype="float32"):
    """B = A, element by element, with the schedule."""
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute((n,), lambda i: value(A[i]), name="B")
    return te.create_schedule(B.op), A, B


def produced(size=16, taps=1):
    """C[i] = B[i] + ... + B[i + taps - 1] and B = A + 1, with the schedule."""
    A = te.placeholder((size + taps - 1,), name="A")
    B = te.compute((size + taps - 1,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((size,), lambda i: sum((B[i + t] for t in range(1, taps)), B[i]), name="C")
    return te.create_schedule(C.op), A, B, C


# --- loops -------------------------------------------------------------------------------------------------------------

@example("simplify")
def a_guard_that_always_holds():
    s, A, B = filled(te.size_var("n"))
    s[B].split(B.op.axis[0], factor=8)
    C = te.placeholder((32,), name="C")
    D = te.compute((32,), lambda i: te.if_then_else(i < 40, C[i], 0.0), name="D")
    return te.create_schedule(D.op), [C, D]


@example("hoist_conditions")
def rows_under_a_guard():
    n, m = te.size_var("n"), te.size_var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j], name="B")
    s = te.create_schedule(B.op)
    outer, _ = s[B].split(B.op.axis[0], factor=8)
    s[B].parallel(outer)
    return s, [A, B]


def of_a_type(run):
    """`run` where there is a type "mine", whose sums are calls of MyAdd32."""
    def registered(*args):
        datatype.register("mine", 201)
        datatype.register_op(datatype.create_lower_func({32: "MyAdd32"}), "Add", "llvm", "mine")
        try:
            return run(*args)
        finally:
            datatypes._RULES.clear()
            CUSTOM_CODES.clear()
    return registered


@example("lower_datatypes", run=of_a_type(lambda func: lower_datatypes(func, ("llvm",))))
@of_a_type
def a_sum_of_a_type_of_the_program():
    f = Function(A=(8, "custom[mine]32"), B=(8, "custom[mine]32"), C=(8, "custom[mine]32"))
    return f.func(loop(I, 8, f.store("C", I, f.load("A", I) + f.load("B", I))))


@example("retyped", run=bfloat16_as_bits)
def bits_of_bfloat16():
    f = Function(A=(8, "bfloat16"), C=(8, "bfloat16"))
    upper = te.reinterpret(f.load("A", I), "uint16") + tir.const(1, "uint16")
    return f.func(loop(I, 8, f.store("C", I, te.reinterpret(upper, "bfloat16"))))


@example("as_bits", run=lambda func: rewrite_storage(func, across_dtypes=True))
def floats_and_then_integers():
    f, j = Function(A=(64,), B=(64,)), Var("j")
    floats, integers = pointer_var("S", dtype("float32")), pointer_var("T", dtype("int32"))
    body = seq(loop(I, 64, Store(floats, f.load("A", I), I)), loop(j, 64, f.store("B", j, Load(dtype("float32"), floats, j))),
               Store(integers, imm(3), imm(0)), f.store("A", 0, build.cast("float32", Load(dtype("int32"), integers, imm(0)))))
    return f.func(allocate(floats, 64, allocate(integers, 64, body, "int32")))


@example("pool_tagged", run=pool_tagged)
def parts_of_a_tagged_scope():
    f, j = Function(A=(6,), B=(6,)), Var("j")
    first, second = (pointer_var(name, dtype("float32"), "local.L1") for name in "ST")
    kept = Store(second, f.load("A", I) + Load(dtype("float32"), first, imm(0)), I)
    out = loop(j, 6, f.store("B", j, Load(kept.value.dtype, second, j)))
    body = seq(Store(first, imm(2.0, "float32"), imm(0)), loop(I, 6, kept), out)
    return f.func(allocate(first, 6, allocate(second, 8, body)))


def of_an_accelerator(axis, *parts):
    """Parts under an attribute, in a loop of 8."""
    return loop(I, 8, seq(*[AttrStmt(axis, "scope", imm(1), part) for part in parts]))


@example("lift_attributes", run=lambda func: lift_attributes(func, "scope"))
def an_attribute_of_both_statements():
    f, axis = Function(A=(8,)), te.thread_axis((0, 1), "cop")
    return f.func(of_an_accelerator(axis, f.store("A", I, 0.0), f.store("A", 0, 1.0)))


@example("combine_contexts", run=combine_contexts)
def a_context_that_is_taken_twice():
    f = Function(A=(8,))
    context = tir.call_intrin("handle", "tir.tvm_thread_context", tir.call_extern("handle", "context", 0))
    return f.func(loop(I, 8, seq(*[Evaluate(tir.call_extern("int32", name, context, f.data("A"))) for name in "fg"])))


@example("infer_fragments", run=infer_fragments)
def a_factor_that_is_loaded():
    f, fragment = Function(S=(256, "float16")), pointer_var("A", dtype("float16"), "wmma.matrix_a")
    source = tir.decl_buffer((256,), "float16", data=f.data("S")).access_ptr("r")
    call = tir.tvm_load_matrix_sync(fragment, 16, 16, 16, 0, source, 16, "row_major")
    return f.func(allocate(fragment, 256, Evaluate(call), "float16"))


@example("lower_access_info", run=lower_access_info)
def pointers_to_elements():
    f = Function(A=(8,))
    whole = tir.decl_buffer((8,), data=f.data("A"))
    return f.func(Evaluate(tir.call_extern("int32", "f", whole.access_ptr("r", offset=4), whole.access_ptr("w"))))


@example("vectors_in_a_row", run=vectorize_loops)
def vectors_of_two():
    f, x = Function(A=(14,), B=(8,)), Var("x", "float32")
    vector, v = dtype("float32x2"), Var("v")
    places = [tir.Ramp(v * 2 + first, imm(1), 2) for first in (0, 6)]
    stored = Store(f.data("B"), Load(vector, f.data("A"), places[1]) + tir.Broadcast(x, 2), places[0])
    return f.func(loop(v, 4, stored, VECTORIZED), x)


def called(array):
    """Calls "f" with an argument and 3."""
    f = Function(A=(4,))
    return f.func(Evaluate(tir.call_packed("f", array(f), 3)))


@example("lower_builtins", run=lower_builtins)
def a_call_of_python():
    return called(lambda f: f.buffers["A"])


@example("raise_builtins", run=raise_builtins)
def a_call_as_machine_code_makes_it():
    return lower_builtins(called(lambda f: f.buffers["A"]))


@example("legalize_calls", run=legalize_calls)
def a_call_with_a_pointer():
    return called(lambda f: f.data("A"))


@example("lower_bfloat16", run=promote_bfloat16)
def a_sum_of_products_in_bfloat16():
    f = Function(A=(8, "bfloat16"), B=(8, "bfloat16"), C=(8, "bfloat16"))
    a, b = f.load("A", I), f.load("B", I)
    return f.func(loop(I, 8, f.store("C", I, a * b + a)))


@example("vectorize_loops")
def vectors_under_a_mask():
    s, A, B = filled(50, lambda x: x * 2.0)
    _, inner = s[B].split(B.op.axis[0], factor=8, tail="mask")
    s[B].vectorize(inner)
    return s, [A, B]


@example("join_loops")
def two_stages_in_one_loop():
    s, A, B, C = produced(8, 1)
    s[C].compute_with(s[B], B.op.axis[0], C.op.axis[0])
    return s, [A, C]


@example("unroll_loops")
def two_copies():
    s, A, B = filled(2)
    s[B].unroll(B.op.axis[0])
    return s, [A, B]


@example("partition_loops", config=PassConfig(loop_partition=LoopPartitionConfig(partition_const_loop=True)))
def a_split_that_does_not_divide():
    s, A, B = filled(50)
    s[B].split(B.op.axis[0], factor=8)
    return s, [A, B]


# --- storage -----------------------------------------------------------------------------------------------------------

@example("flatten_storage")
def rows_of_a_matrix():
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4, 8), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    return s, [A, C]


@example("rewrite_storage")
def memory_in_a_loop():
    s, A, B, C = produced(16, taps=3)
    outer, _ = s[C].split(C.op.axis[0], factor=4)
    s[B].compute_at(s[C], outer)
    return s, [A, C]


@example("inject_prefetch")
def rows_ahead():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j], name="B")
    s = te.create_schedule(B.op)
    s[B].prefetch(A, B.op.axis[0], 1)
    return s, [A, B]


@example("inject_rolling_buffer")
def a_window_that_moves():
    s, A, B, C = produced(16, taps=3)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].rolling_buffer()
    return s, [A, C]


@example("inject_double_buffer")
def a_tile_filled_ahead():
    s, A, B = filled(32, lambda x: x * 2.0)
    copy = s.cache_read(A, "global", [B])
    outer, _ = s[B].split(B.op.axis[0], factor=8)
    s[copy].compute_at(s[B], outer)
    s[copy].double_buffer()
    return s, [A, B]


# --- cleaning ----------------------------------------------------------------------------------------------------------

@example("narrow_dtypes")
def indices_of_64_bits():
    A = te.placeholder((te.const(16, "int64"),), name="A")
    B = te.compute((te.const(16, "int64"),), lambda i: A[i] + 1.0, name="B")
    return te.create_schedule(B.op), [A, B]


@example("remove_no_ops", run=remove_no_ops)
def loops_over_nothing():
    f = Function(A=(8,))
    unused = Var("T", f.data("A").type_annotation)
    return f.func(seq(loop(I, 8, when(build.less(I, 4), Evaluate(imm(0)))), allocate(unused, 8, f.store("A", 0, 1))))


@example("remove_asserts", run=remove_asserts)
def an_assertion():
    f = Function(A=(8,))
    return f.func(AssertStmt(build.less_equal(N, 8), "too many", loop(I, N, f.store("A", I, 1))), N)


@example("rewrite_unsafe_selects", run=rewrite_unsafe_selects)
def a_select_that_guards_a_load():
    f = Function(A=(8,), B=(8,))
    value = Select(build.greater_equal(I, 1), f.load("A", build.sub(I, 1)), imm(0.0, "float32"))
    return f.func(loop(I, 8, f.store("B", I, value)))


@example("assume_compact", run=assume_compact)
def a_matrix_of_any_strides():
    s, A, B = filled(te.size_var("n"))
    return tedsl.lower(s, [A, B])["main"]


# --- threads -----------------------------------------------------------------------------------------------------------

def read_backwards():
    """B is A * 2 on blocks of 8 threads, each of which reads what another one wrote."""
    A = te.placeholder((32,), name="A")
    S = te.compute((32,), lambda i: A[i] * 2.0, name="S")
    B = te.compute((32,), lambda i: S[i // 8 * 8 + (7 - i % 8)], name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=8)
    threads = te.thread_axis((0, 8), "threadIdx.x")
    s[S].set_scope("shared")
    s[S].compute_at(s[B], outer)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, threads)
    s[S].bind(S.op.axis[0], threads)
    return s, [A, B]


for _name, _step in (("gather_threads", None), ("insert_barriers", None), ("lower_threads", "threads_to_loops")):
    example(_name, step=_step)(read_backwards)


def barriers_of(program):
    """The function of a schedule with its launches gathered and its barriers."""
    s, args = program()
    return insert_barriers(gather_threads(tedsl.lower(s, args)["main"]))


@example("lower_warp_memory", run=lambda func: lower_warp_memory(func, CUDA))
def a_row_in_a_warp():
    A = te.placeholder((32,), name="A")
    W = te.compute((32,), lambda i: A[i] + 1.0, name="W")
    B = te.compute((32,), lambda i: W[31 - i], name="B")
    s = te.create_schedule(B.op)
    thread = te.thread_axis((0, 32), "threadIdx.x")
    outer, inner = s[B].split(B.op.axis[0], factor=32)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, thread)
    s[W].compute_at(s[B], outer)
    s[W].set_scope("warp")
    s[W].bind(W.op.axis[0], thread)
    return gather_threads(tedsl.lower(s, [A, B])["main"])


@example("lower_fragments", run=lambda func: lower_fragments(func, "local"))
@example("unroll_fragments", run=unroll_fragments)
def a_matrix_of_ones():
    def body(outs):
        ib = tir.ir_builder.create()
        ib.scope_attr(te.thread_axis("threadIdx.x"), "thread_extent", 32)
        fragments = ib.allocate("float32", 512, name="F", scope="wmma.accumulator").asobject()
        with ib.for_range(0, 2, name="i") as i:
            ib.emit(tir.call_intrin("handle", "tir.tvm_fill_fragment", fragments, 16, 16, 16, i, 1.0))
        ib.emit(tir.call_intrin("handle", "tir.tvm_store_matrix_sync", fragments, 16, 16, 16, 1, outs[0].access_ptr("w"), 16,
                                "row_major"))
        return ib.get()

    B = te.extern((16, 16), [], lambda ins, outs: body(outs), name="B", dtype="float32")
    return gather_threads(tedsl.lower(te.create_schedule(B.op), [B])["main"])


@example("copy_asynchronously", run=lambda func: copy_asynchronously(func, Target("cuda -arch=sm_80")))
def windows_filled_ahead():
    A = te.placeholder((4, 40), name="A")
    B = te.compute((4, 32), lambda i, j: A[i, j] + A[i, j + 8], name="B")
    s = te.create_schedule(B.op)
    S = s.cache_read(A, "shared", [B])
    thread = te.thread_axis((0, 8), "threadIdx.x")
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    outer, inner = s[B].split(B.op.axis[1], factor=8)
    s[B].bind(inner, thread)
    s[S].compute_at(s[B], outer)
    s[S].double_buffer()
    s[S].bind(s[S].split(s[S].op.axis[1], factor=8)[1], thread)
    (kernel,) = split_kernels(barriers_of(lambda: (s, [A, B])), CUDA).kernels
    return kernel


@example("lower_allreduce", run=lambda func: lower_allreduce(func, CUDA))
def a_sum_by_64_threads():
    A, k = te.placeholder((8, 64), name="A"), te.reduce_axis((0, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].bind(s[B].op.reduce_axis[0], te.thread_axis("threadIdx.x"))
    (kernel,) = split_kernels(barriers_of(lambda: (s, [A, B])), CUDA).kernels
    return kernel


@example("share_memory", run=share_memory)
def two_buffers_one_after_the_other():
    s, args, *_ = chain()
    return gather_threads(lowering_pipeline()(lower_schedule(s, args)))


@example("split_kernels", run=lambda func: split_kernels(func, CUDA).host)
def a_launch():
    return barriers_of(read_backwards)


@example("join_kernels", run=lambda host: join_kernels(
    {"main": host, "main_kernel0": split_kernels(a_launch(), CUDA).kernels[0]})["main"])
def a_call_of_a_kernel():
    return split_kernels(a_launch(), CUDA).host


@example("own_memory", run=own_memory)
def memory_around_a_launch():
    A, B = (tir.decl_buffer((8,), name=name) for name in "AB")
    ib = tir.ir_builder.create()
    a, b, thread = ib.buffer_ptr(A), ib.buffer_ptr(B), te.thread_axis("threadIdx.x")
    own = ib.allocate("float32", 1, name="L", scope="local")
    ib.scope_attr(thread, "thread_extent", 8)
    own[0] = a[thread]
    b[thread] = own[0]
    return tir.PrimFunc([A, B], ib.get())


@example("inject_virtual_threads")
def two_virtual_threads():
    s, A, B = filled(16, lambda x: x * 2.0)
    virtual, _ = s[B].split(B.op.axis[0], nparts=2)
    s[B].bind(virtual, te.thread_axis((0, 2), "vthread"))
    return s, [A, B]


# --- accesses ----------------------------------------------------------------------------------------------------------

@example("check_accesses", accesses=Accesses.AT_RUN_TIME)
def a_value_read_beside():
    s, A, B, C = produced(7, taps=2)
    return s, [A, C]


@example("check_data_indices", accesses=Accesses.DATA_AT_RUN_TIME)
def elements_chosen_by_data():
    A, K = te.placeholder((8,), name="A"), te.placeholder((8,), "int32", name="K")
    B = te.compute((8,), lambda i: A[K[i]], name="B")
    return te.create_schedule(B.op), [A, K, B]


# --- the machine -------------------------------------------------------------------------------------------------------

@example("choose_fma")
def products_and_sums():
    A, B = te.placeholder((16,), name="A"), te.placeholder((16,), name="B")
    C = te.compute((16,), lambda i: A[i] * B[i] + B[i], name="C")
    return te.create_schedule(C.op), [A, B, C]


@example("lower_intrinsics")
def what_is_finite():
    s, A, B = filled(16, lambda x: te.if_then_else(te.isfinite(x), x, 0.0))
    return s, [A, B]


@example("normalize_parallel")
def parallel_in_parallel():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j], name="B")
    s = te.create_schedule(B.op)
    for axis in B.op.axis:
        s[B].parallel(axis)
    return s, [A, B]


@example("promote_accumulators")
def sums_of_rows():
    A = te.placeholder((4, 16), name="A")
    k = te.reduce_axis((0, 16), "k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return te.create_schedule(B.op), [A, B]


@example("mark_streams", target="llvm -mtriple=x86_64-linux-gnu")
def a_large_output():
    A = te.placeholder((1 << 24,), name="A")
    B = te.compute((1 << 24,), lambda i: A[i] * 2, name="B")
    s = te.create_schedule(B.op)
    _, lane = s[B].split(B.op.axis[0], 16)
    s[B].vectorize(lane)
    return s, [A, B]


@example("transpose_tiles", target="llvm -mtriple=x86_64-linux-gnu")
def a_small_transpose():
    A = te.placeholder((4, 4), name="A")
    B = te.compute((4, 4), lambda i, j: A[j, i], name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[1])
    return s, [A, B]


@example("shorten_tails")
def a_long_tail():
    s, A, B = filled(te.size_var("n"))
    s[B].split(B.op.axis[0], factor=1 << 20)
    return s, [A, B]


@example("hoist_lets", run=hoist_lets)
def a_let_that_the_loop_does_not_change():
    f, x = Function(B=(16, "int32")), Var("x")
    return f.func(loop(I, 16, tir.LetStmt(x, build.mul(N, 2), f.store("B", I, x))), N)


@example("move_signs", run=lambda func: move_signs(func, VNNI))
def a_product_of_signed_bytes():
    return product("int8", tiles=2, lanes=4, steps=2)


@example("share_subexpressions", run=share_subexpressions)
def a_place_that_is_computed_twice():
    f = Function(A=(64,), B=(64,))
    place = build.add(build.mul(I, 4), build.mul(N, 2))
    return f.func(loop(I, 4, f.store("B", place, f.load("A", place))), N)


@example("fill_registers")
def the_end_of_the_columns_of_a_product():
    A, B = te.placeholder((4, 5), name="A"), te.placeholder((5, 14), name="B")
    k = te.reduce_axis((0, 5), name="k")
    C = te.compute((4, 14), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    S = s.cache_write(C, "local")
    block, lane = s[C].split(C.op.axis[1], factor=8)
    s[C].reorder(block, C.op.axis[0], lane)
    s[C].vectorize(lane)
    s[S].compute_at(s[C], C.op.axis[0])
    s[S].reorder(s[S].op.reduce_axis[0], *s[S].op.axis)
    s[S].vectorize(s[S].op.axis[1])
    return s, [A, B, C]


@example("split_vectors", target="llvm -mtriple=x86_64-linux-gnu")
def a_mask_that_the_machine_lacks():
    s, A, B = filled(13)
    _, inner = s[B].split(B.op.axis[0], factor=8, tail="mask")
    s[B].vectorize(inner)
    return s, [A, B]


@example("stride_parallel", run=lambda func: stride_parallel(func, tasks=2))
def iterations_dealt_out():
    f = Function(A=(16,), B=(16,))
    body = loop(I, 16, f.store("B", I, f.load("A", I)), PARALLEL)
    return f.func(AttrStmt(tir.IterVar(None, I, 0), PATTERN, imm(1), body))


@example("use_intrinsics")
def a_tensorized_copy():
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i], name="b")
    buffers = {t: tir.decl_buffer((4,), name=t.op.name, offset_factor=1, strides=[1]) for t in (a, b)}
    copy = te.decl_tensor_intrin(b.op, lambda ins, outs: tir.call_packed("copy_4", ins[0], outs[0]), binds=buffers)
    s, A, B = filled(16)
    _, inner = s[B].split(B.op.axis[0], factor=4)
    s[B].tensorize(inner, copy)
    return s, [A, B]


@example("use_dot_products", target="llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake")
def products_of_bytes():
    A, B = te.placeholder((8,), "uint8", name="A"), te.placeholder((2, 16, 4), "int8", name="B")
    k, r = te.reduce_axis((0, 2), name="k"), te.reduce_axis((0, 4), name="r")
    C = te.compute((16,), lambda j: te.sum(A[k * 4 + r].astype("int32") * B[k, j, r].astype("int32"), axis=[k, r]), name="C")
    s = te.create_schedule(C.op)
    s[C].reorder(k, r, C.op.axis[0])
    s[C].vectorize(C.op.axis[0])
    return s, [A, B, C]


@example("use_tile_products", target="llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids")
def a_product_of_matrices_of_bytes():
    A, B = te.placeholder((8, 16), "uint8", name="A"), te.placeholder((4, 8, 4), "int8", name="B")
    k, r = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 4), name="r")
    C = te.compute((8, 8), lambda i, j: te.sum(A[i, k * 4 + r].astype("int32") * B[k, j, r].astype("int32"), axis=[k, r]),
                   name="C")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    s[C].reorder(i, k, j, r)
    s[C].pragma(i, "tile_products")
    return s, [A, B, C]


@example("use_promises")
def a_row_without_nan():
    A = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((1,), lambda _: te.max(A[k], axis=k), name="B")
    C = te.compute((8,), lambda i: te.exp(A[i] - B[0]), name="C")
    s = te.create_schedule(C.op)
    s[B].pragma(s[B].op.reduce_axis[0], "maxima_without_nan")
    s[C].pragma(s[C].op.axis[0], "exp_at_most_one")
    return s, [A, C]


@example("widen_loops")
def a_fused_loop_of_any_length():
    n, m = te.size_var("n"), te.size_var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j], name="B")
    s = te.create_schedule(B.op)
    s[B].fuse(*B.op.axis)
    return s, [A, B]


@example("straighten_indices", run=lambda func: straighten_indices(assume_compact(func)))
def vectors_over_fused_axes():
    n, m = te.size_var("n"), te.size_var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j], name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(s[B].fuse(*B.op.axis), factor=16, tail="mask")
    s[B].vectorize(inner)
    return tedsl.lower(s, [A, B])["main"]
