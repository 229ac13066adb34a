"""Entry points for C: they accept what calls from Python accept, and refuse the rest with the same words.

They are called by ctypes; `test_c_programs.py` has programs in C.
"""

import numpy as np
import pytest

from tedsl.errors import ArgumentError, ArgumentTypeError
from tests.codegen.export import programs
from tests.codegen.export.programs import library_of
from tests.codegen.export.tensors import tensor

OK, NO_MEMORY, BAD_TYPE, BAD_VALUE, ASSERTION = 0, 1, 2, 4, 16


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libraries")
    return {name: library_of(folder, name)
            for name in ("add", "symbolic", "sums", "halves", "large", "either", "first_above")}


def f32(*shape):
    return np.asarray(np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) + 1, np.float32)  # no scalar


def i32(*shape):
    return f32(*shape).astype(np.int32)


def strided(*shape):
    """An array whose last dimension has stride 2."""
    return i32(*shape[:-1], 2 * shape[-1])[..., ::2]


def misaligned(n):
    return np.frombuffer(bytearray(4 * n + 1), np.float32, n, 1)


def by_python(module, name, args):
    """The status and the message that a call from Python stands for."""
    try:
        module[name](*args)
    except ArgumentError as error:
        return BAD_TYPE if isinstance(error, ArgumentTypeError) else BAD_VALUE, error.problem
    return OK, "untouched"


x, y, out = f32(8), f32(8), np.zeros(8, np.float32)
REFUSED = [
    ("add", (x, y)), ("add", (x, y, out, out)), ("add", ()),
    ("add", (x.astype("float64"), y, out)), ("add", (x, y.astype("uint16"), out)), ("add", (x.astype("bool"), y, out)),
    ("add", (x.astype("complex64"), y, out)), ("add", (f32(2, 4), y, out)), ("add", (f32(), y, out)),
    ("add", (f32(1, 1, 1, 1, 1, 2, 4), y, out)), ("add", (f32(9), y, out)), ("add", (x, y, f32(7))),
    ("add", (misaligned(8), y, out)), ("add", (x, y, misaligned(8))), ("add", (x, y, x)), ("add", (x, y, y)),
    ("symbolic", (i32(3, 4), i32(5), 2, i32(3, 4))), ("symbolic", (i32(3, 4), i32(4), 2, i32(4, 3))),
    ("symbolic", (i32(3, 4), i32(4), 200, i32(3, 4))), ("symbolic", (i32(3, 4), i32(4), -129, i32(3, 4))),
    ("symbolic", (i32(3, 4), i32(4), np.uint64(2**63 + 5), i32(3, 4))),
    ("sums", (f32(3, 70), f32(3))), ("sums", (f32(4, 70), f32(2))), ("sums", (f32(4, 71), f32(4))),
    ("either", (2, f32(3), f32(3))), ("either", (True, f32(3), f32(4))),
    ("halves", (f32(4).astype("float16"), 65520.5, f32(4).astype("float16"))),
]


@pytest.mark.parametrize("name, args", REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_python_refuses_is_refused_in_the_same_words(libraries, name, args):
    module = programs.module(name)
    kernel = module.entry_name
    status, expected = by_python(module, kernel, args)
    assert status != OK
    before = [np.copy(a) for a in args]
    got, message = libraries[name](kernel, *args)
    assert got == status
    assert message == expected
    for a, b in zip(args, before):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name, args, words", [
    ("symbolic", (i32(3, 4), i32(4), 2, np.lib.stride_tricks.as_strided(i32(9), (3, 4), (4, 4))),
     "scale: argument 4 (C) is an output whose elements may share memory: strides (1, 1) in elements for shape (3, 4)"),
    ("symbolic", (i32(3, 4), i32(4), 2, np.broadcast_to(i32(4), (3, 4))),
     "scale: argument 4 (C) is an output whose elements share memory: strides (0, 1) in elements for shape (3, 4)"),
    ("add", (f32(16)[::2], y, out),
     "add: argument 1 (A) is not contiguous in row-major order: strides (2,) in elements for shape (8,)"),
    ("symbolic", (i32(3, 4), i32(4), 2, i32(3, 8)[:, 1::2].T[:3]),
     "scale: argument 4 (C) has shape (3, 3), it needs (n, m) with n = 3 from dimension 0 of A, m = 4 from dimension 1 of A, "
     "that is (3, 4)")])
def test_strides_are_told_in_elements(libraries, name, args, words):
    assert libraries[name](programs.module(name).entry_name, *args) == (BAD_VALUE, words)


