"""Turns flat loops into machine code: `backend.py` has the protocol of backends, `llvm/` the backend for CPUs, `c/` that which
writes C. For both: `kernels/` the versions of a function and their calling convention, `formulas/` mathematical functions,
`calls/` calls between functions of one module. `device.py` has the protocol of backends for devices: `nvptx/` writes PTX, `c/`
OpenCL C.
"""
