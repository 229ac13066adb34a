"""The state of writing one function in C: blocks of lines, the temporaries computed so far, the values of variables.

`value(expr)` gives the text of an expression; what is too long for one line, or used twice, becomes a temporary before it.
Expressions are walked with an explicit stack, so they may be nested to any depth. As in the interpreter there are two modes:
data has the arithmetic of its dtype, `wide` is index arithmetic in 64 bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tedsl.codegen.c.text.module_text import ModuleText
from tedsl.codegen.c.text.names import Names
from tedsl.codegen.c.text.piece import PRIMARY, Piece, chosen, number
from tedsl.codegen.c.text.types import value_type
from tedsl.errors import InternalError, type_in_words
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Broadcast, Expr, FloatImm, IntImm, StringImm, Var
from tedsl.ir.node import Node
from tedsl.ir.stmt import Allocate
from tedsl.ir.walk.certain import Certain
from tedsl.ir.walk.fresh_stack import Descent
from tedsl.ir.walk.index_arithmetic import is_index_arithmetic, wraps
from tedsl.ir.walk.visitor import post_order
from tedsl.record import record

Emission: TypeAlias = Generator[tuple[Expr, bool], Piece, Piece]  # asks for a child (and its mode), gives its own text
DEEPEST, LONGEST = 9, 100  # operators in one another, and characters, of an expression that stays in one piece
SHORT = 24  # characters of an expression that is written again where it is used twice
_LEAVES = (Var, IntImm, FloatImm, StringImm)


@dataclass
class Block:
    """Lines between braces. conditional: they may not run; memo: the temporaries of the current statement made here."""

    lines: list[str] = field(default_factory=list)
    conditional: bool = False
    memo: dict[tuple[int, bool, str], Piece] = field(default_factory=dict)


@record
class Lane:
    """The lane of vectors that is computed: its number as text, and the block, by number, around the loop over lanes."""

    text: Piece
    outer: int


@record
class BufferInfo:
    """A buffer in C: the name of its pointer, the dtype of one element.
    own: memory that nothing else points to; const: it is only read.
    """

    name: str
    dtype: DType
    own: bool = False
    const: bool = False


@dataclass
class Tables:
    """The functions that emit each kind of node."""

    data: dict[type, Callable[[Emitter, Any], Emission]]
    index: dict[type, Callable[[Emitter, Any], Emission]]
    index_leaf: Callable[[Emitter, Any], Emission]
    statements: dict[type, Callable[[Emitter, Any], None]]


@record
class FunctionFacts:
    """Facts about a function that are collected before it is written.

    on_stack: the arrays on its stack; noalias: arrays of the user do not overlap; status: of a message of its assertions.
    owner: the function of the program. in_parallel: whether it is the body of a parallel loop. result: the pointer to the place
    of the number that it returns.
    """

    name: str
    on_stack: frozenset[Allocate]
    noalias: bool
    status: Callable[[str], int]
    owner: str = ""
    in_parallel: bool = False
    result: str = ""


class Emitter:
    """Writes the lines of one function."""

    def __init__(self, module: ModuleText, tables: Tables, function: FunctionFacts, names: Names) -> None:
        self.module, self.tables, self.function, self.names = module, tables, function, names
        self.blocks = [Block()]
        self.index: dict[Var, Piece] = {}  # variables of index arithmetic
        self.data: dict[Var, Piece] = {}
        self.vectors: dict[Var, str] = {}  # variables with several lanes: the name of an array
        self.buffers: dict[Var, BufferInfo] = {}
        self.purity: dict[Expr, bool] = {}
        self.uses: Counter[int] = Counter()
        self.ordered = False  # whether what is read must be read in its order, as calls with effects are among it
        self.lane: Lane | None = None
        self.certain = Certain(lambda choice: True)
        self.workspaces: list[str] = []  # that are allocated here
        self.descent = Descent()
        self.stage = ""  # whose elements the loops around compute

    # --- lines ------------------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.blocks[-1].lines.append(text)

    @contextmanager
    def block(self, header: str, *, conditional: bool = True) -> Iterator[None]:
        """The lines written inside, between braces, after `header`; its temporaries end with it."""
        inner = Block(conditional=conditional)
        self.blocks.append(inner)
        try:
            yield
        finally:
            self.blocks.pop()
        self.put(header, inner)

    def put(self, header: str, inner: Block) -> None:
        """Writes the lines of `inner`, a block that has ended, between braces."""
        if header.startswith("else") and self.blocks[-1].lines[-1:] == ["}"]:
            self.blocks[-1].lines[-1] = "} " + header + " {"
        else:
            self.line(header + " {")
        self.blocks[-1].lines.extend(["    " + text if text else text for text in inner.lines])
        self.line("}")

    def open(self) -> Block:
        """Begins a block that runs under a condition, to be ended by `close`."""
        self.blocks.append(Block(conditional=True))
        return self.blocks[-1]

    def close(self) -> None:
        self.blocks.pop()

    def temporary(self, piece: Piece, type_: str, wanted: str = "t") -> Piece:
        """Writes `piece` into a constant of its own and returns that."""
        name = self.names.fresh(wanted)
        declared = f"{type_}const {name}" if type_.endswith("*") else f"const {type_} {name}"
        self.line(f"{declared} = {piece.text};")
        return Piece(name, low=piece.low, high=piece.high)

    def leave(self, status: str) -> None:
        """Frees what this function allocated and returns `status`."""
        for name in reversed(self.workspaces):
            self.line(f"tedsl_workspace_free({name});")
        self.line(f"return {status};")

    # --- statements -------------------------------------------------------------------------------------------------------

    def statement(self, s: Any) -> None:
        """Writes the statement `s`."""
        emit = self.tables.statements.get(type(s))
        if emit is None:
            raise InternalError(f"{type_in_words(s)} reached C: an earlier pass should have replaced it")
        self.descent(emit, self, s)

    def begin(self, *roots: Expr | None) -> None:
        """Begins a statement that evaluates `roots`: what was read for the one before may have changed."""
        for block in self.blocks:
            block.memo.clear()
        self.uses.clear()
        self.ordered = False
        for root in roots:
            if root is not None and not isinstance(root, _LEAVES):
                self._count(root)

    def _count(self, root: Node) -> None:
        self.uses[id(root)] += 1
        for node in post_order(root):
            for child in node.child_nodes():
                self.uses[id(child)] += 1
            self.ordered = self.ordered or getattr(getattr(node, "op", None), "effect", "") == "opaque"

    # --- expressions ------------------------------------------------------------------------------------------------------

    def value(self, root: Expr, wide: bool = False) -> Piece:
        """Returns the text of `root`: as data, or wide as index arithmetic."""
        known = self._leaf(root, wide)
        if known is None:
            known = self._known(root, wide)
        return self.run(self._request(root, wide)) if known is None else known

    def run(self, first: Emission) -> Piece:
        """Runs an emission and those that it asks for, on a stack of their own; returns its result."""
        stack = [first]
        result: Any = None
        while True:
            try:
                expr, wide = stack[-1].send(result)
            except StopIteration as finished:
                stack.pop()
                result = finished.value
                if stack:
                    continue
                piece: Piece = finished.value
                return piece
            known = self._leaf(expr, wide)
            if known is None:
                known = self._known(expr, wide)
            if known is None:
                stack.append(self._request(expr, wide))
            result = known

    def _leaf(self, e: Expr, wide: bool) -> Piece | None:
        """The text of a constant or variable in index arithmetic, which needs no emission."""
        if wide and type(e) is IntImm:
            return number(e.value)
        return self.index.get(e) if wide and isinstance(e, Var) else None

    def _key(self, e: Expr, wide: bool) -> tuple[int, bool, str]:
        return id(e), wide, self.lane.text.text if self.lane is not None and e.dtype.lanes > 1 else ""

    def _known(self, e: Expr, wide: bool) -> Piece | None:
        key = self._key(e, wide)
        return next((block.memo[key] for block in reversed(self.blocks) if key in block.memo), None)

    def _request(self, e: Expr, wide: bool) -> Emission:
        """Emits `e`; a scalar inside a loop over lanes is computed before it, unless a condition stands between."""
        lane = self.lane
        if lane is None or e.dtype.lanes > 1 or isinstance(e, _LEAVES):
            return self._emit(e, wide)
        if any(block.conditional for block in self.blocks[lane.outer + 1:]):
            return self._emit(e, wide)
        return self._hoisted(e, wide, lane)

    def _hoisted(self, e: Expr, wide: bool, lane: Lane) -> Emission:
        inner, self.blocks, self.lane = self.blocks[lane.outer + 1:], self.blocks[:lane.outer + 1], None
        piece = yield e, wide
        if inner and (piece.reads or piece.depth > 2) and not e.dtype.is_handle:
            key = self._key(e, wide)
            piece = self.blocks[-1].memo[key] = self.temporary(piece, _type_of(e.dtype, wide))
        self.blocks, self.lane = self.blocks + inner, lane
        return piece

    def _emit(self, e: Expr, wide: bool) -> Emission:
        """Emits `e`, and makes a temporary of it where it is long, used twice, or must be read now."""
        if wide:
            emit = self.tables.index_leaf if wraps(e) else self.tables.index.get(type(e), self.tables.index_leaf)
        else:
            found = self.tables.data.get(type(e))
            if found is None:
                raise InternalError(f"{type_in_words(e)} reached C: an earlier pass should have replaced it")
            emit = found
        key = self._key(e, wide)
        piece = yield from emit(self, e)
        if self._keeps(e, piece):
            piece = self.temporary(piece, _type_of(e.dtype, wide))
        if self.uses[id(e)] > 1 or piece.rank == PRIMARY:
            self.blocks[-1].memo[key] = piece
        return piece

    def _keeps(self, e: Expr, piece: Piece) -> bool:
        if e.dtype.is_handle or isinstance(e, (*_LEAVES, Broadcast)):
            return False
        if piece.rank == PRIMARY and not piece.depth and not piece.reads:
            return False
        twice = self.uses[id(e)] > 1 and (piece.reads or len(piece.text) > SHORT)
        return twice or piece.depth > DEEPEST or len(piece.text) > LONGEST or (self.ordered and piece.reads)

    def choose(self, condition: Piece, of: str, yes: Emission, no: Emission) -> Emission:
        """Emits a choice whose sides are computed only if they are chosen. of: the type of both."""
        sides: list[tuple[Block, Piece]] = []
        for side in (yes, no):
            block = self.open()
            piece = yield from side
            self.close()
            sides.append((block, piece))
        low, high = min(p.low for _, p in sides), max(p.high for _, p in sides)
        if not any(block.lines for block, _ in sides):
            return chosen(condition, sides[0][1], sides[1][1])._replace(low=low, high=high)
        name = self.names.fresh("t")
        self.line(f"{of}{'' if of.endswith('*') else ' '}{name};")
        for (block, piece), header in zip(sides, (f"if ({condition.text})", "else")):
            block.lines.append(f"{name} = {piece.text};")
            self.put(header, block)
        return Piece(name, low=low, high=high)

    def at_lane(self, e: Expr, lane: Piece, wide: bool) -> Emission:
        """Emits the vector `e` at the lane of that number."""
        saved = self.lane
        self.lane = Lane(lane, saved.outer if saved is not None else len(self.blocks) - 1)
        piece = yield e, wide
        self.lane = saved
        return piece

    def is_index(self, e: Expr) -> bool:
        """Tells whether `e` is index arithmetic, no step of which wraps."""
        known = self.purity.get(e)
        return known if known is not None else is_index_arithmetic(e, self.index.__contains__, self.purity)


def _type_of(d: DType, wide: bool) -> str:
    return "int64_t" if wide else value_type(d)

