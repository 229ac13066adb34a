"""compute_at, compute_inline, cache_read, cache_write, rfactor that cannot be: ScheduleError, and nothing has changed."""

import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentTypeError
from tedsl.fuzz.run import GROUP, Group
from tedsl.schedule.attach import attach_path, legal_places, misplaced
from tedsl.schedule.handles import create_schedule

# --- compute_at ---------------------------------------------------------------------------------------------------------

def test_compute_at_a_stage_that_does_not_use_it(refused):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: A[i] + 2.0, name="C")
    D = te.compute((8,), lambda i: B[i] + C[i], name="D")
    s = create_schedule(D.op)
    refused(s, lambda: s[B].compute_at(s[C], C.op.axis[0]), "compute_at(C, i) on stage B", "C does not use B",
            "B can be computed at a loop of D (i)")


def test_compute_at_a_stage_that_comes_before(chain, refused):
    s = chain.s
    refused(s, lambda: s[chain.C].compute_at(s[chain.B], chain.B.op.axis[0]), "B does not use C: it is computed before C",
            "C can be computed at a loop of D (i, j)")


def test_compute_at_itself(chain, refused):
    s = chain.s
    refused(s, lambda: s[chain.C].compute_at(s[chain.C], chain.C.op.axis[0]), "C cannot be computed inside itself")


def test_compute_at_a_placeholder(chain, refused):
    s = chain.s
    refused(s, lambda: s[chain.C].compute_at(s[chain.A], chain.C.op.axis[0]), "A does not use C: it is computed before C")


def test_compute_at_of_a_placeholder(chain, refused):
    s = chain.s
    refused(s, lambda: s[chain.A].compute_at(s[chain.B], chain.B.op.axis[0]), "A is a placeholder")


def test_compute_at_of_an_output(refused):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] + 2.0, name="C")
    s = create_schedule([B.op, C.op])
    refused(s, lambda: s[B].compute_at(s[C], C.op.axis[0]), "B is an output of the schedule",
            "outputs are computed on their own")


def test_compute_at_with_another_user_outside(refused):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] + 2.0, name="C")
    D = te.compute((8,), lambda i: B[i] + 3.0, name="D")
    s = create_schedule([C.op, D.op])
    refused(s, lambda: s[B].compute_at(s[C], C.op.axis[0]), "D uses B too and is not computed inside C", "leave it at the root")


def test_compute_at_with_an_output_in_between(refused):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] + 2.0, name="C")
    D = te.compute((8,), lambda i: C[i] + 3.0, name="D")
    s = create_schedule([C.op, D.op])
    refused(s, lambda: s[B].compute_at(s[D], D.op.axis[0]), "C uses B too and is not computed inside D",
            "B can be computed at a loop of C (i)")


def test_compute_at_a_stage_of_another_schedule(chain, refused):
    other = create_schedule(chain.D.op)
    refused(chain.s, lambda: chain.s[chain.C].compute_at(other[chain.D], chain.D.op.axis[0]),
            "D is a stage of another schedule", "s[C].compute_at(s[D], axis)")


def test_compute_at_a_loop_that_was_split(chain, refused):
    s = chain.s
    i, _ = chain.D.op.axis
    s[chain.D].split(i, 8)
    error = refused(s, lambda: s[chain.C].compute_at(s[chain.D], i), "compute_at(D, i) of C on stage D",
            "i was split into i.outer, i.inner")
    assert error.loops == ("i.outer", "i.inner", "j")  # the loops of D: that is where to choose


def test_compute_at_a_loop_of_the_producer(chain, refused):
    s = chain.s
    refused(s, lambda: s[chain.C].compute_at(s[chain.D], chain.C.op.axis[0]), "i is a loop of stage C", "s[D].op.axis")


@pytest.mark.parametrize("loop, words", [(0, "got the int 0"), (None, "got None"), ([], "got a list of 0")])
def test_compute_at_no_axis(chain, refused, loop, words):
    refused(chain.s, lambda: chain.s[chain.C].compute_at(chain.s[chain.D], loop), "expected an axis", words)


