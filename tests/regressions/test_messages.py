"""Mistakes that once gave an error of Python or numpy, or none at all."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.functions import registered

DATA = te.placeholder((4,), name="DATA")
_k = te.reduce_axis((0, 4), "k")
SUM = te.compute((), lambda: te.sum(DATA[_k], axis=_k), name="SUM")


def added():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    return te.create_schedule(B.op), [A, B]


def test_a_feature_that_llvm_does_not_know_is_refused_with_what_is_near():
    with pytest.raises(tedsl.TedslError, match=r"x86-64 has no feature 'avx512vnn'\n  hint: did you mean avx512vnni"):
        tedsl.target.Target("llvm -mtriple=x86_64-linux-gnu -mattr=+avx512vnn")


def test_an_option_without_its_value_is_named():
    with pytest.raises(tedsl.TedslError, match="'-mcpu' in target 'llvm -mcpu' has no value"):
        tedsl.target.Target("llvm -mcpu")


def test_a_wrong_target_host_is_refused():
    with pytest.raises(tedsl.TedslError, match="no target kind 'banana'"):
        tedsl.build(*added(), "llvm", target_host="banana")


def test_arguments_are_counted_from_1_in_lower_as_in_calls():
    s, (A, _) = added()
    with pytest.raises(tedsl.TedslError, match="argument 2 of the function is 3"):
        tedsl.lower(s, [A, 3])


@pytest.mark.parametrize("made", [lambda: tedsl.nd.array([[1, 2], [3]]), lambda: tedsl.nd.from_dlpack(3)])
def test_arrays_that_cannot_be_made(made):
    with pytest.raises(tedsl.TedslError, match="hint"):
        made()


def test_python_functions_of_expressions():
    A = te.placeholder((4,), "int32", name="A")
    B = te.compute((4,), lambda i: abs(+A[i]) + divmod(A[i], 3)[1], name="B")
    a, b = np.array([-5, 0, 7, -2**31], "int32"), np.zeros(4, "int32")
    tedsl.build(te.create_schedule(B.op), [A, B])(a, b)
    np.testing.assert_array_equal(b, np.abs(a) + a % 3)
    with pytest.raises(tedsl.TedslError, match=r"write te\.round"):
        te.compute((4,), lambda i: round(A[i]))


def test_reverse_compute_at_is_refused_by_its_own_name():
    """The message spoke of a compute_at that nobody had written."""
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: B[i] * 2.0, name="C")
    D = te.compute((4,), lambda i: B[i] + C[i], name="D")
    s = te.create_schedule(D.op)
    with pytest.raises(tedsl.TedslError, match=r"^reverse_compute_at\(B, i\) of C on stage B: D uses B too"):
        s[C].reverse_compute_at(s[B], B.op.axis[0])


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


@pytest.mark.parametrize("bits", [26, 40])
def test_the_search_for_an_index_outside_keeps_nothing(bits):
    """It made tuples of whole axes: gigabytes, or a MemoryError."""
    far = te.compute((1 << bits,), lambda i: DATA[i], name="far")
    with pytest.raises(tedsl.TedslError, match="far reads DATA"):
        tedsl.lower(te.create_schedule(far.op), [DATA, far])


@pytest.mark.parametrize("make", [
    lambda: tir.Store(3, 4, 5), lambda: tir.BufferStore(3, 4, 5), lambda: tir.LetStmt(3, 4, 5), lambda: tir.Shuffle(3, 4),
    lambda: tir.For(3, 4, 5, 6, 7), lambda: tir.SeqStmt(3), lambda: tir.PrimFunc(3, 4), lambda: tir.BufferLoad(1, 2),
    lambda: tir.Reduce(1, 2, 3, 4, 5), lambda: tir.IntImm("int32", "x"),
])
def test_nodes_say_what_they_take(make):
    with pytest.raises(tedsl.TedslError, match=r"\w+: the field \w+ is an? .*, not "):
        make()


def test_arguments_by_name_are_refused_in_our_words():
    """Python said "CheckedCall.main() takes no keyword arguments"."""
    kernel = tedsl.build(*added(), name="main")
    x = np.zeros(4, "float32")
    for call in (kernel, kernel["main"], kernel.entry_func):
        with pytest.raises(ArgumentTypeError, match=r"main takes its arguments in .*not by name: B\n  hint: call main\(A, B\)"):
            call(x, B=np.zeros(4, "float32"))
        with pytest.raises(ArgumentTypeError, match="not by name: A, B"):
            call(A=x, B=x)
    out = np.zeros(4, "float32")
    kernel(x, out, **{})
    assert out.tolist() == [1, 1, 1, 1]


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


def test_memory_scopes_of_the_builder_are_those_of_set_scope():
    """ib.allocate took any word."""
    ib = tir.ir_builder.create()
    with pytest.raises(ArgumentError, match=r"allocate buf: there is no memory scope 'foo'\n  hint: choose one of global"):
        ib.allocate("float32", 8, scope="foo")
    with pytest.raises(ArgumentError, match="pointer ptr: there is no memory scope 'locals'"):
        ib.pointer("float32", scope="locals")
    with pytest.raises(ArgumentError, match="allocate buf: the scope is a string, not 3"):
        ib.allocate("float32", 8, scope=3)
    assert ib.allocate("float32", 8, scope="local.L1").dtype == "float32"


def test_the_list_of_python_functions_has_none_of_ours():
    """A build in checked mode put tedsl.checked.fault among them."""
    tedsl.build(*added(), checked=True)
    tedsl.register_func("test.listed", lambda: None)
    try:
        with pytest.raises(tedsl.TedslError, match=r"no Python function is registered as 'test\.nothing'") as caught:
            registered("test.nothing")
        assert "test.listed" in str(caught.value) and "tedsl.checked" not in str(caught.value)
        assert "tedsl.checked.fault" not in tedsl.runtime.list_global_func_names()
    finally:
        tedsl.runtime.remove_global_func("test.listed")


@pytest.mark.parametrize("said, checks", [
    ("1", True), ("true", True), ("ON", True), ("0", False), ("false", False), ("No", False), ("off", False), ("", False),
    (None, False), ("maybe", None)])
def test_what_the_environment_says_about_checked_mode(monkeypatch, said, checks):
    """TEDSL_CHECKED=false switched it on."""
    monkeypatch.delenv("TEDSL_CHECKED", raising=False)
    if said is not None:
        monkeypatch.setenv("TEDSL_CHECKED", said)
    if checks is None:
        with pytest.raises(ArgumentError, match=r"TEDSL_CHECKED is 'maybe'\n  hint: set it to 1 or 0"):
            tedsl.build(*added())
    else:
        assert ("call_packed" in tedsl.build(*added()).get_source("tir")) == checks
    assert "call_packed" not in tedsl.build(*added(), checked=False).get_source("tir")


def test_checked_is_a_truth_value():
    with pytest.raises(ArgumentTypeError, match="checked is True, False or None, not 'x'"):
        tedsl.build(*added(), checked="x")


# --- objects of the wrong kind ------------------------------------------------------------------------------------------------

X = te.var("X")


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
    lambda: tir.stmt_functor.post_order_visit(None, print), lambda: te.Journal([3]),
    lambda: added()[0].journal.to_json(1.5), lambda: tedsl.trace(*added()).save(None),
    lambda: tedsl.trace(*added()).show(file="x"), lambda: added()[0].create_group(DATA, DATA, np.array([1, 2])),
    lambda: added()[0].stages[1].split(added()[0].stages[1].op.axis[0], 4, tail=np.array([1, 2])),
    lambda: tedsl.build(*added())[np.array(3)], lambda: tedsl.build(*added()).get_source([]),
    lambda: tedsl.get_global_func({})])
def test_the_error_is_ours(call):
    with pytest.raises(tedsl.TedslError):
        call()


@pytest.mark.parametrize("make", [lambda n: te.placeholder(n), lambda n: te.compute(n, lambda i: i + 1),
                                  lambda n: tir.decl_buffer(n)])
def test_an_array_without_dimensions_is_a_number(make):
    assert [int(dim) for dim in make(np.array(3)).shape] == [3]
