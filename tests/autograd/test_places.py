"""Reads at places that are data: as numpy's, and refused where there is no such place."""

import numpy as np
import pytest

from tedsl import autograd, nn
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError

TABLE = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("index", [np.array([0, 2]), np.array([-1, 0, -4]), np.array([[1, 1], [3, -2]]), np.array([], "int32")],
                         ids=str)
def test_rows_are_those_of_numpy(index):
    x = autograd.tensor(TABLE, requires_grad=True)
    for given in (index, autograd.from_numpy(index)):
        x.grad = None
        rows = x[given]
        np.testing.assert_array_equal(rows.detach().numpy(), TABLE[index])
        rows.sum().backward()
        counts = np.zeros_like(TABLE)
        np.add.at(counts, index, 1)
        np.testing.assert_array_equal(x.grad.numpy(), counts)


@pytest.mark.parametrize("index", [[4], [-5], [0, 10**6]])
def test_rows_that_are_not_there_are_refused(index):
    with pytest.raises(ShapeError, match=f"the index holds {index[-1]}; places are from -4 to 3"):
        autograd.tensor(TABLE)[np.array(index)]


def test_an_index_of_other_kinds_is_refused():
    with pytest.raises(DTypeError, match=r"a mask of bool(.|\n)*flatnonzero"):
        autograd.tensor(TABLE)[np.array([True, False, True, True])]
    with pytest.raises(ShapeError, match="without dimensions has no rows"):
        autograd.tensor(1.0)[np.array([0])]


def test_nothing_is_no_operand_and_equals_no_tensor():
    x = autograd.tensor([1.0])
    nothing = None
    assert (x == nothing) is False and (x != nothing) is True
    with pytest.raises(ArgumentTypeError, match="a NoneType is no operand"):
        x + None


@pytest.mark.parametrize("call, kind, sentence", [
    (lambda: nn.CrossEntropyLoss()(autograd.ones(2, 3), autograd.tensor([0, 3])), ShapeError, "the target holds 3; places"),
    (lambda: nn.CrossEntropyLoss()(autograd.ones(2, 3), autograd.tensor([0, -1])), ShapeError, "the target holds -1"),
    (lambda: nn.Embedding(3, 2)(autograd.tensor([-1])), ShapeError, "embedding: the index holds -1"),
    (lambda: nn.ReLU()(None), ArgumentTypeError, "relu: a NoneType is not a tensor"),
    (lambda: nn.Linear("3", 2), ArgumentError, "Linear: in_features is '3', not a number from 1"),
    (lambda: nn.Conv2d(1, -2, 3), ArgumentError, "Conv2d: out_channels is -2"),
])
def test_layers_refuse_what_they_cannot_look_up_or_be(call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call()
