"""Turns flat loops into machine code: `backend.py` has the protocol of backends, `llvm/` the backend for CPUs."""
