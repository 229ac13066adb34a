"""The text of one LLVM function while it is written: blocks, regions, names, which instructions stand there already.

A region is the body of a loop or the side of a branch. Each region has a place just before the region inside it that is
being written; an instruction without effects is put into the outermost region that defines all its operands, so
invariant address arithmetic leaves the loops as it is written. Within a region equal instructions are written once.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(r"[^A-Za-z0-9_.]")


class Sink:
    """Lines of a function. level: the number of the region that is written, 0 outside of all; block: the label at hand."""

    def __init__(self) -> None:
        self.entry: list[str] = []  # allocas
        self.lines: list[str] = []
        self.out: list[list[str]] = [self.lines]
        self.places: list[list[str]] = [self.lines]  # by region: where invariant instructions go
        self.known: list[dict[str, str]] = [{}]  # by region: instruction -> register
        self.level = 0
        self.block = "entry"
        self._count = 0
        self._names: set[str] = {"entry"}

    # --- names and lines ---------------------------------------------------------------------------------------------

    def fresh(self, wish: str) -> str:
        """A local name like `wish` that is not in use, without the percent sign."""
        base = name = _UNSAFE.sub("_", wish)[:64] or "x"  # LLVM cuts long names: two would become one
        if base[0].isdigit() or (base[0] == "v" and base[1:].isdigit()):
            base = name = "_" + base
        k = 1
        while name in self._names:
            name, k = f"{base}.{k}", k + 1
        self._names.add(name)
        return name

    def assign(self, rhs: str) -> str:
        """The register that holds `rhs`, computed here."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {rhs}")
        return name

    def pure(self, rhs: str, level: int) -> str:
        """The register that holds `rhs`, an instruction without effects or traps whose operands stand in region `level`."""
        known = self.known[level]
        name = known.get(rhs)
        if name is None:
            self._count += 1
            name = known[rhs] = f"%v{self._count}"
            self.places[level].append(f"  {name} = {rhs}")
        return name

    def here(self, rhs: str) -> str:
        """`assign` of something without effects: equal instructions of this region are written once."""
        return self.pure(rhs, self.level)

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def alloca(self, type_: str, alignment: int, name: str) -> str:
        """Room on the stack for the whole call of the function."""
        pointer = "%" + self.fresh(name)
        self.entry.append(f"  {pointer} = alloca {type_}, align {alignment}")
        return pointer

    # --- regions ----------------------------------------------------------------------------------------------------------

    def place_before(self) -> None:
        """Call before the terminator that leaves for an inner region: invariant instructions are put here from now on."""
        place: list[str] = []
        self.out.append(place)
        self.places[self.level] = place
        self._new_lines()

    def open_region(self) -> None:
        """After the terminator: what follows is the inner region."""
        self.level += 1
        self._new_lines()
        self.places.append(self.lines)
        self.known.append({})

    def region_beside(self) -> None:
        """Another inner region beside the one that ends here: the other side of a branch."""
        self._new_lines()
        self.places[self.level] = self.lines
        self.known[self.level] = {}

    def leave_region(self) -> None:
        """Back in the outer region."""
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
        """The whole function; `header` is everything before the opening brace."""
        body = [line for lines in self.out for line in lines]
        return "\n".join([f"{header} {{", "entry:", *self.entry, *body, "}"])
