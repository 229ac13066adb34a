"""Random numbers from generators that are values: ten words of uint64, which operators take and give.

    words 0 to 3: the key    4, 5: the path, a bit for each split    6, 7: the counter    8, 9: one bit, where the path goes on

A generator is used once; `threefry_split` makes two of one (Claessen and Palka, Splittable pseudorandom number generators using
cryptographic hashing, 2013). The words are hashed by Threefry (`hashing.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tedsl
from tedsl import te
from tedsl.errors import DTypeError, ShapeError, entries
from topi.arguments import checked
from topi.extents import as_int, constant, indices_at, opening, product, require_shape, shown
from topi.random.hashing import key_and_counter, later_bit, threefry, word
from topi.threads.launch import independently

__all__ = ["threefry_generate", "threefry_split", "uniform"]

_FRACTIONS = {"float32": 23, "float64": 52}  # explicit bits of the fraction


@checked
def threefry_generate(gen: te.Tensor, out_shape: Sequence[Any]) -> list[te.Tensor]:
    """A new generator, and random words, uint64 of `out_shape`.

    gen: uint64 (10,), see above. Elements 4 * i to 4 * i + 3 in row-major order are the hash of path and counter with the
    counter increased by i; the counter of the new generator is increased by the number of elements. Where it has no room for
    them, a bit 1 is first appended to the path; where the path has no room, the hash becomes the key.

    Raises ShapeError for an extent below 0.
    """
    where = _opened("threefry_generate", gen)
    shape = tuple(out_shape)
    if any(extent is not None and extent < 0 for extent in map(as_int, shape)):
        raise ShapeError(f"{where}: out_shape is {shown(shape)}", hint="extents are 0 or more")
    count = product(shape)
    number = as_int(count)
    amount = word(number) if number is not None else count.astype("uint64")

    def advance(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        (state,), (after,) = ins, outs
        with ib.if_scope(state[7] < word((1 << 64) - 1) - amount):
            _store(after, [state[j] for j in range(10)])
        with ib.else_scope():
            with ib.if_scope((state[8] | state[9]) == word(0)):
                full = word((1 << 64) - 1)
                key = threefry(ib, key_and_counter(state)[0], [full, full, *[state[j] for j in (6, 7)]])
                _store(after, [*key, *map(word, (0, 0, 0, 0, 1 << 63, 0))])
            with ib.else_scope():
                longer = [state[4] | state[8], state[5] | state[9]]
                _store(after, [*[state[j] for j in range(4)], *longer, word(0), word(0), *later_bit(state[8], state[9])])

    state = te.extern([(10,)], [gen], **independently((1,), advance), name="threefry_state", dtype="uint64")

    def fill(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        key, counter = key_and_counter(ins[0])
        found = threefry(ib, key, [*counter[:3], counter[3] + index[0].astype("uint64")])
        for j, value in enumerate(found):
            at = ib.let("at", index[0] * 4 + j)
            if number is not None and number % 4 == 0:
                outs[0][tuple(indices_at(at, shape))] = value
            else:
                with ib.if_scope(at < count):
                    outs[0][tuple(indices_at(at, shape))] = value

    bits = te.extern([shape], [state], **independently(((count + 3) // 4,), fill, (4,)), name="threefry_generate",
                     dtype="uint64", tag="threefry_generate")
    after = te.compute((10,), lambda i: te.select(i == 6, word(0), state(i) + te.select(i == 7, amount, word(0))),
                       name="threefry_after")
    return [after, bits]


@checked
def threefry_split(gen: te.Tensor) -> list[te.Tensor]:
    """Two generators for one: its path with a bit 0, and with a bit 1. Where it has no room, the hash becomes the key."""
    _opened("threefry_split", gen)

    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        (state,), (left, right) = ins, outs
        with ib.if_scope((state[8] | state[9]) == word(0)):
            key = threefry(ib, *key_and_counter(state))
            for out, path in ((left, 0), (right, 1 << 63)):
                _store(out, [*key, *map(word, (path, 0, 0, 0, 1 << 62, 0))])
        with ib.else_scope():
            words = [ib.let("word", state[j]) for j in range(10)]
            after = later_bit(words[8], words[9])
            _store(left, [*words[:8], *after])
            _store(right, [*words[:4], words[4] | words[8], words[5] | words[9], *words[6:8], *after])

    made: list[te.Tensor] = te.extern([(10,), (10,)], [gen], **independently((1,), write), name="threefry_split",
                                      dtype=["uint64", "uint64"], tag="threefry_split")
    return made


@checked
def uniform(gen: te.Tensor, low: te.Tensor, high: te.Tensor, out_shape: Sequence[Any], out_dtype: Any) -> list[te.Tensor]:
    """A new generator, and numbers of equal probability from `low` on and below `high`, of `out_shape`.

    low, high: () of out_dtype, float32 or float64. The highest 23 (52) bits of a random word are the fraction of the way.
    """
    where = _opened("uniform", gen)
    dtype = str(out_dtype)
    if dtype not in _FRACTIONS:
        raise DTypeError(f"{where}: out_dtype is {out_dtype}", hint="choose 'float32' or 'float64'")
    for name, border in (("low", low), ("high", high)):
        require_shape(border, [], where, f"{name} is a scalar: te.placeholder((), {dtype!r})")
        if border.dtype != dtype:
            raise DTypeError(f"{where}: {name} holds {border.dtype}, out_dtype is {dtype}", hint="use one dtype for both")
    after, bits = threefry_generate(gen, out_shape)
    places = _FRACTIONS[dtype]
    unit = constant(2.0**-places, dtype, where, "a unit")

    def element(*i: Any) -> Any:
        fraction = (bits(*i) >> word(64 - places)).astype(dtype) * unit
        return fraction * (high() - low()) + low()

    return [after, te.compute(tuple(out_shape), element, name="T_uniform", tag="elemwise", info=te.ElementwiseOp("uniform"))]


def threefry_test_wrapping(target: Any, device: Any) -> bool:
    """Whether sums of uint64 wrap around on a target, as Threefry needs; they do on all. device: accepted."""
    least = te.placeholder((1,), "uint64", name="least")
    total = te.compute((1,), lambda i: least(i) + word((1 << 64) - 1), name="total")
    result = np.ones(1, "uint64")
    tedsl.build(te.create_schedule(total.op), [least, total], target)(np.ones(1, "uint64"), result)
    return bool(result[0] == 0)


def _opened(operator: str, gen: te.Tensor) -> str:
    """The beginning of messages; refuses what is not a generator."""
    where = opening(operator, gen)
    require_shape(gen, [10], where, "a generator is te.placeholder((10,), 'uint64')")
    if gen.dtype != "uint64":
        raise DTypeError(f"{where}: {gen.name} holds {gen.dtype}, not uint64",
                         hint="a generator is te.placeholder((10,), 'uint64')")
    return where


def _store(memory: Any, words: Sequence[Any]) -> None:
    for place, value in enumerate(words):
        memory[place] = value


entries(globals())
