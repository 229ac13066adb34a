"""transform_layout: elements stand elsewhere in memory, and loops follow the memory."""

import itertools
import random
from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.ir.evaluate import evaluate, run
from tests.lower.end_to_end import check_both, check_calls, loops
from tests.lower.programs import meaning, whole_numbers


def two_stages(*shape):
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A(*i) + 1.0, name="B")
    C = te.compute(shape, lambda *i: B(*i) * 2.0, name="C")
    return A, B, C, te.create_schedule(C.op)


def test_blocks_of_channels():
    A, B, C, s = two_stages(2, 8)
    made = s[B].transform_layout(lambda n, c: [c // 4, n, c % 4])
    assert [axis.name for axis in made] == ["axis0", "i0", "axis2"]
    assert s[B].leaf_iter_vars == made and [int(axis.dom.extent) for axis in made] == [2, 2, 4]
    assert loops(s, [A, C]) == dedent("""\
        realize(B: Buffer(B_1: Pointer(float32), float32, [2, 2, 4], []), [0:2, 0:2, 0:4], True) {
          for (axis0: int32, 0, 2) {
            for (i0: int32, 0, 2) {
              for (axis2: int32, 0, 4) {
                B[axis0, i0, axis2] = (A[i0, (axis2 + (axis0*4))] + 1f32)
              }
            }
          }
          for (i0_1: int32, 0, 2) {
            for (i1: int32, 0, 8) {
              C[i0_1, i1] = (B[floordiv(i1, 4), i0_1, floormod(i1, 4)]*2f32)
            }
          }
        }
        """)
    check_both(s, [A, C], {A: whole_numbers((2, 8))})


def test_gaps_hold_zeros():
    A, B, C, s = two_stages(3, 10)
    s[B].transform_layout(lambda n, c: [n, c // 4, c % 4])
    assert "realize(B: Buffer(B_1: Pointer(float32), float32, [3, 3, 4], [])" in loops(s, [A, C])
    assert "if_then_else(((axis2 + (axis1*4)) < 10)" in loops(s, [A, C], passes=True)
    check_both(s, [A, C], {A: whole_numbers((3, 10))})


MAPS = {
    "transposed": lambda i, j, k: [k, j, i],
    "joined": lambda i, j, k: [i * 35 + j * 7 + k],
    "joined in pairs": lambda i, j, k: [k, i * 5 + j],
    "split": lambda i, j, k: [i, j // 2, k // 3, j % 2, k % 3],
    "split twice": lambda i, j, k: [i, k // 4, j, k % 4 // 2, k % 2],
    "split thrice": lambda i, j, k: [k // 6, i, k // 2 % 3, j, k % 2],
    "a dimension of one": lambda i, j, k: [i, 0, j, k],
    "rows of parts": lambda i, j, k: [i * 4 + k // 2, j, k % 2],
    "separated": lambda i, j, k: [i, te.AXIS_SEPARATOR, j, k],
    "any number": lambda *indices: list(reversed(indices)),
}


@pytest.mark.parametrize("name", MAPS)
def test_maps_of_a_stage(name):
    A, B, C, s = two_stages(4, 5, 7)
    s[B].transform_layout(MAPS[name])
    check_both(s, [A, C], {A: whole_numbers((4, 5, 7))})
    again = te.create_schedule(C.op)
    again.replay(s.journal)
    assert str(again) == str(s) and loops(again, [A, C]) == loops(s, [A, C])


def in_layout(array, fn, shape):
    """`array` as a buffer of `shape` holds it, zeros in the gaps; and which elements are none."""
    made = np.zeros(shape, array.dtype)
    for at in itertools.product(*map(range, array.shape)):
        made[tuple(e if isinstance(e, int) else int(e) for e in fn(*at) if e is not te.AXIS_SEPARATOR)] = array[at]
    return made


@pytest.mark.parametrize("name", MAPS)
def test_arguments_take_their_new_shapes(name):
    A, B, C, s = two_stages(4, 5, 7)
    assert s[A].transform_layout(MAPS[name]) is None
    s[C].transform_layout(MAPS[name])
    func = tedsl.lower(s, [A, C])["main"]
    shapes = [[int(dim) for dim in buffer.shape] for buffer in func.buffers]
    assert shapes[0] == shapes[1]
    data = whole_numbers((4, 5, 7))
    expected = in_layout(meaning([C], {A: data})[C], MAPS[name], shapes[1])
    for call in (lambda *given: run(func, list(given)), tedsl.build(s, [A, C])):
        result = np.full(shapes[1], 77, "float32")
        call(in_layout(data, MAPS[name], shapes[0]), result)
        np.testing.assert_array_equal(result, expected)


def test_a_reduction_and_its_padding():
    A = te.placeholder((6, 9), name="A")
    k = te.reduce_axis((0, 9), "k")
    B = te.compute((6,), lambda i: te.max(A[i, k], axis=k), name="B")
    C = te.compute((6,), lambda i: B[5 - i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[B].transform_layout(lambda i: [i // 4, i % 4])
    s[B].vectorize(inner)
    ko, _ = s[B].split(k, 4)
    s[B].reorder(outer, ko, inner)
    check_both(s, [A, C], {A: whole_numbers((6, 9))})


def test_both_outputs_of_a_stage():
    A = te.placeholder((6, 4), name="A")
    B, C = te.compute((6, 4), lambda i, j: (A[i, j] + 1.0, A[i, j] * 3.0), name="P")
    D = te.compute((6, 4), lambda i, j: B[i, j] - C[5 - i, j], name="D")
    s = te.create_schedule(D.op)
    s[B].transform_layout(lambda i, j: [j, i // 4, i % 4])
    check_both(s, [A, D], {A: whole_numbers((6, 4))})


def test_names_after_the_star_are_the_last_indices():
    texts = []
    for fn in (lambda i, *r, j: [j, i, *r], lambda i, *, k, j: [j, i, k], lambda i, k, j: [j, i, k]):
        A, B, C, s = two_stages(3, 4, 5)
        s[B].transform_layout(fn)
        texts.append(loops(s, [A, C]))
    assert texts[0] == texts[1] == texts[2] and "[5, 3, 4]" in texts[0]


def test_twice():
    A, B, C, s = two_stages(3, 10)
    s[B].transform_layout(lambda i, j: [i * 10 + j])
    s[B].transform_layout(lambda i: [i // 8, i % 8])
    assert "realize(B: Buffer(B_1: Pointer(float32), float32, [4, 8], [])" in loops(s, [A, C])
    check_both(s, [A, C], {A: whole_numbers((3, 10))})


def test_a_packed_matmul():
    n = 12
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    packed = s.cache_read(B, "global", [C])
    s[packed].transform_layout(lambda k, j: [j // 4, k, j % 4])
    yo, xo, yi, xi = s[C].tile(*C.op.axis, 4, 4)
    s[C].reorder(yo, xo, k, yi, xi)
    s[C].vectorize(xi)
    s[packed].compute_at(s[C], xo)
    check_both(s, [A, B, C], {A: whole_numbers((n, n)), B: whole_numbers((n, n), seed=1)})


@pytest.mark.parametrize("fn", [lambda i, j: [j, i], lambda i, j: [i, j // 4, j % 4]], ids=["transposed", "split"])
def test_symbolic_shapes(fn):
    n, m = te.var("n"), te.var("m")
    A, B, C, s = two_stages(n, m)
    s[B].transform_layout(fn)
    calls = [({A: whole_numbers((p, q))}, {n: p, m: q}) for p, q in ((0, 3), (1, 1), (3, 8), (5, 10))]
    check_calls(s, [A, C], calls)


def test_rows_of_a_symbolic_length():
    n, m = te.var("n"), te.var("m")
    A, B, C, s = two_stages(n, m)
    s[B].transform_layout(lambda i, j: [i * m + j])
    calls = [({A: whole_numbers((p, q))}, {n: p, m: q}) for p, q in ((0, 3), (1, 1), (3, 8), (5, 10))]
    check_calls(s, [A, C], calls)


def test_a_symbolic_argument():
    n = te.var("n")
    A = te.placeholder((n, 8), name="A")
    B = te.compute((n, 8), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[A].transform_layout(lambda i, j: [j, i])
    kernel = tedsl.build(s, [A, B])
    for size in (1, 5):
        data, result = whole_numbers((8, size)), np.zeros((size, 8), "float32")
        kernel(data, result)
        np.testing.assert_array_equal(result, data.T + 1)


def random_map(rng, rank):
    """A random permutation of parts of axes, some of them joined where that is possible."""
    factors = [rng.choice([None, 2, 3, 4]) for _ in range(rank)]

    def fn(*axes):
        parts = []
        for axis, factor in zip(axes, factors):
            parts += [axis] if factor is None else [axis // factor, axis % factor]
        order = list(range(len(parts)))
        random.Random(sum(f or 7 for f in factors)).shuffle(order)
        return [parts[k] for k in order]

    return fn


@pytest.mark.parametrize("seed", range(25))
def test_random_maps(seed):
    rng = random.Random(seed)
    shape = tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 3)))
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A(*i) + 1.0, name="B")
    C = te.compute(shape, lambda *i: B(*[n - 1 - x for n, x in zip(shape, i)]) * 2.0, name="C")
    s = te.create_schedule(C.op)
    fn = random_map(rng, len(shape))
    made = s[B].transform_layout(fn)
    if rng.random() < 0.5:
        s[B].compute_at(s[C], rng.choice(C.op.axis))
    if rng.random() < 0.5:
        s[B].split(rng.choice(made), rng.randint(1, 4))
    check_both(s, [A, C], {A: whole_numbers(shape)})


def test_the_way_back_is_the_way_back():
    from tedsl.ir.expr import Var
    from tedsl.schedule.index_map import layout_of

    i, j = Var("i"), Var("j")
    for n, m, f, g in itertools.product((1, 2, 5, 8), (1, 3, 6), (1, 2, 3), (2, 4)):
        layout = layout_of([i, j], [tedsl.tir.const(n), tedsl.tir.const(m)], [j % g, i // f, (i % f) * -(-m // g) + j // g])
        extents = [int(evaluate(e, {})) for e in layout.extents]
        seen = set()
        for a, b in itertools.product(range(n), range(m)):
            place = tuple(int(evaluate(e, {i: a, j: b})) for e in layout.finals)
            assert all(0 <= p < e for p, e in zip(place, extents))
            known = dict(zip(layout.places, place))
            assert [int(evaluate(e, known)) for e in layout.inverse] == [a, b]
            assert all(evaluate(c, known) for c in layout.conditions)
            seen.add(place)
        elements = sum(all(evaluate(c, dict(zip(layout.places, p))) for c in layout.conditions)
                       for p in itertools.product(*map(range, extents)))
        assert len(seen) == n * m == elements


def test_places_that_are_read_from_a_tensor_go_to_the_nearest_element():
    A, index = te.placeholder((6, 5), name="A"), te.placeholder((9,), "int32", name="I")
    B = te.compute((6, 5), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((9, 5), lambda i, j: B[index[i], j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].transform_layout(lambda i, j: [i % 4, i // 4, j])
    given = {A: whole_numbers((6, 5)), index: np.array([0, 5, 6, 11, -1, -7, 3, 100, 2], "int32")}
    kernel, func = tedsl.build(s, [A, index, C]), tedsl.lower(s, [A, index, C])["main"]
    expected = 2 * (given[A] + 1)[np.clip(given[index], 0, 5)]
    for call in (kernel, lambda *arrays: run(func, list(arrays))):
        call(given[A], given[index], result := np.zeros((9, 5), "float32"))
        np.testing.assert_array_equal(result, expected)


def test_a_padded_reader():
    A = te.placeholder((7,), name="A")
    B = te.compute((7,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((9,), lambda i: te.if_then_else(te.all(i >= 1, i < 8), B[i - 1], 0.0), name="C")
    s = te.create_schedule(C.op)
    s[B].transform_layout(lambda i: [i // 2, i % 2])
    check_both(s, [A, C], {A: whole_numbers((7,))})
