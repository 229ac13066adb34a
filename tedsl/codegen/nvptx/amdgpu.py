"""Kernels for AMD's devices: the IR of those for NVIDIA's under other names, compiled by LLVM to an object.

They are only compiled: there is no driver that runs them. Threads meet in shared memory, not by shuffles.

    llvm.nvvm.read.ptx.sreg.tid.x      llvm.amdgcn.workitem.id.x
    llvm.nvvm.read.ptx.sreg.ctaid.x    llvm.amdgcn.workgroup.id.x
    llvm.nvvm.barrier0                 llvm.amdgcn.s.barrier between a release and an acquire
    alloca T                           alloca T, addrspace(5)
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tedsl.codegen.llvm.machine import assembly, object_code, optimize, parsed
from tedsl.codegen.nvptx.backend import code_of_kernels
from tedsl.errors import ArgumentError, LoweringError
from tedsl.ir.func import PrimFunc
from tedsl.passes.config import PassConfig
from tedsl.runtime.devices.code import DeviceCode
from tedsl.target.target import Target

ALLOCA = re.compile(r"^( *)(%\S+) = alloca (.*?), align (\d+)(.*)$", re.MULTILINE)
BARRIER = re.compile(r"^( *)call void @llvm\.nvvm\.barrier0\(\)(.*)$", re.MULTILINE)
_DEVICE = re.compile(r"gfx[0-9a-f]{3,4}")
_NAMES = (("define ptx_kernel ", "define amdgpu_kernel "), ("llvm.nvvm.read.ptx.sreg.tid.", "llvm.amdgcn.workitem.id."),
          ("llvm.nvvm.read.ptx.sreg.ctaid.", "llvm.amdgcn.workgroup.id."), ("llvm.nvvm.barrier0", "llvm.amdgcn.s.barrier"))
_NVIDIA = re.compile(r"@(llvm\.nvvm\.[A-Za-z0-9_.]+)")


class AMDGPUBackend:
    """The backend of device code for targets of kind `rocm`."""

    def compile_kernels(self, kernels: Sequence[PrimFunc], target: Target, config: PassConfig) -> DeviceCode:
        """Compiles `kernels`, after the passes on kernels, to AMDGPU assembly and an object."""
        if not _DEVICE.fullmatch(target.cpu):
            raise ArgumentError(f"there is no device {target.cpu!r} of AMD's", hint="-mcpu is a name as gfx906 or gfx90a")

        def compiled(text: str) -> tuple[str, bytes]:
            module = optimize(renamed(text), target, vectorize=True)
            ir = str(module)
            return assembly(module, target), object_code(parsed(ir), target)  # LLVM changes what it compiles

        return code_of_kernels(kernels, target, "gcn", compiled)


def renamed(text: str) -> str:
    """Returns the IR of kernels with the names of AMD's devices; LoweringError if it uses what only NVIDIA's have."""
    text = BARRIER.sub(r'\1fence syncscope("workgroup") release\n\1call void @llvm.nvvm.barrier0()\2\n'
                       r'\1fence syncscope("workgroup") acquire', text)
    text = ALLOCA.sub(r"\1\2.private = alloca \3, align \4, addrspace(5)\5\n"
                      r"\1\2 = addrspacecast ptr addrspace(5) \2.private to ptr\5", text)
    for theirs, ours in _NAMES:
        text = text.replace(theirs, ours)
    refuse_others(text)
    return text


def refuse_others(text: str) -> None:
    """Refuses IR that uses what only NVIDIA's devices have."""
    left = _NVIDIA.search(text)
    if left:
        raise LoweringError(f"the kernels use {left.group(1)}, which only NVIDIA's devices have",
                            hint='leave out what needs it for this target, or build for "cuda"')
