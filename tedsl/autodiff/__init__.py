"""Derivatives of tensors: from a graph of operations to the graph of its derivatives."""
