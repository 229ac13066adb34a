"""Place buffers that stand for a region of another one (`buffer_bind_scope`): compute their pointer, offset and strides.

before:  attr [W, A] "buffer_bind_scope" = tuple(i*16, 16, 0, 64) { W.data, W.elem_offset, ldw }     A: Buffer([n, 64], [])
after:   { A.data, i*16*64, 64 }

The declaration of the window must hold: strides and offsets that are not variables, a compact layout without strides, an offset
that its offset_factor divides. Properties that depend on the arrays of a call are checked at the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import INT32, INT64
from tedsl.ir.expr import Add, Call, Cast, Expr, Load, Mul, StringImm, Sub, Var
from tedsl.ir.ops import ACCESS_PTR
from tedsl.ir.script import shown
from tedsl.ir.stmt import AssertStmt, AttrStmt, Stmt, Store
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables


def place_window(attr: AttrStmt, offset: Expr, strides: Sequence[Expr], compact: Mapping[Var, Expr]) -> Stmt:
    """Returns the body of `attr` with the window's pointer, offset and strides bound to those at `offset` of the buffer whose
    dimensions have `strides` (in elements).

    compact: maps the stride variables of the function's arrays to their values for compact arrays.
    """
    window, whole = attr.node
    assert isinstance(attr.value, Call)
    dims = [int(d) for d in map(build.as_int, attr.value.args[2 * len(strides):]) if d is not None]
    return _Window(window, whole, compact).placed(attr.body, offset, [strides[d] for d in dims])


class _Window:
    def __init__(self, window: Buffer, whole: Buffer, compact: Mapping[Var, Expr]) -> None:
        self.window, self.whole, self.compact = window, whole, compact
        self.analyzer = Analyzer()
        self.values: dict[Var, Expr] = {}
        self.checks: list[tuple[Expr, str]] = []

    def placed(self, body: Stmt, offset: Expr, strides: Sequence[Expr]) -> Stmt:
        window = self.window
        if window.scope() != self.whole.scope() and window.scope() != "global":
            self.refuse(f"is declared in memory of scope {window.scope()}, and {self.whole.name} is in {self.whole.scope()}",
                        f"declare it with scope={self.whole.scope()!r}")
        self.values[window.data] = self.whole.data
        self.offset(self.analyzer.simplify(offset))
        if window.strides:
            for at, (declared, real) in enumerate(zip(window.strides, strides)):
                if build.as_int(window.shape[at]) != 1 or isinstance(declared, Var):
                    self.stride(declared, real, f"stride {at}")
        else:
            self.contiguous(strides)
        body = substitute(body, self.values)
        body = _Wide()(body)
        for condition, message in reversed(self.checks):
            body = AssertStmt(condition, StringImm(message), body)
        return body

    def refuse(self, problem: str, hint: str) -> NoReturn:
        raise LoweringError(f"the buffer {self.window.name} of an intrinsic stands for a region of {self.whole.name}, and "
                            f"{problem}", hint=hint, about=self.window.name)

    # --- offset ---

    def offset(self, real: Expr) -> None:
        declared, factor = self.window.elem_offset, self.window.offset_factor
        if not isinstance(declared, Var):
            if build.as_int(self.analyzer.simplify(build.sub(real, declared))) != 0:
                self.refuse(f"is declared to begin at element {shown(declared)}, and the region begins at {shown(real)}",
                            "declare it with offset_factor=1 (or default_buffer_params={'offset_factor': 1}), and use its "
                            "access_ptr or vload")
            return
        self.values[declared] = build.cast(declared.dtype, real)
        if factor <= 1:
            return
        rest = self.analyzer.simplify(build.floormod(real, build.const(factor, real.dtype)))
        known = build.as_int(rest)
        if known is None:
            self.checks.append((build.equal(rest, build.const(0, rest.dtype)),
                                f"the region of {self.whole.name} for the intrinsic's buffer {self.window.name} begins at an "
                                f"element that is not a multiple of its offset_factor {factor}"))
        elif known != 0:
            self.refuse(f"its offset_factor is {factor}, and the region begins at {shown(real)}, {known} beyond a "
                        "multiple of it",
                        "declare a smaller offset_factor, or tile by a multiple of it")

    # --- strides ---

    def stride(self, declared: Expr, real: Expr, what: str) -> None:
        if isinstance(declared, Var) and declared not in self.values:
            self.values[declared] = build.cast(declared.dtype, real)
            return
        wanted = substitute(declared, self.values)
        self.must_equal(wanted, real, f"{what} is declared as {shown(declared)}, and the memory has {shown(real)}",
                        "declare it as a te.var, to get whatever the memory has, and pass it on to the function")

    def contiguous(self, strides: Sequence[Expr]) -> None:
        """Refuses a window declared without strides whose elements are not contiguous in row-major order."""
        step: Expr = build.const(1, INT32)
        for extent, real in zip(reversed(self.window.shape), reversed(strides)):
            if build.as_int(extent) != 1:
                self.must_equal(step, real, f"is compact (it has no strides), and the region is not: its rows of {shown(step)} "
                                f"elements stand {shown(real)} apart" if build.as_int(step) != 1 else
                                f"is compact (it has no strides), and the elements of the region stand {shown(real)} apart",
                                "declare strides: binds={tensor: tir.decl_buffer(shape, dtype, strides=[te.var('ld'), 1], "
                                "offset_factor=1)}, and pass them on to the function")
            step = build.product_of_extents(step, extent)

    def must_equal(self, wanted: Expr, real: Expr, problem: str, hint: str) -> None:
        """Refuses values that differ for compact arrays; where they may differ for other arrays only, adds a check of the
        call.
        """
        if build.as_int(self.analyzer.simplify(build.sub(wanted, real))) == 0:
            return
        usual = substitute(real, self.compact)
        if not any(v in self.compact for v in variables(real)) \
                or build.as_int(self.analyzer.simplify(build.sub(wanted, usual))) != 0:
            self.refuse(problem, hint)
        self.checks.append((build.equal(real, wanted), f"the strides of the array {self.whole.name} do not fit the buffer "
                            f"{self.window.name} of an intrinsic: pass a contiguous copy"))


class _Wide(Rewriter):
    """Keeps addresses in int64 whose offset is computed in int64, although the window declares its variables as int32."""

    def rewrite(self, node: Any) -> Any:
        match node:
            case Load() | Store():
                index = _widened(node.index)
                return node if index is node.index else node.replace(index=index)
            case Call(op=op, args=(kind, data, offset, *rest)) if op is ACCESS_PTR:
                wide = _widened(offset)
                return node if wide is offset else node.replace(args=(kind, data, wide, *rest))
            case _:
                return node


def _widened(index: Expr) -> Expr:
    if isinstance(index, Cast) and index.dtype is INT32 and index.value.dtype is INT64:
        return index.value
    if isinstance(index, (Add, Sub, Mul)) and index.dtype is INT32:
        a, b = _widened(index.a), _widened(index.b)
        if a is not index.a or b is not index.b:
            return build.binary(type(index), *build.match_operands(a, b))
    return index
