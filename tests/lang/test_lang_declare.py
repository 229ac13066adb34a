"""Declaring tensors: shapes, names, axes, outputs, and how they print."""

import pickle

import numpy as np
import pytest

from tedsl import te, tir
from tedsl.errors import ShapeError
from tedsl.ir.expr import ProducerLoad, Reduce
from tedsl.lang.graph import consumers, producers_first, replace_inputs
from tests.lang.formulas import values


def test_a_placeholder_is_float32_unless_told():
    A = te.placeholder((4, 8))
    assert (A.dtype, A.ndim, A.name, A.op.num_outputs) == ("float32", 2, "placeholder", 1)
    assert te.placeholder((4,), "int8").dtype == "int8"
    assert te.placeholder((4,), np.float64).dtype == "float64"


def test_a_shape_may_be_one_number_or_symbolic():
    n = te.var("n")
    assert te.placeholder(4).ndim == 1
    assert te.placeholder(n).shape == (n,)
    assert repr(te.placeholder((n + 1, 2 * n)).shape) == "((n + 1), (n*2))" or te.placeholder((n + 1,)).ndim == 1
    assert te.placeholder(()).ndim == 0
    assert te.placeholder([np.int64(3), 4]).ndim == 2
    assert te.placeholder((0, 4)).ndim == 2


def test_axes_are_named_as_said():
    A = te.placeholder((3, 4), name="A")
    assert [axis.var.name for axis in te.compute((3, 4), lambda *i: A(*i), axes="ax").op.axis] == ["ax0", "ax1"]
    assert [axis.var.name for axis in te.compute((3, 4), lambda *i: A(*i), axes=("yy", "xx")).op.axis] == ["yy", "xx"]
    with pytest.raises(ShapeError, match="1 names of axes for 2 dimensions"):
        te.compute((3, 4), lambda *i: A(*i), axes=("yy",))


def test_axes_are_named_like_the_parameters():
    B = te.compute((2, 3), lambda y, x: y + x)
    assert [a.name for a in B.op.axis] == ["y", "x"]
    assert [a.name for a in te.compute((2, 3, 4), lambda y, *i: y + i[1]).op.axis] == ["y", "i0", "i1"]
    assert [a.name for a in te.compute((2, 3), lambda *i: i[0]).op.axis] == ["i0", "i1"]


def test_functions_methods_and_defaults_are_formulas():
    class Row:
        def at(self, i):
            return i * 2

    def with_default(i, scale=3):
        return i * scale

    assert values(te.compute((3,), Row().at), {}).tolist() == [0, 2, 4]
    assert values(te.compute((3,), with_default), {}).tolist() == [0, 3, 6]


def test_rank_0():
    A = te.placeholder((), name="A")
    B = te.compute((), lambda: A() + 1.0, name="B")
    assert B.op.axis == () and B.ndim == 0
    assert values(B, {A: np.array(2.0, "float32")}) == 3
    assert values(te.compute((2,), lambda i: A[()] * 2.0), {A: np.array(2.0, "float32")}).tolist() == [4, 4]


def test_a_tuple_of_values_makes_several_tensors():
    A = te.placeholder((3,), name="A")
    B, C = te.compute((3,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="P")
    assert isinstance(B.op.output(1), te.Tensor) and B.op is C.op
    assert (B.name, C.name, C.value_index) == ("P.v0", "P.v1", 1)
    data = np.arange(3, dtype="float32")
    assert values(C, {A: data}).tolist() == [0, 2, 4]
    only = te.compute((3,), lambda i: [A[i]])
    assert isinstance(only, te.Tensor)


def test_equality_and_hash_are_those_of_the_output():
    A, B = te.placeholder((3,), name="A"), te.placeholder((3,), name="A")
    again = A.op.output(0)
    assert again is not A and again == A and hash(again) == hash(A) and again.same_as(A)
    assert (A == B) is False and (A != B) is True and A in [B, again] and {A: 1}[again] == 1


def test_elements_in_four_notations():
    A = te.placeholder((3, 4), name="A")
    i, j = te.var("i"), te.var("j")
    for element in (A[i, j], A(i, j), A[i][j], A[(i, j)]):
        assert isinstance(element, ProducerLoad) and isinstance(element, te.TensorSlice)
        assert element.dtype == "float32" and repr(element) == "A[i, j]"
    assert repr(A[i]) == "A[i]" and isinstance(A[i], te.TensorSlice)
    assert A[0, 1].astype("int32").dtype == "int32"


def test_a_reduce_axis_is_an_index():
    A = te.placeholder((3, 4), name="A")
    k = te.reduce_axis((1, 4), name="k")
    B = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="B")
    assert B.op.reduce_axis == (k,) and isinstance(B.op.body[0], Reduce)
    data = np.arange(12, dtype="float32").reshape(3, 4)
    assert values(B, {A: data}).tolist() == data[:, 1:].sum(1).tolist()


