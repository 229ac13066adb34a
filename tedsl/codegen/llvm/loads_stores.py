"""Emits loads and stores: contiguous, reversed, strided, gathered, masked."""

from __future__ import annotations

from math import gcd

from tedsl.codegen.llvm.branch import any_lane, guarded, mask_for
from tedsl.codegen.llvm.emitter import BufferInfo, Emitter, PastCache
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.indices.forms import AnyIndex, Index, Lanes, Ramp
from tedsl.codegen.llvm.indices.vectors import splat_register
from tedsl.codegen.llvm.store_of_lanes import store_of_lanes
from tedsl.codegen.llvm.types import expect, memory_type, steps, vector_of
from tedsl.codegen.llvm.values.convert import from_memory, to_memory
from tedsl.codegen.llvm.values.lanes_in_turn import Places, are_many, load_in_turn, store_in_turn
from tedsl.errors import InternalError
from tedsl.ir.build import as_int, is_true
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Broadcast, Expr, Load, Var
from tedsl.ir.stmt import Store
from tedsl.passes.machine.split_vectors import lanes_on

_NEAR = 4  # the largest stride at which loads of all that lies between the elements are faster than one load for each
_INTERLEAVED = (2, 4, 8)  # rows whose elements take turns in the lanes

# --- addresses ------------------------------------------------------------------------------------------------------------

def buffer_info(out: Emitter, var: Var) -> BufferInfo:
    info = out.scope.buffers.get(var)
    if info is None:
        raise InternalError(f"buffer {var.name} is used in {out.function.name} where it does not exist")
    return info


def address(out: Emitter, info: BufferInfo, index: Index, element: str, inside: bool = False, space: int = 0) -> str:
    """Returns the pointer to element `index`. Terms of outer loops are added first, the constant last, so that partial sums are
    loop-invariant.

    inside: the element is certainly accessed, so that the address and all partial sums lie in the buffer. space: the address is
    a pointer into this space of memory; 0: into any.
    """
    pointer, level, kind = info.pointer, info.level, "ptr"
    if space:  # first: LLVM does not take the sums out of a cast that follows them
        kind = f"ptr addrspace({space})"
        pointer = out.pure(f"addrspacecast ptr {pointer} to {kind}", level)
    step = f"getelementptr inbounds {element}" if inside and index.is_nonnegative else f"getelementptr {element}"
    terms = index.terms
    levels = sorted({atom.level for atom in terms}) if terms else ()
    for at in levels:
        text, _ = out.register(Index(terms if len(levels) == 1 else {atom: c for atom, c in terms.items() if atom.level == at}))
        level = max(level, at)
        pointer = out.pure(f"{step}, {kind} {pointer}, i64 {text}", level)
    return out.pure(f"{step}, {kind} {pointer}, i64 {index.const}", level) if index.const else pointer


def alignment(info: BufferInfo, index: Index, size: int) -> int:
    """Returns a number of bytes that provably divides the address of element `index`; elements have `size` bytes."""
    return gcd(info.alignment, index.divisor() * size) if info.alignment else size


def _predicate(out: Emitter, predicate: Expr | None, lanes: int) -> str | None:
    """Returns the mask of an access, i1 for a scalar; None if all lanes are on."""
    inner = mask_for(out, lanes)
    if predicate is None or is_true(predicate.value if isinstance(predicate, Broadcast) else predicate):
        return inner
    mask = out.value(predicate)
    if predicate.dtype.lanes != lanes:
        mask = splat_register(out, mask, "i1", lanes, out.level)
    if mask in ("true", "splat (i1 true)"):
        return inner
    return mask if inner is None else out.assign(f"and {vector_of('i1', lanes)} {mask}, {inner}")


# --- loads ------------------------------------------------------------------------------------------------------------------

