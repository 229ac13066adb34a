"""Schedules for graphics processors: loops bound to blocks and threads, reductions across the threads of a block."""

from topi.schedules.gpu import conv, injective, matmul, pool, reduce, rows, statements, tensor_cores, transforms

__all__ = ["conv", "injective", "matmul", "pool", "reduce", "rows", "statements", "tensor_cores", "transforms"]
