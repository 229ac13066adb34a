"""LLVM: loops become IR text, the text becomes machine code."""
