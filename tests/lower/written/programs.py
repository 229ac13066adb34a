"""Functions written by hand, and what running them does."""

import numpy as np

import tedsl
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.walk.visitor import post_order
from tedsl.lower.lower import check_function


def function(body, *buffers, scalars=(), name="f"):
    """A function of the buffers, then the scalars."""
    handles = [Var(f"{b.name}_handle", "handle") for b in buffers]
    return PrimFunc([*handles, *scalars], body, None, dict(zip(handles, buffers)),
                    {"global_symbol": name, "tir.noalias": True})


def asserts(func):
    """The conditions that are checked at run time, as text."""
    checked = check_function(func)
    return [repr(node.condition) for node in post_order(checked.body) if type(node).__name__ == "AssertStmt"]


def both(func, *args):
    """Runs `func` by the interpreter and compiled; the arrays as both leave them."""
    first = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    run(check_function(func), first)
    compiled = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    tedsl.build(func)(*compiled)
    for a, b in zip(first, compiled):
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
    return compiled
