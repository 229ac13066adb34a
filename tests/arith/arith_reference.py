"""A small oracle, written apart from the interpreter: the value of an integer or bool expression by the text of ir/expr.py."""

from tedsl.ir.dtype import wrap_integer
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    Sub,
    Var,
)
from tedsl.ir.ops import BITWISE_AND, BITWISE_OR, BITWISE_XOR, FABS, IF_THEN_ELSE, LIKELY, SHIFT_LEFT, SHIFT_RIGHT


def _trunc(x, y):
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


OPS = {
    Add: lambda x, y: x + y, Sub: lambda x, y: x - y, Mul: lambda x, y: x * y,
    FloorDiv: lambda x, y: x // y if y else 0, FloorMod: lambda x, y: x % y if y else 0,
    Div: lambda x, y: _trunc(x, y) if y else 0, Mod: lambda x, y: x - _trunc(x, y) * y if y else 0,
    Min: min, Max: max, EQ: lambda x, y: int(x == y), NE: lambda x, y: int(x != y), LT: lambda x, y: int(x < y),
    LE: lambda x, y: int(x <= y), GT: lambda x, y: int(x > y), GE: lambda x, y: int(x >= y),
    And: lambda x, y: x & y, Or: lambda x, y: x | y,
}

CALLS = {
    BITWISE_AND: lambda x, y: x & y, BITWISE_OR: lambda x, y: x | y, BITWISE_XOR: lambda x, y: x ^ y, FABS: abs,
    SHIFT_LEFT: lambda x, y: x << y, SHIFT_RIGHT: lambda x, y: x >> y,  # by 0 and more, less than the bits
}


def value(e, env):
    """`e` with variables, or any other expressions as opaque leaves, given by `env`. Narrow dtypes wrap."""
    if e in env:
        return env[e]
    match e:
        case IntImm():
            return e.value
        case Not():
            return 1 - value(e.a, env)
        case Select():
            return value(e.true_value if value(e.condition, env) else e.false_value, env)
        case Call() if e.op is IF_THEN_ELSE:
            return value(e.args[1] if value(e.args[0], env) else e.args[2], env)
        case Call() if e.op is LIKELY:
            return value(e.args[0], env)
        case Call() if e.op in CALLS:
            return wrap_integer(CALLS[e.op](*(value(arg, env) for arg in e.args)), e.dtype)
        case Cast() if e.dtype.is_bool:
            return int(value(e.value, env) != 0)
        case Cast():
            return wrap_integer(value(e.value, env), e.dtype)
        case Var():
            raise KeyError(e.name)
        case _:
            result = OPS[type(e)](value(e.a, env), value(e.b, env))
            return result if e.dtype in ("int32", "int64", "bool") and not env.get("wrap") else wrap_integer(result, e.dtype)
