"""The indices that are proved for flat accesses: those of the formula, or none."""

import pytest

import tedsl
from tedsl import te
from tedsl.arith.places import places_of
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.expr import Add, Broadcast, Load, Ramp, Var, pointer_var
from tedsl.ir.stmt import Allocate, Evaluate, IfThenElse, Store, seq
from tests.ir.programs import F32, function, loop

M = decl_buffer((8, 100), "float32", "M")
i, j = Var("i"), Var("j")


def load(index, buffer=M):
    return Load(buffer.dtype.with_lanes(index.dtype.lanes), buffer.data, index)


def indices(node, body, *buffers):
    found = places_of(function(body, *(buffers or (M,)))).get(node)
    return None if found is None else ", ".join(map(repr, found))


def of_element(index, columns=100, buffer=M):
    """The indices of a load at `index` inside loops over i and j."""
    node = load(index, buffer)
    return indices(node, loop(i, 8, loop(j, columns, Evaluate(node))), buffer)


@pytest.mark.parametrize("index, columns, shown", [
    (i * 100 + j, 100, "i, j"), (i * 100 + j, 101, None), (i * 100 + j - 1, 100, None), (i * 100 + j + 1, 99, "i, (j + 1)"),
    (i * 100 + 99 - j, 100, "i, (99 - j)"), (i * 100 + 700, 100, "(i + 7), 0"), (i * 200 + 150, 1, "((i*2) + 1), 50"),
    (j, 100, "0, j"), (build.const(250), 1, "2, 50"), (i * 101, 1, None), (i + j * 8, 12, "0, (i + (j*8))"),
    (i + j * 8, 13, None),
    (i * 100 + build.floordiv(j, 2), 100, "i, floordiv(j, 2)"), (i * 100 - 100 + j, 100, "(i - 1), j"),
])
def test_one_index_as_two(index, columns, shown):
    assert of_element(index, columns) == shown


def test_conditions_around_an_access_count():
    node = load(i * 100 + j)
    assert indices(node, loop(i, 8, loop(j, 112, Evaluate(node)))) is None
    assert indices(node, loop(i, 8, loop(j, 112, IfThenElse(build.likely(build.less(j, 100)), Evaluate(node))))) == "i, j"
    choice = build.if_then_else(build.greater(j, 0), load(i * 100 + j - 1), build.const(0.0))
    assert indices(choice.args[1], loop(i, 8, loop(j, 100, Evaluate(choice)))) == "i, (j - 1)"


def test_an_access_at_two_places_has_indices_only_if_both_prove_the_same():
    node = load(i * 100 + j)
    copy = Store(pointer_var("P", F32), node, i)
    guarded = IfThenElse(build.less(j, 100), copy)
    assert indices(node, loop(i, 8, loop(j, 112, seq(guarded, copy)))) is None
    assert indices(node, loop(i, 8, loop(j, 112, seq(guarded, guarded)))) == "i, j"


def test_vectors_are_slices_along_one_dimension():
    lanes = lambda base, stride=1: Ramp(base, build.const(stride), 16)
    assert of_element(lanes(i * 100 + j), 85) == "i, ramp(j, 1, 16)"
    assert of_element(lanes(i * 100 + j), 86) is None
    assert of_element(lanes(i * 100 + j, 2), 70) == "i, ramp(j, 2, 16)"
    assert of_element(lanes(j, 100)) == "ramp(0, 1, 16), j"
    assert of_element(lanes(j, 101), 80) is None
    assert of_element(Add(Broadcast(j, 16), lanes(i))) is None


def test_a_mask_keeps_the_lanes_within_the_row():
    index = Ramp(i * 100 + j * 16, build.const(1), 16)
    inside = build.less(Ramp(j * 16, build.const(1), 16), Broadcast(build.const(100), 16))
    masked = Load("float32x16", M.data, index, inside)
    assert indices(masked, loop(i, 8, loop(j, 7, Evaluate(masked)))) == "i, ramp((j*16), 1, 16)"
    assert of_element(index, 7) is None


def test_shapes_and_strides_of_a_call():
    n, m = Var("n"), Var("m")
    compact = decl_buffer((n, m), "float32", "M")
    node = load(i * m + j, compact)
    assert indices(node, loop(i, n, loop(j, m, Evaluate(node))), compact) == "i, j"
    assert indices(node, loop(i, n, loop(j, m + 1, Evaluate(node))), compact) is None
    strided = decl_buffer((n, m), "float32", "M", strides=[Var("s"), Var("t")])
    node = load((i + 1) * strided.strides[0] + j * strided.strides[1], strided)
    assert indices(node, Evaluate(node), strided) == "(i + 1), j"
    node = load(i * strided.strides[0] + j, strided)
    assert indices(node, Evaluate(node), strided) is None
    padded = decl_buffer((8, 100), "float32", "M", strides=[128, 1], elem_offset=5)
    node = load(i * 128 + j + 5, padded)
    assert indices(node, loop(i, 8, loop(j, 100, Evaluate(node))), padded) == "i, j"
    assert indices(node, loop(i, 8, loop(j, 120, Evaluate(node))), padded) is None


def test_memory_of_another_size_than_noted_is_flat():
    T = pointer_var("T", F32)
    store = Store(T, build.const(0.0), i * 100 + j)
    body = loop(i, 8, loop(j, 100, store))
    noted = Allocate(T, F32, (build.const(800),), build.true(), body, {"logical_shape": (build.const(8), build.const(100))})
    assert indices(store, noted) == "i, j"
    assert indices(store, noted.replace(extents=(build.const(1600),))) == "((i*100) + j)"


def test_buffers_that_share_memory_are_flat():
    A = te.placeholder((64, 64), name="A")
    x = A
    for k in range(4):
        x = te.compute((64, 64), lambda a, b, x=x: x[b, a] + 1.0, name=f"B{k}")
    loops = tedsl.lower(te.create_schedule(x.op), [A, x]).readable()
    assert loops.count("allocate(") == 2
    assert "B0[a*64 + b] = A[b, a] + 1.0" in loops and "B3[a, b] = B0[b*64 + a] + 1.0" in loops


def test_the_formula_is_read_off_the_loops():
    A = te.placeholder((30, 50, 70), name="A")
    B = te.compute((30, 50, 70), lambda a, b, c: A[a, b, c] * 2.0, name="B")
    C = te.compute((30, 46, 70), lambda a, b, c: sum(B[a, b + d, 69 - c] for d in range(5)), name="C")
    s = te.create_schedule(C.op)
    _, yo, _, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 8)
    s[B].compute_at(s[C], yo)
    s[C].vectorize(s[C].split(C.op.axis[2], 16)[1])
    loops = tedsl.lower(s, [A, C], simple_mode=True).readable()
    assert "A[a.outer*8 + a, b.outer*8 + b, c]" in loops and ".data" not in loops
