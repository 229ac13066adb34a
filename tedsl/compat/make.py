"""tvm.make and tvm.stmt of TVM 0.6: the nodes of tir, those that were made otherwise there as they were, and operators by names
without prefix. What a class of 0.6 is called with makes a node of today, and today's nodes are its instances.

    make.For(i, 0, 8, stmt.For.Vectorized, 0, body)                 for_type and device_api stand before the body
    make.Block(first, rest)                                         SeqStmt([first, rest])
    make.Provide(C.op, 0, value, [i, j])                            ProducerStore(C, value, [i, j])
    make.Call("float32", "exp", [x], Call.PureIntrinsic, None, 0)   call_intrin("float32", "tir.exp", x)
    tvm.call_pure_intrin("float32", "exp", x)                       today's "tir.exp"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, ClassVar

from tedsl import ir, te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, arguments_that_misfit, type_in_words
from tedsl.ir.container import Array, Map
from tedsl.ir.expr import Call as _Call
from tedsl.ir.expr import Expr, ProducerLoad
from tedsl.ir.iters import Range
from tedsl.ir.node import FrozenDict
from tedsl.ir.ops import OPS
from tedsl.ir.stmt import BufferRealize, BufferStore, ForKind, ProducerRealize, ProducerStore, SeqStmt, Stmt, no_op
from tedsl.ir.stmt import For as _For
from tedsl.ir.stmt import Prefetch as _Prefetch
from tedsl.ir.stmt import seq as _seq
from tedsl.te import Tensor

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED)


class _Older(type):
    """A class of 0.6: `nodes` of today are its instances, and a call of it is one of its `made`."""

    nodes: tuple[type, ...]
    made: Callable[..., Any]

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.nodes)

    def __call__(cls, *args: Any, **named: Any) -> Any:
        try:
            return cls.made(*args, **named)
        except TypeError:
            misfit = arguments_that_misfit(f"make.{cls.__name__}", signature(cls.made), args, named)
            if misfit is None:
                raise
            raise misfit from None


class For(metaclass=_Older):
    """A loop: For(loop_var, min, extent, for_type, device_api, body). device_api: accepted, and not read."""

    nodes = (_For,)
    Serial: ClassVar[int] = 0
    Parallel: ClassVar[int] = 1
    Vectorized: ClassVar[int] = 2
    Unrolled: ClassVar[int] = 3

    @staticmethod
    def made(loop_var: Any, min: Any, extent: Any, for_type: int | ForKind, device_api: Any, body: Stmt) -> _For:
        if not isinstance(for_type, ForKind) and for_type not in range(len(_KINDS)):
            raise ArgumentError(f"make.For: for_type is For.Serial, Parallel, Vectorized or Unrolled, not {for_type!r}")
        kind = for_type if isinstance(for_type, ForKind) else _KINDS[for_type]
        return _For(loop_var, min, extent, kind, body)


class Block(metaclass=_Older):
    """A statement and what runs after it: Block(first, rest). `first` and `rest` are the fields."""

    nodes = (SeqStmt,)

    @staticmethod
    def made(first: Stmt, rest: Stmt) -> Stmt:
        for part in (first, rest):
            if not isinstance(part, Stmt):
                raise ArgumentTypeError(f"make.Block takes two statements, not {type_in_words(part)}")
        return _seq(first, rest)


class Provide(metaclass=_Older):
    """A store into the output `value_index` of an operation: Provide(func, value_index, value, args)."""

    nodes = (BufferStore, ProducerStore)

    @staticmethod
    def made(func: Any, value_index: int, value: Any, args: Sequence[Any]) -> ProducerStore:
        return ProducerStore(_output("Provide", func, value_index), value, tuple(args))


class Realize(metaclass=_Older):
    """The output of an operation exists in `body`: Realize(func, value_index, dtype, bounds, condition, body)."""

    nodes = (BufferRealize, ProducerRealize)

    @staticmethod
    def made(func: Any, value_index: int, dtype: Any, bounds: Sequence[Any], condition: Any, body: Stmt) -> ProducerRealize:
        return ProducerRealize(_output("Realize", func, value_index), tuple(bounds), tir.const(bool(condition), "bool")
                               if isinstance(condition, (bool, int)) else condition, body)


class Prefetch(metaclass=_Older):
    """A hint that a region of the output `value_index` of an operation is read: Prefetch(func, value_index, dtype, bounds)."""

    nodes = (_Prefetch,)

    @staticmethod
    def made(func: Any, value_index: int, dtype: Any, bounds: Sequence[Any]) -> _Prefetch:
        read = _output("Prefetch", func, value_index)
        return _Prefetch(tir.decl_buffer(read.shape, dtype, read.name), tuple(bounds))


class ProducerConsumer(metaclass=_Older):
    """A mark around the statements that make a tensor, or read it: ProducerConsumer(func, is_producer, body) is its body."""

    nodes = ()

    @staticmethod
    def made(func: Any, is_producer: bool, body: Stmt) -> Stmt:
        return body


class Free(metaclass=_Older):
    """The end of memory, which ends with the body of its Allocate: Free(buffer_var) does nothing."""

    nodes = ()

    @staticmethod
    def made(buffer_var: Any) -> Stmt:
        return no_op()


class Call(metaclass=_Older):
    """A call: Call(dtype, name, args, call_type, func, value_index); without call_type, as today's.

    call_type: an operator (Intrinsic, PureIntrinsic), a function of C (Extern, PureExtern), or Halide for an element of the
    output `value_index` of the operation `func`.
    """

    nodes = (_Call, ProducerLoad)
    Extern: ClassVar[int] = 0
    ExternCPlusPlus: ClassVar[int] = 1
    PureExtern: ClassVar[int] = 2
    Halide: ClassVar[int] = 3
    Intrinsic: ClassVar[int] = 4
    PureIntrinsic: ClassVar[int] = 5

    @staticmethod
    def made(dtype: Any, name: Any, args: Sequence[Any], call_type: int | None = None, func: Any = None,
             value_index: int = 0) -> Expr:
        made: Expr
        if call_type is None:
            return _Call(dtype, name, tuple(args))
        if call_type == Call.Halide:
            return ProducerLoad(_output("Call", func, value_index), tuple(args))
        if call_type not in (Call.Extern, Call.ExternCPlusPlus, Call.PureExtern, Call.Intrinsic, Call.PureIntrinsic):
            raise ArgumentError(f"make.Call: call_type is Call.Extern, PureExtern, Halide, Intrinsic or PureIntrinsic, not "
                                f"{call_type!r}")
        if call_type in (Call.Intrinsic, Call.PureIntrinsic):
            made = (call_intrin if call_type == Call.Intrinsic else call_pure_intrin)(dtype, name, *args)
        else:
            made = (tir.call_pure_extern if call_type == Call.PureExtern else tir.call_extern)(dtype, name, *args)
        return made


def _output(what: str, func: Any, value_index: int) -> Tensor:
    """The tensor that a node of 0.6 names by its operation; a tensor as it is."""
    if isinstance(func, Tensor):
        return func
    if not hasattr(func, "output"):
        raise ArgumentTypeError(f"make.{what}: func is an operation, not {type_in_words(func)}", hint="C.op of a tensor C")
    made: Tensor = func.output(value_index)
    return made


def range_by_min_extent(min_value: Any, extent: Any) -> Range:
    """The range of `extent` integers from `min_value` on."""
    return Range.from_min_extent(min_value, extent)


def static_cast(dtype: Any, expr: Any) -> Expr:
    """An expression, or number, as another dtype."""
    made: Expr = tir.const(expr).astype(dtype) if isinstance(expr, (int, float)) else expr.astype(dtype)
    return made


_REGISTERED: dict[str, type] = {"Array": Array, "Map": Map, "StrMap": Map, "DictAttrs": FrozenDict}


def register_node(type_key: str | type | None = None) -> Any:
    """Decorator of classes: `make.node` makes their instances, under the key or their name."""
    if isinstance(type_key, type):
        return register_node()(type_key)

    def registered(cls: type) -> type:
        _REGISTERED[type_key or cls.__name__] = cls
        return cls

    return registered


def node(type_key: str, **kwargs: Any) -> Any:
    """An object by the name of its class and its fields: node("IntImm", dtype="int32", value=3), node("Range", min=0,
    extent=4).
    """
    name = str(type_key).rpartition(".")[2]
    if name == "Range":
        return range_by_min_extent(kwargs.get("min", 0), kwargs.get("extent"))
    if name in ("DictAttrs", "StrMap"):
        return FrozenDict(kwargs)
    here = [home for home in (tir, te) if isinstance(vars(home).get(name), type)]
    cls = _REGISTERED.get(type_key) or (vars(here[0])[name] if here else None)
    if cls is None:
        raise ArgumentError(f"make.node: there is no class {type_key!r}",
                            hint="classes of tir and te, and those of register_node, are made by name")
    return cls(**kwargs)


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
    ir.register_intrin_lowering(_operator(intrin, tir.CallEffectKind.Pure), target, f=f)
    return f


def _operator(name: Any, effect: int) -> Any:
    """The name that an operator has here. In 0.6 it began to be with its first call or rule."""
    if not isinstance(name, str) or not name.isidentifier():
        return name
    if f"tir.{name}" not in OPS:
        ir.register_op_attr(f"tir.{name}", "TCallEffectKind", effect)
    return f"tir.{name}"


def __getattr__(name: str) -> Any:
    return getattr(tir, name)
