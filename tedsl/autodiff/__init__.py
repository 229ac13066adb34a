"""Derivatives of tensors: from a graph of operations to the graph of its derivatives.

`zeros/` leaves out of sums what is zero.
"""
