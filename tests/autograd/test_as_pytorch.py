"""What programs written for PyTorch do: it works, or is refused with the name here."""

import numpy as np
import pytest

from tedsl import autograd, optim
from tedsl.autograd import gradcheck, is_grad_enabled, no_grad, set_grad_enabled, tensor, value_and_grad
from tedsl.errors import ArgumentTypeError, OptionError, ShapeError


def leaf(values, dtype="float32"):
    return tensor(values, dtype, requires_grad=True)


def test_recording_can_be_set_without_a_context():
    set_grad_enabled(False)
    try:
        assert not (leaf([1.0]) * 2).requires_grad
        with set_grad_enabled(True):
            assert is_grad_enabled()
        assert not is_grad_enabled()
    finally:
        set_grad_enabled(True)
    with set_grad_enabled(False):
        assert not is_grad_enabled()

    @set_grad_enabled(False)
    def inside():
        return is_grad_enabled()

    assert is_grad_enabled() and not inside() and is_grad_enabled()


def test_generators_are_not_decorated():
    with pytest.raises(ArgumentTypeError, match="generators, which run later"):
        @no_grad()
        def numbers():
            yield 1


def test_tensors_of_one_element_are_written_as_numbers():
    assert f"{leaf(3.14159):.2f} {leaf([2.0])}" == "3.14 tensor([2.], requires_grad=True)"
    assert [1, 2, 3][tensor(1)] == 2 and list(range(tensor(2))) == [0, 1]
    with pytest.raises(ArgumentTypeError, match="no index"):
        [1, 2][tensor(1.0)]
    assert not tensor(0) and leaf([2.0])
    with pytest.raises(ShapeError, match="neither true nor false"):
        bool(leaf([1.0, 2.0]))


@pytest.mark.parametrize("name, instead", [("view", "reshape"), ("unsqueeze", "expand_dims"), ("permute", "transpose"),
                                           ("float", "astype"), ("sofmax", "softmax")])
def test_names_of_pytorch_say_what_to_write(name, instead):
    with pytest.raises(OptionError, match=instead):
        getattr(leaf([1.0]), name)
    assert not hasattr(leaf([1.0]), "__array_interface__")


@pytest.mark.parametrize("call, words", [
    (lambda x: (x * 2).backward("a"), "the gradient is a str"),
    (lambda x: autograd.zeros(2.5), "extents are integers"),
    (lambda x: gradcheck(lambda x: 3, [leaf([1.0], "float64")]), "returned an int"),
    (lambda x: value_and_grad(lambda x: x.sum())(np.ones(2)), "from_numpy"),
    (lambda x: optim.MultiStepLR(optim.SGD([x]), ["a"]), "milestones"),
])
def test_what_is_refused(call, words):
    with pytest.raises(ArgumentTypeError, match=words):
        call(leaf([1.0, 2.0]))
