"""Vectors as vector types, where the dialect has them: those of gcc and clang, by the option `-vectors=gcc`.

    *(tedsl_f32x8_m *)&C[i * 8] = *(const tedsl_f32x8_m *)&A[i * 8] + *(const tedsl_f32x8_m *)&B[i * 8];

So are sums, differences, products and quotients of consecutive elements and of scalars stored to consecutive elements; other
vectors are loops over their lanes, which compilers turn into vectors themselves.
"""

from __future__ import annotations

from typing import Protocol

from tedsl.codegen.c.emitter import Emitter
from tedsl.codegen.c.text.piece import PRODUCT, SUM, UNARY, Piece, call, infix
from tedsl.codegen.c.text.types import suffix, value_type
from tedsl.codegen.c.values.memory import buffer_info, condition_of
from tedsl.codegen.c.values.opencl_vectors import OpenCLVectors
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.expr import Add, BinaryOp, Broadcast, Call, Div, Expr, IntImm, Load, Mul, Ramp, Sub, Var
from tedsl.ir.ops import FMA
from tedsl.ir.stmt import Store

_OPERATORS: dict[type, tuple[str, int]] = {Add: ("+", SUM), Sub: ("-", SUM), Mul: ("*", PRODUCT), Div: ("/", PRODUCT)}
DEEPEST = 12


class VectorTypes(Protocol):
    """How a dialect spells vector types and what is done with them. place: the address of the first element, as text."""

    most_lanes: int
    most_bytes: int
    has_fma: bool  # fma(a, b, c) takes vectors

    def name(self, out: Emitter, d: DType) -> str:
        """Returns the name of the type for `d`, which the module defines if the language does not."""
        ...

    def loaded(self, out: Emitter, place: Piece, d: DType) -> Piece:
        """Returns the vector in memory at `place`, which is aligned as one element."""
        ...

    def stored(self, out: Emitter, place: Piece, value: Piece, d: DType) -> str:
        """Returns the statement that stores `value` at `place`."""
        ...

    def repeated(self, out: Emitter, scalar: Piece, d: DType) -> Piece:
        """Returns the vector with `scalar` in each lane."""
        ...

    def same_bits(self, out: Emitter, value: Piece, d: DType) -> Piece:
        """Returns the bits of `value` as a vector of `d`."""
        ...


class GccVectors:
    """The vector types of gcc and clang."""

    most_lanes = 64
    most_bytes = 512
    has_fma = False

    def name(self, out: Emitter, d: DType) -> str:
        name, size = f"tedsl_{suffix(d.element)}x{d.lanes}", d.bytes * d.lanes
        element = value_type(d.element)
        out.module.types.setdefault(name, f"typedef {element} {name} __attribute__((vector_size({size})));\n"
                                          f"typedef {element} {name}_m __attribute__((vector_size({size}), aligned({d.bytes}), "
                                          "may_alias));\n")
        return name

    def loaded(self, out: Emitter, place: Piece, d: DType) -> Piece:
        return Piece(f"*(const {self.name(out, d)}_m *){place.text}", UNARY, place.depth + 1, place.reads)

    def stored(self, out: Emitter, place: Piece, value: Piece, d: DType) -> str:
        return f"*({self.name(out, d)}_m *){place.text} = {value.text};"

    def repeated(self, out: Emitter, scalar: Piece, d: DType) -> Piece:
        name = out.names.fresh("t")
        lanes = "0" if scalar.text in ("0", "0u", "0.0", "0.0f") else ", ".join([scalar.text] * d.lanes)
        out.line(f"const {self.name(out, d)} {name} = {{{lanes}}};")
        return Piece(name)

    def same_bits(self, out: Emitter, value: Piece, d: DType) -> Piece:
        return Piece(f"({self.name(out, d)}){value.at(UNARY)}", UNARY, value.depth + 1, value.reads)


