"""The cache on disk: compiled code that a later process takes instead of compiling.

    place      the folder and its limit, from the environment
    store      entries: written atomically, checked when read, dropped by last use
    versions   what compiled code depends on beside the program: the source of tedsl, LLVM, the layout of arrays
"""
