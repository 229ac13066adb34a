"""Operators that read, write or choose elements at positions and by conditions that other tensors hold."""

from topi.indexing.mask import matrix_set_diag, one_hot, sequence_mask, trilu, where
from topi.indexing.positions import argwhere, invert_permutation, unravel_index
from topi.indexing.put import index_put, slice_scatter
from topi.indexing.scatter import scatter, scatter_add, scatter_elements, scatter_nd, sparse_to_dense
from topi.indexing.take import adv_index, gather, gather_nd, take

__all__ = ["adv_index", "argwhere", "gather", "gather_nd", "index_put", "invert_permutation", "matrix_set_diag", "one_hot",
           "scatter", "scatter_add", "scatter_elements", "scatter_nd", "sequence_mask", "slice_scatter", "sparse_to_dense",
           "take", "trilu", "unravel_index", "where"]
