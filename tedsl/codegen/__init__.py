"""Turns flat loops into machine code: `backend.py` has the protocol of backends, `llvm/` the backend for CPUs, `c/` that which
writes C, `formulas/` mathematical functions for both, `calls/` what all backends ask of calls between functions of one module.
"""
