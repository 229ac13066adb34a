"""Calls on fragments become loops, where there are no tensor cores: the first thread of each warp does the work of all.

before:  tvm_load_matrix_sync(A, 16, 16, 16, 2, S.access_ptr("r"), 24, "row_major")
after:   if (threadIdx.x == 0) { for (row: 0, 16) { for (column: 0, 16) { A[512 + row*16 + column] = S[row*24 + column] } } }

Runs after barriers were inserted, for the calls as they are: any thread of a warp may touch any element of a matrix.
"""

from __future__ import annotations

from tedsl.ir import build
from tedsl.ir.calls.fragments import Fragment, fragments_of, moved, products
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import Call, Expr, Load, Var, pointer_var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import FILL_FRAGMENT, FRAGMENT_OPS, LOAD_MATRIX, MMA
from tedsl.ir.stmt import Allocate, Evaluate, For, ForKind, IfThenElse, Stmt, Store
from tedsl.ir.types import PointerType, PrimType
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.passes.threads.check_fragments import ROW, has_fragments
from tedsl.passes.threads.gather_threads import Kernel, with_kernel_bodies


def lower_fragments(func: PrimFunc, scope: str) -> PrimFunc:
    """Returns `func`, whose launches are gathered, with loops for its calls on fragments, which lie in memory of `scope`;
    itself if it has none.
    """
    if not contains(func.body, *FRAGMENT_OPS):
        return func
    return with_kernel_bodies(func, lambda kernel: _lowered(kernel, scope))


def _lowered(kernel: Kernel, scope: str) -> Stmt:
    known = fragments_of(kernel.body)
    if not known:
        return kernel.body
    row = next(thread.var for thread in kernel.axes if thread.axis.thread_tag == ROW)
    moved_to = {var: _in_scope(var, scope) for var in known}
    return substitute(_Loops(known, moved_to, build.equal(row, build.const(0, row.dtype)))(kernel.body), moved_to)


def _in_scope(var: Var, scope: str) -> Var:
    annotation = var.type_annotation
    assert isinstance(annotation, PointerType) and isinstance(annotation.element_type, PrimType)
    return pointer_var(var.name, annotation.element_type.dtype, scope)


class _Loops(ScopedRewriter):
    def __init__(self, known: dict[Var, Fragment], moved_to: dict[Var, Var], first: Expr) -> None:
        self.known, self.moved_to, self.first = known, moved_to, first

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Evaluate(value=Call() as call) if has_fragments(call):
                return IfThenElse(self.first, self.loops(call), None)
            case Store() | Evaluate():
                return stmt
            case Allocate(buffer_var=var) if var in self.moved_to:
                return self.descend(stmt.replace(buffer_var=self.moved_to[var]))
            case _:
                return self.descend(stmt)

    def loops(self, call: Call) -> Stmt:
        row, column = Var("row", dtype("int32")), Var("column", dtype("int32"))
        if call.op is MMA:
            (d, _), *_ = products(call)
            fact, body = self.known[d], self.product(call, row, column)
        else:
            assert isinstance(call.args[0], Var)
            fact, body = self.known[call.args[0]], self.element(call, row, column)
        for var, extent in ((column, fact.columns), (row, fact.rows)):
            body = For(var, build.const(0, "int32"), build.const(extent, "int32"), ForKind.SERIAL, body)
        return body

    def element(self, call: Call, row: Var, column: Var) -> Stmt:
        """The fill, load or store of one element."""
        var = call.args[0]
        assert isinstance(var, Var)
        inside, of = self.place(var, call.args[4], row, column), self.known[var].dtype
        if call.op is FILL_FRAGMENT:
            return Store(var, build.cast(of, call.args[5]), inside)
        there = moved(call)
        slow, fast = (row, column) if there.order == "row_major" else (column, row)
        at = build.add(there.offset, build.add(build.mul(slow, there.stride), fast))
        if call.op is LOAD_MATRIX:
            return Store(var, Load(of, there.memory, at), inside)
        return Store(there.memory, Load(of, var, inside), at)

    def product(self, call: Call, row: Var, column: Var) -> Stmt:
        """The sum of products that is one element of the result."""
        (d, at), (a, of_a), (b, of_b), (c, of_c) = products(call)
        wide = dtype("float32" if self.known[a].dtype.is_float else "int32")
        total: Expr = build.cast(wide, Load(self.known[c].dtype, c, self.place(c, of_c, row, column)))
        for k in range(self.known[a].columns):
            step = build.const(k, "int32")
            left = Load(self.known[a].dtype, a, self.place(a, of_a, row, step))
            right = Load(self.known[b].dtype, b, self.place(b, of_b, step, column))
            total = build.add(total, build.mul(build.cast(wide, left), build.cast(wide, right)))
        return Store(d, build.cast(self.known[d].dtype, total), self.place(d, at, row, column))

    def place(self, var: Var, which: Expr, row: Expr, column: Expr) -> Expr:
        """The index of an element of the fragment `which` of `var`."""
        fact = self.known[var]
        return build.add(build.mul(which, fact.size), build.add(build.mul(row, fact.columns), column))
