"""Passes on loops: partition, unroll, vectorize, and hoist loop-invariant conditions."""