def emit_load(out: Emitter, e: Load) -> str:
    d, info = e.dtype, buffer_info(out, e.buffer_var)
    mask = _predicate(out, e.predicate, d.lanes)
    index = out.index(e.index)
    if isinstance(index, Index):
        return from_memory(out, _load_scalar(out, info, index, d, mask), d)
    if isinstance(index, Ramp) and index.stride in (1, -1):
        return from_memory(out, _load_contiguous(out, info, index, d, mask), d)
    if isinstance(index, Ramp) and index.stride == 0:
        return from_memory(out, _load_splat(out, info, index.base, d, mask), d)
    if isinstance(index, Ramp) and 1 < abs(index.stride) <= _NEAR and (mask is None or _masks_are_free(out, d)):
        return from_memory(out, _load_every(out, info, index, d, mask), d)
    if isinstance(index, Lanes) and index.known is not None and _are_near(out, index, d, mask):
        return from_memory(out, _load_known(out, info, index.base, index.known, d, mask), d)
    rows = _interleaved(index.known) if isinstance(index, Lanes) and index.known is not None else 1
    if isinstance(index, Lanes) and rows > 1 and (mask is None or out.target.can_mask(d.element)):
        return from_memory(out, _load_rows(out, info, index, rows, d, mask), d)
    return from_memory(out, _gather(out, info, index, d, mask), d)


def _load_scalar(out: Emitter, info: BufferInfo, index: Index, d: DType, mask: str | None) -> str:
    t = memory_type(d)
    pointer = address(out, info, index, t, mask is None)
    known = d.bytes if info.broken else alignment(info, index, d.bytes)
    text = f"load {t}, ptr {pointer}, align {known}{info.alias}"
    if mask is None:
        return out.load(text, info)
    zero = "0x0000000000000000" if t in ("float", "double") else "null" if t == "ptr" else "0"
    return guarded(out, mask, t, zero, text)


def _load_splat(out: Emitter, info: BufferInfo, index: Index, d: DType, mask: str | None) -> str:
    """Emits the load of one element for all lanes; with a mask in a branch that is taken where any lane is on."""
    taken = None if mask is None else any_lane(out, mask, d.lanes)
    scalar = _load_scalar(out, info, index, d.element, taken)
    value = splat_register(out, scalar, memory_type(d.element), d.lanes, out.level)
    t = memory_type(d)
    return value if mask is None else out.assign(f"select <{d.lanes} x i1> {mask}, {t} {value}, {t} zeroinitializer")


def _load_contiguous(out: Emitter, info: BufferInfo, index: Ramp, d: DType, mask: str | None) -> str:
    lanes, t, element = d.lanes, memory_type(d), memory_type(d.element)
    first = index.base if index.stride == 1 else Index(index.base.terms, index.base.const - lanes + 1)
    if mask is not None and not out.target.can_mask(d.element):
        return _load_lanes(out, info, index, d, mask)
    if mask is not None and index.stride == -1:
        mask = reverse(out, mask, "i1", lanes)
    whole = mask is None or _is_within(info, first, lanes)
    pointer = address(out, info, first, element, whole)
    align = alignment(info, first, d.bytes)
    align = gcd(align, lanes * d.bytes) if info.broken else align
    if mask is None and _takes_a_mask(out, info, first, d):
        value = _load_first(out, info, pointer, align, d)
    elif whole:
        value = out.load(f"load {t}, ptr {pointer}, align {align}{info.alias}", info)
        if mask is not None:
            value = out.assign(f"select <{lanes} x i1> {mask}, {t} {value}, {t} zeroinitializer")
    else:
        value = _masked_load(out, info, pointer, align, d, mask)
    return value if index.stride == 1 else reverse(out, value, element, lanes)


def _masked_load(out: Emitter, info: BufferInfo, pointer: str, align: int, d: DType, mask: str | None) -> str:
    t, name = memory_type(d), f"llvm.masked.load.v{d.lanes}{_short(memory_type(d.element))}.p0"
    symbol = out.module.declare(name, f"declare {t} @{name}(ptr, i32, <{d.lanes} x i1>, {t})")
    return out.load(f"call {t} {symbol}(ptr {pointer}, i32 {align}, <{d.lanes} x i1> {mask}, {t} zeroinitializer)"
                    f"{info.alias}", info)


