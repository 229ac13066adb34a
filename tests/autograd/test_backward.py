"""backward and grad: what is added where, hooks, modes, and passes that are refused."""

import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import tedsl
import topi
from tedsl import autograd, te
from tedsl.autograd import enable_grad, from_numpy, grad, no_grad, tensor
from tedsl.errors import ArgumentError, DTypeError, ShapeError
from tests.refusing import refused


def leaf(values, dtype="float32"):
    return tensor(values, dtype, requires_grad=True)


def test_gradients_add_up():
    x = leaf([1.0, 2.0])
    for _ in range(3):
        (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [6, 12])


def test_a_tensor_that_is_read_several_times():
    x = leaf(3.0)
    y = x * x
    (y * x + y + x).backward()
    assert x.grad.item() == 3 * 9 + 2 * 3 + 1


def test_broadcasting_sums_the_gradient():
    a, b = leaf(np.ones((3, 1))), leaf(np.ones((2, 1, 4)))
    (a * b).sum().backward()
    assert a.grad.shape == (3, 1) and b.grad.shape == (2, 1, 4)
    np.testing.assert_array_equal(a.grad.numpy(), np.full((3, 1), 8))
    np.testing.assert_array_equal(b.grad.numpy(), np.full((2, 1, 4), 3))


def test_a_gradient_of_the_result():
    x = leaf([1.0, 2.0])
    y = x * 3
    y.backward(tensor([1.0, 10.0]))
    np.testing.assert_array_equal(x.grad.numpy(), [3, 30])


def test_the_gradient_of_a_leaf_is_its_own_array():
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    weights = tensor([1.0, 1.0])
    (x + y).backward(weights)
    x.grad.numpy()[0] = 7
    assert y.grad.numpy()[0] == 1 and weights.numpy()[0] == 1


def test_one_derivative_of_two_inputs():
    te.register_gradient("summed", lambda op, head, inputs: [shared := topi.add(head, head), shared])

    def summed(a, b):
        return te.compute(a.shape, lambda i: a[i] + b[i], name="summed", tag="summed")

    a, b = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    autograd.op(summed)(a, b).sum().backward()
    a.grad.numpy()[0] = 7
    assert b.grad.tolist() == [2, 2]


def test_a_target_of_the_program_is_not_that_of_tensors():
    x = leaf(np.ones(7))
    with tedsl.target.Target("cuda"):
        (x * x + x).tanh().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * (1 - np.tanh(2.0) ** 2) * np.ones(7), rtol=1e-5)


def test_a_leaf_as_the_root():
    x = leaf(2.0)
    x.backward()
    assert x.grad.item() == 1


def test_grad_leaves_grad_alone():
    a, b = leaf(2.0), leaf(3.0)
    by_a, = grad(a * b, a)
    assert by_a.item() == 3 and a.grad is None and b.grad is None


def test_grad_by_a_tensor_in_the_middle():
    x = leaf(2.0)
    y = x * x
    z = y * y
    by_y, by_x = grad(z, [y, x])
    assert by_y.item() == 8 and by_x.item() == 32


def test_several_roots():
    x = leaf(2.0)
    autograd.backward([x * 2, x * x], [None, tensor(10.0)])
    assert x.grad.item() == 2 + 40


def test_other_parts_of_the_graph_do_not_run():
    x, y = leaf(2.0), leaf(3.0)
    seen = []
    part = y * 2
    part.register_hook(lambda g: seen.append(g))
    grad(x * part, x)
    assert not seen


def test_detach_shares_memory_and_ends_the_graph():
    x = leaf([1.0, 2.0])
    y = (x * 2).detach()
    assert not y.requires_grad and y.grad_fn is None
    (x * y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4])
    z = x * 1
    z.detach()[0] = 9
    assert z.tolist() == [9, 2] and z.version == 1


