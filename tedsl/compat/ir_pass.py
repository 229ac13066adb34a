"""The passes of TVM 0.6 over single statements and expressions: `tvm.ir_pass.Simplify(stmt)`.

Today's passes (tir.transform) take modules; here a statement is the body of a function without parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import ArgumentTypeError, entries
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Stmt
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.single_assignment import verify_ssa
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.transformer import ir_transform
from tedsl.ir.walk.visitor import post_order_visit
from tedsl.lang.tensor import Tensor
from tedsl.passes.context import PassContext
from tedsl.passes.module_pass import ModulePass, on_function
from tedsl.tir import transform

__all__ = ["CanonicalSimplify", "Equal", "ExprUseVar", "HoistIfThenElse", "IRTransform", "InjectDoubleBuffer",
           "InjectPrefetch", "InjectVirtualThread", "LoopPartition", "NarrowDataType", "PostOrderVisit", "RemoveNoOp",
           "RewriteUnsafeSelect", "Simplify", "StorageFlatten", "StorageRewrite", "Substitute", "UnrollLoop", "VectorizeLoop",
           "VerifySSA"]


def _applied(name: str, step: ModulePass, stmt: Any) -> Stmt:
    """Returns a statement after a pass over modules."""
    if not isinstance(stmt, Stmt):
        raise ArgumentTypeError(f"ir_pass.{name} takes a statement, not {stmt!r}",
                                hint="the body of a function: tedsl.lower(s, args)['main'].body")
    return on_function(step, PrimFunc((), stmt)).body


def _on_statements(name: str, document: str) -> Callable[[Stmt], Stmt]:
    """Returns the pass `name` of tir.transform, which has no options, as a function of a statement."""
    step: Callable[[], ModulePass] = getattr(transform, name)

    def function(stmt: Stmt) -> Stmt:
        return _applied(name, step(), stmt)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = document
    return function


def _optioned(name: str, step: ModulePass, stmt: Any, **options: Any) -> Stmt:
    """Returns a statement after a pass over modules, which reads its options from the current PassContext."""
    with PassContext(config={f"tir.{name}": options}):
        return _applied(name, step, stmt)


def Simplify(node: Any, vrange: Mapping[Var, Any] | None = None) -> Any:
    """An expression or statement, simplified; vrange: the ranges of variables."""
    if isinstance(node, Stmt):
        return _applied("Simplify", transform.Simplify(), node)
    return _analyzer(vrange).simplify(node)


def CanonicalSimplify(node: Any, vrange: Mapping[Var, Any] | None = None) -> Any:
    """An expression or statement with sums and products in a canonical order."""
    if isinstance(node, Stmt):
        return Simplify(node)
    return _analyzer(vrange).canonical_simplify(node)


def _analyzer(ranges: Mapping[Var, Any] | None) -> Analyzer:
    analyzer = Analyzer()
    for var, extent in (ranges or {}).items():
        analyzer.bind(var, extent)
    return analyzer


def Equal(lhs: Any, rhs: Any) -> bool:
    """Tells whether two expressions or statements are the same but for the names of what they bind."""
    return structural_equal(lhs, rhs)


def ExprUseVar(expr: Expr, var: Var) -> bool:
    """Tells whether a variable occurs in an expression."""
    found: list[bool] = []
    post_order_visit(expr, lambda node: found.append(True) if node is var else None)
    return bool(found)


def Substitute(node: Any, vmap: Mapping[Var, Any]) -> Any:
    """An expression or statement with variables replaced."""
    return substitute(node, vmap)


def PostOrderVisit(node: Any, func: Callable[[Any], None]) -> None:
    """Calls `func` with each node, operands first."""
    post_order_visit(node, func)


def IRTransform(stmt: Stmt, preorder: Callable[[Any], Any] | None, postorder: Callable[[Any], Any] | None,
                only_enable: list[str] | None = None) -> Any:
    """A statement rewritten by two functions, as tir.stmt_functor.ir_transform."""
    return ir_transform(stmt, preorder, postorder, only_enable)


def VerifySSA(func: PrimFunc | Stmt) -> bool:
    """Tells whether every variable is bound once."""
    return verify_ssa(func if isinstance(func, PrimFunc) else PrimFunc((), func))


def StorageFlatten(stmt: Stmt, extern_buffer: Mapping[Tensor, Buffer] | None = None, cache_line_size: int = 64,
                   create_bound_attribute: bool = False) -> Stmt:
    """A statement over flat memory. extern_buffer: accepted; the statement's own buffers say what they are."""
    return _applied("StorageFlatten", transform.StorageFlatten(cache_line_size, create_bound_attribute), stmt)


def LoopPartition(stmt: Stmt, partition_const_loop: bool = False) -> Stmt:
    """A statement whose loops are split where their guards begin and cease to hold."""
    return _optioned("LoopPartition", transform.LoopPartition(), stmt, partition_const_loop=partition_const_loop)


def UnrollLoop(stmt: Stmt, auto_max_step: int = 0, auto_max_depth: int = 8, auto_max_extent: int = 0,
               explicit_unroll: bool = True) -> Stmt:
    """A statement whose marked loops, and short ones by the limits given, are copies of their bodies."""
    return _optioned("UnrollLoop", transform.UnrollLoop(), stmt, auto_max_step=auto_max_step, auto_max_depth=auto_max_depth,
                     auto_max_extent=auto_max_extent, explicit_unroll=explicit_unroll)


def InjectDoubleBuffer(stmt: Stmt, split_loop: int = 1) -> Stmt:
    """A statement that fills memory marked double_buffer one iteration ahead."""
    return _optioned("InjectDoubleBuffer", transform.InjectDoubleBuffer(), stmt, split_loop=split_loop)


def NarrowDataType(stmt: Stmt, target_bits: int = 32) -> Stmt:
    """A statement with index arithmetic in `target_bits` bits where that is proved to be enough."""
    return _applied("NarrowDataType", transform.NarrowDataType(target_bits), stmt)


VectorizeLoop = _on_statements("VectorizeLoop", "A statement whose vectorized loops are vector statements.")
InjectVirtualThread = _on_statements("InjectVirtualThread", "A statement whose virtual threads are interleaved copies.")
InjectPrefetch = _on_statements("InjectPrefetch", "A statement that prefetches the regions marked so.")
StorageRewrite = _on_statements(
    "StorageRewrite", "A statement whose allocations share memory where they live at different times.")
RemoveNoOp = _on_statements("RemoveNoOp", "A statement without the parts that do nothing.")
RewriteUnsafeSelect = _on_statements(
    "RewriteUnsafeSelect", "A statement in which sides of selects that must not be evaluated are not.")
HoistIfThenElse = _on_statements("HoistIfThenElse", "A statement whose loop-invariant conditions stand outside of their loops.")

entries(globals())
