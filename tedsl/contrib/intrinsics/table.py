"""Tensor intrinsics by name: those shipped, those registered, and those that installed packages declare."""

from __future__ import annotations

from collections.abc import Callable

from tedsl import te
from tedsl.contrib.intrinsics.bfloat16 import dot_bf16
from tedsl.contrib.intrinsics.bytes import dot_i8i8i32, dot_u8i8i32
from tedsl.contrib.intrinsics.gemm import gemm_f32
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.plugins import INTRINSICS, load_plugin, plugin_names
from topi.schedules.gpu.mma import mma, mma_load_a, mma_load_b, mma_store
from topi.schedules.gpu.wmma import wmma_load_a, wmma_load_b, wmma_mma, wmma_store

Maker = Callable[..., te.TensorIntrin]
SHIPPED: dict[str, Maker] = {"dot_bf16": dot_bf16, "dot_i8i8i32": dot_i8i8i32, "dot_u8i8i32": dot_u8i8i32, "gemm_f32": gemm_f32,
                             "mma": mma, "mma_load_a": mma_load_a, "mma_load_b": mma_load_b, "mma_store": mma_store,
                             "wmma_load_a": wmma_load_a, "wmma_load_b": wmma_load_b, "wmma_mma": wmma_mma,
                             "wmma_store": wmma_store}
_ADDED: dict[str, Maker] = {}


def register(name: str, maker: Maker) -> None:
    """Registers `maker`, a function that returns a te.TensorIntrin, under `name`.

    Raises ArgumentError if the name is taken, ArgumentTypeError if `maker` is not callable.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentTypeError(f"the name of an intrinsic is an identifier, not {name!r}")
    _check_callable(name, maker)
    if name in SHIPPED or _ADDED.get(name, maker) is not maker:
        raise ArgumentError(f"there is an intrinsic {name!r} already", hint="choose another name")
    _ADDED[name] = maker


def get(name: str) -> Maker:
    """Returns the function that creates the intrinsic `name`; ArgumentError, which lists the names, if there is none."""
    maker: Maker | None = SHIPPED.get(name) or _ADDED.get(name) or load_plugin(INTRINSICS, name)
    if maker is None:
        raise ArgumentError(f"there is no tensor intrinsic {name!r}", hint=f"choose one of {', '.join(names())}")
    _check_callable(name, maker)
    return maker


def names() -> list[str]:
    """Returns the names that `get` finds, the shipped ones first."""
    return list(dict.fromkeys([*SHIPPED, *_ADDED, *plugin_names(INTRINSICS)]))


def _check_callable(name: str, maker: object) -> None:
    if not callable(maker):
        raise ArgumentTypeError(f"the intrinsic {name!r} is a function that returns a te.TensorIntrin, not {maker!r}")
