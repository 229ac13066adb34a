"""Bodies of intrinsics that are surely wrong are refused before they run: accesses outside of their buffers, threads that are
launched twice."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tests.lower.intrinsics import matvec, numbers
from tests.lower.test_tensorize_refused import refuses


def doubling(body, shape=(4,), strides=None):
    """b = 2 a, by what `body(ib, a, b)` writes."""
    a = te.placeholder(shape, name="a")
    b = te.compute(shape, lambda *i: a[i] * 2.0, name="b")

    def function(ins, outs):
        ib = tir.ir_builder.create()
        body(ib, ins[0], outs[0])
        return ib.get()

    binds = {t: tir.decl_buffer(shape, "float32", t.op.name, strides=strides(t.op.name), offset_factor=1) for t in (a, b)} \
        if strides else None
    return te.decl_tensor_intrin(b.op, function, name="dbl", binds=binds, default_buffer_params={"offset_factor": 1})


def used(intrin, prepare=lambda s, B, outer: None, size=4):
    """B = 2 A of 16 elements in tiles; C = B + 1."""
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((16,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[B].split(B.op.axis[0], size)
    prepare(s, B, outer)
    s[B].tensorize(inner, intrin)
    return s, [A, C]


def right(s, args):
    a, c = numbers(16), np.zeros(16, "float32")
    tedsl.build(s, args)(a, c)
    np.testing.assert_array_equal(c, a * 2 + 1)


def tiles(intrin):
    """C = 2 A of 8 x 16 in tiles of 4 x 4."""
    A = te.placeholder((8, 16), name="A")
    C = te.compute((8, 16), lambda i, j: A[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    *_, inner, _ = s[C].tile(*C.op.axis, 4, 4)
    s[C].tensorize(inner, intrin)
    return s, [A, C]


# --- accesses -----------------------------------------------------------------------------------------------------------

def elements(write=0, read=0):
    def body(ib, a, b):
        x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
        with ib.for_range(0, 4, "q") as q:
            y[q + write] = x[q + read] * 2.0
    return body


def vector(write=0, read=0):
    def body(ib, a, b):
        ib.emit(b.vstore(write, a.vload(read, "float32x4") * tir.const(2.0, "float32x4")))
    return body


STRIDES = pytest.mark.parametrize("strides", [None, lambda name: [te.var(f"s{name}")]])


@STRIDES
def test_an_element_outside_of_the_declared_buffer(strides):
    right(*used(doubling(elements(), strides=strides)))
    refuses(*used(doubling(elements(write=1000000), strides=strides)),
            "the body of the intrinsic dbl in B: the store to b[q + 1000000] is outside: dimension 0 of b has the indices "
            "0 to 3", "it is 1000000 at q = 0", "loops: q", "from: s[B].tensorize(", "hint: ")
    refuses(*used(doubling(elements(write=-1), strides=strides)), "the store to b[q + -1] is outside", "it is -1 at q = 0")
    refuses(*used(doubling(elements(read=1), strides=strides)),
            "the body of the intrinsic dbl in B: the read of a[q + 1] is outside", "it is 4 at q = 3")


@STRIDES
def test_a_vector_store_that_ends_outside_of_the_declared_buffer(strides):
    """It wrote behind the memory of the last tile."""
    right(*used(doubling(vector(), strides=strides)))
    refuses(*used(doubling(vector(write=1), strides=strides)), "the store to b[1:5] is outside", "it is 4")
    refuses(*used(doubling(vector(read=1), strides=strides)), "the read of a[1:5] is outside", "it is 4")


def test_a_vector_goes_on_in_the_next_row_and_not_behind_the_last():
    def whole(first, lanes=16):
        return doubling(lambda ib, a, b: ib.emit(b.vstore(first, a.vload(first, f"float32x{lanes}") *
                                                          tir.const(2.0, f"float32x{lanes}"))), (4, 4))

    def rows(intrin):
        A = te.placeholder((8, 4), name="A")
        C = te.compute((8, 4), lambda i, j: A[i, j] * 2.0, name="C")
        s = te.create_schedule(C.op)
        s[C].tensorize(s[C].split(C.op.axis[0], 4)[1], intrin)
        return s, [A, C]

    a, c = numbers(8, 4), np.zeros((8, 4), "float32")
    tedsl.build(*rows(whole([0, 0])))(a, c)
    np.testing.assert_array_equal(c, a * 2)
    refuses(*rows(whole([0, 1])), "the read of a[0, 1:17] is outside: a has the indices 0 to 15", "it is 16")
    refuses(*rows(whole([3, 0], 8)), "the read of a[3, 0:8] is outside", "it is 19")
    refuses(*rows(whole([4, 0], 4)), "dimension 0 of a has the indices 0 to 3 and the index is 4")


def every(row=0, wide=4):
    def body(ib, a, b):
        x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
        with ib.for_range(0, 4, "i") as i, ib.for_range(0, wide, "j") as j:
            y[(i + row) * b.strides[0] + j * b.strides[1]] = x[i * a.strides[0] + j * a.strides[1]] * 2.0
    return body


def indexed(row=0):
    def body(ib, a, b):
        with ib.for_range(0, 4, "i") as i, ib.for_range(0, 4, "j") as j:
            ib.emit(b.vstore([i + row, j], a.vload([i, j]) * 2.0))
    return body


@pytest.mark.parametrize("strides", [lambda name: [te.var(f"ld{name}"), 1],
                                     lambda name: [te.var(f"s{name}"), te.var(f"t{name}")]])
@pytest.mark.parametrize("how", [every, indexed])
def test_rows_whose_distance_the_loops_decide(how, strides):
    """Indices are of the declared shape. Where a position is, the strides say, which only a call knows."""
    s, args = tiles(doubling(how(), (4, 4), strides))
    a, c = numbers(8, 16), np.zeros((8, 16), "float32")
    tedsl.build(s, args)(a, c)
    np.testing.assert_array_equal(c, a * 2)
    if how is indexed:
        refuses(*tiles(doubling(how(row=1), (4, 4), strides)),
                "the store to b[i + 1, j] is outside: dimension 0 of b", "i = 3")
    else:
        tedsl.lower(*tiles(doubling(how(row=1), (4, 4), strides)))


def test_a_condition_that_keeps_an_access_inside_counts():
    def body(ib, a, b, most=3):
        x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
        with ib.for_range(0, 4, "q") as q:
            with ib.if_scope(q < most):
                y[q + 1] = x[q + 1] * 2.0
            with ib.if_scope(q == 0):
                y[q] = x[q] * 2.0

    right(*used(doubling(body)))
    refuses(*used(doubling(lambda ib, a, b: body(ib, a, b, 4))), "the read of a[q + 1] is outside", "it is 4 at q = 3")


@pytest.mark.parametrize("versions", [False, True])
def test_checked_mode_says_it_while_it_runs(versions):
    """With the element of the tensor, in versions of a stage too."""
    n = te.var("n")
    A = te.placeholder((n * 4,), name="A")
    B = te.compute((n * 4,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((n * 4,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[0], 4)
    if versions:
        s[C].specialize(n == 2)
    s[B].compute_at(s[C], outer)
    s[B].tensorize(B.op.axis[0], doubling(elements(write=1)))
    refuses(s, [A, C], "the store to b[q + 1] is outside")
    with pytest.raises(tedsl.errors.AccessError, match=r"stores B\[4\], outside of the region"):
        tedsl.build(s, [A, C], checked=True)(numbers(8), np.zeros(8, "float32"))


def test_memory_of_the_body_has_bounds_too():
    def body(ib, a, b, size=4):
        x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
        t = ib.allocate("float32", (size,), name="t", scope="local")
        with ib.for_range(0, 4, "q") as q:
            t[q] = x[q]
        with ib.for_range(0, 4, "q") as q:
            y[q] = t[q] * 2.0

    right(*used(doubling(body)))
    refuses(*used(doubling(lambda ib, a, b: body(ib, a, b, 3))), "the store to t[q] is outside: t has the indices 0 to 2")


@pytest.mark.parametrize("part", ["reduce_init", "reduce_update"])
def test_the_parts_of_a_reduction(part):
    w, x = te.placeholder((4, 4), name="w"), te.placeholder((4,), name="x")
    k = te.reduce_axis((0, 4), name="k")
    z = te.compute((4,), lambda i: te.sum(w[i, k] * x[k], axis=k), name="z")
    W = tir.decl_buffer(w.shape, w.dtype, "W", strides=[te.var("ldw"), 1], offset_factor=1)

    def function(ins, outs):
        def loops(reset, beyond):
            ib = tir.ir_builder.create()
            out = ib.buffer_ptr(outs[0])
            with ib.for_range(0, 4, "r") as r:
                if reset:
                    out[r + beyond] = 0.0
                else:
                    with ib.for_range(0, 4, "q") as q:
                        out[r + beyond] = out[r + beyond] + ins[0].vload([r, q]) * ins[1].vload([q])
            return ib.get()
        return None, loops(True, part == "reduce_init"), loops(False, part == "reduce_update")

    A, B, C = matvec(8, 16)
    s = te.create_schedule(C.op)
    yo, yi = s[C].split(C.op.axis[0], 4)
    ko, ki = s[C].split(C.op.reduce_axis[0], 4)
    s[C].reorder(yo, ko, yi, ki)
    dot = te.decl_tensor_intrin(z.op, function, name="dot", binds={w: W}, default_buffer_params={"offset_factor": 1})
    s[C].tensorize(yi, dot)
    refuses(s, [A, B, C], f"the {part} of the intrinsic dot in C: the ", "of z has the indices 0 to 3", "at r = 3")


def test_sizes_that_the_region_gives():
    """n of the intrinsic is 4 here: the loop ends one element behind."""
    def sized(beyond):
        n = te.var("n")
        a = te.placeholder((n,), name="a")
        b = te.compute((n,), lambda i: a[i] * 2.0, name="b")

        def function(ins, outs):
            ib = tir.ir_builder.create()
            x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
            with ib.for_range(0, n + beyond, "q") as q:
                y[q] = x[q] * 2.0
            return ib.get()

        return te.decl_tensor_intrin(b.op, function, name="dbl", default_buffer_params={"offset_factor": 1})

    right(*used(sized(0)))
    refuses(*used(sized(1)), "of the intrinsic dbl in B: the ", "it is 4 at q = 4")


# --- threads ------------------------------------------------------------------------------------------------------------

def threads(tag, count=4):
    def body(ib, a, b):
        x, y, tx = ib.buffer_ptr(a), ib.buffer_ptr(b), te.thread_axis(tag)
        ib.scope_attr(tx, "thread_extent", count)
        y[tx] = x[tx] * 2.0
    return body


def bound(tag):
    return lambda s, B, outer: s[B].bind(outer, te.thread_axis(tag))


@pytest.mark.parametrize("tag", ["threadIdx.x", "threadIdx.y", "blockIdx.x"])
def test_threads_that_a_loop_around_is_bound_to(tag):
    """Each thread of the loop would compute one element of its tile: 12 of 16 were lost."""
    intrin = doubling(threads(tag))
    right(*used(intrin))
    right(*used(intrin, bound("threadIdx.z")))
    refuses(*used(intrin, bound(tag)), f"the body of the intrinsic dbl in B launches 4 threads of {tag}, and loop i.outer of B "
            f"around it is bound to {tag}", "loops: i.outer, i.inner", "from: s[B].tensorize(",
            "hint: leave loop i.outer unbound or bind it to another axis, or write the body with a serial loop")


def test_threads_of_a_stage_around():
    def prepared(host_tag, scope):
        A = te.placeholder((16,), name="A")
        B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
        C = te.compute((16,), lambda i: B[i] + 1.0, name="C")
        s = te.create_schedule(C.op)
        outer, _ = s[C].split(C.op.axis[0], 4)
        s[C].bind(outer, te.thread_axis(host_tag))
        s[B].compute_at(s[C], outer)
        s[B].set_scope(scope)
        s[B].tensorize(s[B].split(B.op.axis[0], 4)[1], doubling(threads("threadIdx.x")))
        return s, [A, C]

    right(*prepared("blockIdx.x", "shared"))
    refuses(*prepared("threadIdx.x", "shared"), "launches 4 threads of threadIdx.x, and loop i.outer of C around it is bound")
    refuses(*prepared("threadIdx.y", "local"), "the statements of B launch threads of threadIdx.x, and the memory of B, of "
            "scope 'local', belongs to one thread")