def test_compute_at_a_tensor(chain, refused):
    refused(chain.s, lambda: chain.s[chain.C].compute_at(chain.D, chain.D.op.axis[0]),
            "the first argument is a stage, got the tensor D")


def test_compute_at_an_inlined_stage(chain, refused):
    s = chain.s
    s[chain.C].compute_inline()
    refused(s, lambda: s[chain.B].compute_at(s[chain.C], chain.C.op.axis[0]), "C is computed inline: it has no loops",
            "B can be computed at a loop of D (i, j)")


def test_compute_at_a_vectorized_loop(chain, refused):
    s = chain.s
    _, j = chain.D.op.axis
    s[chain.D].vectorize(j)
    s[chain.C].parallel(chain.C.op.axis[0])
    refused(s, lambda: s[chain.C].compute_at(s[chain.D], j), "j of D is vectorized: i of C is parallel, and a vector has room "
            "for plain loops only", "compute C at a loop outside of j")


def test_a_producer_stays_outside_of_vectors(matmul, refused):
    s = matmul.s
    i, j = matmul.C.op.axis
    AA = s.cache_read(matmul.A, "local", [matmul.C])
    s[AA].compute_at(s[matmul.C], matmul.k)
    s[AA].vectorize(s[AA].op.axis[1])
    refused(s, lambda: s[matmul.C].vectorize(j), "A.local is computed at k, inside what would be a vector",
            "a loop outside of j")
    s[matmul.C].reorder(matmul.k, j)
    s[matmul.C].vectorize(j)
    refused(s, lambda: s[matmul.C].reorder(j, matmul.k), "afterwards A.local is computed inside j, which is vectorized",
            "keep j inside of the loop at which A.local is computed")
    s[AA].compute_root()
    s[matmul.C].reorder(j, matmul.k)
    refused(s, lambda: s[AA].compute_at(s[matmul.C], matmul.k), "j of C is vectorized", "a loop outside of j")


# --- a loop at which another stage is computed ------------------------------------------------------------------------------

def test_loops_with_guests_stay(chain, refused):
    s = chain.s
    i, j = chain.D.op.axis
    s[chain.C].compute_at(s[chain.D], i)
    refused(s, lambda: s.cache_write(chain.D, "local"), "C is computed at i: that loop must stay", "s[C].compute_root() first")
    s[chain.D].split(j, 8)  # other loops are free
    s[chain.C].compute_root()
    s[chain.D].split(i, 8)


def test_inline_of_a_stage_with_guests(chain, refused):
    s = chain.s
    s[chain.B].compute_at(s[chain.C], chain.C.op.axis[0])
    refused(s, lambda: s[chain.C].compute_inline(), "B is computed at loop i of it",
            "s[B].compute_root() first, or inline it too")


def test_reorder_that_puts_a_producer_after_its_reader(chain, refused):
    s = chain.s
    i, j = chain.D.op.axis
    s[chain.C].compute_at(s[chain.D], j)
    s[chain.B].compute_at(s[chain.D], i)
    assert misplaced(s.state) == []
    error = refused(s, lambda: s[chain.D].reorder(j, i), "reorder(j, i) on stage D",
                    "afterwards C reads B, which is computed inside loop i of D, and C stands outside that loop",
                    "B is computed at i: attach it at a loop further out first")
    assert error.loops == ("i", "j")


def test_reorder_that_keeps_producers_first_is_fine(chain):
    s = chain.s
    i, j = chain.D.op.axis
    s[chain.C].compute_at(s[chain.D], i)
    s[chain.B].compute_at(s[chain.D], i)
    s[chain.D].reorder(j, i)
    assert [loop.name for _, loop in attach_path(s[chain.C].state)] == ["i", "j"]


