"""CUDA through the library of its driver: `library` the functions, `driver` behind the protocol of devices, `program` what it
runs.
"""
