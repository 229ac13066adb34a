"""Data layouts by name: "NCHW16c" has five dimensions, with the channels in blocks of 16 along the last dimension.

A capital letter is a dimension; a small letter is the position within a block of that dimension, after the block size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, ShapeError
from tedsl.ir import build
from tedsl.ir.expr import Expr


class Layout:
    """The dimensions of a layout in order; `in`, `len`, `[]` and iteration are over their letters."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"a layout is a string, not {name!r}", hint='for example "NCHW16c"')
        parts = re.findall(r"(\d*)([A-Za-z])", name)
        if "".join(f"{size}{letter}" for size, letter in parts) != name:
            raise ArgumentError(f"layout {name!r}: only letters, and numbers before small ones", hint='for example "NCHW16c"')
        self.name = name
        self.factors: dict[str, int] = {letter: int(size or 0) for size, letter in parts}
        if len(self.factors) != len(parts):
            raise ArgumentError(f"layout {name!r} names a dimension twice")
        for letter, size in self.factors.items():
            if letter.islower() and (size < 1 or letter.upper() not in self.factors):
                raise ArgumentError(f"layout {name!r}: {letter!r} is the place in a block of {letter.upper()!r}",
                                    hint=f"write the size of a block before it and {letter.upper()!r} as well: NCHW16c")
            if letter.isupper() and size:
                raise ArgumentError(f"layout {name!r}: {letter!r} is a whole dimension and has no size",
                                    hint=f"blocks are written by the small letter, {size}{letter.lower()}")

    def index_of(self, axis: str) -> int:
        """The position of the dimension with this letter; -1 where there is none."""
        return list(self.factors).index(axis) if axis in self.factors else -1

    def factor_of(self, axis: str) -> int:
        """The size of the blocks of a dimension, by its capital or small letter; -1 where it has none."""
        return self.factors.get(axis.lower(), -1)

    def __len__(self) -> int:
        return len(self.factors)

    def __contains__(self, axis: object) -> bool:
        return axis in self.factors

    def __iter__(self) -> Iterator[str]:
        return iter(self.factors)

    def __getitem__(self, position: int) -> str:
        letters = list(self.factors)
        return letters[position]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Layout({self.name})"


class BijectiveLayout:
    """A mapping of shapes and indices between two layouts of the same dimensions, `src_layout` and `dst_layout`."""

    def __init__(self, src_layout: Layout, dst_layout: Layout) -> None:
        ours, theirs = ({letter for letter in layout if letter.isupper()} for layout in (src_layout, dst_layout))
        if ours != theirs:
            raise ArgumentError(f"bijective_layout: {src_layout} and {dst_layout} do not have the same dimensions",
                                hint=f"{', '.join(sorted(ours ^ theirs))} stands only in one of them")
        self.src_layout, self.dst_layout = src_layout, dst_layout

    def forward_index(self, index: Any) -> list[Expr]:
        """The indices in the second layout of the element at `index` in the first."""
        return _moved(index, self.src_layout, self.dst_layout)

    def backward_index(self, index: Any) -> list[Expr]:
        """The indices in the first layout of the element at `index` in the second."""
        return _moved(index, self.dst_layout, self.src_layout)

    def forward_shape(self, shape: Any) -> list[Expr]:
        """The shape in the second layout; a last block that is not full counts as one."""
        return _reshaped(shape, self.src_layout, self.dst_layout)

    def backward_shape(self, shape: Any) -> list[Expr]:
        """The shape in the first layout."""
        return _reshaped(shape, self.dst_layout, self.src_layout)

    def __repr__(self) -> str:
        return f"BijectiveLayout({self.src_layout} -> {self.dst_layout})"


def layout(layout_str: str | Layout) -> Layout:
    """The layout of that name: layout("NCHW16c")."""
    return layout_str if isinstance(layout_str, Layout) else Layout(layout_str)


def bijective_layout(src_layout: str | Layout, dst_layout: str | Layout) -> BijectiveLayout:
    """The mapping between two layouts of the same dimensions, in both directions."""
    return BijectiveLayout(layout(src_layout), layout(dst_layout))


def _given(values: Any, of: Layout, what: str) -> list[Expr]:
    exprs = [build.as_expr(value) for value in values]
    if len(exprs) != len(of):
        raise ShapeError(f"layout {of} has {len(of)} dimensions, the {what} is {exprs}")
    return exprs


def _moved(index: Sequence[Any], source: Layout, target: Layout) -> list[Expr]:
    at = dict(zip(source, _given(index, source, "index")))

    def place(letter: str) -> Expr:
        """The index along the unblocked dimension that a capital letter names."""
        blocks = source.factor_of(letter)
        return at[letter] if blocks < 0 else build.add(build.mul(at[letter], blocks), at[letter.lower()])

    def moved(letter: str) -> Expr:
        if source.factor_of(letter) == target.factor_of(letter):
            return at[letter]
        blocks = target.factor_of(letter)
        if blocks < 0:
            return place(letter)
        return build.floordiv(place(letter), blocks) if letter.isupper() else build.floormod(place(letter.upper()), blocks)

    return [moved(letter) for letter in target]


def _reshaped(shape: Sequence[Any], source: Layout, target: Layout) -> list[Expr]:
    extents = dict(zip(source, _given(shape, source, "shape")))
    for letter in source:
        known = build.as_int(extents[letter])
        if letter.islower() and known is not None and known != source.factor_of(letter):
            raise ShapeError(f"layout {source}: dimension {letter!r} of the shape {list(extents.values())} is {known}",
                             hint=f"blocks of {letter.upper()!r} have {source.factor_of(letter)} places")

    def extent(letter: str) -> Expr:
        blocks, before = target.factor_of(letter), source.factor_of(letter)
        if letter.islower():
            return build.const(blocks, "int32")
        if blocks == before:
            return extents[letter]
        whole = extents[letter] if before < 0 else build.mul(extents[letter], before)
        known = build.as_int(whole)
        if blocks < 0:
            return whole
        return build.const(-(-known // blocks), whole.dtype) if known is not None \
            else build.floordiv(build.add(whole, blocks - 1), blocks)

    return [extent(letter) for letter in target]