def test_no_grad_and_enable_grad():
    x = leaf(2.0)
    with no_grad():
        assert not (x * 2).requires_grad
        with enable_grad():
            assert (x * 2).requires_grad
        assert not autograd.is_grad_enabled()
    assert (x * 2).requires_grad

    @no_grad()
    def double(value):
        return value * 2

    assert not double(x).requires_grad


def test_modes_are_of_one_thread():
    found = []
    with no_grad():
        thread = threading.Thread(target=lambda: found.append(autograd.is_grad_enabled()))
        thread.start()
        thread.join()
    assert found == [True]


def test_arrays_are_shared():
    array = np.arange(4, dtype="float32")
    x = from_numpy(array)
    assert x.numpy() is array
    array[0] = 5
    assert (x * 2).tolist() == [10, 2, 4, 6]


def test_strided_arrays():
    array = np.arange(12, dtype="float32").reshape(3, 4)
    x = from_numpy(array.T[::2]).requires_grad_()
    y = x * x
    np.testing.assert_array_equal(y.detach().numpy(), array.T[::2] ** 2)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * array.T[::2])


# --- hooks ------------------------------------------------------------------------------------------------------------

def test_a_hook_sees_and_replaces_gradients():
    x = leaf([1.0, 2.0])
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    handle = y.register_hook(lambda g: g * 10)
    y.sum().backward(retain_graph=True)
    assert seen == [[1, 1]] and x.grad.tolist() == [20, 20]
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [22, 22]


def test_a_hook_of_a_leaf_runs_once_the_gradient_is_complete():
    x = leaf(3.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    gc.collect()
    (x * x).backward()
    assert seen == [6]


def test_hooks_of_nodes():
    x = leaf(3.0)
    y = x * x
    seen = []
    y.grad_fn.register_prehook(lambda heads: (heads[0] * 2,))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((len(inputs), outputs[0].item())))
    y.backward()
    assert seen == [(2, 2)] and x.grad.item() == 12


def test_a_gradient_in_the_middle_can_be_kept():
    x = leaf(3.0)
    y = x * x
    y.retain_grad()
    (y * 5).backward()
    assert y.grad.item() == 5


def test_a_hook_that_returns_another_shape_is_refused():
    x = leaf([1.0, 2.0])
    y = x * 2
    y.register_hook(lambda g: tensor(1.0))
    refused(lambda: y.sum().backward(), "the hook of result 0 of MulBackward0", "float32[2]", error=ShapeError)


@pytest.mark.parametrize("returned, words", [
    (5, "returned 5, not a tuple of 1 gradients"), ((), "returned (), not a tuple"), ((3,), "gave int, not a tensor"),
    ((tensor([1.0, 2.0, 3.0]),), "float32[3] for a tensor float32[2]"),
])
def test_hooks_of_nodes_that_return_something_else_are_refused(returned, words):
    for register in ("register_hook", "register_prehook"):
        y = leaf([1.0, 2.0]).exp()
        getattr(y.grad_fn, register)(lambda *_: returned)
        refused(lambda y=y: y.sum().backward(), "hook of ExpBackward0", words)


def test_a_grad_that_the_program_set():
    x, fixed = leaf([1.0, 2.0]), np.ones(2, "float32")
    fixed.flags.writeable = False
    x.grad = from_numpy(fixed)
    x.sum().backward()
    assert x.grad.tolist() == [2, 2] and fixed.tolist() == [1, 1]
    for wrong, words in ((np.ones(2), "was set to an ndarray"), (tensor([1.0]), "was set to a tensor float32[1]")):
        x.grad = wrong
        refused(lambda: x.sum().backward(), "the grad of a tensor float32[2]", words, error=ShapeError)


# --- gradients of gradients -------------------------------------------------------------------------------------------

def test_gradients_of_any_order():
    x = leaf(2.0, "float64")
    y = x**4
    for expected in (32, 48, 48, 24):
        y, = grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(expected)


