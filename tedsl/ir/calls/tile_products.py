"""Products of matrices by tile registers: the call `tir.tile_product`, and what it means.

    tile_product(&C[c], &A[a], &B[b], rows, columns, terms, c_row, c_panel, a_row, b_group, b_panel, from_zero,
                 extent, a_step, b_step)

adds to C, or with from_zero = 1 gives C, for each row i, column j, term k and iteration t of the loop around the terms:

    C[c + i*c_row + (j/32)*c_panel + j%32] +=
        A[a + i*a_row + k + t*a_step] * B[b + (k/g)*b_group + (j/32)*b_panel + (j%32)*g + k%g + t*b_step]

The second matrix lies by groups of g terms, which fill 32 bits: two of bfloat16, four of bytes; `terms` is a multiple of g.
There may be any number of loops around the terms; each has three arguments: its extent, at least 1, and the elements by which
it steps in A and in B. C holds float32 for bfloat16, else integers of 32 bits, which wrap. Floats are added in an order of the
processor's own, and denormal numbers count as zero there.
"""

from __future__ import annotations

from tedsl.ir.dtype import DType
from tedsl.ir.expr import Call, Expr, Load
from tedsl.ir.ops import ADDRESS_OF
from tedsl.record import record

PANEL = 32  # columns
NUMBERS = 9  # rows to from_zero
FIRST = 3  # the place of the first of these among the arguments
_WORD = 32  # bits of a group


@record(eq=False)
class TileProduct:
    """The arguments of a call: the first elements of C, A and B, the loops around the terms, the numbers by name."""

    places: tuple[Load, Load, Load]
    around: tuple[tuple[Expr, Expr, Expr], ...]
    rows: Expr
    columns: Expr
    terms: Expr
    c_row: Expr
    c_panel: Expr
    a_row: Expr
    b_group: Expr
    b_panel: Expr
    from_zero: Expr


def tile_product(call: Call) -> TileProduct:
    """Returns the arguments of a call that fits the signature of `tir.tile_product`."""
    c, a, b, *numbers = call.args
    rest = numbers[NUMBERS:]
    around = tuple((rest[at], rest[at + 1], rest[at + 2]) for at in range(0, len(rest), 3))
    return TileProduct((_element(c), _element(a), _element(b)), around, *numbers[:NUMBERS])


def fits(args: tuple[Expr, ...]) -> bool:
    """Tells whether these are arguments of `tir.tile_product`."""
    if len(args) < FIRST + NUMBERS or (len(args) - FIRST - NUMBERS) % 3:
        return False
    if not all(_is_address(arg) for arg in args[:FIRST]) or not all(arg.dtype.is_integer for arg in args[FIRST:]):
        return False
    of_c, of_a, of_b = (_element(arg).dtype for arg in args[:FIRST])
    c, a, b = (_element(arg).buffer_var for arg in args[:FIRST])
    return can_multiply(of_c, of_a, of_b) and c not in (a, b)


def can_multiply(of_c: DType, of_a: DType, of_b: DType) -> bool:
    """Tells whether sums of `of_c` may be those of products of `of_a` and `of_b`."""
    if of_a.code == of_b.code == "bfloat":
        return str(of_c) == "float32"
    return of_c.is_integer and of_c.bits == _WORD and of_c.lanes == 1 and all(
        of.is_integer and of.bits == 8 and of.lanes == 1 for of in (of_a, of_b))


def terms_of_group(of: DType) -> int:
    """Returns how many terms of this dtype are a group."""
    return _WORD // of.bits


def _is_address(arg: Expr) -> bool:
    return isinstance(arg, Call) and arg.op is ADDRESS_OF and isinstance(arg.args[0], Load)


def _element(arg: Expr) -> Load:
    assert isinstance(arg, Call) and isinstance(arg.args[0], Load)
    return arg.args[0]
