"""Schedules for processors: parallel outer loops, vectors inside, values that stay in registers and caches.

conv/ holds those of convolutions.
"""

from topi.schedules.cpu import conv, injective, matmul, pool, reduce, rows, transforms, windows

__all__ = ["conv", "injective", "matmul", "pool", "reduce", "rows", "transforms", "windows"]
