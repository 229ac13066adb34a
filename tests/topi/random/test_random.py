"""Random numbers: the published answers of Threefry, and generators against a reference over integers of Python."""

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import DTypeError, ShapeError
from tests.topi.checking import check
from topi import random
from topi.random import hashing

WORD = (1 << 64) - 1
PI = [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89, 0x452821E638D01377, 0xBE5466CF34E90C6C,
      0xC0AC29B7C97C50DD, 0x3F84D5B5B5470917]
# From kat_vectors of Random123, threefry4x64 with 20 rounds: counter, key, result.
KNOWN = [([0] * 4, [0] * 4, [0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B]),
         ([WORD] * 4, [WORD] * 4, [0x29C24097942BBA1B, 0x0371BBFB0F6F4E11, 0x3C231FFA33F83A1C, 0xCD29113FDE32D168]),
         ([*PI[:4]], [PI[4], PI[5], PI[5], PI[6]], [0xA7E8FDE591651BD9, 0xBAAFD0C30138319B, 0x84A5C1A729E685B9,
                                                    0x901D406CCEBC1BA4])]
ROTATIONS = [(14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32)]


def threefry(key, counter):
    keys = [*key, 0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = [c + k & WORD for c, k in zip(counter, keys)]
    for step in range(20):
        for pair, n in enumerate(ROTATIONS[step % 8]):
            a, b = x[2 * pair], x[2 * pair + 1]
            x[2 * pair] = a + b & WORD
            x[2 * pair + 1] = (b << n | b >> 64 - n) & WORD ^ x[2 * pair]
        x[1], x[3] = x[3], x[1]
        if step % 4 == 3:
            s = (step + 1) // 4
            x = [x[j] + keys[(s + j) % 5] + (s if j == 3 else 0) & WORD for j in range(4)]
    return x


@pytest.mark.parametrize("counter, key, words", KNOWN)
def test_known_answers(counter, key, words):
    assert threefry(key, counter) == words
    gen = te.placeholder((4, 2), "uint64", name="gen")

    def write(ib, ins, outs, index):
        given = [ins[0][j, k] for k in (0, 1) for j in range(4)]
        for j, value in enumerate(hashing.threefry(ib, given[:4], given[4:])):
            outs[0][j] = value

    made = te.extern([(4,)], [gen], **topi.threads.launch.independently((1,), write), name="words", dtype="uint64")
    check(made, {gen: np.stack([np.array(part, "uint64") for part in (key, counter)], 1)}, np.array(words, "uint64"))


def generated(state, count):
    """The generator that follows and `count` words."""
    key, path, counter, bit = state[:4], state[4:6], state[6:8], state[8] << 64 | state[9]
    if counter[1] >= WORD - count:
        if bit:
            joined = path[0] << 64 | path[1] | bit
            path, counter, bit = [joined >> 64, joined & WORD], [0, 0], bit >> 1
        else:
            key, path, counter, bit = threefry(key, [WORD, WORD, *counter]), [0, 0], [0, 0], 1 << 127
    words = [value for i in range(-(-count // 4))
             for value in threefry(key, [*path, counter[0], counter[1] + i & WORD])][:count]
    return [*key, *path, 0, counter[1] + count, bit >> 64, bit & WORD], words


KEY = [3, 5, 1 << 63, WORD]
STATES = [[*KEY, 0, 0, 0, 0, 1 << 63, 0], [*KEY, 1 << 62, 0, 0, WORD - 3, 1, 0], [*KEY, 7, WORD, 0, WORD - 1, 0, 0],
          [*KEY, WORD, 2, 0, WORD - 40, 0, 1]]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("shape", [(8,), (3, 5), ()])
def test_words(state, shape):
    gen = te.placeholder((10,), "uint64", name="gen")
    after, words = generated(state, int(np.prod(shape)))
    check(random.threefry_generate(gen, shape), {gen: np.array(state, "uint64")},
          [np.array(after, "uint64"), np.array(words, "uint64").reshape(shape)], schedule=topi.generic.schedule_extern)


def test_words_of_any_count_and_by_threads():
    gen, n = te.placeholder((10,), "uint64", name="gen"), te.size_var("n")
    like, size = te.placeholder((n,), name="like"), np.zeros(6, "float32")
    bits = topi.random.threefry_generate(gen, (n,))[1]
    words, state = np.array(generated(STATES[0], 6)[1], "uint64"), np.array(STATES[0], "uint64")
    for schedule in (topi.x86.schedule_extern, topi.cuda.schedule_extern):
        check(topi.add(bits, topi.cast(like, "uint64")), {gen: state, like: size}, words, schedule=schedule)
        check(random.threefry_generate(gen, (0,))[1], {gen: state}, words[:0], schedule=schedule)


@pytest.mark.parametrize("state", STATES)
def test_two_generators_of_one(state):
    gen = te.placeholder((10,), "uint64", name="gen")
    bit, path = state[8] << 64 | state[9], state[4] << 64 | state[5]
    if bit:
        parts = [[*state[:4], p >> 64, p & WORD, *state[6:8], bit >> 65, bit >> 1 & WORD] for p in (path, path | bit)]
    else:
        parts = [[*threefry(state[:4], state[4:8]), high, 0, 0, 0, 1 << 62, 0] for high in (0, 1 << 63)]
    check(random.threefry_split(gen), {gen: np.array(state, "uint64")}, [np.array(part, "uint64") for part in parts])


@pytest.mark.parametrize("dtype, places", [("float32", 23), ("float64", 52)])
def test_uniform(dtype, places):
    gen, low, high = te.placeholder((10,), "uint64"), te.placeholder((), dtype, "low"), te.placeholder((), dtype, "high")
    after, words = generated(STATES[0], 4000)
    unit = (np.array(words, "uint64") >> np.uint64(64 - places)).astype(dtype) / dtype_of(dtype)(1 << places)
    expected = unit * dtype_of(dtype)(5) + dtype_of(dtype)(5)
    assert expected.min() >= 5 and expected.max() < 10 and abs(expected.mean() - 7.5) < 0.1
    check(random.uniform(gen, low, high, (40, 100), dtype), {gen: np.array(STATES[0], "uint64"), low: np.array(5, dtype),
                                                             high: np.array(10, dtype)},
          [np.array(after, "uint64"), expected.reshape(40, 100)], 1e-6, schedule=topi.generic.schedule_extern)


def dtype_of(name):
    return np.dtype(name).type


def test_sums_of_words_wrap():
    assert random.threefry_test_wrapping("llvm", None)


GEN = te.placeholder((10,), "uint64", name="G")


@pytest.mark.parametrize("made, error, words", [
    (lambda: random.threefry_split(te.placeholder((9,), "uint64", name="A")), ShapeError, r"A has the shape \(9,\) where"),
    (lambda: random.threefry_generate(te.placeholder((10,), name="A"), (4,)), DTypeError, "A holds float32, not uint64"),
    (lambda: random.threefry_generate(GEN, (4, -1)), ShapeError, "extents are 0 or more"),
    (lambda: random.uniform(GEN, te.placeholder(()), te.placeholder(()), (4,), "int32"), DTypeError, "out_dtype is int32"),
    (lambda: random.uniform(GEN, te.placeholder((), "float64", "l"), te.placeholder(()), (4,), "float32"), DTypeError,
     "low holds float64"),
])
def test_what_is_refused(made, error, words):
    with pytest.raises(error, match=words):
        made()
