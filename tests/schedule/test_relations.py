"""What directives record: loops, relations, names."""

import pytest

from tedsl import te
from tedsl.ir import build
from tedsl.ir.iters import IterType
from tedsl.schedule.handles import create_schedule
from tedsl.schedule.relations import Fuse, Singleton, Split, children_of, parents_of, touched_by
from tedsl.schedule.state import AttachType


def names(stage):
    return [loop.name for loop in stage.leaf_iter_vars]


def test_a_fresh_schedule_has_the_axes_as_loops(matmul):
    s = matmul.s
    assert [stage.name for stage in s.stages] == ["A", "B", "C", "D"]
    assert names(s[matmul.C]) == ["i", "j", "k"]
    assert names(s[matmul.A]) == []
    assert s.outputs == [matmul.D.op] and s[matmul.D].is_output and not s[matmul.C].is_output
    assert s[matmul.C] is s[matmul.C.op] is s.stage_map[matmul.C.op] is s.stages[2]
    assert matmul.C in s and matmul.C.op in s


def test_schedules_of_tensors_and_of_lists(chain):
    assert create_schedule(chain.D).outputs == [chain.D.op]
    s = create_schedule([chain.C.op, chain.D])
    assert s.outputs == [chain.C.op, chain.D.op]
    assert [stage.is_output for stage in s.stages] == [False, False, True, True]


def test_split_by_factor(chain):
    stage = chain.s[chain.D]
    i, j = chain.D.op.axis
    outer, inner = stage.split(i, 16)
    assert (outer.name, inner.name) == ("i.outer", "i.inner")
    assert names(stage) == ["i.outer", "i.inner", "j"]
    relation, = stage.relations
    assert isinstance(relation, Split) and relation.parent is i and relation.outer is outer and relation.inner is inner
    assert build.as_int(relation.factor) == 16 and relation.nparts is None
    assert stage.all_iter_vars[0] is i and stage.all_iter_vars[-1] is inner


def test_split_by_parts(chain):
    stage = chain.s[chain.D]
    stage.split(chain.D.op.axis[0], nparts=4)
    relation, = stage.relations
    assert relation.factor is None and build.as_int(relation.nparts) == 4


def test_split_by_a_symbolic_factor(chain):
    n = te.var("n")
    stage = chain.s[chain.D]
    stage.split(chain.D.op.axis[0], factor=n)
    assert stage.relations[0].factor is n


def test_split_keeps_the_kind_of_the_axis(matmul):
    outer, inner = matmul.s[matmul.C].split(matmul.k, 16)
    assert outer.iter_type == inner.iter_type == IterType.COMM_REDUCE


def test_fuse_two_and_three():
    A = te.placeholder((2, 3, 4), name="A")
    B = te.compute((2, 3, 4), lambda a, b, c: A[a, b, c], name="B")
    s = create_schedule(B.op)
    fused = s[B].fuse(*B.op.axis)
    assert fused.name == "a.b.fused.c.fused" and names(s[B]) == [fused.name]
    first, second = s[B].relations
    assert isinstance(first, Fuse) and first.outer is B.op.axis[0] and second.outer is first.fused and second.fused is fused


def test_fuse_of_inner_before_outer_is_the_same_nest(chain):
    i, j = chain.D.op.axis
    fused = chain.s[chain.D].fuse(j, i)
    relation, = chain.s[chain.D].relations
    assert fused.name == "j.i.fused" and relation.outer is i and relation.inner is j


def test_fuse_of_one_and_of_none(chain):
    stage = chain.s[chain.D]
    i, _ = chain.D.op.axis
    assert stage.fuse(i) is i and not stage.relations
    one = stage.fuse()
    assert names(stage) == ["singleton", "i", "j"] and one.name == "singleton"
    assert isinstance(stage.relations[0], Singleton) and stage.relations[0].iter is one


def test_a_scalar_gets_its_loop_by_fuse():
    A = te.placeholder((), name="A")
    B = te.compute((), lambda: A() + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].fuse(*B.op.axis)
    assert names(s[B]) == ["singleton"]


def test_tile(chain):
    i, j = chain.D.op.axis
    loops = chain.s[chain.D].tile(i, j, 8, 16)
    assert [loop.name for loop in loops] == names(chain.s[chain.D]) == ["i.outer", "j.outer", "i.inner", "j.inner"]
    assert [build.as_int(r.factor) for r in chain.s[chain.D].relations] == [8, 16]


def test_reorder_moves_only_the_named_loops(matmul):
    stage = matmul.s[matmul.C]
    i, j = matmul.C.op.axis
    stage.reorder(matmul.k, i)
    assert names(stage) == ["k", "j", "i"]
    stage.reorder(j, matmul.k)
    assert names(stage) == ["j", "k", "i"]
    stage.reorder(j)
    stage.reorder()
    assert names(stage) == ["j", "k", "i"]


