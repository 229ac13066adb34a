"""What the operators by elements compute: compiled, over dtypes and odd values, against numpy."""

import numpy as np
import pytest
import scipy.special

import topi
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from tests.topi.checking import check, numbers, tensor
from topi.kinds import InjectiveOp

n, m = te.size_var("n"), te.size_var("m")
ODD = [7.5, -7.5, 0.0, -0.0, np.inf, 1, -np.inf, np.nan, 5, -5, 6, 1.0, -3, 3]
BY = [2.5, 2.5, 3, 3, 2, np.inf, 2, 1, -np.inf, np.inf, 0.1, 0.1, 0.0, 0.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "int32", "int64"])
def test_division_in_its_kinds(dtype):
    random = np.random.default_rng(0)
    x, y = (random.normal(size=100) * 30).astype(dtype), (random.normal(size=100) * 5).astype(dtype)
    if dtype.startswith("float"):
        x[:len(ODD)], y[:len(BY)] = ODD, BY
    a, b = te.placeholder((100,), dtype, name="a"), te.placeholder((100,), dtype, name="b")
    with np.errstate(all="ignore"):
        quotient = x / y if dtype.startswith("float") else np.where(y == 0, 0, np.trunc(x / y.astype("float64")))
        check([topi.floor_divide(a, b), topi.mod(a, b), topi.floor_mod(a, b), topi.divide(a, b), topi.fmod(a, b)], {a: x, b: y},
              [x // y, np.fmod(x, y), x % y, quotient.astype(dtype), np.fmod(x, y)], rtol=0, atol=0)
        assert repr((a % b).op) == repr(topi.floor_mod(a, b).op) and repr((a // b).op) == repr(topi.floor_divide(a, b).op)


def test_whole_quotients_of_float16_are_those_of_float32():
    """Of 512 and more a quotient in float16 would be one too large or too small."""
    random = np.random.default_rng(0)
    y = random.normal(size=1000).astype("float16")
    x = (y * random.integers(-2000, 2000, 1000) + random.uniform(size=1000)).astype("float16")
    a, b = te.placeholder((1000,), "float16", name="a"), te.placeholder((1000,), "float16", name="b")
    with np.errstate(all="ignore"):
        check([topi.floor_divide(a, b)], {a: x, b: y}, [x // y], rtol=0, atol=0)


@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((1,), (1,)), ((4, 1, 3), (2, 1)), ((0, 2), (2,)),
                                    (((n, 5), 3), ((n, 5), 1)), (((n, 2), (m, 3)), ((m, 3),)), ((), (4,))])
def test_shapes_broadcast(shapes):
    (a, x), (b, y) = tensor(shapes[0]), tensor(shapes[1], name="b")
    check([topi.add(a, b), topi.maximum(a, b), topi.less(a, b), a - b], {a: x, b: y}, [x + y, np.maximum(x, y), x < y, x - y])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "bool"])
def test_bits_and_logic(dtype):
    a, x = tensor((20,), dtype)
    b, y = tensor((20,), dtype, "b")
    y = y[::-1].copy()
    if dtype == "bool":
        check([topi.logical_and(a, b), topi.logical_or(a, b), topi.logical_xor(a, b), topi.logical_not(a)], {a: x, b: y},
              [x & y, x | y, x ^ y, ~x])
        return
    check([topi.bitwise_and(a, b), topi.bitwise_or(a, b), topi.bitwise_xor(a, b), topi.bitwise_not(a), topi.left_shift(a, 2),
           topi.right_shift(a, 1)], {a: x, b: y}, [x & y, x | y, x ^ y, ~x, x << 2, x >> 1])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8"])
def test_clip_sign_and_full(dtype):
    a, x = tensor((3, 7), dtype)
    check([topi.clip(a, 1, 4), topi.sign(a), topi.full_like(a, 3), topi.full((2, 0), dtype, 1), topi.full((), dtype, 2)],
          {a: x}, [np.clip(x, 1, 4).astype(dtype), np.sign(x), np.full_like(x, 3), np.ones((2, 0), dtype), np.array(2, dtype)])
    b, y = tensor(((n, 3), 2), dtype)
    check([topi.full_like(b, 1), topi.full((n, 2), "int32", 7)], {b: y}, [np.ones_like(y), np.full((3, 2), 7, "int32")])


FLOATS = {"exp": (np.exp, -5, 5), "log": (np.log, 0.1, 9), "log2": (np.log2, 0.1, 9), "log10": (np.log10, 0.1, 9),
          "tanh": (np.tanh, -4, 4), "sigmoid": (scipy.special.expit, -6, 6), "erf": (scipy.special.erf, -3, 3),
          "sqrt": (np.sqrt, 0, 9), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9), "sin": (np.sin, -7, 7), "cos": (np.cos, -7, 7),
          "tan": (np.tan, -1.2, 1.2), "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 1), "atan": (np.arctan, -9, 9),
          "sinh": (np.sinh, -4, 4), "cosh": (np.cosh, -4, 4), "asinh": (np.arcsinh, -9, 9), "acosh": (np.arccosh, 1, 9),
          "atanh": (np.arctanh, -0.9, 0.9), "floor": (np.floor, -3, 3), "ceil": (np.ceil, -3, 3), "trunc": (np.trunc, -3, 3),
          "nearbyint": (np.rint, -3, 3),
          "round": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), -3, 3), "abs": (np.abs, -3, 3),
          "negative": (np.negative, -3, 3), "sign": (np.sign, -3, 3), "identity": (np.array, -3, 3), "isnan": (np.isnan, -3, 3),
          "isinf": (np.isinf, -3, 3), "isfinite": (np.isfinite, -3, 3)}