@pytest.mark.parametrize("name, args, words", [
    ("symbolic", (i32(3, 4), i32(4), f32(3), i32(3, 4)),
     "scale: argument 3 (k) is a number of dtype int8, a tensor of 1 dimensions was given"),
    ("symbolic", (i32(3, 4), i32(4), 1.5, i32(3, 4)),
     "scale: argument 3 (k) is a number of dtype int8, a tensor of dtype float64 was given"),
    ("halves", (f32(4).astype("float16"), 1j, f32(4).astype("float16")),
     "halves: argument 2 (x) is a number of dtype float16, a tensor of dtype complex128 was given")])
def test_what_is_no_number(libraries, name, args, words):
    assert libraries[name](programs.module(name).entry_name, *args) == (BAD_TYPE, words)


@pytest.mark.parametrize("name, args, result", [
    ("add", (x, y), x + y), ("add", (x[::1], y), x + y),
    ("either", (False, x), -x), ("either", (1, x), x), ("either", (np.bool_(True), x), x),
    ("symbolic", (i32(3, 4), i32(4), 2), None), ("symbolic", (strided(3, 4), i32(8)[::-2], -3), None),
    ("symbolic", (np.broadcast_to(i32(4), (5, 4)), i32(4), np.int16(4)), None), ("symbolic", (i32(0, 4), i32(4), True), None),
    ("symbolic", (i32(1, 4)[::-1], i32(4), np.uint64(3)), None), ("sums", (f32(6, 70),), None),
    ("halves", (f32(5).astype("float16") / 4, 0.1), None), ("halves", (f32(5).astype("float16") / 4, np.float16(0.1)), None),
    ("halves", (f32(5).astype("float16") / 4, np.float32(-2)), None), ("halves", (f32(5).astype("float16") / 4, 3), None)])
def test_accepted_calls_compute_what_python_computes(libraries, name, args, result):
    module = programs.module(name)
    first = next(a for a in args if isinstance(a, np.ndarray))
    shape = first.shape[:1] if name == "sums" else first.shape
    outputs = [np.zeros(shape, first.dtype) for _ in range(3)]
    module(*args, outputs[0])
    assert libraries[name](module.entry_name, *args, outputs[1]) == (OK, "untouched")
    np.testing.assert_array_equal(outputs[1], outputs[0] if result is None else result)
    if name == "symbolic":
        wide = np.zeros((*shape[:-1], 3 * shape[-1]), "int32")[..., ::3]
        assert libraries[name](module.entry_name, *args, wide) == (OK, "untouched")
        np.testing.assert_array_equal(wide, outputs[0])


def test_strides_that_are_absent_mean_a_compact_array(libraries):
    result = np.zeros(8, np.float32)
    assert libraries["add"]("add", tensor(x, strides=None), y, tensor(result, strides=None))[0] == OK
    np.testing.assert_array_equal(result, x + y)
    a, c = i32(3, 4), np.zeros((3, 4), np.int32)
    assert libraries["symbolic"]("scale", tensor(a, strides=None), i32(4), 2, c)[0] == OK
    np.testing.assert_array_equal(c, a * 2 + i32(4))


def test_a_tensor_may_begin_behind_its_pointer(libraries):
    result = np.zeros(8, np.float32)
    moved = tensor(x)
    moved.data, moved.byte_offset = moved.data - 64, 64
    assert libraries["add"]("add", moved, y, result)[0] == OK
    np.testing.assert_array_equal(result, x + y)


@pytest.mark.parametrize("change, words, status", [
    ({"device_type": 2}, "add: argument 1 (A) lives on another device (DLPack kind 2)", BAD_TYPE),
    ({"lanes": 4}, "add: argument 1 (A) has dtype float32x4, it needs float32", BAD_TYPE),
    ({"code": 3, "bits": 64}, "add: argument 1 (A) has dtype handle, it needs float32", BAD_TYPE),
    ({"code": 17}, "add: argument 1 (A) has dtype of DLPack's code 17 and 32 bits, it needs float32", BAD_TYPE),
    ({"shape": None}, "add: argument 1 (A) has 1 dimensions and no shape", BAD_VALUE),
    ({"ndim": 2**31 - 1}, "add: argument 1 (A) has 2147483647 dimensions, shape (); it needs 1, shape (8,)", BAD_VALUE),
    ({"ndim": -1}, "add: argument 1 (A) has -1 dimensions, shape (); it needs 1, shape (8,)", BAD_VALUE),
    ({"data": None}, "add: argument 1 (A) has no data: its pointer is NULL", BAD_VALUE),
    ({"byte_offset": 2}, "add: argument 1 (A) is misaligned: its elements do not start at multiples of 4 bytes", BAD_VALUE)])
