"""The way into a kernel: what is accepted, what is refused and with which words. Nothing is written when a check fails.

Every refusal is tried through the compiled entry point and through the check in Python.
"""

import array as python_array
import ctypes
import gc
import sys
import time

import numpy as np
import pytest

from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError, TedslError
from tedsl.ir import build
from tedsl.ir.expr import SizeVar, Var
from tedsl.runtime import array as nd
from tedsl.runtime.signature import signature_of
from tests.refusing import refused
from tests.runtime.stand_in import StandIn, array, function

N, M = Var("n"), Var("m")


@pytest.fixture(scope="module")
def add():
    """C[8] = A[8] + B[8]."""
    return StandIn(function(array("A", 8), array("B", 8), array("C", 8), outputs="C", name="add"))


@pytest.fixture(scope="module")
def symbolic():
    """C[n, m] = A[n, m] + B[m], any strides."""
    return StandIn(function(array("A", N, M, symbolic_strides=True), array("B", M, symbolic_strides=True),
                            array("C", N, M, symbolic_strides=True), outputs="C", name="symbolic"))


def scalar_kernel(dtype):
    return StandIn(function(array("A", 4), Var("x", dtype), outputs="A", name="scale"))


def f32(*shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def refuses(stand_in, args, words, error=ArgumentError):
    """All ways refuse `args` with these words, and none runs the kernel or changes an array."""
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    before = [a.tobytes() for a in arrays]
    for call in stand_in.ways:
        stand_in.forget()
        refused(lambda way=call: way(*args), match=words, error=error)
        assert stand_in.seen(0) == 0
    assert [a.tobytes() for a in arrays] == before


def misaligned():
    return np.frombuffer(bytearray(33), np.float32, 8, 1)


def read_only():
    made = f32(8)
    made.flags.writeable = False
    return made


# --- refused ----------------------------------------------------------------------------------------------------------

def test_too_few_arguments(add):
    refuses(add, (f32(8), f32(8)), r"add takes 3 arguments \(A, B, C\), 2 given", ArgumentTypeError)


@pytest.mark.parametrize("memory", [bytearray, lambda data: memoryview(bytearray(data))], ids=["bytearray", "memoryview"])
def test_memory_without_a_dtype(add, memory):
    refuses(add, (f32(8), f32(8), memory(32)), r"hint: view its bytes as an array: numpy\.frombuffer\(C, 'float32'\)$")
    refuses(add, (memory(32), f32(8), f32(8)), r"hint: view its bytes as an array: numpy\.frombuffer\(A, 'float32'\)$")


def test_too_many_arguments(add):
    refuses(add, (f32(8),) * 4, "add takes 3 arguments .*4 given", TypeError)


def test_keywords_are_not_taken(add):
    for call in add.ways:
        with pytest.raises(TypeError, match="by name: C"):
            call(f32(8), f32(8), C=f32(8))


def test_wrong_dtype(add):
    refuses(add, (f32(8), f32(8).astype("float64"), f32(8)),
            r"argument 2 \(B\) has dtype float64, it needs float32\n  hint: convert it: x.astype\('float32'\)",
            ArgumentTypeError)


@pytest.mark.parametrize("other", ["int32", "uint32", "float16", "bool", "complex64", "U3", "object", "datetime64[s]"])
def test_other_dtypes(add, other):
    refuses(add, (f32(8), np.zeros(8, other), f32(8)), "argument 2 .* has dtype", TypeError)


def test_structured_arrays(add):
    refuses(add, (f32(8), np.zeros(8, "f4,f4"), f32(8)), "argument 2 .* has dtype", ArgumentTypeError)


def test_byte_swapped(add):
    refuses(add, (f32(8), f32(8).astype(">f4"), f32(8)), r"argument 2 \(B\) is byte-swapped \(>f4\)\n  hint: convert",
            ArgumentTypeError)


def test_wrong_rank(add):
    refuses(add, (f32(8, 1), f32(8), f32(8)), r"argument 1 \(A\) has 2 dimensions, shape \(8, 1\); it needs 1, shape \(8,\)")


def test_rank_zero_is_not_rank_one(add):
    refuses(add, (np.array(1, np.float32), f32(8), f32(8)), "has 0 dimensions")


def test_wrong_shape(add):
    refuses(add, (f32(8), f32(8), f32(9)), r"argument 3 \(C\) has shape \(9,\), it needs \(8,\)")


def test_read_only_output(add):
    refuses(add, (f32(8), f32(8), read_only()), r"argument 3 \(C\) is an output and the array is read-only")


@pytest.mark.parametrize("x", [f32(16)[::2], f32(8)[::-1], f32(8).astype("float64"), f32(8).astype(">f4"), misaligned(),
                               read_only(), [0.0] * 8],
                         ids=["strided", "reversed", "float64", "byte-swapped", "misaligned", "read-only", "list"])
def test_the_hint_for_an_output_keeps_its_result(add, x):
    """The hint runs as it is written; the result is in `x` afterwards, or where nothing can be written to `x`, in `out`."""
    a, b = f32(8), f32(8) + 1

    def adds(left, right, out):
        add.fast(left, right, out)  # accepted
        out[:] = left + right

    with pytest.raises(ArgumentError) as refusal:
        add.fast(a, b, x)
    names = {"numpy": np, "C": x, "shape": 8, "A": a, "B": b, "add": adds}
    exec(refusal.value.hint.split(": ", 1)[1] if "copy back" not in refusal.value.hint
         else refusal.value.hint.split("copy back: ")[1], names)
    copied_back = "C[...] = out" in refusal.value.hint
    assert copied_back == (isinstance(x, np.ndarray) and x.flags.writeable)
    np.testing.assert_array_equal(x if copied_back else names["out"], a + b)


def test_misaligned(add):
    refuses(add, (misaligned(), f32(8), f32(8)), r"argument 1 \(A\) is misaligned.*\n  hint: pass a copy: x.copy\(\)")


def test_masked_array(add):
    refuses(add, (np.ma.masked_array(f32(8)), f32(8), f32(8)), "is a masked array", ArgumentTypeError)


def test_strided_where_strides_are_fixed(add):
    refuses(add, (f32(16)[::2], f32(8), f32(8)), r"argument 1 \(A\) is not contiguous(.|\n)*numpy.ascontiguousarray")


def test_reversed_where_strides_are_fixed(add):
    refuses(add, (f32(8)[::-1], f32(8), f32(8)), "is not contiguous")


def test_in_place(add):
    data = f32(8)
    refuses(add, (data, f32(8), data),
            r'argument 3 \(C\) is an output and overlaps argument 1 \(A\)\n.*PassContext\(config=\{"tir.noalias": False\}\)')


def test_the_order_of_arguments_is_said_where_they_overlap(add):
    data = f32(8)
    refuses(add, (f32(8), data, data), r"argument 3 \(C\) is an output and overlaps argument 2 \(B\)\n"
                                       r"  hint: the order is add\(A, B, C\), where C is the output; to compute in place")


@pytest.mark.parametrize("order, pair", [((2, 1, 0), "1 and 3"), ((0, 2, 1), "2 and 3"), ((1, 0, 2), "1 and 2")])
def test_exchanged_arguments_are_found(order, pair):
    last = StandIn(function(array("A", 4, 5), array("B", 5), array("C", 4), outputs="C", name="last"))
    given = (f32(4, 5), f32(5), f32(4))
    refuses(last, [given[k] for k in order],
            rf"hint: arguments {pair} seem to be exchanged: the order is last\(A, B, C\), where C is the output")


def test_a_number_exchanged_with_an_array():
    refuses(scalar_kernel("int32"), (3, f32(4)), r"arguments 1 and 2 seem to be exchanged: the order is scale\(A, x\)",
            ArgumentTypeError)


def test_arguments_of_one_kind_are_not_called_exchanged(add):
    refuses(add, (f32(8), f32(8), f32(9)),
            r"needs \(8,\)\n  hint: allocate the output: numpy.empty\(\(8,\), 'float32'\)$")


def test_partial_overlap(add):
    data = f32(12)
    refuses(add, (data[:8], f32(8), data[4:]), "overlaps argument 1")


def test_many_outputs_are_compared_in_loops_with_all_arrays():
    """Each output with each array behind it and with the inputs, which come first here; inputs may be one array."""
    names = [f"A{k}" for k in range(20)]
    many = StandIn(function(*(array(name, 4) for name in names), outputs=names[2:], name="many"))
    arrays = [f32(4) for _ in names]
    arrays[1] = arrays[0]
    accepted(many, *arrays)
    for first, second in ((2, 19), (0, 19), (18, 19), (1, 2), (2, 3)):
        given = list(arrays)
        given[second] = given[first]
        refuses(many, given, "overlaps")


@pytest.mark.parametrize("value, shown", [
    (None, "None"), (1.5, "float 1.5"), ([0.0] * 8, "list"), ("x", "str"), (object(), "object")])
def test_what_is_no_array(add, value, shown):
    refuses(add, (f32(8), value, f32(8)), rf"argument 2 \(B\) is an array, {shown}", ArgumentTypeError)


def test_read_only_bytes_as_output(add):
    refuses(add, (f32(8), f32(8), memoryview(bytes(32)).cast("f")), "read-only")


def test_an_array_of_another_device(add):
    class Elsewhere:
        def __dlpack__(self, **options):
            raise AssertionError("not asked")

        def __dlpack_device__(self):
            return 2, 0

    refuses(add, (f32(8), Elsewhere(), f32(8)), "lives on another device", ArgumentTypeError)


def test_an_array_that_does_not_give_its_memory(add):
    class Unwilling:
        def __dlpack__(self, **options):
            raise RuntimeError("it requires grad")

        def __dlpack_device__(self):
            return 1, 0

    refuses(add, (f32(8), Unwilling(), f32(8)), "does not give its memory: it requires grad", ArgumentTypeError)


def test_dimensions_of_one_name_must_agree(symbolic):
    refuses(symbolic, (f32(3, 4), f32(5), f32(3, 4)),
            r"argument 2 \(B\) has shape \(5,\), it needs \(m,\) with m = 4 from dimension 1 of A, that is \(4,\)")


def test_an_output_whose_elements_share_memory(symbolic):
    out = np.lib.stride_tricks.as_strided(f32(4), (3, 4), (0, 4))
    refuses(symbolic, (f32(3, 4), f32(4), out), "is an output whose elements share memory")


def test_strides_that_are_no_multiple_of_the_element(symbolic):
    packed = np.zeros(4, "f4, u1")["f0"]
    if packed.flags.aligned:
        pytest.skip("this numpy calls it aligned")
    refuses(symbolic, (f32(3, 4), packed, f32(3, 4)), "misaligned|stride of 5 bytes")


def test_interleaved_outputs_are_told_apart_exactly():
    pair = StandIn(function(array("A", N, symbolic_strides=True), array("B", N, symbolic_strides=True), outputs="AB",
                            name="two"))
    data = f32(16)
    pair.fast(data[::2], data[1::2])
    assert pair.seen(0) == 1
    refuses(pair, (data[::2], data[2::2][:8].repeat(1)[:7]), "shape")
    refuses(pair, (data[::2], data[2:10]), "overlaps argument 2")


def hard_overlap():
    """Arrays of no memory to speak of, for which the exact test of overlap takes minutes."""
    data = np.zeros(192163377, np.int8)
    strided = np.lib.stride_tricks.as_strided
    return strided(data, (1049, 1049, 1049), (36674, 61119, 85569)), \
        strided(data[64023025:], (300, 300, 1), (12223, 12224, 1))


def test_the_test_of_overlap_is_bounded():
    """Strides made to be hard are refused with that reason in milliseconds, as outputs too."""
    pair = StandIn(function(array("A", N, M, Var("k"), dtype="int8", symbolic_strides=True),
                            array("B", *map(Var, "xyz"), dtype="int8", symbolic_strides=True), outputs="B", name="pair"))
    a, b = hard_overlap()
    start = time.process_time()
    for call in (pair.fast, pair.checked):
        with pytest.raises(ArgumentError, match=r"2 \(B\) is an output and may overlap argument 1 \(A\): strides "
                           r"\(12223, 12224, 1\) and .* bytes are not decided within 100,000 candidates\n  hint: pass an"):
            call(a, b)
        with pytest.raises(ArgumentError, match="an output whose elements may share memory"):
            call(b, a)
    assert time.process_time() - start < 5
    assert pair.seen(0) == 0


def test_elements_that_interleave_are_told_apart_exactly(symbolic):
    """No stride reaches beyond what the smaller one spans, and no two elements meet: 0, 8, 16 and 12, 20, 28."""
    data = f32(8)
    symbolic.fast(f32(2, 3), f32(3), np.lib.stride_tricks.as_strided(data, (2, 3), (12, 8)))
    refuses(symbolic, (f32(2, 3), f32(3), np.lib.stride_tricks.as_strided(data, (2, 3), (16, 8))), "elements share memory")


def test_a_dimension_that_no_value_fits():
    even = StandIn(function(array("A", build.mul(N, 2)), array("B", N), outputs="B", name="even"))
    even.fast(f32(10), f32(5))
    assert even.seen(3) == 5
    refuses(even, (f32(9), f32(4)), r"it needs \(.*\) with n = 4 from dimension 0 of B, that is \(8,\)")
    only = StandIn(function(array("A", build.mul(N, 2)), outputs="A", name="only"))
    refuses(only, (f32(9),), r"argument 1 \(A\): dimension 0 is 9, which no n makes equal to")


def test_a_size_below_zero():
    size = SizeVar("size")
    plus = StandIn(function(array("A", build.add(size, 3)), outputs="A", name="plus"))
    plus.fast(f32(3))
    assert plus.seen(2) == 0
    refuses(plus, (f32(2),), "so size would be -1, below 0")


def test_a_dimension_beyond_the_dtype_of_its_variable():
    small = Var("small", "int8")
    kernel = StandIn(function(array("A", small, dtype="uint8"), outputs="A", name="short"))
    kernel.fast(np.zeros(127, np.uint8))
    refuses(kernel, (np.zeros(128, np.uint8),), "so small is 128, which does not fit int8(.|\n)*te.var")


@pytest.mark.parametrize("dtype, value", [("int32", 2**31), ("int32", -2**31 - 1), ("uint8", 256), ("uint8", -1),
                                          ("int64", 2**63), ("uint64", -1), ("uint64", 2**64), ("float32", 1e300),
                                          ("float16", 70000.0), ("bool", 2)])
def test_a_number_that_does_not_fit(dtype, value):
    refuses(scalar_kernel(dtype), (f32(4), value), r"argument 2 \(x\) is .*does not fit")


def test_a_negative_size():
    kernel = StandIn(function(array("A", 4), SizeVar("size"), outputs="A", name="sized"))
    accepted(kernel, f32(4), 0)
    refuses(kernel, (f32(4), -1), r"argument 2 \(size\) is -1, and a size is at least 0")


@pytest.mark.parametrize("dtype, value", [("int32", 1.5), ("int32", "1"), ("int32", None), ("float32", "1"), ("float32", 1j),
                                          ("float32", None), ("int32", f32(4)), ("float32", f32(4))])
def test_what_is_no_number(dtype, value):
    refuses(scalar_kernel(dtype), (f32(4), value), r"argument 2 \(x\) is a number of dtype", ArgumentTypeError)


def test_a_shape_that_no_argument_determines_is_refused_when_built():
    with pytest.raises(LoweringError, match=r"no argument determines n, m(.|\n)*add n, m to the arguments"):
        signature_of(function(array("A", build.mul(N, M))))


# --- accepted ---------------------------------------------------------------------------------------------------------

def accepted(stand_in, *args):
    """All ways run the kernel, with the same arguments."""
    seen = []
    for call in stand_in.ways:
        stand_in.forget()
        call(*args)
        seen.append([stand_in.seen(k) for k in range(16)])
        assert stand_in.seen(0) != 0
    assert all(one == seen[0] for one in seen)
    return seen[0]


def test_plain_arrays(add):
    a, b, c = f32(8), f32(8), f32(8)
    assert accepted(add, a, b, c)[:4] == [1, a.ctypes.data, b.ctypes.data, c.ctypes.data]


def test_inputs_may_overlap_and_be_read_only(add):
    a = f32(8)
    a.flags.writeable = False
    accepted(add, a, a, f32(8))


def test_arrays_of_other_kinds(add):
    own, c = nd.array(f32(8)), f32(8)
    assert accepted(add, own, own, c)[1] == own._array.ctypes.data
    buffer = python_array.array("f", range(8))
    assert accepted(add, buffer, memoryview(buffer), c)[1] == buffer.buffer_info()[0]
    matrix = np.array(f32(8)).view(type("Sub", (np.ndarray,), {}))
    assert accepted(add, matrix, f32(8), c)[1] == matrix.ctypes.data


def test_dlpack_objects_also_as_output(add):
    class Foreign:
        def __init__(self, data):
            self.data = data

        def __dlpack__(self, **options):
            return self.data.__dlpack__()

        def __dlpack_device__(self):
            return 1, 0

    a, c = f32(8), f32(8)
    assert accepted(add, Foreign(a), a, Foreign(c))[1:4] == [a.ctypes.data, a.ctypes.data, c.ctypes.data]


def test_dtypes_are_accepted_by_meaning():
    for dtype, others in {"int64": ["int64", "longlong", "long"], "uint64": ["uint64", "ulonglong"], "int32": ["intc"],
                          "int8": ["byte"], "float64": ["double"], "bfloat16": ["uint16"], "bool": ["bool"]}.items():
        kernel = StandIn(function(array("A", 4, dtype=dtype), outputs="A", name="same"))
        for other in others:
            accepted(kernel, np.zeros(4, other))


def test_bfloat16_arrays():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kernel = StandIn(function(array("A", 4, dtype="bfloat16"), outputs="A", name="brain"))
    data = np.zeros(4, ml_dtypes.bfloat16)
    accepted(kernel, data)
    accepted(kernel, data)
    refuses(kernel, (np.zeros(4, np.float16),), "needs bfloat16", ArgumentTypeError)


def test_compact_arrays_take_the_compact_kernel(symbolic):
    seen = accepted(symbolic, f32(3, 4), f32(4), f32(3, 4))
    assert seen[0] == 2 and seen[4:7] == [3, 4, 0]


def test_strides_of_compact_arrays_need_not_fit_their_variables():
    small = [Var("stride", "int8"), Var("stride_1", "int8")]
    kernel = StandIn(function(array("A", N, M, strides=small), outputs="A", name="wide"))
    assert accepted(kernel, f32(2, 200))[0] == 2
    refuses(kernel, (f32(2, 400)[:, ::2],), r"the stride of dimension 0 is 400, so stride is 400, which does not fit int8")


def test_other_strides_take_the_general_kernel(symbolic):
    a = f32(4, 3).T
    seen = accepted(symbolic, a, f32(8)[::2], f32(3, 4))
    assert seen[0] == 1 and seen[4:11] == [3, 4, 1, 3, 2, 4, 1]


def test_negative_and_zero_strides_of_inputs(symbolic):
    seen = accepted(symbolic, f32(3, 4)[::-1, ::-1], np.broadcast_to(np.float32(1), (4,)), f32(3, 4))
    assert seen[0] == 1 and seen[6:9] == [-4, -1, 0]


def test_strided_outputs(symbolic):
    seen = accepted(symbolic, f32(3, 4), f32(4), f32(4, 3).T)
    assert seen[0] == 1 and seen[9:11] == [1, 3]


def test_dimensions_of_extent_one_may_have_any_stride(symbolic):
    odd = np.lib.stride_tricks.as_strided(f32(4), (1, 4), (1000, 4))
    assert accepted(symbolic, odd, f32(4), f32(1, 4))[0] == 2


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_arrays_without_elements(symbolic, shape):
    seen = accepted(symbolic, f32(*shape), f32(shape[1]), f32(*shape))
    assert seen[4:6] == list(shape)


def test_without_noalias_a_call_in_place_is_allowed():
    kernel = StandIn(function(array("A", 8), array("C", 8), outputs="C", noalias=False, name="inplace"))
    data = f32(8)
    accepted(kernel, data, data)


@pytest.mark.parametrize("dtype, value, bits", [
    ("int32", 7, 7), ("int32", -1, -1), ("int32", True, 1), ("int32", np.int16(-3), -3), ("int8", -128, -128),
    ("uint8", 255, 255),
    ("uint64", 2**64 - 1, -1), ("bool", True, 1), ("bool", 0, 0),
    ("float64", 0.1, 0x3FB999999999999A), ("float32", 0.5, 0x3F000000), ("float32", np.float32(0.5), 0x3F000000),
    ("float32", 2, 0x40000000), ("float32", float("inf"), 0x7F800000), ("float16", 0.1, 0x3DCCC000),
    ("bfloat16", 0.1, 0x3DCD0000)])
def test_numbers(dtype, value, bits):
    kernel = scalar_kernel(dtype)
    for call in (kernel.fast, kernel.checked):
        kernel.forget()
        call(f32(4), value)
        got = kernel.seen(2, ctypes.c_uint32) if dtype in ("float32", "float16", "bfloat16") else kernel.seen(2)
        assert kernel.seen(0) == 1 and got == bits


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_entry_point_rounds_numbers_as_python_does(dtype, monkeypatch):
    kernel = scalar_kernel(dtype)
    random = np.random.RandomState(0)
    ties = [sign * (k + half) * 2.0**power for sign in (1, -1) for k in (0, 1, 2, 1023, 1024, 2047) for half in (0, 0.5, 0.75)
            for power in (-149, -140, -133, -25, -24, -14, 0, 4)]
    values = [*ties, 65504.0, 65519.9, 2.0**-126, float("inf"), float("-inf"), -0.0, *random.uniform(-6e4, 6e4, 200).tolist(),
              *(random.uniform(-1, 1, 200) * 2.0**random.randint(-150, 15, 200)).tolist()]
    expected = [kernel.checked.prepare((f32(4), value)).slots[1] & 0xFFFFFFFF for value in values]
    monkeypatch.setattr(type(kernel.checked), "prepare", None)
    for value, bits in zip(values, expected):
        kernel.fast(f32(4), value)
        assert kernel.seen(2, ctypes.c_uint32) == bits, value


def test_nan_is_a_number():
    kernel = scalar_kernel("float32")
    kernel.fast(f32(4), float("nan"))
    assert kernel.seen(0) == 1


def test_a_scalar_may_name_a_dimension():
    kernel = StandIn(function(N, array("A", N), array("B", build.add(N, 1)), outputs="B", name="sized"))
    accepted(kernel, 5, f32(5), f32(6))
    refuses(kernel, (6, f32(5), f32(7)), r"has shape \(5,\), it needs \(n,\) with n = 6 from argument 1, that is \(6,\)")


def test_rank_zero():
    kernel = StandIn(function(array("A"), outputs="A", name="point"))
    accepted(kernel, np.array(1, np.float32))


@pytest.mark.parametrize("release", [False, True])
def test_statuses_become_exceptions(release):
    func = function(array("A", 4), outputs="A", name="fails")
    for call in StandIn(func, status=1, release=release).ways:
        with pytest.raises(MemoryError, match="fails: a temporary buffer"):
            call(f32(4))
    for call in StandIn(func, status=17, messages=["first", "n must be even"], release=release).ways:
        with pytest.raises(ArgumentError, match="fails: n must be even"):
            call(f32(4))


def test_large_arrays_are_worked_on_without_the_gil_and_counted(symbolic):
    accepted(symbolic, f32(300, 400), f32(400), f32(300, 400))


def test_references_are_balanced(add):
    a, b, c = f32(8), f32(8), f32(8)

    def references() -> list[int]:
        gc.collect()  # exceptions that hold their own frame, of this test or of others, hold `add` too
        return [sys.getrefcount(x) for x in (a, b, c, *(way.__self__ for way in add.ways[:-1]))]

    before = references()
    for call in add.ways[:-1] * 500:
        assert call(a, b, c) is None
        with pytest.raises(TedslError):
            call(a, b, a)
    assert references() == before
