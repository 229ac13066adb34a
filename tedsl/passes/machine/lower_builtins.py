"""Calls of packed functions as machine code makes them: their arguments stand in arrays on the stack.

before:  call_packed("f", tvm_stack_make_array(A, tvm_stack_make_shape(4), 0, 1, 0f32, 0), 3)
after:   let arg_tcode = tvm_stack_alloca("arg_tcode", 3)   let arg_value = tvm_stack_alloca("arg_value", 3)
         let array = tvm_stack_alloca("array", 1)           let shape = tvm_stack_alloca("shape", 1)
           shape[0] = 4;  tvm_struct_set(array, 0, DATA, A);  ...
           tvm_struct_set(arg_value, 0, VALUE, tvm_struct_get(array, 0, ADDRESS));  arg_tcode[0] = 7
           tvm_struct_set(arg_value, 1, VALUE, int64(3));  arg_tcode[1] = 0
           tvm_call_packed_lowered("f", arg_value, arg_tcode, 0, 2)

A function, and each body of a parallel loop in it, has stacks of its own, large enough for its largest call: a call of n
arguments takes n values and one for the result. Memory of a device that attributes name ("device_type" and "device_id") comes
from its allocator, that of processors beyond 1024 bytes too; smaller memory stays an allocation, for the stack. `build` makes
calls and memory of it again (`raise_builtins.py`). Numbers of fields and codes are those of TVM's C API.
"""

from __future__ import annotations

from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import BOOL, FLOAT64, HANDLE, INT32, INT64, DType, dtype
from tedsl.ir.expr import Call, Cast, Expr, IntImm, Let, Load, Select, StringImm, Var, pointer_var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.ops import (
    ADDRESS_OF,
    CALL_EXTERN,
    CALL_PACKED,
    CALL_PACKED_LOWERED,
    IF_THEN_ELSE,
    IS_NULL,
    MAKE_ARRAY,
    MAKE_SHAPE,
    STACK_ALLOCA,
    STRUCT_GET,
    STRUCT_SET,
    THROW_LAST_ERROR,
)
from tedsl.ir.stmt import Allocate, AttrStmt, Evaluate, For, ForKind, IfThenElse, LetStmt, Stmt, Store, While, seq
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order

ADDRESS, DATA, SHAPE, STRIDES, RANK, CODE, BITS, LANES, BYTE_OFFSET, DEVICE_ID, DEVICE_TYPE = range(11)  # of an array
READ_ONLY = 11  # of an array, tedsl's own: the function may not write to it
VALUE = 12  # of an argument
CODES = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bfloat": 4}  # of dtypes
INTEGER, FLOAT, POINTER, ARRAY, TEXT = 0, 2, 3, 7, 11  # of arguments
PROCESSOR = 1  # the type of a device
ON_STACK = 1024  # bytes of memory of processors
ALLOCATE, FREE = StringImm("TVMBackendAllocWorkspace"), StringImm("TVMBackendFreeWorkspace")
DEVICE_KEYS = ("device_type", "device_id")
_KEYS = {"device_type": "device_type", "device_id": "device_id",
         "device_context_type": "device_type", "device_context_id": "device_id"}  # these are those of TVM 0.7


def lower_builtins(func: PrimFunc) -> PrimFunc:
    """Returns `func` with its calls of packed functions, and memory of devices, in the form of machine code.

    Raises LoweringError for a call that is not made in any case, under a select or inside of a loop's bounds, and for memory
    of which one attribute of the device alone is known.
    """
    if not contains(func.body, CALL_PACKED) and not any(
            isinstance(stmt, AttrStmt) and stmt.attr_key in _KEYS for stmt in post_order(func.body)):
        return func
    return func.with_body(_Lowering(func.name).scope(func.body))


class _Stacks:
    """The arrays on the stack of one function or of one iteration of a parallel loop, and how large they must be."""

    def __init__(self) -> None:
        self.tcode = pointer_var("stack_tcode", INT32)
        self.value = Var("stack_value", HANDLE)
        self.array = Var("stack_array", HANDLE)
        self.shape = pointer_var("stack_shape", INT64)
        self.sizes = {"arg_tcode": 0, "arg_value": 0, "array": 0, "shape": 0}

    def around(self, body: Stmt) -> Stmt:
        for (name, size), var in reversed([*zip(self.sizes.items(), (self.tcode, self.value, self.array, self.shape))]):
            if size:
                body = LetStmt(var, Call(HANDLE, STACK_ALLOCA, (StringImm(name), build.const(size, INT32))), body)
        return body


