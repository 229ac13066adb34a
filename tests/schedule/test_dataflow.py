"""cache_read, reindex_cache_read, cache_write, rfactor, pad_sum, normalize: operations change, what they compute does not."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.schedule.handles import create_schedule
from tedsl.schedule.relations import Rebase
from tedsl.schedule.state import AttachType


def names(stage):
    return [loop.name for loop in stage.leaf_iter_vars]


def stage_names(s):
    return [stage.name for stage in s.stages]


def axis_names(tensor):
    return [a.name for a in tensor.op.axis], [a.name for a in tensor.op.reduce_axis]


# --- cache_read -----------------------------------------------------------------------------------------------------

def test_cache_read_copies_and_redirects(matmul):
    s = matmul.s
    AA = s.cache_read(matmul.A, "shared", [matmul.C])
    assert AA.name == "A.shared" and axis_names(AA) == (["ax0", "ax1"], [])
    assert repr(AA.op.body[0]) == "A[ax0, ax1]"
    assert stage_names(s) == ["A", "A.shared", "B", "C", "D"]
    assert s[AA].scope == "shared"
    assert s[matmul.C].op.input_tensors == [AA, matmul.B]
    assert s[matmul.D].op.input_tensors == [s[matmul.C].op.output(0)]


def test_the_old_tensors_still_find_their_stages(matmul):
    s = matmul.s
    before = s[matmul.C], s[matmul.D]
    s.cache_read(matmul.A, "shared", [matmul.C])
    s.cache_write(matmul.C, "local")
    assert (s[matmul.C], s[matmul.D]) == before
    assert s[matmul.C].origin_op is matmul.C.op and s[matmul.C].op is not matmul.C.op
    assert s[s[matmul.C].op] is s[matmul.C]
    assert s.outputs == [matmul.D.op] and s.stage_map[matmul.D.op].op is s[matmul.D].op


def test_readers_keep_their_loops(matmul):
    s = matmul.s
    ko, ki = s[matmul.C].split(matmul.k, 5)
    s[matmul.C].unroll(ki)
    s.cache_read(matmul.A, "shared", [matmul.C])
    assert names(s[matmul.C]) == ["i", "j", "k.outer", "k.inner"] and s[matmul.C].leaf_iter_vars[2] is ko
    assert s[matmul.C].iter_var_attrs[ki].describe() == "unrolled"


def test_a_reader_may_be_a_tensor_an_operation_or_a_cache(matmul):
    s = matmul.s
    CL = s.cache_write(matmul.C, "local")
    AA = s.cache_read(matmul.A, "shared", CL)
    AL = s.cache_read(AA, "local", [CL.op])
    assert AL.name == "A.shared.local" and stage_names(s) == ["A", "A.shared", "A.shared.local", "B", "C.local", "C", "D"]
    assert AL in s[CL].op.input_tensors


def test_only_the_named_readers_read_the_copy():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: A[i] + B[i], name="C")
    s = create_schedule(C.op)
    AB = s.cache_read(A, "local", [B])
    assert s[B].op.input_tensors == [AB]
    assert s[C].op.input_tensors == [A, s[B].op.output(0)]


def test_cache_read_of_one_of_two_outputs():
    A = te.placeholder((8,), name="A")
    P, Q = te.compute((8,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="T")
    R = te.compute((8,), lambda i: P[i] + Q[i], name="R")
    s = create_schedule(R.op)
    cache = s.cache_read(Q, "local", [R])
    assert cache.name == "T.v1.local" and s[R].op.input_tensors == [P, cache]


# --- reindex_cache_read ---------------------------------------------------------------------------------------------

def windows(first=0):
    A, W = te.placeholder((2, 9), name="A"), te.placeholder((4,), name="W")
    k = te.reduce_axis((first, 3), "k")
    C = te.compute((2, 3), lambda n, x: te.sum(A[n, x * 3 + k] * W[k], axis=k), name="C")
    return A, W, k, C, create_schedule(C.op)


def test_reindex_cache_read_copies_what_is_read_by_the_axes_of_the_reader():
    A, W, k, C, s = windows()
    AA = s.reindex_cache_read(A, "local", C)
    assert AA.name == "A.reindex" and axis_names(AA) == (["n", "x", "k"], []) and s[AA].scope == "local"
    assert repr(AA.op.body[0]) == "A[n, ((x*3) + k)]"
    assert s[C].op.input_tensors == [AA, W] and stage_names(s) == ["A", "A.reindex", "W", "C"]
    assert s[C].op.axis is C.op.axis and s[C].op.reduce_axis[0] is k


def test_a_copy_by_axes_begins_where_they_do():
    A, _, _, C, s = windows(first=1)
    AA = s.reindex_cache_read(A, "global", C)
    assert [n.value for n in AA.shape] == [2, 3, 2]
    assert repr(AA.op.body[0]) == "A[n, ((x*3) + (k + 1))]" and "A.reindex[n, x, (k - 1)]" in repr(s[C].op.body[0])


def test_only_axes_that_the_indices_use_are_dimensions_of_the_copy(matmul):
    AA = matmul.s.reindex_cache_read(matmul.A, "global", matmul.C)
    assert axis_names(AA) == (["i", "k"], [])


def test_readers_of_the_reader_follow_it(matmul):
    s = matmul.s
    s.reindex_cache_read(matmul.A, "global", matmul.C)
    assert s[matmul.D].op.input_tensors == [s[matmul.C].op.output(0)]


def test_a_copy_stands_behind_all_that_its_indices_read():
    A, B = te.placeholder((2, 4), name="A"), te.placeholder((8,), "int32", name="B")
    C, D = te.compute((8, 4), lambda i, j: A[B[i] % 2, j], name="C"), te.compute((2,), lambda i: A[i, 0], name="D")
    s = create_schedule([D.op, C.op])
    first = s.reindex_cache_read(B, "local", C)
    assert s.reindex_cache_read(A, "global", C).op.input_tensors == [first, A]
    assert stage_names(s) == ["A", "D", "B", "B.reindex", "A.reindex", "C"]
    a, b = np.arange(8, dtype="float32").reshape(2, 4), np.arange(-4, 4, dtype="int32")
    c, d = np.empty((8, 4), "float32"), np.empty(2, "float32")
    tedsl.build(s, [A, B, C, D])(a, b, c, d)
    np.testing.assert_array_equal(c, a[b % 2])


# --- cache_write ----------------------------------------------------------------------------------------------------

def test_cache_write_moves_the_reduction(matmul):
    s = matmul.s
    CL = s.cache_write(matmul.C, "local")
    assert CL.name == "C.local" and axis_names(CL) == (["i.c", "j.c"], ["k"])
    assert CL.op.reduce_axis[0] is matmul.k
    assert repr(s[matmul.C].op.body[0]) == "C.local[i, j]"
    assert s[matmul.C].op.axis == matmul.C.op.axis and s[matmul.C].op.reduce_axis == ()
    assert stage_names(s) == ["A", "B", "C.local", "C", "D"] and s[CL].scope == "local"
    assert names(s[CL]) == ["i.c", "j.c", "k"] and names(s[matmul.C]) == ["i", "j"]


def test_cache_write_of_an_output_leaves_the_output_where_it_was(matmul):
    s = matmul.s
    DL = s.cache_write(matmul.D, "local")
    assert s[matmul.D].is_output and not s[DL].is_output


def test_an_attached_stage_stays_attached(matmul):
    s = matmul.s
    i, _ = matmul.D.op.axis
    s[matmul.C].compute_at(s[matmul.D], i)
    CL = s.cache_write(matmul.C, "local")
    assert s[matmul.C].attach_ivar is i and s[CL].attach_type == AttachType.ROOT
    s[CL].compute_at(s[matmul.C], s[matmul.C].op.axis[0])


def test_cache_write_of_all_outputs():
    A = te.placeholder((8,), name="A")
    P, Q = te.compute((8,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="T")
    s = create_schedule([P.op])
    caches = s.cache_write([P, Q], "local")
    assert [c.name for c in caches] == ["T.local.v0", "T.local.v1"]
    assert [repr(b) for b in s[P].op.body] == ["T.local.v0[i]", "T.local.v1[i]"]


def test_cache_write_after_split_lays_out_by_the_loops(compute_stages):
    A = te.placeholder((6, 10), name="A")
    B = te.compute((6, 10), lambda i, j: A[i, j] * 2.0, name="B")
    s = create_schedule(B.op)
    i, j = B.op.axis
    jo, ji = s[B].split(j, 4)
    s[B].reorder(jo, i, ji)
    BL = s.cache_write(B, "local")
    assert axis_names(BL)[0] == ["j.outer.c", "i.c", "j.inner.c"]
    assert [int(n) for n in BL.shape] == [3, 6, 4]
    assert s[B].leaf_iter_vars == [i, j] and s[B].relations == []
    data = np.random.default_rng(0).random((6, 10))
    np.testing.assert_array_equal(compute_stages(s, {A: data})[s[B].op.output(0)], data * 2.0)


def test_cache_write_of_a_laid_out_reduction(compute_stages):
    A = te.placeholder((7, 5), name="A")
    k = te.reduce_axis((0, 5), "k")
    B = te.compute((7,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = create_schedule(B.op)
    s[B].split(B.op.axis[0], 4)
    BL = s.cache_write(B, "local")
    data = np.random.default_rng(0).random((7, 5))
    made = compute_stages(s, {A: data})
    np.testing.assert_allclose(made[s[B].op.output(0)], data.sum(axis=1))
    assert made[BL].shape == (2, 4) and made[BL][1, 3] == 0


# --- rfactor --------------------------------------------------------------------------------------------------------

def rowsum(n=6, m=50, **kwargs):
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((kwargs.get("begin", 0), m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k, where=kwargs.get("where", lambda a, i, k: None)(A, i, k)), name="B")
    return A, k, B, create_schedule(B.op)


@pytest.mark.parametrize("m, factor, guarded", [(48, 16, False), (50, 16, True)])
def test_rfactor_names_and_condition(m, factor, guarded):
    _, k, B, s = rowsum(m=m)
    _, ki = s[B].split(k, factor)
    BF = s.rfactor(B, ki)
    assert BF.name == "B.rf" and axis_names(BF) == (["k.inner", "i"], ["k.outer"])
    assert [int(n) for n in BF.shape] == [16, 6]
    condition = repr(BF.op.body[0].condition)
    assert condition == ("tir.likely((((k.outer*16) + k.inner) < 50))" if guarded else "(bool)1")
    assert s[B].op.name == "B.repl" and axis_names(s[B].op.output(0)) == (["ax0"], ["k.inner.v"])
    assert repr(s[B].op.body[0].source[0]) == "B.rf[k.inner.v, ax0]"
    assert names(s[BF]) == ["k.inner", "i", "k.outer"] and names(s[B]) == ["ax0", "k.inner.v"]
    assert stage_names(s) == ["A", "B.rf", "B"] and s[B].is_output and not s[BF].is_output
    s[BF].parallel(s[BF].op.axis[0])


@pytest.mark.parametrize("factor_axis, order", [(0, ["k.inner", "i"]), (1, ["i", "k.inner"]), (-1, ["i", "k.inner"]),
    (-2, ["k.inner", "i"])])
def test_the_place_of_the_factored_axis(factor_axis, order):
    _, k, B, s = rowsum()
    _, ki = s[B].split(k, 16)
    assert axis_names(s.rfactor(B, ki, factor_axis))[0] == order


def factor_inner(s, B, k):
    return s[B].split(k, 4)[1]


def factor_outer(s, B, k):
    return s[B].split(k, nparts=3)[0]


def factor_middle(s, B, k):
    outer, _ = s[B].split(k, 4)
    return s[B].split(outer, 3)[1]


def factor_deep(s, B, k):
    _, inner = s[B].split(k, 7)
    return s[B].split(inner, 3)[1]


def factor_all(s, B, k):
    return k


@pytest.mark.parametrize("loop", [factor_inner, factor_outer, factor_middle, factor_deep, factor_all])
@pytest.mark.parametrize("begin", [0, 2])
@pytest.mark.parametrize("m", [24, 23])
def test_rfactor_keeps_the_sum(loop, begin, m, compute_stages):
    A, k, B, s = rowsum(n=3, m=m, begin=begin)
    s.rfactor(B, loop(s, B, k))
    data = np.random.default_rng(0).random((3, m))
    np.testing.assert_allclose(compute_stages(s, {A: data})[s[B].op.output(0)], data[:, begin:].sum(axis=1))


def test_rfactor_keeps_the_condition_of_the_user(compute_stages):
    A, k, B, s = rowsum(n=3, m=10, where=lambda a, i, k: a[i, k] >= 0.5)
    _, ki = s[B].split(k, 4)
    s.rfactor(B, ki)
    data = np.random.default_rng(0).random((3, 10))
    np.testing.assert_allclose(compute_stages(s, {A: data})[s[B].op.output(0)], np.where(data >= 0.5, data, 0).sum(axis=1))


@pytest.mark.parametrize("fuse_first", [False, True])
def test_rfactor_over_two_axes(fuse_first, compute_stages):
    A = te.placeholder((3, 5, 7), name="A")
    k, l = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 7), "l")
    B = te.compute((3,), lambda i: te.sum(A[i, k, l], axis=[k, l]), name="B")
    s = create_schedule(B.op)
    _, loop = s[B].split(s[B].fuse(k, l), 4) if fuse_first else s[B].split(l, 4)
    BF = s.rfactor(B, loop)
    assert [a.name for a in BF.op.reduce_axis] == (["k.l.fused.outer"] if fuse_first else ["k", "l.outer"])
    data = np.random.default_rng(0).random((3, 5, 7))
    np.testing.assert_allclose(compute_stages(s, {A: data})[s[B].op.output(0)], data.sum(axis=(1, 2)))


def argmax_program():
    from tedsl.ir import build

    argmax = te.comm_reducer(
        lambda x, y: (build.select(x[1] >= y[1], x[0], y[0]), build.select(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (build.const(-1, t0), te.min_value(t1)), name="argmax")
    A = te.placeholder((4, 11), name="A")
    k = te.reduce_axis((0, 11), "k")
    index, value = te.compute((4,), lambda i: argmax((k.var, A[i, k]), axis=k), name="T")
    return A, k, index, value


def test_rfactor_of_a_tuple_reduction(compute_stages):
    A, k, index, value = argmax_program()
    s = create_schedule(index.op)
    _, ki = s[index].split(k, 4)
    made = s.rfactor(index, ki)
    assert [t.name for t in made] == ["T.rf.v0", "T.rf.v1"] and made[0].op is made[1].op
    assert s[index] is s[value] and s[index].op.num_outputs == 2
    data = np.random.default_rng(0).random((4, 11))
    arrays = compute_stages(s, {A: data})
    np.testing.assert_array_equal(arrays[s[index].op.output(0)], data.argmax(axis=1))
    np.testing.assert_array_equal(arrays[s[index].op.output(1)], data.max(axis=1))


def test_cache_write_of_a_tuple_reduction(compute_stages):
    A, _, index, value = argmax_program()
    s = create_schedule(index.op)
    caches = s.cache_write([index, value], "local")
    data = np.random.default_rng(0).random((4, 11))
    arrays = compute_stages(s, {A: data})
    np.testing.assert_array_equal(arrays[s[index].op.output(0)], data.argmax(axis=1))
    np.testing.assert_array_equal(arrays[caches[1]], data.max(axis=1))


def test_readers_of_a_factored_reduction_read_the_new_one(matmul):
    s = matmul.s
    _, ki = s[matmul.C].split(matmul.k, 16)
    CF = s.rfactor(matmul.C, ki)
    assert s[matmul.D].op.input_tensors == [s[matmul.C].op.output(0)]
    s[CF].compute_at(s[matmul.C], s[matmul.C].op.reduce_axis[0])


def test_rfactor_of_a_symbolic_extent():
    m = te.var("m")
    A = te.placeholder((m,), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((), lambda: te.sum(A[k], axis=k), name="B")
    s = create_schedule(B.op)
    _, ki = s[B].split(k, 16)
    BF = s.rfactor(B, ki)
    assert repr(BF.op.body[0].condition) == "tir.likely((((k.outer*16) + k.inner) < m))"
    assert repr(BF.op.reduce_axis[0].dom.extent) == "floordiv((m + 15), 16)"


def test_rfactor_after_cache_write(matmul, compute_stages):
    s = matmul.s
    CL = s.cache_write(matmul.C, "local")
    _, ki = s[CL].split(matmul.k, 8)
    CF = s.rfactor(CL, ki)
    assert CF.name == "C.local.rf" and stage_names(s) == ["A", "B", "C.local.rf", "C.local", "C", "D"]


def ragged():
    """B[i] is the sum of the first i + 1 elements of row i."""
    A = te.placeholder((6, 6), name="A")
    B = te.compute((6,), lambda i: te.sum(A[i, (k := te.reduce_axis((0, i + 1), "k"))], axis=k), name="B")
    return A, B, create_schedule(B.op)


def test_cache_write_of_a_ragged_reduction(compute_stages):
    A, B, s = ragged()
    BL = s.cache_write(B, "local")
    assert repr(BL.op.reduce_axis[0].dom.extent) == "(i.c + 1)" and BL.op.body[0].axis == BL.op.reduce_axis
    data = np.random.default_rng(0).random((6, 6))
    np.testing.assert_allclose(compute_stages(s, {A: data})[s[B].op.output(0)], np.tril(data).sum(axis=1))


def test_rfactor_of_a_ragged_reduction(compute_stages):
    A, B, s = ragged()
    _, inner = s[B].split(B.op.reduce_axis[0], 4)
    s.rfactor(B, inner)
    data = np.random.default_rng(0).random((6, 6))
    np.testing.assert_allclose(compute_stages(s, {A: data})[s[B].op.output(0)], np.tril(data).sum(axis=1))


# --- normalize and copy ---------------------------------------------------------------------------------------------

def test_normalize_inlines_and_leaves_the_schedule_alone(chain, compute_stages):
    s = chain.s
    s[chain.B].compute_inline()
    s[chain.C].compute_inline()
    before = str(s)
    n = s.normalize()
    assert str(s) == before and s[chain.B].attach_type == AttachType.INLINE and n[chain.B].attach_type == AttachType.INLINED
    assert n[chain.D].op.input_tensors == [chain.A]
    data = np.random.default_rng(0).random((64, 48))
    np.testing.assert_allclose(compute_stages(n, {chain.A: data})[n[chain.D].op.output(0)], (data + 1) * 2 - 3)


def test_normalize_inlines_into_reductions():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="B")
    k = te.reduce_axis((0, 8), "k")
    C = te.compute((8,), lambda i: te.sum(B[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    s[B].compute_inline()
    body = s.normalize()[C].op.body[0]
    assert repr(body.source[0]) == "(A[i, k] + 1f)" and body.axis == (k,)


def test_normalize_rebases_loops_and_what_is_attached_to_them(chain):
    s = chain.s
    i, j = chain.D.op.axis
    s[chain.C].compute_at(s[chain.D], i)
    s[chain.D].vectorize(j)
    n = s.normalize()
    rebased = n[chain.D].relations
    assert [type(r) for r in rebased] == [Rebase, Rebase] and names(n[chain.D]) == ["i", "j"]
    assert n[chain.C].attach_ivar is rebased[0].rebased
    assert n[chain.D].iter_var_attrs[rebased[1].rebased].describe() == "vectorized"


def test_a_copy_goes_its_own_way(matmul):
    s = matmul.s
    i, _ = matmul.D.op.axis
    s[matmul.C].compute_at(s[matmul.D], i)
    twin = s.copy()
    assert str(twin) == str(s) and str(twin.journal) == str(s.journal)
    assert twin[matmul.C].attach_stage is twin[matmul.D] and twin[matmul.C] is not s[matmul.C]
    before = str(s), str(s.journal)
    twin[matmul.C].split(matmul.k, 4)
    twin.cache_read(matmul.A, "local", [matmul.C])
    assert (str(s), str(s.journal)) == before and s[matmul.C].op is matmul.C.op


def test_the_values_of_a_tuple_reduction_stay_one_reduction():
    _, k, index, _ = argmax_program()
    s = create_schedule(index.op)
    _, ki = s[index].split(k, 4)
    s.rfactor(index, ki)
    for stage in s.stages[1:]:
        first, second = stage.op.body
        assert first.axis is second.axis and first.condition is second.condition
        assert all(a is b for a, b in zip(first.source, second.source))


# --- pad_sum ----------------------------------------------------------------------------------------------------------

def products(dtype="int32", terms=6):
    A, B = te.placeholder((5, terms), dtype, name="A"), te.placeholder((terms, 7), dtype, name="B")
    k = te.reduce_axis((0, terms), "k")
    C = te.compute((5, 7), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((5, 7), lambda i, j: C[i, j] + A[i, 0], name="D")
    return A, B, k, C, D, create_schedule(D.op)


def test_pad_sum_adds_zeros_to_what_is_summed():
    A, B, k, C, D, s = products()
    AA, BB = s.pad_sum(C, k, 4)
    assert stage_names(s) == ["A", "A.padded", "B", "B.padded", "C", "D"]
    assert [n.value for n in AA.shape] == [5, 8] and [n.value for n in BB.shape] == [8, 7]
    assert s[C].op.input_tensors == [AA, BB] and s[D].op.input_tensors == [s[C].op.output(0), A]
    (longer,) = s[C].op.reduce_axis
    assert longer is not k and longer.dom.extent.value == 8 and s[C].leaf_iter_vars[-1] is longer


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("terms, multiple", [(6, 4), (1, 4), (7, 16), (0, 4)])
def test_longer_sums_are_the_same(dtype, terms, multiple):
    A, B, k, C, D, s = products(dtype, terms)
    if terms:
        AA, BB = s.pad_sum(C, k, multiple)
        s[AA].compute_inline()
        s[C].split(s[C].op.reduce_axis[0], factor=multiple)
        s[C].compute_at(s[D], D.op.axis[0])
    a, b = (np.arange(n, dtype=dtype) - 9 for n in (5 * terms, terms * 7))
    a, b, found = a.reshape(5, terms), b.reshape(terms, 7), np.empty((5, 7), dtype)
    if not terms:
        with pytest.raises(tedsl.errors.ScheduleError, match="a multiple of 4 already"):
            s.pad_sum(C, k, multiple)
        return
    tedsl.build(s, [A, B, D])(a, b, found)
    np.testing.assert_array_equal(found, a @ b + a[:, :1])


def test_a_sum_of_symbolic_length_is_padded():
    n = te.size_var("n")
    A, k = te.placeholder((n,), "int32", name="A"), te.reduce_axis((0, n), "k")
    C = te.compute((1,), lambda i: te.sum(A[k] * A[k], axis=k), name="C")
    s = create_schedule(C.op)
    s.pad_sum(C, k, 4)
    f, out = tedsl.build(s, [A, C]), np.empty(1, "int32")
    for size in (0, 1, 4, 7):
        f(np.arange(size, dtype="int32") + 1, out)
        assert out[0] == sum((i + 1) ** 2 for i in range(size))


def test_pad_sum_by_replay_and_undo():
    A, B, k, C, D, s = products()
    s.pad_sum(C, k, 4)
    again = products()[-1]
    again.replay(s.journal)
    assert str(again.journal) == str(s.journal)
    s.undo()
    assert s[C].op.reduce_axis[0] is k and stage_names(s) == ["A", "B", "C", "D"]
