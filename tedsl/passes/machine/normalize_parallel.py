"""Leave one level of parallel loops, each with several iterations, and refuse those whose iterations race.

before:  for (i: 0, 8) "parallel" { for (j: 0, 8) "parallel" { body } }
after:   for (i: 0, 8) "parallel" { for (j: 0, 8) { body } }

A parallel loop inside another one, or of at most one iteration, becomes serial, and so does every one where the target has one
core (`-num-cores=1`). A loop whose iterations all update one
element is refused: the result would depend on their order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from tedsl.errors import LoweringError
from tedsl.ir.expr import Expr, IntImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.script import shown
from tedsl.ir.stmt import Allocate, Evaluate, For, ForKind, IfThenElse, LetStmt, Stmt, Store
from tedsl.ir.walk.contents import of_kinds
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.passes.facts.dependence import Dependence


def normalize_parallel(func: PrimFunc, cores: int | None = None) -> PrimFunc:
    """Returns `func` with parallel loops only at the outermost level, and without any for one core; LoweringError for a loop
    that races. cores: that threads may use; None: as many as there are.
    """
    return func.with_body(_Normalizer(cores == 1)(func.body))


class _Normalizer(ScopedRewriter):
    def __init__(self, is_serial: bool) -> None:
        self.is_serial = is_serial
        self.inside = False
        self.allocated: set[Var] = set()

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Evaluate)):
            return stmt
        if isinstance(stmt, Allocate):
            self.allocated.add(stmt.buffer_var)
        if not isinstance(stmt, For) or stmt.kind != ForKind.PARALLEL:
            return self.descend(stmt)
        if self.inside or (isinstance(stmt.extent, IntImm) and stmt.extent.value <= 1):
            return self.descend(stmt.replace(kind=ForKind.SERIAL))
        _check_race(stmt, self.allocated)
        self.inside = True
        done = self.descend(stmt.replace(kind=ForKind.SERIAL) if self.is_serial else stmt)
        self.inside = False
        return done


def _check_race(loop: For, allocated: Collection[Var]) -> None:
    """Raises LoweringError if every iteration reads, changes and writes back one element, unless a condition selects one
    iteration. allocated: memory of the function itself, made outside of `loop`.
    """
    nodes = list(of_kinds(loop.body, Allocate, IfThenElse, For, Store, LetStmt))
    private = {node.buffer_var for node in nodes if isinstance(node, Allocate)}
    uses = Dependence().on_any
    depends = _dependent(nodes, loop.loop_var, uses)
    guarded = {id(s) for node in nodes if isinstance(node, (IfThenElse, For)) and uses(_guard(node), depends)
               for s in of_kinds(node, Store) if isinstance(s, Store)}
    for store in nodes:
        if not isinstance(store, Store) or store.buffer_var in private or id(store) in guarded:
            continue
        if uses(store.index, depends) or (store.predicate is not None and uses(store.predicate, depends)):
            continue
        if uses(store.value, {store.buffer_var}):
            name = store.buffer_var.name
            other = f"allocate {name} inside of the loop, so that each iteration has its own" \
                if store.buffer_var in allocated else "reduce into one element per iteration (rfactor)"
            raise LoweringError(f"the iterations of parallel loop {loop.loop_var.name} all update "
                                f"{name}[{shown(store.index)}]: they would race",
                                hint=f"make the loop serial, or {other}", about=loop)


def _guard(node: IfThenElse | For) -> Expr:
    return node.condition if isinstance(node, IfThenElse) else node.extent


def _dependent(nodes: list[Node], loop_var: Var, uses: Callable[[Expr, set[Var]], bool]) -> set[Var]:
    """Returns the loop variable, and the lets and inner loops whose values depend on it. A Let of an expression is not among
    them: what uses its variable contains its value.
    """
    dependent = {loop_var}
    for node in reversed(nodes):  # from the outside in
        if isinstance(node, For):
            if uses(node.min, dependent) or uses(node.extent, dependent):
                dependent.add(node.loop_var)
        elif isinstance(node, LetStmt) and uses(node.value, dependent):
            dependent.add(node.var)
    return dependent


