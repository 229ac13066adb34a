"""tvm.make and tvm.stmt of TVM 0.6: the nodes of tir, with For as it was made there, and operators by names without prefix.

    make.For(i, 0, 8, stmt.For.Vectorized, 0, body)          for_type and device_api stand before the body
    tvm.call_pure_intrin("float32", "exp", x)                today's "tir.exp"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tedsl import ir, tir
from tedsl.ir.ops import OPS
from tedsl.ir.stmt import BufferRealize, BufferStore, ForKind, SeqStmt, Stmt
from tedsl.ir.stmt import For as _For

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED)


class _OldFor(type):
    """The class of `For`: today's loops are its instances."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _For)

    def __call__(cls, loop_var: Any, min: Any, extent: Any, for_type: int | ForKind, device_api: Any, body: Stmt) -> _For:
        kind = for_type if isinstance(for_type, ForKind) else _KINDS[for_type]
        return _For(loop_var, min, extent, kind, body)


Provide, Realize, Block = BufferStore, BufferRealize, SeqStmt  # to be recognised: they are made otherwise today


class For(metaclass=_OldFor):
    """A loop: For(loop_var, min, extent, for_type, device_api, body). device_api: accepted, and not read."""

    Serial: ClassVar[int] = 0
    Parallel: ClassVar[int] = 1
    Vectorized: ClassVar[int] = 2
    Unrolled: ClassVar[int] = 3


def call_intrin(dtype: Any, func_name: str, *args: Any) -> Any:
    """A call of an operator by its name of 0.6, which has no prefix, or by today's."""
    return tir.call_intrin(dtype, _prefixed(func_name), *args)


def register_intrin_rule(target: str, intrin: str, f: Callable[[Any], Any] | None = None, override: bool = False) -> Any:
    """Makes `f` the rule by which `build` for `target` replaces calls of `intrin`. override: accepted; the last rule holds."""
    return ir.register_intrin_lowering(_prefixed(intrin), target, f=f)


def _prefixed(name: str) -> str:
    return f"tir.{name}" if isinstance(name, str) and f"tir.{name}" in OPS else name


def __getattr__(name: str) -> Any:
    return getattr(tir, name)
