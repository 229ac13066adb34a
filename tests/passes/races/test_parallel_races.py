"""Parallel loops that a person wrote: iterations that are shown to race are refused, others are left alone."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes

N = 200


def program(body, size=N):
    """B of A by `body(builder, a, b)`."""

    def statements(ins, outs):
        ib = tir.ir_builder.create()
        body(ib, ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]))
        return ib.get()

    A = te.placeholder((size,), "int32", name="A")
    B = te.extern((size,), [A], statements, name="B", dtype="int32")
    return te.create_schedule(B.op), [A, B]


def parallel(update, count=N):
    def body(ib, a, b):
        with ib.for_range(0, count, "i", kind="parallel") as i:
            update(ib, a, b, i)

    return body


def stored(ib, b, index, value):
    b[index] = value


def row(ib, a, b, i):
    with ib.for_range(0, 20, "j") as j:
        b[i * 20 + j] = a[i * 20 + 19 - j]


def all_of_it(ib, a, b, i):
    with ib.for_range(0, N, "j") as j:
        b[i] = b[j] + 1


def sometimes(ib, a, b, i):
    with ib.if_scope(i % 2 == 0):
        b[i] = b[i + 1]


def by_parts(ib, a, b, i):
    with ib.if_scope(i < 100):
        b[i] = a[i]
    with ib.else_scope():
        b[i] = b[i] + a[i]


def scratch(ib, a, b, i):
    own = ib.allocate("int32", (1,), name="own")
    own[0] = a[i]
    b[i] = own[0]


def unless_first(ib, a, b, i):
    with ib.if_scope(tir.any(i >= 0, b[i + 1] > 0)):
        b[i] = a[i]


@pytest.mark.parametrize("body, words", [
    (parallel(unless_first, N - 1), None),  # the second condition is never asked
    (parallel(lambda ib, a, b, i: stored(ib, b, (i * 7) % 10, i)), r"i = 0 writes B\[.*which is B\[0\], and i = 10 writes it"),
    (parallel(lambda ib, a, b, i: stored(ib, b, i, b[i + 1]), N - 1), r"i = 1 writes B\[.*which is B\[1\], and i = 0 reads it"),
    (parallel(all_of_it), r"race: i = \d+ writes"), (parallel(sometimes, N - 1), None),
    (parallel(row, 10), None), (parallel(by_parts), None), (parallel(scratch), None),
    (parallel(lambda ib, a, b, i: stored(ib, b, 0, 1)), None),  # the same by all of them
    (parallel(lambda ib, a, b, i: stored(ib, b, i, b[N - 1]), N - 1), None),  # written by none
    (parallel(lambda ib, a, b, i: stored(ib, b, tir.min(tir.max(a[i], 0), N - 1), i)), None),  # data decides
])
def test_iterations_that_race_are_refused(body, words):
    """They were compiled: some runs gave other results than the loops say."""
    s, args = program(body)
    if words is None:
        tedsl.lower(s, args)
        tedsl.build(s, args)
        return
    for step in (tedsl.lower, tedsl.build):
        with pytest.raises(LoweringError, match=words):
            step(s, args)


def test_elements_of_hybrid_scripts():
    @te.hybrid.script
    def shifted(a):
        b = output_tensor(a.shape, a.dtype)  # noqa: F821
        for i in parallel(a.shape[0]):
            b[i] = a[i]
        for i in parallel(a.shape[0] - 1):
            b[i] = b[i + 1]
        return b

    A = te.placeholder((9,), "int32", name="A")
    B = shifted(A)
    with pytest.raises(LoweringError, match="the parallel loop i race"):
        tedsl.build(te.create_schedule(B.op), [A, B])


def test_loops_of_a_schedule_are_not_looked_at():
    A = te.placeholder((8, 8), "int32", name="A")
    B = te.compute((8, 8), lambda i, j: A[j, i], name="B")
    s = te.create_schedule(B.op)
    s[B].parallel(B.op.axis[0])
    a, b = np.arange(64, dtype="int32").reshape(8, 8), np.zeros((8, 8), "int32")
    tedsl.build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b, a.T)


def test_an_element_that_the_text_names_already_is_named_once():
    s, args = program(parallel(lambda ib, a, b, i: stored(ib, b, 0, b[0] + 1)))
    with pytest.raises(LoweringError, match=r"race: i = 0 writes B\[0\], and i = 1 (reads|writes) it") as error:
        tedsl.lower(s, args)
    assert "which is" not in str(error.value)


# --- bodies of intrinsics -----------------------------------------------------------------------------------------------

def tensorized(body):
    """C = 2 A by an intrinsic for 4 elements, with that body."""
    x = te.placeholder((4,), "int32", name="x")
    y = te.compute((4,), lambda i: x[i] * 2, name="y")

    def statements(ins, outs):
        ib = tir.ir_builder.create()
        body(ib, ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]))
        return ib.get()

    intrin = te.decl_tensor_intrin(y.op, statements, name="dbl", default_buffer_params={"offset_factor": 1})
    A = te.placeholder((16,), "int32", name="A")
    C = te.compute((16,), lambda i: A[i] * 2, name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(s[C].split(C.op.axis[0], 4)[1], intrin)
    return s, [A, C]


def by_way_of_memory(own):
    """Each iteration fills memory, its own or that of all, and takes the last element."""
    def body(ib, x, y):
        of_all = None if own else ib.allocate("int32", (8,), name="t", scope="local")
        with ib.for_range(0, 4, "q", kind="parallel") as q:
            t = of_all or ib.allocate("int32", (8,), name="t", scope="local")
            with ib.for_range(0, 8, "w") as w:
                t[w] = x[q] * 2
            y[q] = t[7]

    return body


def test_iterations_in_the_body_of_an_intrinsic():
    """They were compiled: values of other iterations came out."""
    s, args = tensorized(by_way_of_memory(own=True))
    a, c = np.arange(16, dtype="int32"), np.zeros(16, "int32")
    tedsl.build(s, args)(a, c)
    np.testing.assert_array_equal(c, a * 2)
    for step in (tedsl.lower, tedsl.build):
        with pytest.raises(LoweringError, match=r"loop q race: q = 0 writes t\[w\], which is t\[0\], and q = 1 writes"):
            step(*tensorized(by_way_of_memory(own=False)))


@pytest.mark.parametrize("outer", ["plain", "parallel", "split"])
def test_iterations_that_meet_in_the_region_of_an_intrinsic(outer):
    """Which region that is, the loops around say: the first one is looked at."""
    def tiles(index):
        def body(ib, x, y):
            with ib.for_range(0, 4, "q", kind="parallel") as q:
                y[index(q)] = x[q] * 2

        s, args = tensorized(body)
        loop = s[args[1]].leaf_iter_vars[0]
        if outer == "split":
            s[args[1]].split(loop, 2)
        elif outer == "parallel":
            s[args[1]].parallel(loop)
        return s, args

    tedsl.build(*tiles(lambda q: q))
    for step in (tedsl.lower, tedsl.build):
        with pytest.raises(LoweringError, match=r"loop q race: q = 0 writes C\[.*\], which is C\[0\], and q = 1 writes"):
            step(*tiles(lambda q: q // 2))


def test_a_region_under_a_condition_on_the_loops_around_is_not_judged():
    """Whether the first iteration comes there is not known."""
    def body(ib, a, b):
        with ib.for_range(0, 4, "o") as o, ib.if_scope(a[o] > 0), ib.for_range(0, 4, "q", kind="parallel") as q:
            b[tir.if_then_else(o > 0, q + 4 * o, 0)] = a[q]

    s, args = program(body, 16)
    tedsl.lower(s, args)
    tedsl.build(s, args)
