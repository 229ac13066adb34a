"""The text of one LLVM function while it is written: its blocks, regions, names, and the instructions that can be reused.

A region is the body of a loop or the side of a branch. Each region has a place just before the inner region that is being
written; an instruction without effects is put into the outermost region that defines all its operands, so that
loop-invariant address arithmetic is emitted outside of the loops. Within a region equal instructions are emitted once.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(r"[^A-Za-z0-9_.]")


class Sink:
    """The lines of a function. level: the number of the region being written, 0 outside of all; block: the current label."""

    def __init__(self) -> None:
        self.entry: list[str] = []  # allocas
        self.lines: list[str] = []
        self.out: list[list[str]] = [self.lines]
        self.places: list[list[str]] = [self.lines]  # by region: where invariant instructions go
        self.known: list[dict[str, str]] = [{}]  # by region: instruction -> register
        self.level = 0
        self.block = "entry"
        self.location = ""  # what ends each instruction: its place in the line table, if there is one
        self._count = 0
        self._names: set[str] = {"entry"}

    # --- names and lines ---------------------------------------------------------------------------------------------

    def fresh(self, wish: str) -> str:
        """Returns an unused local name like `wish`, without the percent sign."""
        base = name = _UNSAFE.sub("_", wish)[:64] or "x"  # LLVM cuts long names: two would become one
        if base[0].isdigit() or (base[0] == "v" and base[1:].isdigit()):
            base = name = "_" + base
        k = 1
        while name in self._names:
            name, k = f"{base}.{k}", k + 1
        self._names.add(name)
        return name

    def assign(self, rhs: str) -> str:
        """Writes the instruction `rhs` here and returns its register."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {rhs}{self.location}")
        return name

    def pure(self, rhs: str, level: int) -> str:
        """Returns a register with the result of `rhs`, an instruction without effects or traps whose operands are defined in
        region `level`.
        """
        known = self.known[level]
        name = known.get(rhs)
        if name is None:
            self._count += 1
            name = known[rhs] = f"%v{self._count}"
            self.places[level].append(f"  {name} = {rhs}{self.location}")
        return name

    def here(self, rhs: str) -> str:
        """Writes `rhs`, which has no effects, here and returns its register; equal instructions of this region are written
        once.
        """
        return self.pure(rhs, self.level)

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}{self.location}")

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def alloca(self, type_: str, alignment: int, name: str) -> str:
        """Allocates memory on the stack for the whole call of the function and returns its pointer."""
        pointer = "%" + self.fresh(name)
        self.entry.append(f"  {pointer} = alloca {type_}, align {alignment}")
        return pointer

    # --- regions ----------------------------------------------------------------------------------------------------------

    def place_before(self) -> None:
        """Sets the place for loop-invariant instructions. Call before the terminator that enters an inner region."""
        place: list[str] = []
        self.out.append(place)
        self.places[self.level] = place
        self._new_lines()

    def open_region(self) -> None:
        """Begins an inner region. Call after the terminator that enters it."""
        self.level += 1
        self._new_lines()
        self.places.append(self.lines)
        self.known.append({})

    def region_beside(self) -> None:
        """Ends an inner region and begins that of the other side of the branch."""
        self._new_lines()
        self.places[self.level] = self.lines
        self.known[self.level] = {}

    def leave_region(self) -> None:
        """Returns to the outer region."""
        self.places.pop()
        self.known.pop()
        self.level -= 1
        self._new_lines()
        self.places[self.level] = self.lines

    def _new_lines(self) -> None:
        self.lines = []
        self.out.append(self.lines)

    # --- the text -----------------------------------------------------------------------------------------------------

    def text(self, header: str) -> str:
        """Returns the text of the whole function; `header` is everything before the opening brace."""
        body = [line for lines in self.out for line in lines]
        return "\n".join([f"{header} {{", "entry:", *self.entry, *body, "}"])
