"""The first few elements of the order of each row, without sorting it.

    rows along the last dimension    elements that stand before the last of the best so far are collected, and sorted when
                                     there is no room for more
    other rows                       neighbouring rows at a time, one in each lane of vectors: each element is inserted into the
                                     best of its row
"""

from __future__ import annotations

from typing import Any

from tedsl import te, tir
from topi.extents import as_int
from topi.ordering.keys import chosen
from topi.ordering.network import Columns, consecutive, fill, in_its_lane, sort_columns, sorted_lanes, transpose, vectors
from topi.ordering.radix_sort import ZERO, target
from topi.ordering.rows import Place, Rows, native_lanes, neighbours, row_memory, sort_rows
from topi.statements import loops, rows_kind

GROUPS = 64  # of elements, at most, from which the first bound is found
INSERTED = 16  # at most so many are found by insertion
COLLECTED = 2048  # at most so many by collecting


def select_rows(rows: Rows, count: int | None) -> None:
    """Passes the first `count` elements of each row in order to `rows.emit`; None: a number that is not known."""
    extent, last = as_int(rows.extent), rows.along == len(rows.shape) - 1
    if count is not None and last and count <= COLLECTED and (extent is None or extent >= 4 * _room(rows, count)):
        _collect(rows, count)
    elif count is not None and not last and count <= INSERTED and (extent is None or extent >= 4 * count):
        _insert(rows, count)
    else:
        sort_rows(rows)


# --- rows along the last dimension ------------------------------------------------------------------------------------

def _step(rows: Rows) -> int:
    """The number of elements that are looked at together."""
    return min(native_lanes(rows.coding.key_dtype), 64)


def _room(rows: Rows, count: int) -> int:
    """The number of words that are collected: a power of two."""
    return 1 << (max(64, 2 * count, count + 2 * _step(rows)) - 1).bit_length()


def _collect(rows: Rows, count: int) -> None:
    """Collects words that stand before the last of the `count` best so far, and sorts them when there is no room for more."""
    ib, step, room = rows.ib, _step(rows), _room(rows, count)
    native = native_lanes(rows.coding.word)
    with loops(ib, rows.others, rows_kind(rows.shape), "o") as other:
        place = rows.place(other)
        words, ordered = (row_memory(ib, rows.coding, name, room, native) for name in ("words", "ordered"))
        state = ib.allocate("int32", (2,), name="state", scope="local")  # the next element; the number of words
        bound = ib.allocate(rows.coding.key_dtype, (1,), name="bound", scope="local")  # greater keys are left out
        state[0], state[1], bound[0] = ZERO, ZERO, _first_bound(rows, place, count)
        fill(rows.coding, words, ZERO)
        with ib.while_loop(state[0] < rows.extent):
            _scan(rows, place, words, state, bound[0], step)
            sort_columns(words, words.lanes)
            transpose(words, ordered)
            fill(rows.coding, words, te.const(count, "int32"))
            with vectors(ib, te.const(count, "int32"), words.lanes) as t:
                words.put(t, in_its_lane(ordered.word(t), t))
            last = ib.let("last", rows.coding.key_of(ordered.word(count - 1)))
            state[1], bound[0] = count, last - 1
            with ib.if_scope(last == te.min_value(rows.coding.key_dtype)):
                state[0] = rows.extent  # nothing stands before it
        with vectors(ib, rows.last(rows.extent), words.lanes) as t:
            rows.emit(place, t, ordered.word(t))


def _first_bound(rows: Rows, place: Place, count: int) -> Any:
    """A key that at least `count` elements of a row do not stand behind, so that few are collected: that of rank `count` - 1
    among the first keys of groups of elements, whose number is that of lanes. Only what stays in L1 is looked at.
    """
    ib, key = rows.ib, rows.coding.key_dtype
    lanes = max(_step(rows), 1 << (2 * count - 1).bit_length())
    if lanes > GROUPS:
        return te.max_value(key)
    firsts = ib.allocate(f"{key}x{lanes}", (1,), name="firsts", scope="local")
    firsts[0] = tir.Broadcast(te.max_value(key), lanes)
    near = target().machine.l1.size // 2 // rows.source.dtype.bytes
    with ib.for_range(0, te.min(rows.extent, near) // lanes, name="i") as i:
        firsts[0] = te.min(firsts[0], rows.coding.key(rows.source[place(consecutive(i * lanes, lanes))]))
    (ordered,) = sorted_lanes(ib, (firsts[0],), lanes)
    return tir.Shuffle((ordered,), (te.const(count - 1, "int32"),))


def _scan(rows: Rows, place: Place, words: Columns, state: Any, bound: Any, step: int) -> None:
    """Appends the words whose keys are at most `bound`, as long as there is room for `step` of them."""
    ib, room = rows.ib, words.count * words.lanes

    def append(at: Any) -> None:
        end = ib.let("end", state[1])
        words.put(end, in_its_lane(rows.coding.words(rows.source[place(at)], at), end))
        state[1] = end + 1

    whole = ib.let("whole", rows.extent // step * step)
    with ib.while_loop(tir.all(state[0] < whole, state[1] <= room - step)):
        at = ib.let("at", state[0])
        keys = rows.coding.key(rows.source[place(consecutive(at, step))])
        mask = ib.allocate("uint64", (1,), name="mask", scope="local")
        mask[0] = te.lane_mask(keys <= tir.Broadcast(bound, step))
        with ib.while_loop(mask[0] != 0):
            bits = ib.let("bits", mask[0])
            mask[0] = bits & bits - 1
            append(at + ib.let("lane", 63 - te.clz(bits & 0 - bits)))
        state[0] = at + step
    with ib.if_scope(tir.all(state[0] == whole, state[1] <= room - step)), ib.while_loop(state[0] < rows.extent):
        with ib.if_scope(rows.coding.key(rows.source[place(state[0])]) <= bound):
            append(ib.let("at", state[0]))
        state[0] = state[0] + 1


# --- other rows -------------------------------------------------------------------------------------------------------

def _insert(rows: Rows, count: int) -> None:
    """Inserts each element into the `count` best before it, in the rows of all lanes."""
    ib, coding = rows.ib, rows.coding
    native, last = native_lanes(coding.key_dtype), as_int(rows.shape[-1])
    lanes = 4 * native if last is None or last >= 4 * native else native  # fewer visits to each page of memory
    with neighbours(rows, lanes) as elements:
        keys = ib.allocate(coding.key_dtype, (count * lanes,), name="keys")
        places = ib.allocate("int32", (count * lanes,), name="places")
        with ib.for_range(0, count, name="slot") as slot:
            at = consecutive(slot * lanes, lanes)
            keys[at], places[at] = te.max_value(coding.key_dtype), ZERO
        with ib.for_range(0, rows.extent, name="t") as t, elements() as (place, lane):
            new = ib.let("new", coding.key(rows.source[place(t)])), t
            moved, above = new, None  # what comes to a slot from the one before; whether that one changes
            for slot in range(count):
                at = slot * lanes + lane
                old = ib.let("key", keys[at]), ib.let("place", places[at])
                before = ib.let("before", tir.any(t <= slot, new[0] < old[0]))  # nothing stands in the slots from t on
                keys[at], places[at] = chosen(before, new if above is None else chosen(above, moved, new), old)
                moved, above = old, before
        with ib.for_range(0, rows.last(te.const(count, "int32")), name="t") as t, elements() as (place, lane):
            at = t * lanes + lane
            rows.emit(place, t, coding.join(keys[at], places[at]))
