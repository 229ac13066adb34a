"""The names of expressions, statements and functions, of which programs declared with `te` consist."""

from typing import TYPE_CHECKING

from tedsl.absent import instead_in
from tedsl.aliases import import_as
from tedsl.errors import entries
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.calls.registered import CallEffectKind
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CommReducer,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    ProducerLoad,
    Ramp,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Sub,
    Var,
)
from tedsl.ir.expr import Expr as PrimExpr
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.ops import Op
from tedsl.ir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferRegion,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    Store,
    While,
)
from tedsl.lang.arithmetic import (
    abs,
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    ceildiv,
    clz,
    compress_lanes,
    const,
    div,
    floordiv,
    floormod,
    if_then_else,
    indexdiv,
    indexmod,
    lane_mask,
    ldexp,
    likely,
    multiply,
    popcount,
    pow,
    power,
    q_multiply_shift,
    reinterpret,
    shift_left,
    shift_right,
    subtract,
    truncdiv,
    truncmod,
)
from tedsl.lang.constants import infinity, max_value, min_value
from tedsl.lang.data_layout import BijectiveLayout, Layout, bijective_layout, layout
from tedsl.lang.intrinsic import (
    call_extern,
    call_intrin,
    call_llvm_intrin,
    call_llvm_pure_intrin,
    call_packed,
    call_pure_extern,
    ret,
)
from tedsl.lang.math import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    copysign,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    exp10,
    floor,
    fmod,
    hypot,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    nearbyint,
    nextafter,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from tedsl.lang.reducer import comm_reducer
from tedsl.lang.reductions import all, any, max, min, prod, sum
from tedsl.lang.tensor import Tensor as DataProducer
from tedsl.tir import analysis, ir_builder, stmt_functor
from tedsl.tir.instructions import (
    Any,
    address_of,
    atomic_add,
    trace,
    tvm_access_ptr,
    tvm_bmma_sync,
    tvm_context_id,
    tvm_fill_fragment,
    tvm_load_matrix_sync,
    tvm_mma_sync,
    tvm_storage_sync,
    tvm_store_matrix_sync,
    tvm_thread_allreduce,
    tvm_tuple,
    tvm_warp_activemask,
    tvm_warp_shuffle,
    tvm_warp_shuffle_down,
    tvm_warp_shuffle_up,
    type_annotation,
)
from tedsl.tir.sequence import stmt_list, stmt_seq

if TYPE_CHECKING:
    from tedsl.ir import buffer, expr, stmt
    from tedsl.tir import transform

__all__ = [
    "Var", "SizeVar", "const", "IntImm", "FloatImm", "StringImm", "Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod",
    "Min", "Max", "EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or", "Not", "Select", "Cast", "Let", "Call", "Ramp",
    "Broadcast", "Shuffle", "Load", "BufferLoad", "ProducerLoad", "Reduce", "CommReducer", "CallEffectKind", "Op",
    "IterVar", "Expr",
    "PrimExpr", "For", "ForKind", "While", "LetStmt", "AttrStmt", "IfThenElse", "Allocate", "Store", "BufferStore",
    "BufferRealize", "BufferRegion", "DataProducer", "ProducerStore", "ProducerRealize", "SeqStmt",
    "Evaluate", "AssertStmt", "Prefetch", "Stmt", "Buffer", "decl_buffer", "PrimFunc",
    "IRModule", "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "sqrt", "rsqrt", "pow",
    "power", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "atan2", "hypot",
    "floor", "ceil", "trunc", "round", "nearbyint", "abs", "fmod", "copysign", "nextafter", "ldexp", "isnan", "isinf",
    "isfinite", "popcount", "clz", "lane_mask", "compress_lanes",
    "div", "truncdiv", "truncmod", "floordiv", "floormod", "indexdiv", "indexmod",
    "if_then_else", "likely", "all", "any", "sum", "prod", "max", "min", "comm_reducer", "min_value", "max_value", "infinity",
    "reinterpret", "call_intrin", "call_extern", "call_pure_extern", "call_packed", "call_llvm_intrin",
    "call_llvm_pure_intrin", "ret", "analysis", "buffer", "ceildiv", "expr", "stmt", "ir_builder", "stmt_functor", "transform",
    "add", "subtract", "multiply", "q_multiply_shift", "stmt_list", "stmt_seq",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right",
    "layout", "bijective_layout", "Layout", "BijectiveLayout",
    "Any", "address_of", "atomic_add", "trace", "tvm_access_ptr", "tvm_bmma_sync", "tvm_context_id", "tvm_fill_fragment",
    "tvm_load_matrix_sync", "tvm_mma_sync", "tvm_storage_sync", "tvm_store_matrix_sync", "tvm_thread_allreduce",
    "tvm_tuple", "tvm_warp_activemask", "tvm_warp_shuffle", "tvm_warp_shuffle_down", "tvm_warp_shuffle_up",
    "type_annotation",
]

import_as(globals(), "buffer", "data_layout", "expr", "function", "generic", "op", "stmt")
_SCHEDULES = "loops are scheduled where they are formulas: s = te.create_schedule(C.op), then s[C].split(...)"
_BLOCKS = "loops have no blocks here: tir.BufferStore and tir.For make them, or tir.ir_builder"

entries(globals(), later={"transform": "tedsl.tir.transform", "IndexMap": "tedsl.tir.index_map:IndexMap", **{
    name: f"tedsl.tir.families:{name}" for name in (
    "BinaryOpExpr", "CmpExpr", "ConstExpr", "EqualOp", "ExprOp", "LogicalExpr", "NotEqualOp", "PrimExprWithOp")}},
        absent={**instead_in("tir"), "Schedule": _SCHEDULES, "schedule": _SCHEDULES, "Block": _BLOCKS, "BlockRealize": _BLOCKS})
