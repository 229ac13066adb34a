"""Schedules for graphics processors: loops bound to blocks and threads, reductions across the threads of a block."""

from topi.schedules.gpu import conv, injective, matmul, reduce, rows, tensor_cores

__all__ = ["conv", "injective", "matmul", "reduce", "rows", "tensor_cores"]
