"""Operators of programs, and rules that say what operators become for a target: what `register_op_attr` and
`register_intrin_lowering` register.

    ir.register_op_attr("tir.mylog", "TCallEffectKind", tir.CallEffectKind.Pure)        there is an operator tir.mylog
    ir.register_intrin_lowering("tir.mylog", "llvm", f=lambda call: tir.call_pure_extern("float32", "logf", call.args[0]))

`build` applies the rules of its target to the loops before any pass: none meets an operator that only a rule knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError, OptionError
from tedsl.ir.calls.datatypes import has_datatypes
from tedsl.ir.calls.signatures import SIGNATURES, Signature
from tedsl.ir.expr import Call, Expr
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import OPS, Op
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import post_order

F = TypeVar("F", bound=Callable[..., Any])
RULE = "FLowerIntrinsic"  # how attributes end that are rules: "cuda.FLowerIntrinsic"
EFFECT = "TCallEffectKind"
_EFFECTS = ("pure", "pure", "read", "opaque", "opaque", "pure", "opaque")  # by TVM's numbers
_DEPTH = 100  # rules that follow each other for one call: more is a circle
_ATTRIBUTES: dict[tuple[str, str], tuple[int, Any]] = {}  # by operator and name: the level that it was set with, and the value
_OWN: set[str] = set()  # operators that programs have registered


class CallEffectKind:
    """What a call of an operator does beside giving a value."""

    ExprAnnotation, Pure, ReadState, UpdateState, SpecialCallArg, EmbedInfo, ControlJump = range(7)
    Opaque = UpdateState


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Sets an attribute of an operator, which comes to be by this if there is none of that name; a decorator without a value.

    attr_key: "TCallEffectKind" of a `tir.CallEffectKind`; "<target>.FLowerIntrinsic", a rule of `register_intrin_lowering`;
    others are kept for `Op.get_attr`. Of two values the one of the higher level counts, of equal levels the last.
    """
    if value is None:
        return lambda given: register_op_attr(op_name, attr_key, given, level)
    if not isinstance(op_name, str) or not op_name:
        raise ArgumentTypeError(f"register_op_attr: an operator has a name, not {op_name!r}", hint='for example "tir.mylog"')
    if not isinstance(attr_key, str):
        raise ArgumentTypeError(f"register_op_attr: an attribute has a name, not {attr_key!r}")
    kind = _effect(value) if attr_key == EFFECT else "pure"
    if attr_key.endswith(RULE) and not callable(value):
        raise ArgumentTypeError(f"register_op_attr: the rule {attr_key} is a function of a call, not {value!r}")
    if op_name not in OPS or (op_name in _OWN and attr_key == EFFECT):
        _OWN.add(op_name)
        OPS[op_name] = Op(op_name, None, kind)
        SIGNATURES[OPS[op_name].short] = Signature(lambda of, args: True, "")
    known = _ATTRIBUTES.get((op_name, attr_key))
    if known is None or level >= known[0]:
        _ATTRIBUTES[op_name, attr_key] = level, value
    return value


def _effect(value: Any) -> str:
    number = getattr(value, "value", value)
    if not isinstance(number, int) or not 0 <= number < len(_EFFECTS):
        raise ArgumentTypeError(f"register_op_attr: {EFFECT} is one of tir.CallEffectKind, not {value!r}",
                                hint="tir.CallEffectKind.Pure")
    return _EFFECTS[number]


def register_intrin_lowering(op_name: str, target: str, *, f: F | None = None, level: int = 10) -> Any:
    """Makes `f` the rule by which `build` for `target` ("llvm", "cuda", "default" for any) replaces calls of an operator.

    f: takes the call and returns an expression of its dtype, or None or the call itself to keep it. A decorator without `f`.
    """
    if not isinstance(target, str) or not target:
        raise ArgumentTypeError(f"register_intrin_lowering: the target is a name, not {target!r}", hint='"llvm" or "default"')

    def register(rule: F) -> F:
        register_op_attr(op_name, f"{target}.{RULE}", rule, level)
        return rule

    return register if f is None else register(f)


def get_attr(op: Op, attr_name: str) -> Any:
    """The value of an attribute of an operator, None if it has none."""
    return _ATTRIBUTES.get((op.name, attr_name), (0, None))[1]


def reset_attr(op: Op, attr_name: str) -> None:
    """Removes an attribute of an operator. OptionError if it has none."""
    if _ATTRIBUTES.pop((op.name, attr_name), None) is None:
        raise OptionError(f"{op.name} has no attribute {attr_name!r}")


def has_rules() -> bool:
    """Tells whether there are rules, operators or types of programs: what is built then depends on functions of the user's."""
    return bool(_OWN) or any(name.endswith(RULE) for _, name in _ATTRIBUTES) or has_datatypes()


def lower_registered(func: PrimFunc, kinds: Sequence[str], *, every: bool = True) -> PrimFunc:
    """Returns `func` with the calls of operators replaced by their rules for a target called `kinds`, the first that has one.

    every: raise LoweringError for an operator of the program's without a rule, which stays otherwise.
    """
    names = (*kinds, "default")
    rules = {op: rule for op in {name for name, _ in _ATTRIBUTES} if (rule := next(
        (found[1] for name in names if (found := _ATTRIBUTES.get((op, f"{name}.{RULE}"))) is not None), None)) is not None}
    if not rules and not _OWN:
        return func
    lowered = func.with_body(_Rules(rules)(func.body))
    left = next((node.op.name for node in post_order(lowered.body) if isinstance(node, Call) and node.op.name in _OWN), None)
    if left is not None and every:
        raise LoweringError(f"there is no rule for {left} on {kinds[0]}",
                            hint=f'ir.register_intrin_lowering("{left}", "{kinds[0]}", f=lambda call: ...)')
    return lowered


class _Rules(Rewriter):
    """Applies rules, to what they return as well."""

    def __init__(self, rules: dict[str, Callable[[Call], Any]], depth: int = 0) -> None:
        super().__init__()
        self.rules, self.depth = rules, depth

    def rewrite(self, node: Any) -> Any:
        rule = self.rules.get(node.op.name) if isinstance(node, Call) else None
        if rule is None:
            return node
        made = rule(node)
        if made is None or made is node:
            return node
        if not isinstance(made, Expr) or made.dtype is not node.dtype:
            raise ArgumentTypeError(f"the rule for {node.op.name} returned {made!r} for a call of dtype {node.dtype}",
                                    hint="an expression of the same dtype, or None to keep the call")
        if self.depth == _DEPTH:
            raise ArgumentError(f"the rule for {node.op.name} returns calls that rules replace, again and again",
                                hint="return the call itself to keep it")
        return _Rules(self.rules, self.depth + 1)(made)