def _takes_a_mask(out: Emitter, info: BufferInfo, first: Index, d: DType) -> bool:
    """Tells whether a vector of lanes that are no power of two, which LLVM loads in several parts, is better loaded by a mask:
    but of an array that LLVM keeps in registers.
    """
    in_registers = info.count > 0 and not first.terms
    return d.lanes.bit_count() > 1 and not in_registers and _masks_are_free(out, d)


def _load_first(out: Emitter, info: BufferInfo, pointer: str, align: int, d: DType) -> str:
    """Emits the load of a wider vector, of which the first lanes are on."""
    wide = d.with_lanes(1 << d.lanes.bit_length())
    on = ", ".join(f"i1 {'true' if k < d.lanes else 'false'}" for k in range(wide.lanes))
    picks = ", ".join(f"i32 {k}" for k in range(d.lanes))
    value, t = _masked_load(out, info, pointer, align, wide, f"<{on}>"), memory_type(wide)
    return out.assign(f"shufflevector {t} {value}, {t} poison, <{d.lanes} x i32> <{picks}>")


def _is_within(info: BufferInfo, first: Index, lanes: int) -> bool:
    """Tells whether `lanes` elements from `first` on are certainly elements of an array on the stack: then those that a mask
    turns off may be read, and written as they are, and LLVM can keep the array in registers.
    """
    low, high = first.bounds()
    return low >= 0 and high <= info.count - lanes


def _masks_are_free(out: Emitter, d: DType) -> bool:
    """Tells whether a load with a mask takes no longer than one without: of one vector, where masks are registers. Then loads
    of all that lies between strided elements, with the mask of each, and a shuffle are better than a gather.
    """
    return out.target.has_mask_registers and out.target.can_mask(d.element) and d.lanes * d.bytes * 8 <= out.target.vector_bits


def _load_every(out: Emitter, info: BufferInfo, index: Ramp, d: DType, mask: str | None = None) -> str:
    """Emits contiguous loads of all that lies between the first and the last element, and shuffles that pick every stride-th.

    The last of the loads ends with the last element: what follows it may not be there. With a mask, they load nothing but the
    elements that it turns on.
    """
    lanes, step, t, element = d.lanes, abs(index.stride), memory_type(d), memory_type(d.element)
    low = index.base if index.stride > 0 else Index(index.base.terms, index.base.const + (lanes - 1) * index.stride)
    starts = [*(lanes * k for k in range(step - 1)), (lanes - 1) * (step - 1)]
    value, known = "", [0] * lanes
    if mask is not None and index.stride < 0:
        mask = reverse(out, mask, "i1", lanes)
    for number, start in enumerate(starts):
        first = Index(low.terms, low.const + start)
        pointer = address(out, info, first, element, mask is None)
        align = alignment(info, first, d.bytes)
        if mask is not None:
            part = _masked_load(out, info, pointer, align, d, _spread(out, mask, lanes, start, step))
        elif _takes_a_mask(out, info, first, d):
            part = _load_first(out, info, pointer, align, d)
        else:
            part = out.load(f"load {t}, ptr {pointer}, align {align}{info.alias}", info)
        ends = starts[number + 1] if number + 1 < len(starts) else lanes * step
        for k in range(lanes):
            if start <= k * step < ends:
                known[k] = k * step - start + (lanes if number else 0)
        if number:
            picks = ", ".join(f"i32 {pick}" for pick in known)
            value = out.assign(f"shufflevector {t} {value}, {t} {part}, <{lanes} x i32> <{picks}>")
            known = list(range(lanes))
        else:
            value = part
    return value if index.stride > 0 else reverse(out, value, element, lanes)


