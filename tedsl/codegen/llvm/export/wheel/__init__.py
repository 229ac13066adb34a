"""Wheels of kernels that need no tedsl: `module.export_library("kernels-1.0.whl")`.

    extension   the extension module in LLVM IR: entry points for Python, within the stable ABI of CPython 3.11
    calls       copied into every wheel: calls that the entry points do not take, and the choice of a processor level
    package     the Python files of a wheel: module, type stubs, metadata
    archive     the file itself, with a tag that is true
"""