@pytest.mark.parametrize("dtype, rtol", [("float32", 2e-6), ("float64", 1e-14), ("float16", 2e-3)])
@pytest.mark.parametrize("names", [sorted(FLOATS)[k::4] for k in range(4)], ids=lambda names: names[0])
def test_functions_of_floats(names, dtype, rtol):
    feeds, made, expected = {}, [], []
    for name in names:
        reference, low, high = FLOATS[name]
        a = te.placeholder((31,), dtype, name=f"in_{name}")
        feeds[a] = np.linspace(low, high, 31).astype(dtype)
        made.append(getattr(topi, name)(a))
        wanted = reference(feeds[a].astype("float64"))
        expected.append(wanted if wanted.dtype == bool else wanted.astype(dtype))
    check(made, feeds, expected, rtol=rtol, atol=rtol)


def test_clip_keeps_nan():
    a = te.placeholder((3,), name="a")
    x = np.array([np.nan, np.inf, -1], "float32")
    check(topi.clip(a, 0, 2), {a: x}, np.clip(x, 0, 2))


@pytest.mark.parametrize("dtype, to", [("float32", "int32"), ("int64", "float64"), ("uint16", "float16"), ("uint8", "int8")])
def test_reinterpret(dtype, to):
    a, x = tensor((3, 4), dtype)
    made = topi.reinterpret(a, to)
    assert made.op.tag == "elemwise"
    check(made, {a: x}, x.view(to), rtol=0, atol=0)
    with pytest.raises(DTypeError, match="differ in width"):
        topi.reinterpret(a, "float64" if dtype != "int64" else "int8")


def test_fast_functions():
    a = te.placeholder((4000,), name="a")
    x = np.linspace(-87, 87, 4000).astype("float32")
    check(topi.fast_exp(a), {a: x}, np.exp(x.astype("float64")).astype("float32"), rtol=1e-6, atol=0)
    y = np.linspace(-12, 12, 4000).astype("float32")
    check([topi.fast_tanh(a), topi.fast_erf(a)], {a: y}, [np.tanh(y), scipy.special.erf(y)], rtol=6e-7, atol=0)
    b, z = tensor((5,), "float64")
    check([topi.fast_exp(b), topi.fast_tanh(b), topi.fast_erf(b)], {b: z}, [np.exp(z), np.tanh(z), scipy.special.erf(z)])
    odd = np.array([np.nan, 200, -200], "float32")
    c = te.placeholder((3,), name="c")
    check(topi.fast_tanh(c), {c: odd}, np.tanh(odd))
    assert topi.fast_exp(c).op.info == te.ElementwiseOp("fast_exp")


@pytest.mark.parametrize("shape, axis", [((2, 3, 4), 1), ((2, 3), -1), ((1, 1), 0), (((n, 3), 2), 1)])
def test_relu_family(shape, axis):
    a, x = tensor(shape)
    s, slope = tensor((shape[axis],), name="slope")
    by = slope.reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    made = topi.nn.prelu(a, s, axis)
    assert made.op.tag == "broadcast"
    check([topi.nn.relu(a), topi.nn.leaky_relu(a, 0.25), made], {a: x, s: slope},
          [np.maximum(x, 0), np.where(x > 0, x, x * np.float32(0.25)), np.where(x > 0, x, x * by)])
    with pytest.raises(ShapeError, match=r"prelu of a: slope wrong has the shape \(9,\) and dimension"):
        topi.nn.prelu(te.placeholder((2, 3), name="a"), te.placeholder((9,), name="wrong"), 1)


