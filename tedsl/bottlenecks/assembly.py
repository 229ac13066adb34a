"""What machine code does in the innermost loop of a stage: the widest vectors that compute, gathers, scatters, spills.

The listing of a module names, above instructions, the line of the loops that they implement. A loop of the code is what a jump
back to a label encloses; of a stage the one counts whose instructions compute most.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tedsl.record import record

_LINE = re.compile(r"#\s*(\d+): ")
_LABEL = re.compile(r"(\.L\w+|[\w.$]+):")
_COMPUTES = re.compile(r"v?(fn?m(add|sub)\w*|add|sub|mul|div|min|max|sqrt|dpbusd\w*|dpwssd\w*|dpbf16)(ps|pd|ss|sd|ph|sh|s)?$"
                       r"|v?p(add|sub|mul|mull|madd|min|max)\w+$")
_SCALAR = re.compile(r"(ss|sd|sh)$")
_WIDTHS = (("%zmm", 512), ("%ymm", 256), ("%xmm", 128))
_MOVES = re.compile(r"v?mov\w*$")
_INSERTS = ("vinsert", "vpinsr", "insertps", "pinsr", "vmovhps", "vpextr", "vextract")
_SINGLE = re.compile(r"v?mov(ss|sd|d|q) [^,]*\([^)]*\), %xmm")  # a load of one element


@record
class Instruction:
    """An instruction: the line of the loops that it implements, its name and operands."""

    line: int
    name: str
    operands: str

    @property
    def vector_bits(self) -> int:
        """The bits of its widest vector register that are used; 0 if it has none."""
        if _SCALAR.search(self.name):
            return 64 if self.name.endswith("sd") else 16 if self.name.endswith("sh") else 32
        return next((bits for register, bits in _WIDTHS if register in self.operands), 0)

    @property
    def computes(self) -> bool:
        """Whether it is arithmetic on elements."""
        return bool(_COMPUTES.match(self.name)) and "%rsp" not in self.operands.rpartition(",")[2] and self.vector_bits > 0

    @property
    def at_stack(self) -> bool:
        """Whether it moves a register to the stack or back, or computes with one there; arrays on the stack have an index."""
        return "(%rsp)" in self.operands and (self.vector_bits > 0 or bool(_MOVES.match(self.name)))


@record
class InnerLoop:
    """The innermost loop of the code of a stage; the whole stage where it has none.

    vector_bits: of its widest arithmetic, the width of an element if it is scalar; 0 if it has none. spills: instructions with
    operands on the stack. inserts: those that make vectors of single elements or take them apart, loads of one element too.
    size: of all instructions; whole: of all of the stage, in this loop and beside it.
    """

    vector_bits: int
    arithmetic: int
    gathers: int
    scatters: int
    inserts: int
    spills: int
    calls: int
    size: int
    whole: int


def instructions_of(listing: str) -> Iterator[Instruction | str]:
    """The instructions of an assembly of x86-64 in its order, and its labels as text."""
    line = 0
    for text in listing.splitlines():
        marked = _LINE.match(text)
        if marked:
            line = int(marked[1])
        elif label := _LABEL.match(text):
            yield label[1]
        elif text.startswith("\t") and not text.startswith("\t."):
            name, _, operands = text[1:].partition("\t")
            yield Instruction(line, name, operands.strip())


def inner_loop(listing: str, lines: Collection[int], of_stage: Collection[int]) -> InnerLoop | None:
    """Returns what the innermost loop does that implements most of `lines`, which are some of those of the stage; None if there
    is no code of them.
    """
    code = list(instructions_of(listing))
    places = {label: at for at, label in enumerate(code) if isinstance(label, str)}
    loops = [(places[one.operands], at) for at, one in enumerate(code) if isinstance(one, Instruction)
             and one.name.startswith("j") and places.get(one.operands, at) < at]
    innermost = [(first, last) for first, last in loops
                 if not any((first, last) != other and first <= other[0] and other[1] <= last for other in loops)]
    mine = [at for at, one in enumerate(code) if isinstance(one, Instruction) and one.line in lines]
    if not mine:
        return None
    found = [[one for one in code[first:last + 1] if isinstance(one, Instruction)] for first, last in innermost
             if any(first <= at <= last for at in mine)]
    whole = [one for at in mine if isinstance(one := code[at], Instruction)]
    count = sum(isinstance(one, Instruction) and one.line in of_stage for one in code)
    return _facts(max(found, key=lambda loop: _amount(loop, lines), default=whole), count)


def _amount(loop: list[Instruction], lines: Collection[int]) -> tuple[int, int]:
    own = [one for one in loop if one.line in lines]
    return sum(one.vector_bits for one in own if one.computes), sum(max(one.vector_bits, 1) for one in own)


def _facts(loop: list[Instruction], whole: int) -> InnerLoop:
    arithmetic = [one for one in loop if one.computes]
    moving = arithmetic or [one for one in loop if _MOVES.match(one.name)]
    return InnerLoop(
        vector_bits=max((one.vector_bits for one in moving), default=0), arithmetic=len(arithmetic),
        gathers=sum("gather" in one.name for one in loop), scatters=sum("scatter" in one.name for one in loop),
        inserts=sum(one.name.startswith(_INSERTS) or bool(_SINGLE.match(f"{one.name} {one.operands}")) for one in loop),
        spills=sum(one.at_stack for one in loop), calls=sum(one.name.startswith("call") for one in loop), size=len(loop),
        whole=max(whole, len(loop)))
