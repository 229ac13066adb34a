"""Which kernels share an entry point, and what becomes of its tables."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.ir.expr import Var
from tedsl.runtime.arguments.array_entry import MOST_ARRAYS, RELEASE_BYTES, shared_of
from tedsl.runtime.signature import signature_of
from tests.runtime.stand_in import array, function

N = Var("n")


def shared(*args, outputs="A", runs_long=False, **options):
    return shared_of(signature_of(function(*args, outputs=outputs, **options)), runs_long)


@pytest.mark.parametrize("args", [
    [array("A", N)], [array("A", 4, dtype="bfloat16")], [array("A", 4), Var("x", "int32")], [array("A", 4, strides=[2])],
    [array(f"A{k}", 4) for k in range(MOST_ARRAYS + 1)], [array("A", 2**40, 2**40)]],
    ids=["symbolic", "bfloat16", "number", "strides", "many", "huge"])
def test_signatures_that_need_an_entry_point_of_their_own(args):
    assert shared(*args) is None


def test_arrays_of_constant_shapes_have_a_table():
    assert shared(array("A", 4, 5), array("B"), array("C", 0, dtype="bool")) is not None
    assert shared(*(array(f"A{k}", 4) for k in range(MOST_ARRAYS)), outputs=["A3"]) is not None


def test_a_table_says_what_a_call_must_be():
    known = shared(array("A", 4), array("B", 4))
    for other in (shared(array("A", 5), array("B", 4)), shared(array("A", 4), array("B", 4, dtype="int32")),
                  shared(array("A", 4, 1), array("B", 4)), shared(array("A", 4), array("B", 4), outputs="B"),
                  shared(array("A", 4), array("B", 4), noalias=False), shared(array("A", 4), array("B", 4), runs_long=True),
                  shared(array("A", 4))):
        assert other != known


def test_the_gil_is_released_around_kernels_of_many_bytes():
    most = RELEASE_BYTES // 4
    assert shared(array("A", most - 1)) != shared(array("A", most - 1), runs_long=True)
    assert shared(array("A", most)) == shared(array("A", most), runs_long=True)


def add(shape):
    A, B = te.placeholder(shape, name="A"), te.placeholder(shape, name="B")
    C = te.compute(shape, lambda *i: A(*i) + B(*i), name="C")
    return tedsl.build(te.create_schedule(C.op), [A, B, C])


def test_machine_code_has_no_entry_point_of_its_own_where_one_is_shared():
    assert b"default_function.entry" not in add((4,)).image().code
    assert b"default_function.entry" in add((te.var("n"),)).image().code


def test_kernels_that_share_the_entry_point_keep_their_own_tables():
    modules = {shape: add(shape) for shape in ((4,), (2, 3), (1, 1, 1))}
    for shape, module in modules.items():
        a, c = np.ones(shape, "float32"), np.zeros(shape, "float32")
        module["default_function"](a, a, c)
        assert (c == 2).all()
        for other in modules.keys() - {shape}:
            with pytest.raises(tedsl.TedslError, match="it needs"):
                modules[other]["default_function"](a, a, c)
