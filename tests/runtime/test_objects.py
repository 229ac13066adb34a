"""The names of tedsl.runtime."""


import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentTypeError


def test_values_become_objects():
    convert = tedsl.runtime.convert
    assert convert(3).dtype == "int32" and convert(2.5).value == 2.5 and convert(True).dtype == "bool"
    assert convert("text") == "text" and convert(None) is None
    assert [int(i) for i in convert([1, 2])] == [1, 2] and int(convert({"a": 1})["a"]) == 1
    assert convert(lambda x: x + 1)(2) == 3
    n = te.var("n")
    assert convert(n) is n
    with pytest.raises(ArgumentTypeError, match="a object is no object of programs"):
        convert(object())


def test_enabled():
    assert tedsl.runtime.enabled("llvm")
    assert not tedsl.runtime.enabled("cuda") and not tedsl.runtime.enabled("nonsense")


def test_names_are_there():
    for name in ("Module", "NDArray", "PackedFunc", "register_func", "get_global_func"):
        assert name in dir(tedsl.runtime) and getattr(tedsl.runtime, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tedsl.runtime.nothing