@pytest.mark.parametrize("arguments, dtype", [((5,), "float32"), ((2, 9), "int32"), ((2, 9, 3), "int64"), ((9, 2, -2), "int8"),
                                              ((0, 1, 0.25), "float32"), ((3, 3), "int32"), ((5, 1), "float32"),
                                              ((1,), "int32")])
def test_arange(arguments, dtype):
    check(topi.arange(*arguments, dtype=dtype), {}, np.arange(*arguments, dtype=dtype))


def test_arange_of_symbols_and_shapes():
    a, x = tensor(((n, 7), 2, (m, 3)))
    check([topi.arange(n, dtype="int32"), topi.arange(1, n, 2, "int32"), topi.shape(a), topi.shape(a, "int64"),
           topi.ndarray_size(a), topi.ndarray_size(a, "float32")], {a: x},
          [np.arange(7, dtype="int32"), np.arange(1, 7, 2, dtype="int32"), np.array([7, 2, 3], "int32"), np.array([7, 2, 3]),
           np.array(42, "int32"), np.array(42, "float32")])
    b, y = tensor((3, 1))
    c, z = tensor(())
    check([topi.shape(b), topi.shape(c), topi.ndarray_size(c), topi.ndarray_size(b)], {b: y, c: z},
          [np.array([3, 1], "int32"), np.zeros(0, "int32"), np.array(1, "int32"), np.array(3, "int32")])
    assert topi.arange(3).op.info == InjectiveOp("arange")


@pytest.mark.parametrize("shapes", [((3,), (2,), (4,)), ((3,), (1,)), ((5,),), ((2,), ()), (((n, 3),), (2,))])
@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_meshgrid(shapes, indexing):
    pairs = [tensor(shape, name=f"a{k}") for k, shape in enumerate(shapes)]
    check(topi.meshgrid([a for a, _ in pairs], indexing), dict(pairs), np.meshgrid(*[x for _, x in pairs], indexing=indexing))


@pytest.mark.parametrize("call, error, words", [
    (lambda a: topi.arange(0, 5, 0), ArgumentError, "arange: the step is 0"),
    (lambda a: topi.arange(0, n, -1), ArgumentError, "the step is a positive int"),
    (lambda a: topi.meshgrid([a], "ij"), ShapeError, r"meshgrid: a has the shape \(2, 3\)"),
    (lambda a: topi.meshgrid([], "ij"), ArgumentError, "there is no tensor"),
    (lambda a: topi.meshgrid([a], "yx"), ArgumentError, "there is no indexing 'yx'"),
    (lambda a: topi.add(a, te.placeholder((2,), name="b")), ShapeError, r"\(2, 3\) of a and \(2\) of b do not broadcast"),
    (lambda a: topi.elemwise_sum([a, topi.transpose(a)]), ShapeError, r"a has the shape \(2, 3\) and T_transpose \(3, 2\)"),
    (lambda a: topi.clip(topi.cast(a, "int8"), -1000, 5), DTypeError, r"clip: a_min is -1000 for the dtype int8"),
    (lambda a: topi.full((2,), "int8", 2.5), DTypeError, r"full: fill_value is 2.5 for the dtype int8"),
    (lambda a: topi.nn.leaky_relu(topi.cast(a, "int8"), 0.5), DTypeError, r"leaky_relu of T_cast: alpha is 0.5"),
    (lambda a: topi.logical_not(topi.cast(a, "int8")), DTypeError, r"logical_not takes bool, not int8(.|\n)*equal\(x, 0\)"),
    (lambda a: topi.bitwise_not(a), DTypeError, r"bitwise_not takes integers, not float32"),
    (lambda a: topi.take(np.ones((3, 2)), a), ArgumentTypeError, r"take: a is an ndarray of shape \(3, 2\) where"),
    (lambda a: topi.take(a, [0, 1]), ArgumentTypeError, r"take: indices is .* where a tensor is meant"),
    (lambda a: topi.concatenate([a, np.ones(3)]), ArgumentTypeError, r"concatenate: a_tuple.1. is an ndarray of shape \(3,\)"),
])
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(te.placeholder((2, 3), name="a"))


def test_numbers_are_all_different():
    assert len(set(numbers((5, 5)).ravel())) == 25
