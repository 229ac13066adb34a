"""Operators of neural networks."""

from topi.nn.bias_add import bias_add
from topi.nn.dense import batch_matmul, dense, matmul
from topi.nn.elementwise import leaky_relu, prelu, relu
from topi.nn.layer_norm import layer_norm
from topi.nn.pad import pad
from topi.nn.softmax import fast_softmax, log_softmax, softmax

__all__ = ["leaky_relu", "pad", "relu"]
__all__ += ["batch_matmul", "bias_add", "dense", "fast_softmax", "layer_norm", "log_softmax", "matmul", "softmax"]
__all__ += ["prelu"]
