"""What users touch: operators, lazy equality, nodes as values, and the words of the errors."""

import sys
import time

import numpy as np
import pytest

from tedsl import tir
from tedsl.errors import ArgumentError, DTypeError, ExpressionError, OptionError, ShapeError, TedslError
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.dtype import INT32, dtype
from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import (
    EQ,
    NE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Expr,
    FloorDiv,
    IntImm,
    Load,
    Mul,
    Not,
    Ramp,
    Select,
    Shuffle,
    StringImm,
    Var,
    pointer_var,
)
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.ops import Op
from tedsl.ir.stmt import AttrStmt, BufferStore, Evaluate, For, ForKind, IfThenElse, LetStmt, SeqStmt, Store, no_op, seq
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import fresh_copy, substitute
from tedsl.ir.walk.visitor import pointers, post_order, uses, variables

x, y = Var("x"), Var("y")
f = Var("f", "float32")
b = Var("b", "bool")
axis = IterVar(Range(0, 8), Var("i"))


# --- operators ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("made, shown", [
    (x + 1, "(x + 1)"), (1 - x, "(1 - x)"), (2 * f, "(2f*f)"), (f / 2, "(f/2f)"), (x // 3, "floordiv(x, 3)"),
    (7 % x, "floormod(7, x)"), (-x, "(0 - x)"), (x << 2, "tir.shift_left(x, 2)"), (x & 3, "tir.bitwise_and(x, 3)"),
    (~x, "tir.bitwise_not(x)"), (~b, "!b"), (x < y, "(x < y)"), (x >= 2, "(x >= 2)"), (axis + 1, "(i + 1)"),
    (3 * axis, "(3*i)"),
    (f ** 2, "(f*f)"), (x.astype("int64"), "int64(x)"), (x.equal(y), "(x == y)"), (np.int64(3) + x, "((int64)3 + int64(x))"),
], ids=str)
def test_operators(made, shown):
    assert repr(made) == shown


