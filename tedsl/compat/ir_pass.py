"""The passes of TVM 0.6 over single statements and expressions: `tvm.ir_pass.Simplify(stmt)`.

Today's passes (tir.transform) take modules; here a statement is the body of a function without parameters. Passes over
functions are in `lowered_func.py`; one over statements that gets a function changes its body. Of a module they
take its only function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tedsl.arith.analyzer import Analyzer
from tedsl.compat.lowered_func import (
    BindDeviceType,
    CombineContextCall,
    LowerCustomDatatypes,
    LowerIntrin,
    LowerThreadAllreduce,
    LowerTVMBuiltin,
    LowerWarpMemory,
    MakeAPI,
    SplitHostDevice,
    ThreadSync,
    VerifyMemory,
    takes_modules,
)
from tedsl.errors import ArgumentTypeError, entries
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr, Var
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.stmt import Stmt
from tedsl.ir.walk.equal import structural_equal, structural_hash
from tedsl.ir.walk.single_assignment import verify_ssa
from tedsl.ir.walk.substitute import Substitution, bind_once, substitute
from tedsl.ir.walk.transformer import ir_transform
from tedsl.ir.walk.visitor import post_order_visit
from tedsl.lang.tensor import Tensor
from tedsl.lower.regions.bound_map import as_prim_func
from tedsl.passes.context import PassContext
from tedsl.passes.device.verify_gpu_code import verify_gpu_code
from tedsl.passes.module_pass import ModulePass, on_function
from tedsl.tir import transform

__all__ = [
    "AttrsEqual", "AttrsHash", "BindDeviceType", "CanonicalSimplify", "CombineContextCall", "ConvertSSA",
    "DecorateDeviceScope", "Equal", "ExprUseVar", "HoistIfThenElse", "IRTransform", "InferFragment", "InjectCopyIntrin",
    "InjectDoubleBuffer", "InjectPrefetch", "InjectVirtualThread", "LiftAttrScope", "LoopPartition", "LowerCustomDatatypes",
    "LowerDeviceStorageAccessInfo", "LowerIntrin", "LowerTVMBuiltin", "LowerThreadAllreduce", "LowerWarpMemory", "MakeAPI",
    "NarrowDataType", "PostOrderVisit", "RemoveNoOp", "RewriteUnsafeSelect", "Simplify", "SkipVectorize", "SplitHostDevice",
    "StorageFlatten", "StorageRewrite", "Substitute", "ThreadSync", "UnrollLoop", "VectorizeLoop", "VerifyGPUCode",
    "VerifyMemory", "VerifySSA",
]
_COPROCESSORS = 'there are no coprocessors here; for the threads of a GPU, ir_pass.ThreadSync(func, "shared") inserts barriers'
_ABSENT = {
    "CoProcSync": _COPROCESSORS,
    "Inline": "s[B].compute_inline() inlines a stage; ir_pass.Substitute replaces variables of a statement",
    "InstrumentBoundCheckers": "tvm.build(..., checked=True) checks every access while the function runs",
    "LowerStorageAccessInfo": "memory of registered scopes keeps its scope: backends read it there",
    "RemapThreadAxis": "bind the loop to the other axis: s[B].bind(loop, tvm.thread_axis(\"threadIdx.y\"))",
    "RewriteForTensorCore": "tensorize the loops with tir.tvm_load_matrix_sync, tvm_mma_sync and tvm_store_matrix_sync",
    "VerifyCompactBuffer": "arrays of calls are checked: a function takes strides, or says which array is not compact",
}


S = TypeVar("S", Stmt, PrimFunc)


def _applied(name: str, step: ModulePass, stmt: S) -> S:
    """Returns a statement, or a function, after a pass over modules."""
    made: Any = on_function(step, stmt if isinstance(stmt, PrimFunc) else PrimFunc((), _statement(name, stmt)))
    result: S = made if isinstance(stmt, PrimFunc) else made.body
    return result


def _statement(name: str, given: Any) -> Stmt:
    """Returns a statement, or the body of the function that is given; ArgumentTypeError for other things."""
    body = given.body if isinstance(given, PrimFunc) else given
    if not isinstance(body, Stmt):
        raise ArgumentTypeError(f"ir_pass.{name} takes a statement, not {given!r}",
                                hint="the body of a function: tedsl.lower(s, args)['main'].body")
    return body


def _inside(given: Any) -> Any:
    """Returns what is given, of a function, or of a module of one, its body."""
    if isinstance(given, IRModule) and len(given) == 1:
        (given,) = [func for _, func in given.items()]
    return given.body if isinstance(given, PrimFunc) else given


def _on_statements(name: str, document: str) -> Callable[[S], S]:
    """Returns the pass `name` of tir.transform, which has no options, as a function of a statement."""
    step: Callable[[], ModulePass] = getattr(transform, name)

    def function(stmt: S) -> S:
        return _applied(name, step(), stmt)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = document
    return takes_modules(function)


@takes_modules
def LiftAttrScope(stmt: S, attr_key: str) -> S:
    """A statement whose attributes of a key are written once for all that they hold for."""
    return _applied("LiftAttrScope", transform.LiftAttrScope(attr_key), stmt)


@takes_modules
def InjectCopyIntrin(stmt: S, pragma_key: str, flower_copy_fromto: Callable[..., Any]) -> S:
    """Replaces loops with the pragma, which copy an array, by what the function returns for the source and the target."""
    return _applied("InjectCopyIntrin", transform.InjectCopyIntrin(pragma_key, flower_copy_fromto), stmt)


def _optioned(name: str, step: ModulePass, stmt: S, **options: Any) -> S:
    """Returns a statement after a pass over modules, which reads its options from the current PassContext."""
    with PassContext(config={f"tir.{name}": options}):
        return _applied(name, step, stmt)


@takes_modules
def Simplify(node: Any, vrange: Mapping[Var, Any] | None = None) -> Any:
    """An expression or statement, simplified; vrange: the ranges of variables."""
    if isinstance(node, (Stmt, PrimFunc)):
        given: Any = node
        return _applied("Simplify", transform.Simplify(), given)
    return _analyzer(vrange).simplify(node)


@takes_modules
def CanonicalSimplify(node: Any, vrange: Mapping[Var, Any] | None = None) -> Any:
    """An expression or statement with sums and products in a canonical order."""
    if isinstance(node, (Stmt, PrimFunc)):
        return Simplify(node)
    return _analyzer(vrange).canonical_simplify(node)


def _analyzer(ranges: Mapping[Var, Any] | None) -> Analyzer:
    analyzer = Analyzer()
    for var, extent in (ranges or {}).items():
        analyzer.bind(var, extent)
    return analyzer


def Equal(lhs: Any, rhs: Any) -> bool:
    """Tells whether two expressions or statements are the same but for the names of what they bind."""
    return structural_equal(_inside(lhs), _inside(rhs))


def AttrsEqual(lhs: Any, rhs: Any) -> bool:
    """Tells whether two values of attributes, expressions or containers of them, are the same."""
    return structural_equal(lhs, rhs)


def AttrsHash(node: Any) -> int:
    """A number that is the same for values that AttrsEqual calls equal."""
    return structural_hash(node)


@takes_modules
def ExprUseVar(expr: Expr, var: Var) -> bool:
    """Tells whether a variable occurs in an expression."""
    found: list[bool] = []
    post_order_visit(expr, lambda node: found.append(True) if node is var else None)
    return bool(found)


@takes_modules
def Substitute(node: Any, vmap: Mapping[Var, Any]) -> Any:
    """An expression or statement with variables replaced."""
    return substitute(node, vmap)


@takes_modules
def PostOrderVisit(node: Any, func: Callable[[Any], None]) -> None:
    """Calls `func` with each node, operands first. node: also several, as the body of an operation is."""
    for one in node if isinstance(node, (tuple, list)) else (node,):
        post_order_visit(_inside(one), func)


@takes_modules
def IRTransform(stmt: Stmt, preorder: Callable[[Any], Any] | None, postorder: Callable[[Any], Any] | None,
                only_enable: list[str] | None = None) -> Any:
    """A statement rewritten by two functions, as tir.stmt_functor.ir_transform. only_enable: names of nodes of 0.6 too."""
    if isinstance(only_enable, (list, tuple)):
        only_enable = [own for name in only_enable for own in _RENAMED.get(name, (name,))]
    return ir_transform(stmt, preorder, postorder, only_enable)


# nodes of 0.6 that have other names; of Free and ProducerConsumer there are none
_RENAMED: dict[str, tuple[str, ...]] = {
    "Block": ("SeqStmt",), "Provide": ("BufferStore", "ProducerStore"), "Realize": ("BufferRealize", "ProducerRealize"),
    "Variable": ("Var", "SizeVar"), "UIntImm": ("IntImm",), "Free": (), "ProducerConsumer": ()}


@takes_modules
def VerifySSA(func: PrimFunc | Stmt) -> bool:
    """Tells whether every variable is bound once."""
    return verify_ssa(func if isinstance(func, PrimFunc) else PrimFunc((), func))


@takes_modules
def ConvertSSA(stmt: Stmt) -> Stmt:
    """A statement that binds every variable once."""
    return bind_once(_statement("ConvertSSA", stmt))


@takes_modules
def VerifyGPUCode(stmt: Stmt, constraints: Mapping[str, Any]) -> bool:
    """Tells whether the launches of a statement keep to limits, as tir.analysis.verify_gpu_code, which lists them."""
    return verify_gpu_code(PrimFunc((), _statement("VerifyGPUCode", stmt)), constraints)


@takes_modules
def StorageFlatten(stmt: Any, extern_buffer: Mapping[Tensor, Buffer] | None = None, cache_line_size: int = 64,
                   create_bound_attribute: bool = False) -> Any:
    """A statement over flat memory. extern_buffer: the buffers of tensors that a call passes; others are allocated, and inputs
    that are not named keep the statement's own.
    """
    given = dict(extern_buffer or {})
    if given:
        function = as_prim_func(list(given), _statement("StorageFlatten", stmt))
        change = Substitution({})
        change.buffers.update(zip(function.buffers, given.values()))
        stmt = change(function.body)
    return _applied("StorageFlatten", transform.StorageFlatten(cache_line_size, create_bound_attribute), stmt)


@takes_modules
def LoopPartition(stmt: S, partition_const_loop: bool = False) -> S:
    """A statement whose loops are split where their guards begin and cease to hold."""
    return _optioned("LoopPartition", transform.LoopPartition(), stmt, partition_const_loop=partition_const_loop)


@takes_modules
def UnrollLoop(stmt: S, auto_max_step: int = 0, auto_max_depth: int = 8, auto_max_extent: int = 0,
               explicit_unroll: bool = True) -> S:
    """A statement whose marked loops, and short ones by the limits given, are copies of their bodies."""
    return _optioned("UnrollLoop", transform.UnrollLoop(), stmt, auto_max_step=auto_max_step, auto_max_depth=auto_max_depth,
                     auto_max_extent=auto_max_extent, explicit_unroll=explicit_unroll)


@takes_modules
def InjectDoubleBuffer(stmt: S, split_loop: int = 1) -> S:
    """A statement that fills memory marked double_buffer one iteration ahead."""
    return _optioned("InjectDoubleBuffer", transform.InjectDoubleBuffer(), stmt, split_loop=split_loop)


@takes_modules
def NarrowDataType(stmt: S, target_bits: int = 32) -> S:
    """A statement with index arithmetic in `target_bits` bits where that is proved to be enough."""
    return _applied("NarrowDataType", transform.NarrowDataType(target_bits), stmt)


@takes_modules
def SkipVectorize(stmt: S) -> S:
    """A statement whose vectorized loops are serial."""
    return _applied("SkipVectorize", transform.VectorizeLoop(enable_vectorize=False), stmt)


VectorizeLoop = _on_statements("VectorizeLoop", "A statement whose vectorized loops are vector statements.")
InjectVirtualThread = _on_statements("InjectVirtualThread", "A statement whose virtual threads are interleaved copies.")
InjectPrefetch = _on_statements("InjectPrefetch", "A statement that prefetches the regions marked so.")
DecorateDeviceScope = _on_statements("DecorateDeviceScope", "A statement in the attribute device_scope.")
LowerDeviceStorageAccessInfo = _on_statements(
    "LowerDeviceStorageAccessInfo", "A statement with pointers as addresses, and tagged memory as what the program says.")
InferFragment = _on_statements("InferFragment", "A statement with the shapes and orders of fragments as attributes.")
StorageRewrite = _on_statements(
    "StorageRewrite", "A statement whose allocations share memory where they live at different times.")
RemoveNoOp = _on_statements("RemoveNoOp", "A statement without the parts that do nothing.")
RewriteUnsafeSelect = _on_statements(
    "RewriteUnsafeSelect", "A statement in which sides of selects that must not be evaluated are not.")
HoistIfThenElse = _on_statements("HoistIfThenElse", "A statement whose loop-invariant conditions stand outside of their loops.")

entries(globals(), absent=_ABSENT)
