"""Passes of tir.transform that TVM got after v0.8: 0.9 to 0.19."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import ArgumentTypeError
from tedsl.ir.dtype import INT32
from tedsl.ir.expr import FloorDiv, FloorMod, IntImm
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.stmt import AttrStmt, For, ForKind
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import bind_once
from tedsl.passes.info import PassInfo
from tedsl.passes.loops.hoist_conditions import hoist_conditions
from tedsl.passes.loops.hoist_lets import hoist_lets
from tedsl.passes.loops.inject_copies import inject_copies
from tedsl.passes.loops.share_subexpressions import share_subexpressions
from tedsl.passes.module_pass import ModulePass, named_pass
from tedsl.target.current import as_target
from tedsl.target.target import Target
from tedsl.tir.own_pass import own_pass


def AnnotateEntryFunc() -> ModulePass:
    """Returns the pass that gives the attribute "tir.is_entry_func" to the only function of a module, or among several to the
    only one with a "global_symbol".
    """
    def annotate(mod: IRModule) -> IRModule:
        entries = [name for name, func in mod.items() if len(mod) == 1 or "global_symbol" in func.attrs]
        if len(entries) != 1:
            return mod
        return IRModule({name: func.with_attr("tir.is_entry_func", True) if name in entries else func
                         for name, func in mod.items()})

    return ModulePass(PassInfo(0, "tir.AnnotateEntryFunc"), annotate)


def ConvertSSA() -> ModulePass:
    """Returns the pass that gives each loop, let and allocation a variable of its own, where several bind one."""
    return own_pass("ConvertSSA", lambda func: func.with_body(bind_once(func.body)))


def DecorateDeviceScope() -> ModulePass:
    """Returns the pass that writes the attribute "device_scope" around the body of functions."""
    zero = IntImm(INT32, 0)
    return named_pass("DecorateDeviceScope", lambda func: func.with_body(AttrStmt(zero, "device_scope", zero, func.body)))


def InjectCopyIntrin(pragma_key: str, fintrin: Callable[..., Any]) -> ModulePass:
    """Returns the pass that replaces loops with the pragma, which copy an array, by what fintrin(src, dst, pad_before,
    pad_after, pad_value) returns: two buffers with strides; where the loops pad, the elements written around the source.
    """
    if not isinstance(pragma_key, str) or not callable(fintrin):
        raise ArgumentTypeError(f"InjectCopyIntrin takes the name of a pragma and a function, not {pragma_key!r}, {fintrin!r}",
                                hint='InjectCopyIntrin("memcpy", lambda src, dst, before, after, value: ...)')
    return named_pass("InjectCopyIntrin", lambda func: inject_copies(func, pragma_key, fintrin))


def BindTarget(target: Target | str) -> ModulePass:
    """Returns the pass that gives functions the attribute "target", which passes for devices read, where they have none."""
    bound = as_target(target)
    return named_pass("BindTarget", lambda func: func if "target" in func.attrs else func.with_attr("target", bound))


def CommonSubexprElimTIR(enable_cse_tir: bool = True, identify_equiv_terms: bool = False) -> ModulePass:
    """Returns the pass that computes what several expressions have in common once. identify_equiv_terms: expressions are the
    same if they are so when they are simplified.
    """
    def step(func: PrimFunc) -> PrimFunc:
        if not enable_cse_tir:
            return func
        return share_subexpressions(func, form=Analyzer().simplify if identify_equiv_terms else None)

    return own_pass("CommonSubexprElimTIR", step)


def ConvertForLoopsToSerial() -> ModulePass:
    """Returns the pass that makes parallel loops serial."""
    return own_pass("ConvertForLoopsToSerial", lambda func: func.with_body(_Serial()(func.body)))


def HoistExpression() -> ModulePass:
    """Returns the pass that moves loop-invariant conditions, and lets at the beginning of loops, out of them."""
    return own_pass("HoistExpression", lambda func: hoist_conditions(hoist_lets(func), nested=True))


def RenormalizeSplitPattern() -> ModulePass:
    """Returns the pass that writes (x % (c * d)) // d as (x // d) % c, as a split of a loop does."""
    return own_pass("RenormalizeSplitPattern", lambda func: func.with_body(_Renormalizer()(func.body)))


class _Serial(Rewriter):
    kinds = (For,)

    def rewrite(self, node: Any) -> Any:
        return node.replace(kind=ForKind.SERIAL) if isinstance(node, For) and node.kind is ForKind.PARALLEL else node


class _Renormalizer(Rewriter):
    kinds = (FloorDiv,)

    def rewrite(self, node: Any) -> Any:
        match node:
            case FloorDiv(a=FloorMod(a=x, b=IntImm(value=whole)), b=IntImm(value=part)) if part > 0 and whole > 0 \
                    and whole % part == 0:
                return FloorMod(FloorDiv(x, node.b), IntImm(node.dtype, whole // part))
        return node
