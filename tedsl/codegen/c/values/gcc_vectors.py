"""Vectors as the vector types of gcc and clang, by the option `-vectors=gcc`.

    *(tedsl_f32x8_m *)&C[i * 8] = *(const tedsl_f32x8_m *)&A[i * 8] + *(const tedsl_f32x8_m *)&B[i * 8];

So are sums, differences, products and quotients of consecutive elements and of scalars stored to consecutive elements; other
vectors are loops over their lanes, which compilers turn into vectors themselves.
"""

from __future__ import annotations

from tedsl.codegen.c.emitter import Emitter
from tedsl.codegen.c.text.piece import PRODUCT, SUM, UNARY, Piece, infix
from tedsl.codegen.c.text.types import suffix, value_type
from tedsl.codegen.c.values.memory import buffer_info, condition_of
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.expr import Add, BinaryOp, Broadcast, Div, Expr, IntImm, Load, Mul, Ramp, Sub, Var
from tedsl.ir.stmt import Store

_OPERATORS: dict[type, tuple[str, int]] = {Add: ("+", SUM), Sub: ("-", SUM), Mul: ("*", PRODUCT), Div: ("/", PRODUCT)}
MOST_LANES, DEEPEST = 64, 12


def store_as_vector(out: Emitter, s: Store) -> bool:
    """Emits `s` with vector types and tells whether it can be; nothing is emitted if not."""
    d = s.value.dtype
    if not (_has_type(d) and condition_of(s.predicate) is None and _is_consecutive(s.index) and _fits(out, s.value, 0)):
        return False
    place = _memory(out, s.buffer_var, s.index, d, "")
    value = _value(out, s.value)
    out.line(f"{place.text} = {value.text};")
    return True


def _has_type(d: DType) -> bool:
    """Tells whether there is a vector type for `d`."""
    return (d.is_integer or (d.is_float and d.bits >= 32)) and d.lanes & (d.lanes - 1) == 0 and d.lanes <= MOST_LANES


def _is_consecutive(index: Expr) -> bool:
    return isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1


def _fits(out: Emitter, e: Expr, depth: int) -> bool:
    """Tells whether the vector `e` can be written with vector types alone."""
    match e:
        case Load():
            return condition_of(e.predicate) is None and _is_consecutive(e.index)
        case Broadcast():
            return True
        case Var():
            return e in out.vectors
        case Add(a=a, b=b) | Sub(a=a, b=b) | Mul(a=a, b=b):
            return depth < DEEPEST and not out.is_index(e) and _fits(out, a, depth + 1) and _fits(out, b, depth + 1)
        case Div(a=a, b=b):
            return depth < DEEPEST and e.dtype.is_float and _fits(out, a, depth + 1) and _fits(out, b, depth + 1)
    return False


def _value(out: Emitter, e: Expr) -> Piece:
    """Returns the vector `e`, which `_fits`."""
    d = e.dtype
    if isinstance(e, Load):
        return _memory(out, e.buffer_var, e.index, d, "const ")
    if isinstance(e, Var):
        return Piece(f"*(const {_memory_type(out, d)} *){out.vectors[e]}", UNARY, 1)
    if isinstance(e, Broadcast):
        scalar = out.value(e.value)
        if scalar.depth or scalar.reads:
            scalar = out.temporary(scalar, value_type(e.value.dtype))
        name = out.names.fresh("t")
        lanes = "0" if scalar.text in ("0", "0u", "0.0", "0.0f") else ", ".join([scalar.text] * d.lanes)
        out.line(f"const {_type(out, d)} {name} = {{{lanes}}};")
        return Piece(name)
    assert isinstance(e, BinaryOp)
    a, b = _value(out, e.a), _value(out, e.b)
    operator, rank = _OPERATORS[type(e)]
    if not d.is_int:
        return infix(operator, rank, a, b)
    unsigned = _type(out, dtype(f"uint{d.bits}").with_lanes(d.lanes))  # signed sums must not overflow
    a, b = (Piece(f"({unsigned}){operand.at(UNARY)}", UNARY, operand.depth + 1, operand.reads) for operand in (a, b))
    total = infix(operator, rank, a, b)
    return Piece(f"({_type(out, d)})({total.text})", UNARY, total.depth + 1, total.reads)


def _memory(out: Emitter, buffer: Var, index: Expr, d: DType, const: str) -> Piece:
    """Returns the vector at the elements `index`, a Ramp, of a buffer."""
    assert isinstance(index, Ramp)
    first = out.value(index.base, True)
    place = f"&{buffer_info(out, buffer).name}[{first.text}]"
    return Piece(f"*({const}{_memory_type(out, d)} *){place}", UNARY, first.depth + 1, True)


def _type(out: Emitter, d: DType) -> str:
    """Returns the name of the vector type for `d`, which the module defines."""
    name, size = f"tedsl_{suffix(d.element)}x{d.lanes}", d.bytes * d.lanes
    element = value_type(d.element)
    out.module.types.setdefault(name, f"typedef {element} {name} __attribute__((vector_size({size})));\n"
                                      f"typedef {element} {name}_m __attribute__((vector_size({size}), aligned({d.bytes}), "
                                      "may_alias));\n")
    return name


def _memory_type(out: Emitter, d: DType) -> str:
    """Returns the name of the vector type for `d` in memory, where it is aligned as one element."""
    return _type(out, d) + "_m"
