"""Writes the instructions of an entry point, and integer expressions of shapes as 64-bit arithmetic."""

from __future__ import annotations

from tedsl.errors import LoweringError
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Cast,
    Div,
    Expr,
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
from tedsl.ir.script import shown
from tedsl.ir.walk.visitor import post_order

_OPERATORS: dict[type[Expr], str] = {Add: "add", Sub: "sub", Mul: "mul", And: "and", Or: "or"}
_SELECTED: dict[type[Expr], str] = {Min: "slt", Max: "sgt"}
_COMPARED: dict[type[Expr], str] = {EQ: "eq", NE: "ne", LT: "slt", LE: "sle", GT: "sgt", GE: "sge"}


class Writer:
    """The text of one function as it grows: its lines, the block that they are in, and the values of variables."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0
        self.block = "entry"
        self.values: dict[Var, str] = {}  # of variables, i64 or their float type

    def assign(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {instruction}")
        return f"%v{self.count}"

    def field(self, base: str, offset: int, type_: str) -> str:
        return self.assign(f"load {type_}, ptr {self.assign(f'getelementptr i8, ptr {base}, i64 {offset}')}")

    def all_of(self, conditions: list[str]) -> str:
        """Emits one i1 that tells whether all `conditions` hold."""
        result = conditions[0] if conditions else "true"
        for other in conditions[1:]:
            result = self.assign(f"and i1 {result}, {other}")
        return result

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def expression(self, expr: Expr) -> str:
        """Emits an integer expression of a shape as i64, bools as 0 or 1: the operators that `runtime/shapes.py` evaluates."""
        done: dict[Expr, str] = {}
        for node in post_order(expr):
            match node:
                case IntImm(value=value):
                    done[node] = str(int(value))
                case Var() if node in self.values:
                    done[node] = self.values[node]
                case Cast(value=inner):
                    done[node] = done[inner]
                case Not(a=a):
                    done[node] = self.assign(f"xor i64 {done[a]}, 1")
                case Select(condition=c, true_value=t, false_value=f):
                    chosen = self.assign(f"icmp ne i64 {done[c]}, 0")
                    done[node] = self.assign(f"select i1 {chosen}, i64 {done[t]}, i64 {done[f]}")
                case FloorDiv(a=a, b=b) | FloorMod(a=a, b=b) | Div(a=a, b=b) | Mod(a=a, b=b):
                    done[node] = self.division(type(node), done[a], done[b])
                case Expr():
                    done[node] = self.binary(node, done)
        return done[expr]

    def binary(self, node: Expr, done: dict[Expr, str]) -> str:
        of = type(node)
        if of not in _OPERATORS and of not in _SELECTED and of not in _COMPARED:
            raise LoweringError(f"the shape {shown(node)} of an argument cannot be evaluated at the call",
                                hint="build shapes from variables, numbers and + - * // % min max")
        a, b = (done[child] for child in node.child_nodes() if isinstance(child, Expr))
        if of in _OPERATORS:
            return self.assign(f"{_OPERATORS[of]} i64 {a}, {b}")
        if of in _SELECTED:
            return self.assign(f"select i1 {self.assign(f'icmp {_SELECTED[of]} i64 {a}, {b}')}, i64 {a}, i64 {b}")
        return self.assign(f"zext i1 {self.assign(f'icmp {_COMPARED[of]} i64 {a}, {b}')} to i64")

    def division(self, of: type[Expr], a: str, b: str) -> str:
        """Emits a quotient or remainder, rounded as `of` says; by zero it is 0."""
        is_zero = ""
        if not b.removeprefix("-").isdecimal():
            is_zero = self.assign(f"icmp eq i64 {b}, 0")
            b = self.assign(f"select i1 {is_zero}, i64 1, i64 {b}")
        elif int(b) == 0:
            return "0"
        quotient = of in (Div, FloorDiv)
        result = self.floor(quotient, a, b) if of in (FloorDiv, FloorMod) else \
            self.assign(f"{'sdiv' if quotient else 'srem'} i64 {a}, {b}")
        return self.assign(f"select i1 {is_zero}, i64 0, i64 {result}") if is_zero else result

    def floor(self, quotient: bool, value: str, divisor: str) -> str:
        rest = self.assign(f"srem i64 {value}, {divisor}")
        below = self.assign(f"icmp slt i64 {rest}, 0")
        if not divisor.isdecimal():  # the remainder has the sign of the dividend, and should have that of the divisor
            opposite = self.assign(f"icmp slt i64 {self.assign(f'xor i64 {rest}, {divisor}')}, 0")
            below = self.assign(f"and i1 {opposite}, {self.assign(f'icmp ne i64 {rest}, 0')}")
        if not quotient:
            return self.assign(f"select i1 {below}, i64 {self.assign(f'add i64 {rest}, {divisor}')}, i64 {rest}")
        towards_zero = self.assign(f"sdiv i64 {value}, {divisor}")
        return self.assign(f"add i64 {towards_zero}, {self.assign(f'sext i1 {below} to i64')}")
