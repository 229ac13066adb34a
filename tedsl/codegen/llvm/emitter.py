"""The state of writing one LLVM function: blocks, regions, names, what is computed already.

A region is the body of a loop or the side of a branch. Each region has a place just before the region inside it that is
being written; an instruction without effects is put into the outermost region that defines all its operands, so
invariant address arithmetic leaves the loops as it is written. Within a region equal instructions are written once, and
within a block equal loads with no store between that may meet them. LLVM's own pass for this, NewGVN, ends the process on
some programs (LLVM 22), and after all that finds next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tedsl.codegen.llvm.indices.forms import AnyIndex, Atom, Index
from tedsl.codegen.llvm.types import expect
from tedsl.errors import InternalError
from tedsl.ir.expr import Add, Div, Expr, FloorDiv, FloorMod, IntImm, Mod, Mul, Sub, Var
from tedsl.ir.walk.fresh_stack import Descent
from tedsl.target import Target

DEEP = 60  # nested calls of `value` after which `deep` takes over; each takes three Python frames
_UNSAFE = re.compile(r"[^A-Za-z0-9_.]")


@dataclass
class Tables:
    """The functions that write each kind of node, by type."""

    data: dict[type, Callable[[Any, Any], str]]
    index: dict[type, Callable[[Any, Any], AnyIndex]]
    index_leaf: Callable[[Any, Any], AnyIndex]
    statements: dict[type, Callable[[Any, Any], None]]
    deep: Callable[[Any, Any, bool], None]


@dataclass
class BufferInfo:
    """A buffer in a function: the pointer, its region, the alignment of the whole in bytes, and its alias class."""

    pointer: str
    level: int
    alignment: int  # 0: that of one element
    alias: str = ""  # the metadata of accesses, with its leading comma
    own: bool = False  # memory of ours: nothing else points to it

    def may_meet(self, other: BufferInfo, noalias: bool) -> bool:
        """Whether a store to `other` may change an element of this buffer. noalias: arrays of the user do not overlap."""
        return self is other or not (noalias or self.own or other.own)


@dataclass
class ModuleText:
    """What the functions of a module share: declarations, helper functions, metadata."""

    target: Target
    tables: Tables
    noalias: bool = True
    messages: list[str] = field(default_factory=list)
    declarations: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    metadata: list[str] = field(default_factory=list)
    cache: dict[Any, str] = field(default_factory=dict)
    attributes: str = "nounwind"
    count: int = 0
    imports: Mapping[str, Any] = field(default_factory=dict)  # functions of other languages, with their types if known

    def declare(self, name: str, text: str) -> str:
        """The symbol `@name`, declared once as `text`."""
        if name not in self.declarations:
            self.declarations[name] = text
        return "@" + name

    def add_metadata(self, text: str) -> str:
        """A new metadata node, as `!k`."""
        self.metadata.append(text)
        return f"!{len(self.metadata) - 1}"


    def add_node(self, fields: str) -> str:
        """A new distinct metadata node; `{self}` in `fields` stands for itself."""
        name = f"!{len(self.metadata)}"
        return self.add_metadata("distinct !{" + fields.replace("{self}", name) + "}")

    def next_number(self) -> int:
        """0, 1, 2, ...: tells functions apart."""
        self.count += 1
        return self.count - 1

    def nontemporal_node(self) -> str:
        """The metadata node of stores past the cache."""
        if "nontemporal" not in self.cache:
            self.cache["nontemporal"] = self.add_metadata("!{i32 1}")
        return self.cache["nontemporal"]


_ARITHMETIC = frozenset((Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod))


def wraps(e: Expr) -> bool:
    """Whether `e` is arithmetic on data wherever it stands: narrow and unsigned results wrap, in addresses too."""
    return type(e) in _ARITHMETIC and not (e.dtype.is_int and e.dtype.bits >= 32)


class Emitter:
    """One LLVM function that is being written."""

    def __init__(self, module: ModuleText, name: str) -> None:
        self.module = module
        self.target = module.target
        self.name = name
        self.tables = module.tables
        self._data, self._index, self._index_leaf = module.tables.data, module.tables.index, module.tables.index_leaf
        self.entry: list[str] = []  # allocas
        self.lines: list[str] = []
        self.out: list[list[str]] = [self.lines]
        self.places: list[list[str]] = [self.lines]  # by region: where invariant instructions go
        self.known: list[dict[str, str]] = [{}]  # by region: instruction -> register
        self.level = 0
        self.block = "entry"
        self.memo: dict[Expr, str] = {}
        self.loads: dict[str, tuple[str, BufferInfo]] = {}  # of this block, still valid: instruction -> register, buffer
        self.index_memo: dict[Expr, AnyIndex] = {}
        self.atoms: dict[str, Atom] = {}
        self.purity: dict[Expr, bool] = {}
        self.index_vars: dict[Var, Index] = {}
        self.data_vars: dict[Var, str] = {}
        self.buffers: dict[Var, BufferInfo] = {}
        self.mask: str | None = None  # lanes that are on, within a vector if_then_else
        self.mask_lanes = 0
        self.workspaces: list[str] = []
        self.on_stack: set[Any] = set()  # the Allocates that live on the stack of this function
        self.spare = ""  # a place on the stack for accesses of lanes that are off
        self.in_parallel = False
        self.stores_nontemporal = False  # whether an sfence must precede the return
        self.streams: dict[Var, Var | None] = {}  # outputs to store past the cache: a flag, or None: always
        self.nontemporal: dict[Var, int] = {}  # those stored so now: the alignment that is sure
        self.depth = 0
        self.descent = Descent()
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

    def load(self, rhs: str, info: BufferInfo) -> str:
        """The register that holds what the load `rhs` of a buffer gives: one of this block, if memory is as it was then."""
        known = self.loads.get(rhs)
        if known is None:
            known = self.loads[rhs] = self.assign(rhs), info
        return known[0]

    def stored(self, info: BufferInfo) -> None:
        """After a store to a buffer: forgets the loads that may have given something else now."""
        self.loads = {rhs: known for rhs, known in self.loads.items() if not known[1].may_meet(info, self.module.noalias)}

    def called(self) -> None:
        """After a call that may do anything."""
        self.loads.clear()

    def here(self, rhs: str) -> str:
        """`assign` of something without effects: equal instructions of this region are written once."""
        return self.pure(rhs, self.level)

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label
        self.loads.clear()

    def alloca(self, type_: str, alignment: int, name: str) -> str:
        """Room on the stack for the whole call of the function."""
        pointer = "%" + self.fresh(name)
        self.entry.append(f"  {pointer} = alloca {type_}, align {alignment}")
        return pointer

    # --- regions ----------------------------------------------------------------------------------------------------------

    def mark(self) -> tuple[int, int]:
        """Call before the terminator that leaves for an inner region: invariant instructions are put here from now on."""
        place: list[str] = []
        self.out.append(place)
        self.places[self.level] = place
        self._new_lines()
        return len(self.memo), len(self.index_memo)

    def open_region(self) -> None:
        """After the terminator: what follows is the inner region."""
        self.level += 1
        self._new_lines()
        self.places.append(self.lines)
        self.known.append({})

    def next_side(self, marks: tuple[int, int]) -> None:
        """Another inner region beside the one that ends here: the other side of a branch."""
        self._forget(marks)
        self._new_lines()
        self.places[self.level] = self.lines
        self.known[self.level] = {}

    def close_region(self, marks: tuple[int, int]) -> None:
        """Back in the outer region: forget what was computed in the inner one."""
        self.places.pop()
        self.known.pop()
        self.level -= 1
        self._new_lines()
        self.places[self.level] = self.lines
        self._forget(marks)

    def _new_lines(self) -> None:
        self.lines = []
        self.out.append(self.lines)

    def _forget(self, marks: tuple[int, int]) -> None:
        """Values are forgotten in the reverse order of their computation."""
        while len(self.memo) > marks[0]:
            self.memo.popitem()
        while len(self.index_memo) > marks[1]:
            self.index_memo.popitem()

    # --- expressions ---------------------------------------------------------------------------------------------------------

    def value(self, e: Expr) -> str:
        """The register or constant that holds `e`, of type `register_type(e.dtype)`."""
        found = self.memo.get(e)
        if found is None:
            self.depth += 1
            if self.depth > DEEP:
                self.depth = 0
                self.tables.deep(self, e, False)
                self.depth = DEEP + 1
            if e not in self.memo:
                write = self._data.get(type(e))
                if write is None:
                    raise InternalError(f"a {type(e).__name__} reached machine code: an earlier pass should have replaced it")
                self.memo[e] = write(self, e)
            self.depth -= 1
            found = self.memo[e]
        return found

    def index(self, e: Expr) -> AnyIndex:
        """`e` as index arithmetic: in 64 bits, leaves extended."""
        kind = type(e)
        if kind is IntImm:  # the most frequent kinds, without a table
            return Index({}, e.value)  # type: ignore[attr-defined]
        if kind is Var and e in self.index_vars:
            return self.index_vars[e]  # type: ignore[index]
        found = self.index_memo.get(e)
        if found is None:
            self.depth += 1
            if self.depth > DEEP:
                self.depth = 0
                self.tables.deep(self, e, True)
                self.depth = DEEP + 1
            if e not in self.index_memo:
                emit = self._index_leaf if wraps(e) else self._index.get(kind, self._index_leaf)
                self.index_memo[e] = emit(self, e)
            self.depth -= 1
            found = self.index_memo[e]
        return found

    def scalar_index(self, e: Expr) -> Index:
        """The same for a scalar."""
        found = self.index(e)
        expect(isinstance(found, Index), "a vector where a scalar index is expected")
        return found  # type: ignore[return-value]

    def atom(self, name: str, level: int, low: int, high: int) -> Atom:
        """The atom of register `name`, one per register; its bounds only ever get narrower."""
        found = self.atoms.get(name)
        if found is None:
            found = self.atoms[name] = Atom(name, level, low, high)
        return found

    def register(self, index: Index) -> tuple[str, int]:
        """The i64 register (or constant) that holds `index`, and its region."""
        text, at = "", 0
        for atom, c in sorted(index.terms.items(), key=_by_level) if len(index.terms) > 1 else index.terms.items():
            if atom.unit != 1:
                expect(c % atom.unit == 0, "a shift that is not a whole number of elements")
                c //= atom.unit
            term = atom.name if c == 1 else self.pure(f"mul i64 {atom.name}, {c}", atom.level)
            at = max(at, atom.level)
            text = term if not text else self.pure(f"add i64 {text}, {term}", at)
        if not text:
            return str(index.const), 0
        return (text if not index.const else self.pure(f"add i64 {text}, {index.const}", at)), at

    def statement(self, s: Any) -> None:
        """Writes `s`. Values of expressions are not kept from one statement to the next: memory may have changed."""
        self.memo.clear()
        self.index_memo.clear()
        write = self.tables.statements.get(type(s))
        if write is None:
            raise InternalError(f"a {type(s).__name__} reached machine code: an earlier pass should have replaced it")
        self.descent(write, self, s)

    # --- the text -----------------------------------------------------------------------------------------------------

    def text(self, header: str) -> str:
        """The whole function; `header` is everything before the opening brace."""
        body = [line for lines in self.out for line in lines]
        return "\n".join([f"{header} {{", "entry:", *self.entry, *body, "}"])


def _by_level(term: tuple[Atom, int]) -> int:
    return term[0].level
