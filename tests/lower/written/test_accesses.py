"""Accesses of functions written by hand: proved, refused with the iteration, asserted, clamped."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, LoweringError
from tedsl.ir.builder import create
from tests.lower.written.programs import asserts, both, function
from tests.refusing import refused

n, m, k = te.var("n"), te.var("m"), te.var("k")
A = tir.decl_buffer((n,), "float32", "A")
B = tir.decl_buffer((8,), "float32", "B")
C = tir.decl_buffer((n, m), "float32", "C")
I = tir.decl_buffer((n,), "int32", "I")


def built(*buffers, scalars=()):
    """A decorator: the function whose body the decorated one writes."""
    def make(write):
        ib = create()
        write(ib, *map(ib.buffer_ptr, buffers))
        return function(ib.get(), *buffers, scalars=scalars)

    return make


# --- refused --------------------------------------------------------------------------------------------------------

def refuses(func, match):
    refused(lambda: tedsl.build(func), match=match, error=LoweringError)


def test_a_constant_index_beyond_the_buffer():
    @built(B)
    def f(ib, b):
        b[8] = 1.0
    refuses(f, r"the store to B\[8\] is outside: B has the indices 0 to 7 and the index is 8\n")


def test_an_index_below_zero():
    @built(B)
    def f(ib, b):
        with ib.for_range(0, 8, "i") as i:
            b[i] = b[i - 1]
    refuses(f, r"the read of B\[i - 1\] is outside: .*goes from -1 to 6; it is -1 at i = 0")


def test_a_loop_that_is_one_too_long():
    @built(B)
    def f(ib, b):
        with ib.for_range(0, 9, "i") as i:
            b[i] = 0.0
    refuses(f, r"it is 8 at i = 8\n  loops: i\n  hint: make the loop shorter")


def test_a_triangle_shows_both_variables():
    @built(B)
    def f(ib, b):
        with ib.for_range(0, 6, "i") as i, ib.for_range(0, i, "j") as j:
            b[i + j] = 0.0
    refuses(f, r"it is \d+ at i = \d, j = \d")


def test_a_symbolic_shape_is_left_whatever_it_is():
    @built(A)
    def f(ib, a):
        with ib.for_range(0, n, "i") as i:
            a[i + 1] = 0.0
    refuses(f, r"A has the indices 0 to n - 1 and the index is i \+ 1.*at i = \d, n = \d")


def test_a_dimension_is_named():
    @built(C)
    def f(ib, c):
        with ib.for_range(0, n, "i") as i:
            c[i, m] = 0.0
    refuses(f, r"dimension 1 of C has the indices 0 to m - 1 and the index is m")


def test_a_vector_that_reaches_beyond():
    @built(B)
    def f(ib, b):
        b[tir.Ramp(6, 1, 4)] = 0.0
    refuses(f, r"the store to B\[6:10\] is outside: .* it is 9")


def test_local_memory_has_its_own_size():
    @built(B)
    def f(ib, b):
        t = ib.allocate("float32", 4, "t", "local")
        with ib.for_range(0, 8, "i") as i:
            t[i] = b[i]
    refuses(f, r"the store to t\[i\] is outside: t has the indices 0 to 3")


def test_an_access_through_a_pointer_of_unknown_size():
    ib = create()
    ib.pointer("float32", "p")[0] = 1.0
    body = ib.get()
    refuses(function(body, scalars=(body.buffer_var,)), r"through p, which is not a buffer of the function")


def test_a_larger_view_of_the_same_memory():
    view = tir.decl_buffer((100,), "float32", "view", data=B.data)

    @built(B)
    def f(ib, b):
        ib.buffer_ptr(view)[50] = 1.0
    refuses(f, r"is outside")


def test_an_offset_that_arrays_do_not_have():
    shifted = tir.decl_buffer((8,), "float32", "S", elem_offset=4)

    @built(shifted)
    def f(ib, s):
        with ib.for_range(0, 8, "i") as i:
            s[i] = 1.0
    refuses(f, r"is outside")


# --- proved ---------------------------------------------------------------------------------------------------------

def test_conditions_around_an_access_count():
    @built(B)
    def f(ib, b):
        with ib.for_range(0, 9, "i") as i:
            with ib.if_scope(tir.all(i >= 1, i < 8)):
                b[i] = b[i - 1]
            with ib.else_scope(), ib.if_scope(i < 1):
                b[i] = 5.0
    assert asserts(f) == []
    assert both(f, np.arange(8, dtype="float32"))[0].tolist() == [5.0] * 8


@pytest.mark.parametrize("condition", ["select", "if_then_else", "all"])
def test_a_read_that_its_condition_allows_happens_only_there(condition):
    @built(A, B)
    def f(ib, a, b):
        with ib.for_range(0, n, "i") as i:
            if condition == "select":
                a[i] = tir.Select(i < 8, b[i], 0.0)
            elif condition == "if_then_else":
                a[i] = tir.if_then_else(i < 8, b[i], 0.0)
            else:
                a[i] = tir.all(i < 8, b[i] > 2.0).astype("float32")
    assert asserts(f) == []
    out, _ = both(f, np.zeros(12, "float32"), np.arange(8, dtype="float32"))
    wanted = [0, 0, 0, 1, 1, 1, 1, 1] if condition == "all" else list(range(8))
    assert out.tolist() == [*wanted, 0, 0, 0, 0]


def test_two_symbolic_dimensions_and_triangles_and_tiles():
    @built(C, A)
    def f(ib, c, a):
        with ib.for_range(0, n, "i") as i:
            with ib.for_range(0, m, "j") as j:
                c[i, j] = a[i]
            with ib.for_range(0, i, "j") as j:
                a[i] = a[i] + a[j]
        with ib.for_range(0, (n + 3) // 4, "io") as io, ib.for_range(0, 4, "ii") as ii, ib.if_scope(io * 4 + ii < n):
            a[io * 4 + ii] = 0.0
    assert asserts(f) == []


# --- decided by the call --------------------------------------------------------------------------------------------

def test_a_condition_on_the_shapes_is_asked_once_before_the_loops():
    @built(A, scalars=(m, k))
    def f(ib, a):
        with ib.for_range(0, m, "i") as i, ib.for_range(0, 4, "j") as j:
            a[i * 4 + j + k] = 1.0
    assert len(asserts(f)) == 1
    kernel = tedsl.build(f)
    data = np.zeros(10, "float32")
    kernel(data, 2, 2)
    assert data.tolist() == [0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    kernel(data, 0, 1000)  # no iteration, nothing to ask
    for bad in ((2, 3), (3, 0), (1, -1)):
        with pytest.raises(ArgumentError, match=r"the store to A\[.*leaves its memory: A has the indices 0 to n - 1"):
            kernel(data, *bad)


def test_under_a_condition_only_where_it_holds():
    @built(A, B, scalars=(k,))
    def f(ib, a, b):
        with ib.for_range(0, n, "i", kind="parallel") as i, ib.if_scope(i < k):
            a[i] = b[i]
    kernel = tedsl.build(f)
    a = np.zeros(20, "float32")
    kernel(a, np.ones(8, "float32"), 8)
    assert a.sum() == 8
    with pytest.raises(ArgumentError, match="leaves its memory"):
        kernel(a, np.ones(8, "float32"), 9)


def test_asserts_can_be_dropped_as_users_know():
    @built(A, scalars=(k,))
    def f(ib, a):
        with ib.for_range(0, n, "i") as i, ib.if_scope(i < k):
            a[i + k - i] = 1.0
    with tedsl.transform.PassContext(config={"tir.disable_assert": True}):
        assert "assert" not in str(tedsl.lower(f))


def test_an_early_return_avoids_what_follows():
    @built(A, scalars=(k,))
    def f(ib, a):
        with ib.if_scope(k >= n):
            ib.emit(tir.ret(0))
        a[k] = 1.0
    kernel = tedsl.build(f)
    a = np.zeros(3, "float32")
    kernel(a, 5)
    kernel(a, 1)
    assert a.tolist() == [0, 1, 0]


# --- decided by data ------------------------------------------------------------------------------------------------

def test_a_read_by_data_is_clamped_and_a_write_is_checked():
    @built(B, I)
    def f(ib, b, at):
        with ib.for_range(0, n, "i") as i:
            b[at[i]] = b[at[i]] + 1.0
    kernel = tedsl.build(f)
    b = np.zeros(8, "float32")
    kernel(b, np.array([1, 1, 7], "int32"))
    assert b.tolist() == [0, 2, 0, 0, 0, 0, 0, 1]
    for bad in (8, -1, 2**31 - 1, -(2**31)):
        with pytest.raises(ArgumentError, match=r"the store to B\[I\[i\]\] leaves its memory.*stores are not clamped"):
            kernel(b, np.array([bad], "int32"))

    @built(A, B, I)
    def gather(ib, a, b, at):
        with ib.for_range(0, n, "i") as i:
            a[i] = b[at[i]]
    out, *_ = both(gather, np.zeros(4, "float32"), np.arange(8, dtype="float32"), np.array([3, 99, -5, 7], "int32"))
    assert out.tolist() == [3, 7, 0, 7]


def test_a_loop_whose_length_is_data():
    starts = tir.decl_buffer((n + 1,), "int32", "starts")
    values = tir.decl_buffer((m,), "float32", "values")

    @built(A, starts, values)
    def row_sums(ib, a, start, value):
        with ib.for_range(0, n, "i") as i:
            a[i] = 0.0
            with ib.for_range(start[i], start[i + 1], "j") as j:
                a[i] = a[i] + value[j]
    out, *_ = both(row_sums, np.zeros(2, "float32"), np.array([0, 2, 3], "int32"), np.array([1, 2, 4], "float32"))
    assert out.tolist() == [3, 4]


def test_an_empty_buffer_has_no_element_to_clamp_to():
    @built(B, A, scalars=(k,))
    def f(ib, b, a):
        i = ib.allocate("int32", 1, "i", "local")
        i[0] = 0
        with ib.while_loop(tir.all(i[0] < k, a[i[0]] > 0.0)):
            b[i[0]] = 1.0
            i[0] = i[0] + 1
    kernel = tedsl.build(f)
    b = np.zeros(8, "float32")
    kernel(b, np.array([1, 1, 0], "float32"), 3)
    assert b.tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    kernel(b, np.empty(0, "float32"), 0)
    with pytest.raises(ArgumentError, match="no element"):
        kernel(b, np.empty(0, "float32"), 1)


def test_memory_whose_size_is_data():
    @built(I)
    def f(ib, at):
        t = ib.allocate("int32", at[0], "t")
        t[at[0] - 1] = 7
        at[0] = 1000
        at[1] = t[2]
    kernel = tedsl.build(f)
    kernel(np.array([3, 0], "int32"))
    with pytest.raises(ArgumentError, match="leaves its memory: t has the indices"):
        kernel(np.array([0, 0], "int32"))


# --- well-formed ----------------------------------------------------------------------------------------------------

def test_a_store_of_the_wrong_dtype_is_the_users_mistake():
    store = tir.Store(B.data, tir.const(1, "int32"), tir.const(0, "int32"))
    with pytest.raises(TypeError, match=r"store to B: int32 through a pointer to float32"):
        tedsl.build(function(store, B))


def test_a_loop_over_floats_is_the_users_mistake():
    i = te.var("i", "float32")
    with pytest.raises(TypeError, match=r"the loop over i counts with integers, not with float32"):
        tir.For(i, tir.const(0.0, "float32"), tir.const(4.0, "float32"), 0, tir.Evaluate(tir.const(0, "int32")))


# --- who is checked -------------------------------------------------------------------------------------------------

def test_what_lower_made_passes_unseen_and_another_body_does_not():
    T = te.placeholder((n,), name="T")
    U = te.compute((n,), lambda i: T[i] + 1.0, name="U")
    mod = tedsl.lower(te.create_schedule(U.op), [T, U])
    func = mod["main"]
    a, b = np.arange(3, dtype="float32"), np.zeros(3, "float32")
    tedsl.build(mod)(a, b)
    assert b.tolist() == [1, 2, 3]
    worse = func.with_body(tir.Store(func.buffers[1].data, tir.const(1.0, "float32"), tir.const(100, "int32")))
    assert len(asserts(worse)) == 1


def test_a_pass_of_the_users_is_checked():
    def shift(func, ctx=None):
        return func.with_body(tir.Store(func.buffers[1].data, tir.const(1.0, "float32"), tir.const(8, "int32")))

    T = te.placeholder((8,), name="T")
    U = te.compute((8,), lambda i: T[i] + 1.0, name="U")
    config = {"tir.add_lower_pass": [(1, shift)]}
    with tedsl.transform.PassContext(config=config), pytest.raises(LoweringError, match="outside"):
        tedsl.lower(te.create_schedule(U.op), [T, U])


# --- memory that is given away --------------------------------------------------------------------------------------

def test_regions_for_other_functions_lie_inside_too():
    large = tir.decl_buffer((16,), "float32", "large", data=B.data)
    for argument in (large, B.access_ptr("r", offset=9), large.access_ptr("w")):
        body = tir.Evaluate(tir.call_packed("f", argument))
        refuses(function(body, B), r"is outside|leaves")
    body = tir.Evaluate(tir.call_packed("f", B, B.access_ptr("r", offset=3), tir.decl_buffer((4,), "float32", data=B.data)))
    assert asserts(function(body, B)) == []
    part = tir.decl_buffer((k,), "float32", "part", data=A.data)
    assert len(asserts(function(tir.Evaluate(tir.call_packed("f", part)), A, scalars=(k,)))) == 1


def test_a_parameter_is_not_realized_again():
    store = tir.BufferStore(B, tir.const(1.0), [tir.const(7)])
    body = tir.BufferRealize(B, [tedsl.ir.Range(0, 2)], tir.const(True), store)
    out, = both(function(body, B), np.zeros(8, "float32"))
    assert out.tolist() == [0, 0, 0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("params, body, buffers, match", [
    ([], None, {}, "PrimFunc: the field body is a Stmt, not None"),
    ([3], tir.Evaluate(0), {}, r"PrimFunc: the field params is a tuple of Vars, not \(3,\)"),
    ([], tir.Evaluate(0), {te.var("h", "handle"): B}, "buffer_map of main maps h"),
])
def test_what_is_no_function(params, body, buffers, match):
    with pytest.raises(TypeError, match=match):
        tedsl.build(tir.PrimFunc(params, body, None, buffers))
