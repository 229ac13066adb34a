"""Rewrites statements so that a barrier fits between their parts, although threads differ in the conditions around them.

if (x < 6) { S[..] = ..; .. = S[..] }       ->   if (x < 6) { S[..] = .. };  if (x < 6) { .. = S[..] }
assert (x < n) { S[..] = ..; .. = S[..] }   ->   assert (x < n);  S[..] = ..;  .. = S[..]
let v = A[x] { S[..] = v; .. = S[..] }      ->   allocate(v, local) { v[0] = A[x];  S[..] = v[0];  .. = S[..] }
"""

from __future__ import annotations

from tedsl.ir import build
from tedsl.ir.expr import Expr, Load, Ramp, pointer_var
from tedsl.ir.stmt import Allocate, AssertStmt, AttrStmt, For, IfThenElse, LetStmt, SeqStmt, Stmt, Store, no_op, seq
from tedsl.ir.walk.substitute import substitute
from tedsl.passes.threads.uniform import Uniformity


def guarded(condition: Expr, stmt: Stmt, uniform: Uniformity) -> Stmt:
    """Returns `stmt` under `condition`, which has no loads, with the condition as far inside as possible."""
    match stmt:
        case SeqStmt():
            return seq(*[guarded(condition, part, uniform) for part in stmt.seq])
        case For() if uniform.is_pure(stmt.min) and uniform.is_pure(stmt.extent):
            return stmt.replace(body=guarded(condition, stmt.body, uniform))
        case Allocate() | AttrStmt():
            return stmt.replace(body=guarded(condition, stmt.body, uniform))
        case AssertStmt():
            return seq(IfThenElse(condition, stmt.replace(body=no_op())), guarded(condition, stmt.body, uniform))
        case LetStmt() if uniform.is_pure(stmt.value):
            return stmt.replace(body=guarded(condition, stmt.body, uniform))
        case LetStmt():
            return guarded(condition, kept(stmt), uniform)
        case IfThenElse(else_case=other) if uniform.is_pure(stmt.condition):
            return stmt.replace(then_case=guarded(condition, stmt.then_case, uniform),
                                else_case=None if other is None else guarded(condition, other, uniform))
        case _:
            return IfThenElse(condition, stmt)


def checked_before(stmt: AssertStmt) -> Stmt:
    """Returns the assertion followed by its body, which may then contain a barrier: a thread that fails ends the kernel for
    all.
    """
    return seq(stmt.replace(body=no_op()), stmt.body)


def kept(stmt: LetStmt) -> Allocate:
    """Returns a let as memory of the thread, in which the value stays available after a barrier."""
    of, lanes = stmt.value.dtype.element, stmt.value.dtype.lanes
    memory, first = pointer_var(stmt.var.name, of, "local"), build.const(0, "int32")
    place = first if lanes == 1 else Ramp(first, build.const(1, "int32"), lanes)
    body = substitute(stmt.body, {stmt.var: Load(stmt.value.dtype, memory, place)})
    return Allocate(memory, of, (build.const(lanes, "int32"),), build.true(), seq(Store(memory, stmt.value, place), body))
