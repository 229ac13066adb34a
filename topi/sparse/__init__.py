"""Sparse matrices as tensors: products with dense ones, and what rearranges them. Most names are in `topi.nn` and `topi`."""

from tedsl.errors import entries
from topi.sparse.products import csrmm, csrmv, dense

__all__ = ["csrmm", "csrmv", "dense"]

entries(globals())
