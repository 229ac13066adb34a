"""Nodes made from arguments of any type: each is converted, or refused when the node is made. No later step meets it."""

from dataclasses import fields

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.ir import expr, func, iters, node, stmt
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Add, BufferLoad, Call, CommReducer, FloatImm, IntImm, Let, Load, Ramp, Reduce, Select, Shuffle, Var
from tedsl.ir.func import GlobalVar, PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.stmt import AssertStmt, Evaluate, For, ForKind, SeqStmt, Store, Tensorized

I, X, P = Var("i"), Var("x", "float32"), Var("p", "handle")
ONE, YES, NOTHING = IntImm("int32", 1), IntImm("bool", 1), Evaluate(0)
B = tir.decl_buffer((4, 4), "float32", "B")
AXIS = te.reduce_axis((0, 4), "k")
SPAN = iters.Range.from_min_extent(0, 4)
ADDED = CommReducer((Var("l", "float32"),), (Var("r", "float32"),), (X,), (FloatImm("float32", 0.0),))
OTHER_OPERANDS = {"Not": (YES,), "And": (YES, YES), "Or": (YES, YES)}

# Arguments with which each class can be made; binary operators take (i, 1).
GOOD = {
    "Var": ("v", "int32"), "SizeVar": ("n", "int32"), "IntImm": ("int32", 1), "FloatImm": ("float32", 1.0),
    "StringImm": ("text",),
    "Select": (YES, X, X), "Cast": ("float32", I), "Let": (I, ONE, X), "Call": ("float32", "tir.exp", (X,)),
    "Ramp": (I, ONE, 4),
    "Broadcast": (I, 4), "Shuffle": ((Ramp(I, ONE, 4),), (ONE,)), "Load": ("float32", P, I, YES), "BufferLoad": (B, (I, I)),
    "ProducerLoad": (te.placeholder((4,), name="T"), (I,)), "CommReducer": (ADDED.lhs, ADDED.rhs, ADDED.result, (X,)),
    "Reduce": (ADDED, (X,), (AXIS,), YES, 0, (X,)), "For": (I, ONE, ONE, ForKind.SERIAL, NOTHING, None, {}),
    "While": (YES, NOTHING), "LetStmt": (I, ONE, NOTHING), "AttrStmt": (P, "key", ONE, NOTHING),
    "IfThenElse": (YES, NOTHING, NOTHING), "Allocate": (P, "float32", (ONE,), YES, NOTHING, {}), "Store": (P, X, I, YES),
    "BufferStore": (B, X, (I, I)), "BufferRealize": (B, (SPAN, SPAN), YES, NOTHING), "SeqStmt": ((NOTHING, NOTHING),),
    "Evaluate": (ONE,), "AssertStmt": (YES, "no", NOTHING), "Tensorized": ("f", NOTHING, NOTHING, 0),
    "Prefetch": (B, (SPAN, SPAN), 0), "BufferRegion": (B, (SPAN, SPAN)),
    "ProducerStore": (te.placeholder((4,), name="T"), X, (I,)),
    "ProducerRealize": (te.placeholder((4,), name="T"), (SPAN,), YES, NOTHING, "local"),
    "Buffer": (P, "float32", (ONE,), (ONE,), ONE, "B", 0, 0, ""), "Range": (ONE, ONE), "IterVar": (SPAN, I, 0, ""),
    "PrimFunc": ((P,), NOTHING, None, {P: B}, {"global_symbol": "f"}), "GlobalVar": ("f",)}
WRONG = (None, 0, -1, 2.5, float("nan"), True, "x", "\ud800", "int32", b"x", object(), Node, [1], (None,), {}, {"a": 1}, {I: 3},
         np.zeros(2), np.float32(2), X, P, YES, NOTHING, B, AXIS, SPAN, ADDED, SeqStmt((NOTHING, NOTHING)), Ramp(I, ONE, 4))

CLASSES = [cls for module in (expr, stmt, func, iters) for cls in vars(module).values()
           if isinstance(cls, type) and issubclass(cls, Node) and cls.__module__ == module.__name__ and cls.init_fields]


@pytest.mark.parametrize("cls", [*CLASSES, Buffer], ids=lambda cls: cls.__name__)
def test_any_argument_is_taken_or_refused_when_the_node_is_made(cls):
    good = GOOD.get(cls.__name__) or OTHER_OPERANDS.get(cls.__name__) or (I, ONE)
    repr(cls(*good)), str(cls(*good))
    for k in range(len(good)):
        for value in WRONG:
            try:
                made = cls(*good[:k], value, *good[k + 1:])
            except TedslError:
                continue
            assert repr(made), str(made).encode()
            made.map_children(lambda child: child)