def test_the_attach_path_goes_through_hosts(chain):
    s = chain.s
    i, j = chain.D.op.axis
    s[chain.C].compute_at(s[chain.D], j)
    s[chain.B].compute_at(s[chain.C], chain.C.op.axis[0])
    path = [(host.name, loop.name) for host, loop in attach_path(s[chain.B].state)]
    assert path == [("C", "i"), ("D", "j"), ("D", "i")]
    assert attach_path(s[chain.D].state) == []


def test_misplaced_is_what_lowering_asks(chain):
    s = chain.s
    i, _ = chain.D.op.axis
    s[chain.B].compute_at(s[chain.D], i)
    wrong, = misplaced(s.state)
    assert (wrong.producer.name, wrong.consumer.name) == ("B", "C") and "C stands outside that loop" in wrong.reason
    s[chain.C].compute_inline()
    assert misplaced(s.state) == []


# --- compute_inline -------------------------------------------------------------------------------------------------------

def test_inline_of_an_output(chain, refused):
    refused(chain.s, lambda: chain.s[chain.D].compute_inline(), "D is an output of the schedule", "its values must be stored")


def test_inline_of_a_reduction(matmul, refused):
    refused(matmul.s, lambda: matmul.s[matmul.C].compute_inline(), "C is a reduction",
            "compute_at puts it inside a loop of its reader")


# --- axes of the old operation ----------------------------------------------------------------------------------------------

def test_the_reduction_axis_after_cache_write(matmul, refused):
    s = matmul.s
    s.cache_write(matmul.C, "local")
    refused(s, lambda: s[matmul.C].split(matmul.k, 8), "k belongs to the old operation",
            "cache_write moved the reduction to stage C.local", "use s[C].op.axis")


def test_a_split_loop_after_cache_write(matmul, refused):
    s = matmul.s
    outer, _ = s[matmul.C].split(matmul.C.op.axis[0], 8)
    s.cache_write(matmul.C, "local")
    refused(s, lambda: s[matmul.C].parallel(outer), "i.outer belongs to the old operation, which cache_write replaced",
            "use s[C].op.axis")


def test_axes_after_rfactor(matmul, refused):
    s = matmul.s
    _, ki = s[matmul.C].split(matmul.k, 16)
    CF = s.rfactor(matmul.C, ki)
    refused(s, lambda: s[matmul.C].parallel(matmul.C.op.axis[0]),
            "i belongs to the old operation: rfactor moved it to stage C.rf",
            "use s[C].op.axis", "loops now: ax0, ax1, k.inner.v")
    refused(s, lambda: s[matmul.C].split(matmul.k, 4), "k belongs to the old operation", "use s[C].op.axis")
    refused(s, lambda: s[CF].vectorize(ki), "the loop k.inner given is not the k.inner of this stage", "s[C_rf].op.axis")


# --- cache_read -------------------------------------------------------------------------------------------------------------

def test_cache_read_of_a_stage_that_does_not_read_it(chain, refused):
    refused(chain.s, lambda: chain.s.cache_read(chain.A, "local", [chain.C]), "cache_read(A, 'local', [C])",
            "C does not read A", "A is read by B")


def test_cache_read_after_all_readers_were_redirected(chain, refused):
    chain.s.cache_read(chain.A, "local", [chain.B])
    refused(chain.s, lambda: chain.s.cache_read(chain.A, "shared", [chain.B]), "B does not read A", "A is read by A.local")


def test_cache_read_without_readers(chain, refused):
    refused(chain.s, lambda: chain.s.cache_read(chain.A, "local", []), "no reader is given")


def test_cache_read_of_what_is_no_tensor(chain, refused):
    refused(chain.s, lambda: chain.s.cache_read(chain.A.op, "local", [chain.B]),
            "the first argument is a tensor, got the operation A",
            "A.output(0)")
    refused(chain.s, lambda: chain.s.cache_read(3, "local", [chain.B]), "got the int 3")
    refused(chain.s, lambda: chain.s.cache_read(chain.A, "local", [chain.s[chain.B]]),
            "a reader, the third argument, is a tensor or an operation", "write the tensor, B, not its stage")