def test_constants_fold_and_neutral_elements_vanish():
    assert (build.const(3) + 4).value == 7 and (x + 0) is x and (x * 1) is x and (x // 1) is x and (x * 0).value == 0
    assert isinstance(build.const(2**31 - 1) + 1, Add), "index arithmetic must not wrap"


# --- equality -------------------------------------------------------------------------------------------------------

def test_equality_is_an_expression_where_one_is_wanted_and_identity_where_a_bool_is():
    assert isinstance(build.as_expr(x == y), EQ) and isinstance(build.as_expr(x != y), NE)
    assert bool(x == x) and bool(x != y)
    assert bool(x == y) is False and bool(x != x) is False
    assert isinstance(build.select(x == y, x, y), Select) and isinstance(build.logical_and(x == y, x != 3), And)
    assert (x == y).asobject().dtype == "bool" and repr(x == y) == "(x == y)"


def test_containers_find_nodes_by_identity():
    twin = Var("x")
    assert x in [y, x] and twin not in [y, x] and [y, x].index(x) == 1
    assert {x: 1, twin: 2}[twin] == 2 and len({x, twin, x}) == 2
    assert axis in [axis] and IterVar(axis.dom, axis.var) not in [axis]


def test_equal_constants_are_equal():
    assert build.const(3) == 3 and bool(build.const(3) == 4) is False and build.const(3) != 4
    assert StringImm("a") == "a" and StringImm("a") != "b" and StringImm("a") in {"a": 1}
    assert int(build.const(3)) == 3 and float(build.const(1.5)) == 1.5 and list(range(build.const(3))) == [0, 1, 2]


@pytest.mark.parametrize("use", [lambda: bool(x < y), lambda: x < y and y < x, lambda: not (x < y), lambda: 0 < x < 3,
                                 lambda: 1 if f > 0 else 2])
def test_an_ordering_has_no_truth_value(use):
    with pytest.raises(ExpressionError, match=r"te\.all") as caught:
        use()
    assert isinstance(caught.value, ValueError) and "if_then_else" in str(caught.value)


# --- errors ---------------------------------------------------------------------------------------------------------

P = pointer_var("P", dtype("float32"))
A = decl_buffer((4, 4), "float32", "A")


@pytest.mark.parametrize("make, kind, words", [
    (lambda: x / y, DTypeError, r"`/` on integers(.|\n)*truncdiv"),
    (lambda: f & 3, DTypeError, "bitwise_and takes integers, not float32"),
    (lambda: ~f, DTypeError, "bitwise_not takes integers"),
    (lambda: build.logical_and(x, b), DTypeError, "takes bool, not int32"),
    (lambda: Add(x, f), DTypeError, r"Add of int32 and float32: both operands need one dtype(.|\n)*astype"),
    (lambda: Not(x), DTypeError, "Not takes bool"),
    (lambda: Select(x, f, f), DTypeError, "the condition of a Select is bool"),
    (lambda: Select(b, f, x), DTypeError, "chooses between float32 and int32"),
    (lambda: Ramp(x, build.const(1, "int64"), 4), DTypeError, "Ramp from int32 by int64"),
    (lambda: Broadcast(x, 1), DTypeError, "at least 2 lanes"),
    (lambda: Cast(dtype("float32x4"), x), DTypeError, "changes the number of lanes"),
    (lambda: Shuffle((Broadcast(x, 2),), (build.const(5),)), DTypeError, "indices from 0 to 1"),
    (lambda: Shuffle((), ()), ArgumentError, "Shuffle of no vectors"),
    (lambda: Shuffle(set(), (build.const(0),)), ArgumentError, "Shuffle of no vectors"),
    (lambda: Shuffle((Broadcast(x, 2),), ()), ArgumentError, "or of no lanes of them"),
    (lambda: Load("float32x4", P, Broadcast(x, 2)), DTypeError, "Load of float32x4 at an index of 2 lanes"),
    (lambda: Store(P, f, x, x), DTypeError, "under a predicate of dtype int32"),
    (lambda: IfThenElse(x, no_op()), DTypeError, "the condition of an if is a scalar bool"),
    (lambda: BufferLoad(A, (x,)), ShapeError, "A has 2 dimensions and is read or written with 1 indices"),
    (lambda: BufferStore(A, x, (x, x)), DTypeError, "a store of int32 into buffer A of float32"),
    (lambda: decl_buffer((2, -1)), ShapeError, "dimension 1 of the shape is -1, below 0"),
    (lambda: decl_buffer((2.5,)), ShapeError, "not an integer"),
    (lambda: decl_buffer((2, 3), strides=(1,)), ShapeError, "2 dimensions and 1 strides"),
    (lambda: build.as_expr(object()), ExpressionError, "cannot be used in an expression"),
    (lambda: Call("float32", "tir.expp", (f,)), OptionError, "there is no operator 'tir.expp'"),
    (lambda: Var(3), ArgumentError, "Var: the field name is a str, not 3"),
    (lambda: x ** 7, DTypeError, "power of int32"),
    (lambda: build.cast("handle", x), DTypeError, "cannot be cast"),
    (lambda: IRModule({})["f"], OptionError, "has no function 'f'"),
    (lambda: IRModule({"f": 3}), ArgumentError, "holds PrimFuncs"),
])
def test_wrong_use_says_what_and_what_instead(make, kind, words):
    with pytest.raises(kind, match=words) as caught:
        make()
    assert isinstance(caught.value, (TedslError, RuntimeError))


# --- nodes ----------------------------------------------------------------------------------------------------------

def test_nodes_are_immutable_and_identical_to_themselves():
    e = x + 1
    with pytest.raises(AttributeError):
        e.a = y
    assert e.same_as(e) and not e.same_as(x + 1) and hash(e) == hash(e)
    assert e.replace(a=y).a is y and e.map_children(lambda child: child) is e


@pytest.mark.parametrize("whole", [
    Store(pointer_var("A", "float32"), f, x), Store(pointer_var("A", "float32"), f, x, b),
    IfThenElse(b, no_op()), IfThenElse(b, no_op(), no_op()),
    SeqStmt((no_op(), Evaluate(x))), Call("int32", Op.get("tir.shift_left"), (x, y)), Range(x, y), axis,
    For(x, build.const(0), y, ForKind.SERIAL, no_op())], ids=lambda node: type(node).__name__)
def test_children_are_listed_in_order_and_replaced_where_they_change(whole):
    """Absent ones are left out; what is no child (a loop's variable, a store's buffer) stays."""
    listed = []
    for name in whole.children:
        value = getattr(whole, name)
        listed += value if isinstance(value, tuple) else [value] if value is not None else []
    assert whole.child_nodes() == listed and whole.map_children(lambda child: child) is whole
    copies = {child: Var("new") if child is y else child for child in listed}
    changed = whole.map_children(copies.__getitem__)
    assert (changed is whole) == (y not in listed) and type(changed) is type(whole)
    assert [a is b for a, b in zip(changed.child_nodes(), copies.values())] == [True] * len(listed)
    assert all(getattr(changed, name) is getattr(whole, name) for name in whole.init_fields if name not in whole.children)


def test_creating_a_node_is_cheap():
    one = build.const(1)
    best = min(_seconds(lambda: [Add(x, one) for _ in range(10_000)]) for _ in range(5))
    assert best / 10_000 < 3e-6, "decision 1: well under a microsecond on a machine that is not busy"


def _seconds(work):
    """Of this thread's processor time: other programs may keep the machine busy."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def test_intrinsics_are_one_object_by_name():
    assert Op.get("tir.exp") is Op.get(Op.get("tir.exp")) is build.call("tir.exp", f).op


def test_ranges():
    assert (Range(2, 9).min.value, Range(2, 9).extent.value) == (2, 7) and Range(5).extent.value == 5
    assert Range.from_min_extent(2, 7).extent.value == 7


# --- walking and rebuilding -----------------------------------------------------------------------------------------

def test_substitution_reaches_buffers_and_pointers():
    B = decl_buffer((x,), "float32", "B")
    load = substitute(BufferLoad(B, (x,)), {x: build.const(5)})
    assert load.indices[0].value == 5 and load.buffer.shape[0].value == 5
    Q = pointer_var("Q", dtype("float32"))
    assert substitute(Load("float32", P, x), {P: Q}).buffer_var is Q
    assert substitute(x + 1, {y: 3}) is not None and substitute(x, {}) is x
    assert substitute(axis.var + 1, {axis: y}).a is y


def test_a_fresh_copy_renames_every_binder():
    stmt = For(x, build.const(0), build.const(4), 0, LetStmt(y, x * 2, Evaluate(build.call("tir.ret", y))))
    copy = fresh_copy(stmt)
    assert copy.loop_var is not x and copy.body.var is not y and copy.loop_var.name == "x"
    assert not uses(copy, [x, y]) and fresh_copy(stmt, {}).body.value.a is not x


def test_variables_in_order_of_use():
    assert variables(y + (x * y)) == [y, x]
    assert variables(Store(P, f, x)) == [f, x, P]
    assert not uses(x + 1, y) and uses(Load("float32", P, x), P)


def test_pointers_are_the_variables_without_numbers():
    """Of loads in indices and values, of attributes, and as arguments of calls."""
    q, handle = pointer_var("q", dtype("int32")), Var("h", "handle")
    inner = Load(dtype("float32"), P, Load(dtype("int32"), q, x))
    body = seq(Store(P, inner, x + y), AttrStmt(handle, "storage_alignment", x, Evaluate(y)),
               Evaluate(Call(dtype("int32"), Op.get("tir.tvm_struct_get"), (handle,))))
    assert pointers(body) == [v for v in variables(body) if v.dtype.is_handle] == [q, P, handle]


def test_sequences_are_flat_and_empty_ones_do_nothing():
    one, two = Store(P, f, x), Store(P, f, y)
    assert seq(seq(one, two), None, no_op(), one).seq == (one, two, one)
    assert seq(one) is one and isinstance(seq(), Evaluate) and isinstance(seq(one, two), SeqStmt)


class Doubled(Rewriter):
    def rewrite(self, node):
        return IntImm(node.dtype, node.value * 2) if isinstance(node, IntImm) else node


def test_ten_thousand_levels_with_the_recursion_limit_as_it_is():
    limit = sys.getrecursionlimit()
    deep: Expr = x
    for _ in range(10_000):
        deep = (deep + 1) * 3
    doubled = Doubled()(deep)
    assert sum(isinstance(node, Mul) for node in post_order(doubled)) == 10_000
    assert evaluate(substitute(FloorDiv(doubled, build.const(1)), {x: build.const(0)})) is not None
    assert variables(deep) == [x] and sys.getrecursionlimit() == limit


def test_rewriting_keeps_sharing_and_what_does_not_change():
    shared = x + 1
    both = Mul(shared, shared)
    made = Doubled()(both)
    assert made.a is made.b and made.a.b.value == 2
    assert Doubled()(Mul(x, y)) is not None and Doubled()(x) is x


def test_functions_and_modules():
    func = PrimFunc((), no_op(), attrs={"global_symbol": "f"})
    module = IRModule.from_expr(func)
    assert module["f"] is func and "f" in module and list(module) == ["f"] and func.with_body(func.body) is func
    assert func.with_attr("a", 1).attrs["a"] == 1 and "a" not in func.attrs
    assert INT32 == "int32"


def test_arrays_for_names_of_operators_and_dtypes_are_refused():
    x = Var("x", "float32")
    with pytest.raises(OptionError, match="there is no operator"):
        tir.call_intrin("float32", np.zeros(3), x)
    with pytest.raises(DTypeError, match="is not a dtype"):
        tir.call_intrin(np.zeros(3), "tir.exp", x)


def test_what_is_no_condition_is_not_likely():
    for words in ("a", 3, Var("x", "int32")):
        with pytest.raises(DTypeError, match="likely takes bool"):
            tir.ir_builder.create().likely(words)


def test_an_integer_is_not_replaced_by_a_fraction():
    i, x = Var("i", "int32"), Var("x", "float32")
    for value in (1.5, x, x + 1.0, build.const(2.0)):
        with pytest.raises(DTypeError, match=r"i is int32, and .* is float32"):
            tir.stmt_functor.substitute(i + 1, {i: value})
    assert str(tir.stmt_functor.substitute(i + 1, {i: 2})) == "(2 + 1)"
    assert tir.stmt_functor.substitute(x + 1.0, {x: 2}) is not None
