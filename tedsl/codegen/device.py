"""Code for devices beside the processor: the protocol of its backends, and the way from lowered functions to a module.

Each function is split into a host function, which the backend of the processor compiles, and kernels, which the backend of the
device does. Nothing of the device is kept in the cache on disk; the host function is found there by its content.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Protocol

from tedsl.codegen.backend import backend_for
from tedsl.errors import ArgumentError, TedslError
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.text import text as loops_text
from tedsl.passes.config import PassConfig
from tedsl.passes.default import device_pipeline, kernel_pipeline
from tedsl.passes.device.split_kernels import split_kernels
from tedsl.runtime.devices.code import DeviceCode
from tedsl.runtime.devices.module import DeviceModule
from tedsl.runtime.module import Module, on_device
from tedsl.target.current import host_target
from tedsl.target.target import Target


class DeviceBackend(Protocol):
    """The protocol of a backend for devices. Stateless: all choices are in `target` and `config`."""

    def compile_kernels(self, kernels: Sequence[PrimFunc], target: Target, config: PassConfig) -> DeviceCode:
        """Compiles `kernels`, as `kernel_pipeline` leaves them, into code with one function for each, of its name."""
        ...


def device_backend_for(target: Target) -> DeviceBackend:
    """Returns the backend for devices that the kind of `target` names; TedslError if it cannot be imported."""
    module, _, name = target.kind.device_backend.partition(":")
    try:
        backend: DeviceBackend = getattr(import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise TedslError(f"the backend {target.kind.device_backend} of the target kind {target.kind.name!r} cannot be "
                         f"imported: {error}", hint="is the package that registered it installed?") from error
    return backend


def compiled_for_device(funcs: Sequence[PrimFunc], target: Target, host: Target, config: PassConfig) -> Module:
    """Returns the module of lowered functions whose launches run on the devices of `target`, and all else on `host`.

    Raises LoweringError for a function that accesses memory of the device outside of its kernels.
    """
    backend, meeting = device_backend_for(target), _without_shuffles(target)
    pipeline = device_pipeline(meeting, config)
    split = [split_kernels(pipeline(func), target) for func in funcs]
    fitted = kernel_pipeline(meeting, config)
    kernels = [fitted(kernel) for function in split for kernel in function.kernels]
    code = backend.compile_kernels(kernels, target, config)
    if not code.loops:
        code = replace(code, loops=loops_text(IRModule({kernel.name: kernel for kernel in kernels})))
    compiled = backend_for(host).compile([function.host for function in split], host, config, quick=True)
    others = {"cu": functools.partial(_cuda_text, funcs, target, config)} if target.kind.device_kind == "cuda" else {}
    return on_device(compiled, DeviceModule(code, target.kind.device_kind, others), target)


def _without_shuffles(target: Target) -> Target:
    """The target for the passes: on devices for whose shuffles there is no code the threads of a warp meet in shared memory."""
    if target.kind.device_kind in ("cuda", "opencl") or target.thread_warp_size == 1 or not target.kind.triple:
        return target
    return Target({"kind": target.kind.name, **target.attrs, "thread_warp_size": 1})


def _cuda_text(funcs: Sequence[PrimFunc], target: Target, config: PassConfig) -> str:
    from tedsl.codegen.c.cuda_text import cuda_text  # the emitter of C is for those who ask for its text

    return cuda_text(funcs, target, config)


def host_of(target: Target, given: Target | None) -> Target:
    """Returns the target of the host functions: `given`, that of the notation of `target`, or this machine.

    Raises ArgumentError for one that cannot run here.
    """
    host = given or target.host or host_target()
    if host.is_device or not host.runs_here or host.kind.name != "llvm":
        raise ArgumentError(f"build: the host of {target.kind} is {host}; launches are made on this machine",
                            hint='leave target_host out, or write target_host="llvm"')
    return host