@pytest.mark.parametrize("dtype, words", [("int32", "int32 does not hold every value of A, which is float32"),
                                          ("float16", "float16 does not hold"), ("float8", "dtype is the str 'float8'"),
                                          (3, "dtype is the int 3")])
def test_cache_read_in_a_dtype_that_does_not_hold_the_values(chain, refused, dtype, words):
    refused(chain.s, lambda: chain.s.cache_read(chain.A, "local", [chain.B], dtype=dtype), f"dtype={dtype!r}", words)


def test_cache_read_in_a_wider_dtype_for_statements(refused):
    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], lambda ins, outs: tedsl.tir.call_packed("none", ins[0], outs[0]), name="B", dtype="float32")
    s = te.create_schedule(B.op)
    refused(s, lambda: s.cache_read(A, "global", [B], "float64"), "B is not made by a formula of te.compute", "leave dtype out")


# --- reindex_cache_read -----------------------------------------------------------------------------------------------------

def test_reindex_cache_read_for_what_does_not_read_it(chain, refused):
    refused(chain.s, lambda: chain.s.reindex_cache_read(chain.A, "local", chain.C), "reindex_cache_read(A, 'local', C)",
            "C does not read A")
    refused(chain.s, lambda: chain.s.reindex_cache_read(chain.A.op, "local", chain.B), "the first argument is a tensor")
    refused(chain.s, lambda: chain.s.reindex_cache_read(chain.A, "local", chain.s[chain.B]), "not its stage")


def test_reindex_cache_read_of_two_places(refused):
    A = te.placeholder((9,), name="A")
    B = te.compute((8,), lambda i: A[i] + A[i + 1], name="B")
    s = create_schedule(B.op)
    refused(s, lambda: s.reindex_cache_read(A, "local", B), "B reads both A[i] and A[i + 1]", "use cache_read")


def test_reindex_cache_read_of_what_a_condition_keeps_inside(refused):
    A = te.placeholder((8,), name="A")
    B = te.compute((9,), lambda i: te.if_then_else(i > 0, A[i - 1], 0.0), name="B")
    s = create_schedule(B.op)
    refused(s, lambda: s.reindex_cache_read(A, "local", B), "only where a condition holds", "use cache_read")


