"""Targets of `build`: what a machine can do, which target is current, and what the host is."""

from tedsl.aliases import import_as
from tedsl.errors import entries
from tedsl.ir.calls.registered import register_intrin_lowering
from tedsl.target import codegen, datatype
from tedsl.target.current import as_target, host_target
from tedsl.target.generic import (
    GenericFunc,
    extend_native_generic_func,
    generic_func,
    get_native_generic_func,
    override_native_generic_func,
)
from tedsl.target.kinds import TargetKind, register_kind
from tedsl.target.machine import Cache, Machine
from tedsl.target.named import (
    arm_cpu,
    bifrost,
    create,
    cuda,
    current_target,
    hexagon,
    intel_graphics,
    mali,
    rasp,
    riscv_cpu,
    rocm,
    vta,
)
from tedsl.target.tags import list_tags, register_tag
from tedsl.target.target import Target

__all__ = [
    "Cache", "GenericFunc", "Machine", "Target", "TargetKind", "arm_cpu", "as_target", "bifrost", "codegen", "create",
    "cuda", "current_target", "datatype", "extend_native_generic_func", "generic_func", "get_native_generic_func",
    "hexagon", "host_target", "intel_graphics", "list_tags", "mali", "override_native_generic_func", "rasp",
    "register_intrin_lowering", "register_kind", "register_tag", "riscv_cpu", "rocm", "vta",
]

entries(globals(), later={"build_config": "tedsl.transform:build_config", "BuildConfig": "tedsl.transform:build_config"})
import_as(globals(), "generic_func", "tag")