def test_tensors_that_numpy_cannot_make_are_refused(libraries, change, words, status):
    assert libraries["add"]("add", tensor(x, **change), y, out) == (status, words)


def test_nothing_is_read_through_null(libraries):
    assert libraries["add"]("add", None, y, out) == (BAD_TYPE, "add: argument 1 (A) is NULL")
    assert libraries["add"]("add", x, y, out, count=-1) == (BAD_TYPE, "add takes 3 arguments (A, B, C), -1 given")
    a = tensor(i32(3, 4))
    a.shape[0] = -3
    assert libraries["symbolic"]("scale", a, i32(4), 2, i32(3, 4)) == (
        BAD_VALUE, "scale: argument 1 (A) has shape (-3, 4), and an extent is at least 0")


def test_the_message_is_cut_to_the_room_that_there_is(libraries):
    assert libraries["add"]("add", x, y, size=10) == (BAD_TYPE, "add takes")
    assert libraries["add"]("add", x, y, size=0)[0] == BAD_TYPE


def test_what_only_its_bounds_say_may_overlap_is_refused(libraries):
    a = i32(3, 8)
    assert libraries["symbolic"]("scale", a[:, ::2], i32(4), 1, a[:, 1::2]) == (
        BAD_VALUE, "scale: argument 4 (C) is an output and may overlap argument 1 (A): one begins before the other ends")
    assert libraries["symbolic"]("scale", a[:, ::2][:0], i32(4), 1, a[:, 1::2][:0])[0] == OK


def test_many_outputs_are_compared_with_each_other(tmp_path):
    call = library_of(tmp_path, "many")
    arrays = [f32(5) for _ in range(41)]
    assert call("many", *arrays) == (OK, "untouched")
    np.testing.assert_array_equal(arrays[40], arrays[0] * 39)
    whole = f32(9)
    for places, words in (((7, 30), "many: argument 8 (C6) is an output and overlaps argument 31 (C29)"),
                          ((0, 40), "many: argument 41 (C39) is an output and overlaps argument 1 (A)")):
        shared = list(arrays)
        shared[places[0]], shared[places[1]] = whole[:5], whole[4:]
        assert call("many", *shared) == (BAD_VALUE, words)
    empty = [whole[:0] for _ in range(41)]
    assert call("many", *empty)[0] == OK
    strided = list(arrays)
    strided[3], strided[9] = whole[:5], f32(18)[::2][:5]
    assert call("many", *strided)[0] == OK
    assert (tmp_path / "libmany.so").stat().st_size < 200_000


def test_a_number_that_is_returned_and_an_assertion(libraries):
    call = libraries["first_above"]
    result = np.zeros((), np.int32)
    assert call("first_above", f32(8), 3.5, result) == (OK, "untouched")
    assert result == 3
    assert call("first_above", f32(8)[::-2], 5.0, result)[0] == OK and result == 0
    for a in (f32(8), f32(8)[::-1]):  # each of the two versions has a number for it
        status, message = call("first_above", a, np.float32(-1), result)
        assert status >= ASSERTION and message == "first_above: x must be above 0, at 100 %"
    assert call("first_above", f32(8), 1.0) == (BAD_TYPE, "first_above takes 3 arguments (A, x, result), 2 given")
    assert call("first_above", f32(8), 1.0, np.zeros((), np.int64)) == (
        BAD_TYPE, "first_above: argument 3 (result) has dtype int64, it needs int32")
    assert call("first_above", f32(8), 1e39, result) == (
        BAD_VALUE, "first_above: argument 2 (x) is 1e+39, which does not fit float32")


def test_words_of_the_program_are_printed_as_they_are(tmp_path):
    call = library_of(tmp_path, "marked")
    assert call("marked", np.ones(1, np.int32)) == (OK, "untouched")
    assert call("marked", np.zeros(1, np.int32)) == (ASSERTION, f"marked: {programs.MARKED}")


def test_memory_that_is_not_there_is_said(libraries):
    result = np.zeros(1, np.float32)
    assert libraries["large"]("large", f32(1), 5, result) == (OK, "untouched") and result == 10
    assert libraries["large"]("large", f32(1), 2**45, result) == (
        NO_MEMORY, "large: a temporary buffer could not be allocated")
