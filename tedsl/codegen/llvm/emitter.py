"""The state of writing one LLVM function: its text (`sink`), the values already computed, the values of variables.

Equal loads in a block with no store in between that may alias them are emitted once. LLVM's own pass for this, NewGVN, crashes
the process on some programs (LLVM 22), and finds hardly any others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tedsl.codegen.llvm.debug.table import LineTable
from tedsl.codegen.llvm.effort import PLAIN
from tedsl.codegen.llvm.indices.forms import AnyIndex, Atom, Index
from tedsl.codegen.llvm.sink import Sink
from tedsl.codegen.llvm.types import expect
from tedsl.errors import InternalError, type_in_words
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Expr, IntImm, Var
from tedsl.ir.stmt import Allocate, For, Stmt
from tedsl.ir.walk.certain import Certain
from tedsl.ir.walk.fresh_stack import Descent
from tedsl.ir.walk.index_arithmetic import wraps
from tedsl.record import record
from tedsl.target import Target

DEEP = 60  # nested calls of `value` after which `deep` takes over; each takes three Python frames


@dataclass
class Tables:
    """The functions that emit each kind of node, by node type."""

    data: dict[type, Callable[[Any, Any], str]]
    index: dict[type, Callable[[Any, Any], AnyIndex]]
    index_leaf: Callable[[Any, Any], AnyIndex]
    statements: dict[type, Callable[[Any, Any], None]]
    deep: Callable[[Any, Any, bool], None]


@dataclass
class BufferInfo:
    """A buffer within a function: its pointer, the region where it is defined, its alignment in bytes and its alias class.
    broken: its size may not be a multiple of the alignment, so that nothing is said to be aligned more than it is large: LLVM
    would load more than that.
    """

    pointer: str
    level: int
    alignment: int  # 0: that of one element
    alias: str = ""  # the metadata of accesses, with its leading comma
    own: bool = False  # memory of ours: nothing else points to it
    broken: bool = False
    count: int = 0  # of elements, of an array on the stack

    def may_meet(self, other: BufferInfo, noalias: bool) -> bool:
        """Tells whether this buffer may alias `other`, so that a store to one may change the other.

        noalias: arrays of the caller do not overlap.
        """
        return self is other or not (noalias or self.own or other.own)


@record
class PastCache:
    """How vectors are stored past the cache: with a sure alignment in bytes, or only the elements between two registers.

    These are counted from the index `start` of a vector of `lanes`; those of other rows begin multiples of that from there.
    """

    alignment: int
    start: Index
    lanes: int
    elements: tuple[str, str] | None = None


@dataclass
class ModuleText:
    """The declarations, helper functions and metadata that the functions of a module share."""

    target: Target
    tables: Tables
    declarations: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)  # addresses of variables that LLVM leaves as they are
    functions: list[str] = field(default_factory=list)
    metadata: list[str] = field(default_factory=list)
    cache: dict[Any, str] = field(default_factory=dict)
    bodies: dict[Any, list[Any]] = field(default_factory=dict)  # of parallel loops, by what is told to them
    attributes: str = "nounwind"
    count: int = 0
    imports: Mapping[str, Any] = field(default_factory=dict)  # functions of other languages, with their types if known
    callees: Mapping[str, Any] = field(default_factory=dict)  # functions of this module that others of it call
    line_table: LineTable | None = None

    def declare(self, name: str, text: str) -> str:
        """Declares the symbol `@name` by `text`, once for the module, and returns the symbol."""
        if name not in self.declarations:
            self.declarations[name] = text
        return "@" + name

    def add_metadata(self, text: str) -> str:
        """Adds a metadata node with that text and returns its name `!k`."""
        self.metadata.append(text)
        return f"!{len(self.metadata) - 1}"


    def add_node(self, fields: str) -> str:
        """Adds a distinct metadata node and returns its name; `{self}` in `fields` stands for that name."""
        name = f"!{len(self.metadata)}"
        return self.add_metadata("distinct !{" + fields.replace("{self}", name) + "}")

    def next_number(self) -> int:
        """Returns 0, 1, 2, ... in turn, to make names of functions unique."""
        self.count += 1
        return self.count - 1

    def nontemporal_node(self) -> str:
        """Returns the metadata node that marks non-temporal stores, which bypass the cache."""
        if "nontemporal" not in self.cache:
            self.cache["nontemporal"] = self.add_metadata("!{i32 1}")
        return self.cache["nontemporal"]


@record
class FunctionFacts:
    """Facts about a function that are collected before it is written.

    on_stack: the arrays on its stack. noalias: arrays of the user do not overlap. status: of a message of its assertions.
    in_parallel: whether it is the body of a parallel loop. owner: the function of the program. result: the dtype of the number
    that it returns. takes_frame: its caller in the module keeps the exceptions of Python functions, and hands them on.
    loops: the number of loops of each statement, if long sequences of them are written in parts. is_kernel: it is the kernel of
    a device, which returns nothing. rare: loops that do little of the work. strides: of its arrays, of which one at
    least is not 1.
    """

    name: str
    on_stack: frozenset[Allocate]
    noalias: bool
    status: Callable[[str], int]
    in_parallel: bool = False
    owner: str = ""
    result: DType | None = None
    takes_frame: bool = False
    loops: Mapping[Stmt, int] = field(default_factory=dict)
    is_kernel: bool = False
    rare: frozenset[For] = frozenset()
    strides: frozenset[Var] = frozenset()


@dataclass
class Scope:
    """The values of variables: index arithmetic, registers of data, buffers."""

    index: dict[Var, Index] = field(default_factory=dict)
    data: dict[Var, str] = field(default_factory=dict)
    buffers: dict[Var, BufferInfo] = field(default_factory=dict)


@record
class Mask:
    """The lanes that are on inside a vector `if_then_else`."""

    register: str
    lanes: int


class Emitter(Sink):
    """The state of one LLVM function while it is written: the values already computed and the values of variables."""

    def __init__(self, module: ModuleText, function: FunctionFacts) -> None:
        super().__init__()
        self.module, self.function = module, function
        self.target, self.tables = module.target, module.tables
        self.prefers_short = self.target.architecture == "nvptx64"  # indices of 32 bits where they fit: registers have 32
        self.scope = Scope()
        self.memo: dict[Expr, str] = {}
        self.index_memo: dict[Expr, AnyIndex] = {}
        self.given: Mapping[Expr, AnyIndex] = {}  # indices of the step of a tile that is being written
        # of this block, still valid: for the number of a buffer's description, that, and the register of each instruction
        self.loads: dict[int, tuple[BufferInfo, dict[str, str]]] = {}
        self.atoms: dict[str, Atom] = {}
        self.purity: dict[Expr, bool] = {}
        self.shuffles: dict[str, int] = {}  # of which a register is the result, one after the other
        self.certain: Certain | None = None  # made by the first choice that is written with branches
        self.mask: Mask | None = None
        self.workspaces: list[str] = []  # that are allocated here
        self.spare = ""  # a place on the stack for accesses of lanes that are off
        self.scratch: dict[tuple[str, str], str] = {}  # arrays on the stack, by type and purpose
        self.streams: Mapping[Var, Var | None] = {}  # outputs to store past the cache: a flag, or None: always
        self.nontemporal: dict[Var, PastCache] = {}  # those stored so now
        self.has_plain_loops = False  # which LLVM's vectorizer may help
        self.stores_nontemporal = False  # whether an sfence must precede the return
        self.depth = 0
        self.descent = Descent()
        self.subprogram = ""  # the function in the line table
        if module.line_table is not None:
            line = module.line_table.line_of(function.name)
            self.subprogram = module.line_table.subprogram(function.name, line)
            self.location = module.line_table.at(self.subprogram, line)

    # --- loads ------------------------------------------------------------------------------------------------------------

    def load(self, rhs: str, info: BufferInfo) -> str:
        """Returns a register with the result of the load `rhs`; reuses an equal load of this block if no store since then may
        alias it.
        """
        of_buffer = self.loads.get(id(info))
        if of_buffer is None:
            of_buffer = self.loads[id(info)] = info, {}
        register = of_buffer[1].get(rhs)
        if register is None:
            register = of_buffer[1][rhs] = self.assign(rhs)
        return register

    def stored(self, info: BufferInfo) -> None:
        """Forgets the loads that a store to the buffer `info` may have invalidated."""
        for number, (other, _) in list(self.loads.items()):
            if other.may_meet(info, self.function.noalias):
                del self.loads[number]

    def called(self) -> None:
        """Forgets every load, after a call with unknown effects."""
        self.loads.clear()

    def start_block(self, label: str) -> None:
        super().start_block(label)
        self.loads.clear()

    # --- regions ----------------------------------------------------------------------------------------------------------

    def mark(self) -> tuple[int, int]:
        """Begins an inner region and returns marks for `close_region`. Call before the terminator that enters the region."""
        self.place_before()
        return self.known_values()

    def known_values(self) -> tuple[int, int]:
        """Returns marks of the values known now, with which `forget` drops those computed later."""
        return len(self.memo), len(self.index_memo)

    def next_side(self, marks: tuple[int, int]) -> None:
        """Ends an inner region and begins that of the other side of the branch."""
        self.forget(marks)
        self.region_beside()

    def close_region(self, marks: tuple[int, int]) -> None:
        """Returns to the outer region and forgets the values computed in the inner one, which do not dominate what follows."""
        self.leave_region()
        self.forget(marks)

    def forget(self, marks: tuple[int, int]) -> None:
        """Forgets the values computed since `marks`, the latest first."""
        while len(self.memo) > marks[0]:
            self.memo.popitem()
        while len(self.index_memo) > marks[1]:
            self.index_memo.popitem()

    # --- expressions ---------------------------------------------------------------------------------------------------------

    def value(self, e: Expr) -> str:
        """Returns the register or constant that holds `e`, of type `register_type(e.dtype)`."""
        register = self.memo.get(e)
        if register is not None:
            return register
        self.depth += 1
        if self.depth > DEEP:
            self.depth = 0
            self.tables.deep(self, e, False)
            self.depth = DEEP + 1
            register = self.memo.get(e)
        if register is None:
            write = self.tables.data.get(type(e))
            if write is None:
                raise InternalError(f"{type_in_words(e)} reached machine code: an earlier pass should have replaced it")
            register = self.memo[e] = write(self, e)
        self.depth -= 1
        return register

    def index(self, e: Expr) -> AnyIndex:
        """Computes `e` as index arithmetic: in 64 bits, with its leaves extended to 64 bits."""
        if type(e) is IntImm:  # the most frequent kinds, without a table
            return Index(_NO_TERMS, e.value)
        index: AnyIndex | None = self.scope.index.get(e) if type(e) is Var else None
        if index is None:
            index = self.index_memo.get(e)
        if index is not None:
            return index
        self.depth += 1
        if self.depth > DEEP:
            self.depth = 0
            self.tables.deep(self, e, True)
            self.depth = DEEP + 1
            index = self.index_memo.get(e)
        if e in self.given:
            index = self.given[e]
        elif index is None:
            index = (self.tables.index_leaf if wraps(e) else self.tables.index.get(type(e), self.tables.index_leaf))(self, e)
        self.index_memo[e] = index
        self.depth -= 1
        return index

    def scalar_index(self, e: Expr) -> Index:
        """Computes the scalar `e` as index arithmetic, in 64 bits."""
        index = self.index(e)
        if not isinstance(index, Index):
            raise InternalError("a vector where a scalar index is expected")
        return index

    def atom(self, name: str, level: int, low: int, high: int, bits: int = 64) -> Atom:
        """Returns the atom of register `name`, one per register; given bounds can only narrow those known before. A register
        whose first use stands inside of the region that defines it has an atom of the inner region until it is used outside.
        """
        atom = self.atoms.get(name)
        if atom is None:
            atom = self.atoms[name] = Atom(name, level, low, high, bits=bits)
        atom.level = min(atom.level, level)
        return atom

    def register(self, index: Index) -> tuple[str, int]:
        """Returns the i64 register (or constant) that holds `index`, and the number of the region that defines it."""
        if self.prefers_short and index.terms and index.is_short:
            text, at = self._sum(index, 32)
            return self.pure(f"sext i32 {text} to i64", at), at
        return self._sum(index, 64)

    def sized_register(self, *indices: Index) -> tuple[int, list[tuple[str, int]]]:
        """Returns the number of bits, 32 if all `indices` are short and 64 otherwise, and their registers of that size."""
        if self.prefers_short and all(index.is_short for index in indices):
            return 32, [self._sum(index, 32) for index in indices]
        return 64, [self.register(index) for index in indices]

    def _sum(self, index: Index, bits: int) -> tuple[str, int]:
        text, at = "", 0
        for atom, c in sorted(index.terms.items(), key=_by_level) if len(index.terms) > 1 else index.terms.items():
            if atom.unit != 1:
                expect(c % atom.unit == 0, "a shift that is not a whole number of elements")
                c //= atom.unit
            level = atom.level
            term = atom.name if atom.bits == bits else self.pure(f"sext i32 {atom.name} to i64", level)
            if c != 1:
                term = self.pure(f"mul i{bits} {term}, {c}", level)
            if level > at:
                at = level
            text = term if not text else self.pure(f"add i{bits} {text}, {term}", at)
        if not text:
            return str(index.const), 0
        return (text if not index.const else self.pure(f"add i{bits} {text}, {index.const}", at)), at

    def statement(self, s: Any) -> None:
        """Writes the statement `s`. Values computed for the previous one are forgotten first, for memory may have changed."""
        self.memo.clear()
        self.index_memo.clear()
        write = self.tables.statements.get(type(s))
        if write is None:
            raise InternalError(f"{type_in_words(s)} reached machine code: an earlier pass should have replaced it")
        if self.module.line_table is None:
            self.descent(write, self, s)
            return
        around = self.location
        self.begin_at(s)
        self.descent(write, self, s)
        self.location = around

    def begin_at(self, s: Any) -> None:
        """Sets the place in the line table of the instructions that follow to that of the statement `s`."""
        if self.module.line_table is not None:
            self.location = self.module.line_table.location(self.subprogram, s, self.location)

    @property
    def attributes(self) -> str:
        """The attributes of the function, once its loops are written."""
        return f"{PLAIN} {self.module.attributes}" if self.has_plain_loops else self.module.attributes

    def text(self, header: str) -> str:
        return super().text(f"{header} !dbg {self.subprogram}" if self.subprogram else header)


_NO_TERMS: dict[Atom, int] = {}


def _by_level(term: tuple[Atom, int]) -> int:
    return term[0].level
