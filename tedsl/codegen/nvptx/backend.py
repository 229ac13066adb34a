"""The backend of NVIDIA's devices: kernels become PTX, which the driver of the device compiles when it loads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.codegen.llvm.debug.lines import line_stages, print_loops
from tedsl.codegen.nvptx.emit import EmittedKernel, emit_kernels
from tedsl.codegen.nvptx.memory import is_pointer, parameter_dtype, written_memory
from tedsl.codegen.nvptx.ptx import check_processor, ptx_of
from tedsl.codegen.nvptx.registers import check_registers
from tedsl.errors import InternalError
from tedsl.ir.expr import Var
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.text import text as loops_text
from tedsl.ir.types import PointerType, PrimType
from tedsl.passes.config import PassConfig
from tedsl.runtime.devices.code import DeviceCode, DeviceFunction, DeviceParameter
from tedsl.target.target import Target


class PTXBackend:
    """The backend of device code for targets of kind `cuda` and `nvptx`."""

    def compile_kernels(self, kernels: Sequence[PrimFunc], target: Target, config: PassConfig) -> DeviceCode:
        """Compiles `kernels`, after the passes on kernels, to PTX."""
        check_processor(target)
        code = code_of_kernels(kernels, target, "ptx", lambda text: (ptx_of(text, target), b""))
        if config.check_registers:
            check_registers(code.text, target)
        return code


def code_of_kernels(kernels: Sequence[PrimFunc], target: Target, form: str,
                    compiled: Callable[[str], tuple[str, bytes]]) -> DeviceCode:
    """Returns the code of `kernels` in the language `form`. compiled: makes its text, and the file that a device takes if that
    is another one, of the LLVM IR of the kernels.
    """
    printed = print_loops(kernels)
    ir, emitted = emit_kernels(kernels, target, printed)
    text, image = compiled(ir)
    functions = tuple(_function(kernel, facts) for kernel, facts in zip(kernels, emitted))
    loops = loops_text(IRModule({kernel.name: kernel for kernel in kernels}))
    return DeviceCode(form, text, functions, str(target), loops, line_stages(printed), image)


def _function(kernel: PrimFunc, facts: EmittedKernel) -> DeviceFunction:
    written = written_memory(kernel)
    parameters = tuple(_parameter(var, var in written) for var in kernel.params)
    return DeviceFunction(kernel.name, parameters, facts.launch.axes, facts.dynamic_shared, facts.shared, facts.launch.block)


def _parameter(var: Var, written: bool) -> DeviceParameter:
    if not is_pointer(var):
        return DeviceParameter(var.name, parameter_dtype(var), False)
    annotation = var.type_annotation
    assert isinstance(annotation, PointerType)
    if not isinstance(annotation.element_type, PrimType):
        raise InternalError(f"the parameter {var.name} of a kernel points to {annotation.element_type!r}")
    return DeviceParameter(var.name, annotation.element_type.dtype, True, written)
