"""Sub-graphs in memory, and their text.

    SYMBOL
      input ID EXTENT...
      OPERATOR ID inputs: ID ID shape: EXTENT...
      outputs: ID...                                only where the result is not the last statement alone

The elements are of float32. A text may have its statements indented by two blanks, or not, and may end with a new line, or not.
"""

from __future__ import annotations

from tedsl.record import record

INPUT, OUTPUTS = "input", "outputs:"
OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply"}  # in the text, in graphs


@record
class Statement:
    """An input, or an operator on values that are there. number: by which others read it."""

    operator: str
    number: int
    inputs: tuple[int, ...]
    shape: tuple[int, ...]

    def text(self) -> str:
        extents = "".join(f" {extent}" for extent in self.shape)
        if self.operator == INPUT:
            return f"{INPUT} {self.number}{extents}"
        return f"{self.operator} {self.number} inputs: {' '.join(map(str, self.inputs))} shape:{extents}"


@record
class SubGraph:
    """A function: statements in the order in which they run, and the numbers of its results."""

    symbol: str
    statements: tuple[Statement, ...]
    outputs: tuple[int, ...]

    @property
    def inputs(self) -> tuple[Statement, ...]:
        return tuple([one for one in self.statements if one.operator == INPUT])

    @property
    def results(self) -> tuple[Statement, ...]:
        known = {one.number: one for one in self.statements}
        return tuple([known[number] for number in self.outputs])


@record
class Program:
    """Sub-graphs, each of a symbol of its own. indent, newline: how the text is laid out."""

    graphs: tuple[SubGraph, ...]
    indent: int = 2
    newline: bool = True

    def text(self) -> str:
        lines = []
        for one in self.graphs:
            lines.append(one.symbol)
            lines += [" " * self.indent + statement.text() for statement in one.statements]
            if one.outputs != (one.statements[-1].number,):
                lines.append(f"{' ' * self.indent}{OUTPUTS} {' '.join(map(str, one.outputs))}")
        return "\n".join(lines) + "\n" * self.newline
