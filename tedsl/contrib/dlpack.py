"""Kernels called with tensors of other libraries, by the names of TVM's contrib.dlpack. Kernels here take them as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.errors import ArgumentTypeError, entries, type_in_words
from tedsl.runtime.foreign import from_dlpack


def convert_func(tvm_func: Callable[..., Any], tensor_type: type, to_dlpack_func: Callable[[Any], Any]) -> Callable[..., Any]:
    """Returns `tvm_func` for arguments of `tensor_type`, which become arrays of the capsules that `to_dlpack_func` gives."""
    if not callable(tvm_func):
        raise ArgumentTypeError(f"convert_func: a kernel is called, not {type_in_words(tvm_func)}", hint="f = tedsl.build(...)")

    def call(*args: Any) -> Any:
        return tvm_func(*[from_dlpack(to_dlpack_func(arg)) if isinstance(arg, tensor_type) else arg for arg in args])

    return call


def to_pytorch_func(tvm_func: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that takes tensors of PyTorch: those that need a gradient too, without it."""
    def call(*args: Any) -> Any:
        return tvm_func(*[arg.detach() if hasattr(arg, "detach") else arg for arg in args])

    return call


entries(globals())
