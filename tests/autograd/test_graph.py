"""The recorded graph: its nodes and edges, what a tensor says of itself, and how the graph is shown."""

import subprocess
import sys

import numpy as np

import tedsl
import topi
from tedsl import autograd
from tedsl.autograd import AccumulateGrad, tensor


def leaf(values, dtype="float32"):
    return tensor(values, dtype, requires_grad=True)


def article():
    a, b = leaf(2.0), leaf(6.0)
    return a, b, 3 * a**3 - b**2


def test_the_graph_of_3_a3_minus_b2_edge_by_edge():
    a, b, q = article()
    assert q.item() == -12
    assert q.grad_fn.name() == "SubBackward0"
    (product, first), (square, second) = q.grad_fn.next_functions
    assert (product.name(), first, square.name(), second) == ("MulBackward0", 0, "PowBackward0", 0)
    (cube, number), constant = product.next_functions
    assert (cube.name(), number, constant) == ("PowBackward0", 0, (None, 0))
    (of_a, _), = cube.next_functions
    (of_b, _), = square.next_functions
    assert isinstance(of_a, AccumulateGrad) and of_a.variable is a and of_a.next_functions == ()
    assert isinstance(of_b, AccumulateGrad) and of_b.variable is b


def test_the_gradients_of_3_a3_minus_b2():
    a, b, q = article()
    q.backward()
    assert a.grad.item() == 36 and b.grad.item() == -12


def test_what_a_tensor_says():
    a, b, q = article()
    assert (a.is_leaf, a.requires_grad, a.grad_fn, a.output_nr, a.grad) == (True, True, None, 0, None)
    assert (q.is_leaf, q.requires_grad, q.output_nr) == (False, True, 0)
    assert q.shape == () and q.dtype == "float32" and q.device == tedsl.cpu()
    constant = tensor([1, 2]) * 2
    assert constant.grad_fn is None and constant.is_leaf and not constant.requires_grad


def test_one_accumulator_for_each_leaf():
    a = leaf([1.0, 2.0])
    y = a * a
    (one, _), (other, _) = y.grad_fn.next_functions
    assert one is other


def test_results_have_numbers():
    x = leaf(np.arange(6.0).reshape(2, 3))
    first, second, third = autograd.op(topi.split)(x, 3, axis=1)
    assert first.grad_fn is third.grad_fn and [part.output_nr for part in (first, second, third)] == [0, 1, 2]
    (first * 2 + third).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 0, 1], [2, 0, 1]])


def test_integers_have_no_place_in_the_graph():
    values, places = autograd.op(lambda x: [topi.sort(x), topi.argmax(x)])(leaf([3.0, 1.0, 2.0]))
    assert values.requires_grad and not places.requires_grad and places.is_leaf


def test_programs_that_do_not_ask_do_not_load_it():
    code = "import tedsl, sys; print([name for name in sys.modules if name.startswith('tedsl.autograd')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_graph_prints_a_line_for_each_node():
    _, _, q = article()
    lines = str(q.grad_fn.graph()).splitlines()
    assert lines[0].split()[:2] == ["#0", "SubBackward0"] and "test_graph.py:" in lines[0]
    assert sum("AccumulateGrad  float32[]" in line for line in lines) == 2
    assert "(None, 0)" in "\n".join(lines)


def test_a_notebook_draws_the_graph():
    _, _, q = article()
    html = q.grad_fn._repr_html_()
    assert "<svg" in html and "MulBackward0" in html and "float32[]" in html


def test_a_long_graph_is_cut():
    x = leaf(1.0)
    for _ in range(300):
        x = x * 2
    assert str(x.grad_fn.graph()).splitlines()[-1] == "... and 101 more"


def test_nodes_know_their_line():
    x = leaf(1.0) * 2
    assert x.grad_fn.line.short.startswith("test_graph.py:")


def test_tensors_show_their_node():
    assert repr(leaf(1.0) * 2) == "tensor(2., grad_fn=<MulBackward0>)"
    assert repr(leaf([1.0])) == "tensor([1.], requires_grad=True)"
    assert repr(tensor([1.0], "float64")) == 'tensor([1.], dtype="float64")'
