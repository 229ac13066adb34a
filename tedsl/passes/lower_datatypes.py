"""Replace operators of types of the program (`custom[myfloat]32`) by what it registered for them, on unsigned integers.

before:  C[i] = A[i] + B[i]                                A, B and C of custom[myfloat]32
after:   C[i] = call_pure_extern(MyAdd32, A[i], B[i])      A, B and C of uint32

The rules are those of `ir/calls/datatypes.py`. What moves values and computes nothing needs none: loads, stores, choices,
`tir.reinterpret`, calls of functions by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.errors import ArgumentTypeError, LoweringError
from tedsl.ir.calls.datatypes import has_datatypes, rule_for
from tedsl.ir.dtype import BOOL, DType
from tedsl.ir.expr import BinaryOp, Call, Cast, Expr, FloatImm, IntImm
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import FOREIGN, IF_THEN_ELSE, REINTERPRET
from tedsl.ir.script import shown
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.passes.retyped import retyped

_KEPT = (IF_THEN_ELSE, REINTERPRET, *FOREIGN)  # calls that compute nothing with the type


def lower_datatypes(func: PrimFunc, targets: Sequence[str]) -> PrimFunc:
    """Returns `func` without types of the program: arrays, memory and numbers of them are unsigned integers of as many bits.

    targets: the names under which rules are looked for, the first first. Raises LoweringError for an operator without one.
    """
    if not has_datatypes():
        return func
    lowered = func.with_body(_Rules((*targets, "default"))(func.body))
    return retyped(lowered, lambda of: of.storage if of.is_custom else None, _no_constant)


def _no_constant(e: FloatImm) -> IntImm:
    raise AssertionError(f"{e!r} was lowered by its rule")


class _Rules(Rewriter):
    """Applies the rules; a result that stands for a value of the type is marked by `tir.reinterpret`."""

    def __init__(self, targets: tuple[str, ...]) -> None:
        super().__init__()
        self.targets = targets

    def rewrite(self, node: Any) -> Any:
        match node:
            case FloatImm() if node.dtype.is_custom:
                return self.applied(node, "FloatImm", node.dtype.custom)
            case Cast(value=value) if node.dtype.is_custom or value.dtype.is_custom:
                return self.applied(node.replace(value=_bits(value)), "Cast", _name(value.dtype), _name(node.dtype))
            case BinaryOp(a=a, b=b) if a.dtype.is_custom:
                kind: Any = type(node)
                return self.applied(kind(_bits(a), _bits(b)), kind.__name__, a.dtype.custom, of=node.dtype)
            case Call(op=op, args=args) if op.effect == "pure" or op in FOREIGN:
                own = next((e.dtype for e in (node, *args) if e.dtype.is_custom), None)
                if own is None or (op in _KEPT and rule_for(self.targets, "Call", own.custom, op.name) is None):
                    return node
                return self.applied(node.replace(args=tuple(map(_bits, args))), "Call", own.custom, op.name)
            case _:
                return node

    def applied(self, e: Expr, op_name: str, src: str, more: str = "", of: DType | None = None) -> Expr:
        """Returns what the rule makes of `e`, an operator over bits. of: the dtype of the operator, that of `e` if None."""
        rule, of = rule_for(self.targets, op_name, src, more), of or e.dtype
        if rule is None:
            raise _no_rule(op_name, src, more, of, self.targets[0])
        made = rule(e)
        if not isinstance(made, Expr) or made.dtype is not of.storage:
            raise ArgumentTypeError(f"the rule for {_words(op_name, src, more)} returned {shown(made)} for {shown(e)}, which "
                                    f"is to be of {of.storage}", hint="return an expression of that dtype")
        return Call(of, REINTERPRET, (made,)) if of.is_custom else made


def _bits(e: Expr) -> Expr:
    """Returns the bits of a value of a type; other values are themselves."""
    if not e.dtype.is_custom:
        return e
    if isinstance(e, Call) and e.op is REINTERPRET and e.args[0].dtype is e.dtype.storage:
        return e.args[0]
    return Call(e.dtype.storage, REINTERPRET, (e,))


def _name(of: DType) -> str:
    """Returns the name of a dtype in rules for casts: that of the type, or of its kind; bool counts as an unsigned integer."""
    return of.custom or ("uint" if of.element is BOOL else of.code)


def _words(op_name: str, src: str, more: str) -> str:
    return {"Cast": f"a Cast from {src} to {more}", "Call": f"{more} of {src}"}.get(op_name, f"{op_name} of {src}")


def _no_rule(op_name: str, src: str, more: str, of: DType, target: str) -> LoweringError:
    last = {"Cast": f', "{more}"', "Call": f', intrinsic_name="{more}"'}.get(op_name, "")
    return LoweringError(f"there is no rule for {_words(op_name, src, more)} on {target}, which gives {of}",
                         hint=f'tedsl.target.datatype.register_op(f, "{op_name}", "{target}", "{src}"{last})')