class _Lowering(ScopedRewriter):
    def __init__(self, name: str) -> None:
        self.name = name
        self.stacks = _Stacks()
        self.device: dict[str, Expr] = {}

    def scope(self, body: Stmt) -> Stmt:
        """Returns `body` with stacks of its own."""
        outside, self.stacks = self.stacks, _Stacks()
        made = self.stacks.around(self.stmt(body))
        self.stacks = outside
        return made

    def expr(self, expr: Expr) -> Expr:
        self.refuse(expr)
        return expr

    def refuse(self, node: Node) -> None:
        """Refuse calls in an expression that need not be evaluated, or not once."""
        if contains(node, CALL_PACKED):
            raise LoweringError(f"LowerTVMBuiltin: {self.name} calls a packed function where its arguments cannot be stored "
                                "before",
                                hint="bind its value by a let in front of the statement: x = ib.let('x', call)")

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Store() | Evaluate():
                if not contains(stmt, CALL_PACKED):
                    return stmt
                calls = _Calls(self, stmt)
                made = calls(stmt)
                return seq(*calls.before, made)
            case LetStmt(value=value) | IfThenElse(condition=value) if contains(value, CALL_PACKED):
                calls = _Calls(self, value)
                lowered = calls(value)
                field = "value" if isinstance(stmt, LetStmt) else "condition"
                return seq(*calls.before, self.descend(stmt.replace(**{field: lowered})))
            case For(kind=ForKind.PARALLEL):
                self.expr(stmt.min)
                self.expr(stmt.extent)
                return stmt.replace(body=self.scope(stmt.body))
            case While():
                return self.descend(stmt)
            case AttrStmt(attr_key=key) if key in _KEYS:
                return self.on_device(stmt)
            case Allocate():
                return self.allocation(stmt)
            case _:
                return self.descend(stmt)

    def on_device(self, attr: AttrStmt) -> Stmt:
        outside = self.device
        self.device = {**outside, _KEYS[attr.attr_key]: attr.value}
        body = self.stmt(attr.body)
        self.device = outside
        return body

    def allocation(self, stmt: Allocate) -> Stmt:
        """Returns an allocation on the stack as it is; others as calls of the allocator of the device."""
        kind = self.device.get("device_type")
        if not self.device or (build.as_int(kind) == PROCESSOR and _fits_the_stack(stmt)):
            return self.descend(stmt)
        missing = [key for key in DEVICE_KEYS if key not in self.device]
        if missing or kind is None:
            raise LoweringError(f"LowerTVMBuiltin: the attribute {missing[0]!r} of the device of {stmt.buffer_var.name} is "
                                "missing",
                                hint="write device_type and device_id, as ib.scope_attr('device', 'device_id', 0)")
        number, of, size = self.device["device_id"], stmt.dtype, _bytes_of(stmt)
        hints = (build.const(CODES.get(of.code, 1), INT32), build.const(of.bits, INT32))
        given = Call(HANDLE, CALL_EXTERN, (ALLOCATE, kind, number,
                                           build.cast(dtype("uint64"), size), *hints))
        taken = Call(INT32, CALL_EXTERN, (FREE, kind, number, stmt.buffer_var))
        return LetStmt(stmt.buffer_var, given, seq(
            IfThenElse(Call(BOOL, IS_NULL, (stmt.buffer_var,)), _failure(), None), self.stmt(stmt.body),
            IfThenElse(build.not_equal(taken, build.const(0, INT32)), _failure(), None)))


