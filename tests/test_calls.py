"""Calls with arguments that a function does not have, and names that a module does not have, are refused in tedsl's words."""

import pickle
import types

import numpy as np
import pytest

import tedsl
import topi
from tedsl import nd, te, tir
from tedsl.errors import ArgumentTypeError, OptionError, entry
from tedsl.transform import PassContext
from tests.refusing import refused

A = te.placeholder((4,), name="A")
B = te.compute((4,), lambda i: A[i] + 1, name="B")
S = te.create_schedule(B.op)

CALLS = {
    "missing": (lambda: te.create_schedule(), "te.create_schedule: the argument 'ops' is missing",
                "it is called as te.create_schedule(ops)"),
    "several": (lambda: topi.nn.conv2d(A, B), "topi.nn.conv2d: the arguments 'strides' and 'padding' are missing",
                "topi.nn.conv2d(input, filter, strides, padding, dilation=1, layout=None"),
    "too many": (lambda: te.exp(A[0], 3), "te.exp takes at most 1 argument by position, and got 2"),
    "none": (lambda: tir.transform.Simplify(3), "tir.transform.Simplify takes no arguments, and got 1"),
    "unknown": (lambda: te.placeholder((4,), dtyp="int8"), "te.placeholder: there is no argument named 'dtyp'",
                "did you mean dtype? it is called as te.placeholder(shape, dtype=None, name='placeholder')"),
    "twice": (lambda: te.placeholder((4,), shape=3), "te.placeholder: the argument 'shape' is given twice"),
    "class": (lambda: PassContext(foo=1), "PassContext: there is no argument named 'foo'", "PassContext(opt_level=2, "),
    "method": (lambda: S.normalize(3), "Schedule.normalize takes no arguments, and got 1", "Schedule.normalize()"),
    "notation": (lambda: tedsl.lower(S, [A, B]).script(meta=True),
                 "IRModule.script: there is no argument named 'meta'"),
    "show": (lambda: tedsl.lower(S, [A, B]).show(theme="x"), "IRModule.show: there is no argument named 'theme'"),
    "static": (lambda: tir.decl_buffer(), "tir.decl_buffer: the argument 'shape' is missing"),
    "classmethod": (lambda: tedsl.Journal.from_json(), "Journal.from_json: the argument 'text' is missing"),
    "array": (lambda: nd.array(np.zeros(4)).copyto(), "NDArray.copyto: the argument 'target' is missing"),
    "lower": (lambda: tedsl.lower(S, [A, B], simple=True), "no argument named 'simple'", "did you mean simple_mode?"),
    "builder": (lambda: tir.ir_builder.create().for_range(),
                "IRBuilder.for_range: the arguments 'begin' and 'end' are missing"),
    "alias": (lambda: te.schedule.InferBound(), "te.schedule.InferBound: the argument 'sch' is missing"),
    "node": (lambda: tir.AttrStmt(1), "AttrStmt: the arguments 'attr_key', 'value' and 'body' are missing",
             "AttrStmt(node, attr_key, value, body)"),
    "node, all": (lambda: tir.Var(), "Var: the argument 'name' is missing"),
    "node, too many": (lambda: tir.AttrStmt(1, "a", 2, 3, 4), "AttrStmt takes at most 4 arguments by position, and got 5"),
    "node, unknown": (lambda: tir.Add(A[0], A[0], c=A[0]), "Add: there is no argument named 'c'"),
    "node, by name": (lambda: tir.Add(b=A[0]), "Add: the argument 'a' is missing"),
}


@pytest.mark.parametrize("call, words", [(call, words) for call, *words in CALLS.values()], ids=CALLS)
def test_arguments_that_a_function_does_not_have(call, words):
    refused(call, *words, error=ArgumentTypeError)


NAMES = {
    "near": (lambda: te.comput, "module 'tedsl.te' has no attribute 'comput'", "did you mean compute"),
    "none": (lambda: topi.nn.quux, "module 'topi.nn' has no attribute 'quux'", "the nearest are "),
    "zeros": (lambda: nd.zeros, "module 'tedsl.nd' has no attribute 'zeros'",
              "did you mean nd.array(numpy.zeros(shape, dtype))?"),
    "root": (lambda: tedsl.biuld, "module 'tedsl' has no attribute 'biuld'", "did you mean build"),
}


@pytest.mark.parametrize("get, words", [(get, words) for get, *words in NAMES.values()], ids=NAMES)
def test_names_that_a_module_does_not_have(get, words):
    refused(get, *words, error=OptionError)


def test_modules_have_no_more_names_than_before_for_tools_that_look():
    assert not hasattr(te, "__wrapped__") and not hasattr(topi, "comput")
    with pytest.raises(ImportError):
        exec("from tedsl.te import comput")


def test_a_function_called_in_a_formula_keeps_its_own_errors():
    """What the user's function raises, also for its own arguments, is the user's."""
    with pytest.raises(TypeError) as error:
        te.compute((4,), lambda i: (lambda j: j)())
    assert not isinstance(error.value, tedsl.TedslError)


def test_a_wrong_call_inside_tedsl_is_not_the_users():
    code = compile("def inside(f): return f(1, 2, 3)", tedsl.errors.__file__, "exec").co_consts[0]
    with pytest.raises(TypeError) as error:
        types.FunctionType(code, {})(entry(lambda x: x))
    assert not isinstance(error.value, tedsl.TedslError)


@pytest.mark.parametrize("function", [te.exp, te.compute, tir.decl_buffer, topi.nn.conv2d, topi.broadcast_add])
def test_functions_can_be_pickled(function):
    assert pickle.loads(pickle.dumps(function)) is function


def test_one_function_has_one_entry():
    assert te.exp is tir.exp and topi.broadcast_add is topi.add and topi.x86.conv1d_ncw is topi.nn.conv1d_ncw
