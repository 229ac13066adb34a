"""Statements that become LLVM functions of their own: `environment.py` passes them the variables that they use, `parallel.py`
writes the bodies of parallel loops, `parts.py` long sequences of loops.
"""
