"""Named arrays as bytes, in TVM's format."""

import struct

import numpy as np
import pytest

from tedsl import nd, runtime
from tedsl.errors import ArgumentError, ArgumentTypeError

# One array p0 = [1, -2] of int16, as the format's description in TVM's `src/runtime/ndarray.cc` has it.
BYTES = bytes.fromhex("b79c04054f8de5f7 0000000000000000 0100000000000000 0200000000000000 7030 0100000000000000"
                      "3fa1b496f0405edd 0000000000000000 01000000 00000000 01000000 00 10 0100 0200000000000000"
                      "0400000000000000 0100feff".replace(" ", ""))
HUGE = bytes(runtime.save_param_dict({"a": np.zeros((0, 1), "int8")}))[:-16] + struct.pack("<QQ", 2**63, 0)


def test_arrays_come_back():
    rng = np.random.default_rng(0)
    given = {"weight": rng.random((2, 3), "float32"), "count": np.array(7, "int64"), "mask": np.array([True, False]),
             "none": np.zeros((0, 4), "uint8")}
    read = runtime.load_param_dict(runtime.save_param_dict({**given, "weight": nd.array(given["weight"])}))
    assert list(read) == list(given)
    for name, value in given.items():
        assert read[name].dtype == str(value.dtype) and read[name].shape == value.shape
        np.testing.assert_array_equal(read[name].numpy(), value)


def test_the_format_is_tvms():
    assert bytes(runtime.save_param_dict({"p0": np.array([1, -2], "int16")})) == BYTES
    np.testing.assert_array_equal(runtime.load_param_dict(BYTES)["p0"].numpy(), [1, -2])


@pytest.mark.parametrize("call, error, words", [
    (lambda: runtime.load_param_dict(BYTES[:-1]), ArgumentError, "the bytes end at"),
    (lambda: runtime.load_param_dict(b"x" * 40), ArgumentError, "these bytes are not named arrays"),
    (lambda: runtime.load_param_dict(BYTES.replace(b"\x00\x10\x01\x00", b"\x09\x10\x01\x00")), ArgumentError, "no dtype has"),
    (lambda: runtime.load_param_dict(BYTES[:-12] + b"\x03" + BYTES[-11:]), ArgumentError, "has 3 bytes"),
    (lambda: runtime.load_param_dict(BYTES.replace(b"p0", b"p\xff")), ArgumentError, "is not text in UTF-8"),
    (lambda: runtime.load_param_dict(HUGE), ArgumentError, "there is no array of shape \\(0, 9223372036854775808\\)"),
    (lambda: runtime.load_param_dict("net.params"), ArgumentTypeError, "takes bytes"),
    (lambda: runtime.save_param_dict([1]), ArgumentTypeError, "takes a dict")])
def test_misuse(call, error, words):
    with pytest.raises(error, match=words):
        call()
