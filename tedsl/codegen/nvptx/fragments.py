"""Emits the calls on fragments: each thread of a warp holds a part of a fragment in its registers.

As the instructions wmma only the device knows which elements a thread has: a fragment is what `load` made and what `mma` and
`store` take. Shapes of 16 x 8 are products by the instructions mma, whose elements `dealt` moves.
"""

from __future__ import annotations

from math import gcd

from tedsl.codegen.llvm.emitter import BufferInfo, Emitter
from tedsl.codegen.llvm.indices.forms import Index, add, constant, scale
from tedsl.codegen.llvm.loads_stores import address, alignment, buffer_info
from tedsl.codegen.llvm.types import memory_type
from tedsl.codegen.nvptx import dealt
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.calls.fragments import (
    ACCUMULATOR,
    A,
    Fragment,
    Moved,
    fragments_of,
    is_fragment,
    moved,
    products,
    scope_of,
    shape_of,
)
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Call, Expr, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import FILL_FRAGMENT, LOAD_MATRIX, MMA
from tedsl.ir.script import shown
from tedsl.ir.stmt import Allocate
from tedsl.ir.walk.visitor import post_order
from tedsl.target.target import Target

_WARP = 32
MATRIX_ALIGNMENT = 32  # bytes of a memory that fragments are loaded from and stored to
_FIRST = {"float16": 70, "int8": 72, "uint8": 72, "bfloat16": 80}  # devices that multiply matrices of these
_SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "int8": "s8", "uint8": "u8", "int32": "s32"}


class Fragments:
    """What is known of the fragments of the kernel that is being written, and of the memory of their elements elsewhere."""

    def __init__(self, kernel: PrimFunc, target: Target) -> None:
        self.known = fragments_of(kernel.body)
        self.moved = {moved(node).memory for node in post_order(kernel.body)
                      if isinstance(node, Call) and node.op.short in ("tvm_load_matrix_sync", "tvm_store_matrix_sync")}
        for var, fact in self.known.items():
            least = dealt.FIRST if fact.is_dealt else _FIRST.get(str(fact.dtype), 70)
            if target.cpu.startswith("sm_") and int(target.cpu.removeprefix("sm_")) < least:
                raise LoweringError(f"the fragments {var.name} are of {fact.dtype}; {target.cpu} has no tensor cores for that",
                                    hint=f'devices from sm_{least} on have: Target("cuda -arch=sm_{least}")')

    @staticmethod
    def of(out: Emitter) -> Fragments:
        """Returns the fragments of the kernel that `out` writes."""
        known: Fragments = out.__dict__["fragments"]
        return known


def registers(fact: Fragment) -> tuple[int, str]:
    """Returns how many registers of each thread hold a fragment, and their type."""
    if fact.is_dealt:
        return dealt.registers(fact)
    if fact.dtype == "float16":  # each element of a matrix_a or matrix_b is in two threads
        return (4 if fact.scope == ACCUMULATOR else 8), "<2 x half>"
    return fact.size * fact.dtype.bytes // (4 * _WARP), "float" if fact.dtype == "float32" else "i32"


def emit_fragments(out: Emitter, s: Allocate, count: int) -> None:
    """Emits the memory of `count` elements of fragments: registers, where their numbers are constants."""
    fact = Fragments.of(out).known.get(s.buffer_var)
    if fact is not None:
        if count % fact.size:
            raise LoweringError(f"{s.buffer_var.name} has {count} elements, and its fragments of m, n, k = {fact.shape} have "
                                f"{fact.size} each", hint="a stage of scope wmma.* consists of whole tiles of that shape")
        many, t = registers(fact)
        pointer = out.alloca(f"[{many * count // fact.size} x {t}]", 16, s.buffer_var.name)
        out.scope.buffers[s.buffer_var] = BufferInfo(pointer, 0, 16, own=True)
    out.statement(s.body)


def emit_call(out: Emitter, e: Call) -> str:
    """Emits FILL_FRAGMENT, LOAD_MATRIX, STORE_MATRIX or MMA."""
    if e.op is MMA:
        _multiply(out, e)
    elif e.op is FILL_FRAGMENT:
        _fill(out, e)
    else:
        _move(out, e)
    out.called()
    return "0"


