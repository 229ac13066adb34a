"""Passes of tir.transform on attributes and calls of accelerators that take instructions from the processor, as VTA does."""

from __future__ import annotations

from tedsl.errors import ArgumentTypeError
from tedsl.passes.coprocessors.combine_contexts import combine_contexts
from tedsl.passes.coprocessors.lift_attributes import lift_attributes
from tedsl.passes.coprocessors.lower_access_info import lower_access_info
from tedsl.passes.module_pass import ModulePass
from tedsl.tir.own_pass import own_pass


def LiftAttrScope(attr_key: str) -> ModulePass:
    """Returns the pass that writes attributes of a key once for all that they hold for, as far outside as they do."""
    if not isinstance(attr_key, str):
        raise ArgumentTypeError(f"LiftAttrScope takes the key of an attribute, not {attr_key!r}",
                                hint='LiftAttrScope("coproc_uop_scope")')
    return own_pass("LiftAttrScope", lambda func: lift_attributes(func, attr_key))


def CombineContextCall() -> ModulePass:
    """Returns the pass that takes each context of a thread, `tir.tvm_thread_context`, once: by a let in front of its uses."""
    return own_pass("CombineContextCall", combine_contexts)


def LowerDeviceStorageAccessInfo() -> ModulePass:
    """Returns the pass that writes `tir.tvm_access_ptr` as addresses of elements, and memory of a tagged scope as the
    address that the registered function "tvm.info.mem.SCOPE" gives (`head_address`). Analyses of memory come before it.
    """
    return own_pass("LowerDeviceStorageAccessInfo", lower_access_info)
