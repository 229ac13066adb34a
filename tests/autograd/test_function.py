"""Functions with a derivative of the program's own."""

import numpy as np
import pytest

from tedsl.autograd import Function, grad, no_grad, tensor
from tedsl.errors import ArgumentError, ShapeError
from tests.refusing import refused


def leaf(values, dtype="float64"):
    return tensor(values, dtype, requires_grad=True)


class Cube(Function):
    """x^3 * k."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        ctx.save_for_backward(x)
        return x * x * x * k

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return gradient * 3 * ctx.k * x * x, None


class Exp(Function):
    """Keeps its result."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        y, = ctx.saved_tensors
        return gradient * y


def test_a_function_and_its_node():
    x = leaf([1.0, 2.0])
    y = Cube.apply(x, 2.0)
    assert y.grad_fn.name() == "CubeBackward" and y.grad_fn.needs_input_grad == (True, False)
    assert y.grad_fn.next_functions[1] == (None, 0) and y.grad_fn.next_functions[0][0].variable is x
    y.sum().backward()
    assert x.grad.tolist() == [6, 24]


def test_functions_can_be_differentiated_again():
    x = leaf([1.0, 2.0])
    first, = grad(Cube.apply(x, 1.0).sum(), x, create_graph=True)
    second, = grad(first.sum(), x)
    assert second.tolist() == [6, 12]


def test_a_saved_result_leads_back_through_the_node():
    x = leaf([0.5])
    first, = grad(Exp.apply(x).sum(), x, create_graph=True)
    second, = grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), np.exp([0.5]))


def test_nothing_is_recorded_without_need():
    assert Cube.apply(tensor([1.0]), 1.0).grad_fn is None
    with no_grad():
        assert Cube.apply(leaf([1.0]), 1.0).grad_fn is None


def test_several_results():
    class Split(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            return first * 2 + second * 3

    x = leaf([1.0, 1.0])
    twice, thrice = Split.apply(x)
    assert (twice.output_nr, thrice.output_nr) == (0, 1)
    thrice.sum().backward()  # the gradient of the other result is zeros
    assert x.grad.tolist() == [3, 3]


def test_gradients_may_come_as_none():
    class Split(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            assert first is None
            return second * 3

    x = leaf([1.0])
    Split.apply(x)[1].sum().backward()
    assert x.grad.tolist() == [3]


def test_changed_in_place():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x *= 2
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    x = leaf([1.0, 2.0])
    y = x * 1
    z = Double.apply(y)
    assert z is y and z.tolist() == [2, 4] and z.version > 0 and z.grad_fn.name() == "DoubleBackward"
    z.sum().backward()
    assert x.grad.tolist() == [2, 2]
    refused(lambda: Double.apply(leaf([1.0])), "leaf")


def test_results_without_a_gradient():
    class Largest(Function):
        @staticmethod
        def forward(ctx, x):
            whole = x * 1
            part = x * 0
            ctx.mark_non_differentiable(part)
            return whole, part

        @staticmethod
        def backward(ctx, whole, part):
            return whole

    whole, part = Largest.apply(leaf([1.0]))
    assert whole.requires_grad and not part.requires_grad


def test_an_argument_as_the_result():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 5

    x = leaf([1.0])
    y = Same.apply(x)
    assert y is not x and x.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [5]


@pytest.mark.parametrize("returned, words", [
    (lambda g: (g, g, g), ["returned 3 gradients", "took 2 arguments"]),
    (lambda g: g, ["returned 1 gradient,", "took 2 arguments"]),
])
def test_a_wrong_number_of_gradients(returned, words):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, gradient):
            return returned(gradient)

    y = Wrong.apply(leaf([1.0]), leaf([2.0]))
    refused(lambda: y.sum().backward(), "the backward of Wrong", *words, error=ArgumentError)


def test_gradients_of_a_wrong_shape_or_type():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, value):
            ctx.value = value
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return ctx.value, None

    refused(lambda: Wrong.apply(leaf([1.0]), tensor([1.0, 2.0])).sum().backward(), "float32[2]", "float64[1]", error=ShapeError)
    refused(lambda: Wrong.apply(leaf([1.0]), 3).sum().backward(), "an int for argument 0", error=TypeError)


def test_what_is_saved_must_be_tensors():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)
            return x

    refused(lambda: Wrong.apply(leaf([1.0])), "save_for_backward", "ctx.axis = axis", error=TypeError)


def test_forward_must_return_tensors():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return 3

    refused(lambda: Wrong.apply(leaf([1.0])), "Wrong: forward returned an int", error=TypeError)


def test_methods_that_are_not_written():
    class Empty(Function):
        pass

    class Forward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    refused(lambda: Empty.apply(leaf([1.0])), "forward is not written")
    refused(lambda: Forward.apply(leaf([1.0])).sum().backward(), "Forward: backward is not written")


def test_a_second_backward_and_a_change_in_place():
    x = leaf([1.0])
    y = Cube.apply(x, 1.0).sum()
    y.backward()
    refused(y.backward, "retain_graph=True")
    z = x * 1
    w = Cube.apply(z, 1.0).sum()
    z += 1
    error = refused(lambda: w.backward(), "CubeBackward", "changed in place")
    assert str(error).count("test_function.py:") == 2


def test_a_function_is_not_called_and_has_no_objects():
    refused(lambda: Cube(leaf([1.0]), 2.0), "Cube.apply(x)", error=TypeError)


def test_methods_that_take_other_arguments():
    class Short(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx):
            return None

    class Unnamed(Short):
        forward = staticmethod(lambda x: x)

    refused(lambda: Unnamed.apply(leaf([1.0])), "forward of Unnamed", "def forward(ctx", error=TypeError)
    refused(lambda: Short.apply(leaf([1.0]), 2), "forward of Short", "3 arguments", error=TypeError)
    refused(lambda: Short.apply(leaf([1.0])).sum().backward(), "backward of Short", "def backward(ctx", error=TypeError)


def test_a_mistake_inside_of_a_method_is_the_programs_own():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum() + len(3)

    with pytest.raises(TypeError, match="has no len"):
        Wrong.apply(leaf([1.0]))


def test_what_is_marked_must_be_tensors():
    class Marked(Function):
        @staticmethod
        def forward(ctx, x, method):
            getattr(ctx, method)(3)
            return x * 1

    for method in ("mark_dirty", "mark_non_differentiable", "save_for_backward"):
        refused(lambda method=method: Marked.apply(leaf([1.0]), method), f"{method} takes tensors, not an int", error=TypeError)
