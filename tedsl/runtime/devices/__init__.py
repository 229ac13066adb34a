"""Devices beside the processor: the protocol of their drivers (`api.py`), the code that they load (`code.py`), and the table in
which they are found by the name of their kind (`table.py`). `cuda/` is the driver of CUDA, `opencl/` that of
OpenCL.
"""