class _Calls(Rewriter):
    """Lowers the calls of one statement, or of its expression; `before` are the statements that store their arguments."""

    def __init__(self, around: _Lowering, lowered: Node) -> None:
        super().__init__()
        self.stacks, self.before = around.stacks, list[Stmt]()
        self.values = self.arrays = self.numbers = 0  # how many of each stack this statement has taken
        for node in post_order(lowered):
            if isinstance(node, (Select, Let)) or (isinstance(node, Call) and node.op is IF_THEN_ELSE):
                for child in node.child_nodes():
                    around.refuse(child)

    def rewrite(self, node: Any) -> Any:
        match node:
            case Call(op=op, args=args) if op is MAKE_SHAPE:
                return self.shape(args)
            case Call(op=op, args=args) if op is MAKE_ARRAY:
                return self.array(args)
            case Call(op=op, args=(name, *args)) if op is CALL_PACKED:
                return self.call(node.dtype, name, args)
            case _:
                return node

    def set(self, stack: Var, at: int, field: int, value: Any) -> None:
        self.before.append(Evaluate(Call(INT32, STRUCT_SET, (stack, build.const(at, INT32), build.const(field, INT32), value))))

    def shape(self, extents: tuple[Expr, ...]) -> Expr:
        if not extents:
            return IntImm(INT32, 0)  # nothing is read of the shape of one element
        first = self.numbers
        self.numbers += len(extents)
        self.took("shape", self.numbers)
        for k, extent in enumerate(extents):
            self.before.append(Store(self.stacks.shape, _wide(extent, INT64), build.const(first + k, INT32)))
        return _element(self.stacks.shape, first)

    def array(self, args: tuple[Expr, ...]) -> Expr:
        data, shape, strides, rank, marker, offset = args
        at, of = self.arrays, marker.dtype
        self.arrays += 1
        self.took("array", self.arrays)
        fields = {DATA: data, SHAPE: shape, STRIDES: strides, RANK: rank, CODE: IntImm(INT32, CODES.get(of.code, 1)),
                  BITS: IntImm(INT32, of.bits), LANES: IntImm(INT32, of.lanes), BYTE_OFFSET: _bytes(offset, of),
                  DEVICE_ID: IntImm(INT32, 0), DEVICE_TYPE: IntImm(INT32, PROCESSOR)}
        if getattr(marker, "value", 0) == 1:
            fields[READ_ONLY] = IntImm(INT32, 1)
        for field, value in fields.items():
            self.set(self.stacks.array, at, field, value)
        return Call(HANDLE, STRUCT_GET, (self.stacks.array, build.const(at, INT32), build.const(ADDRESS, INT32)))

    def call(self, of: DType, name: Expr, args: list[Expr]) -> Expr:
        first = self.values
        self.values += len(args) + 1
        self.took("arg_value", self.values)
        self.took("arg_tcode", self.values)
        for k, arg in enumerate(args):
            value, code = _argument(arg)
            self.set(self.stacks.value, first + k, VALUE, value)
            self.before.append(Store(self.stacks.tcode, build.const(code, INT32), build.const(first + k, INT32)))
        ends = build.const(first, INT32), build.const(first + len(args), INT32)
        return Call(of, CALL_PACKED_LOWERED, (name, self.stacks.value, self.stacks.tcode, *ends))

    def took(self, stack: str, count: int) -> None:
        self.stacks.sizes[stack] = max(self.stacks.sizes[stack], count)


def _bytes_of(stmt: Allocate) -> Expr:
    size: Expr = build.const(stmt.dtype.bytes * stmt.dtype.lanes, INT64)
    for extent in stmt.extents:
        size = build.mul(size, build.cast(INT64, extent))
    return size


def _fits_the_stack(stmt: Allocate) -> bool:
    size = build.as_int(_bytes_of(stmt))
    return size is not None and size <= ON_STACK


def _failure() -> Stmt:
    return Evaluate(Call(INT32, THROW_LAST_ERROR, ()))


def _element(memory: Var, at: int) -> Expr:
    """Returns the address of an element of a stack."""
    return Call(HANDLE, ADDRESS_OF, (Load(INT64, memory, build.const(at, INT32)),))


def _bytes(offset: Expr, of: DType) -> Expr:
    return build.mul(build.cast(INT64, offset), build.const(of.bytes * of.lanes, INT64))


def _argument(arg: Expr) -> tuple[Expr, int]:
    """Returns an argument as the 64 bits that stand for it, and the code of its type."""
    of = arg.dtype
    if isinstance(arg, StringImm):
        return arg, TEXT
    if of.is_handle:
        return arg, ARRAY if isinstance(arg, Call) and arg.op is STRUCT_GET else POINTER
    if of.is_float:
        return _wide(arg, FLOAT64), FLOAT
    return _wide(arg, INT64), INTEGER


def _wide(number: Expr, of: DType) -> Expr:
    """Returns a number as one of 64 bits; a constant keeps its dtype below the cast."""
    return number if number.dtype is of else Cast(of, number)
