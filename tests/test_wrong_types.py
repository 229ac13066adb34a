"""Objects of the wrong type, and names that no text can hold, are refused by errors of ours, whatever takes them."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError
from tests.one_stage import added

DATA = te.placeholder((4,), name="DATA")
_k = te.reduce_axis((0, 4), "k")
SUM = te.compute((), lambda: te.sum(DATA[_k], axis=_k), name="SUM")
X = te.var("X")


@pytest.mark.parametrize("call", [
    lambda: te.create_schedule(SUM.op).rfactor(SUM, SUM.op.reduce_axis[0], np.zeros(2)),
    lambda: te.thread_axis((0, 4), np.zeros(2)), lambda: te.thread_axis("threadIdx.x", name=3),
    lambda: te.comm_reducer(3, lambda t: te.const(0, t)), lambda: te.comm_reducer(lambda x, y: x, lambda t: 0, name=3),
    lambda: te.create_prim_func(3), lambda: tir.layout(3), lambda: tir.decl_buffer((4,), "float32", offset_factor="x"),
    lambda: tir.decl_buffer((4,), "float32", data=3), lambda: tir.decl_buffer((4,), "float32", strides=3),
    lambda: tir.decl_buffer((4,), "float32", strides=["x"]), lambda: tir.decl_buffer((4,), "float32", elem_offset=1.5),
    lambda: tir.decl_buffer((4,), "float32", scope=3), lambda: te.extern((4,), [DATA], lambda ins: None, dtype="float32"),
])
def test_arguments_of_other_types_do_not_end_in_errors_of_python(call):
    with pytest.raises(tedsl.TedslError):
        call()


@pytest.mark.parametrize("call", [
    lambda: tedsl.nd.array(np.zeros(4), "cpu"), lambda: tedsl.nd.empty((4,), "float32", "cpu"),
    lambda: te.schedule.AutoInlineInjective([DATA]), lambda: te.schedule.AutoInlineElemWise(None),
    lambda: tedsl.arith.Analyzer().const_int_bound(1.5), lambda: tedsl.arith.Analyzer().modular_set("a"),
    lambda: tedsl.arith.Analyzer().int_set(1.5, {}), lambda: tedsl.arith.Analyzer().int_set(X, None),
    lambda: tedsl.arith.Analyzer().int_set(X, {X: 3}), lambda: tedsl.arith.Analyzer().simplify(None),
    lambda: tedsl.arith.Analyzer().bind(None, 1), lambda: tedsl.arith.Analyzer().bind(X, (2,)),
    lambda: tedsl.transform.PassContext(disabled_pass=3), lambda: tedsl.transform.PassContext(disabled_pass=[3]),
    lambda: te.compute((4,), lambda i: DATA[i], attrs="x"), lambda: te.compute((4,), int),
    lambda: tedsl.IRModule("x"), lambda: tir.stmt_functor.substitute(X + 1, "x"),
    lambda: tir.stmt_functor.post_order_visit(X + 1, 3), lambda: tedsl.script.from_source(3),
    lambda: tir.stmt_functor.post_order_visit(None, print), lambda: te.Journal([3]),
    lambda: added()[0].journal.to_json(1.5), lambda: tedsl.trace(*added()).save(None),
    lambda: tedsl.trace(*added()).show(file="x"), lambda: added()[0].create_group(DATA, DATA, np.array([1, 2])),
    lambda: added()[0].stages[1].split(added()[0].stages[1].op.axis[0], 4, tail=np.array([1, 2])),
    lambda: tedsl.build(*added())[np.array(3)], lambda: tedsl.build(*added()).get_source([]),
    lambda: tedsl.get_global_func({})])
def test_the_error_is_ours(call):
    with pytest.raises(tedsl.TedslError):
        call()


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "gr\udfffe"])
def test_names_that_no_text_can_hold_are_refused_where_they_are_given(name):
    """A lone surrogate was a UnicodeEncodeError of the backend; a NUL was refused by some builds only."""
    s, args = added()
    func = tedsl.lower(s, args)["main"]
    for give in (lambda: tedsl.lower(s, args, name=name), lambda: tedsl.build(s, args, name=name, checked=True),
                 lambda: tedsl.build(s, args, name=name), lambda: tedsl.build(func.with_attr("global_symbol", name)),
                 lambda: tedsl.build(tedsl.IRModule({name: func})), lambda: te.placeholder((4,), name=name),
                 lambda: te.compute((4,), lambda i: i, name=name), lambda: te.var(name),
                 lambda: tir.decl_buffer((4,), name=name), lambda: te.reduce_axis((0, 4), name)):
        with pytest.raises(ArgumentError, match=r"no lone surrogate|has no NUL"):
            give()
    tedsl.build(s, args, name="größe→名")(np.zeros(4, "float32"), np.zeros(4, "float32"))