def _are_near(out: Emitter, index: Lanes, d: DType, mask: str | None) -> bool:
    """Tells whether elements that lie in one vector, two at least, are loaded with all between, and shuffled."""
    known = index.known
    return known is not None and 0 < max(known) - min(known) < d.lanes and (mask is None or _masks_are_free(out, d))


def _load_known(out: Emitter, info: BufferInfo, base: Index, known: tuple[int, ...], d: DType, mask: str | None) -> str:
    """Emits a contiguous load from the least of the places `known` to the largest, and the shuffle that puts each element into
    its lanes. With a mask, it loads nothing but the elements that lanes want that are on.
    """
    low, element = min(known), memory_type(d.element)
    first, part = Index(base.terms, base.const + low), d.with_lanes(max(known) - low + 1)
    pointer, align = address(out, info, first, element, mask is None), alignment(info, first, d.bytes)
    t = memory_type(part)
    if mask is not None:
        wanted = _places_on(out, mask, [place - low for place in known], part.lanes)
        value = _masked_load(out, info, pointer, align, part, wanted)
    elif _takes_a_mask(out, info, first, part):
        value = _load_first(out, info, pointer, align, part)
    else:
        value = out.load(f"load {t}, ptr {pointer}, align {align}{info.alias}", info)
    picks = ", ".join(f"i32 {place - low}" for place in known)
    value = out.assign(f"shufflevector {t} {value}, {t} poison, <{d.lanes} x i32> <{picks}>")
    if mask is None:
        return value
    whole = memory_type(d)
    return out.assign(f"select <{d.lanes} x i1> {mask}, {whole} {value}, {whole} zeroinitializer")