def test_annotations_are_attributes_of_loops(matmul):
    stage = matmul.s[matmul.D]
    io, ii = stage.split(matmul.D.op.axis[0], 8)
    stage.parallel(io)
    stage.unroll(ii)
    stage.vectorize(matmul.D.op.axis[1])
    kinds = {loop.name: attr.iter_type for loop, attr in stage.iter_var_attrs.items()}
    assert kinds == {"i.outer": IterType.PARALLELIZED, "i.inner": IterType.UNROLLED, "j": IterType.VECTORIZED}


def test_reduction_loops_can_be_unrolled_and_reordered_outwards(matmul):
    stage = matmul.s[matmul.C]
    ko, ki = stage.split(matmul.k, 5)
    stage.reorder(ko, *matmul.C.op.axis, ki)
    stage.unroll(ki)
    assert names(stage) == ["k.outer", "i", "j", "k.inner"]


def test_annotated_loops_can_be_reordered(chain):
    i, j = chain.D.op.axis
    stage = chain.s[chain.D]
    stage.vectorize(i)
    stage.reorder(j, i)
    assert names(stage) == ["j", "i"] and stage.iter_var_attrs[i].iter_type == IterType.VECTORIZED


def test_a_split_by_a_constant_can_be_vectorized_for_a_symbolic_shape():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[0], factor=8)
    s[B].vectorize(inner)
    assert s[B].iter_var_attrs[inner].iter_type == IterType.VECTORIZED


def test_pragmas_pile_up(chain):
    stage = chain.s[chain.D]
    i, j = chain.D.op.axis
    stage.pragma(i, "auto_unroll_max_step", 16)
    stage.pragma(i, "unroll_explicit", True)
    attr = stage.iter_var_attrs[i]
    assert list(attr.pragma_keys) == ["auto_unroll_max_step", "unroll_explicit"]
    assert [build.as_int(v) for v in attr.pragma_values] == [16, 1]
    stage.pragma(j, "unroll")
    assert stage.iter_var_attrs[j].iter_type == IterType.UNROLLED


def test_bind_is_recorded(chain):
    thread = te.thread_axis("threadIdx.x")
    i, _ = chain.D.op.axis
    chain.s[chain.D].bind(i, thread)
    assert chain.s[chain.D].iter_var_attrs[i].bind_thread is thread
    assert "bound to threadIdx.x" in str(chain.s)


def test_any_number_of_virtual_threads(chain):
    i, j = chain.D.op.axis
    chain.s[chain.D].bind(i, te.thread_axis("vthread"))
    chain.s[chain.D].bind(j, te.thread_axis("vthread"))
    assert len(chain.s[chain.D].iter_var_attrs) == 2


def test_places(chain):
    s = chain.s
    i, _ = chain.D.op.axis
    assert s[chain.C].attach_type == AttachType.ROOT == 1
    s[chain.C].compute_at(s[chain.D], i)
    assert (s[chain.C].attach_type, s[chain.C].attach_stage, s[chain.C].attach_ivar) == (AttachType.SCOPE, s[chain.D], i)
    s[chain.B].compute_inline()
    assert s[chain.B].attach_type == AttachType.INLINE == 2
    s[chain.C].compute_root()
    assert (s[chain.C].attach_type, s[chain.C].attach_stage, s[chain.C].attach_ivar) == (AttachType.ROOT, None, None)


def test_a_producer_may_be_attached_before_its_reader(chain):
    """B goes into D although C, which reads it, is attached only afterwards; or is inlined."""
    s = chain.s
    i, _ = chain.D.op.axis
    s[chain.B].compute_at(s[chain.D], i)
    s[chain.C].compute_at(s[chain.D], i)
    assert s[chain.B].attach_stage is s[chain.D]


def test_compute_at_a_reduction_loop(matmul):
    s = matmul.s
    AA = s.cache_read(matmul.A, "global", [matmul.C])
    ko, _ = s[matmul.C].split(matmul.k, 10)
    s[AA].compute_at(s[matmul.C], ko)
    assert s[AA].attach_ivar is ko


def test_scope_and_nontemporal(chain):
    s = chain.s
    assert s[chain.C].set_scope("local") is s[chain.C] and s[chain.C].scope == "local"
    s[chain.D].set_scope("global")
    s[chain.D].nontemporal()
    assert s[chain.D].state.nontemporal and "stored past the cache" in str(s[chain.D])


def test_parents_children_and_what_they_touch(matmul):
    stage = matmul.s[matmul.C]
    ko, ki = stage.split(matmul.k, 10)
    kio, kii = stage.split(ki, 2)
    first, second = stage.relations
    assert parents_of(first) == (matmul.k,) and children_of(second) == (kio, kii)
    assert touched_by([kii], stage.relations) == {matmul.k, ko, ki, kio, kii}
    assert touched_by([matmul.C.op.axis[0]], stage.relations) == {matmul.C.op.axis[0]}


def test_relations_are_frozen(chain):
    chain.s[chain.D].split(chain.D.op.axis[0], 4)
    with pytest.raises(AttributeError):
        chain.s[chain.D].relations[0].factor = None
