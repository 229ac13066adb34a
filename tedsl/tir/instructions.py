"""Calls of operators of devices by names of their own, which TVM has since 0.11: `tir.tvm_mma_sync(d, 0, a, 0, b, 0, c, 0)`
is `tir.call_intrin("handle", "tir.tvm_mma_sync", d, 0, a, 0, b, 0, c, 0)`. Each function takes the arguments of its operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as Value

from tedsl.errors import ArgumentTypeError, type_in_words
from tedsl.ir import build
from tedsl.ir.dtype import INT32, DType
from tedsl.ir.expr import Expr, SizeVar
from tedsl.lang.intrinsic import call_intrin
from tedsl.runtime.functions import get_global_func, register_func

DEFAULT_ACTION = "tvm.default_trace_action"
_ANY = "any_dim"


def tvm_fill_fragment(fragment: Value, m: Value, n: Value, k: Value, index: Value, value: Value) -> Expr:
    """Sets all elements of fragment number `index` of the memory `fragment` to `value`; m, n, k: the tile of an instruction."""
    return call_intrin("handle", "tir.tvm_fill_fragment", fragment, m, n, k, index, value)


def tvm_load_matrix_sync(fragment: Value, m: Value, n: Value, k: Value, index: Value, buffer_ptr: Value, stride: Value,
                         layout: Value) -> Expr:
    """Loads fragment number `index` from `buffer_ptr`; stride: elements between rows; layout: "row_major" or "col_major"."""
    return call_intrin("handle", "tir.tvm_load_matrix_sync", fragment, m, n, k, index, buffer_ptr, stride, layout)


def tvm_store_matrix_sync(fragment: Value, m: Value, n: Value, k: Value, index: Value, buffer_ptr: Value, stride: Value,
                          layout: Value) -> Expr:
    """Stores fragment number `index` to `buffer_ptr`; the other arguments as of tvm_load_matrix_sync."""
    return call_intrin("handle", "tir.tvm_store_matrix_sync", fragment, m, n, k, index, buffer_ptr, stride, layout)


def tvm_mma_sync(fragment_d: Value, index_d: Value, fragment_a: Value, index_a: Value, fragment_b: Value, index_b: Value,
                 fragment_c: Value, index_c: Value) -> Expr:
    """Computes d = a * b + c on fragments, with the tensor cores of a warp."""
    return call_intrin("handle", "tir.tvm_mma_sync", fragment_d, index_d, fragment_a, index_a, fragment_b, index_b, fragment_c,
                       index_c)


def tvm_bmma_sync(fragment_d: Value, index_d: Value, fragment_a: Value, index_a: Value, fragment_b: Value, index_b: Value,
                  fragment_c: Value, index_c: Value) -> Expr:
    """The same on fragments of bits. No target of tedsl has the instruction."""
    return call_intrin("handle", "tir.tvm_bmma_sync", fragment_d, index_d, fragment_a, index_a, fragment_b, index_b, fragment_c,
                       index_c)


def tvm_storage_sync(storage_scope: str) -> Expr:
    """All threads that share memory of `storage_scope`, "shared" or "warp", wait for each other."""
    return call_intrin("int32", "tir.tvm_storage_sync", storage_scope)


def tvm_thread_allreduce(*freduce_args: Value) -> Expr:
    """Combines values of the threads of a block. The arguments are the number of values, these, a condition, the places of the
    results, and the threads.
    """
    return call_intrin("handle", "tir.tvm_thread_allreduce", *freduce_args)


def tvm_warp_shuffle(mask: Value, value: Value, warp_id: Value, width: Value, warp_size: Value) -> Expr:
    """The `value` of thread number `warp_id` of each part of `width` threads of a warp."""
    return _shuffle("tvm_warp_shuffle", mask, value, warp_id, width, warp_size)


def tvm_warp_shuffle_up(mask: Value, value: Value, offset: Value, width: Value, warp_size: Value) -> Expr:
    """The `value` of the thread `offset` before; its own if there is none."""
    return _shuffle("tvm_warp_shuffle_up", mask, value, offset, width, warp_size)


def tvm_warp_shuffle_down(mask: Value, value: Value, offset: Value, width: Value, warp_size: Value) -> Expr:
    """The `value` of the thread `offset` behind; its own if there is none."""
    return _shuffle("tvm_warp_shuffle_down", mask, value, offset, width, warp_size)


def _shuffle(name: str, mask: Value, value: Value, which: Value, width: Value, warp_size: Value) -> Expr:
    moved = build.as_expr(value)
    return call_intrin(moved.dtype, f"tir.{name}", mask, moved, which, width, warp_size)


def tvm_warp_activemask() -> Expr:
    """The mask of the threads of the warp that run, as uint32."""
    return call_intrin("uint32", "tir.tvm_warp_activemask")


def tvm_context_id() -> Expr:
    """The number of the device that calls packed functions: 0, the processor."""
    return call_intrin("int32", "tir.tvm_context_id")


def type_annotation(dtype: str | DType) -> Expr:
    """A value whose dtype alone counts, for tvm_access_ptr."""
    return call_intrin(dtype, "tir.type_annotation")


def tvm_access_ptr(ptype: Value, data: Value, offset: Value, extent: Value, rw_mask: Value) -> Expr:
    """The address of element `offset` of `data`; extent: elements that may be used; ptype: their dtype, or type_annotation of
    it; rw_mask: 1 to read, 2 to write, 3 both.
    """
    element = ptype if isinstance(ptype, Expr) else type_annotation(ptype)
    return call_intrin("handle", "tir.tvm_access_ptr", element, data, offset, extent, rw_mask)


def tvm_tuple(*value: Value) -> Expr:
    """Several values as one, for attributes."""
    return call_intrin("handle", "tir.tvm_tuple", *value)


def address_of(load: Value) -> Expr:
    """The address of the element that `load` reads."""
    return call_intrin("handle", "tir.address_of", load)


def atomic_add(address: Value, value: Value) -> Expr:
    """Adds `value` at once to the element at `address` (`address_of`); what stood there before."""
    added = build.as_expr(value)
    return call_intrin(added.dtype, "tir.atomic_add", address, added)


class _AnySizes(type):
    """The class of `Any`, whose instances are the variables that it makes."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is SizeVar and instance.name == _ANY

    def __call__(cls) -> SizeVar:
        return SizeVar(_ANY, INT32)


class Any(metaclass=_AnySizes):
    """A size that only the arrays of a call give: a variable of its own, wherever it is written in a shape."""


def trace(args: Sequence[Value], trace_action: str = DEFAULT_ACTION) -> Expr:
    """Calls the function registered as `trace_action` with `args` while the kernel runs.

    The value is what it returns, or the last of `args` if it returns None, whose dtype it has. The default action prints `args`
    as a list.
    """
    if not isinstance(args, (list, tuple)) or not args:
        raise ArgumentTypeError(f"trace takes a list of values that is not empty, not {type_in_words(args)}",
                                hint="the last one is the value: trace([i, A[i]])")
    if not isinstance(trace_action, str) or not trace_action:
        raise ArgumentTypeError(f"trace: the action is the name of a registered function, not {type_in_words(trace_action)}",
                                hint='@tedsl.register_func("name")')
    *shown, value = args
    last = build.as_expr(value)

    def act(*given: Value) -> Value:
        action = get_global_func(trace_action, allow_missing=trace_action == DEFAULT_ACTION)
        result = print(list(given)) if action is None else action(*given)
        return given[-1] if result is None else result

    name = f"{trace_action}, or the value"
    register_func(name, act, override=True)
    return call_intrin(last.dtype, "tir.call_packed", name, *shown, last)