def _interleaved(known: tuple[int, ...]) -> int:
    """Returns how many rows the lanes take turns to read, each one element after the other; 1 if they read otherwise."""
    for rows in _INTERLEAVED:
        if len(known) >= 2 * rows and len(known) % rows == 0 and \
                all(place == known[lane % rows] + lane // rows for lane, place in enumerate(known)):
            return rows
    return 1


def _load_rows(out: Emitter, info: BufferInfo, index: Lanes, rows: int, d: DType, mask: str | None) -> str:
    """Emits a contiguous load of each row, and the shuffles that put their elements beside each other in turn."""
    part, parts, known = d.with_lanes(d.lanes // rows), [], index.known or ()
    for row in range(rows):
        on = None
        if mask is not None:
            picks = ", ".join(f"i32 {lane}" for lane in range(row, d.lanes, rows))
            on = out.assign(f"shufflevector <{d.lanes} x i1> {mask}, <{d.lanes} x i1> poison, <{part.lanes} x i32> <{picks}>")
        first = Index(index.base.terms, index.base.const + known[row])
        parts.append(_load_contiguous(out, info, Ramp(first, 1, part.lanes), part, on))
    while len(parts) > 1:
        half, t = len(parts) // 2, memory_type(part)
        picks = ", ".join(f"i32 {lane}, i32 {lane + part.lanes}" for lane in range(part.lanes))
        part = part.with_lanes(2 * part.lanes)
        parts = [out.assign(f"shufflevector {t} {a}, {t} {b}, <{part.lanes} x i32> <{picks}>")
                 for a, b in zip(parts[:half], parts[half:])]
    return parts[0]


def _places_on(out: Emitter, mask: str, places: list[int], count: int) -> str:
    """Emits the mask of the first `count` places, each on if `mask` turns on a lane that is of it."""
    lanes = [[lane for lane, of in enumerate(places) if of == place] for place in range(count)]
    wanted, t = "", f"<{len(places)} x i1>"
    for number in range(max(map(len, lanes))):
        picks = ", ".join(f"i32 {of[number] if number < len(of) else len(places)}" for of in lanes)
        some = out.assign(f"shufflevector {t} {mask}, {t} zeroinitializer, <{count} x i32> <{picks}>")
        wanted = out.assign(f"or <{count} x i1> {wanted}, {some}") if wanted else some
    return wanted


def _spread(out: Emitter, mask: str, lanes: int, start: int, step: int) -> str:
    """Emits the mask of `lanes` elements from `start` on, of which every step-th is an element that `mask` is about; the others
    are off.
    """
    picks = ", ".join(f"i32 {lanes if place % step else place // step}" for place in range(start, start + lanes))
    return out.assign(f"shufflevector <{lanes} x i1> {mask}, <{lanes} x i1> zeroinitializer, <{lanes} x i32> <{picks}>")


def reverse(out: Emitter, value: str, element: str, lanes: int) -> str:
    """Emits the vector with its lanes in the opposite order."""
    t = f"<{lanes} x {element}>"
    return out.assign(f"shufflevector {t} {value}, {t} poison, <{lanes} x i32> {_backwards(lanes)}")


def _backwards(lanes: int) -> str:
    return "<" + ", ".join(f"i32 {k}" for k in reversed(range(lanes))) + ">"


def _short(element: str) -> str:
    return {"float": "f32", "double": "f64", "ptr": "p0"}.get(element, element)


def _gather(out: Emitter, info: BufferInfo, index: AnyIndex, d: DType, mask: str | None) -> str:
    lanes, t, element = d.lanes, memory_type(d), memory_type(d.element)
    if not out.target.has_gather or d.bytes < 4:
        return _load_lanes(out, info, index, d, mask)
    pointers = _pointers(out, info, index, element)
    name = f"llvm.masked.gather.v{lanes}{_short(element)}.v{lanes}p0"
    symbol = out.module.declare(name, f"declare {t} @{name}(<{lanes} x ptr>, i32, <{lanes} x i1>, {t})")
    on = mask or "splat (i1 true)"
    return out.load(f"call {t} {symbol}(<{lanes} x ptr> {pointers}, i32 {d.bytes}, <{lanes} x i1> {on}, {t} zeroinitializer)"
                    f"{info.alias}", info)


def _pointers(out: Emitter, info: BufferInfo, index: AnyIndex, element: str) -> str:
    """Emits a vector with the address of each lane."""
    if isinstance(index, Ramp):
        pointer = address(out, info, index.base, element)
        bits = 32 if abs(index.stride) * index.lanes < 2**31 else 64
        offsets = f"<{index.lanes} x i{bits}> {steps(bits, index.stride, index.lanes)}"
        return out.assign(f"getelementptr {element}, ptr {pointer}, {offsets}")
    assert isinstance(index, Lanes)
    pointer = address(out, info, index.base, element)
    return out.assign(f"getelementptr {element}, ptr {pointer}, <{index.lanes} x i{index.bits}> {index.name}")


def _places(out: Emitter, info: BufferInfo, index: AnyIndex, element: str) -> Places:
    assert isinstance(index, (Ramp, Lanes))
    pointer = address(out, info, index.base, element)
    return Places(pointer, index.stride) if isinstance(index, Ramp) else Places(pointer, index.name, index.bits)


def _lane_pointers(out: Emitter, info: BufferInfo, index: AnyIndex, element: str, mask: str | None) -> list[str]:
    """Emits the address of each lane; lanes that are off get a scratch address on the stack."""
    if isinstance(index, Ramp):
        pointers = [address(out, info, Index(index.base.terms, index.base.const + k * index.stride), element)
                    for k in range(index.lanes)]
    else:
        assert isinstance(index, Lanes)
        pointer, t = address(out, info, index.base, element), f"<{index.lanes} x i{index.bits}>"
        offsets = [out.assign(f"extractelement {t} {index.name}, i64 {k}") for k in range(index.lanes)]
        pointers = [out.assign(f"getelementptr {element}, ptr {pointer}, i{index.bits} {o}") for o in offsets]
    if mask is None:
        return pointers
    if not out.spare:
        out.spare = out.alloca("i64", 8, "spare")
        out.entry.append(f"  store i64 0, ptr {out.spare}, align 8")
    bits = [out.assign(f"extractelement <{index.lanes} x i1> {mask}, i64 {k}") for k in range(index.lanes)]
    return [out.assign(f"select i1 {b}, ptr {p}, ptr {out.spare}") for b, p in zip(bits, pointers)]


def _load_lanes(out: Emitter, info: BufferInfo, index: AnyIndex, d: DType, mask: str | None) -> str:
    """Emits one load per lane, without branches; those of very many lanes in a loop."""
    t, element = memory_type(d), memory_type(d.element)
    if are_many(d.lanes, mask, isinstance(index, Ramp) or (isinstance(index, Lanes) and index.known is not None)):
        return load_in_turn(out, _places(out, info, index, element), d, mask)
    alias = info.alias if mask is None else ""
    result = "poison"
    for k, pointer in enumerate(_lane_pointers(out, info, index, element, mask)):
        value = out.assign(f"load {element}, ptr {pointer}, align {d.bytes}{alias}")
        result = out.assign(f"insertelement {t} {result}, {element} {value}, i64 {k}")
    if mask is None:
        return result
    return out.assign(f"select <{d.lanes} x i1> {mask}, {t} {result}, {t} zeroinitializer")


# --- stores -----------------------------------------------------------------------------------------------------------------

def emit_store(out: Emitter, s: Store) -> None:
    d, info = s.value.dtype, buffer_info(out, s.buffer_var)
    mask = _predicate(out, s.predicate, d.lanes)
    if mask is not None and d.lanes == 1:
        _store_guarded(out, info, s, mask)
        return
    index = out.index(s.index)
    value = to_memory(out, out.value(s.value), d)
    if isinstance(index, Index):
        _store_scalar(out, info, index, value, d)
    elif isinstance(index, Ramp) and index.stride == 1 and (count := _known_lanes(out, s, mask)):
        _store_first(out, info, index.base, value, d, count)
    elif isinstance(index, Ramp) and index.stride in (1, -1) and (mask is None or out.target.can_mask(d.element)):
        _store_contiguous(out, info, index, value, d, mask, out.nontemporal.get(s.buffer_var))
    elif out.target.has_gather and d.bytes >= 4:
        _scatter(out, info, index, value, d, mask)
    else:
        _store_lanes(out, info, index, value, d, mask)
    out.stored(info)


def _known_lanes(out: Emitter, s: Store, mask: str | None) -> int:
    """How many first lanes a masked store turns on, to an output which may go past the caches; 0 where that is not known."""
    if mask is None or s.predicate is None or s.buffer_var not in out.streams or mask_for(out, s.value.dtype.lanes) is not None:
        return 0
    on = lanes_on(s.predicate)
    count = None if on is None else as_int(on)
    return count if count is not None and 0 < count < s.value.dtype.lanes else 0


def _store_first(out: Emitter, info: BufferInfo, first: Index, value: str, d: DType, count: int) -> None:
    """Emits stores of the `count` first lanes, in powers of two: a masked store would also wait for the line of the others."""
    element, at = memory_type(d.element), 0
    while at < count:
        step = 1 << (count - at).bit_length() - 1
        picks = ", ".join(f"i32 {lane}" for lane in range(at, at + step))
        part = out.assign(f"shufflevector {memory_type(d)} {value}, {memory_type(d)} poison, <{step} x i32> <{picks}>")
        place = Index(first.terms, first.const + at)
        pointer, align = address(out, info, place, element, True), alignment(info, place, d.bytes)
        out.line(f"store <{step} x {element}> {part}, ptr {pointer}, align {align}{info.alias}")
        at += step


def _store_guarded(out: Emitter, info: BufferInfo, s: Store, mask: str) -> None:
    """Emits a scalar store under a condition; its value is computed under it as well."""
    marks = out.mark()
    then, join = out.fresh("then"), out.fresh("join")
    out.line(f"br i1 {mask}, label %{then}, label %{join}")
    out.open_region()
    out.start_block(then)
    _store_scalar(out, info, out.scalar_index(s.index), to_memory(out, out.value(s.value), s.value.dtype), s.value.dtype)
    out.line(f"br label %{join}")
    out.close_region(marks)
    out.start_block(join)


def _store_scalar(out: Emitter, info: BufferInfo, index: Index, value: str, d: DType) -> None:
    t = memory_type(d)
    pointer = address(out, info, index, t, inside=True)
    out.line(f"store {t} {value}, ptr {pointer}, align {alignment(info, index, d.bytes)}{info.alias}")


def _store_contiguous(out: Emitter, info: BufferInfo, index: Ramp, value: str, d: DType, mask: str | None,
                      past: PastCache | None) -> None:
    """Emits a store of consecutive elements. past: how it bypasses the cache; None if it does not."""
    lanes, t, element = d.lanes, memory_type(d), memory_type(d.element)
    first = index.base
    if index.stride == -1:
        first = Index(first.terms, first.const - lanes + 1)
        value = reverse(out, value, element, lanes)
        mask = reverse(out, mask, "i1", lanes) if mask is not None else None
    pointer, align = address(out, info, first, element, mask is None), alignment(info, first, d.bytes)
    if mask is not None and _is_within(info, first, lanes):
        old = out.assign(f"load {t}, ptr {pointer}, align {align}{info.alias}")
        value, mask = out.assign(f"select <{lanes} x i1> {mask}, {t} {value}, {t} {old}"), None
    if mask is None and past is not None:
        if past.elements is not None:
            _store_elements(out, past, first, pointer, value, d)
            return
        out.stores_nontemporal = True
        node, sure = out.module.nontemporal_node(), min(past.alignment, lanes * d.bytes)
        out.line(f"store {t} {value}, ptr {pointer}, align {sure}{info.alias}, !nontemporal {node}")
    elif mask is None and not info.count and align * 8 < out.target.vector_bits < 8 * lanes * d.bytes:
        _store_in_order(out, info, first, value, d)
    elif mask is None:
        out.line(f"store {t} {value}, ptr {pointer}, align {align}{info.alias}")
    else:
        _store_masked(out, info, first, value, mask, d)


def _store_masked(out: Emitter, info: BufferInfo, first: Index, value: str, mask: str, d: DType) -> None:
    """Emits a store of the lanes that a mask turns on.

    LLVM 22 makes a masked store of integers that were cut to 8 or 16 bits one of four bytes, if it finds that a single lane is
    on: beyond the element. It must not see the cut, so that these pass an empty piece of assembly, as vectors of the machine.
    """
    lanes, element = d.lanes, memory_type(d.element)
    hidden = out.target.architecture == "x86-64" and element in ("i8", "i16")
    width = out.target.vector_bits // (8 * d.bytes) if hidden else lanes
    for at in range(0, lanes, width):
        count, part, on = min(width, lanes - at), value, mask
        if count < lanes:
            picks = ", ".join(f"i32 {lane}" for lane in range(at, at + count))
            part, on = (out.assign(f"shufflevector <{lanes} x {of}> {whole}, <{lanes} x {of}> poison, "
                                   f"<{count} x i32> <{picks}>") for of, whole in ((element, value), ("i1", mask)))
        if hidden:
            part = _through_assembly(out, part, element, count, d.bytes)
        place = Index(first.terms, first.const + at)
        pointer, align = address(out, info, place, element, False), alignment(info, place, d.bytes)
        name, t = f"llvm.masked.store.v{count}{_short(element)}.p0", f"<{count} x {element}>"
        symbol = out.module.declare(name, f"declare void @{name}({t}, ptr, i32, <{count} x i1>)")
        out.line(f"call void {symbol}({t} {part}, ptr {pointer}, i32 {align}, <{count} x i1> {on}){info.alias}")


def _through_assembly(out: Emitter, value: str, element: str, lanes: int, size: int) -> str:
    """Emits a value of which LLVM does not know where it comes from, in a register. size: the bytes of an element."""
    wide = max(16, 1 << (lanes * size - 1).bit_length()) // size
    t = f"<{wide} x {element}>"
    if wide > lanes:
        picks = ", ".join(f"i32 {min(lane, lanes)}" for lane in range(wide))
        narrow = f"<{lanes} x {element}>"
        value = out.assign(f"shufflevector {narrow} {value}, {narrow} poison, <{wide} x i32> <{picks}>")
    value = out.assign(f'call {t} asm "", "=v,0"({t} {value})')
    if wide == lanes:
        return value
    picks = ", ".join(f"i32 {lane}" for lane in range(lanes))
    return out.assign(f"shufflevector {t} {value}, {t} poison, <{lanes} x i32> <{picks}>")


def _store_in_order(out: Emitter, info: BufferInfo, first: Index, value: str, d: DType) -> None:
    """Emits a store of several vectors of the machine one by one: LLVM would have them in any order. Where each lies in two
    lines of memory, a processor joins parts of a line only if they follow each other.
    """
    t, element, width = memory_type(d), memory_type(d.element), out.target.vector_bits // (8 * d.bytes)
    places = [(at, min(width, d.lanes - at)) for at in range(0, d.lanes, width)]
    parts = [out.assign(f"shufflevector {t} {value}, {t} poison, <{count} x i32> <"
                        f"{', '.join(f'i32 {lane}' for lane in range(at, at + count))}>") for at, count in places]
    for part, (at, count) in zip(parts, places):
        place = Index(first.terms, first.const + at)
        pointer, align = address(out, info, place, element, True), alignment(info, place, d.bytes)
        out.line(f"store <{count} x {element}> {part}, ptr {pointer}, align {align}{info.alias}")


def _store_elements(out: Emitter, past: PastCache, first: Index, pointer: str, value: str, d: DType) -> None:
    """Emits a store of those lanes of `value` that are elements of an end of a row."""
    assert past.elements is not None
    apart = ix.add(first, past.start, -1)
    expect(all(c % past.lanes == 0 for c in apart.terms.values()), "rows whose vectors begin at different positions")
    offset = apart.const % past.lanes  # of this part in the vector
    low, high = (out.here(f"sub i64 {bound}, {offset}") if offset else bound for bound in past.elements)
    name = store_of_lanes(out.module, d, past.alignment < out.target.machine.line)
    out.stores_nontemporal = out.stores_nontemporal or past.alignment < out.target.machine.line
    out.line(f"call void {name}(ptr {pointer}, {memory_type(d)} {value}, i64 {low}, i64 {high})")


def _scatter(out: Emitter, info: BufferInfo, index: AnyIndex, value: str, d: DType, mask: str | None) -> None:
    lanes, t, element = d.lanes, memory_type(d), memory_type(d.element)
    name = f"llvm.masked.scatter.v{lanes}{_short(element)}.v{lanes}p0"
    symbol = out.module.declare(name, f"declare void @{name}({t}, <{lanes} x ptr>, i32, <{lanes} x i1>)")
    out.line(f"call void {symbol}({t} {value}, <{lanes} x ptr> {_pointers(out, info, index, element)}, i32 {d.bytes}, "
             f"<{lanes} x i1> {mask or 'splat (i1 true)'}){info.alias}")


def _store_lanes(out: Emitter, info: BufferInfo, index: AnyIndex, value: str, d: DType, mask: str | None) -> None:
    """Emits one store per lane, in ascending order, without branches; those of very many lanes in a loop."""
    t, element = memory_type(d), memory_type(d.element)
    if are_many(d.lanes, mask, isinstance(index, Ramp) or (isinstance(index, Lanes) and index.known is not None)):
        store_in_turn(out, _places(out, info, index, element), value, d, mask)
        return
    alias = info.alias if mask is None else ""
    for k, pointer in enumerate(_lane_pointers(out, info, index, element, mask)):
        lane = out.assign(f"extractelement {t} {value}, i64 {k}")
        out.line(f"store {element} {lane}, ptr {pointer}, align {d.bytes}{alias}")
