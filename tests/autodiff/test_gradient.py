"""te.gradient: the walk through a graph, heads, reads, and what it refuses."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentTypeError, DTypeError, ShapeError, TedslError
from tests.autodiff.differences import check, compiled


def placeholder(shape, name, dtype="float64"):
    return te.placeholder(shape, dtype, name=name)


def product(a, b):
    k = te.reduce_axis((0, a.shape[1]), name="k")
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def test_a_product_of_matrices():
    a, b = placeholder((5, 3), "A"), placeholder((3, 4), "B")
    check(product(a, b), [a, b])


def test_the_result_is_a_list_also_for_one_input():
    a = placeholder((3,), "A")
    b = te.compute((3,), lambda i: a[i] * 2.0, name="B")
    found = te.gradient(b, a)
    assert isinstance(found, list) and [t.name for t in found] == ["B.A.grad"]


def test_without_a_head_the_jacobian():
    a, b = placeholder((2, 3), "A"), placeholder((3, 4), "B")
    jacobian, = te.gradient(product(a, b), [a])
    assert [int(extent) for extent in jacobian.shape] == [2, 4, 2, 3]
    values = np.random.default_rng(0).random((3, 4))
    found, = compiled([a, b], [jacobian])(np.zeros((2, 3)), values)
    np.testing.assert_array_equal(found, np.einsum("pi,kq->pqik", np.eye(2), values))


def test_the_jacobian_of_a_scalar_is_its_gradient():
    a = placeholder((4,), "A")
    k = te.reduce_axis((0, 4), name="k")
    b = te.compute((), lambda: te.sum(a[k] * a[k], axis=k), name="B")
    values = np.arange(4.0)
    np.testing.assert_array_equal(compiled([a], te.gradient(b, [a]))(values)[0], 2 * values)


def test_heads_may_have_leading_dimensions():
    a, b = placeholder((2, 3), "A"), placeholder((3, 4), "B")
    head = placeholder((7, 2, 4), "head")
    by_a, by_b = te.gradient(product(a, b), [a, b], head)
    rng = np.random.default_rng(0)
    x, y, h = rng.random((2, 3)), rng.random((3, 4)), rng.random((7, 2, 4))
    found = compiled([a, b, head], [by_a, by_b])(x, y, h)
    np.testing.assert_allclose(found[0], h @ y.T)
    np.testing.assert_allclose(found[1], x.T @ h)


def test_an_input_that_is_not_read_has_zeros():
    a, b = placeholder((3,), "A"), placeholder((2,), "B")
    c = te.compute((3,), lambda i: a[i] * 2.0, name="C")
    jacobian, = te.gradient(c, [b])
    np.testing.assert_array_equal(compiled([], [jacobian])()[0], np.zeros((3, 2)))


def test_the_output_itself_and_tensors_between_are_inputs_too():
    a = placeholder((3,), "A")
    b = te.compute((3,), lambda i: te.exp(a[i]), name="B")
    c = te.compute((3,), lambda i: b[i] * b[i], name="C")
    head = placeholder((3,), "head")
    values, weights = np.arange(3.0), np.array([1.0, 2.0, -1.0])
    by_c, by_b, by_a = compiled([a, head], te.gradient(c, [c, b, a], head))(values, weights)
    np.testing.assert_array_equal(by_c, weights)
    np.testing.assert_allclose(by_b, weights * 2 * np.exp(values))
    np.testing.assert_allclose(by_a, weights * 2 * np.exp(values) ** 2)


def test_a_result_that_stands_in_a_tensor_is_read_from_it():
    a = placeholder((3,), "A")
    b = te.compute((3,), lambda i: te.exp(a[i]), name="B")
    derivative, = te.gradient(b, [a], placeholder((3,), "head"))
    assert b in derivative.op.input_tensors and a not in derivative.op.input_tensors


def test_reads_of_one_element_are_one_sum():
    a = placeholder((5, 4), "A")
    k = te.reduce_axis((0, 4), name="k")
    b = te.compute((5,), lambda i: te.sum(te.if_then_else(k < 2, a[i, k], 2.0) * a[i, k], axis=k), name="B")
    head = placeholder((5,), "head")
    derivative, = te.gradient(b, [a], head)
    assert derivative.op.name == "B.A.grad" and set(derivative.op.input_tensors) == {a, head}
    check(b, [a])


def test_many_readers_add_up():
    a = placeholder((4, 3), "A")
    b = te.compute((4, 3), lambda i, j: te.sin(a[i, j]), name="B")
    c = te.compute((4, 3), lambda i, j: b[i, j] * a[i, j] + te.cos(b[i, j]), name="C")
    k = te.reduce_axis((0, 3), name="k")
    d = te.compute((4,), lambda i: te.sum(c[i, k] * b[i, k], axis=k), name="D")
    check(d, [a])


@pytest.mark.parametrize("formula, shape", [
    (lambda a: lambda i, j: a[j, i] * a[j, i], (4, 5)),  # transposed
    (lambda a: lambda i, j: a[i, 0] + a[0, j], (5, 4)),  # constants
    (lambda a: lambda i: a[i, i], (4,)),  # a diagonal
    (lambda a: lambda i, j: a[i, j] * a[i + 2, j + 1], (3, 3)),  # neighbours
    (lambda a: lambda i, j: a[2 * i, j], (2, 3)),  # a stride, and a part of a dimension
    (lambda a: lambda i: a[i // 4, i % 4], (20,)),  # a reshape
    (lambda a: lambda i, j, l: a[i, j] * 2.0, (5, 4, 3)),  # repeated
    (lambda a: lambda i, j: te.if_then_else(te.all(i > 0, i < 6), a[i - 1, j] * a[i - 1, j], 1.0), (7, 4)),  # padding
    (lambda a: lambda i, j: a[4 - i, 3 - j], (5, 4)),  # reversed
    (lambda a: lambda i: te.select(i < 3, a[i, 0], a[2, 1]) * a[i, 1], (4,)),
])
def test_reads_of_every_kind(formula, shape):
    a = placeholder((5, 4), "A")
    check(te.compute(shape, formula(a), name="B"), [a])


def test_windows():
    a, w = placeholder((9,), "A"), placeholder((3,), "W")
    k = te.reduce_axis((0, 3), name="k")
    check(te.compute((4,), lambda i: te.sum(a[2 * i + k] * w[k], axis=k), name="B"), [a, w])


def test_reduce_axes_that_do_not_begin_at_zero():
    a = placeholder((9, 4), "A")
    k = te.reduce_axis((2, 7), name="k")
    check(te.compute((4,), lambda i: te.sum(a[k, i] * a[k, i], axis=k), name="B"), [a])


def test_sums_under_a_condition():
    a = placeholder((5, 6), "A")
    k = te.reduce_axis((0, 6), name="k")
    check(te.compute((5,), lambda i: te.sum(te.exp(a[i, k]), axis=k, where=k <= i), name="B"), [a])


def test_the_start_of_a_sum_has_a_derivative():
    a, b = placeholder((5, 6), "A"), placeholder((5,), "B")
    k = te.reduce_axis((0, 6), name="k")
    check(te.compute((5,), lambda i: te.sum(a[i, k], axis=k, init=b[i] * b[i]), name="C"), [a, b])


def test_lets():
    a = placeholder((5,), "A")
    x = tedsl.tir.Var("x", "float64")
    check(te.compute((5,), lambda i: tedsl.tir.Let(x, te.sin(a[i]), x * x + x), name="B"), [a])


def test_casts_convert_the_derivative_back():
    a = placeholder((5,), "A", "float32")
    b = te.compute((5,), lambda i: a[i].astype("float64") * a[i].astype("float64"), name="B")
    head = placeholder((5,), "head")
    derivative, = te.gradient(b, [a], head)
    assert derivative.dtype == "float32"
    found, = compiled([a, head], [derivative])(np.arange(5, dtype="float32"), np.ones(5))
    np.testing.assert_array_equal(found, 2 * np.arange(5, dtype="float32"))


def test_by_way_of_integers_there_is_no_derivative():
    a = placeholder((5,), "A")
    b = te.compute((5,), lambda i: a[i].astype("int32"), name="B")
    c = te.compute((5,), lambda i: b[i].astype("float64") * a[i], name="C")
    head = placeholder((5,), "head")
    values = np.linspace(0.3, 4.3, 5)
    found, = compiled([a, head], te.gradient(c, [a], head))(values, np.ones(5))
    np.testing.assert_array_equal(found, np.trunc(values))


def test_several_outputs_of_an_operation():
    a, b = placeholder((4,), "A"), placeholder((4,), "B")
    c, d = te.compute((4,), lambda i: (te.exp(a[i] * b[i]), te.sin(a[i]) * b[i]), name="C")
    e = te.compute((4,), lambda i: c[i] * d[i], name="E")
    check(e, [a, b])
    check(d, [a, b])


def test_shapes_with_variables():
    n, m = te.var("n"), te.var("m")
    a, b = placeholder((n, m), "A"), placeholder((m,), "B")
    k = te.reduce_axis((0, m), name="k")
    c = te.compute((n,), lambda i: te.sum(a[i, k] * te.exp(b[k]), axis=k), name="C")
    head = placeholder((n,), "head")
    by_a, by_b = te.gradient(c, [a, b], head)
    kernel = tedsl.build(te.create_schedule([by_a.op, by_b.op]), [a, b, head, by_a, by_b])
    rng = np.random.default_rng(0)
    x, y, h = rng.random((5, 3)), rng.random(3), rng.random(5)
    found = np.zeros((5, 3)), np.zeros(3)
    kernel(x, y, h, *found)
    np.testing.assert_allclose(found[0], np.outer(h, np.exp(y)))
    np.testing.assert_allclose(found[1], (x * np.exp(y)).T @ h)


def test_derivatives_of_derivatives():
    a = placeholder((3,), "A")
    b = te.compute((3,), lambda i: te.exp(te.sin(a[i])), name="B")
    order = b
    for _ in range(3):
        order, = te.gradient(order, [a], te.compute((3,), lambda i: te.const(1.0, "float64"), name="ones"))
    x = np.linspace(-1, 1, 3)
    s, c = np.sin(x), np.cos(x)
    np.testing.assert_allclose(compiled([a], [order])(x)[0], np.exp(s) * (c**3 - 3 * s * c - c), rtol=1e-12)


# --- what is refused --------------------------------------------------------------------------------------------------

def test_integers_have_no_derivative():
    a, n = placeholder((3,), "A"), placeholder((3,), "n", "int32")
    b = te.compute((3,), lambda i: a[i] * n[i], name="B")
    with pytest.raises(DTypeError, match="the input n is of dtype int32, and only floats have derivatives"):
        te.gradient(b, [a, n])
    with pytest.raises(DTypeError, match="the output C is of dtype int32"):
        te.gradient(te.compute((3,), lambda i: a[i].astype("int32"), name="C"), [a])


def test_statements_have_no_derivative():
    a = placeholder((3,), "A")

    def body(ins, outs):
        ib = tedsl.tir.ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 3) as i:
            y[i] = x[i] * 2.0
        return ib.get()

    b = te.extern((3,), [a], body, name="mine", tag="doubled")
    with pytest.raises(TedslError, match=r"mine is a te.extern, .* no derivative(.|\n)*register_gradient"):
        te.gradient(b, [a])


def test_hybrid_functions_have_no_derivative():
    @te.hybrid.script
    def doubled(a):
        b = output_tensor((3,), "float64")  # noqa: F821 - known inside of the function
        for i in range(3):
            b[i] = a[i] * 2.0
        return b

    a = placeholder((3,), "A")
    with pytest.raises(TedslError, match=r"doubled is a te.hybrid, whose statements have no derivative"):
        te.gradient(doubled(a), [a])
    with pytest.raises(TedslError, match=r"doubled is a te.hybrid, whose statements have no derivative"):
        te.jvp(doubled(a), [a], [a])


def test_a_rule_of_the_program_comes_first():
    a, b = placeholder((3,), "A"), placeholder((3,), "B")
    straight = te.compute((3,), lambda i: te.round(a[i]) * b[i], name="S", tag="straight_through")
    te.register_gradient("straight_through", lambda op, head, inputs: [
        te.compute(head.shape, lambda *i: head(*i) * b(i[-1]), name="by_a") if t == a else None for t in inputs])
    head, da = placeholder((3,), "head"), placeholder((3,), "dA")
    by_a, by_b = te.gradient(straight, [a, b], head)
    x, y, w = np.array([0.2, 1.7, -3.0]), np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, 7.0])
    found = compiled([a, b, head], [by_a, by_b])(x, y, w)
    assert found[0].tolist() == [1, 10, 21] and found[1].tolist() == [0, 0, 0]
    assert compiled([a, b], te.gradient(straight, [a]))(x, y)[0].tolist() == np.diag(y).tolist()  # heads with more dimensions
    forwards, = compiled([a, b, da], [te.jvp(straight, a, da)])(x, y, w)
    assert forwards.tolist() == [1, 10, 21]


def test_rules_of_records_and_of_operation_classes():
    a = placeholder((3,), "A")
    record = type("Mine", (), {})
    b = te.compute((3,), lambda i: a[i] * 2.0, name="B", info=record())
    te.register_gradient(record, lambda op, head, inputs: {a: head})
    head = placeholder((3,), "head")
    assert compiled([head], te.gradient(b, [a], head))(np.arange(3.0))[0].tolist() == [0, 1, 2]
    with pytest.raises(ArgumentTypeError, match="the kind is 3, not a tag, a record class or an operation class"):
        te.register_gradient(3, lambda op, head, inputs: [])


@pytest.mark.parametrize("returned, problem", [
    (lambda head: [], r"the rule of B returned \[\], not a derivative for each of A"),
    (lambda head: [1.0], "the rule of B gave 1.0 as the derivative by A"),
    (lambda head: [placeholder((4,), "wrong")], "the rule of B gave .*wrong.* as the derivative by A"),
    (lambda head: [placeholder((3,), "wrong", "float32")], "a derivative of float32 by A, which is float64"),
])
def test_what_rules_return_is_checked(returned, problem):
    a = placeholder((3,), "A")
    b = te.compute((3,), lambda i: a[i] * 2.0, name="B", tag="wrong rule")
    te.register_gradient("wrong rule", lambda op, head, inputs: returned(head))
    with pytest.raises(TedslError, match=problem):
        te.gradient(b, [a], placeholder((3,), "head"))


def test_tangents_fit_the_inputs():
    a = placeholder((3,), "A")
    b = te.compute((3,), lambda i: a[i] * 2.0, name="B")
    with pytest.raises(ShapeError, match=r"the input A has shape \[3\] and its tangent t \[4\]"):
        te.jvp(b, [a], [placeholder((4,), "t")])
    with pytest.raises(DTypeError, match="the input A is float64 and its tangent t float32"):
        te.jvp(b, a, placeholder((3,), "t", "float32"))
    with pytest.raises(ArgumentTypeError, match="a tangent for each"):
        te.jvp(b, [a], [])


def test_forwards_over_reverse():
    a, head, da = placeholder((4,), "A"), placeholder((4,), "head"), placeholder((4,), "dA")
    b = te.compute((4,), lambda i: te.exp(a[i]) * a[i], name="B")
    first, = te.gradient(b, [a], head)
    x, w, d = np.linspace(0, 1, 4), np.arange(4.0), np.ones(4)
    found, = compiled([a, head, da], [te.jvp(first, [a], [da])])(x, w, d)
    np.testing.assert_allclose(found, w * np.exp(x) * (x + 2))


def test_an_output_that_does_not_change_has_a_zero_tangent():
    a, b = placeholder((4,), "A"), placeholder((4,), "B")
    c = te.compute((4,), lambda i: a[i] * 2.0, name="C")
    assert compiled([], [te.jvp(c, b, placeholder((4,), "dB"))])()[0].tolist() == [0, 0, 0, 0]


def test_a_head_fits_the_output():
    a = placeholder((3,), "A")
    b = te.compute((3,), lambda i: a[i] * 2.0, name="B")
    with pytest.raises(ShapeError, match=r"the head h has shape \[4\] and the output B \[3\]"):
        te.gradient(b, [a], placeholder((4,), "h"))
    with pytest.raises(DTypeError, match="the head h is float32 and the output B float64"):
        te.gradient(b, [a], placeholder((3,), "h", "float32"))


def test_results_are_tensors_of_their_own():
    a, head = placeholder((3,), "A"), placeholder((3,), "H")
    first, again = te.gradient(a, [a, a], head)
    tangent = te.jvp(a, [a], [head])
    made = compiled([a, head], [first, again, tangent])(np.ones(3), np.arange(3.0))
    assert all(one.tolist() == [0, 1, 2] for one in made)


def test_rules_of_other_arguments_and_of_tensors_that_are_not_read_are_refused():
    te.register_gradient("rule of one argument", lambda op: [])
    te.register_gradient("rule of a foreign tensor", lambda op, head, inputs: {placeholder((3,), "X"): head})
    a, head = placeholder((3,), "A"), placeholder((3,), "H")
    for tag, words in (("rule of one argument", "cannot be called with"), ("rule of a foreign tensor", "B does not read")):
        b = te.compute((3,), lambda i: a[i] * 2.0, name="B", tag=tag)
        with pytest.raises(ArgumentTypeError, match=words):
            te.gradient(b, [a], head)
