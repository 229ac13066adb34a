"""Kernels of devices in the C family: OpenCL C and CUDA C.

`language` is what the languages say in their own words, `kernel` writes one kernel, `memory` the memory in it and the places
where threads meet, `module` the file.
"""
