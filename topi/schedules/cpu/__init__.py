"""Schedules for processors: parallel outer loops, vectors inside, values that stay in registers and caches.

conv/ holds those of convolutions, elements/ element-wise ones and changes of place.
"""

from topi.schedules.cpu import conv, elements, matmul, pool, reduce, rows, transforms, windows

__all__ = ["conv", "elements", "matmul", "pool", "reduce", "rows", "transforms", "windows"]
