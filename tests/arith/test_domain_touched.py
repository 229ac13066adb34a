"""The region of a buffer that a statement touches, against the elements that it touches."""

import itertools

import pytest
from arith_reference import value

from tedsl import arith, te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.expr import Var
from tedsl.ir.stmt import For, ForKind, seq

I, J, M = Var("i"), Var("j"), Var("m")
A, B = tir.decl_buffer((100, M), name="a"), tir.decl_buffer((100, M), name="b")
touched = arith._ffi_api.DomainTouched


def nest(body, rows=100, columns=M):
    return For(I, 0, rows, ForKind.SERIAL, For(J, 0, columns, ForKind.SERIAL, body))


def ends(region):
    return [(str(rng.min), str(rng.extent)) for rng in region]


def test_loads_and_stores_count_as_asked():
    update = tir.BufferStore(B, tir.BufferLoad(A, [I - 1, J + 1]) + tir.BufferLoad(A, [I - 1, J - 1]), [I, J])
    again = nest(tir.BufferStore(A, tir.BufferLoad(B, [I, J]), [I + 2, J]))
    assert ends(touched(nest(update), A, True, False)) == [("-1", "100"), ("-1", "(m: int32 + 2)")]
    assert touched(nest(update), A, False, True) == []
    assert ends(touched(nest(update), B, False, True)) == [("0", "100"), ("0", "m: int32")]
    assert ends(touched(seq(nest(update), again), A, True, True))[0] == ("-1", "103")


@pytest.mark.parametrize("rows, columns", [(3, 4), (1, 1), (6, 2)])
@pytest.mark.parametrize("index", [lambda i, j: i * 3 - j, lambda i, j: (i * 5 + j) // 4, lambda i, j: (i + j) % 3,
                                   lambda i, j: tir.max(i, j) - 2])
def test_the_region_covers_what_is_touched(index, rows, columns):
    (first, _) = touched(nest(tir.BufferStore(B, tir.const(1.0), [index(I, J), J]), rows, columns), B)
    low, high = value(first.min, {}), value(first.min, {}) + value(first.extent, {})
    met = {value(index(I, J), {I: i, J: j}) for i, j in itertools.product(range(rows), range(columns))}
    assert low <= min(met) and max(met) < high


def test_mistakes():
    with pytest.raises(ArgumentTypeError, match="a statement and a buffer"):
        touched(A, A)
    store = tir.BufferStore(B, tir.const(1.0), [tir.BufferLoad(tir.decl_buffer((4,), "int32", "T"), [I]), J])
    with pytest.raises(ArgumentError, match="has no bounds"):
        touched(nest(store), B)


def test_tensors_in_statements_over_tensors():
    A, B = te.placeholder((100, M), name="A"), te.placeholder((100, M), name="B")
    loads = tir.ProducerLoad(B, [I - 1, J + 1]) + tir.ProducerLoad(A, [I - 1, J - 1])
    update = nest(tir.ProducerStore(A, loads, [I, J]))
    assert ends(arith.DomainTouched(update, A, True, False)) == [("-1", "100"), ("-1", "m: int32")]
    assert ends(arith.DomainTouched(update, A, False, True)) == [("0", "100"), ("0", "m: int32")]
    assert ends(arith.DomainTouched(update, A))[0] == ("-1", "101")
    assert ends(touched(update, B)) == [("-1", "100"), ("1", "m: int32")] and touched(update, B, False, True) == []
    with pytest.raises(ArgumentTypeError, match="takes a statement and a buffer"):
        touched(update, 3)