FORMS: dict[str, VectorTypes] = {"gcc": GccVectors(), "opencl": OpenCLVectors()}  # by the choice of the dialect


def store_as_vector(out: Emitter, s: Store) -> bool:
    """Emits `s` with vector types and tells whether it can be; nothing is emitted if not."""
    form = FORMS.get(out.module.dialect.vectors)
    if form is None:
        return False
    d = s.value.dtype
    if not (_has_type(form, d) and condition_of(s.predicate) is None and _is_consecutive(s.index)):
        return False
    if not _fits(out, form, s.value, 0):
        return False
    place = _place(out, s.buffer_var, s.index)
    out.line(form.stored(out, place, _value(out, form, s.value), d))
    return True


def _has_type(form: VectorTypes, d: DType) -> bool:
    """Tells whether there is a vector type for `d`."""
    if d.lanes > form.most_lanes or d.bytes * d.lanes > form.most_bytes or d.lanes & (d.lanes - 1):
        return False
    return d.is_integer or (d.is_float and d.bits >= 32)


def _is_consecutive(index: Expr) -> bool:
    return isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1


def _fits(out: Emitter, form: VectorTypes, e: Expr, depth: int) -> bool:
    """Tells whether the vector `e` can be written with vector types alone."""
    match e:
        case Load():
            return condition_of(e.predicate) is None and _is_consecutive(e.index)
        case Broadcast():
            return True
        case Var():
            return e in out.vectors
        case Add(a=a, b=b) | Sub(a=a, b=b) | Mul(a=a, b=b):
            return depth < DEEPEST and not out.is_index(e) and all(_fits(out, form, x, depth + 1) for x in (a, b))
        case Div(a=a, b=b):
            return depth < DEEPEST and e.dtype.is_float and all(_fits(out, form, x, depth + 1) for x in (a, b))
        case Call(op=op, args=args) if op is FMA and form.has_fma and e.dtype.is_float:
            return depth < DEEPEST and all(_fits(out, form, x, depth + 1) for x in args)
    return False


def _value(out: Emitter, form: VectorTypes, e: Expr) -> Piece:
    """Returns the vector `e`, which `_fits`."""
    d = e.dtype
    if isinstance(e, Load):
        return form.loaded(out, _place(out, e.buffer_var, e.index), d)
    if isinstance(e, Var):
        return form.loaded(out, Piece(out.vectors[e]), d)
    if isinstance(e, Broadcast):
        scalar = out.value(e.value)
        if scalar.depth or scalar.reads:
            scalar = out.temporary(scalar, value_type(e.value.dtype))
        return form.repeated(out, scalar, d)
    if isinstance(e, Call):
        return call("fma", *(_value(out, form, x) for x in e.args))
    assert isinstance(e, BinaryOp)
    if d.is_int:
        return form.same_bits(out, _unsigned(out, form, e), d)
    return _combined(e, _value(out, form, e.a), _value(out, form, e.b))


def _unsigned(out: Emitter, form: VectorTypes, e: Expr) -> Piece:
    """Returns the signed integers `e` as unsigned ones, whose sums may overflow."""
    if isinstance(e, BinaryOp):
        return _combined(e, _unsigned(out, form, e.a), _unsigned(out, form, e.b))
    return form.same_bits(out, _value(out, form, e), dtype(f"uint{e.dtype.bits}").with_lanes(e.dtype.lanes))


def _combined(e: BinaryOp, a: Piece, b: Piece) -> Piece:
    operator, rank = _OPERATORS[type(e)]
    return infix(operator, rank, a, b)


def _place(out: Emitter, buffer: Var, index: Expr) -> Piece:
    """Returns the address of the first of the elements `index`, a Ramp, of a buffer."""
    assert isinstance(index, Ramp)
    first = out.value(index.base, True)
    return Piece(f"&{buffer_info(out, buffer).name}[{first.text}]", UNARY, first.depth, True)
