"""From expressions to Python source: one small generator per kind of node, in a table.

A generator asks for the values of the children (`yield child, wide`) and returns the name of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.errors import DTypeError, InternalError
from tedsl.ir import build
from tedsl.ir.calls.addresses import addressed
from tedsl.ir.calls.lanes import in_halves
from tedsl.ir.dtype import FLOAT32, INT64, DType
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CompareOp,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    ProducerLoad,
    Ramp,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Sub,
    Var,
)
from tedsl.ir.interpreter import arithmetic
from tedsl.ir.interpreter.fragments import fragment_call, tile_product_call
from tedsl.ir.interpreter.source import DEEPEST, Emission, SourceWriter
from tedsl.ir.node import Node
from tedsl.ir.ops import ATOMIC_ADD, COMBINE_LANES, CP_ASYNC, ELEMENTS_PAST_LINE, FRAGMENT_OPS, SHUFFLES, TILE_PRODUCT

# --- leaves ---------------------------------------------------------------------------------------------------------

def _var(c: SourceWriter, e: Var, wide: bool) -> Emission:
    if e not in c.vars:
        if e.dtype.is_handle:
            return c.memory(e).name
        c.vars[e] = c.free.setdefault(e, c.local(e.name)), False
    name, exact = c.vars[e]
    if exact and not wide:
        return c.temp(c.wrap(name, e.dtype) if e.dtype.lanes == 1 else f"{name}.astype({_kind(c, e.dtype)})")
    if wide and not exact and e.dtype.lanes > 1:
        return c.temp(f"{name}.astype(np.int64)")
    return name
    yield


def _int_imm(c: SourceWriter, e: IntImm, wide: bool) -> Emission:
    return str(bool(e.value)) if e.dtype.is_bool else f"({e.value})"
    yield


def _float_imm(c: SourceWriter, e: FloatImm, wide: bool) -> Emission:
    return c.constant(arithmetic.vector_type(e.dtype)(e.value))
    yield


def _string_imm(c: SourceWriter, e: StringImm, wide: bool) -> Emission:
    return c.constant(e.value)
    yield


def _kind(c: SourceWriter, of: DType, wide: bool = False) -> str:
    return "np.int64" if wide else c.constant(arithmetic.vector_type(of))


# --- arithmetic -----------------------------------------------------------------------------------------------------

SIGNS: dict[type, str] = {Add: "+", Sub: "-", Mul: "*", EQ: "==", NE: "!=", LT: "<", LE: "<=", GT: ">", GE: ">=", And: "&",
                          Or: "|"}
DIVISIONS: dict[type, str] = {Div: "truncdiv", Mod: "truncmod", FloorDiv: "floordiv", FloorMod: "floormod"}


def _arithmetic(c: SourceWriter, e: Any, wide: bool) -> Emission:
    a = yield e.a, wide
    b = yield e.b, wide
    source = f"{a} {SIGNS.get(type(e), '/')} {b}"
    if e.dtype.code == "bfloat":
        return c.temp(f"round_bfloat16({source})")
    if not e.dtype.is_integer and not e.dtype.is_bool:
        return c.temp(source)
    if e.dtype.lanes == 1 and not wide:
        return c.temp(c.wrap(source, e.dtype))
    if e.dtype.lanes == 1 and not c.is_index(e):  # of sizes and loops nothing leaves 64 bits
        return c.temp(c.wrap(source, INT64))
    return c.temp(source)


def _division(c: SourceWriter, e: Any, wide: bool) -> Emission:
    if e.dtype.is_float:
        return (yield from _arithmetic(c, e, wide))
    exact = wide or (e.dtype.is_int and c.is_index(e))
    a = yield e.a, exact
    b = yield e.b, exact
    name = DIVISIONS[type(e)]
    if e.dtype.lanes > 1:
        return c.temp(f"lanewise({name}, {_kind(c, e.dtype, wide)}, {a}, {b})")
    if isinstance(e.b, IntImm) and e.b.value > 0 and type(e) in (FloorDiv, FloorMod):
        quotient = f"{a} {'//' if type(e) is FloorDiv else '%'} {b}"
        return c.temp(c.wrap(quotient, e.dtype) if exact and not wide else quotient)
    return c.temp(f"{name}({a}, {b})" if wide else c.wrap(f"{name}({a}, {b})", e.dtype))


def _extremum(c: SourceWriter, e: Min | Max, wide: bool) -> Emission:
    exact = wide or (e.dtype.is_int and c.is_index(e))
    a = yield e.a, exact
    b = yield e.b, exact
    if e.dtype.lanes > 1:
        better = f"{'smaller' if type(e) is Min else 'larger'}({a}, {b})"
        return c.temp(f"{better}.astype({_kind(c, e.dtype)})" if exact and not wide else better)
    better = f"{a} if {a} != {a} or {a} {'<' if type(e) is Min else '>'} {b} else {b}"
    return c.temp(c.wrap(f"({better})", e.dtype) if exact and not wide else better)


def _comparison(c: SourceWriter, e: CompareOp, wide: bool) -> Emission:
    exact = e.a.dtype.is_int and c.is_index(e.a) and c.is_index(e.b)
    a = yield e.a, exact
    b = yield e.b, exact
    return c.temp(f"{a} {SIGNS[type(e)]} {b}")


def _logical(c: SourceWriter, e: And | Or, wide: bool) -> Emission:
    a = yield e.a, False
    b = yield e.b, False
    return c.temp(f"{a} {SIGNS[type(e)]} {b}")


def _not(c: SourceWriter, e: Not, wide: bool) -> Emission:
    a = yield e.a, False
    return c.temp(f"not {a}" if e.dtype.lanes == 1 else f"~{a}")


def _select(c: SourceWriter, e: Select, wide: bool) -> Emission:
    condition = yield e.condition, False
    a = yield e.true_value, wide
    b = yield e.false_value, wide
    return c.temp(_choice(e.condition, condition, a, b))


def _choice(condition: Expr, name: str, a: str, b: str) -> str:
    return f"{a} if {name} else {b}" if condition.dtype.lanes == 1 else f"np.where({name}, {a}, {b})"


def _let(c: SourceWriter, e: Let, wide: bool) -> Emission:
    exact = c.is_exact(e.var, e.value)
    value = yield e.value, exact
    c.vars[e.var] = value, exact
    return (yield e.body, wide)


def _ramp(c: SourceWriter, e: Ramp, wide: bool) -> Emission:
    base = yield e.base, wide
    stride = yield e.stride, wide
    if e.dtype.is_float:
        return c.temp(f"{base} + {stride} * np.arange({e.lanes}).astype({_kind(c, e.dtype)})")
    if wide or (e.dtype.is_int and e.dtype.bits == 32 and isinstance(e.stride, IntImm)):  # no overflow in 64 bits
        exact = c.temp(f"np.arange({e.lanes}) * {stride} + {base}")
        return exact if wide else c.temp(f"{exact}.astype({_kind(c, e.dtype)})")
    return c.temp(f"lanewise(lambda k: {base} + {stride} * k, {_kind(c, e.dtype)}, np.arange({e.lanes}))")


def _broadcast(c: SourceWriter, e: Broadcast, wide: bool) -> Emission:
    value = yield e.value, wide
    return c.temp(f"np.full({e.lanes}, {value}, {_kind(c, e.dtype, wide)})")


def _shuffle(c: SourceWriter, e: Shuffle, wide: bool) -> Emission:
    vectors = []
    for vector in e.vectors:
        vectors.append((yield vector, wide))
    picked = [i.value for i in e.indices if isinstance(i, IntImm)]
    joined = c.temp(f"np.concatenate([np.atleast_1d({'), np.atleast_1d('.join(vectors)})])")
    if e.dtype.lanes > 1:
        return c.temp(f"{joined}[{picked}].astype({_kind(c, e.dtype, wide)})")
    return c.temp(f"{joined}[{picked[0]}]" if e.dtype.is_float else f"{joined}.item({picked[0]})")


def _cast(c: SourceWriter, e: Cast, wide: bool) -> Emission:
    source, target = e.value.dtype, e.dtype
    exact = not wide and source.is_int and (target.is_float or target.bits == 64) and c.is_index(e.value)
    value = yield e.value, exact or (wide and source.is_int)
    if exact:
        source = INT64.with_lanes(source.lanes)
    if source.element is target.element:
        return value
    if target.is_bool:
        return c.temp(f"{value} != 0")
    if target.lanes == 1:
        return c.temp(_cast_scalar(c, value, source, target))
    if target.is_float:
        return c.temp(_cast_vector_to_float(c, value, source, target))
    if source.is_float:
        low, high = target.min_value, target.max_value
        return c.temp(f"lanewise(lambda x: float_to_int(x, {low}, {high}), {_kind(c, target, wide)}, {value})")
    kept = target.bits >= source.bits + (source.is_uint and target.is_int)  # an int32 has no room for a uint32
    narrowed = value if wide and kept else f"{value}.astype({_kind(c, target)})"
    return c.temp(f"{narrowed}.astype(np.int64)" if wide else narrowed)


def _cast_scalar(c: SourceWriter, value: str, source: DType, target: DType) -> str:
    if target.is_float:
        if source.is_float:
            return f"{_from_float(source, target)}({value})"
        if source.bits == 64 and target.code == "bfloat":
            return f"bfloat16_from_int({value})"
        if source.bits == 64 and target.bits == 32:
            return f"float32_from_int({value})"
        exact = f"int({value})" if source.is_bool else value
        return f"bfloat16_from_double({exact})" if target.code == "bfloat" else f"np.{target}({exact})"
    if source.is_float:
        return f"float_to_int({value}, {target.min_value}, {target.max_value})"
    if source.is_bool:
        return f"int({value})"
    assert source.min_value is not None and source.max_value is not None
    assert target.min_value is not None and target.max_value is not None
    if target.min_value <= source.min_value and source.max_value <= target.max_value:
        return value
    return c.wrap(value, target)


def _from_float(source: DType, target: DType) -> str:
    if target.code == "bfloat":
        return "bfloat16_from_double" if source.bits == 64 else "round_bfloat16"
    return f"np.{target.element}"


def _cast_vector_to_float(c: SourceWriter, value: str, source: DType, target: DType) -> str:
    if target.code == "bfloat":
        if source.is_float and source.bits <= 32:
            return f"round_bfloat16({value})"
        return f"lanewise({'bfloat16_from_double' if source.is_float else 'bfloat16_from_int'}, np.float32, {value})"
    if source.is_integer and source.bits == 64 and target.bits == 16:
        value = f"{value}.astype(np.float64)"
    return f"{value}.astype({_kind(c, target)})"


# --- calls ----------------------------------------------------------------------------------------------------------

def _call(c: SourceWriter, e: Call, wide: bool) -> Emission:
    name = e.op.short
    if name == "if_then_else":
        return (yield from _if_then_else(c, e, wide))
    if name in ("likely", "data_index"):
        return (yield e.args[0], False)
    if name in ("call_extern", "call_pure_extern", "call_packed"):
        return (yield from _external(c, e, name))
    if name in ("address_of", "tvm_access_ptr", "tvm_stack_make_array"):
        return (yield from _memory_argument(c, e, name))
    if name in ("tvm_storage_sync", "prefetch", "ptx_wait_group"):
        return "0"
    if e.op is ELEMENTS_PAST_LINE:
        assert isinstance(e.args[0], Var)
        return c.temp(f"elements_past_line({c.memory(e.args[0]).name}, {e.args[1]}, {e.args[2]})")
    if e.op is CP_ASYNC:
        return (yield from _copy(c, e))
    if e.op is ATOMIC_ADD:
        return (yield from _atomic_add(c, e))
    if e.op in FRAGMENT_OPS:
        return (yield from fragment_call(c, e))
    if e.op is TILE_PRODUCT:
        return (yield from tile_product_call(c, e))
    if name == "tiles_allowed":
        return "True"
    if e.op in COMBINE_LANES:
        return (yield in_halves(e), wide)
    args = []
    for arg in e.args:
        args.append((yield arg, False))
    if e.op in SHUFFLES:
        return c.shuffled(e, args)
    if name == "ret":
        c.line(f"raise Returned({args[0]})")
        return "0"
    if name == "dot":
        sums = f"{'add_pairs' if e.dtype.is_float else 'add_products'}({', '.join(args)}, {_kind(c, e.dtype)})"
        return c.temp(f"{sums}.astype(np.int64)" if wide else sums)
    if name == "compress_lanes":
        held = c.temp(f"{args[0]}[np.asarray({args[1]}, bool)]")
        return c.temp(f"np.concatenate([{held}, np.zeros({e.dtype.lanes} - len({held}), {held}.dtype)])"
                      f"{'.astype(np.int64)' if wide else ''}")
    function = _intrinsic(c, e, name)
    if function is None and name != "lane_mask":
        raise InternalError(f"the interpreter has no operator {e.op.name}")
    if e.dtype.lanes > 1 and name != "reinterpret":
        return c.temp(f"lanewise({function}, {_kind(c, e.dtype)}, {', '.join(args)}){'.astype(np.int64)' if wide else ''}")
    if name == "lane_mask":
        return c.temp(f"sum(1 << k for k, on in enumerate({args[0]}) if on)")
    result = f"({function})({', '.join(args)})"
    return c.temp(c.wrap(result, e.dtype) if e.dtype.is_integer and name != "reinterpret" else result)


BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}


def _intrinsic(c: SourceWriter, e: Call, name: str) -> str | None:
    """The source of the intrinsic `name` as a function on scalars; its integers may overflow, the caller wraps them."""
    first = e.args[0].dtype.element
    if name in BITWISE:
        return f"lambda x, y: x {BITWISE[name]} y"
    if name in ("shift_left", "shift_right"):
        return f"lambda x, y: {name}(x, y, {first.bits})"
    if name in ("popcount", "clz"):
        return f"lambda x: {'popcount' if name == 'popcount' else 'count_leading_zeros'}(x, {first.bits})"
    if name == "bitwise_not":
        return "lambda x: ~x"
    if name == "fabs" and first.is_integer:
        return "abs"
    if name == "fma":
        return "fma64" if first.bits == 64 else f"lambda x, y, z: {_from_float(FLOAT32, first)}(fma32(x, y, z))"
    if name == "nextafter":
        return f"lambda x, y: next_after(x, y, {str(first)!r})"
    if name == "reinterpret":
        return f"lambda x: reinterpret(x, {str(first)!r}, {str(e.dtype.element)!r}, {e.dtype.lanes > 1})"
    if name in arithmetic.MATH:
        return f"lambda *x: call_math({name!r}, {str(e.dtype.element)!r}, *x)"
    return None


def _if_then_else(c: SourceWriter, e: Call, wide: bool) -> Emission:
    condition = yield e.args[0], False
    chosen, other = e.args[1], e.args[2]
    if not c.reads_memory(chosen) and not c.reads_memory(other):
        a = yield chosen, wide
        b = yield other, wide
        return c.temp(_choice(e.args[0], condition, a, b))
    if e.args[0].dtype.lanes > 1:
        return (yield from _masked_choice(c, e, condition, wide))
    saved = c.begin_function() if c.depth > DEEPEST else None
    result = c.local("chosen")
    for header, side in ((f"if {condition}:", chosen), ("else:", other)):
        c.enter(header)
        value = yield side, wide
        c.line(f"{result} = {value}")
        c.leave()
    return result if saved is None else c.temp(c.end_function(saved, result))


def _masked_choice(c: SourceWriter, e: Call, condition: str, wide: bool) -> Emission:
    outer = c.mask
    c.mask = c.temp(f"{condition} & {outer}") if outer else condition
    a = yield e.args[1], wide
    c.mask = c.temp(f"~{condition} & {outer}" if outer else f"~{condition}")
    b = yield e.args[2], wide
    c.mask = outer
    return c.temp(f"np.where({condition}, {a}, {b})")


def _memory_argument(c: SourceWriter, e: Call, name: str) -> Emission:
    """The source of an argument that is an address or an array."""
    if name == "address_of":
        load = e.args[0]
        if not isinstance(load, Load):
            raise InternalError("tir.address_of takes a Load")
        index = yield load.index, True
        array, _ = c.typed(c.memory(load.buffer_var), load.dtype)
        return c.temp(f"{array}[{index}:]")
    if name == "tvm_access_ptr":
        offset = yield e.args[2], True
        extent = yield e.args[3], True
        data = e.args[1]
        assert isinstance(data, Var)
        array, _ = c.typed(c.memory(data), e.args[0].dtype)
        return c.temp(f"{array}[{offset}:{offset} + {extent}]")
    data, shape, strides, _, marker, start = e.args
    assert isinstance(data, Var) and isinstance(shape, Call)
    array, _ = c.typed(c.memory(data), marker.dtype)
    names = []
    for part in (start, *shape.args, *(strides.args if isinstance(strides, Call) else ())):
        names.append((yield part, True))
    offset, dims, steps = names[0], names[1:len(shape.args) + 1], names[len(shape.args) + 1:]
    return c.temp(f"array_view({array}, {offset}, ({''.join(f'{d}, ' for d in dims)}), ({''.join(f'{s}, ' for s in steps)}))")


def _atomic_add(c: SourceWriter, e: Call) -> Emission:
    """Emits the value of an element, and adds to the element."""
    memory, index = addressed(e)
    at = yield index, True
    value = yield e.args[1], False
    array, length = c.typed(c.memory(memory), e.dtype)
    c.check(memory.name, at, length, 1, "")
    old = c.temp(f"{array}[{at}]" if e.dtype.is_float else f"{array}.item({at})")
    c.line(f"{array}[{at}] = " + (f"{old} + {value}" if e.dtype.is_float else c.wrap(f"{old} + {value}", e.dtype)))
    return old


def _copy(c: SourceWriter, e: Call) -> Emission:
    """Emits an asynchronous copy as one that is done at once."""
    to, of = e.args[0], e.args[2]
    assert isinstance(to, Var) and isinstance(of, Var)
    places = []
    for memory, index in ((to, e.args[1]), (of, e.args[3])):
        at = yield index, True
        array, length = c.typed(c.memory(memory), e.dtype)
        last = c.temp(f"{at} + {build.as_int(e.args[4])} // {e.dtype.bytes} - 1")
        c.check(memory.name, at, length, 1, "")
        c.check(memory.name, last, length, 1, "")
        places.append(f"{array}[{at}:{last} + 1]")
    c.line(" = ".join(places))
    return "0"


def _external(c: SourceWriter, e: Call, kind: str) -> Emission:
    args = []
    for arg in e.args[1:]:
        args.append((yield arg, False))
    symbol = str(getattr(e.args[0], "value", e.args[0]))
    function = c.free.setdefault("external", c.local("external"))
    lanes, element = e.dtype.lanes, e.dtype.element
    head = ", ".join([c.constant(symbol), c.constant(kind), c.constant(element),
                      c.constant(tuple([arg.dtype.element for arg in e.args[1:]]))])
    if lanes > 1:
        return c.temp(f"lanewise(lambda *x: {function}({head}, *x), {_kind(c, e.dtype)}, {', '.join(args)})")
    return c.temp(f"{function}({head}, {', '.join(args)})")


# --- memory ---------------------------------------------------------------------------------------------------------

def _load(c: SourceWriter, e: Load, wide: bool) -> Emission:
    index = yield e.index, True
    mask = "" if e.predicate is None else (yield e.predicate, False)
    memory = c.memory(e.buffer_var)
    _, length = c.typed(memory, e.dtype)
    value = c.loaded(e.buffer_var.name, memory, e.dtype, index, mask,
                     lambda: c.check(e.buffer_var.name, index, length, e.dtype.lanes, c.mask))
    return c.temp(f"{value}.astype(np.int64)") if wide and e.dtype.lanes > 1 else value


def _buffer_load(c: SourceWriter, e: BufferLoad, wide: bool) -> Emission:
    names = []
    for index in e.indices:
        names.append((yield index, True))
    if e.buffer.data not in c.layouts:
        return _item(c, e.buffer, e.buffer.name, e.dtype, names)
    flat = c.address(e.buffer, names)
    value = c.loaded(e.buffer.name, c.memory(e.buffer.data), e.dtype, flat, "",
                     lambda: c.check_indices(e.buffer, e.indices, names))
    return c.temp(f"{value}.astype(np.int64)") if wide and e.dtype.lanes > 1 else value


def _producer_load(c: SourceWriter, e: ProducerLoad, wide: bool) -> Emission:
    names = []
    for index in e.indices:
        names.append((yield index, True))
    return _item(c, e.producer, e.producer.name, e.dtype, names)


def _item(c: SourceWriter, key: Any, name: str, of: DType, indices: list[str]) -> str:
    """The source of an element of the array that the caller gives for a buffer or tensor."""
    array = c.free.setdefault(key, c.local(name))
    for position, index in enumerate(indices):
        c.check(f"{name}, dimension {position}", index, f"{array}.shape[{position}]", 1, "")
    element = f"{array}[{', '.join(indices)}]" if indices else f"{array}[()]"
    return c.temp({"b": f"bool({element})", "i": f"int({element})", "u": f"int({element})",
                   "f": element}[of.code[0]] if of.code != "bfloat" else f"np.float32({element})")


def _reduce(c: SourceWriter, e: Reduce, wide: bool) -> Emission:
    """Emits loops over the axes of a reduction; the accumulators start with the identity, or with `init`."""
    accumulators = []
    for start in e.init or e.combiner.identity_element:
        value = yield start, False
        accumulators.append(c.local("acc"))
        c.line(f"{accumulators[-1]} = {value}")
    for axis in e.axis:
        assert axis.dom is not None and axis.dom.extent is not None
        low = yield axis.dom.min, True
        extent = yield axis.dom.extent, True
        name = c.local(axis.name)
        c.vars[axis.var] = name, False
        c.enter(f"for {name} in range({low}, {low} + {extent}):")
        c.loops.append((axis.name, name))
    condition = yield e.condition, False
    c.enter(f"if {condition}:")
    for left, right, accumulator, source in zip(e.combiner.lhs, e.combiner.rhs, accumulators, e.source):
        c.data_vars |= {left, right}
        c.vars[left] = accumulator, False
        c.vars[right] = (yield source, False), False
    results = []
    for result in e.combiner.result:
        results.append((yield result, False))
    for accumulator, combined in zip(accumulators, results):
        c.line(f"{accumulator} = {combined}")
    c.leave()
    for _ in e.axis:
        c.leave()
        c.loops.pop()
    return accumulators[e.value_index]


EMIT: dict[type, Callable[[SourceWriter, Any, bool], Emission]] = {
    Var: _var, SizeVar: _var, IntImm: _int_imm, FloatImm: _float_imm, StringImm: _string_imm,
    Add: _arithmetic, Sub: _arithmetic, Mul: _arithmetic, Div: _division, Mod: _division, FloorDiv: _division,
    FloorMod: _division, Min: _extremum, Max: _extremum,
    EQ: _comparison, NE: _comparison, LT: _comparison, LE: _comparison, GT: _comparison, GE: _comparison,
    And: _logical, Or: _logical, Not: _not, Select: _select, Let: _let, Cast: _cast, Ramp: _ramp, Broadcast: _broadcast,
    Shuffle: _shuffle, Call: _call, Load: _load, BufferLoad: _buffer_load, ProducerLoad: _producer_load, Reduce: _reduce,
}


def _emitter(e: Node) -> Callable[[SourceWriter, Any, bool], Emission]:
    for cls in type(e).__mro__:
        if cls in EMIT:
            return EMIT[cls]
    raise InternalError(f"the interpreter does not know the expression {type(e).__name__}")


class ExprCompiler(SourceWriter):
    """Translates expressions."""

    def emission(self, expr: Expr, wide: bool) -> Emission:
        if expr.dtype.is_custom:
            raise DTypeError(f"the interpreter does not know the numbers of {expr.dtype}, a type of the program",
                             hint="tir.transform.LowerCustomDatatypes() replaces its operators, as build does")
        return _emitter(expr)(self, expr, wide)