def test_an_extent_may_be_read_from_a_tensor():
    ends = te.placeholder((4,), "int32", name="ends")
    A = te.placeholder((10,), name="A")
    def row(i):
        k = te.reduce_axis((0, ends[i + 1] - ends[i]), name="k")
        return te.sum(A[ends[i] + k], axis=k)
    B = te.compute((3,), row, name="B")
    assert set(B.op.input_tensors) == {ends, A}
    data = np.arange(10, dtype="float32")
    assert values(B, {A: data, ends: np.array([0, 2, 2, 9], "int32")}).tolist() == [1, 0, 35]


def test_tags():
    A = te.placeholder((3,))
    assert te.compute((3,), lambda i: A[i], tag="mine", attrs={"a": 1}).op.tag == "mine"
    with te.tag_scope(tag="conv"):
        B = te.compute((3,), lambda i: A[i])
        C = A + 1.0
    assert (B.op.tag, C.op.tag) == ("conv", "conv")
    assert te.compute((3,), lambda i: A[i]).op.tag == ""

    @te.tag_scope(tag="gemm")
    def declare():
        return te.compute((3,), lambda i: A[i])

    assert declare().op.tag == "gemm"


def test_a_record_travels_with_the_operation():
    B = te.compute((3,), lambda i: i, attrs={"layout": "NC"}, info=("mine", 1))
    assert B.op.info == ("mine", 1) and B.op.attrs["layout"] == "NC"


def test_how_they_print():
    n = te.var("n")
    assert repr(te.placeholder((n, 4), name="A")) == "Tensor(shape=[n, 4], op.name=A)"
    a, b = te.placeholder((100, 10), name="a"), te.placeholder((100, 10), name="b")
    assert repr(a.op) == "placeholder(a, [100, 10])"
    assert repr((a + b).op) == (
        "compute(T_add, body=[(a[ax0, ax1] + b[ax0, ax1])], axis=[iter_var(ax0, range(min=0, ext=100)), "
        "iter_var(ax1, range(min=0, ext=10))], reduce_axis=[], tag=broadcast, attrs={})")
    assert repr(te.compute((8,), lambda i: i).op.axis[0]) == "iter_var(i, range(min=0, ext=8))"


def test_operations_do_not_change():
    A = te.placeholder((3,))
    with pytest.raises(AttributeError):
        A.op.name = "B"


def test_thread_axes():
    t = te.thread_axis("threadIdx.x")
    assert (t.thread_tag, t.name, t.dom, t.iter_type) == ("threadIdx.x", "threadIdx.x", None, te.IterVar.ThreadIndex)
    assert te.thread_axis((0, 16), "blockIdx.x", name="bx").name == "bx"


