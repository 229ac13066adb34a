"""Pooling."""

from topi.nn.pool.adaptive import adaptive_pool, adaptive_pool1d, adaptive_pool3d, global_pool
from topi.nn.pool.grad import pool_grad
from topi.nn.pool.windows import pool, pool1d, pool2d, pool3d

__all__ = ["adaptive_pool", "adaptive_pool1d", "adaptive_pool3d", "global_pool", "pool", "pool1d", "pool2d", "pool3d",
           "pool_grad"]
