"""Kernels as files that need nothing of tedsl: shared libraries, objects, C headers.

    library     one object of kernels, entry points for C, thread pool and temporary memory
    c_entry     the entry points for C: checks with messages, and raw ones
    tensors     how they read DLPack's tensors
    pool        the thread pool of a library
    header      the C header
    link        objects to shared libraries, by the linker that is there
    trailer     what a shared library says about itself, and the CRC that tells when it is damaged
    wheel/      Python packages that need no tedsl
    write, load the formats of `Module.export_library`, and shared libraries as modules
"""
