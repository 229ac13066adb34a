"""Entry points of kernels in LLVM IR: functions that check the arguments of a call and run the version of the kernel that fits.

`checks.py` writes the checks as instructions, for any kind of caller; `numpy_arrays.py` the entry point for Python, which reads
numpy arrays; `shared.py` those that many kernels share; `disjoint.py` compares the bounds of many arrays.
"""

from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.codegen.llvm.entry.disjoint import disjoint_source
from tedsl.codegen.llvm.entry.numpy_arrays import declarations, entry_source
from tedsl.codegen.llvm.entry.symbol import call_source, slots_source, with_call

__all__ = ["KernelSymbol", "call_source", "declarations", "disjoint_source", "entry_source", "slots_source", "with_call"]
