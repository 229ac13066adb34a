"""Data types are interned strings; promotion as it is written down, and constants that fit or say so."""

import copy
import pickle

import numpy as np
import pytest

from tedsl.errors import DTypeError
from tedsl.ir import build
from tedsl.ir.dtype import KNOWN, dtype, round_float, wrap_integer
from tedsl.ir.expr import IntImm, Var


def test_a_dtype_is_one_object_and_a_string():
    assert dtype("float32") is dtype(np.float32) is dtype(np.dtype("float32")) is dtype(dtype("float32"))
    assert dtype("float32") == "float32" and dtype("float32x4").element is dtype("float32")
    assert dtype(int) == "int32" and dtype(float) == "float32" and dtype(bool) == "bool" and dtype("uint1") is dtype("bool")
    assert pickle.loads(pickle.dumps(dtype("int8x4"))) is copy.deepcopy(dtype("int8x4")) is dtype("int8x4")


def test_parts_of_a_dtype():
    of = dtype("uint16x8")
    assert (of.code, of.bits, of.lanes, of.bytes, of.min_value, of.max_value) == ("uint", 16, 8, 2, 0, 65535)
    assert of.is_integer and of.is_uint and of.is_vector and not of.is_int and not of.is_float
    assert dtype("bool").bytes == 1 and not dtype("bool").is_integer


@pytest.mark.parametrize("name", ["float31", "half", "float32x0", "str", object, "int128", None])
def test_unknown_dtypes_list_the_known_ones(name):
    with pytest.raises(DTypeError, match="int8"):
        dtype(name)


ORDER = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
# Row by column: the dtype of a sum, by initial letters.
TABLE = """
    i32 i32 i32 i32 i32 i32 u32 i64 u64 f16 f32 f64
    i32 i8  u8  i16 u16 i32 u32 i64 u64 f16 f32 f64
    i32 u8  u8  i16 u16 i32 u32 i64 u64 f16 f32 f64
    i32 i16 i16 i16 u16 i32 u32 i64 u64 f16 f32 f64
    i32 u16 u16 u16 u16 i32 u32 i64 u64 f16 f32 f64
    i32 i32 i32 i32 i32 i32 u32 i64 u64 f16 f32 f64
    u32 u32 u32 u32 u32 u32 u32 i64 u64 f16 f32 f64
    i64 i64 i64 i64 i64 i64 i64 i64 u64 f16 f32 f64
    u64 u64 u64 u64 u64 u64 u64 u64 u64 f16 f32 f64
    f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f64
    f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
    f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
"""


def test_the_table_of_promotion():
    names = {"i": "int", "u": "uint", "f": "float"}
    for a, row in zip(ORDER, TABLE.strip().splitlines()):
        for b, short in zip(ORDER, row.split()):
            expected = names[short[0]] + short[1:]
            assert build.promote(dtype(a), dtype(b)) == expected, (a, b)
            assert build.add(Var("x", a), Var("y", b)).dtype == expected, (a, b)


@pytest.mark.parametrize("other, expected", [("int64", "bfloat16"), ("float32", "float32"), ("bool", "bfloat16")])
def test_bfloat16_with_others(other, expected):
    assert build.promote(dtype("bfloat16"), dtype(other)) == expected


def test_the_two_halves_have_no_common_dtype():
    with pytest.raises(DTypeError, match="cast both to float32"):
        build.add(Var("x", "float16"), Var("y", "bfloat16"))


@pytest.mark.parametrize("of", [k for k in KNOWN if k != "bool"])
def test_a_number_takes_the_dtype_of_the_other_operand(of):
    assert build.add(Var("x", of), 1).dtype == build.mul(2, Var("x", of)).dtype == of


def test_a_float_beside_an_integer_is_float32():
    assert build.add(Var("x", "int64"), 1.5).dtype == "float32"


@pytest.mark.parametrize("of, value", [("int8", 128), ("uint8", -1), ("int32", 2**31), ("uint64", 2**64)])
def test_a_number_that_does_not_fit_names_the_cast(of, value):
    with pytest.raises(DTypeError, match="astype"):
        build.add(Var("x", of), value)


def test_constants():
    assert build.const(3).dtype == "int32" and build.const(2**31).dtype == "int64" and build.const(1.0).dtype == "float32"
    assert build.const(True).dtype == "bool" and build.const(2, "float32").value == 2.0
    with pytest.raises(DTypeError, match="not representable"):
        build.const(1.5, "int32")
    with pytest.raises(DTypeError):
        IntImm(dtype("int8"), 200)


@pytest.mark.parametrize("of, kind", [("float16", np.float16), ("float32", np.float32)])
def test_rounding_is_numpys(of, kind):
    values = np.random.default_rng(0).standard_normal(2000) * 10.0 ** np.random.default_rng(1).uniform(-50, 50, 2000)
    with np.errstate(over="ignore"):
        assert all(round_float(float(v), dtype(of)) == float(kind(v)) for v in values)


def test_rounding_to_bfloat16_is_that_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.random.default_rng(0).standard_normal(2000) * 10.0 ** np.random.default_rng(1).uniform(-42, 39, 2000)
    values = values[np.abs(values) < 3e38].astype(np.float32)  # ml_dtypes rounds doubles twice
    assert all(round_float(float(v), dtype("bfloat16")) == float(ml_dtypes.bfloat16(v)) for v in values)


def test_wrapping():
    assert [wrap_integer(v, dtype("int8")) for v in (127, 128, -129, 256)] == [127, -128, 127, 0]
    assert wrap_integer(-1, dtype("uint16")) == 65535