def test_second_derivatives_pass_through_saved_results():
    x = leaf([0.3, -0.7], "float64")
    first, = grad(x.tanh().sum(), x, create_graph=True)
    second, = grad(first.sum(), x)
    t = np.tanh([0.3, -0.7])
    np.testing.assert_allclose(second.numpy(), -2 * t * (1 - t * t))


def test_backward_can_create_a_graph():
    x = leaf(3.0)
    (x * x * x).backward(create_graph=True)
    assert x.grad.requires_grad
    second, = grad(x.grad, x)
    assert second.item() == 18


# --- changes in place -------------------------------------------------------------------------------------------------

def test_changes_in_place_are_recorded():
    x = leaf([1.0, 2.0])
    y = x * 1
    y += x
    y *= 3
    assert y.version == 2 and y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [6, 6]


def test_elements_set_in_place():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 2
    y[1:] = x[0] * 10
    assert y.tolist() == [2, 10, 10]
    y.sum().backward()
    assert x.grad.tolist() == [22, 0, 0]


def test_backward_after_a_change_in_place_names_both_lines():
    x = leaf([1.0, 2.0])
    y = x.exp()
    y += 1
    error = refused(lambda: y.sum().backward(), "ExpBackward0", "its result", "version 1, saved at version 0")
    assert str(error).count("test_backward.py:") == 2


def test_a_change_of_an_input_is_found():
    x, w = leaf([1.0, 2.0]), tensor([3.0, 4.0])
    y = (x * w).sum()
    w += 1
    refused(lambda: y.backward(), "MulBackward0", "its input 1", "changed in place")


def test_what_is_not_read_may_change():
    x, w = leaf([1.0, 2.0]), tensor([3.0, 4.0])
    y = (x + w).sum()
    w += 1
    y.backward()
    assert x.grad.tolist() == [1, 1]


def test_a_leaf_changed_in_place():
    x = leaf([1.0, 2.0])
    for change in (lambda: x.__iadd__(1), lambda: x.__setitem__(0, 1.0), lambda: x.zero_()):
        refused(change, "leaf that requires a gradient", "no_grad")
    with no_grad():
        x -= 1
    assert x.tolist() == [0, 1] and x.is_leaf and x.version == 1


def test_read_only_arrays():
    array = np.ones(3, "float32")
    array.flags.writeable = False
    x = from_numpy(array)
    assert (x * 2 + x).tolist() == [3, 3, 3]

    def add():
        y = x
        y += 1

    for change in (add, x.zero_, lambda: x.__setitem__(0, 1)):
        refused(change, "read-only", "x.clone()", error=ArgumentError)


def test_lists_of_other_lengths():
    refused(lambda: tensor([[1.0], [1.0, 2.0]]), "not of one length", error=ShapeError)


def test_a_result_that_does_not_fit_in_place():
    x = leaf([1.0, 2.0]) * 1
    refused(lambda: x.__iadd__(tensor(np.ones((3, 2), "float32"))), "does not fit", error=ShapeError)


# --- refused ----------------------------------------------------------------------------------------------------------

def test_backward_of_many_elements_without_a_gradient():
    y = leaf([1.0, 2.0]) * 2
    refused(y.backward, "shape (2,)", "y.sum().backward()", error=ShapeError)


def test_a_second_backward():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    refused(y.backward, "MulBackward0", "ran before", "retain_graph=True", "test_backward.py:")


def test_integers():
    refused(lambda: tensor([1, 2], requires_grad=True), "int64", "only floats", error=DTypeError)
    refused(lambda: leaf([1.0, 3.0]).argmax(axis=0).backward(), "only floats have gradients", error=DTypeError)


def test_a_tensor_outside_of_the_graph():
    refused(lambda: (tensor([1.0]) * 2).sum().backward(), "requires no gradient")
    refused(lambda: grad(leaf(1.0) * 2, tensor(1.0)), "input 0 requires no gradient")


