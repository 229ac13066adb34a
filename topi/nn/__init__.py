"""Operators of neural networks."""

from topi.nn.elementwise import leaky_relu, relu
from topi.nn.pad import pad

__all__ = ["leaky_relu", "pad", "relu"]
