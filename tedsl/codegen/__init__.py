"""Loops become machine code: `backend.py` says what a backend does, `llvm/` is the one for processors."""
