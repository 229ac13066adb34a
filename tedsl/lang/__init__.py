"""The language: tensors, the operations that define them, and the graph that they form.

scan/ holds recurrences (te.scan), hybrid/ scripts (te.hybrid), intrinsics/ tensor intrinsics and computes that call them,
zeros/ where formulas are zero.
"""
