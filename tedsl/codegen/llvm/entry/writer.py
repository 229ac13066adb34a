"""Writes the instructions of an entry point, and integer expressions of shapes as 64-bit arithmetic."""

from __future__ import annotations

from tedsl.ir.expr import Add, Cast, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Sub, Var
from tedsl.ir.walk.visitor import post_order

_OPERATORS: dict[type[Expr], str] = {Add: "add", Sub: "sub", Mul: "mul"}
_SELECTED: dict[type[Expr], str] = {Min: "slt", Max: "sgt"}


class Writer:
    """The text of one function as it grows: its lines, the block that they are in, and the values of variables."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.conditions: list[str] = []
        self.count = 0
        self.block = "entry"
        self.values: dict[Var, str] = {}  # of variables, i64 or their float type

    def assign(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {instruction}")
        return f"%v{self.count}"

    def field(self, base: str, offset: int, type_: str) -> str:
        return self.assign(f"load {type_}, ptr {self.assign(f'getelementptr i8, ptr {base}, i64 {offset}')}")

    def require(self, instruction: str) -> None:
        self.conditions.append(self.assign(instruction))

    def all_of(self, conditions: list[str]) -> str:
        """Emits one i1 that tells whether all `conditions` hold."""
        result = conditions[0] if conditions else "true"
        for other in conditions[1:]:
            result = self.assign(f"and i1 {result}, {other}")
        return result

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block, self.conditions = label, []

    def expression(self, expr: Expr) -> str:
        """Emits an integer expression as i64. An operator that is not supported here sends the whole call to Python."""
        done: dict[Expr, str] = {}
        for node in post_order(expr):
            match node:
                case IntImm(value=value):
                    done[node] = str(value)
                case Var() if node in self.values:
                    done[node] = self.values[node]
                case Cast(value=inner):
                    done[node] = done[inner]
                case Add(a=a, b=b) | Sub(a=a, b=b) | Mul(a=a, b=b):
                    done[node] = self.assign(f"{_OPERATORS[type(node)]} i64 {done[a]}, {done[b]}")
                case Min(a=a, b=b) | Max(a=a, b=b):
                    first = self.assign(f"icmp {_SELECTED[type(node)]} i64 {done[a]}, {done[b]}")
                    done[node] = self.assign(f"select i1 {first}, i64 {done[a]}, i64 {done[b]}")
                case FloorDiv(a=a, b=IntImm(value=d)) | FloorMod(a=a, b=IntImm(value=d)) if d > 0:
                    done[node] = self.floor(isinstance(node, FloorDiv), done[a], d)
                case Expr():
                    self.conditions.append("false")
                    done[node] = "0"
        return done[expr]

    def floor(self, quotient: bool, value: str, divisor: int) -> str:
        rest = self.assign(f"srem i64 {value}, {divisor}")
        below = self.assign(f"icmp slt i64 {rest}, 0")
        if not quotient:
            return self.assign(f"select i1 {below}, i64 {self.assign(f'add i64 {rest}, {divisor}')}, i64 {rest}")
        towards_zero = self.assign(f"sdiv i64 {value}, {divisor}")
        return self.assign(f"add i64 {towards_zero}, {self.assign(f'sext i1 {below} to i64')}")
