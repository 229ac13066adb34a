"""Statements of a hybrid script: the body of the function becomes statements over buffers.

    t = allocate((n,))           memory for the rest of the block
    x = 0.0  ...  x += 1.0       a number that changes: memory for one element
    m = n * 2                    a number that is assigned once: its value
    for i in parallel(n):        range, serial, parallel, vectorize, unroll, bind; const_range: the body for each value, now
    if c: ...                    a condition that is known now chooses now
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.dtype import DType
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.ir.expr import BufferLoad, Expr, StringImm, Var, pointer_var
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.stmt import (
    LAUNCH,
    VIRTUAL,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    seq,
)
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.hybrid.calls import arguments, const_range, memory
from tedsl.lang.hybrid.expressions import Expressions
from tedsl.lang.hybrid.names import LOOPS
from tedsl.lang.hybrid.scope import Array, Number, Scope, assigned_again, returned_names, written_elements
from tedsl.lang.hybrid.source import Source
from tedsl.lang.hybrid.values import known_int, number

KINDS = {"range": ForKind.SERIAL, "serial": ForKind.SERIAL, "parallel": ForKind.PARALLEL, "vectorize": ForKind.VECTORIZED,
         "unroll": ForKind.UNROLLED}
SCOPES = ("global", "local", "shared")
Wrap = Callable[[Stmt], Stmt]


class Parser:
    """Reads the body of one function. `outputs`: the arrays it returns, after `read`."""

    def __init__(self, source: Source, arguments: Mapping[str, Any], captured: Mapping[str, Any]) -> None:
        self.source = source
        self.scope = Scope()
        self.expressions = Expressions(source, self.scope, captured)
        self.changing = assigned_again(source.tree)
        self.made: list[Array] = []  # output tensors, in order
        self.outputs: list[Buffer] | None = None
        self.lines: dict[Stmt, str] = {}  # where each statement is written
        for name, value in arguments.items():
            self.scope.define(name, value)

    def read(self) -> Stmt:
        """The statements of the function."""
        body = self.source.tree.body
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # its documentation
        copies = self.copies_of_inputs()
        stmts = self.statements(body)
        for copy in reversed(copies):
            stmts = copy(stmts)
        if self.outputs is None:
            self.source.fail(self.source.tree, "the function returns nothing", hint="return the output tensor: return c")
        unused = [array.buffer.name for array in self.made if array.buffer not in self.outputs]
        if unused:
            self.source.fail(self.source.tree, f"{', '.join(unused)} is an output tensor and is not returned",
                             hint="return it, or make it by allocate")
        return stmts

    def copies_of_inputs(self) -> list[Wrap]:
        """Statements that copy the inputs to whose elements the function assigns: it changes and returns the copies."""
        copies: list[Wrap] = []
        known = self.scope.blocks[0]
        for name in sorted(written_elements(self.source.tree)):
            given = known.get(name)
            if not isinstance(given, Array) or given.kind != "input":
                continue
            if sum(isinstance(other, Array) and other.buffer is given.buffer for other in known.values()) > 1:
                self.source.fail(self.source.tree, f"{name} is changed, and another argument is the same tensor",
                                 hint="pass it once")
            array = Array(decl_buffer(given.buffer.shape, given.buffer.dtype, name),
                          "output" if name in returned_names(self.source.tree) else "local", name)
            self.scope.define(name, array)
            if array.kind == "output":
                self.made.append(array)
            copies.append(_copying(given.buffer, array))
        return copies

    def block(self, statements: Sequence[ast.stmt], define: Mapping[str, Any] | None = None) -> Stmt:
        """Statements with a scope of their own, in which the names `define` are bound."""
        self.scope.enter()
        for name, value in (define or {}).items():
            self.scope.define(name, value)
        stmts = self.statements(statements)
        self.scope.leave(getattr(statements[0], "lineno", 1) - 1)
        return stmts

    def statements(self, statements: Sequence[ast.stmt]) -> Stmt:
        parts: list[Stmt | Wrap] = []
        for node in statements:
            if self.outputs is not None:
                self.source.fail(node, "nothing can follow the return of the function")
            read = _READ.get(type(node))
            if read is None:
                self.source.fail(node, f"{type(node).__name__} is not part of hybrid script",
                                 hint="assignments, for loops, if, assert, pass and one return at the end are")
            try:
                part = read(self, node)
                parts.append(self.placed(part, node) if isinstance(part, Stmt) else self.placing(part, node))
            except TedslError as error:
                raise self.source.relocated(node, error) from error
        result: Stmt | None = None
        for part in reversed(parts):
            result = seq(part, result) if isinstance(part, Stmt) else part(seq(result))
        return seq(result)

    def placed(self, made: Stmt, node: ast.stmt) -> Stmt:
        """`made` with the source line of `node` recorded for every statement in it that has none yet."""
        where = self.source.where(node)
        pending = [made]
        while pending:
            stmt = pending.pop()
            if stmt not in self.lines:
                self.lines[stmt] = where
                pending += [child for child in stmt.child_nodes() if isinstance(child, Stmt)]
        return made

    def placing(self, wrap: Wrap, node: ast.stmt) -> Wrap:
        return lambda body: self.placed(wrap(body), node)

    # --- assignment ---

    def assign(self, node: ast.Assign) -> Stmt | Wrap:
        if len(node.targets) != 1:
            self.source.fail(node, "one value is assigned to one name or element at a time")
        target = node.targets[0]
        array = self.new_array(target, node.value)
        if array is not None:
            return array
        called = self.script_inside(target, node.value)
        if called is not None:
            return called
        if isinstance(target, ast.Tuple):
            return self.unpack(target, node.value)
        return self.store(target, self.expressions.value(node.value))

    def script_inside(self, target: ast.expr, value: ast.expr) -> Wrap | None:
        """The statements of another script for `c = other(a, b)`, whose outputs are arrays of this one; None for all else."""
        if not isinstance(value, ast.Call) or not isinstance(value.func, (ast.Name, ast.Attribute)):
            return None
        named = self.expressions.captured.get(value.func.id) if isinstance(value.func, ast.Name) else None
        inside = getattr(named, "statements_inside", None)
        if inside is None or (isinstance(value.func, ast.Name) and value.func.id in self.scope):
            return None
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        other = inside(*arguments(self.source, value, self.expressions.value))
        body = other.read()
        if len(self.scope.blocks) > 1 or len(other.outputs) != len(names) or not all(
                isinstance(one, ast.Name) and one.id not in self.scope for one in names):
            self.source.fail(value, f"a script returns {len(other.outputs)} arrays to as many new names, outside of all loops")
        self.lines.update(other.lines)
        returned = returned_names(self.source.tree)
        arrays = [Array(buffer, "output" if name in returned else "local", name)
                  for name, buffer in zip([one.id for one in names if isinstance(one, ast.Name)], other.outputs)]
        for array in arrays:
            self.scope.define(array.name, array)
        self.made += [array for array in arrays if array.kind == "output"]

        def wrap(rest: Stmt) -> Stmt:
            whole = seq(body, rest)
            for array in arrays:
                whole = whole if array.kind == "output" else _realized(array.buffer, whole)
            return whole

        return wrap

    def annotated(self, node: ast.AnnAssign) -> Stmt | Wrap:
        if node.value is None:
            self.source.fail(node, "a name without a value means nothing here")
        return self.store(node.target, self.expressions.value(node.value))

    def unpack(self, target: ast.Tuple, value: ast.expr) -> Stmt | Wrap:
        values = self.expressions.value(value)
        if not isinstance(values, (tuple, list)) or len(values) != len(target.elts):
            self.source.fail(target, f"{len(target.elts)} names are assigned from as many values")
        if any(not isinstance(one, ast.Name) or one.id in self.changing for one in target.elts):
            self.source.fail(target, "several values are assigned to new names only", hint="assign one after the other")
        parts = [self.store(one, v) for one, v in zip(target.elts, values)]

        def wrap(body: Stmt) -> Stmt:
            for part in reversed(parts):
                body = seq(part, body) if isinstance(part, Stmt) else part(body)
            return body

        return wrap

    def augmented(self, node: ast.AugAssign) -> Stmt | Wrap:
        old = self.expressions.value(node.target)
        return self.store(node.target, self.expressions.apply(node, node.op, old, self.expressions.value(node.value)))

    def store(self, target: ast.expr, value: Any) -> Stmt | Wrap:
        if isinstance(target, ast.Subscript):
            array = self.expressions.value(target.value)
            if not isinstance(array, Array):
                self.source.fail(target, "only elements of arrays can be assigned")
            if array.kind == "input":
                self.source.fail(target, f"{array.name} is one of several inputs and cannot be written",
                                 hint="write into a tensor made by output_tensor or allocate, or pass it as a parameter alone")
            indices = self.expressions.indices(target, array)
            return BufferStore(array.buffer, self.fitting(target, value, array.buffer.dtype), indices)
        if not isinstance(target, ast.Name):
            self.source.fail(target, "a name or an element of an array is assigned")
        return self.assign_name(target, value)

    def assign_name(self, target: ast.Name, value: Any) -> Stmt | Wrap:
        known = self.scope.find(target.id) if target.id in self.scope else None
        if isinstance(known, Number):
            self.must_keep(target, value, known.buffer.dtype)
            return BufferStore(known.buffer, self.fitting(target, value, known.buffer.dtype), (build.const(0),))
        if isinstance(known, (Array, Var)):
            what = "an array" if isinstance(known, Array) else "the variable of a loop or an argument"
            self.source.fail(target, f"{target.id} is {what} and cannot be assigned", hint="take another name")
        if target.id not in self.changing:
            return self.constant(target, value)
        number = self.fitting(target, value, None)
        buffer = decl_buffer((1,), number.dtype, target.id, scope="local")
        self.scope.define(target.id, Number(buffer))
        first = BufferStore(buffer, number, (build.const(0),))
        return lambda body: _realized(buffer, seq(first, body))

    def must_keep(self, target: ast.Name, value: Any, of: DType) -> None:
        """Refuses a value that would be truncated to the dtype `of` of the name's first value, since Python would not truncate
        it.
        """
        number = self.fitting(target, value, of if isinstance(value, int) and not of.is_bool else None)
        if number.dtype is not of and build.promote(of, number.dtype) is not of:
            self.source.fail(target, f"{target.id} is {of}, as its first value is, and {number.dtype} is assigned to it",
                             hint=f"begin with {target.id} = {number.dtype}(...), or convert what is assigned: {of}(...)")

    def constant(self, target: ast.Name, value: Any) -> Stmt | Wrap:
        """Binds a name that is assigned once to `value`; a value that reads memory is bound by a let, which evaluates it at
        this point.
        """
        reads = isinstance(value, Expr) and any(isinstance(node, BufferLoad) for node in post_order(value))
        if not reads:
            self.scope.define(target.id, value)
            return seq()
        var = Var(target.id, value.dtype)
        self.scope.define(target.id, var)
        return lambda body: LetStmt(var, value, body)

    def fitting(self, node: ast.AST, value: Any, of: DType | None) -> Expr:
        """`value` as a number of dtype `of` (None: its own dtype), converted as numpy converts in an assignment."""
        if isinstance(value, (Array, str, tuple, list)) or value is None or (callable(value) and not isinstance(value, Expr)):
            self.source.fail(node, "a number is assigned to a number or an element")
        expr = build.as_expr(value, of) if isinstance(value, (bool, int, float)) else build.as_expr(value)
        return expr if of is None else build.cast(of, expr)

    # --- memory ---

    def new_array(self, target: ast.expr, value: ast.expr) -> Wrap | None:
        """Declares the array of `t = allocate(...)` or `c = output_tensor(...)`; returns None if `value` is something else."""
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) \
                or value.func.id not in ("allocate", "output_tensor") or value.func.id in self.scope:
            return None
        kind = value.func.id
        if not isinstance(target, ast.Name):
            self.source.fail(target, f"{kind} makes an array with a name")
        if target.id in self.scope:
            self.source.fail(target, f"{target.id} is in use already", hint="take another name for the array")
        args = memory(self.source, value, kind, self.expressions.value)
        shape = build.as_shape(args["shape"], f"{kind} {target.id}")
        where = args.get("scope", "global")
        if not isinstance(where, str) or where not in SCOPES:
            self.source.fail(value, f"there is no scope {where!r}", hint=f"choose one of {', '.join(SCOPES)}")
        of = as_dtype(args.get("dtype", "float32"))
        buffer = decl_buffer(shape, of, target.id, pointer_var(target.id, of, "global" if where == "global" else where))
        array = Array(buffer, "output" if kind == "output_tensor" else "local", target.id)
        self.scope.define(target.id, array)
        if kind == "allocate":
            return lambda body: _realized(buffer, body)
        if len(self.scope.blocks) > 1:
            self.source.fail(value, "an output tensor is made outside of all loops and conditions")
        self.made.append(array)
        return lambda body: body

    # --- loops and branches ---

    def loop(self, node: ast.For) -> Stmt:
        call = node.iter
        if node.orelse:
            self.source.fail(node, "a loop has no else")
        if not isinstance(node.target, ast.Name) or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return self.constant_loop(node, self.expressions.value(node.iter))
        kind = call.func.id
        if kind not in LOOPS:
            return self.constant_loop(node, self.expressions.value(node.iter))
        args, options = arguments(self.source, call, self.expressions.value)
        if options:
            self.source.fail(call, f"{kind} takes no named arguments", hint=f"write {kind}(n)")
        if kind == "const_range":
            return self.constant_loop(node, const_range(self.source, call, args))
        if kind == "bind":
            return self.bound_loop(node, args)
        if len(args) not in (1, 2):
            self.source.fail(call, f"{kind} takes the end, or the beginning and the end",
                             hint="a step is written by the index: a[i * 2]")
        hint = f"{kind}({args[-1].name}.shape[0])" if isinstance(args[-1], Array) else f"{kind}(n)"
        return self.counted_loop(node, KINDS[kind], [number(self.source, call, arg, f"write {hint}") for arg in args])

    def counted_loop(self, node: ast.For, kind: ForKind, args: list[Any]) -> Stmt:
        assert isinstance(node.target, ast.Name)
        low, high = build.match_operands(*([0, *args] if len(args) == 1 else args))
        if not low.dtype.is_integer:
            self.source.fail(node.iter, f"the bounds of a loop are integers, these are {low.dtype}")
        var = Var(node.target.id, low.dtype)
        body = self.block(node.body, {node.target.id: var})
        return For(var, low, build.sub(high, low), kind, body)

    def constant_loop(self, node: ast.For, values: Any) -> Stmt:
        """The body repeated for each of `values`, which are constants."""
        if not isinstance(node.target, ast.Name) or not isinstance(values, (tuple, list, range)):
            self.source.fail(node.iter, "this is nothing that a loop runs over",
                             hint="range, serial, parallel, vectorize, unroll, const_range, bind, or a tuple")
        if values[4096:]:
            self.source.fail(node.iter, "the loop is written out more than 4096 times", hint="use range")
        return seq(*[self.block(node.body, {node.target.id: value}) for value in values])

    def bound_loop(self, node: ast.For, args: list[Any]) -> Stmt:
        """A loop over the threads of an axis."""
        assert isinstance(node.target, ast.Name)
        if len(args) != 2 or not isinstance(args[0], (str, StringImm)):
            self.source.fail(node.iter, "bind takes the name of a thread axis and the number of threads",
                             hint='bind("threadIdx.x", 32)')
        extent = number(self.source, node.iter, args[1], 'write bind("threadIdx.x", 32)')
        tag = str(getattr(args[0], "value", args[0]))
        var = Var(node.target.id, extent.dtype)
        axis = IterVar(Range.from_min_extent(build.const(0, extent.dtype), extent), var, IterType.THREAD_INDEX, tag)
        body = self.block(node.body, {node.target.id: var})
        return AttrStmt(axis, VIRTUAL if tag.startswith("vthread") else LAUNCH, extent, body)

    def branch(self, node: ast.If) -> Stmt:
        test = self.expressions.test(node.test)
        known = known_int(test)
        if known is not None:
            chosen = node.body if known else node.orelse
            return self.block(chosen) if chosen else seq()
        then = self.block(node.body)
        return IfThenElse(build.as_expr(test), then, self.block(node.orelse) if node.orelse else None)

    # --- the rest ---

    def check(self, node: ast.Assert) -> Wrap:
        test = self.expressions.test(node.test)
        text = self.expressions.value(node.msg) if node.msg is not None else f"assertion in {self.source.where(node)}"
        if isinstance(test, bool):
            if not test:
                self.source.fail(node, f"the assertion does not hold: {text}")
            return lambda body: body
        return lambda body: AssertStmt(test, StringImm(str(text)), body)

    def alone(self, node: ast.Expr) -> Stmt:
        if isinstance(node.value, ast.Constant):
            return seq()
        value = self.expressions.value(node.value)
        return Evaluate(value) if isinstance(value, Expr) else seq()

    def give_back(self, node: ast.Return) -> Stmt:
        if len(self.scope.blocks) > 1:
            self.source.fail(node, "the return stands at the end of the function, outside of all loops and conditions")
        value = None if node.value is None else self.expressions.value(node.value)
        given = value if isinstance(value, (tuple, list)) else (value,)
        wrong = [array for array in given if not isinstance(array, Array) or array.kind != "output"]
        if wrong or not given:
            self.source.fail(node, "what is returned is made by output_tensor", hint="c = output_tensor(shape, dtype)")
        buffers = [array.buffer for array in given]
        if len(set(buffers)) < len(buffers):
            self.source.fail(node, "an output tensor is returned twice")
        self.outputs = buffers
        return seq()


def _copying(source: Buffer, array: Array) -> Wrap:
    """Puts the elements of an input into `array` first; memory that is not returned is allocated around."""
    loops = [Var(f"{array.name}.i{at}", dim.dtype) for at, dim in enumerate(source.shape)]
    copy: Stmt = BufferStore(array.buffer, BufferLoad(source, tuple(loops)), tuple(loops))
    for var, dim in zip(reversed(loops), reversed(source.shape)):
        copy = For(var, build.const(0, dim.dtype), dim, ForKind.SERIAL, copy)

    def wrap(body: Stmt) -> Stmt:
        whole = seq(copy, body)
        return whole if array.kind == "output" else _realized(array.buffer, whole)

    return wrap


def _realized(buffer: Buffer, body: Stmt) -> Stmt:
    """`body` inside the allocation of `buffer`."""
    bounds = tuple([Range.from_min_extent(build.const(0, dim.dtype), dim) for dim in buffer.shape])
    return BufferRealize(buffer, bounds, build.true(), body)


_READ: dict[type[ast.AST], Callable[[Parser, Any], Stmt | Wrap]] = {
    ast.Assign: Parser.assign, ast.AugAssign: Parser.augmented, ast.AnnAssign: Parser.annotated, ast.For: Parser.loop,
    ast.If: Parser.branch, ast.Assert: Parser.check, ast.Return: Parser.give_back, ast.Expr: Parser.alone,
    ast.Pass: lambda parser, node: seq(),
}
