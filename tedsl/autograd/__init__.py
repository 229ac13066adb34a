"""A recorded graph: tensors with values, whose operations are remembered so that gradients can be computed.

    x = autograd.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    x.grad                                   # tensor([2., 4.])
    print(y.grad_fn.graph())                 # the graph, in a notebook a picture

functional.py: operators by their names in topi. step.py: `value_and_grad`, a function and its gradients as one kernel.

tensor.py: Tensor. operators.py: its operators. operation.py: operators of any function of te or topi (`op`). node.py,
recording.py, function.py: the nodes. engine.py, differentiate.py: the pass back. formula.py: formulas, their derivatives,
their kernels.
"""

from tedsl.autograd import functional
from tedsl.autograd.check import gradcheck, gradgradcheck
from tedsl.autograd.differentiate import backward, grad
from tedsl.autograd.function import Function
from tedsl.autograd.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from tedsl.autograd.node import AccumulateGrad, Node
from tedsl.autograd.operation import op
from tedsl.autograd.step import value_and_grad
from tedsl.autograd.tensor import Tensor, from_numpy, ones, tensor, zeros
from tedsl.errors import entries

__all__ = ["AccumulateGrad", "Function", "Node", "Tensor", "backward", "enable_grad", "from_numpy", "functional", "grad",
           "gradcheck", "gradgradcheck", "is_grad_enabled", "no_grad", "ones", "op", "set_grad_enabled", "tensor",
           "value_and_grad", "zeros"]

entries(globals())
