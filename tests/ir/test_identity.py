"""What values say as digests: equal for what agrees in everything, and for nothing else."""

import math
import struct
from dataclasses import dataclass

import numpy as np
import pytest

from tedsl import te, tir
from tedsl.ir.expr import Add, FloatImm, IntImm, StringImm, Var
from tedsl.ir.func import Accesses
from tedsl.ir.iters import IterType
from tedsl.ir.node import FrozenDict
from tedsl.ir.source_line import SourceLine
from tedsl.ir.walk.identity import identity
from tedsl.schedule.memory_options import Alignment, Storage


def numbers():
    nan = struct.unpack("<d", b"\1\0\0\0\0\0\xf8\x7f")[0]
    return [0, 1, -1, True, False, None, 0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, -math.nan, nan, 1 << 70,
            "", "-", "1", "'", "[", "#0", ":int32", "f" + "0" * 16]


def containers():
    return [(), [], {}, frozenset(), ((),), ([],), [1, [2]], [[1], 2], [1, 2], (1, 2), (1, (2,)), {"a": 1}, {"a": "1"},
            {"b": 1}, {"a": 1, "b": 2}, ("a", 1), FrozenDict({"a": (1,)}), frozenset("ab"), ["a", "b"], [["a", "b"]]]


def programs():
    x, y, size = Var("x"), Var("x"), tir.SizeVar("x", "int32")
    wide = Var("x", "int64")
    return [x + x, x + y, x + 1, x + 2, x - 1, x * 1.0, size + size, wide + wide, x, (x, x), (x, y), [x, y],
            IntImm("int32", 1), IntImm("int64", 1), IntImm("bool", 1), FloatImm("float32", 1.0), FloatImm("float64", 1.0),
            FloatImm("float32", -0.0), FloatImm("float32", 0.0), StringImm("1"), SourceLine("a.py", 1), SourceLine("a.py", 2),
            Storage(), Storage(double_buffer=True), Storage((Alignment(0, 8, 1),)), Alignment(0, 8, 1), Accesses.PROVED,
            Accesses.DATA_TRUSTED, IterType.DATA_PAR, IterType.ORDERED, tir.const(1, "int8")]


def test_different_values_have_different_digests():
    """0 and False, 1 and 1.0, texts that look like words of other values, two variables of one name and one variable twice."""
    values = [*numbers(), *containers(), *programs()]
    seen = {}
    for value in values:
        key = identity(value)
        assert key is not None
        assert seen.setdefault(key, value) is value


def test_the_same_value_made_again_has_the_same_digest():
    for make in (numbers, containers, programs):
        assert list(map(identity, make())) == list(map(identity, make()))
    assert identity(frozenset(("ab", "cd", "ef"))) == identity(frozenset(("ef", "ab", "cd")))


@dataclass(frozen=True)
class OfAnother:
    """A record of another package may hold more than its fields say."""

    x: int = 1


@pytest.mark.parametrize("value", [len, lambda: 1, np.zeros(3), np.float32(1), OfAnother(), object(), frozenset((1, 2)),
                                   b"bytes", 1j, type])
def test_what_no_other_process_could_compare_has_none(value):
    assert identity(value) is None
    assert identity({"a": [1, (value,)]}) is None


def test_programs_are_taken_apart_however_deep_they_are():
    def deep(last):
        e = Var("x")
        for _ in range(20_000):
            e = Add(e, IntImm("int32", 1))
        return Add(e, IntImm("int32", last))

    assert identity(deep(1)) == identity(deep(1)) != identity(deep(2))


def test_what_is_shared_is_written_once():
    e = Var("x")
    for _ in range(300):
        e = Add(e, e)  # 2**300 nodes as a tree
    assert identity(e) is not None


def test_a_tensor_is_the_output_of_its_operation():
    def program(value, second):
        A = te.placeholder((4,), name="A")
        B, C = te.compute((4,), lambda i: (A[i] + value, A[i] * 2.0), name="B")
        return [A, C if second else B]

    assert identity(program(1.0, False)) == identity(program(1.0, False))
    assert len({identity(program(value, second)) for value in (1.0, 2.0) for second in (False, True)}) == 4
