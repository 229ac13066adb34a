"""Objects by the name of their class, types of functions, errors and containers by TVM's names."""

import json

import numpy as np
import pytest

import tedsl
from tedsl import ir, runtime, te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, OptionError


def test_make_node_makes_constants_and_outputs_of_operations():
    assert ir.make_node("IntImm", dtype="int32", value=10, span=None).value == 10
    assert isinstance(ir.make_node("tir.Add", a=tir.const(1), b=te.var("x")), tir.Add)
    a = te.placeholder((10,), name="a")
    assert ir.make_node("Tensor", shape=a.shape, dtype=a.dtype, op=a.op, value_index=0) == a


def test_make_node_refuses_what_it_does_not_know():
    with pytest.raises(OptionError, match=r"no class 'tir\.Nothing'"):
        ir.make_node("tir.Nothing")
    with pytest.raises(ArgumentTypeError, match="value"):
        ir.make_node("IntImm", dtype="int32", wert=1)


def test_attributes_are_a_mapping_and_print_as_json():
    attrs = ir.make_node("DictAttrs", x=1, name="xyz", padding=(0, 2))
    assert isinstance(attrs, ir.DictAttrs)
    assert attrs.x.value == 1
    assert attrs.get_int_tuple("padding") == (0, 2)
    assert attrs.get_str("name") == "xyz"
    assert sorted(attrs) == ["name", "padding", "x"]
    assert json.loads(str(attrs)) == {"x": 1, "name": "xyz", "padding": [0, 2]}
    assert ir.load_json(ir.save_json(attrs)) == attrs
    assert attrs != ir.make_node("DictAttrs", x=2, name="xyz", padding=(0, 2))
    with pytest.raises(AttributeError, match="'y'"):
        attrs.y


def test_attributes_of_a_known_kind_are_checked():
    assert ir.make_node("attrs.TestAttrs", name="a", padding=(3, 4)).axis == 10
    with pytest.raises(ArgumentError, match="unknown_key"):
        ir.make_node("attrs.TestAttrs", name="a", unknown_key=1)
    with pytest.raises(ArgumentError, match="upper bound"):
        ir.make_node("attrs.TestAttrs", name="a", axis=100)


def test_a_registered_function_is_saved_by_its_name():
    tedsl.register_func("reflection.next", lambda x: x + 1, override=True)
    (copy,) = ir.load_json(ir.save_json([ir.EnvFunc.get("reflection.next")]))
    assert copy(1) == 2
    assert copy == ir.EnvFunc.get("reflection.next")
    with pytest.raises(OptionError, match="no function is registered"):
        ir.EnvFunc.get("reflection.nothing")


def test_types_of_tensors_and_functions():
    of = ir.TensorType((2, te.var("n")), "int8")
    assert (of.dtype, len(of.shape)) == ("int8", 2)
    assert ir.TensorType((1, 2)).concrete_shape == (1, 2)
    assert ir.TensorType((1, 2)) == ir.TensorType([1, 2], "float32")
    assert ir.TensorType((1, 2)) != ir.TensorType((2, 1))
    function = ir.FuncType([of], ir.TupleType([of, of]))
    assert function.ret_type.fields[1] is of
    assert function.type_params == ()
    assert ir.TypeVar("t").kind == ir.TypeKind.Type
    assert all(isinstance(one, ir.Type) for one in (of, function, ir.PrimType("int8"), ir.TypeVar("t")(of)))
    assert ir.Span(ir.SourceName("a.py"), 1, 2, 3, 4).end_column == 4
    with pytest.raises(ArgumentTypeError, match="TensorType"):
        ir.TensorType("xx", "int8")


def test_containers_of_the_runtime():
    array = tedsl.nd.array(np.zeros(2))
    made = runtime.container.ADT(3, [array, array])
    assert (made.tag, len(made), made[1]) == (3, 2, array)
    assert runtime.container.tuple_object([array]).tag == 0
    assert list(runtime.container.ShapeTuple([2, -1])) == [2, -1]
    with pytest.raises(ArgumentTypeError, match="ADT"):
        runtime.container.ADT(0, [1])


def test_errors_are_of_the_classes_that_programs_catch():
    assert issubclass(tedsl.error.OpNotImplemented, NotImplementedError)
    assert issubclass(tedsl.error.OpAttributeRequired, (AttributeError, tedsl.TVMError))
    with pytest.raises(tedsl.error.OpNotImplemented):
        tedsl.testing.test_raise_error_callback("OpNotImplemented: it")()
    with pytest.raises(tedsl.error.InternalError):
        tedsl.testing.test_check_eq_callback("InternalError: it")(0, 1)
    with pytest.raises(ValueError, match="equal"):
        tedsl.testing.ErrorTest(0, 1)

    @tedsl.register_error
    class Mine(RuntimeError):
        pass

    def fail():
        raise Mine("here")

    with pytest.raises(Mine, match="here"):
        tedsl.testing.test_wrap_callback(fail)()


def test_views_of_arrays_are_passed_to_kernels():
    @tedsl.register_extension
    class View:
        def __init__(self, array):
            self.array = array

        @property
        def _tvm_handle(self):
            return self.array._tvm_handle

    a = te.placeholder((3,), name="a")
    b = te.compute((3,), lambda i: a[i] * 2, name="b")
    out = tedsl.nd.empty((3,))
    tedsl.build(te.create_schedule(b.op), [a, b])(View(tedsl.nd.array(np.ones(3, "float32"))), View(out))
    np.testing.assert_array_equal(out.numpy(), np.full(3, 2))


def test_options_of_a_context_are_attributes_with_defaults():
    context = tedsl.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 10}})
    assert context.config["tir.UnrollLoop"].auto_max_step == 10
    assert context.config["tir.UnrollLoop"].explicit_unroll
    assert context.config == {"tir.UnrollLoop": {"auto_max_step": 10}}
    with pytest.raises(AttributeError):
        context.config["tir.UnrollLoop"].nothing
