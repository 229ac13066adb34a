"""Kernels as SPIR-V of OpenCL 2.2: the IR of those for NVIDIA's devices under other names, compiled by LLVM.

They are only compiled: there is no driver that runs them. A pointer without a space is one to private memory in SPIR-V: here
it is generic, space 4; parameters point to space 1.

    llvm.nvvm.read.ptx.sreg.tid.x      get_local_id(0)
    llvm.nvvm.read.ptx.sreg.ctaid.x    get_group_id(0)
    llvm.nvvm.barrier0                 barrier(CLK_LOCAL_MEM_FENCE)
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence

from tedsl.codegen.llvm.machine import parsed
from tedsl.codegen.nvptx.amdgpu import ALLOCA, BARRIER, refuse_others
from tedsl.codegen.nvptx.backend import code_of_kernels
from tedsl.errors import LoweringError
from tedsl.ir.func import PrimFunc
from tedsl.passes.config import PassConfig
from tedsl.runtime.devices.code import DeviceCode
from tedsl.target.target import Target

_REGISTER = re.compile(r"^( *)(%\S+) = call range\([^)]*\) i32 @llvm\.nvvm\.read\.ptx\.sreg\.(tid|ctaid)\.([xyz])\(\)(.*)$",
                       re.MULTILINE)
_DECLARED = re.compile(r"^declare \w+ @llvm\.nvvm\.(read\.ptx\.sreg\.c?ta?id\.[xyz]|barrier0)\(\).*$", re.MULTILINE)
_FUNCTIONS = {"tid": "_Z12get_local_idj", "ctaid": "_Z12get_group_idj"}  # get_local_id(uint), get_group_id(uint)
_POINTER = re.compile(r"\bptr\b(?! addrspace\()")
_CONSTANT = re.compile(r"^(@[^\s=]+) = private (?:unnamed_addr )?constant ", re.MULTILINE)
_KERNEL = re.compile(r"^(define )ptx_kernel( void @\w+\()(.*)(\).*\{\n\S+:)$", re.MULTILINE)
_PARAMETER = re.compile(r"ptr addrspace\(4\)((?: noalias| readonly| align \d+)* )(%\S+?)(?=,|$)")
_NOTES = re.compile(r"^!(?:nvvm\.annotations = .*|(?P<number>\d+) = !\{ptr addrspace\(4\) @.*)$", re.MULTILINE)
_DECLARATIONS = "".join(f"declare spir_func i64 @{name}(i32)\n" for name in _FUNCTIONS.values()) \
    + "declare spir_func void @_Z7barrierj(i32) convergent\n"


class SPIRVBackend:
    """The backend of device code for targets of kind `spirv`."""

    def compile_kernels(self, kernels: Sequence[PrimFunc], target: Target, config: PassConfig) -> DeviceCode:
        """Compiles `kernels`, after the passes on kernels, to SPIR-V as text and as words."""

        return code_of_kernels(kernels, target, "spirv", lambda text: _compiled(renamed(text), target))


# Each form is made of a module and by a machine of its own: LLVM changes the one, and remembers in the other.
_PROGRAM = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
target, text = llvm.Target.from_triple(sys.argv[1]), sys.stdin.read()
words = target.create_target_machine(opt=2).emit_object(llvm.parse_assembly(text))
assembly = target.create_target_machine(opt=2).emit_assembly(llvm.parse_assembly(text))
sys.stdout.buffer.write(words + assembly.encode() + len(words).to_bytes(8, "little"))
"""


def _compiled(ir: str, target: Target) -> tuple[str, bytes]:
    """SPIR-V as text and as words, made by a process of its own: what LLVM cannot compile to SPIR-V ends the process."""
    parsed(ir)
    made = subprocess.run([sys.executable, "-c", _PROGRAM, target.triple], input=ir.encode(), capture_output=True, check=False)
    if made.returncode:
        said = made.stderr.decode(errors="replace").strip().splitlines()
        raise LoweringError(f"LLVM cannot compile these kernels to SPIR-V: {said[-1] if said else 'it crashes'}",
                            hint='build for "opencl", whose text every OpenCL device takes')
    size = int.from_bytes(made.stdout[-8:], "little")
    return made.stdout[size:-8].decode(), made.stdout[:size]


def renamed(text: str) -> str:
    """Returns the IR of kernels with the names of OpenCL; LoweringError if it uses what only NVIDIA's devices have."""
    if "@tedsl_dynamic_shared" in text:
        raise LoweringError("SPIR-V has no shared memory whose size a launch says",
                            hint='give the stage the scope "shared", of constant size')
    text = BARRIER.sub(r"\1call spir_func void @_Z7barrierj(i32 1)\2", text)
    text = _DECLARED.sub("", _REGISTER.sub(_identifier, text))
    for name in _CONSTANT.findall(text):
        text = re.sub(rf"ptr {re.escape(name)}\b", f"ptr addrspacecast (ptr addrspace(1) {name} to ptr)", text)
    text = _CONSTANT.sub(r"\1 = internal addrspace(1) constant ", text)
    text = _POINTER.sub("ptr addrspace(4)", text)
    text = ALLOCA.sub(r"\1\2.private = alloca \3, align \4\5\n\1\2 = addrspacecast ptr \2.private to ptr addrspace(4)\5", text)
    text = _NOTES.sub(lambda found: f"!{found['number']} = !{{}}" if found["number"] else "", _KERNEL.sub(_kernel, text))
    refuse_others(text)
    head, end, rest = text.partition("\n\n")
    return head + end + _DECLARATIONS + end + rest


def _identifier(found: re.Match[str]) -> str:
    """The number of a thread or block, by a call."""
    indent, name, kind, axis, place = found.groups()
    return (f"{indent}{name}.wide = call spir_func i64 @{_FUNCTIONS[kind]}(i32 {'xyz'.index(axis)}){place}\n"
            f"{indent}{name} = trunc i64 {name}.wide to i32{place}")


def _kernel(found: re.Match[str]) -> str:
    """The header of a kernel, whose parameters become generic pointers in its body."""
    define, name, parameters, rest = found.groups()
    casts = [f"\n  {pointer} = addrspacecast ptr addrspace(1) {pointer}.global to ptr addrspace(4)"
             for _, pointer in _PARAMETER.findall(parameters)]
    moved = _PARAMETER.sub(r"ptr addrspace(1)\1\2.global", parameters)
    return f"{define}spir_kernel{name}{moved}{rest}{''.join(casts)}"
