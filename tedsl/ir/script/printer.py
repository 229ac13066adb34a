"""The printer of the readable notation: a walk with an explicit stack over tables by node type."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, count
from typing import Any, TypeAlias

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr, Var
from tedsl.ir.node import Node
from tedsl.ir.script.wrap import wrapped
from tedsl.ir.stmt import Stmt
from tedsl.ir.text import LONGEST_LINE, Part, Printer
from tedsl.ir.walk.equal import structural_equal

Places: TypeAlias = Mapping[Node, tuple[Expr, ...]]  # of a Load or Store: its indices along the dimensions of its buffer

Handler: TypeAlias = Callable[[Any, Any], "list[Part]"]
LINE = 0  # the part that begins a new line
STEP = 4  # columns of a block


class ScriptPrinter(Printer):
    """Prints one program.

    places: the indices of its flat accesses. mask: the mask of the statement being printed. aliases: the names for indices that
    this statement repeats, by their text.
    """

    def __init__(self, table: Mapping[type, Handler], places: Places, function_name: str | None = None,
                 longest: int = LONGEST_LINE) -> None:
        super().__init__(table, longest)
        self.places, self.function_name = places, function_name
        self.active: set[str] = set()  # the names that are in use
        self.ranks: dict[Var, int] = {}  # of the memory that is declared: how many dimensions it is shown with
        self.mask: Expr | None = None
        self.aliases: dict[str, str] = {}
        self.at_names: list[str] = []
        self.column = 0  # of the block that is being printed
        self.lines: dict[Stmt, int] = {}  # where each statement begins, counted from 0, before long lines are wrapped

    def text(self, root: Node) -> str:
        """`root` with lines of at most 110 columns."""
        return self.text_with_lines(root)[0]

    def text_with_lines(self, root: Node) -> tuple[str, dict[Stmt, int]]:
        """`root` with lines of at most 110 columns, and the line of each statement in it, counted from 0."""
        parts: list[str] = []
        begins: list[int] = []  # of each line before it is wrapped
        for line in self.print(root).split("\n"):
            begins.append(len(parts))
            parts += wrapped(line)
        return "\n".join(parts), {statement: begins[line] for statement, line in self.lines.items()}

    def print(self, root: Node) -> str:
        out: list[str] = []
        stack: list[Part] = [root]
        nodes = line = 0
        while stack:
            part = stack.pop()
            if isinstance(part, str):
                out.append(part)
                line += part.count("\n")
            elif isinstance(part, Node):
                nodes += 1
                if isinstance(part, Stmt):
                    self.lines[part] = line
                if nodes > self.longest and isinstance(part, Expr):
                    out.append("...")
                else:
                    stack.extend(reversed(self.handler(part)(part, self)))
            elif isinstance(part, int):
                out.append("\n" + " " * self.column)
                nodes = 0
                line += 1
            else:
                stack.extend(reversed(part()))
        return "".join(out)

    def name(self, node: Node, wanted: str, prefix: str) -> str:
        """A unique name for `node`: `wanted`, or with a number appended. Consecutive loops may share a name."""
        plain = wanted if wanted and wanted[0].isalpha() else prefix + wanted
        plain += "_" * keyword.iskeyword(plain)
        unique = next(name for name in chain((plain,), (f"{plain}_{n}" for n in count(1))) if name not in self.active)
        self.active.add(unique)
        self.names[node] = unique
        return unique

    def released(self, var: Var) -> Callable[[], list[Part]]:
        """A part that prints nothing and frees the name of `var`, whose scope has ended."""
        def release() -> list[Part]:
            self.active.discard(self.names.get(var, ""))
            return []

        return release

    def var(self, var: Var, scope: str | None = None) -> str:
        return self.names.get(var) or self.name(var, var.name, "v")

    def buffer(self, buffer: Buffer) -> list[Part]:
        if buffer not in self.names:
            if buffer.data in self.names and self.names[buffer.data].partition("_")[0] == buffer.name:
                self.names[buffer] = self.names[buffer.data]
            else:
                self.names.setdefault(buffer.data, self.name(buffer, buffer.name, "buf_"))
        return [self.names[buffer]]

    def shape(self, memory: Node, extents: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The dimensions of the memory `memory`, an Allocate of `extents`."""
        return self.places.get(memory, extents)

    def needs_mask(self, mask: Expr | None) -> bool:
        """Whether the mask of a load differs from that of its statement, so that it must be printed."""
        if mask is None or build.is_true(mask) or mask is self.mask:
            return False
        return self.mask is None or not structural_equal(mask, self.mask)

    def block(self, body: Part, header: str = ":") -> list[Part]:
        """`header`, followed by `body` indented on the lines below it."""
        return [header, self.moved(STEP), LINE, body, self.moved(-STEP)]

    def moved(self, columns: int) -> Callable[[], list[Part]]:
        """A part that changes the indentation of the lines after it by `columns`."""
        def move() -> list[Part]:
            self.column += columns
            return []

        return move

    def setting(self, **values: Any) -> Callable[[], list[Part]]:
        """A part that prints nothing and sets attributes of the printer from that point on."""
        def assign() -> list[Part]:
            for name, value in values.items():
                setattr(self, name, value)
            return []

        return assign

    def at_name(self, number: int) -> str:
        """The name for index number `number` that a statement repeats; no variable has this name."""
        while len(self.at_names) <= number:
            self.at_names.append(self.name(Node(), "at", ""))
        return self.at_names[number]


def lines(parts: Iterable[Iterable[Part]]) -> list[Part]:
    """Each of `parts` on a line of its own."""
    joined: list[Part] = []
    for position, line in enumerate(parts):
        if position:
            joined.append(LINE)
        joined += line
    return joined


def together(parts: list[Part]) -> Part:
    """Several parts joined into one."""
    return lambda: parts