def test_an_input_that_is_not_reached():
    x, y = leaf(1.0), leaf(2.0)
    refused(lambda: grad(x * 2, [x, y]), "do not depend on input 1", "allow_unused")
    assert grad(x * 2, [x, y], allow_unused=True)[1] is None


def test_gradients_that_do_not_fit():
    y = leaf([1.0, 2.0]) * 2
    refused(lambda: y.backward(tensor([1.0])), "float32[1]", "float32[2]", error=ShapeError)
    refused(lambda: autograd.backward([y, y], [None]), "2 tensors and 1 gradients", error=ArgumentError)


def test_numpy_of_a_tensor_in_the_graph():
    refused(lambda: leaf([1.0]).numpy(), "x.detach().numpy()")


def test_requires_grad_of_a_result():
    def take_out():
        y = leaf(1.0) * 2
        y.requires_grad = False

    refused(take_out, "MulBackward0", "detach")


def test_operands_of_no_kind():
    refused(lambda: leaf(1.0) + "1", "str", "operand", error=TypeError)
    refused(lambda: autograd.op(topi.nn.relu)(3.0), "no argument is a tensor")
    refused(lambda: autograd.op(lambda x: 3)(leaf(1.0)), "returned an int", error=TypeError)
    refused(lambda: autograd.backward(3), "not int", error=TypeError)


def test_operations_without_a_derivative():
    def tripled(ins, outs):
        builder = tedsl.tir.ir_builder.create()
        source, target = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        target[0] = source[0] * 3.0
        return builder.get()

    y = autograd.op(lambda x: te.extern(x.shape, [x], tripled, dtype=x.dtype, name="tripled"))(leaf([1.0]))
    assert y.tolist() == [3]
    refused(lambda: y.sum().backward(), "tripled", "no derivative", "te.register_gradient")


# --- size, memory, threads --------------------------------------------------------------------------------------------

def test_a_chain_of_20_000_operations():
    x = leaf([1.0])
    y = x
    for _ in range(20_000):
        y = y + x
    y.backward()
    assert x.grad.tolist() == [20_001]
    del y  # the graph is freed without recursion


def test_what_is_saved_is_freed_as_the_pass_goes():
    x = leaf(np.ones(1000))
    y, arrays, alive = x, [], []
    for _ in range(20):
        y = y.exp().tanh()
        arrays.append(weakref.ref(y._array))
        y.register_hook(lambda g: alive.append(sum(ref() is not None for ref in arrays)))
    y = y.sum()
    y.backward()
    assert alive == sorted(alive, reverse=True) and alive[-1] <= 2
    assert not any(ref() is not None for ref in arrays)


def test_the_memory_of_a_pass():
    x = leaf(np.ones(1 << 17))
    y = x
    for _ in range(2):  # compiled beforehand
        y = y.tanh()
    y.sum().backward()
    tracemalloc.start()
    try:
        y = x
        for _ in range(10):
            y = y.tanh()
        y = y.sum()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        y.backward()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert before > 10 * x._array.nbytes, "each result is kept"
    assert peak - before < 2.1 * x._array.nbytes, "the gradient that comes in and the one that goes out"


def test_graphs_are_freed_without_the_collector():
    gc.disable()
    try:
        x = leaf([1.0])
        node = weakref.ref((x.exp() * 2).grad_fn)
        y = x.sigmoid() * 2
        inner = weakref.ref(y.grad_fn)
        y.sum().backward()
        del y
        assert node() is None and inner() is None
    finally:
        gc.enable()


def test_threads_add_to_one_leaf():
    x = leaf(np.ones(64))

    def work():
        for _ in range(20):
            (x * x).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(64, 2.0 * 20 * 8))


def test_threads_pass_one_graph():
    x = leaf(np.ones(64))
    y = (x * x).tanh().sum()
    threads = [threading.Thread(target=lambda: y.backward(retain_graph=True)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(x.grad.numpy(), 8 * 2 * (1 - np.tanh(1.0) ** 2) * np.ones(64), rtol=1e-5)
