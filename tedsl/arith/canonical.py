"""Canonical values: a `Sum` for each integer expression, a representative expression for each other value.

Two expressions with equal keys have equal values (modulo affine arithmetic, exact where arith/__init__.py says so).
"""

from __future__ import annotations

import struct
from typing import Any

from tedsl.arith.affine import MAX_TERMS, Key, Sum
from tedsl.arith.ranges import Range, within
from tedsl.arith.splits import merge_splits
from tedsl.ir.build import cast, int_imm
from tedsl.ir.dtype import INT32, INT64, DType
from tedsl.ir.expr import (
    EQ,
    NE,
    Add,
    And,
    BinaryOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Let,
    Load,
    Max,
    Min,
    Mul,
    Not,
    Or,
    ProducerLoad,
    Ramp,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Sub,
    Var,
)
from tedsl.ir.ops import ELEMENTS_PAST_LINE, IF_THEN_ELSE

Value = Sum | Expr
_ARITHMETIC = frozenset((Add, Sub, Mul, Cast))
_COMMUTATIVE = frozenset((Add, Mul, Min, Max, EQ, NE, And, Or))  # of integers and bools, wrapping or not


class Canonical:
    """Maps each expression to the representative of its value. It uses facts of `bind` (through `fits`), never conditions."""

    def __init__(self) -> None:
        self._values: dict[Expr, Value] = {}
        self._terms: dict[Any, Expr] = {}
        self._sums: dict[Expr, Sum] = {}  # of terms: one object per term
        self._made: dict[tuple[type, Expr, Expr], Expr] = {}  # what `build` made, by its operands: equal sums share their parts
        self._multiples: dict[tuple[Expr, int, DType], Expr] = {}
        self.data: set[Expr] = set()  # the terms that are not index arithmetic
        self.memory: set[Expr] = set()  # the representatives that read memory: their value may change between statements

    # --- asking -----------------------------------------------------------------------------------------------------

    def value(self, expr: Expr) -> Value:
        """Returns the canonical value of `expr`: a Sum if it is a scalar integer, else its representative."""
        value = self._values.get(expr)
        if value is not None:
            return value
        values, stack = self._values, [expr]
        while stack:
            node = stack[-1]
            if node in values:
                stack.pop()
                continue
            if isinstance(node, BinaryOp):
                if node.a not in values or node.b not in values:
                    stack += (node.a, node.b)
                    continue
            else:
                if type(node) is Let:
                    if node.value not in values:
                        stack.append(node.value)
                        continue
                    self.enter_let(node)
                pending: Any = [c for c in node.child_nodes() if c not in values]
                if pending:
                    stack.extend(pending)
                    continue
            stack.pop()
            values[node] = self._find(node)
        return values[expr]

    def sum(self, expr: Expr) -> Sum:
        """Returns the canonical sum of a scalar integer expression."""
        value = self._values.get(expr)
        if value is None:
            value = self.value(expr)
        assert isinstance(value, Sum), f"{type(expr).__name__} of {expr.dtype} is not a scalar integer"
        return value

    def same(self, a: Expr, b: Expr) -> bool:
        """Tells whether both provably have equal values."""
        if type(a) is Load and type(b) is Load and a.buffer_var is not b.buffer_var:
            return False
        return a is b or (a.dtype is b.dtype and _key(self.value(a)) == _key(self.value(b)))

    def is_index(self, s: Sum) -> bool:
        """Tells whether all terms are index arithmetic."""
        return not self.data or self.data.isdisjoint(s.terms)

    def reads_memory(self, expr: Expr) -> bool:
        """Tells whether the value of `expr` depends on the present content of memory."""
        return self._varies(self.value(expr))

    def _varies(self, value: Value) -> bool:
        return not self.memory.isdisjoint(value.terms) if isinstance(value, Sum) else value in self.memory

    def fits(self, s: Sum, dtype: DType) -> bool:
        """Tells whether the value of `s` provably lies in the range of `dtype`, independent of conditions."""
        return within(self.static_range(s), (dtype.min_value, dtype.max_value))

    def static_range(self, s: Sum) -> Range:
        raise NotImplementedError

    def enter_let(self, let: Let) -> None:
        """Records, before the body of a Let, that its variable is data if its value is."""
        value = self.value(let.value)
        if isinstance(value, Sum) and not self.is_index(value):
            self.data.add(let.var)

    # --- finding ----------------------------------------------------------------------------------------------------

    def _find(self, node: Expr) -> Value:
        kind = type(node)
        dtype = node.dtype
        if kind is IntImm and not dtype.is_bool:
            return Sum({}, node.value)  # type: ignore[attr-defined]
        if kind is Var or kind is SizeVar:
            if dtype is not INT32 and dtype is not INT64:
                self.data.add(node)
            return self.term_sum(node) if _is_number(dtype) else node
        if kind in _ARITHMETIC and dtype.is_integer and dtype.lanes == 1:
            canonical = self._arithmetic(node)
            if canonical is not None:
                return canonical
        key = self._structure(node)
        term = self._terms.get(key)
        if term is None:
            term = self._terms[key] = node
            self._describe(node)
        return self.term_sum(term) if _is_number(dtype) else term

    def term_sum(self, term: Expr) -> Sum:
        """Returns the sum that consists of `term` alone."""
        known_sum = self._sums.get(term)
        if known_sum is None:
            known_sum = self._sums[term] = Sum({term: 1})
        return known_sum

    def _arithmetic(self, node: Any) -> Sum | None:
        """Returns the sum of an Add, Sub, Mul or Cast; None if it may wrap, is too long or is not a sum."""
        values, dtype = self._values, node.dtype
        if type(node) is Cast:
            inner = values[node.value]
            if type(inner) is not Sum or node.value.dtype.is_bool:
                return None
            if (dtype is INT64 and node.value.dtype is INT32 and self.is_index(inner)) or self.fits(inner, dtype):
                return inner
            return None
        a, b = values[node.a], values[node.b]
        assert type(a) is Sum
        assert type(b) is Sum
        if type(node) is Mul:
            product = a.times(b.const) if not b.terms else b.times(a.const) if not a.terms else self._product(a, b)
            if product is None:
                return None
        else:
            product = a.plus(b, 1 if type(node) is Add else -1)
            if a.terms and b.terms and product.splits:
                product = merge_splits(product, self)
        if len(product.terms) > MAX_TERMS:
            return None
        if (dtype is INT32 or dtype is INT64) and self.is_index(product) and self.is_index(a) and self.is_index(b):
            return product
        return product if self.fits(product, dtype) else None

    def _product(self, a: Sum, b: Sum) -> Sum | None:
        """Multiplies single terms: (x*2)*(y*3) is (x*y)*6. Returns None for a product of two terms, which is a term itself, or
        of longer sums.
        """
        if len(a.terms) > 1 or len(b.terms) > 1 or a.const or b.const or not self.is_index(a) or not self.is_index(b):
            return None
        (x, c), (y, d) = *a.terms.items(), *b.terms.items()
        if c * d == 1 or x.dtype is not y.dtype:
            return None
        node = Mul(x, y)
        if node not in self._values:
            self._values[node] = self._find(node)
        product = self._values[node]
        assert type(product) is Sum
        return product.times(c * d)

    def _structure(self, node: Any) -> Any:
        """Returns a key that only nodes of equal value share."""
        kind = type(node)
        if isinstance(node, BinaryOp):
            a, b = self._key_of(node.a), self._key_of(node.b)
            if kind in _COMMUTATIVE and not (node.a.dtype.is_float or node.a.dtype.is_custom):
                return kind, node.a.dtype, frozenset((a, b))
            return kind, node.a.dtype, a, b
        parts = tuple([self._key_of(c) for c in node.child_nodes()])
        match node:
            case IntImm(value=i):
                return kind, i
            case FloatImm(value=v):
                return kind, node.dtype, struct.pack("<d", v)
            case StringImm(value=text):
                return kind, text
            case Not() | Select() | Cast() | Ramp() | Broadcast():
                return kind, node.dtype, parts, getattr(node, "lanes", 0)
            case Call(op=op) if op.effect == "pure":
                return kind, node.dtype, op, parts
            case BufferLoad(buffer=buffer):
                return kind, node.dtype, id(buffer), parts
            case ProducerLoad(producer=producer):
                return kind, node.dtype, producer, parts
            case Load(buffer_var=v, predicate=predicate):
                return kind, node.dtype, v, parts, predicate is None
            case Shuffle(vectors=vectors):
                return kind, node.dtype, len(vectors), parts
            case _:  # Let, Reduce, calls with effects: equal to itself alone
                return id(node)

    def _key_of(self, node: Expr) -> Key | Expr:
        return _key(self._values[node])

    def _describe(self, node: Any) -> None:
        """Records whether a new representative is data and whether it reads memory."""
        kind = type(node)
        children = [self._values[c] for c in node.child_nodes()]
        reads = kind in (Load, BufferLoad) or (kind is Call and node.op.effect != "pure")
        if reads or (self.memory and any(self._varies(c) for c in children)):
            self.memory.add(node)
        if not _is_number(node.dtype):
            return
        if node.dtype is INT32 or node.dtype is INT64:
            if (kind is Call and node.op is IF_THEN_ELSE) or kind is Select:
                children = children[1:]
            elif kind is Call and node.op is ELEMENTS_PAST_LINE:
                return
            elif not isinstance(node, BinaryOp):
                self.data.add(node)
                return
            # an Add, Sub or Mul by a constant that is a term was data, or too long: then its terms decide
            if not all(type(c) is Sum and self.is_index(c) for c in children):
                self.data.add(node)
        else:
            self.data.add(node)

    # --- making -----------------------------------------------------------------------------------------------------

    def build(self, s: Sum, dtype: DType) -> Expr | None:
        """Returns `s` as an expression: positive terms in their order, then a positive constant, then the negative terms and
        constant.

        None if a coefficient does not fit the dtype.
        """
        top = dtype.max_value
        assert top is not None
        if abs(s.const) > top or any(abs(c) > top for c in s.terms.values()):
            return None
        result: Expr | None = None
        for term, c in s.terms.items():
            if c > 0:
                part = self._multiple(term, c, dtype)
                result = part if result is None else self._of(Add, result, part)
        if s.const > 0:
            result = int_imm(dtype, s.const) if result is None else self._of(Add, result, int_imm(dtype, s.const))
        for term, c in s.terms.items():
            if c < 0:
                result = self._of(Sub, int_imm(dtype, 0) if result is None else result, self._multiple(term, -c, dtype))
        if s.const < 0:
            result = int_imm(dtype, s.const) if result is None else self._of(Sub, result, int_imm(dtype, -s.const))
        return int_imm(dtype, 0) if result is None else result

    def _multiple(self, term: Expr, c: int, dtype: DType) -> Expr:
        """Returns `term` times a positive number."""
        key = term, c, dtype
        made = self._multiples.get(key)
        if made is None:
            atom = cast(dtype, term)
            made = self._multiples[key] = atom if c == 1 else Mul(atom, int_imm(dtype, c))
        return made

    def add(self, a: Expr, b: Expr) -> Expr:
        """Returns `a` + `b` as `build` makes it of such operands."""
        return self._of(Add, a, b)

    def _of(self, kind: type[Add] | type[Sub], a: Expr, b: Expr) -> Expr:
        """Returns the sum or difference of what `build` made: one node for the same operands. So sums that begin alike, as the
        indices in unrolled copies do, are simplified and rewritten once as far as they are alike.
        """
        key = kind, a, b
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = kind(a, b)
        return made


def _is_number(dtype: DType) -> bool:
    return dtype.is_integer and dtype.lanes == 1


def _key(value: Value) -> Key | Expr:
    return value.key if type(value) is Sum else value  # type: ignore[return-value]

