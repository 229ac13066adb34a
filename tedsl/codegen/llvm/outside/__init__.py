"""Emits calls of functions outside the language: Python functions, C functions, LLVM intrinsics."""
