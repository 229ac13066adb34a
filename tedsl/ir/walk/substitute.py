"""Replacing variables, and copying statements with fresh binders so that a Var stays bound once in a function."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from tedsl.errors import ArgumentTypeError, DTypeError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import BufferLoad, Call, Expr, Let, Load, Reduce, SizeVar, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.node import Node
from tedsl.ir.ops import MAKE_ARRAY
from tedsl.ir.stmt import Allocate, AttrStmt, BufferRealize, BufferStore, For, LetStmt, Prefetch, Stmt, Store
from tedsl.ir.walk.contents import contains, of_kinds
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order, statements, variables

N = TypeVar("N", bound=Node)


def substitute(node: N, vmap: Mapping[Any, Any]) -> N:
    """`node` with each variable (or IterVar) of `vmap` replaced by its expression, also in the shapes of buffers.

    A data pointer may be mapped to another Var. `vmap` must not contain variables bound inside `node`.
    """
    if not isinstance(vmap, (dict, Mapping)):
        raise ArgumentTypeError(f"substitute takes what to write for each variable, got {vmap!r}", hint="write {x: 3}")
    if strangers := [key for key in vmap if not isinstance(key, (Var, IterVar))]:
        raise ArgumentTypeError(f"substitute replaces variables, and {strangers[0]!r} is none",
                                hint="keys are the variables themselves, not their names: x = te.var('x'), {x: 3}")
    if not vmap:
        return node
    for variable, value in vmap.items():
        _require_kind(variable, value)
    return Substitution(vmap)(node)  # type: ignore[no-any-return]


def _require_kind(variable: Var | IterVar, value: Any) -> None:
    """Raises DTypeError for a value with a fraction in the place of an integer, and for what is neither a number nor a node."""
    if isinstance(value, Node) or hasattr(value, "as_expr"):
        of = getattr(value, "dtype", None)
    else:
        of = build.as_expr(value).dtype
    if of is not None and of.is_float and variable.dtype.is_integer:
        raise DTypeError(f"substitute: {variable.name} is {variable.dtype}, and {value!r} is {of}",
                         hint="cast the value: x.astype(\"int32\")")


_OF_VARIABLES = frozenset((Var, SizeVar, Load, Store, BufferLoad, BufferStore, BufferRealize, Prefetch, Reduce, AttrStmt))
_BINDING = frozenset((For, LetStmt, Let, Allocate))


class Substitution(Rewriter):
    """Replaces variables by expressions, in the shapes of buffers too."""

    def __init__(self, mapping: Mapping[Any, Any]) -> None:
        super().__init__()
        self.mapping: dict[Var, Expr] = {k.var if isinstance(k, IterVar) else k: v.var if isinstance(v, IterVar) else v
                                         for k, v in mapping.items()}
        self.buffers: dict[Buffer, Buffer] = {}

    def rewrite(self, node: Any) -> Any:
        if type(node) not in _OF_VARIABLES:
            return node
        match node:
            case Var():
                return self.mapping.get(node, node)
            case Load(buffer_var=v) | Store(buffer_var=v) if v in self.mapping:
                return node.replace(buffer_var=self.mapping[v])
            case BufferLoad() | BufferStore() | BufferRealize() | Prefetch():
                buffer = self.buffer(node.buffer)
                return node if buffer is node.buffer else node.replace(buffer=buffer)
            case Reduce(combiner=combiner) if self.mapping:  # a combiner may use axes of the formula around it
                other = combiner.map_children(self._of_combiner)
                return node if other is combiner else node.replace(combiner=other)
            case AttrStmt(node=Var() as v) if v in self.mapping:
                return node.replace(node=self.mapping[v])
            case AttrStmt(node=Buffer() as old):
                new = self.buffer(old)
                return node if new is old else node.replace(node=new)
            case AttrStmt(node=tuple() as buffers):
                changed = tuple([self.buffer(old) if isinstance(old, Buffer) else old for old in buffers])
                return node if all(a is b for a, b in zip(changed, buffers)) else node.replace(node=changed)
            case _:
                return node

    def _of_combiner(self, part: Expr) -> Expr:
        used = any(v in self.mapping for v in variables(part))
        return Substitution(self.mapping)(part) if used else part

    def buffer(self, old: Buffer) -> Buffer:
        if old not in self.buffers:
            new = old.map_children(self)
            data = self.mapping.get(old.data, old.data)
            self.buffers[old] = new if data is old.data else new.replace(data=data)
        return self.buffers[old]


def only_read(root: N, memory: Collection[Var]) -> N:
    """`root` with calls of Python functions changed to pass read-only arrays for the memory in `memory`."""
    return _OnlyRead(memory)(root)  # type: ignore[no-any-return]


class _OnlyRead(Rewriter):
    kinds = (MAKE_ARRAY,)

    def __init__(self, memory: Collection[Var]) -> None:
        super().__init__()
        self.memory = memory

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, Call) and node.op is MAKE_ARRAY and node.args[0] in self.memory:
            return node.replace(args=(*node.args[:4], build.const(1, node.args[4].dtype), node.args[5]))
        return node


def fresh_copy(root: N, mapping: Mapping[Any, Any] | None = None) -> N:
    """A copy of a statement or expression whose binders (loops, lets, allocations, realized buffers) are new variables; itself
    if there are none.

    The new variables keep their names. `mapping` is applied as by `substitute`.
    """
    names: dict[Var, Expr] = dict(mapping or {})
    for node in post_order(root) if contains(root, For, LetStmt, Let, Allocate, BufferRealize) else ():
        match node:
            case For(loop_var=v) | LetStmt(var=v) | Let(var=v) | Allocate(buffer_var=v):
                names[v] = copy_var(v)
            case BufferRealize(buffer=b):
                names[b.data] = copy_var(b.data)
    return renamed(root, names) if names else root


def own_lets(root: Expr) -> tuple[Expr, dict[Any, Any]]:
    """`root` with a new variable in each let, whatever else its variable means outside; maps the new ones to the given ones."""
    lets = [node.var for node in of_kinds(root, Let) if isinstance(node, Let)]
    if len(set(lets)) == len(lets):
        fresh = {var: copy_var(var) for var in lets}
        return renamed(root, fresh), {new: var for var, new in fresh.items()}
    one_by_one = _OwnLets()
    return one_by_one(root), one_by_one.given


def renamed(root: N, names: Mapping[Any, Any]) -> N:
    """`root` with other variables, also where they are bound."""
    copy: N = _FreshCopy(names)(root)
    return copy


class _OwnLets(Rewriter):
    """Renames the variable of each let inside of it alone, the inner ones first."""

    kinds = (Let,)

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[Any, Any] = {}

    def rewrite(self, node: Any) -> Any:
        if type(node) is not Let:
            return node
        new = copy_var(node.var)
        self.given[new] = node.var
        return node.replace(var=new, body=renamed(node.body, {node.var: new}))


def copy_var(var: Var) -> Var:
    """A new variable of the same name and type."""
    annotation: Any = var.type_annotation if var.dtype.is_handle else var.dtype
    return type(var)(var.name, annotation)


class _FreshCopy(Substitution):
    def rewrite(self, node: Any) -> Any:
        if type(node) not in _BINDING:
            return super().rewrite(node)
        match node:
            case For(loop_var=v) if v in self.mapping:
                return node.replace(loop_var=self.mapping[v])
            case LetStmt(var=v) | Let(var=v) if v in self.mapping:
                return node.replace(var=self.mapping[v])
            case Allocate(buffer_var=v) if v in self.mapping:
                return node.replace(buffer_var=self.mapping[v])
        return node


def bind_once(root: Stmt) -> Stmt:
    """`root` with a distinct variable in each loop, let, allocation and realized buffer: handwritten programs may use one
    variable in two loops, or one statement in two places."""
    return _BindOnce()(root)


class _BindOnce(ScopedRewriter):
    def __init__(self) -> None:
        self.seen: set[Var] = set()

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For(loop_var=v) | LetStmt(var=v) | Allocate(buffer_var=v) | BufferRealize(buffer=Buffer(data=v)):
                if v in self.seen:
                    return self.stmt(fresh_copy(stmt))
                self.seen.add(v)
            case AttrStmt(node=Buffer(data=v)) if v in self.seen and _realizes(stmt.body, v):
                return self.stmt(fresh_copy(stmt))
        return self.descend(stmt)


def _realizes(root: Stmt, data: Var) -> bool:
    return any(isinstance(stmt, BufferRealize) and stmt.buffer.data is data for stmt in statements(root))