def _fill(out: Emitter, e: Call) -> None:
    var, fact = _fact(out, e, 0)
    _, t = registers(fact)
    value = _filler(out, e.args[5], fact.dtype)
    for place in _places(out, var, fact, e.args[4]):
        out.line(f"store {t} {value}, ptr {place}")


def _filler(out: Emitter, value: Expr, of: DType) -> str:
    """The register with as many copies of `value` as it has room for."""
    given = out.value(build.cast(of, value))
    if of.bits == 32:
        return given
    if of == "float16":
        one = out.assign(f"insertelement <2 x half> poison, half {given}, i32 0")
        return out.assign(f"insertelement <2 x half> {one}, half {given}, i32 1")
    bits = given if of.is_integer else out.assign(f"bitcast bfloat {given} to i16")
    wide = out.assign(f"zext i{of.bits} {bits} to i32")
    return out.assign(f"mul i32 {wide}, {0x01010101 if of.bits == 8 else 0x00010001}")


def _move(out: Emitter, e: Call) -> None:
    """Emits a load or store of a matrix. The address is of a space of memory, as it is known here."""
    there, (var, fact) = moved(e), _fact(out, e, 0)
    loads = e.op is LOAD_MATRIX
    info = buffer_info(out, there.memory)
    first, element = scale(out.scalar_index(there.offset), fact.dtype.lanes), memory_type(fact.dtype)
    space = 3 if info.own or scope_of(there.memory).startswith("shared") else 1
    generic, within = (address(out, info, first, element, space=kind) for kind in (0, space))
    place = dealt.Place(generic, within, space, _as_i32(out, there.stride), there.order,
                        gcd(alignment(info, first, fact.dtype.bytes), 16), _stride_divisor(out, there, fact))
    if fact.is_dealt and loads:
        _keep(out, var, fact, e.args[4], dealt.load(out, fact, place))
    elif fact.is_dealt:
        dealt.store(out, fact, place, _taken(out, var, fact, e.args[4]))
    else:
        _check_places(there, fact, first)
        _move_whole(out, e, var, fact, place)


def _stride_divisor(out: Emitter, there: Moved, fact: Fragment) -> int:
    """A number of bytes up to 16 that provably divides the distance between rows."""
    return gcd(out.scalar_index(there.stride).divisor() * fact.dtype.bytes, 16)


def _check_places(there: Moved, fact: Fragment, first: Index) -> None:
    """Refuses rows at distances, and matrices at places, that the instructions wmma cannot move."""
    name, stride = there.memory.name, build.as_int(there.stride)
    line = fact.columns if there.order == "row_major" else fact.rows
    bytes_ = min(16, line * fact.dtype.bytes)  # that are moved at once
    unit = bytes_ // fact.dtype.bytes
    other = 'the intrinsics "mma_load_a" and so on have no such limit'
    if stride is not None and stride % unit:
        raise LoweringError(f"the rows of {name} are {stride} elements of {fact.dtype} apart, {stride * fact.dtype.bytes} "
                            f"bytes, and tensor cores move rows at multiples of {bytes_} bytes",
                            hint=f"give s[{name}].storage_align a factor and an offset that {unit} divides; {other}",
                            about=name)
    if gcd(first.divisor(), unit) < gcd(*first.terms.values(), unit):  # by its constant part: it never is
        raise LoweringError(f"a matrix of {fact.dtype} begins {first.const} elements behind a multiple of {bytes_} bytes of "
                            f"{name}, and tensor cores move matrices that begin there",
                            hint=f"let the tiles of {name} begin at multiples of {unit} elements; {other}", about=name)