def test_the_graph_lists_producers_first():
    A = te.placeholder((3,), name="A")
    B = te.compute((3,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((3,), lambda i: A[i] * 2.0, name="C")
    D = te.compute((3,), lambda i: C[i] + B[i] + A[i], name="D")
    assert [op.name for op in producers_first([D.op])] == ["A", "C", "B", "D"]
    assert [op.name for op in consumers([D.op])[A]] == ["C", "B", "D"]
    E = te.placeholder((3,), name="E")
    other = replace_inputs(D.op, {B: E})
    assert [t.name for t in other.input_tensors] == ["C", "E", "A"] and other.axis is D.op.axis
    assert replace_inputs(D.op, {E: A}) is D.op


def test_the_inputs_of_a_redirected_formula_are_those_that_it_reads():
    """They follow from the inputs before: also where two become one, inside of an index, or where an extent stays as it is."""
    A, B, C, E = (te.placeholder((8,), "int32", name=name) for name in "ABCE")
    k, few = te.reduce_axis((0, 8), name="k"), te.reduce_axis((0, B[0]), name="few")
    formulas = (lambda i: C[A[B[i]]] + B[i], lambda i: te.sum(A[k] * B[C[k]], axis=k),
                lambda i: te.sum(A[few] + C[i], axis=few))
    for formula in formulas:
        op = te.compute((8,), formula).op
        for mapping in ({B: E}, {A: E, B: E}, {A: B}, {A: B, B: A, C: A}):
            made = replace_inputs(op, mapping)
            assert made.input_tensors == made.replace().input_tensors, (formula, mapping)


def test_a_formula_that_follows_others_is_written_when_it_is_read():
    """One step after the other, as all at once; two inputs may become one, or change places."""
    A, B, C = (te.placeholder((8,), name=name) for name in "ABC")
    D = te.compute((8,), lambda i: A[i] * B[i] + A[7 - i], name="D")
    steps = ({A.op: C.op}, {B.op: A.op, C.op: B.op}, {A.op: C.op, B.op: C.op})
    made = D.op
    for step in steps:
        made = made.following(step)
    assert "body" not in vars(made) and made.axis is D.op.axis and made.output(0).dtype == "float32"
    assert made.input_tensors == [C] and made.sources == {C.op} and "body" not in vars(made)
    assert str(made.body) == str(D.op.body).replace("A", "C").replace("B", "C")
    assert made.following({A.op: B.op}) is made and D.op.following({}) is D.op
    assert pickle.loads(pickle.dumps(D.op.following(steps[1]))).input_tensors[0].name == "A"


def test_a_long_chain_of_computes_is_no_recursion():
    T = te.placeholder((2,), name="T")
    for _ in range(3000):
        T = te.compute((2,), lambda i, T=T: T[i] + 1.0)
    assert len(producers_first([T.op])) == 3001


def test_a_deep_formula_is_no_recursion():
    A = te.placeholder((2,), name="A")

    def deep(i):
        e = A[i]
        for _ in range(10_000):
            e = e + A[i]
        return e

    B = te.compute((2,), deep)
    assert B.op.input_tensors == [A]
    assert replace_inputs(B.op, {A: te.placeholder((2,))}).body[0] is not B.op.body[0]


def test_a_reduce_axis_may_serve_two_unrelated_computes():
    """The road of the matmul tutorials: one k for the naive and for the packed formula."""
    A = te.placeholder((3, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((3,), lambda i: te.sum(A[i, k], axis=k))
    C = te.compute((3,), lambda i: te.max(A[i, k], axis=k))
    assert B.op.reduce_axis == C.op.reduce_axis


def test_the_order_of_vars_in_names_of_tir():
    assert tir.Var("x", "int64").dtype == "int64" and isinstance(te.size_var("n"), tir.SizeVar)
    assert te.var().name == "tindex" and te.size_var().name == "size"
    for name in [*te.__all__]:
        assert hasattr(te, name)
    for name in tir.__all__:
        assert hasattr(tir, name)


def test_dimensions_of_two_integer_dtypes():
    n, m = te.var("n", "int64"), te.var("m")
    A = te.placeholder((n, m, 4), name="A")
    B = te.compute(A.shape, lambda i, j, x: A[i, j, x] + 1.0)
    assert [a.dtype for a in B.op.axis] == ["int64", "int32", "int32"]
    k = te.reduce_axis((0, n), "k")
    assert (k.dtype, k.dom.min.dtype, k.dom.extent.dtype) == ("int64", "int64", "int64")


def test_an_equality_is_a_value():
    A = te.placeholder((3,), name="A")
    B = te.compute((3,), lambda i: A[i] == 1.0)
    assert B.dtype == "bool" and values(B, {A: np.array([1, 2, 1], "float32")}).tolist() == [True, False, True]
    assert te.compute((3,), lambda i: te.if_then_else(A[i] != 1.0, i, 0)).dtype == "int32"


def test_classes_that_programs_ask_for():
    A = te.placeholder((3,), name="A")
    B = te.compute((3,), lambda i: A[i])
    assert isinstance(A.op, te.tensor.PlaceholderOp) and isinstance(B.op, te.tensor.ComputeOp)
    assert isinstance(B, te.tensor.Tensor) and not isinstance(A.op, te.ComputeOp)


def test_attributes_are_read_as_constants():
    """Tuners written for TVM read op.attrs["workload"][1].value."""
    A = te.placeholder((8,), name="A")
    given = {"workload": ["conv", 1, (2.5, True)], "axis": -1, "layout": "NC", "sizes": {"x": 3}, "mine": A}
    for op in (te.compute((8,), lambda i: A[i], attrs=given).op,
               te.extern((8,), [A], lambda ins, outs: tir.Evaluate(0), attrs=given, dtype="float32").op):
        name, number, (factor, flag) = op.attrs["workload"]
        assert name == "conv" and number.value == 1 and factor.value == 2.5 and flag.dtype == "bool" and flag.value == 1
        assert op.attrs["axis"] == -1 and int(op.attrs["axis"]) == -1 and op.attrs["sizes"]["x"].value == 3
        assert op.attrs["layout"] == "NC" and isinstance(op.attrs["layout"], str) and op.attrs["mine"] is A


@pytest.mark.parametrize("make", [lambda n: te.placeholder(n), lambda n: te.compute(n, lambda i: i + 1),
                                  lambda n: tir.decl_buffer(n)])
def test_an_array_without_dimensions_is_a_number(make):
    assert [int(dim) for dim in make(np.array(3)).shape] == [3]
