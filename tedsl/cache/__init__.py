"""The cache on disk: compiled code that a later process takes instead of compiling, and what it knows of this machine.

    place   the folder and its limit, from the environment
    store   entries: written atomically, checked when read, dropped by last use
    carried entries that files carry to processes without a cache
    flat    the bytes of an entry
    workers all cores compile, in processes that leave what they made in the cache
"""