def _move_whole(out: Emitter, e: Call, var: Var, fact: Fragment, place: dealt.Place) -> None:
    loads, (many, t), space = e.op is LOAD_MATRIX, registers(fact), place.space
    pointer = place.within
    kind = "d" if not loads else "c" if fact.scope == ACCUMULATOR else "a" if fact.scope == A else "b"
    name = (f"llvm.nvvm.wmma.{_shape(fact)}.{'load' if loads else 'store'}.{kind}.{place.order[:3]}.stride."
            f"{_SHORT[str(fact.dtype)]}.p{space}")
    if loads:
        result = _struct(t, many)
        symbol = out.module.declare(name, f"declare {result} @{name}(ptr addrspace({space}), i32)")
        value = out.assign(f"call {result} {symbol}(ptr addrspace({space}) {pointer}, i32 {place.stride})")
        _keep(out, var, fact, e.args[4], _parts(out, value, t, many))
        return
    symbol = out.module.declare(name, f"declare void @{name}(ptr addrspace({space}), {', '.join([t] * many)}, i32)")
    parts = ", ".join(f"{t} {part}" for part in _taken(out, var, fact, e.args[4]))
    out.line(f"call void {symbol}(ptr addrspace({space}) {pointer}, {parts}, i32 {place.stride})")


def _multiply(out: Emitter, e: Call) -> None:
    (d, at), *rest = products(e)
    known = Fragments.of(out).known
    facts = [known[var] for var, _ in rest]
    a, b, c = facts
    types = f"f32.{_SHORT[str(c.dtype)]}" if a.dtype == "float16" else _SHORT[str(a.dtype)]
    if a.dtype == "float16" and c.dtype == "float16":
        types = "f16.f16"
    for fact, (var, _) in zip(facts[:2], rest):
        if not fact.order:
            raise LoweringError(f"{shown(e)}: nothing loads {var.name}", hint="tvm_load_matrix_sync says in which order its "
                                "elements lie in memory, which is a part of the product")
    orders = ("row", "col") if a.is_dealt else (a.order[:3], b.order[:3])  # loads put dealt elements where a product takes them
    name = f"llvm.nvvm.{'' if a.is_dealt else 'wmma.'}{'mma.' * a.is_dealt}{_shape(a)}.{'mma.' * (not a.is_dealt)}" \
           f"{'.'.join(orders)}.{types}"
    many, t = registers(c)
    result = _struct(t, many)
    shapes = [registers(fact) for fact in facts]
    taken = [f"{t} {part}" for (_, t), fact, (var, which) in zip(shapes, facts, rest) for part in _taken(out, var, fact, which)]
    given = ", ".join(t for count, t in shapes for _ in range(count))
    symbol = out.module.declare(name, f"declare {result} @{name}({given})")
    value = out.assign(f"call {result} {symbol}({', '.join(taken)})")
    _keep(out, d, known[d], at, _parts(out, value, t, many))


def _fact(out: Emitter, e: Call, at: int) -> tuple[Var, Fragment]:
    var = e.args[at]
    assert isinstance(var, Var) and is_fragment(var) and shape_of(e)
    return var, Fragments.of(out).known[var]


def _shape(fact: Fragment) -> str:
    m, n, k = fact.shape
    return f"m{m}n{n}k{k}"


def _struct(t: str, many: int) -> str:
    return t if many == 1 else f"{{ {', '.join([t] * many)} }}"


def _places(out: Emitter, var: Var, fact: Fragment, which: Expr) -> list[str]:
    """The addresses of the registers of a fragment, by its number."""
    many, t = registers(fact)
    info, first = buffer_info(out, var), scale(out.scalar_index(which), many)
    return [address(out, info, add(first, constant(k)), t) for k in range(many)]


def _taken(out: Emitter, var: Var, fact: Fragment, which: Expr) -> list[str]:
    _, t = registers(fact)
    return [out.assign(f"load {t}, ptr {place}") for place in _places(out, var, fact, which)]


def _parts(out: Emitter, value: str, t: str, many: int) -> list[str]:
    """The members of what an instruction returns."""
    return [value] if many == 1 else [out.assign(f"extractvalue {_struct(t, many)} {value}, {k}") for k in range(many)]


def _keep(out: Emitter, var: Var, fact: Fragment, which: Expr, parts: list[str]) -> None:
    """Emits stores of `parts` to the registers of a fragment."""
    _, t = registers(fact)
    for part, place in zip(parts, _places(out, var, fact, which), strict=True):
        out.line(f"store {t} {part}, ptr {place}")


def _as_i32(out: Emitter, e: Expr) -> str:
    value = out.value(e)
    if e.dtype.bits == 32:
        return value
    return out.assign(f"{'trunc' if e.dtype.bits > 32 else 'zext'} i{e.dtype.bits} {value} to i32")
