"""Calls of packed functions out of the form that `lower_builtins.py` gives them: backends have a convention of their own.

before:  let stack_value = tvm_stack_alloca("arg_value", 2)  let stack_tcode = tvm_stack_alloca("arg_tcode", 2)
           tvm_struct_set(stack_value, 0, VALUE, int64(x));  stack_tcode[0] = 0
           tvm_call_packed_lowered("f", stack_value, stack_tcode, 0, 1)
after:   call_packed("f", x)

What is stored to stacks stands in front of the call that takes it: a call whose arguments were stored elsewhere is refused.
Memory that processors take by TVMBackendAllocWorkspace is an allocation again.
"""

from __future__ import annotations

from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import HANDLE, dtype
from tedsl.ir.expr import Call, Cast, Expr, IntImm, Load, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import (
    ADDRESS_OF,
    CALL_EXTERN,
    CALL_PACKED,
    CALL_PACKED_LOWERED,
    IS_NULL,
    MAKE_ARRAY,
    MAKE_SHAPE,
    STACK_ALLOCA,
    STRUCT_GET,
    STRUCT_SET,
    THROW_LAST_ERROR,
)
from tedsl.ir.stmt import Allocate, Evaluate, IfThenElse, LetStmt, SeqStmt, Stmt, Store, no_op, seq
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.machine.lower_builtins import (
    ALLOCATE,
    BITS,
    BYTE_OFFSET,
    CODE,
    CODES,
    DATA,
    FREE,
    LANES,
    PROCESSOR,
    RANK,
    READ_ONLY,
    SHAPE,
    STRIDES,
    VALUE,
)
from tedsl.passes.remove_no_ops import remove_no_ops
from tedsl.passes.storage.as_bits import element_of


def raise_builtins(func: PrimFunc) -> PrimFunc:
    """Returns `func` with its calls as `tir.call_packed` and its memory as allocations; itself if none are lowered."""
    if not contains(func.body, CALL_PACKED_LOWERED, THROW_LAST_ERROR):
        return func
    return remove_no_ops(func.with_body(_Raising(func.name)(func.body)))


class _Raising(ScopedRewriter):
    def __init__(self, name: str) -> None:
        self.name = name
        self.stacks: set[Var] = set()
        self.stored: dict[tuple[Var, int, int], Expr] = {}  # by stack, element, and field
        self.calls = _Calls(self)

    def expr(self, expr: Expr) -> Expr:
        self.calls = _Calls(self)  # what is stored changes from statement to statement
        made: Expr = self.calls(expr)
        return made

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case LetStmt(var=var, value=Call(op=op)) if op is STACK_ALLOCA:
                self.stacks.add(var)
                return self.stmt(stmt.body)
            case LetStmt(value=Call(op=op, args=(StringImm(value=ALLOCATE.value), IntImm(value=device), *_))) \
                    if op is CALL_EXTERN and device == PROCESSOR:
                return self.descend(_allocated(stmt))
            case Evaluate(value=Call(op=op, args=(Var() as stack, at, field, value))) if op is STRUCT_SET:
                return self.store(stack, at, field, value)
            case Store(buffer_var=stack, value=value, index=at) if stack in self.stacks:
                return self.store(stack, at, build.const(VALUE, "int32"), value)
            case _:
                return self.descend(stmt)

    def store(self, stack: Var, at: Expr, field: Expr, value: Expr) -> Stmt:
        place, of = build.as_int(at), build.as_int(field)
        if place is None or of is None:
            raise LoweringError(f"{self.name} stores an argument at {at!r} of {stack.name}, which is not a constant")
        self.stored[stack, place, of] = self.expr(value)
        return no_op()

    def get(self, stack: Any, at: int, field: int) -> Expr:
        value = self.stored.get((stack, at, field))
        if value is None:
            raise LoweringError(f"{self.name} calls a packed function of which argument {at} was not stored",
                                hint="store the arguments in front of the call, as LowerTVMBuiltin does")
        return value


def _allocated(let: LetStmt) -> Allocate:
    """Returns the workspace that a let takes as an allocation, without the checks that it was given and freed."""
    var, call = let.var, let.value
    assert isinstance(call, Call)
    size = call.args[3]
    of = element_of(var)
    count = Analyzer().simplify(build.floordiv(_without_cast(size), of.bytes * of.lanes))
    body = let.body.seq if isinstance(let.body, SeqStmt) else (let.body,)
    return Allocate(var, of, (count,), build.true(), seq(*(part for part in body if not _checks_workspace(part, var))))


def _checks_workspace(stmt: Stmt, var: Var) -> bool:
    if not isinstance(stmt, IfThenElse) or not contains(stmt.then_case, THROW_LAST_ERROR):
        return False
    calls = [node for node in post_order(stmt.condition) if isinstance(node, Call) and var in node.args]
    names = [call.args[0] for call in calls if call.op is CALL_EXTERN]
    return any(call.op is IS_NULL for call in calls) or any(
        isinstance(name, StringImm) and name.value == FREE.value for name in names)


class _Calls(Rewriter):
    """Raises the calls of one expression."""

    def __init__(self, around: _Raising) -> None:
        super().__init__()
        self.around = around

    def rewrite(self, node: Any) -> Any:
        match node:
            case Call(op=op, args=(name, values, _, first, last)) if op is CALL_PACKED_LOWERED:
                begin, end = build.as_int(first), build.as_int(last)
                if begin is None or end is None:
                    raise LoweringError(f"{self.around.name} calls {name!r} with a number of arguments that is not a constant")
                args = [_without_cast(self.around.get(values, at, VALUE)) for at in range(begin, end)]
                return Call(node.dtype, CALL_PACKED, (name, *args))
            case Call(op=op, args=(Var() as stack, at, _)) if op is STRUCT_GET and stack in self.around.stacks:
                return self.array(stack, build.as_int(at) or 0)
            case _:
                return node

    def array(self, stack: Var, at: int) -> Expr:
        def number(field: int) -> int:
            return build.as_int(self.around.get(stack, at, field)) or 0

        is_read = (stack, at, READ_ONLY) in self.around.stored

        code = next((name for name, value in CODES.items() if value == number(CODE)), "int")
        of = dtype(f"{code}{number(BITS)}").with_lanes(number(LANES))
        rank, size = number(RANK), of.bytes * of.lanes
        offset = Analyzer().simplify(build.floordiv(self.around.get(stack, at, BYTE_OFFSET), size))
        strides = self.around.get(stack, at, STRIDES)
        marker = build.const(int(is_read and of.lanes == 1), of)
        return Call(HANDLE, MAKE_ARRAY, (
            self.around.get(stack, at, DATA), self.shape(self.around.get(stack, at, SHAPE), rank),
            strides if build.as_int(strides) is not None else self.shape(strides, rank), build.const(rank, "int32"), marker,
            offset))

    def shape(self, address: Expr, rank: int) -> Expr:
        match address:
            case _ if not rank:
                return Call(HANDLE, MAKE_SHAPE, ())
            case Call(op=op, args=(Load(buffer_var=memory, index=index),)) if op is ADDRESS_OF:
                first = build.as_int(index) or 0
                extents = [_without_cast(self.around.get(memory, first + k, VALUE)) for k in range(rank)]
                return Call(HANDLE, MAKE_SHAPE, tuple(extents))
            case _:
                raise LoweringError(f"{self.around.name} has an array whose shape is {address!r}, not an element of a stack")


def _without_cast(value: Expr) -> Expr:
    """Returns the number that stands in 64 bits on a stack."""
    return value.value if isinstance(value, Cast) else value
