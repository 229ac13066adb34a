"""Functions that no schedule has made: what they must bind, their names, variables that several loops share."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, LoweringError
from tests.one_stage import doubled


@pytest.mark.parametrize("names, words", [(["llvm.exp.f32"], "LLVM's own"), (["f.compact", "f"], "cannot hold 'f' and")])
def test_names_that_mean_something_else_are_refused(names, words):
    # the first ended the process
    s, a, c = doubled()
    func = tedsl.lower(s, [a, c])["main"]
    with pytest.raises(ArgumentError, match=words):
        tedsl.build(tedsl.IRModule(dict.fromkeys(names, func)))


def test_a_function_that_uses_what_it_does_not_bind():
    a, z = tir.decl_buffer((16,), "int32", name="A"), tir.decl_buffer((16,), "int32", name="Z")
    handle, q = tir.Var("A", "handle"), te.var("q")
    zero = tir.IntImm("int32", 0)
    for value, name in ((q, "q"), (tir.BufferLoad(z, [zero]), "Z")):
        func = tir.PrimFunc([handle], tir.BufferStore(a, value, [zero]), None, {handle: a})
        for made in (func, tedsl.IRModule({"f": func})):
            with pytest.raises(LoweringError, match=f"use {name}, and no argument"):
                tedsl.build(made)


@pytest.mark.parametrize("kind", [tir.ForKind.SERIAL, tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED, tir.ForKind.UNROLLED])
@pytest.mark.parametrize("shared", ["variable", "loop"])
def test_one_variable_in_several_loops(kind, shared):
    # the second parallel loop began where the first had ended, and wrote behind the array
    a, handle, i = tir.decl_buffer((10,), "int32", name="A"), tir.Var("A", "handle"), tir.Var("i", "int32")
    zero, ten = tir.IntImm("int32", 0), tir.IntImm("int32", 10)

    def loop(kind):
        return tir.For(i, zero, ten, kind, tir.BufferStore(a, i + tir.BufferLoad(a, [i]), [i]))

    one = loop(kind)
    parts = [one, one, one] if shared == "loop" else [loop(kind), loop(tir.ForKind.SERIAL), loop(kind)]
    guarded = np.zeros(64, "int32")
    tedsl.build(tir.PrimFunc([handle], tir.SeqStmt(parts), None, {handle: a}))(guarded[:10])
    np.testing.assert_array_equal(guarded[:10], 3 * np.arange(10))
    assert not guarded[10:].any()
