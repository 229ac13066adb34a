"""tvm.make and tvm.stmt of TVM 0.6: the nodes of tir, with For as it was made there, and operators by names without prefix.

    make.For(i, 0, 8, stmt.For.Vectorized, 0, body)          for_type and device_api stand before the body
    tvm.call_pure_intrin("float32", "exp", x)                today's "tir.exp"
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from tedsl import ir, tir
from tedsl.ir.expr import Call
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
    """A call of an operator by its name of 0.6, which has no prefix, or by today's; the program's own may do anything."""
    return tir.call_intrin(dtype, _operator(func_name, tir.CallEffectKind.Opaque), *args)


def call_pure_intrin(dtype: Any, func_name: str, *args: Any) -> Any:
    """A call as `call_intrin` makes it; an operator of the program's own does nothing beside giving a value."""
    return tir.call_intrin(dtype, _operator(func_name, tir.CallEffectKind.Pure), *args)


def register_intrin_rule(target: str, intrin: str, f: Callable[[Any], Any] | None = None, override: bool = False) -> Any:
    """Makes `f` the rule by which `build` for `target` replaces calls of `intrin`; the call has a `name`, without prefix.
    override: accepted; the last rule holds. A decorator without `f`.
    """
    if f is None:
        return lambda rule: register_intrin_rule(target, intrin, rule, override)
    given = f

    @functools.wraps(given)
    def rule(call: Call) -> Any:
        named = _NamedCall(call.dtype, call.op, call.args)
        made = given(named)
        return call if made is named else made

    ir.register_intrin_lowering(_operator(intrin, tir.CallEffectKind.Pure), target, f=rule)
    return given


class _NamedCall(Call):
    """A call as rules of 0.6 look at it."""

    @property
    def name(self) -> str:
        return self.op.short


def _operator(name: Any, effect: int) -> Any:
    """The name that an operator has here. In 0.6 it began to be with its first call or rule."""
    if not isinstance(name, str) or not name.isidentifier():
        return name
    if f"tir.{name}" not in OPS:
        ir.register_op_attr(f"tir.{name}", "TCallEffectKind", effect)
    return f"tir.{name}"


def __getattr__(name: str) -> Any:
    return getattr(tir, name)
