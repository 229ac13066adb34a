"""value_and_grad: a function and its gradients as one kernel."""

import numpy as np

from tedsl.autograd import Function, functional, grad, gradcheck, tensor, value_and_grad
from tedsl.errors import ShapeError
from tests.refusing import refused

RNG = np.random.default_rng(0)


def drawn(*shape):
    return tensor(RNG.standard_normal(shape), "float64")


def loss(weights, x, y):
    hidden = (x @ weights["first"] + weights["bias"]).relu()
    return ((hidden @ weights["second"] - y) ** 2).mean()


def model():
    return {"second": drawn(5, 2), "first": drawn(3, 5), "bias": drawn(5)}


def test_the_value_and_the_gradients_are_those_of_the_recorded_graph():
    weights, x, y = model(), drawn(4, 3), drawn(4, 2)
    value, found = value_and_grad(loss)(weights, x, y)
    for one in weights.values():
        one.requires_grad = True
    expected = loss(weights, x, y)
    np.testing.assert_allclose(value.item(), expected.item())
    assert found.keys() == weights.keys()
    for name, gradient in zip(weights, grad(expected, list(weights.values()))):
        np.testing.assert_allclose(found[name].numpy(), gradient.numpy(), rtol=1e-10, atol=1e-12)


def test_one_kernel_for_all_values():
    calls = []

    def square(x):
        calls.append(x)
        return (x * x).sum()

    step = value_and_grad(square)
    for at in (1.0, 2.0):
        value, by_x = step(tensor([at, 0.0]))
        assert value.item() == at * at and by_x.tolist() == [2 * at, 0]
    step(tensor([1.0, 2.0, 3.0]))
    assert len(calls) == 2


def test_several_arguments():
    value, (by_a, by_b) = value_and_grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(tensor([2.0]), tensor([5.0]))
    assert (value.item(), by_a.tolist(), by_b.tolist()) == (10, [5], [2])


def test_other_results():
    def scored(w, x):
        out = x @ w
        return out.sum(), {"out": out, "same": w}

    w, x = drawn(3), drawn(2, 3)
    (value, others), by_w = value_and_grad(scored, has_aux=True)(w, x)
    np.testing.assert_allclose(others["out"].numpy(), x.numpy() @ w.numpy())
    np.testing.assert_array_equal(others["same"].numpy(), w.numpy())
    np.testing.assert_allclose(by_w.numpy(), x.numpy().sum(axis=0))


def test_tensors_that_are_no_arguments_are_read_by_each_call():
    scale = tensor([3.0])
    step = value_and_grad(lambda x: (x * scale).sum())
    assert step(tensor([1.0]))[0].item() == 3
    scale.numpy()[0] = 5
    assert step(tensor([1.0]))[0].item() == 5


def test_numbers_on_either_side():
    value, by_x = value_and_grad(lambda x: (1.0 / x + 2 - x * 3 + (4 - x) / 2).sum())(tensor([2.0]))
    assert value.item() == 0.5 + 2 - 6 + 1 and by_x.tolist() == [-0.25 - 3 - 0.5]


def test_operators_of_topi():
    images, kernels = drawn(2, 3, 6, 6), drawn(4, 3, 3, 3)

    def pooled(w, x):
        made = functional.conv2d(x, w, 1, 1, 1).relu()
        return functional.pool2d(made, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max").sum()

    _, by_w = value_and_grad(pooled)(kernels, images)
    kernels.requires_grad = True
    expected, = grad(pooled(kernels, images), kernels)
    np.testing.assert_allclose(by_w.numpy(), expected.numpy(), rtol=1e-10)


def test_what_it_refuses():
    x = tensor([1.0, 2.0])
    refused(lambda: value_and_grad(lambda v: v * 2)(x), "shape (2,)", "loss.sum()", error=ShapeError)
    refused(lambda: value_and_grad(lambda v: 3)(x), "returned an int", error=TypeError)
    refused(lambda: value_and_grad(lambda v: v.sum() if v else v)(x), "no values while it is traced", error=TypeError)
    refused(lambda: value_and_grad(lambda v: v.sum().item())(x), "no values while it is traced", error=TypeError)
    refused(lambda: value_and_grad(lambda v, w: w.sum())(tensor([1]), x), "no tensor of floats", error=TypeError)
    refused(lambda: value_and_grad(lambda v: v.sum(), argnums=2)(x), "argnums has 2")
    refused(lambda: value_and_grad(3), "not a function", error=TypeError)

    class Own(Function):
        pass

    refused(lambda: value_and_grad(lambda v: Own.apply(v))(x), "Own has a derivative of its own", "te.register_gradient")


def test_a_traced_tensor_that_is_kept():
    kept = []
    value_and_grad(lambda v: (kept.append(v), v.sum())[1])(tensor([1.0]))
    refused(lambda: kept[0] + tensor([1.0]), "after the function was traced", error=TypeError)


def test_gradcheck_finds_what_is_wrong():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    x = tensor([1.0, 2.0], "float64", requires_grad=True)
    assert gradcheck(lambda v: v * 3, x)
    refused(lambda: gradcheck(Wrong.apply, x), "the gradient by input 0", "2 of 2 elements")
    assert not gradcheck(Wrong.apply, x, raise_exception=False)
    refused(lambda: gradcheck(Wrong.apply, tensor([1.0], requires_grad=True)), "float32", error=TypeError)
    refused(lambda: gradcheck(Wrong.apply, tensor([1.0])), "no input requires a gradient")
    refused(lambda: gradcheck(lambda v: v.detach(), x), "no result depends")
