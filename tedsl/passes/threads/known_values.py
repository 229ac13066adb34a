"""What is known of an expression where the values of some variables are."""

from __future__ import annotations

from tedsl.ir.expr import And, Call, Expr, Load, Var
from tedsl.ir.walk.visitor import post_order, variables

Values = dict[Var, int]


def on_data(expr: Expr) -> bool:
    return any(isinstance(node, Load) or (isinstance(node, Call) and not node.op.is_pure) for node in post_order(expr))


def value(expr: Expr, values: Values) -> int | None:
    """The value of an index; None if it is not known."""
    from tedsl.ir.evaluate import evaluate  # the interpreter is loaded where a race is suspected only

    if expr.dtype.lanes > 1 or on_data(expr) or any(v not in values for v in variables(expr)):
        return None
    return int(evaluate(expr, values))


def may_hold(condition: Expr, values: Values) -> bool:
    """Whether nothing that is known speaks against `condition`."""
    pending = [condition]
    while pending:
        part = pending.pop()
        match part:
            case And(a=a, b=b):
                pending += [a, b]
            case Call(op=op, args=(inner,)) if op.name == "tir.likely":
                pending.append(inner)
            case _:
                if value(part, values) == 0:
                    return False
    return True
