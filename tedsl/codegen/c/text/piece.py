"""A piece of an expression in C: its text, how tightly it binds, and what is known of its value."""

from __future__ import annotations

from typing import NamedTuple

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
# How tightly an expression binds, as C has it.
CHOICE, OR, AND, BITS, EQUALITY, ORDER, SHIFT, SUM, PRODUCT, UNARY, PRIMARY = range(11)


class Piece(NamedTuple):
    """The text of an expression. depth: of the operators in it; reads: it reads memory when it is evaluated.

    low, high: the bounds of the mathematical value of an index, in 64 bits.
    """

    text: str
    rank: int = PRIMARY
    depth: int = 0
    reads: bool = False
    low: int = INT64_MIN
    high: int = INT64_MAX

    def at(self, rank: int) -> str:
        """Returns the text as an operand of an operator that binds like `rank`: in parentheses where it binds less."""
        return self.text if self.rank >= rank else f"({self.text})"

    @property
    def constant(self) -> int | None:
        """The value of an index that is a constant; None for others."""
        return self.low if self.low == self.high else None

    @property
    def fits(self) -> bool:
        """Whether the mathematical value provably fits 64 bits."""
        return self.low >= INT64_MIN and self.high <= INT64_MAX


def number(value: int) -> Piece:
    """Returns the index `value`."""
    text = str(value) if -2**31 < value < 2**31 else "INT64_MIN" if value == INT64_MIN else f"INT64_C({value})"
    return Piece(text, PRIMARY if value >= 0 else UNARY, 0, False, value, value)


def infix(operator: str, rank: int, a: Piece, b: Piece, *, within: int | None = None) -> Piece:
    """Returns `a operator b`. within: how tightly operands must bind, if more than C asks."""
    left = right = within
    if left is None or right is None:
        left, right = rank, rank + 1
    return Piece(f"{a.at(left)} {operator} {b.at(right)}", rank, max(a.depth, b.depth) + 1, a.reads or b.reads)


def compared(operator: str, rank: int, a: Piece, b: Piece) -> Piece:
    """Returns a comparison; operands that are comparisons themselves stand in parentheses."""
    return infix(operator, rank, a, b, within=SHIFT)


def prefix(operator: str, a: Piece) -> Piece:
    """Returns `operator a`, as `-a`, `!a` or a cast `(float)a`."""
    return Piece(f"{operator}{a.at(PRIMARY if operator[-1] in '-+' else UNARY)}", UNARY, a.depth + 1, a.reads)


def cast(type_: str, a: Piece) -> Piece:
    """Returns `(type_)a`, with the bounds of `a`."""
    return prefix(f"({type_})", a)._replace(low=a.low, high=a.high)


def call(name: str, *args: Piece, reads: bool = False) -> Piece:
    """Returns the call `name(args)`."""
    return Piece(f"{name}({', '.join(a.text for a in args)})", PRIMARY, max((a.depth for a in args), default=0) + 1,
                 reads or any(a.reads for a in args))


def chosen(condition: Piece, yes: Piece, no: Piece) -> Piece:
    """Returns `condition ? yes : no`, whose sides are evaluated only if they are chosen."""
    return Piece(f"{condition.at(OR + 1)} ? {yes.at(OR)} : {no.at(OR)}", CHOICE,
                 max(condition.depth, yes.depth, no.depth) + 1, condition.reads or yes.reads or no.reads)
