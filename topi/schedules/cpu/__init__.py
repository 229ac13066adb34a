"""Schedules for processors: parallel outer loops, vectors inside, values that stay in registers and caches."""

from topi.schedules.cpu import conv, injective, matmul, reduce, rows, transforms

__all__ = ["conv", "injective", "matmul", "reduce", "rows", "transforms"]
