"""Calls that leave the language: Python functions, C functions, intrinsics of LLVM."""
