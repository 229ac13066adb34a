"""Calls between functions of one module: `call_extern` passes pointers and numbers to machine code beside it."""