def test_the_field_is_named_with_what_it_takes_and_what_came():
    for make, words in (
            (lambda: tir.Allocate(0, "float32", [4], True, NOTHING), r"Allocate: the field buffer_var is a Var, not 0 \(int\)"),
            (lambda: Store(P, None, I), r"Store: the field value is an Expr, not None"),
            (lambda: SeqStmt([NOTHING, 3]), r"SeqStmt: the field seq is a tuple of Stmts, not .*3"),
            (lambda: tir.IfThenElse(YES, NOTHING, 5), r"IfThenElse: the field else_case is a Stmt or None, not 5"),
            (lambda: For(I, 0, 4, 17, NOTHING), r"For: the field kind is a ForKind, not 17"),
            (lambda: Let(ONE, ONE, X), r"Let: the field var is a Var, not 1"),
            (lambda: IntImm("int32", 2.5), r"IntImm: the field value is an int, not 2.5"),
            (lambda: PrimFunc((P,), ONE), r"PrimFunc: the field body is a Stmt, not 1"),
            (lambda: GlobalVar(3), r"GlobalVar: the field name_hint is a str, not 3")):
        with pytest.raises(ArgumentTypeError, match=words):
            make()


def test_names_and_texts_have_no_lone_surrogate():
    """They cannot be printed, nor be written into machine code."""
    for make in (lambda: tir.StringImm("\ud800"), lambda: GlobalVar("a\udfff"), lambda: te.var("\ud800"),
                 lambda: te.placeholder((4,), name="\ud800"), lambda: tir.decl_buffer((4,), name="\ud800"),
                 lambda: te.compute((4,), lambda i: i, name="\ud800"), lambda: te.reduce_axis((0, 4), "\ud800"),
                 lambda: te.compute((4,), lambda i: i, tag="\ud800"), lambda: te.thread_axis("\ud800"),
                 lambda: AssertStmt(YES, "\ud800", NOTHING), lambda: Tensorized("\ud800", NOTHING, NOTHING),
                 lambda: tir.call_extern("int32", "\ud800"), lambda: tir.call_packed("\ud800", 1),
                 lambda: te.extern((4,), [], lambda ins, outs: NOTHING, name="\ud800"),
                 lambda: te.tag_scope("\ud800"), lambda: tir.decl_buffer((4,), scope="\ud800")):
        with pytest.raises(ArgumentError, match="surrogate"):
            make()
    assert tir.StringImm("Größe").value == "Größe"


def test_arguments_as_users_write_them_are_converted():
    """Numbers, axes, lazy comparisons, numpy integers, lists and dicts."""
    assert [type(part) for part in Call("float32", "tir.call_pure_extern", ["f", AXIS, 1]).args] == [tir.StringImm, Var, IntImm]
    assert Ramp(I, 1, np.int64(4)).lanes == 4 and type(Ramp(I, 1, np.int64(4)).lanes) is int
    assert BufferLoad(B, [AXIS, 0]).indices[0] is AXIS.var
    assert Add(I, 3).b.dtype == "int32" and Select(I == 3, X, 0).false_value.dtype == "float32"
    assert For(Var("j", "int64"), 0, 4, 1, NOTHING, annotations={"a": 1}).extent.dtype == "int64"
    assert Load("float32", P, AXIS).index is AXIS.var and Store(P, X, AXIS, I == 0).predicate.dtype == "bool"
    assert Shuffle([Ramp(I, 1, 4)], [0]).dtype == "int32"
    assert Reduce(ADDED, [X], [AXIS], True, 0).source == (X,)


def test_each_class_of_nodes_has_its_types_checked():
    """No field is of a type that the check does not know."""
    for cls in (*CLASSES, Buffer):
        for f in fields(cls):
            of = node._annotation(f)
            name = node._element(of) or of.removesuffix(" | None")
            assert not f.init or of in node._UNCHECKED or name in ("int", "str") or of.startswith("Mapping[") \
                or name in node.SCOPE, (cls, f.name)


@pytest.mark.parametrize("make", [
    lambda: tir.Store(3, 4, 5), lambda: tir.BufferStore(3, 4, 5), lambda: tir.LetStmt(3, 4, 5), lambda: tir.Shuffle(3, 4),
    lambda: tir.For(3, 4, 5, 6, 7), lambda: tir.SeqStmt(3), lambda: tir.PrimFunc(3, 4), lambda: tir.BufferLoad(1, 2),
    lambda: tir.Reduce(1, 2, 3, 4, 5), lambda: tir.IntImm("int32", "x"),
])
def test_nodes_say_what_they_take(make):
    with pytest.raises(tedsl.TedslError, match=r"\w+: the field \w+ is an? .*, not "):
        make()
