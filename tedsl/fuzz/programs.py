"""Random programs: a DAG of one to five formulas over one to three inputs, evaluated by the reference while it grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tedsl.fuzz.case import Case, Data
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.reference import Reference
from tedsl.fuzz.stages import STAGES
from tedsl.fuzz.terms import Formulas, Term
from tedsl.fuzz.values import MANTISSA, available, is_float
from tedsl.record import record

SIZES = {1: 6, 2: 6, 3: 8, 4: 8, 5: 10, 7: 10, 8: 10, 11: 6, 13: 6, 16: 6, 17: 4, 19: 2, 32: 2, 33: 2, 64: 2, 67: 1, 0: 2}
DTYPES = {"float32": 46, "float64": 10, "int32": 14, "int64": 4, "int16": 4, "int8": 7, "uint8": 7, "uint16": 2, "uint32": 3,
          "uint64": 1, "bool": 3, "float16": 6, "bfloat16": 5}


@record
class Size:
    """Limits of program size: elements of a tensor (programs are interpreted), weights of extents and of numbers of stages."""

    most: int
    extents: Mapping[int, int]
    stages: Mapping[int, int]


MEDIUM = Size(1500, SIZES, {1: 3, 2: 5, 3: 5, 4: 3, 5: 2})
SMALL = Size(300, {n: weight for n, weight in SIZES.items() if n <= 17}, {1: 4, 2: 6, 3: 4, 4: 2})


@record
class Dim:
    """An extent: its text, which may contain variables, and its size in this program."""

    text: str
    size: int

    @property
    def constant(self) -> bool:
        return self.text.isdigit()

    def plus(self, more: int) -> Dim:
        return Dim(str(self.size + more) if self.constant else f"{self.text} {'+-'[more < 0]} {abs(more)}", self.size + more)


@record
class Known:
    """A tensor: its dimensions, and bounds of its values (as in a Term)."""

    name: str
    dims: tuple[Dim, ...]
    dtype: str
    mag: float
    frac: Any  # int | None
    special: bool

    def at(self, indices: Sequence[str]) -> Term:
        return Term(f"{self.name}[{', '.join(indices)}]" if self.dims else f"{self.name}()", self.dtype, self.mag, self.frac)


class Program:
    """Draws the lines of a case."""

    def __init__(self, draw: Draw, size: Size) -> None:
        self.draw, self.size = draw, size
        self.case = Case([], [], [])
        self.reference = Reference(self.case.sizes, {})
        self.names: dict[str, Any] = {"te": self.reference}
        self.tensors: list[Known] = []
        self.made: list[list[str]] = []
        self.read: set[str] = set()
        self.symbols: list[Dim] = []
        self.coarsest, self.counter = 2.0**-53, 0
        self.symbolic = draw.chance(35)
        self.special = draw.chance(10)

    # --- declarations ---

    def line(self, text: str) -> None:
        self.case.lines.append(text)
        exec(text, self.names)
        self.coarsest = max([self.coarsest, *(2.0**-bits for dtype, bits in MANTISSA.items() if f"'{dtype}'" in text)])

    def fresh(self, letter: str) -> str:
        self.counter += 1
        return f"{letter}{self.counter}"

    def dim(self) -> Dim:
        size = self.draw.weighted(self.size.extents)
        if not self.symbolic or self.draw.chance(40):
            return Dim(str(size), size)
        same = [d for d in self.symbols if self.draw.chance(50)]
        if same:
            return same[0]
        name = f"n{len(self.symbols)}"
        self.case.sizes[name] = size
        self.line(f"{name} = te.{self.draw.weighted({'var': 5, 'size_var': 1})}('{name}')")
        self.symbols.append(Dim(name, size))
        form = self.draw.weighted({"{}": 6, "{} + 1": 2, "2*{}": 2, "3*{} + 2": 1})
        return self.symbols[-1] if form == "{}" else Dim(form.format(name), eval(form.format(size)))

    def input(self, dims: Sequence[Dim] | None = None, dtype: str | None = None) -> Known:
        name = "ABCDEFGH"[len(self.case.data)]
        if dims is None:
            dims = [self.dim() for _ in range(self.draw.weighted({2: 6, 1: 5, 3: 2, 0: 1}))]
            while np.prod([d.size for d in dims]) > self.size.most:
                dims.pop()
        dtype = dtype or available(self.draw.weighted(DTYPES))
        symbolic = any(not d.constant for d in dims)
        layout = self.draw.weighted({"compact": 6, "transposed": 1, "strided": 1}) if symbolic else "compact"
        data = Data(dtype, tuple(d.size for d in dims), self.draw.which(1000), self.special and self.draw.chance(60), layout)
        self.case.data[name] = data
        self.reference.arrays[name] = data.values()
        self.line(f"{name} = te.placeholder({shape_text(dims)}, '{dtype}', name='{name}')")
        self.case.args.append(name)
        self.remember(name, dims, 2 if is_float(dtype) else 0, 0.0)
        return self.tensors[-1]

    def scalar(self) -> Term:
        """The term of a scalar variable that the caller passes."""
        name, dtype = self.fresh("v"), self.draw.choice(["float32", "int32"])
        value = self.draw.between(-2, 6)
        self.case.sizes[name] = value
        self.line(f"{name} = te.var('{name}', '{dtype}')")
        self.case.args.append(name)
        return Term(name, dtype, abs(value), 0)

    def remember(self, name: str, dims: Sequence[Dim], frac: Any, peak: float) -> None:
        tensor = self.names[name]
        array = np.abs(tensor.array.astype(np.float64))
        finite = array[np.isfinite(array)]
        mag = float(finite.max()) if finite.size else 0.0
        special = finite.size < array.size
        self.tensors.append(Known(name, tuple(dims), tensor.dtype, mag if frac is not None else max(mag, peak), frac, special))

    # --- stages ---

    def define(self, dims: Sequence[Dim], axes: Sequence[str], bodies: Sequence[str], prefix: Sequence[str] = (),
               terms: Sequence[Term] = ()) -> bool:
        """A compute of `bodies` (texts) over `dims`; terms: bounds of each. Returns whether it was small enough."""
        if np.prod([d.size for d in dims]) > self.size.most or any(d.size < 0 for d in dims):
            return False
        if any(t.mag > 1e30 for t in terms):
            return False
        names = [self.fresh("T") for _ in terms]
        for text in prefix:
            self.line(text)
        body = bodies[0] if len(bodies) == 1 else f"({', '.join(bodies)})"
        head = f"lambda {', '.join(axes)}:" if axes else "lambda:"
        self.line(f"{', '.join(names)} = te.compute({shape_text(dims)}, {head} {body}, name='{names[0]}')")
        for name, term in zip(names, terms):
            self.remember(name, dims, term.frac if term.exact else None, term.mag)
        self.made.append(names)
        for known in self.tensors:
            if any(f"{known.name}[" in b or f"{known.name}()" in b for b in bodies):
                self.read.add(known.name)
        return True

    def recent(self, wanted: Callable[[Known], Any] = lambda t: True) -> Any:
        """One of the last tensors that are `wanted`; None if there is none."""
        fitting = [t for t in self.tensors if wanted(t)]
        return self.draw.choice(fitting[-4:][::-1]) if fitting else None

    def formula(self, leaves: Sequence[Callable[[], Term]], indices: Sequence[str], depth: int = 2) -> Term:
        """A random term over `leaves`; index variables are leaves too."""
        leaf = lambda: (Term(self.draw.choice(indices), "int32", 2.0**10, 0) if indices and self.draw.chance(8)
                        else self.draw.choice(leaves)())
        return Formulas(self.draw, leaf, indices).term(depth)

    def grow(self) -> None:
        for _ in range(self.draw.weighted(self.size.stages)):
            for _ in range(8):
                if self.draw.weighted(STAGES)(self):
                    break

    def finish(self) -> Case:
        case = self.case
        unread = [group for group in self.made if not any(n in self.read for n in group)]
        extra = [group for group in self.made if group not in unread and self.draw.chance(8)]
        case.outputs = [n for group in self.made if group in unread or group in extra for n in group]
        case.args += case.outputs
        known = {t.name: t for t in self.tensors}
        case.tolerance = {n: 64 * self.coarsest * max(known[n].mag, 1.0) for n in case.outputs if known[n].frac is None}
        case.exact = not any(f"te.{f}(" in text for text in case.lines
                             for f in ("exp", "tanh", "sigmoid", "erf", "sqrt", "sin", "cos", "atan", "log"))
        case.counts["symbolic"] = int(any(not d.constant for t in self.tensors for d in t.dims))
        return case


def shape_text(dims: Sequence[Dim]) -> str:
    return f"({', '.join(d.text for d in dims)}{',' if len(dims) == 1 else ''})"


def draw_program(draw: Draw, size: Size = MEDIUM) -> tuple[Case, dict[str, Any]]:
    """A case without a schedule, and its outputs by the reference."""
    while True:
        program = Program(draw, size)
        for _ in range(draw.weighted({1: 5, 2: 5, 3: 1})):
            program.input()
        program.grow()
        if program.made:
            case = program.finish()
            return case, {name: program.names[name] for name in case.outputs}
