"""Statements of a script: each is read once, in order; what encloses others takes the rest of its block as its body."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from tedsl.compat.tvmscript.blocks import BLOCK, INIT, Allocated, Block, realized
from tedsl.compat.tvmscript.declarations import (
    Axis,
    BufferType,
    Declared,
    Enclosing,
    Loops,
    Memory,
    Scalar,
    store,
)
from tedsl.compat.tvmscript.expressions import evaluate, key_of
from tedsl.errors import ArgumentTypeError, ExpressionError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import HANDLE
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.ir.expr import Expr, StringImm, Var, pointer_var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.ir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
    seq,
)

_IGNORED = ("reads", "writes", "block_attr", "sblock_attr", "preflattened_buffer", "sync", "annotation")
Wrap = Callable[[Stmt], Stmt]


class Parser:
    """One function. names: what it can see: globals, what is around it, builtins."""

    def __init__(self, source: str, names: dict[str, Any], first_line: int = 1) -> None:
        self.names = {**vars(builtins), **names}
        self.first_line = first_line
        self.attrs: dict[str, Any] = {}
        self.buffer_map: dict[Var, Buffer] = {}
        self.blocks = [Block()]
        self.name = ""
        self.source = source

    def function(self, node: ast.FunctionDef, annotations: dict[str, Any]) -> PrimFunc:
        self.name = node.name
        self.names["range"] = lambda begin, end=None: Loops(((0, begin) if end is None else (begin, end - begin),))
        params = tuple([self._parameter(arg.arg, annotations.get(arg.arg)) for arg in node.args.args if arg.arg != "self"])
        body = self.blocks[0].around(self.body(node.body))
        attrs = {"global_symbol": node.name, **self.attrs}
        return PrimFunc(params, body, None, FrozenDict(self.buffer_map), FrozenDict(attrs))

    def _parameter(self, name: str, of: Any) -> Var:
        if isinstance(of, Scalar) and not of.dtype.is_handle:
            param = Var(name, of.dtype)
            self.names[name] = param
            return param
        param = Var(name, HANDLE)
        self.names[name] = param
        if isinstance(of, BufferType):
            self.buffer_map[param] = self.names[name] = of.named(name)
        elif of is not None and not isinstance(of, Scalar) and not callable(of):
            raise ArgumentTypeError(f"{self.name}: the parameter {name} is T.handle, T.Buffer or a dtype such as T.int32, "
                                    f"not {of!r}")
        return param

    # --- statements ---------------------------------------------------------------------------------------------------

    def body(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """The statements in their order; one that encloses others takes those after it."""
        done: list[Stmt] = []
        for at, node in enumerate(nodes):
            made = self.statement(node)
            if isinstance(made, Enclosing):
                done.append(made.around(self.body(nodes[at + 1:])))
                break
            if made is not None:
                done.append(made)
        return seq(*done) if done else Evaluate(build.const(0, "int32"))

    def statement(self, node: ast.stmt) -> Stmt | Enclosing | None:
        match node:
            case ast.Assign(targets=[target]):
                return self._assign(target, node.value)
            case ast.AnnAssign(value=ast.expr() as value):
                return self._assign(node.target, value, self.value(node.annotation))
            case ast.AugAssign():
                before = ast.parse(ast.unparse(node.target), mode="eval").body
                return self._assign(node.target, ast.BinOp(before, node.op, node.value))
            case ast.For():
                return self._for(node)
            case ast.With():
                return self._with(node)
            case ast.If():
                return self._if(node)
            case ast.While():
                return While(self.value(node.test), self.body(node.body))
            case ast.Assert():
                message = StringImm(str(self.value(node.msg)) if node.msg is not None else "assertion failed")
                condition = self.value(node.test)
                return Enclosing(lambda rest: AssertStmt(condition, message, rest))
            case ast.Expr(value=ast.Call() as call):
                return self._call(call)
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return None
            case ast.Return(value=ast.expr() as value):
                return Evaluate(build.call("tir.ret", build.as_expr(self.value(value))))
        raise ExpressionError(f"{self.where(node)}: {ast.unparse(node).splitlines()[0]} is no statement of a script",
                              hint="loops, branches, blocks, stores to buffers, variables and calls are")

    def value(self, node: ast.expr) -> Any:
        return evaluate(node, self.names, self.where(node))

    def where(self, node: ast.AST) -> str:
        return f"script {self.name}, line {getattr(node, 'lineno', 0) + self.first_line - 1}"

    # --- names --------------------------------------------------------------------------------------------------------

    def _assign(self, target: ast.expr, node: ast.expr, of: Any = None) -> Stmt | Enclosing | None:
        if isinstance(target, ast.Subscript):
            return store(self.value(target.value), self.value(key_of(target.slice)), self.value(node))
        if self._is_match(node):
            self.names[_name(target)] = self._matched(node, _name(target))
            return None
        value = self.value(node)
        if isinstance(target, (ast.Tuple, ast.List)):
            around = [made.around for part, one in zip(target.elts, value)
                      if isinstance(made := self._named(_name(part), one, None), Enclosing)]
            return Enclosing(lambda rest: reduce(lambda body, wrap: wrap(body), reversed(around), rest)) if around else None
        return self._named(_name(target), value, of)

    def _named(self, name: str, value: Any, of: Any) -> Stmt | Enclosing | None:
        """Gives a name to what an assignment makes."""
        match value:
            case Axis():
                self.names[name] = self._axis(value)
            case Declared():
                self.names[name] = value.make(name)
            case BufferType():
                self.names[name] = value.named(name)
            case Allocated():
                self.names[name] = buffer = value.type.named(name)
                self.blocks[-1].buffers.append(buffer)
            case Memory():
                return self._allocated(name, value)
            case Enclosing():
                self.names[name] = value.value
                return value
            case Expr() if not isinstance(value, Var) or isinstance(of, Scalar):
                var = self.names[name] = Var(name, value.dtype if of is None or not isinstance(of, Scalar) else of.dtype)
                return Enclosing(lambda rest: LetStmt(var, build.cast(var.dtype, value), rest))
            case _:
                if isinstance(of, Scalar):
                    return self._named(name, build.const(value, of.dtype), None)
                self.names[name] = value
        return None

    def _allocated(self, name: str, memory: Memory) -> Enclosing:
        dtype = as_dtype(memory.dtype)
        pointer = pointer_var(name, dtype, memory.scope or "global")
        extents = build.as_shape(list(memory.extents), f"allocate {name}")
        self.names[name] = pointer
        return Enclosing(lambda rest: Allocate(pointer, dtype, extents, build.true(), rest))

    def _axis(self, axis: Axis) -> Any:
        """The value of an axis of the block; of a reduction also whether it is the first."""
        if axis.is_reduction:
            self.blocks[-1].begins.append(build.equal(build.as_expr(axis.value), axis.begin))
        return axis.value

    def _is_match(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "match_buffer" \
            and bool(node.args) and isinstance(self.names.get(getattr(node.args[0], "id", "")), Var)

    def _matched(self, node: Any, name: str) -> Any:
        """`A = T.match_buffer(a, (8,), "float32")`: the buffer of a parameter."""
        param = self.names[node.args[0].id]
        options = {keyword.arg: self.value(keyword.value) for keyword in node.keywords}
        options.pop("type", None)
        self.buffer_map[param] = buffer = BufferType(*[self.value(arg) for arg in node.args[1:]], **options).named(name)
        return buffer

    # --- loops, blocks, branches --------------------------------------------------------------------------------------

    def _for(self, node: ast.For) -> Stmt:
        loops = self.value(node.iter)
        if not isinstance(loops, Loops):
            raise ExpressionError(f"{self.where(node)}: a loop is over range, T.serial, T.grid or their kin, "
                                  f"not over {ast.unparse(node.iter)}")
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        if len(targets) != len(loops.ranges):
            raise ExpressionError(f"{self.where(node)}: {len(targets)} variables for {len(loops.ranges)} loops")
        made: list[tuple[Var, Expr, Expr]] = []
        for target, (begin, extent) in zip(targets, loops.ranges):
            low, count = build.match_operands(begin, extent)
            made.append((Var(_name(target), count.dtype), low, count))
            self.names[_name(target)] = made[-1][0]
        stmt = self.body(node.body)
        for var, low, count in reversed(made):
            stmt = _loop(var, low, count, loops, stmt)
        return stmt

    def _with(self, node: ast.With) -> Stmt:
        stmt: Wrap | None = None
        wraps: list[Wrap] = []
        for item in node.items:
            value = self.value(item.context_expr)
            if isinstance(value, Memory):
                if item.optional_vars is None:
                    raise ExpressionError(f"{self.where(node)}: with {ast.unparse(item.context_expr)} gives memory that has no "
                                          "name", hint="with T.allocate(...) as x:")
                value = self._allocated(_name(item.optional_vars), value)
            elif item.optional_vars is not None and isinstance(value, Enclosing):
                self.names[_name(item.optional_vars)] = value.value
            if value is INIT:
                self.blocks[-1].init = self.body(node.body)
                return Evaluate(build.const(0, "int32"))
            if value is BLOCK:
                self.blocks.append(Block())
                wraps.append(lambda body: self.blocks.pop().around(body))
            elif isinstance(value, Enclosing):
                wraps.append(value.around)
            else:
                raise ExpressionError(f"{self.where(node)}: with {ast.unparse(item.context_expr)} is not known in scripts")
        body = self.body(node.body)
        for stmt in reversed(wraps):
            body = stmt(body)
        return body

    def _if(self, node: ast.If) -> Stmt | None:
        condition = self.value(node.test)
        if not isinstance(condition, Expr):  # decided while the script is read
            return self.body(node.body if condition else node.orelse) if condition or node.orelse else None
        return IfThenElse(condition, self.body(node.body), self.body(node.orelse) if node.orelse else None)

    def _call(self, call: ast.Call) -> Stmt | Enclosing | None:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name in _IGNORED:
            return None
        if name == "realize":
            return self._realize(call)
        value = self.value(call)
        if name == "func_attr":
            self.attrs |= value
            return None
        if name == "where":
            self.blocks[-1].condition = value
            return None
        if isinstance(value, (Enclosing, Stmt)):
            return value
        return Evaluate(build.as_expr(value))

    def _realize(self, call: ast.Call) -> Enclosing:
        """`T.realize(B[0:n], "global")`: the buffer exists in what follows."""
        buffer = self.value(call.args[0].value) if call.args and isinstance(call.args[0], ast.Subscript) else None
        if not isinstance(buffer, Buffer):
            raise ExpressionError(f"{self.where(call)}: {ast.unparse(call)} names no region of a buffer",
                                  hint='T.realize(B[0:8], "global")')
        return Enclosing(lambda rest: realized(buffer, rest))


def _name(node: ast.expr) -> str:
    if not isinstance(node, ast.Name):
        raise ExpressionError(f"{ast.unparse(node)} is no name that a script can assign to")
    return node.id


def _loop(var: Var, low: Expr, extent: Expr, loops: Loops, body: Stmt) -> Stmt:
    if loops.kind is not ForKind.THREAD_BINDING:
        return For(var, low, extent, loops.kind, body, None, FrozenDict(loops.annotations or {}))
    axis = IterVar(Range.from_min_extent(low, extent), var, IterType.THREAD_INDEX, loops.thread)
    key = "virtual_thread" if loops.thread.startswith("vthread") else "thread_extent"
    return AttrStmt(axis, key, extent, body)
