"""PTX in the simulator has the bits of the processor's code: every function, every dtype, special values."""

import ml_dtypes
import numpy as np
import pytest

import tedsl
from tedsl import te
from tests.like_devices import LIKE_DEVICES

FUNCTIONS = ("exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "sqrt", "rsqrt", "sin", "cos",
             "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "floor", "ceil", "trunc", "round",
             "nearbyint")
N = 256


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    monkeypatch.setenv("TEDSL_CUDA", "sim")


def floats(dtype, seed):
    rng = np.random.default_rng(seed)
    special = [0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 0.5, -1.5]
    parts = [rng.normal(size=100), rng.normal(size=60) * 1e6, rng.uniform(-1, 1, 50), 10.0 ** rng.uniform(-40, 38, 38), special]
    with np.errstate(over="ignore"):
        return rng.permutation(np.concatenate(parts)).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def integers(dtype, seed):
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    values = rng.integers(info.min, info.max, N, dtype=dtype, endpoint=True)
    values[:64] = rng.integers(0, 9, 64)
    return values


def same_bits(formulas, dtype, a, b):
    """Each of the formulas, as a kernel of its own in one module."""
    def schedule():
        A, B = te.placeholder((N,), dtype, "A"), te.placeholder((N,), dtype, "B")
        outs = [te.compute((N,), lambda i, f=formula: f(A[i], B[i]), name=f"C{k}") for k, formula in enumerate(formulas)]
        s = te.create_schedule([out.op for out in outs])
        for out in outs:
            block, thread = s[out].split(out.op.axis[0], factor=64)
            s[out].bind(block, te.thread_axis("blockIdx.x"))
            s[out].bind(thread, te.thread_axis("threadIdx.x"))
        return s, [A, B, *outs]

    results = []
    for target, device in (("cuda -arch=sm_80", tedsl.cuda(0)), (LIKE_DEVICES, tedsl.cpu(0))):
        s, args = schedule()
        module = tedsl.build(s, args, target=target)
        arrays = [tedsl.nd.array(a, device), tedsl.nd.array(b, device)]
        arrays += [tedsl.nd.empty((N,), str(arg.dtype), device) for arg in args[2:]]
        module(*arrays)
        results.append([array.numpy() for array in arrays[2:]])
    for k, (device, processor) in enumerate(zip(*results)):
        np.testing.assert_array_equal(device.astype("float64"), processor.astype("float64"), err_msg=f"formula {k} of {dtype}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions(dtype):
    same_bits([lambda x, y, name=name: getattr(te, name)(x) for name in FUNCTIONS] + [te.power], dtype, floats(dtype, 1),
              floats(dtype, 2))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_arithmetic_of_floats(dtype):
    kinds = [of for of in ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64") if of != dtype]
    casts = [lambda x, y, of=of: x.astype(of) for of in kinds]
    same_bits([lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x * y + x, te.max, te.min, *casts],
              dtype, floats(dtype, 3), floats(dtype, 4))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_arithmetic_of_integers(dtype):
    casts = [lambda x, y, of=of: x.astype(of) for of in ("float16", "bfloat16", "float32", "float64")]
    divisions = [te.floordiv, te.floormod, te.truncdiv, te.truncmod]
    same_bits([lambda x, y: x + y, lambda x, y: x * y, *divisions, lambda x, y: x << y, lambda x, y: x >> y,
               lambda x, y: (x & y) | (x ^ ~y), lambda x, y: te.popcount(x), te.max, *casts], dtype, integers(dtype, 5),
              integers(dtype, 6))


@pytest.mark.parametrize("n", [3, 5, 7, 13])
def test_arrays_that_end_anywhere(n):
    """Loads of neighbours are joined, but not beyond the end of an array."""
    A = te.placeholder((n,), "int32", "A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    for vector in (False, True):
        s = te.create_schedule(B.op)
        s[B].env_threads([te.thread_axis((0, 1), "threadIdx.x")])
        if vector:
            s[B].vectorize(B.op.axis[0])
        a = tedsl.nd.array(np.arange(n, dtype="int32"), tedsl.cuda(0))
        b = tedsl.nd.empty((n,), "int32", tedsl.cuda(0))
        tedsl.build(s, [A, B], target="cuda")(a, b)
        np.testing.assert_array_equal(b.numpy(), np.arange(n) + 1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_fmod(dtype):
    """Exact, for numbers of any two exponents, denormal ones too."""
    rng = np.random.default_rng(4)
    size = 8 if dtype == "float64" else 4 if dtype == "float32" else 2
    a, b = (np.frombuffer(rng.bytes(size * N), ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype).copy() for _ in "ab")
    a[:100], b[:100] = floats(dtype, 5)[:100], floats(dtype, 6)[:100]
    with np.errstate(all="ignore"):
        b[100:150] = a[100:150] / 3
    b[150:200] = np.frombuffer(bytes(range(1, 51)) + bytes(50 * (size - 1)), b.dtype)[:50]
    same_bits([te.fmod, lambda x, y: te.fmod(x, y) + x], dtype, a, b)
