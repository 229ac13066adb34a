"""Operators that move, join, cut and repeat elements without changing their values."""

from topi.transform.dims import expand_dims, expand_like, reshape, squeeze, transpose
from topi.transform.join import concatenate, split, stack
from topi.transform.layout import layout_transform
from topi.transform.repeat import repeat, tile
from topi.transform.reverse import flip, reverse_sequence
from topi.transform.slices import sliding_window as sliding_window  # its gradient is that of any formula, so not in __all__
from topi.transform.slices import strided_set, strided_slice

__all__ = ["concatenate", "expand_dims", "expand_like", "flip", "layout_transform", "repeat", "reshape",
           "reverse_sequence", "split", "squeeze", "stack", "strided_set", "strided_slice", "tile", "transpose"]
