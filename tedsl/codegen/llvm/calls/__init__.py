"""Calls between functions of one module: `call_extern` passes pointers and numbers, `call_packed` arrays that are checked."""
