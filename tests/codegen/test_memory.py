"""Loads and stores: strides, gathers, predicates, bool bytes, lazy branches; against numpy and the interpreter."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.ir import build
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import Broadcast, Call, Cast, Load, Max, Min, Ramp, Select, Shuffle, Var
from tedsl.ir.ops import Op
from tedsl.ir.stmt import For, ForKind, IfThenElse, Store, seq
from tests.codegen.kernels import AVX2, AVX512, HOST, PLAIN, RUNNABLE, Kernel, array, const, function

TARGETS = pytest.mark.parametrize("target", RUNNABLE, ids=str)
DTYPES = ["float32", "float64", "int8", "int16", "float16", "bool", "int64"]


def load(buffer, index, predicate=None):
    d = buffer[1].dtype
    return Load(d.with_lanes(index.dtype.lanes), buffer[1].data, index, predicate)


def store(buffer, value, index, predicate=None):
    return Store(buffer[1].data, value, index, predicate)


def data(of, count, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2 if of == "bool" else 100, count).astype(np.bool_ if of == "bool" else of)


@TARGETS
@pytest.mark.parametrize("of", DTYPES)
@pytest.mark.parametrize("stride", [1, -1, 0, 2, -2, 3, 4, -5])
def test_strided_loads_and_stores(stride, of, target):
    a, b = array("a", (100,), of), array("b", (100,), of)
    start = 1 if stride >= 0 else 95
    f = function(seq(store(b, load(a, Ramp(const(start), const(stride), 8)), Ramp(const(3), const(1), 8)),
                     store(b, load(a, Ramp(const(2), const(1), 8)), Ramp(const(50), const(stride or 1), 8))), a, b)
    x, y = data(of, 100), np.zeros(100, data(of, 1).dtype)
    assert Kernel(f, target)(x, y) == 0
    expected = np.zeros_like(y)
    lanes = np.arange(8)
    expected[3 + lanes] = x[start + stride * lanes]
    expected[50 + (stride or 1) * lanes] = x[2 + lanes]
    np.testing.assert_array_equal(y, expected)


@TARGETS
@pytest.mark.parametrize("of", DTYPES)
@pytest.mark.parametrize("lanes, stride", [(3, 1), (7, -1), (12, 1), (13, 1), (14, -1), (15, 1)])
def test_vectors_of_any_number_of_lanes(lanes, stride, of, target):
    a, b = array("a", (40,), of), array("b", (40,), of)
    at = Ramp(const(4 if stride == 1 else 4 + lanes - 1), const(stride), lanes)
    kernel = Kernel(function(store(b, load(a, at), Ramp(const(9), const(1), lanes)), a, b), target)
    x, y = data(of, 40), np.zeros(40, data(of, 1).dtype)
    assert kernel(x, y) == 0
    expected = np.zeros_like(y)
    expected[9:9 + lanes] = x[4:4 + lanes][::stride]
    np.testing.assert_array_equal(y, expected)


@TARGETS
@pytest.mark.parametrize("of", DTYPES)
@pytest.mark.parametrize("lanes, stride", [(11, 2), (13, 3), (7, -2), (5, 4), (16, 2), (16, -3)])
def test_strided_loads_of_some_lanes(lanes, stride, of, target):
    """All lanes of a vector of any number of them, and those that a mask turns on."""
    a, b, n = array("a", ((lanes - 1) * abs(stride) + 1,), of), array("b", (40,), of), Var("n")
    at, to = Ramp(const(0 if stride > 0 else (lanes - 1) * -stride), const(stride), lanes), Ramp(const(3), const(1), lanes)
    on = build.less(Ramp(const(0), const(1), lanes), Broadcast(n, lanes))
    kernel = Kernel(function(seq(store(b, load(a, at), to), store(b, load(a, at, on), Ramp(const(20), const(1), lanes), on)),
                             a, b, n), target)
    x = data(of, (lanes - 1) * abs(stride) + 1)
    for count in (0, 1, lanes // 2, lanes):
        y = np.zeros(40, data(of, 1).dtype)
        assert kernel(x, y, count) == 0
        expected = np.zeros_like(y)
        expected[3:3 + lanes] = x[::stride]
        expected[20:20 + count] = x[::stride][:count]
        np.testing.assert_array_equal(y, expected)


@TARGETS
@pytest.mark.parametrize("of", DTYPES)
@pytest.mark.parametrize("lanes, step, divisor, offset", [
    (16, 1, 2, 0), (16, 1, 3, 1), (12, -1, 2, 11), (48, 1, 3, 0), (8, 2, 4, -1)])
def test_lanes_that_share_elements(lanes, step, divisor, offset, of, target):
    """b[lane] = a[4 + io + (offset + step * lane) // divisor], and the remainder; all lanes and those that a mask turns on."""
    a, b, n, io = array("a", (40,), of), array("b", (4 * lanes,), of), Var("n"), Var("io")
    number = build.add(Broadcast(build.mul(io, divisor), lanes), Ramp(const(offset), const(step), lanes))
    at = build.add(Broadcast(const(4), lanes), build.floordiv(number, Broadcast(const(divisor), lanes)))
    rest = build.add(Broadcast(io, lanes), build.floormod(number, Broadcast(const(divisor), lanes)))
    on = build.less(Ramp(const(0), const(1), lanes), Broadcast(n, lanes))
    parts = [store(b, load(a, index, mask), Ramp(const(first * lanes), const(1), lanes), mask)
             for first, (index, mask) in enumerate([(at, None), (at, on), (rest, None), (rest, on)])]
    kernel = Kernel(function(seq(*parts), a, b, n, io), target)
    x, places = data(of, 40), offset + step * np.arange(lanes)
    for count, outer in ((0, 0), (1, 3), (lanes // 2, 1), (lanes, 2)):
        y = np.zeros(4 * lanes, data(of, 1).dtype)
        assert kernel(x, y, count, outer) == 0
        expected = np.zeros_like(y).reshape(4, lanes)
        expected[:2] = x[4 + outer + places // divisor]
        expected[2:] = x[outer + places % divisor]
        expected[[1, 3], count:] = 0
        np.testing.assert_array_equal(y, expected.ravel())


@TARGETS
def test_lanes_that_are_clamped_to_constants(target):
    """b[lane] = a[min(max((lane - 3) // 2, 0), 5)] of an array of 6 elements."""
    a, b = array("a", (6,), "float32"), array("b", (18,), "float32")
    half = build.floordiv(Ramp(const(-3), const(1), 18), Broadcast(const(2), 18))
    at = Min(Max(half, Broadcast(const(0), 18)), Broadcast(const(5), 18))
    kernel = Kernel(function(store(b, load(a, at), Ramp(const(0), const(1), 18)), a, b), target)
    x, y = data("float32", 6), np.zeros(18, "float32")
    assert kernel(x, y) == 0
    np.testing.assert_array_equal(y, x[np.clip((np.arange(18) - 3) // 2, 0, 5)])
    assert "gather" not in kernel.assembly()


@pytest.fixture
def five_floats():
    """An array at the end of a page, behind which lies one that cannot be read."""
    import ctypes
    import mmap

    libc = ctypes.CDLL(None)
    pages = mmap.mmap(-1, 2 * 4096)
    behind = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(pages)) + 4096)
    assert libc.mprotect(behind, 4096, 0) == 0
    yield np.frombuffer(pages, np.float32, 5, 4096 - 20)
    libc.mprotect(behind, 4096, 3)


@TARGETS
def test_masked_lanes_that_share_elements_read_no_others(target, five_floats):
    """What a lane that is off wants lies in a page that cannot be read; a lane that is on shares it with one that is off."""
    x = five_floats
    x[:] = range(1, 6)
    a, b, n = array("a", (5,), "float32"), array("b", (16,), "float32"), Var("n")
    at = Ramp(const(0), const(1), 16)
    mask = build.less(at, Broadcast(n, 16))
    kernel = Kernel(function(store(b, load(a, build.floordiv(at, Broadcast(const(2), 16)), mask), at), a, b, n), target)
    for count in (9, 10):
        y = np.zeros(16, "float32")
        assert kernel(x, y, count) == 0
        assert y.tolist() == [k // 2 + 1 if k < count else 0 for k in range(16)]


@TARGETS
@pytest.mark.parametrize("of", DTYPES)
def test_masked_tails_touch_nothing_beyond(of, target):
    """for io: b[io*8 + lane] = a[...] where io*8 + lane < n"""
    a, b, n, io = array("a", (64,), of), array("b", (64,), of), Var("n"), Var("io")
    at = Ramp(build.mul(io, 8), const(1), 8)
    mask = build.less(at, Broadcast(n, 8))
    vectors = build.floordiv(build.add(n, 7), 8)
    f = function(For(io, const(0), vectors, ForKind.SERIAL, store(b, load(a, at, mask), at, mask)), a, b, n)
    kernel = Kernel(f, target)
    for size in (0, 1, 7, 8, 9, 23, 64):
        x = data(of, 64, 1)
        y = data(of, 64, 2)
        expected = y.copy()
        expected[:size] = x[:size]
        assert kernel(x, y, size) == 0
        np.testing.assert_array_equal(y, expected)


@TARGETS
def test_lanes_that_are_off_read_no_memory(target, five_floats):
    """The array ends at the end of a page, the next one cannot be read."""
    x = five_floats
    x[:] = range(5)
    a, b, n = array("a", (5,), "float32"), array("b", (8,), "float32"), Var("n")
    mask = build.less(Ramp(const(0), const(1), 8), Broadcast(n, 8))
    for index, want in ((Ramp(const(0), const(1), 8), [0, 1, 2, 3, 4, 0, 0, 0]), (Ramp(const(0), const(1), 8), None)):
        value = load(a, index, mask)
        if want is None:  # the same by a lazy if
            value = Call(value.dtype, Op.get("tir.if_then_else"), (mask, load(a, index), Broadcast(const(-1.0, "float32"), 8)))
            want = [0, 1, 2, 3, 4, -1, -1, -1]
        y = np.zeros(8, "float32")
        assert Kernel(function(store(b, value, Ramp(const(0), const(1), 8)), a, b, n), target)(x, y, 5) == 0
        assert y.tolist() == want


@TARGETS
@pytest.mark.parametrize("of", ["float32", "int8", "bool"])
@pytest.mark.parametrize("by_size", [False, True], ids=["constant stride", "stride of the call"])
def test_many_lanes_are_accessed_in_a_loop(by_size, of, target):
    """200 lanes, all or the first that are on, loaded and stored by a stride; the text does not grow with them."""
    a, b, n, stride = array("a", (2000,), of), array("b", (2000,), of), Var("n"), Var("stride")
    step = stride if by_size else const(7)
    near = Ramp(const(0), const(1), 200)
    far = build.mul(near, Broadcast(step, 200)) if by_size else Ramp(const(0), step, 200)
    on = build.less(near, Broadcast(n, 200))
    f = function(seq(store(b, load(a, far), near), store(b, load(a, far, on), build.add(near, 200), on),
                     store(b, load(a, near, on), build.add(far, 401), on)), a, b, n, stride)
    kernel = Kernel(f, target)
    x = data(of, 2000, 1)
    for count in (0, 1, 63, 200):
        y, expected = data(of, 2000, 2), data(of, 2000, 2)
        expected[:200] = x[:1400:7]
        expected[200:200 + count] = x[:1400:7][:count]
        expected[401:401 + 7 * count:7] = x[:count]
        assert kernel(x, y, count, 7) == 0
        np.testing.assert_array_equal(y, expected)
    if of == "int8":
        assert kernel.text.count("extractelement") < 50


@TARGETS
@pytest.mark.parametrize("of", ["float32", "float64", "int8", "float16"])
def test_gather_and_scatter_by_data(of, target):
    a, i, b = array("a", (50,), of), array("i", (16,), "int32"), array("b", (200,), of)
    at = Ramp(const(0), const(1), 16)
    clamped = Max(Min(load(i, at), Broadcast(const(49), 16)), Broadcast(const(0), 16))
    where = build.mul(load(i, at), 3)
    mask = build.less(load(i, at), Broadcast(const(45), 16))
    f = function(seq(store(b, load(a, clamped), at), store(b, load(a, at), build.add(where, 20), mask)), a, i, b)
    x, y = data(of, 50), np.zeros(200, of)
    index = np.array([3, 60, -5, 7, 7, 0, 49, 12, 30, 2, 2, 2, 48, 1, 9, 22], "int32")
    index_ok = np.clip(index, -6, 60)
    expected = np.zeros(200, of)
    expected[:16] = x[np.clip(index, 0, 49)]
    for lane, k in enumerate(index_ok):
        if k < 45:
            expected[k * 3 + 20] = x[lane]
    assert Kernel(f, target)(x, index, y) == 0
    np.testing.assert_array_equal(y, expected)


@TARGETS
def test_if_then_else_reads_only_the_chosen_side(target):
    a, b, i = array("a", (10,), "float32"), array("b", (20,), "float32"), Var("i")
    inside = build.logical_and(build.greater_equal(i, 5), build.less(i, 15))
    value = build.if_then_else(inside, load(a, build.sub(i, 5)), const(-1.0, "float32"))
    f = function(For(i, const(0), const(20), ForKind.SERIAL, store(b, value, i)), a, b)
    x, y = data("float32", 10), np.zeros(20, "float32")
    for vectorize in (False, True):
        assert Kernel(f, target, vectorize)(x, y) == 0
        np.testing.assert_array_equal(y, np.concatenate([np.full(5, -1), x, np.full(5, -1)]).astype("f"))


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_one_element_for_the_lanes_of_a_mask_is_loaded_once(dtype, target):
    """In a branch: A[i] is no element where no lane asks for it."""
    A, X = te.placeholder((3,), dtype, name="A"), te.placeholder((1000, 40), dtype, name="X")
    C = te.compute(X.shape, lambda i, j: te.if_then_else(te.all(i < 3, j == i), A[i], X[i, j]), name="C")
    s = te.create_schedule(C.op)
    _, lanes = s[C].split(C.op.axis[1], 16)
    s[C].vectorize(lanes)
    kernel = tedsl.build(s, [A, X, C], target)
    assert "gather" not in kernel.get_source("ll")
    a, x = np.array([-1, -2, -3], dtype), np.arange(40_000).reshape(1000, 40).astype(dtype)
    expected, c = x.copy(), np.empty_like(x)
    expected[range(3), range(3)] = a
    kernel(a, x, c)
    np.testing.assert_array_equal(c, expected)


def test_nested_if_then_else_over_vectors():
    a, b = array("a", (16,), "int32"), array("b", (16,), "int32")
    at = Ramp(const(0), const(1), 16)
    v = load(a, at)
    ite = lambda c, x, y: Call(x.dtype, Op.get("tir.if_then_else"), (c, x, y))
    far = load(a, Ramp(const(1 << 20), const(1), 16))
    low, high = build.less(v, 30), build.greater(v, 60)
    never = build.less(v, 0)
    value = ite(low, ite(never, far, build.add(load(a, at), 1)), ite(high, build.mul(load(a, at), 2), ite(never, far, v)))
    for target in RUNNABLE:
        x, y = data("int32", 16), np.zeros(16, "int32")
        assert Kernel(function(store(b, value, at), a, b), target)(x, y) == 0
        np.testing.assert_array_equal(y, np.where(x < 30, x + 1, np.where(x > 60, x * 2, x)))


def test_shuffles():
    a, b = array("a", (16,), "int32"), array("b", (32,), "int32")
    at = lambda k, n: Ramp(const(k), const(1), n)
    one, two, s = load(a, at(0, 4)), load(a, at(4, 8)), load(a, const(15))
    pick = lambda vectors, ks: Shuffle(tuple(vectors), tuple(const(k) for k in ks))
    f = function(seq(store(b, pick([one, two], [11, 0, 5, 3]), at(0, 4)), store(b, pick([one], [2]), const(4)),
                     store(b, pick([one, s, one], [8, 4, 5]), at(5, 3)),
                     store(b, pick([s, load(a, const(14))], [0, 1]), at(8, 2)),
                     store(b, pick([one, one], range(8)), at(10, 8)), store(b, pick([s], [0]), const(18))), a, b)
    x, y = np.arange(16, dtype="int32") * 7, np.zeros(32, "int32")
    assert Kernel(f)(x, y) == 0
    e = [x[11], x[0], x[5], x[3], x[2], x[3], x[15], x[0], x[15], x[14], *x[:4], *x[:4], x[15]]
    np.testing.assert_array_equal(y[:19], e)


def test_select_by_a_scalar_and_by_lanes():
    a, b, n = array("a", (8,), "float32"), array("b", (16,), "float32"), Var("n")
    at = Ramp(const(0), const(1), 8)
    v = load(a, at)
    f = function(seq(store(b, Select(build.less(n, 3), v, build.mul(v, 2.0)), at),
                     store(b, Select(build.less(v, 50.0), v, build.mul(v, 0.5)), Ramp(const(8), const(1), 8))), a, b, n)
    x, y = data("float32", 8), np.zeros(16, "float32")
    for size in (1, 5):
        assert Kernel(f)(x, y, size) == 0
        np.testing.assert_array_equal(y, np.concatenate([x if size < 3 else x * 2, np.where(x < 50, x, x / 2)]))


def test_ramps_as_data():
    b, n = array("b", (48,), "float32"), Var("n")
    values = [Cast(dtype("float32x16"), Ramp(build.add(n, 5), const(s), 16)) for s in (1, -2)]
    values.append(Cast(dtype("float32x16"), Ramp(n, build.mul(n, 2), 16)))
    f = function(seq(*(store(b, v, Ramp(const(16 * k), const(1), 16)) for k, v in enumerate(values))), b, n)
    y, lanes = np.zeros(48, "float32"), np.arange(16)
    assert Kernel(f)(y, 7) == 0
    np.testing.assert_array_equal(y, np.concatenate([12 + lanes, 12 - 2 * lanes, 7 + 14 * lanes]))


def test_addresses_do_not_overflow_in_32_bits():
    """The offset i * 2**20 passes 2**31 although i and the text are int32."""
    a, b, i = array("a", (8,), "int8"), array("b", (4,), "int8"), Var("i")
    large = build.mul(i, 1 << 20)
    f = function(seq(IfThenElse(build.less(large, 0), store(b, const(1, "int8"), const(0))),
                     store(b, load(a, build.floordiv(large, 1 << 30)), const(1)),
                     store(b, load(a, build.sub(build.minimum(large, i), build.sub(i, 3))), const(2))), a, b, i)
    x, y = np.arange(10, 18, dtype="int8"), np.zeros(4, "int8")
    assert Kernel(f)(x, y, 5000) == 0
    assert y.tolist() == [0, 14, 13, 0]  # 5000 * 2**20 // 2**30 = 4


def test_bfloat16_arithmetic_is_rounded_after_each_operation():
    import ml_dtypes

    a, b = array("a", (64,), "bfloat16"), array("b", (64,), "bfloat16")
    at = Ramp(const(0), const(1), 64)
    v = load(a, at)
    f = function(store(b, build.add(build.mul(v, v), v), at), a, b)
    x = np.random.default_rng(0).random(64).astype(ml_dtypes.bfloat16)
    for target in (PLAIN, AVX2, AVX512, HOST):
        if target.runs_here:
            y = np.zeros_like(x)
            assert Kernel(f, target)(x, y) == 0
            np.testing.assert_array_equal(y, x * x + x)
