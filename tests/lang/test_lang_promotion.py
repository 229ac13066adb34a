"""The dtype of arithmetic, written down as a table: rows and columns are the dtypes of the operands."""

import pytest

from tedsl import te
from tedsl.errors import DTypeError

NAMES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
         "float16", "bfloat16", "float32", "float64"]
TABLE = """
      bool i8   u8   i16  u16  i32  u32  i64  u64  f16  bf16 f32  f64
bool  i32  i32  i32  i32  i32  i32  u32  i64  u64  f16  bf16 f32  f64
i8    i32  i8   u8   i16  u16  i32  u32  i64  u64  f16  bf16 f32  f64
u8    i32  u8   u8   i16  u16  i32  u32  i64  u64  f16  bf16 f32  f64
i16   i32  i16  i16  i16  u16  i32  u32  i64  u64  f16  bf16 f32  f64
u16   i32  u16  u16  u16  u16  i32  u32  i64  u64  f16  bf16 f32  f64
i32   i32  i32  i32  i32  i32  i32  u32  i64  u64  f16  bf16 f32  f64
u32   u32  u32  u32  u32  u32  u32  u32  i64  u64  f16  bf16 f32  f64
i64   i64  i64  i64  i64  i64  i64  i64  i64  u64  f16  bf16 f32  f64
u64   u64  u64  u64  u64  u64  u64  u64  u64  u64  f16  bf16 f32  f64
f16   f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  -    f32  f64
bf16  bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 -    bf16 f32  f64
f32   f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64
f64   f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
"""
SHORT = {"bool": "bool", **{f"i{b}": f"int{b}" for b in (8, 16, 32, 64)}, **{f"u{b}": f"uint{b}" for b in (8, 16, 32, 64)},
         "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "-": None}
ROWS = [line.split() for line in TABLE.strip().splitlines()]
EXPECTED = {(SHORT[row[0]], SHORT[column]): SHORT[result] for row in ROWS[1:] for column, result in zip(ROWS[0], row[1:])}
ELEMENT = {name: te.placeholder((2,), name, name="x")[0] for name in NAMES}


def test_the_table_is_whole():
    assert set(EXPECTED) == {(a, b) for a in NAMES for b in NAMES}


@pytest.mark.parametrize("a", NAMES)
def test_arithmetic_of_two_elements(a):
    for b in NAMES:
        expected = EXPECTED[a, b]
        if expected is None:
            with pytest.raises(DTypeError, match="no common dtype"):
                ELEMENT[a] + ELEMENT[b]
            continue
        for result in (ELEMENT[a] + ELEMENT[b], ELEMENT[a] * ELEMENT[b], ELEMENT[b] - ELEMENT[a]):
            assert result.dtype == expected, (a, b)
        assert (ELEMENT[a] < ELEMENT[b]).dtype == "bool"


@pytest.mark.parametrize("a", NAMES)
def test_whole_tensors_follow_the_same_table(a):
    x = te.placeholder((2,), a)
    for b in ("int32", "uint8", "float32"):
        assert (x + te.placeholder((2,), b)).dtype == EXPECTED[a, b]


@pytest.mark.parametrize("a", NAMES[1:])
def test_a_number_takes_the_dtype_of_the_element(a):
    x = ELEMENT[a]
    assert (x + 1).dtype == (1 + x).dtype == (x * 2).dtype == a
    if a in ("float16", "bfloat16", "float32", "float64"):
        assert (x + 0.5).dtype == (0.5 / x).dtype == a
    else:
        assert (x + 0.5).dtype == "float32"


@pytest.mark.parametrize("a, largest", [("int8", 127), ("uint8", 255), ("int16", 32767), ("int32", 2**31 - 1),
                                        ("uint64", 2**64 - 1)])
def test_a_number_that_does_not_fit_names_the_cast(a, largest):
    assert (ELEMENT[a] + largest).dtype == a
    with pytest.raises(DTypeError, match=rf"{largest + 1} does not fit {a}(.|\n)*astype"):
        ELEMENT[a] + (largest + 1)


def test_bool_stays_bool_in_logic():
    b = ELEMENT["bool"]
    assert (b & b).dtype == (b | b).dtype == (~b).dtype == te.all(b, b).dtype == "bool"
    assert b.equal(b).dtype == "bool" and (b + 1).dtype == "int32" and (-b).dtype == "int32"
    assert te.if_then_else(b, b, b).dtype == "bool"


def test_choices_promote_their_sides():
    b, f16 = ELEMENT["bool"], ELEMENT["float16"]
    assert te.if_then_else(b, ELEMENT["int8"], f16).dtype == "float16"
    assert te.if_then_else(b, f16, 0.0).dtype == "float16"
    assert te.if_then_else(b, 0, f16).dtype == "float16"


@pytest.mark.parametrize("value, expected", [(True, "bool"), (1, "int32"), (2**31, "int64"), (1.0, "float32")])
def test_a_number_alone(value, expected):
    assert te.const(value).dtype == expected
    assert te.compute((1,), lambda i: value).dtype == expected