def test_reindex_cache_read_by_ragged_rows(refused):
    A, rows = te.placeholder((8, 8), name="A"), te.placeholder((8,), "int32", name="rows")
    k = te.reduce_axis((0, rows[0]), "k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = create_schedule(B.op)
    refused(s, lambda: s.reindex_cache_read(A, "local", B), "depends on data or on another axis", "use cache_read")


def test_reindex_cache_read_of_a_place_that_is_read_under_a_condition(refused):
    """Places of the padding of a layout have no index: the copy would read C beyond its end."""
    A, C = te.placeholder((7,), name="A"), te.placeholder((7,), "int32", name="C")
    B = te.compute((7,), lambda i: A[C[i] % 7], name="B")
    s = create_schedule(B.op)
    s[B].transform_layout(lambda i: [i % 3, i // 3])
    refused(s, lambda: s.reindex_cache_read(A, "local", B), "only where a condition holds", "inside of C", "use cache_read")



# --- pad_sum ----------------------------------------------------------------------------------------------------------------

def summed(formula, terms=6, dtype="float32", combine=te.sum):
    A, W, k = te.placeholder((9, 6), dtype, name="A"), te.placeholder((6,), dtype, name="W"), te.reduce_axis((0, terms), "k")
    B = te.compute((4,), lambda i: combine(formula(A, W, i, k), axis=k), name="B")
    return A, k, B, create_schedule(B.op)


@pytest.mark.parametrize("formula, terms, problem", [
    (lambda A, W, i, k: A[i, k] + W[k], 6, None),
    (lambda A, W, i, k: te.exp(A[i, k]), 6, "not known to be zero"),
    (lambda A, W, i, k: A[i, k] * W[i], 6, "because of W[i]"),
    (lambda A, W, i, k: A[i, k] * te.log(W[k]), 6, "not known to be zero"),
    (lambda A, W, i, k: A[i + k, 0] * W[k], 6, "A[i + k, 0]: k is not the index"),
    (lambda A, W, i, k: A[i, k] * W[k], 5, "A[i, k]: k is not the index of a dimension that ends where it does"),
    (lambda A, W, i, k: A[k, k] * W[k], 6, "A[k, k]"),
    (lambda A, W, i, k: A[i, k] * 2.5 - W[k] * A[i, k], 6, None),
    (lambda A, W, i, k: A[i, k].astype("int32").astype("float32") * W[k], 6, None),
    (lambda A, W, i, k: W[k] * k.var.astype("float32"), 6, "not known to be zero"),
    (lambda A, W, i, k: A[i, k] * te.var("alpha", "float32"), 6, "not known to be zero"),
    (lambda A, W, i, k: A[i, k] * te.const(float("inf"), "float32"), 6, "products of finite numbers"),
    (lambda A, W, i, k: A[i, k] + 1.0, 6, "not known to be zero"),
])
def test_pad_sum_of_what_zeros_would_change(formula, terms, problem, refused):
    _, k, B, s = summed(formula, terms)
    if problem is None:
        s.pad_sum(B, k, 4)
    else:
        refused(s, lambda: s.pad_sum(B, k, 4), problem)


def test_pad_sum_of_other_stages_and_loops(refused):
    A, k, B, s = summed(lambda A, W, i, k: A[i, k] * W[k], combine=te.max)
    refused(s, lambda: s.pad_sum(B, k, 4), "B is not a sum")
    refused(s, lambda: s.pad_sum(A, k, 4), "A is a placeholder")
    A, k, B, s = summed(lambda A, W, i, k: A[i, k] * W[k])
    refused(s, lambda: s.pad_sum(B.op, k, 4), "the first argument is a tensor")
    refused(s, lambda: s.pad_sum(B, B.op.axis[0], 4), "i is no axis that the formula of B sums over", "choose one of k")
    refused(s, lambda: s.pad_sum(B, k, 0), "must be at least 1")
    refused(s, lambda: s.pad_sum(B, k, 3), "a multiple of 3 already", "leave pad_sum out")
    for count in (te.size_var("m"), te.size_var("m") - 4):
        refused(s, lambda count=count: s.pad_sum(B, k, count), "the multiple is a number", "multiple=4")
    inner = s[B].split(k, factor=2)[1]
    refused(s, lambda: s.pad_sum(B, inner, 4), "k.inner is no axis", "split it afterwards")


def test_pad_sum_beyond_the_dtype_of_the_loop(refused):
    A, k = te.placeholder((2**31 - 1,), "int8", name="A"), te.reduce_axis((0, 2**31 - 1), "k")
    B = te.compute((1,), lambda i: te.sum(A[k].astype("int32"), axis=k), name="B")
    s = create_schedule(B.op)
    refused(s, lambda: s.pad_sum(B, k, 4), "the multiple of 4 above 2147483647 does not fit the dtype int32 of k")


def test_pad_sum_of_a_part_of_what_is_read(refused):
    A, W, k = te.placeholder((9, 6), name="A"), te.placeholder((6,), name="W"), te.reduce_axis((1, 6), "k")
    B = te.compute((4,), lambda i: te.sum(A[i, k] * W[k], axis=k), name="B")
    s = create_schedule(B.op)
    refused(s, lambda: s.pad_sum(B, k, 4), "k begins at 1")
    k = te.reduce_axis((0, 6), "k")
    B = te.compute((4,), lambda i: te.sum(A[i, k] * W[k], axis=k, where=k.var < 4), name="B")
    s = create_schedule(B.op)
    refused(s, lambda: s.pad_sum(B, k, 4), "the where= of the sum reads k", "te.if_then_else")


# --- cache_write ------------------------------------------------------------------------------------------------------------

def test_cache_write_of_a_placeholder(chain, refused):
    refused(chain.s, lambda: chain.s.cache_write(chain.A, "local"), "cache_write(A, 'local') on stage A", "A is a placeholder")


def test_cache_write_of_some_outputs(refused):
    A = te.placeholder((8,), name="A")
    P, Q = te.compute((8,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="T")
    s = create_schedule(P.op)
    refused(s, lambda: s.cache_write([Q, Q], "local"), "an output of T is given twice", "give each output once")


def test_cache_write_of_two_operations(chain, refused):
    refused(chain.s, lambda: chain.s.cache_write([chain.B, chain.C], "local"), "B and C are made by different operations")


def test_cache_write_after_an_annotation(chain, refused):
    chain.s[chain.D].parallel(chain.D.op.axis[0])
    refused(chain.s, lambda: chain.s.cache_write(chain.D, "local"), "i is already parallel", "call cache_write first")


def test_cache_write_after_the_reduction_was_split(matmul, refused):
    matmul.s[matmul.C].split(matmul.k, 8)
    refused(matmul.s, lambda: matmul.s.cache_write(matmul.C, "local"), "the reduction loop k.outer was made by split or fuse",
            "call cache_write first")


def test_cache_write_of_an_inlined_stage(chain, refused):
    chain.s[chain.C].compute_inline()
    refused(chain.s, lambda: chain.s.cache_write(chain.C, "local"), "C is computed inline")


def test_cache_write_of_nothing(chain):
    with pytest.raises(ArgumentTypeError, match="cache_write of no tensor"):
        chain.s.cache_write([], "local")
    assert len(chain.s.journal) == 0


# --- rfactor ----------------------------------------------------------------------------------------------------------------

def test_rfactor_of_what_is_no_reduction(chain, refused):
    refused(chain.s, lambda: chain.s.rfactor(chain.D, chain.D.op.axis[0]), "rfactor(D, i) on stage D", "D is not a reduction",
            "te.sum")


def test_rfactor_after_cache_write_names_the_new_stage(matmul, refused):
    matmul.s.cache_write(matmul.C, "local")
    refused(matmul.s, lambda: matmul.s.rfactor(matmul.C, matmul.k), "C is not a reduction; the reduction is in stage C.local")


def test_rfactor_of_a_loop_over_elements(matmul, refused):
    refused(matmul.s, lambda: matmul.s.rfactor(matmul.C, matmul.C.op.axis[0]),
            "i is a loop over elements, not a reduction loop",
            "choose one of k")


def test_rfactor_of_a_loop_that_was_split(matmul, refused):
    matmul.s[matmul.C].split(matmul.k, 8)
    refused(matmul.s, lambda: matmul.s.rfactor(matmul.C, matmul.k), "k was split into k.outer, k.inner")


def test_rfactor_after_compute_at(matmul, refused):
    s = matmul.s
    AA = s.cache_read(matmul.A, "local", [matmul.C])
    ko, ki = s[matmul.C].split(matmul.k, 10)
    s[AA].compute_at(s[matmul.C], ko)
    refused(s, lambda: s.rfactor(matmul.C, ki), "A.local is computed at k.outer: that loop must stay",
            "s[A_local].compute_root()")


def test_rfactor_drops_marks_with_a_warning(matmul, refused):
    s = matmul.s
    s[matmul.C].parallel(matmul.C.op.axis[0])
    _, ki = s[matmul.C].split(matmul.k, 10)
    s[matmul.C].unroll(ki)
    with pytest.warns(UserWarning) as warned:
        s.rfactor(matmul.C, ki)
    dropped = [str(one.message).partition(": ")[2].partition(",")[0] for one in warned]
    assert dropped == ["i was parallel", "k.inner was unrolled"]
    assert not any(stage.state.annotation_of(loop) for stage in s.stages for loop in stage.leaf_iter_vars)


def test_rfactor_of_a_bound_loop(matmul, refused):
    _, ki = matmul.s[matmul.C].split(matmul.k, 10)
    matmul.s[matmul.C].bind(ki, te.thread_axis("threadIdx.x"))
    refused(matmul.s, lambda: matmul.s.rfactor(matmul.C, ki), "k.inner is already bound", "call rfactor first")


@pytest.mark.parametrize("place, words", [(3, "factor_axis=3 is out of range: the new tensor has 3 dimensions"),
    (-4, "from -3 to 2"),
                                          ("0", "factor_axis is an integer, got the str '0'"), (True, "got the bool True")])
def test_rfactor_to_no_place(matmul, refused, place, words):
    refused(matmul.s, lambda: matmul.s.rfactor(matmul.C, matmul.k, place), words)


def test_rfactor_of_a_ragged_extent(refused):
    A = te.placeholder((6, 6), name="A")
    B = te.compute((6,), lambda i: te.sum(A[i, (k := te.reduce_axis((0, i + 1), "k"))], axis=k), name="B")
    s = create_schedule(B.op)
    refused(s, lambda: s.rfactor(B, B.op.reduce_axis[0]), "the extent of k is i + 1, which differs from element to element",
            "factor the inner loop")


@pytest.mark.parametrize("tensor, axis, words", [(0, 0, "got the int 0"), (None, 1, "expected an axis, got the int 1"),
                                                 ("op", None, "the first argument is a tensor, got the operation C")])
def test_rfactor_of_wrong_types(matmul, refused, tensor, axis, words):
    given = {"op": matmul.C.op, None: matmul.C}.get(tensor, tensor)
    refused(matmul.s, lambda: matmul.s.rfactor(given, axis), words)


# --- the places that would do -----------------------------------------------------------------------------------------------

def test_the_places_outside_of_a_vector_are_named(chain, refused):
    s = chain.s
    _, j = chain.D.op.axis
    s[chain.D].vectorize(j)
    s[chain.C].parallel(chain.C.op.axis[0])
    refused(s, lambda: s[chain.C].compute_at(s[chain.D], j), "C can be computed at a loop of D (i)")


def test_without_a_place_now_it_says_what_comes_first(refused):
    """D reads C and B, C reads B: B can stand inside of D as soon as C does."""
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((8, 8), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((8, 8), lambda i, j: B[i, j] + C[i, j], name="D")
    s = create_schedule(D.op)
    refused(s, lambda: s[B].compute_at(s[C], C.op.axis[0]), "D uses B too", "first compute C inside of D")
    s[C].compute_at(s[D], D.op.axis[1])
    refused(s, lambda: s[B].compute_at(s[C], C.op.axis[0]), "B can be computed at a loop of D (i, j)")


@pytest.mark.parametrize("part", range(4))
def test_every_place_that_is_named_can_be_taken(part):
    """In random programs under random schedules: the schedule accepts it, and lowering finds all readers inside."""
    tried = 0
    for number in range(15 * part, 15 * part + 15):
        case, scheduler = Group(number).sequence(GROUP * number)
        for stage in scheduler.s.state.stages:
            if stage.is_output or stage.is_placeholder or stage.guests():
                continue
            for host, loop in legal_places(stage):
                s = scheduler.s.copy()
                twin, other = (s.state.stages[scheduler.s.state.position(one)] for one in (stage, host))
                s.handle(twin).compute_at(s.handle(other), loop)
                assert not [wrong for wrong in misplaced(s.state) if wrong.producer is twin], (number, stage.name, loop.name)
                tried += 1
    assert tried > 10


def test_reverse_compute_at_is_refused_by_its_own_name():
    """The message spoke of a compute_at that nobody had written."""
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: B[i] * 2.0, name="C")
    D = te.compute((4,), lambda i: B[i] + C[i], name="D")
    s = te.create_schedule(D.op)
    with pytest.raises(tedsl.TedslError, match=r"^reverse_compute_at\(B, i\) of C on stage B: D uses B too"):
        s[C].reverse_compute_at(s[B], B.op.axis[0])
