"""What functions of loops, axes and variables are made of."""

import numpy as np
import pytest

import tedsl
from tedsl import ir, te, tir
from tedsl.errors import TedslError


def test_a_pointer_of_a_builder_is_a_parameter():
    ib = tir.ir_builder.create()
    a = ib.pointer("float32", name="a")
    with ib.for_range(0, 4, kind="vectorize") as i:
        a[i] = a[i] + 1
    func = tir.PrimFunc([a], ib.get())
    assert func.params[0] is a.asobject()
    made = tir.transform.VectorizeLoop()(tedsl.IRModule.from_expr(func))["main"].body
    assert isinstance(made.index, tir.Ramp)


def test_an_axis_is_made_of_a_name():
    axis = tir.IterVar((0, 5), "x", 2)
    assert (axis.var.name, axis.var.dtype, axis.dom.extent.value) == ("x", "int32", 5)


def test_a_variable_is_of_a_type():
    pointer = ir.PointerType(ir.PrimType("float32"), "global.texture")
    assert te.var("p", pointer).type_annotation == pointer
    assert te.size_var("n", ir.PrimType("int64")).dtype == "int64"


def test_numbers_of_numpy_keep_their_dtypes():
    for value in (np.uint8(3), np.int64(3), np.float64(3), np.bool_(True)):
        assert tedsl.runtime.convert(value).dtype == str(value.dtype)


def test_rounding_and_remainders_of_constants():
    x = te.var("x")
    assert tir.truncmod(x, 1).value == 0
    assert tir.nearbyint(tir.const(True, "bool")).value == 1
    assert tir.isnan(te.var("k", "int8x2")).dtype.lanes == 2


def test_lists_of_numbers_are_structurally_those_of_constants():
    ir.assert_structural_equal([tir.const(3), tir.const(4)], [3, 4])
    assert not ir.structural_equal([tir.const(3, "int64")], [3])


def test_passes_take_objects_that_are_moved():
    x = te.var("x")
    mod = tedsl.IRModule({"main": tir.PrimFunc([x], tir.Evaluate(x))})
    assert tir.transform.Simplify()(mod._move())["main"].params[0]._move() is x


def test_operators_of_any_name_have_attributes():
    ir.register_op_attr("mine.operator", "TGlobalSymbol", "mine")
    assert ir.Op.get("mine.operator").get_attr("TGlobalSymbol") == "mine"
    with pytest.raises(TedslError):
        ir.register_op_attr("", "TGlobalSymbol", "mine")
